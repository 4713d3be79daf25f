//! The smallest group that an adversary of the model can know after a step: the least *|T\[qid\]|*
//! over all qids of at most *L* values.
//!
//! Only qids of the full size count, because a shorter one has a group that contains those of longer
//! ones. A group is not divided further once each of its classes is as large as the least group that
//! was found: every part of it has at least one class.

/// Most visits of a class over all steps of a run: some tenths of a second.
const BUDGET: u64 = 20_000_000;

/// The equivalence classes after a step.
pub(super) struct KnownClasses<'a> {
    /// Rows of each class; persons where *K* counts these.
    pub(super) sizes: &'a [u32],
    /// By attribute, the value of each class.
    pub(super) values: &'a [Vec<u32>],
    /// The persons of each class, each once; `None` where rows are counted.
    pub(super) persons: Option<&'a [Vec<u32>]>,
}

/// Finds the smallest known group step by step, as long as that takes little work.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownGroups {
    /// *L*.
    l: usize,
    /// Visits that are left.
    visits: u64,
}

/// The work is more than is left.
struct TooMuchWork;

impl KnownGroups {
    /// For an adversary who knows at most `l` values.
    pub(super) fn new(l: usize) -> Self {
        Self { l, visits: BUDGET }
    }

    /// Whether work is left for another step.
    pub(super) fn can_find(&self) -> bool {
        self.visits > 0
    }

    /// The size of the smallest group, in rows or in persons; 0 without classes. `None` where it
    /// would take too much work, and after every later step.
    pub(super) fn find(&mut self, classes: &KnownClasses<'_>) -> Option<u64> {
        if classes.sizes.is_empty() {
            return Some(0);
        }
        let varied = classes.values.iter();
        let varied: Vec<&[u32]> = varied
            .map(Vec::as_slice)
            .filter(|values| values.iter().any(|value| *value != values[0]))
            .collect();
        let depth = self.l.min(varied.len());
        if depth == varied.len() {
            // All that varies is known.
            return classes.sizes.iter().copied().min().map(u64::from);
        }
        let mut search = Search {
            classes,
            varied,
            smallest: u64::MAX,
            visits: self.visits,
        };
        let all: Vec<u32> = (0..classes.sizes.len() as u32).collect();
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
    classes: &'a KnownClasses<'a>,
    /// The values of the attributes that vary.
    varied: Vec<&'a [u32]>,
    /// The least size found.
    smallest: u64,
    visits: u64,
}

impl Search<'_> {
    /// Looks at all parts of a group by `depth` of the attributes from `from` on.
    fn visit(&mut self, group: &[u32], from: usize, depth: usize) -> Result<(), TooMuchWork> {
        let visits = self.visits.checked_sub(group.len() as u64);
        self.visits = visits.ok_or(TooMuchWork)?;
        let size = |class: &u32| u64::from(self.classes.sizes[*class as usize]);
        if group.iter().all(|class| size(class) >= self.smallest) {
            return Ok(());
        }
        if depth == 0 || group.len() == 1 {
            self.smallest = self.smallest.min(self.size(group));
            return Ok(());
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

    /// Rows of a group, or its distinct persons.
    fn size(&self, group: &[u32]) -> u64 {
        let Some(persons) = self.classes.persons else {
            let sizes = group
                .iter()
                .map(|&class| self.classes.sizes[class as usize]);
            return sizes.map(u64::from).sum();
        };
        let persons = group.iter().flat_map(|&class| &persons[class as usize]);
        let mut persons: Vec<u32> = persons.copied().collect();
        persons.sort_unstable();
        persons.dedup();
        persons.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::{KnownClasses, KnownGroups};

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
        let mut persons: Vec<Vec<u32>> = classes.into_values().collect();
        let rows: Vec<u32> = persons.iter().map(|rows| rows.len() as u32).collect();
        for persons in &mut persons {
            persons.sort_unstable();
            persons.dedup();
        }
        let of_persons: Vec<u32> = persons.iter().map(|it| it.len() as u32).collect();
        let classes = KnownClasses {
            sizes: if by_person { &of_persons } else { &rows },
            values: &values,
            persons: by_person.then_some(&*persons),
        };
        KnownGroups::new(l).find(&classes)
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
        let values = vec![vec![0, 1, 2], vec![0, 0, 1], vec![1, 0, 0]];
        let classes = KnownClasses {
            sizes: &[1, 2, 3],
            values: &values,
            persons: None,
        };
        let mut groups = KnownGroups { l: 2, visits: 5 };
        assert_eq!(groups.find(&classes), None);
        assert!(!groups.can_find());
        assert_eq!(KnownGroups::new(2).find(&classes), Some(1));
    }
}
