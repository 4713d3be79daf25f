//! The profile of a dataset: each column in numbers, and the persons that its rows are about.

use std::collections::BTreeMap;

use pais_anonymize::Observer;
use pais_core::definition::DatasetId;
use pais_core::table::profile::{self, ColumnProfile};
use pais_core::table::{Column, SubjectCounts};
use pais_core::warning::Warning;
use serde_json::json;

use crate::db::audit::{self, Action, NewEvent};
use crate::db::{datasets, profile as stored, submissions};
use crate::jobs::{WorkError, load_rows, on_thread};
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::table_work::{TableKind, stopped};
use super::{ApiError, App};

/// A dataset in numbers.
pub struct DatasetProfile {
    /// Number of rows.
    pub rows: u64,
    /// The stored columns, in the declared order.
    pub columns: Vec<ColumnProfile>,
    /// The persons of the rows; `None` without a subject column.
    pub subjects: Option<SubjectCounts>,
    /// By identifier column, the number of rows whose identifier occurred before in their
    /// submission; `None` if none were counted.
    pub identifier_repeats: Option<BTreeMap<String, u64>>,
    /// What the holder should know about the rows.
    pub warnings: Vec<Warning>,
}

impl App {
    /// Profiles a dataset.
    ///
    /// # Errors
    /// `not_found`; `limit_exceeded` if the rows do not fit into memory; `busy`; when the database
    /// fails.
    pub async fn profile_dataset(
        &self,
        caller: Caller,
        id: DatasetId,
    ) -> Result<DatasetProfile, ApiError> {
        let dataset = self.load_dataset(caller, id).await?;
        // Persons are counted by submission, so the submissions are settled before the rows are
        // read.
        let submissions = match dataset.schema.subject() {
            Some(_) => Some(stored::rows_by_submission(&self.db, id).await?),
            None => None,
        };
        let ids = submissions.as_ref().map(|submissions| {
            let ids = submissions.iter().map(|(submission, _)| *submission);
            ids.collect::<Vec<_>>()
        });
        let ids = ids.as_deref();
        let size = submissions::size(&self.db, id, ids).await?;
        let needed = self
            .limits
            .table_bytes(&self.memory, &dataset.schema, &[], size)?;
        let organization = caller.organization;
        let guard = self.begin_table_work(TableKind::Raw, organization, needed);
        let guard = guard.await?;
        let work = guard.share();
        let table = load_rows::load(&self.db, &self.keys, &dataset, ids, work.clone()).await;
        let mut table = table.map_err(|error| match error {
            // Deleted while it was read: the same error as if it had not existed.
            WorkError::Problem(problem) if problem.code == Code::DatasetDeleted => {
                ApiError::not_found()
            }
            error => stopped(error.into()),
        })?;
        let profile = on_thread(move || {
            // The columns come with the chunks; without a submission there are none.
            let stored = dataset.schema.stored().count();
            table.columns.resize_with(stored, Column::default);
            let columns = profile::profile_until(&dataset.schema, &table, work.cancellation());
            let subjects = dataset.schema.subject().zip(submissions);
            let subjects = subjects.map(|(column, submissions)| {
                let rows = submissions.into_iter().map(|(_, rows)| rows);
                SubjectCounts::new(&table.columns[column], rows)
            });
            let stopped = || Problem::new(Code::Cancelled, "the profile was stopped");
            Ok((table.rows as u64, columns.ok_or_else(stopped)?, subjects))
        });
        let profile = profile.await.map_err(|error| stopped(error.into()))?;
        drop(guard);
        let (rows, columns, subjects) = profile;
        let event = NewEvent::by(caller, Action::ProfileRead, id.0, json!({}));
        audit::record_alone(&self.db, event).await?;
        Ok(DatasetProfile {
            rows,
            columns,
            subjects,
            identifier_repeats: stored::identifier_repeats(&self.db, id).await?,
            warnings: datasets::row_warnings(&self.db, id).await?,
        })
    }
}
