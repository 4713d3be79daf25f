//! The loss of the items of a set-valued column, each of which is disclosed, generalized or hidden
//! (2014 paper, Section 6).
//!
//! It counts hidden items, so it is for the holder alone. The NCP of a released set is in
//! [`super::ncp`].

use std::collections::BTreeMap;

use pais_core::cancellation::Cancellation;
use pais_core::table::{ReleasedColumn, SetColumn};
use pais_core::taxonomy::{MinimumLevels, NodeId};
use pais_verify::OriginalSet;

use super::holder_only::rounded;
use super::item_counts::{ROWS_PER_CHECK, released_labels};
use crate::release::MeasuredRelease;

/// The loss of the raw items of each set-valued column, rounded; `None` without such a column. Of
/// some columns only when stopped.
pub(crate) fn item_losses(
    release: &MeasuredRelease,
    labels: &BTreeMap<&str, &MinimumLevels>,
) -> Option<BTreeMap<String, f64>> {
    let loss = |&column: &&SetColumn| {
        let released = release.table.column(&column.name)?;
        let raw = OriginalSet {
            column,
            minimum_levels: labels.get(&*column.name).copied(),
        };
        let loss = item_loss(released, raw, release.rows, release.cancellation)?;
        Some((column.name.to_string(), rounded(loss)))
    };
    let sets = release.sets;
    (!sets.is_empty()).then(|| sets.iter().filter_map(loss).collect())
}

/// Mean NCP over the items of all raw rows, from 0 to 1. The NCP of an item is that of its
/// pre-generalized label if the row discloses it, and 1 if it is hidden or its row is suppressed
/// (2014 paper, Section 6, by the figures of its Table 2). Returns 0 if there are no items, and
/// `None` if the column is not released as sets, and when stopped. `rows` are the raw rows of the released rows.
///
/// Takes one look-up for each item.
pub fn item_loss(
    released: &ReleasedColumn,
    raw: OriginalSet,
    rows: &[u32],
    cancellation: &Cancellation,
) -> Option<f64> {
    let OriginalSet {
        column,
        minimum_levels,
    } = raw;
    let tree = &column.tree;
    let labels = released_labels(released, tree, cancellation)?;
    // Items are counted first and multiplied afterwards: a sum over a million rows would
    // accumulate rounding errors.
    let mut disclosed = vec![0u64; tree.nodes().len()];
    for (released_row, (&code, &row)) in labels.codes.iter().zip(rows).enumerate() {
        if released_row.is_multiple_of(ROWS_PER_CHECK) {
            cancellation.check().ok()?;
        }
        let cell = labels.of(code);
        for &leaf in column.of_row(row as usize) {
            let node = minimum_levels.map_or_else(
                || tree.leaf(leaf),
                |minimum_levels| minimum_levels.level_of(leaf),
            );
            if cell.binary_search(&node).is_ok() {
                disclosed[node.index()] += 1;
            }
        }
    }
    let mut all = 0;
    for row in 0..column.rows() {
        if row.is_multiple_of(ROWS_PER_CHECK) {
            cancellation.check().ok()?;
        }
        all += column.of_row(row).len() as u64;
    }
    if all == 0 {
        return Some(0.0);
    }
    let kept = disclosed.iter().enumerate().map(|(node, &items)| {
        let ncp = tree.ncp(NodeId(node as u32));
        items as f64 * (1.0 - ncp)
    });
    let lost = all as f64 - kept.sum::<f64>();
    Some(lost.max(0.0) / all as f64)
}
