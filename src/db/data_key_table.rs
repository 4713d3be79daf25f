//! The table of data keys: after a deletion it is rewritten, so that neither its files nor the write-ahead log keep the
//! deleted keys.

use std::time::Duration;

use tokio::sync::Mutex;

use super::{Store, StoreError};

/// How long a deletion waits for transactions that began before it.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(5);

/// SQLSTATE of a lock that was not granted in time.
pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Time between two checks of these transactions.
const SNAPSHOT_POLL: Duration = Duration::from_millis(20);

/// Time between two attempts to rewrite a table that is in use.
const REWRITE_PAUSE: Duration = Duration::from_secs(5);

/// One task at a time tries to rewrite a table that is in use. After a restart the cleanup does.
static REWRITING: Mutex<()> = Mutex::const_new(());

/// One deletion at a time ends the write-ahead log: a checkpoint of a busy server takes long, and several
/// deletions would take all connections for work on the tables.
static ENDING_THE_LOG: Mutex<()> = Mutex::const_new(());

/// Rewrites the table without the deleted rows. Then, in the background, because it takes long on a busy
/// server, ends the current file of the write-ahead log. Steps that the service may not do are left to the
/// operator.
///
/// A dump of the database holds a lock on the table, and a snapshot, as long as it runs. The deletion does not
/// wait for it, nor do readers of the table queue behind it. Returns whether the table is rewritten.
pub(super) async fn rewrite_table(store: &Store) -> Result<bool, StoreError> {
    let is_rewritten = vacuum(store).await?;
    let store = store.clone();
    if is_rewritten {
        tokio::spawn(async move { end_the_log(&store).await });
        return Ok(true);
    }
    tracing::warn!(
        "a long transaction, such as a dump or an upload, keeps a destroyed key in its table until it ends"
    );
    if let Ok(turn) = REWRITING.try_lock() {
        tokio::spawn(async move {
            let _turn = turn;
            loop {
                tokio::time::sleep(REWRITE_PAUSE).await;
                match vacuum(&store).await {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(error) => tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "a destroyed key is still in its table"
                    ),
                }
            }
            end_the_log(&store).await;
        });
    }
    Ok(false)
}

/// Ends the current file of the write-ahead log.
async fn end_the_log(store: &Store) {
    let _turn = ENDING_THE_LOG.lock().await;
    for statement in ["CHECKPOINT", "SELECT pg_switch_wal()"] {
        if let Err(error) = sqlx::raw_sql(statement).execute(store.owner()).await {
            tracing::warn!(
                statement,
                %error,
                "the write-ahead log keeps a destroyed key until PostgreSQL reuses its files"
            );
        }
    }
}

/// Rewrites the table without deleted rows. Returns whether none is left: `VACUUM` keeps rows that a
/// transaction can still see, and the table may be locked.
async fn vacuum(store: &Store) -> Result<bool, StoreError> {
    let is_seen_by_none = wait_for_older_snapshots(store).await?;
    // The setting ends with the connection.
    let mut connection = store.owner().acquire().await?.detach();
    sqlx::query("SET lock_timeout = '500ms'")
        .execute(&mut connection)
        .await?;
    let rewritten = sqlx::query("VACUUM (FULL) dataset_keys")
        .execute(&mut connection)
        .await;
    match rewritten {
        Ok(_) => Ok(is_seen_by_none),
        Err(sqlx::Error::Database(error))
            if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Waits until no transaction can see what is already deleted. Returns `false` if one takes longer than
/// [`SNAPSHOT_WAIT`].
async fn wait_for_older_snapshots(store: &Store) -> Result<bool, StoreError> {
    let now: String = sqlx::query_scalar("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        .fetch_one(store.owner())
        .await?;
    let ended = async {
        loop {
            // A snapshot is not older than the oldest transaction that runs while it is taken.
            let older: bool = sqlx::query_scalar(
                "SELECT pg_snapshot_xmin(pg_current_snapshot()) < $1::xid8
                        OR EXISTS (SELECT FROM pg_stat_activity
                                   WHERE datname = current_database() AND backend_xmin IS NOT NULL
                                         AND age(backend_xmin) > age($1::xid8::xid))",
            )
            .bind(&now)
            .fetch_one(store.owner())
            .await?;
            if !older {
                return Ok(true);
            }
            tokio::time::sleep(SNAPSHOT_POLL).await;
        }
    };
    let ended = tokio::time::timeout(SNAPSHOT_WAIT, ended).await;
    ended.unwrap_or(Ok(false))
}
