//! The multiples of a decimal number: ends of intervals that are not a patient's exact value.

use std::cmp::Ordering;

use super::interval::{Interval, number, whole_and_power};

/// The whole multiples of a number, computed in decimals: each is the floating-point number nearest
/// to the exact one, so that multiples of 0.1 are written as short as 0.3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Multiples {
    width: f64,
    /// The width as a whole number times a power of ten.
    exact: (i128, i32),
}

/// Where a number is among the multiples.
#[derive(Clone, Copy)]
struct MultiplePlace {
    /// Which multiple is the greatest that is at most the number.
    index: i128,
    /// Whether it is the number.
    is_multiple: bool,
    /// How the distance to the number compares with that from the number to the next multiple.
    half: Ordering,
}

impl Multiples {
    /// The multiples of a number; `None` unless it is above 0 and at most 1e300.
    pub(crate) fn of(width: f64) -> Option<Self> {
        let exact = decimal(width)?;
        (width > 0.0).then_some(Self { width, exact })
    }

    /// The greatest multiple that is at most `value`. `None` if the value is so large compared with the
    /// width that 38 digits cannot write the multiple.
    pub fn floor(&self, value: f64) -> Option<f64> {
        self.end(self.place(value)?.index)
    }

    /// The least multiple that is at least `value`; `None` as for [`Self::floor`].
    pub(crate) fn ceil(&self, value: f64) -> Option<f64> {
        let place = self.place(value)?;
        self.end(place.index.checked_add(i128::from(!place.is_multiple))?)
    }

    /// The least multiple that is greater than `value`; `None` as for [`Self::floor`].
    pub fn above(&self, value: f64) -> Option<f64> {
        self.end(self.place(value)?.index.checked_add(1)?)
    }

    /// The greatest multiple that is less than `value`; `None` as for [`Self::floor`].
    pub fn below(&self, value: f64) -> Option<f64> {
        let place = self.place(value)?;
        self.end(place.index.checked_sub(i128::from(place.is_multiple))?)
    }

    /// The multiple that is nearest to `value`; of two, the one further from 0. `None` as for
    /// [`Self::floor`].
    pub fn nearest(&self, value: f64) -> Option<f64> {
        let place = self.place(value)?;
        let is_up = match place.half {
            Ordering::Less => false,
            Ordering::Equal => value > 0.0,
            Ordering::Greater => true,
        };
        self.end(place.index.checked_add(i128::from(is_up))?)
    }

    /// Whether `value` is a multiple.
    #[cfg(test)]
    fn contains(&self, value: f64) -> bool {
        self.place(value).is_some_and(|place| place.is_multiple)
    }

    /// The narrowest closed interval between two multiples that encloses the values from `lo` to
    /// `hi` and is wider than one point. An end beyond `within` is the end of that closed interval, which
    /// must enclose the values.
    ///
    /// Values that [`Self::floor`] has no answer for keep their ends; a reader refuses them.
    pub fn enclosing(&self, lo: f64, hi: f64, within: Option<Interval>) -> (f64, f64) {
        let within = within.unwrap_or(Interval::closed(f64::NEG_INFINITY, f64::INFINITY));
        let (least, most) = (within.lo, within.hi);
        let low = self.floor(lo).unwrap_or(lo).max(least);
        let high = self.ceil(hi).unwrap_or(hi).min(most);
        if low < high {
            return (low, high);
        }
        match self.above(high).map(|above| above.min(most)) {
            Some(above) if above > high => (low, above),
            _ => (self.below(low).unwrap_or(low).max(least), high),
        }
    }

    fn place(&self, value: f64) -> Option<MultiplePlace> {
        if value.abs() < self.width {
            // Also for values that have no power of ten in common with the width.
            let half = (2.0 * value.abs()).total_cmp(&self.width);
            let is_negative = value < 0.0;
            return Some(MultiplePlace {
                index: if is_negative { -1 } else { 0 },
                is_multiple: value == 0.0,
                half: if is_negative { half.reverse() } else { half },
            });
        }
        let (value, value_power) = decimal(value)?;
        let (width, width_power) = self.exact;
        let power = value_power.min(width_power);
        let scaled = |whole: i128, own: i32| {
            let times = u32::try_from(own.checked_sub(power)?).ok()?;
            10i128.checked_pow(times)?.checked_mul(whole)
        };
        let (value, width) = (scaled(value, value_power)?, scaled(width, width_power)?);
        let rest = value.rem_euclid(width);
        Some(MultiplePlace {
            index: value.div_euclid(width),
            is_multiple: rest == 0,
            half: rest.cmp(&(width - rest)),
        })
    }

    /// The multiple with an index.
    fn end(&self, index: i128) -> Option<f64> {
        let (width, power) = self.exact;
        number(&format!("{}e{power}", index.checked_mul(width)?))
    }
}

/// A number as the shortest decimal that reads back equal.
fn decimal(value: f64) -> Option<(i128, i32)> {
    whole_and_power(&format!("{value:e}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Interval, Multiples};

    #[test]
    fn ends_are_exact_and_short() {
        let tenths = Multiples::of(0.1).unwrap();
        for (value, below, above) in [
            (0.3, "0.3", "0.3"),
            (0.31, "0.3", "0.4"),
            (0.7000000000000001, "0.7", "0.8"),
            (-0.05, "-0.1", "0"),
            (1e-300, "0", "0.1"),
            (-1e-300, "-0.1", "0"),
            (1e15, "1000000000000000", "1000000000000000"),
        ] {
            assert_eq!(tenths.floor(value).unwrap().to_string(), below, "{value}");
            assert_eq!(tenths.ceil(value).unwrap().to_string(), above, "{value}");
        }
        assert_eq!(tenths.above(0.3), Some(0.4));
        assert_eq!(tenths.below(0.3), Some(0.2));
        assert_eq!(tenths.floor(1e300), None);
    }

    #[test]
    fn the_nearest_multiple_is_found_exactly_and_ties_go_away_from_zero() {
        let nearest = |width: f64, value: f64| {
            let multiples = Multiples::of(width).unwrap();
            multiples.nearest(value).unwrap().to_string()
        };
        for (width, value, expected) in [
            (10.0, 44.9, "40"),
            (10.0, 45.0, "50"),
            (10.0, -45.0, "-50"),
            (10.0, -44.9, "-40"),
            (10.0, 4.9, "0"),
            (10.0, 5.0, "10"),
            (10.0, -5.0, "-10"),
            (10.0, -4.9, "0"),
            (10.0, 30.0, "30"),
            (0.1, 0.25, "0.3"),
            (0.1, 0.05, "0.1"),
            (0.1, 0.15, "0.2"),
            (2.5, 1.25, "2.5"),
            (0.05, 0.125, "0.15"),
            (1e6, 1e-300, "0"),
        ] {
            assert_eq!(nearest(width, value), expected, "{value} by {width}");
        }
        assert_eq!(Multiples::of(0.1).unwrap().nearest(1e300), None);
    }

    #[test]
    fn a_width_is_positive_and_finite() {
        for width in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, 1e301] {
            assert_eq!(Multiples::of(width), None, "{width}");
        }
        assert!(Multiples::of(1e300).is_some() && Multiples::of(1e-300).is_some());
    }

    #[test]
    fn an_enclosing_interval_is_wider_than_one_point_and_stays_within_its_bounds() {
        let tens = Multiples::of(10.0).unwrap();
        let within = |lo, hi| Some(Interval::closed(lo, hi));
        assert_eq!(tens.enclosing(20.0, 34.0, None), (20.0, 40.0));
        assert_eq!(tens.enclosing(40.0, 40.0, None), (40.0, 50.0));
        assert_eq!(tens.enclosing(40.0, 40.0, within(0.0, 40.0)), (30.0, 40.0));
        assert_eq!(tens.enclosing(17.0, 95.0, within(17.0, 98.0)), (17.0, 98.0));
        assert_eq!(tens.enclosing(98.0, 98.0, within(17.0, 98.0)), (90.0, 98.0));
        assert_eq!(tens.enclosing(17.0, 17.0, within(17.0, 98.0)), (17.0, 20.0));
        assert_eq!(tens.enclosing(17.0, 17.0, within(17.0, 17.0)), (17.0, 17.0));
    }

    proptest! {
        #[test]
        fn a_value_is_between_two_multiples(
            whole in -1_000_000i32..1_000_000, decimals in 0usize..5,
            width in 1u32..500, width_decimals in 0usize..4,
        ) {
            let cut = |whole: f64, decimals: usize| {
                format!("{:.decimals$}", whole / 10f64.powi(decimals as i32)).parse::<f64>().unwrap()
            };
            let value = cut(f64::from(whole), decimals);
            let width = cut(f64::from(width), width_decimals);
            let multiples = Multiples::of(width).unwrap();
            let (low, high) = (multiples.floor(value).unwrap(), multiples.ceil(value).unwrap());
            prop_assert!(low <= value && value <= high);
            prop_assert!(multiples.contains(low) && multiples.contains(high));
            prop_assert_eq!(low == high, multiples.contains(value));
            prop_assert!(high - low <= width * 1.0001);
            prop_assert!(multiples.below(value).unwrap() < value);
            prop_assert!(multiples.above(value).unwrap() > value);
            prop_assert!(low.to_string().len() <= 12, "{}", low);
        }
    }
}
