//! What a hospital declares about its table: columns, their roles and kinds.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::generated_hierarchy::ReferenceFields;
use crate::definition::{DatasetLocation, GeneratedHierarchy, TaxonomyId};

/// The body of `POST /v1/datasets`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DatasetDefinition {
    /// Unique in the organization.
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 200,
            pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$"
        )
    )]
    pub name: String,
    /// Free text.
    #[cfg_attr(feature = "openapi", schema(max_length = 10000))]
    pub description: Option<String>,
    /// The columns, in the order in which releases have them; at most `limits.columns`, 1,024 where
    /// the service has the default settings.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub columns: Vec<ColumnDefinition>,
    /// Days after which the raw rows are deleted, counted from the dataset's creation.
    #[serde(default, deserialize_with = "crate::definition::whole::option")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 36500))]
    pub retention_days: Option<i64>,
    /// Days after which a submission is deleted, counted from its arrival.
    #[serde(default, deserialize_with = "crate::definition::whole::option")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 36500))]
    pub submission_retention_days: Option<i64>,
    /// Words for missing values in every column that declares none.
    pub missing: Option<Vec<String>>,
    /// How submissions in text are written where a request does not say.
    pub format: Option<TextFormatDefinition>,
    /// Where the rows are, instead of in submissions. They are read when the dataset is declared; each job of
    /// it fails with `location_changed` once an object there has changed.
    pub location: Option<DatasetLocation>,
}

/// How a table in text is written, in the words of the parameters of a submission. What is omitted has the
/// default of the file's format.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TextFormatDefinition {
    /// Between two cells: one ASCII character, or the word `tab`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^([!#-/:-@\\[-`{-~ \\t]|tab)$"))]
    pub delimiter: Option<String>,
    /// Before the fraction of a number: `.` or `,`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[.,]$"))]
    pub decimal: Option<String>,
    /// Between groups of three digits of a number: one character; null for none.
    #[cfg_attr(
        feature = "openapi",
        schema(pattern = "^[.,'_ \u{a0}\u{2019}\u{202f}]$")
    )]
    pub thousands: Option<String>,
    /// `utf-8`, `iso-8859-1`, `windows-1252` or `utf-16`.
    #[cfg_attr(
        feature = "openapi",
        schema(pattern = "^(utf-8|iso-8859-1|windows-1252|utf-16)$")
    )]
    pub encoding: Option<String>,
}

/// One declared column.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ColumnDefinition {
    /// As in the submission's header; at most 1,024 bytes.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 1024))]
    pub name: String,
    /// What the column is for the adversary and the analyst.
    pub role: ColumnRole,
    /// How cells are read.
    #[serde(default, deserialize_with = "crate::definition::json::or_default")]
    pub kind: ColumnKind,
    /// Tree of generalizations.
    pub taxonomy: Option<TaxonomyReference>,
    /// The outermost interval `[min, max]` of a column of numbers, or of dates: of ISO 8601, both
    /// included.
    #[serde(default, deserialize_with = "two_ends")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<DomainBound>>, min_items = 2, max_items = 2))]
    pub domain: Option<[DomainBound; 2]>,
    /// Between the items of a set; default `|`.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 1))]
    pub separator: Option<String>,
    /// Words that mean missing; default the empty cell. Null always does. Numbers are compared by
    /// value. In a column that is released as it is, the empty cell of a text or set means missing
    /// too if no word is declared, because CSV does not distinguish it from null.
    pub missing: Option<Vec<String>>,
    /// Whether the outermost interval of a column without a `domain` is widened: to whole years for
    /// dates, and for numbers to round
    /// numbers, so that it does not disclose the smallest and the greatest number; default false.
    #[serde(
        default,
        deserialize_with = "crate::definition::json::or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub round_range: bool,
    /// The rounding step of a numeric column without a taxonomy, above 0: every end
    /// of an interval is a multiple of it, so that no end is a patient's exact value; numbers that are
    /// released unchanged are rounded to the nearest multiple. The ends of a declared `domain` stay as
    /// they are.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0.0, maximum = 1e300))]
    pub round: Option<f64>,
    /// How the cells of a date or datetime column are written, in the words of `strftime`; default
    /// ISO 8601.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 100))]
    pub format: Option<String>,
    /// The columns of the file whose cells are the items of this set.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub from: Option<Vec<String>>,
    /// The labels of an ordered categorical column, ascending.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub order: Option<Vec<String>>,
}

impl ColumnDefinition {
    /// A categorical column; set other kinds by [`Self::numeric`] and the fields.
    pub fn new(name: impl Into<String>, role: ColumnRole) -> Self {
        Self {
            name: name.into(),
            role,
            kind: ColumnKind::Categorical,
            taxonomy: None,
            domain: None,
            separator: None,
            missing: None,
            round_range: false,
            round: None,
            format: None,
            from: None,
            order: None,
        }
    }

    /// A column that is read and dropped.
    pub fn identifier(name: impl Into<String>) -> Self {
        Self::new(name, ColumnRole::Identifier)
    }

    /// A column that the adversary knows.
    pub fn quasi_identifier(name: impl Into<String>) -> Self {
        Self::new(name, ColumnRole::QuasiIdentifier)
    }

    /// A column that must not be inferred.
    pub fn sensitive(name: impl Into<String>) -> Self {
        Self::new(name, ColumnRole::Sensitive)
    }

    /// A column that the analyst wants to predict.
    pub fn class(name: impl Into<String>) -> Self {
        Self::new(name, ColumnRole::Class)
    }

    /// A column that is released as it is.
    pub fn insensitive(name: impl Into<String>) -> Self {
        Self::new(name, ColumnRole::Insensitive)
    }

    /// The column with numbers from `lo` to `hi`, both included, which intervals generalize.
    pub fn numeric(self, lo: f64, hi: f64) -> Self {
        Self {
            kind: ColumnKind::Numeric,
            domain: Some([DomainBound::Number(lo), DomainBound::Number(hi)]),
            ..self
        }
    }

    /// The column with a tree of generalizations.
    pub fn taxonomy(self, root: TaxonomyNode) -> Self {
        Self {
            taxonomy: Some(TaxonomyReference::Inline(root)),
            ..self
        }
    }
}

/// What a column is for the adversary and the analyst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ColumnRole {
    /// Read and dropped at the door: never stored.
    Identifier,
    /// Names the person a row is about: stored as a keyed hash only, never released. Every model
    /// then counts distinct persons instead of rows.
    Subject,
    /// Known to the adversary; generalized.
    QuasiIdentifier,
    /// What must not be inferred.
    Sensitive,
    /// What the analyst wants to predict.
    Class,
    /// Released as it is.
    Insensitive,
}

impl ColumnRole {
    /// The name in JSON, as in `openapi/openapi.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::Subject => "subject",
            Self::QuasiIdentifier => "quasi_identifier",
            Self::Sensitive => "sensitive",
            Self::Class => "class",
            Self::Insensitive => "insensitive",
        }
    }
}

/// How the cells of a column are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// A label.
    #[default]
    Categorical,
    /// A decimal number.
    Numeric,
    /// A day.
    Date,
    /// A moment.
    Datetime,
    /// Several labels.
    Set,
}

impl ColumnKind {
    /// The name in JSON, as in `openapi/openapi.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Categorical => "categorical",
            Self::Numeric => "numeric",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Set => "set",
        }
    }
}

/// A taxonomy by id, inline, or made from the values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum TaxonomyReference {
    /// A taxonomy of the organization.
    Id(TaxonomyId),
    /// A hierarchy that is made from the values of the column.
    Generated(GeneratedHierarchy),
    /// A tree of this dataset alone.
    Inline(TaxonomyNode),
}

impl<'de> Deserialize<'de> for TaxonomyReference {
    /// A string is an id, an object is a tree, a taxonomy `{name, root}`, or says how a hierarchy is made. Not derived: a
    /// derived untagged enum would lose the pointer to the invalid value.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ReferenceVisitor;
        impl<'de> serde::de::Visitor<'de> for ReferenceVisitor {
            type Value = TaxonomyReference;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "the id of a taxonomy (a UUID), a tree {label, children}, {root} or {generate, \u{2026}}",
                )
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let id = text
                    .parse()
                    .map_err(|_| E::custom("the id of a taxonomy must be a UUID"))?;
                Ok(TaxonomyReference::Id(id))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<Self::Value, A::Error> {
                let fields = ReferenceFields::deserialize(
                    serde::de::value::MapAccessDeserializer::new(map),
                )?;
                fields.reference()
            }
        }
        deserializer.deserialize_any(ReferenceVisitor)
    }
}

/// A node of a taxonomy as it is written in JSON; without children it is a leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TaxonomyNode {
    /// Unique in its tree; at most 1,024 bytes.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 1024))]
    pub label: String,
    /// More specific labels.
    #[serde(
        default,
        deserialize_with = "crate::definition::json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub children: Vec<TaxonomyNode>,
}

impl TaxonomyNode {
    /// An inner node.
    ///
    /// ```
    /// use pais_core::definition::TaxonomyNode;
    ///
    /// let sex = TaxonomyNode::new("ANY", ["F", "M"]);
    /// assert_eq!(sex.children[1].label, "M");
    /// ```
    pub fn new<N: Into<Self>>(
        label: impl Into<String>,
        children: impl IntoIterator<Item = N>,
    ) -> Self {
        Self {
            label: label.into(),
            children: children.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<&str> for TaxonomyNode {
    /// A leaf.
    fn from(label: &str) -> Self {
        let label = label.to_owned();
        let children = Vec::new();
        Self { label, children }
    }
}

/// The two ends of a domain. An array of two would be refused by `serde` in words that say nothing to a user.
fn two_ends<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<[DomainBound; 2]>, D::Error> {
    let ends: Option<Vec<DomainBound>> = Option::deserialize(deserializer)?;
    ends.map(<[DomainBound; 2]>::try_from)
        .transpose()
        .map_err(|_| {
            let detail = "a domain is `[min, max]`: two numbers, or two dates in a column of dates";
            serde::de::Error::custom(detail)
        })
}

/// An end of a column's domain.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum DomainBound {
    /// Of a numeric column.
    Number(f64),
    /// Of a date or datetime column: `"1900-01-01"`.
    Date(String),
}

impl<'de> Deserialize<'de> for DomainBound {
    /// Not derived: a derived untagged enum would not say what is expected.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoundVisitor;
        impl serde::de::Visitor<'_> for BoundVisitor {
            type Value = DomainBound;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, or a date as text")
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
                Ok(DomainBound::Number(number))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(DomainBound::Number(number as f64))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(DomainBound::Number(number as f64))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(DomainBound::Date(text.to_owned()))
            }
        }
        deserializer.deserialize_any(BoundVisitor)
    }
}
