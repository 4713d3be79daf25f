//! Which releases have a raw row, and which have rows of its person.

use std::collections::BTreeMap;

use super::RawRows;
use super::composed_release::PlacedRelease;

/// A set of at most 64 releases, as bits.
pub(super) type ReleaseBits = u64;

/// Which of some releases have rows and persons.
pub(super) struct Presence<'r, 'a> {
    releases: &'r [&'r PlacedRelease<'a>],
    subjects: Option<&'r [u32]>,
    /// By person; empty where each row is a person of its own.
    of_person: Vec<ReleaseBits>,
}

/// Rows that an adversary cannot tell apart by what it knows about the releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The releases that have rows of the person.
    pub(super) person: ReleaseBits,
    /// The releases that have the row.
    pub(super) row: ReleaseBits,
}

/// The raw rows of a place.
pub(super) struct PlaceRows {
    pub(super) place: Place,
    pub(super) rows: Vec<u32>,
}

impl<'r, 'a> Presence<'r, 'a> {
    /// Of the rows and persons of a raw table. One pass over the rows of each release.
    pub(super) fn new(releases: &'r [&'r PlacedRelease<'a>], raw: RawRows<'r>) -> Self {
        let persons = raw.subjects.iter().flat_map(|subjects| subjects.iter());
        let count = persons.max().map_or(0, |last| *last as usize + 1);
        let mut presence = Self {
            releases,
            subjects: raw.subjects,
            of_person: vec![0; count],
        };
        for (row, &subject) in raw.subjects.into_iter().flatten().enumerate() {
            let of_row = presence.of_row(row);
            presence.of_person[subject as usize] |= of_row;
        }
        presence
    }

    fn of_row(&self, row: usize) -> ReleaseBits {
        let bits = self.releases.iter().enumerate();
        let bits = bits.map(|(number, release)| u64::from(release.has(row)) << number);
        bits.fold(0, |all, bit| all | bit)
    }

    /// Where a raw row and its person are.
    pub(super) fn of(&self, row: usize) -> Place {
        let of_row = self.of_row(row);
        Place {
            row: of_row,
            person: self
                .subjects
                .map_or(of_row, |subjects| self.of_person[subjects[row] as usize]),
        }
    }

    /// The sets of releases that are connected by persons in common; those of a single release are
    /// left out.
    pub(super) fn components(&self, rows: usize) -> Vec<ReleaseBits> {
        let mut components: Vec<ReleaseBits> = Vec::new();
        let mut last = 0;
        for row in 0..rows {
            let pattern = self.of(row).person;
            // Neighbouring rows are mostly in the same releases.
            if pattern == last || pattern.count_ones() < 2 {
                continue;
            }
            last = pattern;
            let (mut merged, mut others) = (pattern, Vec::with_capacity(components.len()));
            for component in components {
                if component & merged == 0 {
                    others.push(component);
                } else {
                    merged |= component;
                }
            }
            others.push(merged);
            components = others;
        }
        components
    }

    /// The released ones of `rows` raw rows by their place, ascending.
    pub(super) fn rows_by_place(&self, rows: usize) -> Vec<PlaceRows> {
        let mut places: BTreeMap<Place, Vec<u32>> = BTreeMap::new();
        for row in 0..rows {
            let place = self.of(row);
            if place.row != 0 {
                places.entry(place).or_default().push(row as u32);
            }
        }
        let places = places.into_iter();
        places
            .map(|(place, rows)| PlaceRows { place, rows })
            .collect()
    }
}
