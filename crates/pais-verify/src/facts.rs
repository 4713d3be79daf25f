//! Privacy over set-valued columns, decided by enumeration of what an adversary may know.
//!
//! A fact about a record is its value in one column that is not set-valued, or one item of a set-valued column.
//! An adversary knows at most L facts. Each combination of at most L facts that some row has must be shared by
//! at least K rows, and no bounded sensitive value may be inferred from it with more than C. Combinations are
//! extended fact by fact over the rows that have them, so only those that occur are enumerated. Rows have
//! different numbers of facts, so combinations of every size are decided, not only those of the maximum size. A
//! fact that all rows of a branch have does not divide them, so the branch is not extended by it.
//!
//! Under k^m-anonymity the values of columns that are not set-valued are always known: rows that
//! agree on them are a group, and facts are items, of which an adversary knows at most m.

use std::collections::BTreeSet;
use std::ops::Range;

use hashbrown::HashMap;

use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, KmAnonymity, MissingSensitive};
use pais_core::schema::items;
use pais_core::table::{Form, SubjectCounter, Subjects};

use super::LkcRequirement;
use super::classes::{Classes, Values};
use super::combinations::{Combinations, Group, Part, Search};
use super::lists::{DividedGroup, Divider, Lists, PartOrder};
use super::lkc::unsearched;
use super::model_columns::ModelColumns;
use super::persons::{CountedTable, class_sizes, persons_of};
use super::sensitive::ConfidenceMeter;
use super::verification::{
    ColumnValue, VIOLATION_CAP, Verification, VerifyError, WORST_GROUPS, WorstGroup,
};

/// Maximum number of look-ups of a fact in a row. Beyond it the enumeration fails.
const BUDGET: u64 = 1 << 33;

/// Decides k^m-anonymity; the quasi-identifiers released as sets are the set-valued
/// ones. Stops once `cancellation` is requested. In the result, `smallest_group` is the fewest rows
/// of a group that contain a set of at most m items, including the empty set, and `subsets` is the
/// number of sets that were enumerated. The confidence in the values of the sensitive columns
/// is measured over the same rows. Where the table has subjects, k is asked of the distinct persons
/// of these rows, and `smallest_group` is the fewest persons.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, if there are too many sets to
/// enumerate, and when stopped.
pub(crate) fn verify_km<'t>(
    table: impl Into<CountedTable<'t>>,
    columns: ModelColumns,
    model: KmAnonymity,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let model = FactModel {
        requirement: LkcRequirement {
            l: model.m.get() as usize,
            k: model.k.get(),
            c: Confidence::UNBOUNDED,
            sensitive: Vec::new(),
            missing_sensitive: MissingSensitive::Excluded,
        },
        is_by_fact: |column| matches!(column.column.form, Form::Set { .. }),
        too_many: VerifyError::TooManyItemsets { m: model.m.get() },
    };
    model.verify(table.into(), columns, cancellation)
}

/// Decides LKC-privacy with facts, of which an adversary knows at most `l`; `requirement` has the
/// other parameters. In the result `subsets` is the number of combinations that were enumerated,
/// and `violations` how many of them violate the requirement.
///
/// # Errors
/// As [`verify_km`].
pub(super) fn verify_facts(
    counted: CountedTable,
    columns: ModelColumns,
    requirement: LkcRequirement,
    l: u32,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let model = FactModel {
        requirement: LkcRequirement {
            l: l as usize,
            ..requirement
        },
        is_by_fact: |_| true,
        too_many: VerifyError::TooManyFacts { l },
    };
    model.verify(counted, columns, cancellation)
}

/// A model of an adversary who knows facts.
struct FactModel {
    /// Its *L* is the maximum number of facts.
    requirement: LkcRequirement,
    /// Whether a column is known by facts; the values of other columns are always known.
    is_by_fact: fn(&Values) -> bool,
    /// The error beyond the budget.
    too_many: VerifyError,
}

impl FactModel {
    fn verify(
        &self,
        counted: CountedTable,
        columns: ModelColumns,
        cancellation: &Cancellation,
    ) -> Result<Verification, VerifyError> {
        let table = counted.table;
        let requirement = &self.requirement;
        let persons = persons_of(counted)?;
        let ModelColumns {
            quasi_identifiers,
            sensitive,
        } = columns;
        let columns = Values::new_all(table, quasi_identifiers)?;
        let classes = Classes::new(table.rows, &columns, cancellation)?;
        let smallest_class = class_sizes(&classes, persons.as_ref()).into_iter().min();
        let smallest_class = smallest_class.map_or(0, u64::from);
        let (by_fact, known): (Vec<Values>, Vec<Values>) =
            columns.into_iter().partition(self.is_by_fact);
        let groups = Classes::new(table.rows, &known, cancellation)?;
        let facts = FactLists::new(table.rows, &by_fact, u32::MAX);
        let facts = facts.ok_or_else(|| self.too_many.clone())?;
        let mut search = Search::new(FactSearch {
            model: self,
            facts: &facts,
            known: Vec::new(),
            persons: persons
                .as_ref()
                .map(|persons| (persons, SubjectCounter::new(persons.codes()))),
            meters: ConfidenceMeter::all(table, sensitive, requirement)?,
            divider: Divider::new(facts.names.len(), PartOrder::OfKeys),
            cancellation,
            lookups: 0,
            found: Verification {
                smallest_group: if table.rows == 0 { 0 } else { u64::MAX },
                ..unsearched(&classes, smallest_class, requirement)
            },
        });
        for (rows, &first) in groups.rows().iter().zip(&groups.row) {
            let names = known
                .iter()
                .map(|values| values.name(values.at(first as usize)));
            search.combinations.known = names.collect();
            let rows = DividedGroup::whole(rows.iter().copied());
            search.visit(&rows.group(requirement.l))?;
        }
        let found = search.combinations.found;
        Ok(Verification {
            holds: found.violations == 0,
            violations: found.violations.min(VIOLATION_CAP),
            ..found
        })
    }
}

/// The facts of each row, ascending, numbered across the columns.
struct FactLists {
    of_row: Lists<u32>,
    /// Column and value, or item, of each fact.
    names: Vec<ColumnValue>,
}

impl FactLists {
    /// `None` where the rows have more than `most` facts together.
    fn new(rows: usize, columns: &[Values], most: u32) -> Option<Self> {
        let mut names = Vec::new();
        let of_value: Vec<Lists<u32>> = columns
            .iter()
            .map(|values| facts_of_values(values, &mut names))
            .collect();
        let mut of_row = Lists::default();
        let mut facts: Vec<u32> = Vec::new();
        for row in 0..rows {
            for (values, of_value) in columns.iter().zip(&of_value) {
                facts.extend_from_slice(of_value.of(values.at(row)));
            }
            facts.sort_unstable();
            facts.dedup();
            if of_row.entries() + facts.len() > most as usize {
                return None;
            }
            of_row.push(facts.drain(..));
        }
        Some(Self { of_row, names })
    }
}

/// The facts of each value of a column, numbered in the order of their texts. Appends their names.
///
/// How many combinations are enumerated depends on the order of facts, and the order of a dictionary on
/// the raw rows.
fn facts_of_values(values: &Values, names: &mut Vec<ColumnValue>) -> Lists<u32> {
    let of_value = |value: u32| -> Vec<Option<&str>> {
        let text = values.text(value);
        match values.column.form {
            Form::Set { separator } => {
                let cell = text.unwrap_or_default();
                items(cell, separator).map(Some).collect()
            }
            _ => vec![text],
        }
    };
    let count = values.count() as u32;
    let distinct: BTreeSet<Option<&str>> = (0..count).flat_map(of_value).collect();
    let first = names.len() as u32;
    let numbers: HashMap<Option<&str>, u32> = distinct.iter().copied().zip(first..).collect();
    names.extend(distinct.iter().map(|value| ColumnValue {
        column: values.column.name.to_string(),
        value: value.map(str::to_owned),
    }));
    let mut facts = Lists::default();
    for value in 0..count {
        let of_value = of_value(value).into_iter();
        facts.push(of_value.filter_map(|fact| numbers.get(&fact).copied()));
    }
    facts
}

/// The combinations of facts, over groups of rows, with the result so far.
struct FactSearch<'a> {
    model: &'a FactModel,
    facts: &'a FactLists,
    /// What is known of each row of the group that is searched.
    known: Vec<ColumnValue>,
    /// The persons of the rows, where K is asked of them.
    persons: Option<(&'a Subjects, SubjectCounter)>,
    meters: Vec<ConfidenceMeter<'a>>,
    divider: Divider,
    cancellation: &'a Cancellation,
    /// Number of look-ups so far.
    lookups: u64,
    found: Verification,
}

impl FactSearch<'_> {
    /// Rows that share the known facts, or their persons, counted up to `limit`.
    fn size(&mut self, rows: &[u32], limit: u64) -> u64 {
        match &mut self.persons {
            None => rows.len() as u64,
            Some((persons, counter)) => {
                let of_rows = rows.iter().map(|&row| persons.of_row()[row as usize]);
                counter.count_up_to(limit, of_rows)
            }
        }
    }

    /// Records the rows that share the known facts, and what they reveal.
    fn note(&mut self, rows: &[u32], facts: &[u32]) {
        let k = self.model.requirement.k;
        // With this size the combination neither violates by its size nor is the smallest.
        let size = self.size(rows, self.found.smallest_group.max(k));
        let found = &mut self.found;
        found.subsets += 1;
        found.smallest_group = found.smallest_group.min(size);
        let mut is_exceeded = false;
        let (mut confidence, mut best) = (0.0, None);
        for (index, meter) in self.meters.iter_mut().enumerate() {
            // Nothing is greater than 1.
            if !meter.is_bounded && found.greatest_confidence >= 1.0 {
                continue;
            }
            let Some(most) = meter.most_frequent(rows) else {
                continue;
            };
            let share = f64::from(most.rows) / f64::from(most.of);
            found.greatest_confidence = found.greatest_confidence.max(share);
            if meter.is_bounded {
                let bound = self.model.requirement.c;
                is_exceeded |= bound.is_exceeded_by(most.rows.into(), most.of.into());
                let bounded = &mut found.greatest_bounded_confidence;
                *bounded = bounded.map(|greatest| greatest.max(share));
                if share > confidence {
                    (confidence, best) = (share, Some((index, most.value)));
                }
            }
        }
        if size >= k && !is_exceeded {
            return;
        }
        found.violations += 1;
        let size = if size < k {
            size
        } else {
            self.size(rows, u64::MAX)
        };
        // Those below K come first, by size; then the others, by confidence.
        let order = |size: u64, confidence: f64| {
            if size < k {
                (size, 0.0)
            } else {
                (k, -confidence)
            }
        };
        let rank = order(size, confidence);
        let worst = &mut self.found.worst;
        let before = |found: &WorstGroup| order(found.size, found.confidence) <= rank;
        let position = worst.partition_point(before);
        if position < WORST_GROUPS {
            let facts = facts.iter().map(|&fact| &self.facts.names[fact as usize]);
            let found = WorstGroup {
                quasi_identifiers: self.known.iter().chain(facts).cloned().collect(),
                size,
                sensitive: best.map(|(meter, value)| self.meters[meter].column.name(value)),
                confidence,
            };
            worst.insert(position, found);
            worst.truncate(WORST_GROUPS);
        }
    }
}

impl Combinations for FactSearch<'_> {
    type Known = u32;
    type Parts = DividedGroup;

    fn visit(&mut self, facts: &[u32], group: &Group<DividedGroup>) -> Result<bool, VerifyError> {
        self.cancellation.check()?;
        self.note(group.parts.members(&group.range), facts);
        Ok(group.need > 0)
    }

    /// All further facts divide a group at once.
    fn elements(&self, group: &Group<DividedGroup>) -> Range<usize> {
        group.from..self.facts.names.len().min(group.from + 1)
    }

    fn divide(
        &mut self,
        group: &Group<DividedGroup>,
        from: usize,
        into: &mut DividedGroup,
    ) -> Result<(), VerifyError> {
        let further = |row: u32| {
            let facts = self.facts.of_row.of(row);
            let first = facts.partition_point(|&fact| (fact as usize) < from);
            facts[first..].iter().copied()
        };
        let rows = group.parts.members(&group.range);
        self.lookups += rows
            .iter()
            .map(|&row| 1 + further(row).len() as u64)
            .sum::<u64>();
        if self.lookups > BUDGET {
            return Err(self.model.too_many.clone());
        }
        self.divider.divide(rows, further, into);
        Ok(())
    }

    fn part(&self, parts: &DividedGroup, _: usize, number: usize) -> Option<Part<u32>> {
        let (fact, range) = parts.part(number)?;
        // Combinations with a fact that all rows have are shared by the same rows as those
        // without it.
        let from = if range.len() == parts.divided {
            self.facts.names.len()
        } else {
            fact as usize + 1
        };
        Some(Part {
            known: fact,
            range,
            from,
        })
    }
}

#[cfg(test)]
mod tests;
