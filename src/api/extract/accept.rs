//! `Accept`: which of the available media types a client prefers.

use axum::http::{HeaderMap, header};

use crate::problem::{Code, Problem};

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

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::best;

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
}
