//! The bounds of generalized numbers and dates as columns of their own, which tools can compute
//! with.

use std::borrow::Cow;

use crate::table::{Column, Form, ReleasedColumn, ReleasedTable};
use crate::taxonomy::SUPPRESSED_LABEL;
use crate::taxonomy::{Interval, MISSING_LABEL, Scale};

/// A column of numbers or dates whose labels have bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundedColumn {
    /// The name.
    pub name: Box<str>,
    /// The scale of its values.
    pub scale: Scale,
    /// The bounds of the label `*`; `None` if they are not known.
    pub outermost: Option<(f64, f64)>,
}

/// The names of the two columns of bounds of a column.
pub fn names_of_bounds(name: &str) -> [String; 2] {
    [format!("{name}_lo"), format!("{name}_hi")]
}

/// The first column of bounds whose name is that of another column of the table.
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
    /// The table with the columns `<column>_lo` and `<column>_hi` after each generalized column of `bounded`.
    ///
    /// Both bounds of `[30,60)` and of `[30,60]` are 30 and 60, and those of an exact value are the value. A
    /// period of the calendar has its first and last day, or millisecond in a column of moments. The label `*`
    /// has the outermost bounds. `?` and a label that is not an interval have none: null. A column of dates
    /// whose labels are ranges of ages has numbers of years.
    ///
    /// Names are not checked: see [`taken_name`].
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
    let ends = |label: &str| match label {
        SUPPRESSED_LABEL => outermost,
        MISSING_LABEL => None,
        label => Interval::of_label(label, scale).map(|it| (it.lo, it.hi)),
    };
    let [lo, hi] = names_of_bounds(&column.name);
    let labels = &column.column;
    [
        numbers(lo, scale, labels, |label| ends(label).map(|it| it.0)),
        numbers(hi, scale, labels, |label| ends(label).map(|it| it.1)),
    ]
}

/// Whether a label of a column of dates is a range of ages, such as `[35,40)`.
fn is_age(label: &str, scale: Scale) -> bool {
    scale != Scale::Number
        && label.starts_with('[')
        && Interval::parse_on(label, scale).is_none()
        && Interval::parse(label).is_some()
}

/// A column of the numbers of labels.
fn numbers(
    name: String,
    scale: Scale,
    labels: &Column,
    number: impl Fn(&str) -> Option<f64>,
) -> ReleasedColumn {
    let mut column = labels.clone();
    column.replace_texts(|label| Some(Cow::Owned(scale.text(number(label)?))));
    ReleasedColumn {
        name: name.into(),
        form: match scale {
            Scale::Number => Form::Number,
            Scale::Day => Form::Day,
            Scale::Moment => Form::Moment,
        },
        column,
        missing: Vec::new(),
    }
}
