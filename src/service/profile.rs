//! The profile of a dataset: each column in numbers.

use std::sync::Arc;

use pais_anonymize::Unobserved;
use pais_core::definition::DatasetId;
use pais_core::table::Column;
use pais_core::table::profile::{self, ColumnProfile};

use crate::problem::Code;
use crate::roles::Caller;
use crate::store::submissions;
use crate::worker::{WorkError, load_rows, on_thread};

use super::table_permits::TableKind;
use super::{Service, ServiceError};

impl Service {
    /// Profiles a dataset. Returns its number of rows and the profiles of its stored columns, in
    /// the declared order.
    ///
    /// # Errors
    /// `not_found`; `limit_exceeded` if the rows do not fit into memory; when the database fails.
    pub async fn profile_dataset(
        &self,
        caller: Caller,
        id: DatasetId,
    ) -> Result<(u64, Vec<ColumnProfile>), ServiceError> {
        let dataset = self.load_dataset(caller, id).await?;
        let size = submissions::size(&self.store, id, None).await?;
        self.limits.check_memory(&dataset.schema, &[], size)?;
        let permit = self.permits.acquire(TableKind::Raw).await?;
        let unobserved = Arc::new(Unobserved::default());
        let table = load_rows::load(&self.store, &self.keys, &dataset, None, unobserved).await;
        let mut table = table.map_err(|error| match error {
            // Deleted while it was read: the same error as if it had not existed.
            WorkError::Problem(problem) if problem.code == Code::DatasetDeleted => {
                ServiceError::not_found()
            }
            error => error.into(),
        })?;
        let profile = on_thread(move || {
            let _permit = permit;
            // The columns come with the chunks; without a submission there are none.
            let stored = dataset.schema.stored().count();
            table.columns.resize_with(stored, Column::default);
            let columns = profile::profile(&dataset.schema, &table);
            Ok((table.rows as u64, columns))
        });
        Ok(profile.await?)
    }
}
