//! JSON bodies parsed at the border, with a pointer to what does not fit.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;

use crate::rejection::Rejection;

/// Nesting that a JSON body may have; the parser refuses more.
pub const JSON_DEPTH: usize = 128;

/// Levels that a tree may have so that every document around it stays within [`JSON_DEPTH`].
pub const TREE_DEPTH: usize = 60;

/// What is wrong with a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentErrorKind {
    /// It is not JSON, or nested too deeply.
    Syntax,
    /// A text in it has the character NUL.
    Text,
    /// A field has the wrong type, is missing or is unknown, or a word is unknown.
    Shape,
}

/// Why a JSON document is refused; a pointer where it is of the wrong shape.
pub type DocumentError = Rejection<DocumentErrorKind>;

/// Parses a body of the documented shape.
///
/// # Errors
/// [`DocumentErrorKind::Syntax`] for what is not JSON, [`DocumentErrorKind::Text`] for NUL in a
/// text, [`DocumentErrorKind::Shape`] with a pointer for the rest.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, DocumentError> {
    if has_nul(body) {
        return Err(DocumentError::new(
            DocumentErrorKind::Text,
            "the body has a text with the character NUL (`\\u0000`), remove it",
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = pointer(error.path());
        problem(body, error.into_inner(), pointer)
    })?;
    deserializer
        .end()
        .map_err(|error| problem(body, error, String::new()))?;
    Ok(value)
}

/// An optional field that may be null as well as absent: either way it has its default.
///
/// # Errors
/// Those of the field's type.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether a text has an escaped NUL; JSON has no other way to write one.
fn has_nul(body: &[u8]) -> bool {
    memchr::memmem::find_iter(body, br"\u0000").any(|at| {
        let escapes = body[..at].iter().rev().take_while(|&&byte| byte == b'\\');
        escapes.count() % 2 == 0
    })
}

fn problem(body: &[u8], error: serde_json::Error, pointer: String) -> DocumentError {
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        let detail = format!(
            "the body is nested more than {JSON_DEPTH} levels deep; flatten it (a taxonomy takes \
             two levels of JSON for each of its own)"
        );
        return DocumentError::new(DocumentErrorKind::Syntax, detail);
    }
    // A number where a word is wanted is called a syntax error too. Strings must be read to tell
    // whether they are text.
    let is_json = || serde_json::from_slice::<serde_json::Value>(body).is_ok();
    match error.classify() {
        category if category == serde_json::error::Category::Data || is_json() => {
            let reason = text
                .rsplit_once(" at line ")
                .map_or(text.as_str(), |(reason, _)| reason);
            DocumentError::at(DocumentErrorKind::Shape, pointer, without_values(reason))
        }
        _ => DocumentError::new(
            DocumentErrorKind::Syntax,
            format!(
                "the body is not JSON: line {}, column {}",
                error.line(),
                error.column()
            ),
        ),
    }
}

/// serde quotes the offending value ("invalid type: string \"…\", expected u32"); a value that a
/// user sent by mistake may be a patient's, so only its type is repeated.
fn without_values(reason: &str) -> String {
    let kept = |prefix: &str| {
        let rest = reason.strip_prefix(prefix)?;
        let (found, expected) = rest.rsplit_once(", expected ")?;
        let kind = found.split([' ', '`', '"']).next().unwrap_or(found);
        Some(format!("{prefix}{kind}, expected {expected}"))
    };
    kept("invalid type: ")
        .or_else(|| kept("invalid value: "))
        .or_else(|| {
            let (_, expected) = reason
                .strip_prefix("unknown variant `")?
                .split_once("`, expected ")?;
            Some(format!("unknown word, expected {expected}"))
        })
        .unwrap_or_else(|| reason.to_owned())
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => {
                pointer.push('/');
                pointer.push_str(&escape(key));
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

/// A name as a token of an RFC 6901 pointer.
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::parse;
    use super::DocumentErrorKind;
    use crate::definition::DatasetDefinition;

    #[test]
    fn nul_is_refused() {
        let parse = |body: &[u8]| parse::<Vec<String>>(body).map_err(|error| error.kind);
        assert_eq!(parse(br#"["a\u0000"]"#), Err(DocumentErrorKind::Text));
        assert_eq!(parse(br#"["a\\\u0000"]"#), Err(DocumentErrorKind::Text));
        assert_eq!(parse(br#"["a\\u0000"]"#).unwrap(), ["a\\u0000"]);
    }

    #[test]
    fn a_wrong_type_is_named_by_its_place_and_not_by_its_value() {
        let body = br#"{"name":"a","columns":[{"name":"x","role":"identifier","kind":17}]}"#;
        let error = parse::<DatasetDefinition>(body).unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Shape);
        assert_eq!(
            error.faults[0].pointer(),
            Some("/columns/0/kind")
        );

        let body = br#"{"name":"a","columns":[{"name":"x","role":"Jane Doe"}]}"#;
        let error = parse::<DatasetDefinition>(body).unwrap_err();
        assert!(!error.detail.contains("Jane"), "{error}");
        assert_eq!(
            error.faults[0].pointer(),
            Some("/columns/0/role")
        );

        let body = br#"{"name":"Jane Doe","columns":"Jane Doe"}"#;
        let error = parse::<DatasetDefinition>(body).unwrap_err();
        assert_eq!(error.detail, "invalid type: string, expected a sequence");
    }

    #[test]
    fn what_follows_the_document_is_refused() {
        let error = parse::<u32>(b"1 2").unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Syntax);
    }
}
