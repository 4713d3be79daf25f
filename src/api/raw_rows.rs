//! Work of a request on the raw rows of a dataset.

use std::sync::Arc;

use pais_anonymize::{JobPlan, Observer};
use pais_core::cancellation::Cancellation;
use pais_core::schema::Schema;
use pais_core::table::{Column, Table};

use crate::db::datasets::{self, StoredDataset};
use crate::db::submissions::{SubmissionsSize, Which};
use crate::engine::table_memory::TableLimits;
use crate::engine::table_work::{TableKind, TableWork, WorkGuard};
use crate::engine::{WorkError, load_rows, on_thread};
use crate::ids::DatasetId;
use crate::problem::{Code, Problem};

use super::error::ApiError;
use super::state::CallerApp;

/// The rows to read, and the needs of the work on them.
pub(super) struct RawRows<'a> {
    /// Their submissions.
    pub(super) which: Which<'a>,
    /// Their size.
    pub(super) size: SubmissionsSize,
    /// The runs on them.
    pub(super) plans: &'a [JobPlan],
    /// Memory that the work needs in addition to the table, in bytes.
    pub(super) extra_bytes: u64,
}

/// Rows in memory, with the slot for work on them.
pub(super) struct LoadedRows {
    guard: WorkGuard,
    schema: Arc<Schema>,
    table: Table,
}

impl RawRows<'_> {
    /// Waits for a slot and for memory, and loads the rows.
    ///
    /// # Errors
    /// `limit_exceeded` if they do not fit into memory; `busy`; `dataset_deleted` if they are deleted
    /// meanwhile.
    pub(super) async fn load(
        &self,
        app: &CallerApp,
        dataset: StoredDataset,
    ) -> Result<LoadedRows, ApiError> {
        let limits = TableLimits::new(app.limits.job_bytes, &app.memory);
        let table = limits.needed(&dataset.schema, self.plans, self.size, 0)?;
        let needed = table.saturating_add(self.extra_bytes);
        let organization = app.caller.organization;
        let guard = app.tables.begin(TableKind::Raw, organization, needed);
        let guard = guard.await?;
        let observer = guard.share();
        let table = load_rows::load(&app.db, &app.keys, &dataset, self.which, observer);
        Ok(LoadedRows {
            table: table.await?,
            schema: dataset.schema,
            guard,
        })
    }
}

impl LoadedRows {
    /// Works on the rows on a thread of its own.
    ///
    /// # Errors
    /// That of the work.
    pub(super) async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce(Arc<Schema>, Table, &TableWork) -> Result<T, WorkError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (shared, schema, table) = (self.guard.share(), self.schema, self.table);
        Ok(on_thread(move || work(schema, table, &shared)).await?)
    }
}

/// Maximum number of attempts to load rows that are deleted concurrently.
const ATTEMPTS: u32 = 3;

/// Works on the rows of a dataset, again if submissions are deleted while they are read.
///
/// # Errors
/// Those of the work; `not_found` where the dataset is deleted meanwhile; `busy`.
pub(super) async fn despite_deletions<T, F>(
    app: &CallerApp,
    id: DatasetId,
    work: impl Fn(CallerApp) -> F,
) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>>,
{
    for _ in 0..ATTEMPTS {
        match work(app.clone()).await {
            Err(ApiError::Problem(problem)) if problem.code == Code::DatasetDeleted => {
                let name = datasets::name(&app.db, app.caller.organization, id).await?;
                name.ok_or_else(ApiError::not_found)?;
            }
            done => return done,
        }
    }
    let detail = "submissions of the dataset are being deleted; try again afterwards";
    Err(ApiError::new(Code::Busy, detail))
}

/// Loads rows of a dataset, and works on them on a thread of its own.
///
/// # Errors
/// Those of [`RawRows::load`]; the error of the work.
pub(super) async fn on_rows<T: Send + 'static>(
    app: &CallerApp,
    dataset: StoredDataset,
    rows: RawRows<'_>,
    work: impl FnOnce(&Arc<Schema>, Table, &Cancellation) -> Result<T, Problem> + Send + 'static,
) -> Result<T, ApiError> {
    let done = rows
        .load(app, dataset)
        .await?
        .work(move |schema, mut table, shared| {
            // The columns come with the chunks; without a submission there are none.
            let stored = schema.stored().count();
            table.columns.resize_with(stored, Column::default);
            Ok(work(&schema, table, shared.cancellation())?)
        });
    done.await
}
