//! Releases of numeric columns with `round`: every end of an interval is a multiple of it, or an end
//! of the declared domain, in every method.

use std::sync::Arc;

use pais_anonymize::{AnonymizationRun, RunError, Unobserved, VerifiedRelease};
use pais_core::cancellation::Cancellation;
use pais_core::definition::JobDefinition;
use pais_core::schema::Schema;
use pais_core::taxonomy::Interval;
use pais_io::read::csv;
use pais_verify::{ReleaseTables, verify_release};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The release of a job, which `pais verify --raw` accepts; `None` where no table meets the model.
fn release(columns: &Value, file: &str, job: &Value) -> Option<VerifiedRelease> {
    let definition = json!({"name": "t", "columns": columns});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let job: JobDefinition = serde_json::from_value(job.clone()).unwrap();
    let job = job.parse().unwrap();
    let raw = csv::read_table(&schema, file.as_bytes()).unwrap();
    let observer = Unobserved::default();
    let made = || -> Result<VerifiedRelease, RunError> {
        let shared = Arc::new(schema.clone());
        let run = AnonymizationRun::new(shared, job.clone(), raw.clone(), &observer)?;
        let steps = run.search(&observer)?;
        run.release(&steps, None, &observer)
    };
    let release = match made() {
        Err(RunError::NotAnonymizable { .. }) => return None,
        release => release.unwrap(),
    };
    let tables = ReleaseTables::Generalized(release.tables()[0].clone());
    let found = verify_release(&schema, &job, &tables, Some(raw), &Cancellation::new());
    assert!(found.unwrap().holds());
    Some(release)
}

fn cells(release: &VerifiedRelease, column: usize) -> Vec<String> {
    let table = &release.tables()[0];
    let text = |row| table.columns[column].column.text(row).unwrap_or_default();
    (0..table.rows).map(|row| text(row).to_owned()).collect()
}

fn distinct(mut labels: Vec<String>) -> Vec<String> {
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// Whether a number is a multiple, up to the rounding of a division.
fn is_multiple(end: f64, of: f64) -> bool {
    let times = end / of;
    (times - times.round()).abs() < 1e-9
}

fn ages(ages: &[u32]) -> String {
    let rows = ages.iter().map(|age| format!("{age}\n"));
    format!("age\n{}", rows.collect::<String>())
}

/// By hand: the number that halves 23, 24, 41, 42, 43, 67 best is 42, and 40 is the greatest
/// multiple of 10 at most it. But 41 is between them, so rows cannot be divided there; 41 divides
/// two rows from four, at 40.
#[test]
fn a_split_is_at_the_multiple_between_two_numbers() {
    let file = ages(&[23, 24, 41, 42, 43, 67]);
    let column =
        json!([{"name": "age", "role": "quasi_identifier", "kind": "numeric", "round": 10}]);
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    let global = release(&column, &file, &job).unwrap();
    assert_eq!(distinct(cells(&global, 0)), ["[20,40)", "[40,70]"]);

    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "recoding": "local"});
    let local = release(&column, &file, &job).unwrap();
    for label in cells(&local, 0) {
        let interval = Interval::parse(&label).unwrap();
        assert!(
            is_multiple(interval.lo, 10.0) && is_multiple(interval.hi, 10.0),
            "{label}"
        );
    }
}

/// A group of one number, which is a multiple, has an interval that is wider than it.
#[test]
fn one_number_is_not_an_interval_of_its_own() {
    let file = ages(&[40, 40, 40, 70, 70, 70]);
    let domains = [
        (json!(null), ["[40,50]", "[60,70]"], ["[40,60)", "[60,70]"]),
        (
            json!([0, 70]),
            ["[40,50]", "[60,70]"],
            ["[0,60)", "[60,70]"],
        ),
        (
            json!([0, 72]),
            ["[40,50]", "[70,72]"],
            ["[0,70)", "[70,72]"],
        ),
    ];
    for (domain, expected_local, expected_global) in domains {
        let mut column = json!({"name": "age", "role": "quasi_identifier", "kind": "numeric",
            "round": 10});
        if !domain.is_null() {
            column["domain"] = domain;
        }
        let columns = json!([column]);
        let job = json!({"privacy": {"model": "k_anonymity", "k": 3}, "recoding": "local"});
        let local = release(&columns, &file, &job).unwrap();
        assert_eq!(distinct(cells(&local, 0)), expected_local);
        let job = json!({"privacy": {"model": "k_anonymity", "k": 3}});
        let global = release(&columns, &file, &job).unwrap();
        assert_eq!(distinct(cells(&global, 0)), expected_global);
    }
}

/// Which method runs, with the job that asks for it.
fn job(method: usize, k: usize, suppression: f64) -> Value {
    let model = json!({"model": "k_anonymity", "k": k});
    match method {
        0 => json!({"privacy": model, "suppression_limit": suppression}),
        1 => json!({"privacy": {"model": "lkc", "l": 2, "k": k, "c": 1},
            "utility": {"objective": "ncp", "split": "best_valid"},
            "suppression_limit": suppression}),
        2 => json!({"privacy": model, "recoding": "local", "suppression_limit": suppression}),
        // Item disclosure, for the set.
        _ => json!({"privacy": model, "suppression_limit": suppression}),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn ends_are_multiples_and_cover_the_raw_numbers(
        rows in prop::collection::vec((prop::option::weighted(0.9, -30..1200i32), 0..4u32), 6..60),
        decimals in 0..3usize,
        round in prop::sample::select(vec![0.25, 1.0, 3.0, 7.5, 10.0, 100.0]),
        domain in prop::option::of(Just([-31.5, 1201.25])),
        method in 0..4usize,
        k in 2..5usize,
        suppression in prop::sample::select(vec![0.0, 0.3]),
    ) {
        let mut age = json!({"name": "age", "role": "quasi_identifier", "kind": "numeric",
            "round": round});
        if let Some(domain) = domain {
            age["domain"] = json!(domain);
        }
        let mut other = json!({"name": "job", "role": "quasi_identifier"});
        if method == 3 {
            other["kind"] = json!("set");
        }
        let columns = json!([{"name": "row", "role": "insensitive"}, age, other]);
        let mut file = "row,age,job\n".to_owned();
        let mut raw = Vec::new();
        for (row, (age, job)) in rows.into_iter().enumerate() {
            let age = age.map(|age| f64::from(age) / 10f64.powi(decimals as i32));
            let text = age.map_or(String::new(), |age| age.to_string());
            file += &format!("{row},{text},j{job}\n");
            raw.push(age);
        }
        let mut job = job(method, k, suppression);
        job["acknowledge_unchanged"] = json!({"row": "finds the raw number of a row"});
        let Some(release) = release(&columns, &file, &job) else {
            return Ok(());
        };
        let (numbers, labels) = (cells(&release, 0), cells(&release, 1));
        for (row, label) in numbers.iter().zip(&labels) {
            let number = raw[row.parse::<usize>().unwrap()];
            let interval = Interval::parse(label);
            match (interval, number) {
                (Some(interval), Some(number)) => {
                    prop_assert!(interval.contains(number), "{label}");
                    prop_assert!(interval.lo < interval.hi, "{label}");
                }
                // The verifier has checked which interval may stand for a missing cell.
                (Some(_), None) => {}
                (None, number) => {
                    let all_missing = raw.iter().all(Option::is_none);
                    prop_assert!(label == "?" || (label == "*" && all_missing), "{label}");
                    prop_assert!(number.is_none());
                }
            }
        }
        let is_declared = |end| domain.is_some_and(|domain| domain.contains(&end));
        let mut intervals: Vec<Interval> = distinct(labels)
            .iter()
            .filter_map(|label| Interval::parse(label))
            .collect();
        for interval in &intervals {
            for end in [interval.lo, interval.hi] {
                prop_assert!(is_declared(end) || is_multiple(end, round), "{interval}");
            }
        }
        if method != 2 {
            // One cut: from left to right without overlap.
            intervals.sort_by(|one, other| one.lo.total_cmp(&other.lo));
            for pair in intervals.windows(2) {
                prop_assert!(pair[0].hi <= pair[1].lo && !pair[0].closed, "{:?}", pair);
            }
        }
    }
}

/// Costs of an unchanged column are released as the nearest multiple, and the verifier accepts that
/// number alone. The model bounds the rounded ones: of the exact ones none would repeat.
#[test]
fn unchanged_numbers_are_rounded_in_generalized_and_anatomized_releases() {
    let file: String = (0..30)
        .map(|row| format!("{},{}\n", row % 5, 100 + row))
        .collect();
    let file = format!("age,cost\n{file}");
    for role in ["insensitive", "sensitive", "class"] {
        let columns = json!([
            {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
            {"name": "cost", "role": role, "kind": "numeric", "round": 10}]);
        let job = json!({"privacy": {"model": "k_anonymity", "k": 3}});
        let found = release(&columns, &file, &job).unwrap();
        assert_eq!(distinct(cells(&found, 1)), ["100", "110", "120", "130"]);

        let definition = json!({"name": "t", "columns": columns});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let job: JobDefinition = serde_json::from_value(job).unwrap();
        let raw = csv::read_table(&schema, file.as_bytes()).unwrap();
        let mut table = found.tables()[0].clone();
        let other = table.columns[1].column.codes.iter_mut();
        // Another multiple than the nearest.
        other.take(1).for_each(|code| *code = (*code + 1) % 4);
        let tables = ReleaseTables::Generalized(table);
        let stop = Cancellation::new();
        let verified = verify_release(&schema, &job.parse().unwrap(), &tables, Some(raw), &stop);
        assert_eq!(verified.unwrap().raw.unwrap().made_up, 1, "{role}");
    }
    let columns = json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "cost", "role": "sensitive", "kind": "numeric", "round": 10}]);
    let definition = json!({"name": "t", "columns": columns});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let job = json!({"privacy": {"model": "l_diversity", "k": 3, "l": 2}});
    let job: JobDefinition = serde_json::from_value(job).unwrap();
    let raw = csv::read_table(&schema, file.as_bytes()).unwrap();
    let found = pais_anonymize::Anonymizer::with_job(job.parse().unwrap());
    let found = found.run(&schema, &raw).unwrap();
    let [qit, counts] = found.tables() else {
        panic!("{:?}", found.tables().len());
    };
    let shown = counts.columns[1].shown_labels();
    assert!(shown.iter().all(|cost| cost.ends_with('0')), "{shown:?}");
    let tables = ReleaseTables::Anatomized {
        qit: qit.clone(),
        counts: vec![counts.clone()],
    };
    let stop = Cancellation::new();
    let verified = verify_release(&schema, &job.parse().unwrap(), &tables, Some(raw), &stop);
    assert!(verified.unwrap().holds());
}

/// Who would hand out exact costs of 30 rows has to say why.
#[test]
fn a_key_is_refused_where_the_rows_are_encoded() {
    let schema = Schema::builder()
        .column(pais_core::definition::ColumnDefinition::quasi_identifier(
            "age",
        ))
        .column(pais_core::definition::ColumnDefinition::insensitive("cost"))
        .build()
        .unwrap();
    let rows: String = (0..30).map(|row| format!("{},{row}\n", row % 3)).collect();
    let table = csv::read_table(&schema, format!("age,cost\n{rows}").as_bytes()).unwrap();
    let job = pais_core::definition::Job::new(pais_core::model::Lkc::k_anonymity(2).unwrap());
    let run = |job| pais_anonymize::Anonymizer::with_job(job).run(&schema, &table);
    let Err(RunError::Job(error)) = run(job.clone()) else {
        panic!("the job is not refused");
    };
    assert_eq!(
        error.faults[0].pointer(),
        Some("/acknowledge_unchanged/cost")
    );
    let acknowledged = [("cost".to_owned(), "a study of costs".to_owned())].into();
    let release = run(pais_core::definition::Job {
        acknowledged,
        ..job
    })
    .unwrap();
    assert_eq!(release.report().risk.unchanged.singled_out_share, 1.0);
}
