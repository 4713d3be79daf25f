//! Definition 3.1 of the KDD'09 paper, decided by enumeration.
//!
//! Only qids of the greatest size, min(L, number of quasi-identifiers), are enumerated. Adding
//! an attribute to a qid splits its group into disjoint parts. No part is larger than the group,
//! and the group's confidence is the mean of theirs weighted by size, so it is at most the
//! greatest of them. Therefore the smallest group, the greatest confidence and any violation are
//! all found at the greatest size. For the same reason, an attribute with a single value in the
//! table is left out.
//!
//! Where missing sensitive cells are excluded, the confidence in a value of a column is that in
//! the table of the records that have a value in the column, so the same holds. Columns without
//! missing cells are searched together, and each other column by itself.
//!
//! If rows are not persons, K is required of the persons of a group. The parts of a group have no person
//! outside the group, so the minimum number of persons is also found at the greatest size.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use pais_core::cancellation::Cancellation;
use pais_core::subsets::choose;

use super::LkcRequirement;
use super::classes::{Classes, Values};
use super::combinations::{Group, Search, search_in_parallel};
use super::group_visitor::{FoundQids, GroupVisitor};
use super::model_columns::ModelColumns;
use super::person_search::{ClassGroups, PersonSearch};
use super::persons::{CountedTable, persons_by_class, persons_of};
use super::profiles::{Grid, Share, Suffixes, ValueCount};
use super::qid_search::{ProfileParts, ProfileSearch};
use super::sensitive::{SensitiveColumn, SensitiveIndex};
use super::verification::{ColumnValue, Verification, VerifyError};
use super::violations::{Denominator, SearchedTable};

/// Decides whether a table satisfies LKC-privacy (KDD'09, Definition 3.1), and returns the classes of equal
/// quasi-identifiers. With `multiplicities`, whose sum must be below 2^32, each row is counted as often as its
/// number says.
///
/// Where the table has subjects, *|T\[qid\]|* of the first condition is the number of distinct
/// persons. Confidences are shares of rows under both.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed. A table that does not satisfy
/// the requirement is a result, not an error.
pub(super) fn verify_lkc<'m>(
    counted: CountedTable,
    multiplicities: Option<&'m [u32]>,
    columns: ModelColumns,
    requirement: &LkcRequirement,
    cancellation: &Cancellation,
) -> Result<(Verification, Classes<'m>), VerifyError> {
    let ModelColumns {
        quasi_identifiers,
        sensitive,
    } = columns;
    let table = counted.table;
    let of_columns = |columns: &[Values]| {
        let classes = Classes::new(table.rows, columns, cancellation)?;
        Ok::<_, VerifyError>(classes.counted_by(multiplicities))
    };
    let columns = Values::new_all(table, quasi_identifiers)?;
    let reading = requirement.missing_sensitive;
    let named = SensitiveColumn::named(table, requirement)?;
    let named = SensitiveIndex::by_denominator(named, reading);
    let others = SensitiveColumn::unnamed(table, sensitive, requirement)?;
    let others = SensitiveIndex::by_denominator(others, reading);
    let by_all = of_columns(&columns)?;
    let persons = persons_of(counted)?;
    let mut lists = persons
        .as_ref()
        .map(|persons| persons_by_class(persons, &by_all));
    let smallest_class = match &lists {
        Some(persons) => persons.lengths().min(),
        None => by_all.sizes.iter().copied().min(),
    };
    let smallest_class = smallest_class.map_or(0, u64::from);
    let mut verification = unsearched(&by_all, smallest_class, requirement);
    if table.rows == 0 {
        return Ok((verification, by_all));
    }
    let mut attributes: Vec<&Values> = columns.iter().filter(|values| values.count() > 1).collect();
    let one_class;
    let classes = if requirement.l == 0 {
        attributes.clear();
        one_class = of_columns(&[])?;
        lists = persons
            .as_ref()
            .map(|persons| persons_by_class(persons, &one_class));
        &one_class
    } else {
        &by_all
    };
    // Attributes with many values first: groups become small early, and their profiles merge well.
    attributes.sort_by_key(|values| std::cmp::Reverse(values.count()));
    let grid = Grid::new(&attributes, &classes.row);
    let (suffixes, profiles) = rayon::join(
        || Suffixes::new(&grid),
        || {
            let profiles = named.iter().map(|sensitive| sensitive.profiles(classes));
            profiles.collect::<Result<Vec<_>, _>>()
        },
    );
    let profiles = profiles?;
    let size = requirement.l.min(grid.attributes());

    let persons = persons.as_ref().zip(lists.as_ref());
    let persons = persons.map(|(persons, lists)| ClassGroups {
        grid: &grid,
        persons,
        lists,
        rows: &classes.sizes,
    });
    let extremes = Extremes::new(cancellation);
    let mut smallest = match &persons {
        Some(persons) => Some(find_fewest_persons(persons, size, &extremes)?),
        None => None,
    };
    if smallest.is_some() {
        // The minimum number of rows of a group is not needed.
        extremes.take_smallest();
    }
    let start = |values| ProfileSearch::new(&grid, &suffixes, values, &extremes);
    let mut denominators: Vec<Denominator> = Vec::with_capacity(named.len());
    for (sensitive, profiles) in named.into_iter().zip(profiles) {
        let profiles = ProfileParts::all(profiles);
        find_extremes(|| start(sensitive.count()), &profiles.group(size))?;
        // The first index has all records.
        smallest.get_or_insert_with(|| u64::from(extremes.take_smallest()));
        denominators.push(Denominator {
            sensitive,
            profiles,
        });
    }
    let smallest = smallest.unwrap_or(0);
    let bounded = extremes.greatest();
    for index in others.iter().filter(|index| index.count() > 0) {
        let profiles = ProfileParts::all(index.profiles(classes)?);
        find_extremes(|| start(index.count()), &profiles.group(size))?;
    }
    verification.smallest_group = smallest;
    verification.greatest_confidence = extremes.greatest().as_f64();
    verification.greatest_bounded_confidence = verification
        .greatest_bounded_confidence
        .map(|_| bounded.as_f64());
    verification.subsets = choose(grid.attributes(), size);
    let Share { most, of } = bounded;
    verification.holds =
        smallest >= requirement.k && !requirement.c.is_exceeded_by(most.into(), of.into());
    if !verification.holds {
        let searched = SearchedTable {
            grid: &grid,
            suffixes: &suffixes,
            attributes: &attributes,
            denominators: &denominators,
            persons: persons.as_ref(),
        };
        let found = searched.find_violations(size, requirement, cancellation)?;
        verification.violations = found.count;
        verification.worst = found.worst;
        let declared_position = |known: &ColumnValue| {
            let mut names = quasi_identifiers.iter();
            names.position(|name| **name == *known.column)
        };
        for group in &mut verification.worst {
            group.quasi_identifiers.sort_by_key(declared_position);
        }
    }
    Ok((verification, by_all))
}

/// The verification of a table with these classes, before qids were searched.
pub(super) fn unsearched(
    classes: &Classes,
    smallest_class: u64,
    requirement: &LkcRequirement,
) -> Verification {
    let bounds_some = !requirement.c.is_unbounded() && !requirement.sensitive.is_empty();
    Verification {
        holds: true,
        rows: classes.sizes.iter().map(|&rows| u64::from(rows)).sum(),
        groups: classes.sizes.len() as u64,
        smallest_group: 0,
        smallest_equivalence_class: smallest_class,
        greatest_confidence: 0.0,
        greatest_bounded_confidence: bounds_some.then_some(0.0),
        missing_sensitive: requirement.missing_sensitive,
        subsets: 0,
        violations: 0,
        worst: Vec::new(),
    }
}

/// Minimum number of persons of any group of a qid of the maximum size.
///
/// # Errors
/// [`VerifyError::Stopped`].
fn find_fewest_persons(
    groups: &ClassGroups,
    size: usize,
    extremes: &Extremes,
) -> Result<u64, VerifyError> {
    if size == groups.grid.attributes() {
        return Ok(groups.lists.lengths().min().map_or(0, u64::from));
    }
    if size == 0 {
        groups.visit(extremes, size)?;
    } else {
        let all = groups.all();
        let start = || PersonSearch::new(groups, extremes);
        search_in_parallel(start, &all.group(size))?;
    }
    Ok(extremes.take_smallest().into())
}

/// Searches all qids of the greatest size.
///
/// # Errors
/// [`VerifyError::Stopped`].
fn find_extremes<'g>(
    start: impl Fn() -> ProfileSearch<'g, &'g Extremes<'g>> + Sync,
    all: &Group<ProfileParts>,
) -> Result<(), VerifyError> {
    let search = start();
    if all.need <= 1 || all.need == search.grid.attributes() {
        Search::new(search).visit(all)
    } else {
        search_in_parallel(start, all)
    }
}

/// The smallest group and the greatest confidence found so far, shared by all threads and by
/// several searches.
struct Extremes<'s> {
    smallest: AtomicU32,
    /// Number of records with a sensitive value and number of records of its group, packed.
    greatest: AtomicU64,
    cancellation: &'s Cancellation,
}

impl<'s> Extremes<'s> {
    fn new(cancellation: &'s Cancellation) -> Self {
        Self {
            smallest: AtomicU32::new(u32::MAX),
            greatest: AtomicU64::new(pack(Share::NONE)),
            cancellation,
        }
    }

    /// Records, or persons, of the smallest group so far. Later searches find no smaller one, because they do
    /// not look for one.
    fn take_smallest(&self) -> u32 {
        self.smallest.swap(0, Relaxed)
    }

    /// The greatest confidence so far.
    fn greatest(&self) -> Share {
        unpack(self.greatest.load(Relaxed))
    }
}

fn pack(share: Share) -> u64 {
    u64::from(share.most) << 32 | u64::from(share.of)
}

fn unpack(packed: u64) -> Share {
    Share {
        most: (packed >> 32) as u32,
        of: packed as u32,
    }
}

impl GroupVisitor for &Extremes<'_> {
    const NAMES_VALUES: bool = false;

    #[inline]
    fn limit(&self) -> u64 {
        self.smallest.load(Relaxed).into()
    }

    #[inline]
    fn confidence_matters(&self, share: Share) -> bool {
        share.exceeds(self.greatest())
    }

    #[inline]
    fn group(&mut self, size: u32, most: Option<ValueCount>, _: impl FnOnce() -> FoundQids) {
        if self.size_matters(size) {
            self.smallest.fetch_min(size, Relaxed);
        }
        if let Some(ValueCount { records: most, .. }) = most {
            let share = Share { most, of: size };
            let raise = |best| share.exceeds(unpack(best)).then(|| pack(share));
            // An error means that the greatest so far is not exceeded.
            let _ = self.greatest.fetch_update(Relaxed, Relaxed, raise);
        }
    }

    fn should_stop(&self) -> bool {
        self.cancellation.is_cancelled()
    }
}
