//! The scale of an axis: from values to positions, and its ticks.

use crate::measured::shown;

/// About the number of ticks.
const TICKS: f64 = 6.0;

/// Least distance of two labelled places of the horizontal axis, as a share of it.
const LEAST_DISTANCE: f64 = 0.12;

/// A scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    first: f64,
    last: f64,
    logarithmic: bool,
}

impl Scale {
    /// From 0 (or a power of ten) to a round number above the greatest value. Logarithmic only
    /// where all values are positive.
    pub(super) fn new(values: impl Iterator<Item = f64>, logarithmic: bool) -> Self {
        let values: Vec<f64> = values.collect();
        let greatest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        if logarithmic && least > 0.0 && least.is_finite() {
            let first = 10f64.powf(least.log10().floor());
            let last = 10f64.powf(greatest.log10().ceil()).max(first * 10.0);
            return Self {
                first,
                last,
                logarithmic: true,
            };
        }
        let step = round_step(greatest - least.min(0.0));
        Self {
            first: (least.min(0.0) / step).floor() * step,
            last: (greatest / step).ceil() * step,
            logarithmic: false,
        }
    }

    /// From the first to the last place, with a little room beside them.
    pub(super) fn tight(places: &[f64], logarithmic: bool) -> Self {
        let first = places.iter().copied().fold(f64::INFINITY, f64::min);
        let last = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let logarithmic = logarithmic && first > 0.0;
        let room = if last > first {
            (last - first) * 0.03
        } else {
            1.0
        };
        if logarithmic {
            Self {
                first: first * 0.9,
                last: last * 1.1,
                logarithmic,
            }
        } else {
            Self {
                first: first - room,
                last: last + room,
                logarithmic,
            }
        }
    }

    /// Where a value is, from 0 to 1.
    pub(super) fn position(&self, value: f64) -> f64 {
        let (first, last, value) = if self.logarithmic {
            (self.first.log10(), self.last.log10(), value.log10())
        } else {
            (self.first, self.last, value)
        };
        (value - first) / (last - first)
    }

    /// Round numbers from one end to the other.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let (first, last) = (self.first.log10().round(), self.last.log10().round());
            let powers = first as i32..=last as i32;
            return powers.map(|power| 10f64.powi(power)).collect();
        }
        let step = round_step(self.last - self.first);
        let count = ((self.last - self.first) / step).round() as u32;
        (0..=count)
            .map(|index| self.first + f64::from(index) * step)
            .collect()
    }

    /// The places that get a label: all that are not too near to the one before.
    pub(super) fn places(&self, places: &[f64]) -> Vec<f64> {
        let mut sorted = places.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let mut labelled: Vec<f64> = Vec::new();
        for place in sorted {
            let is_far = |last: &f64| self.position(place) - self.position(*last) > LEAST_DISTANCE;
            if labelled.last().is_none_or(is_far) {
                labelled.push(place);
            }
        }
        labelled
    }

    /// The label of a tick. Powers of ten keep all their decimals.
    pub(super) fn label(&self, tick: f64) -> String {
        match self.logarithmic && tick < 1.0 {
            true => format!("{tick}"),
            false if tick.abs() < 1e-9 => "0".to_owned(),
            false => shown(tick),
        }
    }
}

/// 1, 2 or 5 times a power of ten, so that a span has about [`TICKS`] steps.
fn round_step(span: f64) -> f64 {
    let raw = (span / TICKS).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(raw.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|it| it * power);
    steps
        .into_iter()
        .find(|step| *step >= raw * 0.999)
        .unwrap_or(raw)
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn a_linear_scale_begins_at_zero_and_ends_at_a_round_number() {
        let scale = Scale::new([0.12, 0.47].into_iter(), false);
        let labels: Vec<String> = scale.ticks().iter().map(|it| scale.label(*it)).collect();
        assert_eq!(labels, ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(scale.position(0.25), 0.5);
    }

    #[test]
    fn a_scale_with_negative_values_has_zero_among_its_ticks() {
        let scale = Scale::new([-3.0, 5.0].into_iter(), false);
        assert!(scale.ticks().iter().any(|tick| tick.abs() < 1e-9));
        assert!(scale.position(-3.0) >= 0.0 && scale.position(5.0) <= 1.0);
    }

    #[test]
    fn a_logarithmic_scale_has_powers_of_ten() {
        let scale = Scale::new([65.8, 72_194.0].into_iter(), true);
        let labels: Vec<String> = scale.ticks().iter().map(|it| scale.label(*it)).collect();
        assert_eq!(labels, ["10", "100", "1,000", "10,000", "100,000"]);
        assert!((scale.position(1_000.0) - 0.5).abs() < 1e-12);
        let small = Scale::new([0.0001, 0.02].into_iter(), true);
        assert_eq!(small.label(small.ticks()[0]), "0.0001");
    }

    #[test]
    fn places_too_near_to_each_other_share_a_label() {
        let places = [1.0, 1.1, 3.0, 10.0];
        let scale = Scale::tight(&places, false);
        assert_eq!(scale.places(&places), [1.0, 3.0, 10.0]);
    }
}
