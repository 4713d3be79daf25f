//! What the OpenAPI document says of an answer, held against every answer that a test gets.

use std::sync::LazyLock;

use reqwest::Method;
use serde_json::Value;

use crate::app::Answer;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&pais::http::document_text()).unwrap());

/// The operation of a path, where the document has it.
fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let segments: Vec<&str> = path.split('/').collect();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let template: Vec<&str> = template.split('/').collect();
        let pairs = || template.iter().zip(&segments);
        template.len() == segments.len()
            && pairs().all(|(said, there)| said == there || said.starts_with('{'))
    };
    let (_, item) = paths.iter().find(|(template, _)| fits(template))?;
    // HEAD answers as GET does, without a body.
    let method = match method.as_str() {
        "HEAD" => "get".to_owned(),
        method => method.to_ascii_lowercase(),
    };
    item.get(method)
}

/// Panics where the document does not know the answer, or knows it otherwise.
#[track_caller]
pub fn check(method: &Method, path: &str, answer: &Answer) {
    let Some(operation) = operation(method, path) else {
        return;
    };
    let status = answer.status.as_str();
    let said = &operation["responses"][status];
    assert!(
        said.is_object(),
        "{method} {path}: the document knows no {status}: {}",
        answer.text
    );
    if method == Method::HEAD || answer.bytes.is_empty() {
        return;
    }
    let media_type = answer.headers["content-type"].to_str().unwrap();
    let content = &said["content"][media_type.split("; charset").next().unwrap()];
    assert!(
        content.is_object(),
        "{method} {path}: the document knows no {media_type} for {status}"
    );
    let encoded = answer.headers.contains_key("content-encoding");
    if !encoded && (media_type == "application/json" || media_type.ends_with("+json")) {
        let body: Value = serde_json::from_slice(&answer.bytes).unwrap();
        if let Err(fault) = fits(&content["schema"], &body, "", false) {
            panic!("{method} {path}: {status} is not as documented: {fault}\n{body}");
        }
    }
}

/// Whether a value fits a schema, as far as the document's schemas go: references, types, fields,
/// enumerations and alternatives. A part of a whole does not know the fields of the other
/// parts: it is `open`.
fn fits(schema: &Value, value: &Value, at: &str, open: bool) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = DOCUMENT.pointer(reference.trim_start_matches('#'));
        return fits(
            target.expect("a reference that leads somewhere"),
            value,
            at,
            open,
        );
    }
    for alternatives in ["oneOf", "anyOf"] {
        if let Some(schemas) = schema[alternatives].as_array() {
            let one = schemas
                .iter()
                .any(|schema| fits(schema, value, at, open).is_ok());
            return one
                .then_some(())
                .ok_or(format!("{at}: fits no alternative"));
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        fits(part, value, at, true)?;
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
        other => panic!("{at}: what is the type {other}?"),
    };
    if !types.is_empty() && !types.iter().any(is) {
        return Err(format!("{at}: is no {}", types.join(" or ")));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{at}: is none of the words"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        fits(&schema["items"], item, &format!("{at}/{index}"), false)?;
    }
    let Some(fields) = value.as_object() else {
        return Ok(());
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        if !fields.contains_key(name) {
            return Err(format!("{at}: lacks {name}"));
        }
    }
    let known = schema["properties"].as_object();
    for (name, field) in fields {
        let at = format!("{at}/{name}");
        let property = known.and_then(|known| known.get(name));
        match property.or(schema.get("additionalProperties")) {
            Some(Value::Bool(_)) => {}
            Some(schema) => fits(schema, field, &at, false)?,
            None if known.is_some() && !open => return Err(format!("{at}: is not documented")),
            None => {}
        }
    }
    Ok(())
}
