//! The sensitive values of a row as one code, so that a scan counts a row by one addition.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::table::NULL_CODE;

use super::codes::{Codes, RowCodes, with_codes};
use super::requirement::{Requirement, SensitiveBound};
use super::tally::added;

/// Rows of a thread's share.
const SHARE: usize = 1 << 16;

/// Which combination of sensitive values each row has.
#[derive(Debug)]
pub struct Sensitive {
    /// By row, the number of its combination.
    pub codes: Codes<'static>,
    /// By combination, its values ascending; the first has none.
    combinations: Vec<Vec<u32>>,
    /// Whether no value is in two combinations.
    pub is_single: bool,
    /// By combination, the rows that have it.
    rows: Vec<u64>,
}

impl Sensitive {
    /// Looks at the sensitive columns of `rows` rows: one pass, shared out among the threads, for
    /// one column; two for several.
    pub fn new(requirement: &Requirement<'_>, rows: usize) -> Self {
        let none = Self {
            codes: Codes::Zero,
            combinations: vec![Vec::new()],
            is_single: true,
            rows: vec![rows as u64],
        };
        if requirement.sensitive_values == 0 {
            return none;
        }
        let (codes, combinations) = match requirement.sensitive.as_slice() {
            [bound] => (
                of_column(bound, requirement.sensitive_values),
                (0..requirement.sensitive_values as u32)
                    .map(|value| vec![value])
                    .collect(),
            ),
            _ => of_columns(requirement, rows),
        };
        let combinations = [none.combinations, combinations].concat();
        let counts = with_codes!(&codes, codes => (0..rows.div_ceil(SHARE))
            .into_par_iter()
            .fold(
                || vec![0u64; combinations.len()],
                |mut counts, share| {
                    for row in share * SHARE..rows.min((share + 1) * SHARE) {
                        counts[codes.at(row) as usize] += 1;
                    }
                    counts
                },
            )
            .reduce(|| vec![0; combinations.len()], added));
        Self {
            codes,
            is_single: requirement.sensitive.len() == 1,
            combinations,
            rows: counts,
        }
    }

    /// Number of combinations, that of no value included.
    pub fn count(&self) -> usize {
        self.combinations.len()
    }

    /// The values of a combination, ascending.
    #[inline]
    pub fn values(&self, combination: u32) -> &[u32] {
        &self.combinations[combination as usize]
    }

    /// By value, the rows that have it.
    pub fn holding(&self, values: usize) -> Vec<u64> {
        let mut holding = vec![0; values];
        for (values, rows) in self.combinations.iter().zip(&self.rows) {
            for &value in values {
                holding[value as usize] += rows;
            }
        }
        holding
    }
}

/// The number of a value is that of its combination less one.
fn of_column(bound: &SensitiveBound<'_>, values: usize) -> Codes<'static> {
    let number = |code: u32| match code {
        NULL_CODE => 0,
        code => bound.numbers[code as usize].wrapping_add(1),
    };
    // The number of what is not sensitive is the greatest there is, so that 0 follows it.
    const { assert!(NULL_CODE.wrapping_add(1) == 0) };
    let codes = bound.codes.par_iter().with_min_len(SHARE);
    if values < 1 << 8 {
        Codes::One(codes.map(|&code| number(code) as u8).collect())
    } else if values < 1 << 16 {
        Codes::Two(codes.map(|&code| number(code) as u16).collect())
    } else {
        Codes::Four(codes.map(|&code| number(code)).collect())
    }
}

/// Numbers combinations from 1 in the order in which rows have them.
fn of_columns(requirement: &Requirement<'_>, rows: usize) -> (Codes<'static>, Vec<Vec<u32>>) {
    let mut numbers: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
    let mut combinations = Vec::new();
    let mut values = Vec::new();
    let codes: Vec<u32> = (0..rows)
        .map(|row| {
            values.clear();
            requirement.sensitive_of(row, |value| values.push(value as u32));
            values.sort_unstable();
            if values.is_empty() {
                return 0;
            }
            if let Some(&number) = numbers.get(&values) {
                return number;
            }
            combinations.push(values.clone());
            numbers.insert(values.clone(), combinations.len() as u32);
            combinations.len() as u32
        })
        .collect();
    let codes = match Codes::of(&codes, combinations.len() + 1) {
        Codes::Zero => Codes::Zero,
        Codes::One(narrow) => Codes::One(narrow),
        Codes::Two(narrow) => Codes::Two(narrow),
        Codes::Four(_) => Codes::Four(codes.into()),
    };
    (codes, combinations)
}
