//! The cuts of the generalized table after a step, rebuilt from the recorded steps.

use std::collections::HashMap;

use crate::error::RunError;
use crate::published_cut::Cut;
use crate::step::StepRecord;
use pais_core::table::{Domain, EncodedTable};
use pais_core::taxonomy::{Interval, MISSING_LABEL};

use super::attribute::{Meaning, label};

/// The error of steps that were recorded for another table.
fn unfit() -> RunError {
    RunError::internal("the recorded steps do not fit the table; were its rows changed?")
}

/// Returns the cuts of all attributes after `step`, in the order of the quasi-identifiers.
///
/// # Errors
/// When the steps were recorded for another table.
pub(super) fn cuts_at(
    table: &EncodedTable,
    steps: &[StepRecord],
    step: u32,
) -> Result<Vec<Cut>, RunError> {
    let columns = &table.quasi_identifiers;
    let mut performed: Vec<HashMap<&str, &[String]>> = vec![HashMap::new(); columns.len()];
    for record in steps.iter().filter(|record| record.item.step <= step) {
        let (Some(attribute), Some(value)) = (&record.item.attribute, &record.item.value) else {
            continue;
        };
        let at = columns
            .iter()
            .position(|column| *column.name == **attribute);
        performed[at.ok_or_else(unfit)?].insert(value, &record.item.children);
    }
    columns
        .iter()
        .zip(performed)
        .map(|(column, performed)| cut(&column.domain, performed))
        .collect()
}

/// Builds the cut of one attribute from its specializations, a map from value to children. Costs
/// one look-up per value.
fn cut(domain: &Domain, mut performed: HashMap<&str, &[String]>) -> Result<Cut, RunError> {
    let mut cut = Vec::new();
    let mut open = vec![Meaning::topmost(domain)];
    while let Some(value) = open.pop() {
        // Entries are removed, so that the entries left at the end do not fit the domain.
        match performed.remove(label(domain, value).as_str()) {
            None => cut.push(value),
            Some(children) => {
                for child in children.iter().rev() {
                    open.push(meaning(domain, child)?);
                }
            }
        }
    }
    if !performed.is_empty() {
        return Err(unfit());
    }
    resolve(domain, &cut)
}

fn meaning(domain: &Domain, label: &str) -> Result<Meaning, RunError> {
    match domain {
        Domain::Taxonomy(tree) => tree.find(label).map(Meaning::Node),
        Domain::Numeric { .. } if label == MISSING_LABEL => Some(Meaning::Missing),
        Domain::Numeric { scale, .. } => Interval::parse_on(label, *scale).map(Meaning::Interval),
    }
    .ok_or_else(unfit)
}

fn resolve(domain: &Domain, cut: &[Meaning]) -> Result<Cut, RunError> {
    const NONE: u32 = u32::MAX;
    let mut label_of = vec![NONE; domain.code_count()];
    for (index, &meaning) in cut.iter().enumerate() {
        let codes = match (domain, meaning) {
            (Domain::Taxonomy(tree), Meaning::Node(node)) => {
                tree.node(node).first_leaf as usize..tree.node(node).end_leaf as usize
            }
            (Domain::Numeric { values, .. }, Meaning::Interval(interval)) => {
                // Only the topmost interval includes missing cells.
                if cut.len() == 1 {
                    0..label_of.len()
                } else {
                    interval.places(values)
                }
            }
            (Domain::Numeric { values, .. }, _) => values.len()..label_of.len(),
            (Domain::Taxonomy(_), _) => return Err(unfit()),
        };
        label_of
            .get_mut(codes)
            .ok_or_else(unfit)?
            .fill(index as u32);
    }
    if label_of.contains(&NONE) {
        return Err(unfit());
    }
    Ok(Cut {
        labels: cut.iter().map(|&meaning| label(domain, meaning)).collect(),
        label_of,
    })
}
