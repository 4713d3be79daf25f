//! Groups as profiles: what tells the classes of a group apart, on the quasi-identifiers that
//! may still be added to a qid, with the records and the sensitive values behind it.

use std::ops::Range;

use super::classes::{Values, refine};

/// Records that hold a sensitive value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    /// Number of the value.
    pub(super) value: u32,
    /// How many.
    pub(super) records: u32,
}

/// Profiles by column: entry `i` of each list belongs to profile `i`.
#[derive(Default)]
pub(super) struct Profiles {
    /// A class that has the profile; it stands for all that have.
    pub(super) class: Vec<u32>,
    /// Records with the profile.
    pub(super) records: Vec<u32>,
    /// Records of the most frequent sensitive value.
    pub(super) most: Vec<u32>,
    /// `tallies[starts[i]..starts[i + 1]]` are those of profile `i`; all are empty where
    /// confidence does not matter any more.
    starts: Vec<u32>,
    tallies: Vec<Tally>,
    /// Where profiles with another value of the attribute last split at begin, the end last.
    pub(super) bounds: Vec<usize>,
}

impl Profiles {
    pub(super) fn new(
        class: Vec<u32>,
        records: Vec<u32>,
        starts: Vec<u32>,
        tallies: Vec<Tally>,
    ) -> Self {
        let bounds = vec![0, class.len()];
        let mut profiles = Self {
            class,
            records,
            most: Vec::new(),
            starts,
            tallies,
            bounds,
        };
        profiles.find_most();
        profiles
    }

    /// Number of profiles.
    pub(super) fn len(&self) -> usize {
        self.class.len()
    }

    /// The sensitive values of a profile.
    #[inline]
    pub(super) fn tallies(&self, profile: usize) -> &[Tally] {
        &self.tallies[self.starts[profile] as usize..self.starts[profile + 1] as usize]
    }

    fn find_most(&mut self) {
        self.most.clear();
        for profile in 0..self.len() {
            let most = self
                .tallies(profile)
                .iter()
                .map(|tally| tally.records)
                .max();
            self.most.push(most.unwrap_or(0));
        }
    }
}

/// The values of the classes: attributes are the quasi-identifiers that vary, in the order in
/// which subsets are enumerated.
pub(super) struct Grid {
    /// Number of distinct values of each attribute.
    pub(super) cardinalities: Vec<usize>,
    /// Class by class, a value for each attribute.
    values: Vec<u32>,
    /// For each attribute, the id of each class's projection on it and those after it.
    suffixes: Vec<Vec<u32>>,
    suffix_counts: Vec<usize>,
}

impl Grid {
    /// Reads the values of classes off a row of each.
    pub(super) fn of(attributes: &[&Values], rows: &[u32]) -> Self {
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

    /// The values of a class.
    #[inline]
    pub(super) fn values(&self, class: u32) -> &[u32] {
        let attributes = self.attributes();
        &self.values[class as usize * attributes..][..attributes]
    }
}

/// Working space of [`Splitter::split`]; one a thread.
pub(super) struct Splitter {
    /// Place of each suffix id among the profiles made, `u32::MAX` between calls.
    place: Vec<u32>,
    /// Profiles with each value of the attribute, 0 between calls.
    frequency: Vec<u32>,
    /// Place of each sensitive value in the profile under way, `u32::MAX` between calls.
    tally_place: Vec<u32>,
    profile_of: Vec<u32>,
    made: Vec<(u32, u32)>,
    seen: Vec<u32>,
    gathered: Vec<Tally>,
    ends: Vec<u32>,
}

impl Splitter {
    pub(super) fn new(grid: &Grid, sensitive_values: usize) -> Self {
        let suffixes = grid.suffix_counts.iter().copied().max().unwrap_or(0);
        let values = grid.cardinalities.iter().copied().max().unwrap_or(0);
        Self {
            place: vec![u32::MAX; suffixes],
            frequency: vec![0; values],
            tally_place: vec![u32::MAX; sensitive_values],
            profile_of: Vec::new(),
            made: Vec::new(),
            seen: Vec::new(),
            gathered: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Merges the profiles of a group that agree on `attribute` and all after it, and orders
    /// them by the value of `attribute`.
    ///
    /// Attributes before it need not be told apart any more: qids are enumerated in the order
    /// of attributes. So groups shrink on the way down.
    pub(super) fn split(
        &mut self,
        grid: &Grid,
        (source, group): (&Profiles, Range<usize>),
        attribute: usize,
        tallies: bool,
        into: &mut Profiles,
    ) {
        let suffix = &grid.suffixes[attribute];
        self.profile_of.clear();
        self.made.clear();
        self.seen.clear();
        for profile in group.clone() {
            let class = source.class[profile];
            let place = &mut self.place[suffix[class as usize] as usize];
            if *place == u32::MAX {
                *place = self.made.len() as u32;
                let value = grid.values(class)[attribute];
                self.made.push((class, value));
                let frequency = &mut self.frequency[value as usize];
                if *frequency == 0 {
                    self.seen.push(value);
                }
                *frequency += 1;
            }
            self.profile_of.push(*place);
        }
        // From here on `frequency` holds where the next profile of a value goes.
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
            self.place[suffix[*class as usize] as usize] = u32::MAX;
            *value = *at;
            *at += 1;
        }
        for &value in &self.seen {
            self.frequency[value as usize] = 0;
        }
        into.records.clear();
        into.records.resize(self.made.len(), 0);
        for (profile, place) in group.clone().zip(&mut self.profile_of) {
            *place = self.made[*place as usize].1;
            into.records[*place as usize] += source.records[profile];
        }
        self.gather((source, group), tallies, into);
        into.find_most();
    }

    /// Adds up the sensitive values of the profiles that were merged.
    fn gather(
        &mut self,
        (source, group): (&Profiles, Range<usize>),
        tallies: bool,
        into: &mut Profiles,
    ) {
        let made = into.class.len();
        into.tallies.clear();
        into.starts.clear();
        if !tallies {
            into.starts.resize(made + 1, 0);
            return;
        }
        self.ends.clear();
        self.ends.resize(made + 1, 0);
        for (profile, &place) in group.clone().zip(&self.profile_of) {
            self.ends[place as usize + 1] += source.tallies(profile).len() as u32;
        }
        for place in 0..made {
            self.ends[place + 1] += self.ends[place];
        }
        self.gathered.clear();
        self.gathered.resize(
            self.ends[made] as usize,
            Tally {
                value: 0,
                records: 0,
            },
        );
        for (profile, &place) in group.zip(&self.profile_of) {
            for &tally in source.tallies(profile) {
                let end = &mut self.ends[place as usize];
                self.gathered[*end as usize] = tally;
                *end += 1;
            }
        }
        // Filling moved each start to its end, which is the next one's start.
        let mut start = 0;
        into.starts.push(0);
        for place in 0..made {
            let end = self.ends[place] as usize;
            let first = into.tallies.len();
            for &tally in &self.gathered[start..end] {
                let at = &mut self.tally_place[tally.value as usize];
                if *at == u32::MAX {
                    *at = into.tallies.len() as u32;
                    into.tallies.push(tally);
                } else {
                    into.tallies[*at as usize].records += tally.records;
                }
            }
            for tally in &into.tallies[first..] {
                self.tally_place[tally.value as usize] = u32::MAX;
            }
            into.starts.push(into.tallies.len() as u32);
            start = end;
        }
    }
}
