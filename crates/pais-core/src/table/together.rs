//! Pairs of columns that single out rows together, though none does so alone.

use rayon::prelude::*;

use super::{Classes, Divider, Division, PersonSet, Persons, ValueCodes};

/// Maximum product of rows and pairs that are examined: some tens of milliseconds.
const MOST_WORK: u64 = 50_000_000;

/// Two columns whose values together are those of one person only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TogetherUnique {
    /// The index of the first column.
    pub(crate) first: usize,
    /// The index of the second column, greater than the first.
    pub(crate) second: usize,
    /// Number of persons with values of both that nobody else has.
    pub(crate) persons: u64,
}

/// The pairs of these columns that single out persons; rows in which one of both is missing are left
/// out. The columns by themselves must single out nobody.
///
/// The columns with the most values are paired first, up to 50 million rows times pairs. `of_table` is the
/// number of rows of the table; `columns` may have fewer.
pub(crate) fn pairs_that_single_out(
    columns: &[&ValueCodes<'_>],
    persons: Persons<'_>,
    of_table: u64,
) -> Vec<TogetherUnique> {
    let rows = columns.first().map_or(0, |column| column.codes.len());
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(columns[index].count));
    let mut left = MOST_WORK / of_table.max(1);
    let mut found = Vec::new();
    for (at, &one) in order.iter().enumerate() {
        let others = &order[at + 1..];
        let others = &others[..others
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX))];
        if others.is_empty() {
            break;
        }
        left -= others.len() as u64;
        let mut classes = Classes::default();
        let mut alone = PersonSet::new(persons.codes());
        let whole = Classes::of(0..rows as u32);
        let by = Division::by_values(columns[one], persons);
        Divider::default().divide(&whole, by, &mut alone, Some(&mut classes));
        let nobody = || (Divider::default(), PersonSet::new(persons.codes()));
        let pairs = others
            .par_iter()
            .map_init(nobody, |(divider, alone), &other| {
                alone.clear();
                let by = Division::by_values(columns[other], persons);
                divider.divide(&classes, by, alone, None);
                TogetherUnique {
                    first: one.min(other),
                    second: one.max(other),
                    persons: alone.len(),
                }
            });
        let pairs: Vec<TogetherUnique> = pairs.collect();
        found.extend(pairs.into_iter().filter(|pair| pair.persons > 0));
    }
    found.sort_by_key(|pair| (std::cmp::Reverse(pair.persons), pair.first, pair.second));
    found
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::{Persons, TogetherUnique, pairs_that_single_out};
    use crate::table::ValueCodes;

    /// The persons with values of both columns that nobody else has; the code 3 is missing.
    fn expected(columns: &[Vec<u32>], (first, second): (usize, usize)) -> u64 {
        let value = |row: usize| (columns[first][row], columns[second][row]);
        let is_present = |row: &usize| columns[first][*row] < 3 && columns[second][*row] < 3;
        let rows = || (0..columns[0].len()).filter(is_present);
        rows()
            .filter(|&row| rows().filter(|&other| value(other) == value(row)).count() == 1)
            .count() as u64
    }

    proptest! {
        #[test]
        fn pairs_are_those_of_brute_force(
            // Twice each value, so that no column singles out a row.
            columns in prop::collection::vec(prop::collection::vec(0..4u32, 12), 2..5),
            shift in 0..12usize,
        ) {
            let mut columns = columns;
            for (index, column) in columns.iter_mut().enumerate() {
                let mut twice = column.clone();
                twice.rotate_left(shift * index % 12);
                column.extend(twice);
            }
            let coded: Vec<ValueCodes<'_>> = columns
                .iter()
                .map(|column| ValueCodes {
                    codes: Cow::Borrowed(column),
                    count: 4,
                    missing: Some(3),
                })
                .collect();
            let coded: Vec<&ValueCodes<'_>> = coded.iter().collect();
            let found = pairs_that_single_out(&coded, Persons::Rows(24), 24);
            for second in 0..columns.len() {
                for first in 0..second {
                    let persons = expected(&columns, (first, second));
                    let pair = TogetherUnique { first, second, persons };
                    prop_assert_eq!(found.contains(&pair), persons > 0);
                }
            }
            prop_assert!(found.is_sorted_by_key(|pair| std::cmp::Reverse(pair.persons)));
        }
    }
}
