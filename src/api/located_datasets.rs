//! Datasets whose rows are at a location: they are read when the dataset is declared.

use std::sync::Arc;

use pais_core::definition::DatasetLocation;
use pais_core::schema::Schema;
use pais_io::FileFormat;
use pais_io::read::ReadLimits;

use crate::db::StoreError;
use crate::db::dataset_revisions::DatasetRevision;
use crate::db::datasets::{self, DatasetCreation, NewDataset};
use crate::db::submissions::{Duplicates, NewSubmission, SubmissionRules};
use crate::engine::ingest::pipeline::{BodyFile, IngestSettings, ingest};
use crate::engine::{WorkError, locations};
use crate::problem::Code;

use super::error::ApiError;
use super::state::CallerApp;
use super::stored_submissions::{committed, stored};
use super::text;

/// A dataset to be created, whose definition was checked.
pub(super) struct ResolvedDataset {
    pub(super) new: NewDataset,
    /// Of the definition.
    pub(super) schema: Schema,
}

/// # Errors
/// Why the dataset was not created.
pub(super) fn check_created(created: DatasetCreation) -> Result<(), ApiError> {
    match created {
        DatasetCreation::Created => Ok(()),
        DatasetCreation::NameTaken => Err(text::name_taken("a dataset").into()),
        DatasetCreation::TaxonomyDeleted => Err(taxonomy_deleted()),
    }
}

/// The error of a definition whose taxonomy is deleted while it is checked.
pub(super) fn taxonomy_deleted() -> ApiError {
    let detail = "a taxonomy that the definition names was deleted";
    ApiError::new(Code::NotFound, detail)
}

/// Creates a dataset with the rows at its location as its only submission.
///
/// # Errors
/// `location_not_granted`; `location_unavailable`; `location_changed` for objects that change while they are
/// read; what is wrong with the rows; `busy`; when the database fails.
pub(super) async fn create_located(
    app: &CallerApp,
    resolved: ResolvedDataset,
    declared: &DatasetLocation,
) -> Result<(), ApiError> {
    let (organization, pointer) = (app.caller.organization, "/location/url");
    let url = &declared.url;
    let location = locations::granted(&app.db, &app.storage, organization, url, pointer).await?;
    app.limits.quotas.check_space(&app.db, organization).await?;
    let admission = app.uploads.admit(organization, &app.memory, 0);
    let _admission = admission.await?;
    let objects = location
        .objects()
        .await
        .map_err(|error| error.at(pointer))?;
    locations::check_rows(&location, &objects).await?;
    let ResolvedDataset { new, schema } = resolved;
    let open_key = || {
        app.keys
            .open(new.id, &new.wrapped_key)
            .map_err(StoreError::from)
    };
    let format = FileFormat::Parquet;
    let files = objects.iter().map(|object| BodyFile {
        name: Some(object.name().to_owned()),
        bytes: object.bytes,
    });
    let settings = IngestSettings {
        format,
        files: files.collect(),
        key: open_key()?,
        storage: Arc::clone(&app.storage),
        limits: ReadLimits {
            cell_bytes: app.limits.cell_bytes,
            total_bytes: location.limits().bytes,
        },
    };
    let begin = async |id, sealed_key: &[u8]| {
        let submission = NewSubmission {
            id,
            sealed_key,
            media_type: format.media_type(),
        };
        let begun = datasets::begin_located(&app.db, &app.keys, app.caller, &new, submission);
        let begun = begun.await?;
        begun.ok_or_else(|| WorkError::from(text::name_taken("a dataset")))
    };
    let mut body = locations::body(location.clone(), objects.clone());
    let (mut writer, totals) = ingest(Arc::new(schema), settings, &mut body, begin).await?;
    // A file can be written to while it is read.
    location.check_objects(&objects).await?;
    let completed =
        datasets::complete_located(&app.db, &mut writer, app.caller, &new, &objects).await?;
    check_created(completed)?;
    let rules = SubmissionRules {
        columns_revision: DatasetRevision::default(),
        duplicates: Duplicates::Allowed,
        replaces: None,
        quotas: &app.limits.quotas,
    };
    let key = open_key()?;
    let stored = writer
        .commit(&key, app.caller, &totals, rules, &mut None, stored)
        .await?;
    committed(&totals, stored)?;
    Ok(())
}
