//! Suggested fixes that name a parameter of the text format. They never show a cell.

use crate::read::number_text::NumberText;
use crate::read::text_format::{DecimalMark, Delimiter, TextFormat, ThousandsMark};

/// Separators of thousands that are suggested.
const THOUSANDS: [char; 8] = [',', '.', '\'', ' ', '\u{2019}', '\u{a0}', '\u{202f}', '_'];

/// Delimiters that are suggested.
const DELIMITERS: [char; 4] = [';', '\t', '|', ','];

/// How to send a file that is not UTF-8.
pub(super) fn encoding() -> String {
    format!(
        "save the file as UTF-8, or name its encoding: {}; `iso-8859-1` and `utf-16` are known too",
        parameters(&[("encoding", "windows-1252".to_owned())])
    )
}

/// How to send a file whose header `name` is in fact several columns, divided by another character than the
/// file's delimiter; `None` if it is not.
pub(super) fn delimiter(
    format: &TextFormat,
    name: &str,
    is_only: bool,
    is_declared: impl Fn(&str) -> bool,
) -> Option<String> {
    let own = char::from(format.delimiter().byte());
    let others = DELIMITERS.into_iter().filter(|&other| other != own);
    let dividing = others.filter(|&other| {
        let is_divided = name.contains(other);
        let part = |part: &str| is_declared(part.trim().trim_matches('"'));
        is_divided && (is_only || name.split(other).any(part))
    });
    let found = dividing.max_by_key(|&other| name.matches(other).count())?;
    let found = Delimiter::new(found)?.to_string();
    Some(format!(
        "name the character between the cells: {}",
        parameters(&[("delimiter", found)])
    ))
}

/// How to send a file with a cell that is not a number in a numeric column.
///
/// `format` is that of the file; `None` where a file has none.
pub(super) fn number(cell: &str, format: Option<&TextFormat>) -> String {
    const MISSING: &str = "write the missing value as one of the column's `missing` words";
    const WORD: &str = "write a decimal number with a point, or add the word to the column's \
                        `missing`";
    const SPACES: &str = "remove the spaces around the number";
    const GREAT: &str = "write a number from -1e300 to 1e300";
    const PLAIN: &str = "write a decimal number with a point and without separators of thousands";
    let own = NumberText::of(format.unwrap_or(&TextFormat::CSV));
    if cell.is_empty() {
        return MISSING.to_owned();
    }
    if own.plain(cell.trim()).is_some() {
        let has_spaces = cell.trim().len() < cell.len();
        return if has_spaces { SPACES } else { GREAT }.to_owned();
    }
    if !is_like_number(cell) {
        return WORD.to_owned();
    }
    let Some(format) = format else {
        return PLAIN.to_owned();
    };
    if own.thousands.is_some_and(|mark| cell.contains(mark)) {
        return "write groups of three digits between the separators of thousands, and none after \
                the decimal mark"
            .to_owned();
    }
    let mut ways = Vec::new();
    for decimal in [DecimalMark::Point, DecimalMark::Comma] {
        let none = std::iter::once(None);
        let others = THOUSANDS
            .into_iter()
            .filter(|&it| it != decimal.character());
        for thousands in none.chain(others.map(Some)) {
            let way = NumberText {
                decimal: decimal.character(),
                thousands,
            };
            let is_needed = thousands.is_none_or(|mark| cell.contains(mark));
            if is_needed && way.plain(cell).is_some() {
                ways.push(Way::new(
                    format,
                    decimal,
                    thousands.and_then(ThousandsMark::new),
                ));
            }
        }
    }
    // A whole number does not show what its decimal mark is.
    let fewest = ways.iter().map(|way| way.changes).min();
    ways.retain(|way| Some(way.changes) == fewest);
    let ways: Vec<String> = ways.into_iter().map(|way| way.text).collect();
    if ways.is_empty() {
        PLAIN.to_owned()
    } else {
        ways.join("; or ")
    }
}

/// A format that reads a cell as a number.
struct Way {
    changes: usize,
    text: String,
}

impl Way {
    fn new(own: &TextFormat, decimal: DecimalMark, thousands: Option<ThousandsMark>) -> Self {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        if decimal != own.decimal() {
            names.push("the decimal mark");
            // The delimiter cannot be the decimal mark, so the file needs another one.
            if char::from(own.delimiter().byte()) == decimal.character() {
                values.push(("delimiter", ";".to_owned()));
            }
            values.push(("decimal", decimal.to_string()));
        }
        if let Some(thousands) = thousands {
            names.push("the separator of thousands");
            values.push(("thousands", thousands.to_string()));
        }
        let is_delimited_otherwise = values.iter().any(|(name, _)| *name == "delimiter");
        let otherwise = if is_delimited_otherwise {
            " and delimit the cells by another character"
        } else {
            ""
        };
        Self {
            changes: names.len(),
            text: format!(
                "name {}{otherwise}: {}",
                names.join(" and "),
                parameters(&values)
            ),
        }
    }
}

/// Whether a cell has digits, and otherwise only signs and possible separators.
fn is_like_number(cell: &str) -> bool {
    let is_part =
        |it: char| it.is_ascii_digit() || matches!(it, '+' | '-' | '\t') || THOUSANDS.contains(&it);
    cell.chars().all(is_part) && cell.bytes().any(|byte| byte.is_ascii_digit())
}

/// Parameters as HTTP and the command line take them.
fn parameters(values: &[(&str, String)]) -> String {
    let query: Vec<_> = values
        .iter()
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    let flags: Vec<_> = values
        .iter()
        .map(|(name, value)| format!("--{name} {}", quoted(value)))
        .collect();
    format!(
        "`?{}` (on the command line `{}`)",
        query.join("&"),
        flags.join(" ")
    )
}

/// A value as it is written in a query string.
fn encoded(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'!'..=b'~' if !matches!(byte, b'%' | b'&' | b'+' | b'#') => text.push(byte.into()),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// A value quoted for a shell.
fn quoted(value: &str) -> String {
    match value {
        "'" => "\"'\"".to_owned(),
        _ if value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-.,".contains(&byte)) =>
        {
            value.to_owned()
        }
        _ => format!("'{value}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::{delimiter, number};
    use crate::read::{TextEncoding, TextFormat};

    fn format(delimiter: &str, decimal: &str, thousands: Option<&str>) -> TextFormat {
        TextFormat::new(
            delimiter.parse().unwrap(),
            decimal.parse().unwrap(),
            thousands.map(|mark| mark.parse().unwrap()),
            TextEncoding::Utf8,
        )
        .unwrap()
    }

    #[test]
    fn a_number_in_another_format_is_fixed_by_the_parameter_that_reads_it() {
        let csv = TextFormat::CSV;
        let comma = format(";", ",", None);
        let semicolon = format(";", ".", None);
        for (cell, format, fixes) in [
            ("108,429.42", &csv, &["`?thousands=,`"][..]),
            ("12,345,678", &csv, &["`?thousands=,`"]),
            ("3,5", &csv, &["`?delimiter=;&decimal=,`"]),
            ("3,5", &semicolon, &["`?decimal=,`"]),
            ("1,234", &semicolon, &["`?thousands=,`", "`?decimal=,`"]),
            ("1.234,5", &semicolon, &["`?decimal=,&thousands=.`"]),
            ("1 234.5", &csv, &["`?thousands=%20`"]),
            ("1'234", &csv, &["`?thousands='`"]),
            ("1\u{202f}234,5", &comma, &["`?thousands=%E2%80%AF`"]),
            ("3.5", &comma, &["`?decimal=.`"]),
        ] {
            let fix = number(cell, Some(format));
            assert_eq!(fix.matches('?').count(), fixes.len(), "{cell}: {fix}");
            assert!(fixes.iter().all(|it| fix.contains(it)), "{cell}: {fix}");
            assert!(!fix.contains("missing") && !fix.contains(cell), "{fix}");
        }
    }

    #[test]
    fn other_cells_are_fixed_in_the_file() {
        let grouped = format(";", ",", Some("."));
        assert!(number("1.23", Some(&grouped)).contains("groups of three"));
        assert!(number("108,429.42", None).contains("without separators"));
        assert!(number("1,2.3,4", Some(&TextFormat::CSV)).contains("without separators"));
        assert!(number("unknown", Some(&TextFormat::CSV)).contains("`missing`"));
        assert!(number("", None).contains("`missing`"));
        assert!(number(" 3,5", Some(&format(";", ",", None))).contains("spaces"));
    }

    #[test]
    fn a_header_of_one_cell_is_divided_by_its_most_frequent_delimiter() {
        let named = |text: &str| matches!(text, "age" | "job");
        let fix = |name, is_only| delimiter(&TextFormat::CSV, name, is_only, named);
        assert!(fix("a;b;c|d", true).unwrap().contains("`?delimiter=;`"));
        assert!(fix("a\tb", true).unwrap().contains("`?delimiter=tab`"));
        assert!(fix("x;age", false).unwrap().contains("`?delimiter=;`"));
        assert_eq!(fix("x;y", false), None);
        assert_eq!(fix("age", true), None);
        let semicolons = format(";", ".", None);
        let fix = delimiter(&semicolons, "age,job", true, named).unwrap();
        assert!(fix.contains("`?delimiter=,`"));
    }
}
