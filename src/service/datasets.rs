//! Datasets: checks of their definitions, creation, listing and deletion.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pais_core::definition::{
    DatasetDefinition, DatasetId, TaxonomyId, TaxonomyNode, TaxonomyReference,
};
use pais_core::schema::Schema;
use pais_core::taxonomy::{Tree, TreeLimits};

use crate::db::datasets::{
    self, Dataset, DatasetCreation, DatasetSummary, NewDataset, StoredDataset, SubmissionSummary,
};
use crate::db::{RowScope, taxonomies};
use crate::jobs::reclaiming::reclaim_space;
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::{ApiError, App, Limits, text};
use crate::api::legal_holds::deleted;
use crate::api::page::{Page, PageRequest};

/// Maximum retention: a century.
const RETENTION_DAYS: i64 = 36_500;

/// How long the deletion of a dataset waits until its rows are removed.
const REMOVAL_WAIT: Duration = Duration::from_secs(5);

/// Maximum length of a description, in characters.
const DESCRIPTION_LENGTH: usize = 10_000;

impl App {
    /// Declares a dataset.
    ///
    /// # Errors
    /// A definition that is invalid or exceeds a limit; a taxonomy that does not exist;
    /// `name_taken`; when the database fails.
    pub async fn create_dataset(
        &self,
        caller: Caller,
        mut definition: DatasetDefinition,
    ) -> Result<Dataset, ApiError> {
        definition.name = text::name(&definition.name)?;
        check_definition(&definition, &self.limits)?;
        let ids = referenced_taxonomies(&definition);
        let roots = taxonomies::roots(&self.db, caller.organization, &ids).await?;
        let limits = self.limits.taxonomy;
        let trees = trees(&roots, limits)?;
        let schema = Schema::resolve(&definition, limits, |id| trees.get(&id).cloned())?;

        let id = DatasetId::new();
        let new = NewDataset {
            id,
            definition,
            trees: roots,
            wrapped_key: self.keys.new_data_key(id)?,
            warnings: schema.warnings(),
        };
        match datasets::create(&self.db, &self.keys, caller, new).await? {
            DatasetCreation::Created(dataset) => Ok(*dataset),
            DatasetCreation::NameTaken => Err(text::name_taken("a dataset").into()),
            DatasetCreation::TaxonomyDeleted => Err(ApiError::new(
                Code::NotFound,
                "a taxonomy that the definition names was deleted",
            )),
        }
    }

    /// The datasets of the caller's organization without their columns, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_datasets(
        &self,
        caller: Caller,
        page: PageRequest,
    ) -> Result<Page<DatasetSummary>, ApiError> {
        let (organization, limit) = (caller.organization, page.rows_to_query());
        let rows = datasets::list(&self.db, organization, page.after, limit).await?;
        Ok(Page::new(rows, page, |dataset| dataset.id.0))
    }

    /// A dataset of the caller's organization, with its latest submissions.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn get_dataset(&self, caller: Caller, id: DatasetId) -> Result<Dataset, ApiError> {
        let dataset = datasets::find(&self.db, &self.keys, caller.organization, id).await?;
        dataset.ok_or_else(ApiError::not_found)
    }

    /// The submissions of a dataset of the caller's organization, oldest first.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn list_submissions(
        &self,
        caller: Caller,
        id: DatasetId,
        page: PageRequest,
    ) -> Result<Page<SubmissionSummary>, ApiError> {
        let (dataset, limit) = ((caller.organization, id), page.rows_to_query());
        let (store, keys) = (&self.db, &self.keys);
        let rows = datasets::list_submissions(store, keys, dataset, page.after, limit).await?;
        let rows = rows.ok_or_else(ApiError::not_found)?;
        Ok(Page::new(rows, page, |submission| submission.id.0))
    }

    /// A dataset of the caller's organization, with its schema and its wrapped key.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn load_dataset(
        &self,
        caller: Caller,
        id: DatasetId,
    ) -> Result<StoredDataset, ApiError> {
        let store = self.db.clone();
        let load = async move || datasets::load(&store, caller.organization, id).await;
        let dataset = self.documents.load(load).await??;
        dataset.ok_or_else(ApiError::not_found)
    }

    /// Deletes a dataset, and wakes the workers to stop its jobs. Its key is destroyed at once; its
    /// rows are removed right after that, for which this waits some seconds. The reserve is used if
    /// the disk is full.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn delete_dataset(&self, caller: Caller, id: DatasetId) -> Result<(), ApiError> {
        self.storage.make_room();
        deleted(datasets::delete(&self.db, caller, id).await?)?;
        self.wake.notify_waiters();
        // Also what is left of other organizations.
        let store = self.db.within(RowScope::Service);
        let storage = self.storage.clone();
        let removal = tokio::spawn(async move {
            if let Err(error) = reclaim_space(&store, &storage).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the rows of deleted datasets could not be removed; this is tried again"
                );
            }
        });
        // What is not removed in this time is removed in the background.
        let _ = tokio::time::timeout(REMOVAL_WAIT, removal).await;
        Ok(())
    }
}

/// Checks everything about a definition except its columns, which [`Schema::resolve`] checks.
pub(super) fn check_definition(
    definition: &DatasetDefinition,
    limits: &Limits,
) -> Result<(), Problem> {
    let description = definition.description.as_deref();
    text::check_length("/description", description, DESCRIPTION_LENGTH)?;
    for (field, days) in [
        ("retention_days", definition.retention_days),
        (
            "submission_retention_days",
            definition.submission_retention_days,
        ),
    ] {
        if days.is_some_and(|days| !(1..=RETENTION_DAYS).contains(&days)) {
            return Err(Problem::at(
                Code::InvalidValue,
                format!("/{field}"),
                format!("`{field}` must be a number from 1 to {RETENTION_DAYS}"),
            ));
        }
    }
    if definition.columns.len() > limits.columns {
        return Err(Problem::at(
            Code::LimitExceeded,
            "/columns",
            format!(
                "a dataset has at most {} columns (limits.columns)",
                limits.columns
            ),
        ));
    }
    Ok(())
}

/// The taxonomies that a definition refers to by id.
pub(super) fn referenced_taxonomies(definition: &DatasetDefinition) -> Vec<TaxonomyId> {
    let columns = definition.columns.iter();
    let ids = columns.filter_map(|column| match column.taxonomy {
        Some(TaxonomyReference::Id(id)) => Some(id),
        Some(TaxonomyReference::Generated(_) | TaxonomyReference::Inline(_)) | None => None,
    });
    ids.collect()
}

/// Builds the trees of stored taxonomies. The limits may have been lowered since they were stored.
pub(super) fn trees(
    roots: &HashMap<TaxonomyId, TaxonomyNode>,
    limits: TreeLimits,
) -> Result<HashMap<TaxonomyId, Arc<Tree>>, Problem> {
    let tree = |(&id, root)| {
        let tree = Tree::new(root, limits).map_err(|error| {
            Problem::new(Code::LimitExceeded, format!("taxonomy {id}: {error}"))
        })?;
        Ok((id, Arc::new(tree)))
    };
    roots.iter().map(tree).collect()
}
