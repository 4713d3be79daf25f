//! Tests with Parquet files of other writers, and with malicious files.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
    Float32Array, Float64Array, Int64Array, LargeStringArray, NullArray, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray, TimestampMillisecondArray, UInt8Array,
};
use pais_core::schema::Schema;
use pais_core::table::{ReadError, ReadErrorKind, Table};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};

use crate::read::format_tests::{from_parquet, texts};
use crate::read::tests::schema;

pub(super) fn file(columns: &[(&str, ArrayRef)], properties: WriterPropertiesBuilder) -> Vec<u8> {
    let columns = columns
        .iter()
        .map(|(name, array)| (*name, array.clone(), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn insensitive(name: &str, kind: &str) -> Schema {
    schema(serde_json::json!([{"name": name, "role": "insensitive", "kind": kind}]))
}

fn read_one(array: ArrayRef, kind: &str) -> Result<Table, ReadError> {
    let file = file(&[("x", array)], WriterProperties::builder());
    from_parquet(&insensitive("x", kind), &file, 1 << 20)
}

#[test]
fn every_type_with_a_text_form_is_read_as_text() {
    let dictionary: DictionaryArray<Int32Type> = ["a", "b"].into_iter().collect();
    let times = [Some(1_600_000_000_123), None];
    let micros = [Some(1_600_000_000_000_000), None];
    let decimals = Decimal128Array::from(vec![Some(150), Some(-5)]);
    let cases: Vec<(ArrayRef, [Option<&str>; 2])> = vec![
        (
            Arc::new(StringArray::from(vec![Some("a"), None])),
            [Some("a"), None],
        ),
        (
            Arc::new(LargeStringArray::from(vec!["a", ""])),
            [Some("a"), Some("")],
        ),
        (Arc::new(dictionary), [Some("a"), Some("b")]),
        (
            Arc::new(Int64Array::from(vec![i64::MIN, 7])),
            [Some("-9223372036854775808"), Some("7")],
        ),
        (
            Arc::new(UInt8Array::from(vec![Some(255), None])),
            [Some("255"), None],
        ),
        (
            Arc::new(Float64Array::from(vec![0.1, 1e300])),
            [Some("0.1"), Some("1e300")],
        ),
        (
            Arc::new(Float32Array::from(vec![0.1, 3.0])),
            [Some("0.1"), Some("3")],
        ),
        (
            Arc::new(BooleanArray::from(vec![true, false])),
            [Some("true"), Some("false")],
        ),
        (
            Arc::new(decimals.with_precision_and_scale(10, 2).unwrap()),
            [Some("1.50"), Some("-0.05")],
        ),
        (
            Arc::new(Date32Array::from(vec![0, -1])),
            [Some("1970-01-01"), Some("1969-12-31")],
        ),
        (
            Arc::new(TimestampMillisecondArray::from(times.to_vec()).with_timezone("UTC")),
            [Some("2020-09-13T12:26:40.123Z"), None],
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(micros.to_vec())),
            [Some("2020-09-13T12:26:40"), None],
        ),
    ];
    for (array, expected) in cases {
        let kind = array.data_type().clone();
        let table = read_one(array, "categorical").unwrap();
        assert_eq!(texts(&table.columns[0]), expected, "{kind:?}");
    }
}

/// How pyarrow writes a column of which it has seen no value.
#[test]
fn cells_of_a_column_of_nulls_are_missing() {
    for kind in ["categorical", "numeric", "date"] {
        let table = read_one(Arc::new(NullArray::new(2)), kind).unwrap();
        assert_eq!(texts(&table.columns[0]), [None, None], "{kind}");
    }
    let nulls = file(
        &[("x", Arc::new(NullArray::new(2)))],
        WriterProperties::builder(),
    );
    let subject = schema(serde_json::json!([{"name": "x", "role": "subject"}]));
    let error = from_parquet(&subject, &nulls, 1 << 20).unwrap_err();
    assert!(error.faults[0].detail.contains("subject"), "{error}");
}

#[test]
fn a_type_that_only_arrow_metadata_names_is_read_as_it_is_stored() {
    let dates: ArrayRef = Arc::new(Date64Array::from(vec![86_400_000]));
    let table = read_one(dates, "categorical").unwrap();
    assert_eq!(texts(&table.columns[0]), [Some("86400000")]);
}

#[test]
fn lists_are_accepted_only_for_sets() {
    let lists = |items: &[&[&str]]| -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for items in items {
            items
                .iter()
                .for_each(|item| lists.values().append_value(item));
            lists.append(true);
        }
        lists.append(false);
        Arc::new(lists.finish())
    };
    let table = read_one(lists(&[&["a", "b"], &[]]), "set").unwrap();
    assert_eq!(texts(&table.columns[0]), [Some("a|b"), Some(""), None]);
    let refused = read_one(lists(&[&["a|b"]]), "set").unwrap_err();
    assert_eq!(
        (refused.kind, refused.faults[0].line()),
        (ReadErrorKind::Cells, Some(1))
    );
    let refused = read_one(lists(&[&["a"]]), "categorical").unwrap_err();
    assert_eq!(refused.faults[0].column(), Some("x"));
    let field = Arc::new(arrow_schema::Field::new(
        "a",
        arrow_schema::DataType::Int64,
        true,
    ));
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, inner)]));
    assert_eq!(
        read_one(nested, "set").unwrap_err().kind,
        ReadErrorKind::Cells
    );
}

#[test]
fn columns_are_found_by_name_and_identifiers_dropped() {
    let schema = schema(serde_json::json!([
        {"name": "id", "role": "identifier"},
        {"name": "a", "role": "insensitive"},
        {"name": "b", "role": "insensitive", "kind": "numeric"},
    ]));
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text; 3])) };
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let plain = WriterProperties::builder;
    let good = file(
        &[
            ("b", numbers.clone()),
            ("id", text("Jane")),
            ("a", text("x")),
        ],
        plain(),
    );
    let table = from_parquet(&schema, &good, 1 << 20).unwrap();
    assert_eq!(texts(&table.columns[1]), [Some("1"), Some("2"), Some("3")]);
    let incomplete = file(&[("b", numbers.clone()), ("Jane", text("x"))], plain());
    let error = from_parquet(&schema, &incomplete, 1 << 20).unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Header);
    assert!(!format!("{error:?}").contains("Jane"));
    let words = file(
        &[("b", text("x")), ("id", text("Jane")), ("a", text("x"))],
        plain(),
    );
    let error = from_parquet(&schema, &words, 1 << 20).unwrap_err();
    let lines: Vec<_> = error.faults.iter().map(|fault| fault.line()).collect();
    assert_eq!(lines, [Some(1), Some(2), Some(3)]);
    let empty = file(
        &[
            ("b", numbers.slice(0, 0)),
            ("id", text("").slice(0, 0)),
            ("a", text("").slice(0, 0)),
        ],
        plain(),
    );
    assert_eq!(
        from_parquet(&schema, &empty, 1 << 20).unwrap_err().kind,
        ReadErrorKind::Empty
    );
    let nul = file(
        &[("b", numbers), ("id", text("x")), ("a", text("\0"))],
        plain(),
    );
    assert_eq!(
        from_parquet(&schema, &nul, 1 << 20).unwrap_err().kind,
        ReadErrorKind::Malformed
    );
}

#[test]
fn files_that_decode_to_more_than_the_limit_are_refused_before_decoding() {
    let long = "x".repeat(1 << 20);
    let repeated: ArrayRef = Arc::new(StringArray::from(vec![&*long; 64]));
    // Statistics would contain the long value, uncompressed.
    let builder = || WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None);
    let plain = || builder().set_dictionary_enabled(false);
    let gzip = Compression::GZIP(GzipLevel::default());
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let second = WriterVersion::PARQUET_2_0;
    for properties in [
        plain().set_compression(gzip),
        plain().set_compression(zstd),
        plain().set_compression(Compression::SNAPPY),
        plain().set_compression(Compression::LZ4_RAW),
        plain().set_compression(gzip).set_writer_version(second),
        plain()
            .set_compression(zstd)
            .set_encoding(Encoding::DELTA_BYTE_ARRAY),
        builder().set_dictionary_page_size_limit(8 << 20),
    ] {
        let file = file(&[("x", repeated.clone())], properties);
        assert!(file.len() < 8 << 20);
        let refused = from_parquet(&insensitive("x", "categorical"), &file, 10 << 20);
        assert_eq!(refused.unwrap_err().kind, ReadErrorKind::TooLarge);
        let read = from_parquet(&insensitive("x", "categorical"), &file, 100 << 20).unwrap();
        assert_eq!(read.rows, 64);
    }
    // A page that repeats one value a million times is as large as a million values.
    let same: ArrayRef = Arc::new(BooleanArray::from(vec![true; 1 << 20]));
    let file = file(&[("x", same)], WriterProperties::builder());
    let refused = from_parquet(&insensitive("x", "categorical"), &file, 1 << 19);
    assert_eq!(refused.unwrap_err().kind, ReadErrorKind::TooLarge);
}
