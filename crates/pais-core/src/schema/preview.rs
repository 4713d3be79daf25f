//! What the hierarchy of a column makes of values that are not stored yet.

use std::borrow::Cow;

use serde::Serialize;

use super::made::Values;
use super::{SchemaColumn, no_number};
use crate::definition::TaxonomyNode;
use crate::taxonomy::{MISSING_LABEL, TreeLimits};

/// Maximum number of values and labels that a preview names.
const MOST_NAMED: usize = 100;

/// A distinct cell of a column.
#[derive(Clone, Debug)]
pub struct CellRows<'t> {
    /// As in the file.
    pub cell: &'t str,
    /// As read, with a point in numbers; `None` if it is not a number in the format of the file.
    pub read: Option<Cow<'t, str>>,
    /// Number of rows with this cell.
    pub rows: u64,
}

/// The hierarchy of a column over some values, and how the two fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HierarchyPreview {
    /// The tree, with the values as leaves where it is made from them. Absent for a column that has one step
    /// to `*`, or intervals that are found during a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<TaxonomyNode>,
    /// Number of distinct values that the column does not take.
    pub unfit_total: u64,
    /// The first 100 of them.
    pub unfit: Vec<UnfitValue>,
    /// Number of leaves that none of the values has; 0 for a hierarchy generated from them.
    pub unused_total: u64,
    /// The first 100 of them.
    pub unused: Vec<String>,
}

/// A value that a column does not take.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnfitValue {
    /// As it was sent.
    pub value: String,
    /// What is wrong with it.
    pub detail: String,
}

impl SchemaColumn {
    /// The hierarchy of the column over these cells, and the cells that do not fit it. Cells that mean missing are
    /// left out.
    ///
    /// # Errors
    /// A sentence for a hierarchy that cannot be made over these cells.
    pub fn preview(
        &self,
        cells: &[CellRows<'_>],
        limits: TreeLimits,
    ) -> Result<HierarchyPreview, String> {
        let mut column = self.clone();
        let mut values = Values::new();
        let (mut unfit_total, mut unfit) = (0, Vec::new());
        for CellRows { cell, read, rows } in cells {
            let value = self.canonical(read.as_deref().unwrap_or(cell));
            let checked = match read {
                None if !self.is_missing(cell) => Err(no_number()),
                _ => self.check(&value),
            };
            match checked {
                Ok(()) => self.add_values(&value, *rows, &mut values),
                Err(fault) => {
                    unfit_total += 1;
                    if unfit.len() < MOST_NAMED {
                        unfit.push(UnfitValue {
                            value: (*cell).to_owned(),
                            detail: fault.detail,
                        });
                    }
                }
            }
        }
        if let Some(made) = &self.made {
            let drawn = column.make_tree(made, &values, limits);
            drawn.map_err(|detail| self.unmade(&detail))?;
        }
        let (mut unused_total, mut unused) = (0, Vec::new());
        if let (Some(tree), None) = (&self.tree, &self.made) {
            let mut is_used = vec![false; tree.leaf_count()];
            for leaf in values.keys().filter_map(|value| self.leaf(value)) {
                is_used[leaf as usize] = true;
            }
            for leaf in (0..).zip(is_used).filter(|(_, is_used)| !is_used) {
                let label = &tree.node(tree.leaf(leaf.0)).label;
                if &**label != MISSING_LABEL {
                    unused_total += 1;
                    if unused.len() < MOST_NAMED {
                        unused.push(label.to_string());
                    }
                }
            }
        }
        Ok(HierarchyPreview {
            root: column.tree.map(|tree| tree.definition()),
            unfit_total,
            unfit,
            unused_total,
            unused,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CellRows, HierarchyPreview};
    use crate::definition::{DatasetDefinition, TaxonomyNode, json};
    use crate::schema::Schema;
    use crate::taxonomy::TreeLimits;

    fn preview(mut column: Value, cells: &[(&str, u64)]) -> Result<HierarchyPreview, String> {
        column["name"] = json!("x");
        column["role"] = json!("quasi_identifier");
        let text = json!({"name": "d", "columns": [column]}).to_string();
        let definition: DatasetDefinition = json::parse(text.as_bytes()).unwrap();
        let schema = Schema::inline(&definition).unwrap();
        let cells: Vec<CellRows<'_>> = cells
            .iter()
            .map(|&(cell, rows)| CellRows {
                cell,
                read: Some(cell.into()),
                rows,
            })
            .collect();
        schema.columns[0].preview(&cells, TreeLimits::default())
    }

    /// `label(child child)`.
    fn shown(node: &TaxonomyNode) -> String {
        if node.children.is_empty() {
            return node.label.clone();
        }
        let children: Vec<String> = node.children.iter().map(shown).collect();
        format!("{}({})", node.label, children.join(" "))
    }

    #[test]
    fn made_hierarchies_are_drawn_over_the_values_without_missing_ones() {
        for (column, cells, expected) in [
            (
                json!({"taxonomy": {"generate": "prefix", "lengths": [2]}, "missing": ["NA"]}),
                vec![("121", 1), ("123", 1), ("13", 1), ("NA", 9)],
                "*(12*(121 123) 13)",
            ),
            (
                json!({"taxonomy": {"generate": "rare", "below": 3}}),
                vec![("a", 3), ("b", 2), (" b", 2), ("c", 1), ("d", 1)],
                "*((rare)(c d) a b)",
            ),
            (
                json!({"kind": "date", "format": "%d.%m.%Y",
                       "taxonomy": {"generate": "calendar", "levels": ["year"]}}),
                vec![("03.09.1987", 1), ("1988-01-01", 1)],
                "*(1987(1987-09-03) 1988(1988-01-01))",
            ),
            (
                json!({"kind": "set", "separator": ";",
                       "taxonomy": {"generate": "prefix", "lengths": [1]}}),
                vec![("A1;B2", 1), ("A3", 1)],
                "*(A*(A1 A3) B*(B2))",
            ),
            (
                json!({"kind": "numeric", "taxonomy": {"generate": "ranges", "widths": [10, 20]}}),
                vec![("7", 1), ("3.10e1", 1)],
                "[0,40)([0,20)([0,10) [10,20)) [20,40)([20,30) [30,40)))",
            ),
        ] {
            let found = preview(column, &cells).unwrap();
            assert_eq!(found.unfit, [], "{expected}");
            assert_eq!((found.unfit_total, found.unused_total), (0, 0));
            assert_eq!(found.root.as_ref().map(shown).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_given_hierarchy_is_checked_both_ways() {
        let root = json!({"label": "*", "children": [
            {"label": "blue", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
            {"label": "Doctor"}, {"label": "?"}]});
        let column = json!({"taxonomy": root, "missing": ["NA"]});
        let cells = [
            ("Mover", 4),
            ("blue", 1),
            ("Lawyer", 2),
            ("NA", 1),
            (" Doctor ", 1),
        ];
        let found = preview(column, &cells).unwrap();
        let unfit: Vec<&str> = found.unfit.iter().map(|one| &*one.value).collect();
        assert_eq!(unfit, ["blue", "Lawyer"]);
        assert!(found.unfit[0].detail.contains("inner label"), "{found:?}");
        assert_eq!(found.unused, ["Janitor"]);
        assert_eq!(json!(found.root), root);
    }

    #[test]
    fn a_column_without_a_hierarchy_has_no_tree_and_still_refuses_what_it_cannot_read() {
        let found = preview(json!({"kind": "numeric"}), &[("1", 1), ("old", 1)]).unwrap();
        assert_eq!((found.root, found.unfit_total), (None, 1));
        let found = preview(json!({}), &[("a", 1)]).unwrap();
        assert_eq!((found.root, found.unfit_total), (None, 0));
    }

    #[test]
    fn what_is_no_number_in_the_format_of_the_file_does_not_fit_though_it_looks_like_one() {
        let text = r#"{"name": "d", "columns": [{"name": "x", "role": "quasi_identifier", "kind": "numeric",
                       "missing": ["1.5"]}]}"#;
        let definition: DatasetDefinition = json::parse(text.as_bytes()).unwrap();
        let schema = Schema::inline(&definition).unwrap();
        let cells = ["1.5", "2.5"].map(|cell| CellRows {
            cell,
            read: None,
            rows: 1,
        });
        let found = schema.columns[0].preview(&cells, TreeLimits::default());
        let found = found.unwrap();
        let unfit: Vec<&str> = found.unfit.iter().map(|one| &*one.value).collect();
        assert_eq!(unfit, ["2.5"]);
    }

    #[test]
    fn all_faults_are_counted_and_the_first_are_named() {
        let cells: Vec<(String, u64)> = (0..250).map(|at| (format!("v{at}"), 1)).collect();
        let cells: Vec<(&str, u64)> = cells.iter().map(|(cell, rows)| (&**cell, *rows)).collect();
        let found = preview(json!({"kind": "numeric"}), &cells).unwrap();
        assert_eq!((found.unfit_total, found.unfit.len()), (250, 100));
    }

    #[test]
    fn why_a_hierarchy_cannot_be_made_is_said_without_a_value() {
        let all_masks = "*#\u{2022}\u{d7}\u{2588}";
        let mask = json!({"taxonomy": {"generate": "mask_right"}});
        let detail = preview(mask, &[(all_masks, 1), ("secret", 1)]).unwrap_err();
        assert!(detail.contains("no character for hidden ones"), "{detail}");
        assert!(!detail.contains("secret"), "{detail}");
    }
}
