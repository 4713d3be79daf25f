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
//! Where rows are not persons, K is asked of the persons of a group. The parts of a group have no
//! person that the group has not, so the fewest persons are found at the greatest size too.

use rayon::prelude::*;

use pais_core::cancellation::Cancellation;
use pais_core::table::ReleasedTable;

use super::LkcRequirement;
use super::classes::{Classes, Values};
use super::counted_table::CountedTable;
use super::extremes::Extremes;
use super::person_search::ClassGroups;
use super::persons::{ClassPersons, Persons};
use super::profiles::{Grid, Profiles, Splitter};
use super::qid_search::{QidSearch, choose};
use super::sensitive::{SensitiveColumn, SensitiveIndex};
use super::verification::{ColumnValue, VIOLATION_CAP, Verification, VerifyError};
use super::violations::{Denominator, find_violations};

/// Decides whether a table satisfies LKC-privacy (KDD'09, Definition 3.1) over the columns
/// `quasi_identifiers`. `sensitive` are all declared sensitive columns; the confidence in their
/// values is measured even if the requirement does not bound it.
///
/// Where the table has subjects, *|T\[qid\]|* of the first condition is the number of distinct
/// persons. Confidences are shares of rows under both.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed. A table that does not satisfy
/// the requirement is a result, not an error.
pub(crate) fn verify_lkc<'t>(
    table: impl Into<CountedTable<'t>>,
    quasi_identifiers: &[Box<str>],
    sensitive: &[Box<str>],
    requirement: &LkcRequirement,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let stopped = &|| cancellation.is_cancelled();
    let counted = table.into();
    let table = counted.table;
    let columns = Values::new_all(table, quasi_identifiers)?;
    let (named, others) = sensitive_columns(table, sensitive, requirement)?;
    let mut classes = Classes::new(table.rows, &columns)?;
    let groups = classes.sizes.len() as u64;
    let mut persons = Persons::new(counted)?.map(|persons| {
        let lists = ClassPersons::new(&classes, &persons);
        (persons, lists)
    });
    let bounds_some = !requirement.c.is_unbounded() && !requirement.sensitive.is_empty();
    let mut verification = Verification {
        holds: true,
        rows: table.rows as u64,
        groups,
        smallest_group: 0,
        smallest_equivalence_class: classes.smallest(),
        greatest_confidence: 0.0,
        greatest_bounded_confidence: bounds_some.then_some(0.0),
        missing_sensitive: requirement.missing_sensitive,
        subsets: 0,
        violations: 0,
        worst: Vec::new(),
    };
    if let Some((_, lists)) = &persons {
        verification.smallest_equivalence_class = lists.smallest();
    }
    if groups == 0 {
        return Ok(verification);
    }
    let mut attributes: Vec<&Values> = columns.iter().filter(|values| values.count() > 1).collect();
    if requirement.l == 0 {
        attributes.clear();
        classes = Classes::new(table.rows, &[])?;
        if let Some((persons, lists)) = &mut persons {
            *lists = ClassPersons::new(&classes, persons);
        }
    }
    // Attributes with many values first: groups become small early, and their profiles merge well.
    attributes.sort_by_key(|values| std::cmp::Reverse(values.count()));
    let grid = Grid::new(&attributes, &classes.row);
    let size = requirement.l.min(grid.attributes());

    let persons = persons.as_ref();
    let persons = persons.map(|(persons, lists)| ClassGroups::new(&grid, persons, lists, &classes));
    let persons = persons.as_ref();
    let mut smallest = persons
        .map(|persons| persons.smallest(size, stopped))
        .transpose()?;
    let extremes = Extremes::new(stopped);
    if smallest.is_some() {
        // The fewest rows of a group are not asked for.
        extremes.take_smallest();
    }
    let mut denominators: Vec<Denominator> = Vec::with_capacity(named.len());
    for index in named {
        let profiles = index.profiles(&classes)?;
        find_extremes(&grid, &profiles, index.count(), size, &extremes)?;
        // The first index has all records.
        smallest.get_or_insert_with(|| u64::from(extremes.take_smallest()));
        denominators.push((index, profiles));
    }
    let smallest = smallest.unwrap_or(0);
    let (most, of) = extremes.greatest();
    for index in others.iter().filter(|index| !index.is_empty()) {
        let profiles = index.profiles(&classes)?;
        find_extremes(&grid, &profiles, index.count(), size, &extremes)?;
    }
    let share = |(most, of): (u32, u32)| f64::from(most) / f64::from(of);
    verification.smallest_group = smallest;
    verification.greatest_confidence = share(extremes.greatest());
    verification.greatest_bounded_confidence = bounds_some.then(|| share((most, of)));
    verification.subsets = choose(grid.attributes(), size);
    verification.holds =
        smallest >= requirement.k && !requirement.c.is_exceeded_by(u64::from(most), u64::from(of));
    if !verification.holds {
        let (found, worst) = find_violations(
            &grid,
            &attributes,
            &denominators,
            size,
            requirement,
            persons,
            stopped,
        )?;
        verification.violations = found.min(VIOLATION_CAP);
        verification.worst = worst;
        let declared_position = |known: &ColumnValue| {
            let mut names = quasi_identifiers.iter();
            names.position(|name| **name == *known.column)
        };
        for group in &mut verification.worst {
            group.quasi_identifiers.sort_by_key(declared_position);
        }
    }
    Ok(verification)
}

/// The sensitive columns that the requirement names, and the declared ones that it does not, both
/// by denominator.
fn sensitive_columns<'t>(
    table: &'t ReleasedTable,
    declared: &[Box<str>],
    requirement: &LkcRequirement,
) -> Result<(Vec<SensitiveIndex<'t>>, Vec<SensitiveIndex<'t>>), VerifyError> {
    let reading = requirement.missing_sensitive;
    let named = requirement
        .sensitive
        .iter()
        .map(|named| SensitiveColumn::new(table, named))
        .collect::<Result<Vec<_>, _>>()?;
    let is_named = |name: &str| {
        let mut named = requirement.sensitive.iter();
        named.any(|named| *named.column == *name)
    };
    let others = declared
        .iter()
        .filter(|name| !is_named(name))
        .map(|name| SensitiveColumn::every_value(table, name))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((
        SensitiveIndex::by_denominator(named, reading),
        SensitiveIndex::by_denominator(others, reading),
    ))
}

/// Searches all qids of the greatest size, with the first attribute in parallel.
///
/// # Errors
/// [`VerifyError::Stopped`].
fn find_extremes(
    grid: &Grid,
    profiles: &Profiles,
    sensitive_values: usize,
    size: usize,
    extremes: &Extremes,
) -> Result<(), VerifyError> {
    if size <= 1 || size == grid.attributes() {
        let all = (profiles, 0..profiles.len());
        QidSearch::new(grid, sensitive_values).visit(&mut &*extremes, all, 0, size, true);
    } else {
        (0..=grid.attributes() - size)
            .into_par_iter()
            .for_each(|attribute| {
                search_from(grid, profiles, sensitive_values, attribute, size, extremes);
            });
    }
    if extremes.is_stopped() {
        Err(VerifyError::Stopped)
    } else {
        Ok(())
    }
}

/// Searches the qids of the greatest size whose first attribute is `attribute`, with the values of
/// that attribute in parallel.
fn search_from(
    grid: &Grid,
    profiles: &Profiles,
    sensitive_values: usize,
    attribute: usize,
    size: usize,
    extremes: &Extremes,
) {
    let mut split = Profiles::default();
    let mut splitter = Splitter::new(grid, sensitive_values);
    splitter.split(
        grid,
        (profiles, 0..profiles.len()),
        attribute,
        true,
        &mut split,
    );
    let split = &split;
    split.bounds.par_windows(2).for_each_init(
        || QidSearch::new(grid, sensitive_values),
        |search, bounds| {
            let value = grid.values(split.class[bounds[0]])[attribute];
            let group = (split, bounds[0]..bounds[1]);
            search.visit_below(&mut &*extremes, (attribute, value), group, size - 1);
        },
    );
}
