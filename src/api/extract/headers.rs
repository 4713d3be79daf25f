//! Information from headers: the type of the body, the type that the client prefers, and its address.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use pais_io::FileFormat;
use pais_io::read::{TextFormat, TextParameters};

use crate::problem::{Code, Problem};

use super::query::refused;

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
    let (essence, parameters) = content_type(headers);
    let is_utf8 = !parameters.split(';').any(is_other_charset);
    if essence.eq_ignore_ascii_case("application/json") && is_utf8 {
        return Ok(());
    }
    Err(Problem::new(
        Code::UnsupportedMediaType,
        "send the body with `Content-Type: application/json`, in UTF-8",
    ))
}

/// The format of a body with rows. `text` has the text parameters of the request; `declared` supplies those
/// that are absent. The media type `text/tab-separated-values` and a `charset` parameter count as given.
///
/// # Errors
/// `unsupported_media_type` for any other media type, and for text in another charset than UTF-8;
/// `invalid_parameter` for text parameters that do not fit together or to the media type.
pub(crate) fn received_format(
    headers: &HeaderMap,
    text: &TextParameters,
    declared: &TextParameters,
) -> Result<FileFormat, Problem> {
    let (essence, parameters) = content_type(headers);
    if parameters.split(';').any(is_other_charset) {
        return Err(unsupported());
    }
    let [csv, ndjson, parquet] = FileFormat::RELEASED;
    let mut known = [csv, FileFormat::TSV, ndjson, parquet].into_iter();
    let format = known.find(|format| essence.eq_ignore_ascii_case(format.media_type()));
    match format.ok_or_else(unsupported)? {
        FileFormat::Text(default) => {
            let mut declared = *declared;
            if default != TextFormat::CSV {
                declared.delimiter = None;
            }
            if parameters.split(';').any(is_charset) {
                declared.encoding = None;
            }
            let format = text.or_declared(&declared).format(default);
            Ok(FileFormat::Text(format.map_err(refused)?))
        }
        format if text.is_empty() => Ok(format),
        _ => {
            let detail = "`delimiter`, `decimal`, `thousands` and `encoding` are for text/csv and \
                          text/tab-separated-values; leave them out";
            Err(Problem::new(Code::InvalidValue, detail))
        }
    }
}

fn unsupported() -> Problem {
    let known = FileFormat::RELEASED.map(FileFormat::media_type).join(", ");
    let tsv = FileFormat::TSV.media_type();
    Problem::new(
        Code::UnsupportedMediaType,
        format!(
            "send rows with a `Content-Type` of {known} or {tsv}; text in UTF-8, or in \
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

fn is_charset(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default();
    name.trim().eq_ignore_ascii_case("charset")
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

/// The index in `offered` of the media type that the client prefers; 0 if it has no preference.
///
/// # Errors
/// `not_acceptable`, with the media types that are offered.
pub(crate) fn best(headers: &HeaderMap, offered: &[&str]) -> Result<usize, Problem> {
    let mut ranges = Vec::new();
    for value in headers.get_all(header::ACCEPT) {
        let text = value.to_str().unwrap_or_default();
        ranges.extend(text.split(',').filter_map(MediaRange::parse));
    }
    if ranges.is_empty() {
        return Ok(0);
    }
    let mut best = None;
    for (index, media) in offered.iter().enumerate() {
        let weight = weight(&ranges, media);
        if weight > 0 && best.is_none_or(|(_, other)| weight > other) {
            best = Some((index, weight));
        }
    }
    let best = best.map(|(index, _)| index);
    best.ok_or_else(|| {
        let detail = format!("this is available as {}", offered.join(", "));
        Problem::new(Code::NotAcceptable, detail)
    })
}

/// One media range of `Accept`, such as `text/*;q=0.5`.
struct MediaRange {
    kind: String,
    subtype: String,
    /// The quality value, in thousandths.
    weight: u32,
}

impl MediaRange {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let weight = parts
            .filter_map(|parameter| parameter.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
            .map_or(Some(1.0), |(_, weight)| weight.trim().parse::<f64>().ok())?;
        Some(Self {
            kind: kind.to_ascii_lowercase(),
            subtype: subtype.to_ascii_lowercase(),
            weight: (weight.clamp(0.0, 1.0) * 1000.0) as u32,
        })
    }

    /// How specific the range is for a media type, 0 to 2; `None` if it does not match.
    fn specificity(&self, media: &str) -> Option<u8> {
        let (kind, subtype) = media.split_once('/')?;
        match (self.kind.as_str(), self.subtype.as_str()) {
            ("*", "*") => Some(0),
            (own, "*") if own == kind => Some(1),
            (own, other) if own == kind && other == subtype => Some(2),
            _ => None,
        }
    }
}

/// The weight of the most specific range that matches the media type; 0 if none does.
fn weight(ranges: &[MediaRange], media: &str) -> u32 {
    let matching = ranges
        .iter()
        .filter_map(|range| Some((range.specificity(media)?, range.weight)));
    matching.max().map_or(0, |(_, weight)| weight)
}

/// The header in which a proxy adds the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of the client: that of the connection or, behind a proxy, the last one that `X-Forwarded-For`
/// lists, which the proxy has added. Earlier entries are sent by the client and not trusted.
pub(crate) fn client_address(parts: &Parts, is_behind_proxy: bool) -> Option<IpAddr> {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|ConnectInfo(address)| address.ip().to_canonical());
    if !is_behind_proxy {
        return peer;
    }
    let mut lists = parts.headers.get_all(FORWARDED_FOR).iter();
    let last = lists.next_back().and_then(|list| list.to_str().ok());
    let last = last.and_then(|list| list.rsplit(',').next());
    last.and_then(|text| parse(text.trim())).or(peer)
}

/// An address, with or without a port.
fn parse(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    let address = address.or_else(|_| text.parse::<SocketAddr>().map(|it| it.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use axum::extract::ConnectInfo;
    use axum::http::{HeaderMap, HeaderValue, Request, header};
    use pais_io::FileFormat;
    use pais_io::read::{TextFormat, TextParameters};

    use crate::problem::Code;

    use super::{best, client_address, received_format};

    fn received(content_type: &'static str, text: TextParameters) -> Result<FileFormat, Code> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        let declared = TextParameters::default();
        received_format(&headers, &text, &declared).map_err(|problem| problem.code)
    }

    #[test]
    fn rows_come_in_a_known_format_and_in_utf_8() {
        let format = |content_type| received(content_type, TextParameters::default()).ok();
        let csv = Some(FileFormat::Text(TextFormat::CSV));
        assert_eq!(format("Text/CSV"), csv);
        assert_eq!(format("text/csv; header=present; charset=\"UTF-8\""), csv);
        assert_eq!(
            format("text/tab-separated-values"),
            Some(FileFormat::Text(TextFormat::TSV))
        );
        assert_eq!(format("text/csv; charset=latin1"), None);
        assert_eq!(format("application/json"), None);
        assert!(received("", TextParameters::default()).is_err());
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

    fn ask(accept: &'static str) -> Option<usize> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        best(&headers, &["text/csv", "application/x-ndjson"]).ok()
    }

    #[test]
    fn the_most_specific_range_decides() {
        assert_eq!(best(&HeaderMap::new(), &["text/csv"]), Ok(0));
        assert_eq!(ask("*/*"), Some(0));
        assert_eq!(ask("text/*"), Some(0));
        assert_eq!(ask("text/csv;q=0.1, application/*"), Some(1));
        assert_eq!(ask("text/csv;q=0, */*;q=0.5"), Some(1));
        assert_eq!(ask("application/pdf, TEXT/CSV;q=0.2"), Some(0));
        assert_eq!(ask("application/pdf"), None);
        assert_eq!(ask("text/csv;q=0"), None);
    }

    fn seen(forwarded: &[&str], is_behind_proxy: bool) -> String {
        let mut request = Request::builder();
        for value in forwarded {
            request = request.header("x-forwarded-for", *value);
        }
        let peer: SocketAddr = "[::ffff:198.51.100.7]:4711".parse().unwrap();
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(ConnectInfo(peer));
        let address: IpAddr = client_address(&parts, is_behind_proxy).unwrap();
        address.to_string()
    }

    #[test]
    fn a_header_counts_only_behind_a_proxy_and_only_the_address_that_the_proxy_added() {
        assert_eq!(seen(&[], false), "198.51.100.7");
        assert_eq!(seen(&["192.0.2.1"], false), "198.51.100.7");
        assert_eq!(seen(&["192.0.2.1"], true), "192.0.2.1");
        assert_eq!(seen(&["10.0.0.1, 192.0.2.1"], true), "192.0.2.1");
        assert_eq!(seen(&["10.0.0.1", "192.0.2.1:9"], true), "192.0.2.1");
        assert_eq!(seen(&["[2001:db8::1]:443"], true), "2001:db8::1");
        assert_eq!(seen(&["[2001:db8::1]"], true), "2001:db8::1");
        assert_eq!(seen(&["unknown"], true), "198.51.100.7");
        assert_eq!(seen(&[], true), "198.51.100.7");
    }
}
