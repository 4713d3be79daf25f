//! People who sign in with an OpenID Connect issuer: their bearer tokens are verified here.
//!
//! Knows neither HTTP requests nor the database: [`Verifier`] turns the text of a token into the
//! claims of a person, which the service maps to an organization.

mod issuer_keys;
mod signatures;
mod verifier;

use serde::Serialize;
use thiserror::Error;

pub use issuer_keys::{IssuerKeys, is_safe_address};
pub use verifier::{VerifiedPerson, Verifier, is_compact};

/// Which tokens are accepted, and what their claims mean.
#[derive(Clone, Debug)]
pub struct OidcSettings {
    /// The issuer, exactly as in the claim `iss`; its discovery document is below it.
    pub issuer: String,
    /// The audience that the claim `aud` must name.
    pub audience: String,
    /// The claim with the name or id of the person's organization.
    pub organization_claim: String,
    /// The claim with the person's role, as a text or in a list of texts.
    pub role_claim: String,
    /// The claim that names the person.
    pub subject_claim: String,
    /// Maximum difference of clocks, in seconds.
    pub leeway_seconds: u64,
}

/// Where people sign in to the console.
#[derive(Clone, Debug, Serialize)]
pub struct SignIn {
    /// The OpenID Connect issuer.
    pub issuer: String,
    /// The id of the console as the issuer's client, which is public and uses PKCE.
    pub client_id: String,
}

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
