//! The equivalence classes of a table as the enumeration of qids needs them: their values, records,
//! sensitive values and persons.

use std::ops::Range;

use rayon::prelude::*;

use crate::former::classes::{Classes, Values};
use crate::former::counted_table::CountedTable;
use crate::former::persons::Persons;
use crate::former::requirement::LkcRequirement;
use crate::former::sensitive::{SensitiveColumn, SensitiveIndex};
use crate::former::verification::VerifyError;

/// The classes of a table.
pub(super) struct TableClasses {
    /// Number of records of each class.
    pub(super) sizes: Vec<u32>,
    /// For each attribute that varies, the number of its values, and the value of each class.
    pub(super) columns: Vec<(usize, Vec<u32>)>,
    /// The sensitive values, by denominator.
    pub(super) sensitive: Vec<ClassValues>,
    /// The persons of the classes, where rows are not persons.
    pub(super) persons: Option<ClassPeople>,
}

/// How many records of each class have each sensitive value of the columns with one denominator.
pub(super) struct ClassValues {
    /// Number of values.
    pub(super) count: usize,
    /// Records of each class in the denominator.
    pub(super) records: Vec<u32>,
    starts: Vec<u32>,
    entries: Vec<(u32, u32)>,
}

impl ClassValues {
    /// The values of a class, each with its number of records.
    pub(super) fn of(&self, class: u32) -> &[(u32, u32)] {
        &self.entries[span(&self.starts, class)]
    }

    fn in_order(&self, order: &[u32]) -> Self {
        let (starts, entries) = lists_in_order(order, |class| self.of(class));
        let records = order.iter().map(|&class| self.records[class as usize]);
        Self {
            count: self.count,
            records: records.collect(),
            starts,
            entries,
        }
    }
}

/// The distinct persons of each class.
pub(super) struct ClassPeople {
    /// Number of persons of the table.
    pub(super) count: usize,
    starts: Vec<u32>,
    entries: Vec<u32>,
}

impl ClassPeople {
    /// The persons of a class.
    pub(super) fn of(&self, class: u32) -> &[u32] {
        &self.entries[span(&self.starts, class)]
    }

    fn in_order(&self, order: &[u32]) -> Self {
        let (starts, entries) = lists_in_order(order, |class| self.of(class));
        Self {
            count: self.count,
            starts,
            entries,
        }
    }
}

/// The lists of some classes one after the other, and where each begins.
fn lists_in_order<'a, T: Copy + 'a>(
    order: &[u32],
    of: impl Fn(u32) -> &'a [T],
) -> (Vec<u32>, Vec<T>) {
    let mut starts = Vec::with_capacity(order.len() + 1);
    let mut entries = Vec::new();
    for &class in order {
        starts.push(entries.len() as u32);
        entries.extend_from_slice(of(class));
    }
    starts.push(entries.len() as u32);
    (starts, entries)
}

/// The greater of two fractions.
pub(super) fn greater(one: (u32, u32), other: (u32, u32)) -> (u32, u32) {
    let is_greater = u64::from(other.0) * u64::from(one.1) > u64::from(one.0) * u64::from(other.1);
    if is_greater { other } else { one }
}

fn span(starts: &[u32], class: u32) -> Range<usize> {
    starts[class as usize] as usize..starts[class as usize + 1] as usize
}

impl TableClasses {
    pub(super) fn new(
        counted: CountedTable,
        quasi_identifiers: &[Box<str>],
        requirement: &LkcRequirement,
    ) -> Result<Self, VerifyError> {
        let table = counted.table;
        let columns = Values::new_all(table, quasi_identifiers)?;
        let classes = Classes::new(table.rows, &columns)?;
        let named = requirement.sensitive.iter();
        let named = named.map(|named| SensitiveColumn::new(table, named));
        let named = named.collect::<Result<Vec<_>, _>>()?;
        let reading = requirement.missing_sensitive;
        let sensitive = SensitiveIndex::by_denominator(named, reading);
        let sensitive = sensitive.iter().filter(|index| !index.is_empty());
        let sensitive = sensitive.map(|index| class_values(index, &classes));
        let sensitive = sensitive.collect::<Result<Vec<_>, _>>()?;
        let persons = Persons::new(counted)?.map(|persons| class_people(&classes, &persons));
        let varied = columns.iter().filter(|values| values.count() > 1);
        let columns = varied.map(|values| {
            let of_class = classes.row.iter().map(|&row| values.at(row as usize));
            (values.count(), of_class.collect())
        });
        let found = Self {
            columns: columns.collect(),
            sizes: classes.sizes,
            sensitive,
            persons,
        };
        Ok(found.sorted())
    }

    /// The same classes in the order of their values. Those of a group are then mostly neighbours in
    /// memory, where the order of the rows is random.
    fn sorted(self) -> Self {
        let mut order: Vec<u32> = (0..self.sizes.len() as u32).collect();
        let values = |class: u32| self.columns.iter().map(move |(_, of)| of[class as usize]);
        order.par_sort_unstable_by(|&one, &other| values(one).cmp(values(other)));
        let select = |of: &[u32]| order.iter().map(|&class| of[class as usize]).collect();
        Self {
            sizes: select(&self.sizes),
            columns: self
                .columns
                .iter()
                .map(|(count, of)| (*count, select(of)))
                .collect(),
            sensitive: self
                .sensitive
                .iter()
                .map(|it| it.in_order(&order))
                .collect(),
            persons: self.persons.map(|it| it.in_order(&order)),
        }
    }

    /// Number of records of the smallest class.
    pub(super) fn smallest(&self) -> u32 {
        self.sizes.iter().copied().min().unwrap_or(0)
    }

    /// The greatest confidence in a sensitive value in any class, as records with the value and all
    /// records. No group of classes has a greater one.
    pub(super) fn greatest_confidence(&self) -> (u32, u32) {
        let of_values = |values: &ClassValues| {
            let classes = 0..self.sizes.len() as u32;
            let of_class = classes.map(|class| {
                let counts = values.of(class).iter().map(|&(_, count)| count);
                (counts.max().unwrap_or(0), values.records[class as usize])
            });
            of_class
                .filter(|(_, records)| *records > 0)
                .fold((0, 1), greater)
        };
        self.sensitive.iter().map(of_values).fold((0, 1), greater)
    }

    /// Number of quasi-identifiers that vary.
    pub(super) fn attributes(&self) -> usize {
        self.columns.len()
    }

    /// Number of entries that are read to measure all classes once.
    pub(super) fn cells(&self) -> u64 {
        let values = self.sensitive.iter().map(|values| values.entries.len());
        let persons = self.persons.as_ref().map_or(0, |it| it.entries.len());
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
                let mut of_classes: Vec<u32> = classes
                    .iter()
                    .flat_map(|&class| persons.of(class))
                    .copied()
                    .collect();
                of_classes.sort_unstable();
                of_classes.dedup();
                of_classes.len() as u64
            }
        }
    }
}

fn class_values(index: &SensitiveIndex, classes: &Classes) -> Result<ClassValues, VerifyError> {
    let profiles = index.profiles(classes)?;
    let count = classes.sizes.len();
    let mut values = ClassValues {
        count: index.count(),
        records: vec![0; count],
        starts: Vec::with_capacity(count + 1),
        entries: Vec::new(),
    };
    // Profiles are in the order of classes; those without a record in the denominator are left out.
    let mut profile = 0;
    for class in 0..count {
        values.starts.push(values.entries.len() as u32);
        if profiles.class.get(profile) == Some(&(class as u32)) {
            values.records[class] = profiles.records[profile];
            let counts = profiles.value_counts(profile).iter();
            values
                .entries
                .extend(counts.map(|it| (it.value, it.records)));
            profile += 1;
        }
    }
    values.starts.push(values.entries.len() as u32);
    Ok(values)
}

fn class_people(classes: &Classes, persons: &Persons) -> ClassPeople {
    let pairs = classes.of_row.iter().zip(&persons.of_row);
    let mut pairs: Vec<(u32, u32)> = pairs.map(|(&class, &person)| (class, person)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut starts = vec![0u32; classes.sizes.len() + 1];
    for (class, _) in &pairs {
        starts[*class as usize + 1] += 1;
    }
    for class in 0..classes.sizes.len() {
        starts[class + 1] += starts[class];
    }
    ClassPeople {
        count: persons.count(),
        starts,
        entries: pairs.into_iter().map(|(_, person)| person).collect(),
    }
}
