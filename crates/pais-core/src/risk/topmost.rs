//! What keeps a quasi-identifier at its topmost value.

use crate::schema::SchemaColumn;
use crate::table::{NULL_CODE, Persons, RankedNumbers, ValueCodes};
use crate::taxonomy::{NodeId, Tree};

use super::Coded;

/// The largest *K* for which the topmost value of a column can be specialized while the other columns stay at
/// theirs: the persons of the smallest child that has rows. `spec` is the declaration with the hierarchy that
/// is made for a run. A column whose intervals are grown is split where this is greatest. `None` if there is
/// nothing to specialize.
pub(super) fn greatest_k(
    spec: &SchemaColumn,
    coded: &Coded<'_>,
    people: Persons<'_>,
) -> Option<u64> {
    if let Some(tree) = &spec.tree {
        return of_children(spec, tree, coded, people);
    }
    let Coded { column, values, .. } = coded;
    if spec.has_grown_intervals() {
        let ranks = RankedNumbers::of(spec, &column.dictionary);
        let missing = column.codes.contains(&NULL_CODE) || ranks.rank.contains(&None);
        if ranks.outermost(spec, missing).is_some() {
            return best_split(&ranks, values, people);
        }
    }
    // A flat tree: each value is a child, a missing cell too.
    let parts = values.codes.iter().copied();
    least(count_by_part(people, parts, values.count))
}

fn least(counts: Vec<u64>) -> Option<u64> {
    counts.into_iter().filter(|count| *count > 0).min()
}

fn of_children(
    spec: &SchemaColumn,
    tree: &Tree,
    coded: &Coded<'_>,
    people: Persons<'_>,
) -> Option<u64> {
    let Coded { column, values, .. } = coded;
    let root = tree.node(NodeId::ROOT);
    if root.children.is_empty() {
        return None;
    }
    // Missing cells are the leaf `?`, which is added as the last child if the tree has none.
    let none = root.children.len() as u32;
    let mut child_of_leaf = vec![none; tree.leaf_count()];
    for (number, &child) in (0u32..).zip(&root.children) {
        let node = tree.node(child);
        child_of_leaf[node.first_leaf as usize..node.end_leaf as usize].fill(number);
    }
    let child = |leaf: Option<u32>| leaf.map_or(none, |leaf| child_of_leaf[leaf as usize]);
    let texts = column.dictionary.iter();
    let child_of_code: Vec<u32> = texts.map(|text| child(spec.leaf(text))).collect();
    let missing = child(tree.missing_leaf());
    let parts = values.codes.iter().map(|&code| match values.missing {
        Some(of_missing) if of_missing == code => missing,
        _ => child_of_code.get(code as usize).copied().unwrap_or(missing),
    });
    least(count_by_part(people, parts, none as usize + 1))
}

/// Number of persons of the smaller part of the most even split, or of the missing cells if these are fewer.
fn best_split(ranks: &RankedNumbers, values: &ValueCodes<'_>, people: Persons<'_>) -> Option<u64> {
    let count = ranks.values.len();
    if count < 2 {
        return None;
    }
    // The lowest and the highest rank of each person, and whether a cell is missing.
    let mut ends: Vec<(u32, u32)> = vec![(u32::MAX, 0); people.codes()];
    let mut has_missing = vec![false; people.codes()];
    for (row, &code) in values.codes.iter().enumerate() {
        let person = match people {
            Persons::Rows(_) => row,
            Persons::Named(of_row, _) => of_row[row] as usize,
        };
        match ranks.rank.get(code as usize).copied().flatten() {
            Some(rank) => {
                let (least, greatest) = &mut ends[person];
                *least = rank.min(*least);
                *greatest = rank.max(*greatest);
            }
            None => has_missing[person] = true,
        }
    }
    let mut starting = vec![0u64; count];
    let mut ending = vec![0u64; count];
    let mut persons = 0u64;
    for &(least, greatest) in ends.iter().filter(|(least, _)| *least != u32::MAX) {
        starting[least as usize] += 1;
        ending[greatest as usize] += 1;
        persons += 1;
    }
    // A split at a rank has the persons who start below it, and those who do not end below it.
    let (mut left, mut ended, mut best) = (0, 0, 0);
    for rank in 1..count {
        left += starting[rank - 1];
        ended += ending[rank - 1];
        best = best.max(left.min(persons - ended));
    }
    let missing = has_missing.into_iter().filter(|missing| *missing).count() as u64;
    let best = match missing {
        0 => best,
        missing => best.min(missing),
    };
    (best > 0).then_some(best)
}

/// Number of persons in each of some parts of the rows. `part` is the part of each row.
fn count_by_part(
    persons: Persons<'_>,
    part: impl Iterator<Item = u32> + Clone,
    parts: usize,
) -> Vec<u64> {
    let mut rows = vec![0u64; parts];
    for part in part.clone() {
        rows[part as usize] += 1;
    }
    let Persons::Named(of_row, codes) = persons else {
        return rows;
    };
    let mut next = Vec::with_capacity(parts);
    let mut start = 0usize;
    for &rows in &rows {
        next.push(start);
        start += rows as usize;
    }
    let mut by_part = vec![0u32; of_row.len()];
    for (part, &person) in part.zip(of_row) {
        let next = &mut next[part as usize];
        by_part[*next] = person;
        *next += 1;
    }
    let mut last_part = vec![u32::MAX; codes];
    let mut counts = vec![0u64; parts];
    let mut start = 0;
    for (part, &end) in (0u32..).zip(&next) {
        for &person in &by_part[start..end] {
            if std::mem::replace(&mut last_part[person as usize], part) != part {
                counts[part as usize] += 1;
            }
        }
        start = end;
    }
    counts
}
