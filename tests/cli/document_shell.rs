//! Runs the commands of a document as printed, and compares their output with the output printed
//! there.
//!
//! In an expected output `…` matches any text, ids may differ, and white space is ignored. Rows of
//! a released table may be in any order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pais_test_support::poll::poll;

/// A command of a document and its printed output.
pub(crate) struct Entry {
    command: String,
    output: String,
}

/// The commands in the `console` blocks of a text.
pub(crate) fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let mut open = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                entries.push(Entry {
                    command: command.to_owned(),
                    output: String::new(),
                });
                open = is_open(command);
                continue;
            }
            let entry = entries.last_mut().expect("a command first");
            if open {
                entry.command += "\n";
                entry.command += line;
                open = is_open(&entry.command);
            } else {
                entry.output += line;
                entry.output += "\n";
            }
        }
    }
    entries
}

/// Whether a command continues on the next line: after a backslash, or inside quotes.
fn is_open(command: &str) -> bool {
    command.ends_with('\\') || command.matches('\'').count() % 2 == 1
}

fn is_id(text: &str) -> bool {
    uuid::Uuid::parse_str(text).is_ok()
}

/// A shell that keeps its variables from command to command, and the service that one of the
/// commands starts.
pub(crate) struct DocumentShell {
    pub(crate) folder: tempfile::TempDir,
    port: u16,
    variables: BTreeMap<String, String>,
    service: Option<Child>,
    /// Ids printed in the document, each with the id that this run got instead.
    ids: BTreeMap<String, String>,
}

impl Drop for DocumentShell {
    fn drop(&mut self) {
        let Some(service) = &mut self.service else {
            return;
        };
        // The service stops its database server before it ends.
        let _ = Command::new("kill").arg(service.id().to_string()).status();
        let limit = Duration::from_secs(30);
        if poll(limit, || service.try_wait().ok().flatten()).is_none() {
            let _ = service.kill();
            let _ = service.wait();
        }
    }
}

impl DocumentShell {
    /// Works in a temporary directory with links to the files that the commands read.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for name in ["examples", "tests"] {
            std::os::unix::fs::symlink(root.join(name), folder.path().join(name)).unwrap();
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        Self {
            folder,
            port: listener.local_addr().unwrap().port(),
            variables: BTreeMap::new(),
            service: None,
            ids: BTreeMap::new(),
        }
    }

    fn bash(&self, script: &str) -> Command {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_pais"));
        let mut path = std::ffi::OsString::from(program.parent().unwrap());
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut bash = Command::new("bash");
        bash.args(["-c", script])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env_remove("DATABASE_URL")
            .env("PAIS__SERVER__LISTEN", format!("127.0.0.1:{}", self.port))
            .envs(&self.variables)
            .stdin(Stdio::null());
        bash
    }

    fn serve(&mut self, command: &str) {
        let command = command.trim_end_matches('&');
        let log = std::fs::File::create(self.folder.path().join("serve.log")).unwrap();
        let started = self
            .bash(&format!("exec {command}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.service = Some(started.unwrap());
        let ready = format!("curl -sf http://127.0.0.1:{}/readyz", self.port);
        let is_ready = || self.bash(&ready).output().unwrap().status.success();
        if poll(Duration::from_secs(120), || is_ready().then_some(())).is_none() {
            let log = std::fs::read_to_string(self.folder.path().join("serve.log"));
            panic!("the service did not become ready: {log:?}");
        }
    }

    /// Runs a command and returns its standard output.
    pub(crate) fn run(&mut self, command: &str) -> String {
        let command = command.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", self.port));
        if command.ends_with('&') {
            self.serve(&command);
            return String::new();
        }
        let assigned = command
            .split_once('=')
            .filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_uppercase()));
        let script = match assigned {
            Some((name, value)) if is_id(value) => {
                let id = self.ids.get(value).expect("an id that was printed before");
                self.variables.insert(name.to_owned(), id.clone());
                return String::new();
            }
            Some((name, _)) => format!("{command}\nprintf %s \"${name}\""),
            None => command.clone(),
        };
        let ran = self.bash(&script).output().unwrap();
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{command}\n{errors}");
        let printed = String::from_utf8(ran.stdout).unwrap();
        if let Some((name, _)) = assigned {
            self.variables.insert(name.to_owned(), printed);
            return String::new();
        }
        printed
    }

    /// Runs a command and compares its output with the printed one.
    pub(crate) fn check(&mut self, entry: &Entry) {
        let printed = self.run(&entry.command);
        self.learn_ids(&entry.output, &printed);
        let context = format!("$ {}\nprints\n{printed}", entry.command);
        if ["Job,Sex,Age,", "sex,age,"]
            .iter()
            .any(|header| entry.output.starts_with(header))
        {
            let mut rows: Vec<&str> = printed.lines().collect();
            for line in entry.output.lines().filter(|line| *line != "…") {
                let found = rows.iter().position(|row| *row == line);
                // Without `…` the document shows a part of the rows, and which ones differs from run
                // to run: only the header is compared.
                if entry.output.contains('…') || line == entry.output.lines().next().unwrap() {
                    rows.remove(found.unwrap_or_else(|| panic!("no line {line}\n{context}")));
                }
            }
            return;
        }
        let mut printed = flat(&printed);
        // The number of progress events depends on timing. Only the last one is compared.
        let progress = "event:progressdata:";
        if let Some(last) = printed.rfind(progress) {
            printed.replace_range(..last, "");
        }
        let mut rest = printed.as_str();
        for part in flat(&entry.output).split('…') {
            let found = rest.find(part);
            let at = found.unwrap_or_else(|| panic!("no\n{part}\nin its place\n{context}"));
            rest = &rest[at + part.len()..];
        }
    }

    /// Records the id of this run for each id that the document prints.
    fn learn_ids(&mut self, expected: &str, printed: &str) {
        for (at, _) in expected.match_indices("\":\"") {
            let value = expected[at + 3..].split('"').next().unwrap();
            let key = expected[..at].rsplit('"').next().unwrap();
            if !is_id(value) || self.ids.contains_key(value) {
                continue;
            }
            let mark = format!("\"{key}\":\"");
            let (_, found) = printed
                .split_once(&mark)
                .unwrap_or_else(|| panic!("no {key} in\n{printed}"));
            let id = found.split('"').next().unwrap();
            self.ids.insert(value.to_owned(), id.to_owned());
        }
    }
}

/// A text without white space, with each id, whole or shortened, replaced by `id`.
fn flat(text: &str) -> String {
    let text: String = text.split_whitespace().collect();
    let mut out = String::with_capacity(text.len());
    for (index, part) in text.split('"').enumerate() {
        if index > 0 {
            out.push('"');
        }
        let shortened = part.len() > 8 && part.as_bytes()[8] == b'-' && part.ends_with('…');
        out.push_str(if is_id(part) || shortened { "id" } else { part });
    }
    out
}
