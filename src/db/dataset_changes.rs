//! Changes of a dataset's definition.

use std::collections::HashMap;

use serde_json::json;
use sqlx::types::Json;
use time::{Duration, OffsetDateTime};

use crate::roles::Caller;
use pais_core::definition::{DatasetDefinition, DatasetId, TaxonomyId, TaxonomyNode};
use pais_core::warning::Warning;

use super::audit::{self, Action, NewEvent};
use super::{Store, StoreError, trees};

/// The SQLSTATE of a row that another transaction has locked.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// A dataset as it is to become.
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
    /// Number of stored rows that fit the definition.
    pub rows: u64,
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
    /// Jobs of it are queued or running.
    JobsUnderWay,
    /// Rows are being sent, or were sent or deleted since they were checked.
    RowsUnderWay,
    /// It would be deleted at once.
    TooOld,
}

/// Changes a dataset, unless jobs or uploads of it are under way.
///
/// # Errors
/// When the database fails.
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
        rows,
        warnings,
    } = change;
    let now = store.now();
    let mut transaction = store.begin().await?;
    trees::lock(&mut transaction, by.organization).await?;
    // An upload has a share of the row until it ends; jobs are created under one too.
    let locked: Result<Option<OffsetDateTime>, _> = sqlx::query_scalar(
        "SELECT created_at FROM datasets
         WHERE id = $1 AND organization_id = $2 AND deleted_at IS NULL FOR UPDATE NOWAIT",
    )
    .bind(id)
    .bind(by.organization)
    .fetch_optional(&mut *transaction)
    .await;
    let created_at = match locked {
        Err(sqlx::Error::Database(error))
            if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) =>
        {
            return Ok(ChangeResult::RowsUnderWay);
        }
        locked => locked?,
    };
    let Some(created_at) = created_at else {
        return Ok(ChangeResult::NotFound);
    };
    let delete_after = definition
        .retention_days
        .map(|days| created_at + Duration::days(days));
    if delete_after.is_some_and(|at| at <= now) {
        return Ok(ChangeResult::TooOld);
    }
    let (has_jobs, stored_rows): (bool, i64) = sqlx::query_as(
        "SELECT EXISTS (SELECT FROM jobs WHERE dataset_id = $1
                        AND status IN ('queued', 'running')),
                (SELECT coalesce(sum(rows), 0)::bigint FROM submissions WHERE dataset_id = $1)",
    )
    .bind(id)
    .fetch_one(&mut *transaction)
    .await?;
    if has_jobs {
        return Ok(ChangeResult::JobsUnderWay);
    }
    if stored_rows.cast_unsigned() != rows {
        return Ok(ChangeResult::RowsUnderWay);
    }
    sqlx::query(
        "UPDATE datasets SET definition = $2, delete_after = $3, warnings = $4 WHERE id = $1",
    )
    .bind(id)
    .bind(Json(trees::without_trees(&definition)))
    .bind(delete_after)
    .bind(Json(&warnings))
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
    audit::record(&mut transaction, now, event).await?;
    transaction.commit().await?;
    Ok(ChangeResult::Changed)
}
