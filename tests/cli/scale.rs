//! `pais anonymize --executor in-process`.

use serde_json::{Value, json};

use crate::cli_dir::CliDir;

/// A directory with a schema, a job and the table `raw.csv`.
fn directory(job: &Value) -> CliDir {
    let dir = CliDir::new();
    let schema = json!({"name": "t", "columns": [
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "city", "role": "quasi_identifier"},
        {"name": "disease", "role": "sensitive"}]});
    dir.write("s.json", &schema.to_string());
    dir.write("j.json", &job.to_string());
    let mut text = "age,city,disease\n".to_owned();
    for row in 0..500 {
        text += &format!("{},c{},d{}\n", row * row % 61, row % 3, row * 7 % 11);
    }
    dir.write("raw.csv", &text);
    dir
}

fn job() -> Value {
    json!({"privacy": {"model": "lkc", "l": 2, "k": 5, "c": 0.8}, "seed": 5})
}

/// Exit status and standard error of a run with an executor.
fn scaled(dir: &CliDir, arguments: &[&str]) -> (Option<i32>, String) {
    let mut all = vec!["anonymize", "--schema", "s.json", "--job", "j.json"];
    all.extend(["--executor", "in-process"]);
    all.extend(arguments);
    let ran = dir.run(&all);
    (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
}

#[cfg(not(feature = "scale"))]
#[test]
fn a_program_without_an_engine_says_so() {
    let dir = directory(&job());
    let (status, text) = scaled(&dir, &["raw.parquet", "-o", "out"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("built without `scale`"), "{text}");
    assert!(!dir.path().join("out").exists());
}

#[test]
fn what_an_executor_does_not_take_is_refused_before_a_row_is_read() {
    for (name, value) in [
        ("suppression_limit", json!(0.1)),
        ("recoding", json!("local")),
        ("privacy", json!({"model": "k_anonymity", "k": [2, 3]})),
    ] {
        let mut job = job();
        job[name] = value;
        let dir = directory(&job);
        let (status, text) = scaled(&dir, &["no-such-file.parquet", "-o", "out"]);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains("`executor`"), "{text}");
    }
    let dir = directory(&job());
    let (status, text) = scaled(&dir, &["raw.parquet"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("name a directory"), "{text}");
    let (status, text) = scaled(&dir, &["--memory", "256", "raw.parquet", "-o", "out"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("256MiB"), "{text}");
}

#[cfg(feature = "scale")]
#[test]
fn a_table_in_files_has_the_steps_that_it_has_in_memory() {
    use pais_core::schema::Schema;
    use pais_test_support::raw_rows;

    let dir = directory(&job());
    dir.anonymize("raw.csv", "released.csv");
    let expected = dir.json("steps.json");

    let definition = serde_json::from_value(dir.json("s.json")).unwrap();
    let schema = Schema::inline(&definition).unwrap();
    let text = std::fs::read(dir.path().join("raw.csv")).unwrap();
    let table = pais_io::read::csv::read_table(&schema, &text[..]).unwrap();
    let raw = raw_rows::as_released(&schema, table);
    let file = std::fs::File::create(dir.path().join("raw.parquet")).unwrap();
    pais_io::write::parquet(&raw, file).unwrap();

    let files = ["--report", "report.json", "--steps", "scaled.json"];
    let run = |output| {
        let arguments = [
            &["raw.parquet", "-o", output, "--memory", "32MiB"],
            &files[..],
        ]
        .concat();
        let (status, text) = scaled(&dir, &arguments);
        assert_eq!(status, Some(0), "{text}");
    };
    run("out");
    assert_eq!(dir.json("scaled.json"), expected);
    let report = dir.json("report.json");
    assert_eq!(
        (&report["rows"], &report["verdict"]),
        (&json!(500), &json!("holds"))
    );
    assert_eq!(report["verification"]["holds"], json!(true));
    let manifest = dir.json("out/manifest.json");
    assert_eq!(manifest["files"][0]["name"], "data-00000.parquet");
    assert_eq!(manifest["rows"], 500);
    let (status, text) = dir.verify("out", true);
    assert_eq!(status, Some(0), "{text}");
    let overwriting = ["raw.parquet", "-o", "other", "--report", "raw.parquet"];
    let (status, text) = scaled(&dir, &overwriting);
    assert_eq!(status, Some(2));
    assert!(text.contains("would be overwritten"), "{text}");

    // The seed gives the same bytes again, and a directory with a release is not written over.
    run("again");
    assert_eq!(dir.json("again/manifest.json"), manifest);
    let (status, text) = scaled(&dir, &["raw.parquet", "-o", "out"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("not empty"), "{text}");
}
