//! Intervals of numbers whose ends are multiples of a width.

use std::collections::BTreeSet;

use crate::definition::TaxonomyNode;
use crate::taxonomy::interval::number;
use crate::taxonomy::{Interval, TreeLimits};

/// Intervals of the shortest width that the numbers span, where the definition gives no widths.
const DEFAULT_INTERVALS: f64 = 20.0;

/// A tree over the intervals that the numbers span: those of the first width are the leaves, those
/// of each further one are above. Without widths, one power of ten and ten times as much.
///
/// # Errors
/// A sentence for more intervals than a taxonomy can have.
pub(super) fn over(
    values: &BTreeSet<String>,
    start: Option<f64>,
    widths: Option<&[f64]>,
    limits: TreeLimits,
) -> Result<TaxonomyNode, String> {
    let numbers = || values.iter().filter_map(|value| number(value));
    let least = numbers().fold(f64::INFINITY, f64::min);
    let most = numbers().fold(f64::NEG_INFINITY, f64::max);
    let start = start.unwrap_or(0.0);
    let widths = match widths {
        Some(widths) => widths.to_vec(),
        None => {
            let span = ((most - least) / DEFAULT_INTERVALS).max(f64::MIN_POSITIVE);
            let width = 10f64.powf(span.log10().ceil()).max(1e-6);
            vec![width, 10.0 * width]
        }
    };
    let (Some(&leaf), Some(&widest)) = (widths.first(), widths.last()) else {
        return Err("has no width".to_owned());
    };
    let step = |value: f64, width: f64| ((value - start) / width).floor();
    let (first, last) = (step(least, widest), step(most, widest) + 1.0);
    let leaves = (last - first) * (widest / leaf).round();
    if !leaves.is_finite() || leaves >= limits.leaves as f64 {
        return Err(format!(
            "would have more than {} intervals; give greater widths",
            limits.leaves
        ));
    }
    let end = |index: f64| start + index * widest;
    // A root has more than one part.
    let last = match widths.len() {
        1 => last.max(first + 2.0),
        _ => last,
    };
    let mut nodes = Vec::new();
    let mut index = first;
    while index < last {
        nodes.push(interval((end(index), end(index + 1.0)), &widths));
        index += 1.0;
    }
    if let (1, Some(only)) = (nodes.len(), nodes.first()) {
        return Ok(only.clone());
    }
    Ok(TaxonomyNode {
        label: Interval::half_open(end(first), end(last)).to_string(),
        children: nodes,
    })
}

/// The interval between two ends, over those of the shorter widths.
fn interval((lo, hi): (f64, f64), widths: &[f64]) -> TaxonomyNode {
    let mut children = Vec::new();
    if let [shorter @ .., width] = widths
        && let Some(&below) = shorter.last()
    {
        let parts = (width / below).round() as u64;
        // One part would repeat the label of the whole.
        if parts > 1 {
            let end = |part: u64| lo + part as f64 * below;
            children.extend((0..parts).map(|part| {
                let hi = if part + 1 == parts { hi } else { end(part + 1) };
                interval((end(part), hi), shorter)
            }));
        }
    }
    TaxonomyNode {
        label: Interval::half_open(lo, hi).to_string(),
        children,
    }
}
