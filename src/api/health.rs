//! `/healthz` and `/readyz`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::db::migration_state::MigrationState;
use crate::problem::Code;

use super::error::ApiError;
use super::state::AppState;

/// Time limit of the database query. It is shorter than elsewhere, because the answer must come
/// before the probe gives up.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(3);

/// The response to a probe.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
}

const OK: Json<Health> = Json(Health { status: "ok" });

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", tag = "operation", security(()),
    responses((status = 200, description = "It lives", body = Health)))]
pub(super) async fn alive() -> Json<Health> {
    OK
}

/// Whether the service can work: it is not stopping, and the database is there and migrated.
#[utoipa::path(get, path = "/readyz", tag = "operation", security(()),
    responses((status = 200, description = "It can work", body = Health),
        (status = 503, description = "`unavailable`")))]
pub(super) async fn ready(State(state): State<AppState>) -> Result<Json<Health>, ApiError> {
    let unavailable = |detail| Err(ApiError::new(Code::Unavailable, detail));
    if state.unscoped().shutdown.is_cancelled() {
        return unavailable("the service is stopping");
    }
    let app = state.unscoped();
    let state = async { MigrationState::of(&mut *app.db.connection().await?).await };
    match tokio::time::timeout(DATABASE_TIMEOUT, state).await {
        Ok(Ok(MigrationState::Applied)) => match app.storage.check() {
            Ok(()) => Ok(OK),
            Err(full) => Err(ApiError::new(Code::Unavailable, full.to_string())),
        },
        Ok(Ok(MigrationState::Missing)) => {
            unavailable("the database lacks migrations; run `pais migrate`")
        }
        Ok(Ok(MigrationState::Unfit(_))) => {
            unavailable("the database has migrations of another version")
        }
        Ok(Err(error)) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "not ready");
            unavailable("the database does not answer")
        }
        Err(_) => unavailable("the database does not answer in time"),
    }
}
