//! The archive of an audit log: its oldest events are written to a file and removed from the database.
//! What remains continues the chain, so that a file can be checked against it.

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::audit::{self, Action, Actor, NewEvent};
use super::audit_chain::{self, Anchor, ChainedEvent, Head};
use super::key_ring::KeyRing;
use super::{Store, StoreError};
use crate::ids::OrganizationId;

/// Longest line of an archive, in bytes. The detail of an event is bounded by the texts that a request
/// may contain: a policy names two thousand columns and recipients of up to a KiB.
const LINE_BYTES: usize = 16 << 20;

/// An error while events are archived or an archive is read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An event has more bytes than a line of an archive may have.
    #[error(
        "event {seq} of organization {organization} is too long for an archive; nothing was removed"
    )]
    LongEvent {
        /// The organization whose log it is.
        organization: Uuid,
        /// The place in the log.
        seq: i64,
    },
    /// The file cannot be read or written.
    #[error("the archive cannot be read or written")]
    File(#[from] std::io::Error),
    /// The database did not confirm that the events were removed.
    #[error(
        "it is unknown whether the database has removed the events; keep the file, and check it by \
         `pais audit verify --archive`"
    )]
    Unconfirmed(#[source] sqlx::Error),
    /// A line is not an event.
    #[error("line {line} of the archive is no event of an audit log: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl From<sqlx::Error> for ArchiveError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// A line of an archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ArchivedEvent {
    seq: i64,
    #[serde(flatten)]
    event: ChainedEvent,
    hash: String,
    previous_hash: String,
}

impl ArchivedEvent {
    /// The event at `place`, after `previous`.
    fn new(event: ChainedEvent, place: &Head, previous: &Head) -> Self {
        Self {
            seq: place.seq,
            event,
            hash: hex::encode(place.hash),
            previous_hash: hex::encode(previous.hash),
        }
    }
}

/// What [`archive`] has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// Number of logs that are shorter now.
    pub logs: usize,
    /// Number of events.
    pub events: u64,
}

/// Writes the oldest events of every log, those before the first one at or after `before`, and then
/// removes them from the database. `finish` makes the file durable before anything is removed. An event
/// in each log records the last archived position. No other event is recorded in the meantime.
///
/// # Errors
/// When the database or the file fails, or a log does not match its hash chain: then nothing is removed.
pub async fn archive<W: Write>(
    store: &Store,
    keys: &KeyRing,
    before: OffsetDateTime,
    mut file: W,
    finish: impl FnOnce(W) -> std::io::Result<()>,
) -> Result<Archived, ArchiveError> {
    audit_chain::extend(store, keys).await?;
    let mut transaction = store.owner().begin().await?;
    audit_chain::lock(&mut transaction).await?;
    // Only the owner of the tables may switch the triggers off. Until the end of the transaction no other
    // one writes events.
    sqlx::raw_sql(
        "ALTER TABLE audit_events DISABLE TRIGGER audit_events_append_only;
         ALTER TABLE audit_chain DISABLE TRIGGER audit_chain_append_only",
    )
    .execute(&mut *transaction)
    .await?;
    let ends: Vec<(Uuid, i64)> = sqlx::query_as(
        "SELECT c.organization_id,
                coalesce(min(c.seq) FILTER (WHERE e.at >= $1) - 1, max(c.seq)) AS last
         FROM audit_chain c JOIN audit_events e ON e.id = c.event_id
         GROUP BY c.organization_id ORDER BY c.organization_id",
    )
    .bind(before)
    .fetch_all(&mut *transaction)
    .await?;
    let mut archived = Archived::default();
    for (organization, last) in ends {
        let start = Anchor::Start.read(&mut transaction, keys, organization);
        let start = start.await?.unwrap_or_default();
        if last <= start.seq {
            continue;
        }
        let end = write_log(&mut transaction, organization, start, last, &mut file).await?;
        remove_log(&mut transaction, organization, last).await?;
        let written = Anchor::Start.write(&mut transaction, keys, organization, end);
        written.await?;
        let detail = json!({ "through": last, "hash": hex::encode(end.hash) });
        let log = OrganizationId(organization);
        let action = Action::AuditArchived;
        let event = NewEvent::of(log, Actor::SERVICE, action, organization, detail);
        audit::record(&mut transaction, store.now(), event).await?;
        archived.logs += 1;
        archived.events += (end.seq - start.seq).unsigned_abs();
    }
    sqlx::raw_sql(
        "ALTER TABLE audit_events ENABLE TRIGGER audit_events_append_only;
         ALTER TABLE audit_chain ENABLE TRIGGER audit_chain_append_only",
    )
    .execute(&mut *transaction)
    .await?;
    file.flush()?;
    finish(file)?;
    let committed = transaction.commit().await;
    committed.map_err(ArchiveError::Unconfirmed)?;
    Ok(archived)
}

/// Writes the events of a log from `start` to the place `last`; returns the end of what was written.
async fn write_log(
    connection: &mut PgConnection,
    organization: Uuid,
    start: Head,
    last: i64,
    file: &mut impl Write,
) -> Result<Head, ArchiveError> {
    let mut end = start;
    while end.seq < last {
        let batch = audit_chain::read_batch(connection, organization, end, Some(last)).await?;
        let batch =
            batch.map_err(|_| StoreError::Damaged("an audit log; run `pais audit verify`"))?;
        for (event, head) in batch {
            let line = ArchivedEvent::new(event, &head, &end);
            let mut text = serde_json::to_vec(&line).map_err(std::io::Error::from)?;
            text.push(b'\n');
            // It could never be read again.
            if text.len() > LINE_BYTES {
                return Err(ArchiveError::LongEvent {
                    organization,
                    seq: head.seq,
                });
            }
            file.write_all(&text)?;
            end = head;
        }
    }
    Ok(end)
}

async fn remove_log(
    connection: &mut PgConnection,
    organization: Uuid,
    last: i64,
) -> Result<(), StoreError> {
    let events: Vec<Uuid> = sqlx::query_scalar(
        "DELETE FROM audit_chain WHERE organization_id = $1 AND seq <= $2 RETURNING event_id",
    )
    .bind(organization)
    .bind(last)
    .fetch_all(&mut *connection)
    .await?;
    sqlx::query("DELETE FROM audit_events WHERE id = ANY($1)")
        .bind(events)
        .execute(connection)
        .await?;
    Ok(())
}

/// The ends of the logs in archives, which are read in the order of their time.
#[derive(Debug, Default)]
pub struct ArchivedLogs {
    ends: BTreeMap<Uuid, Head>,
    /// Number of events that were read.
    pub events: u64,
}

/// What is wrong with an archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveFault {
    /// An event is not what was chained, or not the one after the last.
    #[error(
        "line {line}: event {seq} of organization {organization} was changed, or does not follow the one \
         before it"
    )]
    Changed {
        /// Number of the line, from 1.
        line: u64,
        /// The organization whose log it is.
        organization: Uuid,
        /// The place in the log.
        seq: i64,
    },
    /// The database continues another log.
    #[error(
        "organization {organization}: the archives do not end where the log in the database begins"
    )]
    End {
        /// The organization whose log it is.
        organization: Uuid,
    },
}

impl ArchivedLogs {
    /// Reads one more archive; stops at the first fault.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is not an event.
    pub fn read(&mut self, mut file: impl BufRead) -> Result<Option<ArchiveFault>, ArchiveError> {
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let read = Read::take(&mut file, LINE_BYTES as u64).read_until(b'\n', &mut text)?;
            if read == 0 {
                break;
            }
            let invalid = |reason: &str| ArchiveError::Line {
                line,
                reason: reason.to_owned(),
            };
            if text.last() != Some(&b'\n') {
                return Err(invalid("it is too long, or the file was cut off"));
            }
            let found: ArchivedEvent =
                serde_json::from_slice(&text).map_err(|_| invalid("its fields are not those"))?;
            let (organization, seq) = (found.event.organization_id, found.seq);
            let end = self.ends.entry(organization).or_default();
            let place = found.event.after(end);
            let expected = ArchivedEvent::new(found.event, &place, end);
            // A field that the hash does not cover would be a change, too.
            let expected = serde_json::to_vec(&expected).map_err(std::io::Error::from)?;
            if text.strip_suffix(b"\n") != Some(&expected) {
                return Ok(Some(ArchiveFault::Changed {
                    line,
                    organization,
                    seq,
                }));
            }
            *end = place;
            self.events += 1;
        }
        Ok(None)
    }

    /// Checks that each log in the database begins where the archives end.
    pub async fn check_ends(
        &self,
        store: &Store,
        keys: &KeyRing,
    ) -> Result<Vec<ArchiveFault>, StoreError> {
        let mut connection = store.connection().await?;
        let archived: Vec<Uuid> = sqlx::query_scalar("SELECT organization_id FROM audit_archives")
            .fetch_all(&mut *connection)
            .await?;
        let mut organizations: Vec<Uuid> = self.ends.keys().copied().chain(archived).collect();
        organizations.sort_unstable();
        organizations.dedup();
        let mut faults = Vec::new();
        for organization in organizations {
            let start = Anchor::Start.read(&mut connection, keys, organization);
            let start = start.await?.unwrap_or_default();
            if self.ends.get(&organization).copied().unwrap_or_default() != start {
                faults.push(ArchiveFault::End { organization });
            }
        }
        Ok(faults)
    }
}
