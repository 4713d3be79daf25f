//! Whether the service can work: the database answers and has every migration.

use super::{MIGRATOR, Store, StoreError};

/// Whether every migration this program knows has been applied.
///
/// # Errors
/// When the database cannot be reached.
pub async fn is_migrated(store: &Store) -> Result<bool, StoreError> {
    let there: bool = sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL")
        .fetch_one(store.pool())
        .await?;
    if !there {
        return Ok(false);
    }
    let applied: Vec<i64> =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success")
            .fetch_all(store.pool())
            .await?;
    Ok(MIGRATOR
        .iter()
        .all(|migration| applied.contains(&migration.version)))
}
