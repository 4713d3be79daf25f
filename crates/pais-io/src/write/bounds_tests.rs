use pais_core::table::{
    BoundedColumn, Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable, taken_name,
};
use pais_core::taxonomy::{Interval, Scale};
use proptest::prelude::*;

fn table(labels: &[&str], form: Form) -> ReleasedTable {
    ReleasedTable {
        name: "data".into(),
        rows: labels.len() + 1,
        columns: vec![ReleasedColumn {
            name: "a".into(),
            form,
            column: Column {
                dictionary: labels.iter().map(|&label| label.into()).collect(),
                codes: (0..labels.len() as u32).chain([NULL_CODE]).collect(),
            },
            missing: Vec::new(),
        }],
    }
}

fn bounded(scale: Scale, outermost: Option<(f64, f64)>) -> [BoundedColumn; 1] {
    [BoundedColumn {
        name: "a".into(),
        scale,
        outermost,
    }]
}

fn csv(labels: &[&str], bounded: &[BoundedColumn]) -> Vec<String> {
    let mut out = Vec::new();
    let table = table(labels, Form::Generalized).with_bounds(bounded);
    crate::write::csv(&table, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let end = |line: &str| {
        let mut cells = line.rsplitn(3, ',');
        let hi = cells.next().unwrap_or_default().to_owned();
        format!("{},{hi}", cells.next().unwrap_or_default())
    };
    text.lines().map(end).collect()
}

#[test]
fn numbers_have_the_ends_of_their_intervals() {
    let labels = [
        "[30,60)",
        "[60,99]",
        "30",
        "?",
        "*",
        "[-1.5,0.25)",
        "[30,99]",
    ];
    let found = csv(&labels, &bounded(Scale::Number, Some((0.0, 120.0))));
    let expected = [
        "a_lo,a_hi",
        "30,60",
        "60,99",
        "30,30",
        ",",
        "0,120",
        "-1.5,0.25",
        "30,99",
        ",",
    ];
    assert_eq!(found, expected);
    let unknown = csv(&["*"], &bounded(Scale::Number, None));
    assert_eq!(unknown, ["a_lo,a_hi", ",", ","]);
}

#[test]
fn dates_have_the_first_and_the_last_day() {
    let labels = [
        "[1987-01-01,1990-07-01)",
        "1987-Q3",
        "1980s",
        "1987-09-03",
        "?",
    ];
    let found = csv(&labels, &bounded(Scale::Day, None));
    let expected = [
        "a_lo,a_hi",
        "1987-01-01,1990-07-01",
        "1987-07-01,1987-09-30",
        "1980-01-01,1989-12-31",
        "1987-09-03,1987-09-03",
        ",",
        ",",
    ];
    assert_eq!(found, expected);
}

#[test]
fn periods_of_moments_end_at_their_last_millisecond() {
    let labels = ["1987-09-03", "1987-09-03T10:15:00"];
    let found = csv(&labels, &bounded(Scale::Moment, None));
    assert_eq!(found[1], "1987-09-03T00:00:00,1987-09-03T23:59:59.999");
    assert_eq!(found[2], "1987-09-03T10:15:00,1987-09-03T10:15:00");
}

#[test]
fn ages_of_dates_are_numbers() {
    let domain = Some((0.0, 20_000.0));
    let found = csv(&["[35,40)", "[-5,0)", "*"], &bounded(Scale::Day, domain));
    assert_eq!(found, ["a_lo,a_hi", "35,40", "-5,0", ",", ","]);
}

#[test]
fn formats_with_types_have_types() {
    let table = table(&["1987-Q3"], Form::Generalized).with_bounds(&bounded(Scale::Day, None));
    let mut out = Vec::new();
    crate::write::ndjson(&table, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        r#"{"a":"1987-Q3","a_lo":"1987-07-01","a_hi":"1987-09-30"}"#
    );
    let mut file = Vec::new();
    crate::write::parquet(&table, &mut file).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
        bytes::Bytes::from(file),
    );
    let schema = reader.unwrap().schema().clone();
    let types: Vec<String> = schema
        .fields()
        .iter()
        .map(|it| it.data_type().to_string())
        .collect();
    assert_eq!(types, ["Utf8", "Date32", "Date32"]);
}

#[test]
fn only_generalized_columns_have_bounds_and_no_name_is_taken() {
    let exact = table(&["30"], Form::Number).with_bounds(&bounded(Scale::Number, None));
    assert_eq!(exact.columns.len(), 1);
    let bounded = bounded(Scale::Number, None);
    assert_eq!(taken_name(["a", "b"], &bounded), None);
    assert_eq!(taken_name(["a", "a_hi"], &bounded).as_deref(), Some("a_hi"));
    assert_eq!(taken_name(["a_hi"], &bounded), None);
}

proptest! {
    #[test]
    fn the_bounds_enclose_every_number_of_the_label(
        lo in -1000i32..1000, width in 1i32..500, at in 0.0f64..1.0,
    ) {
        let (lo, hi) = (f64::from(lo) / 4.0, f64::from(lo + width) / 4.0);
        let label = Interval::half_open(lo, hi).to_string();
        let found = csv(&[&label], &bounded(Scale::Number, None));
        let (least, most) = found[1].split_once(',').unwrap();
        let value = lo + at * (hi - lo);
        prop_assert!(least.parse::<f64>().unwrap() <= value);
        prop_assert!(value <= most.parse::<f64>().unwrap());
    }
}
