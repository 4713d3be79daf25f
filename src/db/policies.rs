//! The policies of organizations.

use pais_core::codebook::Codebook;
use pais_core::definition::PrivacyDefinition;
use serde_json::{Value, json};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};

use crate::ids::{OrganizationId, ReleaseId};
use crate::policy::{Policy, ReleaseProperties};
use crate::problem::Problem;
use crate::roles::Caller;

use super::audit::{self, Action, NewEvent};
use super::officers;
use super::{Store, StoreError};

/// The policy of an organization; one that restricts nothing if it has none.
pub(crate) async fn load(
    store: &Store,
    organization: OrganizationId,
) -> Result<Policy, StoreError> {
    let mut connection = store.connection().await?;
    of_organization(&mut connection, organization).await
}

/// Checks the object that a transaction creates. The policy does not change until the end of the transaction.
///
/// # Errors
/// [`StoreError::BelowPolicy`] with the problem that `check` finds.
pub(super) async fn check(
    connection: &mut PgConnection,
    organization: OrganizationId,
    check: impl FnOnce(&Policy) -> Result<(), Problem>,
) -> Result<Policy, StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock_shared(hashtextextended($1::text, 14))")
        .bind(organization)
        .execute(&mut *connection)
        .await?;
    let policy = of_organization(connection, organization).await?;
    check(&policy).map_err(|problem| StoreError::BelowPolicy(problem.into()))?;
    Ok(policy)
}

/// The properties of a stored release that a policy can restrict.
#[derive(FromRow)]
struct CheckedRelease {
    privacy: Json<PrivacyDefinition>,
    suppressed: f64,
    other_columns: Vec<String>,
    codebook: Json<Codebook>,
}

/// Checks a release in a transaction, as [`check`]; `pointer` is its place in the body that was sent.
///
/// # Errors
/// [`StoreError::BelowPolicy`].
pub(super) async fn check_release(
    connection: &mut PgConnection,
    organization: OrganizationId,
    release: ReleaseId,
    pointer: &str,
) -> Result<Policy, StoreError> {
    let found: CheckedRelease = sqlx::query_as(
        "SELECT privacy, codebook,
                suppressed_rows::float8 / greatest(rows + suppressed_rows, 1) AS suppressed,
                ARRAY(SELECT DISTINCT c ->> 'name'
                      FROM release_tables t, jsonb_array_elements(t.columns) c
                      WHERE t.release_id = r.id
                        AND NOT (r.report #> '{utility,ncp_by_column}') ? (c ->> 'name'))
                AS other_columns
         FROM releases r WHERE id = $1",
    )
    .bind(release)
    .fetch_one(&mut *connection)
    .await?;
    let Json(codebook) = found.codebook;
    let table = ReleaseProperties {
        privacy: &found.privacy,
        suppressed: found.suppressed,
        other_columns: &found.other_columns,
        columns: &codebook.columns,
    };
    let decided = check(connection, organization, |policy| {
        policy.check_release(&table, pointer)
    });
    decided.await
}

/// Like [`load`], in a transaction.
async fn of_organization(
    connection: &mut PgConnection,
    organization: OrganizationId,
) -> Result<Policy, StoreError> {
    let document: Option<Json<Policy>> =
        sqlx::query_scalar("SELECT document FROM policies WHERE organization_id = $1")
            .bind(organization)
            .fetch_optional(connection)
            .await?;
    Ok(document.map_or_else(Policy::default, |Json(policy)| policy))
}

/// Replaces the policy of the caller's organization. Returns `false` if an officer decides about it, and the
/// caller is a holder.
pub(crate) async fn replace(
    store: &Store,
    by: Caller,
    policy: &Policy,
) -> Result<bool, StoreError> {
    let mut transaction = store.begin().await?;
    let now = store.now();
    if !officers::may_decide(&mut transaction, by, now).await? {
        return Ok(false);
    }
    // Waits for decisions under the previous policy; later decisions wait for this change.
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 14))")
        .bind(by.organization)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(
        "INSERT INTO policies (organization_id, document, require_approval) VALUES ($1, $2, $3)
         ON CONFLICT (organization_id) DO UPDATE SET document = $2, require_approval = $3",
    )
    .bind(by.organization)
    .bind(Json(policy))
    .bind(policy.requires_approval())
    .execute(&mut *transaction)
    .await?;
    let detail = json!({ "policy": without_values(policy) });
    let event = NewEvent::by(by, Action::PolicyChanged, by.organization.0, detail);
    audit::commit(transaction, now, event).await?;
    Ok(true)
}

/// The document of a policy with the number of the values that it lists of each column: the log has no
/// value of a sensitive column.
fn without_values(policy: &Policy) -> Value {
    let mut document = json!(policy);
    let columns = document
        .get_mut("sensitive_values")
        .and_then(Value::as_object_mut);
    for values in columns.into_iter().flat_map(serde_json::Map::values_mut) {
        if let Some(listed) = values.as_array() {
            *values = json!({ "values": listed.len() });
        }
    }
    document
}
