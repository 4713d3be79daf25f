//! The results of a job's runs: their steps, and the results of a sweep's combinations.

use pais_anonymize::{StepItem, StepRecord};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::{FromRow, PgConnection};

use super::seal::{DataKey, SealedItem, StepPlace};
use super::{Store, StoreError};
use crate::ids::JobId;

#[derive(FromRow)]
struct StepRow {
    #[sqlx(try_from = "i32")]
    step: u32,
    sealed_item: Vec<u8>,
    /// `None` also if the query leaves it out.
    #[sqlx(default)]
    suppressed: Option<Vec<u8>>,
}

impl StepRow {
    fn open(self, key: &DataKey, job: JobId, run: u32) -> Result<StepRecord, StoreError> {
        let step = self.step;
        let place = StepPlace { job, run, step };
        let damaged = || StoreError::Damaged("a job's steps");
        let item = key.open(SealedItem::Step(place), &self.sealed_item)?;
        let sealed = self.suppressed.as_deref();
        let suppressed = sealed.map(|sealed| key.open(SealedItem::SuppressedRows(place), sealed));
        let suppressed = suppressed.transpose()?.unwrap_or_default();
        let (numbers, rest) = suppressed.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(damaged());
        }
        Ok(StepRecord {
            item: serde_json::from_slice(&item).map_err(|_| damaged())?,
            suppressed: numbers.iter().map(|&n| u32::from_le_bytes(n)).collect(),
        })
    }
}

/// The steps of a run of a job as their holder sees them, from number `from` on, at most `limit`. A job
/// without a sweep has only run 0.
///
/// # Errors
/// When a step cannot be decrypted.
pub(crate) async fn steps(
    store: &Store,
    key: &DataKey,
    job: JobId,
    run: u32,
    from: u32,
    limit: i64,
) -> Result<Vec<StepItem>, StoreError> {
    let rows: Vec<StepRow> = sqlx::query_as(
        "SELECT step, sealed_item FROM job_steps WHERE job_id = $1 AND run = $2 AND step >= $3
         ORDER BY step LIMIT $4",
    )
    .bind(job)
    .bind(run.cast_signed())
    .bind(i64::from(from))
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?;
    let opened = rows.into_iter().map(|row| row.open(key, job, run));
    opened.map(|record| Ok(record?.item)).collect()
}

/// The size of the data that [`steps`] reads, in bytes.
pub(crate) async fn step_bytes(
    store: &Store,
    job: JobId,
    run: u32,
    from: u32,
    limit: i64,
) -> Result<u64, StoreError> {
    let bytes: i64 = sqlx::query_scalar(
        "SELECT coalesce(sum(octet_length(sealed_item)), 0)::bigint FROM (
             SELECT sealed_item FROM job_steps WHERE job_id = $1 AND run = $2 AND step >= $3
             ORDER BY step LIMIT $4) steps",
    )
    .bind(job)
    .bind(run.cast_signed())
    .bind(i64::from(from))
    .bind(limit)
    .fetch_one(&mut *store.connection().await?)
    .await?;
    Ok(bytes.cast_unsigned())
}

/// All steps of a run of a job, with the suppressed rows of each, so that the state after any step
/// can be computed again.
///
/// # Errors
/// When a step cannot be decrypted.
pub(crate) async fn step_records(
    store: &Store,
    key: &DataKey,
    job: JobId,
    run: u32,
) -> Result<Vec<StepRecord>, StoreError> {
    let rows: Vec<StepRow> = sqlx::query_as(
        "SELECT step, sealed_item, suppressed FROM job_steps WHERE job_id = $1 AND run = $2
         ORDER BY step",
    )
    .bind(job)
    .bind(run.cast_signed())
    .fetch_all(&mut *store.connection().await?)
    .await?;
    let opened = rows.into_iter().map(|row| row.open(key, job, run));
    opened.collect()
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
        record: &StepRecord,
    ) -> Result<Self, StoreError> {
        let step = record.item.step;
        let place = StepPlace { job, run, step };
        let rows = record.suppressed.iter();
        let suppressed: Vec<u8> = rows.flat_map(|row| row.to_le_bytes()).collect();
        let item = serde_json::to_vec(&record.item)?;
        let suppressed = (!suppressed.is_empty())
            .then(|| key.seal(SealedItem::SuppressedRows(place), &suppressed));
        Ok(Self {
            run,
            step,
            item: key.seal(SealedItem::Step(place), &item)?,
            suppressed: suppressed.transpose()?,
        })
    }
}

/// Writes the steps of a job, and for a sweep the results of its combinations.
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

/// A combination of a sweep.
#[derive(Debug, FromRow)]
pub(crate) struct SweepRow<T> {
    /// Its number, from 0.
    #[sqlx(try_from = "i32")]
    pub run: u32,
    /// Its result.
    #[sqlx(json)]
    pub item: T,
}

/// The combinations of a sweep, from number `from` on, at most `limit`.
pub(crate) async fn sweep<T: DeserializeOwned + Send + Unpin + 'static>(
    store: &Store,
    job: JobId,
    from: u32,
    limit: i64,
) -> Result<Vec<SweepRow<T>>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT run, item FROM job_runs WHERE job_id = $1 AND run >= $2 ORDER BY run LIMIT $3",
    )
    .bind(job)
    .bind(i64::from(from))
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?)
}
