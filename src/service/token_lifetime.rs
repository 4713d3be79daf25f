//! How long tokens work.

use time::{Duration, OffsetDateTime};

use crate::problem::{Code, Problem};

/// The longest lifetime of a token (`security.token_max_days`), which is also that of a token for
/// which none is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLifetime {
    /// In days; 0 for no limit.
    pub max_days: u32,
}

impl TokenLifetime {
    /// When a token that is issued `now` expires; `None` for never, which is possible without a limit
    /// only. `requested` is the time that was asked for.
    ///
    /// # Errors
    /// A time in the past or beyond the limit, at `/expires_at`.
    pub fn expiry(
        self,
        now: OffsetDateTime,
        requested: Option<OffsetDateTime>,
    ) -> Result<Option<OffsetDateTime>, Problem> {
        if requested.is_some_and(|at| at <= now) {
            return Err(Problem::at(
                Code::InvalidValue,
                "/expires_at",
                "`expires_at` is in the past; give a later time, or leave it out",
            ));
        }
        let Some(last) = self.last(now) else {
            return Ok(requested);
        };
        if requested.is_some_and(|at| at > last) {
            let detail = format!(
                "a token works for at most {} days (security.token_max_days); give an earlier \
                 time, or leave `expires_at` out",
                self.max_days
            );
            return Err(Problem::at(Code::LimitExceeded, "/expires_at", detail));
        }
        Ok(requested.or(Some(last)))
    }

    /// The latest time at which a token that is issued `now` can expire; `None` without a limit.
    fn last(self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let lifetime = Duration::days(i64::from(self.max_days));
        (self.max_days > 0)
            .then(|| now.checked_add(lifetime))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use time::{Duration, OffsetDateTime};

    use super::TokenLifetime;

    const NOW: OffsetDateTime = datetime!(2026-01-31 12:00 UTC);

    #[test]
    fn a_lifetime_has_a_default_and_a_limit() {
        let year = TokenLifetime { max_days: 365 };
        let last = NOW + Duration::days(365);
        assert_eq!(year.expiry(NOW, None), Ok(Some(last)));
        assert_eq!(year.expiry(NOW, Some(last)), Ok(Some(last)));
        let beyond = year.expiry(NOW, Some(last + Duration::SECOND)).unwrap_err();
        assert_eq!(beyond.errors[0].pointer(), Some("/expires_at"));
        assert!(beyond.detail.contains("security.token_max_days"));
        assert!(year.expiry(NOW, Some(NOW)).is_err());
    }

    #[test]
    fn without_a_limit_a_token_can_work_for_ever() {
        let unlimited = TokenLifetime { max_days: 0 };
        assert_eq!(unlimited.expiry(NOW, None), Ok(None));
        let far = NOW + Duration::days(100_000);
        assert_eq!(unlimited.expiry(NOW, Some(far)), Ok(Some(far)));
        // More days than the calendar has are no limit.
        let huge = TokenLifetime { max_days: u32::MAX };
        assert_eq!(huge.expiry(NOW, None), Ok(None));
    }
}
