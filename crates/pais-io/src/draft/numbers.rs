//! Numbers as files write them: with a point or a comma, with and without separators of thousands.

use pais_core::taxonomy::interval::number;

use crate::read::{DecimalMark, NumberText, ThousandsMark};

/// The forms that are tried. If several fit all columns, the first one is proposed.
pub(super) const FORMS: [NumberText; 10] = [
    form('.', None),
    form(',', None),
    form('.', Some(',')),
    form(',', Some('.')),
    form('.', Some(' ')),
    form(',', Some(' ')),
    form('.', Some('\'')),
    form(',', Some('\u{a0}')),
    form(',', Some('\u{202f}')),
    form('.', Some('\u{2019}')),
];

const fn form(decimal: char, thousands: Option<char>) -> NumberText {
    NumberText { decimal, thousands }
}

/// The marks of a form as parts of a text format.
pub(super) fn marks(form: usize) -> (DecimalMark, Option<ThousandsMark>) {
    let NumberText { decimal, thousands } = FORMS[form];
    let decimal = if decimal == ',' {
        DecimalMark::Comma
    } else {
        DecimalMark::Point
    };
    (decimal, thousands.and_then(ThousandsMark::new))
}

/// The range of a column's values as numbers of one form.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberRange {
    /// The smallest value.
    pub(super) lo: f64,
    /// The greatest value.
    pub(super) hi: f64,
    /// Whether all are whole.
    pub(super) is_whole: bool,
}

/// The forms in which all values of a column are numbers, with their ranges.
#[derive(Clone, Debug)]
pub(super) struct NumberForms {
    ranges: [Option<NumberRange>; FORMS.len()],
}

impl Default for NumberForms {
    fn default() -> Self {
        let none = NumberRange {
            lo: f64::INFINITY,
            hi: f64::NEG_INFINITY,
            is_whole: true,
        };
        Self {
            ranges: [Some(none); FORMS.len()],
        }
    }
}

impl NumberForms {
    /// Adds a value. A form in which it is not a number is dropped.
    pub(super) fn add(&mut self, text: &str) {
        for (form, slot) in FORMS.iter().zip(&mut self.ranges) {
            let Some(range) = slot else { continue };
            match form.plain(text).and_then(|plain| number(&plain)) {
                None => *slot = None,
                Some(value) => {
                    range.lo = range.lo.min(value);
                    range.hi = range.hi.max(value);
                    range.is_whole &= value.fract() == 0.0;
                }
            }
        }
    }

    /// The range under a form; `None` if some value is not a number in it.
    pub(super) fn range(&self, form: usize) -> Option<NumberRange> {
        self.range_with(form, std::iter::empty())
    }

    /// The range under a form with other whole numbers.
    pub(super) fn range_with(
        &self,
        form: usize,
        others: impl Iterator<Item = f64>,
    ) -> Option<NumberRange> {
        let widen = |range: NumberRange, value: f64| NumberRange {
            lo: range.lo.min(value),
            hi: range.hi.max(value),
            ..range
        };
        let range = others.fold(self.ranges[form]?, widen);
        (range.lo <= range.hi).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::{FORMS, NumberForms};

    /// The decimal and thousands marks of the forms in which all values are numbers.
    fn forms(values: &[&str]) -> Vec<String> {
        let mut found = NumberForms::default();
        values.iter().for_each(|value| found.add(value));
        let fit = (0..FORMS.len()).filter(|&form| found.range(form).is_some());
        fit.map(|form| {
            let form = FORMS[form];
            [Some(form.decimal), form.thousands]
                .into_iter()
                .flatten()
                .collect()
        })
        .collect()
    }

    #[test]
    fn values_decide_the_form() {
        assert_eq!(forms(&["17", "90"]).len(), FORMS.len());
        assert_eq!(forms(&["17.25"]), [".", ".,", ". ", ".'", ".\u{2019}"]);
        assert_eq!(
            forms(&["3,5", "12"]),
            [",", ",.", ", ", ",\u{a0}", ",\u{202f}"]
        );
        assert_eq!(forms(&["1.234,5"]), [",."]);
        assert_eq!(forms(&["1,234,567.8", "12"]), [".,"]);
        assert_eq!(forms(&["1 234,5"]), [", "]);
        assert_eq!(forms(&["1'234.5"]), [".'"]);
        assert_eq!(forms(&["12\u{202f}000,5"]), [",\u{202f}"]);
        assert_eq!(forms(&["2.5e-3"]), [".", ".,", ". ", ".'", ".\u{2019}"]);
        for text in [
            "old",
            "1.2.3",
            "1,2,3",
            "NaN",
            "inf",
            "",
            "12,34,567.8",
            "1.5,000",
        ] {
            assert!(forms(&[text]).is_empty(), "{text:?}");
        }
        assert!(forms(&["1.5", "1,5"]).is_empty());
    }

    #[test]
    fn the_range_is_that_of_the_form() {
        let mut found = NumberForms::default();
        for value in ["1.234", "-7"] {
            found.add(value);
        }
        let plain = found.range(0).unwrap();
        assert_eq!((plain.lo, plain.hi, plain.is_whole), (-7.0, 1.234, false));
        let german = found.range(3).unwrap();
        assert_eq!(
            (german.lo, german.hi, german.is_whole),
            (-7.0, 1234.0, true)
        );
    }
}
