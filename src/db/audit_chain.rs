//! The chain of hashes over the audit log of each organization: extended by the service, checked by
//! `pais audit verify`.

use std::collections::BTreeMap;

use sqlx::{FromRow, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

use super::audit_link::{ChainedEvent, FIRST_PREVIOUS};
use super::key_ring::KeyRing;
use super::{RowScope, Store, StoreError};

/// Number of events that are chained in one transaction.
pub(super) const BATCH: i64 = 1_000;

/// The advisory lock of those who extend chains.
const LOCK: i64 = 0x7061_6973_6175;

/// A place in a chain: that of its last event, or of the last archived one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub seq: i64,
    pub hash: [u8; 32],
}

impl Default for Head {
    fn default() -> Self {
        Self {
            seq: 0,
            hash: FIRST_PREVIOUS,
        }
    }
}

/// Gives every committed event its place in the chain of its organization. Costs one look-up where
/// there is none.
///
/// # Errors
/// When the database fails, or the end of a chain was changed by somebody without the key.
pub async fn extend(store: &Store, keys: &KeyRing) -> Result<u64, StoreError> {
    // The events that wait are those of all organizations.
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

async fn extend_by_batch(connection: &mut PgConnection, keys: &KeyRing) -> Result<u64, StoreError> {
    let events: Vec<ChainedEvent> = sqlx::query_as(
        "SELECT e.id, e.organization_id, e.at, e.token_id, e.action, e.subject, e.detail,
                e.address, e.outcome
         FROM audit_pending p JOIN audit_events e ON e.id = p.event_id
         ORDER BY e.id LIMIT $1",
    )
    .bind(BATCH)
    .fetch_all(&mut *connection)
    .await?;
    let mut heads = BTreeMap::new();
    let mut links = Links::default();
    for event in &events {
        let head = match heads.get(&event.organization) {
            Some(head) => *head,
            None => {
                let end = Anchor::End.read(connection, keys, event.organization);
                end.await?.unwrap_or_default()
            }
        };
        let seq = head.seq + 1;
        let hash = event.hash(seq, &head.hash);
        heads.insert(event.organization, Head { seq, hash });
        links.push(event, seq, hash);
    }
    links.insert(connection).await?;
    for (organization, head) in heads {
        let mac = Anchor::End.mac(keys, organization, &head);
        sqlx::query(
            "INSERT INTO audit_heads (organization_id, seq, hash, mac) VALUES ($1, $2, $3, $4)
             ON CONFLICT (organization_id) DO UPDATE SET seq = $2, hash = $3, mac = $4",
        )
        .bind(organization)
        .bind(head.seq)
        .bind(head.hash.as_slice())
        .bind(mac.as_slice())
        .execute(&mut *connection)
        .await?;
    }
    sqlx::query("DELETE FROM audit_pending WHERE event_id = ANY($1)")
        .bind(events.iter().map(|event| event.id).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(events.len() as u64)
}

/// The columns of new links.
#[derive(Default)]
struct Links {
    organizations: Vec<Uuid>,
    seqs: Vec<i64>,
    events: Vec<Uuid>,
    hashes: Vec<Vec<u8>>,
}

impl Links {
    fn push(&mut self, event: &ChainedEvent, seq: i64, hash: [u8; 32]) {
        self.organizations.push(event.organization);
        self.seqs.push(seq);
        self.events.push(event.id);
        self.hashes.push(hash.to_vec());
    }

    async fn insert(self, connection: &mut PgConnection) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO audit_chain (organization_id, seq, event_id, hash)
             SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::bytea[])",
        )
        .bind(self.organizations)
        .bind(self.seqs)
        .bind(self.events)
        .bind(self.hashes)
        .execute(connection)
        .await?;
        Ok(())
    }
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
    fn mac(self, keys: &KeyRing, organization: Uuid, head: &Head) -> [u8; 32] {
        match self {
            Self::Start => keys.audit_start(organization, head.seq, &head.hash),
            Self::End => keys.audit_head(organization, head.seq, &head.hash),
        }
    }

    /// The place; `None` where none is stored.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the place was changed by somebody without the key.
    pub(super) async fn read(
        self,
        connection: &mut PgConnection,
        keys: &KeyRing,
        organization: Uuid,
    ) -> Result<Option<Head>, StoreError> {
        let (query, what) = match self {
            Self::Start => (
                "SELECT seq, hash, mac FROM audit_archives WHERE organization_id = $1",
                "the begin of the audit log's chain",
            ),
            Self::End => (
                "SELECT seq, hash, mac FROM audit_heads WHERE organization_id = $1",
                "the end of the audit log's chain",
            ),
        };
        let row: Option<AnchorRow> = sqlx::query_as(query)
            .bind(organization)
            .fetch_optional(connection)
            .await?;
        let Some(AnchorRow { seq, hash, mac }) = row else {
            return Ok(None);
        };
        let damaged = StoreError::Damaged { what };
        let Ok(hash) = hash.try_into() else {
            return Err(damaged);
        };
        let head = Head { seq, hash };
        if self.mac(keys, organization, &head).as_slice() != mac {
            return Err(damaged);
        }
        Ok(Some(head))
    }
}

/// Sets the place from which a log continues in the database, and when it was archived.
///
/// # Errors
/// When the database fails.
pub(super) async fn write_start(
    connection: &mut PgConnection,
    keys: &KeyRing,
    organization: Uuid,
    start: Head,
    archived_at: OffsetDateTime,
) -> Result<(), StoreError> {
    let mac = Anchor::Start.mac(keys, organization, &start);
    sqlx::query(
        "INSERT INTO audit_archives (organization_id, seq, hash, mac, archived_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (organization_id) DO UPDATE
             SET seq = $2, hash = $3, mac = $4, archived_at = $5",
    )
    .bind(organization)
    .bind(start.seq)
    .bind(start.hash.as_slice())
    .bind(mac.as_slice())
    .bind(archived_at)
    .execute(connection)
    .await?;
    Ok(())
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
    /// What is wrong: of each log the first fault.
    pub faults: Vec<ChainFault>,
}

/// Checks the chains of all organizations: that no event was changed, removed, moved or added.
/// Reads the events in batches.
///
/// # Errors
/// When the database fails.
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
        Err(StoreError::Damaged { .. }) => return Ok(Some(ChainFault::Start { organization })),
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
        Err(StoreError::Damaged { .. }) => false,
        Err(error) => return Err(error),
    };
    Ok((!is_end).then_some(ChainFault::End { organization }))
}

/// The next events of a log after `end`, at most [`BATCH`] and none behind the place `last`, each with its
/// own place; the first fault where one is not what was chained.
///
/// # Errors
/// When the database fails.
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
        if link.seq != seq || link.event.is_none() {
            return Ok(Err(ChainFault::Missing { organization, seq }));
        }
        let event = ChainedEvent::from_row(row)?;
        let hash = event.hash(seq, &end.hash);
        if link.hash != hash || event.organization != organization {
            return Ok(Err(ChainFault::Changed { organization, seq }));
        }
        end = Head { seq, hash };
        batch.push((event, end));
    }
    Ok(Ok(batch))
}

/// A link of a chain, and its event if that is there.
#[derive(FromRow)]
struct Link {
    seq: i64,
    hash: Vec<u8>,
    #[sqlx(rename = "id")]
    event: Option<Uuid>,
}
