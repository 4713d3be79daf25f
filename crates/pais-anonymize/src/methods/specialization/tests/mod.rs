//! Golden tests: Table 1 of the paper, and the Adult dataset.

mod counted;
mod frequencies;
mod layout;
pub(super) mod properties;
pub(super) mod random_tables;
mod reference;
mod suppression;
mod suppression_properties;

use std::sync::Arc;

use serde_json::{Value, json};

use pais_core::definition::JobErrorKind;
use pais_core::schema::Schema;
use pais_core::table::Table;

use crate::test_data::{
    DATA_FOLDER, adult_with, job_of, load, refusal, released, schema, steps, unmet,
};
use crate::{AnonymizationRun, RunError, StepItem, StepRecord, Unobserved, VerifiedRelease};

struct GoldenRun {
    steps: Vec<StepRecord>,
    release: VerifiedRelease,
}

fn run(schema: &Arc<Schema>, table: &Table, job: Value) -> Result<GoldenRun, RunError> {
    let job = job_of(job)?;
    let observer = Unobserved::default();
    let prepared = AnonymizationRun::new(Arc::clone(schema), job, table.clone(), &observer)?;
    let steps = steps(&prepared)?;
    let release = released(&prepared, &steps, None)?;
    Ok(GoldenRun { steps, release })
}

fn table1(age: Value) -> (Arc<Schema>, Table) {
    let leaf = |label: &str| json!({"label": label});
    let node = |label: &str, children: Vec<Value>| json!({"label": label, "children": children});
    let job = node(
        "ANY_Job",
        vec![
            node(
                "Blue-collar",
                vec![
                    node("Non-Technical", vec![leaf("Janitor"), leaf("Mover")]),
                    node("Technical", vec![leaf("Carpenter"), leaf("Technician")]),
                ],
            ),
            node(
                "White-collar",
                vec![node("Professional", vec![leaf("Doctor"), leaf("Lawyer")])],
            ),
        ],
    );
    let schema = schema(json!([
        {"name": "ID", "role": "identifier"},
        {"name": "Job", "role": "quasi_identifier", "taxonomy": job},
        {"name": "Sex", "role": "quasi_identifier",
         "taxonomy": node("ANY_Sex", vec![leaf("M"), leaf("F")])},
        age,
        {"name": "Transfuse", "role": "class"},
        {"name": "Surgery", "role": "sensitive"},
    ]));
    let file = std::fs::read(format!("{DATA_FOLDER}/kdd09/table1.csv")).unwrap();
    let table = load(&schema, &file);
    (schema, table)
}

fn dynamic_age() -> Value {
    json!({"name": "Age", "role": "quasi_identifier", "kind": "numeric", "domain": [1, 99]})
}

fn declared_age() -> Value {
    json!({"name": "Age", "role": "quasi_identifier", "kind": "numeric", "taxonomy":
        {"label": "[1,99]", "children": [
            {"label": "[1,60)", "children": [{"label": "[1,30)"}, {"label": "[30,60)"}]},
            {"label": "[60,99]"}]}})
}

fn lkc(l: u32, k: u32, c: f64, utility: Value) -> Value {
    json!({"privacy": {"model": "lkc", "l": l, "k": k, "c": c,
                       "sensitive_values": {"Surgery": ["Transgender"]}},
           "utility": utility})
}

fn performed(steps: &[StepRecord]) -> Vec<(String, f64)> {
    let item = |item: &StepItem| (item.value.clone().unwrap(), item.score.unwrap());
    steps[1..].iter().map(|record| item(&record.item)).collect()
}

fn assert_steps(steps: &[StepRecord], expected: &[(&str, f64)]) {
    let steps = performed(steps);
    let values: Vec<_> = steps.iter().map(|(value, _)| value.as_str()).collect();
    assert_eq!(
        values,
        expected.iter().map(|(value, _)| *value).collect::<Vec<_>>()
    );
    for ((value, score), (_, expected)) in steps.iter().zip(expected) {
        assert!(
            (score - expected).abs() < 5e-7,
            "{value}: {score} is not {expected}"
        );
    }
}

fn cut(release: &VerifiedRelease, column: &str) -> Vec<String> {
    release.cut.as_ref().unwrap()[column].clone()
}

fn dr(golden_run: &GoldenRun) -> f64 {
    golden_run.steps.last().unwrap().item.dr
}

#[test]
fn table_1_with_the_age_tree_of_figure_2() {
    let (schema, table) = table1(declared_age());
    let golden_run = run(
        &schema,
        &table,
        lkc(2, 2, 0.5, json!({"objective": "classification"})),
    )
    .unwrap();
    assert_steps(
        &golden_run.steps,
        &[
            ("ANY_Job", 0.639473),
            ("[1,99]", 0.242697),
            ("[1,60)", 0.152007),
            ("Blue-collar", 0.109170),
            ("Non-Technical", 0.311278),
            ("ANY_Sex", 0.003430),
            ("White-collar", 0.0),
        ],
    );
    assert_eq!(
        cut(&golden_run.release, "Job"),
        ["Janitor", "Mover", "Technical", "Professional"]
    );
    assert_eq!(cut(&golden_run.release, "Sex"), ["M", "F"]);
    assert_eq!(
        cut(&golden_run.release, "Age"),
        ["[1,30)", "[30,60)", "[60,99]"]
    );
    assert!((dr(&golden_run) - 21.0 / 121.0).abs() < 1e-12);
}

#[test]
fn table_1_with_intervals_computed_at_run_time() {
    let (schema, table) = table1(dynamic_age());
    let golden_run = run(
        &schema,
        &table,
        lkc(2, 2, 0.5, json!({"objective": "classification"})),
    )
    .unwrap();
    assert_steps(
        &golden_run.steps,
        &[
            ("ANY_Job", 0.639473),
            ("[1,99]", 0.242697),
            ("Blue-collar", 0.109170),
            ("Non-Technical", 0.311278),
            ("ANY_Sex", 0.003430),
            ("White-collar", 0.0),
        ],
    );
    assert_eq!(cut(&golden_run.release, "Age"), ["[1,63)", "[63,99]"]);
    assert!((dr(&golden_run) - 25.0 / 121.0).abs() < 1e-12);
    assert_eq!(
        json!(golden_run.release.report())["utility"]["discernibility"],
        json!(25)
    );
}

#[test]
fn table_1_with_the_best_split_that_is_valid() {
    let (schema, table) = table1(dynamic_age());
    let utility = json!({"objective": "classification", "split": "best_valid"});
    let golden_run = run(&schema, &table, lkc(2, 2, 0.5, utility)).unwrap();
    assert_eq!(
        cut(&golden_run.release, "Age"),
        ["[1,34)", "[34,63)", "[63,99]"]
    );
    assert!((dr(&golden_run) - 21.0 / 121.0).abs() < 1e-12);
}

/// Computed by hand; the score is the reduction of Σ|G|².
///
/// Topmost: 121. ANY_Job gives 6² + 5² = 61, a reduction of 60. ANY_Sex: 7² + 4² = 65, a reduction
/// of 56. Age is split at its most balanced point, 58: 6² + 5² = 61, a reduction of 60. The tie is
/// resolved in favour of the first attribute. After ANY_Job: Age 36 - 18 + 25 - 13 = 30 is the
/// best, but ⟨Blue-collar, [1,58)⟩ has 2 Transgender among 3 rows, so Age is dropped. ANY_Sex: 36 -
/// 20 + 25 - 13 = 28, valid (4 blue-collar men, 2 of them Transgender). Blue-collar and
/// White-collar then separate no rows, 0 each. The first one in the cut is specialized first, and
/// adds Non-Technical, 4² - 2² - 2² = 8. Technical (2) and Professional (6) would each leave a
/// group of one row.
#[test]
fn table_1_with_the_objective_discernibility() {
    let (schema, table) = table1(dynamic_age());
    let golden_run = run(
        &schema,
        &table,
        lkc(2, 2, 0.5, json!({"objective": "discernibility"})),
    )
    .unwrap();
    assert_steps(
        &golden_run.steps,
        &[
            ("ANY_Job", 60.0),
            ("ANY_Sex", 28.0),
            ("Blue-collar", 0.0),
            ("Non-Technical", 8.0),
            ("White-collar", 0.0),
        ],
    );
    let ratios: Vec<f64> = golden_run
        .steps
        .iter()
        .map(|record| (record.item.dr * 121.0).round())
        .collect();
    assert_eq!(ratios, [121.0, 61.0, 33.0, 33.0, 25.0, 25.0]);
    assert_eq!(
        cut(&golden_run.release, "Job"),
        ["Janitor", "Mover", "Technical", "Professional"]
    );
    assert_eq!(cut(&golden_run.release, "Age"), ["[1,99]"]);
}

/// Example 3: Σ|G|² after the specialization, 6² + 5² for ANY_Job and 7² + 4² for ANY_Sex.
#[test]
fn table_1_with_equation_4_as_used_in_example_3() {
    let (schema, table) = table1(dynamic_age());
    let job = lkc(2, 2, 1.0, json!({"objective": "discernibility_eq4"}));
    let golden_run = run(&schema, &table, job).unwrap();
    assert_eq!(
        performed(&golden_run.steps)[0],
        ("ANY_Sex".to_owned(), 65.0)
    );
    let job = lkc(2, 2, 1.0, json!({"objective": "ncp"}));
    let golden_run = run(&schema, &table, job).unwrap();
    // The NCP of Sex goes from 1 to 0 in every row, a third of the table's mean.
    let (value, score) = performed(&golden_run.steps)[0].clone();
    assert_eq!(value, "ANY_Sex");
    assert!((score - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn any_step_can_be_released_and_step_0_is_the_topmost_table() {
    let (schema, table) = table1(dynamic_age());
    let job = lkc(2, 2, 0.5, json!({"objective": "classification"}));
    let job = job_of(job).unwrap();
    let prepared = AnonymizationRun::new(schema, job, table, &Unobserved::default()).unwrap();
    let steps = steps(&prepared).unwrap();
    for step in 0..steps.len() as u32 {
        let release = released(&prepared, &steps, Some(step)).unwrap();
        let item = &steps[step as usize].item;
        assert_eq!(
            json!(release.report())["utility"]["groups"],
            json!(item.groups)
        );
        let dr = json!(release.report())["utility"]["dr"].as_f64().unwrap();
        let ncp = json!(release.report())["utility"]["ncp"].as_f64().unwrap();
        assert!(
            (dr - item.dr).abs() < 1e-12 && (ncp - item.ncp).abs() < 1e-12,
            "step {step}"
        );
    }
    let topmost = released(&prepared, &steps, Some(0)).unwrap();
    assert_eq!(cut(&topmost, "Age"), ["[1,99]"]);
    let error = released(&prepared, &steps, Some(99)).unwrap_err();
    assert!(
        matches!(error, RunError::NoSuchStep { step: 99, .. }),
        "{error}"
    );
}

#[test]
fn an_unmet_requirement_is_reported_with_a_value_that_can_be_met() {
    let (schema, table) = table1(dynamic_age());
    let utility = json!({"objective": "classification"});
    let error = run(&schema, &table, lkc(2, 12, 0.5, utility.clone()))
        .err()
        .unwrap();
    assert_eq!(unmet(&error).pointer(), Some("/privacy/k"));
    assert!(error.to_string().contains("at most 11"), "{error}");
    let error = run(&schema, &table, lkc(2, 2, 0.1, utility)).err().unwrap();
    assert_eq!(
        unmet(&error).pointer(),
        Some("/privacy/sensitive_values/Surgery/0")
    );
    assert!(error.to_string().contains("0.1819"), "{error}");
    assert!(!error.to_string().contains("Transgender"), "{error}");
}

fn nine_attributes() -> (Arc<Schema>, Table) {
    const NINE: [&str; 9] = [
        "age",
        "workclass",
        "education",
        "marital-status",
        "occupation",
        "race",
        "sex",
        "native-country",
        "income",
    ];
    adult_with(|name| {
        if NINE.contains(&name) {
            "quasi_identifier"
        } else {
            "identifier"
        }
    })
}

fn adult() -> (Arc<Schema>, Table) {
    adult_with(|name| match name {
        "marital-status" => "sensitive",
        "income" => "class",
        _ => "quasi_identifier",
    })
}

fn adult_job(l: u32, k: u32, c: f64) -> Value {
    json!({"privacy": {"model": "lkc", "l": l, "k": k, "c": c,
                       "sensitive_values": {"marital-status": ["Divorced", "Separated"]}},
           "utility": {"objective": "classification"}})
}

#[test]
fn adult_agrees_with_the_reference_and_is_always_verified() {
    let (schema, table) = adult();
    let golden = |l: u32, k: u32, c: f64| match (l, k, (c * 100.0).round() as u32) {
        (2, 20, 100) => Some((32, 0.0005041835, 12_460)),
        (2, 20, 20) => Some((17, 0.0072884580, 1_514)),
        (4 | 6, 20, 100) => Some((15, 0.0726448737, 72)),
        (4 | 6, 20, 20) => Some((5, 0.3394773138, 12)),
        (4 | 6, 100, 100) => Some((6, 0.2755655620, 12)),
        _ => None,
    };
    for k in [20, 100] {
        for c in [0.15, 0.2, 1.0] {
            let mut least = 0.0;
            for l in [2, 4, 6] {
                let golden_run = run(&schema, &table, adult_job(l, k, c)).unwrap();
                assert_eq!(golden_run.release.rows, 45_222);
                assert_eq!(
                    json!(golden_run.release.verification())["holds"],
                    json!(true)
                );
                let last = &golden_run.steps.last().unwrap().item;
                if let Some((steps, dr, groups)) = golden(l, k, c) {
                    // The reference does not count step 0, the topmost table.
                    let found = (golden_run.steps.len(), last.groups);
                    assert_eq!(found, (steps + 1, groups), "l={l} k={k} c={c}");
                    assert!(
                        (last.dr - dr).abs() < 5e-11,
                        "l={l} k={k} c={c}: {}",
                        last.dr
                    );
                }
                assert!(
                    last.dr >= least,
                    "the ratio must not decrease with L: l={l} k={k} c={c}"
                );
                least = last.dr;
            }
        }
    }
    let error = run(&schema, &table, adult_job(4, 20, 0.05)).err().unwrap();
    unmet(&error);
    let text = error.to_string();
    let fix = "at least 0.1393, or take the value out of `sensitive_values`";
    assert!(text.contains(fix), "{text}");
}

/// The nine attributes of Adult as commonly used with ARX: k-anonymity over all of them, k = 5.
#[test]
fn suppression_lowers_the_loss_on_adult() {
    let (schema, table) = nine_attributes();
    let loss = |limit: f64| {
        let job = json!({"privacy": {"model": "k_anonymity", "k": 5},
                         "utility": {"objective": "ncp"}, "suppression_limit": limit});
        let golden_run = run(&schema, &table, job).unwrap();
        let last = &golden_run.steps.last().unwrap().item;
        assert_eq!(golden_run.release.suppressed_rows, last.suppressed_rows);
        assert_eq!(golden_run.release.rows + last.suppressed_rows, 45_222);
        assert!(last.suppressed_rows as f64 <= limit * 45_222.0);
        let reported = json!(golden_run.release.report())["utility"]["ncp"]
            .as_f64()
            .unwrap();
        assert!((reported - last.ncp).abs() < 1e-9);
        println!(
            "{limit} {} {} {:?}",
            last.ncp, last.suppressed_rows, golden_run.release.cut
        );
        last.ncp
    };
    let without = loss(0.0);
    let with = loss(0.05);
    assert!(with < without, "{with} is not below {without}");
}

#[test]
fn no_value_is_specialized_below_the_pre_generalization() {
    let (schema, table) = table1(declared_age());
    // No row has the listed value, so every table is valid.
    let job = json!({"privacy": {"model": "lkc", "l": 3, "k": 1, "c": 0.5,
                                 "sensitive_values": {"Surgery": ["Bypass"]}},
        "utility": {"objective": "ncp"},
        "pre_generalization": {
            "Job": {"level": 1, "values": {"0": ["Carpenter"], "2": ["Doctor"]}},
            "Age": {"level": 1}}});
    let golden_run = run(&schema, &table, job).unwrap();
    // `Technical` contains only technicians, `White-collar` only doctors.
    assert_eq!(
        cut(&golden_run.release, "Job"),
        [
            "Non-Technical",
            "Carpenter",
            "Technical",
            "Professional",
            "White-collar"
        ]
    );
    assert_eq!(cut(&golden_run.release, "Age"), ["[1,60)", "[60,99]"]);
    let last = golden_run.steps.last().unwrap();
    let reported = json!(golden_run.release.report())["utility"]["ncp"]
        .as_f64()
        .unwrap();
    assert!((last.item.ncp - reported).abs() < 1e-12);

    let refused = |wish: Value| {
        let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "pre_generalization": wish});
        match run(&schema, &table, job) {
            Err(RunError::Job(error)) => refusal(Err::<(), _>(error)),
            other => panic!("the job is refused, not {:?}", other.err()),
        }
    };
    for (wish, pointer) in [
        (
            json!({"Job": {"level": 3, "values": {"0": ["Doctor"]}}}),
            "/pre_generalization/Job",
        ),
        (
            json!({"Surgery": {"level": 1}}),
            "/pre_generalization/Surgery",
        ),
        (
            json!({"Age": {"level": 3}}),
            "/pre_generalization/Age/level",
        ),
    ] {
        assert_eq!(refused(wish), (JobErrorKind::Unfit, pointer.to_owned()));
    }
    let (schema, table) = table1(dynamic_age());
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2},
        "pre_generalization": {"Age": {"level": 1}}});
    let error = run(&schema, &table, job).err().unwrap();
    assert!(
        matches!(&error, RunError::Job(error) if error.kind == JobErrorKind::Unfit),
        "{error}"
    );
}
