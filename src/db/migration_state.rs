//! Which migrations a database has, compared with those of this program.

use sqlx::{FromRow, PgConnection};
use thiserror::Error;

use super::{MIGRATOR, StoreError};

/// Which migrations a database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationState {
    /// Those of this program.
    Applied,
    /// Some of this program are missing.
    Missing,
    /// This program cannot use the database.
    Unfit(UnfitDatabase),
}

/// Why this program cannot use a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnfitDatabase {
    /// It has a migration that this program does not have.
    #[error(
        "a newer version of pais has used the database; start that version, or restore a backup from \
         before"
    )]
    Newer,
    /// It has another migration with the number of one of this program.
    #[error(
        "migration {0} of the database is not that of this program; start the version that applied it"
    )]
    Other(i64),
    /// A migration has failed halfway.
    #[error("migration {0} of the database has failed halfway; restore the backup from before")]
    Failed(i64),
}

#[derive(FromRow)]
struct AppliedMigration {
    version: i64,
    checksum: Vec<u8>,
    success: bool,
}

impl MigrationState {
    /// The state of a database.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub async fn of(connection: &mut PgConnection) -> Result<Self, StoreError> {
        let has_table: bool =
            sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL")
                .fetch_one(&mut *connection)
                .await?;
        if !has_table {
            return Ok(Self::Missing);
        }
        let applied: Vec<AppliedMigration> = sqlx::query_as(
            "SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version",
        )
        .fetch_all(connection)
        .await?;
        for AppliedMigration {
            version,
            checksum,
            success,
        } in &applied
        {
            let own = MIGRATOR.iter().find(|own| own.version == *version);
            let unfit = match own {
                None => UnfitDatabase::Newer,
                Some(_) if !success => UnfitDatabase::Failed(*version),
                Some(own) if *checksum != *own.checksum => UnfitDatabase::Other(*version),
                Some(_) => continue,
            };
            return Ok(Self::Unfit(unfit));
        }
        let is_applied = |version| applied.iter().any(|found| found.version == version);
        let all = MIGRATOR.iter().all(|own| is_applied(own.version));
        Ok(if all { Self::Applied } else { Self::Missing })
    }
}
