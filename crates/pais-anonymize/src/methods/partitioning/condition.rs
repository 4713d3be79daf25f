//! What a group has to meet, decided on rows of the table: fast where it can be, safe always.
//!
//! A yes is a proof; a no may be out of patience. The verifier decides on its own.

use pais_core::model::{Diversity, GroupModel};
use pais_core::table::{NULL_CODE, SensitiveColumn};

use super::disjoint::Disjoint;
use super::frequency::{Counts, Single};
use super::frequent::Frequent;
use super::strikes::{Answer, coverable};

/// What a group has to meet, with the table's sensitive values.
pub struct Condition {
    /// *K*.
    pub k: usize,
    pub(super) asked: Asked,
}

/// What is asked of the sensitive values of a group.
pub(super) enum Asked {
    Nothing,
    Strikes(Cells),
    Frequency(Single),
}

/// The sensitive values that may be struck out, row by row, numbered across columns.
///
/// Columns of which nothing may be struck out do not stand here. A row with a missing cell in
/// another one holds [`NULL_CODE`] and protects nobody: it is taken as deleted from the start.
pub(super) struct Cells {
    /// *L*.
    pub(super) l: u32,
    /// *L_i* of each column that counts.
    pub(super) limits: Vec<u32>,
    /// Number of the first value of each column; the number of all values last.
    pub(super) first: Vec<u32>,
    values: Vec<u32>,
}

impl Cells {
    fn of(l: u32, columns: &[(&SensitiveColumn, u32)], rows: usize) -> Self {
        let counted: Vec<_> = columns.iter().filter(|(_, limit)| *limit > 0).collect();
        let mut first = vec![0u32];
        for (column, _) in &counted {
            first.push(first[first.len() - 1] + column.values.len() as u32);
        }
        let mut values = Vec::with_capacity(rows * counted.len());
        for row in 0..rows {
            for ((column, _), first) in counted.iter().zip(&first) {
                values.push(match column.codes[row] {
                    NULL_CODE => NULL_CODE,
                    code => first + code,
                });
            }
        }
        Self {
            l,
            limits: counted.iter().map(|(_, limit)| *limit).collect(),
            first,
            values,
        }
    }

    /// Number of columns that count.
    pub(super) fn width(&self) -> usize {
        self.limits.len()
    }

    /// Number of all values.
    pub(super) fn values(&self) -> usize {
        self.first[self.limits.len()] as usize
    }

    /// The values of a row; `None` where one is missing.
    #[inline]
    pub(super) fn row(&self, row: u32) -> Option<&[u32]> {
        let width = self.width();
        let values = &self.values[row as usize * width..][..width];
        (!values.contains(&NULL_CODE)).then_some(values)
    }

    /// Whether every limit is *L*: Definition 6 rather than 7.
    fn is_unlimited(&self) -> bool {
        self.limits.iter().all(|&limit| limit >= self.l)
    }
}

impl Condition {
    /// The condition that a model makes, over the table's sensitive columns.
    pub fn of(model: &GroupModel, sensitive: &[SensitiveColumn], rows: usize) -> Self {
        let asked = match &model.diversity {
            Diversity::Unasked => Asked::Nothing,
            Diversity::Strikes { l, column_limits } => {
                let limit = |column: &SensitiveColumn| {
                    let limit = column_limits.get(&*column.name).copied();
                    limit.unwrap_or(l.get())
                };
                let columns: Vec<_> = sensitive.iter().map(|it| (it, limit(it))).collect();
                Asked::Strikes(Cells::of(l.get(), &columns, rows))
            }
            // The plan sees to it that there is one sensitive column.
            diversity => sensitive
                .first()
                .and_then(|column| Single::of(diversity, column))
                .map_or(Asked::Nothing, Asked::Frequency),
        };
        Self {
            // A table has fewer than 2³² rows, so that a greater K is met by none.
            k: usize::try_from(model.k.get()).unwrap_or(usize::MAX),
            asked,
        }
    }
}

/// Decides on groups; one a thread, for its working space.
pub struct Judge<'a> {
    condition: &'a Condition,
    disjoint: Disjoint,
    frequent: Frequent,
    counts: Counts,
}

/// Rows that the exact check looks at before a split is given up: a group that takes more stays
/// whole, which is safe.
const PATIENCE: u64 = 1 << 12;

/// The same for the whole table, which is worth more.
const PATIENCE_WITH_ALL: u64 = 1 << 24;

impl<'a> Judge<'a> {
    /// For groups of a condition.
    pub fn of(condition: &'a Condition) -> Self {
        let (values, codes) = match &condition.asked {
            Asked::Nothing => (0, 0),
            Asked::Strikes(cells) => (cells.values(), 0),
            Asked::Frequency(single) => (0, single.values()),
        };
        Self {
            condition,
            disjoint: Disjoint::new(values),
            frequent: Frequent::new(values),
            counts: Counts::new(codes),
        }
    }

    /// Whether so many rows may be a group, whatever they are.
    #[inline]
    pub fn suffices(&self, rows: usize) -> bool {
        rows >= self.condition.k
    }

    /// Whether the condition is about values, too.
    pub fn minds_values(&self) -> bool {
        !matches!(self.condition.asked, Asked::Nothing)
    }

    /// Whether these rows are proven to meet the condition as a group.
    pub fn accepts(&mut self, rows: &[u32]) -> bool {
        if !self.suffices(rows.len()) {
            return false;
        }
        match &self.condition.asked {
            Asked::Nothing => true,
            Asked::Strikes(cells) => {
                let patience = PATIENCE + 8 * rows.len() as u64;
                self.needs(cells, rows, cells.l, patience) == Answer::Yes
            }
            Asked::Frequency(single) => single.accepts(rows, &mut self.counts),
        }
    }

    /// Whether `l` values at least have to be struck out to delete the rows.
    fn needs(&mut self, cells: &Cells, rows: &[u32], l: u32, patience: u64) -> Answer {
        // No value may be struck out, so that nothing deletes a row.
        if cells.width() == 0 || l == 0 {
            return Answer::Yes;
        }
        if self.disjoint.any(cells, rows, l) {
            return Answer::Yes;
        }
        let order = self.disjoint.order(cells, rows);
        if self.disjoint.fewest_in_a_column(cells) < l {
            return Answer::No;
        }
        let apart = self.disjoint.pick(cells, &order, l);
        if apart.len() >= l as usize
            || (!cells.is_unlimited() && self.frequent.proves(cells, &order, &apart, l))
        {
            return Answer::Yes;
        }
        coverable(cells, &order, l - 1, patience)
    }

    /// The greatest *L*, up to that asked for, which the rows are proven to meet, and whether a
    /// greater one is proven not to.
    pub(super) fn greatest(&mut self, cells: &Cells, rows: &[u32]) -> (u32, bool) {
        let (mut holds, mut fails, mut exact) = (0, cells.l + 1, true);
        while holds + 1 < fails {
            let l = holds + (fails - holds) / 2;
            match self.needs(cells, rows, l, PATIENCE_WITH_ALL + 64 * rows.len() as u64) {
                Answer::Yes => holds = l,
                Answer::No => fails = l,
                Answer::OutOfPatience => (fails, exact) = (l, false),
            }
        }
        (holds, exact)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Asked, Cells, Condition, Judge};
    use crate::methods::partitioning::disjoint::Disjoint;
    use pais_core::table::{NULL_CODE, SensitiveColumn};

    /// Records by the codes of their values.
    pub fn cells<const M: usize>(records: &[[u32; M]], l: u32, limits: &[u32; M]) -> Cells {
        let columns: Vec<SensitiveColumn> = (0..M)
            .map(|column| {
                let codes: Vec<u32> = records.iter().map(|record| record[column]).collect();
                let values = codes.iter().filter(|&&code| code != NULL_CODE).max();
                let values = values.map_or(0, |&last| last as usize + 1);
                SensitiveColumn {
                    name: column.to_string().into(),
                    position: column,
                    values: vec!["".into(); values],
                    codes,
                }
            })
            .collect();
        let columns: Vec<_> = columns.iter().zip(limits.iter().copied()).collect();
        Cells::of(l, &columns, records.len())
    }

    /// Whether all these records together are accepted as a group.
    pub fn accepts<const M: usize>(records: &[[u32; M]], l: u32, limits: &[u32; M]) -> bool {
        let condition = Condition {
            k: 1,
            asked: Asked::Strikes(cells(records, l, limits)),
        };
        let rows: Vec<u32> = (0..records.len() as u32).collect();
        Judge::of(&condition).accepts(&rows)
    }

    /// Figure 1 as (disease, treatment): Figure 6 picks rows 1 and 3, and two values delete all.
    #[test]
    fn figure_1_is_two_diverse_and_not_three() {
        let patients = [[0, 0], [0, 1], [1, 2], [2, 2]];
        let cells = cells(&patients, 2, &[2, 2]);
        let mut disjoint = Disjoint::new(cells.values());
        let order = disjoint.order(&cells, &[0, 1, 2, 3]);
        assert_eq!(order, [0, 1, 2, 3]);
        assert_eq!(disjoint.pick(&cells, &order, 2), [0, 2]);
        assert!(accepts(&patients, 2, &[2, 2]));
        assert!(!accepts(&patients, 3, &[3, 3]));
    }

    /// Figure 4: three without limits, four with (4, 2).
    #[test]
    fn figure_4_gains_by_its_limits() {
        let group = [[0, 0], [1, 0], [2, 1], [3, 1], [4, 2], [5, 2]];
        assert!(accepts(&group, 3, &[3, 3]));
        assert!(!accepts(&group, 4, &[4, 4]));
        assert!(accepts(&group, 4, &[4, 2]));
        assert!(!accepts(&group, 5, &[5, 2]));
    }

    #[test]
    fn a_missing_value_protects_nobody() {
        assert!(!accepts(&[[0, NULL_CODE], [1, 0]], 2, &[2, 2]));
        // Of the second column nothing is struck out: it does not matter.
        assert!(accepts(&[[0, NULL_CODE], [1, 0]], 2, &[2, 0]));
        assert!(accepts(&[[NULL_CODE]], 2, &[0]));
        assert!(!accepts(&[[NULL_CODE]], 1, &[1]));
    }
}
