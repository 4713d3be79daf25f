//! The gate counts persons where the dataset has a subject column, whatever a method claims.

use pais_core::table::{COUNT_COLUMN, Column, Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable};
use pais_measure::ReleaseRecoding;
use pais_verify::SubjectGroups;
use serde_json::{Value, json};

use super::admit;
use crate::method::{Candidate, Claim};
use crate::prepared::PreparedTable;
use crate::redrawn::Redrawn;
use crate::test_data::{job_of, load, schema};
use crate::{AnonymizationRun, RunError, Unobserved};

fn columns() -> Value {
    json!([
        {"name": "patient", "role": "subject"},
        {"name": "job", "role": "quasi_identifier"},
        {"name": "ill", "role": "sensitive"},
    ])
}

/// A row for each patient of the list, with the illnesses flu and cold in turn.
fn file(patients: &[&str]) -> String {
    let rows = patients.iter().zip(["flu", "cold"].iter().cycle());
    let rows = rows.map(|(patient, ill)| format!("{patient},nurse,{ill}\n"));
    "patient,job,ill\n".to_owned() + &rows.collect::<String>()
}

fn prepared(patients: &[&str], job: Value) -> PreparedTable {
    let schema = schema(columns());
    let table = load(&schema, file(patients).as_bytes());
    let job = job_of(job).unwrap();
    PreparedTable::new(schema, job, table, &Unobserved::default()).unwrap()
}

fn column(name: &str, form: Form, texts: &[&str], codes: Vec<u32>) -> ReleasedColumn {
    let dictionary = texts.iter().map(|&text| text.into()).collect();
    ReleasedColumn {
        name: name.into(),
        form,
        column: Column { dictionary, codes },
        missing: Vec::new(),
    }
}

fn table(name: &str, columns: Vec<ReleasedColumn>) -> ReleasedTable {
    ReleasedTable {
        name: name.into(),
        rows: columns[0].column.codes.len(),
        columns,
    }
}

type Found = Result<Option<SubjectGroups>, RunError>;

fn decided(input: &PreparedTable, tables: Vec<ReleasedTable>, claim: Claim) -> Found {
    let candidate = Candidate {
        rows: (0..input.table.rows as u32).collect(),
        tables,
        cut: None,
        claim,
    };
    let redrawn = Redrawn::as_searched(input);
    admit(input, candidate, redrawn, None, &Unobserved::default()).map(|accepted| accepted.persons)
}

/// One group of all patients, whose jobs are hidden.
fn one_group(patients: &[&str], k: u64) -> Found {
    let input = prepared(
        patients,
        json!({"privacy": {"model": "k_anonymity", "k": k}}),
    );
    let rows = input.table.rows;
    let ill = &input.table.untouched[0].column;
    let columns = vec![
        column("job", Form::Generalized, &["*"], vec![0; rows]),
        ReleasedColumn {
            column: ill.clone(),
            ..column("ill", Form::Text, &[], Vec::new())
        },
    ];
    let claim = Claim {
        model: input.model.clone(),
        recoding: ReleaseRecoding::Global,
    };
    decided(&input, vec![table("data", columns)], claim)
}

/// One group of all patients of an anatomy.
fn one_anatomy_group(patients: &[&str], k: u64) -> Found {
    let privacy = json!({"model": "l_diversity", "k": k, "l": 2});
    let input = prepared(
        patients,
        json!({"privacy": privacy, "output": "anatomized"}),
    );
    let rows = input.table.rows;
    let half = (rows / 2).to_string();
    let group = |rows| column(GROUP_COLUMN, Form::Integer, &["1"], vec![0; rows]);
    let qit = vec![
        column("job", Form::Text, &["nurse"], vec![0; rows]),
        group(rows),
    ];
    let counts = vec![
        group(2),
        column("ill", Form::Text, &["cold", "flu"], vec![0, 1]),
        column(COUNT_COLUMN, Form::Integer, &[&half], vec![0; 2]),
    ];
    let tables = vec![table("qit", qit), table("st_ill", counts)];
    let claim = Claim {
        model: input.model.clone(),
        recoding: ReleaseRecoding::Anatomized,
    };
    decided(&input, tables, claim)
}

fn is_refused(found: Found) -> bool {
    let error = found.err();
    error.is_some_and(|error| {
        error
            .to_string()
            .contains("does not meet the privacy model")
    })
}

#[test]
fn k_rows_of_fewer_persons_are_refused() {
    for decide in [one_group, one_anatomy_group] {
        assert!(is_refused(decide(&["a", "a", "a", "a"], 4)));
        assert!(is_refused(decide(&["a", "b", "c", "a"], 4)));
        let groups = decide(&["a", "b", "c", "a"], 3).unwrap().unwrap();
        assert_eq!((groups.subjects, &groups.sizes[..]), (3, &[3][..]));
        let groups = decide(&["a", "b", "c", "d"], 4).unwrap().unwrap();
        assert_eq!((groups.subjects, &groups.sizes[..]), (4, &[4][..]));
    }
}

#[test]
fn the_report_counts_persons() {
    let patients = ["a", "a", "a", "b", "c", "c"];
    let schema = schema(columns());
    let table = load(&schema, file(&patients).as_bytes());
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    let job = job_of(job).unwrap();
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(schema, job, table, &observer).unwrap();
    let steps = run.search(&observer).unwrap();
    let release = run.release(&steps, None, &observer).unwrap();
    assert_eq!(json!(release.verification())["smallest_group"], 3);
    let report = &json!(release.report());
    assert_eq!(
        (&report["rows"], &report["subjects"]),
        (&json!(6), &json!(3))
    );
    assert_eq!(report["utility"]["smallest_group"], 3);
    assert_eq!(report["utility"]["discernibility"], 36);
    assert_eq!(report["risk"]["highest"].as_f64(), Some(1.0 / 3.0));
    assert_eq!(report["risk"]["records_at_highest"], 3);
    // The rows are half flu, half cold; of the persons, a and c have both, and b has cold.
    assert_eq!(report["utility"]["greatest_confidence"], 0.5);
    assert_eq!(report["risk"]["greatest_confidence_per_subject"], 1.0);
}
