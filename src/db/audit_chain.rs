//! The chain of hashes over the audit log of each organization: extended by the service, checked by
//! `pais audit verify`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, FromRow, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

use super::key_ring::KeyRing;
use super::{RowScope, Store, StoreError, service_keys};

/// Number of events that are chained in one transaction.
pub(super) const BATCH: i64 = 1_000;

/// The advisory lock for extending chains.
const LOCK: i64 = 0x7061_6973_6175;

/// A place in a chain: that of its last event, or of the last archived one. The place before the first
/// event has the number 0 and a hash of zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub seq: i64,
    pub hash: [u8; 32],
}

/// The hashed fields of an event.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, Deserialize)]
pub(super) struct ChainedEvent {
    pub organization_id: Uuid,
    pub id: Uuid,
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    pub action: String,
    pub subject: Option<String>,
    pub token_id: Option<Uuid>,
    pub address: Option<String>,
    pub outcome: String,
    pub detail: Value,
}

impl ChainedEvent {
    /// The place of the event after `previous`. Its hash is the SHA-256 of three parts: the hash of `previous`
    /// as 64 hexadecimal digits, a line feed, and the JSON text of `{action, address, at, detail, id,
    /// organization_id, outcome, seq, subject, token_id}`, with the fields of each object in the order of their
    /// names and without white space.
    pub(super) fn after(&self, previous: &Head) -> Head {
        let seq = previous.seq + 1;
        // Only an instant outside the range of the service's events cannot be written; its hash never matches.
        let mut text = serde_json::to_value(self).unwrap_or_default();
        text["seq"] = json!(seq);
        let text = format!("{}\n{text}", hex::encode(previous.hash));
        let hash = Sha256::digest(text).into();
        Head { seq, hash }
    }
}

/// Gives every committed event its place in the chain of its organization. Costs one look-up if there is none.
///
/// # Errors
/// When the database fails, or the end of a chain was changed by somebody without the key;
/// [`StoreError::Replaced`].
pub async fn extend(store: &Store, keys: &KeyRing) -> Result<u64, StoreError> {
    // Events of all organizations wait.
    let store = &store.within(RowScope::Service);
    let mut chained = 0;
    loop {
        let pending: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM audit_pending)")
            .fetch_one(&mut *store.connection().await?)
            .await?;
        if !pending {
            return Ok(chained);
        }
        let mut transaction = store.begin().await?;
        lock(&mut transaction).await?;
        service_keys::check_own(&mut transaction, keys).await?;
        chained += extend_by_batch(&mut transaction, keys).await?;
        transaction.commit().await?;
    }
}

/// Keeps others from extending chains until the end of the transaction.
pub(super) async fn lock(transaction: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(transaction)
        .await?;
    Ok(())
}

/// Appends waiting events to the chains of their logs, at most [`BATCH`], and returns their number.
async fn extend_by_batch(connection: &mut PgConnection, keys: &KeyRing) -> Result<u64, StoreError> {
    if !has_own_ends(connection, keys).await? {
        return Err(StoreError::Damaged("the ends of the audit logs"));
    }
    let events: Vec<ChainedEvent> = sqlx::query_as(
        "SELECT e.id, e.organization_id, e.at, e.token_id, e.action, e.subject, e.detail,
                e.address, e.outcome
         FROM audit_pending p JOIN audit_events e ON e.id = p.event_id
         ORDER BY e.id LIMIT $1",
    )
    .bind(BATCH)
    .fetch_all(&mut *connection)
    .await?;
    let mut ends = BTreeMap::new();
    let mut places = Vec::with_capacity(events.len());
    for event in &events {
        let organization = event.organization_id;
        let end = match ends.get(&organization) {
            Some(end) => *end,
            None => {
                let end = Anchor::End.read(connection, keys, organization).await?;
                end.unwrap_or_default()
            }
        };
        let place = event.after(&end);
        ends.insert(organization, place);
        places.push(place);
    }
    let ids: Vec<Uuid> = events.iter().map(|event| event.id).collect();
    let organizations = events.iter().map(|event| event.organization_id);
    let hashes = places.iter().map(|place| place.hash.as_slice());
    sqlx::query(
        "INSERT INTO audit_chain (organization_id, seq, event_id, hash)
         SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::bytea[])",
    )
    .bind(organizations.collect::<Vec<_>>())
    .bind(places.iter().map(|place| place.seq).collect::<Vec<_>>())
    .bind(&ids)
    .bind(hashes.collect::<Vec<_>>())
    .execute(&mut *connection)
    .await?;
    for (organization, end) in ends {
        Anchor::End
            .write(connection, keys, organization, end)
            .await?;
    }
    write_root(connection, keys).await?;
    sqlx::query("DELETE FROM audit_pending WHERE event_id = ANY($1)")
        .bind(ids)
        .execute(connection)
        .await?;
    Ok(events.len() as u64)
}

/// Writes that the ends of all logs are those that the service knows.
///
/// # Errors
/// When the database fails.
pub async fn write_root(connection: &mut PgConnection, keys: &KeyRing) -> Result<(), StoreError> {
    let mac = mac_of_ends(connection, keys).await?;
    sqlx::query(
        "INSERT INTO audit_root (mac) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET mac = $1",
    )
    .bind(mac.as_slice())
    .execute(connection)
    .await?;
    Ok(())
}

/// Authenticates the ends of all logs together.
async fn mac_of_ends(
    connection: &mut PgConnection,
    keys: &KeyRing,
) -> Result<[u8; 32], StoreError> {
    // The MAC of an end covers its log, its number and its hash.
    let ends: Vec<(Uuid, Vec<u8>)> =
        sqlx::query_as("SELECT organization_id, mac FROM audit_heads ORDER BY organization_id")
            .fetch_all(connection)
            .await?;
    let mut all = Sha256::new();
    for (organization, mac) in &ends {
        all.update(organization.as_bytes());
        all.update(Sha256::digest(mac));
    }
    let key = keys.derived("pais: ends of all audit logs");
    Ok(key.digest(&[&all.finalize()]))
}

/// Whether the ends of all logs are those that the service wrote last.
async fn has_own_ends(connection: &mut PgConnection, keys: &KeyRing) -> Result<bool, StoreError> {
    let root: Option<Vec<u8>> = sqlx::query_scalar("SELECT mac FROM audit_root")
        .fetch_optional(&mut *connection)
        .await?;
    let own = mac_of_ends(connection, keys).await?;
    Ok(root.is_some_and(|root| root == own))
}

/// A place of a log that is authenticated with a key outside the database.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    /// The last archived event, from which the log continues in the database.
    Start,
    /// The last chained event.
    End,
}

#[derive(FromRow)]
struct AnchorRow {
    seq: i64,
    hash: Vec<u8>,
    mac: Vec<u8>,
}

impl Anchor {
    fn table(self) -> &'static str {
        match self {
            Self::Start => "audit_archives",
            Self::End => "audit_heads",
        }
    }

    /// Authenticates the place of a log. Each kind has its own key: an old end must not pass for a start.
    fn mac(self, keys: &KeyRing, organization: Uuid, place: &Head) -> [u8; 32] {
        let purpose = match self {
            Self::Start => "pais: starts of audit logs",
            Self::End => "pais: ends of audit logs",
        };
        let seq = place.seq.to_be_bytes();
        let parts: [&[u8]; 3] = [organization.as_bytes(), &seq, &place.hash];
        keys.derived(purpose).digest(&parts)
    }

    /// The place; `None` if none is stored.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the place was changed by somebody without the key.
    pub(super) async fn read(
        self,
        connection: &mut PgConnection,
        keys: &KeyRing,
        organization: Uuid,
    ) -> Result<Option<Head>, StoreError> {
        let table = self.table();
        // The names of tables are of this program.
        let row: Option<AnchorRow> = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT seq, hash, mac FROM {table} WHERE organization_id = $1"
        )))
        .bind(organization)
        .fetch_optional(connection)
        .await?;
        let Some(AnchorRow { seq, hash, mac }) = row else {
            return Ok(None);
        };
        let place = hash.try_into().map(|hash| Head { seq, hash });
        let place = place.ok();
        let is_own = |place: &Head| self.mac(keys, organization, place).as_slice() == mac;
        let damaged = StoreError::Damaged("the begin or the end of the audit log's chain");
        place.filter(is_own).ok_or(damaged).map(Some)
    }

    /// Replaces the place.
    pub(super) async fn write(
        self,
        connection: &mut PgConnection,
        keys: &KeyRing,
        organization: Uuid,
        place: Head,
    ) -> Result<(), StoreError> {
        let table = self.table();
        sqlx::query(AssertSqlSafe(format!(
            "INSERT INTO {table} (organization_id, seq, hash, mac) VALUES ($1, $2, $3, $4)
             ON CONFLICT (organization_id) DO UPDATE SET seq = $2, hash = $3, mac = $4"
        )))
        .bind(organization)
        .bind(place.seq)
        .bind(place.hash.as_slice())
        .bind(self.mac(keys, organization, &place).as_slice())
        .execute(connection)
        .await?;
        Ok(())
    }
}

/// What is wrong with an audit log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    /// The event or its hash is not what was chained.
    #[error("organization {organization}: event {seq} was changed, moved or replaced")]
    Changed {
        /// The organization whose log it is.
        organization: Uuid,
        /// The place in the log.
        seq: i64,
    },
    /// The record of what was archived is not the one that the service authenticated.
    #[error(
        "organization {organization}: the log does not begin with the event after those that were archived"
    )]
    Start {
        /// The organization whose log it is.
        organization: Uuid,
    },
    /// A place of the chain has no event.
    #[error("organization {organization}: event {seq} is missing")]
    Missing {
        /// The organization whose log it is.
        organization: Uuid,
        /// The place in the log.
        seq: i64,
    },
    /// The last event of the chain is not the one that the service authenticated.
    #[error(
        "organization {organization}: the log does not end with the event that the service chained last"
    )]
    End {
        /// The organization whose log it is.
        organization: Uuid,
    },
    /// The ends of the logs together are not those that the service authenticated.
    #[error("the logs are not those of the service: one was removed, or put back to an older end")]
    Ends,
    /// Events that are in no chain and do not wait for one.
    #[error("{events} events are in no chain")]
    Unchained {
        /// Number of events.
        events: i64,
    },
}

/// The result of [`verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainCheck {
    /// Number of logs.
    pub logs: usize,
    /// Number of chained events.
    pub events: u64,
    /// Number of events that are not chained yet: a change of them is not found.
    pub pending: i64,
    /// What is wrong: of each log the first fault, then those of all logs together.
    pub faults: Vec<ChainFault>,
}

/// Checks the chains of all organizations: that no event was changed, removed, moved or added.
/// Reads the events in batches.
pub async fn verify(store: &Store, keys: &KeyRing) -> Result<ChainCheck, StoreError> {
    let mut transaction = store.begin().await?;
    // One snapshot for all that is compared.
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        .execute(&mut *transaction)
        .await?;
    let organizations: Vec<Uuid> = sqlx::query_scalar(
        "SELECT organization_id FROM audit_heads
         UNION SELECT organization_id FROM audit_archives
         UNION SELECT organization_id FROM audit_chain ORDER BY 1",
    )
    .fetch_all(&mut *transaction)
    .await?;
    let mut check = ChainCheck::default();
    for organization in organizations {
        check.logs += 1;
        let fault = verify_log(&mut transaction, keys, organization, &mut check.events).await?;
        check.faults.extend(fault);
    }
    if !has_own_ends(&mut transaction, keys).await? {
        check.faults.push(ChainFault::Ends);
    }
    check.pending = sqlx::query_scalar("SELECT count(*) FROM audit_pending")
        .fetch_one(&mut *transaction)
        .await?;
    let unchained: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM audit_events e
         WHERE NOT EXISTS (SELECT 1 FROM audit_chain c WHERE c.event_id = e.id)
           AND NOT EXISTS (SELECT 1 FROM audit_pending p WHERE p.event_id = e.id)",
    )
    .fetch_one(&mut *transaction)
    .await?;
    if unchained > 0 {
        check
            .faults
            .push(ChainFault::Unchained { events: unchained });
    }
    Ok(check)
}

async fn verify_log(
    connection: &mut PgConnection,
    keys: &KeyRing,
    organization: Uuid,
    events: &mut u64,
) -> Result<Option<ChainFault>, StoreError> {
    let mut end = match Anchor::Start.read(connection, keys, organization).await {
        Ok(start) => start.unwrap_or_default(),
        Err(StoreError::Damaged(_)) => return Ok(Some(ChainFault::Start { organization })),
        Err(error) => return Err(error),
    };
    loop {
        let batch = match read_batch(connection, organization, end, None).await? {
            Ok(batch) => batch,
            Err(fault) => return Ok(Some(fault)),
        };
        let Some((_, head)) = batch.last() else { break };
        end = *head;
        *events += batch.len() as u64;
    }
    let is_end = match Anchor::End.read(connection, keys, organization).await {
        Ok(stored) => stored == Some(end),
        Err(StoreError::Damaged(_)) => false,
        Err(error) => return Err(error),
    };
    Ok((!is_end).then_some(ChainFault::End { organization }))
}

/// The next events of a log after `end`, at most [`BATCH`] and none after the place `last`, each with its own
/// place; the first fault if one is not what was chained.
pub(super) async fn read_batch(
    connection: &mut PgConnection,
    organization: Uuid,
    mut end: Head,
    last: Option<i64>,
) -> Result<Result<Vec<(ChainedEvent, Head)>, ChainFault>, StoreError> {
    let rows = sqlx::query(
        "SELECT c.seq, c.hash, e.id, e.organization_id, e.at,
                e.token_id, e.action, e.subject, e.detail, e.address, e.outcome
         FROM audit_chain c LEFT JOIN audit_events e ON e.id = c.event_id
         WHERE c.organization_id = $1 AND c.seq > $2 AND ($4::bigint IS NULL OR c.seq <= $4)
         ORDER BY c.seq LIMIT $3",
    )
    .bind(organization)
    .bind(end.seq)
    .bind(BATCH)
    .bind(last)
    .fetch_all(connection)
    .await?;
    let mut batch = Vec::with_capacity(rows.len());
    for row in &rows {
        let seq = end.seq + 1;
        let link = Link::from_row(row)?;
        if link.seq != seq || link.id.is_none() {
            return Ok(Err(ChainFault::Missing { organization, seq }));
        }
        let event = ChainedEvent::from_row(row)?;
        end = event.after(&end);
        if link.hash != end.hash || event.organization_id != organization {
            return Ok(Err(ChainFault::Changed { organization, seq }));
        }
        batch.push((event, end));
    }
    Ok(Ok(batch))
}

/// A link of a chain, and its event if it exists.
#[derive(FromRow)]
struct Link {
    seq: i64,
    hash: Vec<u8>,
    id: Option<Uuid>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sha2::{Digest, Sha256};
    use time::macros::datetime;
    use uuid::Uuid;

    use super::{ChainedEvent, Head};

    fn event() -> ChainedEvent {
        ChainedEvent {
            id: Uuid::from_u128(1),
            organization_id: Uuid::from_u128(2),
            at: datetime!(2026-11-23 09:12:44.120 UTC),
            token_id: None,
            action: "dataset.created".to_owned(),
            subject: Some("x".to_owned()),
            detail: json!({"rows": 3, "name": "blood"}),
            address: Some("192.0.2.1".to_owned()),
            outcome: "done".to_owned(),
        }
    }

    #[test]
    fn the_hash_is_that_of_the_documented_text() {
        let text = concat!(
            "0000000000000000000000000000000000000000000000000000000000000000\n",
            r#"{"action":"dataset.created","address":"192.0.2.1","at":"2026-11-23T09:12:44.12Z","#,
            r#""detail":{"name":"blood","rows":3},"#,
            r#""id":"00000000-0000-0000-0000-000000000001","#,
            r#""organization_id":"00000000-0000-0000-0000-000000000002","#,
            r#""outcome":"done","seq":1,"subject":"x","token_id":null}"#,
        );
        let expected: [u8; 32] = Sha256::digest(text).into();
        assert_eq!(event().after(&Head::default()).hash, expected);
    }

    #[test]
    fn every_part_of_an_event_and_its_place_change_the_hash() {
        let hash = |event: ChainedEvent, previous| event.after(&previous).hash;
        let first = hash(event(), Head::default());
        let changes: [fn(&mut ChainedEvent); 9] = [
            |it| it.id = Uuid::from_u128(9),
            |it| it.organization_id = Uuid::from_u128(9),
            |it| it.at += time::Duration::microseconds(1),
            |it| it.token_id = Some(Uuid::from_u128(9)),
            |it| it.action.push('x'),
            |it| it.subject = None,
            |it| it.detail = json!({"rows": 4, "name": "blood"}),
            |it| it.address = None,
            |it| it.outcome = "refused".to_owned(),
        ];
        for change in changes {
            let mut changed = event();
            change(&mut changed);
            assert_ne!(hash(changed, Head::default()), first);
        }
        let (zeros, ones) = ([0; 32], [1; 32]);
        assert_ne!(
            hash(
                event(),
                Head {
                    seq: 1,
                    hash: zeros
                }
            ),
            first
        );
        assert_ne!(hash(event(), Head { seq: 0, hash: ones }), first);
    }
}
