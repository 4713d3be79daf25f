//! What a holder should know about a dataset, a job, a publication or a release that is not refused.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Maximum number of columns that the text of a warning names.
const MOST_NAMES: usize = 10;

/// What a warning is about. A program can match it; its name never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// A listed sensitive value is in no row, so its bound has no effect.
    ListedValueAbsent,
    /// Values that differ from a listed sensitive value only in case, spaces or punctuation are not
    /// listed, so they are not bounded.
    ListedValueHasVariants,
    /// A sensitive column has no bound under the model.
    UnboundedSensitiveColumn,
    /// A sensitive column has words for missing that are not declared, so they count as values.
    UndeclaredMissing,
    /// The outermost interval of a numeric column is its exact range.
    ExactRange,
    /// The values of a column that is released unchanged are distinct, or nearly so.
    NearlyUniqueColumn,
    /// Some values of a column that is released unchanged, or of two such columns together, are in
    /// one row only.
    SingledOutRows,
    /// By its name, a column that is released unchanged identifies persons.
    UnchangedNamesPersons,
    /// A column that is released unchanged tells the value of a quasi-identifier.
    UnchangedTellsHidden,
    /// A quasi-identifier has its topmost value in every row of the result.
    ColumnAtTop,
    /// The values of an identifier occur in several rows, so that a person may have several; or with several
    /// subjects, so that these are not persons.
    RepeatedIdentifier,
    /// Subjects differ only in case, leading zeros or characters that are not shown.
    SimilarSubjects,
    /// Rows were suppressed to reach the bound on confidence, which discloses that the suppressed
    /// rows had bounded sensitive values.
    SuppressedForConfidence,
    /// More than a tenth of the rows were suppressed.
    ManyRowsSuppressed,
    /// All quasi-identifiers are released as they were, because the raw rows already repeat in them; without a
    /// subject column, several of these can be of one person.
    NothingGeneralized,
    /// The order of released rows is seeded, and no key of a dataset protects it.
    SeededOrder,
    /// The job does not say its recoding, and local recoding would lose much less detail.
    LocalLosesLess,
    /// A publication is of a dataset without a subject column, so that its editions count rows as persons.
    EditionsCountRows,
}

/// What a holder should know about a dataset, a job, a publication or a release that is not refused. It quotes
/// no value of a cell but a word for missing.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Warning {
    /// What it is about.
    pub code: WarningCode,
    /// The situation, and what to do.
    pub detail: String,
    /// RFC 6901 pointer into the document that causes it: the definition of a dataset or publication,
    /// else the job; absent where no part of it is the cause, and where several are.
    pub pointer: Option<String>,
    /// The columns concerned; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub columns: Vec<String>,
}

impl Warning {
    /// A warning about a whole document.
    pub fn new(code: WarningCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            pointer: None,
            columns: Vec::new(),
        }
    }

    /// The warning, about these columns.
    pub fn of_columns<'a>(self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            columns: columns.into_iter().map(str::to_owned).collect(),
            ..self
        }
    }

    /// A warning about a place of a document.
    pub fn at(code: WarningCode, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            pointer: Some(pointer.into()),
            ..Self::new(code, detail)
        }
    }
}

/// The warnings merged into one for each code, in the order in which the codes first occur. One that is about
/// several columns names all of them with the detail for each.
///
/// ```
/// use pais_core::warning::{Warning, WarningCode, by_code};
///
/// let top = |column| Warning::new(WarningCode::ColumnAtTop, "…").of_columns([column]);
/// let warnings = by_code([top("age"), top("sex"), top("age")]);
/// assert_eq!(warnings.len(), 1);
/// assert_eq!(warnings[0].columns, ["age", "sex"]);
/// assert!(warnings[0].detail.starts_with("2 columns (`age`, `sex`): "));
/// ```
pub fn by_code(warnings: impl IntoIterator<Item = Warning>) -> Vec<Warning> {
    let mut found: Vec<Warning> = Vec::new();
    for warning in warnings {
        match found.iter_mut().find(|known| known.code == warning.code) {
            Some(known) => known.add(warning),
            None => found.push(warning),
        }
    }
    found
}

impl Warning {
    /// Adds another warning with the same code.
    fn add(&mut self, other: Self) {
        if self.pointer != other.pointer {
            self.pointer = None;
        }
        let is_known = |column: &String| self.columns.contains(column);
        if other.columns.iter().all(is_known) {
            // The same finding about the same columns, for example of the raw and of the released rows.
            return;
        }
        for column in other.columns {
            if !self.columns.contains(&column) {
                self.columns.push(column);
            }
        }
        self.detail = format!(
            "{} columns ({}): {}",
            self.columns.len(),
            names(&self.columns),
            self.code.of_each()
        );
    }
}

/// The names of columns as they are quoted in a text.
fn names(columns: &[String]) -> String {
    let quoted = columns.iter().take(MOST_NAMES);
    let quoted: Vec<String> = quoted.map(|column| format!("`{column}`")).collect();
    match columns.len().saturating_sub(MOST_NAMES) {
        0 => quoted.join(", "),
        more => format!("{} and {more} more", quoted.join(", ")),
    }
}

impl WarningCode {
    /// The finding for each of several columns, and what to do.
    fn of_each(self) -> &'static str {
        match self {
            Self::ListedValueAbsent => {
                "listed sensitive values are in no row, so their bounds have no effect; check their \
                 spelling, also upper and lower case"
            }
            Self::ListedValueHasVariants => {
                "values of rows differ from listed ones only in case, spaces or punctuation and are not \
                 bounded; list them too, or correct the rows"
            }
            Self::UnboundedSensitiveColumn => {
                "the model bounds no value of these sensitive columns, so they can be inferred; have it bound \
                 them, or give them the role `insensitive` if that harms nobody"
            }
            Self::UndeclaredMissing => {
                "these sensitive columns have words for missing that count as sensitive values; declare \
                 them as `missing`"
            }
            Self::ExactRange => {
                "the outermost interval of each in a release has its exact smallest and greatest \
                 value as ends; declare a `domain` or, for numbers, `round`, or set `round_range` to \
                 true"
            }
            Self::NearlyUniqueColumn => {
                "each is released unchanged and has distinct values in nearly all rows, so it nearly \
                 identifies each row; leave it out (role `identifier`), or make it a quasi-identifier"
            }
            Self::SingledOutRows => {
                "they are released unchanged, and values of one, or of two together, are in one row \
                 only; a reader who knows them finds the row"
            }
            Self::UnchangedNamesPersons => {
                "by their names they identify persons, and they are released unchanged; leave them out (role \
                 `identifier`), or declare the key of the persons that the rows are about as `subject`"
            }
            Self::UnchangedTellsHidden => {
                "some of them are released unchanged and tell the values of others, which generalization \
                 hides only from readers who do not know which values go together; make them \
                 quasi-identifiers, or leave them out (role `identifier`)"
            }
            Self::ColumnAtTop => {
                "these quasi-identifiers stay at their topmost value in every row, so they say \
                 nothing about them; give them hierarchies that divide the rows more evenly at the \
                 top, leave out columns that recipients do not need (role `identifier`), or ask for \
                 less (a smaller K or L, a greater C)"
            }
            Self::RepeatedIdentifier => {
                "values of these identifiers occur in several rows, or with several values of the \
                 subject column; if one names the person a row is about, declare it as `subject`: a \
                 person's rows then count as one toward K"
            }
            Self::SimilarSubjects => {
                "ids differ only in upper and lower case, in leading zeros or in characters that are \
                 not shown, and count as different persons; where they are one person, write them \
                 alike"
            }
            Self::SuppressedForConfidence => {
                "rows were suppressed to reach the greatest confidence, which shows that what is \
                 missing was sensitive"
            }
            Self::ManyRowsSuppressed => "more than a tenth of the rows were left out",
            Self::NothingGeneralized => "no quasi-identifier was generalized",
            Self::LocalLosesLess => "local recoding would lose much less detail",
            Self::EditionsCountRows => "editions count rows as persons",
            Self::SeededOrder => "the order of the released rows is seeded",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Warning, WarningCode, by_code};

    #[test]
    fn there_is_one_warning_for_each_code() {
        let range = |index: usize, column: &str| {
            let pointer = format!("/columns/{index}/domain");
            let detail = format!("about `{column}`");
            Warning::at(WarningCode::ExactRange, pointer, detail).of_columns([column])
        };
        let seeded = Warning::at(WarningCode::SeededOrder, "/seed", "seeded");
        let one = by_code([seeded.clone(), range(0, "a"), seeded.clone(), range(0, "a")]);
        assert_eq!(one, [seeded.clone(), range(0, "a")]);

        let found = by_code([range(0, "a"), seeded.clone(), range(1, "b"), range(2, "c")]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].columns.len(), &found[0].pointer), (3, &None));
        assert!(
            found[0]
                .detail
                .starts_with("3 columns (`a`, `b`, `c`): the outermost")
        );
        assert_eq!(by_code(found.clone()), found);
    }

    #[test]
    fn a_text_names_no_more_than_ten_columns() {
        let at_top = (0..99).map(|column| {
            let column = column.to_string();
            Warning::new(WarningCode::ColumnAtTop, "top").of_columns([&*column])
        });
        let found = by_code(at_top);
        assert_eq!((found.len(), found[0].columns.len()), (1, 99));
        assert!(
            found[0].detail.contains("`9` and 89 more): "),
            "{}",
            found[0].detail
        );
    }
}
