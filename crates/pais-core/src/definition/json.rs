//! Parsing of JSON bodies, with a pointer to the value that is invalid.

use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;

use crate::rejection::Rejection;

/// Maximum nesting depth of a JSON body; the parser refuses deeper bodies.
pub(crate) const JSON_DEPTH: usize = 128;

/// Maximum number of levels of a tree, so that every document that contains it stays within
/// `JSON_DEPTH`.
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

/// Parses a body of the documented shape, which is an object.
///
/// # Errors
/// [`DocumentErrorKind::Syntax`] for what is not JSON, [`DocumentErrorKind::Text`] for NUL in a
/// text, [`DocumentErrorKind::Shape`] with a pointer for the rest.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, DocumentError> {
    // A derived struct is read from a list of its fields too.
    if body.trim_ascii_start().first() == Some(&b'[') {
        return match serde_json::from_slice::<AnyJson>(body) {
            Ok(_) => Err(DocumentError::at(
                DocumentErrorKind::Shape,
                "",
                "invalid type: sequence, expected an object",
            )),
            Err(error) => Err(document_error(body, error, String::new())),
        };
    }
    parse_any(body)
}

/// Parses a body that may be a list.
///
/// # Errors
/// As [`parse`].
pub fn parse_any<T: DeserializeOwned>(body: &[u8]) -> Result<T, DocumentError> {
    if has_nul(body) {
        return Err(DocumentError::new(
            DocumentErrorKind::Text,
            "the body has a text with the character NUL (`\\u0000`), remove it",
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = pointer(error.path());
        document_error(body, error.into_inner(), pointer)
    })?;
    deserializer
        .end()
        .map_err(|error| document_error(body, error, String::new()))?;
    Ok(value)
}

/// Deserializes an optional field. Both null and an absent field give the default.
///
/// # Errors
/// Those of the field's type.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether a string has an escaped NUL; JSON has no other way to write one.
fn has_nul(body: &[u8]) -> bool {
    memchr::memmem::find_iter(body, br"\u0000").any(|at| {
        let escapes = body[..at].iter().rev().take_while(|&&byte| byte == b'\\');
        escapes.count() % 2 == 0
    })
}

fn document_error(body: &[u8], error: serde_json::Error, pointer: String) -> DocumentError {
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        let detail = format!(
            "the body is nested more than {JSON_DEPTH} levels deep; flatten it (each level of a \
             taxonomy takes two levels of JSON)"
        );
        return DocumentError::new(DocumentErrorKind::Syntax, detail);
    }
    // serde_json also reports a syntax error for a number where a string is expected. Parsing the
    // whole body decides whether it is JSON; it also checks the strings.
    let is_json = || serde_json::from_slice::<AnyJson>(body).is_ok();
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

/// Any JSON value. It is checked like [`serde_json::Value`], but not kept: that would take 16 bytes
/// of memory for each byte of the body.
struct AnyJson;

impl<'de> Deserialize<'de> for AnyJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for AnyJson {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

/// Removes the invalid value from a serde message ("invalid type: string \"…\", expected u32") and
/// keeps only its type: a value that a user sent by mistake can be a patient's.
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
            Some(format!("unknown value, expected {expected}"))
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

/// Escapes a name for use as a token of an RFC 6901 pointer.
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::{DocumentErrorKind, parse, parse_any};
    use crate::definition::DatasetDefinition;

    #[test]
    fn nul_is_refused() {
        let parse = |body: &[u8]| parse_any::<Vec<String>>(body).map_err(|error| error.kind);
        assert_eq!(parse(br#"["a\u0000"]"#), Err(DocumentErrorKind::Text));
        assert_eq!(parse(br#"["a\\\u0000"]"#), Err(DocumentErrorKind::Text));
        assert_eq!(parse(br#"["a\\u0000"]"#).unwrap(), ["a\\u0000"]);
    }

    #[test]
    fn a_wrong_type_is_reported_by_pointer_and_without_its_value() {
        let body = br#"{"name":"a","columns":[{"name":"x","role":"identifier","kind":17}]}"#;
        let error = parse::<DatasetDefinition>(body).unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Shape);
        assert_eq!(error.faults[0].pointer(), Some("/columns/0/kind"));

        let body = br#"{"name":"a","columns":[{"name":"x","role":"Jane Doe"}]}"#;
        let error = parse::<DatasetDefinition>(body).unwrap_err();
        assert!(!error.detail.contains("Jane"), "{error}");
        assert_eq!(error.faults[0].pointer(), Some("/columns/0/role"));

        let body = br#"{"name":"Jane Doe","columns":"Jane Doe"}"#;
        let error = parse::<DatasetDefinition>(body).unwrap_err();
        assert_eq!(error.detail, "invalid type: string, expected a sequence");
    }

    #[test]
    fn a_list_is_no_object_even_if_it_has_the_fields_in_order() {
        let error = parse::<DatasetDefinition>(br#" ["a", null, [], null, null]"#).unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Shape);
        let error = parse::<DatasetDefinition>(b"[1,").unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Syntax);
    }

    #[test]
    fn what_follows_the_document_is_refused() {
        let error = parse::<u32>(b"1 2").unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Syntax);
    }
}
