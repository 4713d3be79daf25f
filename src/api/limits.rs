//! Limits on what a client sends.

use std::time::Duration;

use pais_core::taxonomy::TreeLimits;
use time::OffsetDateTime;

use super::events::streams::StreamLimits;
use super::upload::UploadPace;
use crate::db::quotas::Quotas;
use crate::problem::{Code, Problem};

/// Limits on what a client sends, from the sections `limits` and `memory` of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of a decoded upload, in bytes.
    pub upload_bytes: u64,
    /// Size of a cell of a submission, in bytes of text.
    pub cell_bytes: usize,
    /// Size of a JSON body, in bytes.
    pub json_bytes: usize,
    /// Size of the JSON body of a job, in bytes.
    pub job_json_bytes: usize,
    /// Memory for the tables of one job, in bytes.
    pub job_bytes: u64,
    /// Number of columns of a dataset.
    pub columns: usize,
    /// Size of a taxonomy.
    pub taxonomy: TreeLimits,
    /// Number of uploads read at once; further ones wait.
    pub concurrent_uploads: usize,
    /// How long tokens may live.
    pub token_lifetime: TokenLifetime,
    /// Whether organizations get the secrets of their tokens by enrolment codes.
    pub enrolment: bool,
    /// Number of uploads of one organization read at once; 0 for no limit.
    pub uploads_per_organization: usize,
    /// Longest wait of an upload.
    pub upload_wait: Duration,
    /// How slowly a client may send an upload.
    pub upload_pace: UploadPace,
    /// Shares of each organization.
    pub quotas: Quotas,
    /// Event streams that may be open.
    pub streams: StreamLimits,
}

/// The longest lifetime of a token, `security.token_max_days`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenLifetime {
    longest: Option<time::Duration>,
}

impl TokenLifetime {
    /// A longest lifetime in days; 0 for no limit.
    pub fn of_days(days: u32) -> Self {
        let longest = (days > 0).then(|| time::Duration::days(days.into()));
        Self { longest }
    }

    /// The end of a token that is issued at `now`. Without a requested one it lives for the longest
    /// lifetime.
    ///
    /// # Errors
    /// `invalid_value` if the requested end is in the past or too late.
    pub fn end(
        self,
        requested: Option<OffsetDateTime>,
        now: OffsetDateTime,
    ) -> Result<Option<OffsetDateTime>, Problem> {
        let refused = |detail: String| Err(Problem::at(Code::InvalidValue, "/expires_at", detail));
        let latest = self.longest.and_then(|longest| now.checked_add(longest));
        match (requested, latest) {
            (Some(at), _) if at <= now => refused(
                "`expires_at` is in the past; give a later time, or leave it out".to_owned(),
            ),
            (Some(at), Some(latest)) if at > latest => {
                let days = self.longest.unwrap_or_default().whole_days();
                refused(format!(
                    "`expires_at` is more than {days} days ahead (security.token_max_days); give an \
                     earlier time, or leave it out for the longest lifetime"
                ))
            }
            (requested, latest) => Ok(requested.or(latest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use time::macros::datetime;

    use super::TokenLifetime;

    #[test]
    fn a_token_ends_as_requested_or_after_the_longest_lifetime() {
        let now = datetime!(2026-01-01 00:00 UTC);
        let day = Duration::DAY;
        let year = TokenLifetime::of_days(365);
        assert_eq!(year.end(None, now), Ok(Some(now + 365 * day)));
        assert_eq!(year.end(Some(now + day), now), Ok(Some(now + day)));
        assert_eq!(
            year.end(Some(now + 365 * day), now),
            Ok(Some(now + 365 * day))
        );
        let late = year.end(Some(now + 366 * day), now).unwrap_err();
        assert!(late.detail.contains("security.token_max_days"), "{late:?}");
        assert!(year.end(Some(now), now).is_err());
        let unlimited = TokenLifetime::of_days(0);
        assert_eq!(unlimited.end(None, now), Ok(None));
        assert_eq!(
            unlimited.end(Some(now + 9999 * day), now),
            Ok(Some(now + 9999 * day))
        );
    }
}
