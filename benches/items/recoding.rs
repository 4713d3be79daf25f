//! The earlier method, as the 2014 paper tells of it (Section 5): a round discloses one item of
//! a class, to those of its rows that hold it. Measured against, and nothing else.

use pais::table::SetColumn;
use rayon::prelude::*;

/// A class with what its rows still hide.
struct Class {
    rows: Vec<Vec<u32>>,
    finished: bool,
}

/// Discloses until no class can; how many classes there are then.
pub fn recode(column: &SetColumn, k: usize) -> usize {
    let rows = (0..column.rows()).map(|row| column.of_row(row).to_vec());
    let mut classes = vec![Class {
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

/// Discloses the most frequent item that leaves k rows with it and none or k without.
fn round(mut class: Class, counts: &mut [u32], k: usize) -> Vec<Class> {
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
    // What fewer than k rows hold is looked at no more, as in the method measured against it.
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
    let part = |rows| Class {
        rows,
        finished: false,
    };
    parts.map(part).collect()
}
