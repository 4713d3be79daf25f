//! How the text of a CSV file is written: its delimiter, its numbers and its encoding.

use std::fmt;
use std::str::FromStr;

use pais_core::definition::TextFormatDefinition;
use serde::Serialize;
use serde_with::SerializeDisplay;

/// The word for the delimiter that cannot be seen.
const TAB: &str = "tab";

/// Why a text format is refused. The messages name the parameters as HTTP and the command line do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFormatError {
    /// No delimiter.
    #[error(
        "`delimiter` must be one ASCII character that is no letter, digit, quote or line end, or \
         the word `tab`"
    )]
    Delimiter,
    /// No decimal mark.
    #[error("`decimal` must be `.` or `,`")]
    Decimal,
    /// No separator of thousands.
    #[error(
        "`thousands` must be one character that is not a letter, digit, sign, quote or control \
         character"
    )]
    Thousands,
    /// No known encoding.
    #[error("`encoding` must be `utf-8`, `iso-8859-1`, `windows-1252` or `utf-16`")]
    Encoding,
    /// Cells with a fraction would be divided.
    #[error(
        "`delimiter` and `decimal` are both `{0}`; name the delimiter of the file, such as \
         `delimiter` `;`"
    )]
    DelimiterIsDecimal(char),
    /// A number could be read in two ways.
    #[error("`decimal` and `thousands` are both `{0}`; name two different characters")]
    DecimalIsThousands(char),
}

impl TextFormatError {
    /// The parameter with an invalid value; `None` for two that contradict each other.
    pub fn parameter(&self) -> Option<&'static str> {
        match self {
            Self::Delimiter => Some("delimiter"),
            Self::Decimal => Some("decimal"),
            Self::Thousands => Some("thousands"),
            Self::Encoding => Some("encoding"),
            Self::DelimiterIsDecimal(_) | Self::DecimalIsThousands(_) => None,
        }
    }
}

/// The character between two cells of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay)]
pub struct Delimiter(u8);

impl Delimiter {
    /// `,`
    pub const COMMA: Self = Self(b',');
    /// The tabulator.
    pub const TAB: Self = Self(b'\t');

    /// The delimiter with this character; `None` for one that cannot be distinguished from cells: a letter, a
    /// digit, a quote, a control character other than the tabulator, or one that is not ASCII.
    pub fn new(character: char) -> Option<Self> {
        let byte = u8::try_from(character).ok()?;
        let is_visible = byte.is_ascii_punctuation() && byte != b'"';
        (is_visible || matches!(byte, b' ' | b'\t')).then_some(Self(byte))
    }

    /// The character, which is ASCII.
    pub(crate) fn byte(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b'\t' => f.write_str(TAB),
            byte => write!(f, "{}", char::from(byte)),
        }
    }
}

impl FromStr for Delimiter {
    type Err = TextFormatError;

    fn from_str(text: &str) -> Result<Self, TextFormatError> {
        if text.eq_ignore_ascii_case(TAB) {
            return Ok(Self::TAB);
        }
        let found = single(text).and_then(Self::new);
        found.ok_or(TextFormatError::Delimiter)
    }
}

/// The character between a whole number and its fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SerializeDisplay)]
pub enum DecimalMark {
    /// `.`
    #[default]
    Point,
    /// `,`
    Comma,
}

impl DecimalMark {
    /// The character.
    pub(crate) fn character(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }
}

impl fmt::Display for DecimalMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.character())
    }
}

impl FromStr for DecimalMark {
    type Err = TextFormatError;

    fn from_str(text: &str) -> Result<Self, TextFormatError> {
        match text {
            "." => Ok(Self::Point),
            "," => Ok(Self::Comma),
            _ => Err(TextFormatError::Decimal),
        }
    }
}

/// The character between groups of three digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay)]
pub struct ThousandsMark(char);

impl ThousandsMark {
    /// The separator with this character; `None` for one that is part of a number or of the syntax
    /// of CSV.
    pub fn new(character: char) -> Option<Self> {
        let is_taken = character.is_alphanumeric()
            || character.is_control()
            || matches!(character, '+' | '-' | '"' | '\u{feff}');
        (!is_taken).then_some(Self(character))
    }

    /// The character.
    pub(crate) fn character(self) -> char {
        self.0
    }
}

impl fmt::Display for ThousandsMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for ThousandsMark {
    type Err = TextFormatError;

    fn from_str(text: &str) -> Result<Self, TextFormatError> {
        let found = single(text).and_then(Self::new);
        found.ok_or(TextFormatError::Thousands)
    }
}

/// How characters are bytes. A byte order mark at the start of a file takes precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SerializeDisplay)]
pub enum TextEncoding {
    /// UTF-8.
    #[default]
    Utf8,
    /// Latin-1. Its control characters 0x80 to 0x9F are refused: they are letters and signs of
    /// Windows-1252.
    Iso8859_1,
    /// The Western European code page of Windows.
    Windows1252,
    /// UTF-16 with a byte order mark.
    Utf16,
}

impl TextEncoding {
    /// All encodings, the default first.
    pub const ALL: [Self; 4] = [Self::Utf8, Self::Iso8859_1, Self::Windows1252, Self::Utf16];

    /// The name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Iso8859_1 => "iso-8859-1",
            Self::Windows1252 => "windows-1252",
            Self::Utf16 => "utf-16",
        }
    }
}

impl fmt::Display for TextEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TextEncoding {
    type Err = TextFormatError;

    fn from_str(text: &str) -> Result<Self, TextFormatError> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|encoding| text.eq_ignore_ascii_case(encoding.as_str()));
        found.ok_or(TextFormatError::Encoding)
    }
}

/// How the text of a CSV file is written. Its parts do not contradict each other.
///
/// The separator of thousands can be the delimiter: such numbers are in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TextFormat {
    /// Between two cells: one character or `tab`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    delimiter: Delimiter,
    /// Before the fraction of a number: `.` or `,`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    decimal: DecimalMark,
    /// Between groups of three digits: one character; null where numbers have none.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    thousands: Option<ThousandsMark>,
    /// `utf-8`, `iso-8859-1`, `windows-1252` or `utf-16`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    encoding: TextEncoding,
}

impl TextFormat {
    /// Commas, numbers with a point, UTF-8.
    pub const CSV: Self = Self::delimited(Delimiter::COMMA);

    /// Tabulators, numbers with a point, UTF-8.
    pub const TSV: Self = Self::delimited(Delimiter::TAB);

    const fn delimited(delimiter: Delimiter) -> Self {
        Self {
            delimiter,
            decimal: DecimalMark::Point,
            thousands: None,
            encoding: TextEncoding::Utf8,
        }
    }

    /// A format with these parts.
    ///
    /// # Errors
    /// [`TextFormatError`] for parts that contradict each other.
    pub fn new(
        delimiter: Delimiter,
        decimal: DecimalMark,
        thousands: Option<ThousandsMark>,
        encoding: TextEncoding,
    ) -> Result<Self, TextFormatError> {
        let mark = decimal.character();
        if char::from(delimiter.byte()) == mark {
            return Err(TextFormatError::DelimiterIsDecimal(mark));
        }
        if thousands.is_some_and(|thousands| thousands.character() == mark) {
            return Err(TextFormatError::DecimalIsThousands(mark));
        }
        Ok(Self {
            delimiter,
            decimal,
            thousands,
            encoding,
        })
    }

    /// Between two cells.
    pub fn delimiter(&self) -> Delimiter {
        self.delimiter
    }

    /// Before the fraction of a number.
    pub fn decimal(&self) -> DecimalMark {
        self.decimal
    }

    /// Between groups of three digits.
    pub fn thousands(&self) -> Option<ThousandsMark> {
        self.thousands
    }

    /// How characters are bytes.
    pub fn encoding(&self) -> TextEncoding {
        self.encoding
    }
}

impl From<TextFormat> for TextFormatDefinition {
    fn from(format: TextFormat) -> Self {
        Self {
            delimiter: Some(format.delimiter.to_string()),
            decimal: Some(format.decimal.to_string()),
            thousands: format.thousands.map(|mark| mark.to_string()),
            encoding: Some(format.encoding.to_string()),
        }
    }
}

impl Default for TextFormat {
    /// [`Self::CSV`].
    fn default() -> Self {
        Self::CSV
    }
}

/// The parameters of a text format that somebody gave; the others have their defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextParameters {
    /// Between two cells.
    pub delimiter: Option<Delimiter>,
    /// Before the fraction of a number.
    pub decimal: Option<DecimalMark>,
    /// Between groups of three digits.
    pub thousands: Option<ThousandsMark>,
    /// How characters are bytes.
    pub encoding: Option<TextEncoding>,
}

impl TextParameters {
    /// Whether none is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These parameters, completed by those that a dataset declares. The number marks
    /// belong together: if the decimal mark is given here, the declared thousands separator is ignored.
    pub fn or_declared(&self, declared: &Self) -> Self {
        let thousands = match self.decimal {
            Some(_) => self.thousands,
            None => self.thousands.or(declared.thousands),
        };
        Self {
            delimiter: self.delimiter.or(declared.delimiter),
            decimal: self.decimal.or(declared.decimal),
            thousands,
            encoding: self.encoding.or(declared.encoding),
        }
    }

    /// The format with these parameters, and those of `default` for the others.
    ///
    /// # Errors
    /// As [`TextFormat::new`].
    pub fn format(&self, default: TextFormat) -> Result<TextFormat, TextFormatError> {
        TextFormat::new(
            self.delimiter.unwrap_or(default.delimiter),
            self.decimal.unwrap_or(default.decimal),
            self.thousands.or(default.thousands),
            self.encoding.unwrap_or(default.encoding),
        )
    }
}

impl TryFrom<&TextFormatDefinition> for TextParameters {
    type Error = TextFormatError;

    /// Checks each part; [`TextParameters::format`] checks whether they contradict each other.
    fn try_from(declared: &TextFormatDefinition) -> Result<Self, TextFormatError> {
        Ok(Self {
            delimiter: part(declared.delimiter.as_deref())?,
            decimal: part(declared.decimal.as_deref())?,
            thousands: part(declared.thousands.as_deref())?,
            encoding: part(declared.encoding.as_deref())?,
        })
    }
}

fn part<T: FromStr<Err = TextFormatError>>(
    text: Option<&str>,
) -> Result<Option<T>, TextFormatError> {
    text.map(str::parse).transpose()
}

/// The only character of a text.
fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TextFormat, TextFormatError, TextParameters};

    fn parameters(
        delimiter: &str,
        decimal: &str,
        thousands: &str,
        encoding: &str,
    ) -> Result<TextParameters, TextFormatError> {
        fn part<T: std::str::FromStr>(text: &str) -> Result<Option<T>, T::Err> {
            Some(text)
                .filter(|text| !text.is_empty())
                .map(str::parse)
                .transpose()
        }
        Ok(TextParameters {
            delimiter: part(delimiter)?,
            decimal: part(decimal)?,
            thousands: part(thousands)?,
            encoding: part(encoding)?,
        })
    }

    #[test]
    fn a_format_is_written_as_the_parameters_that_make_it() {
        for (given, written) in [
            (
                ["", "", "", ""],
                json!({"delimiter": ",", "decimal": ".", "thousands": null, "encoding": "utf-8"}),
            ),
            (
                [";", ",", ".", "ISO-8859-1"],
                json!({"delimiter": ";", "decimal": ",", "thousands": ".", "encoding": "iso-8859-1"}),
            ),
            (
                ["tab", ".", "\u{202f}", "utf-16"],
                json!({"delimiter": "tab", "decimal": ".", "thousands": "\u{202f}", "encoding": "utf-16"}),
            ),
            (
                ["\t", "", "'", "windows-1252"],
                json!({"delimiter": "tab", "decimal": ".", "thousands": "'", "encoding": "windows-1252"}),
            ),
            (
                [",", "", ",", ""],
                json!({"delimiter": ",", "decimal": ".", "thousands": ",", "encoding": "utf-8"}),
            ),
        ] {
            let [delimiter, decimal, thousands, encoding] = given;
            let parameters = parameters(delimiter, decimal, thousands, encoding).unwrap();
            let format = parameters.format(TextFormat::CSV).unwrap();
            assert_eq!(serde_json::to_value(format).unwrap(), written);
        }
    }

    #[test]
    fn what_is_no_parameter_is_refused() {
        for delimiter in [
            "\"", "\n", "\r", "\0", "a", "7", ";;", "\u{e9}", "\u{a7}", "\u{7f}",
        ] {
            let refused = parameters(delimiter, "", "", "");
            assert_eq!(refused, Err(TextFormatError::Delimiter), "{delimiter:?}");
        }
        for decimal in [";", "..", "\u{66b}"] {
            let refused = parameters("", decimal, "", "");
            assert_eq!(refused, Err(TextFormatError::Decimal));
        }
        for thousands in [
            "0", "x", "-", "+", "\"", ",,", "\t", "\n", "\u{feff}", "\u{663}",
        ] {
            let refused = parameters("", "", thousands, "");
            assert_eq!(refused, Err(TextFormatError::Thousands), "{thousands:?}");
        }
        for encoding in ["latin1", "utf-32", "utf-16le"] {
            let refused = parameters("", "", "", encoding);
            assert_eq!(refused, Err(TextFormatError::Encoding));
        }
    }

    /// The declared format applies where none is given; the marks of numbers are a pair.
    #[test]
    fn a_declared_format_fills_what_is_not_said() {
        let declared = parameters(";", ",", ".", "windows-1252").unwrap();
        let filled = |delimiter, decimal, thousands, encoding| {
            let said = parameters(delimiter, decimal, thousands, encoding).unwrap();
            said.or_declared(&declared)
        };
        assert_eq!(filled("", "", "", ""), declared);
        assert_eq!(
            filled("tab", "", " ", "utf-8"),
            parameters("tab", ",", " ", "utf-8").unwrap()
        );
        assert_eq!(
            filled(",", ".", "", "utf-8"),
            parameters(",", ".", "", "utf-8").unwrap()
        );
    }

    #[test]
    fn parameters_that_contradict_each_other_are_refused() {
        let refused = |delimiter, decimal, thousands, default| {
            let parameters = parameters(delimiter, decimal, thousands, "").unwrap();
            parameters.format(default).unwrap_err()
        };
        let csv = TextFormat::CSV;
        let comma = TextFormatError::DelimiterIsDecimal(',');
        assert_eq!(refused(",", ",", "", csv), comma);
        assert_eq!(refused("", ",", "", csv), comma);
        assert_eq!(
            refused(".", "", "", csv),
            TextFormatError::DelimiterIsDecimal('.')
        );
        let same = TextFormatError::DecimalIsThousands;
        assert_eq!(refused(";", ",", ",", csv), same(','));
        assert_eq!(refused("", "", ".", csv), same('.'));
        let tsv = parameters("", ",", "", "").unwrap().format(TextFormat::TSV);
        assert_eq!(tsv.unwrap().delimiter().byte(), b'\t');
    }
}
