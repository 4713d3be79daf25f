//! Rows of an earlier version, which held in clear what is sealed now. They are sealed at the start
//! of the service, before the keys are moved out of their table, before it answers requests and before
//! its workers start.

use std::time::Duration;

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, PgConnection, Row};
use uuid::Uuid;

use crate::ids::JobId;
use crate::problem::{Code, NOT_VERIFIED};
use pais_core::definition::{DatasetId, SubmissionId};

use super::job_definition::{DefinitionAtRest, without_values};
use super::key_ring::KeyRing;
use super::runs::seal_item;
use super::seal::{DataKey, StepPlace};
use super::submissions::seal_sha256;
use super::{Store, StoreError, datasets};

/// Number of rows of a transaction.
const BATCH: i64 = 500;

/// Time between two looks at whether another transaction can still see an old version of a row.
const WAIT: Duration = Duration::from_millis(50);

/// Maximum number of these looks.
const WAITS: u32 = 100;

/// Seals what an earlier version stored in clear, adds what it did not store, and rewrites the
/// tables that it changes, so that no old version of a row is left in their files. Each transaction
/// seals some hundred rows. Returns the number of sealed rows, 0 from the second start on.
///
/// # Errors
/// When the database fails, or the key of a dataset does not open. What was sealed stays sealed, and
/// the next call continues.
pub async fn seal_old_rows(store: &Store, keys: &KeyRing) -> Result<u64, StoreError> {
    let mut sealed = 0;
    remove_reasons(store).await?;
    datasets::add_missing_warnings(store).await?;
    for table in [
        Table::IdempotentAnswers,
        Table::Submissions,
        Table::Jobs,
        Table::JobSteps,
    ] {
        let rows = table.seal(store, keys).await?;
        if rows > 0 {
            tracing::info!(
                table = table.name(),
                rows,
                "rows of an earlier version were sealed"
            );
            rewrite(store, table.name()).await?;
        }
        sealed += rows;
    }
    if sealed > 0 {
        // It has samples of the values of columns.
        rewrite(store, "pg_statistic").await?;
    }
    Ok(sealed)
}

/// A table with rows that an earlier version stored in clear.
#[derive(Clone, Copy, Debug)]
enum Table {
    IdempotentAnswers,
    Submissions,
    Jobs,
    JobSteps,
}

impl Table {
    async fn seal(self, store: &Store, keys: &KeyRing) -> Result<u64, StoreError> {
        let mut sealed = 0;
        loop {
            let mut transaction = store.begin().await?;
            let rows = sqlx::query(self.old_rows())
                .bind(BATCH)
                .fetch_all(&mut *transaction)
                .await?;
            for row in &rows {
                match self {
                    Self::IdempotentAnswers => seal_answer(&mut transaction, keys, row).await?,
                    Self::Submissions => seal_submission(&mut transaction, keys, row).await?,
                    Self::Jobs => seal_job(&mut transaction, keys, row).await?,
                    Self::JobSteps => seal_step(&mut transaction, keys, row).await?,
                }
            }
            transaction.commit().await?;
            if rows.is_empty() {
                break;
            }
            sealed += rows.len() as u64;
        }
        Ok(sealed)
    }

    /// Selects and locks up to `$1` rows.
    fn old_rows(self) -> &'static str {
        match self {
            Self::IdempotentAnswers => {
                "SELECT reservation, body_sha256, body FROM idempotent_answers
                 WHERE body IS NOT NULL LIMIT $1 FOR UPDATE"
            }
            Self::Submissions => {
                "SELECT s.id, s.dataset_id, coalesce(d.wrapped_key, k.wrapped_key) AS wrapped_key, s.sha256
                 FROM submissions s JOIN datasets d ON d.id = s.dataset_id
                 LEFT JOIN dataset_keys k ON k.dataset_id = d.id
                 WHERE s.sha256 IS NOT NULL LIMIT $1 FOR UPDATE OF s"
            }
            Self::Jobs => {
                "SELECT j.id, j.dataset_id, coalesce(d.wrapped_key, k.wrapped_key) AS wrapped_key, j.definition
                 FROM jobs j JOIN datasets d ON d.id = j.dataset_id
                 LEFT JOIN dataset_keys k ON k.dataset_id = d.id
                 WHERE jsonb_path_exists(j.definition, '$.privacy.sensitive_values.*')
                    OR jsonb_path_exists(j.definition, '$.pre_generalization.*.values')
                 LIMIT $1 FOR UPDATE OF j"
            }
            Self::JobSteps => {
                "SELECT t.job_id, t.run, t.step, t.item, j.dataset_id,
                        coalesce(d.wrapped_key, k.wrapped_key) AS wrapped_key
                 FROM job_steps t JOIN jobs j ON j.id = t.job_id
                 JOIN datasets d ON d.id = j.dataset_id
                 LEFT JOIN dataset_keys k ON k.dataset_id = d.id
                 WHERE t.item IS NOT NULL LIMIT $1 FOR UPDATE OF t"
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::IdempotentAnswers => "idempotent_answers",
            Self::Submissions => "submissions",
            Self::Jobs => "jobs",
            Self::JobSteps => "job_steps",
        }
    }
}

/// Rewrites a table without the old versions of its rows, and samples its values anew. First waits
/// until no other transaction can see an old version, because a rewrite would keep it.
async fn rewrite(store: &Store, table: &'static str) -> Result<(), StoreError> {
    for _ in 0..WAITS {
        let vacuum = AssertSqlSafe(format!("VACUUM (ANALYZE) {table}"));
        sqlx::query(vacuum).execute(store.owner()).await?;
        let old: i64 =
            sqlx::query_scalar("SELECT coalesce(pg_stat_get_dead_tuples($1::text::regclass), 0)")
                .bind(table)
                .fetch_one(store.owner())
                .await?;
        if old == 0 {
            break;
        }
        tokio::time::sleep(WAIT).await;
    }
    let full = AssertSqlSafe(format!("VACUUM (FULL) {table}"));
    sqlx::query(full).execute(store.owner()).await?;
    Ok(())
}

/// The data key of the dataset of a row; `None` if the dataset was deleted.
fn data_key(keys: &KeyRing, row: &PgRow) -> Result<Option<DataKey>, StoreError> {
    let dataset = DatasetId(row.try_get("dataset_id")?);
    let wrapped: Option<&[u8]> = row.try_get("wrapped_key")?;
    let opened = wrapped.map(|wrapped| keys.open(dataset, wrapped));
    Ok(opened.transpose()?)
}

async fn seal_answer(
    connection: &mut PgConnection,
    keys: &KeyRing,
    row: &PgRow,
) -> Result<(), StoreError> {
    let reservation: Uuid = row.try_get("reservation")?;
    sqlx::query(
        "UPDATE idempotent_answers
         SET fingerprint = $2, sealed_body = $3, body_sha256 = NULL, body = NULL
         WHERE reservation = $1",
    )
    .bind(reservation)
    .bind(keys.fingerprint(reservation, row.try_get("body_sha256")?))
    .bind(keys.seal_answer(reservation, row.try_get("body")?)?)
    .execute(connection)
    .await?;
    Ok(())
}

async fn seal_submission(
    connection: &mut PgConnection,
    keys: &KeyRing,
    row: &PgRow,
) -> Result<(), StoreError> {
    let id = SubmissionId(row.try_get("id")?);
    let sha256: &[u8] = row.try_get("sha256")?;
    // A deleted dataset has no submissions.
    let key = data_key(keys, row)?.ok_or(StoreError::Damaged {
        what: "a submission",
    })?;
    sqlx::query(
        "UPDATE submissions SET sealed_sha256 = $2, body_digest = $3, sha256 = NULL WHERE id = $1",
    )
    .bind(id.0)
    .bind(seal_sha256(&key, id, sha256)?)
    .bind(key.body_digest(sha256))
    .execute(connection)
    .await?;
    Ok(())
}

async fn seal_job(
    connection: &mut PgConnection,
    keys: &KeyRing,
    row: &PgRow,
) -> Result<(), StoreError> {
    let id = JobId(row.try_get("id")?);
    let definition: Value = row.try_get("definition")?;
    let at_rest = match data_key(keys, row)? {
        Some(key) => DefinitionAtRest::seal(&key, id, &definition)?,
        None => DefinitionAtRest {
            shown: without_values(&definition),
            sealed: None,
        },
    };
    sqlx::query("UPDATE jobs SET definition = $2, sealed_definition = $3 WHERE id = $1")
        .bind(id.0)
        .bind(at_rest.shown)
        .bind(at_rest.sealed)
        .execute(connection)
        .await?;
    Ok(())
}

async fn seal_step(
    connection: &mut PgConnection,
    keys: &KeyRing,
    row: &PgRow,
) -> Result<(), StoreError> {
    let (run, step): (i32, i32) = (row.try_get("run")?, row.try_get("step")?);
    let place = StepPlace {
        job: JobId(row.try_get("job_id")?),
        run: run.cast_unsigned(),
        step: step.cast_unsigned(),
    };
    // The steps of a deleted dataset are deleted with it.
    let key = data_key(keys, row)?.ok_or(StoreError::Damaged {
        what: "a job's steps",
    })?;
    let item: Value = row.try_get("item")?;
    sqlx::query(
        "UPDATE job_steps SET sealed_item = $4, item = NULL
         WHERE job_id = $1 AND run = $2 AND step = $3",
    )
    .bind(place.job.0)
    .bind(run)
    .bind(step)
    .bind(seal_item(&key, place, &item)?)
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes the reason from the errors of jobs whose release the verifier did not accept: it could
/// quote labels.
async fn remove_reasons(store: &Store) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE jobs SET error = jsonb_set(error, '{detail}', $2)
         WHERE error ->> 'code' = $1 AND error -> 'detail' <> $2",
    )
    .bind(Code::VerificationFailed.as_str())
    .bind(Json(NOT_VERIFIED))
    .execute(&mut *store.connection().await?)
    .await?;
    Ok(())
}
