//! Tests of reading submissions: accepted and refused files, and the encoded table.

use pais_core::definition::DatasetDefinition;
use pais_core::schema::Schema;
use pais_core::table::{
    Column, Domain, EncodedTable, Form, ReadError, ReadErrorKind, ReleasedColumn, ReleasedTable,
    Table,
};
use pais_core::taxonomy::TreeLimits;
use proptest::prelude::*;

use crate::chunk::Assembler;
use crate::read::csv::read;
use crate::read::{ReadFailure, ReadLimits};

pub(super) fn schema(columns: serde_json::Value) -> Schema {
    let definition: DatasetDefinition =
        serde_json::from_value(serde_json::json!({"name": "t", "columns": columns})).unwrap();
    let limits = TreeLimits {
        leaves: 1000,
        depth: 10,
    };
    Schema::resolve(&definition, limits, |_| None).unwrap()
}

fn people() -> Schema {
    schema(serde_json::json!([
        {"name": "name", "role": "identifier"},
        {"name": "job", "role": "quasi_identifier", "taxonomy": {"label": "ANY", "children": [
            {"label": "Blue", "children": [{"label": "Mover"}, {"label": "Janitor"}]},
            {"label": "Doctor"}]}},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [1, 99]},
        {"name": "note", "role": "insensitive"},
    ]))
}

fn load(schema: &Schema, file: &[u8]) -> Result<Table, ReadError> {
    let mut assembler = Assembler::default();
    let result = read(schema, file, ReadLimits::default(), |chunk| {
        assembler.push(chunk)
    });
    match result {
        Ok(rows) => {
            let table = assembler.finish();
            assert_eq!(table.rows as u64, rows);
            Ok(table)
        }
        Err(ReadFailure::Refused(error)) => Err(error),
        Err(other) => panic!("{other:?}"),
    }
}

/// The line and the column of a fault.
pub(super) type Place = (Option<u64>, Option<String>);

fn refusal(file: &str) -> (ReadErrorKind, Vec<Place>) {
    let error = load(&people(), file.as_bytes()).unwrap_err();
    assert!(!error.detail.contains("Jane"), "{error}");
    assert!(
        error
            .faults
            .iter()
            .all(|fault| !fault.detail.contains("Jane")),
        "{error:?}"
    );
    (
        error.kind,
        error
            .faults
            .iter()
            .map(|fault| (fault.line(), fault.column().map(str::to_owned)))
            .collect(),
    )
}

#[test]
fn identifiers_are_dropped_and_columns_may_come_in_any_order() {
    let file = "age,note,name,job\n34,x,Jane,Mover\n58,\"y, z\",Joe,Doctor\n";
    let table = load(&people(), file.as_bytes()).unwrap();
    assert_eq!(table.columns.len(), 3);
    assert_eq!(table.columns[0].text(1), Some("Doctor"));
    assert_eq!(table.columns[2].text(1), Some("y, z"));
}

#[test]
fn bom_crlf_blank_lines_and_a_missing_last_newline_are_accepted() {
    let file = "\u{feff}name,job,age,note\r\n\r\nJane,Mover,34,\"a\r\nb\"\r\nJoe,Doctor,58,c";
    let table = load(&people(), file.as_bytes()).unwrap();
    assert_eq!(table.rows, 2);
    assert_eq!(table.columns[2].text(0), Some("a\r\nb"));
    assert_eq!(table.columns[2].text(1), Some("c"));
}

#[test]
fn faults_report_the_physical_line_on_which_the_record_starts() {
    for newline in ["\n", "\r\n"] {
        for end in ["", newline] {
            let lines = [
                "name,job,age,note",
                "Jane,Mover,34,\"two",
                "lines\"",
                "",
                "Jane,Jane,34,x",
                "Jane,Mover,Jane,\"a",
                "b\"",
                "Jane,Mover,100,x",
                "Jane,Blue,1",
                "Jane,Blue,1,x",
            ];
            let file = lines.join(newline) + end;
            let (code, faults) = refusal(&file);
            assert_eq!(code, ReadErrorKind::Cells);
            let expected = [(5, "job"), (6, "age"), (8, "age"), (9, ""), (10, "job")];
            let found: Vec<_> = faults
                .iter()
                .map(|(line, column)| (line.unwrap(), column.as_deref().unwrap_or("")))
                .collect();
            assert_eq!(found, expected, "{newline:?} {end:?}");
        }
    }
}

#[test]
fn at_most_twenty_faults_are_reported() {
    let file = "name,job,age,note\n".to_owned() + &"a,b,c,d\n".repeat(50);
    let (_, faults) = refusal(&file);
    assert_eq!(faults.len(), 20);
}

#[test]
fn headers_must_name_exactly_the_declared_columns() {
    for file in [
        "name,job,age\nJane,Mover,3\n",
        "name,job,age,note,Jane\nJane,Mover,3,x,y\n",
        "name,job,age,age,note\nJane,Mover,3,3,x\n",
        "Jane,Mover,34,x\n",
        "name;job;age;note\nJane;Mover;34;x\n",
    ] {
        assert_eq!(refusal(file).0, ReadErrorKind::Header, "{file}");
    }
    let error = load(&people(), b"name,jop,age,note\nJane,Mover,3,x\n").unwrap_err();
    assert_eq!(
        error.faults[0].suggested_fix.as_deref(),
        Some("did you mean `job`?")
    );
}

#[test]
fn undecodable_and_empty_files_have_their_own_codes() {
    for file in [
        &b"name,job,age,note\nJane,Mover,34,\xff\n"[..],
        b"name,job,age,note\n\xff,Mover,34,x\n",
        b"name,job,age,note\nJane,Mover,34,\0\n",
        b"name,job,age,note\nJane,Mover,34,\"x\nJoe,Mover,3,y\n",
        b"na\xffme,job,age,note\nJane,Mover,34,x\n",
    ] {
        assert_eq!(
            load(&people(), file).unwrap_err().kind,
            ReadErrorKind::Malformed
        );
    }
    for file in ["", "name,job,age,note\n", "\n\n"] {
        assert_eq!(refusal(file).0, ReadErrorKind::Empty, "{file:?}");
    }
}

#[test]
fn equal_numbers_have_one_code_and_missing_cells_have_the_last() {
    let schema = schema(serde_json::json!([
        {"name": "n", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "c", "role": "quasi_identifier", "missing": ["", "NA"]},
        {"name": "s", "role": "sensitive", "missing": ["-"]},
    ]));
    let file = "n,c,s\n10,b,x\n1.0,NA,-\n,a,x\n1,b,y\n";
    let encoded = EncodedTable::new(&schema, load(&schema, file.as_bytes()).unwrap());
    assert_eq!(
        encoded.quasi_identifiers[0].codes.of_rows(&[0, 1, 2, 3]),
        [1, 0, 2, 0]
    );
    let Domain::Numeric {
        values,
        lo,
        hi,
        missing,
        ..
    } = &encoded.quasi_identifiers[0].domain
    else {
        panic!("numeric");
    };
    assert_eq!(
        (values.as_slice(), *lo, *hi, *missing),
        (&[1.0, 10.0][..], 1.0, 10.0, true)
    );
    assert_eq!(
        encoded.quasi_identifiers[1].codes.of_rows(&[0, 1, 2, 3]),
        [1, 2, 0, 1]
    );
    assert_eq!(encoded.sensitive[0].codes[1], pais_core::table::NULL_CODE);
    assert_eq!(encoded.untouched[0].column.text(1), Some("-"));
}

proptest! {
    #[test]
    fn a_written_table_reads_back(
        cells in prop::collection::vec(("[a-c,\"\n \r;]{0,4}", "[a-z]{1,2}"), 1..30)
    ) {
        let column = |texts: Vec<&str>| ReleasedColumn {
            name: "x".into(),
            form: Form::Text,
            column: Column {
                dictionary: texts.iter().map(|text| (*text).into()).collect(),
                codes: (0..texts.len() as u32).collect(),
            },
            missing: Vec::new(),
        };
        let mut first = column(cells.iter().map(|(cell, _)| cell.as_str()).collect());
        first.name = "odd, name".into();
        let second = column(cells.iter().map(|(_, cell)| cell.as_str()).collect());
        let table = ReleasedTable { name: "data".into(), rows: cells.len(), columns: vec![first, second] };
        let mut file = Vec::new();
        crate::write::csv(&table, &mut file).unwrap();
        let schema = schema(serde_json::json!([
            {"name": "odd, name", "role": "insensitive"}, {"name": "x", "role": "insensitive"}]));
        let read = load(&schema, &file).unwrap();
        for (row, (a, b)) in cells.iter().enumerate() {
            // Carriage returns at the end of a cell are not stored.
            prop_assert_eq!(read.columns[0].text(row), Some(a.trim_end_matches('\r')));
            prop_assert_eq!(read.columns[1].text(row), Some(b.as_str()));
        }
    }
}
