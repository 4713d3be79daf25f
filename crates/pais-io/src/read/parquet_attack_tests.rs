//! Parquet files that are made to exhaust the stack or the memory of their reader. Each is refused by a bound,
//! before anything is allocated for what it claims.

use std::sync::Arc;

use ::parquet::basic::Encoding;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, StringArray};
use pais_core::table::{ReadError, ReadErrorKind};
use pais_test_support::hostile_parquet::{
    Thrift, column, compressed_row_group, file, footer, group, many_row_groups, nested_groups,
    row_group,
};

use crate::read::format_tests::{from_parquet, texts};
use crate::read::tests::schema;
use crate::read::{parquet, parquet_tests};

const BYTE_ARRAY: i64 = 6;

fn refusal(file: &[u8]) -> ReadError {
    let schema = schema(serde_json::json!([{"name": "x", "role": "insensitive", "kind": "set"}]));
    let refused = from_parquet(&schema, file, 64 << 20);
    // The names are read before the rows by a command that verifies a table.
    let names = parquet::names(&bytes::Bytes::copy_from_slice(file));
    let refused = refused.expect_err("the file is hostile");
    if let Err(error) = names {
        assert_eq!(error.kind, refused.kind);
    }
    refused
}

fn schema_of_one() -> Vec<Thrift> {
    vec![group("root", 1), column("x", BYTE_ARRAY)]
}

/// A file of one column and one row group.
fn with_pages(pages: &[u8], rows: i64, values: i64) -> Vec<u8> {
    let groups = vec![row_group(rows, values, pages.len())];
    file(pages, footer(schema_of_one(), rows, groups).end(), b"PAR1")
}

/// A page of a type with its own header and a body.
fn page(kind: i64, described: (u64, Thrift), body: &[u8]) -> Vec<u8> {
    let size = body.len() as i64;
    let head = Thrift::default().int(1, kind).int(2, size).int(3, size);
    [
        head.structure(described.0, described.1).end(),
        body.to_vec(),
    ]
    .concat()
}

fn data_page(values: i64, encoding: i64, body: &[u8]) -> Vec<u8> {
    let header = Thrift::default()
        .int(1, values)
        .int(2, encoding)
        .int(3, 3)
        .int(4, 3);
    page(0, (5, header), body)
}

#[test]
fn groups_that_are_nested_too_deep_do_not_use_up_the_stack() {
    let file = nested_groups();
    assert!((16_000..24_000).contains(&file.len()), "{}", file.len());
    let error = refusal(&file);
    assert_eq!(error.kind, ReadErrorKind::Malformed);
    assert!(
        error.detail.contains("more than 16 groups in each other"),
        "{error}"
    );
}

#[test]
fn claimed_row_groups_columns_and_children_are_not_allocated() {
    let file_of = |footer: Thrift| file(&[], footer.end(), b"PAR1");
    let many = many_row_groups();
    assert!((380_000..400_000).contains(&many.len()), "{}", many.len());
    let error = refusal(&many);
    assert!(
        error.detail.contains("claims 400000000 row groups"),
        "{error}"
    );
    assert_eq!(error.kind, ReadErrorKind::Malformed);

    let columns = Thrift::default().list(2, 2_000_000_000, schema_of_one());
    assert!(
        refusal(&file_of(columns))
            .detail
            .contains("claims 2000000000 columns")
    );

    let children = vec![group("root", i64::from(i32::MAX)), column("x", BYTE_ARRAY)];
    assert!(
        refusal(&file_of(footer(children, 0, vec![])))
            .detail
            .contains("claims 2147483647")
    );

    let chunks = Thrift::default().list(1, 1_000_000_000, vec![]);
    let group_of_many = footer(schema_of_one(), 0, vec![chunks]);
    assert!(
        refusal(&file_of(group_of_many))
            .detail
            .contains("columns of a row group")
    );
}

#[test]
fn real_structures_beyond_a_bound_are_too_large() {
    let file_of = |footer: Thrift| file(&[], footer.end(), b"PAR1");
    let groups = vec![row_group(0, 0, 0); 20_000];
    let error = refusal(&file_of(footer(schema_of_one(), 0, groups)));
    assert_eq!(error.kind, ReadErrorKind::TooLarge);
    assert!(error.detail.contains("20000 row groups"), "{error}");

    let mut wide = vec![group("root", 20_000)];
    wide.extend(vec![column("x", BYTE_ARRAY); 20_000]);
    let error = refusal(&file_of(footer(wide, 0, vec![])));
    assert_eq!(error.kind, ReadErrorKind::TooLarge);

    let long = Thrift::default().text(6, &vec![b'x'; 17 << 20]);
    let error = refusal(&file_of(long));
    assert_eq!(error.kind, ReadErrorKind::TooLarge);
    assert!(error.detail.contains("16 MiB"), "{error}");
}

#[test]
fn encrypted_files_are_refused_as_such() {
    let plain = footer(schema_of_one(), 0, vec![]);
    let magic = file(&[], plain.clone().end(), b"PARE");
    let signed = file(&[], plain.structure(8, Thrift::default()).end(), b"PAR1");
    for file in [magic, signed] {
        assert!(refusal(&file).detail.contains("encrypted"));
    }
}

/// The footer names the codec, so that the file is not reported as damaged.
#[test]
fn files_of_a_codec_that_is_not_read_are_refused_as_such() {
    for (codec, name) in [(3, "LZO"), (4, "BROTLI")] {
        let groups = vec![compressed_row_group(1, 1, 10, codec)];
        let file = file(&[0; 10], footer(schema_of_one(), 1, groups).end(), b"PAR1");
        let error = refusal(&file);
        assert_eq!(error.kind, ReadErrorKind::Malformed);
        assert!(error.detail.contains(name), "{error}");
    }
}

#[test]
fn nested_values_that_are_skipped_do_not_use_up_the_stack() {
    let mut bytes = vec![0x1c; 100_000];
    bytes.extend(vec![0; 100_001]);
    let error = refusal(&file(&[], bytes, b"PAR1"));
    assert_eq!(error.kind, ReadErrorKind::Malformed);
}

#[test]
fn a_field_of_another_type_hides_nothing_from_the_bounds() {
    // A reader that ignores the types of fields would read this text as the list of row groups.
    let hidden = Thrift::default()
        .list(2, 2, schema_of_one())
        .text(4, &[0xfc; 40]);
    let error = refusal(&file(&[], hidden.end(), b"PAR1"));
    assert_eq!(error.kind, ReadErrorKind::Malformed);
    // The same for the size of a page.
    let header = Thrift::default().int(1, 1).int(2, 0).int(3, 3).int(4, 3);
    let head = Thrift::default()
        .int(1, 0)
        .text(2, b"\xff\xff\xff\xff\x0f")
        .int(3, 0);
    let page = head.structure(5, header).end();
    assert_eq!(
        refusal(&with_pages(&page, 1, 1)).kind,
        ReadErrorKind::Malformed
    );
}

#[test]
fn claimed_dictionaries_and_lengths_are_not_allocated() {
    let dictionary = Thrift::default().int(1, 1_000_000).int(2, 0);
    let dictionary = page(2, (7, dictionary), b"\x01\0\0\0a");
    let pages = [dictionary, data_page(1, 8, b"\x01\x02\0")].concat();
    assert_eq!(
        refusal(&with_pages(&pages, 1, 1)).kind,
        ReadErrorKind::Malformed
    );

    // A block of 128 lengths in 4 parts that claims 2^40 lengths.
    let lengths = [0x80, 0x01, 4, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0];
    for encoding in [6, 7] {
        let page = data_page(1, encoding, &lengths);
        let error = refusal(&with_pages(&page, 1, 1));
        assert_eq!(error.kind, ReadErrorKind::Malformed, "encoding {encoding}");
    }
}

#[test]
fn pages_that_do_not_fit_into_memory_together_are_too_large() {
    let size = i64::from(i32::MAX);
    let header = Thrift::default().int(1, 1).int(2, 0).int(3, 3).int(4, 3);
    let head = Thrift::default().int(1, 0).int(2, size).int(3, 0);
    let page = head.structure(5, header).end();
    let schema = schema(serde_json::json!([{"name": "x", "role": "insensitive"}]));
    let error = from_parquet(&schema, &with_pages(&page, 1, 1), u64::MAX).unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::TooLarge);
    assert!(error.detail.contains("more than 256 MiB"), "{error}");
}

#[test]
fn a_row_of_very_many_items_is_refused_before_it_is_decoded() {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for _ in 0..16_000_000 {
        lists.values().append_value("");
    }
    lists.append(true);
    let array: ArrayRef = Arc::new(lists.finish());
    let properties = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None);
    let file = parquet_tests::file(&[("x", array)], properties);
    assert!(file.len() < 100_000, "{}", file.len());
    let error = refusal(&file);
    assert_eq!(error.kind, ReadErrorKind::TooLarge);
    assert!(
        error.detail.contains("a row of the Parquet file"),
        "{error}"
    );
}

#[test]
fn long_lists_and_encoded_lengths_of_honest_files_are_read() {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..2000 {
        (0..row % 200).for_each(|item| lists.values().append_value(item.to_string()));
        lists.append(row % 7 > 0);
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    let texts_of: ArrayRef = Arc::new(StringArray::from_iter(
        (0..2000).map(|row| (row % 5 > 0).then(|| format!("prefix-{row}"))),
    ));
    let schema = schema(serde_json::json!([
        {"name": "x", "role": "insensitive", "kind": "set"},
        {"name": "y", "role": "insensitive"},
    ]));
    let columns = [("x", lists), ("y", texts_of)];
    let plain = parquet_tests::file(&columns, WriterProperties::builder());
    let expected = from_parquet(&schema, &plain, 64 << 20).unwrap();
    assert_eq!(expected.columns[0].text(3), Some("0|1|2"));
    for encoding in [
        Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY,
    ] {
        for version in [1, 2] {
            let properties = WriterProperties::builder()
                .set_dictionary_enabled(false)
                .set_writer_version(match version {
                    1 => WriterVersion::PARQUET_1_0,
                    _ => WriterVersion::PARQUET_2_0,
                })
                .set_data_page_row_count_limit(300)
                .set_encoding(encoding);
            let file = parquet_tests::file(&columns, properties);
            let read = from_parquet(&schema, &file, 64 << 20).unwrap();
            for (read, expected) in read.columns.iter().zip(&expected.columns) {
                assert_eq!(texts(read), texts(expected), "{encoding} {version}");
            }
        }
    }
}
