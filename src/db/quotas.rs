//! What an organization may have: stored rows and waiting jobs.

use sqlx::PgConnection;

use crate::ids::OrganizationId;

use super::{Store, StoreError};

/// The shares of each organization; 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Size of all submissions of its datasets, decoded, in bytes.
    pub stored_bytes: u64,
    /// Number of rows of all submissions.
    pub stored_rows: u64,
    /// Number of jobs that wait.
    pub queued_jobs: u32,
}

/// The organization has used up its share, with what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuotaError(String);

impl QuotaError {
    fn stored(limit: u64, unit: &str) -> StoreError {
        let detail = format!(
            "the submissions of your organization have more than the {limit} {unit} of \
             organizations.stored_{unit}; delete a dataset, or have the limit raised"
        );
        Self(detail).into()
    }
}

impl Quotas {
    /// Checks before a submission is read that the organization has space left.
    ///
    /// # Errors
    /// [`StoreError::Quota`].
    pub(crate) async fn check_space(
        &self,
        store: &Store,
        organization: OrganizationId,
    ) -> Result<(), StoreError> {
        let mut connection = store.connection().await?;
        // A submission has at least one row and one byte.
        self.check_stored_and(&mut connection, organization, 1)
            .await
    }

    /// Checks what the organization has stored, with what this transaction has written. Until its end,
    /// no other submission of the organization is checked, so call it just before the commit.
    ///
    /// # Errors
    /// [`StoreError::Quota`].
    pub(super) async fn check_stored(
        &self,
        transaction: &mut PgConnection,
        organization: OrganizationId,
    ) -> Result<(), StoreError> {
        if self.stored_bytes > 0 || self.stored_rows > 0 {
            sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 9))")
                .bind(organization.0.to_string())
                .execute(&mut *transaction)
                .await?;
        }
        self.check_stored_and(transaction, organization, 0).await
    }

    async fn check_stored_and(
        &self,
        connection: &mut PgConnection,
        organization: OrganizationId,
        more: u64,
    ) -> Result<(), StoreError> {
        if self.stored_bytes == 0 && self.stored_rows == 0 {
            return Ok(());
        }
        let (bytes, rows): (i64, i64) = sqlx::query_as(
            "SELECT coalesce(sum(s.bytes), 0)::bigint, coalesce(sum(s.rows), 0)::bigint
             FROM datasets d JOIN submissions s ON s.dataset_id = d.id
             WHERE d.organization_id = $1",
        )
        .bind(organization)
        .fetch_one(connection)
        .await?;
        let exceeds =
            |used: i64, limit: u64| limit > 0 && used.cast_unsigned().saturating_add(more) > limit;
        if exceeds(bytes, self.stored_bytes) {
            return Err(QuotaError::stored(self.stored_bytes, "bytes"));
        }
        if exceeds(rows, self.stored_rows) {
            return Err(QuotaError::stored(self.stored_rows, "rows"));
        }
        Ok(())
    }

    /// Checks that the organization may have one more waiting job. Jobs that are created at the same
    /// moment do not count each other.
    ///
    /// # Errors
    /// [`StoreError::Quota`].
    pub(super) async fn check_queue(
        &self,
        connection: &mut PgConnection,
        organization: OrganizationId,
    ) -> Result<(), StoreError> {
        let limit = self.queued_jobs;
        if limit == 0 {
            return Ok(());
        }
        let waiting: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM (
                 SELECT FROM jobs WHERE organization_id = $1 AND status = 'queued' AND attempt = 0
                 LIMIT $2) AS waiting",
        )
        .bind(organization)
        .bind(i64::from(limit))
        .fetch_one(connection)
        .await?;
        if waiting < i64::from(limit) {
            return Ok(());
        }
        let detail = format!(
            "{limit} jobs of your organization are waiting, which is organizations.queued_jobs; try \
             again when some have ended"
        );
        Err(QuotaError(detail).into())
    }
}
