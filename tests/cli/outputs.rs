//! The files that commands write: none is a file that they read, none is written twice, and a run that
//! fails leaves them as they were.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

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

/// The files of a directory, by their names.
fn files(dir: &CliDir) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir.path()).unwrap().flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
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
        assert_eq!(files(&dir), before, "{line}");
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
