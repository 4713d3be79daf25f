//! From groups to a verified release.

use std::collections::BTreeMap;

use crate::domain::{Code, JobDefinition, Output, Problem};
use crate::engine::observer::{Observer, Phase};
use crate::engine::pre_generalization::Applied;
use crate::engine::release::{original, shuffled};
use crate::engine::run::{FinishedRelease, json};
use crate::privacy::{self, GroupVerification, Original, VerifyError};
use crate::table::{Column, EncodedTable, GROUP_COLUMN, ReleasedTable, Schema};
use crate::utility::{self, Measures, Report};

use super::plan::GroupPlan;
use super::split::Partition;
use super::{queries, tables};

/// A table with its groups, as a release is made of it.
pub struct Grouped<'a> {
    /// The declared columns.
    pub schema: &'a Schema,
    /// The raw table.
    pub table: &'a EncodedTable,
    /// The quasi-identifiers as they came, by position among the stored columns, where the
    /// output is anatomized.
    pub exact: &'a [(usize, Column)],
    /// What was asked for.
    pub plan: &'a GroupPlan,
    /// Its groups.
    pub partition: &'a Partition,
    /// What stands for values before anything else.
    pub pre_generalization: &'a Applied,
    /// What was asked for; its seed makes the release repeatable.
    pub job: &'a JobDefinition,
    /// The job's privacy model with its parameters.
    pub privacy: serde_json::Value,
}

/// What a seed's orders are for: they must be unrelated.
const ORDER_OF_ROWS: u32 = 0;
const ORDER_OF_GROUPS: u32 = 1;

/// The verified tables, rows in random order and groups numbered at random, drawn from the seed
/// where there is one.
///
/// # Errors
/// `verification_failed` when the verifier does not accept the tables; `cancelled`.
pub fn release(grouped: &Grouped, observer: &dyn Observer) -> Result<FinishedRelease, Problem> {
    let Grouped { table, plan, .. } = grouped;
    let rows = shuffled((0..table.rows as u32).collect(), grouped.job, ORDER_OF_ROWS)?;
    let made = match plan.output {
        Output::Generalized => {
            let made = tables::generalized(grouped.schema, table, grouped.partition, &rows);
            vec![made]
        }
        Output::Anatomized => {
            let groups = (0..grouped.partition.sizes.len() as u32).collect();
            let number_of = shuffled(groups, grouped.job, ORDER_OF_GROUPS)?;
            let groups = (grouped.partition, number_of.as_slice());
            tables::anatomized(grouped.schema, table, grouped.exact, groups, &rows)
        }
    };
    if observer.must_stop() {
        return Err(Problem::new(Code::Cancelled, "the job was cancelled"));
    }
    observer.progress(Phase::Verifying, 0.2);
    let verification = verify(grouped, &made, &rows, observer)?;
    observer.progress(Phase::Verifying, 0.6);
    let report = report(grouped, &made, &verification, observer)?;
    observer.progress(Phase::Verifying, 1.0);
    Ok(FinishedRelease {
        rows: table.rows as u64,
        tables: made,
        step: None,
        suppressed_rows: 0,
        privacy: grouped.privacy.clone(),
        cut: None,
        verification: json(&verification)?,
        report: json(&report)?,
    })
}

/// Passes finished tables through the verifier: every group meets the model, each row is a raw
/// row of its own, labels cover their values, and sensitive tables count what groups hold.
fn verify(
    grouped: &Grouped,
    made: &[ReleasedTable],
    rows: &[u32],
    observer: &dyn Observer,
) -> Result<GroupVerification, Problem> {
    let plan = grouped.plan;
    let stopped = || observer.must_stop();
    let decide = |table: &ReleasedTable, by: &[Box<str>]| {
        privacy::verify_groups(table, by, &plan.sensitive, &plan.model, &stopped)
    };
    let first = made.first().ok_or_else(|| failed("there is no table"))?;
    let found = match plan.output {
        Output::Generalized => decide(first, &plan.quasi_identifiers),
        Output::Anatomized => {
            let joined = joined(grouped, first, rows)?;
            decide(&joined, &[GROUP_COLUMN.into()])
        }
    };
    let verification = match found {
        Ok(verification) => verification,
        Err(VerifyError::Stopped) => {
            return Err(Problem::new(Code::Cancelled, "the job was cancelled"));
        }
        Err(error) => return Err(failed(&error.to_string())),
    };
    if !verification.holds {
        return Err(failed("it does not meet the privacy model"));
    }
    observer.progress(Phase::Verifying, 0.4);
    match plan.output {
        Output::Generalized => check_generalized(grouped, first, rows)?,
        Output::Anatomized => check_anatomized(grouped, made, rows)?,
    }
    Ok(verification)
}

fn failed(what: &str) -> Problem {
    let detail = format!("the verifier did not accept the table, and nothing was released: {what}");
    Problem::new(Code::VerificationFailed, detail)
}

fn check_generalized(grouped: &Grouped, made: &ReleasedTable, rows: &[u32]) -> Result<(), Problem> {
    let names: Vec<&str> = grouped
        .schema
        .stored()
        .map(|column| &*column.name)
        .collect();
    let original = original(grouped.table, grouped.pre_generalization, &names)
        .ok_or_else(|| failed("a column has no name"))?;
    privacy::check_truthful(made, &original, rows, 0).map_err(|error| failed(&error.to_string()))
}

/// Name, words for missing and cells of each raw sensitive column.
fn sensitive<'a>(grouped: &'a Grouped) -> impl Iterator<Item = privacy::RawSensitive<'a>> {
    let stored: Vec<_> = grouped.schema.stored().collect();
    let columns = grouped.table.untouched.iter();
    columns.filter_map(move |(position, column)| {
        let spec = stored.get(*position)?;
        let is_sensitive = grouped.plan.sensitive.contains(&spec.name);
        is_sensitive.then(|| (spec.name.clone(), spec.missing.clone(), column))
    })
}

/// The quasi-identifier table beside the raw sensitive values of its rows.
fn joined(grouped: &Grouped, qit: &ReleasedTable, rows: &[u32]) -> Result<ReleasedTable, Problem> {
    let sensitive: Vec<_> = sensitive(grouped).collect();
    privacy::joined(qit, &sensitive, rows).map_err(|error| failed(&error.to_string()))
}

fn check_anatomized(
    grouped: &Grouped,
    made: &[ReleasedTable],
    rows: &[u32],
) -> Result<(), Problem> {
    let Some((qit, counted)) = made.split_first() else {
        return Err(failed("there is no table"));
    };
    let stored: Vec<_> = grouped.schema.stored().collect();
    let columns = grouped.exact.iter().chain(&grouped.table.untouched);
    let open = columns.filter_map(|(position, column)| {
        let name = &stored.get(*position)?.name;
        (!grouped.plan.sensitive.contains(name)).then_some((&**name, column))
    });
    let original = Original {
        rows: grouped.table.rows,
        quasi_identifiers: Vec::new(),
        sets: Vec::new(),
        untouched: open.collect(),
    };
    privacy::check_truthful(qit, &original, rows, 0).map_err(|error| failed(&error.to_string()))?;
    let groups = privacy::group_ids(qit).map_err(|error| failed(&error.to_string()))?;
    for (name, _, raw) in sensitive(grouped) {
        let table = format!("st_{name}");
        let table = counted.iter().find(|made| *made.name == *table);
        let table = table.ok_or_else(|| failed("a sensitive table is missing"))?;
        privacy::check_counts(table, &name, raw, &groups, rows)
            .map_err(|error| failed(&error.to_string()))?;
    }
    Ok(())
}

fn report(
    grouped: &Grouped,
    made: &[ReleasedTable],
    verification: &GroupVerification,
    observer: &dyn Observer,
) -> Result<Report, Problem> {
    let internal = |error: VerifyError| Problem::new(Code::Internal, error.to_string());
    let Grouped { table, plan, .. } = grouped;
    let columns = table.quasi_identifiers.iter();
    let raw = columns.map(|column| grouped.pre_generalization.raw(column));
    let domains: Vec<_> = raw.map(|it| (it.name.clone(), &it.domain)).collect();
    let (sizes, ncp_by_column) = match (plan.output, made.first()) {
        (Output::Generalized, Some(made)) => (
            privacy::group_sizes(made, &plan.quasi_identifiers).map_err(internal)?,
            utility::ncp_by_column(made, &domains, 0).map_err(internal)?,
        ),
        // Anatomized quasi-identifiers are exact.
        _ => {
            let exact: BTreeMap<_, _> = domains
                .iter()
                .map(|(name, _)| (name.to_string(), 0.0))
                .collect();
            (grouped.partition.sizes.clone(), exact)
        }
    };
    let queries = queries::table(grouped, plan.output == Output::Generalized);
    let query_error = queries.error(&|| observer.must_stop());
    if observer.must_stop() {
        return Err(Problem::new(Code::Cancelled, "the job was cancelled"));
    }
    let mut report = Report::of(Measures {
        sizes: &sizes,
        ncp_by_column,
        rows: table.rows as u64,
        suppressed_rows: 0,
        greatest_confidence: verification.greatest_confidence,
        query_error,
    });
    report.pre_generalization = grouped.job.pre_generalization.clone();
    Ok(report)
}
