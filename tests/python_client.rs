//! The Python client against this service: its own tests, in a virtual environment of their own.
//!
//! The environment is kept beside the build, and made anew when the client's `pyproject.toml`, the
//! checkout's place or the interpreter has changed. The client is installed editable, so that its
//! sources are always the present ones.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const INTERPRETER_MISSING: &str = "the Python client's tests need python3 with its venv module: \
     install Debian's packages python3 and python3-venv, or run scripts/setup.sh";

#[test]
fn the_python_client_passes_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let client = root.join("clients/python");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap_or(root);
    let environment = target.join("python-client");
    let python = environment.join("bin/python");

    let stamp = environment.join("pais-stamp");
    let wanted = format!(
        "{}\n{}\n{}",
        client.display(),
        interpreter(),
        fs::read_to_string(client.join("pyproject.toml")).expect("the client's pyproject.toml")
    );
    let usable = fs::read_to_string(&stamp).is_ok_and(|made_for| made_for == wanted)
        && run(
            command(&python).args(["-c", "import duckdb, pais_client, pandas, pyarrow, pytest"]),
            "the environment's interpreter",
        )
        .is_ok();
    if !usable {
        run(
            command(Path::new("python3"))
                .args(["-m", "venv", "--clear"])
                .arg(&environment),
            "python3 -m venv",
        )
        .unwrap_or_else(|failure| panic!("{INTERPRETER_MISSING}\n{failure}"));
        run(
            command(&python)
                .args(["-m", "pip", "install", "--quiet", "--editable"])
                .arg(format!("{}[test]", client.display())),
            "pip install",
        )
        .unwrap_or_else(|failure| panic!("{failure}"));
        // Last, so that an environment that was not finished is made anew.
        fs::write(&stamp, wanted).expect("the environment's stamp");
    }

    run(
        command(&python)
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
            .current_dir(&client)
            .env("PAIS_BIN", env!("CARGO_BIN_EXE_pais")),
        "pytest",
    )
    .unwrap_or_else(|failure| panic!("{failure}"));
}

/// Which python3 this is.
fn interpreter() -> String {
    run(
        command(Path::new("python3")).args([
            "-c",
            "import ensurepip, sys, venv; print(sys.version, sys.prefix)",
        ]),
        "python3",
    )
    .unwrap_or_else(|failure| panic!("{INTERPRETER_MISSING}\n{failure}"))
}

/// A command in which the caller's own Python environment has no say.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for name in [
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTEST_ADDOPTS",
        "PYTEST_PLUGINS",
    ] {
        command.env_remove(name);
    }
    command.env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::null());
    command
}

/// What the command prints, or what it says when it fails.
fn run(command: &mut Command, name: &str) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{name} cannot be run: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    Err(format!(
        "{name} failed ({}):\n{printed}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}
