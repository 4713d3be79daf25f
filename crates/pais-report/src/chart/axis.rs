//! Axes: from numbers to places in a picture, and where the ticks are.

/// How numbers are laid out on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal lengths.
    Linear,
    /// Equal ratios have equal lengths; for numbers above 0.
    Logarithmic,
}

/// An axis from its first number to its last.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures, with its unit.
    pub title: String,
    /// Its scale.
    pub scale: Scale,
    /// Whether its numbers are shares, shown as percentages.
    pub is_share: bool,
    /// The names of the places 0, 1, 2, ... if it has names instead of numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// An axis of numbers with equal differences.
    pub fn linear(title: &str, is_share: bool) -> Self {
        Self {
            title: title.to_owned(),
            scale: Scale::Linear,
            is_share,
            names: Vec::new(),
        }
    }

    /// A number, or the name of a place, as text.
    pub(crate) fn text(&self, number: f64) -> String {
        match self.names.get(number as usize) {
            Some(name) => name.clone(),
            None => tick_text(number, self.is_share),
        }
    }
}

/// The part of an axis that a chart shows.
pub(crate) struct Range {
    scale: Scale,
    first: f64,
    last: f64,
    /// The numbers with a tick.
    pub(crate) ticks: Vec<f64>,
}

impl Range {
    /// The range that has all numbers, with round ends; a linear one begins at 0 where `from_zero`.
    pub(crate) fn of(scale: Scale, numbers: &[f64], from_zero: bool) -> Self {
        let numbers = || numbers.iter().copied().filter(|number| number.is_finite());
        let positive = || numbers().filter(|number| *number > 0.0);
        match scale {
            Scale::Logarithmic => {
                let least = positive().fold(f64::INFINITY, f64::min);
                let most = positive().fold(0.0, f64::max);
                if most <= 0.0 {
                    return Self::of(Scale::Linear, &[0.0, 1.0], true);
                }
                let (from, to) = (least.log10().floor() as i32, most.log10().ceil() as i32);
                let to = to.max(from + 1);
                Self {
                    scale,
                    first: f64::from(from),
                    last: f64::from(to),
                    ticks: (from..=to).map(|power| 10f64.powi(power)).collect(),
                }
            }
            Scale::Linear => {
                let least = numbers().fold(f64::INFINITY, f64::min);
                let most = numbers().fold(f64::NEG_INFINITY, f64::max);
                let (least, most) = if least <= most {
                    (if from_zero { least.min(0.0) } else { least }, most)
                } else {
                    (0.0, 1.0)
                };
                let step = round_step((most - least).max(most.abs() * 1e-9).max(1e-12) / 5.0);
                let (from, to) = ((least / step).floor(), (most / step).ceil());
                let to = to.max(from + 1.0);
                let places = 0..=(to - from) as u32;
                Self {
                    scale,
                    first: from * step,
                    last: to * step,
                    ticks: places
                        .map(|place| (from + f64::from(place)) * step)
                        .collect(),
                }
            }
        }
    }

    /// The range of this many names, each in the middle of its place.
    pub(crate) fn of_names(count: usize) -> Self {
        Self {
            scale: Scale::Linear,
            first: -0.5,
            last: count as f64 - 0.5,
            ticks: (0..count).map(|place| place as f64).collect(),
        }
    }

    /// The place of a number, 0 at the first end and 1 at the last.
    pub(crate) fn place(&self, number: f64) -> f64 {
        let number = match self.scale {
            Scale::Linear => number,
            Scale::Logarithmic => number.max(f64::MIN_POSITIVE).log10(),
        };
        ((number - self.first) / (self.last - self.first)).clamp(0.0, 1.0)
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * power >= step * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// A number at a tick.
fn tick_text(number: f64, is_share: bool) -> String {
    if is_share {
        return crate::words::percent(number);
    }
    match number.abs() {
        value if value >= 1e6 => trimmed(number / 1e6, " M"),
        value if value >= 1e4 => trimmed(number / 1e3, " k"),
        _ => trimmed(number, ""),
    }
}

fn trimmed(number: f64, unit: &str) -> String {
    let text = format!("{number:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}{unit}", if text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::{Range, Scale, tick_text};

    #[test]
    fn a_linear_axis_has_round_ticks_around_its_numbers() {
        let range = Range::of(Scale::Linear, &[0.03, 0.42], true);
        let ticks: Vec<String> = range
            .ticks
            .iter()
            .map(|tick| tick_text(*tick, false))
            .collect();
        assert_eq!(ticks, ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!((range.place(0.0), range.place(0.5)), (0.0, 1.0));
        assert!((range.place(0.25) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_logarithmic_axis_has_a_tick_for_each_power_of_ten() {
        let range = Range::of(Scale::Logarithmic, &[20.0, 30_000.0], true);
        assert_eq!(range.ticks, [10.0, 100.0, 1e3, 1e4, 1e5]);
        assert!((range.place(1e3) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn no_numbers_or_equal_ones_make_an_axis_too() {
        assert!(Range::of(Scale::Linear, &[], true).ticks.len() >= 2);
        assert!(Range::of(Scale::Linear, &[3.0, 3.0], false).ticks.len() >= 2);
        assert!(Range::of(Scale::Logarithmic, &[0.0], true).ticks.len() >= 2);
        let range = Range::of(Scale::Linear, &[0.0], true);
        assert!(range.place(0.0).is_finite());
    }
}
