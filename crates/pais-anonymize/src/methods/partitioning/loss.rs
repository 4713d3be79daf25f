//! The information loss of a group's labels: the NCP of the range or of the lowest common
//! ancestor of its codes, for one dimension at a time.

use pais_core::definition::ColumnKind;
use pais_core::table::{Domain, QuasiIdentifier};
use pais_core::taxonomy::Tree;
use pais_measure::node_ncp;

/// Greatest number of leaves for which the NCP of all pairs of leaves is kept in a table.
const MOST_TABLE_LEAVES: usize = 128;

/// A quasi-identifier with the NCP of each range of its codes.
pub(super) struct Loss<'a> {
    /// One code per row.
    pub(super) codes: &'a [u32],
    domain: &'a Domain,
    lookup: NcpLookup,
}

/// How the NCP of a range of codes is found.
enum NcpLookup {
    /// Positions of numbers in a domain of width 1. The position of a missing number is so far
    /// away that a range over it and any number costs as much as the whole domain.
    Positions(Vec<f32>),
    /// NCP by first and last leaf, `leaves` × `leaves`.
    Table { leaves: usize, ncp: Vec<f32> },
    /// NCP of each node of the taxonomy; the lowest common ancestor is found on each call.
    Nodes(Vec<f32>),
}

/// A code, and the number of a group's rows that have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeCount {
    pub(super) code: u32,
    pub(super) rows: u32,
}

/// A split of a group by its loss: rows with codes `first..=last` on one side, all others on the
/// other side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LossSplit {
    /// The decrease of NCP summed over the rows of the group.
    pub(super) gain: f64,
    pub(super) first: u32,
    pub(super) last: u32,
}

impl<'a> Loss<'a> {
    /// The loss of a column of this kind: by width where it is numeric, else by leaves.
    pub(super) fn new(column: &'a QuasiIdentifier, kind: ColumnKind) -> Self {
        let lookup = match &column.domain {
            Domain::Numeric { values, lo, hi, .. } => {
                let width = hi - lo;
                let position = |value: &f64| {
                    if width > 0.0 {
                        (value - lo) / width
                    } else {
                        0.0
                    }
                };
                let mut positions: Vec<f32> =
                    values.iter().map(|value| position(value) as f32).collect();
                positions.resize(column.domain.code_count(), 3.0);
                NcpLookup::Positions(positions)
            }
            Domain::Taxonomy(tree) if tree.leaf_count() <= MOST_TABLE_LEAVES => {
                let leaves = tree.leaf_count();
                let of_node = of_nodes(tree, kind);
                let mut ncp = vec![0.0; leaves * leaves];
                for first in 0..leaves {
                    for last in first..leaves {
                        let top = tree.lowest_common_ancestor(first as u32, last as u32);
                        ncp[first * leaves + last] = of_node[top.index()];
                    }
                }
                NcpLookup::Table { leaves, ncp }
            }
            Domain::Taxonomy(tree) => NcpLookup::Nodes(of_nodes(tree, kind)),
        };
        Self {
            codes: &column.codes,
            domain: &column.domain,
            lookup,
        }
    }

    /// NCP of the label that covers a range of codes, from 0 to 1.
    #[inline(always)]
    pub(super) fn ncp_of_range(&self, first: u32, last: u32) -> f32 {
        match (&self.lookup, self.domain) {
            (NcpLookup::Positions(positions), _) => {
                (positions[last as usize] - positions[first as usize]).min(1.0)
            }
            (NcpLookup::Table { leaves, ncp }, _) => ncp[first as usize * leaves + last as usize],
            (NcpLookup::Nodes(ncp), Domain::Taxonomy(tree)) => {
                ncp[tree.lowest_common_ancestor(first, last).index()]
            }
            // Never reached: a numeric domain always has positions.
            (NcpLookup::Nodes(_), Domain::Numeric { .. }) => 1.0,
        }
    }

    /// NCP of the label over a range of codes with each of some further codes, into `ncp`.
    pub(super) fn ncp_of_widened(&self, (first, last): (u32, u32), codes: &[u32], ncp: &mut [f32]) {
        let pairs = codes.iter().zip(ncp);
        match &self.lookup {
            NcpLookup::Positions(positions) => {
                for (&code, ncp) in pairs {
                    let (first, last) = (first.min(code), last.max(code));
                    *ncp = (positions[last as usize] - positions[first as usize]).min(1.0);
                }
            }
            NcpLookup::Table { leaves, ncp: table } => {
                for (&code, ncp) in pairs {
                    let (first, last) = (first.min(code), last.max(code));
                    *ncp = table[first as usize * leaves + last as usize];
                }
            }
            NcpLookup::Nodes(_) => {
                for (&code, ncp) in pairs {
                    *ncp = self.ncp_of_range(first.min(code), last.max(code));
                }
            }
        }
    }

    /// The split of `rows`, with at least `least` rows on either side, that decreases NCP most.
    /// Numbers are split at a cut point; labels are split into the rows under one child of the
    /// lowest common ancestor and all others. `None` where no split decreases NCP.
    pub(super) fn best_split(&self, rows: &[u32], least: usize) -> Option<LossSplit> {
        let counts = self.code_counts(rows);
        let (Some(first), Some(last)) = (counts.first(), counts.last()) else {
            return None;
        };
        if first.code == last.code {
            return None;
        }
        let total = rows.len();
        let best = match self.domain {
            Domain::Numeric { .. } => self.best_cut(&counts, total, least),
            Domain::Taxonomy(tree) => self.best_child(tree, &counts, total, least),
        };
        best.filter(|split| split.gain > 0.0)
    }

    /// The codes of `rows`, ascending, with their numbers of rows.
    fn code_counts(&self, rows: &[u32]) -> Vec<CodeCount> {
        let codes = rows.iter().map(|&row| self.codes[row as usize]);
        if self.domain.code_count() <= 4 * rows.len() {
            let mut counts = vec![0u32; self.domain.code_count()];
            codes.for_each(|code| counts[code as usize] += 1);
            let present = (0..).zip(counts).filter(|(_, rows)| *rows > 0);
            return present
                .map(|(code, rows)| CodeCount { code, rows })
                .collect();
        }
        let mut codes: Vec<u32> = codes.collect();
        codes.sort_unstable();
        let runs = codes.chunk_by(|one, other| one == other);
        runs.map(|run| CodeCount {
            code: run[0],
            rows: run.len() as u32,
        })
        .collect()
    }

    /// The rows by code, ascending: pairs of a code and the index of the row in `rows`.
    pub(super) fn by_code(&self, rows: &[u32]) -> Vec<(u32, u32)> {
        let codes = rows.iter().map(|&row| self.codes[row as usize]);
        let pairs = || codes.clone().zip(0..);
        if self.domain.code_count() > 4 * rows.len() {
            let mut pairs: Vec<(u32, u32)> = pairs().collect();
            pairs.sort_unstable();
            return pairs;
        }
        let mut next = vec![0u32; self.domain.code_count() + 1];
        codes.clone().for_each(|code| next[code as usize + 1] += 1);
        for code in 1..next.len() {
            next[code] += next[code - 1];
        }
        let mut sorted = vec![(0, 0); rows.len()];
        for (code, index) in pairs() {
            let place = &mut next[code as usize];
            sorted[*place as usize] = (code, index);
            *place += 1;
        }
        sorted
    }

    /// The codes under each child of the lowest common ancestor of a range of codes; `None` for
    /// numbers, which have none.
    pub(super) fn children(&self, first: u32, last: u32) -> Option<Vec<(u32, u32)>> {
        let Domain::Taxonomy(tree) = self.domain else {
            return None;
        };
        let top = tree.node(tree.lowest_common_ancestor(first, last));
        let children = top.children.iter().map(|&child| {
            let child = tree.node(child);
            (child.first_leaf, child.end_leaf - 1)
        });
        Some(children.collect())
    }

    /// NCP of the label over a range of codes, summed over this number of rows.
    pub(super) fn cost(&self, rows: usize, first: u32, last: u32) -> f64 {
        rows as f64 * f64::from(self.ncp_of_range(first, last))
    }

    fn best_cut(&self, counts: &[CodeCount], total: usize, least: usize) -> Option<LossSplit> {
        let (first, last) = (counts[0].code, counts[counts.len() - 1].code);
        let whole = self.cost(total, first, last);
        let mut best: Option<LossSplit> = None;
        let mut below = 0;
        for pair in counts.windows(2) {
            below += pair[0].rows as usize;
            if below < least || total - below < least {
                continue;
            }
            let parts = self.cost(below, first, pair[0].code)
                + self.cost(total - below, pair[1].code, last);
            let gain = whole - parts;
            if best.is_none_or(|best| gain > best.gain) {
                best = Some(LossSplit {
                    gain,
                    first,
                    last: pair[0].code,
                });
            }
        }
        best
    }

    fn best_child(
        &self,
        tree: &Tree,
        counts: &[CodeCount],
        total: usize,
        least: usize,
    ) -> Option<LossSplit> {
        let (first, last) = (counts[0].code, counts[counts.len() - 1].code);
        let whole = self.cost(total, first, last);
        let top = tree.node(tree.lowest_common_ancestor(first, last));
        let mut best: Option<LossSplit> = None;
        let mut from = 0;
        while from < counts.len() {
            let code = counts[from].code;
            let child = top
                .children
                .partition_point(|&child| tree.node(child).end_leaf <= code);
            // The lowest common ancestor of two leaves has a child above each of them.
            let child = tree.node(*top.children.get(child)?);
            let under = counts[from..].partition_point(|count| count.code < child.end_leaf);
            let (before, after) = (&counts[..from], &counts[from + under..]);
            let inside = &counts[from..from + under];
            from += under;
            let rows: usize = inside.iter().map(|count| count.rows as usize).sum();
            if rows < least || total - rows < least {
                continue;
            }
            let outside = (
                before.first().or(after.first()),
                after.last().or(before.last()),
            );
            let (Some(low), Some(high)) = outside else {
                continue;
            };
            let parts = self.cost(rows, inside[0].code, inside[inside.len() - 1].code)
                + self.cost(total - rows, low.code, high.code);
            let gain = whole - parts;
            if best.is_none_or(|best| gain > best.gain) {
                best = Some(LossSplit {
                    gain,
                    first: child.first_leaf,
                    last: child.end_leaf - 1,
                });
            }
        }
        best
    }
}

fn of_nodes(tree: &Tree, kind: ColumnKind) -> Vec<f32> {
    let ncp = node_ncp(tree, kind).into_iter();
    ncp.map(|ncp| ncp as f32).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Loss, LossSplit};
    use pais_core::definition::ColumnKind;
    use pais_core::table::{Domain, QuasiIdentifier};
    use pais_core::taxonomy::{Tree, TreeLimits};

    fn column(domain: Domain, codes: &[u32]) -> QuasiIdentifier {
        QuasiIdentifier {
            name: "q".into(),
            position: 0,
            domain,
            codes: codes.into(),
        }
    }

    #[test]
    fn numbers_are_cut_where_the_ranges_shrink_most() {
        let domain = Domain::Numeric {
            values: vec![0.0, 1.0, 9.0, 10.0],
            lo: 0.0,
            hi: 10.0,
            missing: true,
            scale: pais_core::taxonomy::Scale::Number,
            round: None,
        };
        let column = column(domain, &[0, 1, 2, 3, 4]);
        let loss = Loss::new(&column, ColumnKind::Numeric);
        assert_eq!(loss.ncp_of_range(4, 4), 0.0);
        assert_eq!(loss.ncp_of_range(1, 4), 1.0);
        assert!((loss.ncp_of_range(0, 1) - 0.1).abs() < 1e-6);
        let found = loss.best_split(&[0, 1, 2, 3], 1).unwrap();
        assert_eq!((found.first, found.last), (0, 1));
        assert!((found.gain - 3.6).abs() < 1e-6);
        assert_eq!(loss.best_split(&[0, 1, 2, 3], 3), None);
    }

    #[test]
    fn labels_are_split_by_child() {
        let root = r#"{"label": "*", "children": [
            {"label": "x", "children": [{"label": "a"}, {"label": "b"}]},
            {"label": "y", "children": [{"label": "c"}, {"label": "d"}]}]}"#;
        let limits = TreeLimits {
            leaves: 9,
            depth: 9,
        };
        let tree = Tree::new(&serde_json::from_str(root).unwrap(), limits).unwrap();
        let column = column(Domain::Taxonomy(Arc::new(tree)), &[0, 1, 2, 2, 3]);
        let loss = Loss::new(&column, ColumnKind::Categorical);
        assert_eq!(
            (loss.ncp_of_range(0, 1), loss.ncp_of_range(1, 2)),
            (0.5, 1.0)
        );
        let found = loss.best_split(&[0, 1, 2, 3], 1).unwrap();
        assert_eq!(
            found,
            LossSplit {
                gain: 3.0,
                first: 0,
                last: 1
            }
        );
        assert_eq!(loss.best_split(&[2, 3], 1), None);
    }

    #[test]
    fn ranges_are_measured_by_their_width() {
        let root = r#"{"label": "[0,100]", "children": [
            {"label": "[0,20)", "children": [{"label": "[0,5)"}, {"label": "[5,20)"}]},
            {"label": "[20,100]"}]}"#;
        let limits = TreeLimits::default();
        let tree = Tree::new(&serde_json::from_str(root).unwrap(), limits).unwrap();
        let column = column(Domain::Taxonomy(Arc::new(tree)), &[0, 1, 2]);
        let loss = Loss::new(&column, ColumnKind::Numeric);
        for ((first, last), width) in [
            ((0, 0), 5.0),
            ((0, 1), 20.0),
            ((2, 2), 80.0),
            ((0, 2), 100.0),
        ] {
            let ncp = loss.ncp_of_range(first, last);
            assert!(
                (ncp - width / 100.0).abs() < 1e-6,
                "{first} to {last}: {ncp}"
            );
        }
        // Of 3 rows with a loss of 1 each, 2 lose 0.2 then, and 1 loses 0.8.
        let found = loss.best_split(&[0, 1, 2], 1).unwrap();
        assert_eq!((found.first, found.last), (0, 1));
        assert!((found.gain - (3.0 - 2.0 * 0.2 - 0.8)).abs() < 1e-6);
    }
}
