//! `pais schema draft`, and roles that a job gives columns.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli_dir::CliDir;

const ROWS: &str = "id;age;job\n1;20,5;Cook\n2;30;Nurse\n3;40;Cook\n4;50;Nurse\n";

#[test]
fn a_schema_is_proposed_on_standard_output_and_the_reasons_on_standard_error() {
    let folder = CliDir::new();
    folder.write("raw.csv", ROWS);
    let ran = folder.run(&["schema", "draft", "raw.csv", "--name", "visits"]);
    assert!(ran.status.success());
    let dataset: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(dataset["name"], "visits");
    assert_eq!(dataset["columns"][1]["kind"], "numeric");
    let reasons = String::from_utf8(ran.stderr).unwrap();
    assert!(
        reasons.starts_with("text: delimiter `;`, decimal `,`, encoding utf-8\nid: "),
        "{reasons}"
    );
    assert!(!reasons.contains("Cook"), "{reasons}");

    let ran = folder.run(&["schema", "draft", "raw.csv", "--json", "-o", "draft.json"]);
    assert!(ran.status.success() && ran.stdout.is_empty() && ran.stderr.is_empty());
    let draft = folder.json("draft.json");
    assert_eq!(draft["dataset"]["columns"], dataset["columns"]);
    assert_eq!(draft["format"]["delimiter"], ";");
    assert!(draft["reasons"]["job"].is_array());
}

/// The questions are asked on standard error, and the answers are read from standard input.
#[test]
fn questions_of_a_draft_are_asked_and_answered() {
    let folder = CliDir::new();
    let rows = (0..40).map(|row| {
        let fever = ["yes", "no"][row % 2];
        format!(
            "{},0{}/02/2024,{fever},{}\n",
            41_000 + row / 2,
            row % 9 + 1,
            row % 7
        )
    });
    let rows = "id,seen,fever,unit\n".to_owned() + &rows.collect::<String>();
    folder.write("raw.csv", &rows);
    let ask = |answers: &str| {
        let mut asked = std::process::Command::new(env!("CARGO_BIN_EXE_pais"))
            .current_dir(folder.path())
            .args(["schema", "draft", "raw.csv", "--interactive"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = asked.stdin.take().unwrap();
        input.write_all(answers.as_bytes()).unwrap();
        drop(input);
        let ran = asked.wait_with_output().unwrap();
        assert!(ran.status.success());
        let dataset: Value = serde_json::from_slice(&ran.stdout).unwrap();
        (
            dataset["columns"].clone(),
            String::from_utf8(ran.stderr).unwrap(),
        )
    };
    let (columns, asked) = ask("2\n7\n%d/%m/%Y\nsensitive\n");
    assert!(asked.contains("Question 1 of 4: Does `id` say"), "{asked}");
    assert!(asked.contains("Give a number from 1 to 2"), "{asked}");
    assert_eq!(columns[0]["role"], "identifier");
    assert_eq!(columns[1]["format"], "%d/%m/%Y");
    assert_eq!(columns[2]["role"], "sensitive");
    // Empty lines and the end of the input take what is proposed.
    let (columns, asked) = ask("\n");
    assert!(asked.contains("No more input"), "{asked}");
    let ran = folder.run(&["schema", "draft", "raw.csv"]);
    let proposed: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(columns, proposed["columns"]);
    assert_eq!(columns[0]["role"], "subject");
    let reasons = String::from_utf8(ran.stderr).unwrap();
    assert!(reasons.contains("open: Does `id` say"), "{reasons}");
    let ran = folder.run(&["schema", "draft", "-", "--interactive"]);
    assert_eq!(ran.status.code(), Some(2));
}

#[test]
fn a_table_is_read_from_standard_input_and_a_bad_one_is_refused() {
    let folder = CliDir::new();
    folder.write("raw.ndjson", "{\"a\": [\"x\"]}\n");
    let input = std::fs::File::open(folder.path().join("raw.ndjson")).unwrap();
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_pais"))
        .args(["schema", "draft", "-", "--format", "ndjson"])
        .stdin(Stdio::from(input))
        .output()
        .unwrap();
    let dataset: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(dataset["columns"][0]["kind"], "set");

    folder.write("bad.csv", "a,b\nzzsecretzz\n");
    let ran = folder.run(&["schema", "draft", "bad.csv"]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(!String::from_utf8(ran.stderr).unwrap().contains("secret"));
    assert_eq!(
        folder.run(&["schema", "draft", "none.csv"]).status.code(),
        Some(2)
    );
}

#[test]
fn the_draft_of_each_table_of_the_test_data_reads_it() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for (table, k) in [
        ("kdd09/table1.csv", 2),
        ("synthea/patients_rt.csv", 2),
        ("adult/adult.csv.gz", 5),
    ] {
        let folder = CliDir::new();
        let path = data.join(table);
        let path = path.to_str().unwrap();
        let ran = folder.run(&["schema", "draft", path, "-o", "s.json"]);
        assert!(ran.status.success(), "{table}");
        let dataset = folder.json("s.json");
        let columns = dataset["columns"].as_array().unwrap();
        // The fewest columns with which the rows are read and anonymized.
        let known = columns.iter().filter(|column| {
            column["role"] == "quasi_identifier" && column.get("kind") != Some(&json!("set"))
        });
        let roles: serde_json::Map<String, Value> = known
            .skip(2)
            .chain(columns.iter().filter(|column| column["kind"] == "set"))
            .map(|column| {
                (
                    column["name"].as_str().unwrap().to_owned(),
                    json!("insensitive"),
                )
            })
            .collect();
        // Sets and other columns that are nearly keys are quasi-identifiers in the draft.
        let reasons: serde_json::Map<String, Value> = roles
            .keys()
            .map(|column| (column.clone(), json!("only the reading is tested")))
            .collect();
        let job = json!({"privacy": {"model": "k_anonymity", "k": k}, "roles": roles,
            "acknowledge_unchanged": reasons, "suppression_limit": 0.5});
        folder.write("j.json", &job.to_string());
        folder.anonymize(path, "out.csv");
        assert_eq!(folder.verify("out.csv", false).0, Some(0), "{table}");
    }
}

#[test]
fn roles_of_a_job_that_do_not_fit_are_refused() {
    let folder = CliDir::new();
    folder.write("raw.csv", "age,job\n20,Cook\n30,Cook\n");
    let schema = json!({"name": "t", "columns": [
        {"name": "age", "role": "insensitive", "kind": "numeric"},
        {"name": "job", "role": "insensitive"}]});
    folder.write("s.json", &schema.to_string());
    let job = |roles: Value| {
        json!({"privacy": {"model": "k_anonymity", "k": 2}, "roles": roles}).to_string()
    };
    folder.write("j.json", &job(json!({"job": "quasi_identifier"})));
    folder.anonymize("raw.csv", "out.csv");
    assert_eq!(folder.verify("out.csv", false).0, Some(0));
    folder.write("j.json", &job(json!({"none": "quasi_identifier"})));
    let ran = folder.run(&[
        "anonymize",
        "--schema",
        "s.json",
        "--job",
        "j.json",
        "raw.csv",
    ]);
    assert_eq!(ran.status.code(), Some(1));
    let problem: Value = serde_json::from_slice(&ran.stderr).unwrap();
    assert_eq!(problem["errors"][0]["pointer"], "/roles/none");
}
