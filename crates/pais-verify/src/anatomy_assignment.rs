//! An anatomized release whose rows come in an unknown order: which raw row is in which group?
//!
//! Rows are told by their exact columns. Raw rows that are equal in all of these and stand in
//! several groups are told by the sensitive tables, which must count them right: a search that
//! goes back where a choice leaves some count unmet.

use rustc_hash::FxHashMap;
use thiserror::Error;

use pais_core::table::{Column, ReleasedTable};

use super::anatomy::{AnatomyError, Counted, group_ids};
use super::assignment::Untouched;
use super::classes::refine;
use super::truth::{TruthError, column};

/// Choices that are tried for rows which exact columns do not tell apart.
const PATIENCE: u64 = 1 << 24;

/// A raw row that no group has, and a released row that no raw row stands for.
pub const NOWHERE: u32 = u32::MAX;

/// How an anatomized release stands to the raw table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnatomyAssignment {
    /// Rows of the quasi-identifier table that stand for no raw row of their own.
    pub made_up: u64,
    /// Raw rows that no row of it stands for: suppressed, or lost.
    pub lost: u64,
    /// The raw row of each row of the quasi-identifier table, or [`NOWHERE`]; `None` where the
    /// sensitive tables do not count the groups' records, however these are chosen.
    pub source_rows: Option<Vec<u32>>,
}

/// Why the rows of an anatomized release could not be assigned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnatomyAssignmentError {
    /// The tables are malformed.
    #[error(transparent)]
    Anatomy(#[from] AnatomyError),
    /// A column is not there, or is of the wrong length.
    #[error(transparent)]
    Truth(#[from] TruthError),
    /// Too many rows are alike.
    #[error(
        "too many raw rows that are alike in all exact columns stand in several groups, so that \
         it cannot be told which is where"
    )]
    Undecided,
}

/// A sensitive column: its table, its name, its raw cells.
pub type SensitiveTable<'a> = (&'a ReleasedTable, &'a str, &'a Column);

/// Assigns raw rows to the rows of a quasi-identifier table. `exact` are the raw columns that it
/// should hold as they are.
///
/// # Errors
/// For malformed tables, and where too many rows are alike to be told.
pub fn assign_anatomy(
    qit: &ReleasedTable,
    exact: &[(&str, &Column)],
    sensitive: &[SensitiveTable],
    raw_rows: usize,
) -> Result<AnatomyAssignment, AnatomyAssignmentError> {
    let mut ids = vec![0u32; raw_rows + qit.rows];
    let mut classes = 1;
    for (name, raw) in exact {
        let numbers = Untouched::of(raw, column(qit, name)?);
        classes = refine(&mut ids, classes, numbers.all(), numbers.count);
    }
    let groups = group_ids(qit)?;
    let mut raw: Vec<Vec<u32>> = vec![Vec::new(); classes];
    let mut released: Vec<Vec<u32>> = vec![Vec::new(); classes];
    for (row, &id) in ids[..raw_rows].iter().enumerate() {
        raw[id as usize].push(row as u32);
    }
    for (row, &id) in ids[raw_rows..].iter().enumerate() {
        released[id as usize].push(row as u32);
    }
    let counted = sensitive
        .iter()
        .map(|(table, name, raw)| Counted::of(table, name, raw).map(|counted| (counted, *raw)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut unmet = Unmet { counted };
    let mut source_rows = vec![NOWHERE; qit.rows];
    let (mut made_up, mut lost, mut agree) = (0, 0, unmet.total_is(qit.rows as u64));
    let mut alike = Vec::new();
    for (raw, released) in raw.into_iter().zip(released) {
        made_up += released.len().saturating_sub(raw.len()) as u64;
        lost += raw.len().saturating_sub(released.len()) as u64;
        let mut there = released.iter().map(|&row| groups[row as usize]);
        let first = there.next();
        if first.is_some()
            && (there.any(|group| Some(group) != first) || raw.len() > released.len())
        {
            alike.push((raw, released));
            continue;
        }
        for (&source, &row) in raw.iter().zip(&released) {
            agree &= unmet.take(source, groups[row as usize]);
            source_rows[row as usize] = source;
        }
    }
    agree &= made_up == 0;
    if agree {
        agree = tell(alike, &groups, &mut unmet, &mut source_rows)?;
    }
    Ok(AnatomyAssignment {
        made_up,
        lost,
        source_rows: agree.then_some(source_rows),
    })
}

/// The counts of the sensitive tables that no row has met yet.
struct Unmet<'a> {
    counted: Vec<(Counted, &'a Column)>,
}

impl Unmet<'_> {
    /// Whether each table counts so many records.
    fn total_is(&self, rows: u64) -> bool {
        let total = |counted: &Counted| counted.told.values().sum::<u64>();
        self.counted
            .iter()
            .all(|(counted, _)| total(counted) == rows)
    }

    /// Puts a raw row in a group; `false`, and nothing done, where a count does not allow it.
    fn take(&mut self, row: u32, group: u64) -> bool {
        let left = |(counted, raw): &(Counted, &Column)| {
            let value = counted.number(raw.codes[row as usize]);
            counted
                .told
                .get(&(group, value))
                .is_some_and(|&left| left > 0)
        };
        if !self.counted.iter().all(left) {
            return false;
        }
        self.add(row, group, -1);
        true
    }

    /// Takes a raw row out of a group again.
    fn give_back(&mut self, row: u32, group: u64) {
        self.add(row, group, 1);
    }

    fn add(&mut self, row: u32, group: u64, change: i64) {
        for (counted, raw) in &mut self.counted {
            let value = counted.number(raw.codes[row as usize]);
            if let Some(left) = counted.told.get_mut(&(group, value)) {
                *left = left.saturating_add_signed(change);
            }
        }
    }
}

/// Rows that are alike: of each class the groups that have places for them, the last one being
/// that of rows that are left out.
struct Class {
    places: Vec<(Option<u64>, u64)>,
    released: FxHashMap<u64, Vec<u32>>,
}

/// Finds places for rows that are alike; `false` where there are none that meet all counts.
fn tell(
    alike: Vec<(Vec<u32>, Vec<u32>)>,
    groups: &[u64],
    unmet: &mut Unmet,
    source_rows: &mut [u32],
) -> Result<bool, AnatomyAssignmentError> {
    let mut classes = Vec::with_capacity(alike.len());
    let mut rows: Vec<(usize, u32)> = Vec::new();
    for (raw, released) in alike {
        let mut class = Class {
            places: Vec::new(),
            released: FxHashMap::default(),
        };
        let left_out = (raw.len() - released.len()) as u64;
        for row in released {
            let group = groups[row as usize];
            class.released.entry(group).or_default().push(row);
        }
        let places = class.released.iter();
        class.places = places
            .map(|(&group, rows)| (Some(group), rows.len() as u64))
            .collect();
        class.places.sort_unstable();
        class.places.push((None, left_out));
        rows.extend(raw.into_iter().map(|row| (classes.len(), row)));
        classes.push(class);
    }
    // The choice of each row so far; going back tries the next one.
    let mut chosen: Vec<usize> = Vec::with_capacity(rows.len());
    let mut next = 0;
    let mut patience = PATIENCE;
    while chosen.len() < rows.len() {
        let (class, row) = rows[chosen.len()];
        let places = &mut classes[class].places;
        let choice = (next..places.len()).find(|&place| match places[place] {
            (_, 0) => false,
            (None, _) => true,
            (Some(group), _) => unmet.take(row, group),
        });
        patience = patience
            .checked_sub(1)
            .ok_or(AnatomyAssignmentError::Undecided)?;
        if let Some(choice) = choice {
            places[choice].1 -= 1;
            chosen.push(choice);
            next = 0;
            continue;
        }
        let Some(last) = chosen.pop() else {
            return Ok(false);
        };
        let (class, row) = rows[chosen.len()];
        let place = &mut classes[class].places[last];
        place.1 += 1;
        if let Some(group) = place.0 {
            unmet.give_back(row, group);
        }
        next = last + 1;
    }
    for (&(class, row), choice) in rows.iter().zip(chosen) {
        let Class { places, released } = &mut classes[class];
        let free = places[choice]
            .0
            .and_then(|group| released.get_mut(&group)?.pop());
        if let Some(free) = free {
            source_rows[free as usize] = row;
        }
    }
    Ok(true)
}
