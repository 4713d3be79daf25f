//! Questions that a draft leaves open, with the answers that it would take.

use pais_core::definition::ColumnRole;
use serde::Serialize;

/// A question about a column that nothing in its file decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Doubt {
    /// The column of the proposed dataset.
    pub column: String,
    /// What to decide, in sentences without a value of a cell, but well-known ones for missing cells.
    pub question: String,
    /// The answers: roles, formats of dates, or `value` and `missing`. The first one is proposed.
    pub choices: Vec<String>,
    /// Other columns with the same question; the answer applies to them too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// An answer to a doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// A column that the doubt is about.
    pub column: String,
    /// One of its choices.
    pub choice: String,
}

/// The answers to what a placeholder is.
pub(super) const AS_VALUE: &str = "value";
pub(super) const AS_MISSING: &str = "missing";

/// The open question about a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OpenQuestion {
    /// Whether numbers are keys or measure something.
    KeyOrMeasure,
    /// Whether whole numbers of one length are codes or measure something.
    CodeOrMeasure,
    /// Whether a key identifies the persons that the rows are about.
    PersonsKey { proposed: ColumnRole },
    /// Whether the persons of a file, who have one row each, can be in other files too.
    PersonsElsewhere,
    /// Whether the persons are to be counted by the key of their stays, which is all that a file has.
    StaysKey { proposed: ColumnRole },
    /// Whether other people know few values.
    KnownOrNot,
    /// Whether it is what analysts predict.
    Outcome,
    /// Whether cells with several items, which nobody should learn, are sets or one value each.
    ItemsOrValue,
    /// Whether the text of a code is needed.
    TextOf { code: String, role: ColumnRole },
    /// Whether well-known values stand for missing ones.
    Placeholders { values: Vec<&'static str> },
    /// Whether the day or the month is first.
    DayOrMonth { formats: [&'static str; 2] },
    /// Whether years of two digits are of the century that they are read as.
    Century { proposed: ColumnRole },
}

impl OpenQuestion {
    /// The question about a column and the other columns that share it.
    pub(super) fn doubt(&self, column: &str, also: Vec<String>) -> Doubt {
        let others = match also.len() {
            0 => String::new(),
            1 => format!(" The answer also decides `{}`.", also[0]),
            count => format!(" The answer also decides {count} columns with the same values."),
        };
        let key_roles = |proposed: ColumnRole| {
            let other = match proposed {
                ColumnRole::Subject => ColumnRole::Identifier,
                _ => ColumnRole::Subject,
            };
            [proposed, other].map(|it| it.as_str().to_owned()).to_vec()
        };
        let roles = |roles: &[ColumnRole]| roles.iter().map(|it| it.as_str().to_owned()).collect();
        let (question, choices) = match self {
            Self::KeyOrMeasure => (
                format!(
                    "Does `{column}` name a person, a stay or a record? Nearly all of its numbers are \
                     distinct. A key is dropped; what is measured is released as it is."
                ),
                roles(&[ColumnRole::Identifier, ColumnRole::Insensitive]),
            ),
            Self::CodeOrMeasure => (
                format!(
                    "Are the numbers of `{column}` codes, as of a place? Codes that others know are \
                     generalized; what is measured is released as it is."
                ),
                roles(&[ColumnRole::QuasiIdentifier, ColumnRole::Insensitive]),
            ),
            Self::PersonsKey { proposed } => {
                let question = format!(
                    "Does `{column}` say which person a row is about? Then all rows of a person count \
                     as one; another key is dropped."
                );
                (question, key_roles(*proposed))
            }
            Self::PersonsElsewhere => {
                let question = format!(
                    "Can a person of `{column}` be in another file too, such as that of another month? \
                     Choose `subject` then: all rows of a person count as one. A dropped key counts the \
                     same person anew in each file."
                );
                (question, key_roles(ColumnRole::Identifier))
            }
            Self::StaysKey { proposed } => {
                let question = format!(
                    "Is there a key of the persons to add? `{column}` names a stay, not a person, and nothing \
                     else says which rows are about one person, so that a person with several stays counts \
                     as several. As the subject, at least all rows of a stay count as one."
                );
                (question, key_roles(*proposed))
            }
            Self::KnownOrNot => (
                format!(
                    "Can other people know `{column}` of a person? What nobody knows is released as it \
                     is, what others know is generalized, and what nobody may learn is protected.{others}"
                ),
                roles(&[
                    ColumnRole::Insensitive,
                    ColumnRole::QuasiIdentifier,
                    ColumnRole::Sensitive,
                ]),
            ),
            Self::Outcome => (
                format!("Is `{column}` what analysts want to predict?"),
                roles(&[
                    ColumnRole::Class,
                    ColumnRole::Sensitive,
                    ColumnRole::QuasiIdentifier,
                ]),
            ),
            Self::Century { proposed } => (
                format!(
                    "The years of `{column}` have two digits: 00 to 69 are read as 2000 to 2069, and 70 to 99 as \
                     1970 to 1999. Is that right for all of them? For most dates of birth it is not: leave the \
                     column out then, or send it with years of four digits."
                ),
                roles(&[*proposed, ColumnRole::Identifier]),
            ),
            Self::ItemsOrValue => (
                format!(
                    "Some cells of `{column}` have several items. Are they a set, of which others can know \
                     some items? It is generalized then, and nothing bounds what can be inferred about it. \
                     As one value each, with the kind `categorical` and the role `sensitive`, they are bounded."
                ),
                roles(&[ColumnRole::QuasiIdentifier, ColumnRole::Sensitive]),
            ),
            Self::TextOf { code, role } => {
                let question = format!(
                    "`{column}` says the same as `{code}`. Is it needed beside it, or can a recipient \
                     look it up?"
                );
                (question, roles(&[*role, ColumnRole::Identifier]))
            }
            Self::Placeholders { values } => (
                format!(
                    "Does `{}` mean in `{column}` that the value is missing? Then it is declared as \
                     `missing`, and is no value in ranges and periods.{others}",
                    values.join("`, `")
                ),
                [AS_VALUE, AS_MISSING].map(str::to_owned).to_vec(),
            ),
            Self::DayOrMonth { formats } => (
                format!("Is the day or the month first in the dates of `{column}`?"),
                formats.iter().map(|&it| it.to_owned()).collect(),
            ),
        };
        Doubt {
            column: column.to_owned(),
            question,
            choices,
            also,
        }
    }
}
