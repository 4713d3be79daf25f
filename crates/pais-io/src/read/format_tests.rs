//! Tests that compare the formats: a table reads back equal from every format.

use bytes::Bytes;
use pais_core::schema::Schema;
use pais_core::table::{
    Column, Form, NULL_CODE, ReadError, ReadErrorKind, ReleasedColumn, ReleasedTable, Table,
};
use proptest::prelude::*;

use crate::chunk::Assembler;
use crate::read::tests::{Place, schema};
use crate::read::{ReadFailure, ReadLimits, csv, ndjson, parquet};

pub(super) fn gathered(
    read: impl FnOnce(
        &mut dyn FnMut(Table) -> Result<(), std::convert::Infallible>,
    ) -> Result<u64, ReadFailure<std::convert::Infallible>>,
) -> Result<Table, ReadError> {
    let mut assembler = Assembler::default();
    let rows = read(&mut |chunk| {
        assembler.push(chunk).unwrap();
        Ok(())
    });
    match rows {
        Ok(rows) => {
            let table = assembler.finish();
            assert_eq!(table.rows as u64, rows);
            Ok(table)
        }
        Err(ReadFailure::Refused(error)) => Err(error),
        Err(other) => panic!("{other:?}"),
    }
}

pub(super) fn from_csv(schema: &Schema, file: &[u8]) -> Result<Table, ReadError> {
    gathered(|chunk| csv::read(schema, file, ReadLimits::default(), chunk))
}

pub(super) fn from_ndjson(schema: &Schema, file: &[u8]) -> Result<Table, ReadError> {
    gathered(|chunk| ndjson::read(schema, file, ReadLimits::default(), chunk))
}

pub(super) fn from_parquet(schema: &Schema, file: &[u8], limit: u64) -> Result<Table, ReadError> {
    let file = Bytes::copy_from_slice(file);
    let limits = ReadLimits {
        cell_bytes: 2 << 20,
        total_bytes: limit,
    };
    gathered(|chunk| parquet::read(schema, file, limits, chunk))
}

pub(super) fn texts(column: &Column) -> Vec<Option<&str>> {
    (0..column.codes.len())
        .map(|row| column.text(row))
        .collect()
}

/// A column of cells; `None` is null.
pub(super) fn column(name: &str, form: Form, cells: &[Option<String>]) -> ReleasedColumn {
    let mut column = Column::default();
    for cell in cells {
        let code = cell.as_ref().map_or(NULL_CODE, |cell| {
            let known = column.dictionary.iter().position(|text| **text == **cell);
            known.unwrap_or_else(|| {
                column.dictionary.push(cell.as_str().into());
                column.dictionary.len() - 1
            }) as u32
        });
        column.codes.push(code);
    }
    ReleasedColumn {
        name: name.into(),
        form,
        column,
        missing: vec!["".into(), "NA".into()],
    }
}

/// Cells in a form that is equal for all formats: missing is null, a number is its value.
fn canonical(column: &Column, form: Form) -> Vec<Option<String>> {
    let texts = texts(column).into_iter();
    texts
        .map(|text| {
            let is_missing = |text: &str| ["", "NA"].contains(&text.trim_end_matches('\r'));
            let text = text.filter(|text| !is_missing(text))?;
            Some(match form {
                Form::Number | Form::Integer => (text.parse::<f64>().unwrap() + 0.0).to_string(),
                // Carriage returns at the end of a cell are not stored.
                _ => text.trim_end_matches('\r').to_owned(),
            })
        })
        .collect()
}

type Row = (String, Option<String>, Option<String>, Option<String>);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let label = "\\[[0-9],9\\)|Tech\"nical|a,b|\\\\|\u{e9}\u{1}|\n";
    let text = prop::option::of("[a-c,\"\n\r\t\\\\ ]{0,4}|NA");
    let number = prop::option::of(prop_oneof![
        "NA",
        "[+-]?0{0,2}[0-9]{1,18}",
        "-?[0-9]{0,3}\\.[0-9]{1,4}(e-?[0-9])?",
    ]);
    let set = prop::option::of("(NA|[a-c]{1,2}(\\|[a-c]{0,2}){0,3})?");
    prop::collection::vec((label, text, number, set), 1..40)
}

proptest! {
    #[test]
    fn a_released_table_reads_back_the_same_from_every_format(rows in rows()) {
        let forms = [Form::Generalized, Form::Text, Form::Number, Form::Set { separator: '|' }];
        let missing = ["", "NA"];
        let schema = schema(serde_json::json!([
            {"name": "l\"abel", "role": "insensitive"},
            {"name": "note", "role": "insensitive"},
            {"name": "n", "role": "insensitive", "kind": "numeric", "missing": missing},
            {"name": "items", "role": "insensitive", "kind": "set", "missing": missing},
        ]));
        // A release has sets in their one form.
        let set = |cell: &str| schema.columns[3].canonical(cell).into_owned();
        let cells: [Vec<Option<String>>; 4] = [
            rows.iter().map(|row| Some(row.0.clone())).collect(),
            rows.iter().map(|row| row.1.clone()).collect(),
            rows.iter().map(|row| row.2.clone()).collect(),
            rows.iter().map(|row| row.3.as_deref().map(set)).collect(),
        ];
        let names = ["l\"abel", "note", "n", "items"];
        let columns = names.iter().zip(forms).zip(&cells);
        let table = ReleasedTable {
            name: "data".into(),
            rows: rows.len(),
            columns: columns.map(|((name, form), cells)| column(name, form, cells)).collect(),
        };
        let (mut in_csv, mut in_ndjson, mut in_parquet) = (Vec::new(), Vec::new(), Vec::new());
        crate::write::csv(&table, &mut in_csv).unwrap();
        crate::write::ndjson(&table, &mut in_ndjson).unwrap();
        crate::write::parquet(&table, &mut in_parquet).unwrap();
        let mut again = Vec::new();
        crate::write::parquet(&table, &mut again).unwrap();
        prop_assert_eq!(&in_parquet, &again);
        let read = [
            from_csv(&schema, &in_csv).unwrap(),
            from_ndjson(&schema, &in_ndjson).unwrap(),
            from_parquet(&schema, &in_parquet, u64::MAX).unwrap(),
        ];
        for (index, form) in forms.into_iter().enumerate() {
            let expected = canonical(&table.columns[index].column, form);
            for read in &read {
                prop_assert_eq!(&canonical(&read.columns[index], form), &expected);
            }
        }
    }

    #[test]
    fn the_readers_accept_the_same_cells(
        rows in prop::collection::vec(("[a-d?]{0,1}|Blue", "-?[0-9]{1,2}(\\.5)?|x| 3", "[ab|]{0,3}"), 1..40)
    ) {
        let schema = schema(serde_json::json!([
            {"name": "c", "role": "quasi_identifier", "missing": ["?"], "taxonomy":
                {"label": "ANY", "children": [{"label": "Blue", "children":
                    [{"label": "a"}, {"label": "b"}]}, {"label": "c"}, {"label": "d"}]}},
            {"name": "n", "role": "quasi_identifier", "kind": "numeric", "domain": [-90, 90]},
            {"name": "s", "role": "insensitive", "kind": "set"},
        ]));
        let cells = |pick: fn(&(String, String, String)) -> &String| {
            rows.iter().map(|row| Some(pick(row).clone())).collect::<Vec<_>>()
        };
        let mut table = ReleasedTable {
            name: "data".into(),
            rows: rows.len(),
            columns: vec![
                column("s", Form::Text, &cells(|row| &row.2)),
                column("c", Form::Text, &cells(|row| &row.0)),
                column("n", Form::Text, &cells(|row| &row.1)),
            ],
        };
        // Write everything as strings, so that the readers get the same text.
        table.columns.iter_mut().for_each(|column| column.missing.clear());
        let (mut in_csv, mut in_ndjson, mut in_parquet) = (Vec::new(), Vec::new(), Vec::new());
        crate::write::csv(&table, &mut in_csv).unwrap();
        crate::write::ndjson(&table, &mut in_ndjson).unwrap();
        crate::write::parquet(&table, &mut in_parquet).unwrap();
        let by_csv = from_csv(&schema, &in_csv);
        let by_ndjson = from_ndjson(&schema, &in_ndjson);
        let by_parquet = from_parquet(&schema, &in_parquet, u64::MAX);
        let places = |result: &Result<Table, ReadError>, header: u64| match result {
            Ok(_) => Vec::new(),
            Err(error) => {
                let mut places: Vec<_> = error.faults.iter().map(|fault| {
                    let column = fault.column().map(str::to_owned);
                    (fault.line().unwrap() - header, column, fault.detail.clone())
                }).collect();
                places.sort();
                places
            }
        };
        prop_assert_eq!(places(&by_csv, 1), places(&by_ndjson, 0));
        prop_assert_eq!(places(&by_csv, 1), places(&by_parquet, 0));
        if let Ok(table) = &by_csv {
            prop_assert_eq!(&by_ndjson.unwrap(), table);
            prop_assert_eq!(&by_parquet.unwrap(), table);
        }
    }
}

#[test]
fn typed_formats_carry_types() {
    let cells = |cells: &[Option<&str>]| -> Vec<Option<String>> {
        cells.iter().map(|cell| cell.map(str::to_owned)).collect()
    };
    let set = Form::Set { separator: '|' };
    let table = ReleasedTable {
        name: "data".into(),
        rows: 3,
        columns: vec![
            column(
                "age",
                Form::Generalized,
                &cells(&[Some("[1,9)"), Some("7"), Some("?")]),
            ),
            column("n", Form::Number, &cells(&[Some("1.50"), Some("NA"), None])),
            column("s", set, &cells(&[Some("a|b"), Some("*"), Some("")])),
        ],
    };
    let mut file = Vec::new();
    crate::write::ndjson(&table, &mut file).unwrap();
    let expected = "{\"age\":\"[1,9)\",\"n\":1.50,\"s\":[\"a\",\"b\"]}\n\
                    {\"age\":\"7\",\"n\":null,\"s\":[\"*\"]}\n\
                    {\"age\":\"?\",\"n\":null,\"s\":null}\n";
    assert_eq!(String::from_utf8(file).unwrap(), expected);
}

#[test]
fn damaged_parquet_files_are_refused_without_a_panic() {
    let cells: Vec<_> = (0..500).map(|n| Some((n % 17).to_string())).collect();
    let table = ReleasedTable {
        name: "data".into(),
        rows: cells.len(),
        columns: vec![
            column("a", Form::Number, &cells),
            column("b", Form::Text, &cells),
        ],
    };
    let schema = schema(serde_json::json!([
        {"name": "a", "role": "insensitive"}, {"name": "b", "role": "insensitive"}]));
    let mut file = Vec::new();
    crate::write::parquet(&table, &mut file).unwrap();
    for at in 0..file.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= change;
            // Some damage is not detected; detected damage must be a refusal, not a panic.
            let _ = from_parquet(&schema, &damaged, 1 << 20);
        }
        let cut = from_parquet(&schema, &file[..at], 1 << 20).unwrap_err();
        assert_eq!(cut.kind, ReadErrorKind::Malformed);
    }
}

fn people() -> Schema {
    schema(serde_json::json!([
        {"name": "name", "role": "identifier"},
        {"name": "job", "role": "quasi_identifier"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
    ]))
}

fn in_ndjson(file: &str) -> (ReadErrorKind, Vec<Place>) {
    let error = from_ndjson(&people(), file.as_bytes()).unwrap_err();
    assert!(!format!("{error:?}").contains("Jane"), "{error:?}");
    let places = error
        .faults
        .iter()
        .map(|fault| (fault.line(), fault.column().map(str::to_owned)));
    (error.kind, places.collect())
}

#[test]
fn ndjson_values_are_read_as_text() {
    let file = "\u{feff}{\"name\":\"Jane\",\"job\":\"a\\u00e9\",\"age\":1.50,\"drugs\":[\"x\",2,true]}\r\n\
                \n  \n\
                {\"drugs\":\"x|y\",\"age\":123456789012345678901234567890,\"job\":false,\"name\":{\"a\":[]}}\n\
                {\"name\":null,\"job\":7,\"age\":null,\"drugs\":[]}";
    let table = from_ndjson(&people(), file.as_bytes()).unwrap();
    assert_eq!(
        texts(&table.columns[0]),
        [Some("a\u{e9}"), Some("false"), Some("7")]
    );
    // Numbers have their canonical spelling: 1.50 is 1.5, and of 30 digits those that a 64-bit
    // floating-point number keeps.
    let long = "1.2345678901234568e29";
    assert_eq!(texts(&table.columns[1]), [Some("1.5"), Some(long), None]);
    assert_eq!(
        texts(&table.columns[2]),
        [Some("2|true|x"), Some("x|y"), Some("")]
    );
}

#[test]
fn ndjson_faults_report_record_and_column() {
    let place = |line, column: &str| (Some(line), (!column.is_empty()).then(|| column.to_owned()));
    let file = "{\"name\":1,\"job\":2,\"age\":3,\"drugs\":4}\n\n\
                {\"name\":1,\"job\":[],\"age\":true,\"drugs\":[\"a|b\"]}\n\
                {\"name\":1,\"job\":{\"Jane\":1},\"age\":\"Jane\",\"drugs\":[[1]]}\n\
                {\"name\":1,\"job\":1,\"age\":1,\"age\":2,\"drugs\":1}\n\
                {\"Jane\":1,\"job\":1,\"age\":1,\"drugs\":[\"\"]}\n";
    let (code, places) = in_ndjson(file);
    assert_eq!(code, ReadErrorKind::Cells);
    assert_eq!(
        places,
        [
            place(2, "job"),
            place(2, "age"),
            place(2, "drugs"),
            place(3, "job"),
            place(3, "age"),
            place(3, "drugs"),
            place(4, "age"),
            place(5, ""),
            place(5, "name"),
        ]
    );
    assert_eq!(in_ndjson(" \n\n").0, ReadErrorKind::Empty);
    assert_eq!(in_ndjson(&"{}\n".repeat(50)).1.len(), 20);
}

#[test]
fn undecodable_ndjson_is_malformed() {
    let good = "{\"name\":1,\"job\":2,\"age\":3,\"drugs\":4}\n";
    for bad in [
        "{\"name\":\"Jane\"",
        "[\"Jane\"]",
        "\"Jane\"",
        "{\"name\":\"Jane\",\"job\":2,\"age\":3,\"drugs\":4} x",
        "{\"name\":\"\\u0000\",\"job\":2,\"age\":3,\"drugs\":4}",
        "{\"name\":1,\"job\":\"\\u0000\",\"age\":3,\"drugs\":4}",
        "{\"name\":1,\"job\":\"\\ud800\",\"age\":3,\"drugs\":4}",
        "{\"name\":1,\"job\":2,\"age\":3,\"drugs\":[\"\\u0000\"]}",
        "{\"name\\u0000\":1,\"job\":2,\"age\":3,\"drugs\":4}",
        "{\"name\":1,\"job\":2,\"age\":03,\"drugs\":4}",
    ] {
        let (code, places) = in_ndjson(&format!("{good}{bad}\n{good}"));
        assert_eq!(code, ReadErrorKind::Malformed, "{bad}");
        assert_eq!(places[0].0, Some(2), "{bad}");
    }
    let file = [good.as_bytes(), b"{\"name\":\"\xff\"}\n"].concat();
    let error = from_ndjson(&people(), &file).unwrap_err();
    assert_eq!(
        (error.kind, error.faults[0].line()),
        (ReadErrorKind::Malformed, Some(2))
    );
    let endless = [b"{\"name\":\"".to_vec(), vec![b'x'; 9 << 20]].concat();
    assert_eq!(
        from_ndjson(&people(), &endless).unwrap_err().kind,
        ReadErrorKind::Malformed
    );
}
