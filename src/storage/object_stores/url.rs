//! The URLs of locations: in an unambiguous form.

/// A URL `file:///folder/…` or `s3://bucket/…`, in parts.
///
/// A part has ASCII letters, digits and `-_.=+,` only, and is neither `.` nor `..`, so that nothing has to
/// be decoded or resolved before two URLs are compared: `%`, `?`, `#`, `@`, `:` and `\` have no meaning that
/// could be read in two ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocationUrl {
    /// The scheme.
    pub(super) scheme: Scheme,
    /// For S3 the bucket first.
    pub(super) parts: Vec<String>,
}

/// Where the objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// In a directory of this machine.
    File,
    /// In a bucket.
    S3,
}

/// Maximum number of bytes of a URL.
const MOST_BYTES: usize = 1024;

impl LocationUrl {
    /// `None` if the text is not such a URL. A trailing slash is allowed.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        if url.len() > MOST_BYTES {
            return None;
        }
        let (scheme, rest) = match url.strip_prefix("file:///") {
            Some(rest) => (Scheme::File, rest),
            None => (Scheme::S3, url.strip_prefix("s3://")?),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let parts: Vec<String> = rest.split('/').map(str::to_owned).collect();
        parts
            .iter()
            .all(|part| is_plain(part))
            .then_some(Self { scheme, parts })
    }

    /// Whether it is `prefix` or below it.
    pub(super) fn is_within(&self, prefix: &Self) -> bool {
        self.scheme == prefix.scheme && self.parts.starts_with(&prefix.parts)
    }
}

/// Whether a part is unambiguous.
fn is_plain(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=+,".contains(&byte);
    !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::LocationUrl;

    #[test]
    fn a_url_has_one_reading() {
        let parse = LocationUrl::parse;
        for url in [
            "file:///data/a.parquet",
            "s3://lake",
            "s3://lake/day=2026-11-26/",
        ] {
            assert!(parse(url).is_some(), "{url}");
        }
        for url in [
            "",
            "file:///",
            "file://data/a",
            "file://localhost/data",
            "/data/a",
            "s3:///a",
            "s3://",
            "s3://lake//a",
            "s3://lake/./a",
            "s3://lake/../other",
            "file:///data/..",
            "s3://lake/%2e%2e/other",
            "s3://lake/a?versionId=1",
            "s3://lake/a#b",
            "s3://key:secret@lake/a",
            "s3://lake:9000/a",
            "https://lake/a",
            "S3://lake/a",
            "s3://lake\\a",
            "s3://lake/a b",
            "s3://lake/\u{2024}\u{2024}/a",
            "s3://lake/a\0",
        ] {
            assert_eq!(parse(url), None, "{url}");
        }
        assert_eq!(parse(&format!("s3://{}", "a".repeat(1024))), None);
    }

    #[test]
    fn a_prefix_ends_with_a_part() {
        let within = |url: &str, prefix: &str| {
            let parse = |url| LocationUrl::parse(url).unwrap();
            parse(url).is_within(&parse(prefix))
        };
        assert!(within("s3://lake/a/b", "s3://lake/a/"));
        assert!(within("s3://lake/a", "s3://lake/a"));
        assert!(!within("s3://lake/ab", "s3://lake/a"));
        assert!(!within("s3://lake", "s3://lake/a"));
        assert!(!within("file:///lake/a", "s3://lake/a"));
    }
}
