//! The processes that use the database. The work of a dead process can be taken over at once,
//! and the work of a live process is not taken from it.

use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{Store, StoreError};

/// The condition that the instance in a column is alive: the time without a sign of life after which a process
/// counts as dead is longer than a lease, so that a process that was paused briefly is recognized when it
/// continues.
macro_rules! is_alive {
    ($column:literal) => {
        concat!(
            "EXISTS (SELECT FROM instances WHERE instances.id = ",
            $column,
            " AND instances.seen_at > clock_timestamp() - interval '60 seconds')"
        )
    };
}
pub(super) use is_alive;

/// A process that uses the database.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Instance {
    /// Drawn at random at its start.
    pub id: Uuid,
    /// The version of the program.
    pub version: String,
}

/// Registers this process. Earlier processes with the same `home`, which is the id of the locked data
/// directory, are dead and are forgotten.
pub async fn register(store: &Store, home: Uuid) -> Result<(), StoreError> {
    let mut transaction = store.begin().await?;
    sqlx::query(
        "DELETE FROM instances WHERE home = $1 OR seen_at < clock_timestamp() - interval '1 day'",
    )
    .bind(home)
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "INSERT INTO instances (id, home, version, seen_at)
         VALUES ($1, $2, $3, clock_timestamp())",
    )
    .bind(store.instance())
    .bind(home)
    .bind(env!("CARGO_PKG_VERSION"))
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(())
}

/// Writes that the process is alive.
pub async fn renew(connection: &mut PgConnection, instance: Uuid) -> Result<(), StoreError> {
    sqlx::query("UPDATE instances SET seen_at = clock_timestamp() WHERE id = $1")
        .bind(instance)
        .execute(connection)
        .await?;
    Ok(())
}

/// Forgets this process, at its orderly end.
pub async fn remove(store: &Store) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM instances WHERE id = $1")
        .bind(store.instance())
        .execute(&mut *store.connection().await?)
        .await?;
    Ok(())
}

/// The other processes that are alive.
pub async fn others(store: &Store) -> Result<Vec<Instance>, StoreError> {
    // A new database has no such table yet.
    let has_table: bool = sqlx::query_scalar("SELECT to_regclass('instances') IS NOT NULL")
        .fetch_one(store.owner())
        .await?;
    if !has_table {
        return Ok(Vec::new());
    }
    Ok(sqlx::query_as(concat!(
        "SELECT i.id, i.version FROM instances i WHERE i.id <> $1 AND ",
        is_alive!("i.id"),
        " ORDER BY i.id",
    ))
    .bind(store.instance())
    .fetch_all(store.owner())
    .await?)
}
