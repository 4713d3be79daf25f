//! The profile of a dataset: each column in numbers.

use pais_anonymize::Observer;
use pais_core::definition::DatasetId;
use pais_core::table::Column;
use pais_core::table::profile::{self, ColumnProfile};

use crate::problem::{Code, Problem};
use crate::roles::Caller;
use crate::store::submissions;
use crate::worker::{WorkError, load_rows, on_thread};

use super::table_work::{TableKind, stopped};
use super::{Service, ServiceError};

impl Service {
    /// Profiles a dataset. Returns its number of rows and the profiles of its stored columns, in
    /// the declared order.
    ///
    /// # Errors
    /// `not_found`; `limit_exceeded` if the rows do not fit into memory; `busy`; when the database
    /// fails.
    pub async fn profile_dataset(
        &self,
        caller: Caller,
        id: DatasetId,
    ) -> Result<(u64, Vec<ColumnProfile>), ServiceError> {
        let dataset = self.load_dataset(caller, id).await?;
        let size = submissions::size(&self.store, id, None).await?;
        let needed = self
            .limits
            .table_bytes(&self.memory, &dataset.schema, &[], size)?;
        let organization = caller.organization;
        let guard = self.begin_table_work(TableKind::Raw, organization, needed);
        let guard = guard.await?;
        let work = guard.share();
        let table = load_rows::load(&self.store, &self.keys, &dataset, None, work.clone()).await;
        let mut table = table.map_err(|error| match error {
            // Deleted while it was read: the same error as if it had not existed.
            WorkError::Problem(problem) if problem.code == Code::DatasetDeleted => {
                ServiceError::not_found()
            }
            error => stopped(error.into()),
        })?;
        let profile = on_thread(move || {
            // The columns come with the chunks; without a submission there are none.
            let stored = dataset.schema.stored().count();
            table.columns.resize_with(stored, Column::default);
            let columns = profile::profile_until(&dataset.schema, &table, work.cancellation());
            let stopped = || Problem::new(Code::Cancelled, "the profile was stopped");
            Ok((table.rows as u64, columns.ok_or_else(stopped)?))
        });
        let profile = profile.await.map_err(|error| stopped(error.into()))?;
        drop(guard);
        Ok(profile)
    }
}
