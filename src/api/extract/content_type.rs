//! `Content-Type`: what a request declares its body to be.

use axum::http::{HeaderMap, header};

use pais_core::read::{TextFormat, TextParameters};

use super::text_query;
use crate::problem::{Code, Problem};
use crate::service::table_format::{ReceivedFormat, TSV_MEDIA_TYPE, TableFormat};

/// The media type of a request's body, without parameters, in lower case. Empty if there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let (essence, _) = content_type(headers);
    essence.to_ascii_lowercase()
}

/// Requires a JSON body.
///
/// # Errors
/// `unsupported_media_type`.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    if media_type(headers) == "application/json" {
        return Ok(());
    }
    Err(Problem::new(
        Code::UnsupportedMediaType,
        "send the body with `Content-Type: application/json`",
    ))
}

/// The format of a body with rows, of which `text` says how its text is written.
///
/// # Errors
/// `unsupported_media_type` for any other media type, and for text in another charset than UTF-8;
/// `invalid_parameter` for text parameters that do not fit together or to the media type.
pub(crate) fn received_format(
    headers: &HeaderMap,
    text: &TextParameters,
) -> Result<ReceivedFormat, Problem> {
    let (essence, parameters) = content_type(headers);
    if parameters.split(';').any(is_other_charset) {
        return Err(unsupported());
    }
    let is = |media_type: &str| essence.eq_ignore_ascii_case(media_type);
    let default = if is(TSV_MEDIA_TYPE) {
        TextFormat::TSV
    } else if is(TableFormat::Csv.media_type()) {
        TextFormat::CSV
    } else {
        let format = if is(TableFormat::Ndjson.media_type()) {
            ReceivedFormat::Ndjson
        } else if is(TableFormat::Parquet.media_type()) {
            ReceivedFormat::Parquet
        } else {
            return Err(unsupported());
        };
        if !text.is_empty() {
            let detail = "`delimiter`, `decimal`, `thousands` and `encoding` are for text/csv and \
                          text/tab-separated-values; leave them out";
            return Err(Problem::new(Code::InvalidValue, detail));
        }
        return Ok(format);
    };
    let format = text.format(default).map_err(text_query::refused)?;
    Ok(ReceivedFormat::Text(format))
}

fn unsupported() -> Problem {
    let known = TableFormat::ALL.map(TableFormat::media_type).join(", ");
    Problem::new(
        Code::UnsupportedMediaType,
        format!(
            "send rows with a `Content-Type` of {known} or {TSV_MEDIA_TYPE}; text in UTF-8, or in \
             the encoding that `?encoding=` names"
        ),
    )
}

/// The media type without parameters, and its parameters.
fn content_type(headers: &HeaderMap) -> (&str, &str) {
    let value = headers.get(header::CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    (essence.trim(), parameters)
}

fn is_other_charset(parameter: &str) -> bool {
    let Some((name, value)) = parameter.trim().split_once('=') else {
        return parameter.trim().eq_ignore_ascii_case("charset");
    };
    let value = value.trim_matches('"');
    name.eq_ignore_ascii_case("charset")
        && !["utf-8", "utf8", "us-ascii"]
            .iter()
            .any(|charset| value.eq_ignore_ascii_case(charset))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};
    use pais_core::read::{TextFormat, TextParameters};

    use super::received_format;
    use crate::problem::Code;
    use crate::service::table_format::ReceivedFormat;

    fn received(content_type: &'static str, text: TextParameters) -> Result<ReceivedFormat, Code> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        received_format(&headers, &text).map_err(|problem| problem.code)
    }

    #[test]
    fn rows_come_in_a_known_format_and_in_utf_8() {
        let format = |content_type| received(content_type, TextParameters::default()).ok();
        let csv = Some(ReceivedFormat::Text(TextFormat::CSV));
        assert_eq!(format("Text/CSV"), csv);
        assert_eq!(format("text/csv; header=present; charset=\"UTF-8\""), csv);
        assert_eq!(
            format("text/tab-separated-values"),
            Some(ReceivedFormat::Text(TextFormat::TSV))
        );
        assert_eq!(format("text/csv; charset=latin1"), None);
        assert_eq!(format("application/json"), None);
        assert!(received_format(&HeaderMap::new(), &TextParameters::default()).is_err());
    }

    #[test]
    fn text_parameters_are_for_text() {
        let text = TextParameters {
            decimal: Some(",".parse().unwrap()),
            ..TextParameters::default()
        };
        assert!(received("text/tab-separated-values", text).is_ok());
        for content_type in [
            "text/csv",
            "application/x-ndjson",
            "application/vnd.apache.parquet",
        ] {
            assert_eq!(received(content_type, text), Err(Code::InvalidValue));
        }
        assert_eq!(
            received("text/plain", text),
            Err(Code::UnsupportedMediaType)
        );
    }
}
