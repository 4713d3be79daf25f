//! `Accept`: which of the media types that can be served a client prefers.

use axum::http::{HeaderMap, header};

use crate::problem::{Code, Problem};

/// The place in `offered` of what the client prefers; the first one where it has no preference.
///
/// # Errors
/// `not_acceptable`, naming what is offered.
pub fn best(headers: &HeaderMap, offered: &[&str]) -> Result<usize, Problem> {
    let mut ranges = Vec::new();
    for value in headers.get_all(header::ACCEPT) {
        let text = value.to_str().unwrap_or_default();
        ranges.extend(text.split(',').filter_map(Range::parse));
    }
    if ranges.is_empty() {
        return Ok(0);
    }
    let mut best = None;
    for (place, media) in offered.iter().enumerate() {
        let weight = weight(&ranges, media);
        if weight > 0 && best.is_none_or(|(_, other)| weight > other) {
            best = Some((place, weight));
        }
    }
    let best = best.map(|(place, _)| place);
    best.ok_or_else(|| {
        let detail = format!("this can be served as {}", offered.join(", "));
        Problem::new(Code::NotAcceptable, detail)
    })
}

struct Range {
    kind: String,
    subtype: String,
    /// Thousandths.
    weight: u32,
}

impl Range {
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

    /// How exactly the range names a media type; `None` when it does not.
    fn exactness(&self, media: &str) -> Option<u8> {
        let (kind, subtype) = media.split_once('/')?;
        match (self.kind.as_str(), self.subtype.as_str()) {
            ("*", "*") => Some(0),
            (own, "*") if own == kind => Some(1),
            (own, other) if own == kind && other == subtype => Some(2),
            _ => None,
        }
    }
}

/// The weight of the range that names the media type most exactly.
fn weight(ranges: &[Range], media: &str) -> u32 {
    let named = ranges
        .iter()
        .filter_map(|range| Some((range.exactness(media)?, range.weight)));
    named.max().map_or(0, |(_, weight)| weight)
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
    fn the_most_exact_range_decides() {
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
