//! Tokens: authentication, creation, listing and revocation.

use crate::ids::TokenId;
use crate::problem::{Code, Problem};
use crate::roles::Caller;
use crate::store::tokens::{self, IssuedToken, NewToken, Token};

use super::page::{Listing, PageRequest};
use super::{Service, ServiceError, text};

/// Maximum length of a label, in bytes.
const LABEL_BYTES: usize = 200;

impl Service {
    /// The caller with this secret; `None` if there is no such token, or it is expired or revoked.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn authenticate(&self, secret: &str) -> Result<Option<Caller>, ServiceError> {
        Ok(tokens::authenticate(&self.store, secret).await?)
    }

    /// Issues a token for the organization with this name or id.
    ///
    /// # Errors
    /// `invalid_value`; `not_found` for the organization; when the database fails.
    pub async fn create_token(
        &self,
        caller: Caller,
        organization: &str,
        new: NewToken<'_>,
    ) -> Result<IssuedToken, ServiceError> {
        text::check_length("/label", new.label, LABEL_BYTES)?;
        if new.expires_at.is_some_and(|at| at <= self.store.now()) {
            return Err(Problem::at(
                Code::InvalidValue,
                "/expires_at",
                "`expires_at` is in the past; give a later time, or leave it out",
            )
            .into());
        }
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
