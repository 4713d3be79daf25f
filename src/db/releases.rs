//! Releases: immutable anonymized tables. Their holder and the recipients with a grant can read
//! them.

use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::QueryAs;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, PgExecutor, Postgres, Row};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ids::{JobId, OrganizationId, PublicationId, ReleaseId};
use crate::roles::Caller;
use pais_core::codebook::Codebook;
use pais_core::definition::{DatasetId, SuppressionFor};
use pais_core::model::MissingSensitive;
use pais_core::warning::Warning;

use super::approvals::{Approval, ApprovalColumns, approval_columns};
use super::audit::{self, Action, Actor, NewEvent};
use super::seal::{DataKey, SealedItem};
use super::{RowScope, Store, StoreError, locked_release, token_validity};

pub use super::new_release::{
    ModelOptions, NewRelease, NewReleaseFile, NewTable, StoredColumn, TableContent, create,
};
pub(crate) use super::new_release::{SourceRows, seal_source_rows, source_rows};

/// The organization that reads a release, and in which role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The holder: can read the organization's own releases.
    Holder(OrganizationId),
    /// A recipient: can read the releases that the organization has a grant for, until the grant
    /// expires.
    Recipient(OrganizationId),
}

/// The edition that a release is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EditionPlaceDocument)]
pub struct EditionPlace {
    /// The publication.
    pub publication_id: PublicationId,
    /// The number of the edition.
    pub number: u32,
    /// Rows that wait for a later edition; `None` for a recipient. Its own document has it.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub held_back_rows: Option<u64>,
}

/// A release.
#[derive(Clone, Debug, PartialEq, FromRow, Serialize, ToSchema)]
#[schema(as = ReleaseDocument)]
pub struct StoredRelease {
    /// Its id.
    pub id: ReleaseId,
    /// The organization that owns it.
    #[serde(skip)]
    pub organization: OrganizationId,
    /// The job it comes from.
    #[serde(rename = "job_id")]
    pub job: JobId,
    /// The dataset it comes from.
    #[serde(rename = "dataset_id")]
    pub dataset: DatasetId,
    /// A name for people.
    pub name: Option<String>,
    /// The step after which the table was released; null for a method without steps. Absent for a
    /// recipient: how many steps a search takes depends on rows that are not released.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub step: Option<Value>,
    /// Rows released.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// Rows left out.
    #[sqlx(try_from = "i64")]
    pub suppressed_rows: u64,
    /// Persons whose rows are released; absent without a column of the role `subject`, and in a list. Groups
    /// and risks then count persons.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[sqlx(default)]
    pub subjects: Option<i64>,
    /// Its tables: `data`; or `qit` and one `st_<column>` a sensitive column.
    #[schema(value_type = Vec<TableDocument>)]
    pub tables: Value,
    /// The privacy model with its parameters.
    #[schema(value_type = Object)]
    pub privacy: Value,
    /// Column to the labels of its cut; with global recoding only, and absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, Vec<String>>>)]
    #[sqlx(default)]
    pub cut: Option<Value>,
    /// What the verifier found; absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    #[sqlx(default)]
    pub verification: Option<Value>,
    /// The release at a glance: more than that it meets its model. Absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<pais_core::table::Verdict>)]
    #[sqlx(default)]
    pub verdict: Option<String>,
    /// The reasons for which rows could be suppressed; absent if suppression was not possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[sqlx(json(nullable))]
    pub suppression_for: Option<SuppressionFor>,
    /// How missing sensitive cells count.
    #[schema(value_type = Option<MissingSensitive>)]
    #[sqlx(json)]
    pub missing_sensitive: MissingSensitive,
    /// What a reader should know about it.
    #[sqlx(json)]
    pub warnings: Vec<Warning>,
    /// Of the CSV as served, hexadecimal; where there is one table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What resolves its labels: columns, roles, and the taxonomies above the cut. Absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Codebook>)]
    #[sqlx(default)]
    pub codebook: Option<Value>,
    /// The purpose of the grant, for a recipient; absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[sqlx(default)]
    pub purpose: Option<String>,
    /// Its edition of a publication; absent if it is not an edition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<EditionPlace>)]
    pub edition: Option<Json<EditionPlace>>,
    /// When it was made; of an edition, for a recipient, when it was published.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Whether a second person lets it leave; absent where the policy requires no approval and nobody has
    /// decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[sqlx(flatten, try_from = "ApprovalColumns")]
    pub approval: Option<Approval>,
    /// Since when and why the release is withdrawn; absent where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[sqlx(flatten, try_from = "WithdrawalColumns")]
    pub withdrawn: Option<Withdrawal>,
}

impl StoredRelease {
    /// What resolves its labels.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] for one that cannot be read, and for a release of a list, which has none.
    pub(crate) fn codebook(&self) -> Result<Codebook, StoreError> {
        let codebook = self.codebook.as_ref().map(Codebook::deserialize);
        let codebook = codebook.and_then(Result::ok);
        codebook.ok_or(StoreError::Damaged("the codebook of a release"))
    }

    /// The step after which the table was released, for the holder of a release with steps.
    pub(crate) fn step(&self) -> Option<u32> {
        u32::try_from(self.step.as_ref()?.as_u64()?).ok()
    }
}

/// A table of a release.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TableDocument {
    /// `data`, `qit` or `st_<column>`.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Of the CSV as served, hexadecimal; null for a table whose rows are in the files of the release alone.
    pub sha256: Option<String>,
    /// Size of the CSV as served; null for such a table.
    pub bytes: Option<u64>,
}

/// Where a table of a release is.
#[derive(Clone, Copy, Debug, FromRow)]
pub(crate) struct TablePlace {
    /// The organization that owns the release.
    pub organization: OrganizationId,
    /// Whether the release was withdrawn, so that the table is not served.
    pub is_withdrawn: bool,
    /// Whether its rows are only in the files of the release.
    pub is_in_files: bool,
}

/// A table of a release whose rows are stored, without its rows.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct StoredTable {
    /// The organization that owns the release.
    pub organization: OrganizationId,
    /// The release.
    pub release: ReleaseId,
    /// The display name of the release.
    pub release_name: Option<String>,
    /// `data`, `qit` or `st_<column>`.
    pub name: String,
    /// Position among the tables of the release, from 0.
    #[sqlx(try_from = "i32")]
    pub position: u32,
    /// Number of rows.
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// Its columns.
    #[sqlx(json)]
    pub columns: Vec<StoredColumn>,
    /// SHA-256 of the CSV as served, hexadecimal.
    pub sha256: String,
    /// Size of the CSV as served, in bytes.
    #[sqlx(try_from = "i64")]
    pub csv_bytes: u64,
    /// Whether the release was withdrawn, so that the table is not served.
    pub is_withdrawn: bool,
}

/// The warnings of a release `r`. `$1` is whether the viewer is the holder: how often identifiers repeat is counted on
/// raw rows.
macro_rules! warnings {
    () => {
        "CASE WHEN $1 THEN r.warnings
         ELSE jsonb_path_query_array(r.warnings, '$[*] ? (@.code != \"repeated_identifier\")') END AS warnings"
    };
}

/// The columns of a release `r` with its row `a` of `release_approvals`, if it has one. `$1` is whether the
/// viewer is the holder.
macro_rules! columns {
    () => {
        concat!(approval_columns!(), ", r.id, r.organization_id AS organization, r.job_id AS job, r.dataset_id AS dataset, r.name,
         CASE WHEN $1 THEN coalesce(to_jsonb(r.step), 'null') END AS step, r.rows,
         r.suppressed_rows, r.privacy, ", warnings!(), ",
         CASE WHEN $1 THEN r.created_at ELSE coalesce((SELECT e.published_at FROM editions e
              WHERE e.release_id = r.id), r.created_at) END AS created_at,
         r.withdrawn_at, r.withdrawn_reason,
         (SELECT jsonb_build_object('publication_id', e.publication_id, 'number', e.number,
                                    'held_back_rows', CASE WHEN $1 THEN e.held_back_rows END)
          FROM editions e WHERE e.release_id = r.id) AS edition,
         to_jsonb(r.suppression_for) AS suppression_for,
         to_jsonb(r.missing_sensitive) AS missing_sensitive,
         (SELECT jsonb_agg(jsonb_build_object(
              'name', t.name, 'rows', t.rows, 'sha256', encode(t.sha256, 'hex'),
              'bytes', t.csv_bytes) ORDER BY t.position)
          FROM release_tables t WHERE t.release_id = r.id) AS tables,
         (SELECT encode((array_agg(t.sha256))[1], 'hex') FROM release_tables t
          WHERE t.release_id = r.id HAVING count(*) = 1) AS sha256")
    };
}

/// The condition that the viewer can read release `r`. `$1` is whether the viewer is the holder, `$2` its
/// organization, `$3` the current time. If the holder's policy requires approval, the grants of a release take
/// effect on approval; those of a rejected release never do.
macro_rules! visible {
    () => {
        "(CASE WHEN $1 THEN r.organization_id = $2 ELSE EXISTS (
              SELECT 1 FROM grants g WHERE g.release_id = r.id AND g.recipient_id = $2
              AND (g.expires_at IS NULL OR g.expires_at > $3))
          AND coalesce(
              (SELECT d.decision = 'approved' FROM release_approvals d WHERE d.release_id = r.id),
              NOT EXISTS (SELECT 1 FROM policies p WHERE p.organization_id = r.organization_id
                          AND p.require_approval)) END)"
    };
}

pub(super) use visible;

/// Binds what the condition `visible!()` of a query needs: its `$1` to `$3`.
pub(super) fn seen_by<O>(
    query: QueryAs<'_, Postgres, O, PgArguments>,
    viewer: Viewer,
    now: OffsetDateTime,
) -> QueryAs<'_, Postgres, O, PgArguments> {
    let query = query.bind(viewer.is_holder());
    query.bind(viewer.organization()).bind(now)
}

impl Viewer {
    /// Whether the release is the viewer's own.
    pub(crate) fn is_holder(self) -> bool {
        matches!(self, Self::Holder(_))
    }

    pub(super) fn organization(self) -> OrganizationId {
        match self {
            Self::Holder(organization) | Self::Recipient(organization) => organization,
        }
    }
}

/// A release; `None` if the viewer cannot read it.
pub(crate) async fn load(
    store: &Store,
    viewer: Viewer,
    id: ReleaseId,
) -> Result<Option<StoredRelease>, StoreError> {
    let query = sqlx::query_as(concat!(
        "SELECT ",
        columns!(),
        ", r.cut, r.verification, r.report->>'verdict' AS verdict, r.codebook,
         (r.report->>'subjects')::bigint AS subjects,
         (SELECT g.purpose FROM grants g
          WHERE NOT $1 AND g.release_id = r.id AND g.recipient_id = $2
          AND (g.expires_at IS NULL OR g.expires_at > $3)
          ORDER BY g.created_at DESC LIMIT 1) AS purpose
         FROM releases r LEFT JOIN release_approvals a ON a.release_id = r.id WHERE r.id = $4 AND ",
        visible!()
    ));
    Ok(seen_by(query, viewer, store.now())
        .bind(id)
        .fetch_optional(&mut *store.connection().await?)
        .await?)
}

/// Approximate maximum size of the documents of releases in one list, in bytes: a job may list many sensitive
/// values.
const LIST_BYTES: usize = 4 << 20;

/// Some releases of a list.
#[derive(Debug, Default)]
pub struct ListedReleases {
    /// The releases, oldest first.
    pub releases: Vec<StoredRelease>,
    /// Whether the list continues after them.
    pub has_more: bool,
}

/// The releases after `after` that the viewer can read, oldest first, at most `limit`, and fewer where
/// their documents are large.
pub async fn list(
    store: &Store,
    viewer: Viewer,
    after: Option<Uuid>,
    limit: u16,
) -> Result<ListedReleases, StoreError> {
    let mut connection = store.connection().await?;
    let mut rows = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM releases r LEFT JOIN release_approvals a ON a.release_id = r.id
         WHERE ($4::uuid IS NULL OR r.id > $4) AND ",
        visible!(),
        " ORDER BY r.id LIMIT $5"
    ))
    .bind(viewer.is_holder())
    .bind(viewer.organization())
    .bind(store.now())
    .bind(after)
    .bind(i64::from(limit) + 1)
    .fetch(&mut *connection);
    let (mut listed, mut bytes) = (ListedReleases::default(), 0);
    while let Some(row) = rows.try_next().await? {
        if listed.releases.len() == usize::from(limit) || bytes > LIST_BYTES {
            listed.has_more = true;
            break;
        }
        bytes += row_bytes(&row);
        listed.releases.push(StoredRelease::from_row(&row)?);
    }
    Ok(listed)
}

/// The bytes of a row as the database sent it.
fn row_bytes(row: &PgRow) -> usize {
    let values = (0..row.len()).filter_map(|index| row.try_get_raw(index).ok());
    let values = values.filter_map(|value| value.as_bytes().ok());
    values.map(<[u8]>::len).sum()
}

/// The approximate size of the documents of a release, in bytes.
#[derive(Clone, Copy, Debug, Default, FromRow)]
pub(crate) struct DocumentBytes {
    /// Of the release itself.
    #[sqlx(try_from = "i64")]
    pub release: u64,
    /// Of its report.
    #[sqlx(try_from = "i64")]
    pub report: u64,
}

/// The bytes of the documents of a release as text, so that the memory for them can be reserved before they are
/// read; 0 if there is no such release. Documents of less than 16 KiB in the database count as 0: they are
/// compressed there, and can have up to a megabyte of text.
pub(crate) async fn document_bytes(
    store: &Store,
    id: ReleaseId,
) -> Result<DocumentBytes, StoreError> {
    let found: Option<DocumentBytes> = sqlx::query_as(
        "SELECT CASE WHEN pg_column_size(cut) > 16384 THEN octet_length(cut::text) ELSE 0 END::bigint
              + CASE WHEN pg_column_size(codebook) > 16384
                     THEN octet_length(codebook::text) ELSE 0 END AS release,
                CASE WHEN pg_column_size(report) > 16384
                     THEN octet_length(report::text) ELSE 0 END::bigint AS report
         FROM releases WHERE id = $1",
    )
    .bind(id)
    .fetch_optional(&mut *store.connection().await?)
    .await?;
    Ok(found.unwrap_or_default())
}

/// The report of a release.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct StoredReport {
    /// The report as it was measured.
    pub report: Value,
    /// What a reader should know about the release.
    #[sqlx(json)]
    pub warnings: Vec<Warning>,
    /// Whether the release was withdrawn, so that the report is not served.
    pub is_withdrawn: bool,
}

/// The report of a release; `None` if the viewer cannot read it.
pub(crate) async fn report(
    store: &Store,
    viewer: Viewer,
    id: ReleaseId,
) -> Result<Option<StoredReport>, StoreError> {
    let query = sqlx::query_as(concat!(
        "SELECT r.report, ",
        warnings!(),
        ", r.withdrawn_at IS NOT NULL AS is_withdrawn
         FROM releases r WHERE r.id = $4 AND ",
        visible!()
    ));
    Ok(seen_by(query, viewer, store.now())
        .bind(id)
        .fetch_optional(&mut *store.connection().await?)
        .await?)
}

/// Where a table of a release is; `None` if there is none or the viewer cannot read the release.
pub(crate) async fn table_place(
    store: &Store,
    viewer: Viewer,
    id: ReleaseId,
    name: &str,
) -> Result<Option<TablePlace>, StoreError> {
    let query = sqlx::query_as(concat!(
        "SELECT r.organization_id AS organization, r.withdrawn_at IS NOT NULL AS is_withdrawn,
                t.sha256 IS NULL AS is_in_files
         FROM releases r JOIN release_tables t ON t.release_id = r.id
         WHERE r.id = $4 AND t.name = $5 AND ",
        visible!()
    ));
    Ok(seen_by(query, viewer, store.now())
        .bind(id)
        .bind(name)
        .fetch_optional(&mut *store.connection().await?)
        .await?)
}

/// Whether the viewer can read all of these releases, and none is withdrawn.
pub(crate) async fn are_readable(
    store: &Store,
    viewer: Viewer,
    ids: &[ReleaseId],
) -> Result<bool, StoreError> {
    let readable = concat!(
        "SELECT count(*) FROM releases r WHERE r.id = ANY ($4) AND r.withdrawn_at IS NULL AND ",
        visible!()
    );
    let readable: i64 = sqlx::query_scalar(readable)
        .bind(viewer.is_holder())
        .bind(viewer.organization())
        .bind(store.now())
        .bind(ids)
        .fetch_one(&mut *store.connection().await?)
        .await?;
    Ok(readable as usize == ids.len())
}

/// A table of a release whose rows are stored; `None` if there is none or the viewer cannot read the
/// release.
pub(crate) async fn table(
    store: &Store,
    viewer: Viewer,
    id: ReleaseId,
    name: &str,
) -> Result<Option<StoredTable>, StoreError> {
    let query = sqlx::query_as(concat!(
        "SELECT r.organization_id AS organization, r.id AS release, r.name AS release_name, t.name,
                t.position, t.rows, t.columns, encode(t.sha256, 'hex') AS sha256, t.csv_bytes,
                r.withdrawn_at IS NOT NULL AS is_withdrawn
         FROM releases r JOIN release_tables t ON t.release_id = r.id
         WHERE r.id = $4 AND t.name = $5 AND t.sha256 IS NOT NULL AND ",
        visible!()
    ));
    Ok(seen_by(query, viewer, store.now())
        .bind(id)
        .bind(name)
        .fetch_optional(&mut *store.connection().await?)
        .await?)
}

/// The outcome of [`record_fetch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// The fetch is recorded.
    Recorded,
    /// A release is withdrawn; nothing is recorded.
    Withdrawn,
    /// The viewer cannot read a release any more; nothing is recorded.
    NotVisible,
}

/// Records in the audit logs of the holder and of the caller that the caller fetches a table or report. That is
/// the last check before it is sent: it may have taken long to make. What is then decided on the releases that a
/// recipient knows sees the fetch, or the fetch sees a withdrawal or the end of a grant that came before.
///
/// # Errors
/// [`StoreError::TokenEnded`]; when the database fails.
pub(crate) async fn record_fetch(
    store: &Store,
    by: Caller,
    viewer: Viewer,
    releases: &[ReleaseId],
    part: &str,
) -> Result<Fetch, StoreError> {
    let now = store.now();
    let mut transaction = token_validity::begin(store, by).await?;
    if let Viewer::Recipient(recipient) = viewer {
        sqlx::query(concat!(
            "INSERT INTO release_readers (release_id, recipient_id)
             SELECT r.id, $2 FROM releases r WHERE r.id = ANY ($4) AND ",
            visible!(),
            " ORDER BY r.id ON CONFLICT DO NOTHING"
        ))
        .bind(viewer.is_holder())
        .bind(recipient)
        .bind(now)
        .bind(releases)
        .execute(&mut *transaction)
        .await?;
        // After the locks of the releases, as in a grant.
        let datasets: Vec<DatasetId> = sqlx::query_scalar(
            "SELECT DISTINCT dataset_id FROM releases WHERE id = ANY ($1) ORDER BY dataset_id",
        )
        .bind(releases)
        .fetch_all(&mut *transaction)
        .await?;
        for dataset in datasets {
            lock_recipient(&mut transaction, dataset, recipient).await?;
        }
    }
    let query = sqlx::query_as(concat!(
        "SELECT r.organization_id, r.withdrawn_at IS NOT NULL FROM releases r WHERE r.id = ANY ($4) AND ",
        visible!()
    ));
    let query = seen_by(query, viewer, now).bind(releases);
    let found: Vec<(OrganizationId, bool)> = query.fetch_all(&mut *transaction).await?;
    let Some(&(owner, _)) = found.first().filter(|_| found.len() == releases.len()) else {
        return Ok(Fetch::NotVisible);
    };
    if found.iter().any(|&(_, is_withdrawn)| is_withdrawn) {
        return Ok(Fetch::Withdrawn);
    }
    for release in releases {
        let detail = json!({ "part": part, "by": by.organization });
        let event = NewEvent::by(by, Action::ReleaseFetched, release.0, detail);
        audit::record_in_both(&mut transaction, now, event, owner).await?;
    }
    transaction.commit().await?;
    Ok(Fetch::Recorded)
}

/// Records in the audit logs of the holder and of the caller that the caller made a link to the
/// report.
pub(crate) async fn record_link(
    store: &Store,
    by: Caller,
    release: ReleaseId,
) -> Result<(), StoreError> {
    let mut transaction = token_validity::begin(store, by).await?;
    let owner = sqlx::query_scalar("SELECT organization_id FROM releases WHERE id = $1")
        .bind(release)
        .fetch_one(&mut *transaction)
        .await?;
    let detail = json!({ "by": by.organization });
    let event = NewEvent::by(by, Action::ReportLinked, release.0, detail);
    audit::commit_in_both(transaction, store.now(), event, owner).await
}

/// The chunks of a table, in order.
pub(crate) async fn chunks(store: &Store, table: &StoredTable) -> Result<Vec<Vec<u8>>, StoreError> {
    let chunks = sqlx::query_scalar(
        "SELECT data FROM release_chunks WHERE release_id = $1 AND table_name = $2 ORDER BY index",
    );
    let chunks = chunks.bind(table.release).bind(&table.name);
    Ok(chunks.fetch_all(&mut *store.connection().await?).await?)
}

/// Waits until no other transaction makes a grant of a release of the dataset to the recipient, or records a fetch
/// by it: the later of two sees the earlier one.
pub(super) async fn lock_recipient(
    connection: &mut PgConnection,
    dataset: DatasetId,
    recipient: OrganizationId,
) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1::text || $2::text, 13))")
        .bind(dataset)
        .bind(recipient)
        .execute(connection)
        .await?;
    Ok(())
}

/// The condition that the recipient `$3` has fetched a release `r`, which may be withdrawn, or has a grant of it
/// at the time `$4`.
macro_rules! is_known {
    () => {
        "(EXISTS (SELECT 1 FROM release_readers k
                  WHERE k.release_id = r.id AND k.recipient_id = $3)
          OR r.withdrawn_at IS NULL AND NOT EXISTS (
                  SELECT 1 FROM release_approvals a
                  WHERE a.release_id = r.id AND a.decision = 'rejected') AND EXISTS (
                  SELECT 1 FROM grants g WHERE g.release_id = r.id AND g.recipient_id = $3
                  AND (g.expires_at IS NULL OR g.expires_at > $4)))"
    };
}

/// The releases of a dataset that a recipient has fetched, withdrawn ones too, or has a grant of,
/// without the release `except`; ordered by id. `executor` is a connection or a transaction.
pub(crate) async fn known_releases(
    executor: impl PgExecutor<'_>,
    recipient: OrganizationId,
    dataset: DatasetId,
    except: Option<ReleaseId>,
    now: OffsetDateTime,
) -> Result<Vec<ReleaseId>, StoreError> {
    Ok(sqlx::query_scalar(concat!(
        "SELECT r.id FROM releases r
         WHERE r.dataset_id = $1 AND r.id IS DISTINCT FROM $2 AND ",
        is_known!(),
        " ORDER BY r.id",
    ))
    .bind(dataset)
    .bind(except)
    .bind(recipient)
    .bind(now)
    .fetch_all(executor)
    .await?)
}

/// The releases of other datasets of the holder of a release that a recipient has fetched or has a grant of, as
/// [`known_releases`], and that have at least two released columns with names of columns of that release:
/// they may be about the same persons. Ordered by id.
pub(crate) async fn similar_known_releases(
    executor: impl PgExecutor<'_>,
    recipient: OrganizationId,
    release: &StoredRelease,
    now: OffsetDateTime,
) -> Result<Vec<ReleaseId>, StoreError> {
    Ok(sqlx::query_scalar(concat!(
        "SELECT r.id FROM releases r, releases shown
         WHERE shown.id = $2 AND r.organization_id = shown.organization_id AND r.dataset_id <> $1 AND ",
        is_known!(),
        " AND (SELECT count(*)
               FROM jsonb_array_elements(r.codebook -> 'columns') c
               JOIN jsonb_array_elements(shown.codebook -> 'columns') s
                    ON lower(c ->> 'name') = lower(s ->> 'name')) >= 2
         ORDER BY r.id",
    ))
    .bind(release.dataset)
    .bind(release.id)
    .bind(recipient)
    .bind(now)
    .fetch_all(executor)
    .await?)
}

/// The names around a release.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub(crate) struct ReportContext {
    /// The name of its dataset, which may be deleted.
    pub dataset: String,
    /// What the dataset is, in its holder's words; `None` for a deleted dataset.
    pub description: Option<String>,
    /// The name of its holder, its display name if there is one.
    pub holder: String,
    /// The name of the organization that reads, its display name if there is one.
    pub reader: String,
}

/// The names around a release that an organization reads.
///
/// # Errors
/// When the database fails, or there is no such release or organization.
pub(crate) async fn report_context(
    store: &Store,
    reader: OrganizationId,
    release: ReleaseId,
) -> Result<ReportContext, StoreError> {
    Ok(sqlx::query_as(
        "SELECT d.name AS dataset, d.definition ->> 'description' AS description,
                coalesce(o.display_name, o.name) AS holder,
                coalesce(reader.display_name, reader.name) AS reader
         FROM releases r JOIN datasets d ON d.id = r.dataset_id
         JOIN organizations o ON o.id = r.organization_id
         JOIN organizations reader ON reader.id = $2
         WHERE r.id = $1",
    )
    .bind(release)
    .bind(reader)
    // The names are for recipients, too; nothing else of a dataset is.
    .fetch_one(&mut *store.within(RowScope::Service).connection().await?)
    .await?)
}

/// The shares of raw values and labels in the columns of a release, as JSON; `None` if there are none, as for a
/// release of a deleted dataset.
///
/// # Errors
/// When the database fails, or the stored data is damaged.
pub(crate) async fn distributions(
    store: &Store,
    key: &DataKey,
    release: ReleaseId,
) -> Result<Option<Value>, StoreError> {
    let sealed: Option<Vec<u8>> =
        sqlx::query_scalar("SELECT sealed_distributions FROM releases WHERE id = $1")
            .bind(release)
            .fetch_one(&mut *store.connection().await?)
            .await?;
    let Some(sealed) = sealed else {
        return Ok(None);
    };
    let opened = key.open(SealedItem::Distributions(release), &sealed)?;
    let damaged = |_| StoreError::Damaged("the distributions of a release");
    serde_json::from_slice(&opened).map_err(damaged)
}

/// Why and since when a release is withdrawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = WithdrawalDocument)]
pub struct Withdrawal {
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The holder's reason, which recipients see.
    pub reason: String,
}

/// The columns of a release that have its withdrawal.
#[derive(FromRow)]
struct WithdrawalColumns {
    withdrawn_at: Option<OffsetDateTime>,
    withdrawn_reason: Option<String>,
}

impl From<WithdrawalColumns> for Option<Withdrawal> {
    fn from(columns: WithdrawalColumns) -> Self {
        let (at, reason) = columns.withdrawn_at.zip(columns.withdrawn_reason)?;
        Some(Withdrawal { at, reason })
    }
}

/// The result of [`withdraw`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithdrawalCreation {
    /// The release is withdrawn.
    Made(Withdrawal),
    /// The organization has no such release.
    NoRelease,
    /// The release was withdrawn before.
    Exists,
}

/// Withdraws a release of the caller's organization.
pub async fn withdraw(
    store: &Store,
    by: Caller,
    release: ReleaseId,
    reason: &str,
) -> Result<WithdrawalCreation, StoreError> {
    let mut transaction = token_validity::begin(store, by).await?;
    let found = locked_release::lock(&mut transaction, by.organization, release).await?;
    let Some(found) = found else {
        return Ok(WithdrawalCreation::NoRelease);
    };
    if found.is_withdrawn {
        return Ok(WithdrawalCreation::Exists);
    }
    let withdrawal = Withdrawal {
        at: store.now(),
        reason: reason.to_owned(),
    };
    let (organization, actor) = (by.organization, Actor::from(by));
    record_withdrawal(&mut transaction, organization, actor, release, &withdrawal).await?;
    transaction.commit().await?;
    Ok(WithdrawalCreation::Made(withdrawal))
}

/// Withdraws a release, which is locked, with the event of it.
pub(super) async fn record_withdrawal(
    connection: &mut PgConnection,
    organization: OrganizationId,
    by: Actor,
    release: ReleaseId,
    withdrawal: &Withdrawal,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE releases SET withdrawn_at = $2, withdrawn_reason = $3 WHERE id = $1")
        .bind(release)
        .bind(withdrawal.at)
        .bind(&withdrawal.reason)
        .execute(&mut *connection)
        .await?;
    let detail = json!({ "reason": withdrawal.reason });
    let event = NewEvent::of(
        organization,
        by,
        Action::ReleaseWithdrawn,
        release.0,
        detail,
    );
    audit::record(connection, withdrawal.at, event).await
}
