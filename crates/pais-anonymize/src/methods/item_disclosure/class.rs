//! Equivalence classes: rows that agree on all quasi-identifiers as they stand.

use super::vocabulary::Vocabulary;

/// A set-valued column in one class.
#[derive(Clone, Debug, Default)]
pub struct ClassSet {
    /// Items that every row of the class discloses, in the order of their disclosure.
    pub disclosed: Vec<u32>,
    /// Where the hidden items of each row begin; one entry more than there are rows.
    pub starts: Vec<u32>,
    /// *Cand(c)*: hidden items that may still be disclosed, row by row, ascending in each.
    pub items: Vec<u32>,
    /// Whether nothing more can be disclosed as long as the class keeps its rows.
    pub finished: bool,
}

impl ClassSet {
    /// The hidden items of a row by its place in the class.
    #[inline]
    pub fn of(&self, place: usize) -> &[u32] {
        &self.items[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    /// Rows that may still disclose an item.
    pub fn open_rows(&self) -> usize {
        if self.finished || self.items.is_empty() {
            return 0;
        }
        let pairs = self.starts.windows(2);
        pairs.filter(|pair| pair[0] < pair[1]).count()
    }

    /// Keeps only the hidden items that `stays`.
    pub fn retain(&mut self, stays: impl Fn(u32) -> bool) {
        let (mut kept, mut start) = (0usize, 0usize);
        for place in 1..self.starts.len() {
            let end = self.starts[place] as usize;
            for at in start..end {
                let item = self.items[at];
                if stays(item) {
                    self.items[kept] = item;
                    kept += 1;
                }
            }
            start = end;
            self.starts[place] = kept as u32;
        }
        self.items.truncate(kept);
    }

    /// A set of the same disclosed items without rows.
    fn part(&self) -> Self {
        Self {
            disclosed: self.disclosed.clone(),
            starts: vec![0],
            items: Vec::new(),
            finished: false,
        }
    }

    fn push(&mut self, items: &[u32]) {
        self.items.extend_from_slice(items);
        self.starts.push(self.items.len() as u32);
    }
}

/// An equivalence class *c*.
#[derive(Clone, Debug)]
pub struct Class {
    /// Numbers of its rows, ascending.
    pub rows: Vec<u32>,
    /// By set-valued column.
    pub sets: Vec<ClassSet>,
}

impl Class {
    /// All rows, every set hidden; `None` where they have 2³² items or more in a column.
    pub fn whole(rows: usize, sets: &[Vocabulary]) -> Option<Self> {
        let set = |vocabulary: &Vocabulary| {
            let mut set = ClassSet::default();
            set.starts.reserve_exact(rows + 1);
            set.starts.push(0);
            for row in 0..rows {
                vocabulary.push_row(row, &mut set.items);
                set.starts.push(u32::try_from(set.items.len()).ok()?);
            }
            Some(set)
        };
        Some(Self {
            rows: (0..rows as u32).collect(),
            sets: sets.iter().map(set).collect::<Option<_>>()?,
        })
    }

    /// Number of rows, *|c|*.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The parts by the number that `part_of` gives each place, from 0 to `parts`; places
    /// beyond are left out. Each part is a class of its own, whose sets are open again: what
    /// could not be disclosed in the whole may be in a part.
    pub fn divided(&self, parts: usize, part_of: impl Fn(usize) -> usize) -> Vec<Self> {
        let mut divided: Vec<Self> = (0..parts)
            .map(|_| Self {
                rows: Vec::new(),
                sets: self.sets.iter().map(ClassSet::part).collect(),
            })
            .collect();
        for (place, &row) in self.rows.iter().enumerate() {
            let Some(part) = divided.get_mut(part_of(place)) else {
                continue;
            };
            part.rows.push(row);
            for (set, whole) in part.sets.iter_mut().zip(&self.sets) {
                set.push(whole.of(place));
            }
        }
        for part in &mut divided {
            part.rows.shrink_to_fit();
            for set in &mut part.sets {
                set.starts.shrink_to_fit();
                set.items.shrink_to_fit();
            }
        }
        divided
    }
}
