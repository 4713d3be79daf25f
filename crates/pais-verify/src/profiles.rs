//! Groups as profiles. A profile is a combination of values of the quasi-identifiers that may
//! still be added to a qid, with the number of records and the sensitive values that have it.

use std::cmp::Ordering;
use std::ops::Range;

use rayon::prelude::*;

use super::classes::{Values, refine};
use super::lists::Lists;

/// Number of an attribute, and number of one of its values.
pub(super) type KnownValue = (usize, u32);

/// Number of records with a sensitive value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueCount {
    /// Number of the value.
    pub(super) value: u32,
    /// Number of records.
    pub(super) records: u32,
}

impl ValueCount {
    /// Becomes the other where that has more records.
    #[inline]
    pub(super) fn raise(&mut self, other: Self) {
        if other.records > self.records {
            *self = other;
        }
    }
}

/// A confidence *P(s|qid)* as a share of records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Records of the group with the value.
    pub(super) most: u32,
    /// Records of the group.
    pub(super) of: u32,
}

impl Share {
    /// The share of a value that no record has.
    pub(super) const NONE: Self = Self { most: 0, of: 1 };

    /// Compares their values.
    #[inline]
    pub(super) fn cmp(self, other: Self) -> Ordering {
        let one = u64::from(self.most) * u64::from(other.of);
        one.cmp(&(u64::from(other.most) * u64::from(self.of)))
    }

    /// Whether it is greater than another.
    #[inline]
    pub(super) fn exceeds(self, other: Self) -> bool {
        self.cmp(other).is_gt()
    }

    /// The greater of two.
    pub(super) fn max(self, other: Self) -> Self {
        if other.exceeds(self) { other } else { self }
    }

    /// From 0 to 1.
    pub(super) fn as_f64(self) -> f64 {
        f64::from(self.most) / f64::from(self.of)
    }
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
    /// The profiles of these classes, each with its number of records. `values` are those of all
    /// classes; a class that is left out has none.
    pub(super) fn new(class: Vec<u32>, records: Vec<u32>, values: Lists<ValueCount>) -> Self {
        let (starts, value_counts) = values.into_parts(&class);
        let mut profiles = Self {
            bounds: vec![0, class.len()],
            class,
            records,
            starts,
            value_counts,
            ..Self::default()
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

    /// All profiles.
    pub(super) fn all(&self) -> ProfileGroup<'_> {
        self.group(0..self.len())
    }

    /// The profiles in a range.
    pub(super) fn group(&self, range: Range<usize>) -> ProfileGroup<'_> {
        ProfileGroup {
            profiles: self,
            range,
        }
    }

    fn find_most(&mut self) {
        self.most.clear();
        for profile in 0..self.len() {
            let counts = self.value_counts(profile).iter();
            let most = counts.map(|count| count.records).max();
            self.most.push(most.unwrap_or(0));
        }
    }
}

/// A group, as a range of profiles.
#[derive(Clone)]
pub(super) struct ProfileGroup<'p> {
    pub(super) profiles: &'p Profiles,
    pub(super) range: Range<usize>,
}

impl<'p> ProfileGroup<'p> {
    /// Number of profiles.
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    /// The classes of the profiles.
    pub(super) fn classes(&self) -> &'p [u32] {
        &self.profiles.class[self.range.clone()]
    }

    /// The records of the profiles.
    pub(super) fn records(&self) -> &'p [u32] {
        &self.profiles.records[self.range.clone()]
    }

    /// The sensitive values of each profile, with their numbers of records.
    pub(super) fn value_counts(&self) -> impl Iterator<Item = &'p [ValueCount]> + use<'p> {
        let profiles = self.profiles;
        self.range
            .clone()
            .map(|profile| profiles.value_counts(profile))
    }

    /// The sensitive values of all profiles, one profile after another.
    pub(super) fn all_value_counts(&self) -> &'p [ValueCount] {
        let Profiles {
            starts,
            value_counts,
            ..
        } = self.profiles;
        &value_counts[starts[self.range.start] as usize..starts[self.range.end] as usize]
    }
}

/// The values of the classes. The attributes are the quasi-identifiers that vary, in the order
/// in which subsets are enumerated.
pub(super) struct Grid {
    /// Number of distinct values of each attribute.
    pub(super) cardinalities: Vec<usize>,
    /// Class by class, a value for each attribute.
    values: Vec<u32>,
}

/// For each attribute, the projections of the classes on it and all attributes after it.
pub(super) struct Suffixes {
    /// By attribute, the id of the projection of each class.
    ids: Vec<Vec<u32>>,
    /// Maximum number of ids of an attribute.
    most: usize,
}

impl Suffixes {
    pub(super) fn new(grid: &Grid) -> Self {
        let attributes = grid.attributes();
        let classes = grid.values.len().checked_div(attributes).unwrap_or(0);
        let mut last = vec![0u32; classes];
        let mut ids = vec![Vec::new(); attributes];
        let (mut count, mut most) = (classes.min(1), 0);
        for attribute in (0..attributes).rev() {
            let values = grid.values.iter().skip(attribute).step_by(attributes);
            let cardinality = grid.cardinalities[attribute];
            count = refine(&mut last, count, values.copied(), cardinality);
            ids[attribute].clone_from(&last);
            most = most.max(count);
        }
        Self { ids, most }
    }
}

impl Grid {
    /// Reads the values of the classes; `rows` has one row of each class.
    pub(super) fn new(attributes: &[&Values], rows: &[u32]) -> Self {
        let of_row = |&row: &u32| {
            let values = attributes.iter();
            values.map(move |attribute| attribute.at(row as usize))
        };
        let values = rows.par_iter().with_min_len(1 << 12).flat_map_iter(of_row);
        let cardinalities = attributes.iter().map(|attribute| attribute.count());
        Self {
            cardinalities: cardinalities.collect(),
            values: values.collect(),
        }
    }

    /// Some of the classes, numbered in this order, by the attributes from number `from` on.
    pub(super) fn of_classes(&self, classes: &[u32], from: usize) -> Self {
        let mut values = Vec::with_capacity(classes.len() * (self.attributes() - from));
        for &class in classes {
            values.extend_from_slice(&self.values(class)[from..]);
        }
        Self {
            cardinalities: self.cardinalities[from..].to_vec(),
            values,
        }
    }

    /// As [`Self::new`], with the classes sorted by their values, the last attribute first, using as many
    /// attributes as fit 64 bits together with the number of a class. Also returns the previous number of each
    /// class.
    pub(super) fn ordered(attributes: &[&Values], rows: &[u32]) -> (Self, Vec<u32>) {
        let bits = |count: usize| usize::BITS - count.saturating_sub(1).leading_zeros();
        let class_bits = bits(rows.len());
        // Fewer in tests, so that the values of small tables do not fit either.
        let most = if cfg!(test) {
            4
        } else {
            u64::BITS - class_bits
        };
        let widths = attributes.iter().rev().map(|values| bits(values.count()));
        let widths = widths.scan(0, |end, bits| {
            *end += bits;
            (*end <= most).then_some(bits)
        });
        let widths: Vec<u32> = widths.collect();
        let (unpacked, packed) = attributes.split_at(attributes.len() - widths.len());
        let key = |(class, &row): (usize, &u32)| {
            let values = widths.iter().zip(packed.iter().rev());
            let key = values.fold(0u64, |key, (&bits, values)| {
                key.unbounded_shl(bits) | u64::from(values.at(row as usize))
            });
            key.unbounded_shl(class_bits) | class as u64
        };
        let keys = rows.par_iter().enumerate().with_min_len(1 << 12).map(key);
        let mut keys: Vec<u64> = keys.collect();
        keys.par_sort_unstable();
        let class_of = |key: u64| (key & !u64::MAX.unbounded_shl(class_bits)) as u32;
        let mut values = vec![0; rows.len() * attributes.len()];
        let of_classes = values.par_chunks_exact_mut(attributes.len().max(1));
        let of_classes = of_classes.zip(&keys).with_min_len(1 << 12);
        of_classes.for_each(|(of_class, &key)| {
            let class = class_of(key);
            let mut key = key.unbounded_shr(class_bits);
            let (of_unpacked, of_packed) = of_class.split_at_mut(unpacked.len());
            for (value, &bits) in of_packed.iter_mut().zip(widths.iter().rev()) {
                *value = (key & !u64::MAX.unbounded_shl(bits)) as u32;
                key = key.unbounded_shr(bits);
            }
            for (value, values) in of_unpacked.iter_mut().zip(unpacked) {
                *value = values.at(rows[class as usize] as usize);
            }
        });
        let cardinalities = attributes.iter().map(|values| values.count());
        let grid = Self {
            cardinalities: cardinalities.collect(),
            values,
        };
        (grid, keys.into_iter().map(class_of).collect())
    }

    /// Number of attributes.
    pub(super) fn attributes(&self) -> usize {
        self.cardinalities.len()
    }

    /// Number of cells: values of an attribute.
    pub(super) fn cells(&self) -> usize {
        self.cardinalities.iter().sum()
    }

    /// The first cell of each attribute.
    pub(super) fn offsets(&self) -> Vec<usize> {
        let ends = self.cardinalities.iter().scan(0, |end, &count| {
            *end += count;
            Some(*end)
        });
        let attributes = self.attributes();
        std::iter::once(0).chain(ends).take(attributes).collect()
    }

    /// Maximum number of values of an attribute.
    pub(super) fn most_values(&self) -> usize {
        self.cardinalities.iter().copied().max().unwrap_or(0)
    }

    /// The values of a class, one for each attribute.
    #[inline]
    pub(super) fn values(&self, class: u32) -> &[u32] {
        let attributes = self.attributes();
        &self.values[class as usize * attributes..][..attributes]
    }

    /// Whether a class has all values of a qid.
    pub(super) fn has(&self, class: u32, qid: &[KnownValue]) -> bool {
        let values = self.values(class);
        qid.iter()
            .all(|&(attribute, value)| values[attribute] == value)
    }
}

/// Working space of [`Splitter::split`]; one for each thread.
pub(super) struct Splitter<'g> {
    grid: &'g Grid,
    suffixes: &'g Suffixes,
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

impl<'g> Splitter<'g> {
    pub(super) fn new(grid: &'g Grid, suffixes: &'g Suffixes, sensitive_values: usize) -> Self {
        Self {
            grid,
            suffixes,
            index: vec![u32::MAX; suffixes.most],
            frequency: vec![0; grid.most_values()],
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
        group: &ProfileGroup,
        attribute: usize,
        with_counts: bool,
        into: &mut Profiles,
    ) {
        let suffix = &self.suffixes.ids[attribute];
        self.profile_of.clear();
        self.made.clear();
        self.seen.clear();
        for &class in group.classes() {
            let index = &mut self.index[suffix[class as usize] as usize];
            if *index == u32::MAX {
                *index = self.made.len() as u32;
                let value = self.grid.values(class)[attribute];
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
        for (records, index) in group.records().iter().zip(&mut self.profile_of) {
            *index = self.made[*index as usize].1;
            into.records[*index as usize] += records;
        }
        self.merge_counts(group, with_counts, into);
        into.find_most();
    }

    /// Adds up the sensitive values of the merged profiles.
    fn merge_counts(&mut self, group: &ProfileGroup, with_counts: bool, into: &mut Profiles) {
        let made = into.class.len();
        into.value_counts.clear();
        into.starts.clear();
        if !with_counts {
            into.starts.resize(made + 1, 0);
            return;
        }
        self.ends.clear();
        self.ends.resize(made + 1, 0);
        for (counts, &index) in group.value_counts().zip(&self.profile_of) {
            self.ends[index as usize + 1] += counts.len() as u32;
        }
        for index in 0..made {
            self.ends[index + 1] += self.ends[index];
        }
        self.merged_counts.clear();
        self.merged_counts
            .resize(self.ends[made] as usize, ValueCount::default());
        for (counts, &index) in group.value_counts().zip(&self.profile_of) {
            let end = &mut self.ends[index as usize];
            let start = *end as usize;
            *end += counts.len() as u32;
            self.merged_counts[start..*end as usize].copy_from_slice(counts);
        }
        // Filling advanced each start to its end, which is the start of the next profile.
        let mut start = 0;
        into.starts.push(0);
        for &end in &self.ends[..made] {
            let counts = &self.merged_counts[start..end as usize];
            add_up(
                counts.iter().copied(),
                &mut self.count_index,
                &mut into.value_counts,
            );
            into.starts.push(into.value_counts.len() as u32);
            start = end as usize;
        }
    }
}

/// Appends the counts to others, adding up those of one value. `index` has an entry for each value: `u32::MAX`
/// between calls.
pub(super) fn add_up(
    counts: impl Iterator<Item = ValueCount>,
    index: &mut [u32],
    into: &mut Vec<ValueCount>,
) {
    let first = into.len();
    for count in counts {
        let at = &mut index[count.value as usize];
        if *at == u32::MAX {
            *at = into.len() as u32;
            into.push(count);
        } else {
            into[*at as usize].records += count.records;
        }
    }
    for count in &into[first..] {
        index[count.value as usize] = u32::MAX;
    }
}
