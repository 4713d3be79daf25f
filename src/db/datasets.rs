//! Datasets: their schemas and their data keys. `super::dataset_view` is what their holders see.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::FromRow;
use sqlx::types::Json;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::ids::OrganizationId;
use crate::roles::Caller;
use pais_core::definition::{
    DatasetDefinition, DatasetId, TaxonomyId, TaxonomyNode, TaxonomyReference,
};
use pais_core::schema::Schema;
use pais_core::taxonomy::{Tree, TreeLimits};
use pais_core::warning::Warning;

use super::audit::{self, Action, NewEvent};
use super::dataset_view::Dataset;
use super::key_ring::KeyRing;
use super::{Store, StoreError, service_keys, taxonomies, trees, violates};

/// A dataset that is not deleted, with everything that submissions and jobs need.
#[derive(Clone, Debug)]
pub struct StoredDataset {
    /// Its id.
    pub id: DatasetId,
    /// Unique among its organization's datasets that are not deleted.
    pub name: String,
    /// The definition as declared.
    pub definition: DatasetDefinition,
    /// The resolved schema: the columns with their trees.
    pub schema: Arc<Schema>,
    /// Its wrapped data key, for [`super::key_ring::KeyRing::open`].
    pub wrapped_key: Vec<u8>,
    /// When it was declared.
    pub created_at: OffsetDateTime,
    /// When its rows are deleted automatically.
    pub delete_after: Option<OffsetDateTime>,
}

/// The state of a dataset that exists or existed.
#[derive(Clone, Debug)]
pub enum DatasetState {
    /// It exists.
    Live(Box<StoredDataset>),
    /// It was deleted.
    Deleted,
}

/// A dataset to be created.
#[derive(Clone, Debug)]
pub struct NewDataset {
    /// Its id.
    pub id: DatasetId,
    /// The definition as declared.
    pub definition: DatasetDefinition,
    /// The taxonomies that the definition refers to by id.
    pub trees: HashMap<TaxonomyId, TaxonomyNode>,
    /// Its wrapped data key.
    pub wrapped_key: Vec<u8>,
    /// What the holder should know about its columns.
    pub warnings: Vec<Warning>,
}

/// The result of [`create`].
#[derive(Debug)]
pub enum DatasetCreation {
    /// It is created.
    Created(Box<Dataset>),
    /// Another dataset of the organization has its name.
    NameTaken,
    /// A taxonomy that it names was deleted meanwhile.
    TaxonomyDeleted,
}

/// Creates a dataset.
///
/// # Errors
/// When the database fails.
pub async fn create(
    store: &Store,
    keys: &KeyRing,
    by: Caller,
    new: NewDataset,
) -> Result<DatasetCreation, StoreError> {
    let NewDataset {
        id,
        definition,
        trees,
        wrapped_key,
        warnings,
    } = new;
    let now = store.now();
    let delete_after = definition
        .retention_days
        .map(|days| now + Duration::days(days));
    let mut transaction = store.begin().await?;
    let wrapped_key =
        service_keys::current_wrapping(&mut transaction, keys, id, wrapped_key).await?;
    trees::lock(&mut transaction, by.organization).await?;
    let named: Vec<TaxonomyId> = trees.keys().copied().collect();
    if !taxonomies::still_exist(&mut transaction, by.organization, &named).await? {
        return Ok(DatasetCreation::TaxonomyDeleted);
    }
    let inserted = sqlx::query(
        "INSERT INTO datasets
             (id, organization_id, name, definition, created_at, delete_after, warnings)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(id)
    .bind(by.organization)
    .bind(&definition.name)
    .bind(Json(trees::without_trees(&definition)))
    .bind(now)
    .bind(delete_after)
    .bind(Json(&warnings))
    .execute(&mut *transaction)
    .await;
    match inserted {
        Err(error) if violates(&error, "datasets_name") => return Ok(DatasetCreation::NameTaken),
        inserted => inserted?,
    };
    trees::link_all(&mut transaction, by.organization, id, &definition, &trees).await?;
    // The key is there before the dataset is: a crash in between leaves a key without a dataset.
    let stored = store.data_keys();
    stored.write(&mut transaction, id, &wrapped_key).await?;
    let detail =
        serde_json::json!({ "name": definition.name, "columns": definition.columns.len() });
    let event = NewEvent::by(by, Action::DatasetCreated, id.0, detail);
    audit::record(&mut transaction, now, event).await?;
    transaction.commit().await?;
    Ok(DatasetCreation::Created(Box::new(Dataset {
        id,
        name: definition.name,
        description: definition.description,
        columns: definition.columns,
        missing: definition.missing,
        retention_days: definition.retention_days,
        submission_retention_days: definition.submission_retention_days,
        legal_hold: None,
        created_at: now,
        rows: 0,
        submissions: Vec::new(),
        submissions_total: 0,
        warnings,
    })))
}

/// A dataset of the organization that is not deleted; `None` if there is none.
///
/// # Errors
/// When the database fails, or the stored definition is damaged.
pub async fn load(
    store: &Store,
    organization: OrganizationId,
    id: DatasetId,
) -> Result<Option<StoredDataset>, StoreError> {
    Ok(match find_any(store, organization, id).await? {
        Some(DatasetState::Live(dataset)) => Some(*dataset),
        Some(DatasetState::Deleted) | None => None,
    })
}

/// A dataset of the organization, deleted or not; `None` if the organization never had it.
///
/// # Errors
/// When the database fails, or the stored definition is damaged.
pub async fn find_any(
    store: &Store,
    organization: OrganizationId,
    id: DatasetId,
) -> Result<Option<DatasetState>, StoreError> {
    // The trees first: a dataset that is deleted meanwhile is found to be deleted below.
    let trees = trees::of_dataset(store, id).await?;
    let row: Option<DatasetRow> = sqlx::query_as(
        "SELECT name, definition, created_at, delete_after FROM datasets
         WHERE organization_id = $1 AND id = $2",
    )
    .bind(organization)
    .bind(id)
    .fetch_optional(&mut *store.connection().await?)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let Some(stored) = row.definition else {
        return Ok(Some(DatasetState::Deleted));
    };
    let wrapped_key = store
        .data_keys()
        .read(&mut *store.connection().await?, id)
        .await?;
    // Deleted since the row was read.
    let Some(wrapped_key) = wrapped_key else {
        return Ok(Some(DatasetState::Deleted));
    };
    Ok(Some(DatasetState::Live(Box::new(StoredDataset {
        id,
        name: row.name,
        schema: Arc::new(schema(&stored, &trees)?),
        definition: trees::declared(stored, &trees),
        wrapped_key,
        created_at: row.created_at,
        delete_after: row.delete_after,
    }))))
}

#[derive(FromRow)]
struct DatasetRow {
    name: String,
    #[sqlx(json(nullable))]
    definition: Option<DatasetDefinition>,
    created_at: OffsetDateTime,
    delete_after: Option<OffsetDateTime>,
}

/// The datasets that are not deleted, and the submissions.
///
/// # Errors
/// When the database fails.
pub(super) async fn key_owners(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let ids = sqlx::query_scalar(
        "SELECT id FROM datasets WHERE deleted_at IS NULL
         UNION ALL SELECT id FROM submissions",
    );
    Ok(ids.fetch_all(&mut *store.connection().await?).await?)
}

/// The schema of a stored definition. It is resolved without limits, because the limits may have
/// been lowered since the definition was accepted. Columns with one tree share it.
fn schema(stored: &DatasetDefinition, trees: &[trees::UsedTree]) -> Result<Schema, StoreError> {
    let damaged = StoreError::Damaged {
        what: "a dataset's schema",
    };
    let limits = TreeLimits {
        leaves: usize::MAX,
        depth: usize::MAX,
    };
    // Each tree gets an id for the resolution, whether it was declared by id or inline.
    let mut definition = trees::without_trees(stored);
    let mut by_id = HashMap::with_capacity(trees.len());
    for used in trees {
        let Ok(tree) = Tree::new(&used.root, limits) else {
            return Err(damaged);
        };
        let id = TaxonomyId::new();
        by_id.insert(id, Arc::new(tree));
        for &position in &used.positions {
            match definition
                .columns
                .get_mut(position.cast_unsigned() as usize)
            {
                Some(column) => column.taxonomy = Some(TaxonomyReference::Id(id)),
                None => return Err(damaged),
            }
        }
    }
    Schema::resolve(&definition, limits, |id| by_id.get(&id).cloned()).map_err(|_| damaged)
}
