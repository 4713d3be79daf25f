//! The rows of one release whose sensitive values an adversary infers from a join.

use hashbrown::HashMap;
use pais_core::table::{Column, ReleasedColumn};

/// Raw rows of one release, each once, however many rows of others it is combined with.
pub(super) struct Reading {
    /// The raw rows.
    pub(super) rows: Vec<u32>,
    /// What is known about each of them.
    known: Vec<Known>,
    /// Number of different sets.
    sets: u32,
}

/// What is known about a row.
enum Known {
    /// The meet of a joined row.
    Joined(u32),
    /// One of several meets: the number of their set. An adversary finds either all rows with the
    /// same set or none of them.
    OneOf(u32),
}

impl Reading {
    /// Joined rows, each with its own meet.
    pub(super) fn of_rows(rows: &[u32]) -> Self {
        Self {
            rows: rows.to_vec(),
            known: (0..rows.len() as u32).map(Known::Joined).collect(),
            sets: 0,
        }
    }

    /// The raw rows of the joined ones; `meets` has the number of the meet of each joined row.
    pub(super) fn of_combinations(rows: &[u32], meets: &[u32]) -> Self {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        let row_of = |joined: &u32| rows[*joined as usize];
        let meet_of = |joined: &u32| meets[*joined as usize];
        order.sort_unstable_by_key(|joined| (row_of(joined), meet_of(joined)));
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
        let (mut found, mut known) = (Vec::new(), Vec::new());
        for joined in order.chunk_by(|one, other| row_of(one) == row_of(other)) {
            let mut set: Vec<u32> = joined.iter().map(meet_of).collect();
            set.dedup();
            found.push(row_of(&joined[0]));
            known.push(if set.len() == 1 {
                Known::Joined(joined[0])
            } else {
                let fresh = numbers.len() as u32;
                Known::OneOf(*numbers.entry(set).or_insert(fresh))
            });
        }
        Self {
            rows: found,
            known,
            sets: numbers.len() as u32,
        }
    }

    /// What is known about the rows in a column of the join.
    pub(super) fn column(&self, joined: &ReleasedColumn) -> ReleasedColumn {
        let Column { dictionary, codes } = &joined.column;
        let first = dictionary.len() as u32;
        let sets = (0..self.sets).map(|set| format!("one of {set}").into());
        let code = |known: &Known| match *known {
            Known::Joined(row) => codes[row as usize],
            Known::OneOf(set) => first + set,
        };
        ReleasedColumn {
            name: joined.name.clone(),
            form: joined.form,
            column: Column {
                dictionary: dictionary.iter().cloned().chain(sets).collect(),
                codes: self.known.iter().map(code).collect(),
            },
            missing: joined.missing.clone(),
        }
    }
}

/// The cells of some raw rows.
pub(super) fn gathered(column: &ReleasedColumn, rows: &[u32]) -> ReleasedColumn {
    let codes = &column.column.codes;
    ReleasedColumn {
        name: column.name.clone(),
        form: column.form,
        column: Column {
            dictionary: column.column.dictionary.clone(),
            codes: rows.iter().map(|&row| codes[row as usize]).collect(),
        },
        missing: column.missing.clone(),
    }
}
