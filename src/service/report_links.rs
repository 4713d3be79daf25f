//! Links that open one report in a browser for some minutes, without a token.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pais_report::ReportPage;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::db::{releases, token_validity};
use crate::ids::{OrganizationId, ReleaseId, TokenId};
use crate::roles::{Caller, Role};

use super::{ApiError, App};

/// How long a link works.
const LIFETIME: Duration = Duration::minutes(15);

/// Bytes of a link before its authentication: release, organization, token, role, end.
const BODY_BYTES: usize = 16 + 16 + 16 + 1 + 8;

/// Bytes of the authentication.
const MAC_BYTES: usize = 32;

/// A link to a report.
pub struct ReportLink {
    /// What stands for the report in its path: no more than these characters are needed to read it.
    pub code: String,
    /// From when on it no longer works.
    pub expires_at: OffsetDateTime,
}

/// Whose report a link opens, and until when.
struct LinkBody {
    release: ReleaseId,
    caller: Caller,
    end: i64,
}

impl LinkBody {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BODY_BYTES + MAC_BYTES);
        bytes.extend_from_slice(self.release.0.as_bytes());
        bytes.extend_from_slice(self.caller.organization.0.as_bytes());
        bytes.extend_from_slice(self.caller.token.0.as_bytes());
        bytes.push(u8::from(self.caller.role == Role::Holder));
        bytes.extend_from_slice(&self.end.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let id = |at: usize| Uuid::from_slice(bytes.get(at..at + 16)?).ok();
        let role = match bytes.get(48)? {
            1 => Role::Holder,
            0 => Role::Recipient,
            _ => return None,
        };
        let end = bytes.get(49..BODY_BYTES)?.try_into().ok()?;
        Some(Self {
            release: ReleaseId(id(0)?),
            caller: Caller {
                organization: OrganizationId(id(16)?),
                role,
                token: TokenId(id(32)?),
                address: None,
            },
            end: i64::from_be_bytes(end),
        })
    }
}

impl App {
    /// Makes a link that opens the report of a release for a quarter of an hour, as long as the
    /// caller may read it. Recorded in the audit log.
    ///
    /// # Errors
    /// As [`App::get_report`].
    pub async fn create_report_link(
        &self,
        caller: Caller,
        release: ReleaseId,
    ) -> Result<ReportLink, ApiError> {
        let (owner, _) = self.get_report(caller, release).await?;
        let expires_at = self.db.now() + LIFETIME;
        let body = LinkBody {
            release,
            caller,
            end: expires_at.unix_timestamp(),
        };
        let mut bytes = body.bytes();
        bytes.extend_from_slice(&self.keys.report_link(&bytes));
        releases::record_link(&self.db, caller, owner, release).await?;
        Ok(ReportLink {
            code: URL_SAFE_NO_PAD.encode(bytes),
            expires_at,
        })
    }

    /// The page that a link opens. Reading it is recorded in the audit log.
    ///
    /// # Errors
    /// `not_found` for every link that does not work (any more); when the database fails.
    pub async fn open_report_link(
        &self,
        code: &str,
        address: Option<IpAddr>,
    ) -> Result<ReportPage, ApiError> {
        let body = self.link_body(code).ok_or_else(ApiError::not_found)?;
        let caller = Caller {
            address,
            ..body.caller
        };
        if !token_validity::is_valid(&self.db, body.caller.token).await? {
            return Err(ApiError::not_found());
        }
        let service = self.of(caller);
        let (owner, page) = service.get_report_page(caller, body.release).await?;
        releases::record_fetch(&service.db, caller, owner, body.release, "report").await?;
        Ok(page)
    }

    /// What a link says, if this service made it and it has not ended.
    fn link_body(&self, code: &str) -> Option<LinkBody> {
        let bytes = URL_SAFE_NO_PAD.decode(code).ok()?;
        let (body, mac) = bytes.split_at_checked(BODY_BYTES)?;
        // Digests are compared, so that the time says nothing about the expected bytes.
        let expected = self.keys.report_link(&self.keys.report_link(body));
        if mac.len() != MAC_BYTES || self.keys.report_link(mac) != expected {
            return None;
        }
        let body = LinkBody::parse(body)?;
        (self.db.now().unix_timestamp() < body.end).then_some(body)
    }
}
