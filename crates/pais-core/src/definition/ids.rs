//! Typed identifiers: an id of one kind cannot be passed where another is wanted.

/// Declares identifiers: UUIDs, written as strings. The calling crate depends on `serde` and
/// `uuid`.
#[macro_export]
macro_rules! typed_ids {
    ($($(#[$attribute:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$attribute])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize,
            serde::Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub uuid::Uuid);

        impl $name {
            /// A new id. Later ids sort after earlier ones, so that lists page in order of
            /// creation.
            #[allow(clippy::new_without_default, reason = "a new id is never a default value")]
            pub fn new() -> Self {
                Self(uuid::Uuid::now_v7())
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

typed_ids! {
    /// A tree of labels for one attribute.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    #[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
    TaxonomyId,
    /// A schema and the submissions sent to it.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    #[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
    DatasetId,
    /// One batch of rows.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    #[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
    SubmissionId,
}
