//! What keeps a quasi-identifier at its topmost value.

use crate::schema::SchemaColumn;
use crate::table::{Column, Persons, ValueCodes};
use crate::taxonomy::{NodeId, Tree};

use super::persons;

/// The greatest *K* with which the topmost value of a column can be specialized while the other
/// columns stay at theirs: the persons of the smallest child that has rows. A column whose intervals
/// are grown is split where this is greatest. `None` where there is nothing to specialize.
pub(super) fn greatest_k(
    spec: &SchemaColumn,
    (column, values): (&Column, &ValueCodes<'_>),
    people: Persons<'_>,
) -> Option<u64> {
    if let Some(tree) = &spec.tree {
        return of_children(spec, tree, (column, values), people);
    }
    let ranks = spec.has_grown_intervals().then(|| ranks(spec, column));
    match ranks {
        Some(ranks) if ranks.count > 0 || spec.domain.is_some() => {
            best_split(&ranks, values, people)
        }
        // A flat tree: each value is a child, a missing cell too.
        _ => {
            let parts = values.codes.iter().copied();
            least(persons::count_by_part(people, parts, values.count))
        }
    }
}

fn least(counts: Vec<u64>) -> Option<u64> {
    counts.into_iter().filter(|count| *count > 0).min()
}

fn of_children(
    spec: &SchemaColumn,
    tree: &Tree,
    (column, values): (&Column, &ValueCodes<'_>),
    people: Persons<'_>,
) -> Option<u64> {
    let root = tree.node(NodeId::ROOT);
    if root.children.is_empty() {
        return None;
    }
    // Missing cells are the leaf `?`, which the tree gets as its last child if it has none.
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
    least(persons::count_by_part(people, parts, none as usize + 1))
}

/// The ranks of the numbers of a column.
struct Ranks {
    /// By code; `None` for text that is no number.
    of_code: Vec<Option<u32>>,
    /// Number of distinct numbers.
    count: usize,
}

fn ranks(spec: &SchemaColumn, column: &Column) -> Ranks {
    let scale = spec.scale();
    let number = |text: &str| scale.value(text).filter(|_| !spec.is_missing(text));
    let numbers = column.dictionary.iter().map(|text| number(text));
    let numbers: Vec<Option<f64>> = numbers.collect();
    let mut sorted: Vec<f64> = numbers.iter().copied().flatten().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let rank = |number: &Option<f64>| {
        number.map(|number| sorted.partition_point(|other| *other < number) as u32)
    };
    Ranks {
        of_code: numbers.iter().map(rank).collect(),
        count: sorted.len(),
    }
}

/// The persons of the smaller part of the split that is most even, or of the missing cells where
/// these are fewer.
fn best_split(ranks: &Ranks, values: &ValueCodes<'_>, people: Persons<'_>) -> Option<u64> {
    if ranks.count < 2 {
        return None;
    }
    // The least and the greatest rank of each person, and whether a cell is missing.
    let mut ends: Vec<(u32, u32)> = vec![(u32::MAX, 0); people.codes()];
    let mut has_missing = vec![false; people.codes()];
    for (row, &code) in values.codes.iter().enumerate() {
        let person = match people {
            Persons::Rows(_) => row,
            Persons::Named(of_row, _) => of_row[row] as usize,
        };
        match ranks.of_code.get(code as usize).copied().flatten() {
            Some(rank) => {
                let (least, greatest) = &mut ends[person];
                *least = rank.min(*least);
                *greatest = rank.max(*greatest);
            }
            None => has_missing[person] = true,
        }
    }
    let mut starting = vec![0u64; ranks.count];
    let mut ending = vec![0u64; ranks.count];
    let mut persons = 0u64;
    for &(least, greatest) in ends.iter().filter(|(least, _)| *least != u32::MAX) {
        starting[least as usize] += 1;
        ending[greatest as usize] += 1;
        persons += 1;
    }
    // A split at a rank has the persons who start below it, and those who do not end below it.
    let (mut left, mut ended, mut best) = (0, 0, 0);
    for rank in 1..ranks.count {
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
