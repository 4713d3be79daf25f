//! Approvals: whether a second person of an organization approves the delivery of a release.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{FromRow, PgConnection};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use pais_core::definition::DatasetId;

use crate::ids::{OrganizationId, ReleaseId, TokenId};
use crate::roles::Caller;

use super::audit::{self, Action, NewEvent};
use super::officers;
use super::policies::check_release;
use super::{Store, StoreError, locked_release};

/// Whether a release may leave.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, sqlx::Type,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Decision {
    /// It may.
    #[default]
    Approved,
    /// It may not, and no grant of it takes effect.
    Rejected,
}

/// Where the approval of a release is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// Nobody has decided, and the policy requires it.
    Pending,
    /// It may leave.
    Approved,
    /// It may not.
    Rejected,
}

impl ApprovalStatus {
    /// The words, as in JSON.
    pub(crate) const WORDS: [&str; 3] = ["pending", "approved", "rejected"];
}

impl From<Decision> for ApprovalStatus {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Approved => Self::Approved,
            Decision::Rejected => Self::Rejected,
        }
    }
}

/// The token of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DecidedBy {
    /// The token.
    pub token_id: TokenId,
    /// What it is for; of a person who signs in with the issuer, the issuer's subject.
    pub label: Option<String>,
}

/// The approval of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ApprovalDocument)]
pub struct Approval {
    /// Where it is.
    pub status: ApprovalStatus,
    /// With which token it was decided; for the holder's organization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<DecidedBy>,
    /// When it was decided.
    #[serde(
        skip_serializing_if = "Option::is_none",
        with = "time::serde::rfc3339::option"
    )]
    pub at: Option<OffsetDateTime>,
    /// Why, for the holder's organization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The columns of [`ApprovalColumns`] of a release `r` with its row `a` of `release_approvals`, if it has one.
/// `$1` is whether the viewer is the holder: only the holder sees who decided and why.
macro_rules! approval_columns {
    () => {
        "a.decision, a.decided_at, CASE WHEN $1 THEN a.decided_by END AS decided_by,
         CASE WHEN $1 THEN a.reason END AS decision_reason,
         (SELECT coalesce(t.label, t.oidc_subject) FROM tokens t
          WHERE $1 AND t.id = a.decided_by) AS decided_by_label,
         (r.withdrawn_at IS NULL AND EXISTS (
              SELECT FROM policies p
              WHERE p.organization_id = r.organization_id AND p.require_approval)) AS is_required"
    };
}
pub(super) use approval_columns;

/// The columns of a release that have its approval.
#[derive(FromRow)]
pub(super) struct ApprovalColumns {
    decision: Option<Decision>,
    decided_at: Option<OffsetDateTime>,
    decided_by: Option<TokenId>,
    decided_by_label: Option<String>,
    decision_reason: Option<String>,
    is_required: bool,
}

impl From<ApprovalColumns> for Option<Approval> {
    /// `None` if nobody has decided and nobody has to.
    fn from(columns: ApprovalColumns) -> Self {
        let label = columns.decided_by_label;
        let status = match columns.decision {
            Some(decision) => decision.into(),
            None if columns.is_required => ApprovalStatus::Pending,
            None => return None,
        };
        Some(Approval {
            status,
            by: columns
                .decided_by
                .map(|token_id| DecidedBy { token_id, label }),
            at: columns.decided_at,
            reason: columns.decision_reason,
        })
    }
}

/// A release with its approval.
#[derive(Clone, Debug, PartialEq, Eq, FromRow, Serialize, ToSchema)]
pub struct ListedApproval {
    /// The release.
    pub release_id: ReleaseId,
    /// Its name for people.
    pub name: Option<String>,
    /// The dataset it comes from.
    pub dataset_id: DatasetId,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub requested_at: OffsetDateTime,
    /// Its approval.
    #[serde(flatten)]
    #[sqlx(flatten, try_from = "ListedColumns")]
    pub approval: Approval,
}

/// [`ApprovalColumns`] of a release that waits or is decided.
#[derive(FromRow)]
struct ListedColumns {
    #[sqlx(flatten)]
    columns: ApprovalColumns,
}

impl TryFrom<ListedColumns> for Approval {
    type Error = StoreError;

    fn try_from(listed: ListedColumns) -> Result<Self, StoreError> {
        Option::from(listed.columns).ok_or(StoreError::Damaged("an approval"))
    }
}

/// The releases of an organization that wait for an approval or were decided, after `after`, oldest first, at
/// most `limit`; those in `status`, if it is given.
pub(crate) async fn list(
    store: &Store,
    organization: OrganizationId,
    status: Option<&str>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<ListedApproval>, StoreError> {
    Ok(sqlx::query_as(concat!(
        "SELECT * FROM (
             SELECT r.id AS release_id, r.name, r.dataset_id, r.created_at AS requested_at, ",
        approval_columns!(),
        "    FROM releases r LEFT JOIN release_approvals a ON a.release_id = r.id
             WHERE r.organization_id = $2 AND ($4::uuid IS NULL OR r.id > $4)) listed
         WHERE (decision IS NOT NULL OR is_required)
           AND ($3::text IS NULL OR coalesce(decision, 'pending') = $3)
         ORDER BY release_id LIMIT $5"
    ))
    .bind(true)
    .bind(organization)
    .bind(status)
    .bind(after)
    .bind(limit)
    .fetch_all(&mut *store.connection().await?)
    .await?)
}

/// A decision to be recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewDecision<'a> {
    /// Whether the release may be delivered.
    pub decision: Decision,
    /// Why.
    pub reason: Option<&'a str>,
}

/// The result of [`decide`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalCreation {
    /// The release is approved or rejected.
    Made(Approval),
    /// The organization has no such release.
    NoRelease,
    /// The release was withdrawn.
    Withdrawn,
    /// The organization has an officer, who decides, and the caller is a holder.
    OfficerDecides,
    /// The caller's token, or another one of the same person, made the release, sent rows of its edition or last set
    /// the recipients of its publication.
    SamePerson,
    /// The release was decided before.
    Exists,
    /// A rejection of the release of an edition that was published before releases had to be approved.
    Published,
}

/// Approves or rejects a release of the caller's organization.
///
/// # Errors
/// [`StoreError::BelowPolicy`] for an approval of a release that the policy does not allow to be granted.
pub(crate) async fn decide(
    store: &Store,
    by: Caller,
    release: ReleaseId,
    new: NewDecision<'_>,
) -> Result<ApprovalCreation, StoreError> {
    let mut transaction = store.begin().await?;
    let now = store.now();
    // Locked before the release, in the same order as a grant locks its token.
    let may_decide = officers::may_decide(&mut transaction, by, now).await?;
    let found = locked_release::lock(&mut transaction, by.organization, release).await?;
    let Some(found) = found else {
        return Ok(ApprovalCreation::NoRelease);
    };
    if !may_decide {
        return Ok(ApprovalCreation::OfficerDecides);
    }
    if found.is_withdrawn {
        return Ok(ApprovalCreation::Withdrawn);
    }
    let mut makers = makers_of_edition(&mut transaction, release).await?;
    makers.extend(found.created_by);
    if is_one_of(&mut transaction, by.token, &makers).await? {
        return Ok(ApprovalCreation::SamePerson);
    }
    if decision(&mut transaction, release).await?.is_some() {
        return Ok(ApprovalCreation::Exists);
    }
    match new.decision {
        Decision::Approved => {
            check_release(&mut transaction, by.organization, release, "").await?;
        }
        Decision::Rejected if is_published(&mut transaction, release).await? => {
            return Ok(ApprovalCreation::Published);
        }
        Decision::Rejected => {}
    }
    let label: Option<String> = sqlx::query_scalar(
        "WITH made AS (
             INSERT INTO release_approvals (release_id, decided_by, decided_at, decision, reason)
             VALUES ($1, $2, $3, $4, $5) RETURNING decided_by)
         SELECT coalesce(t.label, t.oidc_subject) FROM tokens t JOIN made ON t.id = made.decided_by",
    )
    .bind(release)
    .bind(by.token)
    .bind(now)
    .bind(new.decision)
    .bind(new.reason)
    .fetch_one(&mut *transaction)
    .await?;
    let action = match new.decision {
        Decision::Approved => Action::ReleaseApproved,
        Decision::Rejected => Action::ReleaseRejected,
    };
    let detail = match new.reason {
        Some(reason) => json!({ "reason": reason }),
        None => json!({}),
    };
    let event = NewEvent::by(by, action, release.0, detail);
    audit::commit(transaction, now, event).await?;
    let token_id = by.token;
    Ok(ApprovalCreation::Made(Approval {
        status: new.decision.into(),
        by: Some(DecidedBy { token_id, label }),
        at: Some(now),
        reason: new.reason.map(str::to_owned),
    }))
}

/// Whether a release is that of a published edition, whose rows no later edition has.
async fn is_published(
    connection: &mut PgConnection,
    release: ReleaseId,
) -> Result<bool, StoreError> {
    let published =
        "SELECT EXISTS (SELECT FROM editions WHERE release_id = $1 AND status = 'published')";
    let published = sqlx::query_scalar(published).bind(release);
    Ok(published.fetch_one(connection).await?)
}

/// The tokens that sent rows of the edition of a release and that last set the recipients of its publication; none if
/// the release is of no edition.
async fn makers_of_edition(
    connection: &mut PgConnection,
    release: ReleaseId,
) -> Result<Vec<TokenId>, StoreError> {
    let makers = sqlx::query_scalar(
        "SELECT coalesce(p.recipients_by, p.created_by)
         FROM editions e JOIN publications p ON p.id = e.publication_id
         WHERE e.release_id = $1 AND coalesce(p.recipients_by, p.created_by) IS NOT NULL
         UNION
         SELECT s.created_by FROM editions e
             JOIN edition_submissions t ON t.publication_id = e.publication_id AND t.number = e.number
             JOIN submissions s ON s.id = t.submission_id
         WHERE e.release_id = $1 AND s.created_by IS NOT NULL",
    );
    Ok(makers.bind(release).fetch_all(connection).await?)
}

/// Whether a token is one of some, or belongs to the same person of the issuer as one of them.
async fn is_one_of(
    connection: &mut PgConnection,
    token: TokenId,
    others: &[TokenId],
) -> Result<bool, StoreError> {
    if others.contains(&token) {
        return Ok(true);
    }
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM tokens one JOIN tokens other USING (oidc_subject)
                        WHERE one.id = $1 AND other.id = ANY ($2))",
    )
    .bind(token)
    .bind(others)
    .fetch_one(connection)
    .await?)
}

/// What was decided about a release; `None` if nobody has decided.
pub(super) async fn decision(
    connection: &mut PgConnection,
    release: ReleaseId,
) -> Result<Option<Decision>, StoreError> {
    let decision = "SELECT decision FROM release_approvals WHERE release_id = $1";
    let decision = sqlx::query_scalar(decision).bind(release);
    Ok(decision.fetch_optional(connection).await?)
}
