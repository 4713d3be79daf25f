//! The OpenAPI document: what the routes declare, and what applies to all of them.

mod examples;
mod problems;
mod shapes;

use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use crate::problem::ProblemDocument;

/// The document without its paths.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "pais",
        description = "Privacy-aware sharing of health data: a hospital sends a table; the \
            service anonymizes it to a stated privacy model, verifies that the result meets it, \
            and hands it to the recipients who were granted it. No text of a request may have the \
            character NUL."
    ),
    components(schemas(ProblemDocument)),
    security(("token" = [])),
    tags(
        (name = "administration", description = "Organizations and their tokens"),
        (name = "datasets", description = "Taxonomies, datasets and submissions"),
        (name = "jobs", description = "Anonymization runs"),
        (name = "releases", description = "Anonymized tables and who may fetch them"),
        (name = "publications", description = "Jobs that repeat for new rows, and their editions"),
        (name = "audit", description = "Who did what"),
        (name = "operation", description = "Probes and metrics"),
    ),
)]
pub(super) struct Base;

/// Adds derived schemas and the security scheme, and to every operation the problems it may answer with, an example of its body, and its id.
pub(super) fn complete(document: &mut Document) {
    shapes::complete(document);
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token of `POST /v1/tokens`"))
        .build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    for (path, item) in &mut document.paths.paths {
        let operations = [
            &mut item.get,
            &mut item.post,
            &mut item.put,
            &mut item.delete,
            &mut item.patch,
        ];
        for operation in operations.into_iter().flatten() {
            problems::complete(path, operation);
            examples::complete(path, operation);
            let handler = operation.operation_id.take().unwrap_or_default();
            operation.operation_id = Some(operation_id(&handler, path));
        }
    }
}

/// The id of an operation. Handlers of different resources have equal names, but ids of operations
/// are unique: `create` of `/v1/datasets` is `create_datasets`.
fn operation_id(handler: &str, path: &str) -> String {
    let is_static = |segment: &&str| !segment.is_empty() && !segment.starts_with('{');
    let segment = path.rsplit('/').find(is_static);
    // Clients are generated from ids, so an id is a word.
    let segment = segment.map(|segment| segment.replace(['-', '.'], "_"));
    match segment {
        Some(segment) if !segment.starts_with(handler) => format!("{handler}_{segment}"),
        Some(segment) => segment,
        None => handler.to_owned(),
    }
}
