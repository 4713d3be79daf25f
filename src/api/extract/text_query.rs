//! `?delimiter=`, `?decimal=`, `?thousands=` and `?encoding=`: how the text of a body is written.

use std::str::FromStr;

use pais_core::read::{TextFormatError, TextParameters};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::{Code, Problem};

/// How a table in text is written.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TextQuery {
    /// Between two cells: one ASCII character, or the word `tab`. A comma when omitted, a tabulator
    /// for `text/tab-separated-values`.
    #[param(pattern = "^([!#-/:-@\\[-`{-~ \\t]|tab)$")]
    pub delimiter: Option<String>,
    /// Before the fraction of a number: `.` (when omitted) or `,`.
    #[param(pattern = "^[.,]$")]
    pub decimal: Option<String>,
    /// Between groups of three digits of a number: one character that is no letter, digit, sign, quote
    /// or control character. None when omitted.
    #[param(pattern = "^[.,'_ \u{a0}\u{2019}\u{202f}]$")]
    pub thousands: Option<String>,
    /// `utf-8` (when omitted), `iso-8859-1`, `windows-1252` or `utf-16`. A byte order mark wins.
    #[param(pattern = "^(utf-8|iso-8859-1|windows-1252|utf-16)$")]
    pub encoding: Option<String>,
}

impl TextQuery {
    /// Checks each parameter.
    ///
    /// # Errors
    /// `invalid_parameter`.
    pub fn parse(&self) -> Result<TextParameters, Problem> {
        Ok(TextParameters {
            delimiter: part(self.delimiter.as_ref())?,
            decimal: part(self.decimal.as_ref())?,
            thousands: part(self.thousands.as_ref())?,
            encoding: part(self.encoding.as_ref())?,
        })
    }
}

fn part<T: FromStr<Err = TextFormatError>>(given: Option<&String>) -> Result<Option<T>, Problem> {
    given.map(|text| text.parse()).transpose().map_err(refused)
}

/// A parameter of another form, or two of them that exclude each other.
pub(super) fn refused(error: TextFormatError) -> Problem {
    let code = match error {
        TextFormatError::DelimiterIsDecimal(_) | TextFormatError::DecimalIsThousands(_) => {
            Code::InvalidValue
        }
        _ => Code::InvalidParameter,
    };
    Problem::new(code, error.to_string())
}
