//! NCP, the normalized certainty penalty: the share of its domain that a value may be any of
//! (Xu et al., KDD'06, Section 2.2; used by the 2014 paper, Sections 3 and 6).

use pais_core::table::{Column, Domain, ReleasedColumn};
use pais_core::taxonomy::{Interval, MISSING_LABEL};

/// NCP of a label, from 0 to 1. A node of a taxonomy has its share of the leaves, `?` being one
/// of them, and a leaf 0; an interval has its width over that of the domain, and `?` 0. A
/// domain of one value leaves nothing to lose: 0.
///
/// A label that is none of the domain's says nothing about the value: 1.
pub fn of_label(label: &str, domain: &Domain) -> f64 {
    match domain {
        Domain::Taxonomy(tree) => tree.find(label).map_or(1.0, |node| tree.ncp(node)),
        Domain::Numeric { .. } if label == MISSING_LABEL => 0.0,
        Domain::Numeric { lo, hi, .. } => {
            let width = hi - lo;
            match Interval::parse(label) {
                Some(_) if width <= 0.0 => 0.0,
                Some(interval) => (interval.width() / width).clamp(0.0, 1.0),
                None => 1.0,
            }
        }
    }
}

/// The loss of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnNcp {
    /// Sum of the NCP of the released values.
    pub released: f64,
    /// Number of released values.
    pub rows: u64,
}

impl ColumnNcp {
    /// Adds up a column of labels. A cell that holds nothing counts 1, as suppressed.
    pub fn of(column: &ReleasedColumn, domain: &Domain) -> Self {
        let Column { dictionary, codes } = &column.column;
        // Counted first, multiplied then: a sum over a million rows would gather rounding.
        let mut frequencies = vec![0u64; dictionary.len() + 1];
        for &code in codes {
            frequencies[(code as usize).min(dictionary.len())] += 1;
        }
        let labels = dictionary.iter().map(|label| of_label(label, domain));
        let losses = labels.chain([1.0]).zip(&frequencies);
        Self {
            released: losses.map(|(ncp, &rows)| ncp * rows as f64).sum(),
            rows: codes.len() as u64,
        }
    }

    /// Mean NCP over the raw rows: a suppressed row has lost its value, 1. 0 when there are no
    /// rows at all.
    pub fn mean(&self, suppressed_rows: u64) -> f64 {
        let rows = self.rows + suppressed_rows;
        if rows == 0 {
            0.0
        } else {
            (self.released + suppressed_rows as f64) / rows as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ColumnNcp, of_label};
    use pais_core::table::{Column, Domain, Form, NULL_CODE, ReleasedColumn};
    use pais_core::taxonomy::{Tree, TreeLimits};

    fn job() -> Domain {
        let root = serde_json::from_str(
            r#"{"label": "*", "children": [
                {"label": "Blue", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
                {"label": "White", "children": [{"label": "Doctor"}]}, {"label": "?"}]}"#,
        )
        .unwrap();
        let limits = TreeLimits {
            leaves: 10,
            depth: 5,
        };
        Domain::Taxonomy(Arc::new(Tree::new(&root, limits).unwrap()))
    }

    #[test]
    fn a_label_costs_its_share_of_the_domain() {
        let labels = [
            ("*", 1.0),
            ("Blue", 0.5),
            ("White", 0.25),
            ("Mover", 0.0),
            ("?", 0.0),
        ];
        for (label, ncp) in labels {
            assert_eq!(of_label(label, &job()), ncp, "{label}");
        }
        let age = Domain::Numeric {
            values: vec![1.0, 60.0],
            lo: 0.0,
            hi: 100.0,
            missing: true,
        };
        let labels = [
            ("[0,100]", 1.0),
            ("[0,25)", 0.25),
            ("[75,100]", 0.25),
            ("60", 0.0),
        ];
        for (label, ncp) in labels.into_iter().chain([("?", 0.0), ("old", 1.0)]) {
            assert_eq!(of_label(label, &age), ncp, "{label}");
        }
        let one = Domain::Numeric {
            values: vec![7.0],
            lo: 7.0,
            hi: 7.0,
            missing: false,
        };
        assert_eq!(of_label("7", &one), 0.0);
    }

    #[test]
    fn a_suppressed_row_has_lost_all() {
        let dictionary = ["Blue", "Mover"].map(Into::into).to_vec();
        let column = ReleasedColumn {
            name: "Job".into(),
            form: Form::Generalized,
            column: Column {
                dictionary,
                codes: vec![0, 1, 1, NULL_CODE],
            },
            missing: Vec::new(),
        };
        let ncp = ColumnNcp::of(&column, &job());
        assert_eq!((ncp.released, ncp.rows), (1.5, 4));
        assert_eq!((ncp.mean(0), ncp.mean(2)), (0.375, 3.5 / 6.0));
        let empty = ColumnNcp {
            released: 0.0,
            rows: 0,
        };
        assert_eq!((empty.mean(0), empty.mean(3)), (0.0, 1.0));
    }
}
