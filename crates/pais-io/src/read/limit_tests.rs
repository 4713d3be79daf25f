//! Limits on cells, records and chunks, in every format.

use std::sync::Arc;

use ::parquet::file::properties::WriterProperties;
use arrow_array::{ArrayRef, StringArray};
use pais_core::schema::Schema;
use pais_core::table::{MAX_FAULTS, ReadError, ReadErrorKind, Table};

use crate::read::tests::schema;
use crate::read::{CHUNK_ROWS, ReadFailure, ReadLimits, csv, ndjson, parquet, parquet_tests};

const LIMITS: ReadLimits = ReadLimits {
    cell_bytes: 100,
    total_bytes: 1 << 30,
};

fn two_columns() -> Schema {
    schema(serde_json::json!([
        {"name": "id", "role": "identifier"},
        {"name": "x", "role": "insensitive"},
        {"name": "s", "role": "insensitive", "kind": "set"},
    ]))
}

/// Reads a table of these values of `x` in each format, and returns its chunks.
fn in_each_format(values: &[String], limits: ReadLimits) -> Vec<Result<Vec<Table>, ReadError>> {
    let schema = schema(serde_json::json!([{"name": "x", "role": "insensitive"}]));
    let csv = values
        .iter()
        .fold("x\n".to_owned(), |file, value| file + value + "\n");
    let ndjson: String = values
        .iter()
        .map(|value| format!("{{\"x\":\"{value}\"}}\n"))
        .collect();
    let array: ArrayRef = Arc::new(StringArray::from_iter_values(values));
    let parquet = parquet_tests::file(&[("x", array)], WriterProperties::builder());
    let parquet = bytes::Bytes::from(parquet);
    vec![
        chunks(|chunk| csv::read(&schema, csv.as_bytes(), limits, chunk)),
        chunks(|chunk| ndjson::read(&schema, ndjson.as_bytes(), limits, chunk)),
        chunks(|chunk| parquet::read(&schema, parquet, limits, chunk)),
    ]
}

type Sink<'a> = &'a mut dyn FnMut(Table) -> Result<(), std::convert::Infallible>;

fn chunks(
    read: impl FnOnce(Sink<'_>) -> Result<u64, ReadFailure<std::convert::Infallible>>,
) -> Result<Vec<Table>, ReadError> {
    let mut chunks = Vec::new();
    let read = read(&mut |chunk| {
        chunks.push(chunk);
        Ok(())
    });
    match read {
        Ok(_) => Ok(chunks),
        Err(ReadFailure::Refused(error)) => Err(error),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_cell_beyond_the_limit_is_refused_by_its_place_in_every_format() {
    let values = ["a".repeat(100), "b".repeat(101), "c".to_owned()];
    for (format, refused) in in_each_format(&values, LIMITS).into_iter().enumerate() {
        let error = refused.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Cells);
        assert_eq!(error.faults.len(), 1);
        assert_eq!(error.faults[0].column(), Some("x"));
        let line = if format == 0 { 3 } else { 2 };
        assert_eq!(error.faults[0].line(), Some(line));
        assert!(
            error
                .detail
                .contains("more than 100 bytes (limits.cell_bytes)"),
            "{error}"
        );
        assert!(!format!("{error:?}").contains("bbb"));
    }
    for read in in_each_format(&values[..1], LIMITS) {
        assert_eq!(read.unwrap()[0].rows, 1);
    }
}

#[test]
fn identifiers_sets_and_escaped_values_have_the_limit_too() {
    let long = "7".repeat(101);
    let array = format!("[{}\"7\"]", "\"7\",".repeat(60));
    for (record, column) in [
        (format!(r#"{{"id":"{long}","x":1,"s":[]}}"#), None),
        (format!(r#"{{"id":1,"x":{long},"s":[]}}"#), Some("x")),
        (format!(r#"{{"id":1,"x":1,"s":{array}}}"#), Some("s")),
        (
            format!(r#"{{"id":1,"x":1,"s":[{}]}}"#, " ".repeat(900)),
            Some("s"),
        ),
    ] {
        let read = chunks(|chunk| ndjson::read(&two_columns(), record.as_bytes(), LIMITS, chunk));
        let error = read.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Cells, "{error}");
        assert_eq!(error.faults[0].column(), column);
        assert!(error.detail.contains("limits.cell_bytes"), "{error}");
    }
    let file = format!("id,x,s\n{long},1,\n");
    let read = chunks(|chunk| csv::read(&two_columns(), file.as_bytes(), LIMITS, chunk));
    assert_eq!(read.unwrap_err().faults[0].line(), Some(2));
}

#[test]
fn a_chunk_ends_at_its_text_or_at_its_rows() {
    let limits = ReadLimits::default();
    // 1,200 distinct values of 32 KiB are 37.5 MiB: two full chunks and a rest, in each format.
    let long = "x".repeat(32 << 10);
    let values: Vec<String> = (0..1200).map(|number| format!("{long}{number}")).collect();
    for read in in_each_format(&values, limits) {
        let chunks = read.unwrap();
        assert!(chunks.len() >= 2, "{}", chunks.len());
        assert_eq!(chunks.iter().map(|chunk| chunk.rows).sum::<usize>(), 1200);
        for chunk in &chunks {
            assert!(chunk.text_bytes() < 34 << 20, "{}", chunk.text_bytes());
        }
    }
    let values: Vec<String> = (0..3 * CHUNK_ROWS)
        .map(|number| (number % 9).to_string())
        .collect();
    // Those of text grow; a Parquet file is decoded in batches of whole chunks.
    let eighth = CHUNK_ROWS / 8;
    let text = [
        eighth,
        2 * eighth,
        4 * eighth,
        CHUNK_ROWS,
        CHUNK_ROWS,
        eighth,
    ]
    .to_vec();
    let expected = [text.clone(), text, vec![CHUNK_ROWS; 3]];
    for (read, expected) in in_each_format(&values, limits).into_iter().zip(expected) {
        let rows: Vec<usize> = read.unwrap().iter().map(|chunk| chunk.rows).collect();
        assert_eq!(rows, expected);
    }
}

#[test]
fn a_wide_table_has_chunks_of_fewer_rows() {
    let columns: Vec<_> = (0..1000)
        .map(|number| serde_json::json!({"name": number.to_string(), "role": "insensitive"}))
        .collect();
    let schema = schema(serde_json::json!(columns));
    let names: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let row = "1,".repeat(999) + "1\n";
    let file = names.join(",") + "\n" + &row.repeat(17_000);
    let read = chunks(|chunk| csv::read(&schema, file.as_bytes(), ReadLimits::default(), chunk));
    let rows: Vec<usize> = read.unwrap().iter().map(|chunk| chunk.rows).collect();
    assert_eq!(rows, [8192, 8389, 419]);
}

#[test]
fn records_and_headers_without_an_end_are_refused_early() {
    struct Endless<'a> {
        start: &'a [u8],
        then: u8,
        given: u64,
    }
    impl std::io::Read for Endless<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = if self.start.is_empty() {
                buffer.fill(self.then);
                buffer.len()
            } else {
                std::io::Read::read(&mut self.start, buffer)?
            };
            self.given += length as u64;
            Ok(length)
        }
    }
    for (start, then, said) in [
        (&b""[..], b'a', "the header is longer than 1 MiB"),
        (b"id,x,s1,2,3", b'4', "--data-binary"),
        (b"", b',', "the header is longer than 1 MiB"),
        (b"id,x,s\n1,\"", b'a', "a record is longer than 8 MiB"),
        (b"id,x,s\n", b',', "more than a million cells"),
    ] {
        let mut source = Endless {
            start,
            then,
            given: 0,
        };
        let read = chunks(|chunk| csv::read(&two_columns(), &mut source, LIMITS, chunk));
        let error = read.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Malformed);
        assert!(error.detail.contains(said), "{error}");
        assert!(source.given < 9 << 20, "{}", source.given);
    }
    let mut source = Endless {
        start: b"{\"x\":\"",
        then: b'a',
        given: 0,
    };
    let read = chunks(|chunk| ndjson::read(&two_columns(), &mut source, LIMITS, chunk));
    assert_eq!(read.unwrap_err().kind, ReadErrorKind::Malformed);
    assert!(source.given < 9 << 20, "{}", source.given);
    let deep = format!("{{\"id\":{}}}", "[".repeat(1 << 20));
    let read = chunks(|chunk| ndjson::read(&two_columns(), deep.as_bytes(), LIMITS, chunk));
    assert_eq!(read.unwrap_err().kind, ReadErrorKind::Malformed);
}

#[test]
fn a_record_of_very_many_faults_reports_the_first() {
    let repeated = format!("{{{}\"x\":1}}", "\"x\":1,".repeat(100_000));
    let read = chunks(|chunk| ndjson::read(&two_columns(), repeated.as_bytes(), LIMITS, chunk));
    let error = read.unwrap_err();
    assert_eq!(
        (error.kind, error.faults.len()),
        (ReadErrorKind::Cells, MAX_FAULTS)
    );
}
