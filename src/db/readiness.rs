//! The readiness check: the database answers, and all migrations are applied.

use sqlx::PgConnection;

use super::{MIGRATOR, StoreError};

/// Whether all migrations of this program have been applied.
///
/// # Errors
/// When the database cannot be reached.
pub async fn is_migrated(connection: &mut PgConnection) -> Result<bool, StoreError> {
    let has_table: bool = sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await?;
    if !has_table {
        return Ok(false);
    }
    let applied: Vec<i64> =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success")
            .fetch_all(connection)
            .await?;
    Ok(MIGRATOR
        .iter()
        .all(|migration| applied.contains(&migration.version)))
}
