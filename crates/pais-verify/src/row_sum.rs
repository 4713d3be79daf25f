//! A sum over rows that is equal for equal rows in any order, and for other rows only by chance.

use siphasher::sip128::SipHasher24;

/// The sum of a keyed hash of 128 bits over rows, modulo 2^128.
///
/// The hash is SipHash-2-4-128, a pseudorandom function under a key that is drawn for each comparison
/// and never shown. Two different multisets of fewer than 2^32 rows have equal sums with a probability
/// of at most 2^-97: at least one row is more often in one of them, by *d* < 2^32 times; if all such
/// numbers are multiples of 2^v and no greater power of two, one hash decides whether the sums are equal
/// modulo 2^(128 − v), and v ≤ 31.
#[derive(Clone)]
pub(super) struct RowSum {
    hasher: SipHasher24,
    sum: u128,
    bytes: Vec<u8>,
}

impl RowSum {
    /// The sum of no row, under a new key.
    pub(super) fn new() -> Self {
        let key: [u8; 16] = rand::random();
        Self {
            hasher: SipHasher24::new_with_key(&key),
            sum: 0,
            bytes: Vec::new(),
        }
    }

    /// The sum of no row, under the same key.
    pub(super) fn empty(&self) -> Self {
        Self {
            sum: 0,
            ..self.clone()
        }
    }

    /// Adds a row. All rows must have the same number of codes.
    #[inline]
    pub(super) fn add(&mut self, row: impl Iterator<Item = u32>) {
        self.bytes.clear();
        row.for_each(|code| self.bytes.extend_from_slice(&code.to_le_bytes()));
        let hash = u128::from(self.hasher.hash(&self.bytes));
        self.sum = self.sum.wrapping_add(hash);
    }

    /// Adds the rows of another sum under the same key.
    pub(super) fn merge(&mut self, other: &Self) {
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// Whether another sum over the same number of rows is equal. Both must be under the same key.
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.sum == other.sum
    }
}

#[cfg(test)]
mod tests {
    use super::RowSum;

    fn sum(of: &RowSum, rows: &[[u32; 2]]) -> RowSum {
        let mut sum = of.empty();
        rows.iter().for_each(|row| sum.add(row.iter().copied()));
        sum
    }

    #[test]
    fn only_the_multiset_of_rows_matters() {
        let key = RowSum::new();
        let rows = sum(&key, &[[1, 2], [3, 4], [1, 2]]);
        assert!(rows.equals(&sum(&key, &[[3, 4], [1, 2], [1, 2]])));
        for others in [
            [[3, 4], [3, 4], [1, 2]],
            [[1, 4], [3, 2], [1, 2]],
            [[2, 1], [3, 4], [1, 2]],
        ] {
            assert!(!rows.equals(&sum(&key, &others)), "{others:?}");
        }
    }

    #[test]
    fn each_comparison_has_a_key_of_its_own() {
        let row = [[1, 2]];
        assert!(!sum(&RowSum::new(), &row).equals(&sum(&RowSum::new(), &row)));
    }
}
