//! What a group loses by its labels: NCP of the range or the lowest common ancestor of its
//! codes, a dimension at a time.

use pais_core::table::{Domain, QuasiIdentifier};
use pais_core::taxonomy::Tree;

use super::tables::ancestor;

/// Leaves up to which the losses of all pairs are kept in a table.
const TABLED: usize = 128;

/// A quasi-identifier with the NCP of each range of its codes.
pub(super) struct Loss<'a> {
    /// One code a row.
    pub(super) codes: &'a [u32],
    domain: &'a Domain,
    measure: Measure,
}

enum Measure {
    /// Places of numbers in a domain of width 1; a missing one is so far off that any range
    /// with a number has all of the domain.
    Places(Vec<f32>),
    /// NCP by first and last leaf.
    Table { leaves: usize, ncp: Vec<f32> },
    /// Looked up in the taxonomy.
    Tree,
}

/// Rows of a group that share a code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) code: u32,
    pub(super) rows: u32,
}

/// Rows that may be parted from the others of a group: those of codes `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parting {
    /// What the group loses less by it, in rows.
    pub(super) gain: f64,
    pub(super) first: u32,
    pub(super) last: u32,
}

impl<'a> Loss<'a> {
    pub(super) fn of(column: &'a QuasiIdentifier) -> Self {
        let measure = match &column.domain {
            Domain::Numeric { values, lo, hi, .. } => {
                let width = hi - lo;
                let place = |value: &f64| {
                    if width > 0.0 {
                        (value - lo) / width
                    } else {
                        0.0
                    }
                };
                let mut places: Vec<f32> = values.iter().map(|value| place(value) as f32).collect();
                places.resize(column.domain.code_count(), 3.0);
                Measure::Places(places)
            }
            Domain::Taxonomy(tree) if tree.leaf_count() <= TABLED => {
                let leaves = tree.leaf_count();
                let mut ncp = vec![0.0; leaves * leaves];
                for first in 0..leaves {
                    for last in first..leaves {
                        ncp[first * leaves + last] = of_leaves(tree, first as u32, last as u32);
                    }
                }
                Measure::Table { leaves, ncp }
            }
            Domain::Taxonomy(_) => Measure::Tree,
        };
        Self {
            codes: &column.codes,
            domain: &column.domain,
            measure,
        }
    }

    /// NCP of the label over a range of codes, from 0 to 1.
    #[inline]
    pub(super) fn of_range(&self, first: u32, last: u32) -> f32 {
        match (&self.measure, self.domain) {
            (Measure::Places(places), _) => {
                (places[last as usize] - places[first as usize]).min(1.0)
            }
            (Measure::Table { leaves, ncp }, _) => ncp[first as usize * leaves + last as usize],
            (Measure::Tree, Domain::Taxonomy(tree)) => of_leaves(tree, first, last),
            // Only a taxonomy is measured by its tree.
            (Measure::Tree, Domain::Numeric { .. }) => 1.0,
        }
    }

    /// The parting of some rows, at least `least` on either side, that lets labels say most:
    /// numbers below a cut from those above it, the rows under a child of the lowest common
    /// ancestor from the others. `None` where none gains.
    pub(super) fn best_parting(&self, rows: &[u32], least: usize) -> Option<Parting> {
        let runs = self.runs(rows);
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return None;
        };
        if first.code == last.code {
            return None;
        }
        let total = rows.len();
        let best = match self.domain {
            Domain::Numeric { .. } => self.best_cut(&runs, total, least),
            Domain::Taxonomy(tree) => self.best_child(tree, &runs, total, least),
        };
        best.filter(|parting| parting.gain > 0.0)
    }

    /// The codes of some rows, ascending.
    fn runs(&self, rows: &[u32]) -> Vec<Run> {
        let codes = rows.iter().map(|&row| self.codes[row as usize]);
        if self.domain.code_count() <= 4 * rows.len() {
            let mut counts = vec![0u32; self.domain.code_count()];
            codes.for_each(|code| counts[code as usize] += 1);
            let runs = (0..).zip(counts).filter(|(_, rows)| *rows > 0);
            return runs.map(|(code, rows)| Run { code, rows }).collect();
        }
        let mut codes: Vec<u32> = codes.collect();
        codes.sort_unstable();
        let runs = codes.chunk_by(|one, other| one == other);
        runs.map(|run| Run {
            code: run[0],
            rows: run.len() as u32,
        })
        .collect()
    }

    fn cost(&self, rows: usize, first: u32, last: u32) -> f64 {
        rows as f64 * f64::from(self.of_range(first, last))
    }

    fn best_cut(&self, runs: &[Run], total: usize, least: usize) -> Option<Parting> {
        let (first, last) = (runs[0].code, runs[runs.len() - 1].code);
        let whole = self.cost(total, first, last);
        let mut best: Option<Parting> = None;
        let mut below = 0;
        for pair in runs.windows(2) {
            below += pair[0].rows as usize;
            if below < least || total - below < least {
                continue;
            }
            let parts = self.cost(below, first, pair[0].code)
                + self.cost(total - below, pair[1].code, last);
            let gain = whole - parts;
            if best.is_none_or(|best| gain > best.gain) {
                best = Some(Parting {
                    gain,
                    first,
                    last: pair[0].code,
                });
            }
        }
        best
    }

    fn best_child(&self, tree: &Tree, runs: &[Run], total: usize, least: usize) -> Option<Parting> {
        let (first, last) = (runs[0].code, runs[runs.len() - 1].code);
        let whole = self.cost(total, first, last);
        let top = tree.node(ancestor(tree, first, last));
        let mut best: Option<Parting> = None;
        let mut from = 0;
        while from < runs.len() {
            let code = runs[from].code;
            let child = top
                .children
                .partition_point(|&child| tree.node(child).end_leaf <= code);
            // The ancestor of two leaves has children, one of them over each.
            let child = tree.node(*top.children.get(child)?);
            let under = runs[from..].partition_point(|run| run.code < child.end_leaf);
            let (before, after) = (&runs[..from], &runs[from + under..]);
            let inside = &runs[from..from + under];
            from += under;
            let rows: usize = inside.iter().map(|run| run.rows as usize).sum();
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
                best = Some(Parting {
                    gain,
                    first: child.first_leaf,
                    last: child.end_leaf - 1,
                });
            }
        }
        best
    }
}

fn of_leaves(tree: &Tree, first: u32, last: u32) -> f32 {
    tree.ncp(ancestor(tree, first, last)) as f32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Loss, Parting};
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
        };
        let column = column(domain, &[0, 1, 2, 3, 4]);
        let loss = Loss::of(&column);
        assert_eq!(loss.of_range(4, 4), 0.0);
        assert_eq!(loss.of_range(1, 4), 1.0);
        assert!((loss.of_range(0, 1) - 0.1).abs() < 1e-6);
        let found = loss.best_parting(&[0, 1, 2, 3], 1).unwrap();
        assert_eq!((found.first, found.last), (0, 1));
        assert!((found.gain - 3.6).abs() < 1e-6);
        assert_eq!(loss.best_parting(&[0, 1, 2, 3], 3), None);
    }

    #[test]
    fn labels_are_parted_by_child() {
        let root = r#"{"label": "*", "children": [
            {"label": "x", "children": [{"label": "a"}, {"label": "b"}]},
            {"label": "y", "children": [{"label": "c"}, {"label": "d"}]}]}"#;
        let limits = TreeLimits {
            leaves: 9,
            depth: 9,
        };
        let tree = Tree::new(&serde_json::from_str(root).unwrap(), limits).unwrap();
        let column = column(Domain::Taxonomy(Arc::new(tree)), &[0, 1, 2, 2, 3]);
        let loss = Loss::of(&column);
        assert_eq!((loss.of_range(0, 1), loss.of_range(1, 2)), (0.5, 1.0));
        let found = loss.best_parting(&[0, 1, 2, 3], 1).unwrap();
        assert_eq!(
            found,
            Parting {
                gain: 3.0,
                first: 0,
                last: 1
            }
        );
        assert_eq!(loss.best_parting(&[2, 3], 1), None);
    }
}
