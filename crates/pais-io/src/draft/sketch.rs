//! Some of the distinct values of a column, chosen by their hash: of the values that two columns have in
//! common, both keep the same ones.

use std::collections::BTreeMap;

/// Maximum number of values that are kept.
const MOST_VALUES: usize = 256;

/// Maximum number of bytes of a value that is kept.
const MOST_BYTES: usize = 60;

/// The values with the smallest hashes; all values if a column has fewer distinct values.
#[derive(Clone, Debug, Default)]
pub(super) struct Sketch {
    values: BTreeMap<u64, Box<str>>,
    /// Hashes from here on are not kept; `None` before any was left out.
    left_out_from: Option<u64>,
}

impl Sketch {
    /// Adds a value. One that is too long is left out.
    pub(super) fn add(&mut self, text: &str) {
        if text.len() > MOST_BYTES {
            return;
        }
        let hash = hash(text);
        if self.left_out_from.is_some_and(|end| hash >= end) {
            return;
        }
        self.values.entry(hash).or_insert_with(|| text.into());
        if self.values.len() > MOST_VALUES
            && let Some((last, _)) = self.values.pop_last()
        {
            self.left_out_from = Some(last);
        }
    }

    /// The values, in no particular order.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.values().map(AsRef::as_ref)
    }

    /// The share of this column's values that one of the others has, among the hashes that all have kept; 0 if
    /// none can be compared.
    pub(super) fn share_in<'s>(&'s self, others: impl Iterator<Item = &'s Self> + Clone) -> f64 {
        let ends = others
            .clone()
            .chain([self])
            .filter_map(|it| it.left_out_from);
        let end = ends.min().unwrap_or(u64::MAX);
        let (mut compared, mut found) = (0u32, 0u32);
        for hash in self.values.range(..end).map(|(hash, _)| hash) {
            compared += 1;
            let is_found = others.clone().any(|other| other.values.contains_key(hash));
            found += u32::from(is_found);
        }
        f64::from(found) / f64::from(compared.max(1))
    }
}

/// FNV-1a, which is equal in all columns.
pub(super) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    // The high bits decide the order; they are mixed once more.
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::{MOST_VALUES, Sketch};

    fn sketch(values: std::ops::Range<u32>) -> Sketch {
        let mut sketch = Sketch::default();
        values.for_each(|value| sketch.add(&format!("v{value}")));
        sketch
    }

    #[test]
    fn few_values_are_kept_of_many_and_the_same_in_each_column() {
        let (many, half) = (sketch(0..4_000), sketch(0..2_000));
        assert_eq!(many.values().count(), MOST_VALUES);
        // Of the compared values about half are in the other column.
        let share = many.share_in([&half].into_iter());
        assert!((0.35..0.65).contains(&share), "{share}");
        assert_eq!(half.share_in([&many].into_iter()), 1.0);
        assert_eq!(sketch(0..10).share_in([&sketch(20..30)].into_iter()), 0.0);
        assert_eq!(Sketch::default().share_in([&many].into_iter()), 0.0);
    }
}
