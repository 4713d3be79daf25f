//! Records by bounded value: what a union of groups has of each.

use pais_core::model::{Confidence, MissingSensitive};
use pais_core::table::ReleasedTable;

use crate::former::requirement::LkcRequirement;
use crate::former::sensitive::SensitiveColumn;
use crate::former::verification::VerifyError;

/// The bounded values of a table, numbered across columns.
pub(super) struct BoundedValues<'a> {
    columns: Vec<SensitiveColumn<'a>>,
    /// Number of the first value of each column; the last entry is the count of all values.
    first: Vec<u32>,
    reading: MissingSensitive,
    bound: Confidence,
}

/// The records of some groups.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupTally {
    /// *|T\[qid\]|*.
    pub(super) rows: u64,
    /// By column, the records among which a confidence in its values is a share.
    known: Vec<u64>,
    /// Records by value, ascending by its number; without the values of none.
    holding: Vec<(u32, u64)>,
}

impl<'a> BoundedValues<'a> {
    pub(super) fn new(
        table: &'a ReleasedTable,
        requirement: &LkcRequirement,
    ) -> Result<Self, VerifyError> {
        let named = if requirement.c.is_unbounded() {
            &[]
        } else {
            requirement.sensitive.as_slice()
        };
        let columns = named
            .iter()
            .map(|named| SensitiveColumn::new(table, named))
            .collect::<Result<Vec<_>, _>>()?;
        let mut first = vec![0];
        for column in &columns {
            first.push(first[first.len() - 1] + column.value_count() as u32);
        }
        Ok(Self {
            columns,
            first,
            reading: requirement.missing_sensitive,
            bound: requirement.c,
        })
    }

    /// The tally of these rows.
    pub(super) fn tally(&self, rows: &[u32]) -> GroupTally {
        let mut values = Vec::new();
        let mut known = vec![0; self.columns.len()];
        for (index, column) in self.columns.iter().enumerate() {
            for &row in rows {
                match (column.present(row as usize), self.reading) {
                    (Some(value), _) => {
                        known[index] += 1;
                        if column.is_sensitive(value) {
                            values.push(self.first[index] + value);
                        }
                    }
                    (None, MissingSensitive::Counted) => known[index] += 1,
                    (None, MissingSensitive::Excluded) => {}
                }
            }
        }
        values.sort_unstable();
        let runs = values.chunk_by(|one, other| one == other);
        GroupTally {
            rows: rows.len() as u64,
            known,
            holding: runs.map(|run| (run[0], run.len() as u64)).collect(),
        }
    }

    /// The greatest share of a bounded value, and whether one exceeds *C*.
    pub(super) fn greatest(&self, tally: &GroupTally) -> (f64, bool) {
        let mut greatest = (0.0f64, false);
        for &(value, holding) in &tally.holding {
            let column = self.first.partition_point(|&first| first <= value) - 1;
            let known = tally.known[column];
            greatest.0 = greatest.0.max(holding as f64 / known as f64);
            greatest.1 |= self.bound.is_exceeded_by(holding, known);
        }
        greatest
    }
}

impl GroupTally {
    /// Adds the records of another group.
    pub(super) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.known.resize(other.known.len(), 0);
        for (known, more) in self.known.iter_mut().zip(&other.known) {
            *known += more;
        }
        for &(value, rows) in &other.holding {
            match self
                .holding
                .binary_search_by_key(&value, |&(value, _)| value)
            {
                Ok(index) => self.holding[index].1 += rows,
                Err(index) => self.holding.insert(index, (value, rows)),
            }
        }
    }
}
