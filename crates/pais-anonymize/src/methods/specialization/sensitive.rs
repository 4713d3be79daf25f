//! The sensitive values of a row as one code, so that a scan counts a row by one addition.
//!
//! Columns are taken together as long as their values have few combinations. Where they have
//! more, a row has several codes, and is counted by each.

use rayon::prelude::*;

use pais_core::table::NULL_CODE;
use pais_core::table::codes::{Codes, RowCodes};
use pais_core::with_codes;

use super::requirement::{Requirement, SensitiveBound};
use super::scan::added;

/// Most codes of columns taken together, so that they take one byte a row.
const TOGETHER: usize = if cfg!(test) { 8 } else { 1 << 8 };

/// Rows of a thread's share.
const SHARE: usize = if cfg!(test) { 5 } else { 1 << 16 };

/// The sensitive values of all rows. What a row may have of the columns taken together is a
/// *slot*; one of them is to have none.
#[derive(Debug)]
pub struct Sensitive {
    /// Every row has a slot of each; of the first, if nothing is sensitive.
    pub slots: Vec<Slots>,
    /// By slot, the values.
    held: Held,
    /// Whether slot after slot has other values, ascending.
    pub is_ascending: bool,
    /// By value, the rows that have it.
    pub holding: Vec<u64>,
}

/// One slot a row.
#[derive(Debug)]
pub struct Slots {
    /// Added to a code it makes the slot.
    pub first: u32,
    /// By row.
    pub codes: Codes<'static>,
}

/// Lists of values, one after the other.
#[derive(Debug, Default)]
struct Held {
    values: Vec<u32>,
    ends: Vec<u32>,
}

impl Held {
    fn push(&mut self, values: impl IntoIterator<Item = u32>) {
        self.values.extend(values);
        self.ends.push(self.values.len() as u32);
    }

    #[inline]
    fn of(&self, slot: usize) -> &[u32] {
        let start = slot.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start as usize..self.ends[slot] as usize]
    }
}

/// Columns taken together: by row a code, and by code the values.
struct Together {
    codes: Codes<'static>,
    held: Held,
}

impl Sensitive {
    /// Looks at the sensitive columns of `rows` rows: up to three passes for each, shared out
    /// among the threads.
    pub fn new(requirement: &Requirement<'_>, rows: usize) -> Self {
        let mut all: Vec<Together> = Vec::new();
        for bound in &requirement.sensitive {
            let column = Together::of(bound);
            match all.last().and_then(|last| last.with(&column, rows)) {
                Some(wider) => {
                    all.pop();
                    all.push(wider);
                }
                None => all.push(column),
            }
        }
        let mut sensitive = Self {
            slots: Vec::new(),
            held: Held::default(),
            is_ascending: true,
            holding: vec![0; requirement.sensitive_values],
        };
        if all.is_empty() {
            sensitive.held.push([]);
            sensitive.slots.push(Slots {
                first: 0,
                codes: Codes::Zero,
            });
        }
        for Together { codes, held } in all {
            let first = sensitive.count() as u32;
            for (code, rows) in counted(&codes, held.ends.len(), rows)
                .into_iter()
                .enumerate()
            {
                for &value in held.of(code) {
                    sensitive.holding[value as usize] += rows;
                }
                sensitive.held.push(held.of(code).iter().copied());
            }
            sensitive.slots.push(Slots { first, codes });
        }
        let values = &sensitive.held.values;
        sensitive.is_ascending = values.is_sorted_by(|one, next| one < next);
        sensitive
    }

    /// Number of slots.
    pub fn count(&self) -> usize {
        self.held.ends.len()
    }

    /// Slots of which each row has exactly one: those below.
    pub fn of_every_row(&self) -> usize {
        let second = self.slots.get(1).map(|slots| slots.first as usize);
        second.unwrap_or(self.count())
    }

    /// The values of a slot, ascending.
    #[inline]
    pub fn values(&self, slot: usize) -> &[u32] {
        self.held.of(slot)
    }
}

impl Together {
    /// A column by itself; what is not sensitive has the code 0.
    fn of(bound: &SensitiveBound<'_>) -> Self {
        let sensitive = bound.numbers.iter().copied();
        let mut values: Vec<u32> = sensitive.filter(|&number| number != NULL_CODE).collect();
        values.sort_unstable();
        values.dedup();
        let place = |number: &u32| {
            values
                .binary_search(number)
                .map_or(0, |place| place as u32 + 1)
        };
        let code_of: Vec<u32> = bound.numbers.iter().map(place).collect();
        // A missing cell is beyond the last code.
        let code = |&code: &u32| code_of.get(code as usize).copied().unwrap_or(0);
        let mut held = Held::default();
        held.push([]);
        values.iter().for_each(|&value| held.push([value]));
        Self {
            codes: Codes::collected(bound.codes.par_iter().map(code), held.ends.len()),
            held,
        }
    }

    /// Both together, a code for each pair of codes that some row has; `None` where those are
    /// many.
    fn with(&self, other: &Self, rows: usize) -> Option<Self> {
        let (ones, others) = (self.held.ends.len(), other.held.ends.len());
        if ones.max(others) > TOGETHER {
            return None;
        }
        with_codes!(&self.codes, one => with_codes!(&other.codes, other_one => {
            let pair = |row| one.at(row) as usize * others + other_one.at(row) as usize;
            let mut stands = shares(rows)
                .fold(
                    || vec![false; ones * others],
                    |mut stands, rows| {
                        rows.for_each(|row| stands[pair(row)] = true);
                        stands
                    },
                )
                .reduce(|| vec![false; ones * others], either);
            stands[0] = true;
            let mut held = Held::default();
            let mut code_of = vec![0; stands.len()];
            for pair in (0..stands.len()).filter(|&pair| stands[pair]) {
                code_of[pair] = held.ends.len() as u32;
                let mut values = self.held.of(pair / others).to_vec();
                values.extend(other.held.of(pair % others));
                values.sort_unstable();
                held.push(values);
            }
            if held.ends.len() > TOGETHER {
                return None;
            }
            let codes = (0..rows).into_par_iter().map(|row| code_of[pair(row)]);
            Some(Self { codes: Codes::collected(codes, held.ends.len()), held })
        }))
    }
}

/// Shares of rows, as threads take them.
fn shares(rows: usize) -> impl ParallelIterator<Item = std::ops::Range<usize>> {
    let shares = (0..rows.div_ceil(SHARE)).into_par_iter();
    shares.map(move |share| share * SHARE..rows.min((share + 1) * SHARE))
}

/// Rows by code, of so many.
fn counted(codes: &Codes<'_>, count: usize, rows: usize) -> Vec<u64> {
    // Threads that count for themselves would take more memory than time.
    if count > SHARE {
        let mut counts = vec![0; count];
        with_codes!(codes, codes => (0..rows).for_each(|row| counts[codes.at(row) as usize] += 1));
        return counts;
    }
    with_codes!(codes, codes => shares(rows)
        .fold(
            || vec![0; count],
            |mut counts, rows| {
                rows.for_each(|row| counts[codes.at(row) as usize] += 1);
                counts
            },
        )
        .reduce(|| vec![0; count], added))
}

fn either(mut one: Vec<bool>, other: Vec<bool>) -> Vec<bool> {
    one.iter_mut()
        .zip(other)
        .for_each(|(one, other)| *one |= other);
    one
}
