//! The removal of destroyed keys from the files of their table.

use std::time::Duration;

use tokio::sync::Mutex;

use super::{Store, StoreError};

/// How long a deletion waits for transactions that began before it.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(5);

/// Time between two looks at them.
const SNAPSHOT_POLL: Duration = Duration::from_millis(20);

/// One deletion at a time ends the write-ahead log: a checkpoint of a busy server takes long, and several
/// would take all connections to the tables.
static ENDING_THE_LOG: Mutex<()> = Mutex::const_new(());

/// Rewrites the table without the deleted rows. Then, in the background, because it takes long on a busy
/// server, ends the present file of the write-ahead log. What the service may not do is left to the
/// operator.
pub(super) async fn rewrite_table(store: &Store) -> Result<(), StoreError> {
    wait_for_older_snapshots(store).await?;
    sqlx::query("VACUUM (FULL) dataset_keys")
        .execute(store.owner())
        .await?;
    let store = store.clone();
    tokio::spawn(async move {
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
    });
    Ok(())
}

/// Waits until no transaction can see what is deleted by now: `VACUUM` keeps rows that one could still
/// see. A transaction that takes longer than [`SNAPSHOT_WAIT`] is not waited for.
async fn wait_for_older_snapshots(store: &Store) -> Result<(), StoreError> {
    let now: String = sqlx::query_scalar("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        .fetch_one(store.owner())
        .await?;
    let ended = async {
        loop {
            // A snapshot is no older than the oldest transaction that runs while it is taken.
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
                return Ok(());
            }
            tokio::time::sleep(SNAPSHOT_POLL).await;
        }
    };
    tokio::time::timeout(SNAPSHOT_WAIT, ended)
        .await
        .unwrap_or_else(|_| {
            tracing::warn!(
                "a long transaction keeps a destroyed key in its table until the next deletion"
            );
            Ok(())
        })
}
