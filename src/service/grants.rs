//! Grants: which recipients may fetch a release.

use time::OffsetDateTime;

use crate::api::page::{Page, PageRequest};
use crate::api::policies::check_release;
use crate::db::audit::Action;
use crate::db::grants::{self, GrantCreation, GrantRefusal, NewGrant, StoredGrant};
use crate::db::policies;
use crate::ids::{GrantId, ReleaseId};
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::{ApiError, App, text};

/// Maximum length of a purpose, and of the reason why a risk is taken, in characters.
const PURPOSE_LENGTH: usize = 2_000;

/// How often a grant is decided, where the recipient comes to know other releases meanwhile.
const COMPOSITIONS: usize = 4;

impl App {
    /// Grants a release to a recipient, unless it breaks a privacy model together with what the
    /// recipient knows of the dataset and the request does not acknowledge that.
    ///
    /// # Errors
    /// `invalid_value`; `not_found` for the release or the recipient; `withdrawn`; `below_policy`;
    /// `approval_required`; `grant_exists`; `composition_risk`; `limit_exceeded` and `busy` for the
    /// decision on it; when the database fails.
    pub async fn create_grant(
        &self,
        caller: Caller,
        grant: NewGrant<'_>,
    ) -> Result<StoredGrant, ApiError> {
        let subject = (Action::GrantCreated, grant.release.0);
        let granted = self.decide_grant(caller, grant).await;
        self.recorded(caller, subject, granted).await
    }

    async fn decide_grant(
        &self,
        caller: Caller,
        grant: NewGrant<'_>,
    ) -> Result<StoredGrant, ApiError> {
        let new = NewGrant {
            purpose: grant.purpose.trim(),
            acknowledged_risk: grant.acknowledged_risk.map(str::trim),
            ..grant
        };
        self.check_grant(&new)?;
        let release = self.get_release(caller, grant.release).await?;
        let policy = policies::load(&self.db, caller.organization).await?;
        check_release(&self.db, &policy, &release, "").await?;
        // A grant is made only together with those releases that were decided with it. Where the
        // recipient comes to know others meanwhile, it is decided again.
        let mut composed = Vec::new();
        for _ in 0..COMPOSITIONS {
            let known = match grants::create(&self.db, caller, &new, &composed).await? {
                GrantCreation::Made(grant) => return Ok(grant),
                GrantCreation::Refused(refusal) => return Err(refused(refusal)),
                GrantCreation::Undecided(known) => known,
            };
            let composition = self.compose(caller, release.clone(), &known).await?;
            if !composition.holds && new.acknowledged_risk.is_none() {
                return Err(composition.problem().into());
            }
            composed = known;
        }
        Err(Problem::new(
            Code::Busy,
            "other releases are being granted to the recipient at the same time; try again",
        )
        .into())
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
        let risk = "/acknowledge_composition_risk";
        if grant.acknowledged_risk.is_some_and(str::is_empty) {
            return Err(Problem::at(
                Code::InvalidValue,
                risk,
                "the reason is empty; say why the risk is taken, or leave it out",
            ));
        }
        text::check_length(risk, grant.acknowledged_risk, PURPOSE_LENGTH)?;
        let is_past = |at: OffsetDateTime| at <= self.db.now();
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
    ) -> Result<Page<StoredGrant>, ApiError> {
        let (organization, limit) = (caller.organization, page.rows_to_query());
        let rows = grants::list(&self.db, organization, release, page.after, limit).await?;
        let rows = rows.ok_or_else(ApiError::not_found)?;
        Ok(Page::new(rows, page, |grant| grant.id.0))
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
    ) -> Result<(), ApiError> {
        if grants::delete(&self.db, caller, release, grant).await? {
            Ok(())
        } else {
            Err(ApiError::not_found())
        }
    }
}

fn refused(refusal: GrantRefusal) -> ApiError {
    match refusal {
        GrantRefusal::NoRelease => ApiError::not_found(),
        GrantRefusal::NoRecipient => Problem::at(
            Code::NotFound,
            "/recipient",
            "there is no organization with this name or id",
        )
        .into(),
        GrantRefusal::NotApproved => ApiError::new(
            Code::ApprovalRequired,
            "the policy requires that another token of the organization approves the release \
             first: `POST /v1/releases/{id}/approval`",
        ),
        GrantRefusal::BelowPolicy(problem) => problem.into(),
        GrantRefusal::Withdrawn => ApiError::withdrawn(),
        GrantRefusal::Exists => ApiError::new(
            Code::GrantExists,
            "the recipient already has a grant of this release; withdraw that grant first",
        ),
    }
}
