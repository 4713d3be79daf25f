//! The k-d split (Figure 5 of the multiple-sensitive-attribute paper): groups are halved at
//! medians until a half would break the model.
//!
//! As printed the algorithm loses the records of a half that breaks the model when the other
//! half does not. Here a group is split only into two halves that both meet it.
//!
//! Where labels are released, the split is led by what they lose: the parting that gains most is
//! tried before medians are, and what is left at the bottom is settled row by row.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::observer::{Observer, Phase};

use super::cell::Cell;
use super::condition::{Condition, Judge};
use super::dimension::Dimension;
use super::loss::{Loss, Parting};

/// Rows from which on the halves of a group are split side by side.
const SIDE_BY_SIDE: usize = 1 << 13;

/// Rows of a cell that is settled row by row, in *K* and at most; fewer than twice *K* are a
/// group.
const CELL: (usize, usize) = (8, 256);

/// A partition of the rows of a table into groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Row numbers, group after group.
    pub rows: Vec<u32>,
    /// Rows of each group, none of them 0.
    pub sizes: Vec<u32>,
}

impl Partition {
    /// The rows of each group.
    pub fn groups(&self) -> impl Iterator<Item = &[u32]> {
        let mut rest = self.rows.as_slice();
        self.sizes.iter().map(move |&size| {
            let (group, after) = rest.split_at(size as usize);
            rest = after;
            group
        })
    }
}

/// The caller asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// What all parts of a split share.
pub(super) struct Split<'a> {
    dimensions: Vec<Dimension<'a>>,
    /// By what labels lose; empty where medians alone lead.
    losses: Vec<Loss<'a>>,
    condition: &'a Condition,
    watch: Watch<'a>,
}

/// Tells the progress, and learns of a cancellation.
pub(super) struct Watch<'a> {
    observer: &'a dyn Observer,
    rows: usize,
    done: AtomicUsize,
    stopped: AtomicBool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(observer: &'a dyn Observer, rows: usize) -> Self {
        Self {
            observer,
            rows,
            done: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Notes rows whose groups are final.
    pub(super) fn done(&self, rows: usize) {
        let before = self.done.fetch_add(rows, Relaxed);
        // A thousand tellings are as many as anybody sees.
        let step = self.rows / 1000 + 1;
        if before / step != (before + rows) / step {
            let done = (before + rows) as f64 / self.rows.max(1) as f64;
            self.observer.progress(Phase::Searching, done.min(1.0));
        }
    }

    pub(super) fn stops(&self) -> bool {
        if !self.stopped.load(Relaxed) && self.observer.must_stop() {
            self.stopped.store(true, Relaxed);
        }
        self.stopped.load(Relaxed)
    }
}

impl<'a> Split<'a> {
    pub(super) fn new(
        dimensions: Vec<Dimension<'a>>,
        losses: Vec<Loss<'a>>,
        condition: &'a Condition,
        watch: Watch<'a>,
    ) -> Self {
        Self {
            dimensions,
            losses,
            condition,
            watch,
        }
    }

    /// Splits the rows of a table that meets the condition as a whole.
    ///
    /// # Errors
    /// When stopped.
    pub(super) fn run(&self, mut rows: Vec<u32>) -> Result<Partition, Stopped> {
        let mut sizes = Vec::new();
        let mut judge = Judge::of(self.condition);
        if !rows.is_empty() {
            self.split(&mut rows, &mut judge, &mut Vec::new(), &mut sizes)?;
        }
        Ok(Partition { rows, sizes })
    }

    /// *Split(G)*: the sizes of the final groups, in the order in which `rows` then has them.
    fn split(
        &self,
        rows: &mut [u32],
        judge: &mut Judge,
        codes: &mut Vec<u32>,
        sizes: &mut Vec<u32>,
    ) -> Result<(), Stopped> {
        if self.watch.stops() {
            return Err(Stopped);
        }
        if !self.losses.is_empty() && rows.len() <= self.cell_rows() {
            return self.settle(rows, judge, codes, sizes);
        }
        let Some(left) = self.parts(rows, judge, codes) else {
            self.watch.done(rows.len());
            sizes.push(rows.len() as u32);
            return Ok(());
        };
        let (below, above) = rows.split_at_mut(left);
        if below.len() + above.len() < SIDE_BY_SIDE {
            self.split(below, judge, codes, sizes)?;
            return self.split(above, judge, codes, sizes);
        }
        let mut right = Vec::new();
        let (one, other) = rayon::join(
            || self.split(below, judge, codes, sizes),
            || {
                let mut judge = Judge::of(self.condition);
                self.split(above, &mut judge, &mut Vec::new(), &mut right)
            },
        );
        one.and(other)?;
        sizes.append(&mut right);
        Ok(())
    }

    fn cell_rows(&self) -> usize {
        let (in_k, most) = CELL;
        self.condition.k.saturating_mul(in_k).min(most)
    }

    /// Splits a cell as far as it goes, and then mends its groups row by row.
    fn settle(
        &self,
        rows: &mut [u32],
        judge: &mut Judge,
        codes: &mut Vec<u32>,
        sizes: &mut Vec<u32>,
    ) -> Result<(), Stopped> {
        let mut found = Vec::new();
        // Parts to be split, the first one on top.
        let mut parts = vec![(0, rows.len())];
        while let Some((start, end)) = parts.pop() {
            match self.parts(&mut rows[start..end], judge, codes) {
                Some(left) => parts.extend([(start + left, end), (start, start + left)]),
                None => found.push((end - start) as u32),
            }
        }
        if self.watch.stops() {
            return Err(Stopped);
        }
        let cell = rows.to_vec();
        let mut place = 0;
        for group in Cell::of(&self.losses, &cell).groups(&found, judge) {
            rows[place..place + group.len()].copy_from_slice(&group);
            place += group.len();
            sizes.push(group.len() as u32);
        }
        self.watch.done(rows.len());
        Ok(())
    }

    /// Orders the rows into two parts that both meet the condition, where there are such; rows
    /// of the first part.
    fn parts(&self, rows: &mut [u32], judge: &mut Judge, codes: &mut Vec<u32>) -> Option<usize> {
        // Less than twice K cannot be split; most calls end here.
        if !judge.suffices(rows.len() / 2) {
            return None;
        }
        self.part_by_loss(rows, judge)
            .or_else(|| self.halve(rows, judge, codes))
    }

    /// Parts the rows where labels then say most.
    fn part_by_loss(&self, rows: &mut [u32], judge: &mut Judge) -> Option<usize> {
        let k = self.condition.k;
        let best = |loss: &'_ Loss| loss.best_parting(rows, k);
        let mut partings: Vec<(Parting, &Loss)> = self
            .losses
            .iter()
            .filter_map(|loss| Some((best(loss)?, loss)))
            .collect();
        // Stable: ties go to the order of the columns.
        partings.sort_by(|(one, _), (other, _)| other.gain.total_cmp(&one.gain));
        partings
            .into_iter()
            .find_map(|(Parting { first, last, .. }, loss)| {
                let left = parted(rows, |row| {
                    (first..=last).contains(&loss.codes[row as usize])
                });
                let (inside, outside) = rows.split_at(left);
                (judge.accepts(inside) && judge.accepts(outside)).then_some(left)
            })
    }

    /// Orders the rows into two halves that both meet the condition, at the widest dimension
    /// where there are such; rows of the first half.
    fn halve(&self, rows: &mut [u32], judge: &mut Judge, codes: &mut Vec<u32>) -> Option<usize> {
        let ranges = self.dimensions.iter().map(|dimension| {
            let range = dimension.range(rows);
            (dimension.width(range), range)
        });
        let mut widest: Vec<_> = ranges.zip(&self.dimensions).collect();
        widest.retain(|((_, (least, most)), _)| least < most);
        // Stable: ties go to the order of the columns.
        widest.sort_by(|((one, _), _), ((other, _), _)| other.total_cmp(one));
        for ((_, (_, most)), dimension) in widest {
            let last = last_below(rows, dimension, most, codes);
            let left = parted(rows, |row| dimension.codes[row as usize] <= last);
            let (below, above) = rows.split_at(left);
            if judge.suffices(below.len().min(above.len()))
                && judge.accepts(below)
                && judge.accepts(above)
            {
                return Some(left);
            }
        }
        None
    }
}

/// *splitVal*, the last code of the lower half: the lower median, or where that is the greatest
/// code, which would leave nothing above, the next one below it.
fn last_below(rows: &[u32], dimension: &Dimension, most: u32, codes: &mut Vec<u32>) -> u32 {
    codes.clear();
    codes.extend(rows.iter().map(|&row| dimension.codes[row as usize]));
    let middle = (codes.len() - 1) / 2;
    let (below, &mut median, _) = codes.select_nth_unstable(middle);
    if median < most {
        return median;
    }
    let below = below.iter().copied().filter(|&code| code < most);
    // The rows have two codes at least, and more than half of them are the greatest.
    below.max().unwrap_or(median)
}

/// Moves the rows that belong below to the front; how many they are.
pub(super) fn parted(rows: &mut [u32], is_below: impl Fn(u32) -> bool) -> usize {
    let mut left = 0;
    for place in 0..rows.len() {
        if is_below(rows[place]) {
            rows.swap(left, place);
            left += 1;
        }
    }
    left
}
