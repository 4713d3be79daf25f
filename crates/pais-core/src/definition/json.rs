//! Parsing of JSON bodies, with a pointer to the value that is invalid.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_path_to_error::Segment;

use super::objects::Objects;
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
    /// A number is not in the range of its field.
    Range,
}

/// Why a JSON document is refused; a pointer where it is of the wrong shape.
pub type DocumentError = Rejection<DocumentErrorKind>;

/// Parses a body of the documented shape.
///
/// # Errors
/// [`DocumentErrorKind::Syntax`] for what is not JSON, [`DocumentErrorKind::Text`] for NUL in a
/// text, [`DocumentErrorKind::Shape`] and [`DocumentErrorKind::Range`] with a pointer for the rest.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, DocumentError> {
    if has_nul(body) {
        return Err(DocumentError::new(
            DocumentErrorKind::Text,
            "the body has a text with the character NUL (`\\u0000`), remove it",
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let objects = Objects(&mut deserializer);
    let value = serde_path_to_error::deserialize(objects).map_err(|error| {
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

/// Why a body is refused. If it is a list instead of an object, or the parser found a fault in it, the whole
/// body is parsed to decide whether it is JSON: the parser also reports a number in place of a string as a
/// fault.
fn document_error(body: &[u8], error: serde_json::Error, pointer: String) -> DocumentError {
    let is_list = body.trim_ascii_start().first() == Some(&b'[');
    let is_shape = error.classify() == Category::Data && !is_list;
    // Nothing of the body is kept: that would take 16 bytes of memory for each byte of it.
    let mut whole = serde_json::Deserializer::from_slice(body);
    let parsed = IgnoredAny::deserialize(Objects(&mut whole)).and_then(|_| whole.end());
    let syntax = match parsed {
        Err(fault) if !is_shape && fault.classify() != Category::Data => fault,
        _ => {
            let text = error.to_string();
            let reason = text
                .rsplit_once(" at line ")
                .map_or(text.as_str(), |(reason, _)| reason);
            let field = reason.strip_prefix('/').and_then(|it| it.split_once(": "));
            if let Some((field, detail)) = field {
                let pointer = format!("{pointer}/{field}");
                return DocumentError::at(DocumentErrorKind::Shape, pointer, detail);
            }
            return match out_of_range(reason) {
                Some(detail) => DocumentError::at(DocumentErrorKind::Range, pointer, detail),
                None => DocumentError::at(DocumentErrorKind::Shape, pointer, in_words(reason)),
            };
        }
    };
    let (line, column) = (syntax.line(), syntax.column());
    if syntax.to_string().starts_with("number out of range") {
        let detail =
            format!("line {line}, column {column}: the number is beyond the range of numbers");
        return DocumentError::new(DocumentErrorKind::Range, detail);
    }
    let detail = if syntax.to_string().starts_with("recursion limit exceeded") {
        format!(
            "the body is nested more than {JSON_DEPTH} levels deep; flatten it (each level of a \
             taxonomy takes two levels of JSON)"
        )
    } else {
        format!("the body is not JSON: line {line}, column {column}")
    };
    DocumentError::new(DocumentErrorKind::Syntax, detail)
}

/// For a serde message about a number of the right type that is out of its field's range: the limit that it
/// violates.
fn out_of_range(reason: &str) -> Option<&'static str> {
    let value = reason.strip_prefix("invalid value: ")?;
    let number = value
        .strip_prefix("integer `")
        .or_else(|| value.strip_prefix("floating point `"))?;
    Some(if number.starts_with('-') {
        "the number is too small"
    } else {
        "the number is too large"
    })
}

/// A serde message ("invalid type: string \"…\", expected u32") in JSON terms, with only the type of the
/// invalid value: a value that a user sent by mistake can be a patient's.
fn in_words(reason: &str) -> String {
    let kept = |prefix: &str| {
        let rest = reason.strip_prefix(prefix)?;
        let (found, expected) = rest.rsplit_once(", expected ")?;
        let kind = found.split([' ', '`', '"']).next().unwrap_or(found);
        let kind = match kind {
            "sequence" => "array",
            "map" => "object",
            "floating" => "number",
            kind => kind,
        };
        Some(format!(
            "{prefix}{kind}, expected {}",
            expected_json(expected)
        ))
    };
    if reason.starts_with("UUID parsing failed") || reason.ends_with("a formatted UUID string") {
        return "expected an id (a UUID) as the service returns it".to_owned();
    }
    let is_no_time =
        reason.starts_with("the '") && reason.ends_with("component could not be parsed");
    if is_no_time || reason.ends_with("an RFC3339-formatted `OffsetDateTime`") {
        return "expected a time, such as 2026-01-01T00:00:00Z".to_owned();
    }
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

/// The JSON term for what serde expects, which names Rust types.
fn expected_json(expected: &str) -> &str {
    match expected {
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "f32" | "f64" => "a number",
        "a map" => "an object",
        "a sequence" => "an array",
        "a boolean" => "true or false",
        _ if expected.starts_with("struct ") => "an object",
        _ if expected.starts_with("enum") => "a string",
        _ => expected,
    }
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

/// An error at a field that does not go with the others of its object. [`parse`] points to the field; `serde` itself
/// would name the object.
pub(super) fn error_at<E: serde::de::Error>(field: &str, detail: &str) -> E {
    E::custom(format_args!("/{field}: {detail}"))
}

/// Escapes a name for use as a token of an RFC 6901 pointer.
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::{DocumentErrorKind, parse};
    use crate::definition::DatasetDefinition;

    #[test]
    fn nul_is_refused() {
        let parse = |body: &[u8]| parse::<Vec<String>>(body).map_err(|error| error.kind);
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
        assert_eq!(error.detail, "invalid type: string, expected an array");
    }

    #[test]
    fn a_list_is_no_object_even_if_it_has_the_fields_in_order() {
        let error = parse::<DatasetDefinition>(br#" ["a", null, [], null, null]"#).unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Shape);
        let error = parse::<DatasetDefinition>(br#"[{"a":1,"a":2}]"#).unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Shape, "{error}");
        for body in ["[1,", &"[".repeat(200)] {
            let error = parse::<DatasetDefinition>(body.as_bytes()).unwrap_err();
            assert_eq!(error.kind, DocumentErrorKind::Syntax, "{error}");
        }
        let bodies = [
            r#"{"name":"a","columns":[["x","identifier","categorical"]]}"#,
            r#"{"name":"a","columns":[{"name":"x","role":{"identifier":null}}]}"#,
        ];
        for (body, pointer) in bodies.iter().zip(["/columns/0", "/columns/0/role"]) {
            let error = parse::<DatasetDefinition>(body.as_bytes()).unwrap_err();
            assert_eq!(error.faults[0].pointer(), Some(pointer), "{error}");
        }
    }

    #[test]
    fn a_number_beyond_all_is_out_of_range_and_not_out_of_json() {
        for body in ["1e400", "-1e400"] {
            let error = parse::<f64>(body.as_bytes()).unwrap_err();
            assert_eq!(error.kind, DocumentErrorKind::Range, "{body}: {error}");
        }
    }

    #[test]
    fn what_follows_the_document_is_refused() {
        let error = parse::<u32>(b"1 2").unwrap_err();
        assert_eq!(error.kind, DocumentErrorKind::Syntax);
    }
}
