//! Roles of an API token.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{OrganizationId, TokenId};

/// What a token may do.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
    clap::ValueEnum,
    sqlx::Type,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Role {
    /// Organizations and tokens; never sees rows, raw or released.
    Admin,
    /// A hospital: its own taxonomies, datasets, submissions, jobs, releases and grants.
    Holder,
    /// Lists and fetches the releases granted to its organization, nothing else.
    Recipient,
    /// Reads the events of its own organization, nothing else.
    Auditor,
    /// A hospital's privacy officer: reads its schemas, profiles, risks, jobs, releases, reports and log;
    /// sets the policy, approves or rejects, grants, withdraws; makes no datasets, submissions and jobs.
    Officer,
}

impl Role {
    /// Every role, in the order of `openapi/openapi.json`.
    pub const ALL: [Self; 5] = [
        Self::Admin,
        Self::Holder,
        Self::Recipient,
        Self::Auditor,
        Self::Officer,
    ];

    /// The name in JSON, as in `openapi/openapi.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Holder => "holder",
            Self::Recipient => "recipient",
            Self::Auditor => "auditor",
            Self::Officer => "officer",
        }
    }

    /// The role with this name, as [`Self::as_str`] gives it; `None` for any other text.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The organization, role and token of a request.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The organization that makes the request.
    pub organization: OrganizationId,
    /// The role, which decides the rights.
    pub role: Role,
    /// The token that authenticated the request.
    pub token: TokenId,
    /// The address that the request came from, if it is known.
    pub address: Option<IpAddr>,
}
