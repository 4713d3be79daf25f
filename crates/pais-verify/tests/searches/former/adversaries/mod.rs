//! What adversaries find who know some quasi-identifiers of a person, by how many they know: also
//! beyond the number that the privacy model assumes.
//!
//! A qid is a combination of released values of some quasi-identifiers, as for [`crate::verify_lkc`].
//! All qids up to a length are enumerated, over equivalence classes instead of rows.

mod buckets;
mod classes_of_table;
mod enumeration;

use pais_core::cancellation::Cancellation;
use pais_verify::{AdversaryFigures, AdversaryLengths, LengthFigures};

use super::counted_table::CountedTable;
use super::requirement::LkcRequirement;
use super::verification::VerifyError;
use buckets::Buckets;
use classes_of_table::TableClasses;
use enumeration::enumerate;

/// Most visits of a class, a sensitive value of a class, or a person of a class. Lengths whose
/// combinations of columns could need more are left out.
const BUDGET: u64 = 1_000_000_000;

/// Measures what adversaries find in a table with the columns `quasi_identifiers`, each value of
/// which is known or not known as a whole. `requirement` names *K* and the sensitive values.
///
/// Quasi-identifiers with one value throughout add nothing to a qid; they are left out of the
/// counts of qids. An empty table has no figures.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, and [`VerifyError::Stopped`].
pub(crate) fn measure_adversaries<'t>(
    table: impl Into<CountedTable<'t>>,
    quasi_identifiers: &[Box<str>],
    requirement: &LkcRequirement,
    lengths: AdversaryLengths,
    cancellation: &Cancellation,
) -> Result<AdversaryFigures, VerifyError> {
    let counted = table.into();
    let wanted = (quasi_identifiers.len() as u32).min(lengths.longest);
    if counted.table.rows == 0 || wanted == 0 {
        return Ok(AdversaryFigures::default());
    }
    let classes = TableClasses::new(counted, quasi_identifiers, requirement)?;
    let varied = classes.attributes();
    let longest = affordable(varied, wanted as usize, classes.cells());
    let k = requirement.k;
    let assumed = lengths.assumed as usize;
    let found = enumerate(&classes, longest, (k, assumed), cancellation)?;
    // More columns than vary leave nothing out.
    let measured = if longest < varied.min(wanted as usize) {
        longest as u32
    } else {
        wanted
    };
    let people = classes.people();
    let by_length = (1..=measured).map(|length| {
        let at = (length as usize).min(longest);
        let (most, of) = found.greatest(at);
        LengthFigures {
            length,
            smallest: u64::from(found.smallest(at)),
            share_below_k: classes.people_of(&found.below_k(at)) as f64 / people.max(1) as f64,
            greatest_confidence: f64::from(most) / f64::from(of),
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

/// The greatest length up to `wanted` whose combinations of attributes, with all shorter ones, fit
/// the budget; at least 1 where there is an attribute.
fn affordable(attributes: usize, wanted: usize, cells: u64) -> usize {
    let wanted = wanted.min(attributes);
    let mut work = 0u64;
    for length in 1..=wanted {
        work = work.saturating_add(choose(attributes, length).saturating_mul(cells));
        if work > BUDGET && length > 1 {
            return length - 1;
        }
    }
    wanted
}

/// Number of combinations of `k` of `n`; saturating.
fn choose(n: usize, k: usize) -> u64 {
    if k > n {
        return 0;
    }
    (0..k.min(n - k) as u64).fold(1u64, |product, index| {
        // The product of consecutive numbers is divisible before it saturates.
        let next = u128::from(product) * u128::from(n as u64 - index) / u128::from(index + 1);
        u64::try_from(next).unwrap_or(u64::MAX)
    })
}
