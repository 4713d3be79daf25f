//! Raw tables as they come: delimiters, numbers, encodings and standard input.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::cli_dir::CliDir;

const PLAIN: &str = "age,job\n34.5,Zoë\n34.5,Zoë\n1200,Bob\n1200,Bob\n";
const GERMAN: &str = "job;age\r\nZoë;34,50\r\nZoë;34,5\r\nBob;1.200\r\nBob;1200\r\n";
const FLAGS: [&str; 8] = [
    "--delimiter",
    ";",
    "--decimal",
    ",",
    "--thousands",
    ".",
    "--encoding",
    "iso-8859-1",
];
const DOCUMENTS: [&str; 4] = ["--schema", "s.json", "--job", "j.json"];

fn directory() -> CliDir {
    let dir = CliDir::new();
    let schema = json!({"name": "t", "columns": [
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 2000]},
        {"name": "job", "role": "insensitive"},
    ]});
    dir.write("s.json", &schema.to_string());
    dir.write("j.json", r#"{"privacy": {"model": "k_anonymity", "k": 2}}"#);
    dir.write("raw.csv", PLAIN);
    let latin_1: Vec<u8> = GERMAN.chars().map(|it| it as u8).collect();
    std::fs::write(dir.path().join("german.csv"), latin_1).unwrap();
    dir
}

/// Runs `pais anonymize` and returns its exit status, the released table and its messages.
fn anonymize(dir: &CliDir, arguments: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut running = Command::new(env!("CARGO_BIN_EXE_pais"))
        .current_dir(dir.path())
        .args(["anonymize", "--seed", "1"])
        .args(DOCUMENTS)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = running.stdin.take().unwrap();
    // A command that refuses its arguments closes its end first.
    let _ = stdin.write_all(input);
    drop(stdin);
    let ran = running.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ran.status.code(), text(ran.stdout), text(ran.stderr))
}

#[test]
fn every_way_of_writing_a_table_gives_the_same_release() {
    let dir = directory();
    let (status, released, errors) = anonymize(&dir, &["raw.csv"], b"");
    assert_eq!(status, Some(0), "{errors}");
    let tsv = PLAIN.replace(',', "\t");
    dir.write("raw.tsv", &tsv);
    dir.write("raw.txt", &tsv);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(tsv.as_bytes()).unwrap();
    std::fs::write(dir.path().join("raw.tsv.gz"), packed.finish().unwrap()).unwrap();
    let ndjson = "{\"age\":34.5,\"job\":\"Zo\u{eb}\"}\n".repeat(2)
        + &"{\"age\":1200,\"job\":\"Bob\"}\n".repeat(2);
    let german = std::fs::read(dir.path().join("german.csv")).unwrap();
    let with_flags = |input| [&FLAGS[..], &[input]].concat();
    for (arguments, input) in [
        (with_flags("german.csv"), &b""[..]),
        (with_flags("-"), &german),
        (vec!["raw.tsv"], b""),
        (vec!["raw.tsv.gz"], b""),
        (vec!["raw.txt", "--format", "tsv"], b""),
        (vec!["-"], PLAIN.as_bytes()),
        (vec!["-", "--format", "tsv"], tsv.as_bytes()),
        (vec!["-", "--delimiter", "tab"], tsv.as_bytes()),
        (vec!["-", "--format", "ndjson"], ndjson.as_bytes()),
    ] {
        let (status, found, errors) = anonymize(&dir, &arguments, input);
        assert_eq!(status, Some(0), "{arguments:?}: {errors}");
        assert_eq!(found, released, "{arguments:?}");
    }
}

#[test]
fn a_release_is_verified_against_a_raw_table_as_it_comes() {
    let dir = directory();
    dir.anonymize("raw.csv", "o.csv");
    let verify = |arguments: &[&str]| {
        let ran = dir.run(&[&["verify"], &DOCUMENTS[..], &["o.csv"], arguments].concat());
        let text = [ran.stdout, ran.stderr].concat();
        (ran.status.code(), String::from_utf8(text).unwrap())
    };
    let with_raw = [&["--raw", "german.csv"], &FLAGS[..]].concat();
    let (status, text) = verify(&with_raw);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = verify(&FLAGS);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("--raw"), "{text}");
    let (status, text) = verify(&["--raw", "german.csv"]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("--delimiter"), "{text}");
}

#[test]
fn flags_that_cannot_be_met_are_refused() {
    let dir = directory();
    dir.write("raw.ndjson", "{\"age\":1,\"job\":\"x\"}\n");
    for arguments in [
        &["raw.csv", "--decimal", ","][..],
        &["raw.csv", "--thousands", "."],
        &["raw.csv", "--delimiter", "\""],
        &["raw.csv", "--encoding", "latin1"],
        &["raw.csv", "--format", "parquet"],
        &["raw.ndjson", "--delimiter", ";"],
        &["-", "--format", "ndjson", "--encoding", "utf-8"],
        &["raw.txt"],
        &["raw.csv", "-o", "out.tsv"],
    ] {
        let (status, _, errors) = anonymize(&dir, arguments, b"");
        assert_eq!(status, Some(2), "{arguments:?}: {errors}");
        assert!(!errors.is_empty());
    }
}

#[test]
fn nothing_is_written_where_a_document_of_the_run_could_not_be() {
    let dir = directory();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    for (document, why) in [("absent/it.json", "does not exist"), ("sub", "a directory")] {
        for option in ["--report", "--steps"] {
            let arguments = ["raw.csv", "-o", "out.csv", option, document];
            let (status, _, errors) = anonymize(&dir, &arguments, b"");
            assert_eq!(status, Some(2), "{errors}");
            assert!(
                errors.contains(document) && errors.contains(why),
                "{errors}"
            );
            assert!(!dir.path().join("out.csv").exists());
        }
    }
}

#[test]
fn the_raw_table_is_not_overwritten() {
    let dir = directory();
    let path = dir.path();
    std::os::unix::fs::symlink("raw.csv", path.join("link.csv")).unwrap();
    std::fs::hard_link(path.join("raw.csv"), path.join("other.csv")).unwrap();
    std::fs::create_dir(path.join("sub")).unwrap();
    let absolute = path.join("raw.csv");
    for arguments in [
        &["raw.csv", "-o", "raw.csv"][..],
        &["raw.csv", "-o", "./sub/../raw.csv"],
        &["raw.csv", "-o", absolute.to_str().unwrap()],
        &["raw.csv", "-o", "link.csv"],
        &["link.csv", "-o", "raw.csv"],
        &["raw.csv", "-o", "other.csv"],
        &["raw.csv", "-o", "out.csv", "--report", "raw.csv"],
        &["raw.csv", "-o", "out.csv", "--steps", "link.csv"],
    ] {
        let (status, _, errors) = anonymize(&dir, arguments, b"");
        assert_eq!(status, Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains("overwritten"), "{errors}");
        assert_eq!(std::fs::read_to_string(&absolute).unwrap(), PLAIN);
        assert!(!path.join("out.csv").exists());
    }
    // As standard input too.
    let file = std::fs::File::open(&absolute).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_pais"))
        .current_dir(path)
        .arg("anonymize")
        .args(DOCUMENTS)
        .args(["-", "-o", "raw.csv"])
        .stdin(file)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&absolute).unwrap(), PLAIN);
    // A table of an anatomized release would be in the directory.
    let table = path.join("sub").join("qit.csv");
    std::fs::copy(&absolute, &table).unwrap();
    let (status, _, errors) = anonymize(&dir, &["sub/qit.csv", "-o", "sub"], b"");
    assert_eq!(status, Some(2));
    assert!(errors.contains("overwritten"), "{errors}");
}

/// A schema that says how its text is written makes flags needless, and a flag wins over it.
#[test]
fn a_schema_says_how_its_text_is_written() {
    let dir = directory();
    let (status, released, errors) = anonymize(&dir, &["raw.csv"], b"");
    assert_eq!(status, Some(0), "{errors}");
    let schema = std::fs::read_to_string(dir.path().join("s.json")).unwrap();
    let mut schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    schema["format"] = json!({"delimiter": ";", "decimal": ",", "thousands": ".",
                              "encoding": "iso-8859-1"});
    dir.write("s.json", &schema.to_string());
    dir.write("raw.tsv", &GERMAN.replace(';', "\t"));
    let german = std::fs::read(dir.path().join("german.csv")).unwrap();
    let plain = ["--delimiter", ",", "--decimal", ".", "--encoding", "utf-8"];
    for (arguments, input) in [
        (vec!["german.csv"], &b""[..]),
        (vec!["-"], &german),
        (vec!["raw.tsv", "--encoding", "utf-8"], b""),
        ([&plain[..], &["raw.csv"]].concat(), b""),
    ] {
        let (status, found, errors) = anonymize(&dir, &arguments, input);
        assert_eq!(status, Some(0), "{arguments:?}: {errors}");
        assert_eq!(found, released, "{arguments:?}");
    }
    dir.anonymize("german.csv", "o.csv");
    let ran = dir.run(
        &[
            &["verify"],
            &DOCUMENTS[..],
            &["o.csv", "--raw", "german.csv"],
        ]
        .concat(),
    );
    assert_eq!(ran.status.code(), Some(0), "{:?}", ran.stdout);
    schema["format"] = json!({"delimiter": "no"});
    dir.write("s.json", &schema.to_string());
    let (status, _, errors) = anonymize(&dir, &["german.csv"], b"");
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("/format"), "{errors}");
}
