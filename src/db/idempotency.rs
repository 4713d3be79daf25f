//! Stored answers for retries of requests with an `Idempotency-Key`.
//!
//! A request is processed in this order:
//!
//! 1. [`begin`] reserves the key. `InUse`: answer `idempotency_key_in_use`. `Answered`: take the
//!    SHA-256 of the (decoded) body, which for a streamed body means reading it to its end, and
//!    answer what [`StoredAnswer::replay`] returns. `Reserved`: go on.
//! 2. [`commit`] ends the transaction that creates the resource, with the body's SHA-256 and the answer.
//!    So either both the resource and the answer are stored, or neither.
//! 3. If nothing was created, [`Reservation::abandon`], so that the client may try again at once. A
//!    reservation that is dropped, for example when the client disconnects during an upload, abandons
//!    itself.
//!
//! Only answers to requests that created something are stored. A retry of a rejected request is
//! processed again.
//!
//! An answer can quote what the request sent, and a bare SHA-256 would confirm a guessed body. So the
//! answer is sealed and the body is stored as a keyed fingerprint, both under keys derived from the
//! key-encryption key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::types::Json;
use sqlx::{FromRow, Postgres, Transaction};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::ids::OrganizationId;

use super::instances::is_alive;
use super::key_ring::KeyRing;
use super::{Store, StoreError};

/// How long answers are stored.
pub const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// The age at which a reservation without an answer is considered lost, even if its process is alive: it could
/// not be released.
const STALE: Duration = Duration::from_secs(60 * 60);

/// Time between two attempts to release a key while the database cannot be reached.
const RELEASE_PAUSE: Duration = Duration::from_secs(1);

/// The answer to the first request with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentAnswer {
    /// HTTP status.
    pub status: u16,
    /// The headers to repeat, in lower case: `content-type`, `location`.
    pub headers: BTreeMap<String, String>,
    /// Body.
    pub body: Vec<u8>,
}

/// The result of [`begin`].
pub enum KeyState {
    /// The key is new, and is now reserved for this request.
    Reserved(Reservation),
    /// An earlier request with the key has an answer.
    Answered(StoredAnswer),
    /// An earlier request with the key is still running.
    InUse,
}

/// The answer to an earlier request, and the fingerprint of that request's body.
pub struct StoredAnswer {
    keys: Arc<KeyRing>,
    reservation: Uuid,
    fingerprint: Vec<u8>,
    answer: IdempotentAnswer,
}

impl StoredAnswer {
    /// The stored answer, if this request has the same body.
    pub fn replay(self, body_sha256: &[u8]) -> Option<IdempotentAnswer> {
        let fingerprint = self.keys.fingerprint(self.reservation, body_sha256);
        (self.fingerprint == fingerprint).then_some(self.answer)
    }
}

/// A key that is reserved for a running request.
pub struct Reservation {
    store: Store,
    keys: Arc<KeyRing>,
    id: Uuid,
    open: bool,
}

/// Reserves a key of an organization for one endpoint. The endpoint is a method and a path, such as
/// `POST /v1/jobs`.
///
/// # Errors
/// When the database fails, or the stored answer cannot be decrypted.
pub async fn begin(
    store: &Store,
    keys: &Arc<KeyRing>,
    organization: OrganizationId,
    endpoint: &str,
    key: &str,
) -> Result<KeyState, StoreError> {
    let reservation = Reservation {
        store: store.clone(),
        keys: keys.clone(),
        id: Uuid::now_v7(),
        open: false,
    };
    // On a task of its own: if the caller is cancelled while the statement runs, the task drops the
    // reservation afterwards, which releases the key. Otherwise a retry would be refused for an hour.
    let reserving = reserve(
        reservation,
        organization,
        endpoint.to_owned(),
        key.to_owned(),
    );
    let reserved = tokio::spawn(reserving).await;
    // Joining it fails only after a panic or when the runtime ends.
    if let Some(reservation) = reserved.unwrap_or(Err(sqlx::Error::WorkerCrashed.into()))? {
        return Ok(KeyState::Reserved(reservation));
    }
    let kept: Option<AnswerRow> = sqlx::query_as(
        "SELECT reservation, fingerprint, status, headers, sealed_body FROM idempotent_answers
         WHERE organization_id = $1 AND endpoint = $2 AND key = $3
           AND sealed_body IS NOT NULL",
    )
    .bind(organization)
    .bind(endpoint)
    .bind(key)
    .fetch_optional(&mut *store.connection().await?)
    .await?;
    let Some(row) = kept else {
        return Ok(KeyState::InUse);
    };
    Ok(KeyState::Answered(StoredAnswer {
        keys: keys.clone(),
        reservation: row.reservation,
        fingerprint: row.fingerprint,
        answer: IdempotentAnswer {
            status: row.status,
            headers: row.headers,
            body: keys.open_answer(row.reservation, &row.sealed_body)?,
        },
    }))
}

/// Reserves a key. `None` if an earlier request has it. After an error the reservation is dropped, which
/// releases the key if the statement has taken effect.
async fn reserve(
    mut reservation: Reservation,
    organization: OrganizationId,
    endpoint: String,
    key: String,
) -> Result<Option<Reservation>, StoreError> {
    let store = &reservation.store;
    let now = store.now();
    let mut connection = store.connection().await?;
    let instance = store.instance();
    reservation.open = true;
    let reserved = sqlx::query(concat!(
        "INSERT INTO idempotent_answers AS kept
                 (organization_id, endpoint, key, reservation, created_at, instance)
             VALUES ($1, $2, $3, $4, $5, $8)
             ON CONFLICT (organization_id, endpoint, key) DO UPDATE
             SET reservation = excluded.reservation, created_at = excluded.created_at,
                 instance = excluded.instance, fingerprint = NULL, status = NULL, headers = NULL,
                 sealed_body = NULL
             WHERE kept.created_at <= $6
                OR (kept.status IS NULL
                    AND (kept.created_at <= $7
                         OR NOT ",
        is_alive!("kept.instance"),
        "))"
    ))
    .bind(organization)
    .bind(endpoint)
    .bind(key)
    .bind(reservation.id)
    .bind(now)
    .bind(now - RETENTION)
    .bind(now - STALE)
    .bind(instance)
    .execute(&mut *connection)
    .await?;
    reservation.open = reserved.rows_affected() == 1;
    Ok(reservation.open.then_some(reservation))
}

#[derive(FromRow)]
struct AnswerRow {
    reservation: Uuid,
    fingerprint: Vec<u8>,
    #[sqlx(try_from = "i32")]
    status: u16,
    #[sqlx(json)]
    headers: BTreeMap<String, String>,
    sealed_body: Vec<u8>,
}

/// Commits the transaction that creates the resource, with the answer under the key of the request if it
/// has one. Returns `false` if a later request has taken over the key: nothing was created then; answer
/// `idempotency_key_in_use`.
pub async fn commit(
    reservation: Option<Reservation>,
    mut transaction: Transaction<'_, Postgres>,
    body_sha256: &[u8],
    answer: &IdempotentAnswer,
) -> Result<bool, StoreError> {
    let Some(mut reservation) = reservation else {
        transaction.commit().await?;
        return Ok(true);
    };
    let Reservation { id, keys, .. } = &reservation;
    let kept = sqlx::query(
        "UPDATE idempotent_answers
         SET fingerprint = $2, status = $3, headers = $4, sealed_body = $5
         WHERE reservation = $1",
    )
    .bind(id)
    .bind(keys.fingerprint(*id, body_sha256))
    .bind(i32::from(answer.status))
    .bind(Json(&answer.headers))
    .bind(keys.seal_answer(*id, &answer.body)?)
    .execute(&mut *transaction)
    .await?;
    if kept.rows_affected() == 0 {
        return Ok(false);
    }
    transaction.commit().await?;
    reservation.open = false;
    Ok(true)
}

impl Reservation {
    /// Releases the key. To be called if nothing was created.
    pub async fn abandon(mut self) -> Result<(), StoreError> {
        free(&self.store, self.id).await?;
        self.open = false;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.open {
            let (store, id) = (self.store.clone(), self.id);
            runtime.spawn(async move {
                let Err(error) = free(&store, id).await else {
                    return;
                };
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "an idempotency key could not be released; this is tried again"
                );
                let released = async {
                    while free(&store, id).await.is_err() {
                        sleep(RELEASE_PAUSE).await;
                    }
                };
                // After that time it is free anyway.
                let _ = timeout(STALE, released).await;
            });
        }
    }
}

async fn free(store: &Store, reservation: Uuid) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM idempotent_answers WHERE reservation = $1 AND status IS NULL")
        .bind(reservation)
        .execute(&mut *store.connection().await?)
        .await?;
    Ok(())
}

/// Deletes answers older than [`RETENTION`]; returns their number. Called periodically.
pub async fn delete_expired(store: &Store) -> Result<u64, StoreError> {
    let swept = sqlx::query("DELETE FROM idempotent_answers WHERE created_at <= $1")
        .bind(store.now() - RETENTION)
        .execute(&mut *store.connection().await?)
        .await?;
    Ok(swept.rows_affected())
}
