//! `docs/operations.md`, followed command by command, as by an operator at one machine.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use reqwest::Client;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::backups::release;
use super::keys::{dataset, job};
use crate::process::{ServiceProcess, call};

const PAGE: &str = include_str!("../../../docs/operations.md");

/// The programs with which a command in the text begins.
const PROGRAMS: [&str; 10] = [
    "apt-get",
    "chmod",
    "dnf",
    "docker/make-secrets.sh",
    "docker/pin-images.sh",
    "kubectl",
    "make",
    "pais",
    "pg_ctl",
    "systemctl",
];

/// Commands that are not run here, by their beginnings, with the reason.
const NOT_RUN: [(&str, &str); 11] = [
    ("apt-get install", "it installs packages"),
    ("dnf install", "it installs packages"),
    ("docker/pin-images.sh", "it asks the registry of the images"),
    ("kubectl apply", "there is no Kubernetes"),
    ("make package", "it makes a release build"),
    ("make sbom", "it installs a tool"),
    ("pais audit archive", "`archives` runs it"),
    ("pais serve --no-workers", "`worker_processes` runs it"),
    ("pais work", "`worker_processes` runs it"),
    ("pg_ctl stop", "it is for a server of somebody else"),
    ("systemctl enable", "there is no systemd"),
];

/// Directories of the page, which are in a temporary directory here.
const DIRECTORIES: [&str; 4] = ["/var/lib/pais", "/backup", "/safe", "/srv"];

/// Longest time of a command.
const COMMAND: Duration = Duration::from_secs(120);

/// The line after the output of a command begins with it; the exit status follows.
const END: &str = "--- the command has ended:";

/// A command of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PageCommand {
    text: String,
    /// Whether it is a line of a block; otherwise the text names it.
    is_of_block: bool,
}

/// The commands of the page, in its order.
fn commands() -> Vec<PageCommand> {
    let mut commands = Vec::new();
    for (index, part) in PAGE.split("```").enumerate() {
        if index % 2 == 0 {
            let spans = part.split('`').skip(1).step_by(2);
            let is_command = |span: &&str| {
                let program = span.split_whitespace().next();
                program.is_some_and(|program| PROGRAMS.contains(&program))
            };
            let named = spans.filter(is_command);
            commands.extend(named.map(|span| PageCommand {
                text: span.split_whitespace().collect::<Vec<_>>().join(" "),
                is_of_block: false,
            }));
        } else if let Some(block) = part.strip_prefix("sh\n") {
            let joined = block.replace("\\\n", "");
            commands.extend(joined.lines().map(|line| PageCommand {
                text: line.to_owned(),
                is_of_block: true,
            }));
        }
    }
    // Programs by themselves are no commands.
    commands.retain(|command| {
        command.is_of_block || command.text.contains(' ') || command.text.contains('/')
    });
    commands
}

/// A shell on a machine that has the page's directories below a temporary one.
struct Operator {
    folder: tempfile::TempDir,
    shell: Child,
    output: Receiver<String>,
    /// The addresses in place of those of the page.
    addresses: [(&'static str, String); 2],
    /// The commands of the page that are still to be run.
    rest: std::vec::IntoIter<PageCommand>,
    done: Vec<String>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        // It has no jobs left, unless the test has failed.
        if let Some(mut stdin) = self.shell.stdin.take() {
            let _ = stdin.write_all(b"kill $(jobs -p); wait\n");
        }
        let _ = self.shell.wait();
    }
}

impl Operator {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        for directory in ["backup", "safe", "srv", "var/lib", "docker"] {
            std::fs::create_dir_all(folder.path().join(directory)).unwrap();
        }
        std::fs::copy(
            root.join("docker/make-secrets.sh"),
            folder.path().join("docker/make-secrets.sh"),
        )
        .unwrap();
        let addresses = ["127.0.0.1:8080", "127.0.0.1:8081"]
            .map(|of_page| (of_page, ServiceProcess::free_address()));
        let mut shell = bash(&["-s"])
            .current_dir(folder.path())
            .env("PAIS__SERVER__LISTEN", &addresses[0].1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        shell
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"exec 2>&1\n")
            .unwrap();
        let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let (send, output) = mpsc::channel();
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .try_for_each(|line| send.send(line))
        });
        Self {
            folder,
            shell,
            output,
            addresses,
            rest: commands().into_iter(),
            done: Vec::new(),
        }
    }

    /// What stands on this machine for a text of the page.
    fn here(&self, text: &str) -> String {
        let mut here = text.to_owned();
        for directory in DIRECTORIES {
            let at = self.folder.path().join(&directory[1..]);
            here = here.replace(directory, at.to_str().unwrap());
        }
        for (of_page, address) in &self.addresses {
            here = here.replace(of_page, address);
        }
        here
    }

    /// Types a line. Returns whether it succeeds, and what is printed meanwhile.
    fn enter(&mut self, line: &str) -> (bool, String) {
        let line = self.here(line);
        let stdin = self.shell.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}\nended=$?; echo; echo '{END}' $ended").unwrap();
        let mut printed = String::new();
        loop {
            let next = self.output.recv_timeout(COMMAND);
            let next = next.unwrap_or_else(|_| panic!("{line} does not end:\n{printed}"));
            if let Some(status) = next.strip_prefix(END) {
                return (status == " 0", printed);
            }
            printed += &next;
            printed.push('\n');
        }
    }

    /// Types a line that must succeed.
    fn run(&mut self, line: &str) -> String {
        let (succeeded, printed) = self.enter(line);
        assert!(succeeded, "{line}\n{printed}");
        printed
    }

    /// Types a line that must fail and say this.
    fn refused(&mut self, line: &str, why: &str) {
        let (succeeded, printed) = self.enter(line);
        assert!(!succeeded && printed.contains(why), "{line}\n{printed}");
    }

    /// The next command of the page that begins so. Those before it are run.
    fn follow_to(&mut self, beginning: &str) -> PageCommand {
        loop {
            let next = self.rest.next();
            let next = next.unwrap_or_else(|| panic!("the page has no further `{beginning}`"));
            if next.text.starts_with(beginning) {
                self.done.push(next.text.clone());
                return next;
            }
            self.follow(&next);
        }
    }

    /// Runs the rest of the page.
    fn follow_to_end(&mut self) {
        while let Some(next) = self.rest.next() {
            self.follow(&next);
        }
    }

    fn follow(&mut self, command: &PageCommand) {
        let text = &command.text;
        let is_done = !command.is_of_block && self.done.iter().any(|done| done.starts_with(text));
        let is_not_run = NOT_RUN
            .iter()
            .any(|(beginning, _)| text.starts_with(beginning));
        if !is_done && !is_not_run {
            self.run(text);
            self.done.push(text.clone());
        }
    }

    /// Runs a command in another terminal: a service that is ready then.
    async fn serve(&self, command: &PageCommand, data: &str, address: usize) -> ServiceProcess {
        let mut program = bash(&["-c", &format!("exec {}", self.here(&command.text))]);
        program
            .env("PAIS__SERVER__LISTEN", &self.addresses[0].1)
            .env("PAIS__SERVER__DATA_DIR", self.here("/var/lib/pais"));
        let data = PathBuf::from(self.here(data));
        ServiceProcess::start_command(program, &data, &self.addresses[address].1).await
    }
}

/// A shell that finds the program.
fn bash(arguments: &[&str]) -> Command {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_pais"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(arguments)
        .env("PATH", path)
        .env_remove("DATABASE_URL");
    bash
}

/// Whether a service has the release, with its table.
async fn has_release(base: &str, token: &str, released: &Value) {
    let path = format!("{base}/v1/releases/{}", released["id"].as_str().unwrap());
    let found = call(Client::new().get(&path), token).await;
    assert_eq!(found["sha256"], released["sha256"]);
    let table = Client::new().get(format!("{path}/data")).bearer_auth(token);
    let table = table.send().await.unwrap().bytes().await.unwrap();
    assert_eq!(hex::encode(Sha256::digest(&table)), found["sha256"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_for_operators_is_correct() {
    let mut operator = Operator::new();
    let serve = operator.follow_to("pais serve");
    let service = operator.serve(&serve, "/var/lib/pais", 0).await;
    let token = service.token("hospital", "holder");
    service.token("bts", "recipient");
    let patients = dataset(&service, &token, "patients").await;
    let released = release(&service, &token, &patients).await;
    operator.follow_to("docker/make-secrets.sh");
    operator.run("docker/make-secrets.sh && ls docker/secrets/{database_password,database_url,encryption_key}");
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert!(PAGE.contains(&format!("`GET {path}`")));
        operator.run(&format!("curl --silent --fail http://127.0.0.1:8080{path}"));
    }

    // The backup, restored beside the service.
    let restore = operator.follow_to("pais restore /backup");
    let (without_key, _) = restore.text.split_once(" --key").unwrap();
    operator.refused(without_key, "--key FILE");
    operator.run(&restore.text);
    let serve = operator.follow_to("pais serve --data-dir /srv");
    let restored = operator.serve(&serve, "/srv/pais-restored", 1).await;
    has_release(&restored.base, &token, &released).await;
    let patients = patients.replace(&service.base, &restored.base);
    let ended = job(&restored, &token, &patients).await;
    assert_eq!(ended, "succeeded", "the raw rows open");
    restored.stop();

    // The dump, restored on another machine.
    operator.follow_to("install -d -m 700 /var/lib/pais");
    service.stop();
    operator.run("cd / && mv /var/lib/pais /var/lib/pais-of-the-first-machine");
    operator.run("install -d -m 700 /var/lib/pais");
    let restore = operator.follow_to("PGPASSWORD=$(cat password) pg_restore");
    operator.run(&restore.text);
    operator.follow_to("pais serve &");
    operator.run("pais serve &");
    operator.run("until curl --silent --fail http://127.0.0.1:8080/readyz; do sleep 1; done");
    let restored = operator.here("http://127.0.0.1:8080");
    has_release(&restored, &token, &released).await;

    let generate = operator.follow_to("pais keys generate");
    operator.run(&generate.text.replace("FILE", "/safe/new.key"));
    let chmod = operator.follow_to("chmod go=");
    let key = "/var/lib/pais/key-encryption.key";
    operator.run(&format!("chmod 644 {key}"));
    operator.refused(
        "pais keys check",
        "has mode 0644; only its owner may read it",
    );
    operator.run(&chmod.text.replace("FILE", key));
    operator.run("pais keys check");
    let printed = operator.run("pais audit verify");
    assert!(printed.contains("in its place"), "{printed}");

    operator.follow_to_end();
    operator.run("kill %1; wait %1");

    for (beginning, why) in NOT_RUN {
        let is_of_page = commands()
            .iter()
            .any(|command| command.text.starts_with(beginning));
        assert!(
            is_of_page,
            "the page has no `{beginning}`, which is not run because {why}"
        );
    }
}
