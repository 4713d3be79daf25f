//! Itemset Recoding, the earlier method as described in the 2014 paper (Section 5): a round discloses
//! one item of a class in those of its rows that have it. For comparison only.

use pais_core::table::SetColumn;
use rayon::prelude::*;

/// An equivalence class with the undisclosed items of its rows.
struct RecodingClass {
    rows: Vec<Vec<u32>>,
    finished: bool,
}

/// Discloses items until no class can disclose another; returns the number of classes.
pub fn recode(column: &SetColumn, k: usize) -> usize {
    let rows = (0..column.rows()).map(|row| column.of_row(row).to_vec());
    let mut classes = vec![RecodingClass {
        rows: rows.collect(),
        finished: false,
    }];
    let items = column.tree.leaf_count();
    while classes.iter().any(|class| !class.finished) {
        classes = classes
            .into_par_iter()
            .map_init(
                || vec![0u32; items],
                |counts, class| round(class, counts, k),
            )
            .flatten_iter()
            .collect();
    }
    classes.len()
}

/// Discloses the most frequent item of a class that at least k rows have, and that no row or at
/// least k rows do not have.
fn round(mut class: RecodingClass, counts: &mut [u32], k: usize) -> Vec<RecodingClass> {
    if class.finished {
        return vec![class];
    }
    let mut found = Vec::new();
    for &item in class.rows.iter().flatten() {
        if counts[item as usize] == 0 {
            found.push(item);
        }
        counts[item as usize] += 1;
    }
    let rows = class.rows.len();
    let fits = |item: &&u32| {
        let holding = counts[**item as usize] as usize;
        holding >= k && (holding == rows || rows - holding >= k)
    };
    let best = found
        .iter()
        .filter(fits)
        .max_by_key(|item| (counts[**item as usize], std::cmp::Reverse(**item)))
        .copied();
    // An item of fewer than k rows is ignored from now on, as by concurrent disclosure.
    for row in &mut class.rows {
        row.retain(|&item| counts[item as usize] as usize >= k);
    }
    for item in found {
        counts[item as usize] = 0;
    }
    let Some(item) = best else {
        class.finished = true;
        return vec![class];
    };
    let (mut with, without): (Vec<Vec<u32>>, Vec<Vec<u32>>) = class
        .rows
        .into_iter()
        .partition(|row| row.binary_search(&item).is_ok());
    for row in &mut with {
        row.retain(|&other| other != item);
    }
    let parts = [with, without].into_iter().filter(|rows| !rows.is_empty());
    let part = |rows| RecodingClass {
        rows,
        finished: false,
    };
    parts.map(part).collect()
}
