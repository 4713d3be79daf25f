//! A temporary directory in which a test runs commands.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A temporary directory: a schema `s.json`, a job `j.json` and tables.
pub(crate) struct CliDir(tempfile::TempDir);

impl CliDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path().join(name)).unwrap()).unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pais"))
            .current_dir(self.path())
            .args(arguments)
            .output()
            .unwrap()
    }

    /// Runs a line of bash in which `pais` is the program. Returns its exit status and its output.
    pub(crate) fn bash(&self, line: &str) -> (Option<i32>, String) {
        let program = env!("CARGO_BIN_EXE_pais");
        let script = format!("set -o pipefail\npais() {{ '{program}' \"$@\"; }}\n{line}");
        let mut command = Command::new("bash");
        let ran = command.current_dir(self.path()).args(["-c", &script]);
        let ran = ran.output().unwrap();
        let text = [ran.stdout, ran.stderr].concat();
        (ran.status.code(), String::from_utf8(text).unwrap())
    }

    /// Anonymizes `input` to `output`; also writes `report.json` and `steps.json`.
    #[track_caller]
    pub(crate) fn anonymize(&self, input: &str, output: &str) {
        let ran = self.run(&[
            "anonymize",
            "--schema",
            "s.json",
            "--job",
            "j.json",
            input,
            "-o",
            output,
            "--report",
            "report.json",
            "--steps",
            "steps.json",
        ]);
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }

    /// Exit status and output of `pais verify`; with `raw`, it compares the release with `raw.csv`.
    pub(crate) fn verify(&self, release: &str, raw: bool) -> (Option<i32>, String) {
        let mut arguments = vec!["verify", "--schema", "s.json", "--job", "j.json", release];
        if raw {
            arguments.extend(["--raw", "raw.csv"]);
        }
        let output = self.run(&arguments);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }
}
