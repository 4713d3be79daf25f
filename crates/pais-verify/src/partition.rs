//! Verification of group models: each group of a table is checked by itself, exactly.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use pais_core::cancellation::Cancellation;
use pais_core::model::{Diversity, GroupModel, MissingSensitive, spans};
use pais_core::table::Subjects;

use super::classes::{Classes, Values};
use super::lists::Lists;
use super::minimum_cover::{MISSING, MinimumCover};
use super::model_columns::ModelColumns;
use super::persons::{CountedTable, persons_of};
use super::sensitive::SensitiveColumn;
use super::verification::{ColumnValue, VIOLATION_CAP, VerifyError, WORST_GROUPS};

/// Tolerance of an entropy, in nats, for the rounding of its logarithms.
const ROUNDING: f64 = 1e-9;

/// Whether every group of a table meets a model of groups, and how closely.
///
/// A group is the set of records that agree on all quasi-identifiers; in an anatomized release
/// those of one `group_id`. Where the dataset has a subject column, K is asked of the distinct
/// persons of a group; its diversity and confidence are those of its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupVerification {
    /// Whether every group has at least K records, or persons, and the diversity asked for. An
    /// empty table has no group and holds.
    pub holds: bool,
    /// *|T|*, number of records.
    pub rows: u64,
    /// Number of groups.
    pub groups: u64,
    /// Records of the smallest group, or persons where the dataset has a subject column; 0 for an
    /// empty table.
    pub smallest_group: u64,
    /// Records, or persons, of the smallest equivalence class, the records that agree on all
    /// quasi-identifiers that the groups know. A model of groups knows them all, so this equals
    /// `smallest_group`; of an anatomized release, whose quasi-identifiers are exact, too.
    pub smallest_equivalence_class: u64,
    /// The diversity of the group that has least of it, in the measure of the model and exact:
    /// under `l_diversity` the fewest sensitive values that have to be struck out before no
    /// record is left, counted up to L; under `distinct_l_diversity` distinct values; under
    /// `entropy_l_diversity` as many equally frequent values as have the entropy; under
    /// `recursive_cl_diversity` the ratio that has to stay below c, and under `t_closeness` the
    /// distance, of the group where it is greatest. Null under `k_anonymity`, for an empty
    /// table, and for a ratio to nothing.
    pub diversity: Option<f64>,
    /// Under `min_range`, by column the smallest range of the numbers of a group; null where a group
    /// has none. Absent under a model without it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub smallest_range: BTreeMap<String, Option<f64>>,
    /// The greatest confidence in a value of any sensitive column, from 0 to 1: the share of the
    /// value among the records of a group that have a value in its column. It is measured whether
    /// the model bounds it or not; 0 if no record has a sensitive value.
    pub greatest_confidence: f64,
    /// How missing sensitive cells count in the confidence. Models of groups always exclude them.
    #[serde(default)]
    pub missing_sensitive: MissingSensitive,
    /// Number of groups that do not meet the model, counted up to 10,000.
    pub violations: u64,
    /// Up to 10 of them, those with the fewest records (or persons) below K first, then the least
    /// diverse. They name values of the table and belong in no error and no log.
    pub worst: Vec<FailingGroup>,
}

/// A group that does not meet the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailingGroup {
    /// What its records share.
    pub quasi_identifiers: Vec<ColumnValue>,
    /// *|G|*, in records, or in persons where the dataset has a subject column.
    pub size: u64,
    /// Its diversity, as in the verification.
    pub diversity: Option<f64>,
}

/// The result of checking one group.
#[derive(Clone, Copy)]
struct GroupResult {
    group: u32,
    /// Records, or persons where rows are not persons.
    size: u32,
    diversity: Option<f64>,
    /// Whether its diversity and its ranges meet the model.
    diverse: bool,
    /// The greatest confidence in one sensitive value, from 0 to 1.
    confidence: f64,
}

/// Decides whether every group of equal values on the quasi-identifiers meets the model. The diversity and the
/// greatest confidence are those of the sensitive columns.
/// Where the table has subjects, K is required of the distinct persons of a group.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, and [`VerifyError::Stopped`]
/// once `cancellation` is requested. A table that does not meet the model is a result, not an error.
pub(crate) fn verify_groups<'t>(
    table: impl Into<CountedTable<'t>>,
    columns: ModelColumns,
    model: &GroupModel,
    cancellation: &Cancellation,
) -> Result<GroupVerification, VerifyError> {
    let counted = table.into();
    let table = counted.table;
    let ModelColumns {
        quasi_identifiers,
        sensitive,
    } = columns;
    let columns = Values::new_all(table, quasi_identifiers)?;
    let sensitive = sensitive
        .iter()
        .map(|name| SensitiveColumn::every_value(table, name))
        .collect::<Result<Vec<_>, _>>()?;
    let classes = Classes::new(table.rows, &columns, cancellation)?;
    let members = classes.rows();
    let persons = persons_of(counted)?;
    if model.diversity.is_of_one_column() && sensitive.len() != 1 {
        return Err(VerifyError::NotOneSensitive {
            found: sensitive.len(),
        });
    }
    let check = GroupModelCheck::new(model, &sensitive, persons.as_ref(), cancellation)?;
    let found: Vec<GroupResult> = (0..classes.sizes.len() as u32)
        .into_par_iter()
        .map(|group| check.decide(group, members.of(group)))
        .collect::<Result<_, _>>()?;

    let k = model.k.get();
    let fails = |found: &&GroupResult| u64::from(found.size) < k || !found.diverse;
    let mut failing: Vec<&GroupResult> = found.iter().filter(fails).collect();
    let violations = failing.len() as u64;
    // Groups with the fewest records or persons below K first, then the least diverse.
    failing.sort_by(|one, other| {
        let size = |found: &GroupResult| u64::from(found.size).min(k);
        let least = check.rank(one).total_cmp(&check.rank(other));
        size(one).cmp(&size(other)).then(least)
    });
    let failing_group = |found: &&GroupResult| FailingGroup {
        quasi_identifiers: columns
            .iter()
            .map(|values| values.name(values.at(classes.row[found.group as usize] as usize)))
            .collect(),
        size: u64::from(found.size),
        diversity: found.diversity,
    };
    let least = found
        .iter()
        .min_by(|one, other| check.rank(one).total_cmp(&check.rank(other)));
    let smallest = found.iter().map(|found| u64::from(found.size)).min();
    let smallest = smallest.unwrap_or(0);
    Ok(GroupVerification {
        holds: failing.is_empty(),
        rows: table.rows as u64,
        groups: found.len() as u64,
        smallest_group: smallest,
        smallest_equivalence_class: smallest,
        diversity: least.and_then(|found| found.diversity),
        smallest_range: check.smallest_ranges(&members),
        greatest_confidence: found
            .iter()
            .map(|found| found.confidence)
            .fold(0.0, f64::max),
        missing_sensitive: MissingSensitive::Excluded,
        violations: violations.min(VIOLATION_CAP),
        worst: failing
            .iter()
            .take(WORST_GROUPS)
            .map(failing_group)
            .collect(),
    })
}

/// Checks groups against a group model.
struct GroupModelCheck<'a> {
    model: &'a GroupModel,
    sensitive: &'a [SensitiveColumn<'a>],
    /// The persons of the rows, where K is asked of them.
    persons: Option<&'a Subjects>,
    /// *L_i* of each sensitive column.
    limits: Vec<u32>,
    /// For t-closeness: rows of the table with each value of the one sensitive column, and last
    /// the rows in which it is missing. Empty for other models.
    table_counts: Vec<u64>,
    ranges: Vec<NumberRange<'a>>,
    cancellation: &'a Cancellation,
}

/// A numeric sensitive column whose numbers have to span a range in each group.
struct NumberRange<'a> {
    column: &'a SensitiveColumn<'a>,
    /// The number of each value; `None` for text that is no number.
    numbers: Vec<Option<f64>>,
    least: f64,
}

impl NumberRange<'_> {
    /// The difference of the greatest and the smallest number of these rows; `None` without any.
    fn of(&self, rows: &[u32]) -> Option<f64> {
        let number = |row: &u32| self.numbers[self.column.present(*row as usize)? as usize];
        let mut numbers: Vec<f64> = rows.iter().filter_map(number).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        Some(numbers.last()? - numbers.first()?)
    }

    /// Whether these rows span the range.
    fn is_met(&self, rows: &[u32]) -> bool {
        self.of(rows)
            .is_some_and(|range| spans(0.0, range, self.least))
    }
}

impl<'a> GroupModelCheck<'a> {
    fn new(
        model: &'a GroupModel,
        sensitive: &'a [SensitiveColumn<'a>],
        persons: Option<&'a Subjects>,
        cancellation: &'a Cancellation,
    ) -> Result<Self, VerifyError> {
        let limits = match &model.diversity {
            Diversity::MinimumCover { l, column_limits } => sensitive
                .iter()
                .map(|column| column_limits.get(column.column_name()).copied())
                .map(|limit| limit.unwrap_or(l.get()))
                .collect(),
            _ => Vec::new(),
        };
        let table_counts = match (&model.diversity, sensitive.first()) {
            (Diversity::Closeness { .. }, Some(column)) => {
                let mut rows = vec![0; column.value_count() + 1];
                for row in 0..column.rows() {
                    let value = column.present(row).map(|value| value as usize);
                    rows[value.unwrap_or(column.value_count())] += 1;
                }
                rows
            }
            _ => Vec::new(),
        };
        let ranges = model.min_range.iter().map(|(name, &least)| {
            let column = sensitive.iter().find(|column| column.column_name() == name);
            let column = column.ok_or_else(|| VerifyError::NoSuchColumn {
                column: name.as_str().into(),
            })?;
            Ok(NumberRange {
                numbers: column.numbers(),
                column,
                least,
            })
        });
        Ok(Self {
            ranges: ranges.collect::<Result<_, VerifyError>>()?,
            model,
            sensitive,
            persons,
            limits,
            table_counts,
            cancellation,
        })
    }

    /// By column, the smallest range of a group.
    fn smallest_ranges(&self, groups: &Lists<u32>) -> BTreeMap<String, Option<f64>> {
        let smallest = self.ranges.iter().map(|range| {
            // A group without numbers is the narrowest.
            let found = groups.iter().map(|rows| range.of(rows));
            let found = found.min_by(|one, other| {
                let width = |range: &Option<f64>| range.unwrap_or(-1.0);
                width(one).total_cmp(&width(other))
            });
            (range.column.column_name().to_owned(), found.flatten())
        });
        smallest.collect()
    }

    /// The number of a sensitive cell's value, or [`MISSING`].
    fn value(&self, column: usize, row: u32) -> u32 {
        let value = self.sensitive[column].present(row as usize);
        value.unwrap_or(MISSING)
    }

    fn decide(&self, group: u32, rows: &[u32]) -> Result<GroupResult, VerifyError> {
        self.cancellation.check()?;
        let (diversity, diverse) = self.diversity(rows)?;
        let diverse = diverse && self.ranges.iter().all(|range| range.is_met(rows));
        let confidence = (0..self.sensitive.len())
            .map(|column| self.frequencies(column, rows).greatest_share())
            .fold(0.0, f64::max);
        Ok(GroupResult {
            group,
            size: match self.persons {
                Some(persons) => {
                    let mut persons = persons.select(rows);
                    persons.sort_unstable();
                    persons.dedup();
                    persons.len() as u32
                }
                None => rows.len() as u32,
            },
            diversity,
            diverse,
            confidence,
        })
    }

    /// The frequencies of the values of a column.
    fn frequencies(&self, column: usize, rows: &[u32]) -> Frequencies {
        let column = &self.sensitive[column];
        let values = rows.iter().filter_map(|&row| column.present(row as usize));
        Frequencies::count(values.collect())
    }

    /// A group's diversity, and whether it meets the model.
    fn diversity(&self, rows: &[u32]) -> Result<(Option<f64>, bool), VerifyError> {
        let frequencies = || self.frequencies(0, rows);
        Ok(match &self.model.diversity {
            Diversity::None => (None, true),
            Diversity::MinimumCover { l, .. } => {
                let width = self.sensitive.len();
                let cells: Vec<u32> = rows
                    .iter()
                    .flat_map(|&row| (0..width).map(move |column| self.value(column, row)))
                    .collect();
                let records = cells.chunks(width.max(1));
                let fewest =
                    MinimumCover::new(records, &self.limits, self.cancellation).fewest(l.get())?;
                (Some(f64::from(fewest)), fewest >= l.get())
            }
            Diversity::Distinct { l } => {
                let distinct = frequencies().distinct();
                (Some(distinct), distinct >= f64::from(l.get()))
            }
            Diversity::Entropy { l } => {
                let found = frequencies();
                (Some(found.effective_count()), found.has_entropy(*l))
            }
            Diversity::Recursive { c, l } => {
                let (head, tail) = frequencies().head_and_tail(l.get());
                let ratio = (tail > 0).then(|| head as f64 / tail as f64);
                (ratio, c.times_exceeds(tail, head))
            }
            Diversity::Closeness { t } => {
                // Missing counts as a value in one distance, so that a group with an unusual share
                // of missing values does not pass. It is left out of the other, so that missing
                // values do not hide that the known ones differ from the table's.
                let missing = self.table_counts.len() as u32 - 1;
                let values = rows.iter().map(|&row| self.value(0, row).min(missing));
                let values: Vec<u32> = values.collect();
                let known: Vec<u32> = values.iter().copied().filter(|&it| it != missing).collect();
                let total: u64 = self.table_counts.iter().sum();
                let total_known = total - self.table_counts[missing as usize];
                let distances = [(&values, total), (&known, total_known)]
                    .map(|(values, total)| distance(values, &self.table_counts, total));
                let greatest = distances
                    .iter()
                    .filter(|(_, denominator)| *denominator > 0)
                    .map(|&(numerator, denominator)| numerator as f64 / denominator as f64)
                    .fold(0.0, f64::max);
                (
                    Some(greatest),
                    distances
                        .iter()
                        .all(|&(numerator, denominator)| !t.is_exceeded_by(numerator, denominator)),
                )
            }
        })
    }

    /// The diversity as a rank: the lower, the less diverse.
    fn rank(&self, found: &GroupResult) -> f64 {
        match self.model.diversity {
            Diversity::Recursive { .. } => -found.diversity.unwrap_or(f64::INFINITY),
            Diversity::Closeness { .. } => -found.diversity.unwrap_or(0.0),
            _ => found.diversity.unwrap_or(0.0),
        }
    }
}

/// For each value of a group, the number of rows with it, in descending order.
struct Frequencies(Vec<u64>);

impl Frequencies {
    /// Counts the values of a group; `values` must not contain missing ones.
    fn count(mut values: Vec<u32>) -> Self {
        values.sort_unstable();
        let runs = values.chunk_by(|one, other| one == other);
        let mut counts: Vec<u64> = runs.map(|run| run.len() as u64).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        Self(counts)
    }

    /// The share of the most frequent value; 0 without values.
    fn greatest_share(&self) -> f64 {
        let total: u64 = self.0.iter().sum();
        self.0
            .first()
            .map_or(0.0, |&most| most as f64 / total as f64)
    }

    /// Number of distinct values.
    fn distinct(&self) -> f64 {
        self.0.len() as f64
    }

    /// The number of equally frequent values that have the same entropy; 0 without values.
    fn effective_count(&self) -> f64 {
        let total: u64 = self.0.iter().sum();
        let share = |count: &u64| *count as f64 / total as f64;
        let counts = self.0.iter();
        let entropy: f64 = counts.map(|count| -share(count) * share(count).ln()).sum();
        if total == 0 { 0.0 } else { entropy.exp() }
    }

    /// Whether the entropy is at least that of `l` equally frequent values.
    fn has_entropy(&self, l: f64) -> bool {
        !self.0.is_empty() && self.effective_count().ln() >= l.ln() - ROUNDING
    }

    /// Rows with the most frequent value, and rows with the `l`-th most frequent and all after it.
    fn head_and_tail(&self, l: u32) -> (u64, u64) {
        let head = self.0.first().copied().unwrap_or(0);
        (head, self.0.iter().skip(l as usize - 1).sum())
    }
}

/// The distance of a group's value distribution from that of the table, as an exact fraction
/// (numerator, denominator). The distance is the sum of the positive differences of shares; the
/// denominator is the rows of the group times those of the table. `table_counts` has the rows
/// of the table with each value, and `total` is their sum.
fn distance(group: &[u32], table_counts: &[u64], total: u64) -> (u64, u64) {
    let mut values = group.to_vec();
    values.sort_unstable();
    let size = group.len() as u64;
    let surplus = values.chunk_by(|one, other| one == other).map(|run| {
        let expected = table_counts[run[0] as usize] * size;
        (run.len() as u64 * total).saturating_sub(expected)
    });
    (surplus.sum(), size * total)
}
