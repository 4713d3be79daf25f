//! Information: *N · log N* sums over counts, from which entropies, gains and split informations
//! are made.

/// Parts of a bit in which information is counted. Sums of whole numbers do not depend on their
/// order, so that equal examples have equal trees, whether they are repeated or weighted.
const PARTS: f64 = (1u32 << 24) as f64;

/// Bits, from parts of a bit.
#[inline]
pub(super) fn bits(parts: i64) -> f64 {
    parts as f64 / PARTS
}

/// Parts of a bit, from bits; rounded down.
pub(super) fn parts(bits: f64) -> i64 {
    (bits * PARTS).floor() as i64
}

/// *x · log2 x* in parts of a bit; at most 2⁶¹ for numbers below 2³².
fn computed(count: u64) -> i64 {
    match count {
        0 | 1 => 0,
        count => {
            let count = count as f64;
            (count * count.log2() * PARTS).round() as i64
        }
    }
}

/// The largest number in the table.
const TABLED: u64 = 1 << 16;

/// *x · log2 x* of counts, tabled for small ones.
pub(super) struct Logs(Vec<i64>);

impl Logs {
    /// For counts of at most `most`.
    pub(super) fn new(most: u64) -> Self {
        Self((0..=most.min(TABLED)).map(computed).collect())
    }

    /// *x · log2 x* in parts of a bit, 0 at 0.
    #[inline]
    pub(super) fn of(&self, count: u64) -> i64 {
        match self.0.get(count as usize) {
            Some(parts) => *parts,
            None => computed(count),
        }
    }

    /// Information of all cases together in parts of a bit: *N · H(counts)*, where *N* is the sum
    /// of the counts.
    pub(super) fn information(&self, counts: &[u64]) -> i64 {
        let total = counts.iter().sum();
        let parts: i64 = counts.iter().map(|&count| self.of(count)).sum();
        (self.of(total) - parts).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Logs, TABLED, bits};

    #[test]
    fn information_of_fourteen_days_is_that_of_quinlan() {
        let logs = Logs::new(14);
        let information = |counts: &[u64]| logs.information(counts);
        // Section 2.2 of Quinlan's book: 9 days to play and 5 not to.
        assert!((bits(information(&[9, 5])) / 14.0 - 0.940).abs() < 5e-4);
        // Outlook: sunny 2 and 3, overcast 4 and 0, rain 3 and 2.
        let parts = information(&[2, 3]) + information(&[4, 0]) + information(&[3, 2]);
        assert!((bits(parts) / 14.0 - 0.694).abs() < 5e-4);
        let split = bits(information(&[5, 4, 5])) / 14.0;
        assert!((split - 1.577).abs() < 5e-4);
        assert_eq!(information(&[0, 7]), 0);
        assert_eq!(information(&[]), 0);
    }

    #[test]
    fn tabled_numbers_are_those_computed() {
        let (small, large) = (Logs::new(1), Logs::new(u64::MAX));
        for count in [
            0,
            1,
            2,
            3,
            1000,
            TABLED - 1,
            TABLED,
            TABLED + 1,
            u64::from(u32::MAX),
        ] {
            assert_eq!(small.of(count), large.of(count), "{count}");
        }
        assert_eq!(bits(large.of(8)), 24.0);
    }
}
