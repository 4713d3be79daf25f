//! The measurements of a figure, as in its CSV file.

use std::path::Path;

use anyhow::Context;

use crate::axis::Axis;

/// The measured values of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MeasuredFigure {
    /// In the order of the figure.
    pub series: Vec<MeasuredSeries>,
}

/// The measured values of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeasuredSeries {
    /// Its name in the legend.
    pub name: String,
    /// In the order of the series.
    pub points: Vec<MeasuredPoint>,
}

/// A measured value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeasuredPoint {
    /// The place on the horizontal axis.
    pub x: f64,
    /// The value; `None` where the job could not be met.
    pub y: Option<f64>,
    /// Why there is no value.
    pub note: String,
}

impl MeasuredFigure {
    /// The series of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&MeasuredSeries> {
        self.series.iter().find(|series| series.name == name)
    }

    /// Whether any point has a value.
    pub(crate) fn has_values(&self) -> bool {
        let mut points = self.series.iter().flat_map(|series| &series.points);
        points.any(|point| point.y.is_some())
    }

    /// Writes the CSV file: `series,x,y,note`, one line per point.
    pub(crate) fn write_csv(&self, file: &Path, x: Axis) -> anyhow::Result<()> {
        let mut out = csv::Writer::from_path(file)?;
        out.write_record(["series", "x", "y", "note"])?;
        for series in &self.series {
            for point in &series.points {
                let place = match x.names.get(point.x as usize) {
                    Some(name) => (*name).to_owned(),
                    None => point.x.to_string(),
                };
                let value = point.y.map(|y| y.to_string()).unwrap_or_default();
                out.write_record([&series.name, &place, &value, &point.note])?;
            }
        }
        out.flush()?;
        Ok(())
    }

    /// Reads the CSV file of a figure with this horizontal axis.
    pub(crate) fn read_csv(file: &Path, x: Axis) -> anyhow::Result<Self> {
        let mut found = Self::default();
        for record in csv::Reader::from_path(file)?.records() {
            let record = record?;
            let cell = |index: usize| record.get(index).context("a line has four cells");
            let place = match x.names.iter().position(|name| Some(*name) == record.get(1)) {
                Some(index) => index as f64,
                None => cell(1)?.parse()?,
            };
            let y = cell(2)?;
            let point = MeasuredPoint {
                x: place,
                y: (!y.is_empty()).then(|| y.parse()).transpose()?,
                note: cell(3)?.to_owned(),
            };
            let name = cell(0)?;
            match found.series.last_mut() {
                Some(last) if last.name == name => last.points.push(point),
                _ => found.series.push(MeasuredSeries {
                    name: name.to_owned(),
                    points: vec![point],
                }),
            }
        }
        Ok(found)
    }
}

impl MeasuredSeries {
    /// The value at a place.
    pub(crate) fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|point| point.x == x)?.y
    }

    /// All values, without the places that have none.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().filter_map(|point| point.y)
    }

    /// This series minus another, at the places where both have a value.
    pub(crate) fn minus(&self, other: &Self) -> Vec<f64> {
        let pairs = self.points.iter();
        let pairs = pairs.filter_map(|point| Some(point.y? - other.at(point.x)?));
        pairs.collect()
    }
}

/// `a to b`, the smallest and the largest of some values, or one number; `None` without any.
pub(crate) fn range(values: impl IntoIterator<Item = f64>) -> Option<String> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let (first, last) = (shown(*values.first()?), shown(*values.last()?));
    Some(if first == last {
        first
    } else {
        format!("{first} to {last}")
    })
}

/// A number in readable form: three significant digits, at most four decimals, and thousands apart.
pub(crate) fn shown(value: f64) -> String {
    let digits = if value == 0.0 || !value.is_finite() {
        0
    } else {
        2 - value.abs().log10().floor() as i32
    };
    let digits = digits.clamp(0, 4) as usize;
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text.as_str()
    };
    match text {
        "-0" => "0".to_owned(),
        _ => with_thousands(text),
    }
}

fn with_thousands(text: &str) -> String {
    let end = text.find('.').unwrap_or(text.len());
    let start = usize::from(text.starts_with('-'));
    let mut out = String::with_capacity(text.len() + 4);
    for (index, character) in text.char_indices() {
        if index > start && index < end && (end - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{range, shown};

    #[test]
    fn numbers_are_shown_with_three_significant_digits() {
        let cases = [
            (0.0, "0"),
            (0.000_116_78, "0.0001"),
            (0.072_644, "0.0726"),
            (-0.000_01, "0"),
            (0.5, "0.5"),
            (14.72, "14.7"),
            (72_194.0, "72,194"),
            (-1_234_567.8, "-1,234,568"),
        ];
        for (value, text) in cases {
            assert_eq!(shown(value), text);
        }
    }

    #[test]
    fn a_range_of_equal_numbers_is_one_number() {
        assert_eq!(range([0.5, 0.1]), Some("0.1 to 0.5".to_owned()));
        assert_eq!(range([2.0, 2.0]), Some("2".to_owned()));
        assert_eq!(range([]), None);
    }
}
