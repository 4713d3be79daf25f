//! The equivalence classes of a table as the enumeration of qids needs them: their values, records,
//! sensitive values and persons.

use std::cmp::Reverse;

use pais_core::table::SubjectCounter;

use crate::classes::{Classes, Values};
use crate::lists::Lists;
use crate::persons::{CountedTable, persons_by_class, persons_of};
use crate::profiles::{Grid, Share};
use crate::requirement::LkcRequirement;
use crate::sensitive::{ClassCounts, SensitiveColumn, SensitiveIndex};
use crate::verification::VerifyError;

/// The classes of a table, mostly sorted by their values, with the last attribute first: classes that are equal
/// on the last attributes are adjacent.
pub(super) struct TableClasses {
    /// Number of records of each class.
    pub(super) sizes: Vec<u32>,
    /// The values of the quasi-identifiers that vary.
    pub(super) grid: Grid,
    /// The sensitive values, by denominator.
    pub(super) sensitive: Vec<ClassCounts>,
    /// The persons of the classes, where rows are not persons.
    pub(super) persons: Option<ClassPersons>,
}

/// Classes that are each merged from one or more adjacent members of a group of classes.
pub(super) struct MergedClasses {
    pub(super) classes: TableClasses,
    /// Where the members of each begin, and the number of members.
    pub(super) starts: Vec<u32>,
}

/// The distinct persons of each class.
pub(super) struct ClassPersons {
    /// Number of persons of the table.
    pub(super) count: usize,
    pub(super) by_class: Lists<u32>,
}

impl TableClasses {
    /// Of the rows of a table, or of distinct rows with their multiplicities, by the classes of these
    /// columns.
    pub(super) fn new(
        counted: CountedTable,
        columns: &[Values],
        classes: &Classes,
        requirement: &LkcRequirement,
    ) -> Result<Self, VerifyError> {
        let table = counted.table;
        let mut varied: Vec<&Values> = columns.iter().filter(|values| values.count() > 1).collect();
        // Leaving out the attributes with the most values leaves the fewest classes.
        varied.sort_by_key(|values| Reverse(values.count()));
        let (grid, order) = Grid::ordered(&varied, &classes.row);
        let named = SensitiveColumn::named(table, requirement)?;
        let sensitive = SensitiveIndex::by_denominator(named, requirement.missing_sensitive);
        let sensitive = sensitive.iter().filter(|index| index.count() > 0);
        let sensitive = sensitive.map(|index| index.class_counts(classes, order.iter().copied()));
        let sizes = order.iter().map(|&class| classes.sizes[class as usize]);
        Ok(Self {
            sensitive: sensitive.collect::<Result<_, VerifyError>>()?,
            persons: persons_of(counted)?.map(|persons| ClassPersons {
                count: persons.codes(),
                by_class: persons_by_class(&persons, classes).in_order(&order),
            }),
            grid,
            sizes: sizes.collect(),
        })
    }

    /// The members of a group without the attributes before number `from`, with equal members merged. `None` if
    /// more than half of the classes or of their sensitive values remain, so that repeated merges together are
    /// smaller than the first classes, or if there are few members or rows are not persons. `index` is that of
    /// [`ClassCounts::merged`].
    pub(super) fn merged(
        &self,
        members: &[u32],
        from: usize,
        index: &mut [u32],
    ) -> Option<MergedClasses> {
        /// Fewer are read as they are. Lower in tests, which have small tables.
        const FEW: usize = if cfg!(test) { 2 } else { 32 };
        if self.persons.is_some() || members.len() < FEW {
            return None;
        }
        let values = |place: usize| &self.grid.values(members[place])[from..];
        let most = members.len() / 2;
        let mut starts: Vec<u32> = Vec::new();
        for place in 0..members.len() {
            if place == 0 || values(place - 1) != values(place) {
                if starts.len() == most {
                    return None;
                }
                starts.push(place as u32);
            }
        }
        let first: Vec<u32> = starts.iter().map(|&at| members[at as usize]).collect();
        starts.push(members.len() as u32);
        let ends = starts.windows(2);
        let merged = ends.map(|ends| &members[ends[0] as usize..ends[1] as usize]);
        let sensitive = self.sensitive.iter();
        let sensitive = sensitive.map(|counts| counts.merged(merged.clone(), index));
        let size = |members: &[u32]| {
            members
                .iter()
                .map(|&class| self.sizes[class as usize])
                .sum()
        };
        let classes = Self {
            sensitive: sensitive.collect::<Option<_>>()?,
            sizes: merged.map(size).collect(),
            grid: self.grid.of_classes(&first, from),
            persons: None,
        };
        Some(MergedClasses { classes, starts })
    }

    /// An index for [`Self::merged`].
    pub(super) fn value_index(&self) -> Vec<u32> {
        let value_counts = self.sensitive.iter().map(|counts| counts.value_count);
        vec![u32::MAX; value_counts.max().unwrap_or(0)]
    }

    /// All classes.
    pub(super) fn members(&self) -> Vec<u32> {
        (0..self.sizes.len() as u32).collect()
    }

    /// Number of records of the smallest class.
    pub(super) fn smallest(&self) -> u32 {
        self.sizes.iter().copied().min().unwrap_or(0)
    }

    /// The greatest confidence in a sensitive value in any class. No group of classes has a greater
    /// one.
    pub(super) fn greatest_confidence(&self) -> Share {
        let of_counts = self.sensitive.iter().flat_map(|counts| {
            let classes = counts.values.iter().zip(&counts.records);
            classes.map(|(values, &of)| {
                let most = values.iter().map(|count| count.records).max();
                Share {
                    most: most.unwrap_or(0),
                    of,
                }
            })
        });
        of_counts.fold(Share::NONE, Share::max)
    }

    /// Number of entries that are read to measure all classes once.
    pub(super) fn cells(&self) -> u64 {
        let values = self.sensitive.iter().map(|counts| counts.values.entries());
        let persons = self.persons.as_ref().map_or(0, |it| it.by_class.entries());
        (self.sizes.len() + values.sum::<usize>() + persons) as u64
    }

    /// Number of records, or persons.
    pub(super) fn people(&self) -> u64 {
        match &self.persons {
            Some(persons) => persons.count as u64,
            None => self.sizes.iter().map(|&size| u64::from(size)).sum(),
        }
    }

    /// Number of records, or distinct persons, of some classes.
    pub(super) fn people_of(&self, classes: &[u32]) -> u64 {
        match &self.persons {
            None => {
                let sizes = classes.iter().map(|&class| self.sizes[class as usize]);
                sizes.map(u64::from).sum()
            }
            Some(persons) => {
                let lists = classes.iter().map(|&class| persons.by_class.of(class));
                SubjectCounter::new(persons.count).count_lists(u64::MAX, lists)
            }
        }
    }
}
