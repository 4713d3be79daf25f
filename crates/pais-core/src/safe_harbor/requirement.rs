//! What the Safe Harbor method of HIPAA requires of a column that is released, and how far a hierarchy
//! has to generalize it for that.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::definition::{ColumnKind, ColumnRole, PreGeneralization};
use crate::schema::SchemaColumn;
use crate::taxonomy::{Interval, MinimumLevels, NodeId, Scale, Tree};

use super::SafeHarborCategory;

/// The highest age that may be released unchanged.
const GREATEST_AGE: f64 = 89.0;

/// Whole numbers in this range are taken as years.
const YEARS: RangeInclusive<f64> = 1000.0..=2200.0;

/// Maximum number of digits of a ZIP code that may be released.
const ZIP_DIGITS: usize = 3;

/// What Safe Harbor requires of a column beyond what happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SafeHarborRequirement {
    /// The column must not be released.
    RemoveColumn,
    /// Places smaller than a state must not be released.
    StateOrLarger,
    /// Of a ZIP code at most three digits may be released.
    ThreeDigits,
    /// Of a date only the year may be released.
    YearOnly,
    /// Ages over 89 must be one group of 90 or older.
    #[serde(rename = "ages_over_89")]
    AgesOver89,
    /// To be checked: more than 20,000 people live in each area of three digits; the digits of others
    /// are 000.
    Population,
    /// To be checked: no released year tells an age over 89.
    #[serde(rename = "years_of_ages_over_89")]
    YearsOfAgesOver89,
    /// To be checked: what the labels mean, which the service does not know.
    MeaningOfLabels,
}

impl SafeHarborRequirement {
    /// Whether only a person can say if it is met.
    pub fn is_to_check(self) -> bool {
        matches!(
            self,
            Self::Population | Self::YearsOfAgesOver89 | Self::MeaningOfLabels
        )
    }
}

/// How a column can be released under Safe Harbor.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SafeHarborAdvice {
    /// The category that it belongs to by its name and declaration.
    pub category: SafeHarborCategory,
    /// Of a quasi-identifier with a hierarchy, or with labels: the lowest `level` of a job's
    /// `pre_generalization` whose labels the rule permits. That of the root says nothing.
    pub level: Option<u32>,
    /// What the rule requires beyond that level; without a level, of the column as it is.
    pub missing: Vec<SafeHarborRequirement>,
}

/// The labels of a column of a category of Safe Harbor.
#[derive(Clone, Copy, Debug)]
pub struct SafeHarborLabels<'a> {
    /// As it is declared.
    pub spec: &'a SchemaColumn,
    /// The informative labels: neither missing nor the root.
    pub labels: &'a [&'a str],
    /// Whether they are the values themselves.
    pub is_exact: bool,
}

impl SafeHarborLabels<'_> {
    /// What the rule requires beyond releasing these labels.
    pub fn missing(self, category: SafeHarborCategory) -> Vec<SafeHarborRequirement> {
        match category {
            SafeHarborCategory::GeographicSubdivisions => self.missing_of_places(),
            SafeHarborCategory::Dates => self.missing_of_dates(),
            _ => vec![SafeHarborRequirement::RemoveColumn],
        }
    }

    /// The unmet requirements of places: for postal codes the population check and, above three digits,
    /// the truncation. The meaning of other labels is unknown, but unchanged values are smaller than a state.
    fn missing_of_places(self) -> Vec<SafeHarborRequirement> {
        let is_part =
            |character: char| character.is_ascii_digit() || matches!(character, '*' | '-' | ' ');
        let digits = |label: &&str| label.chars().filter(char::is_ascii_digit).count();
        let is_code = |label: &&str| label.chars().all(is_part) && digits(label) > 0;
        let is_of_codes = self.spec.is_of_postal_codes() && self.labels.iter().all(is_code);
        if self.labels.is_empty() || !is_of_codes {
            return vec![self.unknown_or(SafeHarborRequirement::StateOrLarger)];
        }
        let is_long = self.labels.iter().any(|label| digits(label) > ZIP_DIGITS);
        let longer = is_long.then_some(SafeHarborRequirement::ThreeDigits);
        longer
            .into_iter()
            .chain([SafeHarborRequirement::Population])
            .collect()
    }

    /// The unmet requirements of dates and ages. Numbers are ages only if the column name means ages.
    fn missing_of_dates(self) -> Vec<SafeHarborRequirement> {
        let on = |scale| {
            let intervals = self.labels.iter();
            let intervals = intervals.map(|label| Interval::of_label(label, scale));
            intervals
                .collect::<Option<Vec<Interval>>>()
                .filter(|found| !found.is_empty())
        };
        let is_of_dates = matches!(self.spec.kind(), ColumnKind::Date | ColumnKind::Datetime);
        // Ages that are made of dates are numbers.
        if is_of_dates && let Some(found) = on(self.spec.scale()) {
            let is_year = found.iter().all(Interval::is_of_whole_years);
            let finer = (!is_year).then_some(SafeHarborRequirement::YearOnly);
            return finer
                .into_iter()
                .chain([SafeHarborRequirement::YearsOfAgesOver89])
                .collect();
        }
        let numbers = on(Scale::Number);
        if self.spec.is_of_ages() {
            let Some(ages) = numbers else {
                return vec![self.unknown_or(SafeHarborRequirement::AgesOver89)];
            };
            let fits = ages_over_89_are_one_group(self.spec, &ages);
            let missing = (!fits).then_some(SafeHarborRequirement::AgesOver89);
            return missing.into_iter().collect();
        }
        let is_year = |end: f64| end.fract() == 0.0 && YEARS.contains(&end);
        let are_years =
            |found: Vec<Interval>| found.iter().all(|it| is_year(it.lo) && is_year(it.hi));
        if numbers.is_some_and(are_years) {
            vec![SafeHarborRequirement::YearsOfAgesOver89]
        } else {
            vec![self.unknown_or(SafeHarborRequirement::YearOnly)]
        }
    }

    /// The requirement for labels of unknown meaning: exact values must meet `required`.
    fn unknown_or(self, required: SafeHarborRequirement) -> SafeHarborRequirement {
        if self.is_exact {
            required
        } else {
            SafeHarborRequirement::MeaningOfLabels
        }
    }
}

/// Whether no label reveals an age over 89: labels that reach beyond 89 begin at 90 or below, and have a common
/// end, which is not the highest age of the rows.
fn ages_over_89_are_one_group(spec: &SchemaColumn, ages: &[Interval]) -> bool {
    let last = |age: &Interval| if age.closed { age.hi } else { age.hi - 1.0 };
    let mut over = ages.iter().filter(|age| last(age) > GREATEST_AGE);
    let Some(first) = over.next() else {
        return true;
    };
    let is_declared = spec.tree().is_some() || spec.domain().is_some_and(|(_, hi)| hi == first.hi);
    let is_one_group =
        |age: &Interval| age.lo <= GREATEST_AGE + 1.0 && age.hi == first.hi && age.lo < age.hi;
    is_declared && is_one_group(first) && over.all(is_one_group)
}

/// Level of the root `*` of a column without a hierarchy.
const FLAT_ROOT: u32 = 1;

impl SafeHarborAdvice {
    /// The advice for a column that has these values; `None` for a column of no category. The
    /// declaration has the hierarchy that is made for a run.
    pub fn new(spec: &SchemaColumn, values: &[&str]) -> Option<Self> {
        let category = spec.safe_harbor()?;
        let missing = |labels: &[&str], is_exact| {
            let labels = SafeHarborLabels {
                spec,
                labels,
                is_exact,
            };
            labels.missing(category)
        };
        let as_it_is = || Self {
            category,
            level: None,
            missing: missing(values, true),
        };
        let at = |level, missing| Self {
            category,
            level: Some(level),
            missing,
        };
        if spec.role() != ColumnRole::QuasiIdentifier || spec.is_balanced() {
            return Some(as_it_is());
        }
        let Some(tree) = spec.tree() else {
            let as_it_is = as_it_is();
            return Some(if spec.has_grown_intervals() {
                as_it_is
            } else if is_known_to_fit(&as_it_is.missing) {
                at(0, as_it_is.missing)
            } else {
                at(FLAT_ROOT, Vec::new())
            });
        };
        let root = tree.node(NodeId::ROOT).level;
        let fitting = (0..root).find_map(|level| {
            let missing = missing(&labels_at(tree, level), level == 0);
            is_known_to_fit(&missing).then(|| at(level, missing))
        });
        Some(fitting.unwrap_or_else(|| at(root, Vec::new())))
    }
}

/// Whether the labels are known to be permitted, apart from checks that a person has to make.
fn is_known_to_fit(missing: &[SafeHarborRequirement]) -> bool {
    let is_open = |it: &SafeHarborRequirement| {
        !it.is_to_check() || *it == SafeHarborRequirement::MeaningOfLabels
    };
    !missing.iter().any(is_open)
}

/// The labels of the leaves at a level of pre-generalization, without the root.
fn labels_at(tree: &Tree, level: u32) -> Vec<&str> {
    let description = PreGeneralization {
        level,
        ..PreGeneralization::default()
    };
    let Ok(levels) = MinimumLevels::new(tree, &description) else {
        return Vec::new();
    };
    let floors: BTreeSet<NodeId> = (0..tree.leaf_count() as u32)
        .map(|leaf| levels.level_of(leaf))
        .collect();
    let said = floors.into_iter().filter(|&node| node != NodeId::ROOT);
    said.map(|node| &*tree.node(node).label).collect()
}
