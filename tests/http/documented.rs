//! Compares every answer that a test gets with the OpenAPI document.

use std::sync::LazyLock;

use reqwest::Method;
use serde_json::Value;

use crate::app::Answer;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&pais::api::document_text().unwrap()).unwrap());

/// The operation of a method and a path, or `None` if the document does not have it.
fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let segments: Vec<&str> = path.split('/').collect();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let is_of = |template: &str| {
        let template: Vec<&str> = template.split('/').collect();
        let pairs = || template.iter().zip(&segments);
        template.len() == segments.len()
            && pairs().all(|(expected, found)| expected == found || expected.starts_with('{'))
    };
    let (_, item) = paths.iter().find(|(template, _)| is_of(template))?;
    // HEAD is answered like GET, without a body.
    let method = match method.as_str() {
        "HEAD" => "get".to_owned(),
        method => method.to_ascii_lowercase(),
    };
    item.get(method)
}

/// Panics if the document has no such answer for its operation, or another schema.
#[track_caller]
pub(crate) fn check(method: &Method, path: &str, answer: &Answer) {
    let Some(operation) = operation(method, path) else {
        return;
    };
    let status = answer.status.as_str();
    let documented = &operation["responses"][status];
    assert!(
        documented.is_object(),
        "{method} {path}: the document has no status {status}: {}",
        answer.text
    );
    if method == Method::HEAD || answer.bytes.is_empty() {
        return;
    }
    let media_type = answer.headers["content-type"].to_str().unwrap();
    let content = &documented["content"][media_type.split("; charset").next().unwrap()];
    assert!(
        content.is_object(),
        "{method} {path}: the document has no {media_type} for {status}"
    );
    let encoded = answer.headers.contains_key("content-encoding");
    if !encoded && (media_type == "application/json" || media_type.ends_with("+json")) {
        let body: Value = serde_json::from_slice(&answer.bytes).unwrap();
        if let Err(error) = matches_schema(&content["schema"], &body, "", false) {
            panic!("{method} {path}: {status} is not as documented: {error}\n{body}");
        }
    }
}

/// Words of parsers, which say nothing to a user.
const OF_PARSERS: [&str; 7] = [
    "trailing characters",
    "did not match",
    "OffsetDateTime",
    "formatted UUID",
    "expected enum",
    "expected struct",
    "untagged",
];

/// Panics if a pointer of a problem names a place that the body does not have, or a message is one of a parser. What is
/// missing has its place in an object that is there, or is an object that a document may leave out.
#[track_caller]
pub(crate) fn check_problem(sent: Option<&Value>, answer: &Answer) {
    if !answer.status.is_client_error() {
        return;
    }
    let problem: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
    for fault in problem["errors"].as_array().into_iter().flatten() {
        let (Some(pointer), Some(sent)) = (fault["pointer"].as_str(), sent) else {
            continue;
        };
        let above = |pointer: &'_ str| pointer.rfind('/').unwrap_or(0);
        let parent = &pointer[..above(pointer)];
        let object = &parent[..above(parent)];
        assert!(
            sent.pointer(object).is_some(),
            "the body has nothing at {pointer}: {problem}\n{sent}"
        );
    }
    let is_there = |word: &&&str| answer.text.contains(**word);
    assert_eq!(OF_PARSERS.iter().find(is_there), None, "{problem}");
}

/// Whether a value matches a schema, limited to what the document uses: references, types, fields,
/// enumerations and alternatives. `open` permits unknown fields: a part of an `allOf` does not have
/// the fields of the other parts. The error says where the value differs.
fn matches_schema(schema: &Value, value: &Value, at: &str, open: bool) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = DOCUMENT.pointer(reference.trim_start_matches('#'));
        return matches_schema(target.expect("the target of a reference"), value, at, open);
    }
    for alternatives in ["oneOf", "anyOf"] {
        if let Some(schemas) = schema[alternatives].as_array() {
            let one = schemas
                .iter()
                .any(|schema| matches_schema(schema, value, at, open).is_ok());
            return one
                .then_some(())
                .ok_or(format!("{at}: matches no alternative"));
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        matches_schema(part, value, at, true)?;
    }
    let types = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &&str| match *name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{at}: unknown type {other}"),
    };
    if !types.is_empty() && !types.iter().any(is) {
        return Err(format!("{at}: expected {}", types.join(" or ")));
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(value)
    {
        return Err(format!("{at}: is not a value of the enumeration"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        matches_schema(&schema["items"], item, &format!("{at}/{index}"), false)?;
    }
    let Some(fields) = value.as_object() else {
        return Ok(());
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        if !fields.contains_key(name) {
            return Err(format!("{at}: the field {name} is missing"));
        }
    }
    let known = schema["properties"].as_object();
    for (name, field) in fields {
        let at = format!("{at}/{name}");
        let property = known.and_then(|known| known.get(name));
        match property.or(schema.get("additionalProperties")) {
            Some(Value::Bool(_)) => {}
            Some(schema) => matches_schema(schema, field, &at, false)?,
            None if known.is_some() && !open => return Err(format!("{at}: is not documented")),
            None => {}
        }
    }
    Ok(())
}
