//! Groups as profiles. A profile is a combination of values of the quasi-identifiers that may
//! still be added to a qid, with the number of records and the sensitive values that have it.

use std::ops::Range;

use super::classes::{Values, refine};

/// Number of records with a sensitive value.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueCount {
    /// Number of the value.
    pub(super) value: u32,
    /// Number of records.
    pub(super) records: u32,
}

/// Profiles, stored by column: entry `i` of each list belongs to profile `i`.
#[derive(Default)]
pub(super) struct Profiles {
    /// One of the classes that have the profile.
    pub(super) class: Vec<u32>,
    /// Records with the profile.
    pub(super) records: Vec<u32>,
    /// Records of the most frequent sensitive value.
    pub(super) most: Vec<u32>,
    /// `value_counts[starts[i]..starts[i + 1]]` are those of profile `i`. All are empty once
    /// confidence does not matter any more.
    starts: Vec<u32>,
    value_counts: Vec<ValueCount>,
    /// Start of the profiles with each value of the attribute that was split last; the end of
    /// all profiles last.
    pub(super) bounds: Vec<usize>,
}

impl Profiles {
    pub(super) fn new(
        class: Vec<u32>,
        records: Vec<u32>,
        starts: Vec<u32>,
        value_counts: Vec<ValueCount>,
    ) -> Self {
        let bounds = vec![0, class.len()];
        let mut profiles = Self {
            class,
            records,
            most: Vec::new(),
            starts,
            value_counts,
            bounds,
        };
        profiles.find_most();
        profiles
    }

    /// Number of profiles.
    pub(super) fn len(&self) -> usize {
        self.class.len()
    }

    /// The sensitive values of a profile, with their numbers of records.
    #[inline]
    pub(super) fn value_counts(&self, profile: usize) -> &[ValueCount] {
        &self.value_counts[self.starts[profile] as usize..self.starts[profile + 1] as usize]
    }

    fn find_most(&mut self) {
        self.most.clear();
        for profile in 0..self.len() {
            let most = self
                .value_counts(profile)
                .iter()
                .map(|count| count.records)
                .max();
            self.most.push(most.unwrap_or(0));
        }
    }
}

/// The values of the classes. The attributes are the quasi-identifiers that vary, in the order
/// in which subsets are enumerated.
pub(super) struct Grid {
    /// Number of distinct values of each attribute.
    pub(super) cardinalities: Vec<usize>,
    /// Class by class, a value for each attribute.
    values: Vec<u32>,
    /// For each attribute, the id of each class's projection on it and all attributes after it.
    suffixes: Vec<Vec<u32>>,
    /// For each attribute, the number of these ids.
    suffix_counts: Vec<usize>,
}

impl Grid {
    /// Reads the values of the classes; `rows` has one row of each class.
    pub(super) fn new(attributes: &[&Values], rows: &[u32]) -> Self {
        let mut values = Vec::with_capacity(attributes.len() * rows.len());
        for &row in rows {
            values.extend(
                attributes
                    .iter()
                    .map(|attribute| attribute.at(row as usize)),
            );
        }
        let cardinalities: Vec<usize> = attributes
            .iter()
            .map(|attribute| attribute.count())
            .collect();
        let mut ids = vec![0u32; rows.len()];
        let mut count = rows.len().min(1);
        let mut suffixes = vec![Vec::new(); attributes.len()];
        let mut suffix_counts = vec![0; attributes.len()];
        for attribute in (0..attributes.len()).rev() {
            let column = values
                .iter()
                .skip(attribute)
                .step_by(attributes.len())
                .copied();
            count = refine(&mut ids, count, column, cardinalities[attribute]);
            suffixes[attribute].clone_from(&ids);
            suffix_counts[attribute] = count;
        }
        Self {
            cardinalities,
            values,
            suffixes,
            suffix_counts,
        }
    }

    /// Number of attributes.
    pub(super) fn attributes(&self) -> usize {
        self.cardinalities.len()
    }

    /// The values of a class, one for each attribute.
    #[inline]
    pub(super) fn values(&self, class: u32) -> &[u32] {
        let attributes = self.attributes();
        &self.values[class as usize * attributes..][..attributes]
    }
}

/// Working space of [`Splitter::split`]; one for each thread.
pub(super) struct Splitter {
    /// Index of each suffix id's profile among the new ones; `u32::MAX` between calls.
    index: Vec<u32>,
    /// Number of new profiles with each value of the attribute; 0 between calls.
    frequency: Vec<u32>,
    /// Index of each sensitive value's count in the current profile; `u32::MAX` between calls.
    count_index: Vec<u32>,
    /// For each profile of the group, the index of its new profile.
    profile_of: Vec<u32>,
    /// Class and value of each new profile; later class and final index.
    made: Vec<(u32, u32)>,
    /// The values of the attribute in the group.
    seen: Vec<u32>,
    /// The counts of the group's profiles, ordered by new profile.
    merged_counts: Vec<ValueCount>,
    /// The end of each new profile's counts in `merged_counts`.
    ends: Vec<u32>,
}

impl Splitter {
    pub(super) fn new(grid: &Grid, sensitive_values: usize) -> Self {
        let suffixes = grid.suffix_counts.iter().copied().max().unwrap_or(0);
        let values = grid.cardinalities.iter().copied().max().unwrap_or(0);
        Self {
            index: vec![u32::MAX; suffixes],
            frequency: vec![0; values],
            count_index: vec![u32::MAX; sensitive_values],
            profile_of: Vec::new(),
            made: Vec::new(),
            seen: Vec::new(),
            merged_counts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Merges the profiles of a group that agree on `attribute` and all attributes after it,
    /// and orders them by the value of `attribute`.
    ///
    /// Attributes before it no longer matter, because qids are enumerated in attribute order. So
    /// the number of profiles shrinks with depth.
    pub(super) fn split(
        &mut self,
        grid: &Grid,
        (source, group): (&Profiles, Range<usize>),
        attribute: usize,
        with_counts: bool,
        into: &mut Profiles,
    ) {
        let suffix = &grid.suffixes[attribute];
        self.profile_of.clear();
        self.made.clear();
        self.seen.clear();
        for profile in group.clone() {
            let class = source.class[profile];
            let index = &mut self.index[suffix[class as usize] as usize];
            if *index == u32::MAX {
                *index = self.made.len() as u32;
                let value = grid.values(class)[attribute];
                self.made.push((class, value));
                let frequency = &mut self.frequency[value as usize];
                if *frequency == 0 {
                    self.seen.push(value);
                }
                *frequency += 1;
            }
            self.profile_of.push(*index);
        }
        // From here on `frequency` is the index of the next profile with a value.
        into.bounds.clear();
        let mut next = 0u32;
        for &value in &self.seen {
            into.bounds.push(next as usize);
            let count = std::mem::replace(&mut self.frequency[value as usize], next);
            next += count;
        }
        into.bounds.push(next as usize);
        into.class.clear();
        into.class.resize(self.made.len(), 0);
        for (class, value) in &mut self.made {
            let at = &mut self.frequency[*value as usize];
            into.class[*at as usize] = *class;
            self.index[suffix[*class as usize] as usize] = u32::MAX;
            *value = *at;
            *at += 1;
        }
        for &value in &self.seen {
            self.frequency[value as usize] = 0;
        }
        into.records.clear();
        into.records.resize(self.made.len(), 0);
        for (profile, index) in group.clone().zip(&mut self.profile_of) {
            *index = self.made[*index as usize].1;
            into.records[*index as usize] += source.records[profile];
        }
        self.merge_counts((source, group), with_counts, into);
        into.find_most();
    }

    /// Adds up the sensitive values of the merged profiles.
    fn merge_counts(
        &mut self,
        (source, group): (&Profiles, Range<usize>),
        with_counts: bool,
        into: &mut Profiles,
    ) {
        let made = into.class.len();
        into.value_counts.clear();
        into.starts.clear();
        if !with_counts {
            into.starts.resize(made + 1, 0);
            return;
        }
        self.ends.clear();
        self.ends.resize(made + 1, 0);
        for (profile, &index) in group.clone().zip(&self.profile_of) {
            self.ends[index as usize + 1] += source.value_counts(profile).len() as u32;
        }
        for index in 0..made {
            self.ends[index + 1] += self.ends[index];
        }
        self.merged_counts.clear();
        self.merged_counts.resize(
            self.ends[made] as usize,
            ValueCount {
                value: 0,
                records: 0,
            },
        );
        for (profile, &index) in group.zip(&self.profile_of) {
            for &count in source.value_counts(profile) {
                let end = &mut self.ends[index as usize];
                self.merged_counts[*end as usize] = count;
                *end += 1;
            }
        }
        // Filling advanced each start to its end, which is the start of the next profile.
        let mut start = 0;
        into.starts.push(0);
        for index in 0..made {
            let end = self.ends[index] as usize;
            let first = into.value_counts.len();
            for &count in &self.merged_counts[start..end] {
                let at = &mut self.count_index[count.value as usize];
                if *at == u32::MAX {
                    *at = into.value_counts.len() as u32;
                    into.value_counts.push(count);
                } else {
                    into.value_counts[*at as usize].records += count.records;
                }
            }
            for count in &into.value_counts[first..] {
                self.count_index[count.value as usize] = u32::MAX;
            }
            into.starts.push(into.value_counts.len() as u32);
            start = end;
        }
    }
}
