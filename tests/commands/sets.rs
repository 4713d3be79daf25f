//! `pais anonymize` and `pais verify` on records with set-valued columns.

use std::process::Output;

use serde_json::{Value, json};

use crate::desk::Desk;

const SYNTHEA: &str = include_str!("../data/synthea/patients_rt.csv");

fn desk(columns: Value, job: &Value) -> Desk {
    let desk = Desk::new();
    let schema = json!({"name": "t", "columns": columns});
    desk.write("s.json", &schema.to_string());
    desk.write("j.json", &job.to_string());
    desk
}

fn read(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.path().join(name)).unwrap()
}

fn verify(desk: &Desk, release: &str, raw: &str) -> (Option<i32>, String) {
    let output = desk.run(&[
        "verify", "--schema", "s.json", "--job", "j.json", release, "--raw", raw,
    ]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn try_anonymize(desk: &Desk, input: &str) -> Output {
    desk.run(&["anonymize", "--schema", "s.json", "--job", "j.json", input])
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
fn sets_go_in_and_come_out_in_every_format() {
    let desk = desk(columns(), &job());
    desk.write("raw.csv", RAW);
    let mut lists = String::new();
    for line in RAW.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (diseases, drugs): (Vec<&str>, Vec<&str>) =
            (cells[2].split(';').collect(), cells[3].split('|').collect());
        let row = json!({"id": cells[0], "gender": cells[1], "diseases": diseases, "drugs": drugs});
        lists += &format!("{row}\n");
    }
    desk.write("raw.ndjson", &lists);
    for input in ["raw.csv", "raw.ndjson"] {
        for output in ["o.csv", "o.ndjson", "o.parquet"] {
            desk.anonymize(input, output);
            let (status, text) = desk.verify(output, false);
            assert_eq!(status, Some(0), "{output}: {text}");
            for raw in ["raw.csv", "raw.ndjson"] {
                let (status, text) = verify(&desk, output, raw);
                assert_eq!(status, Some(0), "{output}: {text}");
            }
        }
    }
    let csv = read(&desk, "o.csv");
    assert_eq!(csv.matches("Male,M;k;l,a|z\n").count(), 2, "{csv}");
    assert_eq!(csv.matches("Female,M,x|y\n").count(), 2, "{csv}");
    let first = read(&desk, "o.ndjson");
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert!(first["drugs"].as_array().unwrap().len() == 2, "{first}");
    assert_eq!(desk.json("steps.json"), json!({"items": []}));
    // The release in Parquet is a table of lists that can be anonymized again.
    let schema = json!({"name": "t", "columns": [
        {"name": "gender", "role": "quasi_identifier"},
        {"name": "diseases", "role": "insensitive", "kind": "set"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"}]});
    desk.write("s.json", &schema.to_string());
    let job = json!({"privacy": {"model": "k_anonymity", "k": 4}});
    desk.write("j.json", &job.to_string());
    desk.anonymize("o.parquet", "again.ndjson");
    assert!(read(&desk, "again.ndjson").contains(r#""drugs":[]"#));
}

#[test]
fn tables_of_other_hands_are_verified_as_sets() {
    let desk = desk(columns(), &job());
    desk.write("raw.csv", RAW);
    let head = "gender,diseases,drugs\n";
    for (rows, plain, held, word) in [
        // Items in any order, some hidden, some more general than they need be.
        (
            "Male,l;k;M,z|a\nMale,k;M;l,a|z\nFemale,any,x\nFemale,any,x\n",
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
        // An item that no raw row beside has.
        (
            "Male,k,a|c\nMale,k,a|c\nFemale,M,x\nFemale,M,x\n",
            0,
            1,
            "truthful             NO   2",
        ),
        // Below what was asked for.
        (
            "Male,k,a\nMale,k,a\nFemale,o,x\nFemale,o,x\n",
            0,
            1,
            "truthful             NO   2",
        ),
        // A row is gone.
        (
            "Male,k,a\nMale,k,a\nMale,k,a\nMale,k,a\n",
            0,
            1,
            "truthful             NO   2",
        ),
    ] {
        desk.write("r.csv", &format!("{head}{rows}"));
        let (status, text) = desk.verify("r.csv", false);
        assert_eq!(status, Some(plain), "{rows}{text}");
        let (status, text) = desk.verify("r.csv", true);
        assert_eq!(status, Some(held), "{rows}{text}");
        assert!(text.contains(word), "{rows}{text}");
    }
    desk.write("r.csv", &format!("{head}Male,q,a\n"));
    let (status, text) = desk.verify("r.csv", false);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("no label"), "{text}");
}

#[test]
fn cells_that_do_not_fit_are_named_by_line_alone() {
    let desk = desk(columns(), &job());
    let raw = RAW.replace("k;l;n", "k;secret").replace("b|x|y", "b||y");
    desk.write("raw.csv", &raw);
    let done = try_anonymize(&desk, "raw.csv");
    assert_eq!(done.status.code(), Some(1));
    let problem: Value = serde_json::from_slice(&done.stderr).unwrap();
    assert_eq!(problem["code"], "invalid_cells");
    let faults = problem["errors"].as_array().unwrap();
    let places: Vec<_> = faults
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
fn synthea_is_anonymous_whatever_is_asked() {
    let unread = ["ethnicity", "marital", "city", "state", "zip", "deceased"];
    let mut columns = vec![
        json!({"name": "patient_id", "role": "identifier"}),
        json!({"name": "birth_year", "role": "quasi_identifier", "kind": "numeric",
            "domain": [1900, 2020]}),
        json!({"name": "gender", "role": "quasi_identifier"}),
        json!({"name": "race", "role": "quasi_identifier"}),
        json!({"name": "conditions", "role": "quasi_identifier", "kind": "set", "separator": " "}),
        json!({"name": "medications", "role": "quasi_identifier", "kind": "set", "separator": " "}),
    ];
    columns.extend(unread.map(|name| json!({"name": name, "role": "identifier"})));
    let frequent = json!({"conditions": {"level": 1, "values": {"0": ["10509002", "444814009"]}}});
    for k in [2, 5, 10] {
        for limit in [0.0, 0.01, 0.05] {
            for wishes in [json!({}), json!({"race": {"level": 1}}), frequent.clone()] {
                let job = json!({"privacy": {"model": "k_anonymity", "k": k},
                    "suppression_limit": limit, "pre_generalization": wishes});
                let desk = desk(json!(columns), &job);
                desk.write("raw.csv", SYNTHEA);
                desk.anonymize("raw.csv", "o.ndjson");
                let (status, text) = desk.verify("o.ndjson", true);
                assert_eq!(status, Some(0), "{job}: {text}");
                let report = desk.json("report.json");
                let suppressed = report["suppressed_rows"].as_u64().unwrap();
                assert!(suppressed as f64 <= limit * 1000.0, "{suppressed}");
                assert_eq!(report["rows"].as_u64().unwrap() + suppressed, 1000);
                let remain = &report["utility"]["information_remain_by_column"];
                assert_eq!(remain.as_object().unwrap().len(), 5);
                for column in ["gender", "medications"] {
                    assert!(remain[column].as_f64().unwrap() > 0.1, "{job}: {remain}");
                }
                println!("{k} {limit} {wishes}: {suppressed} suppressed, {remain}");
            }
        }
    }
}

#[test]
fn itemsets_of_synthea_are_held_by_none_or_by_k() {
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
    let desk = desk(columns, &job(2));
    desk.write("raw.csv", &rows);
    desk.anonymize("raw.csv", "o.csv");
    let (status, text) = desk.verify("o.csv", false);
    assert_eq!(status, Some(0), "{text}");
    let remain = desk.json("report.json")["utility"]["information_remain"]
        .as_f64()
        .unwrap();
    assert!(remain > 0.5, "{remain}");
    desk.write("j.json", &job(6).to_string());
    let (status, text) = desk.verify("o.csv", false);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("worst groups"), "{text}");
}
