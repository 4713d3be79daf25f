//! The schema of a run, whose job can give columns other roles than declared.

use std::borrow::Cow;
use std::sync::Arc;

use pais_core::definition::json::escape;
use pais_core::definition::{Job, JobError, JobErrorKind};
use pais_core::read::unfit_cells;
use pais_core::schema::Schema;
use pais_core::table::Table;

/// The schema under the job's roles. The cells of a column with another role than declared are
/// checked again, because they were read under the declared one.
///
/// # Errors
/// For roles that do not fit the schema, and cells that do not fit a role.
pub(crate) fn schema_of_job(
    declared: Arc<Schema>,
    job: &Job,
    table: &Table,
) -> Result<Arc<Schema>, JobError> {
    let schema = match declared.with_roles(&job.roles)? {
        Cow::Borrowed(_) => return Ok(declared),
        Cow::Owned(schema) => schema,
    };
    let pairs = declared.stored().zip(schema.stored()).zip(&table.columns);
    for ((before, after), column) in pairs {
        if before.role == after.role {
            continue;
        }
        if let Some(unfit) = unfit_cells(after, column) {
            let pointer = format!("/roles/{}", escape(&after.name));
            let detail = format!("cells of the column do not fit this role: {}", unfit.detail);
            return Err(JobError::at(JobErrorKind::Unfit, pointer, detail));
        }
    }
    Ok(Arc::new(schema))
}
