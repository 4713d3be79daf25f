//! Grants: which recipients may fetch a release.

use time::OffsetDateTime;

use crate::ids::{GrantId, ReleaseId};
use crate::problem::{Code, Problem};
use crate::roles::Caller;
use crate::store::grants::{self, GrantCreation, NewGrant, StoredGrant};

use super::page::{Listing, PageRequest};
use super::{Service, ServiceError, text};

/// Maximum length of a purpose, in characters.
const PURPOSE_LENGTH: usize = 2_000;

impl Service {
    /// Grants a release to a recipient.
    ///
    /// # Errors
    /// `invalid_value`; `not_found` for the release or the recipient; `grant_exists`; when the
    /// database fails.
    pub async fn create_grant(
        &self,
        caller: Caller,
        grant: NewGrant<'_>,
    ) -> Result<StoredGrant, ServiceError> {
        let purpose = grant.purpose.trim();
        let new = NewGrant { purpose, ..grant };
        self.check_grant(&new)?;
        match grants::create(&self.store, caller, &new).await? {
            GrantCreation::Made(grant) => Ok(grant),
            GrantCreation::NoRelease => Err(ServiceError::not_found()),
            GrantCreation::NoRecipient => Err(Problem::at(
                Code::NotFound,
                "/recipient",
                "there is no organization with this name or id",
            )
            .into()),
            GrantCreation::Exists => Err(ServiceError::new(
                Code::GrantExists,
                "the recipient already has a grant of this release; withdraw that grant first",
            )),
        }
    }

    fn check_grant(&self, grant: &NewGrant<'_>) -> Result<(), Problem> {
        if grant.purpose.is_empty() {
            return Err(Problem::at(
                Code::InvalidValue,
                "/purpose",
                "the purpose is empty; say what the recipient needs the data for",
            ));
        }
        text::check_length("/purpose", Some(grant.purpose), PURPOSE_LENGTH)?;
        let is_past = |at: OffsetDateTime| at <= self.store.now();
        if grant.expires_at.is_some_and(is_past) {
            return Err(Problem::at(
                Code::InvalidValue,
                "/expires_at",
                "`expires_at` is in the past; give a later time, or leave it out",
            ));
        }
        Ok(())
    }

    /// The grants of a release, expired ones included, oldest first.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn list_grants(
        &self,
        caller: Caller,
        release: ReleaseId,
        page: PageRequest,
    ) -> Result<Listing<StoredGrant>, ServiceError> {
        let (organization, limit) = (caller.organization, page.rows_to_query());
        let rows = grants::list(&self.store, organization, release, page.after, limit).await?;
        let rows = rows.ok_or_else(ServiceError::not_found)?;
        Ok(Listing::new(rows, page, |grant| grant.id.0))
    }

    /// Withdraws a grant.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn delete_grant(
        &self,
        caller: Caller,
        release: ReleaseId,
        grant: GrantId,
    ) -> Result<(), ServiceError> {
        match grants::delete(&self.store, caller, release, grant).await? {
            true => Ok(()),
            false => Err(ServiceError::not_found()),
        }
    }
}
