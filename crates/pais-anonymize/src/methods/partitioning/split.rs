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

use pais_core::parallel;
use pais_core::table::codes::{CodeRange, Codes, RowCodes};
use pais_core::table::{Domain, QuasiIdentifier};
use pais_core::with_codes;
use rustc_hash::FxHashMap;

use super::clusters::{Bucket, groups};
use super::condition::{Condition, GroupChecker};
use super::confidence::{BoundedCells, ConfidenceCheck, UNBOUNDED};
use super::loss::{Loss, RangeCut};
use super::split_progress::SplitProgress;
use super::valid_cuts::{CutChoice, SplitGuide, best_cut};
use crate::error::RunError;

/// Minimum number of rows of a group for which its halves are split in parallel.
const PARALLEL_ROWS: usize = 1 << 13;

/// Greatest number of rows of a bucket that is clustered row by row: a multiple of *K*, and an
/// absolute limit. Fewer than twice *K* rows are one group.
const BUCKET_ROWS: BucketRows = BucketRows { of_k: 8, most: 256 };

/// The same under *C*: rows have to be found that keep the shares.
const BUCKET_ROWS_UNDER_C: BucketRows = BucketRows {
    of_k: 16,
    most: 512,
};

/// Greatest number of rows of a bucket where persons with many rows make large groups. The time is quadratic.
const BUCKET_ROWS_OF_PERSONS: usize = 512;

/// A limit of the rows of a bucket.
struct BucketRows {
    of_k: usize,
    most: usize,
}

/// Maximum number of rows of a region without a valid cut that is clustered row by row. The time is quadratic.
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

/// The inputs of a split, shared by all threads.
pub(super) struct KdSplit<'a> {
    pub(super) dimensions: Vec<SplitDimension<'a>>,
    /// The loss of each quasi-identifier; empty where only medians guide the split.
    pub(super) losses: Vec<Loss<'a>>,
    pub(super) condition: &'a Condition,
    pub(super) guide: SplitGuide,
    /// The class of each row, where it guides the split.
    pub(super) class: Option<&'a Codes<'a>>,
    pub(super) progress: SplitProgress<'a>,
}

impl<'a> KdSplit<'a> {
    /// Splits `rows`, which meet the condition as one group, into the final groups.
    ///
    /// # Errors
    /// When the observer requested a stop.
    pub(super) fn run(&self, mut rows: Vec<u32>) -> Result<GroupPartition, RunError> {
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
    ) -> Result<(), RunError> {
        self.progress.stop_if_asked()?;
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
        let BucketRows { of_k, most } = match self.condition.confidence() {
            Some(_) => BUCKET_ROWS_UNDER_C,
            None => BUCKET_ROWS,
        };
        let group = self.condition.typical_rows();
        // Persons with many rows make groups that a bucket must still have room for.
        let most = match self.condition.subjects {
            Some(_) => most.max(group.saturating_mul(2).min(BUCKET_ROWS_OF_PERSONS)),
            None => most,
        };
        group.saturating_mul(of_k).min(most)
    }

    /// Splits a bucket as far as possible, and then improves its groups row by row.
    fn cluster_bucket(
        &self,
        rows: &mut [u32],
        checker: &mut GroupChecker,
        codes: &mut Vec<u32>,
        sizes: &mut Vec<u32>,
    ) -> Result<(), RunError> {
        let mut found = Vec::new();
        // A stack of ranges of rows that are still to be split, the first range on top.
        let mut parts = vec![(0, rows.len())];
        while let Some((start, end)) = parts.pop() {
            match self.split_once(&mut rows[start..end], checker, codes) {
                Some(left) => parts.extend([(start + left, end), (start, start + left)]),
                None => found.push((end - start) as u32),
            }
        }
        self.progress.stop_if_asked()?;
        let copied = rows.to_vec();
        let bounded = self.condition.confidence().map(|it| it.select(&copied));
        let bucket = Bucket::new(&self.losses, &copied, bounded);
        let mut start = 0;
        for group in groups(&bucket, &found, checker, &self.progress)? {
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

    /// Splits the rows at the best cut for which both parts meet *C*. If no valid cut gives
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
        let cuts = |choice: CutChoice| -> Vec<Option<RangeCut>> {
            let best = |loss: &Loss| best_cut(loss, rows, &bounded, choice);
            if rows.len() < PARALLEL_ROWS {
                self.losses.iter().map(best).collect()
            } else {
                parallel::map(&self.losses, best)
            }
        };
        let mut found = cuts(choice);
        if self.guide == SplitGuide::Class && found.iter().all(Option::is_none) {
            found = cuts(CutChoice {
                guide: SplitGuide::Ncp,
                ..choice
            });
        }
        self.divide(rows, found, checker)
    }

    /// Divides the rows at the best cut for which both parts meet the condition; `cuts` has one per
    /// quasi-identifier.
    fn divide(
        &self,
        rows: &mut [u32],
        cuts: Vec<Option<RangeCut>>,
        checker: &mut GroupChecker,
    ) -> Option<usize> {
        let cuts = self.losses.iter().zip(cuts);
        let mut cuts: Vec<_> = cuts.filter_map(|(loss, cut)| Some((loss, cut?))).collect();
        // Stable: ties go to the order of the columns.
        cuts.sort_by(|(_, one), (_, other)| other.score.total_cmp(&one.score));
        cuts.into_iter().find_map(|(loss, cut)| {
            let range = cut.codes.first..=cut.codes.last;
            let left = move_to_front(rows, |row| range.contains(&loss.codes.at(row as usize)));
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
            let left = halve_strata(&mut halved, dimension, &bounded)?;
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
        let cuts = self.losses.iter().map(|loss| loss.best_split(rows, k));
        let cuts = cuts.collect();
        self.divide(rows, cuts, checker)
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
        widest.retain(|((_, range), _)| range.first < range.last);
        // Stable: ties go to the order of the columns.
        widest.sort_by(|((one, _), _), ((other, _), _)| other.total_cmp(one));
        for ((_, range), dimension) in widest {
            let last = last_below(rows, dimension, range.last, codes);
            let left = move_to_front(rows, |row| dimension.codes.at(row as usize) <= last);
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
    with_codes!(dimension.codes, of_row => {
        codes.extend(rows.iter().map(|&row| of_row.at(row as usize)));
    });
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

/// A quasi-identifier as a dimension of the k-d split: its ordered codes, each with a z-score.
pub(super) struct SplitDimension<'a> {
    /// One code per row; codes ascend in the order of the dimension.
    codes: &'a Codes<'a>,
    /// The z-score of each code over the whole table (Gal, Chen, Gangopadhyay 2008, *Overview*).
    position: Vec<f64>,
}

impl<'a> SplitDimension<'a> {
    /// The position of a number is its value. The position of a label is its leaf index in the
    /// taxonomy, or its index in sorted order where the column has no taxonomy. A missing number
    /// is placed beyond the greatest number by the whole width of the range, so that missing
    /// numbers are split off first.
    pub(super) fn new(column: &'a QuasiIdentifier) -> Self {
        let codes = column.domain.code_count();
        let rows = column.codes.counts(codes);
        let mut position: Vec<f64> = match &column.domain {
            Domain::Numeric { values, .. } => values.clone(),
            Domain::Taxonomy(tree) => (0..tree.leaf_count()).map(|leaf| leaf as f64).collect(),
        };
        let known = position.len();
        let total: u64 = rows[..known].iter().sum();
        let mean = |value_of: &dyn Fn(usize) -> f64| {
            let sum: f64 = (0..known)
                .map(|code| value_of(code) * rows[code] as f64)
                .sum();
            sum / total.max(1) as f64
        };
        let middle = mean(&|code| position[code]);
        let deviation = mean(&|code| (position[code] - middle).powi(2)).sqrt();
        for score in &mut position {
            // Squares of large numbers may be infinite; only the order of the codes matters then.
            *score = match (*score - middle) / deviation {
                finite if finite.is_finite() => finite,
                _ => 0.0,
            };
        }
        let (least, most) = (position.first().copied(), position.last().copied());
        let (least, most) = (least.unwrap_or(0.0), most.unwrap_or(0.0));
        position.resize(codes, most + (most - least).max(1.0));
        Self {
            codes: &column.codes,
            position,
        }
    }

    /// From the least to the greatest code among `rows`.
    fn range(&self, rows: &[u32]) -> CodeRange {
        with_codes!(self.codes, codes => {
            let codes = rows.iter().map(|&row| codes.at(row as usize));
            codes.fold(CodeRange::EMPTY, CodeRange::widened)
        })
    }

    /// The width of a range of codes in standard deviations.
    fn width(&self, range: CodeRange) -> f64 {
        self.position[range.last as usize] - self.position[range.first as usize]
    }
}

/// Reorders the rows into two halves along a dimension, each of which has half of the rows with
/// each combination of bounded values, and that both meet *C*. `bounded` has the values of `rows`
/// in their order. Returns the number of rows of the first half; `None` where rounding leaves one
/// of the halves above *C*.
fn halve_strata(
    rows: &mut [u32],
    dimension: &SplitDimension,
    bounded: &BoundedCells,
) -> Option<usize> {
    let mut strata: FxHashMap<&[u32], Vec<u32>> = FxHashMap::default();
    for index in 0..rows.len() as u32 {
        let cells = bounded.record(index as usize);
        strata.entry(cells).or_default().push(index);
    }
    let mut strata: Vec<(&[u32], Vec<u32>)> = strata.into_iter().collect();
    strata.sort_unstable_by_key(|(cells, _)| *cells);
    let (mut below, mut above) = (Vec::new(), Vec::new());
    // Rows that exceed no bound, in the order of the dimension.
    let (mut free_below, mut free_above) = (Vec::new(), Vec::new());
    let mut takes_more = false;
    for (cells, mut stratum) in strata {
        stratum.sort_by_key(|&index| dimension.codes.at(rows[index as usize] as usize));
        let middle = (stratum.len() + usize::from(takes_more)) / 2;
        let upper = stratum.split_off(middle);
        if cells.iter().all(|&cell| cell == UNBOUNDED) {
            (free_below, free_above) = (stratum, upper);
        } else {
            if (upper.len() + stratum.len()) % 2 == 1 {
                takes_more = !takes_more;
            }
            below.extend(stratum);
            above.extend(upper);
        }
    }
    let tally = |bound: &[u32], free: &[u32]| {
        let mut tally = bounded.empty_tally();
        for &index in bound.iter().chain(free) {
            tally.add(bounded.record(index as usize));
        }
        tally
    };
    let (mut lower, mut upper) = (tally(&below, &free_below), tally(&above, &free_above));
    // The half with one row too many with a value gets free rows of the other.
    while !bounded.allows(&upper) {
        let index = free_below.pop()?;
        lower.remove(bounded.record(index as usize));
        upper.add(bounded.record(index as usize));
        free_above.push(index);
    }
    // The other half has to do without them.
    while !bounded.allows(&lower) {
        let index = free_above.pop()?;
        upper.remove(bounded.record(index as usize));
        lower.add(bounded.record(index as usize));
        free_below.push(index);
        if !bounded.allows(&upper) {
            return None;
        }
    }
    let left = below.len() + free_below.len();
    let order = [below, free_below, above, free_above].concat();
    let order: Vec<u32> = order
        .into_iter()
        .map(|index| rows[index as usize])
        .collect();
    rows.copy_from_slice(&order);
    Some(left)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{BUCKET_ROWS_OF_PERSONS, KdSplit, SplitProgress};
    use crate::Unobserved;
    use crate::methods::partitioning::condition::{Condition, DiversityCheck};
    use crate::methods::partitioning::valid_cuts::SplitGuide;
    use pais_core::table::{Column, Subjects};

    /// Groups of 20 persons with 40 rows each have 800 rows.
    #[test]
    fn buckets_of_persons_with_many_rows_are_not_larger_than_can_be_clustered() {
        let persons = Column {
            dictionary: (0..50).map(|person| person.to_string().into()).collect(),
            codes: (0..2000).map(|row| row / 40).collect(),
        };
        let condition = Condition {
            k: 20,
            subjects: Subjects::new(persons).map(Arc::new),
            diversity: DiversityCheck::None,
            ranges: Vec::new(),
        };
        let observer = Unobserved::default();
        let split = KdSplit {
            dimensions: Vec::new(),
            losses: Vec::new(),
            condition: &condition,
            guide: SplitGuide::Ncp,
            class: None,
            progress: SplitProgress::new(&observer, 2000),
        };
        assert_eq!(condition.typical_rows(), 800);
        assert_eq!(split.bucket_rows(), BUCKET_ROWS_OF_PERSONS);
    }
}
