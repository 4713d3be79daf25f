//! The removal of rows of deleted datasets and submissions, and the return of their space to the disk.
//!
//! Deleting a dataset or a submission destroys its key. Its rows, which nobody can read from then on, are removed
//! afterwards in small transactions: a single one would write as much to the write-ahead log as there
//! are rows, which does not fit on a full disk.

use std::pin::pin;
use std::time::Duration;

use pais_core::definition::SubmissionId;
use sqlx::FromRow;

use super::{Store, StoreError};

/// Size of the chunks that are removed in one transaction, in bytes, unless one chunk is larger.
const BATCH_BYTES: i64 = 8 << 20;

/// Time between two checks of the disk while a vacuum runs.
const VACUUM_LOOK: Duration = Duration::from_millis(100);

/// Number of chunks that are considered for one transaction.
const BATCH_CHUNKS: i64 = 256;

/// Removes the submissions of deleted datasets, and the rows of deleted submissions. Returns the number of
/// submissions. While `is_tight` reports that the disk is
/// about to be full, each transaction is followed by a checkpoint, where that is permitted, so that the space
/// of the write-ahead log is used again.
///
/// # Errors
/// When the database fails. What was removed stays removed.
pub(crate) async fn remove_deleted(
    store: &Store,
    is_tight: impl Fn() -> bool,
) -> Result<u64, StoreError> {
    let mut removed = 0;
    loop {
        let submission: Option<SubmissionId> = sqlx::query_scalar(
            "(SELECT s.id FROM submissions s JOIN datasets d ON d.id = s.dataset_id
              WHERE d.deleted_at IS NOT NULL LIMIT 1)
             UNION ALL
             (SELECT c.submission_id FROM submission_chunks c
              WHERE NOT EXISTS (SELECT FROM submissions s WHERE s.id = c.submission_id) LIMIT 1)
             LIMIT 1",
        )
        .fetch_optional(&mut *store.connection().await?)
        .await?;
        let Some(submission) = submission else {
            return Ok(removed);
        };
        while remove_chunks(store, submission).await? > 0 {
            if is_tight() {
                checkpoint(store).await?;
            }
        }
        sqlx::query("DELETE FROM submissions WHERE id = $1")
            .bind(submission)
            .execute(&mut *store.connection().await?)
            .await?;
        store.data_keys().remove(store, submission).await?;
        removed += 1;
    }
}

/// Removes some chunks of a submission; returns their number.
async fn remove_chunks(store: &Store, submission: SubmissionId) -> Result<u64, StoreError> {
    let removed = sqlx::query(
        "DELETE FROM submission_chunks WHERE submission_id = $1 AND index IN (
             SELECT index FROM (
                 SELECT index, row_number() OVER by_index AS number,
                        sum(octet_length(sealed)) OVER by_index AS bytes
                 FROM (SELECT index, sealed FROM submission_chunks WHERE submission_id = $1
                       ORDER BY index LIMIT $2) next
                 WINDOW by_index AS (ORDER BY index)) counted
             WHERE number = 1 OR bytes <= $3)",
    )
    .bind(submission)
    .bind(BATCH_CHUNKS)
    .bind(BATCH_BYTES)
    .execute(&mut *store.connection().await?)
    .await?;
    Ok(removed.rows_affected())
}

/// Writes a checkpoint if the role may do so: the superuser, or a member of `pg_checkpoint`.
async fn checkpoint(store: &Store) -> Result<(), StoreError> {
    let may: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM pg_roles
                        WHERE rolname = 'pg_checkpoint' AND pg_has_role(oid, 'USAGE'))",
    )
    .fetch_one(store.owner())
    .await?;
    if may {
        sqlx::query("CHECKPOINT").execute(store.owner()).await?;
    }
    Ok(())
}

/// Whether the table of chunks has, or can have, rows that were removed, or never committed, and still take up
/// space.
pub(crate) async fn has_dead_chunks(store: &Store) -> Result<bool, StoreError> {
    // The chunks themselves are in the table's TOAST table. A server that has crashed has lost its statistics,
    // including the time of the last vacuum, and does not know about earlier dead rows.
    Ok(sqlx::query_scalar(
        "SELECT pg_stat_get_last_vacuum_time(oid) IS NULL
                OR pg_stat_get_dead_tuples(oid) + pg_stat_get_dead_tuples(reltoastrelid) > 0
         FROM pg_class WHERE oid = 'submission_chunks'::regclass",
    )
    .fetch_one(&mut *store.connection().await?)
    .await?)
}

/// Makes the space of removed chunks usable again, and returns the space at the end of the file to the disk.
/// Rows that a running transaction could still see are kept until a later call.
///
/// It writes to the write-ahead log as much as it changes, for which a full disk has no room: it is slowed down to some
/// 80 MB a second, and while `is_tight` says that the disk is about to be full, checkpoints make the space of the log
/// usable again.
///
/// # Errors
/// When the database fails.
pub(crate) async fn vacuum(store: &Store, is_tight: impl Fn() -> bool) -> Result<(), StoreError> {
    let mut connection = store.owner().acquire().await?;
    sqlx::raw_sql("SET vacuum_cost_delay = 2; SET vacuum_cost_limit = 400")
        .execute(&mut *connection)
        .await?;
    let mut has_warned = false;
    let vacuumed = {
        let mut vacuum = pin!(sqlx::query("VACUUM submission_chunks").execute(&mut *connection));
        loop {
            tokio::select! {
                done = &mut vacuum => break done,
                () = tokio::time::sleep(VACUUM_LOOK) => {}
            }
            // The vacuum continues meanwhile. Without a checkpoint it fails by itself if there is no space.
            if is_tight()
                && let Err(error) = checkpoint(store).await
                && !std::mem::replace(&mut has_warned, true)
            {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "no checkpoint could be written while the disk is nearly full"
                );
            }
        }
    };
    let reset = sqlx::raw_sql("RESET vacuum_cost_delay; RESET vacuum_cost_limit");
    let reset = reset.execute(&mut *connection).await;
    vacuumed?;
    reset?;
    Ok(())
}

/// Free space inside of the file of chunks above which chunks are moved, in bytes.
const WORTH_MOVING: i64 = 16 << 20;

/// Size of the chunks that are moved before the space that they leave is made usable, in bytes.
const MOVED_BYTES: i64 = 256 << 20;

/// Moves chunks from the end of their file into the space of removed ones, so that the end can be
/// returned to the disk. Stops when `is_tight` no longer says that the disk is about to be full, or
/// when every chunk was moved. The newest chunks, which most often are at the end, are moved first.
///
/// # Errors
/// When the database fails. What was moved stays moved, and is the same as before.
pub(crate) async fn compact(store: &Store, is_tight: impl Fn() -> bool) -> Result<(), StoreError> {
    let mut last: Option<MovedChunk> = None;
    loop {
        if !is_tight() {
            return Ok(());
        }
        let free = free_inside(store).await?;
        if free < WORTH_MOVING {
            return Ok(());
        }
        // Moved chunks take up space twice until the next vacuum.
        let until = (free / 2).min(MOVED_BYTES);
        let (mut moved, mut since_checkpoint) = (0, 0);
        while moved < until {
            let Some(chunk) = move_chunk(store, last.as_ref()).await? else {
                return vacuum(store, is_tight).await;
            };
            moved += chunk.bytes;
            since_checkpoint += chunk.bytes;
            last = Some(chunk);
            if since_checkpoint >= BATCH_BYTES {
                checkpoint(store).await?;
                since_checkpoint = 0;
            }
        }
        vacuum(store, &is_tight).await?;
    }
}

/// Estimated free space inside of the file of chunks, in bytes.
async fn free_inside(store: &Store) -> Result<i64, StoreError> {
    // Pages take some 3 % more than the chunks in them.
    Ok(sqlx::query_scalar(
        "SELECT pg_table_size('submission_chunks')
                - (coalesce(sum(octet_length(sealed)), 0) * 1.04)::bigint
         FROM submission_chunks",
    )
    .fetch_one(&mut *store.connection().await?)
    .await?)
}

/// A chunk that was moved.
#[derive(FromRow)]
struct MovedChunk {
    submission_id: SubmissionId,
    index: i32,
    bytes: i64,
}

/// Stores the newest chunk before `last` again, unchanged, so that it is written into free space.
async fn move_chunk(
    store: &Store,
    last: Option<&MovedChunk>,
) -> Result<Option<MovedChunk>, StoreError> {
    Ok(sqlx::query_as(
        "UPDATE submission_chunks c SET sealed = c.sealed || ''::bytea
         FROM (SELECT submission_id, index FROM submission_chunks
               WHERE $1::uuid IS NULL OR (submission_id, index) < ($1, $2)
               ORDER BY submission_id DESC, index DESC LIMIT 1) next
         WHERE (c.submission_id, c.index) = (next.submission_id, next.index)
         RETURNING c.submission_id, c.index, octet_length(c.sealed)::bigint AS bytes",
    )
    .bind(last.map(|chunk| chunk.submission_id))
    .bind(last.map(|chunk| chunk.index))
    .fetch_optional(&mut *store.connection().await?)
    .await?)
}
