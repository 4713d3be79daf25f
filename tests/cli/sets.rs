//! `pais anonymize` and `pais verify` on records with set-valued columns.

use std::process::Output;

use serde_json::{Value, json};

use crate::cli_dir::CliDir;

const SYNTHEA: &str = include_str!("../data/synthea/patients_rt.csv");

fn dir(columns: Value, job: &Value) -> CliDir {
    let dir = CliDir::new();
    let schema = json!({"name": "t", "columns": columns});
    dir.write("s.json", &schema.to_string());
    dir.write("j.json", &job.to_string());
    dir
}

fn read(dir: &CliDir, name: &str) -> String {
    std::fs::read_to_string(dir.path().join(name)).unwrap()
}

fn verify(dir: &CliDir, release: &str, raw: &str) -> (Option<i32>, String) {
    let output = dir.run(&[
        "verify", "--schema", "s.json", "--job", "j.json", release, "--raw", raw,
    ]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn try_anonymize(dir: &CliDir, input: &str) -> Output {
    dir.run(&["anonymize", "--schema", "s.json", "--job", "j.json", input])
}

fn columns() -> Value {
    json!([
        {"name": "id", "role": "identifier"},
        {"name": "gender", "role": "quasi_identifier"},
        {"name": "diseases", "role": "quasi_identifier", "kind": "set", "separator": ";",
         "taxonomy": {"label": "any", "children": [
            {"label": "K", "children": [{"label": "k"}, {"label": "l"}]},
            {"label": "M", "children": [{"label": "m"}, {"label": "n"}, {"label": "o"}]}]}},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
    ])
}

fn job() -> Value {
    json!({"privacy": {"model": "k_anonymity", "k": 2},
        "pre_generalization": {"diseases": {"level": 1, "values": {"0": ["k", "l"]}}}})
}

const RAW: &str = "id,gender,diseases,drugs\n1,Male,k;l;m,a|b|z\n2,Male,k;l;n,a|z\n\
    3,Female,n;o,c|x|y\n4,Female,m;o,b|x|y\n";

#[test]
fn sets_are_read_and_written_in_every_format() {
    let dir = dir(columns(), &job());
    dir.write("raw.csv", RAW);
    let mut lists = String::new();
    for line in RAW.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (diseases, drugs): (Vec<&str>, Vec<&str>) =
            (cells[2].split(';').collect(), cells[3].split('|').collect());
        let row = json!({"id": cells[0], "gender": cells[1], "diseases": diseases, "drugs": drugs});
        lists += &format!("{row}\n");
    }
    dir.write("raw.ndjson", &lists);
    for input in ["raw.csv", "raw.ndjson"] {
        for output in ["o.csv", "o.ndjson", "o.parquet"] {
            dir.anonymize(input, output);
            let (status, text) = dir.verify(output, false);
            assert_eq!(status, Some(0), "{output}: {text}");
            for raw in ["raw.csv", "raw.ndjson"] {
                let (status, text) = verify(&dir, output, raw);
                assert_eq!(status, Some(0), "{output}: {text}");
            }
        }
    }
    let csv = read(&dir, "o.csv");
    assert_eq!(csv.matches("Male,M;k;l,a|z\n").count(), 2, "{csv}");
    assert_eq!(csv.matches("Female,M,x|y\n").count(), 2, "{csv}");
    let first = read(&dir, "o.ndjson");
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert!(first["drugs"].as_array().unwrap().len() == 2, "{first}");
    assert_eq!(dir.json("steps.json"), json!({"items": []}));
    // The release in Parquet is a table of lists that can be anonymized again.
    let schema = json!({"name": "t", "columns": [
        {"name": "gender", "role": "quasi_identifier"},
        {"name": "diseases", "role": "insensitive", "kind": "set"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"}]});
    dir.write("s.json", &schema.to_string());
    let job = json!({"privacy": {"model": "k_anonymity", "k": 4}});
    dir.write("j.json", &job.to_string());
    dir.anonymize("o.parquet", "again.ndjson");
    assert!(read(&dir, "again.ndjson").contains(r#""drugs":[]"#));
}

#[test]
fn tables_of_other_programs_are_verified() {
    let dir = dir(columns(), &job());
    dir.write("raw.csv", RAW);
    let head = "gender,diseases,drugs\n";
    for (rows, without_raw, with_raw, message) in [
        // Items in any order, some suppressed, some more general than necessary.
        (
            "Male,l;k;M,z|a\nMale,l;k;M,z|a\nFemale,any,x\nFemale,any,x\n",
            0,
            0,
            "one cut",
        ),
        ("*,*,\n*,*,\n*,*,\n*,*,\n", 0, 0, "one cut"),
        // Not 2-anonymous.
        (
            "Male,k,a\nMale,l,a\nFemale,M,x\nFemale,M,x\n",
            1,
            1,
            "worst groups",
        ),
        // A combination of items that no raw row has.
        (
            "Male,k,a|c\nMale,k,a|c\nFemale,M,x\nFemale,M,x\n",
            0,
            1,
            "truthful             NO   2",
        ),
        // Less general than the requested pre-generalization.
        (
            "Male,k,a\nMale,k,a\nFemale,o,x\nFemale,o,x\n",
            0,
            1,
            "truthful             NO   2",
        ),
        // Two raw rows are missing.
        (
            "Male,k,a\nMale,k,a\nMale,k,a\nMale,k,a\n",
            0,
            1,
            "truthful             NO   2",
        ),
    ] {
        dir.write("r.csv", &format!("{head}{rows}"));
        let (status, text) = dir.verify("r.csv", false);
        assert_eq!(status, Some(without_raw), "{rows}{text}");
        let (status, text) = dir.verify("r.csv", true);
        assert_eq!(status, Some(with_raw), "{rows}{text}");
        assert!(text.contains(message), "{rows}{text}");
    }
    // Rows that are distinguishable as they are written, although their labels are the same.
    for rows in [
        "Male,l;k,a\nMale,k;l,a\n",
        "Male,k,a|z\nMale,k,z|a\n",
        "Male,k;k,a\nMale,k,a\n",
        "Male,k;k,a\nMale,k;k,a\n",
        "Male,k,a|a\nMale,k,a\n",
        "Male,k; l,a\nMale,k;l,a\n",
    ] {
        dir.write("r.csv", &format!("{head}{rows}"));
        let (status, text) = dir.verify("r.csv", false);
        assert_eq!(status, Some(2), "{rows}{text}");
    }
    dir.write("r.csv", &format!("{head}Male,q,a\n"));
    let (status, text) = dir.verify("r.csv", false);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("expected a label"), "{text}");
}

#[test]
fn invalid_cells_are_reported_by_line_and_column_without_their_value() {
    let dir = dir(columns(), &job());
    let raw = RAW.replace("k;l;n", "k;secret").replace("b|x|y", "b||y");
    dir.write("raw.csv", &raw);
    let done = try_anonymize(&dir, "raw.csv");
    assert_eq!(done.status.code(), Some(1));
    let problem: Value = serde_json::from_slice(&done.stderr).unwrap();
    assert_eq!(problem["code"], "invalid_cells");
    let errors = problem["errors"].as_array().unwrap();
    let places: Vec<_> = errors
        .iter()
        .map(|it| (&it["line"], &it["column"]))
        .collect();
    assert_eq!(
        places,
        [
            (&json!(3), &json!("diseases")),
            (&json!(5), &json!("drugs"))
        ]
    );
    assert!(!String::from_utf8_lossy(&done.stderr).contains("secret"));
}

/// Synthetic patients with their conditions and prescriptions.
#[test]
fn synthea_is_anonymized_under_any_settings() {
    let dropped = ["ethnicity", "marital", "city", "state", "zip", "deceased"];
    let mut columns = vec![
        json!({"name": "patient_id", "role": "identifier"}),
        json!({"name": "birth_year", "role": "quasi_identifier", "kind": "numeric",
            "domain": [1900, 2020]}),
        json!({"name": "gender", "role": "quasi_identifier"}),
        json!({"name": "race", "role": "quasi_identifier"}),
        json!({"name": "conditions", "role": "quasi_identifier", "kind": "set", "separator": " "}),
        json!({"name": "medications", "role": "quasi_identifier", "kind": "set", "separator": " "}),
    ];
    columns.extend(dropped.map(|name| json!({"name": name, "role": "identifier"})));
    let frequent = json!({"conditions": {"level": 1, "values": {"0": ["10509002", "444814009"]}}});
    for k in [2, 5, 10] {
        for limit in [0.0, 0.01, 0.05] {
            for levels in [json!({}), json!({"race": {"level": 1}}), frequent.clone()] {
                let job = json!({"privacy": {"model": "k_anonymity", "k": k},
                    "suppression_limit": limit, "pre_generalization": levels});
                let dir = dir(json!(columns), &job);
                dir.write("raw.csv", SYNTHEA);
                dir.anonymize("raw.csv", "o.ndjson");
                let (status, text) = dir.verify("o.ndjson", true);
                assert_eq!(status, Some(0), "{job}: {text}");
                let report = dir.json("report.json");
                let suppressed = report["suppressed_rows"].as_u64().unwrap();
                assert!(suppressed as f64 <= limit * 1000.0, "{suppressed}");
                assert_eq!(report["rows"].as_u64().unwrap() + suppressed, 1000);
                let remain = &report["utility"]["information_remain_by_column"];
                assert_eq!(remain.as_object().unwrap().len(), 5);
                for column in ["gender", "medications"] {
                    assert!(remain[column].as_f64().unwrap() > 0.1, "{job}: {remain}");
                }
                println!("{k} {limit} {levels}: {suppressed} suppressed, {remain}");
            }
        }
    }
}

#[test]
fn each_itemset_of_synthea_is_in_no_row_or_in_at_least_k() {
    let columns = json!([
        {"name": "gender", "role": "quasi_identifier"},
        {"name": "medications", "role": "quasi_identifier", "kind": "set", "separator": " "},
        {"name": "conditions", "role": "quasi_identifier", "kind": "set", "separator": " "}]);
    let mut rows = "gender,medications,conditions\n".to_owned();
    for line in SYNTHEA.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        rows += &format!("{},{},{}\n", cells[2], cells[11], cells[10]);
    }
    let job = |m: u32| json!({"privacy": {"model": "k_m_anonymity", "k": 5, "m": m}});
    let dir = dir(columns, &job(2));
    dir.write("raw.csv", &rows);
    dir.anonymize("raw.csv", "o.csv");
    let (status, text) = dir.verify("o.csv", false);
    assert_eq!(status, Some(0), "{text}");
    let remain = dir.json("report.json")["utility"]["information_remain"]
        .as_f64()
        .unwrap();
    assert!(remain > 0.5, "{remain}");
    dir.write("j.json", &job(6).to_string());
    let (status, text) = dir.verify("o.csv", false);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("worst groups"), "{text}");
}
