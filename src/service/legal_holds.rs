//! Legal holds of datasets.

use pais_core::definition::DatasetId;

use crate::db::legal_holds::{self, Deletion, LegalHold};
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::{ApiError, App, text};

/// Maximum length of a reason, in characters.
const REASON_LENGTH: usize = 2_000;

impl App {
    /// Places a legal hold: neither the dataset nor a submission of it is deleted, by a request or by its
    /// retention, until the hold is lifted. A second one replaces the reason.
    ///
    /// # Errors
    /// `invalid_value` for the reason; `not_found`; when the database fails.
    pub async fn place_legal_hold(
        &self,
        caller: Caller,
        dataset: DatasetId,
        reason: &str,
    ) -> Result<LegalHold, ApiError> {
        let reason = reason.trim();
        if reason.is_empty() {
            return Err(Problem::at(
                Code::InvalidValue,
                "/reason",
                "the reason is empty; say why the rows must be kept",
            )
            .into());
        }
        text::check_length("/reason", Some(reason), REASON_LENGTH)?;
        let hold = legal_holds::place(&self.db, caller, dataset, reason).await?;
        hold.ok_or_else(ApiError::not_found)
    }

    /// Ends a legal hold.
    ///
    /// # Errors
    /// `not_found` for the dataset and where it has none; when the database fails.
    pub async fn lift_legal_hold(
        &self,
        caller: Caller,
        dataset: DatasetId,
    ) -> Result<(), ApiError> {
        match legal_holds::lift(&self.db, caller, dataset).await? {
            true => Ok(()),
            false => Err(ApiError::not_found()),
        }
    }
}

/// The answer to a request for a deletion.
///
/// # Errors
/// `not_found` and `legal_hold`.
pub(super) fn deleted(deletion: Deletion) -> Result<(), ApiError> {
    match deletion {
        Deletion::Done => Ok(()),
        Deletion::NotFound => Err(ApiError::not_found()),
        Deletion::Held => Err(ApiError::new(
            Code::LegalHold,
            "the dataset has a legal hold; `GET /v1/datasets/{id}` has the reason",
        )),
    }
}
