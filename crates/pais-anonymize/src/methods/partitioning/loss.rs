//! The information loss of a group's labels: the NCP of the range or of the lowest common
//! ancestor of its codes, for one dimension at a time.

use std::ops::Range;

use pais_core::definition::ColumnKind;
use pais_core::table::codes::{CodeRange, Codes};
use pais_core::table::{Domain, QuasiIdentifier};
use pais_core::taxonomy::{NodeId, Tree};
use pais_measure::node_ncp;

/// Greatest number of leaves for which the NCP of all pairs of leaves is kept in a table.
const MOST_TABLE_LEAVES: usize = 128;

/// A quasi-identifier with the NCP of each range of its codes.
pub(super) struct Loss<'a> {
    /// One code per row.
    pub(super) codes: &'a Codes<'a>,
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

/// A cut of a group by one column: rows with some codes on one side, all others on the other side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RangeCut {
    /// The higher, the better; cuts of one group can be compared.
    pub(super) score: f64,
    pub(super) codes: CodeRange,
}

/// A way to divide the distinct codes of a group, ascending, in two.
pub(super) struct Division {
    /// Places among the codes.
    pub(super) inside: Range<usize>,
    /// The range of codes that these have in common and no other code of the group is in.
    pub(super) codes: CodeRange,
    /// From the least to the greatest code of the others.
    pub(super) outside: CodeRange,
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
    pub(super) fn ncp_of_range(&self, range: CodeRange) -> f32 {
        let CodeRange { first, last } = range;
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
    pub(super) fn ncp_of_widened(&self, range: CodeRange, codes: &[u32], ncp: &mut [f32]) {
        let pairs = codes.iter().zip(ncp);
        match &self.lookup {
            NcpLookup::Positions(positions) => {
                for (&code, ncp) in pairs {
                    let CodeRange { first, last } = range.widened(code);
                    *ncp = (positions[last as usize] - positions[first as usize]).min(1.0);
                }
            }
            NcpLookup::Table { leaves, ncp: table } => {
                for (&code, ncp) in pairs {
                    let CodeRange { first, last } = range.widened(code);
                    *ncp = table[first as usize * leaves + last as usize];
                }
            }
            NcpLookup::Nodes(_) => {
                for (&code, ncp) in pairs {
                    *ncp = self.ncp_of_range(range.widened(code));
                }
            }
        }
    }

    /// The cut of `rows`, with at least `least` rows on either side, that decreases the NCP summed
    /// over the rows most. `None` where no cut decreases NCP.
    pub(super) fn best_split(&self, rows: &[u32], least: usize) -> Option<RangeCut> {
        let counts = self.code_counts(rows);
        let (code, total) = (|place: usize| counts[place].code, rows.len());
        let mut before = vec![0];
        for count in &counts {
            before.push(before[before.len() - 1] + count.rows as usize);
        }
        let all = CodeRange::new(counts.first()?.code, counts.last()?.code);
        let whole = self.cost(total, all);
        let mut best: Option<RangeCut> = None;
        for division in self.divisions(counts.len(), code) {
            let Division {
                inside,
                codes,
                outside,
            } = division;
            let rows = before[inside.end] - before[inside.start];
            if rows < least || total - rows < least {
                continue;
            }
            let inside = CodeRange::new(code(inside.start), code(inside.end - 1));
            let parts = self.cost(rows, inside) + self.cost(total - rows, outside);
            let score = whole - parts;
            if score > best.map_or(0.0, |best| best.score) {
                best = Some(RangeCut { score, codes });
            }
        }
        best
    }

    /// The ways to divide `count` distinct codes, ascending, of which there are two or more:
    /// numbers before any but the first, labels into those under one child of the lowest common
    /// ancestor and all others.
    pub(super) fn divisions(&self, count: usize, code: impl Fn(usize) -> u32) -> Vec<Division> {
        let mut divisions = Vec::new();
        if count < 2 {
            return divisions;
        }
        let (least, most) = (code(0), code(count - 1));
        match self.domain {
            Domain::Numeric { .. } => divisions.extend((1..count).map(|end| Division {
                inside: 0..end,
                codes: CodeRange::new(least, code(end - 1)),
                outside: CodeRange::new(code(end), most),
            })),
            Domain::Taxonomy(tree) => {
                let children = &tree.node(tree.lowest_common_ancestor(least, most)).children;
                let mut start = 0;
                while start < count {
                    let is_before = |&child: &NodeId| tree.node(child).end_leaf <= code(start);
                    // The lowest common ancestor of two leaves has a child above each of them.
                    let child = tree.node(children[children.partition_point(is_before)]);
                    let is_under = |place: &usize| code(*place) < child.end_leaf;
                    let end = start + (start..count).take_while(is_under).count();
                    divisions.push(Division {
                        inside: start..end,
                        codes: CodeRange::new(child.first_leaf, child.end_leaf - 1),
                        outside: CodeRange::new(
                            if start > 0 { least } else { code(end) },
                            if end < count { most } else { code(start - 1) },
                        ),
                    });
                    start = end;
                }
            }
        }
        divisions
    }

    /// The codes of `rows`, ascending, with their numbers of rows.
    fn code_counts(&self, rows: &[u32]) -> Vec<CodeCount> {
        let codes = rows.iter().map(|&row| self.codes.at(row as usize));
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
        let codes = rows.iter().map(|&row| self.codes.at(row as usize));
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

    /// NCP of the label over a range of codes, summed over this number of rows.
    pub(super) fn cost(&self, rows: usize, range: CodeRange) -> f64 {
        rows as f64 * f64::from(self.ncp_of_range(range))
    }
}

fn of_nodes(tree: &Tree, kind: ColumnKind) -> Vec<f32> {
    let ncp = node_ncp(tree, kind).into_iter();
    ncp.map(|ncp| ncp as f32).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Loss, RangeCut};
    use pais_core::definition::ColumnKind;
    use pais_core::table::codes::{CodeRange, Codes};
    use pais_core::table::{Domain, QuasiIdentifier};
    use pais_core::taxonomy::{Tree, TreeLimits};

    fn column(domain: Domain, codes: &[u32]) -> QuasiIdentifier {
        QuasiIdentifier {
            name: "q".into(),
            position: 0,
            domain,
            codes: Codes::Four(codes.to_vec().into()),
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
            ends: None,
        };
        let column = column(domain, &[0, 1, 2, 3, 4]);
        let loss = Loss::new(&column, ColumnKind::Numeric);
        assert_eq!(loss.ncp_of_range(CodeRange::new(4, 4)), 0.0);
        assert_eq!(loss.ncp_of_range(CodeRange::new(1, 4)), 1.0);
        assert!((loss.ncp_of_range(CodeRange::new(0, 1)) - 0.1).abs() < 1e-6);
        let found = loss.best_split(&[0, 1, 2, 3], 1).unwrap();
        assert_eq!(found.codes, CodeRange::new(0, 1));
        assert!((found.score - 3.6).abs() < 1e-6);
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
            (
                loss.ncp_of_range(CodeRange::new(0, 1)),
                loss.ncp_of_range(CodeRange::new(1, 2))
            ),
            (0.5, 1.0)
        );
        let found = loss.best_split(&[0, 1, 2, 3], 1).unwrap();
        assert_eq!(
            found,
            RangeCut {
                score: 3.0,
                codes: CodeRange::new(0, 1)
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
            let ncp = loss.ncp_of_range(CodeRange::new(first, last));
            assert!(
                (ncp - width / 100.0).abs() < 1e-6,
                "{first} to {last}: {ncp}"
            );
        }
        // Of 3 rows with a loss of 1 each, 2 lose 0.2 then, and 1 loses 0.8.
        let found = loss.best_split(&[0, 1, 2], 1).unwrap();
        assert_eq!(found.codes, CodeRange::new(0, 1));
        assert!((found.score - (3.0 - 2.0 * 0.2 - 0.8)).abs() < 1e-6);
    }
}
