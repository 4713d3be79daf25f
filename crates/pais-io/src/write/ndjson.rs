//! Writes released tables as NDJSON: one object per line, with its keys in the order of the
//! columns.

use std::io::{self, Write};

use pais_core::schema::items;
use pais_core::table::{Form, ReleasedColumn, ReleasedTable};
use pais_core::taxonomy::interval::number;

use crate::write::text_table::{RenderedColumn, TextTable};

/// Writes the table as NDJSON. Equal tables give equal bytes for every number of threads.
///
/// A distinct value is rendered once, together with its key; a cell costs one copy of its
/// bytes. Several threads render rows, a few blocks at a time; the calling thread writes to
/// `out`.
///
/// # Errors
/// Those of `out`.
pub fn ndjson(table: &ReleasedTable, out: &mut impl Write) -> io::Result<()> {
    ndjson_text(table).write(out)
}

pub(super) fn ndjson_text(table: &ReleasedTable) -> TextTable<'_> {
    let columns: Vec<RenderedColumn> = table
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let mut key = vec![if index == 0 { b'{' } else { b',' }];
            write_string(&mut key, &column.name);
            key.push(b':');
            RenderedColumn::new(&column.column, |out, text| {
                out.extend_from_slice(&key);
                write_value(out, column, text);
            })
        })
        .collect();
    TextTable {
        head: Vec::new(),
        end: if columns.is_empty() { b"{}\n" } else { b"}\n" },
        columns,
        rows: table.rows,
    }
}

fn write_value(out: &mut Vec<u8>, column: &ReleasedColumn, text: Option<&str>) {
    let Some(text) = text.filter(|text| !column.is_missing(text)) else {
        out.extend_from_slice(b"null");
        return;
    };
    match column.form {
        Form::Generalized | Form::Text | Form::Day | Form::Moment => write_string(out, text),
        Form::Number | Form::Integer => match json_number(text) {
            Some(number) => out.extend_from_slice(number.as_bytes()),
            None => write_string(out, text),
        },
        Form::Set { separator } => {
            out.push(b'[');
            for (index, item) in items(text, separator).enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(out, item);
            }
            out.push(b']');
        }
    }
}

/// Writes a JSON string (RFC 8259), with the required escapes.
fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// A number in JSON's syntax, without losing a digit: unchanged if JSON allows its form, else
/// without plus sign and leading zeros, and with digits around the point. `None` if the text is not
/// a number.
fn json_number(text: &str) -> Option<String> {
    number(text)?;
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let point = if decimals.is_empty() { "" } else { "." };
    Some([sign, whole, point, decimals, exponent].concat())
}

#[cfg(test)]
mod tests {
    use super::json_number;

    #[test]
    fn numbers_are_unchanged_if_json_allows_their_form() {
        for (text, expected) in [
            ("1.50", "1.50"),
            ("-0", "-0"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("1e5", "1e5"),
            ("1E+05", "1E+05"),
            ("+5", "5"),
            ("007", "7"),
            (".5", "0.5"),
            ("-.5e1", "-0.5e1"),
            ("3.", "3"),
            ("000", "0"),
        ] {
            let written = json_number(text).unwrap();
            assert_eq!(written, expected);
            let read: f64 = serde_json::from_str(&written).unwrap();
            assert_eq!(read, text.parse::<f64>().unwrap());
        }
        assert_eq!(json_number("[1,2)"), None);
    }
}
