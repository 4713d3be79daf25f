//! Roles of an API token.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{OrganizationId, TokenId};

/// What a token may do; the table stands in the service's contract under *Roles*.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Organizations and tokens; never sees rows, raw or released.
    Admin,
    /// A hospital: its own taxonomies, datasets, submissions, jobs, releases and grants.
    Holder,
    /// Lists and fetches the releases granted to its organization, nothing else.
    Recipient,
    /// Reads the events of its own organization, nothing else.
    Auditor,
}

impl Role {
    /// Every role, in the contract's order.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Holder, Self::Recipient, Self::Auditor];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Holder => "holder",
            Self::Recipient => "recipient",
            Self::Auditor => "auditor",
        }
    }

    /// The role a word of the contract names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The organization, role and token behind a request.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// On whose behalf.
    pub organization: OrganizationId,
    /// With which rights.
    pub role: Role,
    /// With which token.
    pub token: TokenId,
}
