//! The problems that an operation may answer with: those that follow from its parameters and its
//! body, in addition to those that it declares itself.

use std::collections::BTreeMap;

use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

use crate::api::error::PROBLEM_JSON;
use crate::problem::Code;

/// Adds the problems that follow from the path, the parameters and the body. A problem that the
/// operation declares itself is kept, and gets the body that all problems have.
pub(super) fn complete(path: &str, operation: &mut Operation) {
    for (status, codes) in implied_codes(path, operation) {
        let descriptions: Vec<String> = codes
            .iter()
            .map(|code| format!("`{}`: {}", code.as_str(), code.title()))
            .collect();
        operation
            .responses
            .responses
            .entry(status.to_string())
            .or_insert_with(|| {
                RefOr::T(
                    ResponseBuilder::new()
                        .description(descriptions.join("; "))
                        .build(),
                )
            });
    }
    let responses = operation.responses.responses.iter_mut();
    for (_, response) in responses.filter(|(status, _)| status.starts_with(['4', '5'])) {
        if let RefOr::T(response) = response
            && response.content.is_empty()
        {
            let schema = Ref::from_schema_name("ProblemDocument");
            let content = ContentBuilder::new().schema(Some(schema)).build();
            response
                .content
                .insert(PROBLEM_JSON.to_owned(), RefOr::T(content));
        }
    }
}

/// The codes that follow from the path, the parameters and the body, by status.
fn implied_codes(path: &str, operation: &Operation) -> BTreeMap<u16, Vec<Code>> {
    let mut codes: Vec<Code> = Vec::new();
    if path.starts_with("/v1/") {
        codes.extend([
            Code::InvalidParameter,
            Code::Unauthenticated,
            Code::Forbidden,
            Code::RequestTimeout,
            Code::TooManyRequests,
            Code::Internal,
            Code::Unavailable,
        ]);
    }
    if path.contains('{') {
        codes.push(Code::NotFound);
    }
    if path.starts_with("/v1/") {
        // Requests that only read may have to write temporary files and audit events, too.
        codes.push(Code::StorageFull);
    }
    if let Some(RefOr::T(body)) = &operation.request_body {
        let json = body.content.contains_key("application/json");
        let malformed = if json {
            Code::MalformedJson
        } else {
            Code::MalformedBody
        };
        codes.extend([
            malformed,
            Code::TooLarge,
            Code::UnsupportedMediaType,
            Code::Busy,
        ]);
        if json {
            codes.extend([Code::InvalidShape, Code::LimitExceeded]);
        }
    }
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(code);
    }
    by_status
}
