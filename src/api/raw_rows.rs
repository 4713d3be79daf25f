//! Work of a request on the raw rows of a dataset.

use pais_anonymize::Observer;
use pais_core::cancellation::Cancellation;
use pais_core::definition::SubmissionId;
use pais_core::schema::Schema;
use pais_core::table::{Column, Table};

use crate::db::datasets::StoredDataset;
use crate::db::submissions::SubmissionsSize;
use crate::engine::table_work::TableKind;
use crate::engine::{WorkError, load_rows, on_thread};
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::error::ApiError;
use super::state::App;

/// The rows that are read, and what the work on them needs.
pub(crate) struct RawRows<'a> {
    /// Their submissions; `None` for all.
    pub(crate) submissions: Option<&'a [SubmissionId]>,
    /// Their size.
    pub(crate) size: SubmissionsSize,
    /// Memory that the work needs beside the table, in bytes.
    pub(crate) extra_bytes: u64,
}

/// Loads rows of a dataset, and works on them on a thread of its own.
///
/// # Errors
/// `limit_exceeded` if they do not fit into memory; `busy`; `not_found` where they are deleted meanwhile;
/// the error of the work.
pub(crate) async fn on_rows<T: Send + 'static>(
    app: &App,
    caller: Caller,
    dataset: StoredDataset,
    rows: RawRows<'_>,
    work: impl FnOnce(&Schema, Table, &Cancellation) -> Result<T, Problem> + Send + 'static,
) -> Result<T, ApiError> {
    let table = app
        .limits
        .table_bytes(&app.memory, &dataset.schema, &[], rows.size)?;
    let needed = table.saturating_add(rows.extra_bytes);
    let guard = app
        .tables
        .begin(TableKind::Raw, caller.organization, needed);
    let guard = guard.await?;
    let shared = guard.share();
    let (submissions, observer) = (rows.submissions, shared.clone());
    let table = load_rows::load(&app.db, &app.keys, &dataset, submissions, observer).await;
    let mut table = table.map_err(|error| match error {
        // Deleted while it was read: the same error as if it had not existed.
        WorkError::Problem(problem) if problem.code == Code::DatasetDeleted => {
            ApiError::not_found()
        }
        error => error.into(),
    })?;
    let done = on_thread(move || {
        // The columns come with the chunks; without a submission there are none.
        let stored = dataset.schema.stored().count();
        table.columns.resize_with(stored, Column::default);
        Ok(work(&dataset.schema, table, shared.cancellation())?)
    });
    Ok(done.await?)
}
