//! Whether a file may spell the id of one person in two ways: ids that differ only in case, in leading zeros or
//! in characters that are not shown.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::look_alike::id_without_case_and_zeros;

/// Maximum number of ids that are remembered. A hash table of this size takes 17 MiB.
const MOST_IDS: usize = 900_000;

/// Compares the ids of a file with one another.
///
/// They are kept as 64-bit digests under a random key, no longer than this value. Beyond 900,000 ids, further
/// ids are only compared with the remembered ones.
#[derive(Default)]
pub struct SimilarIds {
    hasher: RandomState,
    /// By the digest of an id without case and zeros, the digest of the id.
    known: HashMap<u64, u64>,
    is_found: bool,
}

impl SimilarIds {
    /// Adds an id in canonical form. An id can be added several times.
    pub fn push(&mut self, id: &str) {
        if self.is_found {
            return;
        }
        let form = self.hasher.hash_one(id_without_case_and_zeros(id));
        let id = self.hasher.hash_one(id);
        match self.known.get(&form) {
            Some(known) => self.is_found = *known != id,
            None if self.known.len() < MOST_IDS => drop(self.known.insert(form, id)),
            None => {}
        }
        if self.is_found {
            self.known = HashMap::new();
        }
    }

    /// Whether two ids are alike.
    pub fn is_found(&self) -> bool {
        self.is_found
    }
}

#[cfg(test)]
mod tests {
    use super::SimilarIds;

    fn found(ids: &[&str]) -> bool {
        let mut similar = SimilarIds::default();
        ids.iter().for_each(|id| similar.push(id));
        similar.is_found()
    }

    #[test]
    fn ids_that_differ_in_case_or_leading_zeros_are_found() {
        assert!(found(&["p1", "p2", "P1"]));
        assert!(found(&["7", "8", "007", "9"]));
        assert!(found(&["a\u{200b}1", "a1"]));
        assert!(!found(&["p1", "p2", "p1", "p10", "10", "1"]));
    }
}
