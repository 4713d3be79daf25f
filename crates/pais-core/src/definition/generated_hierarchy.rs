//! Hierarchies that are made from the values of a column, as they are written in JSON.

use serde::{Deserialize, Serialize};
use serde_with::As;

use super::json::error_at;
use super::whole::Whole;
use super::{TaxonomyNode, TaxonomyReference};

/// How the hierarchy of a column is made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "generate", rename_all = "snake_case")]
pub enum GeneratedHierarchy {
    /// Prefixes of the value, as of a ZIP, ICD or ATC code.
    Prefix {
        /// Characters of each level, from the longest prefix to the shortest one.
        #[serde(skip_serializing_if = "Option::is_none")]
        lengths: Option<Vec<u32>>,
    },
    /// One more character from the right is `*` at each level.
    MaskRight,
    /// One more character from the left is `*` at each level.
    MaskLeft,
    /// Intervals of labels in a declared order.
    Ordered {
        /// All labels, ascending; default the column's `order`.
        #[serde(skip_serializing_if = "Option::is_none")]
        order: Option<Vec<String>>,
        /// Children of each node; default 2.
        #[serde(skip_serializing_if = "Option::is_none")]
        fanout: Option<u32>,
        /// Whether the parts of an interval have like numbers of rows; default false, like numbers of
        /// labels.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        balance: bool,
    },
    /// Intervals of numbers with round ends.
    Ranges {
        /// An end of an interval; default 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<f64>,
        /// Width of the intervals of each level, ascending; each a multiple of the one before.
        #[serde(skip_serializing_if = "Option::is_none")]
        widths: Option<Vec<f64>>,
        /// Whether the two parts of an interval have like numbers of rows; default false. `widths` is then
        /// one number, and every end is a multiple of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        balance: bool,
    },
    /// Periods of the calendar.
    Calendar {
        /// From the shortest period to the longest one.
        #[serde(skip_serializing_if = "Option::is_none")]
        levels: Option<Vec<CalendarLevel>>,
    },
    /// Ranges of age at a date, in completed years.
    Age {
        /// The day at which ages are counted, as `2026-01-01`.
        at: String,
        /// Years of each level, ascending; each a multiple of the one before. Default 5, 10 and 20.
        #[serde(skip_serializing_if = "Option::is_none")]
        widths: Option<Vec<u32>>,
    },
    /// Values of few rows under one node.
    Rare {
        /// Rows of a value below which it is rare; default 20.
        #[serde(skip_serializing_if = "Option::is_none")]
        below: Option<u64>,
    },
}

/// A period of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CalendarLevel {
    /// `1987-09-03`.
    Day,
    /// `1987-W36`, a week of ISO 8601.
    Week,
    /// `1987-09`.
    Month,
    /// `1987-Q3`.
    Quarter,
    /// `1987`.
    Year,
    /// `1980s`.
    Decade,
}

/// All fields of a tree, of a taxonomy with its name, and of a generated hierarchy. One struct keeps the pointer to an invalid
/// value, and a large tree is not read twice.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferenceFields {
    /// The root of a taxonomy document, as `POST /v1/taxonomies` takes it and `pais taxonomy convert` writes it;
    /// the name has no meaning here.
    root: Option<TaxonomyNode>,
    name: Option<String>,
    label: Option<String>,
    #[serde(default, deserialize_with = "crate::definition::json::or_default")]
    children: Vec<TaxonomyNode>,
    generate: Option<Generator>,
    #[serde(default, deserialize_with = "As::<Option<Vec<Whole>>>::deserialize")]
    lengths: Option<Vec<u32>>,
    order: Option<Vec<String>>,
    #[serde(default, deserialize_with = "super::whole::option")]
    fanout: Option<u32>,
    start: Option<f64>,
    widths: Option<Vec<f64>>,
    levels: Option<Vec<CalendarLevel>>,
    at: Option<String>,
    #[serde(default, deserialize_with = "super::whole::option")]
    below: Option<u64>,
    balance: Option<bool>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Generator {
    Prefix,
    MaskRight,
    MaskLeft,
    Ordered,
    Ranges,
    Calendar,
    Age,
    Rare,
}

impl ReferenceFields {
    /// # Errors
    /// For fields that do not belong together.
    pub(super) fn reference<E: serde::de::Error>(mut self) -> Result<TaxonomyReference, E> {
        if let Some(root) = self.root.take() {
            self.name = None;
            if self.generate.is_some() {
                let detail =
                    "`root` is a whole tree, so it does not go with `generate`; leave one out";
                return Err(error_at("generate", detail));
            }
            self.no_more()?;
            return Ok(TaxonomyReference::Inline(root));
        }
        let Some(generator) = self.generate else {
            let label = self.label.take().ok_or_else(|| {
                E::custom("a tree needs a `label`, and a hierarchy that is made needs `generate`")
            })?;
            let children = std::mem::take(&mut self.children);
            self.no_more()?;
            return Ok(TaxonomyReference::Inline(TaxonomyNode { label, children }));
        };
        let hierarchy = match generator {
            Generator::Prefix => GeneratedHierarchy::Prefix {
                lengths: self.lengths.take(),
            },
            Generator::MaskRight => GeneratedHierarchy::MaskRight,
            Generator::MaskLeft => GeneratedHierarchy::MaskLeft,
            Generator::Ordered => GeneratedHierarchy::Ordered {
                order: self.order.take(),
                fanout: self.fanout.take(),
                balance: self.balance.take().unwrap_or(false),
            },
            Generator::Ranges => GeneratedHierarchy::Ranges {
                start: self.start.take(),
                widths: self.widths.take(),
                balance: self.balance.take().unwrap_or(false),
            },
            Generator::Calendar => GeneratedHierarchy::Calendar {
                levels: self.levels.take(),
            },
            Generator::Age => GeneratedHierarchy::Age {
                at: self.at.take().ok_or_else(|| E::missing_field("at"))?,
                widths: self.whole_widths()?,
            },
            Generator::Rare => GeneratedHierarchy::Rare {
                below: self.below.take(),
            },
        };
        self.no_more()?;
        Ok(TaxonomyReference::Generated(hierarchy))
    }

    /// The widths, which must be whole numbers of years.
    fn whole_widths<E: serde::de::Error>(&mut self) -> Result<Option<Vec<u32>>, E> {
        let whole = |width: f64| {
            let is_whole = width.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&width);
            // Whole and in range, so nothing is cut off.
            let years = is_whole.then_some(width as u32);
            years.ok_or_else(|| error_at("widths", "`widths` of ages are whole numbers of years"))
        };
        let widths = self.widths.take();
        widths
            .map(|all| all.into_iter().map(whole).collect())
            .transpose()
    }

    /// Refuses the remaining fields.
    fn no_more<E: serde::de::Error>(self) -> Result<(), E> {
        let left = [
            ("name", self.name.is_some()),
            ("label", self.label.is_some()),
            ("children", !self.children.is_empty()),
            ("lengths", self.lengths.is_some()),
            ("order", self.order.is_some()),
            ("fanout", self.fanout.is_some()),
            ("start", self.start.is_some()),
            ("widths", self.widths.is_some()),
            ("levels", self.levels.is_some()),
            ("at", self.at.is_some()),
            ("below", self.below.is_some()),
            ("balance", self.balance.is_some()),
        ];
        match left.into_iter().find(|(_, is_left)| *is_left) {
            Some((field, _)) => {
                let detail =
                    format!("`{field}` does not belong to this kind of taxonomy; leave it out");
                Err(error_at(field, &detail))
            }
            None => Ok(()),
        }
    }
}
