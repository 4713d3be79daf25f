//! Typed identifiers: an id of one kind cannot be passed where another kind is expected.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
            ToSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new id. Later ids sort after earlier ones, so that lists are paged in order of
            /// creation.
            #[allow(clippy::new_without_default, reason = "a new id is never a default value")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )+};
}

ids! {
    /// A hospital, or a recipient such as the BTS.
    OrganizationId,
    /// An API key of one organization with one role.
    TokenId,
    /// A tree of labels for one attribute.
    TaxonomyId,
    /// A schema and the submissions sent to it.
    DatasetId,
    /// One batch of rows.
    SubmissionId,
    /// One anonymization run.
    JobId,
    /// One immutable anonymized table.
    ReleaseId,
    /// One recipient's right to one release.
    GrantId,
    /// One line of the audit log.
    EventId,
}
