//! Neighbouring columns that determine each other: a code and its text.

use hashbrown::HashMap;
use pais_core::table::{Column, NULL_CODE, Table};

use super::missing::MissingWords;
use super::sketch::hash;

/// Maximum distance of the two columns of a pair.
const FARTHEST: usize = 2;

/// Maximum number of distinct values of a column in a pair.
const MOST_VALUES: usize = 2_000;

/// Minimum number of rows with both values.
const LEAST_ROWS: u64 = 20;

/// Minimum number of distinct values: two flags agree by chance.
const LEAST_VALUES: usize = 3;

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

/// All pairs of neighbours of a file. Those that break the rule are forgotten.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    pairs: Vec<Pair>,
}

impl Pairs {
    /// The pairs of a file with so many columns.
    pub(super) fn new(columns: usize) -> Self {
        let pair = |one: usize, other: usize| Pair {
            columns: [one, other],
            partners: [HashMap::new(), HashMap::new()],
            rows: 0,
            breaks: 0,
        };
        let of =
            |one: usize| (one + 1..columns.min(one + 1 + FARTHEST)).map(move |it| pair(one, it));
        let pairs = (0..columns).flat_map(of).collect();
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
            let [values, others] = pair.partners.each_ref().map(HashMap::len);
            let few = values.min(others);
            pair.rows >= LEAST_ROWS && few >= LEAST_VALUES && 4 * few as u64 <= 3 * pair.rows
        };
        self.pairs.iter().filter(is_found).map(|pair| pair.columns)
    }
}

impl Pair {
    /// Adds rows; `false` if the columns do not determine each other.
    fn add(&mut self, one: &Column, other: &Column) -> bool {
        if one.dictionary.len().max(other.dictionary.len()) > MOST_VALUES {
            return false;
        }
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
            self.rows += 1;
            let [forward, backward] = &mut self.partners;
            let is_kept = *forward.entry(value).or_insert(other) == other
                && *backward.entry(other).or_insert(value) == value;
            self.breaks += u64::from(!is_kept);
            let most = MOST_BREAKS * self.rows.max(100) as f64;
            if self.breaks as f64 > most || forward.len().max(backward.len()) > MOST_VALUES {
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
        let mut pairs = Pairs::new(columns.len());
        pairs.add(&Table {
            rows: columns[0].len(),
            columns: columns.iter().map(|values| column(values)).collect(),
        });
        pairs.found().collect()
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
