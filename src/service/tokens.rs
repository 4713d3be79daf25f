//! Tokens: authentication, creation, listing and revocation.

use std::net::IpAddr;

use crate::db::token_validity::{self, Authentication, RefusalReason};
use crate::db::tokens::{self, IssuedToken, NewToken, Token};
use crate::db::{enrolments, persons};
use crate::ids::TokenId;
use crate::oidc::Person;
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::{ApiError, App, text};
use crate::api::page::{Listing, PageRequest};

/// Maximum length of a label, in characters.
const LABEL_LENGTH: usize = 200;

impl App {
    /// Records in the audit log of the caller's organization that its role may not do what it asked
    /// for; at most once a minute for a token. A failure is logged: the request is refused anyway.
    pub async fn record_forbidden(&self, caller: Caller) {
        let (token, organization) = (caller.token, caller.organization);
        let reason = RefusalReason::Role;
        let recorded =
            token_validity::record_refusal(&self.db, token, organization, reason, caller.address)
                .await;
        if let Err(error) = recorded {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a refused request could not be recorded"
            );
        }
    }

    /// The caller with this secret; `None` if there is no such token, or it is expired or revoked.
    /// The use of an expired or revoked token is recorded in the audit log of its organization.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn authenticate(
        &self,
        secret: &str,
        address: Option<IpAddr>,
    ) -> Result<Option<Caller>, ApiError> {
        let found = token_validity::authenticate(&self.db, secret).await?;
        self.authenticated(found, address).await
    }

    /// The caller for a person whose token the issuer signed; `None` if there is no such organization,
    /// or the person's access was revoked.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn authenticate_person(
        &self,
        person: &Person,
        address: Option<IpAddr>,
    ) -> Result<Option<Caller>, ApiError> {
        let Person {
            subject,
            organization,
            role,
        } = person;
        let found =
            persons::authenticate(&self.db, organization, (*role, subject), address).await?;
        self.authenticated(found, address).await
    }

    async fn authenticated(
        &self,
        found: Authentication,
        address: Option<IpAddr>,
    ) -> Result<Option<Caller>, ApiError> {
        match found {
            Authentication::Valid(caller) => Ok(Some(Caller { address, ..caller })),
            Authentication::Refused {
                token,
                organization,
                reason,
            } => {
                token_validity::record_refusal(&self.db, token, organization, reason, address)
                    .await?;
                Ok(None)
            }
            Authentication::Unknown => Ok(None),
        }
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
    ) -> Result<IssuedToken, ApiError> {
        text::check_length("/label", new.label, LABEL_LENGTH)?;
        let lifetime = self.limits.token_lifetime;
        let new = NewToken {
            expires_at: lifetime.end(new.expires_at, self.db.now())?,
            is_enrolled: self.limits.enrolment,
            ..new
        };
        let issued = tokens::create_token(&self.db, Some(caller), organization, new).await?;
        Ok(issued.ok_or_else(|| {
            Problem::at(
                Code::NotFound,
                "/organization",
                "there is no such organization",
            )
        })?)
    }

    /// Redeems an enrolment code: the token with its secret, which nobody else has. `None` for a code
    /// that does not work, or no longer.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn redeem_enrolment(
        &self,
        code: &str,
        address: Option<IpAddr>,
    ) -> Result<Option<IssuedToken>, ApiError> {
        match enrolments::is_well_formed(code) {
            true => Ok(enrolments::redeem(&self.db, code, address).await?),
            false => Ok(None),
        }
    }

    /// All tokens without their secrets, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_tokens(&self, page: PageRequest) -> Result<Listing<Token>, ApiError> {
        let rows = tokens::list(&self.db, None, page.after, page.rows_to_query()).await?;
        Ok(Listing::new(rows, page, |token| token.id.0))
    }

    /// The tokens of the caller's organization without their secrets, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_own_tokens(
        &self,
        caller: Caller,
        page: PageRequest,
    ) -> Result<Listing<Token>, ApiError> {
        let of = Some(caller.organization);
        let rows = tokens::list(&self.db, of, page.after, page.rows_to_query()).await?;
        Ok(Listing::new(rows, page, |token| token.id.0))
    }

    /// Revokes a token at once.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn revoke_token(&self, caller: Caller, id: TokenId) -> Result<(), ApiError> {
        match tokens::revoke(&self.db, caller, id).await? {
            true => Ok(()),
            false => Err(ApiError::not_found()),
        }
    }
}
