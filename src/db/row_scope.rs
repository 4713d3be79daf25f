//! For whom a connection works. PostgreSQL shows it the rows of that organization alone, and lets it
//! write no others: a second wall under the conditions of the queries.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::ids::OrganizationId;
use crate::roles::{Caller, Role};

/// The rows that PostgreSQL shows to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowScope {
    /// All: the workers, the command line, and requests before their caller is known.
    Service,
    /// Those of this organization, and the tokens of every organization.
    Administration(OrganizationId),
    /// Those of this organization, and the releases that it was granted.
    Organization(OrganizationId),
}

impl RowScope {
    /// The rows that a caller may come to.
    pub fn of(caller: Caller) -> Self {
        match caller.role {
            Role::Admin => Self::Administration(caller.organization),
            Role::Holder | Role::Recipient | Role::Auditor => {
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
