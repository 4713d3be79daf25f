//! The k-d split (Figure 5 of the multiple-sensitive-attribute paper): groups are halved at
//! medians until a half would violate the model.
//!
//! The algorithm as printed loses the records of a half that violates the model when the other
//! half does not. Here a group is split only into two halves that both meet the model.
//!
//! Where labels are released, their NCP guides the split: the split with the greatest decrease of
//! NCP is tried before medians, and small buckets are then clustered row by row.
//!
//! Under *C* each cut is decided by the counts of its two parts, so that the best valid cut of all
//! is found. Where no cut of a region is valid, its rows are clustered one by one.

use rayon::prelude::*;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::observer::{Observer, Phase};

use super::clusters::Bucket;
use super::condition::{Condition, GroupChecker};
use super::confidence::ConfidenceCheck;
use super::dimension::SplitDimension;
use super::loss::{Loss, LossSplit};
use super::partition::SplitGuide;
use super::valid_cuts::{CutChoice, ValidCut, best_cut};
use super::{k_member, strata};

/// Fewest rows of a group for which its halves are split in parallel.
const PARALLEL_ROWS: usize = 1 << 13;

/// Greatest number of rows of a bucket that is clustered row by row: a multiple of *K*, and an
/// absolute limit. Fewer than twice *K* rows are one group.
const BUCKET_ROWS: (usize, usize) = (8, 256);

/// The same under *C*: rows have to be found that keep the shares.
const BUCKET_ROWS_UNDER_C: (usize, usize) = (16, 512);

/// Most rows of a region without a valid cut that is clustered row by row. The time is quadratic.
const MOST_CLUSTERED: usize = 1 << 11;

/// A partition of the rows of a table into groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupPartition {
    /// Row numbers, one group after another.
    pub rows: Vec<u32>,
    /// Number of rows of each group, at least 1.
    pub sizes: Vec<u32>,
}

impl GroupPartition {
    /// The rows of each group.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[u32]> {
        let mut rest = self.rows.as_slice();
        self.sizes.iter().map(move |&size| {
            let (group, after) = rest.split_at(size as usize);
            rest = after;
            group
        })
    }
}

/// The split was stopped because the caller requested it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SplitStopped;

/// The inputs of a split, shared by all threads.
pub(super) struct KdSplit<'a> {
    dimensions: Vec<SplitDimension<'a>>,
    /// The loss of each quasi-identifier; empty where only medians guide the split.
    losses: Vec<Loss<'a>>,
    condition: &'a Condition,
    guide: SplitGuide,
    /// The class of each row, where it guides the split.
    class: Option<&'a [u32]>,
    progress: SplitProgress<'a>,
}

/// Reports the progress to the observer and asks it for cancellation.
pub(super) struct SplitProgress<'a> {
    observer: &'a dyn Observer,
    rows: usize,
    done: AtomicUsize,
    stopped: AtomicBool,
}

impl<'a> SplitProgress<'a> {
    pub(super) fn new(observer: &'a dyn Observer, rows: usize) -> Self {
        Self {
            observer,
            rows,
            done: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Counts rows whose groups are final.
    pub(super) fn done(&self, rows: usize) {
        let before = self.done.fetch_add(rows, Relaxed);
        // At most about a thousand reports.
        let step = self.rows / 1000 + 1;
        if before / step != (before + rows) / step {
            let done = (before + rows) as f64 / self.rows.max(1) as f64;
            self.observer.progress(Phase::Searching, done.min(1.0));
        }
    }

    /// Whether the split must stop.
    pub(super) fn must_stop(&self) -> bool {
        if !self.stopped.load(Relaxed) && self.observer.must_stop() {
            self.stopped.store(true, Relaxed);
        }
        self.stopped.load(Relaxed)
    }
}

impl<'a> KdSplit<'a> {
    pub(super) fn new(
        (dimensions, losses): (Vec<SplitDimension<'a>>, Vec<Loss<'a>>),
        condition: &'a Condition,
        (guide, class): (SplitGuide, Option<&'a [u32]>),
        progress: SplitProgress<'a>,
    ) -> Self {
        Self {
            dimensions,
            losses,
            condition,
            guide,
            class,
            progress,
        }
    }

    /// Splits `rows`, which meet the condition as one group, into the final groups.
    ///
    /// # Errors
    /// When the observer requested a stop.
    pub(super) fn run(&self, mut rows: Vec<u32>) -> Result<GroupPartition, SplitStopped> {
        let mut sizes = Vec::new();
        let mut checker = GroupChecker::new(self.condition);
        if !rows.is_empty() {
            self.split(&mut rows, &mut checker, &mut Vec::new(), &mut sizes)?;
        }
        Ok(GroupPartition { rows, sizes })
    }

    /// *Split(G)*: reorders `rows` group by group, and appends the sizes of the final groups to
    /// `sizes` in that order.
    fn split(
        &self,
        rows: &mut [u32],
        checker: &mut GroupChecker,
        codes: &mut Vec<u32>,
        sizes: &mut Vec<u32>,
    ) -> Result<(), SplitStopped> {
        if self.progress.must_stop() {
            return Err(SplitStopped);
        }
        if self.clusters_buckets() && rows.len() <= self.bucket_rows() {
            return self.cluster_bucket(rows, checker, codes, sizes);
        }
        let cut = self.split_once(rows, checker, codes);
        let Some(left) = cut.or_else(|| self.halve(rows, checker)) else {
            if self.condition.confidence().is_some() && rows.len() <= MOST_CLUSTERED {
                return self.cluster_bucket(rows, checker, codes, sizes);
            }
            self.progress.done(rows.len());
            sizes.push(rows.len() as u32);
            return Ok(());
        };
        let (below, above) = rows.split_at_mut(left);
        if below.len() + above.len() < PARALLEL_ROWS {
            self.split(below, checker, codes, sizes)?;
            return self.split(above, checker, codes, sizes);
        }
        let mut right = Vec::new();
        let (one, other) = rayon::join(
            || self.split(below, checker, codes, sizes),
            || {
                let mut checker = GroupChecker::new(self.condition);
                self.split(above, &mut checker, &mut Vec::new(), &mut right)
            },
        );
        one.and(other)?;
        sizes.append(&mut right);
        Ok(())
    }

    /// Whether small regions are clustered row by row even where a cut divides them. Groups that
    /// keep the class apart are regions of quasi-identifiers as far as cuts are valid.
    fn clusters_buckets(&self) -> bool {
        !self.losses.is_empty() && self.guide != SplitGuide::Class
    }

    fn bucket_rows(&self) -> usize {
        let (multiple_of_k, most) = match self.condition.confidence() {
            Some(_) => BUCKET_ROWS_UNDER_C,
            None => BUCKET_ROWS,
        };
        let group = self.condition.typical_rows();
        // Persons with many rows make groups that a bucket must still have room for.
        let most = match self.condition.subjects {
            Some(_) => most.max(group.saturating_mul(2)),
            None => most,
        };
        group.saturating_mul(multiple_of_k).min(most)
    }

    /// Splits a bucket as far as possible, and then improves its groups row by row.
    fn cluster_bucket(
        &self,
        rows: &mut [u32],
        checker: &mut GroupChecker,
        codes: &mut Vec<u32>,
        sizes: &mut Vec<u32>,
    ) -> Result<(), SplitStopped> {
        let mut found = Vec::new();
        // A stack of ranges of rows that are still to be split, the first range on top.
        let mut parts = vec![(0, rows.len())];
        while let Some((start, end)) = parts.pop() {
            match self.split_once(&mut rows[start..end], checker, codes) {
                Some(left) => parts.extend([(start + left, end), (start, start + left)]),
                None => found.push((end - start) as u32),
            }
        }
        if self.progress.must_stop() {
            return Err(SplitStopped);
        }
        let copied = rows.to_vec();
        let bounded = self.condition.confidence().map(|it| it.select(&copied));
        let bucket = Bucket::new(&self.losses, &copied, bounded);
        let mut start = 0;
        for group in k_member::groups(&bucket, &found, checker) {
            rows[start..start + group.len()].copy_from_slice(&group);
            start += group.len();
            sizes.push(group.len() as u32);
        }
        self.progress.done(rows.len());
        Ok(())
    }

    /// Reorders the rows into two parts that both meet the condition. Returns the number of rows
    /// of the first part; `None` where no such split is found.
    fn split_once(
        &self,
        rows: &mut [u32],
        checker: &mut GroupChecker,
        codes: &mut Vec<u32>,
    ) -> Option<usize> {
        // Fewer than twice K rows cannot be split; most calls end here.
        if !checker.has_enough_rows(rows.len() / 2) {
            return None;
        }
        if let Some(check) = self.condition.confidence() {
            return self.split_under_c(rows, checker, check);
        }
        self.split_by_loss(rows, checker)
            .or_else(|| self.split_at_median(rows, checker, codes))
    }

    /// Splits the rows at the best cut of which both parts meet *C*. Where no valid cut gives
    /// information about the class, NCP guides the split.
    fn split_under_c(
        &self,
        rows: &mut [u32],
        checker: &mut GroupChecker,
        check: &ConfidenceCheck,
    ) -> Option<usize> {
        let bounded = check.select(rows);
        let choice = CutChoice {
            guide: self.guide,
            class: self.class,
            least: self.condition.k,
        };
        let cuts = |choice: CutChoice| -> Vec<(usize, ValidCut)> {
            let best = |loss: &Loss| best_cut(loss, rows, &bounded, choice);
            let cuts: Vec<Option<ValidCut>> = if rows.len() < PARALLEL_ROWS {
                self.losses.iter().map(best).collect()
            } else {
                self.losses.par_iter().map(best).collect()
            };
            let mut cuts: Vec<_> = cuts
                .into_iter()
                .enumerate()
                .filter_map(|(column, cut)| Some((column, cut?)))
                .collect();
            // Stable: ties go to the order of the columns.
            cuts.sort_by(|(_, one), (_, other)| other.score.total_cmp(&one.score));
            cuts
        };
        let mut found = cuts(choice);
        if found.is_empty() && self.guide == SplitGuide::Class {
            found = cuts(CutChoice {
                guide: SplitGuide::Ncp,
                ..choice
            });
        }
        found
            .into_iter()
            .find_map(|(column, ValidCut { first, last, .. })| {
                let codes = self.losses[column].codes;
                let left = move_to_front(rows, |row| (first..=last).contains(&codes[row as usize]));
                let (inside, outside) = rows.split_at(left);
                (checker.accepts(inside) && checker.accepts(outside)).then_some(left)
            })
    }

    /// Halves a region under *C* that no cut divides and that is too large to be clustered, along
    /// the widest dimension that allows it.
    fn halve(&self, rows: &mut [u32], checker: &mut GroupChecker) -> Option<usize> {
        let check = self.condition.confidence()?;
        if rows.len() <= MOST_CLUSTERED || !checker.has_enough_rows(rows.len() / 2) {
            return None;
        }
        let bounded = check.select(rows);
        let widths = self.dimensions.iter().map(|dimension| {
            let range = dimension.range(rows);
            (dimension.width(range), dimension)
        });
        let mut widest: Vec<(f64, &SplitDimension)> = widths.collect();
        widest.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut halved = rows.to_vec();
        let left = widest.into_iter().find_map(|(_, dimension)| {
            let left = strata::halve(&mut halved, dimension, &bounded)?;
            let (below, above) = halved.split_at(left);
            let accepted = checker.accepts(below) && checker.accepts(above);
            if !accepted {
                halved.copy_from_slice(rows);
            }
            accepted.then_some(left)
        })?;
        rows.copy_from_slice(&halved);
        Some(left)
    }

    /// Splits the rows where NCP decreases most.
    fn split_by_loss(&self, rows: &mut [u32], checker: &mut GroupChecker) -> Option<usize> {
        let k = self.condition.typical_rows();
        let best = |loss: &'_ Loss| loss.best_split(rows, k);
        let mut splits: Vec<(LossSplit, &Loss)> = self
            .losses
            .iter()
            .filter_map(|loss| Some((best(loss)?, loss)))
            .collect();
        // Stable: ties go to the order of the columns.
        splits.sort_by(|(one, _), (other, _)| other.gain.total_cmp(&one.gain));
        splits
            .into_iter()
            .find_map(|(LossSplit { first, last, .. }, loss)| {
                let left = move_to_front(rows, |row| {
                    (first..=last).contains(&loss.codes[row as usize])
                });
                let (inside, outside) = rows.split_at(left);
                (checker.accepts(inside) && checker.accepts(outside)).then_some(left)
            })
    }

    /// Reorders the rows into two halves that both meet the condition, along the widest dimension
    /// that allows it. Returns the number of rows of the first half.
    fn split_at_median(
        &self,
        rows: &mut [u32],
        checker: &mut GroupChecker,
        codes: &mut Vec<u32>,
    ) -> Option<usize> {
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
            let left = move_to_front(rows, |row| dimension.codes[row as usize] <= last);
            let (below, above) = rows.split_at(left);
            if checker.has_enough_rows(below.len().min(above.len()))
                && checker.accepts(below)
                && checker.accepts(above)
            {
                return Some(left);
            }
        }
        None
    }
}

/// *splitVal*, the last code of the lower half. This is the lower median, or the next smaller code
/// where the median is the greatest code, which would leave the upper half empty.
fn last_below(rows: &[u32], dimension: &SplitDimension, most: u32, codes: &mut Vec<u32>) -> u32 {
    codes.clear();
    codes.extend(rows.iter().map(|&row| dimension.codes[row as usize]));
    let middle = (codes.len() - 1) / 2;
    let (below, &mut median, _) = codes.select_nth_unstable(middle);
    if median < most {
        return median;
    }
    let below = below.iter().copied().filter(|&code| code < most);
    // The rows have at least two codes, and more than half of the rows have the greatest.
    below.max().unwrap_or(median)
}

/// Moves the rows that satisfy `is_first` to the front and returns their number.
fn move_to_front(rows: &mut [u32], is_first: impl Fn(u32) -> bool) -> usize {
    let mut left = 0;
    for index in 0..rows.len() {
        if is_first(rows[index]) {
            rows.swap(left, index);
            left += 1;
        }
    }
    left
}
