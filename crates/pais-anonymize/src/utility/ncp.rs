//! NCP, the normalized certainty penalty: the share of the domain that a released value covers
//! (Xu et al., KDD'06, Section 2.2; used by the 2014 paper, Sections 3 and 6).

use pais_core::table::{Column, Domain, ReleasedColumn};
use pais_core::taxonomy::{Interval, MISSING_LABEL};

/// NCP of a label, from 0 to 1:
///
/// - node of a taxonomy: its share of the leaves, where `?` is a leaf; 0 for a leaf;
/// - interval: its width divided by the width of the domain; 0 for `?`;
/// - any label of a domain of one value: 0, because there is no information to lose;
/// - a label that is not in the domain: 1, because it gives no information about the value.
pub(super) fn of_label(label: &str, domain: &Domain) -> f64 {
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

/// The information loss of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ColumnNcp {
    /// Sum of the NCP of the released values.
    pub released: f64,
    /// Number of released values.
    pub rows: u64,
}

impl ColumnNcp {
    /// Adds up the NCP of a column of labels. An empty cell counts 1, like a suppressed one.
    pub(crate) fn new(column: &ReleasedColumn, domain: &Domain) -> Self {
        let Column { dictionary, codes } = &column.column;
        // Labels are counted first and multiplied afterwards: a sum over a million rows would
        // accumulate rounding errors.
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

    /// Mean NCP over the raw rows, from 0 to 1. A suppressed row counts 1, because its value is
    /// lost. Returns 0 if there are no rows.
    pub(crate) fn mean(&self, suppressed_rows: u64) -> f64 {
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
    fn ncp_of_a_label_is_its_share_of_the_domain() {
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
    fn a_suppressed_row_has_an_ncp_of_1() {
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
        let ncp = ColumnNcp::new(&column, &job());
        assert_eq!((ncp.released, ncp.rows), (1.5, 4));
        assert_eq!((ncp.mean(0), ncp.mean(2)), (0.375, 3.5 / 6.0));
        let empty = ColumnNcp {
            released: 0.0,
            rows: 0,
        };
        assert_eq!((empty.mean(0), empty.mean(3)), (0.0, 1.0));
    }
}
