//! The check whether rows of the table meet the group model. It tries fast heuristics first and
//! never accepts a group that violates the model.
//!
//! "Yes" is proven; "no" may only mean that the budget of the exact search ran out. The verifier
//! checks the release independently.

use std::sync::Arc;

use pais_core::model::{Diversity, GroupModel, Lkc, PrivacyModel, spans};
use pais_core::table::{EncodedTable, SensitiveColumn, SubjectCounter, Subjects};
use pais_core::taxonomy::interval::number;

use super::confidence::{ConfidenceCheck, Tally};
use super::frequency::{CodeCounts, FrequencyCheck};
use super::minimum_cover::{CoverChecker, LimitedColumn, SensitiveCodes};

/// The model that every group must meet, with the sensitive values of the table.
pub(super) struct Condition {
    /// *K*, the minimum number of rows of a group.
    pub k: usize,
    /// The person of each row, where *K* counts persons and some person has several rows.
    pub(super) subjects: Option<Arc<Subjects>>,
    pub(super) diversity: DiversityCheck,
    /// The minimum ranges of numeric sensitive columns.
    pub(super) ranges: Vec<RangeCheck>,
}

/// The minimum range of the numbers of a group in a sensitive column.
pub(super) struct RangeCheck {
    pub(super) column: Box<str>,
    pub(super) least: f64,
    /// By row; `None` where it is missing.
    numbers: Vec<Option<f64>>,
}

impl RangeCheck {
    fn new(column: &SensitiveColumn, least: f64) -> Self {
        let numbers: Vec<Option<f64>> = column.values.iter().map(|text| number(text)).collect();
        let of_code = |code: &u32| numbers.get(*code as usize).copied().flatten();
        Self {
            column: column.name.clone(),
            least,
            numbers: column.codes.iter().map(of_code).collect(),
        }
    }

    /// Whether these rows span it. Missing cells span nothing.
    pub(super) fn accepts(&self, rows: &[u32]) -> bool {
        let numbers = rows.iter().filter_map(|&row| self.numbers[row as usize]);
        let (least, greatest) = numbers.fold((f64::MAX, f64::MIN), |(least, greatest), number| {
            (number.min(least), number.max(greatest))
        });
        least <= greatest && spans(least, greatest, self.least)
    }
}

/// The requirement on the sensitive values of a group.
pub(super) enum DiversityCheck {
    /// K-anonymity alone.
    None,
    /// The minimum cover of the group's records by sensitive values has at least *L* values
    /// (Definitions 6 and 7).
    MinimumCover(SensitiveCodes),
    /// A bound on the frequencies of one sensitive column.
    Frequency(FrequencyCheck),
    /// *C*, a bound on the shares of sensitive values of any column.
    Confidence(ConfidenceCheck),
}

impl Condition {
    /// The condition of a model on a table. Under LKC-privacy it is required of the groups over all
    /// quasi-identifiers, which is enough for any *L*. Without a bound on confidences it is k-anonymity; a
    /// table has no k^m-anonymity by groups.
    pub(super) fn of_table(model: &PrivacyModel, table: &EncodedTable) -> Self {
        let condition = match model {
            PrivacyModel::Groups(model) => Self::new(model, &table.sensitive, table.rows),
            PrivacyModel::Lkc(model) => Self::of_lkc(model, table),
            PrivacyModel::KmAnonymity(model) => Self::with(model.k.get(), DiversityCheck::None),
        };
        Self {
            subjects: table.subjects.clone(),
            ..condition
        }
    }

    fn of_lkc(model: &Lkc, table: &EncodedTable) -> Self {
        let check = ConfidenceCheck::new(model, table);
        let diversity = check.map_or(DiversityCheck::None, DiversityCheck::Confidence);
        Self::with(model.k.get(), diversity)
    }

    fn with(k: u64, diversity: DiversityCheck) -> Self {
        Self {
            // A table has fewer than 2³² rows, so no table meets a greater K.
            k: usize::try_from(k).unwrap_or(usize::MAX),
            subjects: None,
            diversity,
            ranges: Vec::new(),
        }
    }

    /// The bound on confidences, where the model has one.
    pub(super) fn confidence(&self) -> Option<&ConfidenceCheck> {
        match &self.diversity {
            DiversityCheck::Confidence(check) => Some(check),
            _ => None,
        }
    }

    /// Rows that a group of *K* persons has on average; *K* where rows are counted.
    pub(super) fn typical_rows(&self) -> usize {
        let Some(subjects) = &self.subjects else {
            return self.k;
        };
        let rows = subjects.of_row().len() as f64 / subjects.len().max(1) as f64;
        (rows * self.k as f64) as usize
    }

    /// The condition of a model on a table with these sensitive columns and this many rows, each
    /// of a person of its own.
    fn new(model: &GroupModel, sensitive: &[SensitiveColumn], rows: usize) -> Self {
        let diversity = match &model.diversity {
            Diversity::None => DiversityCheck::None,
            Diversity::MinimumCover { l, column_limits } => {
                let columns = sensitive.iter().map(|column| {
                    let limit = column_limits.get(&*column.name).copied();
                    let limit = limit.unwrap_or(l.get());
                    LimitedColumn { column, limit }
                });
                let columns: Vec<_> = columns.collect();
                DiversityCheck::MinimumCover(SensitiveCodes::new(l.get(), &columns, rows))
            }
            // The plan ensures that there is exactly one sensitive column.
            model => sensitive
                .first()
                .and_then(|column| FrequencyCheck::new(model, column))
                .map_or(DiversityCheck::None, DiversityCheck::Frequency),
        };
        let ranges = sensitive.iter().filter_map(|column| {
            let least = model.min_range.get(&*column.name)?;
            Some(RangeCheck::new(column, *least))
        });
        Self {
            ranges: ranges.collect(),
            ..Self::with(model.k.get(), diversity)
        }
    }
}

/// Checks whether groups meet a condition. Each thread has its own, because it holds working
/// space.
pub(super) struct GroupChecker<'a> {
    pub(super) condition: &'a Condition,
    pub(super) cover: CoverChecker,
    counts: CodeCounts,
    tally: Tally,
    persons: Option<SubjectCounter>,
}

impl<'a> GroupChecker<'a> {
    /// A checker for groups under a condition.
    pub(super) fn new(condition: &'a Condition) -> Self {
        let (values, codes) = match &condition.diversity {
            DiversityCheck::None | DiversityCheck::Confidence(_) => (0, 0),
            DiversityCheck::MinimumCover(sensitive) => (sensitive.value_count(), 0),
            DiversityCheck::Frequency(check) => (0, check.code_count()),
        };
        Self {
            condition,
            cover: CoverChecker::new(values),
            counts: CodeCounts::new(codes),
            tally: (condition.confidence()).map_or_else(Tally::default, |it| it.empty_tally()),
            persons: (condition.subjects.as_ref()).map(|it| SubjectCounter::new(it.codes())),
        }
    }

    /// Whether this many rows are at least *K*. They can still be rows of fewer persons.
    #[inline]
    pub(super) fn has_enough_rows(&self, rows: usize) -> bool {
        rows >= self.condition.k
    }

    /// Whether the condition depends on more than the number of rows.
    pub(super) fn depends_on_rows(&self) -> bool {
        self.persons.is_some()
            || !matches!(self.condition.diversity, DiversityCheck::None)
            || !self.condition.ranges.is_empty()
    }

    /// Whether these rows belong to at least *K* persons.
    fn has_enough_persons(&mut self, rows: &[u32]) -> bool {
        let (Some(subjects), Some(counter)) = (&self.condition.subjects, &mut self.persons) else {
            return self.has_enough_rows(rows.len());
        };
        let k = self.condition.k as u64;
        if rows.len() as u64 >= subjects.sufficient_rows(k) {
            return true;
        }
        let persons = rows.iter().map(|&row| subjects.of_row()[row as usize]);
        rows.len() as u64 >= k && counter.count_up_to(k, persons) >= k
    }

    /// Whether these rows, as one group, are proven to meet the condition.
    pub(super) fn accepts(&mut self, rows: &[u32]) -> bool {
        let ranges = &self.condition.ranges;
        if !self.has_enough_persons(rows) || !ranges.iter().all(|check| check.accepts(rows)) {
            return false;
        }
        match &self.condition.diversity {
            DiversityCheck::None => true,
            DiversityCheck::MinimumCover(sensitive) => self.cover.accepts(sensitive, rows),
            DiversityCheck::Frequency(check) => check.accepts(rows, &mut self.counts),
            DiversityCheck::Confidence(check) => check.accepts(rows, &mut self.tally),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use super::{Condition, DiversityCheck, GroupChecker};
    use crate::methods::partitioning::minimum_cover::tests::sensitive_codes;
    use pais_core::model::{Decimal, Diversity, GroupModel, MinimumAnonymity};
    use pais_core::table::{NULL_CODE, SensitiveColumn};

    /// Whether all of these records together are accepted as one group.
    pub(crate) fn accepts<const M: usize>(records: &[[u32; M]], l: u32, limits: &[u32; M]) -> bool {
        let condition = Condition {
            k: 1,
            subjects: None,
            diversity: DiversityCheck::MinimumCover(sensitive_codes(records, l, limits)),
            ranges: Vec::new(),
        };
        let rows: Vec<u32> = (0..records.len() as u32).collect();
        GroupChecker::new(&condition).accepts(&rows)
    }

    /// Figure 4: diversity 3 without limits, 4 with the limits (4, 2).
    #[test]
    fn limits_raise_the_diversity_of_figure_4() {
        let group = [[0, 0], [1, 0], [2, 1], [3, 1], [4, 2], [5, 2]];
        assert!(accepts(&group, 3, &[3, 3]));
        assert!(!accepts(&group, 4, &[4, 4]));
        assert!(accepts(&group, 4, &[4, 2]));
        assert!(!accepts(&group, 5, &[5, 2]));
    }

    #[test]
    fn a_missing_value_does_not_count_towards_diversity() {
        assert!(!accepts(&[[0, NULL_CODE], [1, 0]], 2, &[2, 2]));
        // The second column has a limit of 0, so its values do not matter.
        assert!(accepts(&[[0, NULL_CODE], [1, 0]], 2, &[2, 0]));
        assert!(accepts(&[[NULL_CODE]], 2, &[0]));
        assert!(!accepts(&[[NULL_CODE]], 1, &[1]));
    }

    /// Whether rows with these values, of a table with others too, meet a model of diversity.
    fn is_diverse(model: Diversity, others: &[u32], group: &[u32]) -> bool {
        let column = SensitiveColumn {
            name: "s".into(),
            position: 0,
            values: vec!["".into(); 3],
            codes: group.iter().chain(others).copied().collect(),
        };
        let model = GroupModel {
            k: MinimumAnonymity::MIN,
            diversity: model,
            min_range: BTreeMap::new(),
        };
        let rows = column.codes.len();
        let condition = Condition::new(&model, &[column], rows);
        let rows: Vec<u32> = (0..group.len() as u32).collect();
        GroupChecker::new(&condition).accepts(&rows)
    }

    /// Rows without a sensitive value make a group neither more diverse nor closer to the table.
    #[test]
    fn a_missing_sensitive_cell_protects_nobody() {
        let decimal = |number: f64| Decimal::fraction(number).unwrap();
        let l = NonZeroU32::new(2).unwrap();
        let missing = [NULL_CODE; 6];
        for model in [
            Diversity::MinimumCover {
                l,
                column_limits: BTreeMap::new(),
            },
            Diversity::Distinct { l },
            Diversity::Entropy { l: 1.9 },
            Diversity::Recursive { c: decimal(0.9), l },
        ] {
            let is_diverse = |group: &[u32]| is_diverse(model.clone(), &[], group);
            assert!(is_diverse(&[0, 1, 2]), "{model:?}");
            for group in [&[0, 1, 2][..], &[0, 0, 0], &[0], &[]] {
                let with_missing = [group, &missing].concat();
                let without = !group.is_empty() && is_diverse(group);
                assert_eq!(is_diverse(&with_missing), without, "{model:?} {group:?}");
            }
        }
        let close = Diversity::Closeness { t: decimal(0.3) };
        // One value where the table has two, each half of its known ones: the distance is 1/2.
        assert!(!is_diverse(close.clone(), &[1, 1], &[0, 0]));
        // Missing cells on both sides would halve it.
        let others = [1, 1, NULL_CODE, NULL_CODE];
        assert!(!is_diverse(
            close.clone(),
            &others,
            &[0, 0, NULL_CODE, NULL_CODE]
        ));
        assert!(is_diverse(close.clone(), &others, &[0, 1, NULL_CODE]));
        // Nor may missing cells be recognizable: their share is 3/3 here and 3/6 in the table.
        assert!(!is_diverse(close, &[0, 1, 0], &[NULL_CODE; 3]));
    }
}
