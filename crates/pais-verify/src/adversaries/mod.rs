//! What adversaries who know some quasi-identifiers of a person find, by how many they know, also beyond the
//! number that the privacy model assumes.
//!
//! A qid is a combination of released values of some quasi-identifiers, as for [`crate::verify_model`].
//! All qids up to a length are enumerated, over equivalence classes instead of rows.

mod buckets;
mod classes_of_table;
mod enumeration;
mod found_qids;
mod last_values;

#[cfg(test)]
mod tests;

use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_core::schema::Schema;
use pais_core::subsets::choose;

use super::classes::{Classes, Values};
use super::equivalence_classes::EquivalenceClasses;
use super::persons::CountedTable;
use super::requirement::LkcRequirement;
use super::verification::VerifyError;
use buckets::Buckets;
pub use buckets::{QidConfidences, QidSizes, SIZE_BUCKETS, size_bucket, sizes_of_bucket};
use classes_of_table::TableClasses;
use enumeration::{Assumed, enumerate};

/// Maximum number of visits of a class, a sensitive value of a class, or a person of a class, for the lengths
/// that the model assumes. Lengths whose combinations of columns could need more are left out.
const BUDGET: u64 = 1_000_000_000;

/// As [`BUDGET`], with the lengths beyond those that the model assumes.
const BUDGET_BEYOND: u64 = 100_000_000;

/// What adversaries find, by the number of values of a person that they know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdversaryFigures {
    /// From one known value on, without gaps.
    pub by_length: Vec<LengthFigures>,
    /// The lengths that were asked for but would take too much work; ascending.
    pub lengths_left_out: Vec<u32>,
    /// How many qids are matched by how many records, smallest first; over the lengths that the
    /// model assumes and that are measured.
    pub qid_sizes: Vec<QidSizes>,
    /// How many of these qids have which maximum confidence, lowest first.
    pub qid_confidences: Vec<QidConfidences>,
}

/// The risk from an adversary who knows at most `length` values of a person.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LengthFigures {
    /// Maximum number of known values.
    pub length: u32,
    /// The smallest *|T\[qid\]|*, in records, or in persons where the table has subjects.
    pub smallest: u64,
    /// Share of the records, or persons, that have a qid with *|T\[qid\]| < K*; from 0 to 1.
    pub share_below_k: f64,
    /// The greatest *P(s|qid)* of a value that the requirement names; from 0 to 1.
    pub greatest_confidence: f64,
}

/// The adversaries to measure.
#[derive(Clone, Copy, Debug)]
pub struct AdversaryLengths {
    /// Maximum number of values that the model assumes an adversary to know.
    pub assumed: u32,
    /// Maximum number of values to measure; more than there are quasi-identifiers means all of them.
    pub longest: u32,
}

/// Bytes that [`measure_adversaries`] needs at most, in addition to the table and its classes, for this many
/// rows in at most this many classes.
pub fn adversary_bytes(schema: &Schema, rows: u64, classes: u64) -> u64 {
    /// A sensitive value of a class with its records: each cell of a sensitive column may have one, and merged
    /// classes have as many again. The memory during counting, for a cell before it is moved to its class or
    /// for two counters per row, is no larger.
    const CELL_BYTES: u64 = 2 * 8;
    /// The place of a class in their order.
    const ORDER_BYTES: u64 = 4;
    /// The size of a class, its records and where its sensitive values begin.
    const CLASS_BYTES: u64 = 4 + 4 + 8;
    /// The person of a row, the row by its class, and its person in that class, as found with spare capacity
    /// and as sorted.
    const PERSON_BYTES: u64 = 4 + 4 + 2 * 4 + 4;
    /// A class in the whole and in a part, and where it is below *K*.
    const THREAD_BYTES: u64 = 4 + 4 + 1;
    let attributes = schema.stored_with(ColumnRole::QuasiIdentifier).len() as u64;
    let sensitive = schema.stored_with(ColumnRole::Sensitive).len() as u64;
    let class = CLASS_BYTES + 4 * attributes;
    // The merged classes, which are merged again, each time to at most half.
    let classed = ORDER_BYTES + 2 * class;
    let threads = rayon::current_num_threads() as u64 + 1;
    // Each thread counts the persons of a group.
    let persons = match schema.subject() {
        Some(_) => PERSON_BYTES + 4 * threads,
        None => 0,
    };
    rows.saturating_mul(CELL_BYTES * sensitive + persons)
        .saturating_add(classes.saturating_mul(classed))
        .saturating_add(classes.saturating_mul(threads * THREAD_BYTES))
}

/// Measures what adversaries find in a table whose quasi-identifiers have these classes; each value
/// is known or not known as a whole. `requirement` names *K* and the sensitive values.
///
/// Quasi-identifiers with one value throughout add nothing to a qid; they are left out of the
/// counts of qids. An empty table has no figures.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, and [`VerifyError::Stopped`].
pub fn measure_adversaries<'t>(
    table: impl Into<CountedTable<'t>>,
    classes: &EquivalenceClasses,
    requirement: &LkcRequirement,
    lengths: AdversaryLengths,
    cancellation: &Cancellation,
) -> Result<AdversaryFigures, VerifyError> {
    let EquivalenceClasses { columns, classes } = classes;
    let counted = table.into();
    measure(
        counted,
        columns,
        classes,
        requirement,
        lengths,
        cancellation,
    )
}

/// As [`measure_adversaries`], of a table or of distinct rows with their multiplicities.
pub(super) fn measure(
    counted: CountedTable,
    columns: &[Values],
    classes: &Classes,
    requirement: &LkcRequirement,
    lengths: AdversaryLengths,
    cancellation: &Cancellation,
) -> Result<AdversaryFigures, VerifyError> {
    let wanted = (columns.len() as u32).min(lengths.longest);
    if counted.table.rows == 0 || wanted == 0 {
        return Ok(AdversaryFigures::default());
    }
    let classes = TableClasses::new(counted, columns, classes, requirement)?;
    let varied = classes.grid.attributes();
    let lengths = AdversaryLengths {
        longest: wanted,
        ..lengths
    };
    let longest = affordable(varied, lengths, classes.cells());
    let assumed = Assumed {
        k: requirement.k,
        length: lengths.assumed as usize,
    };
    let found = enumerate(&classes, longest, assumed, cancellation)?;
    // Lengths beyond the number of varying columns leave nothing out.
    let measured = if longest < varied.min(wanted as usize) {
        longest as u32
    } else {
        wanted
    };
    let people = classes.people();
    let by_length = (1..=measured).map(|length| {
        let at = (length as usize).min(longest);
        let figures = found.up_to(at);
        LengthFigures {
            length,
            smallest: u64::from(figures.size),
            share_below_k: classes.people_of(&found.below_k(at)) as f64 / people.max(1) as f64,
            greatest_confidence: figures.greatest.as_f64(),
        }
    });
    let Buckets { sizes, confidences } = found.buckets();
    Ok(AdversaryFigures {
        by_length: by_length.collect(),
        lengths_left_out: (measured + 1..=wanted).collect(),
        qid_sizes: sizes,
        qid_confidences: confidences,
    })
}

/// The largest length whose combinations of attributes, with those of all shorter lengths, fit the budget; at
/// least 1 if there is an attribute.
fn affordable(attributes: usize, lengths: AdversaryLengths, cells: u64) -> usize {
    let wanted = attributes.min(lengths.longest as usize);
    let mut work = 0u64;
    for length in 1..=wanted {
        work = work.saturating_add(choose(attributes, length).saturating_mul(cells));
        let budget = if length <= lengths.assumed as usize {
            BUDGET
        } else {
            BUDGET_BEYOND
        };
        if work > budget && length > 1 {
            return length - 1;
        }
    }
    wanted
}
