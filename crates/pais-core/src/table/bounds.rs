//! The bounds of generalized numbers and dates as columns of their own, which tools can compute
//! with.

use hashbrown::HashMap;

use crate::calendar::{days_of_label, moments_of_label};
use crate::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
use crate::taxonomy::SUPPRESSED_LABEL;
use crate::taxonomy::{Interval, MISSING_LABEL, Scale};

/// A column of numbers or dates whose labels have bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundedColumn {
    /// The name.
    pub name: Box<str>,
    /// What its values are on.
    pub scale: Scale,
    /// The bounds of the label `*`; `None` where they are not known.
    pub outermost: Option<(f64, f64)>,
}

/// The names of the two columns of bounds of a column.
pub fn names_of_bounds(name: &str) -> [String; 2] {
    [format!("{name}_lo"), format!("{name}_hi")]
}

/// The first of the columns of bounds whose name another column of the table has.
pub fn taken_name<'a>(
    columns: impl IntoIterator<Item = &'a str> + Clone,
    bounded: &[BoundedColumn],
) -> Option<String> {
    let is_present = |name: &str| columns.clone().into_iter().any(|other| other == name);
    let present = bounded.iter().filter(|column| is_present(&column.name));
    let mut names = present.flat_map(|column| names_of_bounds(&column.name));
    names.find(|name| is_present(name))
}

impl ReleasedTable {
    /// The table with the columns `<column>_lo` and `<column>_hi` behind each generalized column of
    /// `bounded`.
    ///
    /// Both bounds of `[30,60)` and of `[30,60]` are 30 and 60, and those of an exact value are the
    /// value. A period of the calendar has its first and last day, or millisecond in a column of
    /// moments. The label `*` has the outermost bounds. `?` and a label that is no interval have
    /// none: null. A column of dates whose labels are ranges of ages has numbers of years.
    ///
    /// Each label is read once. Names are not checked: see [`taken_name`].
    pub fn with_bounds(self, bounded: &[BoundedColumn]) -> Self {
        let mut columns = Vec::with_capacity(self.columns.len() + 2 * bounded.len());
        for column in self.columns {
            let found = bounded.iter().find(|bounded| bounded.name == column.name);
            let found = found.filter(|_| column.form == Form::Generalized);
            let bounds = found.map(|bounded| bounds(&column, bounded));
            columns.push(column);
            columns.extend(bounds.into_iter().flatten());
        }
        Self { columns, ..self }
    }
}

fn bounds(column: &ReleasedColumn, bounded: &BoundedColumn) -> [ReleasedColumn; 2] {
    let labels = || column.column.dictionary.iter().map(AsRef::as_ref);
    let scale = if labels().any(|label| is_age(label, bounded.scale)) {
        Scale::Number
    } else {
        bounded.scale
    };
    let outermost = bounded.outermost.filter(|_| scale == bounded.scale);
    let read: Vec<Option<(f64, f64)>> = labels()
        .map(|label| match label {
            SUPPRESSED_LABEL => outermost,
            MISSING_LABEL => None,
            label => bounds_of(label, scale),
        })
        .collect();
    let [lo, hi] = names_of_bounds(&column.name);
    let ends = |bounds: Option<(f64, f64)>| (bounds.map(|it| it.0), bounds.map(|it| it.1));
    let (los, his): (Vec<_>, Vec<_>) = read.into_iter().map(ends).unzip();
    let codes = &column.column.codes;
    [
        numbers(lo, scale, &los, codes),
        numbers(hi, scale, &his, codes),
    ]
}

/// Whether a label of a column of dates is a range of ages, such as `[35,40)`.
fn is_age(label: &str, scale: Scale) -> bool {
    scale != Scale::Number
        && label.starts_with('[')
        && Interval::parse_on(label, scale).is_none()
        && Interval::parse(label).is_some()
}

fn bounds_of(label: &str, scale: Scale) -> Option<(f64, f64)> {
    let period = match scale {
        Scale::Number => None,
        Scale::Day => days_of_label(label),
        Scale::Moment => moments_of_label(label),
    };
    if let Some((first, last)) = period {
        return Some((first as f64, last as f64));
    }
    let interval = Interval::parse_on(label, scale)?;
    Some((interval.lo, interval.hi))
}

/// A column of values that a dictionary's codes name.
fn numbers(name: String, scale: Scale, values: &[Option<f64>], codes: &[u32]) -> ReleasedColumn {
    let mut dictionary: Vec<Box<str>> = Vec::new();
    let mut known: HashMap<u64, u32> = HashMap::new();
    let mut code_of = |value: &Option<f64>| {
        let Some(value) = *value else {
            return NULL_CODE;
        };
        *known.entry(value.to_bits()).or_insert_with(|| {
            dictionary.push(scale.text(value).into());
            dictionary.len() as u32 - 1
        })
    };
    let new: Vec<u32> = values.iter().map(&mut code_of).collect();
    let new_code = |code: &u32| new.get(*code as usize).copied().unwrap_or(NULL_CODE);
    ReleasedColumn {
        name: name.into(),
        form: match scale {
            Scale::Number => Form::Number,
            Scale::Day => Form::Day,
            Scale::Moment => Form::Moment,
        },
        column: Column {
            codes: codes.iter().map(new_code).collect(),
            dictionary,
        },
        missing: Vec::new(),
    }
}
