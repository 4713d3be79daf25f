//! Wall clocks that a test steps: a small library, compiled from `clock.c`, is preloaded into a process.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The library, in a directory that every account of the machine can read.
pub(super) struct Clocks {
    directory: tempfile::TempDir,
}

/// The clock of one process and of those that it starts.
#[derive(Clone)]
pub(super) struct SteppedClock {
    library: PathBuf,
    file: PathBuf,
}

impl Clocks {
    /// `None`, with a line that says so, where no C compiler is.
    pub(super) fn compile() -> Option<Self> {
        let readable = std::fs::Permissions::from_mode(0o755);
        let directory = tempfile::Builder::new().permissions(readable).tempdir();
        let clocks = Self {
            directory: directory.unwrap(),
        };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/faults/clock.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([clocks.library(), source])
            .output();
        match compiled {
            Ok(output) if output.status.success() => Some(clocks),
            other => {
                println!(
                    "no clock is stepped: `cc` does not compile tests/http/faults/clock.c: {other:?}"
                );
                None
            }
        }
    }

    fn library(&self) -> PathBuf {
        self.directory.path().join("clock.so")
    }

    /// A clock that is right.
    pub(super) fn clock(&self, name: &str) -> SteppedClock {
        let clock = SteppedClock {
            library: self.library(),
            file: self.directory.path().join(name),
        };
        std::fs::write(&clock.file, 0_i64.to_ne_bytes()).unwrap();
        clock
    }

    /// A directory with the server programs of PostgreSQL, whose server has this clock.
    pub(super) async fn postgres(&self, clock: &SteppedClock) -> PathBuf {
        let options = pais_postgres::EmbeddedOptions::default();
        let found = pais_postgres::client("postgres", None, &options).await;
        let found = PathBuf::from(found.unwrap().as_std().get_program());
        let programs = self.directory.path().join("postgres");
        std::fs::create_dir(&programs).unwrap();
        let initdb = found.with_file_name("initdb");
        std::os::unix::fs::symlink(initdb, programs.join("initdb")).unwrap();
        let script = format!(
            "#!/bin/sh\nexport LD_PRELOAD='{}' PAIS_TEST_CLOCK='{}'\nexec '{}' \"$@\"\n",
            clock.library.display(),
            clock.file.display(),
            found.display(),
        );
        let server = programs.join("postgres");
        std::fs::write(&server, script).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&server, executable).unwrap();
        programs
    }
}

impl SteppedClock {
    /// Has a program run by this clock.
    pub(super) fn preload(&self, program: &mut Command) {
        program
            .env("LD_PRELOAD", &self.library)
            .env("PAIS_TEST_CLOCK", &self.file);
    }

    /// Sets how far the clock is ahead.
    pub(super) fn set_ahead(&self, ahead: Duration) {
        self.write(i64::try_from(ahead.as_micros()).unwrap());
    }

    /// Sets how far the clock is behind.
    pub(super) fn set_behind(&self, behind: Duration) {
        self.write(-i64::try_from(behind.as_micros()).unwrap());
    }

    /// In place: the process has mapped the file.
    fn write(&self, microseconds: i64) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(&self.file);
        let written = file.unwrap().write_all_at(&microseconds.to_ne_bytes(), 0);
        written.unwrap();
    }
}
