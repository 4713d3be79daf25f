//! Classes of equal rows, refined column by column, and the persons with a class of their own.

use super::{Subjects, ValueCodes};

/// In place of a person: several persons.
pub(crate) const SEVERAL: u32 = u32::MAX;

/// Rows in classes. Classes of one row are counted and left out: no column can divide them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// Rows of the classes, one class after the other.
    rows: Vec<u32>,
    /// Where each class ends in `rows`.
    ends: Vec<usize>,
    /// Number of classes of one row.
    singles: u64,
}

impl Classes {
    /// One class of these rows.
    pub(crate) fn of(rows: impl IntoIterator<Item = u32>) -> Self {
        let rows: Vec<u32> = rows.into_iter().collect();
        Self {
            ends: Vec::from_iter((!rows.is_empty()).then_some(rows.len())),
            rows,
            singles: 0,
        }
    }

    /// Number of rows in the classes of several rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
        self.singles = 0;
    }
}

/// The person of each row: each row is one person, or a column names the persons.
#[derive(Clone, Copy, Debug)]
pub enum Persons<'a> {
    /// This many rows, each of another person.
    Rows(usize),
    /// The person of each row, and an exclusive upper bound of these numbers.
    Named(&'a [u32], usize),
}

impl<'a> Persons<'a> {
    /// The persons of a table with this many rows.
    pub fn new(subjects: Option<&'a Subjects>, rows: usize) -> Self {
        match subjects {
            Some(subjects) => Self::Named(subjects.of_row(), subjects.codes()),
            None => Self::Rows(rows),
        }
    }

    /// Exclusive upper bound of the numbers of persons.
    pub(crate) fn codes(self) -> usize {
        match self {
            Self::Rows(rows) => rows,
            Self::Named(_, codes) => codes,
        }
    }

    /// Number of rows.
    pub(crate) fn rows(self) -> usize {
        match self {
            Self::Rows(rows) => rows,
            Self::Named(of_row, _) => of_row.len(),
        }
    }

    /// Number of persons who have a row.
    pub(crate) fn count(self) -> u64 {
        match self {
            Self::Rows(rows) => rows as u64,
            Self::Named(of_row, codes) => {
                let mut found = PersonSet::new(codes);
                of_row.iter().for_each(|&person| found.insert(person));
                found.len()
            }
        }
    }
}

/// A set of persons with its size, in one bit for each person.
#[derive(Clone, Debug, Default)]
pub(crate) struct PersonSet {
    bits: Vec<u64>,
    len: u64,
}

impl PersonSet {
    /// The empty set of persons with numbers below `codes`.
    pub(crate) fn new(codes: usize) -> Self {
        Self {
            bits: vec![0; codes.div_ceil(64)],
            len: 0,
        }
    }

    /// Number of persons in the set.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Makes this set equal to another one.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.bits.clone_from(&other.bits);
        self.len = other.len;
    }

    /// Removes all persons.
    pub(crate) fn clear(&mut self) {
        self.bits.fill(0);
        self.len = 0;
    }

    pub(crate) fn insert(&mut self, person: u32) {
        let word = &mut self.bits[person as usize / 64];
        let bit = 1 << (person % 64);
        self.len += u64::from(*word & bit == 0);
        *word |= bit;
    }
}

/// The rows of a class that have one code, while the class is read.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Number of rows; later where the next of them is put.
    rows: u32,
    person: u32,
}

/// What classes are divided by, and the person of each row.
#[derive(Clone, Copy)]
pub(crate) struct Division<'a> {
    column: &'a ValueCodes<'a>,
    /// Rows with this code are left out.
    without: Option<u32>,
    persons: Persons<'a>,
}

impl<'a> Division<'a> {
    /// By the cells of a column; missing is a value of its own.
    pub(crate) fn by_cells(column: &'a ValueCodes<'a>, persons: Persons<'a>) -> Self {
        Self {
            column,
            without: None,
            persons,
        }
    }

    /// By the values of a column, without the rows that have none.
    pub(crate) fn by_values(column: &'a ValueCodes<'a>, persons: Persons<'a>) -> Self {
        Self {
            without: column.missing,
            ..Self::by_cells(column, persons)
        }
    }
}

/// Divides classes. It is reused, since its memory is that of the codes of a column.
#[derive(Debug, Default)]
pub(crate) struct Divider {
    cells: Vec<Cell>,
    found: Vec<u32>,
}

impl Divider {
    /// Divides each class and returns the new number of classes, including those of one row. Persons who have
    /// all rows of a class are added to `alone`; they stay alone in every further division. The classes are
    /// written to `into` if it is given.
    ///
    /// The time is linear in the rows of `from`, whatever the size of the table.
    pub(crate) fn divide(
        &mut self,
        from: &Classes,
        by: Division<'_>,
        alone: &mut PersonSet,
        into: Option<&mut Classes>,
    ) -> u64 {
        match by.persons {
            Persons::Rows(_) => self.divide_by(from, by, |row| row, alone, into),
            Persons::Named(of_row, _) => {
                let person = |row: u32| of_row[row as usize];
                self.divide_by(from, by, person, alone, into)
            }
        }
    }

    /// [`Self::divide`] with the person of each row.
    fn divide_by(
        &mut self,
        from: &Classes,
        by: Division<'_>,
        person: impl Fn(u32) -> u32,
        alone: &mut PersonSet,
        mut into: Option<&mut Classes>,
    ) -> u64 {
        let ValueCodes { codes, count, .. } = by.column;
        let (count, without) = (*count, by.without);
        if self.cells.len() < count {
            self.cells.resize(count, Cell::default());
        }
        if let Some(into) = &mut into {
            into.clear();
            into.singles = from.singles;
        }
        let mut classes = from.singles;
        let mut start = 0;
        for &end in &from.ends {
            let class = &from.rows[start..end];
            start = end;
            for &row in class {
                let code = codes[row as usize];
                if Some(code) == without {
                    continue;
                }
                let cell = &mut self.cells[code as usize];
                let person = person(row);
                if cell.rows == 0 {
                    self.found.push(code);
                    cell.person = person;
                } else if cell.person != person {
                    cell.person = SEVERAL;
                }
                cell.rows += 1;
            }
            classes += self.found.len() as u64;
            for &code in &self.found {
                let cell = self.cells[code as usize];
                if cell.person != SEVERAL {
                    alone.insert(cell.person);
                }
            }
            if let Some(into) = &mut into {
                let row_codes = class.iter().map(|&row| (row, codes[row as usize]));
                self.place(row_codes.filter(|(_, code)| Some(*code) != without), into);
            }
            for code in self.found.drain(..) {
                self.cells[code as usize].rows = 0;
            }
        }
        classes
    }

    /// Writes the rows of a class, by code, after those that were already written.
    fn place(&mut self, class: impl Iterator<Item = (u32, u32)>, into: &mut Classes) {
        const SINGLE: u32 = u32::MAX;
        let mut at = into.rows.len();
        for &code in &self.found {
            let rows = &mut self.cells[code as usize].rows;
            if *rows == 1 {
                *rows = SINGLE;
                into.singles += 1;
                continue;
            }
            let start = at;
            at += *rows as usize;
            *rows = start as u32;
            into.ends.push(at);
        }
        into.rows.resize(at, 0);
        for (row, code) in class {
            let next = &mut self.cells[code as usize].rows;
            if *next != SINGLE {
                into.rows[*next as usize] = row;
                *next += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::{Classes, Divider, Division, PersonSet, Persons};
    use crate::table::ValueCodes;

    fn column(codes: Vec<u32>) -> ValueCodes<'static> {
        ValueCodes {
            codes: Cow::Owned(codes),
            count: 5,
            missing: None,
        }
    }

    proptest! {
        #[test]
        fn classes_and_persons_who_are_alone_are_those_of_brute_force(
            rows in prop::collection::vec(([0..5u32, 0..5u32, 0..5u32], 0..9u32), 0..40),
            is_named: bool,
        ) {
            let of_row = |(row, (_, person)): (usize, &([u32; 3], u32))| if is_named { *person } else { row as u32 };
            let named: Vec<u32> = rows.iter().enumerate().map(of_row).collect();
            let persons = if is_named { Persons::Named(&named, 9) } else { Persons::Rows(rows.len()) };
            let mut divider = Divider::default();
            let mut alone = PersonSet::new(persons.codes());
            let mut classes = Classes::of(0..rows.len() as u32);
            for depth in 0..3 {
                let column = column(rows.iter().map(|(cells, _)| cells[depth]).collect());
                let mut into = Classes::default();
                let by = Division::by_cells(&column, persons);
                let found = divider.divide(&classes, by, &mut alone, Some(&mut into));

                let mut expected: BTreeMap<&[u32], Vec<u32>> = BTreeMap::new();
                for ((cells, _), person) in rows.iter().zip(&named) {
                    expected.entry(&cells[..=depth]).or_default().push(*person);
                }
                let people = expected.values().map(BTreeSet::from_iter);
                let of_one = people.filter(|people| people.len() == 1).flatten();
                let of_one: BTreeSet<_> = of_one.collect();
                prop_assert_eq!(found, expected.len() as u64);
                prop_assert_eq!(alone.len(), of_one.len() as u64);
                let kept = expected.values().map(Vec::len).filter(|rows| *rows > 1);
                prop_assert_eq!(into.len(), kept.sum::<usize>());
                classes = into;
            }
        }
    }

    #[test]
    fn rows_without_a_value_can_be_left_out() {
        let column = ValueCodes {
            missing: Some(3),
            ..column(vec![0, 3, 0, 3, 1, 3])
        };
        let by = Division::by_values(&column, Persons::Rows(6));
        let mut alone = PersonSet::new(6);
        let mut into = Classes::default();
        let classes = Classes::of(0..6);
        let found = Divider::default().divide(&classes, by, &mut alone, Some(&mut into));
        assert_eq!((found, alone.len(), into.len()), (2, 1, 2));
    }
}
