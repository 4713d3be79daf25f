//! What a job found: the steps of a run, and the combinations of a sweep.

use pais_anonymize::StepItem;
use pais_core::definition::{CombinationQuery, Sweep};

use crate::api::page::{Page, PageRequest};
use crate::db::datasets::{self, DatasetState};
use crate::db::runs;
use crate::engine::records::{self, SweepItem};
use crate::engine::{attempt, load_rows};
use crate::ids::JobId;
use crate::roles::Caller;

use super::{ApiError, App};

impl App {
    /// The steps of a job, from step 0; for a sweep, those of the combination. The cursor is the
    /// number of a step.
    ///
    /// # Errors
    /// `not_found`; `invalid_job` if the query names no combination of the sweep; when the database
    /// fails.
    pub async fn list_steps(
        &self,
        caller: Caller,
        id: JobId,
        combination: CombinationQuery,
        page: PageRequest<u32>,
    ) -> Result<Page<StepItem>, ApiError> {
        let job = self.get_job(caller, id).await?;
        let sweep = Sweep::new(&attempt::stored_job(&job.definition)?)?;
        let run = sweep.find(combination)? as u32;
        let (first, limit) = (page.first(), page.rows_to_query());
        let items = match datasets::find_any(&self.db, caller.organization, job.dataset).await? {
            Some(DatasetState::Live(dataset)) => {
                let key = load_rows::open_key(&self.keys, &dataset)?;
                runs::steps(&self.db, &key, id, run, first, limit).await?
            }
            // Its steps were deleted with it.
            Some(DatasetState::Deleted) | None => Vec::new(),
        };
        let items = items.into_iter().map(records::step_item);
        let items = items.collect::<Result<Vec<_>, _>>()?;
        Ok(Page::new(items, page, |item| item.step))
    }

    /// The combinations of a sweep, in the order of the job's lists. The cursor is the number of a
    /// combination.
    ///
    /// # Errors
    /// `not_found`; when the database fails.
    pub async fn list_combinations(
        &self,
        caller: Caller,
        id: JobId,
        page: PageRequest<u32>,
    ) -> Result<Page<SweepItem>, ApiError> {
        self.get_job(caller, id).await?;
        let (first, limit) = (page.first(), page.rows_to_query());
        let rows = runs::sweep(&self.db, id, first, limit).await?;
        let rows = Page::new(rows, page, |&(run, _)| run);
        Ok(rows.try_map(|(_, item)| records::sweep_item(item))?)
    }
}
