//! Ranges widened to round numbers, so that their ends are not exact values of a table.

use super::interval::{number, whole_and_power};

/// The narrowest range around `lo` and `hi` with multiples of a unit as ends. The unit is the
/// greatest power of ten that is at most the width; for a range of one number at most its
/// magnitude, and at least 1.
///
/// Computed in decimals: the ends are the numbers nearest to the exact multiples.
pub fn round_range(lo: f64, hi: f64) -> (f64, f64) {
    exact_range(lo, hi).unwrap_or_else(|| rounded_range(lo, hi))
}

/// The range in whole numbers, both ends in units of the same power of ten; `None` if the ends differ too much
/// in size for 38 digits.
fn exact_range(lo: f64, hi: f64) -> Option<(f64, f64)> {
    let (low, low_power) = whole_and_power(&format!("{lo:e}"))?;
    let (high, high_power) = whole_and_power(&format!("{hi:e}"))?;
    // Zero has any power.
    let power = match (low, high) {
        (0, 0) => 0,
        (0, _) => high_power,
        (_, 0) => low_power,
        _ => low_power.min(high_power),
    };
    let scaled = |whole: i128, own: i32| match whole {
        0 => Some(0),
        _ => 10i128
            .checked_pow(u32::try_from(own - power).ok()?)?
            .checked_mul(whole),
    };
    let (low, high) = (scaled(low, low_power)?, scaled(high, high_power)?);
    let width = high.checked_sub(low)?;
    let unit = match width {
        // At least 1, which is more than one of these units where they are fractions.
        0 => {
            let one = u32::try_from(-power).map_or(Some(1), |power| 10i128.checked_pow(power))?;
            unit_of(high.checked_abs()?).max(one)
        }
        width => unit_of(width),
    };
    let multiple = |whole: i128| number(&format!("{}e{power}", whole.checked_mul(unit)?));
    let above = high.checked_neg()?.div_euclid(unit).checked_neg()?;
    Some((multiple(low.div_euclid(unit))?, multiple(above)?))
}

/// The greatest power of ten that is at most a number; 1 for zero.
fn unit_of(number: i128) -> i128 {
    number
        .checked_ilog10()
        .map_or(1, |digits| 10i128.pow(digits))
}

/// The range if one end is tiny compared with the other: the unit is that of the greater end, and the tiny one
/// is rounded to zero or to one unit.
fn rounded_range(lo: f64, hi: f64) -> (f64, f64) {
    if lo == hi {
        return (lo.floor() + 0.0, hi.ceil() + 0.0);
    }
    let unit = |greater: f64| {
        let text = format!("{:e}", greater.abs());
        let power = text.split_once('e').map_or("0", |(_, power)| power);
        number(&format!("1e{power}")).unwrap_or(greater.abs())
    };
    if lo.abs() < hi.abs() {
        let low = if lo < 0.0 { -unit(hi) } else { 0.0 };
        return (low, exact_range(0.0, hi).map_or(hi, |(_, high)| high));
    }
    let high = if hi > 0.0 { unit(lo) } else { 0.0 };
    (exact_range(lo, 0.0).map_or(lo, |(low, _)| low), high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::round_range;

    #[test]
    fn ends_are_multiples_of_a_power_of_ten_within_the_width() {
        for ((lo, hi), expected) in [
            ((17.0, 90.0), (10.0, 90.0)),
            ((17.0, 91.0), (10.0, 100.0)),
            ((3.0, 107.0), (0.0, 200.0)),
            ((-7.0, 12.0), (-10.0, 20.0)),
            ((0.13, 0.72), (0.1, 0.8)),
            // The width is exactly 0.1; in floating point it is a little less.
            ((0.21, 0.31), (0.2, 0.4)),
            ((1.1, 1.4), (1.1, 1.4)),
            ((37.0, 37.0), (30.0, 40.0)),
            ((-37.5, -37.5), (-40.0, -30.0)),
            ((0.25, 0.25), (0.0, 1.0)),
            ((0.0, 0.0), (0.0, 0.0)),
            ((1e-300, 3e200), (0.0, 3e200)),
            ((-1e-300, 2.5e299), (-1e299, 3e299)),
            ((-7e200, 1e-300), (-7e200, 1e200)),
            ((1e-300, 1e-300), (0.0, 1.0)),
            ((-9.5e299, 1e300), (-1e300, 1e300)),
        ] {
            assert_eq!(round_range(lo, hi), expected, "[{lo},{hi}]");
        }
    }

    proptest! {
        #[test]
        fn a_widened_range_covers_the_range_in_few_digits(
            one in -1e6f64..1e6, other in -1e6f64..1e6, decimals in 0usize..7,
        ) {
            let cut = |value: f64| format!("{value:.decimals$}").parse::<f64>().unwrap();
            let (lo, hi) = (cut(one.min(other)), cut(one.max(other)));
            let (low, high) = round_range(lo, hi);
            prop_assert!(low <= lo && hi <= high);
            let unit = 10f64.powf((hi - lo).log10().floor());
            if lo < hi {
                prop_assert!(lo - low < unit * 1.0001 && high - hi < unit * 1.0001);
            }
            // No rounding errors, such as in 0.30000000000000004.
            for end in [low, high] {
                prop_assert!(end.to_string().len() <= 10, "{}", end);
            }
        }
    }
}
