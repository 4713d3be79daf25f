//! The subsets of a fixed size: how many there are, and one after the other.

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

/// Makes of ascending positions below `of` the next subset of the same size, in lexicographic order. Returns the
/// first place of `chosen` that changed, or `None` after the last subset.
pub fn next(chosen: &mut [usize], of: usize) -> Option<usize> {
    let size = chosen.len();
    let at = (0..size).rfind(|&place| chosen[place] + size < of + place)?;
    chosen[at] += 1;
    for place in at + 1..size {
        chosen[place] = chosen[place - 1] + 1;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::{choose, next};

    #[test]
    fn every_subset_is_visited_once_in_order() {
        for (taken, of) in [(0, 3), (1, 4), (2, 5), (3, 3)] {
            let mut chosen: Vec<usize> = (0..taken).collect();
            let first = iter::once(chosen.clone());
            let others = iter::from_fn(|| next(&mut chosen, of).map(|_| chosen.clone()));
            let subsets: Vec<Vec<usize>> = first.chain(others).collect();
            assert_eq!(subsets.len() as u64, choose(of, taken));
            assert!(subsets.is_sorted_by(|one, other| one < other));
            assert!(subsets.iter().flatten().all(|position| *position < of));
        }
        let mut chosen = [0, 3, 4];
        assert_eq!((next(&mut chosen, 5), chosen), (Some(0), [1, 2, 3]));
    }
}
