//! Pseudorandom numbers that are the same on every machine and with every version of every crate.

/// The generator SplitMix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*,
/// OOPSLA 2014); holds the seed.
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// 64 uniformly distributed bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, from the upper bits.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }
}
