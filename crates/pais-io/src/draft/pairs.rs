//! Columns that determine each other: a code and its text beside it, and two keys of the persons.

use hashbrown::HashMap;
use pais_core::table::{Column, NULL_CODE, Table};

use super::missing::MissingWords;
use super::sketch::hash;

/// Maximum distance of the two columns of a pair.
const FARTHEST: usize = 2;

/// Maximum number of distinct values of a column in a pair. Rows with others are not compared.
const MOST_VALUES: usize = 2_000;

/// Minimum number of rows with both values.
const LEAST_ROWS: u64 = 20;

/// Minimum number of distinct values: two flags agree by chance.
const LEAST_VALUES: usize = 3;

/// Minimum number of distinct values of two keys, and of rows in which they repeat.
const LEAST_KEYS: usize = 20;
const LEAST_REPEATED: u64 = 20;

/// Maximum number of columns that are compared with all others.
const MOST_KEYS: usize = 2;

/// The share of rows that may have another value than the one that was seen first.
const MOST_BREAKS: f64 = 0.02;

/// Two columns that may still determine each other.
#[derive(Clone, Debug)]
struct Pair {
    columns: [usize; 2],
    /// Value of one column to the value of the other that was first seen with it, by their hashes.
    partners: [HashMap<u64, u64>; 2],
    /// Rows with both values.
    rows: u64,
    /// Rows in which the partner is another one.
    breaks: u64,
}

/// The pairs of neighbours of a file, and those with a key. Those that break the rule are forgotten.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    pairs: Vec<Pair>,
}

impl Pairs {
    /// The pairs of a file with so many columns. `is_key` says which ones can be keys of persons.
    pub(super) fn new(columns: usize, is_key: impl Fn(usize) -> bool) -> Self {
        let keys: Vec<usize> = (0..columns)
            .filter(|&it| is_key(it))
            .take(MOST_KEYS)
            .collect();
        let near = (0..columns).flat_map(|one| {
            let others = one + 1..columns.min(one + 1 + FARTHEST);
            others.map(move |other| [one, other])
        });
        let far = keys.iter().flat_map(|&key| {
            let others = (0..columns).filter(move |it| it.abs_diff(key) > FARTHEST);
            others.map(move |other| [key, other])
        });
        let pair = |columns| Pair {
            columns,
            partners: [HashMap::new(), HashMap::new()],
            rows: 0,
            breaks: 0,
        };
        let pairs = near.chain(far).map(pair).collect();
        Self { pairs }
    }

    /// Adds the rows of a chunk.
    pub(super) fn add(&mut self, chunk: &Table) {
        self.pairs.retain_mut(|pair| {
            let [one, other] = pair.columns;
            pair.add(&chunk.columns[one], &chunk.columns[other])
        });
    }

    /// The pairs of columns that determine each other, by their positions, where values repeat.
    pub(super) fn found(&self) -> impl Iterator<Item = [usize; 2]> {
        let is_found = |pair: &&Pair| {
            let few = pair.values();
            pair.rows >= LEAST_ROWS && few >= LEAST_VALUES && 4 * few as u64 <= 3 * pair.rows
        };
        self.pairs.iter().filter(is_found).map(|pair| pair.columns)
    }

    /// The columns that have one value for each value of this column, and the other way round.
    pub(super) fn same_as(&self, column: usize) -> impl Iterator<Item = usize> {
        let is_found =
            |pair: &&Pair| pair.values() >= LEAST_KEYS && pair.repeated() >= LEAST_REPEATED;
        let found = self.pairs.iter().filter(is_found);
        found.filter_map(move |pair| match pair.columns {
            [one, other] if one == column => Some(other),
            [one, other] if other == column => Some(one),
            _ => None,
        })
    }
}

impl Pair {
    /// Distinct values of the column that has fewer.
    fn values(&self) -> usize {
        let [values, others] = &self.partners;
        values.len().min(others.len())
    }

    /// Rows whose values were in an earlier row.
    fn repeated(&self) -> u64 {
        self.rows - self.values() as u64
    }

    /// Adds rows; `false` if the columns do not determine each other.
    fn add(&mut self, one: &Column, other: &Column) -> bool {
        // A word for missing is no value.
        let hashes = |column: &Column| -> Vec<Option<u64>> {
            let of = |text: &str| {
                MissingWords::find(text)
                    .is_none()
                    .then(|| hash(text.trim()))
            };
            column.dictionary.iter().map(|text| of(text)).collect()
        };
        let (ones, others) = (hashes(one), hashes(other));
        for (&code, &other_code) in one.codes.iter().zip(&other.codes) {
            if code == NULL_CODE || other_code == NULL_CODE {
                continue;
            }
            let values = (ones[code as usize], others[other_code as usize]);
            let (Some(value), Some(other)) = values else {
                continue;
            };
            if self.values() >= MOST_VALUES && !self.partners[0].contains_key(&value) {
                continue;
            }
            self.rows += 1;
            let [forward, backward] = &mut self.partners;
            let is_kept = *forward.entry(value).or_insert(other) == other
                && *backward.entry(other).or_insert(value) == value;
            self.breaks += u64::from(!is_kept);
            let most = MOST_BREAKS * self.rows.max(100) as f64;
            if self.breaks as f64 > most {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use pais_core::table::{Column, Table};

    use super::Pairs;

    fn column(values: &[String]) -> Column {
        let mut dictionary: Vec<Box<str>> = Vec::new();
        let codes = values.iter().map(|value| {
            let at = dictionary.iter().position(|it| **it == **value);
            at.unwrap_or_else(|| {
                dictionary.push(value.as_str().into());
                dictionary.len() - 1
            }) as u32
        });
        let codes = codes.collect();
        Column { dictionary, codes }
    }

    fn found(columns: &[Vec<String>]) -> Vec<[usize; 2]> {
        let mut pairs = Pairs::new(columns.len(), |_| false);
        pairs.add(&Table {
            rows: columns[0].len(),
            columns: columns.iter().map(|values| column(values)).collect(),
        });
        pairs.found().collect()
    }

    #[test]
    fn two_keys_of_many_persons_are_the_same_with_gaps_and_far_apart() {
        let rows = 6_000;
        let of = |value: &dyn Fn(usize) -> String| (0..rows).map(value).collect::<Vec<_>>();
        let patient = of(&|row| format!("P{}", row * 7 % 3_000));
        let card = of(&|row| match row % 4 {
            0 => String::new(),
            _ => format!("K{}", row * 7 % 3_000 * 11),
        });
        let others = [3, 5, 7].map(|many| of(&|row| (row % many).to_string()));
        // Each row has another value.
        let row = of(&|row| row.to_string());
        let mut columns = vec![patient, row];
        columns.extend(others);
        columns.push(card);
        let mut pairs = Pairs::new(columns.len(), |position| position == 0);
        pairs.add(&Table {
            rows,
            columns: columns.iter().map(|values| column(values)).collect(),
        });
        assert_eq!(pairs.same_as(0).collect::<Vec<_>>(), [5]);
        assert_eq!(pairs.same_as(1).count(), 0);
    }

    #[test]
    fn a_code_and_its_text_are_a_pair_and_other_columns_are_none() {
        let of = |value: &dyn Fn(usize) -> String| (0..60).map(value).collect::<Vec<_>>();
        let code = of(&|row| (row % 6).to_string());
        let text = of(&|row| format!("disease {}", row % 6));
        let chapter = of(&|row| (row % 3).to_string());
        assert_eq!(found(&[code.clone(), text.clone()]), [[0, 1]]);
        assert_eq!(
            found(&[code.clone(), chapter.clone(), text.clone()]),
            [[0, 2]]
        );
        // Missing texts are skipped.
        let gaps = of(&|row| {
            if row % 5 == 0 {
                String::new()
            } else {
                text[row].clone()
            }
        });
        assert_eq!(found(&[code.clone(), gaps]), [[0, 1]]);
        // Keys of rows determine everything.
        let key = of(&|row| row.to_string());
        assert!(found(&[key.clone(), key]).is_empty());
        let flags = of(&|row| (row % 2).to_string());
        assert!(found(&[flags.clone(), flags]).is_empty());
    }
}
