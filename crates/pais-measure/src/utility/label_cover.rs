//! What released labels cover: codes of raw values, or shares of bins of equal width.

use pais_core::schema::SchemaColumn;
use pais_core::table::{Column, Domain, QuasiIdentifier, ReleasedColumn};
use pais_core::taxonomy::interval::{number, whole_and_power};
use pais_core::taxonomy::{Interval, MISSING_LABEL, Scale};
use pais_verify::outermost_interval;

/// Maximum number of bins of a numeric column: a divisor of 100, so that bins of a range of decimals end at
/// decimals.
const BINS: usize = 20;

/// The interval that covers missing cells of a numeric column, together with each interval that encloses it
/// ("Missing values" in `docs/methods/values.md`); `None` if only `?` covers them.
///
/// If `?` is released too, the sampled cells tell which of both it is: an interval next to it is as wide as the
/// outermost one if no other part of that has a row.
pub(super) fn above_missing(
    raw: &QuasiIdentifier,
    spec: &SchemaColumn,
    released: &ReleasedColumn,
    sampled: &[u32],
) -> Option<Interval> {
    let outermost = outermost_interval(&raw.domain, spec.domain().is_some(), released)?;
    let Column { dictionary, codes } = &released.column;
    let missing = raw.domain.code_count() as u32 - 1;
    let cells = sampled.iter().zip(codes);
    let mut of_missing = cells.filter(|(code, _)| **code == missing).peekable();
    let is_apart = |(_, label): (_, &u32)| {
        let label = dictionary.get(*label as usize);
        label.is_some_and(|label| **label == *MISSING_LABEL)
    };
    let are_apart = of_missing.peek().is_some() && of_missing.all(is_apart);
    (!are_apart).then_some(outermost)
}

/// The codes that a label covers, as a range, and whether it covers missing cells of a numeric column too: it
/// does if it is an interval that encloses `above_missing`. `None` for a text that is not a label of the
/// domain.
pub(super) fn covered(
    domain: &Domain,
    label: &str,
    above_missing: Option<Interval>,
) -> Option<(usize, usize, bool)> {
    match domain {
        Domain::Taxonomy(tree) => {
            let node = tree.node(tree.find(label)?);
            Some((node.first_leaf as usize, node.end_leaf as usize, false))
        }
        Domain::Numeric {
            values, missing, ..
        } if label == MISSING_LABEL => {
            let end = values.len() + usize::from(*missing);
            Some((values.len(), end, false))
        }
        Domain::Numeric { values, scale, .. } => {
            let interval = Interval::parse_on(label, *scale)?;
            let places = interval.places(values);
            let with_missing = above_missing.is_some_and(|outermost| interval.encloses(&outermost));
            Some((places.start, places.end, with_missing))
        }
    }
}

/// Bins of equal width ("Distortion" in `docs/methods/report.md`). Numbers outside of them, and
/// missing cells, have bins of their own at the end.
pub(super) struct Bins {
    /// Where each bin starts, and where the last one ends: ascending. A number at an end is in the
    /// bin that starts there; at the last one, in the last bin.
    ends: Vec<f64>,
    scale: Scale,
}

impl Bins {
    /// Bins of a range, one where it is a point.
    pub(super) fn new(lo: f64, hi: f64, scale: Scale) -> Self {
        let count = if hi > lo { BINS } else { 1 };
        let end = |bin| match bin {
            0 => lo,
            _ if bin == count => hi,
            _ => decimal_end(lo, hi, bin)
                .unwrap_or_else(|| lo + (hi - lo) * (bin as f64 / BINS as f64)),
        };
        let ends = (0..=count).map(end).collect();
        Self { ends, scale }
    }

    fn count(&self) -> usize {
        self.ends.len() - 1
    }

    /// Number of bins, with the two at the end.
    pub(super) fn len(&self) -> usize {
        self.count() + 2
    }

    /// The bin of missing cells.
    pub(super) fn missing(&self) -> usize {
        self.count() + 1
    }

    /// The bin of a number.
    pub(super) fn of(&self, value: f64) -> usize {
        let count = self.count();
        if value < self.ends[0] || value > self.ends[count] {
            return count;
        }
        self.ends[1..count].partition_point(|&end| end <= value)
    }

    /// Adds a share to the bins that a label covers, in proportion to the widths in common.
    pub(super) fn spread(&self, label: &str, share: f64, into: &mut [f64]) {
        let Some(interval) = Interval::parse_on(label, self.scale) else {
            let bin = if label == MISSING_LABEL {
                self.missing()
            } else {
                self.count()
            };
            into[bin] += share;
            return;
        };
        let width = interval.width();
        if width <= 0.0 || self.count() == 1 {
            into[self.of(interval.lo)] += share;
            return;
        }
        for (ends, sum) in self.ends.windows(2).zip(into) {
            let common = (interval.hi.min(ends[1]) - interval.lo.max(ends[0])).max(0.0);
            *sum += share * common / width;
        }
    }

    /// The bin as an interval; `None` for the two at the end. One of dates starts at the first date
    /// in it.
    pub(super) fn label(&self, bin: usize) -> Option<String> {
        let ends = [*self.ends.get(bin)?, *self.ends.get(bin + 1)?];
        let [lo, hi] = match self.scale {
            Scale::Number => ends,
            Scale::Day | Scale::Moment => ends.map(f64::ceil),
        };
        let interval = if bin + 1 == self.count() {
            Interval::closed(lo, hi)
        } else {
            Interval::half_open(lo, hi)
        };
        Some(interval.on(self.scale).to_string())
    }
}

/// Where a bin of a range starts, as the number that its exact decimal is read as, so that it
/// compares with numbers of cells as their decimals do. `None` for ends too far apart for 38 digits.
fn decimal_end(lo: f64, hi: f64, bin: usize) -> Option<f64> {
    let (low, low_power) = whole_and_power(&format!("{lo:e}"))?;
    let (high, high_power) = whole_and_power(&format!("{hi:e}"))?;
    let power = low_power.min(high_power);
    let part = |whole: i128, own: i32, parts: usize| {
        let times = u32::try_from(own.checked_sub(power)?).ok()?;
        let whole = 10i128.checked_pow(times)?.checked_mul(whole)?;
        whole.checked_mul((parts * (100 / BINS)) as i128)
    };
    let hundredths = part(low, low_power, BINS - bin)?.checked_add(part(high, high_power, bin)?)?;
    number(&format!("{hundredths}e{}", power.checked_sub(2)?))
}

#[cfg(test)]
mod tests {
    use pais_core::taxonomy::{Interval, Scale};

    use super::{BINS, Bins};

    /// Ends that a floating-point product misses, such as 0.05 * 3 and 36 + 0.3 * 6.
    #[test]
    fn bins_end_at_decimals_and_a_number_at_an_end_is_in_the_bin_that_starts_there() {
        let tenths = Bins::new(0.0, 1.0, Scale::Number);
        assert_eq!(tenths.label(3).as_deref(), Some("[0.15,0.2)"));
        let degrees = Bins::new(36.0, 42.0, Scale::Number);
        assert_eq!([37.5, 37.8, 38.1].map(|value| degrees.of(value)), [5, 6, 7]);
        for (lo, hi) in [
            (0.0, 1.0),
            (36.0, 42.0),
            (-0.3, 0.5),
            (0.0, 0.7),
            (-1e-7, 2e-7),
            (1e12, 1e12 + 1.0),
            (0.1, 123456.7),
            (-1e300, 1e300),
            (1e-300, 1e300),
        ] {
            let bins = Bins::new(lo, hi, Scale::Number);
            assert_eq!(bins.len(), BINS + 2);
            for bin in 0..BINS {
                let label = Interval::parse(&bins.label(bin).unwrap()).unwrap();
                assert_eq!(bins.of(label.lo), bin, "{label}");
                assert_eq!(bins.of(label.hi.next_down()), bin, "{label}");
            }
            assert_eq!((bins.of(hi), bins.of(hi.next_up())), (BINS - 1, BINS));
        }
    }

    /// Bins of half a day: a day is in the bin that starts with it.
    #[test]
    fn a_bin_of_dates_is_named_by_the_dates_in_it() {
        let days = Bins::new(0.0, 10.0, Scale::Day);
        let label = |day: f64| days.label(days.of(day)).unwrap();
        assert_eq!(label(1.0), "[1970-01-02,1970-01-03)");
        assert_eq!(label(10.0), "1970-01-11");
        // Bins of 1.25 days from a negative number of days on: the second has one day alone.
        let days = Bins::new(-5.0, 20.0, Scale::Day);
        assert_eq!([-4.0, -3.0, -2.0].map(|day| days.of(day)), [0, 1, 2]);
        assert_eq!(days.label(1).as_deref(), Some("[1969-12-29,1969-12-30)"));
    }
}
