//! Datasets: their creation and change, their schemas and their data keys, and what their holders see.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, Postgres, Transaction};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::OrganizationId;
use crate::roles::Caller;
use crate::storage::object_stores::LocatedObject;
use pais_core::definition::{
    ColumnDefinition, DatasetDefinition, DatasetId, DatasetLocation, SubmissionId, TaxonomyId,
    TaxonomyNode, TaxonomyReference, TextFormatDefinition,
};
use pais_core::schema::Schema;
use pais_core::taxonomy::{Tree, TreeLimits};
use pais_core::warning::Warning;

use super::audit::{self, Action, NewEvent};
use super::data_key_table::LOCK_NOT_AVAILABLE;
use super::data_keys::KeyOwner;
use super::dataset_revisions::DatasetRevision;
use super::key_ring::KeyRing;
use super::legal_holds::{LegalHold, LegalHoldColumns};
use super::seal::{DataKey, SealedItem};
use super::submissions::{self, NewSubmission, SubmissionWriter, Which};
use super::{Store, StoreError, service_keys, taxonomies, token_validity, trees, violates};

/// A dataset that is not deleted, with everything that submissions and jobs need.
#[derive(Clone, Debug)]
pub struct StoredDataset {
    /// Its id.
    pub id: DatasetId,
    /// The definition as declared.
    pub definition: DatasetDefinition,
    /// The resolved schema: the columns with their trees.
    pub schema: Arc<Schema>,
    /// Its wrapped data key.
    pub wrapped_key: Vec<u8>,
    /// How often it was changed.
    pub revision: DatasetRevision,
    /// How often its columns were changed.
    pub columns_revision: DatasetRevision,
}

impl StoredDataset {
    /// Its data key.
    ///
    /// # Errors
    /// When it was wrapped with a different key-encryption key.
    pub fn open_key(&self, keys: &KeyRing) -> Result<DataKey, StoreError> {
        Ok(keys.open(self.id, &self.wrapped_key)?)
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetCreation {
    /// It is created.
    Created,
    /// Another dataset of the organization has its name.
    NameTaken,
    /// A taxonomy that it names was deleted meanwhile.
    TaxonomyDeleted,
}

/// Creates a dataset.
pub async fn create(
    store: &Store,
    keys: &KeyRing,
    by: Caller,
    new: NewDataset,
) -> Result<DatasetCreation, StoreError> {
    let mut transaction = token_validity::begin(store, by).await?;
    if !insert(store, &mut transaction, keys, by, &new).await? {
        return Ok(DatasetCreation::NameTaken);
    }
    let created = complete(store, &mut transaction, by, &new).await?;
    if created == DatasetCreation::Created {
        transaction.commit().await?;
    }
    Ok(created)
}

/// Begins a dataset with its only submission: both are stored by the commit of the writer, before which
/// [`complete_located`] has to be called. `None` if another dataset has its name.
pub(crate) async fn begin_located(
    store: &Store,
    keys: &KeyRing,
    by: Caller,
    new: &NewDataset,
    submission: NewSubmission<'_>,
) -> Result<Option<SubmissionWriter>, StoreError> {
    let mut transaction = store.begin().await?;
    if !insert(store, &mut transaction, keys, by, new).await? {
        return Ok(None);
    }
    let writer = SubmissionWriter::begin_within(store, transaction, new.id, submission);
    writer.await.map(Some)
}

/// Completes a dataset that [`begin_located`] has begun, once its rows are written: locks that others of the
/// organization wait for are taken only at the end.
pub(crate) async fn complete_located(
    store: &Store,
    writer: &mut SubmissionWriter,
    by: Caller,
    new: &NewDataset,
    objects: &[LocatedObject],
) -> Result<DatasetCreation, StoreError> {
    writer.add_objects(objects).await?;
    complete(store, &mut writer.transaction, by, new).await
}

/// Inserts a dataset without its trees. Returns whether its name is free.
async fn insert(
    store: &Store,
    transaction: &mut PgConnection,
    keys: &KeyRing,
    by: Caller,
    new: &NewDataset,
) -> Result<bool, StoreError> {
    let definition = &new.definition;
    // A dataset that is located takes its name until its rows are read: the database would wait as long.
    let is_free: bool = sqlx::query_scalar(
        "SELECT pg_try_advisory_xact_lock(hashtextextended($1::text || '/' || $2, 19))",
    )
    .bind(by.organization)
    .bind(&definition.name)
    .fetch_one(&mut *transaction)
    .await?;
    if !is_free {
        return Ok(false);
    }
    let now = store.now();
    let delete_after = definition
        .retention_days
        .map(|days| now + Duration::days(days));
    let wrapped_key = new.wrapped_key.clone();
    let wrapped_key =
        service_keys::current_wrapping(&mut *transaction, keys, new.id, wrapped_key).await?;
    let inserted = sqlx::query(
        "INSERT INTO datasets
             (id, organization_id, name, definition, created_at, delete_after, warnings)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(new.id)
    .bind(by.organization)
    .bind(&definition.name)
    .bind(Json(trees::without_trees(definition)))
    .bind(now)
    .bind(delete_after)
    .bind(Json(&new.warnings))
    .execute(&mut *transaction)
    .await;
    match inserted {
        Err(error) if violates(&error, "datasets_name") => return Ok(false),
        inserted => inserted?,
    };
    // The key is stored before the dataset: a crash in between leaves a key without a dataset.
    let stored = store.data_keys();
    stored
        .create(&mut *transaction, new.id, &wrapped_key)
        .await?;
    Ok(true)
}

/// Links a dataset that was inserted with its trees, and writes the event in the audit log.
async fn complete(
    store: &Store,
    transaction: &mut PgConnection,
    by: Caller,
    new: &NewDataset,
) -> Result<DatasetCreation, StoreError> {
    let (id, definition) = (new.id, &new.definition);
    trees::lock(&mut *transaction, by.organization).await?;
    let named: Vec<TaxonomyId> = new.trees.keys().copied().collect();
    if !taxonomies::still_exist(&mut *transaction, by.organization, &named).await? {
        return Ok(DatasetCreation::TaxonomyDeleted);
    }
    trees::link_all(
        &mut *transaction,
        by.organization,
        id,
        definition,
        &new.trees,
    )
    .await?;
    let detail = json!({ "name": definition.name, "columns": definition.columns.len() });
    let event = NewEvent::by(by, Action::DatasetCreated, id.0, detail);
    audit::record(transaction, store.now(), event).await?;
    Ok(DatasetCreation::Created)
}

/// The new state of a dataset.
#[derive(Clone, Debug)]
pub(crate) struct DatasetChange {
    /// Its id.
    pub id: DatasetId,
    /// The whole definition after the change.
    pub definition: DatasetDefinition,
    /// The taxonomies that the definition refers to by id.
    pub trees: HashMap<TaxonomyId, TaxonomyNode>,
    /// Names of the columns that change.
    pub columns: Vec<String>,
    /// The revision of the dataset that it was made from.
    pub revision: DatasetRevision,
    /// The stored submissions, whose rows fit the definition.
    pub submissions: Vec<SubmissionId>,
    /// What the holder should know about its columns.
    pub warnings: Vec<Warning>,
}

/// The result of [`change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeResult {
    /// The dataset is changed.
    Changed,
    /// The organization has no such dataset.
    NotFound,
    /// Jobs on it are queued or running.
    JobsUnderWay,
    /// Rows are being sent, or were sent or deleted since they were checked.
    RowsUnderWay,
    /// A taxonomy that it names was deleted meanwhile.
    TaxonomyDeleted,
    /// It was changed since the change was made from it.
    ChangedMeanwhile,
    /// It would be deleted immediately.
    TooOld,
}

/// Changes a dataset, unless jobs or uploads of it are in progress.
pub(crate) async fn change(
    store: &Store,
    by: Caller,
    change: DatasetChange,
) -> Result<ChangeResult, StoreError> {
    let DatasetChange {
        id,
        definition,
        trees: roots,
        columns,
        revision,
        submissions,
        warnings,
    } = change;
    let now = store.now();
    let mut transaction = token_validity::begin(store, by).await?;
    trees::lock(&mut transaction, by.organization).await?;
    let named: Vec<TaxonomyId> = roots.keys().copied().collect();
    if !taxonomies::still_exist(&mut transaction, by.organization, &named).await? {
        return Ok(ChangeResult::TaxonomyDeleted);
    }
    // An upload holds a share lock on the row until it ends; jobs are created under one too.
    let locked: Result<Option<(OffsetDateTime, DatasetRevision)>, _> = sqlx::query_as(
        "SELECT created_at, revision FROM datasets
         WHERE id = $1 AND organization_id = $2 AND deleted_at IS NULL FOR UPDATE NOWAIT",
    )
    .bind(id)
    .bind(by.organization)
    .fetch_optional(&mut *transaction)
    .await;
    let found = match locked {
        Err(sqlx::Error::Database(error))
            if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) =>
        {
            return Ok(ChangeResult::RowsUnderWay);
        }
        locked => locked?,
    };
    let Some((created_at, found)) = found else {
        return Ok(ChangeResult::NotFound);
    };
    if found != revision {
        return Ok(ChangeResult::ChangedMeanwhile);
    }
    let delete_after = definition
        .retention_days
        .map(|days| created_at + Duration::days(days));
    if delete_after.is_some_and(|at| at <= now) {
        return Ok(ChangeResult::TooOld);
    }
    let (has_jobs, stored): (bool, Vec<SubmissionId>) = sqlx::query_as(
        "SELECT EXISTS (SELECT FROM jobs WHERE dataset_id = $1
                        AND status IN ('queued', 'running')),
                ARRAY(SELECT id FROM submissions WHERE dataset_id = $1 ORDER BY id)",
    )
    .bind(id)
    .fetch_one(&mut *transaction)
    .await?;
    if has_jobs {
        return Ok(ChangeResult::JobsUnderWay);
    }
    if stored != submissions {
        return Ok(ChangeResult::RowsUnderWay);
    }
    sqlx::query(
        "UPDATE datasets SET definition = $2, delete_after = $3, warnings = $4,
                             revision = revision + 1,
                             columns_revision = columns_revision + $5
         WHERE id = $1",
    )
    .bind(id)
    .bind(Json(trees::without_trees(&definition)))
    .bind(delete_after)
    .bind(Json(&warnings))
    .bind(i32::from(!columns.is_empty()))
    .execute(&mut *transaction)
    .await?;
    trees::unlink(&mut transaction, by.organization, id).await?;
    trees::link_all(&mut transaction, by.organization, id, &definition, &roots).await?;
    let detail = json!({
        "columns": columns,
        "retention_days": definition.retention_days,
        "submission_retention_days": definition.submission_retention_days,
    });
    let event = NewEvent::by(by, Action::DatasetChanged, id.0, detail);
    audit::commit(transaction, now, event).await?;
    Ok(ChangeResult::Changed)
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
    let mut snapshot = snapshot(store).await?;
    let found: Option<(Json<DatasetDefinition>, DatasetRevision, DatasetRevision)> =
        sqlx::query_as(
            "SELECT definition, revision, columns_revision FROM datasets
             WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL",
        )
        .bind(organization)
        .bind(id)
        .fetch_optional(&mut *snapshot)
        .await?;
    let Some((Json(stored), revision, columns_revision)) = found else {
        return Ok(None);
    };
    let trees = trees::of_dataset(&mut snapshot, id).await?;
    snapshot.commit().await?;
    let wrapped_key = store
        .data_keys()
        .read(&mut *store.connection().await?, id)
        .await?;
    // Deleted since the row was read.
    let Some(wrapped_key) = wrapped_key else {
        return Ok(None);
    };
    Ok(Some(StoredDataset {
        id,
        schema: Arc::new(schema(&stored, &trees)?),
        definition: trees::declared(stored, &trees),
        wrapped_key,
        revision,
        columns_revision,
    }))
}

/// Begins a transaction that sees a dataset and its trees as of one moment: a change in between would combine the
/// definition with other trees.
async fn snapshot(store: &Store) -> Result<Transaction<'static, Postgres>, StoreError> {
    let mut transaction = store.begin().await?;
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        .execute(&mut *transaction)
        .await?;
    Ok(transaction)
}

/// Whether a dataset that is not deleted, or a submission, owns a key.
pub(super) async fn owns_key(
    connection: &mut PgConnection,
    owner: KeyOwner,
) -> Result<bool, StoreError> {
    let owns = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM datasets WHERE id = $1 AND deleted_at IS NULL)
             OR EXISTS (SELECT FROM submissions WHERE id = $1)",
    );
    Ok(owns.bind(owner).fetch_one(connection).await?)
}

/// Whether the database has or had a dataset.
pub(super) async fn has_had_any(store: &Store) -> Result<bool, StoreError> {
    let any = sqlx::query_scalar("SELECT EXISTS (SELECT FROM datasets)");
    Ok(any.fetch_one(&mut *store.connection().await?).await?)
}

/// The schema of a stored definition. It is resolved without limits, because the limits may have been lowered
/// since the definition was accepted. Columns with the same tree share it.
fn schema(stored: &DatasetDefinition, trees: &[trees::UsedTree]) -> Result<Schema, StoreError> {
    let damaged = || StoreError::Damaged("a dataset's schema");
    let limits = TreeLimits {
        leaves: usize::MAX,
        depth: usize::MAX,
    };
    // Each tree gets an id for the resolution, whether it was declared by id or inline.
    let mut definition = stored.clone();
    let mut by_id = HashMap::with_capacity(trees.len());
    for used in trees {
        let tree = Tree::new(&used.root, limits).map_err(|_| damaged())?;
        let id = TaxonomyId::new();
        by_id.insert(id, Arc::new(tree));
        for &position in &used.positions {
            let column = definition
                .columns
                .get_mut(position.cast_unsigned() as usize);
            column.ok_or_else(damaged)?.taxonomy = Some(TaxonomyReference::Id(id));
        }
    }
    Schema::resolve(&definition, limits, |id| by_id.get(&id).cloned()).map_err(|_| damaged())
}

/// Number of submissions that a dataset is shown with.
const LATEST_SUBMISSIONS: i64 = 100;

/// One batch of rows, as its dataset lists it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SubmissionSummary {
    /// Its id.
    pub id: SubmissionId,
    /// Number of records.
    pub rows: i64,
    /// Length of the decoded body.
    pub bytes: i64,
    /// Of the decoded body, hexadecimal.
    pub sha256: String,
    /// When it was complete.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// The submission that it replaced; absent if there is none, or it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<SubmissionId>,
    /// The submission that replaced it, which may have been deleted since; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<SubmissionId>,
}

/// A dataset in a list, without its columns and its submissions.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
pub struct DatasetSummary {
    /// Its id.
    pub id: DatasetId,
    /// Unique among the organization's datasets.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// Number of columns.
    pub columns: i32,
    /// Days after which the rows are deleted by themselves.
    pub retention_days: Option<i64>,
    /// When it was declared.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Number of records in all current submissions: without replaced ones.
    pub rows: i64,
    /// Number of submissions, with replaced ones.
    pub submissions: i64,
}

/// A dataset as its holder sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Dataset {
    /// Its id.
    pub id: DatasetId,
    /// Unique among the organization's datasets.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// As declared: a taxonomy that was given by id is its id.
    pub columns: Vec<ColumnDefinition>,
    /// Words for missing values in every column that declares none.
    pub missing: Option<Vec<String>>,
    /// How submissions in text are written where a request does not say.
    pub format: Option<TextFormatDefinition>,
    /// Where its rows are; null where they are sent as submissions.
    pub location: Option<DatasetLocation>,
    /// Days after which the rows are deleted by themselves.
    pub retention_days: Option<i64>,
    /// Days after its arrival when a submission is deleted automatically.
    pub submission_retention_days: Option<i64>,
    /// Why nothing of it is deleted for now; null without a legal hold.
    pub legal_hold: Option<LegalHold>,
    /// When it was declared.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Number of records in all current submissions: without replaced ones.
    pub rows: i64,
    /// The latest 100 batches, newest first; `GET /v1/datasets/{id}/submissions` lists all.
    pub submissions: Vec<SubmissionSummary>,
    /// Number of all batches, with replaced ones.
    pub submissions_total: i64,
    /// What the holder should know about its columns and its rows.
    pub warnings: Vec<Warning>,
}

/// The columns of a submission `s` that [`SubmissionRow`] has.
macro_rules! submission_columns {
    () => {
        "s.id, s.rows, s.bytes, s.sealed_sha256, s.created_at, s.replaced_by,
         (SELECT r.id FROM submissions r WHERE r.replaced_by = s.id) AS replaces"
    };
}

/// Joined to a dataset `d`: the totals of its submissions.
macro_rules! submissions {
    () => {
        "CROSS JOIN LATERAL (SELECT count(*) AS submissions,
                                    coalesce(sum(rows) FILTER (WHERE replaced_by IS NULL), 0)::bigint
                                    AS rows
                             FROM submissions WHERE dataset_id = d.id) s "
    };
}

/// The organization's datasets after `after`, oldest first, at most `limit`.
pub async fn list(
    store: &Store,
    organization: OrganizationId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<DatasetSummary>, StoreError> {
    Ok(sqlx::query_as(concat!(
        "SELECT d.id, d.name, d.description, d.columns, d.retention_days, d.created_at,
                s.submissions, s.rows
         FROM datasets d ",
        submissions!(),
        "WHERE d.organization_id = $1 AND d.deleted_at IS NULL AND ($2::uuid IS NULL OR d.id > $2)
         ORDER BY d.id LIMIT $3",
    ))
    .bind(organization)
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// A row of `datasets` with the totals of its submissions.
#[derive(FromRow)]
struct ViewedDataset {
    #[sqlx(json)]
    definition: DatasetDefinition,
    created_at: OffsetDateTime,
    #[sqlx(json)]
    warnings: Vec<Warning>,
    #[sqlx(flatten, try_from = "LegalHoldColumns")]
    legal_hold: Option<LegalHold>,
    submissions: i64,
    rows: i64,
}

/// A dataset of the organization that is not deleted; `None` if there is none.
///
/// # Errors
/// When the database fails, or a digest cannot be decrypted.
pub async fn find(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    id: DatasetId,
) -> Result<Option<Dataset>, StoreError> {
    let mut snapshot = snapshot(store).await?;
    let row: Option<ViewedDataset> = sqlx::query_as(concat!(
        "SELECT d.definition, d.created_at, d.warnings, d.legal_hold_reason, d.legal_hold_since,
                s.submissions, s.rows
         FROM datasets d ",
        submissions!(),
        "WHERE d.organization_id = $1 AND d.id = $2 AND d.deleted_at IS NULL",
    ))
    .bind(organization)
    .bind(id)
    .fetch_optional(&mut *snapshot)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let trees = trees::of_dataset(&mut snapshot, id).await?;
    let latest: Vec<SubmissionRow> = sqlx::query_as(concat!(
        "SELECT ",
        submission_columns!(),
        " FROM submissions s WHERE dataset_id = $1 ORDER BY id DESC LIMIT $2",
    ))
    .bind(id)
    .bind(LATEST_SUBMISSIONS)
    .fetch_all(&mut *snapshot)
    .await?;
    let mut warnings = row.warnings;
    warnings.extend(submissions::row_warnings(&mut snapshot, id, Which::Current).await?);
    snapshot.commit().await?;
    // Deleted since the row was read.
    let Some(key) = open_key(store, keys, id).await? else {
        return Ok(None);
    };
    let latest = latest.into_iter().map(|row| row.open(&key));
    let definition = trees::declared(row.definition, &trees);
    Ok(Some(Dataset {
        id,
        name: definition.name,
        description: definition.description,
        columns: definition.columns,
        missing: definition.missing,
        format: definition.format,
        location: definition.location,
        retention_days: definition.retention_days,
        submission_retention_days: definition.submission_retention_days,
        legal_hold: row.legal_hold,
        created_at: row.created_at,
        rows: row.rows,
        submissions: latest.collect::<Result<_, StoreError>>()?,
        submissions_total: row.submissions,
        warnings,
    }))
}

/// The submissions of a dataset after `after`, oldest first, at most `limit`; `None` if the
/// organization has no such dataset.
///
/// # Errors
/// When the database fails, or a digest cannot be decrypted.
pub async fn list_submissions(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    dataset: DatasetId,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Option<Vec<SubmissionSummary>>, StoreError> {
    let Some(key) = data_key(store, keys, organization, dataset).await? else {
        return Ok(None);
    };
    let rows: Vec<SubmissionRow> = sqlx::query_as(concat!(
        "SELECT ",
        submission_columns!(),
        " FROM submissions s
         WHERE dataset_id = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3",
    ))
    .bind(dataset)
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    let items = rows.into_iter().map(|row| row.open(&key));
    items.collect::<Result<_, _>>().map(Some)
}

/// The data key of a dataset of the organization; `None` if it has none that is not deleted.
///
/// # Errors
/// When the database fails, or the key was wrapped with a different key-encryption key.
pub(crate) async fn data_key(
    store: &Store,
    keys: &KeyRing,
    organization: OrganizationId,
    id: DatasetId,
) -> Result<Option<DataKey>, StoreError> {
    match name(store, organization, id).await? {
        Some(_) => open_key(store, keys, id).await,
        None => Ok(None),
    }
}

/// The name of a dataset of the organization; `None` if it has none that is not deleted.
pub(crate) async fn name(
    store: &Store,
    organization: OrganizationId,
    id: DatasetId,
) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT name FROM datasets
         WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL",
    )
    .bind(organization)
    .bind(id)
    .fetch_optional(&mut *store.connection().await?)
    .await?)
}

/// The data key of a dataset; `None` if it was deleted.
async fn open_key(
    store: &Store,
    keys: &KeyRing,
    dataset: DatasetId,
) -> Result<Option<DataKey>, StoreError> {
    let mut connection = store.connection().await?;
    let wrapped = store.data_keys().read(&mut *connection, dataset).await?;
    let opened = wrapped.map(|wrapped| keys.open(dataset, &wrapped));
    Ok(opened.transpose()?)
}

#[derive(FromRow)]
struct SubmissionRow {
    id: SubmissionId,
    rows: i64,
    bytes: i64,
    sealed_sha256: Vec<u8>,
    created_at: OffsetDateTime,
    replaces: Option<SubmissionId>,
    replaced_by: Option<SubmissionId>,
}

impl SubmissionRow {
    fn open(self, key: &DataKey) -> Result<SubmissionSummary, StoreError> {
        let sha256 = key.open(SealedItem::BodySha256(self.id), &self.sealed_sha256)?;
        Ok(SubmissionSummary {
            id: self.id,
            rows: self.rows,
            bytes: self.bytes,
            sha256: hex::encode(sha256),
            created_at: self.created_at,
            replaces: self.replaces,
            replaced_by: self.replaced_by,
        })
    }
}
