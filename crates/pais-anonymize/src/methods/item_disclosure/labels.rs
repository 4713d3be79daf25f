//! Labels of a declared taxonomy in place of hidden items.
//!
//! An item that few classes can disclose is hidden from most rows, which loses all of it. Its
//! parent's label is more frequent and loses less. So the search is repeated with the parents of the
//! items that most rows hide, level by level, as long as that loses less. Where it never does, the
//! result is that of the search without labels.
//!
//! Cost: at most one search more for each level of the highest tree.

use std::collections::BTreeMap;

use hashbrown::HashSet;
use pais_core::schema::Schema;
use pais_core::table::{EncodedTable, SetColumn};
use pais_core::taxonomy::{MinimumLevels, NodeId};

use crate::error::RunError;
use crate::observer::Observer;

use super::outcome::{DisclosedSet, DisclosedTable};
use super::refine::greedy;
use super::search::DisclosureTask;
use super::search::{DisclosureSettings, TIE};
use super::thorough::improve;

/// Names of the set-valued columns with a declared taxonomy, that the job does not pre-generalize.
pub(super) fn columns_with_labels(
    schema: &Schema,
    is_pre_generalized: impl Fn(&str) -> bool,
) -> HashSet<Box<str>> {
    let stored = schema.stored();
    let with_tree = stored.filter(|spec| spec.tree().is_some() && !is_pre_generalized(spec.name()));
    with_tree.map(|spec| spec.name().into()).collect()
}

/// Runs [`greedy`] with the labels of the taxonomies of `may_label` where they lose less than
/// hiding, and then the thorough search where the settings ask for it. `minimum_levels` gives the
/// pre-generalization of the other columns by their names.
///
/// # Errors
/// As [`greedy`].
pub(super) fn search_with_labels<'a>(
    table: &'a EncodedTable,
    may_label: &HashSet<Box<str>>,
    minimum_levels: impl Fn(&str) -> Option<&'a MinimumLevels>,
    settings: &'a DisclosureSettings,
    observer: &'a dyn Observer,
) -> Result<DisclosedTable, RunError> {
    let mut task = DisclosureTask::new(table, &minimum_levels, settings, observer)?;
    let mut best = greedy(&task)?;
    let mut labels = BTreeMap::new();
    if table.sets.iter().any(|set| may_label.contains(&set.name)) {
        let leaves = table
            .sets
            .iter()
            .map(|set| match minimum_levels(&set.name) {
                Some(levels) => levels.clone(),
                None => MinimumLevels::leaves(&set.tree),
            });
        let mut levels: Vec<MinimumLevels> = leaves.collect();
        loop {
            let disclosed = task.disclosed(&best);
            let raised = raised_columns(table, may_label, &disclosed, &levels);
            if raised == levels {
                break;
            }
            let columns = table.sets.iter().zip(&raised);
            let tried_labels: BTreeMap<Box<str>, MinimumLevels> = columns
                .filter(|(column, _)| may_label.contains(&column.name))
                .map(|(column, levels)| (column.name.clone(), levels.clone()))
                .collect();
            let with_labels = chosen_or_given(&tried_labels, &minimum_levels);
            let tried_task = DisclosureTask::new(table, with_labels, settings, observer)?;
            let tried = greedy(&tried_task)?;
            if tried.loss >= best.loss - TIE {
                break;
            }
            (task, best, levels, labels) = (tried_task, tried, raised, tried_labels);
        }
    }
    if let Some(thorough) = settings.thorough {
        best = improve(&task, best, thorough)?;
    }
    Ok(DisclosedTable {
        labels,
        ..task.disclosed(&best)
    })
}

/// The levels of each column, where it may have labels with the parents of its hidden items.
fn raised_columns(
    table: &EncodedTable,
    may_label: &HashSet<Box<str>>,
    disclosed: &DisclosedTable,
    levels: &[MinimumLevels],
) -> Vec<MinimumLevels> {
    let columns = table.sets.iter().zip(&disclosed.sets).zip(levels);
    let raised = columns.map(|((column, disclosed), levels)| {
        if may_label.contains(&column.name) {
            raise_hidden(column, disclosed, levels)
        } else {
            levels.clone()
        }
    });
    raised.collect()
}

/// The chosen labels of a column, else its pre-generalization.
fn chosen_or_given<'b, 'a: 'b>(
    labels: &'b BTreeMap<Box<str>, MinimumLevels>,
    given: impl Fn(&str) -> Option<&'a MinimumLevels>,
) -> impl Fn(&str) -> Option<&'b MinimumLevels> {
    move |name| labels.get(name).or_else(|| given(name))
}

/// How often each leaf is in a raw row, and how often its label is in the released one.
struct LeafCounts {
    raw: Vec<u64>,
    disclosed: Vec<u64>,
}

impl LeafCounts {
    fn new(column: &SetColumn, disclosed: &DisclosedSet, levels: &MinimumLevels) -> Self {
        let tree = &column.tree;
        let cells = disclosed.cells.iter();
        let cells = cells.map(|cell| tree.find_all(cell, column.separator));
        let cells: Vec<HashSet<NodeId>> = cells.collect();
        let mut counts = Self {
            raw: vec![0; tree.leaf_count()],
            disclosed: vec![0; tree.leaf_count()],
        };
        for (row, &code) in disclosed.codes.iter().enumerate() {
            let cell = cells.get(code as usize);
            for &leaf in column.of_row(row) {
                let shows = |cell: &HashSet<NodeId>| cell.contains(&levels.level_of(leaf));
                counts.raw[leaf as usize] += 1;
                counts.disclosed[leaf as usize] += u64::from(cell.is_some_and(shows));
            }
        }
        counts
    }
}

/// The levels of a column with the parents of those items that most of their rows hide.
fn raise_hidden(
    column: &SetColumn,
    disclosed: &DisclosedSet,
    levels: &MinimumLevels,
) -> MinimumLevels {
    let tree = &column.tree;
    let counts = LeafCounts::new(column, disclosed, levels);
    levels.with_parents(tree, |leaf| {
        let parent = tree.node(levels.level_of(leaf)).parent;
        // Joined items with such a label would be split into more items.
        let divides = |node: NodeId| tree.node(node).label.contains(column.separator);
        let (raw, disclosed) = (counts.raw[leaf as usize], counts.disclosed[leaf as usize]);
        2 * disclosed < raw && !parent.is_some_and(divides)
    })
}
