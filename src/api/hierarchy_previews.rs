//! `/v1/taxonomies/preview`: the hierarchy of a column over values that are not stored.

use std::borrow::Cow;

use axum::Json;
use pais_core::definition::{
    ColumnDefinition, ColumnKind, DatasetDefinition, TextFormatDefinition, whole,
};
use pais_core::schema::{CellRows, HierarchyPreview, Schema, SchemaColumn};
use pais_core::taxonomy::TreeLimits;
use pais_io::read::{DecimalMark, TextFormat, plain_number};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::{Code, Problem};

use super::datasets::{NamedTaxonomies, text_format};
use super::error::ApiError;
use super::extract::{Holder, JsonBody};
use super::large_documents::DocumentSize;
use super::state::CallerApp;

/// Maximum number of distinct values.
const MOST_VALUES: usize = 20_000;

/// Maximum product of the bytes of all values and of the longest value: a mask writes each character of a value in a
/// label as long as the longest value.
const MOST_LABEL_BYTES: usize = 8 << 20;

/// Approximate number of levels of a generated hierarchy without prefixes or masks.
const LEVELS: usize = 16;

/// A column, and values that it may have.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HierarchyPreviewRequest {
    /// The column with its hierarchy, as `POST /v1/datasets` takes it.
    pub column: ColumnDefinition,
    /// How numbers are written; with a point where it is omitted.
    #[serde(default)]
    pub format: Option<TextFormatDefinition>,
    /// The distinct cells of the column, as a file has them.
    #[schema(max_items = 20000)]
    pub values: Vec<ValueRows>,
}

/// A value, and how often it occurs.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValueRows {
    /// The cell.
    pub value: String,
    /// Number of rows that have it; 1 when omitted. Rare values and balanced ranges depend on it.
    #[serde(default, deserialize_with = "whole::option")]
    pub rows: Option<u32>,
}

/// Preview the hierarchy of a column
///
/// Returns the tree of a generated hierarchy over these values (at most 20,000 leaves), the values that the
/// column rejects, and the leaves of a given hierarchy that no value matches. The request is neither
/// stored nor logged; the only stored data read is a taxonomy that `column` names by its id. A job generates the
/// hierarchy again from all rows that it reads.
#[utoipa::path(post, path = "/v1/taxonomies/preview", tag = "datasets",
    request_body = HierarchyPreviewRequest,
    responses((status = 200, description = "The preview", body = HierarchyPreview),
        (status = 404, description = "`not_found`: no such taxonomy"),
        (status = 422, description = "`invalid_schema`, `invalid_taxonomy`, `invalid_value`, `limit_exceeded`")))]
pub(super) async fn preview(
    Holder(app): Holder,
    JsonBody(request, _memory): JsonBody<HierarchyPreviewRequest>,
) -> Result<Json<HierarchyPreview>, ApiError> {
    let HierarchyPreviewRequest {
        column,
        format,
        values,
    } = request;
    let definition = DatasetDefinition {
        name: String::new(),
        description: None,
        columns: vec![column],
        retention_days: None,
        submission_retention_days: None,
        missing: None,
        format,
        location: None,
    };
    let size = preview_size(&values)?;
    let format = text_format(&definition)?.format(TextFormat::CSV);
    let format = format.map_err(|error| Problem::of_declared_format(&error))?;
    let column = resolve(&app, &definition).await?;
    // Ranges have leaves between the values, too.
    let limits = TreeLimits {
        leaves: MOST_VALUES,
        ..app.limits.taxonomy
    };
    let work = async move || {
        let cells: Vec<CellRows<'_>> = values
            .iter()
            .map(|one| CellRows {
                cell: &one.value,
                read: read(&one.value, &column, &format),
                rows: one.rows.unwrap_or(1).into(),
            })
            .collect();
        column.preview(&cells, limits)
    };
    let preview = app.documents.process(size, work).await?;
    let refused = |detail| Problem::at(Code::InvalidTaxonomy, "/column/taxonomy", detail);
    Ok(Json(preview.map_err(refused)?))
}

/// The column with its taxonomy.
///
/// # Errors
/// For a column that is invalid, and a taxonomy that does not exist.
async fn resolve(
    app: &CallerApp,
    definition: &DatasetDefinition,
) -> Result<SchemaColumn, ApiError> {
    let taxonomies = NamedTaxonomies::load(app, definition).await?;
    let tree = |id| taxonomies.trees.get(&id).cloned();
    let schema = Schema::resolve(definition, app.limits.taxonomy, tree);
    let mut schema = schema.map_err(|error| {
        Problem::from(error).map_pointers(|it| it.replacen("/columns/0", "/column", 1))
    })?;
    schema.columns.pop().ok_or_else(ApiError::not_found)
}

/// A cell as it is read from a file in this format: a number with a point, even if numbers are written in
/// another way.
fn read<'t>(cell: &'t str, column: &SchemaColumn, format: &TextFormat) -> Option<Cow<'t, str>> {
    let is_plain = format.decimal() == DecimalMark::Point && format.thousands().is_none();
    if is_plain || column.kind() != ColumnKind::Numeric {
        return Some(Cow::Borrowed(cell));
    }
    plain_number(cell, format)
}

/// The size of the largest tree over these values.
///
/// # Errors
/// `limit_exceeded` for values that are too many or too long.
fn preview_size(values: &[ValueRows]) -> Result<DocumentSize, Problem> {
    let lengths = values.iter().map(|one| one.value.len());
    let longest = lengths.clone().max().unwrap_or(0);
    let text: usize = lengths.sum();
    let bytes = text.saturating_mul(longest);
    if values.len() > MOST_VALUES || bytes > MOST_LABEL_BYTES {
        let detail = format!(
            "the values are too many or too long for a preview, which takes {MOST_VALUES} of them and \
             {MOST_LABEL_BYTES} bytes of all times those of the longest one; send fewer"
        );
        return Err(Problem::at(Code::LimitExceeded, "/values", detail));
    }
    Ok(DocumentSize {
        bytes,
        nodes: text + LEVELS * values.len(),
    })
}
