//! The answers to a submission that is stored, or refused at its commit.

use axum::http::StatusCode;
use pais_core::definition::SubmissionId;

use crate::db::idempotency::IdempotentAnswer;
use crate::db::submissions::{NotReplaceable, Submission, SubmissionResult, SubmissionTotals};
use crate::problem::Code;

use super::error::ApiError;
use super::idempotency::{idempotent_answer, key_in_use};

/// Why a submission cannot be replaced.
pub(super) fn not_replaceable(replaced: SubmissionId, reason: NotReplaceable) -> ApiError {
    match reason {
        NotReplaceable::NotFound => ApiError::new(
            Code::NotFound,
            format!("the dataset has no submission {replaced}, so no other can take its place"),
        ),
        NotReplaceable::Replaced(by) => ApiError::new(
            Code::NotReplaceable,
            format!(
                "submission {by} has taken the place of {replaced}; to replace its rows in turn, name {by}, or \
                 send the rows without `replaces` where it was deleted"
            ),
        ),
        NotReplaceable::Released => ApiError::new(
            Code::NotReplaceable,
            format!(
                "a job that read submission {replaced} has a release, and without a column of the role \
                 `subject` nobody can tell which of the new rows are of the same persons, and so not \
                 whether the releases together single somebody out; declare a dataset with a `subject` \
                 column, and send the rows there"
            ),
        ),
    }
}

/// The answer to a commit.
///
/// # Errors
/// Why nothing was stored.
pub(super) fn committed(
    totals: &SubmissionTotals,
    result: SubmissionResult,
) -> Result<IdempotentAnswer, ApiError> {
    match result {
        SubmissionResult::Stored(answer) => {
            metrics::counter!("pais_submitted_rows_total").increment(totals.rows.number);
            Ok(answer)
        }
        SubmissionResult::NoDataset => Err(ApiError::not_found()),
        SubmissionResult::ColumnsChanged => Err(ApiError::new(
            Code::Conflict,
            "the columns of the dataset were changed while the rows were sent, and nothing was stored; send them again",
        )),
        SubmissionResult::KeyTaken => Err(key_in_use()),
        SubmissionResult::NotReplaceable { replaced, reason } => {
            Err(not_replaceable(replaced, reason))
        }
        SubmissionResult::Duplicate(earlier) => Err(ApiError::new(
            Code::DuplicateSubmission,
            format!(
                "the rows are those of submission {earlier}, in whatever order, and nothing was \
                 stored; if they are further rows, send them with `?allow_duplicate=true`"
            ),
        )),
    }
}

pub(super) fn stored(submission: &Submission) -> Result<IdempotentAnswer, serde_json::Error> {
    let path = format!("/v1/datasets/{}", submission.dataset_id);
    idempotent_answer(StatusCode::CREATED, path, submission)
}
