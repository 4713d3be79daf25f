//! Editions are brought on: they fail, are refused, wait for approval or are published.

use std::collections::BTreeMap;

use pais_core::definition::SubmissionId;
use serde_json::{Value, json};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, Postgres, Transaction};
use time::OffsetDateTime;

use crate::db::approvals::{self, Decision};
use crate::db::audit::{self, Action, Actor, NewEvent};
use crate::db::grants::{self, GrantRecipient};
use crate::db::jobs::JobStatus;
use crate::db::publications::{self, LockedPublication, Recipient};
use crate::db::releases::{Withdrawal, known_releases, lock_recipient, record_withdrawal};
use crate::db::submissions::lock_current;
use crate::db::{Store, StoreError, locked_release, policies};
use crate::ids::{OrganizationId, PublicationId, ReleaseId, TokenId};
use crate::problem::{Code, Problem};
use crate::telemetry::traces::TraceContext;

use super::EditionStatus;
use super::queue::{Cause, EditionQueue, JobCause, Queueing, insert_job, queue};

/// An edition that may proceed.
#[derive(FromRow)]
struct OpenEdition {
    publication_id: PublicationId,
    number: i32,
    organization_id: OrganizationId,
    status: EditionStatus,
    release_id: Option<ReleaseId>,
    decided_with: Option<Json<BTreeMap<OrganizationId, Vec<ReleaseId>>>>,
    job_status: JobStatus,
    job_error: Option<Value>,
    job_created_by: Option<TokenId>,
    is_withdrawn: bool,
}

/// Advances all editions that can proceed, and queues those that are due, except those of disabled organizations.
/// Called by workers repeatedly, and after each request that may have an effect. Cheap if there is nothing to do. A
/// failure of an edition is logged, does not affect the others, and the edition is tried again. Returns the number of
/// jobs that were queued, for which a worker should be woken.
pub(crate) async fn settle(with: EditionQueue<'_>) -> Result<u64, StoreError> {
    let store = with.store;
    // Planning the queries below takes longer than most requests, and is repeated on each new connection.
    let mut connection = store.connection().await?;
    let has_publications: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM publications)")
        .fetch_one(&mut *connection)
        .await?;
    if !has_publications {
        return Ok(0);
    }
    let open: Vec<(PublicationId, i32)> = sqlx::query_as(
        "SELECT e.publication_id, e.number
         FROM editions e JOIN jobs j ON j.id = e.job_id
              JOIN publications p ON p.id = e.publication_id
              LEFT JOIN releases r ON r.id = e.release_id
         WHERE (e.status = 'queued' AND j.status IN ('succeeded', 'failed', 'cancelled')
                OR e.status = 'awaiting_approval' AND (
                    p.deleted_at IS NOT NULL OR r.withdrawn_at IS NOT NULL
                    OR EXISTS (SELECT 1 FROM release_approvals a WHERE a.release_id = e.release_id)
                    OR EXISTS (SELECT 1 FROM publication_recipients n
                               WHERE n.publication_id = p.id
                                 AND (n.expires_at IS NULL OR n.expires_at > $1)
                                 AND NOT jsonb_exists(e.decided_with, n.recipient_id::text))
                    OR EXISTS (SELECT 1 FROM datasets d
                               WHERE d.id = p.dataset_id AND d.deleted_at IS NOT NULL)
                    OR EXISTS (SELECT 1 FROM edition_submissions t
                               LEFT JOIN submissions s ON s.id = t.submission_id
                               WHERE t.publication_id = e.publication_id AND t.number = e.number
                                 AND t.held_back IS NOT NULL
                                 AND (s.id IS NULL OR s.replaced_by IS NOT NULL))
                    OR NOT EXISTS (SELECT 1 FROM policies c
                                   WHERE c.organization_id = e.organization_id
                                     AND c.require_approval)))
           AND NOT EXISTS (SELECT 1 FROM organizations o
                           WHERE o.id = e.organization_id AND o.disabled_at IS NOT NULL)
         ORDER BY e.created_at",
    )
    .bind(store.now())
    .fetch_all(&mut *connection)
    .await?;
    drop(connection);
    let mut queued = 0;
    for (publication, number) in open {
        let is_queued = settle_edition(with, publication, number).await;
        queued += u64::from(tolerated(publication, is_queued)?);
    }
    let due: Vec<(PublicationId, OrganizationId)> = sqlx::query_as(
        "SELECT p.id, p.organization_id FROM publications p
         WHERE p.deleted_at IS NULL AND NOT p.paused AND p.trigger = 'submission'
           AND NOT EXISTS (SELECT 1 FROM editions e
                           WHERE e.publication_id = p.id
                             AND e.status IN ('queued', 'awaiting_approval'))
           AND EXISTS (SELECT 1 FROM submissions s
                       WHERE s.dataset_id = p.dataset_id AND s.replaced_by IS NULL
                         AND NOT EXISTS (SELECT 1 FROM edition_submissions t
                                         WHERE t.publication_id = p.id AND t.submission_id = s.id))
           AND EXISTS (SELECT 1 FROM datasets d
                       WHERE d.id = p.dataset_id AND d.deleted_at IS NULL)
           AND NOT EXISTS (SELECT 1 FROM organizations o
                           WHERE o.id = p.organization_id AND o.disabled_at IS NOT NULL)
         ORDER BY p.id",
    )
    .fetch_all(&mut *store.connection().await?)
    .await?;
    for (publication, organization) in due {
        let queueing = queue(with, organization, publication, Cause::Submission).await;
        let is_queued = queueing.map(|it| matches!(it, Queueing::Queued(_)));
        queued += u64::from(tolerated(publication, is_queued)?);
    }
    Ok(queued)
}

/// Whether a job of a publication was queued; not if that failed for a reason that others do not share.
///
/// # Errors
/// When the database cannot be reached, so that the others would fail too.
fn tolerated(
    publication: PublicationId,
    is_queued: Result<bool, StoreError>,
) -> Result<bool, StoreError> {
    match is_queued {
        Err(error) if !error.is_unreachable() => {
            // With a quota, it is queued once other jobs of the organization have begun.
            if !matches!(error, StoreError::Quota(_)) {
                tracing::warn!(
                    %publication,
                    error = &error as &dyn std::error::Error,
                    "an edition could not be brought on; this is tried again"
                );
            }
            Ok(false)
        }
        is_queued => is_queued,
    }
}

/// Advances one edition; returns whether it was queued again.
async fn settle_edition(
    with: EditionQueue<'_>,
    publication: PublicationId,
    number: i32,
) -> Result<bool, StoreError> {
    let mut transaction = with.store.begin().await?;
    let Some(locked) = publications::lock(&mut transaction, publication).await? else {
        return Ok(false);
    };
    let edition = lock_open(&mut transaction, &locked, publication, number);
    let Some(edition) = edition.await? else {
        return Ok(false);
    };
    let is_succeeded = edition.job_status == JobStatus::Succeeded;
    match edition.release_id.filter(|_| is_succeeded) {
        Some(release) => edition.advance(with, transaction, &locked, release).await,
        None => edition.end_with_job(with, transaction, &locked).await,
    }
}

/// Locks an edition, and then its release; `None` if it cannot proceed.
async fn lock_open(
    connection: &mut PgConnection,
    locked: &LockedPublication,
    publication: PublicationId,
    number: i32,
) -> Result<Option<OpenEdition>, StoreError> {
    let release = sqlx::query_scalar::<_, Option<ReleaseId>>(
        "SELECT release_id FROM editions
         WHERE publication_id = $1 AND number = $2 AND status IN ('queued', 'awaiting_approval')
         FOR UPDATE",
    )
    .bind(publication)
    .bind(number)
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(release) = release.flatten() {
        locked_release::lock(connection, locked.organization_id, release).await?;
    }
    Ok(sqlx::query_as(
        "SELECT e.publication_id, e.number, e.organization_id, e.status, e.release_id,
                e.decided_with, j.status AS job_status, j.error AS job_error,
                j.created_by AS job_created_by, r.withdrawn_at IS NOT NULL AS is_withdrawn
         FROM editions e JOIN jobs j ON j.id = e.job_id LEFT JOIN releases r ON r.id = e.release_id
         WHERE e.publication_id = $1 AND e.number = $2
           AND e.status IN ('queued', 'awaiting_approval')",
    )
    .bind(publication)
    .bind(number)
    .fetch_optional(connection)
    .await?)
}

/// A release that may be published, as far as its holder decides.
struct Publishable {
    recipients: Vec<Recipient>,
    /// Whether a second person has to approve it first.
    waits_for_approval: bool,
}

fn document(problem: Problem) -> Result<Value, StoreError> {
    Ok(serde_json::to_value(problem.document())?)
}

impl OpenEdition {
    /// Ends an edition whose job has ended without a release. Returns whether it was queued again.
    async fn end_with_job(
        &self,
        with: EditionQueue<'_>,
        mut transaction: Transaction<'static, Postgres>,
        publication: &LockedPublication,
    ) -> Result<bool, StoreError> {
        let error = match (self.job_status, self.job_error.clone()) {
            (JobStatus::Queued | JobStatus::Running, _) => return Ok(false),
            (JobStatus::Cancelled, _)
                if !publication.is_deleted && self.lost_rows(&mut transaction).await? =>
            {
                return self.decide_again(with, transaction, publication).await;
            }
            (_, Some(error)) => error,
            (_, None) => document(Problem::new(Code::Cancelled, "the edition was cancelled"))?,
        };
        let failed = EditionStatus::Failed;
        self.end(with.store, transaction, failed, error).await?;
        Ok(false)
    }

    /// Refuses or publishes an edition, lets it wait for approval, or queues it again. Returns whether it was queued
    /// again.
    async fn advance(
        &self,
        with: EditionQueue<'_>,
        mut transaction: Transaction<'static, Postgres>,
        publication: &LockedPublication,
        release: ReleaseId,
    ) -> Result<bool, StoreError> {
        let (store, now) = (with.store, with.store.now());
        let checked = self.check(&mut transaction, publication, release, now);
        let publishable = match checked.await? {
            Ok(publishable) => publishable,
            Err(problem) => {
                let is_void = matches!(
                    problem.code,
                    Code::Cancelled | Code::SubmissionReplaced | Code::DatasetDeleted
                );
                if is_void {
                    let reason = problem.detail.clone();
                    self.withdraw(&mut transaction, release, reason, now)
                        .await?;
                }
                let (refused, error) = (EditionStatus::Refused, document(problem)?);
                self.end(store, transaction, refused, error).await?;
                return Ok(false);
            }
        };
        for Recipient { recipient, .. } in &publishable.recipients {
            // Until the end of the transaction it gets no other grant of the dataset.
            let (id, dataset) = (recipient.id, publication.dataset_id);
            lock_recipient(&mut transaction, dataset, id).await?;
            let known = known_releases(&mut *transaction, id, dataset, Some(release), now);
            if !self.is_decided_with(recipient, &known.await?) {
                return self.decide_again(with, transaction, publication).await;
            }
        }
        if publishable.waits_for_approval {
            self.await_approval(transaction).await?;
        } else {
            let recipients = &publishable.recipients;
            self.publish(store, transaction, release, recipients)
                .await?;
        }
        Ok(false)
    }

    /// Keeps the submissions whose rows its release takes current until the end of the transaction.
    ///
    /// # Errors
    /// [`StoreError::SubmissionReplaced`].
    async fn lock_rows(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        let taken: Vec<SubmissionId> = sqlx::query_scalar(
            "SELECT submission_id FROM edition_submissions
             WHERE publication_id = $1 AND number = $2 AND held_back IS NOT NULL",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .fetch_all(&mut *connection)
        .await?;
        lock_current(connection, &taken).await
    }

    /// Whether a submission whose rows its release has was deleted: one that it takes, or in a base edition any that
    /// its job read.
    async fn has_deleted_rows(&self, connection: &mut PgConnection) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT EXISTS (
                 SELECT FROM editions e JOIN jobs j ON j.id = e.job_id
                 CROSS JOIN LATERAL unnest(CASE WHEN e.is_base THEN j.submissions ELSE ARRAY(
                     SELECT t.submission_id FROM edition_submissions t
                     WHERE t.publication_id = e.publication_id AND t.number = e.number
                       AND t.held_back IS NOT NULL) END) AS taken (id)
                 WHERE e.publication_id = $1 AND e.number = $2
                   AND NOT EXISTS (SELECT FROM submissions s JOIN datasets d ON d.id = s.dataset_id
                                   WHERE s.id = taken.id AND d.deleted_at IS NULL))",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .fetch_one(connection)
        .await?)
    }

    /// Whether a submission that its job reads was deleted, which cancels the job, and one that it takes was not.
    async fn lost_rows(&self, connection: &mut PgConnection) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT (SELECT count(*) FROM submissions s WHERE s.id = ANY (j.submissions))
                    < cardinality(j.submissions)
                AND EXISTS (SELECT FROM edition_submissions t JOIN submissions s ON s.id = t.submission_id
                            WHERE t.publication_id = e.publication_id AND t.number = e.number)
             FROM editions e JOIN jobs j ON j.id = e.job_id
             WHERE e.publication_id = $1 AND e.number = $2",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .fetch_one(connection)
        .await?)
    }

    /// Whether the release may be published; `Ok(Err(_))` with the reason why it never may.
    async fn check(
        &self,
        connection: &mut PgConnection,
        publication: &LockedPublication,
        release: ReleaseId,
        now: OffsetDateTime,
    ) -> Result<Result<Publishable, Problem>, StoreError> {
        let refused = |code, detail: &str| Ok(Err(Problem::new(code, detail)));
        if publication.is_deleted {
            return refused(Code::Cancelled, "the publication was deleted");
        }
        if self.is_withdrawn {
            let detail = "the release was withdrawn before it was published";
            return refused(Code::Withdrawn, detail);
        }
        match self.lock_rows(connection).await {
            Err(StoreError::SubmissionReplaced(problem)) => return Ok(Err(*problem)),
            locked => locked?,
        }
        if self.has_deleted_rows(connection).await? {
            let detail = "rows of the edition were deleted before it was published; the others wait for the next \
                          edition";
            return refused(Code::DatasetDeleted, detail);
        }
        let policy = policies::check_release(connection, self.organization_id, release, "").await;
        let policy = match policy {
            Err(StoreError::BelowPolicy(problem)) => return Ok(Err(*problem)),
            policy => policy?,
        };
        let decision = approvals::decision(connection, release).await?;
        if decision == Some(Decision::Rejected) {
            let detail = "the release was rejected; `GET /v1/releases/{id}` has the reason";
            return refused(Code::ApprovalRequired, detail);
        }
        let recipients =
            publications::current_recipients(connection, self.publication_id, now).await?;
        let mut organizations = recipients.iter().map(|it| &it.recipient);
        if let Some(other) = organizations.find(|it| !policy.allows_recipient(&it.name, it.id)) {
            let detail = format!(
                "the policy's `recipients` does not name `{}`; take it from the publication's \
                 recipients",
                other.name
            );
            return refused(Code::BelowPolicy, &detail);
        }
        Ok(Ok(Publishable {
            recipients,
            waits_for_approval: decision.is_none() && policy.requires_approval(),
        }))
    }

    /// Withdraws the release of the edition, which is not published with it: else it would wait for an approval, and
    /// could be granted by itself.
    async fn withdraw(
        &self,
        connection: &mut PgConnection,
        release: ReleaseId,
        reason: String,
        at: OffsetDateTime,
    ) -> Result<(), StoreError> {
        let withdrawal = Withdrawal { at, reason };
        let (organization, by) = (self.organization_id, Actor::SERVICE);
        record_withdrawal(connection, organization, by, release, &withdrawal).await
    }

    /// Ends the edition with an error.
    async fn end(
        &self,
        store: &Store,
        mut transaction: Transaction<'static, Postgres>,
        status: EditionStatus,
        error: Value,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE editions SET status = $3, error = $4 WHERE publication_id = $1 AND number = $2",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .bind(status)
        .bind(&error)
        .execute(&mut *transaction)
        .await?;
        let action = match status {
            EditionStatus::Failed => Action::EditionFailed,
            _ => Action::EditionRefused,
        };
        let detail = json!({ "number": self.number, "code": error["code"] });
        let event = self.event(action, detail);
        audit::commit(transaction, store.now(), event).await
    }

    async fn await_approval(
        &self,
        mut transaction: Transaction<'static, Postgres>,
    ) -> Result<(), StoreError> {
        if self.status == EditionStatus::AwaitingApproval {
            return Ok(());
        }
        sqlx::query(
            "UPDATE editions SET status = 'awaiting_approval'
             WHERE publication_id = $1 AND number = $2",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Whether all that a recipient knows was decided with the release.
    fn is_decided_with(&self, recipient: &GrantRecipient, known: &[ReleaseId]) -> bool {
        let decided = self.decided_with.as_ref();
        let decided = decided.and_then(|Json(decided)| decided.get(&recipient.id));
        decided.is_some_and(|decided| known.iter().all(|it| decided.contains(it)))
    }

    /// Queues the edition again, because a recipient was added or has got other releases: for the token that
    /// requested it before, which does not approve its release. The release of before is withdrawn.
    async fn decide_again(
        &self,
        with: EditionQueue<'_>,
        mut transaction: Transaction<'static, Postgres>,
        publication: &LockedPublication,
    ) -> Result<bool, StoreError> {
        let id = self.publication_id;
        if let Some(release) = self.release_id {
            let reason = format!(
                "the recipients of edition {}, or what they know, changed before it was published; another \
                 release takes its place",
                self.number
            );
            self.withdraw(&mut transaction, release, reason, with.store.now())
                .await?;
        }
        let cause = JobCause {
            by: self.job_created_by,
            trace: TraceContext::current(),
        };
        let job = insert_job(&mut transaction, with, id, publication, cause).await?;
        let Some(job) = job else {
            let problem = Problem::new(Code::DatasetDeleted, "the dataset was deleted");
            let (failed, error) = (EditionStatus::Failed, document(problem)?);
            self.end(with.store, transaction, failed, error).await?;
            return Ok(false);
        };
        sqlx::query(
            "UPDATE editions SET status = 'queued', job_id = $3, release_id = NULL,
                                 decided_with = NULL, held_back_rows = NULL, is_base = NULL
             WHERE publication_id = $1 AND number = $2",
        )
        .bind(id)
        .bind(self.number)
        .bind(job)
        .execute(&mut *transaction)
        .await?;
        // The decision of the previous job does not count: the new one leaves out rows that are replaced
        // meanwhile.
        sqlx::query(
            "UPDATE edition_submissions SET held_back = NULL
             WHERE publication_id = $1 AND number = $2",
        )
        .bind(id)
        .bind(self.number)
        .execute(&mut *transaction)
        .await?;
        let detail = json!({ "number": self.number, "job_id": job });
        let event = self.event(Action::EditionQueued, detail);
        audit::commit(transaction, with.store.now(), event).await?;
        Ok(true)
    }

    /// Publishes the edition: grants its release to the recipients.
    async fn publish(
        &self,
        store: &Store,
        mut transaction: Transaction<'static, Postgres>,
        release: ReleaseId,
        recipients: &[Recipient],
    ) -> Result<(), StoreError> {
        let now = store.now();
        for recipient in recipients {
            let grant = grants::EditionGrant {
                organization: self.organization_id,
                release,
                recipient: &recipient.recipient,
                purpose: &recipient.purpose,
                expires_at: recipient.expires_at,
            };
            grants::of_edition(&mut transaction, now, &grant).await?;
        }
        sqlx::query(
            "UPDATE editions SET status = 'published', published_at = $3
             WHERE publication_id = $1 AND number = $2",
        )
        .bind(self.publication_id)
        .bind(self.number)
        .bind(now)
        .execute(&mut *transaction)
        .await?;
        let names = recipients.iter().map(|it| &it.recipient.name);
        let names: Vec<&String> = names.collect();
        let detail = json!({ "number": self.number, "release_id": release, "recipients": names });
        let event = self.event(Action::EditionPublished, detail);
        audit::commit(transaction, now, event).await
    }

    fn event(&self, action: Action, detail: Value) -> NewEvent {
        let (organization, id) = (self.organization_id, self.publication_id.0);
        NewEvent::of(organization, Actor::SERVICE, action, id, detail)
    }
}
