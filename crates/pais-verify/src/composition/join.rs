//! The meet of columns: of each row the labels of all releases that have it.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use pais_core::table::{Column, Form, ReleasedColumn};

use super::composed_release::{cell, cell_count};

/// Most entries of a table of pairs; beyond it they are hashed.
const DENSE_PAIRS: usize = 1 << 22;

/// A code that no pair has yet.
const NEW: u32 = u32::MAX;

/// The codes of rows in several columns together: rows have equal codes if they agree in all.
pub(super) struct Meet {
    codes: Vec<u32>,
    count: usize,
}

impl Meet {
    /// Rows of which nothing is known.
    pub(super) fn unknown(rows: usize) -> Self {
        Self {
            codes: vec![0; rows],
            count: 1,
        }
    }

    /// Adds what a column says about the rows; `released` has the row of the column for each, or
    /// `NOWHERE`, which is a value too. One pass.
    pub(super) fn and(&mut self, column: &ReleasedColumn, released: impl Iterator<Item = u32>) {
        let width = cell_count(column);
        let cells = released.map(|row| cell(column, row));
        let pairs = self.codes.iter_mut().zip(cells);
        let mut count = 0;
        let mut number = |known: &mut u32| {
            if *known == NEW {
                *known = count;
                count += 1;
            }
            *known
        };
        match self.count.checked_mul(width) {
            Some(size) if size <= DENSE_PAIRS => {
                let mut numbers = vec![NEW; size];
                for (code, other) in pairs {
                    let pair = *code as usize * width + other as usize;
                    *code = number(&mut numbers[pair]);
                }
            }
            _ => {
                let mut numbers: HashMap<u64, u32, FxBuildHasher> = HashMap::default();
                for (code, other) in pairs {
                    let pair = u64::from(*code) << 32 | u64::from(other);
                    *code = number(numbers.entry(pair).or_insert(NEW));
                }
            }
        }
        self.count = count as usize;
    }

    /// The code of each row.
    pub(super) fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The number of different codes.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The meet as a column of labels, which are numbers.
    pub(super) fn into_column(self, name: &str) -> ReleasedColumn {
        ReleasedColumn {
            name: name.into(),
            form: Form::Generalized,
            column: Column {
                dictionary: (0..self.count)
                    .map(|code| code.to_string().into())
                    .collect(),
                codes: self.codes,
            },
            missing: Vec::new(),
        }
    }
}
