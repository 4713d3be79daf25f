//! Finds the group of each raw row in an anatomized release whose rows are in an unknown order.
//!
//! Rows are matched by the columns that are released unchanged. Raw rows that are equal in all
//! of these and belong to several groups are assigned with the sensitive tables, whose counts
//! must be met. This is a backtracking search: it undoes a choice that leaves a count unmet.

use rustc_hash::FxHashMap;

use pais_core::cancellation::Cancellation;
use pais_core::table::{Column, ReleasedTable};

use super::anatomy::{AnatomyError, SensitiveCounts, group_ids};
use super::assignment::refine_by_cells;
use super::lists::Lists;
use super::original::OriginalColumn;
use super::source_rows::NOWHERE;
use super::truthfulness::{TruthError, column};

/// Maximum number of choices that are tried for rows that are equal in all exact columns.
const BUDGET: u64 = 1 << 24;

/// The raw rows of an anatomized release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnatomyAssignment {
    /// Number of rows of the quasi-identifier table without a raw row of their own.
    pub(super) made_up: u64,
    /// Number of raw rows without a row in the quasi-identifier table: suppressed, or lost.
    pub(super) lost: u64,
    /// The raw row of each row of the quasi-identifier table, or [`NOWHERE`]. `None` if no
    /// assignment of raw rows to groups meets the counts of the sensitive tables.
    pub(super) source_rows: Option<Vec<u32>>,
    /// Sets of raw rows that are equal in all exact columns and can be in each other's place.
    pub(super) interchangeable: Vec<Vec<u32>>,
}

/// A sensitive column of an anatomized release.
pub(super) struct SensitiveTable<'a> {
    /// Its sensitive table.
    pub(super) counts: &'a ReleasedTable,
    /// Its name.
    pub(super) name: &'a str,
    /// Its raw cells.
    pub(super) raw: &'a Column,
}

/// Assigns raw rows to the rows of a quasi-identifier table. `exact` are the raw columns that the
/// table contains unchanged.
///
/// # Errors
/// [`AnatomyError`] for malformed tables, where too many rows are alike, and with [`TruthError::Stopped`].
pub(super) fn assign_anatomy(
    qit: &ReleasedTable,
    exact: &[OriginalColumn],
    sensitive: &[SensitiveTable],
    raw_rows: usize,
    cancellation: &Cancellation,
) -> Result<AnatomyAssignment, AnatomyError> {
    let mut ids = vec![0u32; raw_rows + qit.rows];
    let mut classes = 1;
    for raw in exact {
        cancellation.check().map_err(TruthError::from)?;
        classes = refine_by_cells(&mut ids, classes, raw.cells, column(qit, raw.name)?);
    }
    let groups = group_ids(qit)?;
    let raw = Lists::of_positions(&ids[..raw_rows], classes);
    let released = Lists::of_positions(&ids[raw_rows..], classes);
    let counts = sensitive
        .iter()
        .map(|table| SensitiveCounts::read(table.counts, table.name, table.raw));
    let mut remaining = RemainingCounts(counts.collect::<Result<_, _>>()?);
    let mut source_rows = vec![NOWHERE; qit.rows];
    let (mut made_up, mut lost, mut counts_met) = (0, 0, remaining.total_is(qit.rows as u64));
    let mut alike = Vec::new();
    for (raw, released) in raw.iter().zip(released.iter()) {
        made_up += released.len().saturating_sub(raw.len()) as u64;
        lost += raw.len().saturating_sub(released.len()) as u64;
        let mut found = released.iter().map(|&row| groups[row as usize]);
        let first = found.next();
        if first.is_some()
            && (found.any(|group| Some(group) != first) || raw.len() > released.len())
        {
            alike.push(AlikeRows { raw, released });
            continue;
        }
        for (&source, &row) in raw.iter().zip(released) {
            counts_met &= remaining.take(source, groups[row as usize]);
            source_rows[row as usize] = source;
        }
    }
    counts_met &= made_up == 0;
    let interchangeable = alike.iter().map(|it| it.raw.to_vec()).collect();
    if counts_met {
        let sources = &mut source_rows;
        counts_met = assign_alike(alike, &groups, &mut remaining, sources, cancellation)?;
    }
    Ok(AnatomyAssignment {
        made_up,
        lost,
        source_rows: counts_met.then_some(source_rows),
        interchangeable,
    })
}

/// The counts of the sensitive tables, less the rows that are assigned.
struct RemainingCounts<'a>(Vec<SensitiveCounts<'a>>);

impl RemainingCounts<'_> {
    /// Whether the counts of each table add up to `rows`.
    fn total_is(&self, rows: u64) -> bool {
        self.0.iter().all(|counts| {
            let mut counts = counts.published.values();
            // The counts are from a file, so their sum may be out of range.
            counts.try_fold(0u64, |total, &count| total.checked_add(count)) == Some(rows)
        })
    }

    /// Assigns a raw row to a group. Returns `false` and changes nothing if a count is used up.
    fn take(&mut self, row: u32, group: u64) -> bool {
        let mut counts = self.0.iter_mut().map(|counts| counts.count(group, row));
        if !counts.all(|count| count.is_some_and(|left| *left > 0)) {
            return false;
        }
        self.add(row, group, -1);
        true
    }

    /// Changes the counts that allow a raw row to be assigned to a group; 1 undoes [`Self::take`].
    fn add(&mut self, row: u32, group: u64, change: i64) {
        for left in self
            .0
            .iter_mut()
            .filter_map(|counts| counts.count(group, row))
        {
            *left = left.saturating_add_signed(change);
        }
    }
}

/// Rows that are equal in all exact columns.
struct AlikeRows<'a> {
    raw: &'a [u32],
    /// The rows of the quasi-identifier table: of several groups, or fewer than the raw rows.
    released: &'a [u32],
}

/// Where raw rows that are alike can be.
struct AlikePlaces {
    /// Groups with the number of rows that they still need. The last entry, without a group, is
    /// for raw rows that are not released.
    places: Vec<(Option<u64>, u64)>,
    /// For each group, its rows of the quasi-identifier table.
    released: FxHashMap<u64, Vec<u32>>,
}

/// Assigns the rows of each class to groups. Returns `false` if no assignment meets all counts.
fn assign_alike(
    alike: Vec<AlikeRows<'_>>,
    groups: &[u64],
    remaining: &mut RemainingCounts,
    source_rows: &mut [u32],
    cancellation: &Cancellation,
) -> Result<bool, AnatomyError> {
    let mut classes = Vec::with_capacity(alike.len());
    let mut rows: Vec<(usize, u32)> = Vec::new();
    for AlikeRows { raw, released } in alike {
        let mut class = AlikePlaces {
            places: Vec::new(),
            released: FxHashMap::default(),
        };
        let left_out = (raw.len() - released.len()) as u64;
        for &row in released {
            let group = groups[row as usize];
            class.released.entry(group).or_default().push(row);
        }
        let places = class.released.iter();
        class.places = places
            .map(|(&group, rows)| (Some(group), rows.len() as u64))
            .collect();
        class.places.sort_unstable();
        class.places.push((None, left_out));
        rows.extend(raw.iter().map(|&row| (classes.len(), row)));
        classes.push(class);
    }
    // The choice for each row so far; backtracking tries the next one.
    let mut chosen: Vec<usize> = Vec::with_capacity(rows.len());
    let mut next = 0;
    let mut budget = BUDGET;
    while chosen.len() < rows.len() {
        cancellation.check().map_err(TruthError::from)?;
        let (class, row) = rows[chosen.len()];
        let places = &mut classes[class].places;
        let choice = (next..places.len()).find(|&place| match places[place] {
            (_, 0) => false,
            (None, _) => true,
            (Some(group), _) => remaining.take(row, group),
        });
        budget = budget.checked_sub(1).ok_or(AnatomyError::Undecided)?;
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
            remaining.add(row, group, 1);
        }
        next = last + 1;
    }
    for (&(class, row), choice) in rows.iter().zip(chosen) {
        let AlikePlaces { places, released } = &mut classes[class];
        let free = places[choice]
            .0
            .and_then(|group| released.get_mut(&group)?.pop());
        if let Some(free) = free {
            source_rows[free as usize] = row;
        }
    }
    Ok(true)
}
