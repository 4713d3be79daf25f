//! The risk of a dataset's raw rows, before any run.

use pais_anonymize::Observer;
use pais_core::definition::DatasetId;
use pais_core::risk::{self, TableRisk};
use pais_core::table::Column;
use serde_json::json;

use crate::db::audit::{self, Action, NewEvent};
use crate::db::submissions;
use crate::jobs::{WorkError, load_rows, on_thread};
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::table_work::{TableKind, stopped};
use super::{ApiError, App};

impl App {
    /// Computes how far the rows of a dataset single out persons, with the combinations of up to `l`
    /// quasi-identifiers.
    ///
    /// # Errors
    /// `not_found`; `limit_exceeded` if the combinations are too many, or the rows do not fit into
    /// memory; `busy`; when the database fails.
    pub async fn assess_dataset(
        &self,
        caller: Caller,
        id: DatasetId,
        l: usize,
    ) -> Result<TableRisk, ApiError> {
        let dataset = self.load_dataset(caller, id).await?;
        let size = submissions::size(&self.db, id, None).await?;
        // Refused before it waits for a place and for memory.
        risk::check_work(&dataset.schema, size.rows, l)?;
        let table = self
            .limits
            .table_bytes(&self.memory, &dataset.schema, &[], size)?;
        let mut needed = table.saturating_add(risk::bytes_needed(&dataset.schema, size.rows, l));
        if dataset.schema.has_made_hierarchies() {
            // The values once more in the nodes of their trees, and in the index of these.
            needed = needed.saturating_add(size.text_bytes.saturating_mul(2));
        }
        let organization = caller.organization;
        let guard = self.begin_table_work(TableKind::Raw, organization, needed);
        let guard = guard.await?;
        let work = guard.share();
        let table = load_rows::load(&self.db, &self.keys, &dataset, None, work.clone()).await;
        let mut table = table.map_err(|error| match error {
            // Deleted while it was read: the same error as if it had not existed.
            WorkError::Problem(problem) if problem.code == Code::DatasetDeleted => {
                ApiError::not_found()
            }
            error => stopped(error.into()),
        })?;
        let risk = on_thread(move || {
            // The columns come with the chunks; without a submission there are none.
            let stored = dataset.schema.stored().count();
            table.columns.resize_with(stored, Column::default);
            let risk = risk::assess(&dataset.schema, table, l, work.cancellation());
            Ok(risk.map_err(Problem::from)?)
        });
        let risk = risk.await.map_err(|error| stopped(error.into()))?;
        drop(guard);
        let event = NewEvent::by(caller, Action::RiskRead, id.0, json!({ "l": l }));
        audit::record_alone(&self.db, event).await?;
        Ok(risk)
    }
}
