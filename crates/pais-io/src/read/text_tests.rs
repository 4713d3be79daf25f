//! Tests that a file in another text format is read as the plain CSV file of the same table.

use std::io::Read;

use pais_core::schema::Schema;
use pais_core::table::{ReadError, ReadErrorKind, Table};
use proptest::prelude::*;
use serde_json::json;

use crate::read::format_tests::{from_csv, gathered, texts};
use crate::read::tests::schema;
use crate::read::{DecimalMark, ReadLimits, TextEncoding, TextFormat, csv};

/// Reads a source at most `.1` bytes at a time.
struct InParts<'a>(&'a [u8], usize);

impl Read for InParts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = self.1.min(buffer.len());
        (&mut self.0).take(most as u64).read(buffer)
    }
}

fn format(delimiter: &str, decimal: &str, thousands: &str, encoding: &str) -> TextFormat {
    let thousands = Some(thousands).filter(|mark| !mark.is_empty());
    TextFormat::new(
        delimiter.parse().unwrap(),
        decimal.parse().unwrap(),
        thousands.map(|mark| mark.parse().unwrap()),
        encoding.parse().unwrap(),
    )
    .unwrap()
}

fn read_as(schema: &Schema, file: &[u8], format: TextFormat) -> Result<Table, ReadError> {
    read_in_parts(schema, file, format, usize::MAX)
}

fn read_in_parts(
    schema: &Schema,
    file: &[u8],
    format: TextFormat,
    part: usize,
) -> Result<Table, ReadError> {
    let source = InParts(file, part);
    gathered(|chunk| csv::read_as(schema, source, format, ReadLimits::default(), None, chunk))
}

fn payments() -> Schema {
    schema(json!([
        {"name": "name", "role": "insensitive"},
        {"name": "paid", "role": "sensitive", "kind": "numeric", "missing": ["NA", "-1.5"]},
        {"name": "note", "role": "insensitive"},
    ]))
}

fn encoded(text: &str, encoding: TextEncoding, is_big_endian: bool) -> Vec<u8> {
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    match encoding {
        TextEncoding::Utf8 => text.as_bytes().to_vec(),
        TextEncoding::Utf16 if is_big_endian => units.flat_map(u16::to_be_bytes).collect(),
        TextEncoding::Utf16 => units.flat_map(u16::to_le_bytes).collect(),
        TextEncoding::Iso8859_1 => text.chars().map(|it| u8::try_from(it).unwrap()).collect(),
        TextEncoding::Windows1252 => {
            let mut bytes = vec![0; text.len()];
            let mut encoder = encoding_rs::WINDOWS_1252.new_encoder();
            let (result, _, written) =
                encoder.encode_from_utf8_without_replacement(text, &mut bytes, true);
            assert_eq!(result, encoding_rs::EncoderResult::InputEmpty);
            bytes.truncate(written);
            bytes
        }
    }
}

#[test]
fn numbers_are_stored_as_in_the_plain_file_and_text_is_not_changed() {
    let plain = "name,paid,note\na,1234.5,\"1.234,5\"\nb,1234,x\nc,1.234,y\nd,-0.5,\nNA,NA,NA\n";
    let table = from_csv(&payments(), plain.as_bytes()).unwrap();
    let written = "name;paid;note\na;1.234,50;1.234,5\nb;1.234;x\nc;1,234;y\nd;-,5;\nNA;NA;NA\n";
    let read = read_as(
        &payments(),
        written.as_bytes(),
        format(";", ",", ".", "utf-8"),
    );
    assert_eq!(read.unwrap(), table);
    let written = "name\tpaid\tnote\na\t1'234.5\t1.234,5\nb\t+1'234\tx\nc\t1.234\ty\nd\t-5e-1\t\nNA\tNA\tNA\n";
    let read = read_as(
        &payments(),
        written.as_bytes(),
        format("tab", ".", "'", "utf-8"),
    );
    assert_eq!(read.unwrap(), table);
    let written =
        "name,paid,note\na,\"1,234.50\",\"1.234,5\"\nb,\"1,234\",x\nc,1.234,y\nd,-.5,\nNA,NA,NA\n";
    let read = read_as(
        &payments(),
        written.as_bytes(),
        format(",", ".", ",", "utf-8"),
    );
    assert_eq!(read.unwrap(), table);
}

#[test]
fn a_spelling_that_is_the_plain_text_of_another_number_is_converted() {
    // `1,234` is stored as `1.234`, which in this file is another number.
    let file = "name;paid;note\na;1,234;\nb;1.234;\nc;1,234;\nd;1234;\n";
    let table = read_as(&payments(), file.as_bytes(), format(";", ",", ".", "utf-8")).unwrap();
    let paid: Vec<_> = texts(&table.columns[1]).into_iter().flatten().collect();
    assert_eq!(paid, ["1.234", "1234", "1.234", "1234"]);
    assert_eq!(table.columns[1].dictionary.len(), 2);
}

#[test]
fn a_word_for_missing_is_missing_as_declared_and_by_its_value() {
    let file = "name;paid;note\na;NA;\nb;-1,50;\nc;-1.5;\n";
    let schema = payments();
    let table = read_as(&schema, file.as_bytes(), format(";", ",", "", "utf-8")).unwrap();
    let paid: Vec<_> = texts(&table.columns[1]).into_iter().flatten().collect();
    assert_eq!(paid, ["NA", "-1.5", "-1.5"]);
    assert!(paid.iter().all(|text| schema.columns[1].is_missing(text)));
}

#[test]
fn a_number_in_another_format_than_the_files_is_refused_with_the_parameter_that_reads_it() {
    for (cell, written, fix) in [
        ("3.5", format(";", ",", "", "utf-8"), "`?decimal=.`"),
        ("3,5", format(";", ".", "", "utf-8"), "`?decimal=,`"),
        (
            "108,429.42",
            format(";", ".", "", "utf-8"),
            "`?thousands=,`",
        ),
        ("12,34", format(";", ".", ",", "utf-8"), "groups of three"),
        ("1.2345", format(";", ",", ".", "utf-8"), "groups of three"),
        (" 5", format(";", ",", ".", "utf-8"), "spaces"),
        ("", format(";", ",", ".", "utf-8"), "`missing`"),
    ] {
        let file = format!("name;paid;note\na;{cell};\n");
        let error = read_as(&payments(), file.as_bytes(), written).unwrap_err();
        assert_eq!((error.kind, error.faults.len()), (ReadErrorKind::Cells, 1));
        let found = error.faults[0].suggested_fix.as_deref().unwrap();
        assert!(found.contains(fix), "{cell}: {found}");
        assert!(
            cell.is_empty() || !format!("{error:?}").contains(cell),
            "{error:?}"
        );
    }
}

#[test]
fn delimiters_in_quotes_are_text() {
    let file = "name;paid;note\r\n\"a;b\";1;\"x;\"\"y\"\"\r\n;\"\r\n\r\n;2;\";\"\r\n";
    let table = read_as(&payments(), file.as_bytes(), format(";", ".", "", "utf-8")).unwrap();
    assert_eq!(texts(&table.columns[0]), [Some("a;b"), Some("")]);
    assert_eq!(texts(&table.columns[2]), [Some("x;\"y\"\r\n;"), Some(";")]);
}

#[test]
fn every_encoding_is_read_in_parts_of_every_size() {
    let text = "name;paid;note\nJos\u{e9};1;\u{fc}\u{df}\nx;2;\"\u{a0}\n\u{ff}\"\n";
    let expected = from_csv(&payments(), text.replace(';', ",").as_bytes()).unwrap();
    for encoding in TextEncoding::ALL {
        let written = format(";", ".", "", encoding.as_str());
        for is_big_endian in [false, true] {
            let file = encoded(text, encoding, is_big_endian);
            for part in 1..=file.len() {
                let read = read_in_parts(&payments(), &file, written, part);
                assert_eq!(read.as_ref(), Ok(&expected), "{encoding} {part}");
            }
        }
    }
}

#[test]
fn the_signs_of_windows_1252_are_read() {
    let text = "name,paid,note\n\u{20ac}\u{2019},1,\u{152}\u{178}\n";
    let file = encoded(text, TextEncoding::Windows1252, false);
    let read = read_as(&payments(), &file, format(",", ".", "", "windows-1252"));
    assert_eq!(
        read.unwrap(),
        from_csv(&payments(), text.as_bytes()).unwrap()
    );
}

#[test]
fn a_byte_order_mark_wins_over_the_encoding() {
    let text = "name,paid,note\n\u{e9},1,\u{1f60a}\n";
    let expected = from_csv(&payments(), text.as_bytes()).unwrap();
    let with_mark = format!("\u{feff}{text}").into_bytes();
    for encoding in TextEncoding::ALL {
        let written = format(",", ".", "", encoding.as_str());
        for file in [
            with_mark.clone(),
            encoded(text, TextEncoding::Utf16, false),
            encoded(text, TextEncoding::Utf16, true),
        ] {
            assert_eq!(read_as(&payments(), &file, written).unwrap(), expected);
        }
    }
}

#[test]
fn a_surrogate_pair_is_read_across_the_border_of_every_block() {
    // A block is of 32 KiB; the pair is moved over its border.
    for before in (16_384 - 30)..(16_384 + 6) {
        let text = format!("name,paid,note\n{},1,\u{1f60a}\n", "a".repeat(before - 20));
        let file = encoded(&text, TextEncoding::Utf16, false);
        let table = read_as(&payments(), &file, TextFormat::CSV).unwrap();
        assert_eq!(table.columns[2].text(0), Some("\u{1f60a}"));
    }
}

#[test]
fn undecodable_text_is_refused_with_its_line() {
    let refused = |file: &[u8], encoding| {
        let error = read_as(&payments(), file, format(",", ".", "", encoding)).unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Malformed);
        assert!(error.faults[0].suggested_fix.is_some());
        error.faults[0].line()
    };
    let single = |byte| [b"name,paid,note\na,1,x\nb,2,", &[byte][..], b"\n"].concat();
    assert_eq!(refused(&single(0x80), "iso-8859-1"), Some(3));
    assert_eq!(refused(&single(0x9F), "iso-8859-1"), Some(3));
    assert_eq!(refused(&single(0x81), "windows-1252"), Some(3));
    assert_eq!(refused(&single(0xE9), "utf-8"), Some(3));
    assert_eq!(refused(&single(b'y'), "utf-16"), Some(1));
    assert_eq!(refused(b"na\xe9me,paid,note\na,1,x\n", "utf-8"), Some(1));
    let whole = encoded("name,paid,note\na,1,x\n", TextEncoding::Utf16, false);
    for is_big_endian in [false, true] {
        let whole = encoded(
            "name,paid,note\na,1,x\n",
            TextEncoding::Utf16,
            is_big_endian,
        );
        // Half a unit at the end.
        assert_eq!(refused(&whole[..whole.len() - 1], "utf-16"), Some(2));
    }
    for unit in [0xD83D_u16, 0xDE0A] {
        // Half a pair in the middle, and at the end.
        let unit = unit.to_le_bytes();
        let at_end = [&whole[..], &unit].concat();
        assert_eq!(refused(&at_end, "utf-16"), Some(3));
        let rest = &b",\x001\x00"[..];
        assert_eq!(refused(&[&at_end, rest].concat(), "utf-16"), Some(3));
    }
}

#[test]
fn a_file_of_only_a_byte_order_mark_is_empty() {
    for mark in [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff", b""] {
        for encoding in ["utf-8", "utf-16", "iso-8859-1"] {
            let error = read_as(&payments(), mark, format(",", ".", "", encoding)).unwrap_err();
            let is_marked = !mark.is_empty();
            assert_eq!(error.kind, ReadErrorKind::Empty, "{is_marked} {encoding}");
        }
    }
}

#[test]
fn a_header_with_another_delimiter_is_fixed_by_its_name() {
    for (header, written, fix) in [
        ("name;paid;note", TextFormat::CSV, "`?delimiter=;`"),
        ("name\tpaid\tnote", TextFormat::CSV, "`?delimiter=tab`"),
        ("name,paid,note", TextFormat::TSV, "`?delimiter=,`"),
        ("name;paid, in euro;note", TextFormat::CSV, "`?delimiter=;`"),
    ] {
        let file = format!("{header}\n1;2;3\n");
        let error = read_as(&payments(), file.as_bytes(), written).unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Header);
        let found = error.faults[0].suggested_fix.as_deref().unwrap();
        assert!(found.contains(fix), "{header}: {found}");
    }
}

/// A cell of text, without what a single byte does not have.
const CELL: &str = "[a-z\u{e9}\u{fc} ,;\\.\"\n'|]{0,5}";

proptest! {
    #[test]
    fn a_table_in_a_random_format_is_read_as_the_plain_file(
        rows in prop::collection::vec(
            (CELL, any::<i32>(), prop::option::of("[0-9]{1,4}"), any::<bool>(), CELL), 1..40),
        delimiter in prop::sample::select(vec![",", ";", "tab", "|", " ", ":"]),
        decimal in prop::sample::select(vec![DecimalMark::Point, DecimalMark::Comma]),
        thousands in prop::sample::select(vec!["", ",", ".", "'", "\u{a0}", "_"]),
        encoding in prop::sample::select(TextEncoding::ALL.to_vec()),
        is_big_endian in any::<bool>(),
        part in 1..5000_usize,
    ) {
        let thousands = Some(thousands).filter(|it| *it != decimal.to_string());
        let thousands = thousands.unwrap_or("");
        let delimiter = match delimiter {
            "," if decimal == DecimalMark::Comma => ";",
            other => other,
        };
        let written = format(delimiter, &decimal.to_string(), thousands, encoding.as_str());
        let quoted = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
        let (mut plain, mut other) = ("name,paid,note\n".to_owned(), String::new());
        let mark = char::from(written.delimiter().byte());
        other.push_str(&format!("name{mark}paid{mark}note\n"));
        for (name, whole, fraction, is_grouped, note) in &rows {
            let (name, note) = (quoted(name), quoted(note));
            let fraction = |mark: &str| {
                fraction.as_ref().map_or(String::new(), |digits| format!("{mark}{digits}"))
            };
            plain.push_str(&format!("{name},{whole}{},{note}\n", fraction(".")));
            let digits = whole.unsigned_abs().to_string();
            let mut number = if *whole < 0 { "-".to_owned() } else { String::new() };
            for (at, digit) in digits.char_indices() {
                if *is_grouped && at > 0 && (digits.len() - at).is_multiple_of(3) {
                    number.push_str(thousands);
                }
                number.push(digit);
            }
            number.push_str(&fraction(&decimal.to_string()));
            other.push_str(&format!("{name}{mark}{}{mark}{note}\r\n", quoted(&number)));
        }
        let expected = from_csv(&payments(), plain.as_bytes());
        let file = encoded(&other, encoding, is_big_endian);
        prop_assert_eq!(read_in_parts(&payments(), &file, written, part), expected);
    }

    #[test]
    fn no_bytes_make_the_reader_fail_in_another_way(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        encoding in prop::sample::select(TextEncoding::ALL.to_vec()),
        mark in prop::sample::select(vec![&b""[..], b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"]),
    ) {
        let file = [mark, &bytes].concat();
        let refused = read_as(&payments(), &file, format(";", ",", ".", encoding.as_str()));
        prop_assert!(refused.is_err());
    }
}
