//! The identifiers of the service's own resources; those that a definition names are in
//! [`pais_core::definition`].

use utoipa::ToSchema;

pub use pais_core::definition::{DatasetId, SubmissionId, TaxonomyId};

pais_core::typed_ids! {
    /// A hospital, or a recipient such as the BTS.
    #[derive(ToSchema, sqlx::Type)]
    #[sqlx(transparent)]
    OrganizationId,
    /// An API key of one organization with one role.
    #[derive(ToSchema, sqlx::Type)]
    #[sqlx(transparent)]
    TokenId,
    /// One anonymization run.
    #[derive(ToSchema, sqlx::Type)]
    #[sqlx(transparent)]
    JobId,
    /// One immutable anonymized table.
    #[derive(ToSchema, sqlx::Type)]
    #[sqlx(transparent)]
    ReleaseId,
    /// One recipient's right to one release.
    #[derive(ToSchema, sqlx::Type)]
    #[sqlx(transparent)]
    GrantId,
    /// A job that repeats for new rows.
    #[derive(ToSchema, sqlx::Type)]
    #[sqlx(transparent)]
    PublicationId,
    /// One line of the audit log.
    #[derive(ToSchema, sqlx::Type)]
    #[sqlx(transparent)]
    EventId,
}
