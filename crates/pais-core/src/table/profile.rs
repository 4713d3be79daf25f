//! Column statistics that a dataset's holder may see without seeing a row.

use serde_with::skip_serializing_none;
use std::borrow::Cow;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};

use crate::cancellation::Cancellation;
use crate::definition::{ColumnKind, ColumnRole};
use crate::look_alike::visible_text;
use crate::taxonomy::Scale;

use crate::schema::{Schema, SchemaColumn};
use crate::table::{Column, Table};

/// One stored column in numbers.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ColumnProfile {
    /// As declared.
    pub name: String,
    /// As declared.
    pub role: ColumnRole,
    /// As declared.
    pub kind: ColumnKind,
    /// Number of distinct values, missing not among them: numbers of a numeric column, however
    /// they are written; of a set the items.
    pub distinct: u64,
    /// Number of rows whose cell is null or a word for missing.
    pub missing: u64,
    /// Smallest number of a numeric column; absent where there is none.
    pub min: Option<f64>,
    /// Greatest number of a numeric column; absent where there is none.
    pub max: Option<f64>,
    /// Earliest date of a column of dates; absent where there is none.
    pub earliest: Option<String>,
    /// Latest date of a column of dates; absent where there is none.
    pub latest: Option<String>,
    /// Number of distinct values that differ from another value of the column only in upper and
    /// lower case; of a set the items.
    #[serde(default)]
    pub case_variants: u64,
    /// Number of distinct values that look like another value of the column: they differ only in
    /// characters that are not shown, such as zero-width spaces, or in the shape of letters; of a
    /// set the items. Models count them as one sensitive value.
    #[serde(default)]
    pub look_alikes: u64,
    /// Number of rows whose value is in no other row, rows without a value left out. Two sets are
    /// the same value if they have the same items.
    #[serde(default)]
    pub single_rows: u64,
    /// Sizes of a set's cells; absent where all are missing.
    pub set_sizes: Option<SetSizes>,
}

/// Numbers of distinct items in the cells of a set, missing ones left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetSizes {
    /// Of the smallest.
    pub min: u64,
    /// Of the largest.
    pub max: u64,
    /// On average.
    pub mean: f64,
}

/// The statistics of the stored columns of a table, in the declared order. Returns `None` if
/// `cancellation` was requested before the last column.
///
/// One pass over the codes of each column; text is read once per distinct value.
pub fn profile_until(
    schema: &Schema,
    table: &Table,
    cancellation: &Cancellation,
) -> Option<Vec<ColumnProfile>> {
    let columns = schema.stored().zip(&table.columns);
    columns
        .map(|(spec, column)| {
            if cancellation.is_cancelled() {
                None
            } else {
                Some(profile_column(spec, column))
            }
        })
        .collect()
}

fn profile_column(spec: &SchemaColumn, column: &Column) -> ColumnProfile {
    let rows = column.row_counts();
    let missing = column.codes.len() as u64 - rows.iter().sum::<u64>();
    let mut profile = ColumnProfile {
        name: spec.name.to_string(),
        role: spec.role,
        kind: spec.kind,
        distinct: 0,
        missing,
        min: None,
        max: None,
        earliest: None,
        latest: None,
        case_variants: 0,
        look_alikes: 0,
        single_rows: 0,
        set_sizes: None,
    };
    let mut present: HashMap<Cow<'_, str>, u64> = HashMap::with_capacity(rows.len());
    for (text, &rows) in column.dictionary.iter().zip(&rows) {
        // A table that a program built can have several spellings of a value.
        let value = spec.canonical(text);
        if spec.is_missing(&value) {
            profile.missing += rows;
        } else if rows > 0 {
            *present.entry(value).or_default() += rows;
        }
    }
    if spec.kind == ColumnKind::Set {
        add_sets(&mut profile, spec.separator, &present);
        return profile;
    }
    profile.distinct = present.len() as u64;
    profile.single_rows = present.values().filter(|rows| **rows == 1).count() as u64;
    match spec.kind.scale() {
        None => profile.count_variants(present.keys().map(AsRef::as_ref)),
        Some(scale) => {
            let values = || present.keys().filter_map(|text| scale.value(text));
            let (least, greatest) = (values().reduce(f64::min), values().reduce(f64::max));
            if scale == Scale::Number {
                (profile.min, profile.max) = (least, greatest);
            } else {
                let text = |value: Option<f64>| value.map(|value| scale.text(value));
                (profile.earliest, profile.latest) = (text(least), text(greatest));
            }
        }
    }
    profile
}

fn add_sets(profile: &mut ColumnProfile, separator: char, present: &HashMap<Cow<'_, str>, u64>) {
    let mut sets: HashMap<Vec<&str>, u64> = HashMap::with_capacity(present.len());
    for (text, rows) in present {
        let mut set: Vec<&str> = crate::schema::items(text, separator).collect();
        set.sort_unstable();
        set.dedup();
        *sets.entry(set).or_default() += rows;
    }
    let items: HashSet<&str> = sets.keys().flatten().copied().collect();
    profile.distinct = items.len() as u64;
    profile.count_variants(items.iter().copied());
    profile.single_rows = sets.values().filter(|rows| **rows == 1).count() as u64;
    let size = |set: &Vec<&str>| set.len() as u64;
    let cells: u64 = sets.values().sum();
    let sum: u64 = sets.iter().map(|(set, rows)| size(set) * rows).sum();
    let (min, max) = (sets.keys().map(size).min(), sets.keys().map(size).max());
    profile.set_sizes = min.zip(max).map(|(min, max)| SetSizes {
        min,
        max,
        mean: sum as f64 / cells as f64,
    });
}

impl ColumnProfile {
    /// Counts the values that nearly equal another one.
    fn count_variants<'t>(&mut self, values: impl Iterator<Item = &'t str> + Clone) {
        self.look_alikes = variants(values.clone().map(visible_text));
        self.case_variants = variants(values.map(|value| Cow::Owned(value.to_lowercase())));
    }
}

/// The number of values with the same form as another one.
fn variants<'t>(forms: impl Iterator<Item = Cow<'t, str>>) -> u64 {
    let mut counts: HashMap<Cow<'t, str>, u64> = HashMap::new();
    for form in forms {
        *counts.entry(form).or_default() += 1;
    }
    counts.values().filter(|count| **count > 1).sum()
}
