//! LKC-privacy of a table whose labels overlap, decided by what raw qids match.
//!
//! A label covers a range of raw values, so the qids over some columns are the points of a space in which each
//! group of equal labels is a box. A point matches the groups whose boxes contain it. Only the box of a group
//! that violates the requirement by itself can contain a point that violates it: a union of groups has at least
//! as many records as each of them, and no greater share of a value than the greatest among them. Such a box is
//! cut at the borders of the boxes that overlap it until each part is in the same boxes throughout.
//!
//! Where labels overlap, a violating qid need not have a violating qid that extends it: records that several
//! values of a further column match count for each of them. So sets of columns of every size up to *L* are
//! decided, including the empty set.

mod ranges;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_core::model::{Confidence, Lkc};
use pais_core::schema::Schema;
use pais_core::table::ReleasedTable;
use pais_core::table::codes::CodeRange;

use self::ranges::label_ranges;
use super::classes::{Classes, Values};
use super::combinations::for_each_subset;
use super::requirement::LkcRequirement;
use super::sensitive::{ClassCounts, SensitiveColumn, SensitiveIndex};
use super::verification::{ColumnValue, VIOLATION_CAP, VerifyError, WORST_GROUPS, WorstGroup};
use super::violations::FoundViolations;

/// Maximum number of pairs of a part of a box and a box that are compared.
const BUDGET: u64 = 1 << 32;

/// Maximum number of bytes of what is kept of the parts of a box that are cut further. Nested labels take the square
/// of their number.
const MOST_HELD_BYTES: usize = if cfg!(test) { 1 << 16 } else { 1 << 27 };

/// Whether a table with overlapping labels satisfies LKC-privacy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OverlapVerification {
    /// Whether every qid of at most L raw values that matches a record matches at least K, and none
    /// lets a bounded value be inferred with more than C.
    pub holds: bool,
    /// A lower bound of the number of records that a qid matches. 0 for an empty table.
    pub smallest_group: u64,
    /// An upper bound, from 0 to 1, of the confidence in a bounded value that a qid gives.
    pub greatest_bounded_confidence: f64,
}

/// What is decided of a table with overlapping labels.
pub(super) struct DecidedOverlaps {
    pub(super) found: OverlapVerification,
    /// The violating qids of labels that cover a violating qid of raw values, of the greatest size that
    /// has any. Each is listed with the figures of the worst that it covers.
    pub(super) violations: FoundViolations,
}

/// The records with equal labels in all columns.
struct LabelGroup {
    /// By column, what its label covers.
    ranges: Vec<CodeRange>,
    tally: GroupTally,
}

/// A group over some columns.
struct OverlapGroup {
    /// Its box, one range for each of the columns.
    ranges: Vec<CodeRange>,
    tally: GroupTally,
    /// Whether one of its bounded values exceeds *C*.
    exceeds: bool,
}

/// A part of a box, whose points are to be decided.
struct Part<'g> {
    ranges: Vec<CodeRange>,
    /// What is known of the part that it was cut from.
    outer: Rc<KnownGroups<'g>>,
}

/// The groups that overlap a part of a box.
struct KnownGroups<'g> {
    /// The tally of the groups that are known to hold all of it.
    holding: GroupTally,
    /// The others.
    partial: Vec<&'g OverlapGroup>,
}

impl KnownGroups<'_> {
    fn bytes(&self) -> usize {
        size_of_val(&*self.partial) + size_of_val(&*self.holding.holding)
    }
}

/// Decides whether a table with the columns of a schema satisfies LKC-privacy for qids of raw
/// values, with the violating qids. Records are counted, not persons.
///
/// The time grows with the number of sets of columns times that of groups, and with the overlaps of
/// violating groups.
///
/// # Errors
/// [`VerifyError`]: for a table that lacks a column or is malformed, for a label that is not of its
/// column's domain, and beyond the budgets of overlaps.
pub(super) fn decide_overlaps(
    table: &ReleasedTable,
    schema: &Schema,
    model: &Lkc,
    cancellation: &Cancellation,
) -> Result<DecidedOverlaps, VerifyError> {
    let names = schema.names(ColumnRole::QuasiIdentifier);
    let sensitive = schema.names(ColumnRole::Sensitive);
    let requirement = LkcRequirement::from_model(model, names.len(), &sensitive);
    let columns = Values::new_all(table, &names)?;
    let mut ranges = Vec::with_capacity(columns.len());
    for (name, values) in names.iter().zip(&columns) {
        let spec = schema.stored_named(name);
        let found = spec.and_then(|spec| label_ranges(values, spec));
        ranges.push(found.ok_or_else(|| VerifyError::UnknownLabel {
            column: name.clone(),
        })?);
    }
    let classes = Classes::new(table.rows, &columns, cancellation)?;
    let bounded = BoundedValues::new(table, &classes, &requirement)?;
    let groups: Vec<LabelGroup> = (0..)
        .zip(&classes.row)
        .map(|(class, &row)| {
            let labels = columns.iter().zip(&ranges);
            let range = |(values, ranges): (&Values, &Vec<CodeRange>)| {
                ranges[values.at(row as usize) as usize]
            };
            LabelGroup {
                ranges: labels.map(range).collect(),
                tally: bounded.tally(class, row, classes.sizes[class as usize]),
            }
        })
        .collect();
    let mut decision = Decision {
        requirement: &requirement,
        bounded: &bounded,
        cancellation,
        compared: 0,
        found: OverlapVerification {
            holds: true,
            smallest_group: table.rows as u64,
            greatest_bounded_confidence: 0.0,
        },
        worst_of_box: None,
        violations: 0,
        worst: Vec::new(),
    };
    // A column with one label adds nothing to a qid.
    let varied: Vec<usize> = (0..columns.len())
        .filter(|&column| columns[column].count() > 1)
        .collect();
    let mut decide = |columns: &[usize]| decision.decide(&groups, columns);
    for known in 0..=requirement.l.min(varied.len()) {
        for_each_subset(&varied, known, &mut Vec::new(), &mut decide)?;
    }
    let name = |violating: &ViolatingBox| {
        let row = violating.tally.row.unwrap_or(0) as usize;
        let known = violating.columns.iter().map(|&column| &columns[column]);
        let greatest = bounded.greatest(&violating.tally);
        WorstGroup {
            quasi_identifiers: known.map(|values| values.name(values.at(row))).collect(),
            size: violating.tally.rows,
            sensitive: greatest.value.map(|value| bounded.name(value)),
            confidence: greatest.share,
        }
    };
    Ok(DecidedOverlaps {
        found: decision.found,
        violations: FoundViolations {
            count: decision.violations.min(VIOLATION_CAP),
            worst: decision.worst.iter().map(name).collect(),
        },
    })
}

/// A box that holds a violating qid.
struct ViolatingBox {
    /// The columns of the qid.
    columns: Vec<usize>,
    /// What its worst qid matches. The first row is one of the box.
    tally: GroupTally,
}

struct Decision<'a> {
    requirement: &'a LkcRequirement,
    bounded: &'a BoundedValues<'a>,
    cancellation: &'a Cancellation,
    /// Pairs compared so far.
    compared: u64,
    found: OverlapVerification,
    /// What the worst violating qid found in the current box matches.
    worst_of_box: Option<GroupTally>,
    /// Number of violating boxes of as many columns as the `worst` have.
    violations: u64,
    /// The worst of them, the worst first.
    worst: Vec<ViolatingBox>,
}

impl Decision<'_> {
    /// Decides the qids over these columns.
    fn decide(&mut self, groups: &[LabelGroup], columns: &[usize]) -> Result<(), VerifyError> {
        self.count(groups.len() as u64)?;
        // In a fixed order: the figures of unions that are not cut depend on it.
        let mut merged: BTreeMap<Vec<CodeRange>, GroupTally> = BTreeMap::new();
        for LabelGroup { ranges, tally } in groups {
            let ranges = columns.iter().map(|&column| ranges[column]).collect();
            merged.entry(ranges).or_default().add(tally);
        }
        let groups: Vec<OverlapGroup> = merged
            .into_iter()
            .map(|(ranges, mut tally)| {
                tally.sum_up();
                OverlapGroup {
                    exceeds: self.bounded.greatest(&tally).exceeds,
                    ranges,
                    tally,
                }
            })
            .collect();
        for (index, group) in groups.iter().enumerate() {
            if group.tally.rows >= self.requirement.k && !group.exceeds {
                self.note(&group.tally);
                continue;
            }
            self.count(groups.len() as u64)?;
            let others = groups[..index].iter().chain(&groups[index + 1..]);
            let partial = others.filter(|other| overlap(&other.ranges, &group.ranges));
            let known = KnownGroups {
                holding: group.tally.clone(),
                partial: partial.collect(),
            };
            self.decide_box(group.ranges.clone(), known)?;
            if let Some(tally) = self.worst_of_box.take() {
                self.keep(ViolatingBox {
                    columns: columns.to_vec(),
                    tally,
                });
            }
        }
        Ok(())
    }

    /// Counts a violating box, and keeps it if it is among the worst. Boxes of more columns come later, and
    /// replace those of fewer.
    fn keep(&mut self, found: ViolatingBox) {
        let last = self.worst.first().map(|other| other.columns.len());
        if last.is_some_and(|last| last < found.columns.len()) {
            self.worst.clear();
            self.violations = 0;
        }
        self.violations += 1;
        let before = |other: &ViolatingBox| self.order(&other.tally, &found.tally).is_le();
        let position = self.worst.partition_point(before);
        self.worst.insert(position, found);
        self.worst.truncate(WORST_GROUPS);
    }

    /// The worse first: of fewer records below *K*, and then of a greater confidence.
    fn order(&self, one: &GroupTally, other: &GroupTally) -> Ordering {
        let size = |tally: &GroupTally| tally.rows.min(self.requirement.k);
        size(one).cmp(&size(other)).then_with(|| {
            let share = |tally| self.bounded.greatest(tally).share;
            share(other).total_cmp(&share(one))
        })
    }

    /// Decides the points of a box.
    fn decide_box(
        &mut self,
        ranges: Vec<CodeRange>,
        known: KnownGroups,
    ) -> Result<(), VerifyError> {
        let mut held = known.bytes();
        let outer = Rc::new(known);
        let mut parts = vec![Part { ranges, outer }];
        while let Some(Part { ranges, outer }) = parts.pop() {
            self.count(1 + outer.partial.len() as u64)?;
            let mut holding = outer.holding.clone();
            let mut partial = Vec::new();
            for &group in &outer.partial {
                if !overlap(&group.ranges, &ranges) {
                    continue;
                }
                if encloses(&group.ranges, &ranges) {
                    holding.add(&group.tally)
                } else {
                    partial.push(group)
                }
            }
            if Rc::strong_count(&outer) == 1 {
                held -= outer.bytes();
            }
            drop(outer);
            holding.sum_up();
            let exceeds = self.bounded.greatest(&holding).exceeds;
            let is_safe = holding.rows >= self.requirement.k && !exceeds;
            if is_safe && partial.iter().all(|group| !group.exceeds) {
                self.note(&holding);
                continue;
            }
            let border = partial.first().and_then(|group| {
                let mut pairs = group.ranges.iter().zip(&ranges).enumerate();
                pairs.find(|(_, (outer, inner))| !outer.encloses(**inner))
            });
            let Some((column, (outer, inner))) = border else {
                self.note(&holding);
                self.found.holds &= is_safe;
                let worst = self.worst_of_box.as_ref();
                if !is_safe && worst.is_none_or(|worst| self.order(&holding, worst).is_lt()) {
                    self.worst_of_box = Some(holding);
                }
                continue;
            };
            let within = CodeRange::new(outer.first.max(inner.first), outer.last.min(inner.last));
            // The last one is decided first.
            let mut cut = Vec::with_capacity(3);
            if within.last < inner.last {
                cut.push(CodeRange::new(within.last + 1, inner.last));
            }
            if inner.first < within.first {
                cut.push(CodeRange::new(inner.first, within.first - 1));
            }
            cut.push(within);
            let outer = Rc::new(KnownGroups { holding, partial });
            held += outer.bytes();
            if held > MOST_HELD_BYTES {
                return Err(VerifyError::TooManyOverlaps);
            }
            for range in cut {
                let mut ranges = ranges.clone();
                ranges[column] = range;
                let outer = outer.clone();
                parts.push(Part { ranges, outer });
            }
        }
        Ok(())
    }

    /// Records the figures of a union of groups.
    fn note(&mut self, tally: &GroupTally) {
        let found = &mut self.found;
        found.smallest_group = found.smallest_group.min(tally.rows);
        if !self.requirement.c.is_unbounded() {
            let greatest = self.bounded.greatest(tally).share;
            found.greatest_bounded_confidence = found.greatest_bounded_confidence.max(greatest);
        }
    }

    fn count(&mut self, pairs: u64) -> Result<(), VerifyError> {
        self.cancellation.check()?;
        self.compared += pairs;
        if self.compared > BUDGET {
            Err(VerifyError::TooManyOverlaps)
        } else {
            Ok(())
        }
    }
}

/// Whether two boxes have a point in common.
fn overlap(one: &[CodeRange], other: &[CodeRange]) -> bool {
    let mut pairs = one.iter().zip(other);
    pairs.all(|(one, other)| one.overlaps(*other))
}

/// Whether a box holds all points of another.
fn encloses(outer: &[CodeRange], inner: &[CodeRange]) -> bool {
    let mut pairs = outer.iter().zip(inner);
    pairs.all(|(outer, inner)| outer.encloses(*inner))
}

/// The values that a model lists, numbered across denominators.
struct BoundedValues<'t> {
    /// By denominator, its values.
    indexes: Vec<SensitiveIndex<'t>>,
    /// By denominator, how many records of each class have each value.
    counts: Vec<ClassCounts>,
    /// Number of the first value of each denominator.
    first: Vec<u32>,
    bound: Confidence,
}

/// The records of some groups.
#[derive(Clone, Debug, Default)]
struct GroupTally {
    /// A row of the first group.
    row: Option<u32>,
    /// *|T\[qid\]|*.
    rows: u64,
    /// By denominator, its number of records.
    known: Vec<u64>,
    /// Records by value, in ascending order of its number, without values that no record has. Entries of a
    /// group that was added last follow until they are summed up.
    holding: Vec<(u32, u64)>,
    /// The entries of `holding` that are summed up.
    summed: usize,
}

/// The listed value with the greatest share.
#[derive(Default)]
struct GreatestShare {
    share: f64,
    value: Option<u32>,
    /// Whether a share exceeds *C*.
    exceeds: bool,
}

impl<'t> BoundedValues<'t> {
    fn new(
        table: &'t ReleasedTable,
        classes: &Classes,
        requirement: &LkcRequirement,
    ) -> Result<Self, VerifyError> {
        let columns = SensitiveColumn::named(table, requirement)?;
        let indexes = SensitiveIndex::by_denominator(columns, requirement.missing_sensitive);
        let of_index = |index: &SensitiveIndex| index.class_counts(classes, classes.numbers());
        let counts = indexes.iter().map(of_index);
        let first = indexes.iter().scan(0, |next, index| {
            let first = *next;
            *next += index.count() as u32;
            Some(first)
        });
        Ok(Self {
            counts: counts.collect::<Result<_, _>>()?,
            first: first.collect(),
            bound: requirement.c,
            indexes,
        })
    }

    /// The tally of a class with this first row and number of rows.
    fn tally(&self, class: u32, row: u32, rows: u32) -> GroupTally {
        let holding = self
            .counts
            .iter()
            .zip(&self.first)
            .flat_map(|(counts, first)| {
                let values = counts.values.of(class).iter();
                values.map(move |count| (first + count.value, u64::from(count.records)))
            });
        let mut holding: Vec<(u32, u64)> = holding.collect();
        holding.sort_unstable();
        let known = self.counts.iter();
        GroupTally {
            summed: holding.len(),
            row: Some(row),
            rows: rows.into(),
            known: known
                .map(|counts| counts.records[class as usize].into())
                .collect(),
            holding,
        }
    }

    fn denominator(&self, value: u32) -> usize {
        self.first.partition_point(|&first| first <= value) - 1
    }

    fn name(&self, value: u32) -> ColumnValue {
        let denominator = self.denominator(value);
        self.indexes[denominator].name(value - self.first[denominator])
    }

    fn greatest(&self, tally: &GroupTally) -> GreatestShare {
        let mut greatest = GreatestShare::default();
        for &(value, holding) in &tally.holding {
            let known = tally.known[self.denominator(value)];
            let share = holding as f64 / known as f64;
            if share > greatest.share {
                greatest.share = share;
                greatest.value = Some(value);
            }
            greatest.exceeds |= self.bound.is_exceeded_by(holding, known);
        }
        greatest
    }
}

impl GroupTally {
    /// Adds the records of another group, whose values are to be summed up: one by one, a group of many values would
    /// take the square of their number.
    fn add(&mut self, other: &Self) {
        self.row = self.row.or(other.row);
        self.rows += other.rows;
        self.known.resize(other.known.len(), 0);
        for (known, more) in self.known.iter_mut().zip(&other.known) {
            *known += more;
        }
        self.holding.extend_from_slice(&other.holding);
        if self.holding.len() > 2 * self.summed.max(other.holding.len()) + 64 {
            self.sum_up();
        }
    }

    /// Sums up the records of each value.
    fn sum_up(&mut self) {
        if self.summed == self.holding.len() {
            return;
        }
        self.holding.sort_unstable_by_key(|&(value, _)| value);
        self.holding.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
        self.summed = self.holding.len();
    }
}
