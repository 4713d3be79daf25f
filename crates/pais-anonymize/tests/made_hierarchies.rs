//! Releases of columns whose hierarchy is made from their values: every group has K rows, and each
//! label covers the raw value by the text of both alone.

use std::collections::HashMap;
use std::sync::Arc;

use pais_anonymize::{AnonymizationRun, Unobserved, VerifiedRelease};
use pais_core::cancellation::Cancellation;
use pais_core::definition::JobDefinition;
use pais_core::schema::Schema;
use pais_core::warning::WarningCode;
use pais_io::read::csv;
use pais_verify::{ReleaseTables, verify_release};
use proptest::prelude::*;
use serde_json::{Value, json};

fn release(columns: &Value, file: &str, job: &Value) -> VerifiedRelease {
    let definition = json!({"name": "t", "columns": columns});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let job: JobDefinition = serde_json::from_value(job.clone()).unwrap();
    let mut job = job.parse().unwrap();
    // The tests find raw rows again by their numbers.
    let columns = schema.columns.iter().map(|column| column.name());
    job.acknowledged = columns.map(|name| (name.into(), "a test".into())).collect();
    let raw = csv::read_table(&schema, file.as_bytes()).unwrap();
    let observer = Unobserved::default();
    let run = AnonymizationRun::new(
        Arc::new(schema.clone()),
        job.clone(),
        raw.clone(),
        &observer,
    );
    let run = run.unwrap();
    let steps = run.search(&observer).unwrap();
    let release = run.release(&steps, None, &observer).unwrap();
    let tables = ReleaseTables::Generalized(release.tables()[0].clone());
    let found = verify_release(&schema, &job, &tables, Some(raw), &Cancellation::new());
    assert!(found.unwrap().holds());
    release
}

fn cells(release: &VerifiedRelease, column: usize) -> Vec<String> {
    let table = &release.tables()[0];
    let text = |row| table.columns[column].column.text(row).unwrap_or_default();
    (0..table.rows).map(|row| text(row).to_owned()).collect()
}

/// Whether a label covers a raw value: it is the value, the root, a prefix of it, or the periods of
/// a date that begin as the date does.
fn covers(label: &str, raw: &str) -> bool {
    let quarter = || {
        let (year, quarter) = label.split_once("-Q")?;
        let month: u32 = raw.get(5..7)?.parse().ok()?;
        Some(raw.starts_with(year) && quarter.parse() == Ok((month - 1) / 3 + 1))
    };
    let decade = label
        .strip_suffix("0s")
        .map(|decade| raw.starts_with(decade));
    label == "*"
        || label == raw
        || label
            .strip_suffix('*')
            .is_some_and(|prefix| raw.starts_with(prefix))
        || quarter().unwrap_or(false)
        || decade.unwrap_or(false)
        || (raw.starts_with(label) && raw.as_bytes().get(label.len()) == Some(&b'-'))
}

/// Their root `*` is no missing cell.
#[test]
fn a_table_in_which_an_asterisk_means_missing_can_be_released_at_its_topmost_values() {
    for (taxonomy, recoding) in [
        (Value::Null, "global"),
        (Value::Null, "local"),
        (json!({"generate": "prefix"}), "global"),
    ] {
        let mut zip = json!({"name": "zip", "role": "quasi_identifier", "missing": ["*"]});
        if !taxonomy.is_null() {
            zip["taxonomy"] = taxonomy;
        }
        let columns = json!([zip, {"name": "s", "role": "insensitive"}]);
        let job = json!({"privacy": {"model": "k_anonymity", "k": 4}, "recoding": recoding});
        let released = release(&columns, "zip,s\na,x\na,x\nb,x\n*,x\n", &job);
        assert_eq!(cells(&released, 0), ["*"; 4]);
    }
}

#[test]
fn an_empty_cell_that_is_no_word_for_missing_has_no_place_in_a_made_hierarchy() {
    let columns = json!([
        {"name": "zip", "role": "quasi_identifier", "missing": ["NA"], "taxonomy": {"generate": "prefix"}},
    ]);
    let definition = json!({"name": "t", "columns": columns});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let refused = csv::read_table(&schema, "zip\n8001\n\"\"\n".as_bytes()).unwrap_err();
    let text = format!("{refused:?}");
    assert!(
        text.contains("the cell is empty, and the column's hierarchy is made"),
        "{text}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn labels_cover_the_raw_values_and_groups_have_k_rows(
        rows in prop::collection::vec((0..40u32, 0..2000u32), 8..60),
        k in 2..5usize,
        recoding in prop::sample::select(vec!["global", "local"]),
    ) {
        let columns = json!([
            {"name": "row", "role": "insensitive"},
            {"name": "zip", "role": "quasi_identifier", "taxonomy": {"generate": "prefix"}},
            {"name": "born", "role": "quasi_identifier", "kind": "date",
             "taxonomy": {"generate": "calendar"}},
        ]);
        let mut file = "row,zip,born\n".to_owned();
        let mut raw = Vec::new();
        for (row, (zip, day)) in rows.into_iter().enumerate() {
            let zip = (2500 + zip * 7).to_string();
            let born = format!("{}-{:02}-{:02}", 1950 + day / 40, day % 12 + 1, day % 28 + 1);
            file += &format!("{row},{zip},{born}\n");
            raw.push((zip, born));
        }
        let job = json!({"privacy": {"model": "k_anonymity", "k": k}, "recoding": recoding});
        let release = release(&columns, &file, &job);
        let (numbers, zips, days) = (cells(&release, 0), cells(&release, 1), cells(&release, 2));
        let mut groups: HashMap<(String, String), usize> = HashMap::new();
        for ((row, zip), day) in numbers.iter().zip(zips).zip(days) {
            let (raw_zip, raw_day) = &raw[row.parse::<usize>().unwrap()];
            prop_assert!(covers(&zip, raw_zip), "{zip} does not cover {raw_zip}");
            prop_assert!(covers(&day, raw_day), "{day} does not cover {raw_day}");
            *groups.entry((zip, day)).or_default() += 1;
        }
        prop_assert!(groups.values().all(|&rows| rows >= k), "{groups:?}");
    }
}

/// 500 birth dates by quarter and year: with a flat tree each date would become `*`.
#[test]
fn birth_dates_are_generalized_to_quarters_and_years() {
    let columns = json!([{"name": "born", "role": "quasi_identifier", "kind": "date",
        "taxonomy": {"generate": "calendar", "levels": ["quarter", "year"]}}]);
    let mut file = "born\n".to_owned();
    for day in 0..500u32 {
        let (year, month) = (1960 + day * 7919 % 25, day * 104_729 % 12 + 1);
        file += &format!("{year}-{month:02}-{:02}\n", day * 31 % 28 + 1);
    }
    for recoding in ["global", "local"] {
        let job = json!({"privacy": {"model": "k_anonymity", "k": 5}, "recoding": recoding,
            "utility": {"objective": "ncp"}});
        let release = release(&columns, &file, &job);
        let ncp = json!(release.report())["utility"]["ncp"].as_f64().unwrap();
        assert!(ncp < 0.5, "{recoding}: {ncp}");
        assert!(!cells(&release, 0).iter().any(|label| label == "*"));
    }
}

/// A later table can have the value, and the job that lists it is the same.
#[test]
fn a_listed_value_that_is_in_no_row_of_a_made_hierarchy_is_a_warning() {
    let columns = json!([
        {"name": "ward", "role": "quasi_identifier"},
        {"name": "icd", "role": "sensitive", "taxonomy": {"generate": "prefix"}},
    ]);
    let job = json!({"privacy": {"model": "lkc", "l": 1, "k": 2, "c": 0.5,
                                 "sensitive_values": {"icd": ["B20", "I10"]}}});
    let codes = |file: &str| {
        let release = release(&columns, file, &job);
        let codes = release.warnings.iter().map(|warning| warning.code);
        codes.collect::<Vec<_>>()
    };
    let absent = codes("ward,icd\na,I10\na,J45\nb,I10\nb,J45\n");
    let raw = WarningCode::NothingGeneralized;
    assert_eq!(absent, [WarningCode::ListedValueAbsent, raw]);
    assert_eq!(codes("ward,icd\na,I10\na,B20\nb,I10\nb,B20\n"), [raw]);
}
