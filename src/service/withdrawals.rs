//! Withdrawals of releases.

use crate::db::withdrawals::{self, Withdrawal, WithdrawalCreation};
use crate::ids::ReleaseId;
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::{Service, ServiceError, text};

/// Maximum length of a reason, in characters.
const REASON_LENGTH: usize = 2_000;

impl Service {
    /// Withdraws a release: its tables and its report are served to nobody from then on, and no
    /// new grant of it is made.
    ///
    /// # Errors
    /// `invalid_value` for the reason; `not_found`; `withdrawn` where it was withdrawn before; when
    /// the database fails.
    pub async fn withdraw_release(
        &self,
        caller: Caller,
        release: ReleaseId,
        reason: &str,
    ) -> Result<Withdrawal, ServiceError> {
        let reason = reason.trim();
        if reason.is_empty() {
            return Err(Problem::at(
                Code::InvalidValue,
                "/reason",
                "the reason is empty; say why the release is withdrawn, its recipients see it",
            )
            .into());
        }
        text::check_length("/reason", Some(reason), REASON_LENGTH)?;
        match withdrawals::create(&self.store, caller, release, reason).await? {
            WithdrawalCreation::Made(withdrawal) => Ok(withdrawal),
            WithdrawalCreation::NoRelease => Err(ServiceError::not_found()),
            WithdrawalCreation::Exists => Err(ServiceError::withdrawn()),
        }
    }
}
