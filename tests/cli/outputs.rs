//! The files that commands write: none is a file that they read, none is written twice, and a run that
//! fails leaves them as they were.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use pais_test_support::poll::poll;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::cli_dir::CliDir;

const RUN: &str = "pais anonymize --schema s.json --job j.json raw.csv";

const GENERATE: &str = r#"pais taxonomy generate --schema s.json --column zip --generate '{"generate": "prefix"}' raw.csv"#;

/// A schema, a job, a raw table of 2,000 rows and a hierarchy.
fn directory() -> CliDir {
    let dir = CliDir::new();
    let schema = json!({"name": "t", "columns": [
        {"name": "zip", "role": "quasi_identifier"}, {"name": "ill", "role": "sensitive"}]});
    dir.write("s.json", &schema.to_string());
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "seed": 1});
    dir.write("j.json", &job.to_string());
    let rows = (0..2_000).map(|row| format!("{},illness number {}\n", row % 50, row % 7));
    dir.write("raw.csv", &format!("zip,ill\n{}", rows.collect::<String>()));
    let root = json!({"label": "*", "children": [{"label": "a"}, {"label": "b"}]});
    dir.write("h.json", &json!({"name": "h", "root": root}).to_string());
    dir
}

type Files = BTreeMap<String, Vec<u8>>;

/// The files of a directory and of those in it, by their names.
fn files(dir: &CliDir) -> Files {
    let mut files = BTreeMap::new();
    for folder in ["", "sub/", "linked/"] {
        let entries = std::fs::read_dir(dir.path().join(folder));
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if entry.path().is_file() {
                let bytes = std::fs::read(entry.path()).unwrap();
                files.insert(format!("{folder}{name}"), bytes);
            }
        }
    }
    files
}

#[track_caller]
fn assert_unchanged(dir: &CliDir, before: &Files, line: &str) {
    let after = files(dir);
    let names = before.keys().chain(after.keys());
    let changed = names.filter(|name| before.get(*name) != after.get(*name));
    let changed: BTreeSet<&String> = changed.collect();
    assert!(changed.is_empty(), "{line}: {changed:?}");
}

#[test]
fn no_output_is_an_input_or_another_output() {
    let dir = directory();
    let ran = dir.bash(&format!("{RUN} -o out.csv && pais keys generate k"));
    assert_eq!(ran.0, Some(0), "{}", ran.1);
    let released = "pais transform --release s.json --schema t.json --taxonomies h.json raw.csv";
    dir.write("t.json", "{}");
    symlink("s.json", dir.path().join("link.json")).unwrap();
    symlink("new.csv", dir.path().join("dangling.csv")).unwrap();
    std::fs::hard_link(dir.path().join("j.json"), dir.path().join("same.json")).unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let before = files(&dir);
    for (line, output, other) in [
        // What is read.
        (
            format!("{RUN} --report s.json"),
            "--report s.json",
            "--schema s.json",
        ),
        (
            format!("{RUN} --report link.json"),
            "--report link.json",
            "--schema s.json",
        ),
        (
            format!("{RUN} --steps j.json"),
            "--steps j.json",
            "--job j.json",
        ),
        (
            format!("{RUN} --steps sub/../same.json"),
            "--steps sub/../same.json",
            "--job j.json",
        ),
        (
            format!("{RUN} -o out --executor a --executor-key k --report k"),
            "--report k",
            "--executor-key k",
        ),
        (
            "pais schema draft raw.csv -o raw.csv".to_owned(),
            "-o raw.csv",
            "FILE raw.csv",
        ),
        (
            "pais schema draft - -o raw.csv < raw.csv".to_owned(),
            "-o raw.csv",
            "standard input",
        ),
        (
            "pais schema draft raw.csv >> raw.csv".to_owned(),
            "standard output",
            "FILE raw.csv",
        ),
        (
            "pais taxonomy convert h.json -o h.json".to_owned(),
            "-o h.json",
            "FILE h.json",
        ),
        (
            format!("{GENERATE} -o s.json"),
            "-o s.json",
            "--schema s.json",
        ),
        (
            format!("{GENERATE} -o raw.csv"),
            "-o raw.csv",
            "INPUT raw.csv",
        ),
        (
            format!("{released} -o raw.csv"),
            "-o raw.csv",
            "INPUT raw.csv",
        ),
        (
            format!("{released} -o link.json"),
            "-o link.json",
            "--release s.json",
        ),
        (
            format!("{released} -o t.json"),
            "-o t.json",
            "--schema t.json",
        ),
        (
            format!("{released} -o h.json"),
            "-o h.json",
            "--taxonomies h.json",
        ),
        // What is written.
        (
            format!("{RUN} -o out.csv --report out.csv"),
            "--report out.csv",
            "-o out.csv",
        ),
        (
            format!("{RUN} -o new.csv --report new.csv"),
            "--report new.csv",
            "-o new.csv",
        ),
        (
            format!("{RUN} -o new.csv --report dangling.csv"),
            "--report dangling.csv",
            "-o new.csv",
        ),
        (
            format!("{RUN} -o o.csv --report r --steps ./sub/../r"),
            "--steps ./sub/../r",
            "--report r",
        ),
        (
            format!("{RUN} -o sub --report sub/qit.csv"),
            "--report sub/qit.csv",
            "-o sub",
        ),
        (
            format!("{RUN} --report out.csv >> out.csv"),
            "--report out.csv",
            "standard output",
        ),
    ] {
        let (status, text) = dir.bash(&line);
        assert_eq!(status, Some(2), "{line}: {text}");
        let named = format!("pais: {output}: this is the file of {other}, ");
        assert!(text.contains(&named), "{line}: {text}");
        assert_unchanged(&dir, &before, &line);
    }
    // A pipe takes several documents.
    let (status, text) = dir.bash(&format!(
        "{RUN} --report /dev/stdout --steps /dev/stdout | cat"
    ));
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("zip,ill\n") && text.contains("\"verdict\""),
        "{text}"
    );
}

/// Lines that write files, and their exit status where that fails.
fn writing_lines() -> Vec<(String, i32)> {
    let anonymize = |output: &str| (format!("{RUN} -o {output}"), 2);
    let other = |line: &str| (line.to_owned(), 2);
    vec![
        anonymize("out.csv"),
        anonymize("out.csv.gz"),
        anonymize("out.ndjson.zst"),
        anonymize("out.parquet"),
        anonymize("link.csv"),
        anonymize("o.csv --report report.json --steps steps.json"),
        other("pais anonymize --schema s.json --job a.json raw.csv -o sub"),
        other("pais anonymize --schema s.json --job l.json raw.csv -o sweep.csv"),
        other("pais anonymize --schema s.json --job l.json raw.csv -o sweep.json"),
        other("pais schema draft raw.csv -o draft.json"),
        other("pais taxonomy convert h.json -o h.csv"),
        other(&format!("{GENERATE} -o g.json")),
        other("pais sample blood --rows 9 -o ."),
        ("pais keys generate k".to_owned(), 1),
    ]
}

/// As [`directory`], with jobs of other outputs, and links to outputs.
fn writing_directory() -> CliDir {
    let dir = directory();
    let privacy = json!({"model": "l_diversity", "k": 2, "l": 2});
    let anatomized = json!({"privacy": privacy, "recoding": "local", "output": "anatomized"});
    dir.write("a.json", &anatomized.to_string());
    let another = json!({"privacy": {"model": "k_anonymity", "k": 2}, "seed": 2});
    dir.write("another.json", &another.to_string());
    let sweep = json!({"privacy": {"model": "k_anonymity", "k": [2, 3]}});
    dir.write("l.json", &sweep.to_string());
    std::fs::create_dir(dir.path().join("linked")).unwrap();
    symlink("linked/file.csv", dir.path().join("link.csv")).unwrap();
    dir
}

#[test]
fn a_run_that_fails_leaves_its_outputs_as_they_were() {
    let dir = writing_directory();
    for (line, _) in writing_lines() {
        let (status, text) = dir.bash(&line);
        assert_eq!(status, Some(0), "{line}: {text}");
    }
    std::fs::remove_file(dir.path().join("k")).unwrap();
    let before = files(&dir);
    // No file may have a byte.
    for (line, expected) in writing_lines() {
        let (status, text) = dir.bash(&format!("trap '' XFSZ; ulimit -f 0; {line}"));
        assert_eq!(status, Some(expected), "{line}: {text}");
        assert!(text.contains("too large"), "{line}: {text}");
        assert_unchanged(&dir, &before, &line);
    }
    // One of several files cannot be written.
    for option in ["--report", "--steps"] {
        let line = format!("{RUN} -o out.csv {option} /dev/full");
        let (status, text) = dir.bash(&line.replace("j.json", "another.json"));
        assert_eq!(status, Some(2), "{text}");
        assert_unchanged(&dir, &before, option);
    }
}

#[test]
fn an_output_keeps_its_mode_its_link_and_what_reads_it() {
    let dir = writing_directory();
    for (line, expected) in [
        (
            format!("umask 027; {RUN} -o out.csv && stat -c %a out.csv"),
            "640\n",
        ),
        (
            format!("chmod 604 out.csv; {RUN} -o out.csv && stat -c %a out.csv"),
            "604\n",
        ),
        (
            format!("{RUN} -o link.csv && stat -c %F link.csv && cmp link.csv out.csv"),
            "symbolic link\n",
        ),
        (
            format!(
                "mkfifo p.csv; cat p.csv > read.csv & {RUN} -o p.csv; wait; cmp read.csv out.csv; stat -c %F p.csv"
            ),
            "fifo\n",
        ),
        (
            format!("{RUN} -o out.csv --report /dev/stdout > log && grep -c verdict log"),
            "1\n",
        ),
        (
            format!(
                "{RUN} -o out.csv --report /dev/null --steps /dev/null && stat -c %F /dev/null"
            ),
            "character special file\n",
        ),
        (format!("{RUN} > shown.csv && cmp shown.csv out.csv"), ""),
        (
            format!(
                "echo old > one.csv; ln one.csv other.csv; {RUN} -o one.csv && cmp other.csv out.csv && stat -c %h one.csv"
            ),
            "2\n",
        ),
    ] {
        let (status, text) = dir.bash(&format!("exec 2> errors; {line}"));
        assert_eq!(status, Some(0), "{line}: {text}");
        assert_eq!(text, expected, "{line}");
    }
    assert!(files(&dir).keys().all(|name| !name.contains(".pais-")));
}

/// The incomplete files of a directory.
fn incomplete(dir: &CliDir) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_incomplete = |path: &std::path::PathBuf| path.to_string_lossy().contains("/.pais-");
    paths.filter(is_incomplete).collect()
}

#[test]
fn a_signal_removes_incomplete_files() {
    let dir = directory();
    let (status, text) = dir.bash("mkfifo report");
    assert_eq!(status, Some(0), "{text}");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        // A signal that the tests were started to ignore, as by `nohup`, would stay ignored.
        let mut command = Command::new("env");
        let command = command.args(["--default-signal", env!("CARGO_BIN_EXE_pais")]);
        let run = RUN.split(' ').skip(1);
        // The table is written, and the report waits for its reader.
        let command = command.args(run.chain(["-o", "out.csv", "--report", "report"]));
        let mut process = command.current_dir(dir.path()).spawn().unwrap();
        let written = || {
            let path = incomplete(&dir).pop()?;
            (path.metadata().ok()?.len() > 0).then_some(path)
        };
        let path = poll(Duration::from_secs(60), written).expect("the table is written");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        kill_process(Pid::from_child(&process), signal).unwrap();
        let status = process.wait().unwrap();
        assert_eq!(status.code(), Some(128 + signal.as_raw()), "{status}");
        assert_eq!(status.signal(), None);
        assert!(incomplete(&dir).is_empty(), "{signal:?}");
        assert!(!dir.path().join("out.csv").exists());
    }
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_a_row_is_read() {
    let dir = writing_directory();
    std::fs::remove_file(dir.path().join("raw.csv")).unwrap();
    std::fs::create_dir(dir.path().join("directory.csv")).unwrap();
    let refused = |job: &str, output: &str, words: &str| {
        let line = format!("{RUN} -o {output}").replace("j.json", job);
        let (status, text) = dir.bash(&line);
        assert_eq!(status, Some(2), "{line}: {text}");
        assert!(
            text.contains(output) && text.contains(words),
            "{line}: {text}"
        );
    };
    refused("j.json", "absent/out.csv", "does not exist");
    refused("j.json", "directory.csv", "is a directory");
    refused("l.json", "absent/sweep.json", "does not exist");
    refused("a.json", "h.json", "not a file");
    refused("a.json", "h.json/out", "h.json is no directory");
    // A table of an earlier release would be passed on with the new ones.
    std::fs::create_dir(dir.path().join("earlier")).unwrap();
    dir.write("earlier/st_other.csv", "group_id,other,count\n");
    refused("a.json", "earlier", "st_other.csv: this table");
    // A name that no file has.
    let name = "\u{e4}".repeat(50);
    let schema = json!({"name": "t", "columns": [
        {"name": "zip", "role": "quasi_identifier"}, {"name": name, "role": "sensitive"}]});
    dir.write("s.json", &schema.to_string());
    refused("a.json", "new", "307 bytes");
    assert!(!dir.path().join("new").exists());
}

#[test]
fn a_sweep_without_a_result_fails() {
    let dir = writing_directory();
    for (k, expected) in [(json!([2, 100_000]), 0), (json!([90_000, 100_000]), 1)] {
        let sweep = json!({"privacy": {"model": "k_anonymity", "k": k}});
        dir.write("l.json", &sweep.to_string());
        let line = format!("{RUN} -o sweep.csv").replace("j.json", "l.json");
        let (status, text) = dir.bash(&line);
        assert_eq!(status, Some(expected), "{text}");
        let rows = std::fs::read_to_string(dir.path().join("sweep.csv")).unwrap();
        assert_eq!(rows.lines().count(), 3, "{rows}");
    }
}
