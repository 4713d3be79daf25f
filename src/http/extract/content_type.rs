//! `Content-Type`: what a request declares its body to be.

use axum::http::{HeaderMap, header};

use crate::problem::{Code, Problem};
use crate::service::table_format::TableFormat;

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

/// The format of a body with rows.
///
/// # Errors
/// `unsupported_media_type` for any other media type, and for text in another charset than UTF-8.
pub(crate) fn table_format(headers: &HeaderMap) -> Result<TableFormat, Problem> {
    let (essence, parameters) = content_type(headers);
    let has_other_charset = parameters.split(';').any(is_other_charset);
    let mut formats = TableFormat::ALL.into_iter();
    formats
        .find(|format| essence.eq_ignore_ascii_case(format.media_type()) && !has_other_charset)
        .ok_or_else(|| {
            let known = TableFormat::ALL.map(TableFormat::media_type).join(", ");
            Problem::new(
                Code::UnsupportedMediaType,
                format!("send rows with a `Content-Type` of {known}; text in UTF-8"),
            )
        })
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

    use super::table_format;
    use crate::service::table_format::TableFormat;

    #[test]
    fn rows_come_in_a_known_format_and_in_utf_8() {
        let format = |content_type: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            table_format(&headers).ok()
        };
        assert_eq!(format("Text/CSV"), Some(TableFormat::Csv));
        assert_eq!(
            format("text/csv; header=present; charset=\"UTF-8\""),
            Some(TableFormat::Csv)
        );
        assert_eq!(format("text/csv; charset=latin1"), None);
        assert_eq!(format("application/json"), None);
        assert!(table_format(&HeaderMap::new()).is_err());
    }
}
