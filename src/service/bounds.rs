//! The columns of a released table whose bounds are columns too (`?intervals=bounds`).

use std::sync::Arc;

use pais_core::codebook::Codebook;
use pais_core::write::{BoundedColumn, taken_name};
use serde_json::Value;

use crate::db::StoreError;
use crate::db::releases::StoredTable;
use crate::problem::{Code, Problem};
use crate::roles::Caller;

use super::{ApiError, App};

impl App {
    /// The columns of numbers and dates of a released table, whose bounds can be rendered.
    ///
    /// # Errors
    /// `invalid_value` where another column has the name of a bound; `not_found`; when the database fails.
    pub async fn bounded_columns(
        &self,
        caller: Caller,
        table: &StoredTable,
    ) -> Result<Arc<[BoundedColumn]>, ApiError> {
        let release = self.get_release(caller, table.release).await?;
        let damaged = |_| StoreError::Damaged {
            what: "the codebook of a release",
        };
        let codebook = release.codebook.unwrap_or_default();
        let codebook: Codebook = serde_json::from_value(codebook).map_err(damaged)?;
        let bounded = codebook.bounded_columns();
        let columns = table.columns.as_array().map_or(&[][..], Vec::as_slice);
        let names = columns.iter().filter_map(column_name);
        if let Some(name) = taken_name(names, &bounded) {
            let detail = format!(
                "the bounds of a column would be in `{name}`, which is another column of the table; \
                 leave `intervals` out, or rename the column in the dataset"
            );
            return Err(Problem::new(Code::InvalidValue, detail).into());
        }
        Ok(bounded.into())
    }
}

fn column_name(column: &Value) -> Option<&str> {
    column["name"].as_str()
}
