//! A complete method in one file, as an example: it releases the topmost table.
//!
//! Every relational quasi-identifier is generalized as far as possible: to the root of its
//! taxonomy, `*` without one, or its whole interval. Its rows are one equivalence class, so the
//! release is k-anonymous where the table has *K* rows. `CONTRIBUTING.md` explains each part.

use pais_core::definition::{ColumnRole, Job, JobError};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{Domain, QuasiIdentifier};
use pais_core::taxonomy::{Interval, NodeId};

use crate::error::RunError;
use crate::job_checks::{check_global, check_no_weights, check_some, first_set, unfit};
use crate::method::{Candidate, Method, Planned, SearchOutcome};
use crate::observer::Observer;
use crate::prepared::PreparedTable;
use crate::published_cut::Cut;
use crate::{memory, pre_generalization};

/// The method; one with parameters keeps those of its job here.
struct Topmost;

/// Decides whether a job is for this method, and checks it before a row is read.
///
/// `Ok(None)` leaves the job to the next method; an error refuses it, with a pointer to its fault.
pub(super) fn plan(schema: &Schema, job: &Job, model: &PrivacyModel) -> Planned {
    let PrivacyModel::Lkc(_) = model else {
        return Ok(None);
    };
    if first_set(schema).is_some() {
        let detail = "this method takes no set-valued quasi-identifier; choose another model";
        return Err(unfit("/privacy/model", detail));
    }
    check_global(job)?;
    check_no_weights(job)?;
    check_some(&schema.names(ColumnRole::QuasiIdentifier), job)?;
    pre_generalization::check(schema, job)?;
    Ok(Some(Box::new(Topmost)))
}

impl Method for Topmost {
    fn bytes_needed(&self, schema: &Schema, rows: u64, _: u64) -> Result<u64, JobError> {
        Ok(memory::release_codes(schema, rows, 1))
    }

    /// A search regularly asks `observer` whether to stop, and returns
    /// [`RunError::NotAnonymizable`] where it finds no anonymous table.
    fn search(&self, _: &PreparedTable, _: &dyn Observer) -> Result<SearchOutcome, RunError> {
        // What `build` needs of the search; here nothing.
        Ok(SearchOutcome::new(()))
    }

    /// The finished table, and the claim about it. It need not be true: the gate checks it.
    fn build(
        &self,
        input: &PreparedTable,
        outcome: &SearchOutcome,
        step: u32,
    ) -> Result<Candidate, RunError> {
        let (): &() = outcome.of()?;
        let columns = input.table.quasi_identifiers.iter();
        let cuts = columns.map(topmost_cut).collect();
        let rows = input.released_rows(step, |_| true)?;
        Ok(Candidate::of_cuts(input, cuts, Vec::new(), rows))
    }
}

/// The cut of one column: one label, which every code has.
fn topmost_cut(column: &QuasiIdentifier) -> Cut {
    let label = match &column.domain {
        Domain::Taxonomy(tree) => tree.node(NodeId::ROOT).label.to_string(),
        Domain::Numeric { lo, hi, scale, .. } => Interval::closed(*lo, *hi).on(*scale).to_string(),
    };
    Cut {
        labels: vec![label],
        label_of: vec![0; column.domain.code_count()],
    }
}

#[cfg(test)]
mod tests;
