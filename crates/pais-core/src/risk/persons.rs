//! The persons of a raw table.

use crate::table::{Column, NULL_CODE, Persons};

/// The persons that a subject column names.
pub(super) struct Named {
    of_row: Vec<u32>,
    codes: usize,
}

/// The persons of a subject column. A null cell is a person of its own, as methods take it.
pub(super) fn named(column: &Column) -> Named {
    let mut codes = column.dictionary.len();
    let person = |&code: &u32| match code {
        NULL_CODE => {
            codes += 1;
            codes as u32 - 1
        }
        code => code,
    };
    let of_row = column.codes.iter().map(person).collect();
    Named { of_row, codes }
}

/// The persons of a table of this many rows.
pub(super) fn of(named: Option<&Named>, rows: usize) -> Persons<'_> {
    match named {
        Some(named) => Persons::Named(&named.of_row, named.codes),
        None => Persons::Rows(rows),
    }
}

/// Number of persons who have a row.
pub(super) fn count(persons: Persons<'_>) -> u64 {
    match persons {
        Persons::Rows(rows) => rows as u64,
        Persons::Named(of_row, codes) => {
            let mut has_row = vec![false; codes];
            for &person in of_row {
                has_row[person as usize] = true;
            }
            has_row.into_iter().filter(|has_row| *has_row).count() as u64
        }
    }
}

/// Number of persons in each of some parts of the rows. `part` is the part of each row.
pub(super) fn count_by_part(
    persons: Persons<'_>,
    part: impl Iterator<Item = u32> + Clone,
    parts: usize,
) -> Vec<u64> {
    let mut rows = vec![0u64; parts];
    for part in part.clone() {
        rows[part as usize] += 1;
    }
    let Persons::Named(of_row, codes) = persons else {
        return rows;
    };
    let mut next = Vec::with_capacity(parts);
    let mut start = 0usize;
    for &rows in &rows {
        next.push(start);
        start += rows as usize;
    }
    let mut by_part = vec![0u32; of_row.len()];
    for (part, &person) in part.zip(of_row) {
        let next = &mut next[part as usize];
        by_part[*next] = person;
        *next += 1;
    }
    let mut last_part = vec![u32::MAX; codes];
    let mut counts = vec![0u64; parts];
    let mut start = 0;
    for (part, &end) in (0u32..).zip(&next) {
        for &person in &by_part[start..end] {
            if std::mem::replace(&mut last_part[person as usize], part) != part {
                counts[part as usize] += 1;
            }
        }
        start = end;
    }
    counts
}
