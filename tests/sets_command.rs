//! `pais anonymize` and `pais verify` on records with set-valued columns.

use std::process::{Command, Output};

use serde_json::{Value, json};

const SYNTHEA: &[u8] = include_bytes!("data/synthea/patients.csv.gz");

struct Desk(tempfile::TempDir);

impl Desk {
    fn new(columns: Value, job: &Value) -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        let schema = json!({"name": "t", "columns": columns});
        desk.write("s.json", schema.to_string().as_bytes());
        desk.write("j.json", job.to_string().as_bytes());
        desk
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.path().join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pais"))
            .current_dir(self.0.path())
            .args(arguments)
            .output()
            .unwrap()
    }

    fn anonymize(&self, input: &str, output: &str) -> Output {
        self.run(&[
            "anonymize",
            "--schema",
            "s.json",
            "--job",
            "j.json",
            input,
            "-o",
            output,
            "--report",
            "r.json",
            "--seed",
            "7",
        ])
    }

    fn verify(&self, release: &str, raw: Option<&str>) -> (Option<i32>, String) {
        let mut arguments = vec!["verify", "--schema", "s.json", "--job", "j.json", release];
        if let Some(raw) = raw {
            arguments.extend(["--raw", raw]);
        }
        let output = self.run(&arguments);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }
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
    let desk = Desk::new(columns(), &job());
    desk.write("raw.csv", RAW.as_bytes());
    let mut lists = String::new();
    for line in RAW.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (diseases, drugs): (Vec<&str>, Vec<&str>) =
            (cells[2].split(';').collect(), cells[3].split('|').collect());
        let row = json!({"id": cells[0], "gender": cells[1], "diseases": diseases, "drugs": drugs});
        lists += &format!("{row}\n");
    }
    desk.write("raw.ndjson", lists.as_bytes());
    for input in ["raw.csv", "raw.ndjson"] {
        for output in ["o.csv", "o.ndjson", "o.parquet"] {
            let done = desk.anonymize(input, output);
            assert!(
                done.status.success(),
                "{}",
                String::from_utf8_lossy(&done.stderr)
            );
            for raw in [None, Some("raw.csv"), Some("raw.ndjson")] {
                let (status, text) = desk.verify(output, raw);
                assert_eq!(status, Some(0), "{output}: {text}");
            }
        }
    }
    let csv = desk.read("o.csv");
    assert_eq!(csv.matches("Male,M;k;l,a|z\n").count(), 2, "{csv}");
    assert_eq!(csv.matches("Female,M,x|y\n").count(), 2, "{csv}");
    let first: Value = serde_json::from_str(desk.read("o.ndjson").lines().next().unwrap()).unwrap();
    assert!(first["drugs"].as_array().unwrap().len() == 2, "{first}");
    // The release in Parquet is a table that can be anonymized again.
    let again = Desk::new(
        json!([{"name": "gender", "role": "quasi_identifier"},
            {"name": "diseases", "role": "insensitive", "kind": "set"},
            {"name": "drugs", "role": "quasi_identifier", "kind": "set"}]),
        &json!({"privacy": {"model": "k_anonymity", "k": 4}}),
    );
    again.write(
        "o.parquet",
        &std::fs::read(desk.0.path().join("o.parquet")).unwrap(),
    );
    let done = again.anonymize("o.parquet", "o.ndjson");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(again.read("o.ndjson").contains(r#""drugs":[]"#));
}

#[test]
fn tables_of_other_hands_are_verified_as_sets() {
    let desk = Desk::new(columns(), &job());
    desk.write("raw.csv", RAW.as_bytes());
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
        desk.write("r.csv", format!("{head}{rows}").as_bytes());
        let (status, text) = desk.verify("r.csv", None);
        assert_eq!(status, Some(plain), "{rows}{text}");
        let (status, text) = desk.verify("r.csv", Some("raw.csv"));
        assert_eq!(status, Some(held), "{rows}{text}");
        assert!(text.contains(word), "{rows}{text}");
    }
    desk.write("r.csv", format!("{head}Male,q,a\n").as_bytes());
    let (status, text) = desk.verify("r.csv", None);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("no label"), "{text}");
}

#[test]
fn cells_that_do_not_fit_are_named_by_line_alone() {
    let desk = Desk::new(columns(), &job());
    let raw = RAW.replace("k;l;n", "k;secret").replace("b|x|y", "b||y");
    desk.write("raw.csv", raw.as_bytes());
    let done = desk.anonymize("raw.csv", "o.csv");
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
    let columns = json!([
        {"name": "patient", "role": "insensitive"},
        {"name": "birth_year", "role": "quasi_identifier", "kind": "numeric", "domain": [1900, 2020]},
        {"name": "gender", "role": "quasi_identifier"},
        {"name": "race", "role": "quasi_identifier"},
        {"name": "conditions", "role": "quasi_identifier", "kind": "set", "separator": " "},
        {"name": "medications", "role": "quasi_identifier", "kind": "set", "separator": " "},
    ]);
    for (k, limit, wishes) in [
        (2, 0.0, json!({})),
        (2, 0.05, json!({"race": {"level": 1}})),
        (5, 0.01, json!({})),
        (
            10,
            0.0,
            json!({"conditions": {"level": 1, "values": {"0": ["10509002", "444814009"]}}}),
        ),
        (10, 0.05, json!({})),
    ] {
        let job = json!({"privacy": {"model": "k_anonymity", "k": k},
            "suppression_limit": limit, "pre_generalization": wishes});
        let desk = Desk::new(columns.clone(), &job);
        desk.write("raw.csv.gz", SYNTHEA);
        let done = desk.anonymize("raw.csv.gz", "o.ndjson");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let (status, text) = desk.verify("o.ndjson", Some("raw.csv.gz"));
        assert_eq!(status, Some(0), "{job}: {text}");
        let report: Value = serde_json::from_str(&desk.read("r.json")).unwrap();
        let suppressed = report["suppressed_rows"].as_u64().unwrap();
        assert!(suppressed as f64 <= limit * 1000.0, "{suppressed}");
        assert_eq!(report["rows"].as_u64().unwrap() + suppressed, 1000);
        let remain = report["utility"]["information_remain_by_column"]
            .as_object()
            .unwrap();
        assert_eq!(remain.len(), 5);
        println!("k {k}, bin {limit}, {wishes}: {suppressed} suppressed, {remain:?}");
        // Something of every column is told, unless it was asked not to be.
        for (column, remain) in remain {
            let asked = wishes[column].is_object();
            assert!(
                asked || remain.as_f64().unwrap() > 0.0,
                "{column}: {remain}"
            );
        }
    }
}
