//! How many subsets of a fixed size there are.

/// Number of subsets of `taken` out of `of` elements; at most `u64::MAX`.
///
/// ```
/// assert_eq!(pais_core::subsets::choose(5, 2), 10);
/// assert_eq!(pais_core::subsets::choose(2, 3), 0);
/// ```
pub fn choose(of: usize, taken: usize) -> u64 {
    if taken > of {
        return 0;
    }
    let mut subsets = 1u128;
    for index in 0..taken.min(of - taken) as u128 {
        subsets = subsets * (of as u128 - index) / (index + 1);
        if subsets > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    subsets as u64
}
