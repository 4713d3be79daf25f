//! Pseudorandom numbers from a seed. They are the same on every machine and in every version.

/// The generator SplitMix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*,
/// OOPSLA 2014). It is small, and each record has its own stream, so that records can be drawn in
/// any order.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// The stream of record number `record`.
    pub fn of(seed: u64, record: u64) -> Self {
        let mut draw = Self(seed ^ record.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        draw.0 = draw.bits() ^ seed.rotate_left(32);
        draw
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A fraction in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `chance`.
    pub fn chance(&mut self, chance: f64) -> bool {
        self.fraction() < chance
    }

    /// A uniform number in `0..count`.
    pub fn below(&mut self, count: usize) -> usize {
        ((self.fraction() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// A uniform number in `lo..=hi`.
    pub fn between(&mut self, lo: i64, hi: i64) -> i64 {
        lo + self.below((hi - lo + 1).max(1) as usize) as i64
    }

    /// An index of `weights`, drawn in proportion to the weights.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.fraction() * weights.iter().sum::<f64>();
        for (index, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return index;
            }
        }
        weights.len().saturating_sub(1)
    }

    /// A number in `0..count` by Zipf's law: *i* has the weight 1 / (*i* + 1), up to the rounding
    /// of the continuous distribution that it is drawn from.
    pub fn skewed(&mut self, count: usize) -> usize {
        let drawn = ((count + 1) as f64).powf(self.fraction()) as usize;
        drawn.saturating_sub(1).min(count.saturating_sub(1))
    }

    /// A normally distributed number. It is computed as the sum of twelve uniform numbers, which is
    /// close enough here. A logarithm would not give the same result on every machine.
    pub(crate) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.fraction()).sum();
        mean + deviation * (sum - 6.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_their_distributions() {
        let mut draw = Draw::of(1, 2);
        let mut counts = [0u32; 8];
        let mut sum = 0.0;
        for _ in 0..10_000 {
            counts[draw.skewed(8)] += 1;
            assert!((3..=5).contains(&draw.between(3, 5)));
            assert_eq!(draw.weighted(&[0.0, 2.0, 0.0]), 1);
            sum += draw.normal(50.0, 5.0);
        }
        assert!(counts.is_sorted_by(|a, b| a > b), "{counts:?}");
        assert!((sum / 10_000.0 - 50.0).abs() < 0.3);
    }

    #[test]
    fn each_record_has_its_own_stream() {
        let first = |seed, record| Draw::of(seed, record).bits();
        assert_eq!(first(1, 1), first(1, 1));
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(first(1, 1), first(2, 1));
        assert_ne!(first(0, 0), first(0, 1));
    }
}
