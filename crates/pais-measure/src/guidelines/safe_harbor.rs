//! What happened to the 18 categories of HIPAA Safe Harbor, 45 CFR 164.514(b)(2)(i), and what they still
//! require.

use pais_core::definition::ColumnRole;
use pais_core::safe_harbor::{SafeHarborCategory, SafeHarborLabels, SafeHarborRequirement};
use pais_core::schema::SchemaColumn;
use pais_core::table::{ReleasedColumn, ValueCounts};
use pais_core::taxonomy::{MISSING_LABEL, SUPPRESSED_LABEL};
use pais_verify::VerifyError;
use serde::{Deserialize, Serialize};

use crate::release::{MeasuredRelease, ReleaseRecoding};

/// The 18 categories of identifiers of HIPAA Safe Harbor.
///
/// A column is recognized by its name and how it is declared, and one that is released unchanged and
/// is a key of the released rows as a code of its own (R). What else is in a column that is not
/// recognized, such as a name in a text, is not seen. Safe Harbor also requires that the holder has
/// no actual knowledge that a person could be identified (164.514(b)(2)(ii)), which is not decided
/// here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SafeHarbor {
    /// One for each category, (A) to (R).
    pub categories: Vec<SafeHarborCategoryFinding>,
    /// Released columns that were recognized as of no category: for a person to look at.
    pub unrecognized: Vec<String>,
}

/// What became of one category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SafeHarborCategoryFinding {
    /// Its letter in 164.514(b)(2)(i), `A` to `R`.
    pub letter: char,
    /// The category.
    pub category: SafeHarborCategory,
    /// What the rule lists, in few words.
    pub title: String,
    /// What was found.
    pub finding: SafeHarborFinding,
    /// Its columns.
    pub columns: Vec<SafeHarborColumn>,
}

/// What was found of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SafeHarborFinding {
    /// No column was recognized as of it, which does not say that there is none.
    NoColumnRecognized,
    /// No column of it is in the release, or each says nothing any more.
    Removed,
    /// Its columns are released in a form that the rule permits.
    Permitted,
    /// The rule permits the form if what `columns[].missing` names is true, which a person has to check.
    ToCheck,
    /// Something is missing.
    Missing,
}

/// A column of a category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SafeHarborColumn {
    /// Its name.
    pub name: String,
    /// What happened to it.
    pub outcome: ColumnOutcome,
    /// What the rule requires beyond that.
    pub missing: Vec<SafeHarborRequirement>,
}

/// What happened to a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ColumnOutcome {
    /// It is not released.
    Dropped,
    /// One label for all rows.
    OneLabel,
    /// Generalized.
    Generalized,
    /// Released as it is; of an anatomized release by group.
    Unchanged,
}

impl SafeHarbor {
    /// # Errors
    /// [`VerifyError::Stopped`].
    pub(super) fn new(
        release: &MeasuredRelease,
        frequencies: &[Vec<u64>],
    ) -> Result<Self, VerifyError> {
        let mut of: Vec<Vec<SafeHarborColumn>> = vec![Vec::new(); SafeHarborCategory::ALL.len()];
        let mut unrecognized = Vec::new();
        for spec in &release.schema.columns {
            release.cancellation.check()?;
            let columns = release.table.columns.iter().zip(frequencies);
            let mut columns = columns.map(|(column, rows)| CountedColumn { column, rows });
            let released = columns.find(|it| *it.column.name == *spec.name());
            let column = Column {
                spec,
                released,
                is_exact: spec.role() != ColumnRole::QuasiIdentifier
                    || release.recoding == ReleaseRecoding::Anatomized,
            };
            match column.category() {
                Some(category) => of[category as usize].push(column.found(category)),
                None => unrecognized.push(spec.name().to_owned()),
            }
        }
        let categories = SafeHarborCategory::ALL.into_iter().zip(of);
        let categories = categories.map(|(category, columns)| SafeHarborCategoryFinding {
            letter: category.letter(),
            category,
            title: category.title().to_owned(),
            finding: finding(&columns),
            columns,
        });
        Ok(Self {
            categories: categories.collect(),
            unrecognized,
        })
    }
}

/// A released column with the number of rows of each code.
#[derive(Clone, Copy)]
struct CountedColumn<'a> {
    column: &'a ReleasedColumn,
    rows: &'a [u64],
}

/// A declared column, and as it is released.
#[derive(Clone, Copy)]
struct Column<'a> {
    spec: &'a SchemaColumn,
    /// `None` where the main table does not have it.
    released: Option<CountedColumn<'a>>,
    /// Whether it is released unchanged.
    is_exact: bool,
}

impl<'a> Column<'a> {
    /// The category that follows from its declaration. An unchanged column that is a key of the rows is a code
    /// of its own.
    fn category(self) -> Option<SafeHarborCategory> {
        let is_key = |CountedColumn { column, rows }: CountedColumn<'_>| {
            ValueCounts::of_counted(self.spec, &column.column, rows).is_key()
        };
        let is_code = || self.is_exact && self.released.is_some_and(is_key);
        let declared = self.spec.safe_harbor();
        declared.or_else(|| is_code().then_some(SafeHarborCategory::OtherIdentifiers))
    }

    fn is_dropped(self) -> bool {
        matches!(
            self.spec.role(),
            ColumnRole::Identifier | ColumnRole::Subject
        )
    }

    fn found(self, category: SafeHarborCategory) -> SafeHarborColumn {
        let labels = self.labels();
        let outcome = if self.is_dropped() {
            ColumnOutcome::Dropped
        } else if self.is_exact {
            ColumnOutcome::Unchanged
        } else if labels.is_empty() {
            ColumnOutcome::OneLabel
        } else {
            ColumnOutcome::Generalized
        };
        let missing = match outcome {
            ColumnOutcome::Dropped | ColumnOutcome::OneLabel => Vec::new(),
            ColumnOutcome::Generalized | ColumnOutcome::Unchanged => {
                let labels = SafeHarborLabels {
                    spec: self.spec,
                    labels: &labels,
                    is_exact: self.is_exact,
                };
                labels.missing(category)
            }
        };
        SafeHarborColumn {
            name: self.spec.name().to_owned(),
            outcome,
            missing,
        }
    }

    /// The informative released labels.
    fn labels(self) -> Vec<&'a str> {
        let root = self.spec.tree().map(|tree| &*tree.nodes()[0].label);
        let root = root.filter(|_| !self.is_exact);
        let says_nothing = |label: &str| {
            [MISSING_LABEL, SUPPRESSED_LABEL].contains(&label)
                || Some(label) == root
                || self.spec.is_missing(label)
        };
        let labels = self
            .released
            .map(|it| it.column.labels_with_rows(it.rows))
            .unwrap_or_default();
        labels
            .into_iter()
            .filter(|label| !says_nothing(label))
            .collect()
    }
}

fn finding(columns: &[SafeHarborColumn]) -> SafeHarborFinding {
    let is_gone = |column: &SafeHarborColumn| {
        matches!(
            column.outcome,
            ColumnOutcome::Dropped | ColumnOutcome::OneLabel
        )
    };
    let missing = || columns.iter().flat_map(|column| &column.missing);
    if columns.is_empty() {
        SafeHarborFinding::NoColumnRecognized
    } else if missing().any(|it| !it.is_to_check()) {
        SafeHarborFinding::Missing
    } else if missing().next().is_some() {
        SafeHarborFinding::ToCheck
    } else if columns.iter().all(is_gone) {
        SafeHarborFinding::Removed
    } else {
        SafeHarborFinding::Permitted
    }
}

#[cfg(test)]
mod tests {
    use pais_core::table::Form;
    use serde_json::{Value, json};

    use super::*;
    use crate::test_data::schema;

    /// The finding of a column with these labels.
    fn missing(
        declared: Value,
        category: SafeHarborCategory,
        labels: &[&str],
    ) -> (ColumnOutcome, Vec<SafeHarborRequirement>) {
        let schema = schema(json!([declared]));
        let released = ReleasedColumn {
            name: schema.columns[0].name().into(),
            form: Form::Generalized,
            column: pais_core::table::Column {
                dictionary: labels.iter().map(|&label| label.into()).collect(),
                codes: (0..labels.len() as u32).collect(),
            },
            missing: Vec::new(),
        };
        let spec = &schema.columns[0];
        let column = Column {
            spec,
            released: Some(CountedColumn {
                column: &released,
                rows: &released.column.row_counts(),
            }),
            is_exact: spec.role() != ColumnRole::QuasiIdentifier,
        };
        let found = column.found(category);
        (found.outcome, found.missing)
    }

    fn quasi_identifier(name: &str, extra: Value) -> Value {
        let mut column = json!({"name": name, "role": "quasi_identifier"});
        for (field, value) in extra.as_object().unwrap() {
            column[field] = value.clone();
        }
        column
    }

    /// 164.514(b)(2)(i)(C): all ages over 89, except as a single category of age 90 or older.
    #[test]
    fn ages_over_89_have_to_be_one_group_of_90_or_older() {
        let domain = json!({"kind": "numeric", "domain": [0, 120]});
        let free = json!({"kind": "numeric"});
        for (extra, labels, fits) in [
            (&domain, &["[0,90)", "[90,120]"][..], true),
            (&domain, &["[0,60)", "[60,120]"], true),
            (&domain, &["[0,60)", "[60,100)", "[100,120]"], false),
            (&domain, &["[0,95)", "[95,120]"], false),
            (&free, &["[0,40)", "[40,89]"], true),
            (&free, &["[0,40)", "[40,93]"], false),
            (&free, &["[40,89]", "[60,93]"], false),
            (&free, &["91", "17"], false),
            (&free, &["?", "17"], true),
        ] {
            let declared = quasi_identifier("age", extra.clone());
            let (outcome, found) = missing(declared, SafeHarborCategory::Dates, labels);
            assert_eq!(outcome, ColumnOutcome::Generalized);
            let expected = if fits {
                vec![]
            } else {
                vec![SafeHarborRequirement::AgesOver89]
            };
            assert_eq!(found, expected, "{labels:?} {extra}");
        }
    }

    /// The same paragraph: all elements of dates, except the year.
    #[test]
    fn dates_have_to_be_years() {
        let date = || quasi_identifier("admitted", json!({"kind": "date"}));
        for (labels, expected) in [
            (
                &["1987", "1990s"][..],
                vec![SafeHarborRequirement::YearsOfAgesOver89],
            ),
            (
                &["[1987-01-01,1990-01-01)"],
                vec![SafeHarborRequirement::YearsOfAgesOver89],
            ),
            (
                &["1987-Q3"],
                vec![
                    SafeHarborRequirement::YearOnly,
                    SafeHarborRequirement::YearsOfAgesOver89,
                ],
            ),
            (
                &["[1987-02-03,1990-01-01)"],
                vec![
                    SafeHarborRequirement::YearOnly,
                    SafeHarborRequirement::YearsOfAgesOver89,
                ],
            ),
            // Not known to be ages.
            (
                &["[85,90)", "[90,95)"],
                vec![SafeHarborRequirement::MeaningOfLabels],
            ),
        ] {
            assert_eq!(
                missing(date(), SafeHarborCategory::Dates, labels).1,
                expected,
                "{labels:?}"
            );
        }
        let exact = json!({"name": "admitted", "role": "insensitive", "kind": "date"});
        let (outcome, found) = missing(exact, SafeHarborCategory::Dates, &["1987-09-03"]);
        assert_eq!(
            (outcome, found[0]),
            (ColumnOutcome::Unchanged, SafeHarborRequirement::YearOnly)
        );
        let made = json!({"kind": "date", "taxonomy": {"generate": "age", "at": "2026-01-01"}});
        let ages = missing(
            quasi_identifier("admitted", made),
            SafeHarborCategory::Dates,
            &["[85,90)", "[90,95)"],
        );
        assert_eq!(ages.1, [SafeHarborRequirement::AgesOver89]);
        let words = missing(
            quasi_identifier("age", json!({})),
            SafeHarborCategory::Dates,
            &["old"],
        );
        assert_eq!(words.1, [SafeHarborRequirement::MeaningOfLabels]);
    }

    /// The size of a number does not make it a year or an age.
    #[test]
    fn numbers_are_years_or_ages_only_where_that_is_known() {
        let of = |name: &str, role: &str, labels: &[&str]| {
            let declared = json!({"name": name, "role": role, "kind": "numeric"});
            missing(declared, SafeHarborCategory::Dates, labels).1
        };
        let years = [SafeHarborRequirement::YearsOfAgesOver89];
        assert_eq!(
            of("birth", "quasi_identifier", &["[1950,1960)", "1987"]),
            years
        );
        assert_eq!(of("birth", "insensitive", &["1987"]), years);
        for other in ["19870903", "32000", "1987.5", "3"] {
            let exact = of("birth", "insensitive", &[other, "1987"]);
            assert_eq!(exact, [SafeHarborRequirement::YearOnly], "{other}");
            let generalized = of("birth", "quasi_identifier", &[other, "1987"]);
            assert_eq!(
                generalized,
                [SafeHarborRequirement::MeaningOfLabels],
                "{other}"
            );
        }
        assert_eq!(of("age", "insensitive", &["17"]), []);
        // The values of a table of its own are not seen.
        let unseen = json!({"name": "admitted", "role": "sensitive", "kind": "date"});
        let unseen = missing(unseen, SafeHarborCategory::Dates, &[]);
        assert_eq!(unseen.1, [SafeHarborRequirement::YearOnly]);
    }

    /// 164.514(b)(2)(i)(B): nothing smaller than a state, except three digits of a ZIP code.
    #[test]
    fn of_a_zip_code_three_digits_may_stay() {
        let zip = || quasi_identifier("zip", json!({}));
        let found =
            |labels: &[&str]| missing(zip(), SafeHarborCategory::GeographicSubdivisions, labels);
        assert_eq!(
            found(&["021**", "100**"]).1,
            [SafeHarborRequirement::Population]
        );
        assert_eq!(found(&["021", "?"]).1, [SafeHarborRequirement::Population]);
        assert_eq!(
            found(&["0213*"]).1,
            [
                SafeHarborRequirement::ThreeDigits,
                SafeHarborRequirement::Population
            ]
        );
        assert_eq!(found(&["*"]), (ColumnOutcome::OneLabel, vec![]));
        assert_eq!(
            found(&["Boston"]).1,
            [SafeHarborRequirement::MeaningOfLabels]
        );
        // The number of a county is not a ZIP code.
        let county = quasi_identifier("county", json!({}));
        let county = missing(county, SafeHarborCategory::GeographicSubdivisions, &["025"]);
        assert_eq!(county.1, [SafeHarborRequirement::MeaningOfLabels]);
        let city = json!({"name": "city", "role": "insensitive"});
        let city = missing(
            city,
            SafeHarborCategory::GeographicSubdivisions,
            &["Boston"],
        );
        assert_eq!(city.1, [SafeHarborRequirement::StateOrLarger]);
    }

    #[test]
    fn other_identifiers_must_not_be_released() {
        let phone = || quasi_identifier("phone", json!({}));
        let of = |declared, labels| missing(declared, SafeHarborCategory::TelephoneNumbers, labels);
        assert_eq!(
            of(phone(), &["0617*"]).1,
            [SafeHarborRequirement::RemoveColumn]
        );
        assert_eq!(of(phone(), &["*"]), (ColumnOutcome::OneLabel, vec![]));
        let dropped = json!({"name": "phone", "role": "identifier"});
        assert_eq!(of(dropped, &[]), (ColumnOutcome::Dropped, vec![]));
    }

    #[test]
    fn nothing_is_said_of_a_category_without_a_column() {
        assert_eq!(finding(&[]), SafeHarborFinding::NoColumnRecognized);
        let with = |outcome, missing: &[SafeHarborRequirement]| {
            finding(&[SafeHarborColumn {
                name: "x".to_owned(),
                outcome,
                missing: missing.to_vec(),
            }])
        };
        assert_eq!(
            with(ColumnOutcome::Dropped, &[]),
            SafeHarborFinding::Removed
        );
        assert_eq!(
            with(ColumnOutcome::Generalized, &[]),
            SafeHarborFinding::Permitted
        );
        assert_eq!(
            with(
                ColumnOutcome::Generalized,
                &[SafeHarborRequirement::Population]
            ),
            SafeHarborFinding::ToCheck
        );
        let both = [
            SafeHarborRequirement::Population,
            SafeHarborRequirement::ThreeDigits,
        ];
        assert_eq!(
            with(ColumnOutcome::Generalized, &both),
            SafeHarborFinding::Missing
        );
    }
}
