//! A complete method in one file, as an example: it releases the topmost table.
//!
//! Every relational quasi-identifier is generalized as far as possible: to the root of its
//! taxonomy, `*` without one, or its whole interval. Its rows are one equivalence class, so the
//! release is k-anonymous where the table has *K* rows. `CONTRIBUTING.md` explains each part.

use pais_core::definition::{ColumnRole, JobDefinition, JobError};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{Domain, QuasiIdentifier};
use pais_core::taxonomy::{Interval, NodeId};

use crate::cut::Cut;
use crate::error::RunError;
use crate::job_checks::{check_global, check_no_weights, check_some, first_set, unfit};
use crate::method::{Candidate, Claim, Method};
use crate::observer::Observer;
use crate::prepared::PreparedTable;
use crate::step::StepRecord;
use crate::utility::{self, Report};
use crate::verdict::Verdict;
use crate::{memory, pre_generalization, published_cut, released_table, row_order};

/// The method with what it keeps of a job: here the privacy model alone.
struct Topmost {
    model: PrivacyModel,
}

/// Decides whether a job is for this method, and checks it before a row is read.
///
/// `Ok(None)` leaves the job to the next method; an error refuses it, with a pointer to its fault.
pub(super) fn plan(
    schema: &Schema,
    job: &JobDefinition,
    model: &PrivacyModel,
) -> Result<Option<Box<dyn Method>>, JobError> {
    let PrivacyModel::Lkc(_) = model else {
        return Ok(None);
    };
    if first_set(schema).is_some() {
        let detail = "this method takes no set-valued quasi-identifier; choose another model";
        return Err(unfit("/privacy/model", detail));
    }
    check_global(job)?;
    check_no_weights(job)?;
    check_some(&schema.names(ColumnRole::QuasiIdentifier))?;
    pre_generalization::check(schema, job, true)?;
    let model = model.clone();
    Ok(Some(Box::new(Topmost { model })))
}

impl Method for Topmost {
    fn bytes_needed(&self, schema: &Schema, rows: u64, _searches: u64) -> u64 {
        memory::release_codes(schema, rows)
    }

    /// There is nothing to search. A method that has to, asks `observer` again and again whether to
    /// stop, and returns [`RunError::NotAnonymizable`] where it finds no anonymous table.
    fn search(&self, _: &PreparedTable, _: &dyn Observer) -> Result<Vec<StepRecord>, RunError> {
        Ok(Vec::new())
    }

    /// The finished table, and the claim about it. It need not be true: the gate checks it.
    fn build(
        &self,
        input: &PreparedTable,
        _: &[StepRecord],
        step: Option<u32>,
        _: &dyn Observer,
    ) -> Result<Candidate, RunError> {
        if let Some(step) = step {
            return Err(RunError::NoSuchStep { step, last: None });
        }
        let (schema, table) = (&input.schema, &input.table);
        let cuts = table.quasi_identifiers.iter().map(topmost_cut).collect();
        // Released rows are shuffled: their raw order may disclose who they are.
        let rows = row_order::released_rows(input, &[], 0)?;
        let (cuts, published) = published_cut::publish(schema, table, cuts, &rows);
        let released = released_table::assemble(schema, table, &cuts, Vec::new(), &rows);
        Ok(Candidate {
            tables: vec![released],
            rows,
            step: None,
            cut: Some(published),
            claim: Claim::Global(self.model.clone()),
        })
    }

    /// The report of a table that the gate has accepted.
    fn measure(
        &self,
        input: &PreparedTable,
        candidate: &Candidate,
        verdict: &Verdict,
        _: &dyn Observer,
    ) -> Result<Report, RunError> {
        utility::report(&candidate.tables[0], &input.schema, 0, verdict).map_err(RunError::internal)
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
