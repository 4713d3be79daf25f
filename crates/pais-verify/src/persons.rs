//! The persons that the rows of a table are about: numbered, listed by class, and counted.

use pais_core::cancellation::Cancellation;
use pais_core::table::{ReleasedTable, SubjectCounter, Subjects};

use super::classes::{Classes, Values, refine};
use super::lists::Lists;
use super::verification::VerifyError;

/// A released table, and what its groups are counted by: rows, or the persons of its rows.
///
/// The column that names the person is never released, so the persons come from the raw table. A
/// table alone converts to one whose rows are counted:
///
/// ```
/// use pais_core::table::ReleasedTable;
/// use pais_verify::CountedTable;
///
/// let table = ReleasedTable { name: "data".into(), rows: 0, columns: Vec::new() };
/// assert_eq!(CountedTable::from(&table).subjects, None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountedTable<'a> {
    /// The released table.
    pub table: &'a ReleasedTable,
    /// The person of each row, as any number; rows of one person have the same. `None` if each row
    /// is a person of its own.
    pub subjects: Option<&'a [u32]>,
}

impl<'a> From<&'a ReleasedTable> for CountedTable<'a> {
    fn from(table: &'a ReleasedTable) -> Self {
        Self {
            table,
            subjects: None,
        }
    }
}

/// The persons of a table, numbered without gaps. `None` where every row is a person of its own, so that
/// rows can be counted.
///
/// # Errors
/// [`VerifyError::UnevenSubjects`].
pub(super) fn persons_of(counted: CountedTable) -> Result<Option<Subjects>, VerifyError> {
    let CountedTable { table, subjects } = counted;
    let Some(subjects) = subjects else {
        return Ok(None);
    };
    if subjects.len() != table.rows {
        return Err(VerifyError::UnevenSubjects {
            found: subjects.len(),
            rows: table.rows,
        });
    }
    if table.rows >= u32::MAX as usize {
        return Err(VerifyError::TooManyRows);
    }
    let greatest = subjects.iter().copied().max().unwrap_or(0) as usize;
    let mut of_row = vec![0; table.rows];
    let count = refine(&mut of_row, 1, subjects.iter().copied(), greatest + 1);
    Ok(Subjects::from_codes(of_row, count))
}

/// The number of persons with a row that equals no row of anybody else, by these classes and columns.
///
/// # Errors
/// [`VerifyError::Stopped`].
pub(super) fn alone_by(
    persons: &Subjects,
    classes: &Classes,
    columns: &[Values],
    cancellation: &Cancellation,
) -> Result<u64, VerifyError> {
    let of_row = classes.of_row.clone();
    let refined = Classes::divided(of_row, classes.sizes.len(), columns, cancellation)?;
    // By class: the person of its first row, and whether it has others.
    let first = persons.select(&refined.row);
    let mut has_others = vec![false; first.len()];
    for (&class, &person) in refined.of_row.iter().zip(persons.of_row()) {
        has_others[class as usize] |= first[class as usize] != person;
    }
    let mut is_alone = vec![false; persons.codes()];
    for (&person, has_others) in first.iter().zip(has_others) {
        is_alone[person as usize] |= !has_others;
    }
    Ok(is_alone.into_iter().filter(|is_alone| *is_alone).count() as u64)
}

/// The distinct persons of each class.
pub(super) fn persons_by_class(persons: &Subjects, classes: &Classes) -> Lists<u32> {
    let mut counter = SubjectCounter::new(persons.codes());
    let mut lists = Lists::default();
    for rows in classes.rows().iter() {
        counter.begin();
        let of_rows = rows.iter().map(|&row| persons.of_row()[row as usize]);
        lists.push(of_rows.filter(|&person| counter.add(person)));
    }
    lists
}

/// Records of each class, or distinct persons where rows are not persons.
pub(super) fn class_sizes(classes: &Classes, persons: Option<&Subjects>) -> Vec<u32> {
    match persons {
        Some(persons) => persons_by_class(persons, classes).lengths().collect(),
        None => classes.sizes.clone(),
    }
}
