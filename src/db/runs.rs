//! The results of a job's runs: their steps, and the results of a sweep's combinations.

use serde_json::Value;
use sqlx::PgConnection;

use super::seal::{DataKey, SealedItem, StepPlace};
use super::{Store, StoreError};
use crate::ids::JobId;

/// A step of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredStep {
    /// Its number, from 0.
    pub number: u32,
    /// The step as its holder sees it, as JSON.
    pub item: Value,
    /// Numbers of the rows that it suppressed, ascending.
    pub suppressed: Vec<u32>,
}

/// The steps of a run of a job, from number `from` on, at most `limit`. A job without a sweep has
/// only run 0.
///
/// # Errors
/// When the database fails, or a step cannot be decrypted.
pub(crate) async fn steps(
    store: &Store,
    key: &DataKey,
    job: JobId,
    run: u32,
    from: u32,
    limit: i64,
) -> Result<Vec<Value>, StoreError> {
    let rows: Vec<(i32, Vec<u8>)> = sqlx::query_as(
        "SELECT step, sealed_item FROM job_steps WHERE job_id = $1 AND run = $2 AND step >= $3
         ORDER BY step LIMIT $4",
    )
    .bind(job)
    .bind(run.cast_signed())
    .bind(i64::from(from))
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    rows.into_iter()
        .map(|(step, sealed)| {
            let step = step.cast_unsigned();
            open_item(key, StepPlace { job, run, step }, &sealed)
        })
        .collect()
}

fn damaged() -> StoreError {
    StoreError::Damaged {
        what: "a job's steps",
    }
}

/// A step as its holder sees it.
fn open_item(key: &DataKey, place: StepPlace, sealed: &[u8]) -> Result<Value, StoreError> {
    let item = key.open(SealedItem::Step(place), sealed)?;
    serde_json::from_slice(&item).map_err(|_| damaged())
}

/// Seals a step as its holder sees it.
///
/// # Errors
/// When the operating system returns no random bytes.
pub(super) fn seal_item(
    key: &DataKey,
    place: StepPlace,
    item: &Value,
) -> Result<Vec<u8>, StoreError> {
    Ok(key.seal(SealedItem::Step(place), &serde_json::to_vec(item)?)?)
}

/// All steps of a run of a job, with the suppressed rows of each, so that the state after any step
/// can be computed again.
///
/// # Errors
/// When the database fails, or a step cannot be decrypted.
pub(crate) async fn step_records(
    store: &Store,
    key: &DataKey,
    job: JobId,
    run: u32,
) -> Result<Vec<StoredStep>, StoreError> {
    let rows: Vec<(i32, Vec<u8>, Option<Vec<u8>>)> = sqlx::query_as(
        "SELECT step, sealed_item, suppressed FROM job_steps WHERE job_id = $1 AND run = $2
         ORDER BY step",
    )
    .bind(job)
    .bind(run.cast_signed())
    .fetch_all(&mut *store.connection().await?)
    .await?;
    rows.into_iter()
        .map(|(step, item, suppressed)| {
            let step = step.cast_unsigned();
            let place = StepPlace { job, run, step };
            let suppressed = match suppressed {
                None => Vec::new(),
                Some(sealed) => {
                    let bytes = key.open(SealedItem::SuppressedRows(place), &sealed)?;
                    let (numbers, rest) = bytes.as_chunks::<4>();
                    if !rest.is_empty() {
                        return Err(damaged());
                    }
                    numbers.iter().map(|&n| u32::from_le_bytes(n)).collect()
                }
            };
            Ok(StoredStep {
                number: step,
                item: open_item(key, place, &item)?,
                suppressed,
            })
        })
        .collect()
}

/// A step in the form in which it is stored: sealed with the data key of the dataset, because its
/// labels and split points can be raw values.
#[derive(Clone, Debug)]
pub struct SealedStep {
    run: u32,
    step: u32,
    item: Vec<u8>,
    suppressed: Option<Vec<u8>>,
}

impl SealedStep {
    /// Seals a step of a run of a job.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub(crate) fn seal(
        key: &DataKey,
        job: JobId,
        run: u32,
        step: StoredStep,
    ) -> Result<Self, StoreError> {
        let StoredStep {
            number: step,
            item,
            suppressed,
        } = step;
        let place = StepPlace { job, run, step };
        let bytes: Vec<u8> = suppressed
            .iter()
            .flat_map(|row| row.to_le_bytes())
            .collect();
        let suppressed = match bytes.as_slice() {
            [] => None,
            bytes => Some(key.seal(SealedItem::SuppressedRows(place), bytes)?),
        };
        Ok(Self {
            run,
            step,
            item: seal_item(key, place, &item)?,
            suppressed,
        })
    }
}

/// Writes the steps of a job, and for a sweep the results of its combinations.
///
/// # Errors
/// When the database fails.
pub(super) async fn insert_runs(
    transaction: &mut PgConnection,
    job: JobId,
    steps: &[SealedStep],
    sweep: &[Value],
) -> Result<(), StoreError> {
    let runs: Vec<i32> = steps.iter().map(|step| step.run.cast_signed()).collect();
    let numbers: Vec<i32> = steps.iter().map(|step| step.step.cast_signed()).collect();
    let items: Vec<&[u8]> = steps.iter().map(|step| step.item.as_slice()).collect();
    let suppressed: Vec<Option<&[u8]>> = steps
        .iter()
        .map(|step| step.suppressed.as_deref())
        .collect();
    sqlx::query(
        "INSERT INTO job_steps (job_id, run, step, sealed_item, suppressed)
         SELECT $1, * FROM unnest($2::integer[], $3::integer[], $4::bytea[], $5::bytea[])
         ON CONFLICT DO NOTHING",
    )
    .bind(job)
    .bind(runs)
    .bind(numbers)
    .bind(items)
    .bind(suppressed)
    .execute(&mut *transaction)
    .await?;
    for (run, item) in sweep.iter().enumerate() {
        sqlx::query(
            "INSERT INTO job_runs (job_id, run, item) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        )
        .bind(job)
        .bind(run as i32)
        .bind(item)
        .execute(&mut *transaction)
        .await?;
    }
    Ok(())
}

/// The results of the combinations of a sweep, from number `from` on, at most `limit`, each with
/// its number.
///
/// # Errors
/// When the database fails.
pub(crate) async fn sweep(
    store: &Store,
    job: JobId,
    from: u32,
    limit: i64,
) -> Result<Vec<(u32, Value)>, StoreError> {
    let rows: Vec<(i32, Value)> = sqlx::query_as(
        "SELECT run, item FROM job_runs WHERE job_id = $1 AND run >= $2 ORDER BY run LIMIT $3",
    )
    .bind(job)
    .bind(i64::from(from))
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    let rows = rows.into_iter();
    Ok(rows
        .map(|(run, item)| (run.cast_unsigned(), item))
        .collect())
}
