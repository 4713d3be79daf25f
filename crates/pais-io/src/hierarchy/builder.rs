//! The tree of a hierarchy while its rows are read.

use std::borrow::Cow;

use csv::StringRecord;
use hashbrown::HashMap;
use pais_core::definition::TaxonomyNode;
use pais_core::schema::canonical_text;
use pais_core::taxonomy::{MISSING_LABEL, TreeError, TreeLimits};

/// The top of rows that have no common top.
const TOP: &str = "*";

/// The labels of a row without the empty fields at its end; all fields of a row that has no label.
pub(super) fn filled<'r>(row: &'r StringRecord) -> impl DoubleEndedIterator<Item = Cow<'r, str>> {
    let has_label = |&field: &usize| !row[field].trim().is_empty();
    let last = (0..row.len()).rev().find(has_label);
    let length = last.map_or(row.len(), |last| last + 1);
    (0..length).map(|field| canonical_text(&row[field]))
}

/// Why a row was not added.
pub(super) enum RowError {
    /// What is wrong with the row; reading continues with the next row.
    Fault(String),
    /// A limit of the tree is exceeded; reading stops.
    Limit(TreeError),
}

struct HierarchyNode {
    label: Box<str>,
    /// Index of the parent, which comes before its children; `None` for the top.
    parent: Option<usize>,
    /// Number of levels from the top to the node, both included.
    depth: usize,
    leaf: bool,
}

/// The tree while its rows are read.
#[derive(Default)]
pub(super) struct HierarchyBuilder {
    entries: Vec<HierarchyNode>,
    by_label: HashMap<Box<str>, usize>,
    leaves: usize,
    /// Whether [`TOP`] is above rows that do not end with it.
    adds_top: bool,
}

impl HierarchyBuilder {
    /// A tree without nodes. With `adds_top`, `*` is above rows that do not end with it.
    pub(super) fn new(adds_top: bool) -> Self {
        Self {
            adds_top,
            ..Self::default()
        }
    }

    /// Adds a row of labels, with the leaf first.
    pub(super) fn add(&mut self, row: &StringRecord, limits: TreeLimits) -> Result<(), RowError> {
        let fault = |detail: String| Err(RowError::Fault(detail));
        let labels: Vec<Cow<'_, str>> = filled(row).rev().collect();
        let mut path: Vec<&str> = labels.iter().map(AsRef::as_ref).collect();
        if self.adds_top {
            path.insert(0, TOP);
        }
        if path.contains(&"") {
            return fault("a label is empty; every level needs one".to_owned());
        }
        path.dedup();
        // A record has at least one field.
        let [.., leaf] = path[..] else { return Ok(()) };
        if path.len() == 1 {
            return fault(format!(
                "the row has only the label `{leaf}`; a row needs at least a leaf and a top"
            ));
        }
        if path.contains(&MISSING_LABEL) && !(path.len() == 2 && leaf == MISSING_LABEL) {
            return fault(
                "`?` means missing and can only be a leaf right below the top".to_owned(),
            );
        }
        let mut parent = None;
        for (level, &label) in path.iter().enumerate() {
            let last = level + 1 == path.len();
            parent = Some(match self.by_label.get(label) {
                Some(&known) => {
                    self.check_known(known, parent, last)
                        .map_err(RowError::Fault)?;
                    known
                }
                None => self.push(label, parent, last, limits)?,
            });
        }
        Ok(())
    }

    fn check_known(&self, known: usize, parent: Option<usize>, last: bool) -> Result<(), String> {
        let HierarchyNode {
            label,
            parent: before,
            leaf,
            ..
        } = &self.entries[known];
        let name = |node: Option<usize>| match node {
            Some(node) => format!("below `{}`", self.entries[node].label),
            None => "at the top".to_owned(),
        };
        if *before != parent {
            let (here, before) = (name(parent), name(*before));
            return Err(format!(
                "`{label}` is {here}, but {before} in an earlier row"
            ));
        }
        match (last, leaf) {
            // The same row again.
            (true, true) => Ok(()),
            (true, false) => Err(format!("`{label}` is a leaf, but not in an earlier row")),
            (false, true) => Err(format!(
                "`{label}` is not a leaf, but it is one in an earlier row"
            )),
            (false, false) => Ok(()),
        }
    }

    fn push(
        &mut self,
        label: &str,
        parent: Option<usize>,
        leaf: bool,
        limits: TreeLimits,
    ) -> Result<usize, RowError> {
        if parent.is_none()
            && let Some(top) = self.entries.first()
        {
            let top = &top.label;
            return Err(RowError::Fault(format!(
                "the top is `{label}`, but `{top}` in the first row; give all rows the same top"
            )));
        }
        let depth = parent.map_or(1, |parent| self.entries[parent].depth + 1);
        if depth > limits.depth {
            return Err(RowError::Limit(TreeError::TooDeep {
                limit: limits.depth,
            }));
        }
        self.leaves += usize::from(leaf);
        if self.leaves > limits.leaves {
            return Err(RowError::Limit(TreeError::TooManyLeaves {
                limit: limits.leaves,
            }));
        }
        let index = self.entries.len();
        self.by_label.insert(label.into(), index);
        self.entries.push(HierarchyNode {
            label: label.into(),
            parent,
            depth,
            leaf,
        });
        Ok(index)
    }

    /// The tree; `None` if there are no rows.
    pub(super) fn into_root(self) -> Option<TaxonomyNode> {
        let mut children: Vec<Vec<TaxonomyNode>> = Vec::new();
        children.resize_with(self.entries.len(), Vec::new);
        // From last to first, so that a node has all its children before it is moved to its parent.
        for (index, entry) in self.entries.into_iter().enumerate().rev() {
            let mut below = std::mem::take(&mut children[index]);
            below.reverse();
            let node = TaxonomyNode {
                label: entry.label.into(),
                children: below,
            };
            match entry.parent {
                Some(parent) => children[parent].push(node),
                None => return Some(node),
            }
        }
        None
    }
}
