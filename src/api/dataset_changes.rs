//! `PATCH /v1/datasets/{id}`: changes of a dataset that do not require reading its rows again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::http::HeaderMap;
use pais_core::cancellation::Cancellation;
use pais_core::definition::{
    ColumnDefinition, ColumnRole, DatasetDefinition, DatasetId, TextFormatDefinition, json, whole,
};
use pais_core::schema::Schema;
use pais_core::schema::unfit_cells;
use pais_core::table::Table;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::db::datasets::{self, ChangeResult, Dataset, DatasetChange, StoredDataset};
use crate::db::submissions::{self, Which};
use crate::problem::{Code, Problem};

use super::datasets::{NamedTaxonomies, check_definition, get_dataset, load};
use super::error::ApiError;
use super::extract::headers::require_json;
use super::extract::{Holder, Path, WholeBody};
use super::located_datasets::taxonomy_deleted;
use super::raw_rows::{RawRows, despite_deletions, on_rows};
use super::state::CallerApp;

/// Change a dataset.
///
/// Columns change by name: roles, except to and from `identifier` and `subject`, taxonomies, words
/// for missing and ranges, as long as the stored rows fit. Releases stay; later jobs use the
/// changed columns.
#[utoipa::path(patch, path = "/v1/datasets/{id}", tag = "datasets", request_body = DatasetPatch,
    params(("id" = DatasetId, Path, description = "Its id")),
    responses((status = 200, description = "The changed dataset", body = Dataset),
        (status = 409, description = "`conflict`: the rows would have to be read again, or do not fit, or jobs or uploads of the dataset are under way, or another request changed it meanwhile"),
        (status = 422, description = "`invalid_schema`, `invalid_taxonomy`, `invalid_value`, `limit_exceeded`")))]
pub(super) async fn change(
    Holder(app): Holder,
    Path(id): Path<DatasetId>,
    headers: HeaderMap,
    body: WholeBody,
) -> Result<Json<Dataset>, ApiError> {
    require_json(&headers)?;
    body.process(async move |body| {
        let patch: DatasetPatch = json::parse(&body)?;
        let patch = Arc::new(patch);
        let change = |app| apply_patch(app, id, Arc::clone(&patch));
        let changed = despite_deletions(&app, id, change);
        Ok(Json(changed.await?))
    })
    .await
}

/// The body of `PATCH /v1/datasets/{id}`. Omitted fields stay unchanged.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatasetPatch {
    /// The columns that change, by name, each with the fields that change; null resets a field.
    #[serde(default)]
    #[schema(value_type = Option<Vec<std::collections::BTreeMap<String, Value>>>)]
    pub columns: Option<Vec<Map<String, Value>>>,
    /// Free text; null removes it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, max_length = 10000)]
    pub description: FieldPatch<String>,
    /// Days after which the raw rows are deleted; null for never.
    #[serde(default, deserialize_with = "given_days")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 36500)]
    pub retention_days: FieldPatch<i64>,
    /// Days after its arrival after which a submission is deleted, also for those that are there; null for
    /// never.
    #[serde(default, deserialize_with = "given_days")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 36500)]
    pub submission_retention_days: FieldPatch<i64>,
    /// How submissions in text are written where a request does not say; null for the default.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<TextFormatDefinition>)]
    pub format: FieldPatch<TextFormatDefinition>,
}

/// What a patch does to a field that can be null.
#[derive(Clone, Debug, Default)]
pub(crate) enum FieldPatch<T> {
    /// The patch has no such field.
    #[default]
    Keep,
    /// It is null there.
    Reset,
    /// It has a value there.
    Set(T),
}

impl<T> FieldPatch<T> {
    fn of_present(value: Option<T>) -> Self {
        value.map_or(Self::Reset, Self::Set)
    }

    fn apply(&self, field: &mut Option<T>)
    where
        T: Clone,
    {
        match self {
            Self::Keep => {}
            Self::Reset => *field = None,
            Self::Set(value) => *field = Some(value.clone()),
        }
    }
}

/// A field that is present.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<FieldPatch<T>, D::Error> {
    Option::deserialize(deserializer).map(FieldPatch::of_present)
}

/// A whole number that is present.
fn given_days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FieldPatch<i64>, D::Error> {
    whole::option(deserializer).map(FieldPatch::of_present)
}

/// A changed definition.
struct Changed {
    definition: DatasetDefinition,
    /// The place of each changed column in the definition, with its place in the patch.
    places: HashMap<usize, usize>,
}

/// Changes a dataset. Its stored rows must fit the changed columns.
///
/// # Errors
/// `not_found`; `conflict` for changes that require reading the rows again, for rows that do not fit, and while
/// jobs or uploads of the dataset are in progress; a definition that is invalid; when the database fails.
async fn apply_patch(
    app: CallerApp,
    id: DatasetId,
    patch: Arc<DatasetPatch>,
) -> Result<Dataset, ApiError> {
    let app = &app;
    let dataset = load(app, id).await?;
    let revision = dataset.revision;
    let Changed { definition, places } = changed(&dataset, &patch)?;
    check_definition(&definition, &app.limits)?;
    let taxonomies = NamedTaxonomies::load(app, &definition).await?;
    let tree = |id| taxonomies.trees.get(&id).cloned();
    let schema = Schema::resolve(&definition, app.limits.taxonomy, tree);
    let schema = schema.map_err(|error| in_patch(error.into(), &places, &patch))?;
    let stored = submissions::rows_by_submission(&app.db, id, Which::Stored).await?;
    let size = submissions::size(&app.db, id, Which::Stored).await?;
    for (&at, &place) in &places {
        let (before, after) = (&dataset.schema.columns[at], &schema.columns[at]);
        let is_other_word = before.null_word().is_some() && before.null_word() != after.null_word();
        if is_other_word && submissions::may_have_null(&app.db, id).await? {
            let pointer = format!("/columns/{place}/missing");
            let detail = "null cells are stored as the first of the column's `missing` words, so that word stays \
                          the first one: declare another dataset, and send the rows again";
            return Err(Problem::at(Code::Conflict, pointer, detail).into());
        }
    }
    if size.rows > 0 && !places.is_empty() {
        let rows = RawRows {
            which: Which::Stored,
            size,
            plans: &[],
            extra_bytes: 0,
        };
        let (schema, places) = (schema.clone(), places.clone());
        let check =
            move |_: &Arc<Schema>, table, _: &Cancellation| check_table(&schema, &places, &table);
        on_rows(app, dataset, rows, check).await?;
    }
    let change = DatasetChange {
        id,
        warnings: schema.warnings(),
        columns: places
            .keys()
            .map(|&at| definition.columns[at].name.clone())
            .collect(),
        definition,
        trees: taxonomies.roots,
        revision,
        submissions: stored.iter().map(|it| it.id).collect(),
    };
    let conflict = |detail| Err(ApiError::new(Code::Conflict, detail));
    match datasets::change(&app.db, app.caller, change).await? {
        ChangeResult::Changed => get_dataset(app, id).await,
        ChangeResult::NotFound => Err(ApiError::not_found()),
        ChangeResult::JobsUnderWay => conflict(
            "jobs of the dataset are queued or running; wait for their end, or cancel them",
        ),
        ChangeResult::RowsUnderWay => conflict(
            "rows of the dataset are being sent or deleted, or its key is rotated; try again afterwards",
        ),
        ChangeResult::TaxonomyDeleted => Err(taxonomy_deleted()),
        ChangeResult::ChangedMeanwhile => conflict(
            "the dataset was changed by another request meanwhile; look at it, and try again",
        ),
        ChangeResult::TooOld => Err(Problem::at(
            Code::InvalidValue,
            "/retention_days",
            "the dataset is older than that; delete it, or give it more days",
        )
        .into()),
    }
}

fn check_table(
    schema: &Schema,
    places: &HashMap<usize, usize>,
    table: &Table,
) -> Result<(), Problem> {
    let columns = schema.columns.iter().enumerate();
    let stored = columns.filter(|(_, column)| column.role() != ColumnRole::Identifier);
    for ((at, spec), column) in stored.zip(&table.columns) {
        let Some(place) = places.get(&at) else {
            continue;
        };
        if let Some(unfit) = unfit_cells(spec, column) {
            let detail = format!(
                "{} stored values of the column would not fit: {}",
                unfit.values, unfit.detail
            );
            return Err(Problem::at(
                Code::Conflict,
                format!("/columns/{place}"),
                detail,
            ));
        }
    }
    Ok(())
}

/// The definition after a patch.
fn changed(dataset: &StoredDataset, patch: &DatasetPatch) -> Result<Changed, Problem> {
    let mut definition = dataset.definition.clone();
    patch.description.apply(&mut definition.description);
    patch.retention_days.apply(&mut definition.retention_days);
    let days = &mut definition.submission_retention_days;
    patch.submission_retention_days.apply(days);
    patch.format.apply(&mut definition.format);
    let mut places = HashMap::new();
    let mut named = HashSet::new();
    for (place, fields) in patch.columns.iter().flatten().enumerate() {
        let pointer = |field: &str| format!("/columns/{place}/{field}");
        let name = fields.get("name").and_then(Value::as_str).ok_or_else(|| {
            let detail = "`name` is missing; name the column that changes";
            Problem::at(Code::InvalidShape, pointer("name"), detail)
        })?;
        let at = definition
            .columns
            .iter()
            .position(|column| column.name == name);
        let at = at.ok_or_else(|| {
            let detail = "the dataset has no column with this name; columns are neither added nor \
                          renamed: declare another dataset";
            Problem::at(Code::Conflict, pointer("name"), detail)
        })?;
        if !named.insert(at) {
            let detail = "the column is there twice; give all its changes together";
            return Err(Problem::at(Code::InvalidSchema, pointer("name"), detail));
        }
        let before = &definition.columns[at];
        let after = merged(before, fields, place)?;
        if after == *before {
            continue;
        }
        check_storage(before, &after, place)?;
        definition.columns[at] = after;
        places.insert(at, place);
    }
    Ok(Changed { definition, places })
}

/// A column with the fields of a patch in place of its own.
fn merged(
    column: &ColumnDefinition,
    fields: &Map<String, Value>,
    place: usize,
) -> Result<ColumnDefinition, Problem> {
    let internal = |_| Problem::new(Code::Internal, "a stored column could not be written");
    let mut all = serde_json::to_value(column).map_err(internal)?;
    for (field, value) in fields {
        all[field.as_str()] = value.clone();
    }
    let text = serde_json::to_vec(&all).map_err(internal)?;
    json::parse(&text)
        .map_err(|error| Problem::from(error).map_pointers(|it| format!("/columns/{place}{it}")))
}

/// Refuses a change of the options by which the rows were read and stored.
fn check_storage(
    before: &ColumnDefinition,
    after: &ColumnDefinition,
    place: usize,
) -> Result<(), Problem> {
    let conflict = |field: &str, detail: &str| {
        let pointer = format!("/columns/{place}/{field}");
        Err(Problem::at(Code::Conflict, pointer, detail))
    };
    for (field, changes) in [
        ("kind", before.kind != after.kind),
        ("from", before.from != after.from),
        ("separator", before.separator != after.separator),
        ("format", before.format != after.format),
    ] {
        if changes {
            let detail = format!(
                "the rows were read by the column's `{field}`, so it does not change: declare \
                 another dataset, and send the rows again"
            );
            return conflict(field, &detail);
        }
    }
    let is_of_storage = |role| matches!(role, ColumnRole::Identifier | ColumnRole::Subject);
    if is_of_storage(before.role) || is_of_storage(after.role) {
        let detail = "identifiers are not stored and subjects only as hashes, so no column becomes \
                      or ceases to be one, and they do not change: declare another dataset";
        return conflict("role", detail);
    }
    Ok(())
}

/// The problem of a definition as one of the patch. Of a field that the patch leaves as it is, it says so.
fn in_patch(problem: Problem, places: &HashMap<usize, usize>, patch: &DatasetPatch) -> Problem {
    let mut problem = problem.map_pointers(|pointer| {
        let moved = || {
            let rest = pointer.strip_prefix("/columns/")?;
            let (at, field) = rest.split_once('/')?;
            let place = places.get(&at.parse().ok()?)?;
            Some(format!("/columns/{place}/{field}"))
        };
        moved().unwrap_or_else(|| "/columns".to_owned())
    });
    for fault in &mut problem.errors {
        let kept = fault
            .pointer()
            .and_then(|pointer| kept_field(pointer, patch));
        if let Some(field) = kept {
            fault.suggested_fix = Some(format!(
                "the column has `{field}` from before; send null for it, or another value"
            ));
        }
    }
    problem
}

/// The field of a column that a pointer names and the patch does not have.
fn kept_field<'p>(pointer: &'p str, patch: &DatasetPatch) -> Option<&'p str> {
    let mut parts = pointer.strip_prefix("/columns/")?.split('/');
    let (place, field) = (parts.next()?.parse::<usize>().ok()?, parts.next()?);
    let sent = patch.columns.as_ref()?.get(place)?;
    (!sent.contains_key(field)).then_some(field)
}
