//! Why a person's token is not accepted.

use thiserror::Error;

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The token is malformed, has an invalid signature, is expired, or has another audience; or it does not name a
    /// person, one organization and one role.
    #[error("the token is not valid")]
    Invalid,
    /// The keys of the issuer are not available.
    #[error("the issuer's keys are not available")]
    Unavailable,
}
