//! The random choices of a thorough search: they decide which cuts are tried, never what is
//! released, so a fast generator that no library changes is enough.

/// SplitMix64 (Steele, Lea, Flood: OOPSLA 2014).
#[derive(Clone, Debug)]
pub(super) struct Draws(u64);

impl Draws {
    /// The choices of one chain.
    pub(super) fn new(seed: u64, chain: u64) -> Self {
        let mut draws = Self(seed ^ chain.wrapping_mul(0xA24B_AED4_963E_E407));
        draws.next();
        draws
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, 1 excluded.
    pub(super) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `count`; 0 where `count` is 0.
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// About normally distributed, with mean 0 and variance 1: a sum of twelve uniform draws.
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.fraction()).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::Draws;

    #[test]
    fn chains_draw_different_numbers_and_equal_seeds_equal_ones() {
        let drawn = |seed, chain| {
            let mut draws = Draws::new(seed, chain);
            (0..20).map(|_| draws.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(7, 0), drawn(7, 0));
        assert_ne!(drawn(7, 0), drawn(7, 1));
        assert_ne!(drawn(7, 0), drawn(8, 0));
        assert!(drawn(7, 0).iter().all(|&drawn| drawn < 1000));
    }
}
