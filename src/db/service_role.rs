//! The role of PostgreSQL under which the service works, and the rows that it is shown.
//!
//! The role does not own the tables: it can neither change them nor their policies, and can only add to the
//! audit log. A connection names its organization, and PostgreSQL shows it the rows of that organization only
//! and lets it write no others. This is a second line of defence in addition to the conditions of the queries.

use sqlx::{Connection, PgConnection, PgPool};
use uuid::Uuid;

use crate::ids::OrganizationId;
use crate::roles::{Caller, Role};

use super::StoreError;

/// Name of the role. It cannot log in; connections change to it.
pub const SERVICE_ROLE: &str = "pais_service";

/// The advisory lock for preparing the role.
const LOCK: i64 = 0x7061_6973_726f;

/// The role with the name `$1`, if the user may change to it. Since PostgreSQL 16, not every member may.
macro_rules! may_assume {
    () => {
        "rolname = $1 AND pg_has_role(session_user, oid, CASE
             WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET'
             ELSE 'MEMBER' END)"
    };
}

/// Changes a new connection to the role, if it exists and the user may do so.
pub(super) async fn assume(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(concat!(
        "SELECT set_config('role', rolname, false) FROM pg_roles WHERE ",
        may_assume!()
    ))
    .bind(SERVICE_ROLE)
    .execute(connection)
    .await?;
    Ok(())
}

/// Makes the role if it is missing, and grants it the rights that the service needs. Costs two look-ups if
/// there is nothing to do. Returns whether the service can work under it.
pub(super) async fn prepare(owner: &PgPool) -> Result<bool, StoreError> {
    let mut connection = owner.acquire().await?;
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *transaction)
        .await?;
    if !can_assume(&mut transaction).await? {
        sqlx::raw_sql(CREATE_ROLE)
            .execute(&mut *transaction)
            .await?;
        if !can_assume(&mut transaction).await? {
            transaction.commit().await?;
            return Ok(false);
        }
    }
    let is_complete: bool = sqlx::query_scalar(
        "SELECT coalesce(bool_and(has_table_privilege($1, oid, 'SELECT')), true)
         FROM pg_class
         WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace",
    )
    .bind(SERVICE_ROLE)
    .fetch_one(&mut *transaction)
    .await?;
    if !is_complete {
        sqlx::raw_sql(GRANTS).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(true)
}

async fn can_assume(connection: &mut PgConnection) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar(concat!(
        "SELECT EXISTS (SELECT FROM pg_roles WHERE ",
        may_assume!(),
        ")"
    ))
    .bind(SERVICE_ROLE)
    .fetch_one(connection)
    .await?)
}

/// Services of other databases of the server may do the same at the same time, which PostgreSQL reports by
/// several errors. What counts is whether the role can be assumed afterwards.
const CREATE_ROLE: &str = "
DO $$ BEGIN
    CREATE ROLE pais_service NOLOGIN;
EXCEPTION WHEN OTHERS THEN
    NULL;
END $$;
DO $$ BEGIN
    GRANT pais_service TO CURRENT_USER;
EXCEPTION WHEN OTHERS THEN
    NULL;
END $$;
";

/// Events and their links are only added.
const GRANTS: &str = "
DO $$ BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO pais_service', current_schema());
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO pais_service',
                   current_schema());
END $$;
REVOKE UPDATE, DELETE ON audit_events, audit_chain FROM pais_service;
REVOKE INSERT, UPDATE, DELETE ON _sqlx_migrations FROM pais_service;
";

/// The rows that PostgreSQL shows to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowScope {
    /// All rows: the workers, the command line, and requests before their caller is known.
    Service,
    /// The rows of this organization, and the tokens of every organization.
    Administration(OrganizationId),
    /// The rows of this organization, and the releases that it was granted.
    Organization(OrganizationId),
}

impl RowScope {
    /// The rows that a caller may access.
    pub fn of(caller: Caller) -> Self {
        match caller.role {
            Role::Admin => Self::Administration(caller.organization),
            Role::Holder | Role::Recipient | Role::Auditor | Role::Officer => {
                Self::Organization(caller.organization)
            }
        }
    }

    /// The values of `pais.scope` and `pais.organization`.
    fn settings(self) -> (&'static str, String) {
        let text = |organization: OrganizationId| Uuid::to_string(&organization.0);
        match self {
            Self::Service => ("service", String::new()),
            Self::Administration(organization) => ("administration", text(organization)),
            Self::Organization(organization) => ("organization", text(organization)),
        }
    }

    /// The statement that begins a transaction with this scope. It needs no round trip of its own.
    pub(super) fn begin_statement(self) -> String {
        let (scope, organization) = self.settings();
        format!(
            "BEGIN; SET LOCAL pais.scope = '{scope}'; SET LOCAL pais.organization = '{organization}'"
        )
    }

    /// Gives a connection this scope. Costs a round trip.
    pub(super) async fn set(self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let (scope, organization) = self.settings();
        sqlx::query(
            "SELECT set_config('pais.scope', $1, false), set_config('pais.organization', $2, false)",
        )
        .bind(scope)
        .bind(organization)
        .execute(connection)
        .await?;
        Ok(())
    }
}
