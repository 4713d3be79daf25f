//! An adversary who has some editions of a publication and tries every victim and every combination of
//! known values, over raw rows and released labels, without the decision of compositions.

use std::collections::{BTreeMap, BTreeSet};

use pais_core::model::Lkc;

/// A raw row.
pub struct RawRow {
    /// Whose row it is.
    pub person: u32,
    /// The values of the quasi-identifiers.
    pub known: Vec<String>,
    /// The sensitive value.
    pub sensitive: String,
}

/// The labels of the quasi-identifiers in an edition, by raw row.
pub type ReleasedLabels = BTreeMap<u32, Vec<String>>;

/// The rows that have to be private, and the model of the editions.
pub struct Publication<'a> {
    /// All rows that were sent.
    pub rows: &'a [RawRow],
    /// The model of all editions.
    pub model: &'a Lkc,
    /// Whether a label covers a value.
    pub covers: fn(&str, &str) -> bool,
}

impl Publication<'_> {
    /// Asserts that nobody who has these editions finds fewer than K persons, or a value with more than C,
    /// among the rows of one edition that fit: rows of persons who are in the same editions as the victim and
    /// have a fitting row in each of them. Of a victim whose values were corrected, either the values of one
    /// row in each edition are known, or those of all rows.
    pub fn assert_private(&self, editions: &[ReleasedLabels]) {
        let mut rows_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, row) in self.rows.iter().enumerate() {
            rows_of.entry(row.person).or_default().push(number as u32);
        }
        let mut alike: BTreeMap<Vec<bool>, Vec<u32>> = BTreeMap::new();
        for (&person, rows) in &rows_of {
            let has = |labels: &ReleasedLabels| rows.iter().any(|row| labels.contains_key(row));
            let presence = editions.iter().map(has).collect();
            alike.entry(presence).or_default().push(person);
        }
        for (presence, persons) in alike.iter().filter(|(it, _)| it.contains(&true)) {
            let having = editions.iter().zip(presence);
            let having: Vec<&ReleasedLabels> =
                having.filter(|(_, has)| **has).map(|it| it.0).collect();
            let persons: Vec<&[u32]> = persons.iter().map(|it| rows_of[it].as_slice()).collect();
            let victims = persons.iter().flat_map(|rows| {
                let values = |labels: &&ReleasedLabels| {
                    let rows = rows.iter().filter(|row| labels.contains_key(row));
                    let values = rows.map(|&row| self.rows[row as usize].known.as_slice());
                    values.collect::<BTreeSet<&[String]>>()
                };
                one_of_each(having.iter().map(values))
            });
            for victim in victims.collect::<BTreeSet<Vec<&[String]>>>() {
                self.assert_victim(&victim, &having, &persons);
            }
            for rows in &persons {
                self.assert_linked(rows, &having, &persons);
            }
        }
    }

    /// The sets of columns that an adversary may know, as bits.
    fn known_columns(&self, columns: usize) -> impl Iterator<Item = u32> {
        let most = self
            .model
            .l
            .map_or(columns, |l| columns.min(l.get() as usize));
        (0u32..1 << columns).filter(move |known| known.count_ones() as usize <= most)
    }

    /// The values of all rows of a victim are known, and which rows are of one person.
    fn assert_linked(&self, victim: &[u32], editions: &[&ReleasedLabels], persons: &[&[u32]]) {
        let columns = self.rows[victim[0] as usize].known.len();
        for known in self.known_columns(columns) {
            let of = |labels: &ReleasedLabels, rows: &[u32]| -> Vec<u32> {
                let rows = rows.iter().copied();
                rows.filter(|row| labels.contains_key(row)).collect()
            };
            let fits = |labels: &ReleasedLabels, row: u32, value: u32| {
                let value = &self.rows[value as usize].known;
                let mut columns = (0..columns).filter(|column| known >> column & 1 == 1);
                columns.all(|column| (self.covers)(&labels[&row][column], &value[column]))
            };
            let is_candidate = |rows: &&&[u32]| {
                editions.iter().all(|labels| {
                    let (own, values) = (of(labels, rows), of(labels, victim));
                    let fits = |row: &u32, value: &u32| fits(labels, *row, *value);
                    own.iter()
                        .all(|row| values.iter().any(|value| fits(row, value)))
                        && values
                            .iter()
                            .all(|value| own.iter().any(|row| fits(row, value)))
                })
            };
            let candidates: Vec<&&[u32]> = persons.iter().filter(is_candidate).collect();
            assert!(
                candidates.len() as u64 >= self.model.k.get(),
                "{} persons have all rows like the rows {victim:?} by the columns {known:b}",
                candidates.len()
            );
            for labels in editions {
                let rows = candidates.iter().flat_map(|rows| of(labels, rows));
                self.assert_confidence(rows, &format!("{victim:?}"));
            }
        }
    }

    /// Asserts that no value is too frequent among some rows.
    fn assert_confidence(&self, rows: impl Iterator<Item = u32>, like: &str) {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for row in rows {
            let value = &self.rows[row as usize].sensitive;
            *counts.entry(value).or_default() += 1;
        }
        let rows = counts.values().sum();
        for (value, holding) in counts {
            assert!(
                !self.model.c.is_exceeded_by(holding, rows),
                "{holding} of {rows} rows like {like} have {value}"
            );
        }
    }

    /// The victim's values by edition, and the rows of the persons who are in the same editions.
    fn assert_victim(
        &self,
        victim: &[&[String]],
        editions: &[&ReleasedLabels],
        persons: &[&[u32]],
    ) {
        let columns = victim[0].len();
        for known in self.known_columns(columns) {
            let fits = |place: usize, row: u32| {
                editions[place].get(&row).is_some_and(|labels| {
                    let mut columns = (0..columns).filter(|column| known >> column & 1 == 1);
                    columns.all(|column| (self.covers)(&labels[column], &victim[place][column]))
                })
            };
            let candidates = persons.iter().filter(|rows| {
                let mut places = 0..editions.len();
                places.all(|place| rows.iter().any(|&row| fits(place, row)))
            });
            let candidates: Vec<&&[u32]> = candidates.collect();
            assert!(
                candidates.len() as u64 >= self.model.k.get(),
                "{} persons like {victim:?} by the columns {known:b}",
                candidates.len()
            );
            for place in 0..editions.len() {
                let rows = candidates.iter().flat_map(|rows| rows.iter().copied());
                let rows = rows.filter(|&row| fits(place, row));
                self.assert_confidence(rows, &format!("{victim:?}"));
            }
        }
    }
}

/// All ways to take one of each set, in their order.
fn one_of_each<T: Clone>(sets: impl Iterator<Item = BTreeSet<T>>) -> Vec<Vec<T>> {
    sets.fold(vec![Vec::new()], |taken, set| {
        let longer = taken.iter().flat_map(|taken: &Vec<T>| {
            let one = set.iter().cloned();
            one.map(|one| [taken.as_slice(), &[one]].concat())
        });
        longer.collect()
    })
}

/// Whether a label is an interval of numbers that covers a value; `None` if it is not an interval or the value
/// is not a number.
pub fn interval_covers(label: &str, value: &str) -> Option<bool> {
    let value: f64 = value.parse().ok()?;
    let inner = label.strip_prefix('[')?;
    let closed = inner.ends_with(']');
    let (lo, hi) = inner.get(..inner.len() - 1)?.split_once(',')?;
    let (lo, hi): (f64, f64) = (lo.parse().ok()?, hi.parse().ok()?);
    Some(lo <= value && (value < hi || closed && value == hi))
}
