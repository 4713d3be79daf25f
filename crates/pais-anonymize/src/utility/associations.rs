//! How much of the associations between pairs of columns survives: the difference of Cramér's V.

use pais_core::definition::ColumnRole;
use pais_core::table::NULL_CODE;

use super::distortion::DistortedColumn;
use crate::observer::Observer;
use crate::prepared::PreparedTable;

/// Most pairs of columns, in the declared order.
const PAIRS: usize = 100;

/// Most values of a column that are kept apart, the most frequent ones; all others are one.
const VALUES: usize = 50;

/// Rows of a sample, about; smaller tables are read as a whole.
const SAMPLE: u64 = 50_000;

/// Where the sample begins, fixed so that equal releases have equal figures.
const SEED: u64 = 2009;

/// A column on both sides, with a value for each row of the sample.
struct PairedColumn {
    raw: Vec<u8>,
    released: Vec<u8>,
    is_quasi_identifier: bool,
}

/// 1 - the mean absolute difference of Cramér's V on raw and on released values, over pairs of
/// quasi-identifiers, and of a quasi-identifier with a sensitive or class column. `None` without a
/// pair or a released row, and when stopped.
pub(super) fn survival(
    input: &PreparedTable,
    columns: &[DistortedColumn],
    observer: &dyn Observer,
) -> Option<f64> {
    let rows = columns.first()?.rows;
    let sample = sample(rows);
    let paired = paired_columns(input, columns, &sample);
    let (mut pairs, mut sum) = (0, 0.0);
    for (index, one) in paired.iter().enumerate() {
        for other in &paired[index + 1..] {
            if observer.must_stop() || pairs == PAIRS {
                break;
            }
            if one.is_quasi_identifier {
                let raw = cramers_v(&one.raw, &other.raw);
                let released = cramers_v(&one.released, &other.released);
                sum += (raw - released).abs();
                pairs += 1;
            }
        }
    }
    (pairs > 0 && !sample.is_empty()).then(|| 1.0 - sum / pairs as f64)
}

/// Released rows, each with its raw row. Which are drawn depends on the raw row alone, because the
/// order of released rows is random.
fn sample(rows: &[u32]) -> Vec<(usize, usize)> {
    let all = rows.iter().enumerate();
    let all = all.map(|(at, &row)| (at, row as usize));
    let total = rows.len() as u64;
    let drawn = all.filter(|(_, row)| total <= SAMPLE || mixed(*row as u64) % total < SAMPLE);
    drawn.collect()
}

/// The finalizer of SplitMix64: close numbers become unrelated.
fn mixed(number: u64) -> u64 {
    let mut mixed = number
        .wrapping_add(SEED)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Quasi-identifiers first. Raw numbers are in bins of equal width.
fn paired_columns(
    input: &PreparedTable,
    columns: &[DistortedColumn],
    sample: &[(usize, usize)],
) -> Vec<PairedColumn> {
    let mut paired: Vec<PairedColumn> = columns
        .iter()
        .map(|column| {
            let bins = column.bins();
            let raw = |row: usize| {
                let code = column.raw.codes[row] as usize;
                bins.as_ref().map_or(code, |bins| column.bin(bins, code))
            };
            let codes = &column.released.column.codes;
            PairedColumn {
                raw: frequent(sample.iter().map(|(_, row)| raw(*row))),
                released: frequent(sample.iter().map(|(at, _)| codes[*at] as usize)),
                is_quasi_identifier: true,
            }
        })
        .collect();
    let stored: Vec<_> = input.schema.stored().collect();
    for (position, column) in &input.table.untouched {
        let role = stored.get(*position).map(|spec| spec.role);
        if !matches!(role, Some(ColumnRole::Sensitive | ColumnRole::Class)) {
            continue;
        }
        let null = column.dictionary.len();
        let code = |row: usize| match column.codes[row] {
            NULL_CODE => null,
            code => code as usize,
        };
        let values = frequent(sample.iter().map(|(_, row)| code(*row)));
        paired.push(PairedColumn {
            raw: values.clone(),
            released: values,
            is_quasi_identifier: false,
        });
    }
    paired
}

/// The values numbered by frequency; those beyond [`VALUES`] are one.
fn frequent(values: impl Iterator<Item = usize>) -> Vec<u8> {
    let values: Vec<usize> = values.collect();
    let mut counts = vec![0u32; values.iter().max().map_or(0, |most| most + 1)];
    for &value in &values {
        counts[value] += 1;
    }
    let mut order: Vec<usize> = (0..counts.len())
        .filter(|&value| counts[value] > 0)
        .collect();
    order.sort_by_key(|&value| (std::cmp::Reverse(counts[value]), value));
    let mut number = vec![VALUES as u8; counts.len()];
    for (index, &value) in order.iter().take(VALUES).enumerate() {
        number[value] = index as u8;
    }
    values.into_iter().map(|value| number[value]).collect()
}

/// Cramér's V of two columns, from 0 to 1; 0 where one of them has a single value.
fn cramers_v(one: &[u8], other: &[u8]) -> f64 {
    const WIDTH: usize = VALUES + 1;
    let mut joint = vec![0u32; WIDTH * WIDTH];
    let (mut of_one, mut of_other) = ([0u32; WIDTH], [0u32; WIDTH]);
    for (&first, &second) in one.iter().zip(other) {
        joint[usize::from(first) * WIDTH + usize::from(second)] += 1;
        of_one[usize::from(first)] += 1;
        of_other[usize::from(second)] += 1;
    }
    let distinct = |counts: &[u32]| counts.iter().filter(|count| **count > 0).count();
    let least = distinct(&of_one).min(distinct(&of_other));
    if least < 2 {
        return 0.0;
    }
    let cells = joint.iter().enumerate().filter(|(_, count)| **count > 0);
    let sum: f64 = cells
        .map(|(cell, &count)| {
            let expected = f64::from(of_one[cell / WIDTH]) * f64::from(of_other[cell % WIDTH]);
            f64::from(count) * f64::from(count) / expected
        })
        .sum();
    ((sum - 1.0).max(0.0) / (least - 1) as f64).sqrt().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::{SAMPLE, cramers_v, frequent, sample};

    #[test]
    fn cramers_v_is_1_for_a_function_and_0_for_independence() {
        assert!((cramers_v(&[0, 0, 1, 1], &[1, 1, 0, 0]) - 1.0).abs() < 1e-12);
        assert_eq!(cramers_v(&[0, 0, 1, 1], &[0, 1, 0, 1]), 0.0);
        assert_eq!(cramers_v(&[0, 0, 0, 0], &[0, 1, 0, 1]), 0.0);
        // Counts 2, 1, 1, 2: chi-square is 6 / 9, and V its root over 6 rows.
        let found = cramers_v(&[0, 0, 0, 1, 1, 1], &[0, 0, 1, 0, 1, 1]);
        assert!((found - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn values_beyond_the_fifty_most_frequent_are_one() {
        let values = (0..60usize).flat_map(|value| std::iter::repeat_n(value, 60 - value));
        let numbers = frequent(values);
        assert_eq!((numbers[0], numbers.last()), (0, Some(&50)));
    }

    #[test]
    fn a_sample_is_the_same_in_any_order_of_rows() {
        let rows: Vec<u32> = (0..200_000).collect();
        let mut one: Vec<usize> = sample(&rows).into_iter().map(|it| it.1).collect();
        let reversed: Vec<u32> = rows.iter().rev().copied().collect();
        let mut other: Vec<usize> = sample(&reversed).into_iter().map(|it| it.1).collect();
        one.sort_unstable();
        other.sort_unstable();
        assert_eq!(one, other);
        let share = one.len() as f64 / SAMPLE as f64;
        assert!((0.97..1.03).contains(&share), "{share}");
    }
}
