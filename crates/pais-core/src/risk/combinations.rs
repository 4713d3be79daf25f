//! Combinations of quasi-identifiers, depth first: the classes of a combination are the classes of its prefix,
//! divided by its last column.

use rayon::prelude::*;

use crate::cancellation::{Cancellation, Stopped};
use crate::table::{Classes, Divider, Division, PersonSet, Persons, ValueCodes};

use super::work::MOST_COMBINED;

/// A combination that was examined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Indices of the columns, ascending; `size` of them are set.
    columns: [u16; MOST_COMBINED],
    size: u8,
    /// Number of distinct combinations of values.
    pub(super) classes: u64,
    /// Number of persons with a combination of values that nobody else has.
    pub(super) alone: u64,
}

impl Found {
    /// Indices of the columns, ascending.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        let columns = self.columns.iter().take(usize::from(self.size));
        columns.map(|&column| usize::from(column))
    }
}

/// The `most` combinations that single out the most persons; ties go to more distinct values, then to fewer
/// columns, then to the columns declared first.
pub(super) fn most_identifying(mut found: Vec<Found>, most: usize) -> Vec<Found> {
    let key = |found: &Found| {
        let most_first = std::cmp::Reverse((found.alone, found.classes));
        (most_first, found.size, found.columns)
    };
    if found.len() > most {
        found.select_nth_unstable_by_key(most, key);
        found.truncate(most);
    }
    found.sort_unstable_by_key(key);
    found
}

/// A search over the combinations of 2 to `l` columns.
pub(super) struct Search<'a> {
    pub(super) columns: &'a [&'a ValueCodes<'a>],
    pub(super) persons: Persons<'a>,
    pub(super) rows: usize,
    pub(super) l: usize,
    pub(super) cancellation: &'a Cancellation,
}

/// The classes of rows after some columns, and the persons with a class of their own.
struct Level {
    classes: Classes,
    alone: PersonSet,
}

/// The columns chosen so far, and the memory that a thread divides classes in.
struct Branch {
    chosen: [u16; MOST_COMBINED],
    divider: Divider,
    levels: Vec<Level>,
    found: Vec<Found>,
}

impl Search<'_> {
    /// All combinations.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(super) fn run(&self) -> Result<Vec<Found>, Stopped> {
        let mut found = Vec::new();
        let count = self.columns.len();
        if self.l < 2 || count < 2 {
            return Ok(found);
        }
        let whole = self.whole();
        for first in 0..count - 1 {
            let mut top = self.level();
            let by = Division::by_cells(self.columns[first], self.persons);
            let into = Some(&mut top.classes);
            Divider::default().divide(&whole, by, &mut top.alone, into);
            let branch = || Branch {
                chosen: [0; MOST_COMBINED],
                divider: Divider::default(),
                levels: (2..self.l).map(|_| self.level()).collect(),
                found: Vec::new(),
            };
            let seconds = (first + 1..count).into_par_iter().with_max_len(1);
            let branches = seconds.map_init(branch, |branch, second| {
                branch.chosen[0] = first as u16;
                let mut levels = std::mem::take(&mut branch.levels);
                let mut last = PersonSet::default();
                let ended = self.extend(&top, &mut levels, &mut last, 1, second, branch);
                branch.levels = levels;
                ended.map(|()| std::mem::take(&mut branch.found))
            });
            let branches: Vec<Result<Vec<Found>, Stopped>> = branches.collect();
            for branch in branches {
                found.extend(branch?);
            }
        }
        Ok(found)
    }

    /// Number of persons with values of all columns that nobody else has.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(super) fn unique_under_all(&self) -> Result<u64, Stopped> {
        let mut level = self.level();
        let mut divided = Classes::default();
        level.classes = self.whole();
        let mut divider = Divider::default();
        for column in self.columns {
            self.cancellation.check()?;
            let by = Division::by_cells(column, self.persons);
            divider.divide(&level.classes, by, &mut level.alone, Some(&mut divided));
            std::mem::swap(&mut level.classes, &mut divided);
            if level.classes.len() == 0 {
                break;
            }
        }
        Ok(level.alone.len())
    }

    fn whole(&self) -> Classes {
        Classes::of(0..self.rows as u32)
    }

    fn level(&self) -> Level {
        Level {
            classes: Classes::default(),
            alone: PersonSet::new(self.persons.codes()),
        }
    }

    /// Adds a column to the `depth` columns that are chosen, and then every further one. `levels` are
    /// those below `above`; `last` is for the largest combinations, whose classes are not kept.
    fn extend(
        &self,
        above: &Level,
        levels: &mut [Level],
        last: &mut PersonSet,
        depth: usize,
        column: usize,
        branch: &mut Branch,
    ) -> Result<(), Stopped> {
        self.cancellation.check()?;
        branch.chosen[depth] = column as u16;
        let is_last = column + 1 == self.columns.len();
        let by = Division::by_cells(self.columns[column], self.persons);
        let deeper = levels.split_first_mut().filter(|_| !is_last);
        let Some((level, deeper)) = deeper else {
            last.copy(&above.alone);
            let classes = branch.divider.divide(&above.classes, by, last, None);
            self.record(branch, depth, classes, last.len());
            return Ok(());
        };
        level.alone.copy(&above.alone);
        let into = Some(&mut level.classes);
        let classes = branch
            .divider
            .divide(&above.classes, by, &mut level.alone, into);
        self.record(branch, depth, classes, level.alone.len());
        for next in column + 1..self.columns.len() {
            self.extend(level, deeper, last, depth + 1, next, branch)?;
        }
        Ok(())
    }

    fn record(&self, branch: &mut Branch, depth: usize, classes: u64, alone: u64) {
        let mut columns = [0; MOST_COMBINED];
        columns[..=depth].copy_from_slice(&branch.chosen[..=depth]);
        branch.found.push(Found {
            columns,
            size: depth as u8 + 1,
            classes,
            alone,
        });
    }
}
