//! The policy of an organization, and the approval of releases.

use pais_core::definition::PrivacyDefinition;

use crate::db::StoreError;
use crate::db::policies::{self, Approval, ApprovalCreation};
use crate::db::releases::{self, StoredRelease, Viewer};
use crate::ids::ReleaseId;
use crate::policy::{Policy, ReleasedTable};
use crate::problem::Code;
use crate::roles::Caller;

use super::{ApiError, App};

impl App {
    /// The policy of the caller's organization.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn get_policy(&self, caller: Caller) -> Result<Policy, ApiError> {
        Ok(policies::load(&self.db, caller.organization).await?)
    }

    /// Replaces the policy of the caller's organization.
    ///
    /// # Errors
    /// `invalid_value`; when the database fails.
    pub async fn replace_policy(&self, caller: Caller, policy: Policy) -> Result<Policy, ApiError> {
        policy.check()?;
        policies::replace(&self.db, caller, &policy).await?;
        Ok(policy)
    }

    /// Approves a release that another token has made.
    ///
    /// # Errors
    /// `not_found`; `withdrawn`; `conflict` for the token that made the release and for a release
    /// that is approved already; when the database fails.
    pub async fn approve_release(
        &self,
        caller: Caller,
        release: ReleaseId,
    ) -> Result<Approval, ApiError> {
        match policies::approve(&self.db, caller, release).await? {
            ApprovalCreation::Made(approval) => Ok(approval),
            ApprovalCreation::NoRelease => Err(ApiError::not_found()),
            ApprovalCreation::Withdrawn => Err(ApiError::withdrawn()),
            ApprovalCreation::SameToken => Err(ApiError::new(
                Code::Conflict,
                "this token made the release; somebody else with a token of their own approves it",
            )),
            ApprovalCreation::Exists => Err(ApiError::new(
                Code::Conflict,
                "the release is approved already",
            )),
        }
    }

    /// Checks a finished release against the policy; `pointer` is its place in the body that was
    /// sent.
    ///
    /// # Errors
    /// `below_policy`; when the database fails or what it has of the release is damaged.
    pub(super) async fn check_release_policy(
        &self,
        policy: &Policy,
        release: &StoredRelease,
        pointer: &str,
    ) -> Result<(), ApiError> {
        let damaged = || StoreError::Damaged { what: "a release" };
        let privacy: PrivacyDefinition =
            serde_json::from_value(release.privacy.clone()).map_err(|_| damaged())?;
        let viewer = Viewer::Holder(release.organization);
        let columns = releases::other_columns(&self.db, viewer, release.id).await?;
        let raw_rows = release.rows + release.suppressed_rows;
        let table = ReleasedTable {
            privacy: &privacy,
            suppressed: release.suppressed_rows as f64 / raw_rows.max(1) as f64,
            other_columns: &columns,
        };
        Ok(policy.check_release(&table, pointer)?)
    }
}
