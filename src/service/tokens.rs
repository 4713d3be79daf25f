//! Tokens: authentication, creation, listing and revocation.

use crate::ids::TokenId;
use crate::problem::{Code, Problem};
use crate::roles::Caller;
use crate::store::tokens::{self, Authentication, IssuedToken, NewToken, Token};

use super::page::{Listing, PageRequest};
use super::{Service, ServiceError, text};

/// Maximum length of a label, in bytes.
const LABEL_BYTES: usize = 200;

impl Service {
    /// The caller with this secret; `None` if there is no such token, or it is expired or revoked,
    /// which is recorded in the audit log of its organization.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn authenticate(&self, secret: &str) -> Result<Option<Caller>, ServiceError> {
        let (token, reason) = match tokens::authenticate(&self.store, secret).await? {
            Authentication::Valid(caller) => return Ok(Some(caller)),
            Authentication::Unknown => return Ok(None),
            Authentication::Expired(token) => (token, "expired"),
            Authentication::Revoked(token) => (token, "revoked"),
        };
        // The token is refused all the same where the event cannot be written.
        if let Err(error) = tokens::record_refusal(&self.store, token, reason).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the refusal of a token could not be recorded"
            );
        }
        Ok(None)
    }

    /// Issues a token for the organization with this name or id. Without `expires_at` it works for
    /// the longest lifetime that is possible.
    ///
    /// # Errors
    /// `invalid_value`; `limit_exceeded`; `not_found` for the organization; when the database fails.
    pub async fn create_token(
        &self,
        caller: Caller,
        organization: &str,
        mut new: NewToken<'_>,
    ) -> Result<IssuedToken, ServiceError> {
        text::check_length("/label", new.label, LABEL_BYTES)?;
        let lifetime = self.limits.token_lifetime;
        new.expires_at = lifetime.expiry(self.store.now(), new.expires_at)?;
        let issued = tokens::create_token(&self.store, Some(caller), organization, new).await?;
        Ok(issued.ok_or_else(|| {
            Problem::at(
                Code::NotFound,
                "/organization",
                "there is no such organization",
            )
        })?)
    }

    /// All tokens without their secrets, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_tokens(&self, page: PageRequest) -> Result<Listing<Token>, ServiceError> {
        let rows = tokens::list(&self.store, page.after, page.rows_to_query()).await?;
        Ok(Listing::new(rows, page, |token| token.id.0))
    }

    /// Revokes a token at once.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn revoke_token(&self, caller: Caller, id: TokenId) -> Result<(), ServiceError> {
        match tokens::revoke(&self.store, caller, id).await? {
            true => Ok(()),
            false => Err(ServiceError::not_found()),
        }
    }
}
