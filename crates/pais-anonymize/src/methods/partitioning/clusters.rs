//! The rows of a bucket, and the clusters that they are divided into.

use std::cell::RefCell;

use super::confidence::BoundedCells;
use super::loss::Loss;
use super::tally::Tally;

/// The first and the last code of a group in each dimension.
pub(super) type Bounds = Vec<(u32, u32)>;

/// Tolerance for the rounding of sums of NCP.
const ROUNDING: f32 = 1e-5;

/// The rows of a bucket. A member is a row by its index in the bucket.
pub(super) struct Bucket<'a> {
    losses: &'a [Loss<'a>],
    pub(super) rows: &'a [u32],
    /// Rows × dimensions, row by row.
    codes: Vec<u32>,
    /// The values that *C* bounds, by member; `None` where it bounds none.
    pub(super) bounded: Option<BoundedCells>,
}

/// A group of a bucket.
pub(super) struct Cluster {
    pub(super) members: Vec<u32>,
    pub(super) bounds: Bounds,
    /// In each dimension, the second least and the second greatest code of its members: the ends of
    /// the bounds once a member at one of them has left.
    inner: Bounds,
    /// NCP of its labels, summed over dimensions.
    pub(super) ncp: f32,
    /// Its members by bounded value. Changed for a trial and back.
    tally: RefCell<Tally>,
}

impl Cluster {
    /// NCP summed over its rows.
    pub(super) fn loss(&self) -> f32 {
        self.ncp * self.members.len() as f32
    }

    /// Whether *C* allows the group without a record of these cells, and with one of others.
    pub(super) fn allows(
        &self,
        bounded: &BoundedCells,
        out: Option<&[u32]>,
        into: Option<&[u32]>,
    ) -> bool {
        let mut tally = self.tally.borrow_mut();
        out.into_iter().for_each(|cells| tally.remove(cells));
        into.into_iter().for_each(|cells| tally.add(cells));
        let allowed = bounded.allows(&tally);
        into.into_iter().for_each(|cells| tally.remove(cells));
        out.into_iter().for_each(|cells| tally.add(cells));
        allowed
    }
}

impl<'a> Bucket<'a> {
    pub(super) fn new(
        losses: &'a [Loss<'a>],
        rows: &'a [u32],
        bounded: Option<BoundedCells>,
    ) -> Self {
        let codes = rows
            .iter()
            .flat_map(|&row| losses.iter().map(move |loss| loss.codes[row as usize]));
        Self {
            losses,
            rows,
            codes: codes.collect(),
            bounded,
        }
    }

    #[inline]
    pub(super) fn codes(&self, member: u32) -> &[u32] {
        let width = self.losses.len();
        &self.codes[member as usize * width..][..width]
    }

    /// Number of quasi-identifiers.
    pub(super) fn dimensions(&self) -> usize {
        self.losses.len()
    }

    /// The loss of a quasi-identifier.
    pub(super) fn loss(&self, dimension: usize) -> &Loss<'a> {
        &self.losses[dimension]
    }

    /// The cluster of these members.
    pub(super) fn cluster(&self, members: Vec<u32>) -> Cluster {
        let mut bounds = vec![(u32::MAX, 0); self.losses.len()];
        let mut inner = bounds.clone();
        for &member in &members {
            let codes = self.codes(member).iter();
            for ((outer, inner), &code) in bounds.iter_mut().zip(&mut inner).zip(codes) {
                inner.0 = inner.0.min(outer.0.max(code));
                inner.1 = inner.1.max(outer.1.min(code));
                *outer = (outer.0.min(code), outer.1.max(code));
            }
        }
        let tally = self
            .bounded
            .as_ref()
            .map_or_else(Tally::default, |bounded| {
                let mut tally = bounded.empty_tally();
                for &member in &members {
                    tally.add(bounded.record(member as usize));
                }
                tally
            });
        Cluster {
            ncp: self.ncp(bounds.iter().copied()),
            members,
            bounds,
            inner,
            tally: RefCell::new(tally),
        }
    }

    fn ncp(&self, bounds: impl Iterator<Item = (u32, u32)>) -> f32 {
        let losses = self.losses.iter().zip(bounds);
        losses
            .map(|(loss, (first, last))| loss.ncp_of_range(first, last))
            .sum()
    }

    /// NCP of a group's labels with one more member, summed over dimensions.
    #[inline]
    pub(super) fn ncp_with(&self, bounds: &Bounds, member: u32) -> f32 {
        let codes = self.codes(member).iter();
        let ranges = bounds.iter().zip(codes);
        self.ncp(ranges.map(|(&(first, last), &code)| (first.min(code), last.max(code))))
    }

    /// The same where it is at most `limit`; `None` where it is greater, by more than rounding.
    #[inline]
    pub(super) fn ncp_with_up_to(&self, bounds: &Bounds, member: u32, limit: f32) -> Option<f32> {
        let limit = limit + limit.abs() * ROUNDING + ROUNDING;
        let codes = self.codes(member).iter();
        let mut sum = 0.0;
        for ((loss, &(first, last)), &code) in self.losses.iter().zip(bounds).zip(codes) {
            sum += loss.ncp_of_range(first.min(code), last.max(code));
            if sum > limit {
                return None;
            }
        }
        Some(sum)
    }

    /// NCP of the labels of a cluster of two members or more without one of them.
    pub(super) fn ncp_without(&self, cluster: &Cluster, member: u32) -> f32 {
        self.ncp(self.bounds_without(cluster, member))
    }

    /// NCP of the labels of a cluster with a member in place of another.
    #[inline]
    pub(super) fn ncp_exchanged(&self, cluster: &Cluster, out: u32, member: u32) -> f32 {
        let ranges = self.bounds_without(cluster, out).zip(self.codes(member));
        self.ncp(ranges.map(|((first, last), &code)| (first.min(code), last.max(code))))
    }

    #[inline]
    fn bounds_without<'s>(
        &'s self,
        cluster: &'s Cluster,
        member: u32,
    ) -> impl Iterator<Item = (u32, u32)> + 's {
        let ranges = cluster.bounds.iter().zip(&cluster.inner);
        ranges
            .zip(self.codes(member))
            .map(|((&(first, last), &(next, previous)), &code)| {
                let first = if code == first { next } else { first };
                let last = if code == last { previous } else { last };
                (first, last)
            })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Bucket;
    use crate::methods::partitioning::loss::Loss;
    use pais_core::definition::ColumnKind;
    use pais_core::table::{Domain, QuasiIdentifier};

    proptest! {
        /// What is kept of a cluster gives the NCP without a member, and with another in its place,
        /// as computing it anew does.
        #[test]
        fn the_loss_of_an_exchange_is_that_of_the_exchanged_cluster(
            codes in prop::collection::vec((0u32..6, 0u32..4), 3..12),
        ) {
            let domain = |values: u32| Domain::Numeric {
                values: (0..values).map(f64::from).collect(),
                lo: 0.0,
                hi: f64::from(values - 1),
                missing: false,
                scale: pais_core::taxonomy::Scale::Number,
                round: None,
            };
            let column = |name: &str, values: u32, codes: Vec<u32>| QuasiIdentifier {
                name: name.into(),
                position: 0,
                domain: domain(values),
                codes,
            };
            let (a, b): (Vec<u32>, Vec<u32>) = codes.iter().copied().unzip();
            let columns = [column("a", 6, a), column("b", 4, b)];
            let losses: Vec<Loss> =
                columns.iter().map(|it| Loss::new(it, ColumnKind::Numeric)).collect();
            let rows: Vec<u32> = (0..codes.len() as u32).collect();
            let bucket = Bucket::new(&losses, &rows, None);
            let (&last, members) = rows.split_last().unwrap();
            let cluster = bucket.cluster(members.to_vec());
            for &out in members {
                let rest: Vec<u32> = members.iter().copied().filter(|&it| it != out).collect();
                let without = bucket.cluster(rest.clone());
                prop_assert_eq!(bucket.ncp_without(&cluster, out), without.ncp);
                let exchanged = bucket.cluster([rest, vec![last]].concat());
                prop_assert_eq!(bucket.ncp_exchanged(&cluster, out, last), exchanged.ncp);
            }
        }
    }
}
