//! The smallest group that an adversary of the model can know after a step: the minimum *|T\[qid\]|* over all
//! qids of at most *L* values.
//!
//! Only qids of the full size count, because a shorter one has a group that contains those of longer
//! ones. A group is not divided further once each of its classes is as large as the least group that
//! was found: every part of it has at least one class.
//!
//! If all varying attributes are known, a step costs one pass over the classes for each attribute. Otherwise it
//! costs visits of classes and, if persons are counted, of rows: the rows of a group up to the row with which
//! it has as many persons as the smallest group. No row is copied, sorted or read for a group that is not
//! counted.

use pais_core::cancellation::Cancellation;
use pais_core::table::SubjectCounter;

/// Maximum number of visits of a class or a row over all steps of a run: some tenths of a second.
const BUDGET: u64 = 20_000_000;

/// The equivalence classes after a step.
pub(super) struct KnownClasses<'a> {
    /// Rows of each class; persons where *K* counts these.
    pub(super) sizes: &'a [u32],
    /// By attribute, the value of each class.
    pub(super) values: Vec<&'a [u32]>,
    /// `None` where rows are counted.
    pub(super) persons: Option<ClassPersons<'a>>,
}

/// The persons of the equivalence classes.
pub(super) struct ClassPersons<'a> {
    /// By class, its rows.
    pub(super) rows: &'a [&'a [u32]],
    /// By row, its person.
    pub(super) of_row: &'a [u32],
    pub(super) counter: &'a mut SubjectCounter,
}

/// Finds the smallest known group step by step, as long as that takes little work.
#[derive(Clone, Debug)]
pub(super) struct KnownGroups {
    /// *L*.
    l: usize,
    /// Visits that are left.
    visits: u64,
    cancellation: Cancellation,
}

/// The work exceeds what is left.
struct TooMuchWork;

impl KnownGroups {
    /// For an adversary who knows at most `l` values.
    pub(super) fn new(l: usize, cancellation: &Cancellation) -> Self {
        Self {
            l,
            visits: BUDGET,
            cancellation: cancellation.clone(),
        }
    }

    /// Whether work is left for another step.
    pub(super) fn can_find(&self) -> bool {
        self.visits > 0
    }

    /// The size of the smallest group, in rows or in persons; 0 without classes. `None` where it
    /// would take too much work or the run was stopped, and after every later step.
    pub(super) fn find(&mut self, classes: KnownClasses<'_>) -> Option<u64> {
        if classes.sizes.is_empty() {
            return Some(0);
        }
        let mut varied = classes.values;
        varied.retain(|values| values.iter().any(|value| *value != values[0]));
        let depth = self.l.min(varied.len());
        if depth == varied.len() {
            // All that varies is known.
            return classes.sizes.iter().copied().min().map(u64::from);
        }
        let all: Vec<u32> = (0..classes.sizes.len() as u32).collect();
        let values = varied.iter().flat_map(|values| *values);
        let greatest = values.copied().max().unwrap_or(0);
        let mut search = Search {
            sizes: classes.sizes,
            persons: classes.persons,
            cancellation: &self.cancellation,
            varied,
            rows_by_value: vec![0; greatest as usize + 1],
            smallest: u64::MAX,
            visits: self.visits,
        };
        let found = search.visit(&all, 0, depth);
        self.visits = search.visits;
        match found {
            Ok(()) => Some(search.smallest),
            Err(TooMuchWork) => {
                self.visits = 0;
                None
            }
        }
    }
}

/// A depth-first search over combinations of attributes.
struct Search<'a> {
    sizes: &'a [u32],
    persons: Option<ClassPersons<'a>>,
    cancellation: &'a Cancellation,
    /// The values of the attributes that vary.
    varied: Vec<&'a [u32]>,
    /// Rows by value of an attribute; 0 between uses.
    rows_by_value: Vec<u64>,
    /// The least size found.
    smallest: u64,
    visits: u64,
}

impl Search<'_> {
    /// Looks at all parts of a group by `depth` of the attributes from `from` on.
    fn visit(&mut self, group: &[u32], from: usize, depth: usize) -> Result<(), TooMuchWork> {
        if self.cancellation.is_cancelled() {
            return Err(TooMuchWork);
        }
        self.charge(group.len() as u64)?;
        let size = |class: &u32| u64::from(self.sizes[*class as usize]);
        if group.iter().all(|class| size(class) >= self.smallest) {
            return Ok(());
        }
        if depth == 0 || group.len() == 1 {
            self.smallest = self.smallest.min(self.size(group)?);
            return Ok(());
        }
        if depth == 1 && self.persons.is_none() {
            return self.count_by_last(group, from);
        }
        for attribute in from..=self.varied.len() - depth {
            let values = self.varied[attribute];
            let mut parts = group.to_vec();
            parts.sort_unstable_by_key(|&class| values[class as usize]);
            let same = |one: &u32, other: &u32| values[*one as usize] == values[*other as usize];
            for part in parts.chunk_by(same) {
                self.visit(part, attribute + 1, depth - 1)?;
            }
        }
        Ok(())
    }

    /// Counts the rows of all parts of a group by one more attribute, without dividing it.
    fn count_by_last(&mut self, group: &[u32], from: usize) -> Result<(), TooMuchWork> {
        for attribute in from..self.varied.len() {
            self.charge(group.len() as u64)?;
            let values = self.varied[attribute];
            for &class in group {
                let value = values[class as usize] as usize;
                self.rows_by_value[value] += u64::from(self.sizes[class as usize]);
            }
            for &class in group {
                let rows = std::mem::take(&mut self.rows_by_value[values[class as usize] as usize]);
                if rows > 0 {
                    self.smallest = self.smallest.min(rows);
                }
            }
        }
        Ok(())
    }

    fn charge(&mut self, visits: u64) -> Result<(), TooMuchWork> {
        self.visits = self.visits.checked_sub(visits).ok_or(TooMuchWork)?;
        Ok(())
    }

    /// Rows of a group, or its distinct persons, which are counted up to the least size found.
    fn size(&mut self, group: &[u32]) -> Result<u64, TooMuchWork> {
        let Some(persons) = &mut self.persons else {
            let sizes = group.iter().map(|&class| self.sizes[class as usize]);
            return Ok(sizes.map(u64::from).sum());
        };
        let (all, of_row) = (persons.rows, persons.of_row);
        let mut read = 0;
        let rows = group.iter().flat_map(|&class| all[class as usize]);
        let counted = rows.map(|&row| of_row[row as usize]).inspect(|_| read += 1);
        let size = persons.counter.count_up_to(self.smallest, counted);
        self.charge(read)?;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use pais_core::cancellation::Cancellation;
    use pais_core::table::SubjectCounter;

    use super::{BUDGET, ClassPersons, KnownClasses, KnownGroups};

    /// Rows as the values of four attributes and a person.
    type Row = ([u32; 4], u32);

    /// The least number of rows, or of persons, of any qid of at most `l` values.
    fn brute_force(rows: &[Row], l: usize, by_person: bool) -> u64 {
        let subsets = (0..16u32).filter(|set| set.count_ones() as usize <= l);
        let sizes = subsets.flat_map(|set| {
            let mut groups: BTreeMap<Vec<u32>, (u64, BTreeSet<u32>)> = BTreeMap::new();
            for (values, person) in rows {
                let known = (0..4).filter(|column| set >> column & 1 == 1);
                let group = groups.entry(known.map(|column| values[column]).collect());
                let (count, persons) = group.or_default();
                *count += 1;
                persons.insert(*person);
            }
            let size = |(count, persons): (u64, BTreeSet<u32>)| {
                if by_person {
                    persons.len() as u64
                } else {
                    count
                }
            };
            groups.into_values().map(size).collect::<Vec<_>>()
        });
        sizes.min().unwrap_or(0)
    }

    fn found(rows: &[Row], l: usize, by_person: bool) -> Option<u64> {
        let mut classes: BTreeMap<[u32; 4], Vec<u32>> = BTreeMap::new();
        for (values, person) in rows {
            classes.entry(*values).or_default().push(*person);
        }
        let values: Vec<Vec<u32>> = (0..4)
            .map(|column| classes.keys().map(|values| values[column]).collect())
            .collect();
        let mut of_row = Vec::new();
        let mut rows: Vec<Vec<u32>> = Vec::new();
        let mut of_persons = Vec::new();
        for mut persons in classes.into_values() {
            let first = of_row.len() as u32;
            rows.push((first..first + persons.len() as u32).collect());
            of_row.extend(&persons);
            persons.sort_unstable();
            persons.dedup();
            of_persons.push(persons.len() as u32);
        }
        let of_rows: Vec<u32> = rows.iter().map(|rows| rows.len() as u32).collect();
        let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
        let mut counter = SubjectCounter::new(8);
        let persons = ClassPersons {
            rows: &rows,
            of_row: &of_row,
            counter: &mut counter,
        };
        let classes = KnownClasses {
            sizes: if by_person { &of_persons } else { &of_rows },
            values: values.iter().map(Vec::as_slice).collect(),
            persons: by_person.then_some(persons),
        };
        KnownGroups::new(l, &Cancellation::new()).find(classes)
    }

    proptest! {
        #[test]
        fn the_smallest_group_is_that_of_brute_force(
            rows in prop::collection::vec((prop::array::uniform4(0u32..3), 0u32..8), 0..40),
            l in 0usize..6,
            by_person: bool,
        ) {
            prop_assert_eq!(found(&rows, l, by_person), Some(brute_force(&rows, l, by_person)));
        }
    }

    #[test]
    fn a_step_that_takes_too_much_work_has_no_figure_and_no_later_one_has() {
        let values: [&[u32]; 3] = [&[0, 1, 2], &[0, 0, 1], &[1, 0, 0]];
        let classes = || KnownClasses {
            sizes: &[1, 2, 3],
            values: values.to_vec(),
            persons: None,
        };
        let with = |visits, cancellation: &Cancellation| KnownGroups {
            visits,
            ..KnownGroups::new(2, cancellation)
        };
        let going = Cancellation::new();
        let mut groups = with(5, &going);
        assert_eq!(groups.find(classes()), None);
        assert!(!groups.can_find());
        assert_eq!(with(BUDGET, &going).find(classes()), Some(1));
        let stopped = Cancellation::new();
        stopped.cancel();
        assert_eq!(with(BUDGET, &stopped).find(classes()), None);
    }

    #[test]
    fn the_rows_that_persons_are_counted_by_are_work_and_none_is_read_where_all_is_known() {
        let values: [&[u32]; 2] = [&[0, 1], &[0, 1]];
        let (first, second): (Vec<u32>, Vec<u32>) = ((0..1000).collect(), (1000..2000).collect());
        let of_row: Vec<u32> = (0..2000).map(|row| row / 2).collect();
        let found = |l, visits| {
            let mut groups = KnownGroups {
                visits,
                ..KnownGroups::new(l, &Cancellation::new())
            };
            let mut counter = SubjectCounter::new(1000);
            let persons = ClassPersons {
                rows: &[&first, &second],
                of_row: &of_row,
                counter: &mut counter,
            };
            let classes = KnownClasses {
                sizes: &[500, 500],
                values: values.to_vec(),
                persons: Some(persons),
            };
            (groups.find(classes), groups.visits)
        };
        assert_eq!(found(2, 1), (Some(500), 1));
        // The two classes, again one by one, and the rows of the first; the other is no smaller.
        assert_eq!(found(1, 1007), (Some(500), 1));
        assert_eq!(found(1, 1000), (None, 0));
    }
}
