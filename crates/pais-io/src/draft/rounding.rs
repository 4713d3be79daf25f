//! The step to which a measure is rounded, so that few rounded numbers occur in one row only.

use pais_core::taxonomy::interval::number;

use super::numbers::FORMS;
use super::observed::Observed;

/// Minimum number of rows and distinct values of a measure that is rounded.
const LEAST_ROWS: u64 = 20;
const LEAST_VALUES: u64 = 20;

/// Steps between the first and the last decile of the distinct values, at most.
const MOST_STEPS: f64 = 20.0;

/// The step for a column of numbers in this form; `None` where rounding would change little.
pub(super) fn step(column: &Observed, form: usize) -> Option<f64> {
    if column.rows < LEAST_ROWS || column.distinct < LEAST_VALUES {
        return None;
    }
    let values = column.sketch.values();
    let values = values.filter_map(|text| number(&FORMS[form].plain(text)?));
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let spread = values[last - last / 10] - values[last / 10];
    let step = round_up(spread / MOST_STEPS)?;
    let is_multiple = |value: &f64| {
        let times = value / step;
        (times - times.round()).abs() < 1e-9
    };
    // Most numbers are multiples already.
    let multiples = values.iter().filter(|value| is_multiple(value)).count();
    (multiples * 10 < 9 * values.len()).then_some(step)
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least this value.
fn round_up(value: f64) -> Option<f64> {
    if !(value > 1e-9 && value < 1e15) {
        return None;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = steps
        .into_iter()
        .find(|step| *step >= value * (1.0 - 1e-9))?;
    // A power of ten below 1 is written as its decimal.
    format!("{step:.9}")
        .parse::<f64>()
        .ok()
        .filter(|step| *step > 0.0)
}

#[cfg(test)]
mod tests {
    use pais_core::table::Column;

    use super::{round_up, step};
    use crate::draft::observed::Observed;

    fn measured(values: impl Iterator<Item = f64>) -> Option<f64> {
        let mut column = Observed::new(None);
        let dictionary: Vec<Box<str>> = values.map(|value| value.to_string().into()).collect();
        let codes = (0..dictionary.len() as u32).collect();
        column.distinct = dictionary.len() as u64;
        column.add(&Column { dictionary, codes });
        step(&column, 0)
    }

    /// The deciles of the numbers from 0 to 99.9 are 80 apart; a twentieth of that is 4.
    #[test]
    fn a_measure_is_rounded_to_a_twentieth_of_its_spread() {
        assert_eq!(
            measured((0..200).map(|row| f64::from(row) * 0.4999)),
            Some(5.0)
        );
        assert_eq!(
            measured((0..200).map(|row| f64::from(row) * 0.004_999)),
            Some(0.05)
        );
        // An outlier changes nothing.
        let outlier = (0..200).map(|row| f64::from(row) * 0.4999).chain([1e12]);
        assert_eq!(measured(outlier), Some(5.0));
        // Whole numbers that are not far apart stay.
        assert_eq!(measured((0..25).map(f64::from)), None);
        assert_eq!(measured((0..3).map(f64::from)), None);
    }

    #[test]
    fn steps_are_round() {
        for (value, step) in [
            (0.3, 0.5),
            (1.0, 1.0),
            (1.1, 2.0),
            (7.0, 10.0),
            (230.0, 500.0),
        ] {
            assert_eq!(round_up(value), Some(step), "{value}");
        }
        assert_eq!(round_up(0.0), None);
    }
}
