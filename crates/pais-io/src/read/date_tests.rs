//! Tests of columns of dates: how their cells are read, in every format.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, StringArray, TimestampMicrosecondArray, TimestampMillisecondArray,
};
use pais_core::reimport;
use pais_core::schema::{Schema, SchemaErrorKind};
use pais_core::table::{Domain, EncodedTable, ReadErrorKind, Table};
use pais_core::taxonomy::Scale;
use serde_json::{Value, json};

use crate::read::format_tests::{from_csv, from_ndjson, from_parquet, texts};
use crate::read::parquet_tests::file;
use crate::read::tests::schema;

fn one(mut declared: Value) -> Schema {
    declared["name"] = json!("x");
    schema(json!([declared]))
}

fn cells(table: &Table) -> Vec<Option<&str>> {
    texts(&table.columns[0])
}

/// What a CSV file of these cells is refused with: the line, the detail and the fix of each fault.
#[track_caller]
fn faults(declared: Value, file: &[u8]) -> Vec<(u64, String, String)> {
    let error = from_csv(&one(declared), file).unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Cells);
    let faults = error.faults.iter();
    faults
        .map(|fault| {
            let fix = fault.suggested_fix.as_deref().unwrap_or_default();
            (
                fault.line().unwrap(),
                fault.detail.to_string(),
                fix.to_owned(),
            )
        })
        .collect()
}

#[test]
fn dates_have_one_form_in_every_role() {
    for role in ["quasi_identifier", "sensitive", "class", "insensitive"] {
        let dates = one(json!({"role": role, "kind": "date", "format": "%d.%m.%Y"}));
        let file = b"x\n03.09.1987\n3.9.1987\n 1987-09-03\n1987-09-03 00:00:00\n\"\"\n";
        let table = from_csv(&dates, file).unwrap();
        let expected = Some("1987-09-03");
        assert_eq!(cells(&table)[..4], [expected; 4]);
        assert_eq!(table.columns[0].dictionary.len(), 2, "{role}");
        assert_eq!(table.clone().canonical(&dates), table);
    }
}

#[test]
fn equal_moments_are_one_value() {
    let moments = one(json!({"role": "sensitive", "kind": "datetime"}));
    let file = b"x\n1987-09-03T10:15:00\n1987-09-03 10:15\n1987-09-03T10:15:00.000Z\n\
                 1987-09-03T12:15:00+02:00\n";
    let table = from_csv(&moments, file).unwrap();
    assert_eq!(cells(&table), [Some("1987-09-03T10:15:00"); 4]);
    assert_eq!(table.columns[0].dictionary.len(), 1);
}

#[test]
fn words_for_missing_are_read_as_in_other_columns() {
    let missing = json!(["", "NA", "01.01.1900"]);
    let dates = one(
        json!({"role": "quasi_identifier", "kind": "date", "format": "%d.%m.%Y",
        "missing": missing}),
    );
    let table = from_csv(
        &dates,
        b"x\n03.09.1987\nNA\n1.1.1900\n1900-01-01\n04.09.1987\n",
    )
    .unwrap();
    let spec = &dates.columns[0];
    let is_missing: Vec<bool> = cells(&table)
        .into_iter()
        .map(|cell| spec.is_missing(cell.unwrap()))
        .collect();
    assert_eq!(is_missing, [false, true, true, true, false]);
    let encoded = EncodedTable::new(&dates, table);
    let column = &encoded.quasi_identifiers[0];
    assert_eq!(column.codes.of_rows(&[0, 1, 2, 3, 4]), [0, 2, 2, 2, 1]);
    let Domain::Numeric {
        values,
        scale,
        missing,
        ..
    } = &column.domain
    else {
        panic!("intervals");
    };
    assert_eq!(
        (values.as_slice(), *scale, *missing),
        (&[6454.0, 6455.0][..], Scale::Day, true)
    );
}

#[test]
fn a_cell_that_is_no_date_is_refused_with_its_line_and_a_format() {
    let date = json!({"role": "quasi_identifier", "kind": "date"});
    let found = faults(date.clone(), b"x\n1987-09-03\n03.09.1987\n1987-02-30\n");
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].0, found[1].0), (3, 4));
    assert!(found.iter().all(|(_, detail, fix)| {
        fix.contains("`format`") && !detail.contains("1987") && !fix.contains("03.09.")
    }));
    assert!(found[0].2.contains("%d.%m.%Y"), "{found:?}");
    assert!(found[1].1.contains("not in the calendar"), "{found:?}");

    let german = json!({"role": "sensitive", "kind": "date", "format": "%d.%m.%Y"});
    let found = faults(german, b"x\n09/03/1987\n30.02.1987\n03.09.87\n");
    assert!(found.iter().all(|(_, _, fix)| fix.contains("`format`")));
    assert_eq!(found.len(), 3);

    let moment = json!({"role": "sensitive", "kind": "datetime", "missing": ["NA"]});
    let found = faults(moment, b"x\nyesterday\n\"\"\n1987-09-03T25:00\n");
    assert!(found[0].2.contains("%d.%m.%Y %H:%M"), "{found:?}");
    assert!(found[1].2.contains("`missing`"), "{found:?}");
    assert_eq!(found.len(), 3);
}

#[test]
fn parquet_and_ndjson_give_the_same_dates_as_csv() {
    let date = |format: Option<&str>| {
        one(json!({"role": "insensitive", "kind": "date", "format": format}))
    };
    let days: ArrayRef = Arc::new(Date32Array::from(vec![6454]));
    let seconds = 6454 * 86_400;
    let midnight: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![seconds * 1000]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1987-09-03"]));
    for array in [days.clone(), midnight, text] {
        let file = file(&[("x", array)], Default::default());
        for format in [None, Some("%d.%m.%Y")] {
            let table = from_parquet(&date(format), &file, u64::MAX).unwrap();
            assert_eq!(cells(&table), [Some("1987-09-03")]);
        }
    }
    let moment = one(json!({"role": "insensitive", "kind": "datetime"}));
    let micros = vec![seconds * 1_000_000 + 36_900_500_000];
    let local: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros.clone()));
    let zoned: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"));
    for array in [local, zoned] {
        let file = file(&[("x", array)], Default::default());
        let table = from_parquet(&moment, &file, u64::MAX).unwrap();
        assert_eq!(cells(&table), [Some("1987-09-03T10:15:00.5")]);
    }
    let file = file(&[("x", days)], Default::default());
    let table = from_parquet(&moment, &file, u64::MAX).unwrap();
    assert_eq!(cells(&table), [Some("1987-09-03T00:00:00")]);
    let table = from_ndjson(
        &date(Some("%d.%m.%Y")),
        b"{\"x\":\"03.09.1987\"}\n{\"x\":null}\n",
    );
    assert_eq!(cells(&table.unwrap()), [Some("1987-09-03"), None]);
    assert!(from_ndjson(&date(None), b"{\"x\":true}\n").is_err());
    assert!(from_ndjson(&date(None), b"{\"x\":19870903}\n").is_err());
}

#[test]
fn a_domain_of_dates_includes_both_ends() {
    let declared = json!({"role": "quasi_identifier", "kind": "date",
        "domain": ["1900-01-01", "2020-12-31"]});
    let dates = one(declared.clone());
    assert!(from_csv(&dates, b"x\n1900-01-01\n2020-12-31\n").is_ok());
    let found = faults(declared, b"x\n1899-12-31\n");
    assert!(found[0].1.ends_with("[1900-01-01,2020-12-31]"), "{found:?}");
    let table = from_csv(&dates, b"x\n1970-01-01\n").unwrap();
    let encoded = EncodedTable::new(&dates, table);
    let Domain::Numeric { lo, hi, .. } = encoded.quasi_identifiers[0].domain else {
        panic!("intervals");
    };
    assert_eq!((lo, hi), (-25567.0, 18627.0));
}

#[test]
fn ranges_without_widths_are_the_intervals_that_a_run_grows() {
    let declared = json!({"role": "quasi_identifier", "kind": "date",
        "taxonomy": {"generate": "ranges"}, "domain": ["1900-01-01", "2020-12-31"]});
    assert!(one(declared).columns[0].has_grown_intervals());
}

#[test]
fn declarations_of_dates_are_checked() {
    let pointers = |mut declared: Value| {
        declared["name"] = json!("x");
        let definition = json!({"name": "t", "columns": [declared]});
        let error = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap_err();
        assert_eq!(error.kind, SchemaErrorKind::Columns);
        let faults = error.faults.iter();
        faults
            .map(|fault| {
                assert!(fault.suggested_fix.is_some());
                fault.pointer().unwrap().to_owned()
            })
            .collect::<Vec<_>>()
    };
    let tree = json!({"label": "any", "children": [{"label": "03.09.1987"}]});
    for (declared, pointer) in [
        (
            json!({"kind": "date", "format": "%d.%m."}),
            "/columns/0/format",
        ),
        (
            json!({"kind": "date", "format": "%Y-%d-%m"}),
            "/columns/0/format",
        ),
        (
            json!({"kind": "datetime", "format": "%d.%m.%Y"}),
            "/columns/0/format",
        ),
        (
            json!({"kind": "numeric", "format": "%d.%m.%Y"}),
            "/columns/0/format",
        ),
        (
            json!({"kind": "date", "domain": [1900, 2020]}),
            "/columns/0/domain/0",
        ),
        (
            json!({"kind": "date", "domain": ["1900-01-01", "2020-02-30"]}),
            "/columns/0/domain/1",
        ),
        (
            json!({"kind": "numeric", "domain": ["1900-01-01", 5]}),
            "/columns/0/domain/0",
        ),
        (
            json!({"kind": "date", "taxonomy": tree}),
            "/columns/0/taxonomy",
        ),
    ] {
        let mut declared = declared;
        declared["role"] = json!("quasi_identifier");
        assert_eq!(pointers(declared.clone()), [pointer], "{declared}");
    }
}

#[test]
fn a_taxonomy_of_dates_has_dates_as_leaves() {
    let tree = json!({"label": "any", "children": [
        {"label": "1987", "children": [{"label": "1987-09-03"}, {"label": "1987-12-24"}]},
        {"label": "1988-01-01"}]});
    let dates = one(
        json!({"role": "quasi_identifier", "kind": "date", "format": "%d.%m.%Y",
        "taxonomy": tree}),
    );
    let table = from_csv(&dates, b"x\n24.12.1987\n01.01.1988\n\"\"\n").unwrap();
    let encoded = EncodedTable::new(&dates, table);
    assert_eq!(
        encoded.quasi_identifiers[0].codes.of_rows(&[0, 1, 2]),
        [1, 2, 3]
    );
    let error = from_csv(&dates, b"x\n25.12.1987\n").unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Cells);
}

#[test]
fn finished_tables_of_dates_are_read_by_their_intervals() {
    let dates = one(json!({"role": "quasi_identifier", "kind": "date"}));
    let read_by = reimport::columns(&dates, &["x".to_owned()]);
    let read = |file: &[u8]| {
        let table = from_csv(&read_by, file).unwrap();
        reimport::released(&dates, &read_by, table, 2)
    };
    let file = b"x\n\"[1987-01-01, 1990-07-01)\"\n\"[1987-09-03,1987-09-03]\"\n?\n*\n";
    let table = read(file).unwrap();
    let labels = texts(&table.columns[0].column);
    let expected = ["[1987-01-01,1990-07-01)", "1987-09-03", "?", "*"];
    assert_eq!(labels, expected.map(Some));
    for file in [
        &b"x\n\"[30,60)\"\n"[..],
        b"x\n\"[1990-01-01,1987-01-01)\"\n",
        b"x\n1987\n",
    ] {
        assert!(read(file).is_err());
    }
}
