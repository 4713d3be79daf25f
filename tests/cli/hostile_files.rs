//! Files that would end the process if they were believed.

use crate::cli_dir::CliDir;
use pais_test_support::hostile_parquet::{many_row_groups, nested_groups};

/// A schema of one column, a job, and a good table.
fn one_column() -> CliDir {
    let dir = CliDir::new();
    dir.write(
        "s.json",
        r#"{"name": "t", "columns": [{"name": "x", "role": "quasi_identifier"}]}"#,
    );
    dir.write("j.json", r#"{"privacy": {"model": "k_anonymity", "k": 2}}"#);
    dir.write("good.csv", "x\na\na\n");
    dir
}

#[test]
fn hostile_parquet_files_are_refused_by_the_commands() {
    let dir = one_column();
    for (file, bound) in [
        (nested_groups(), "more than 16 groups in each other"),
        (many_row_groups(), "claims 400000000 row groups"),
    ] {
        std::fs::write(dir.path().join("bad.parquet"), file).unwrap();
        let inputs = ["--schema", "s.json", "--job", "j.json"];
        let anonymize = [
            &["anonymize"],
            &inputs[..],
            &["bad.parquet", "-o", "out.csv"],
        ]
        .concat();
        let verify = [&["verify"], &inputs[..], &["bad.parquet"]].concat();
        let raw = [
            &["verify"],
            &inputs[..],
            &["good.csv", "--raw", "bad.parquet"],
        ]
        .concat();
        // 1 is a run that fails; 2 is a table that cannot be read.
        for (arguments, status) in [(anonymize, 1), (verify, 2), (raw, 2)] {
            let ran = dir.run(&arguments);
            let errors = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(ran.status.code(), Some(status), "{arguments:?}: {errors}");
            assert!(errors.contains(bound), "{errors}");
        }
        assert!(!dir.path().join("out.csv").exists());
    }
}

#[test]
fn compressed_files_that_do_not_decode_are_problems_as_other_files_are() {
    let dir = one_column();
    let inputs = ["--schema", "s.json", "--job", "j.json"];
    let packed = [
        &["anonymize"],
        &inputs[..],
        &["good.csv", "-o", "good.csv.zst"],
    ]
    .concat();
    assert!(dir.run(&packed).status.success());
    let whole = std::fs::read(dir.path().join("good.csv.zst")).unwrap();
    let cut = &whole[..whole.len() - 4];
    for (name, bytes) in [("cut.csv.zst", cut), ("text.csv.gz", b"x\na\na\n")] {
        std::fs::write(dir.path().join(name), bytes).unwrap();
        for (command, status) in [("anonymize", 1), ("verify", 2)] {
            let ran = dir.run(&[&[command], &inputs[..], &[name]].concat());
            let errors = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(
                ran.status.code(),
                Some(status),
                "{command} {name}: {errors}"
            );
            assert!(errors.contains("cannot be decompressed"), "{errors}");
            assert!(errors.contains(name), "{errors}");
        }
    }
}
