//! The rows of a bucket that no cluster has yet, with the loss of each as the next member of the
//! growing cluster.
//!
//! What a row would add is kept by dimension. A new member changes the bounds of a cluster in few
//! dimensions; only these are computed again, and the sums over dimensions are those of arrays.

use super::clusters::{Bounds, Bucket};

/// The rows left, and the cluster that grows.
pub(super) struct Candidates<'b> {
    bucket: &'b Bucket<'b>,
    /// Members of the bucket that are in no cluster.
    left: Vec<u32>,
    /// Dimensions × rows left, dimension by dimension, with room for all rows of the bucket: the
    /// code of each.
    codes: Vec<u32>,
    /// In the same order, NCP of the label in the dimension with this row as a member.
    ncp: Vec<f32>,
    /// NCP of the labels with this row as a member, summed over dimensions.
    sums: Vec<f32>,
    /// The growing cluster, or the one that has grown last.
    bounds: Bounds,
    members: Vec<u32>,
}

impl<'b> Candidates<'b> {
    /// All rows of the bucket.
    pub(super) fn new(bucket: &'b Bucket<'b>) -> Self {
        let rows = bucket.rows.len();
        let dimensions = bucket.dimensions();
        let mut codes = Vec::with_capacity(rows * dimensions);
        for dimension in 0..dimensions {
            codes.extend((0..rows as u32).map(|member| bucket.codes(member)[dimension]));
        }
        Self {
            bucket,
            left: (0..rows as u32).collect(),
            ncp: vec![0.0; codes.len()],
            codes,
            sums: vec![0.0; rows],
            bounds: Bounds::new(),
            members: Vec::new(),
        }
    }

    /// Members that no cluster has.
    pub(super) fn left(&self) -> &[u32] {
        &self.left
    }

    /// Starts the next cluster with the row that increases the loss of the last one most, the first
    /// cluster with the first row. There must be a row left.
    pub(super) fn start(&mut self) {
        let seed = if self.bounds.is_empty() {
            0
        } else {
            let indexed = self.sums[..self.left.len()].iter().enumerate();
            let farthest = indexed.max_by(|(_, one), (_, other)| one.total_cmp(other));
            farthest.map_or(0, |(index, _)| index)
        };
        self.members.clear();
        let member = self.left[seed];
        let codes = self.bucket.codes(member).iter();
        self.bounds = codes.map(|&code| (code, code)).collect();
        self.remove(seed);
        self.members.push(member);
        for dimension in 0..self.bounds.len() {
            self.compute(dimension);
        }
        self.sum();
    }

    /// The members of the growing cluster.
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }

    /// The index of the permitted row left with the least loss as the next member, the first of
    /// equal ones.
    pub(super) fn nearest(&self, mut is_permitted: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut best: Option<(usize, f32)> = None;
        for (index, (&member, &sum)) in self.left.iter().zip(&self.sums).enumerate() {
            if best.is_none_or(|(_, least)| sum < least) && is_permitted(member) {
                best = Some((index, sum));
            }
        }
        best.map(|(index, _)| index)
    }

    /// Adds the row at an index to the growing cluster.
    pub(super) fn take(&mut self, index: usize) {
        let member = self.left[index];
        self.remove(index);
        self.members.push(member);
        let mut changed = false;
        for dimension in 0..self.bounds.len() {
            let code = self.bucket.codes(member)[dimension];
            let (first, last) = self.bounds[dimension];
            if code < first || code > last {
                self.bounds[dimension] = (first.min(code), last.max(code));
                self.compute(dimension);
                changed = true;
            }
        }
        if changed {
            self.sum();
        }
    }

    /// Gives up the growing cluster: its rows are left again, after all others.
    pub(super) fn give_up(&mut self) {
        self.left.append(&mut self.members);
    }

    /// Ends the growth; the rows left.
    pub(super) fn into_left(self) -> Vec<u32> {
        self.left
    }

    /// Takes a row out of those left; the last one gets its place.
    fn remove(&mut self, index: usize) {
        let last = self.left.len() - 1;
        self.left.swap_remove(index);
        let rows = self.bucket.rows.len();
        for dimension in 0..self.bounds.len() {
            let start = dimension * rows;
            self.codes[start + index] = self.codes[start + last];
            self.ncp[start + index] = self.ncp[start + last];
        }
        self.sums[index] = self.sums[last];
    }

    fn compute(&mut self, dimension: usize) {
        let start = dimension * self.bucket.rows.len();
        let range = start..start + self.left.len();
        let (codes, ncp) = (&self.codes[range.clone()], &mut self.ncp[range]);
        let loss = self.bucket.loss(dimension);
        loss.ncp_of_widened(self.bounds[dimension], codes, ncp);
    }

    /// Sums over dimensions, in their order.
    fn sum(&mut self) {
        let rows = self.bucket.rows.len();
        let sums = &mut self.sums[..self.left.len()];
        sums.fill(0.0);
        for dimension in self.ncp.chunks(rows.max(1)) {
            for (sum, ncp) in sums.iter_mut().zip(dimension) {
                *sum += ncp;
            }
        }
    }
}
