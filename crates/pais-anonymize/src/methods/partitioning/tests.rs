//! Golden tests on the paper's small tables, and the jobs that are rejected.

use serde_json::{Value, json};

use pais_core::definition::JobErrorKind;
use pais_core::table::ReleasedTable;

use crate::test_data::{job_of, job_with_keys, load, refusal, schema, unmet};
use crate::{
    AnonymizationRun, Anonymizer, JobPlan, RunError, SearchOutcome, Unobserved, VerifiedRelease,
    VerifiedTables,
};

/// The tables of a job, which the verifier has accepted. Properties of many tables need no report.
pub(super) fn verified(
    columns: &Value,
    rows: &str,
    job: &Value,
) -> Result<VerifiedTables, RunError> {
    let (prepared, found) = searched(columns, rows, job)?;
    prepared.verify(&found, None, &Unobserved::default())
}

pub(super) fn run(columns: &Value, rows: &str, job: &Value) -> Result<VerifiedRelease, RunError> {
    let (prepared, found) = searched(columns, rows, job)?;
    prepared.release(&found, None, &Unobserved::default())
}

fn searched(
    columns: &Value,
    rows: &str,
    job: &Value,
) -> Result<(AnonymizationRun, SearchOutcome), RunError> {
    let schema = schema(columns.clone());
    let job = job_with_keys(job.clone(), &schema)?;
    let table = load(&schema, rows.as_bytes());
    let prepared = AnonymizationRun::new(schema, job, table, &Unobserved::default())?;
    let found = prepared.search(&Unobserved::default())?;
    assert!(found.steps().is_empty());
    Ok((prepared, found))
}

pub(super) fn text(table: &ReleasedTable) -> String {
    let mut out = Vec::new();
    pais_io::write::csv(table, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The lines of a table after its header, sorted.
pub(super) fn lines(table: &ReleasedTable) -> Vec<String> {
    let text = text(table);
    let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Figure 1 of the paper.
const FIGURE_1: &str = "Age,Disease Type,Treatment\n42,Heart disease,Medicine\n\
    41,Heart disease,Surgery\n49,Flu,Intravenous therapy\n\
    43,Stomach disease,Intravenous therapy\n";

fn patients() -> Value {
    json!([
        {"name": "Age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "Disease Type", "role": "sensitive"},
        {"name": "Treatment", "role": "sensitive"},
    ])
}

fn diverse(k: u32, l: u32) -> Value {
    json!({"privacy": {"model": "l_diversity", "k": k, "l": l}})
}

/// Figure 3: one group of four records.
#[test]
fn figure_3_is_the_anatomy_of_figure_1() {
    let release = run(&patients(), FIGURE_1, &diverse(4, 2)).unwrap();
    let names: Vec<&str> = release.tables().iter().map(|table| &*table.name).collect();
    assert_eq!(names, ["qit", "st_Disease Type", "st_Treatment"]);
    assert_eq!(
        lines(&release.tables()[0]),
        ["41,1", "42,1", "43,1", "49,1"]
    );
    assert!(text(&release.tables()[0]).starts_with("Age,group_id\n"));
    assert_eq!(
        text(&release.tables()[1]),
        "group_id,Disease Type,count\n1,Flu,1\n1,Heart disease,2\n1,Stomach disease,1\n"
    );
    assert_eq!(
        text(&release.tables()[2]),
        "group_id,Treatment,count\n1,Intravenous therapy,2\n1,Medicine,1\n1,Surgery,1\n"
    );
    assert_eq!(json!(release.verification())["diversity"], 2.0);
    assert!(release.cut.is_none() && release.step.is_none());
}

/// Figure 2, with the group's exact range.
#[test]
fn figure_2_is_the_generalization_of_figure_1() {
    let mut job = diverse(4, 2);
    job["output"] = "generalized".into();
    let release = run(&patients(), FIGURE_1, &job).unwrap();
    assert_eq!(release.tables().len(), 1);
    assert_eq!(
        lines(&release.tables()[0]),
        [
            "\"[41,49]\",Flu,Intravenous therapy",
            "\"[41,49]\",Heart disease,Medicine",
            "\"[41,49]\",Heart disease,Surgery",
            "\"[41,49]\",Stomach disease,Intravenous therapy",
        ]
    );
}

#[test]
fn an_unreachable_model_suggests_a_reachable_one() {
    let error = run(&patients(), FIGURE_1, &diverse(4, 4)).unwrap_err();
    let first = unmet(&error);
    assert_eq!(first.pointer(), Some("/privacy/l"));
    let fix = first.suggested_fix.as_deref().unwrap();
    assert!(fix.contains("lower `l` to at most 2"), "{fix}");
    let error = run(&patients(), FIGURE_1, &diverse(5, 2)).unwrap_err();
    assert_eq!(unmet(&error).pointer(), Some("/privacy/k"));
    assert!(
        error.to_string().contains("lower `k` to at most 4"),
        "{error}"
    );
}

/// No record is lost: a group is not split where one half would violate the model.
#[test]
fn groups_are_halved_while_both_halves_meet_the_model() {
    let rows: String = (0..8)
        .map(|age| format!("{age},d{age},t{}\n", age % 4))
        .collect();
    let rows = "Age,Disease Type,Treatment\n".to_owned() + &rows;
    let release = run(&patients(), &rows, &diverse(2, 2)).unwrap();
    assert_eq!(json!(release.verification())["groups"], 4);
    let mut job = diverse(2, 2);
    job["output"] = "generalized".into();
    let release = run(&patients(), &rows, &job).unwrap();
    let starts: Vec<String> = lines(&release.tables()[0])
        .iter()
        .map(|line| line.split("\",").next().unwrap().to_owned())
        .collect();
    let ranges = ["\"[0,1]", "\"[2,3]", "\"[4,5]", "\"[6,7]"];
    let expected: Vec<&str> = ranges.iter().flat_map(|range| [*range; 2]).collect();
    assert_eq!(starts, expected);
}

#[test]
fn missing_cells_keep_their_original_text_beside_quasi_identifiers() {
    let columns = json!([
        {"name": "a", "role": "quasi_identifier", "kind": "numeric", "missing": ["NA", ""]},
        {"name": "b", "role": "quasi_identifier"},
        {"name": "note", "role": "insensitive"},
        {"name": "s", "role": "sensitive", "missing": ["", "NA"]},
    ]);
    let rows = "a,b,note,s\n1.50,x,n1,u\nNA,x,n2,NA\n,y,n3,\n2,y,n4,v\n";
    let release = run(&columns, rows, &diverse(4, 2)).unwrap();
    assert_eq!(
        lines(&release.tables()[0]),
        [",y,n3,1", "1.5,x,n1,1", "2,y,n4,1", "NA,x,n2,1"]
    );
    assert_eq!(
        text(&release.tables()[1]),
        "group_id,s,count\n1,,2\n1,u,1\n1,v,1\n",
        "formats that have types do not keep the words for missing apart"
    );
    let mut job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "recoding": "local"});
    // Missing numbers are far from all others, so medians split them off first.
    job["utility"] = json!({"objective": "discernibility"});
    let release = run(&columns, rows, &job).unwrap();
    let labels = lines(&release.tables()[0]);
    assert!(
        labels.iter().filter(|line| line.starts_with('?')).count() == 2,
        "{labels:?}"
    );
    let job = json!({"privacy": {"model": "k_anonymity", "k": 4}, "recoding": "local"});
    let release = run(&columns, rows, &job).unwrap();
    // A missing number is covered only by the outermost range.
    assert!(lines(&release.tables()[0])[0].starts_with("\"[1.5,2]\",*,"));
}

#[test]
fn a_seed_makes_the_release_reproducible() {
    let rows: String = (0..40)
        .map(|age| format!("{age},d{},t{}\n", age % 7, age % 5))
        .collect();
    let rows = "Age,Disease Type,Treatment\n".to_owned() + &rows;
    let mut job = diverse(4, 3);
    job["seed"] = 7.into();
    let texts = |job: &Value| -> Vec<String> {
        let release = run(&patients(), &rows, job).unwrap();
        release.tables().iter().map(text).collect()
    };
    let first = texts(&job);
    assert_eq!(first, texts(&job));
    job["seed"] = 8.into();
    assert_ne!(first, texts(&job));
}

fn rejected(job: Value) -> (JobErrorKind, String) {
    let columns = json!([
        {"name": "Age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "Items", "role": "insensitive", "kind": "set"},
        {"name": "Disease Type", "role": "sensitive"},
        {"name": "Class", "role": "class"},
    ]);
    refusal(job_of(job).and_then(|job| JobPlan::new(&schema(columns), &job)))
}

#[test]
fn unsupported_combinations_are_rejected() {
    let diverse = |extra: Value| {
        let mut job = json!({"privacy": {"model": "l_diversity", "k": 2, "l": 2}});
        for (name, value) in extra.as_object().unwrap() {
            job[name] = value.clone();
        }
        job
    };
    let limits = |column: &str, limit: i64| {
        json!({"privacy": {"model": "l_diversity", "k": 2, "l": 2,
            "column_limits": {column: limit}}})
    };
    let lkc = json!({"model": "lkc", "l": 1, "k": 2, "c": 0.5});
    let anonymous = json!({"model": "k_anonymity", "k": 2});
    for (job, code, pointer) in [
        (
            diverse(json!({"recoding": "global"})),
            JobErrorKind::Unfit,
            "/recoding",
        ),
        (
            json!({"privacy": lkc, "recoding": "local", "output": "anatomized"}),
            JobErrorKind::Unfit,
            "/output",
        ),
        (
            json!({"privacy": lkc, "recoding": "local", "suppression_limit": 0.1,
                   "suppression_for": "size_and_confidence"}),
            JobErrorKind::Unfit,
            "/suppression_for",
        ),
        (
            json!({"privacy": lkc, "recoding": "local",
                   "utility": {"objective": "discernibility_eq4"}}),
            JobErrorKind::Unfit,
            "/utility/objective",
        ),
        (
            json!({"privacy": lkc, "output": "anatomized"}),
            JobErrorKind::Unfit,
            "/output",
        ),
        (
            json!({"privacy": anonymous, "output": "anatomized"}),
            JobErrorKind::Unfit,
            "/output",
        ),
        (
            limits("Age", 1),
            JobErrorKind::Unfit,
            "/privacy/column_limits/Age",
        ),
        (
            limits("Disease Type", 3),
            JobErrorKind::OutOfRange,
            "/privacy/column_limits/Disease Type",
        ),
        (
            limits("Disease Type", -1),
            JobErrorKind::OutOfRange,
            "/privacy/column_limits/Disease Type",
        ),
        (
            diverse(json!({"suppression_limit": 2})),
            JobErrorKind::InvalidValue,
            "/suppression_limit",
        ),
        (
            diverse(json!({"suppression_for": "size_and_confidence"})),
            JobErrorKind::Unfit,
            "/suppression_for",
        ),
        (
            diverse(json!({"missing_sensitive": "counted"})),
            JobErrorKind::Unfit,
            "/missing_sensitive",
        ),
        (
            diverse(json!({"pre_generalization": {}})),
            JobErrorKind::Unfit,
            "/pre_generalization",
        ),
        (
            diverse(json!({"utility": {"objective": "ncp"}})),
            JobErrorKind::Unfit,
            "/utility/objective",
        ),
        (
            diverse(json!({"utility": {"objective": "classification"}})),
            JobErrorKind::Unfit,
            "/utility/objective",
        ),
        (
            diverse(json!({"utility": {"split": "fixed"}})),
            JobErrorKind::Unfit,
            "/utility/split",
        ),
    ] {
        assert_eq!(rejected(job.clone()), (code, pointer.to_owned()), "{job}");
    }
}

#[test]
fn unsupported_columns_are_rejected() {
    let quasi = json!({"name": "q", "role": "quasi_identifier"});
    let sensitive = json!({"name": "s", "role": "sensitive"});
    let set = json!({"name": "x", "role": "quasi_identifier", "kind": "set"});
    let count = json!({"name": "count", "role": "insensitive"});
    let group = json!({"name": "group_id", "role": "identifier"});
    let diversity = json!({"privacy": {"model": "l_diversity", "k": 2, "l": 2}});
    let anatomy = json!({"privacy": {"model": "k_anonymity", "k": 2}, "recoding": "local",
        "output": "anatomized"});
    for (columns, job, pointer) in [
        (json!([quasi, sensitive, set]), &diversity, "/privacy/model"),
        (json!([quasi]), &diversity, "/privacy/model"),
        (json!([quasi]), &anatomy, "/output"),
        (json!([sensitive]), &diversity, "/dataset_id"),
        (json!([quasi, sensitive, count]), &diversity, "/output"),
        (json!([quasi, sensitive, group]), &anatomy, "/output"),
    ] {
        let job = job_of(job.clone()).unwrap();
        let refused = refusal(JobPlan::new(&schema(columns.clone()), &job));
        assert_eq!(
            refused,
            (JobErrorKind::Unfit, pointer.to_owned()),
            "{columns}"
        );
    }
}

/// Sixteen records by age: of each four consecutive ones, two have the flu.
fn one_column() -> (Value, String) {
    let columns = json!([
        {"name": "Age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "Disease", "role": "sensitive"},
    ]);
    let rows: String = (0..16)
        .map(|age| format!("{age},{}\n", ["flu", "flu", "hiv", "cold"][age % 4]))
        .collect();
    (columns, "Age,Disease\n".to_owned() + &rows)
}

#[test]
fn models_of_one_column_hold_in_every_group() {
    let (columns, rows) = one_column();
    for privacy in [
        json!({"model": "distinct_l_diversity", "k": 2, "l": 3}),
        json!({"model": "distinct_l_diversity", "k": 2, "l": 2}),
        // The entropy of (1/2, 1/4, 1/4) is that of 2.83 equally frequent values.
        json!({"model": "entropy_l_diversity", "k": 2, "l": 2.8}),
        json!({"model": "recursive_cl_diversity", "k": 2, "c": 1.1, "l": 2}),
        json!({"model": "t_closeness", "k": 2, "t": 0}),
    ] {
        for output in ["anatomized", "generalized"] {
            let job = json!({"privacy": privacy, "output": output,
                "utility": {"objective": "discernibility"}});
            let release = run(&columns, &rows, &job).unwrap();
            assert_eq!(json!(release.verification())["holds"], true);
            assert_eq!(json!(release.verification())["groups"], 4, "{privacy}");
        }
        let job = json!({"privacy": privacy});
        let release = run(&columns, &rows, &job).unwrap();
        assert_eq!(release.tables().len(), 1, "generalized is the default");
    }
}

#[test]
fn models_of_one_column_suggest_parameters_that_the_table_meets() {
    let (columns, rows) = one_column();
    for (privacy, pointer, fix) in [
        (
            json!({"model": "distinct_l_diversity", "k": 2, "l": 4}),
            "/privacy/l",
            "lower `l` to at most 3",
        ),
        (
            json!({"model": "entropy_l_diversity", "k": 2, "l": 2.9}),
            "/privacy/l",
            "lower `l` to at most 2.8284",
        ),
        (
            json!({"model": "recursive_cl_diversity", "k": 2, "c": 1, "l": 2}),
            "/privacy/c",
            "raise `c` to at least 1.0001",
        ),
        (
            json!({"model": "recursive_cl_diversity", "k": 2, "c": 1, "l": 4}),
            "/privacy/l",
            "lower `l` to at most 3",
        ),
    ] {
        let error = run(&columns, &rows, &json!({"privacy": privacy})).unwrap_err();
        let fault = unmet(&error);
        assert_eq!(fault.pointer(), Some(pointer), "{privacy}");
        let found = fault.suggested_fix.as_deref().unwrap();
        assert!(found.starts_with(fix), "{found}");
    }
}

/// The exponential of the entropy of three equal counts is a little less than 3.
#[test]
fn the_diversity_that_is_suggested_for_equal_counts_is_their_number() {
    let (columns, _) = one_column();
    let rows: String = (0..12)
        .map(|age| format!("{age},{}\n", ["flu", "cold", "cough"][age % 3]))
        .collect();
    let rows = "Age,Disease\n".to_owned() + &rows;
    let privacy = json!({"model": "entropy_l_diversity", "k": 2, "l": 3.5});
    let error = run(&columns, &rows, &json!({"privacy": privacy})).unwrap_err();
    let found = unmet(&error).suggested_fix.clone().unwrap();
    assert!(found.starts_with("lower `l` to at most 3"), "{found}");
    let privacy = json!({"model": "entropy_l_diversity", "k": 2, "l": 3});
    run(&columns, &rows, &json!({"privacy": privacy})).unwrap();
}

#[test]
fn parameters_of_models_of_one_column_are_checked() {
    let (columns, _) = one_column();
    let table_schema = schema(columns);
    for (privacy, kind, pointer) in [
        (
            json!({"model": "t_closeness", "k": 2}),
            JobErrorKind::Shape,
            "/privacy",
        ),
        (
            json!({"model": "t_closeness", "k": 2, "t": 1.1}),
            JobErrorKind::OutOfRange,
            "/privacy/t",
        ),
        (
            json!({"model": "distinct_l_diversity", "k": 2, "l": 2.5}),
            JobErrorKind::Shape,
            "/privacy/l",
        ),
        (
            json!({"model": "entropy_l_diversity", "k": 2, "l": 0.5}),
            JobErrorKind::OutOfRange,
            "/privacy/l",
        ),
        (
            json!({"model": "recursive_cl_diversity", "k": 2, "c": 0, "l": 2}),
            JobErrorKind::OutOfRange,
            "/privacy/c",
        ),
        (
            json!({"model": "distinct_l_diversity", "k": 2, "l": 2, "c": 1}),
            JobErrorKind::Shape,
            "/privacy/c",
        ),
    ] {
        let job = job_of(json!({"privacy": privacy}));
        let refused = refusal(job.and_then(|job| JobPlan::new(&table_schema, &job)));
        assert_eq!(refused, (kind, pointer.to_owned()));
    }
    let job = json!({"privacy": {"model": "t_closeness", "k": 2, "t": 0.1}});
    let job = job_of(job).unwrap();
    let (_, pointer) = refusal(JobPlan::new(&schema(patients()), &job));
    assert_eq!(pointer, "/privacy/model");
}

/// Rows that were stored before values had one form: `1.5` is spelled `1.50`.
#[test]
fn rows_of_an_earlier_version_are_anatomized_in_one_form() {
    let schema = schema(patients());
    let mut table = load(&schema, FIGURE_1.as_bytes());
    let age = table.columns[0].dictionary[0].clone();
    table.columns[0].dictionary[0] = format!("{age}.0").into();
    let job = job_of(diverse(2, 2)).unwrap();
    let release = Anonymizer::with_job(job).run(&schema, &table).unwrap();
    let qit = text(&release.tables()[0]);
    assert!(!qit.contains(".0"), "{qit}");
}

/// Each value is in two rows of one group, and so in one row of the sensitive table.
#[test]
fn rows_of_a_sensitive_table_are_not_taken_for_persons() {
    let columns = json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "ill", "role": "sensitive"}]);
    let rows: String = (0..40).map(|row| format!("{row},v{}\n", row / 2)).collect();
    let release = run(&columns, &format!("age,ill\n{rows}"), &diverse(4, 2)).unwrap();
    assert!(release.tables()[1].rows >= 20);
    assert_eq!(release.warnings, []);
}
