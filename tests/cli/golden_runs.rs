//! The KDD'09 paper's example through `pais anonymize`, and its Table 2 through `pais verify`.

use serde_json::json;

use crate::cli_dir::CliDir;
use pais_test_support::golden;

const TABLE_1: &str = include_str!("../data/kdd09/table1.csv");
const TABLE_2: &str = include_str!("../data/kdd09/table2.csv");

#[test]
fn table_1_is_anonymized_as_expected() {
    for run in golden::runs() {
        let dir = CliDir::new();
        dir.write("s.json", &run.schema.to_string());
        dir.write("j.json", &run.job.to_string());
        dir.write("raw.csv", TABLE_1);
        dir.anonymize("raw.csv", "o.csv");
        run.assert_steps(&dir.json("steps.json")["items"]);
        run.assert_labels(&std::fs::read_to_string(dir.path().join("o.csv")).unwrap());
        let (status, text) = dir.verify("o.csv", true);
        assert_eq!(status, Some(0), "{}: {text}", run.name);
    }
}

/// Exit status and output of `pais verify` on Table 2 under a model.
fn verify_table_2(privacy: serde_json::Value) -> (Option<i32>, String) {
    let figure_2 = golden::runs().remove(0);
    let dir = CliDir::new();
    dir.write("s.json", &figure_2.schema.to_string());
    dir.write("j.json", &json!({ "privacy": privacy }).to_string());
    dir.write("raw.csv", TABLE_1);
    dir.write("table2.csv", TABLE_2);
    dir.verify("table2.csv", true)
}

#[test]
fn table_2_is_2_2_50_private_and_not_2_anonymous() {
    let surgery = json!({ "Surgery": ["Transgender"] });
    let lkc = |l: u32, k: u32, c: f64| {
        verify_table_2(
            json!({ "model": "lkc", "l": l, "k": k, "c": c, "sensitive_values": surgery }),
        )
    };
    let (status, text) = lkc(2, 2, 0.5);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("smallest group       2\n"), "{text}");
    assert!(text.contains("greatest confidence  50 %\n"), "{text}");
    let (status, text) = verify_table_2(json!({ "model": "k_anonymity", "k": 2 }));
    assert_eq!(status, Some(1), "{text}");
    let offender = "       1        0 %  Job = Professional, Sex = M, Age = [30,60)\n";
    assert!(text.contains(offender), "{text}");
    assert!(text.contains("1 violation in"), "{text}");
    assert_eq!(lkc(3, 2, 0.5).0, Some(1));
    assert_eq!(lkc(2, 3, 0.5).0, Some(1));
    assert_eq!(lkc(2, 2, 0.49).0, Some(1));
}

#[test]
fn table_1_itself_is_not_2_2_50_private() {
    let run = golden::runs().remove(1);
    let dir = CliDir::new();
    dir.write("s.json", &run.schema.to_string());
    dir.write("j.json", &run.job.to_string());
    let rows = TABLE_1.lines().map(|line| line.split_once(',').unwrap().1);
    dir.write(
        "o.csv",
        &rows.map(|row| format!("{row}\n")).collect::<String>(),
    );
    let (status, text) = dir.verify("o.csv", false);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("smallest group       1\n"), "{text}");
    assert!(text.contains("greatest confidence  100 %\n"), "{text}");
}

#[test]
fn the_records_of_the_2014_paper_are_anonymized_as_expected() {
    for run in golden::records::runs() {
        let dir = CliDir::new();
        dir.write("s.json", &run.schema.to_string());
        dir.write("j.json", &run.job.to_string());
        dir.write("raw.csv", run.raw);
        dir.anonymize("raw.csv", "o.csv");
        run.assert_rows(&std::fs::read_to_string(dir.path().join("o.csv")).unwrap());
        run.assert_report(&dir.json("report.json"));
        let (status, text) = dir.verify("o.csv", true);
        assert_eq!(status, Some(0), "{text}");
    }
}
