//! The equivalence classes of a table as the enumeration of qids needs them: their values, records,
//! sensitive values and persons.

use std::cmp::Reverse;
use std::ops::Range;

use crate::classes::{Classes, Values};
use crate::lists::Lists;
use crate::persons::{CountedTable, PersonCounter, Persons};
use crate::profiles::{Grid, Share};
use crate::requirement::LkcRequirement;
use crate::sensitive::{ClassCounts, SensitiveColumn, SensitiveIndex};
use crate::verification::VerifyError;

/// The classes of a table, mostly in the order of their values, those of the last attribute first: without the first
/// attributes, equal ones are neighbours.
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

/// Classes, each of one or some neighbours of other classes.
pub(super) struct MergedClasses {
    pub(super) classes: TableClasses,
    /// The first other class of each, and the number of other classes.
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
        // Without the attributes of most values there are fewest classes.
        varied.sort_by_key(|values| Reverse(values.count()));
        let grid = Grid::new(&varied, &classes.row);
        let order = grid.order(classes.sizes.len() as u32);
        let grid = grid.in_order(&order);
        let named = SensitiveColumn::named(table, requirement)?;
        let sensitive = SensitiveIndex::by_denominator(named, requirement.missing_sensitive);
        let sensitive = sensitive.iter().filter(|index| index.count() > 0);
        let sensitive = sensitive.map(|index| Ok(index.class_counts(classes)?.in_order(&order)));
        let sizes = order.iter().map(|&class| classes.sizes[class as usize]);
        Ok(Self {
            sensitive: sensitive.collect::<Result<_, VerifyError>>()?,
            persons: Persons::new(counted)?.map(|persons| ClassPersons {
                count: persons.count(),
                by_class: persons.by_class(classes).in_order(&order),
            }),
            grid,
            sizes: sizes.collect(),
        })
    }

    /// The classes without the first attribute. Neighbours that are equal then are one. Not of persons.
    pub(super) fn without_first(&self) -> MergedClasses {
        let rest = |class: u32| &self.grid.values(class)[1..];
        let count = self.sizes.len() as u32;
        let is_first = |&class: &u32| class == 0 || rest(class - 1) != rest(class);
        let mut starts: Vec<u32> = (0..count).filter(is_first).collect();
        let grid = self.grid.without_first(&starts);
        starts.push(count);
        let merged = || starts.windows(2).map(|ends| ends[0]..ends[1]);
        let size = |merged: Range<u32>| {
            let sizes = &self.sizes[merged.start as usize..merged.end as usize];
            sizes.iter().sum()
        };
        let classes = Self {
            sizes: merged().map(size).collect(),
            grid,
            sensitive: self
                .sensitive
                .iter()
                .map(|it| it.merged(merged()))
                .collect(),
            persons: None,
        };
        MergedClasses { classes, starts }
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
                PersonCounter::new(persons.count).count_lists(u64::MAX, lists)
            }
        }
    }
}
