//! The pre-generalization of a job: checked against the schema and applied to the encoded table.

use std::collections::{BTreeMap, BTreeSet};

use pais_core::definition::PreGeneralization;
use pais_core::definition::json::escape;
use pais_core::definition::{ColumnKind, ColumnRole, Job, JobError, JobErrorKind};
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{
    ContinuedEnds, Domain, EncodedTable, QuasiIdentifier, ReleasedColumn, ReleasedTable,
    minimum_levels, pre_generalization_error,
};
use pais_core::taxonomy::pre_generalization::check_levels;
use pais_core::taxonomy::{Interval, MinimumLevels, Tree};

use crate::job_checks::first_set;

/// Height of the tree of a column without a taxonomy: `*` above its values.
const FLAT_HEIGHT: u32 = 1;

/// Checks a job's pre-generalization as far as possible without rows.
///
/// # Errors
/// [`JobErrorKind::Shape`] for a key that is not a level, [`JobErrorKind::Unfit`] for a column,
/// level or value that does not exist.
pub(crate) fn check(schema: &Schema, job: &Job) -> Result<(), JobError> {
    let one_cut = is_one_cut(schema);
    for (name, description) in job.pre_generalization.iter().flatten() {
        let pointer = pointer(name);
        let spec = schema.stored_named(name);
        let spec = spec.filter(|spec| spec.role() == ColumnRole::QuasiIdentifier);
        let Some(spec) = spec else {
            let detail = "the dataset has no column of this name and the role `quasi_identifier`";
            return Err(JobError::at(JobErrorKind::Unfit, pointer, detail));
        };
        match spec.tree() {
            _ if spec.is_balanced() => {
                let detail = "the levels of a balanced hierarchy depend on the rows; give the column a \
                              hierarchy without `balance`";
                return Err(JobError::at(JobErrorKind::Unfit, pointer, detail));
            }
            Some(tree) => {
                let minimum_levels = MinimumLevels::new(tree, description);
                let minimum_levels =
                    minimum_levels.map_err(|error| pre_generalization_error(name, &error))?;
                if one_cut && minimum_levels.pruned(tree).is_none() {
                    return Err(root_beside_others(&pointer));
                }
                check_labels(spec, tree, &minimum_levels, &pointer)?;
            }
            // Its height and its leaves are known from the rows; a fault makes the job fail.
            None if spec.awaits_made_tree() => {}
            None if spec.has_grown_intervals() => {
                let detail = "a column of numbers or dates without a taxonomy has no tree to \
                              pre-generalize by; give it a taxonomy";
                return Err(JobError::at(JobErrorKind::Unfit, pointer, detail));
            }
            None => {
                let checked = check_levels(FLAT_HEIGHT, description);
                checked.map_err(|error| pre_generalization_error(name, &error))?;
                let other = (FLAT_HEIGHT - description.level.min(FLAT_HEIGHT)).to_string();
                let named = |values: &Vec<String>| !values.is_empty();
                if one_cut && description.values.get(&other).is_some_and(named) {
                    return Err(root_beside_others(&pointer));
                }
            }
        }
    }
    Ok(())
}

/// Whether each quasi-identifier is generalized along one cut of its tree, which is so without sets. With sets,
/// columns keep their trees, and pre-generalized values are a lower bound of the search.
fn is_one_cut(schema: &Schema) -> bool {
    first_set(schema).is_none()
}

fn pointer(column: &str) -> String {
    format!("/pre_generalization/{}", escape(column))
}

fn root_beside_others(pointer: &str) -> JobError {
    let detail = "some values would be generalized to the root of the column's tree and others to \
                  nodes below it, which is not a cut; choose lower levels, or name no values";
    JobError::at(JobErrorKind::Unfit, pointer, detail)
}

/// Checks that no label of a generalized item contains the column's separator: joined items would
/// be split into more items.
fn check_labels(
    spec: &SchemaColumn,
    tree: &Tree,
    minimum_levels: &MinimumLevels,
    pointer: &str,
) -> Result<(), JobError> {
    if spec.kind() != ColumnKind::Set {
        return Ok(());
    }
    let leaves = 0..tree.leaf_count() as u32;
    // A leaf label that contains the separator is not an item that a cell can contain.
    let mut inner = leaves
        .map(|leaf| (minimum_levels.level_of(leaf), tree.leaf(leaf)))
        .filter(|(floor, leaf)| floor != leaf)
        .map(|(floor, _)| &tree.node(floor).label);
    if inner.any(|label| label.contains(spec.separator())) {
        let detail = format!(
            "a label at this level contains the column's separator `{}`; declare another \
             `separator`",
            spec.separator()
        );
        return Err(JobError::at(JobErrorKind::Unfit, pointer, detail));
    }
    Ok(())
}

/// Returns a job's pre-generalization as published in a release; `None` if the job has none.
///
/// Only values that the release covers are listed: values whose label occurs in some row or, in
/// a declared taxonomy, the label of an ancestor. Others would name values that only raw rows
/// explain. A tree that is made from values is not declared.
pub(crate) fn published(
    schema: &Schema,
    job: &Job,
    released: &ReleasedTable,
) -> Option<BTreeMap<String, PreGeneralization>> {
    let mut published = job.pre_generalization.clone()?;
    for (name, description) in &mut published {
        let spec = schema.stored_named(name);
        let column = released.column(name);
        let shown = column.map(ReleasedColumn::shown_labels).unwrap_or_default();
        let declared = spec.filter(|spec| !spec.has_made_tree());
        let tree = declared.and_then(|spec| spec.tree().map(AsRef::as_ref));
        for values in description.values.values_mut() {
            values.retain(|value| is_covered(value, tree, &shown));
        }
        description.values.retain(|_, values| !values.is_empty());
    }
    Some(published)
}

/// Whether one of the labels is this value or, in a tree, an ancestor of it.
fn is_covered(value: &str, tree: Option<&Tree>, labels: &BTreeSet<&str>) -> bool {
    let Some((tree, leaf)) = tree.and_then(|tree| Some((tree, tree.find(value)?))) else {
        return labels.contains(value);
    };
    let mut path = tree.to_root(leaf);
    path.any(|node| labels.contains(&*tree.node(node).label))
}

/// Lets the intervals of numbers end where those of a continued cut end, and elsewhere only below that cut.
fn end_as_continued(domain: &mut Domain, labels: &[String], goes_below: bool) {
    let Domain::Numeric { scale, ends, .. } = domain else {
        return;
    };
    let intervals = labels
        .iter()
        .filter_map(|label| Interval::parse_on(label, *scale));
    let intervals: Vec<Interval> = intervals.collect();
    let starts = intervals.iter().map(|interval| interval.lo);
    let open_ends = intervals.iter().filter(|interval| !interval.closed);
    let mut all: Vec<f64> = starts
        .chain(open_ends.map(|interval| interval.hi))
        .collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    // The least one is where the outermost interval begins.
    let all = all.into_iter().skip(1).collect();
    *ends = Some(ContinuedEnds {
        ends: all,
        goes_below,
    });
}

/// The pre-generalization of a table: the generalization of each leaf, and the original columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct PreGeneralized {
    minimum_levels: BTreeMap<Box<str>, MinimumLevels>,
    raw: Vec<QuasiIdentifier>,
}

impl PreGeneralized {
    /// Applies a job's pre-generalization to an encoded table. Without sets its columns are replaced
    /// by generalized ones, with pruned trees.
    ///
    /// # Errors
    /// [`JobErrorKind::Unfit`] for values that a column without a taxonomy does not have.
    pub(crate) fn new(
        schema: &Schema,
        job: &Job,
        table: &mut EncodedTable,
    ) -> Result<Self, JobError> {
        let one_cut = is_one_cut(schema);
        let minimum_levels = minimum_levels(job, schema, table)?;
        let mut raw = Vec::new();
        for column in &mut table.quasi_identifiers {
            if let Some(cut) = &job.continued_cut
                && let Some(labels) = cut.labels.get(&*column.name)
            {
                end_as_continued(&mut column.domain, labels, cut.goes_below);
            }
        }
        for column in table.quasi_identifiers.iter_mut().filter(|_| one_cut) {
            let (Some(minimum_levels), Domain::Taxonomy(tree)) =
                (minimum_levels.get(&column.name), &column.domain)
            else {
                continue;
            };
            let (pruned, map) = minimum_levels
                .pruned(tree)
                .ok_or_else(|| root_beside_others(&pointer(&column.name)))?;
            let generalized = QuasiIdentifier {
                name: column.name.clone(),
                position: column.position,
                codes: column.codes.renamed(&map),
                domain: Domain::Taxonomy(pruned.into()),
            };
            raw.push(std::mem::replace(column, generalized));
        }
        Ok(Self {
            minimum_levels,
            raw,
        })
    }

    /// The generalization of each leaf of a column; `None` if the leaves are not generalized.
    pub(crate) fn minimum_levels(&self, column: &str) -> Option<&MinimumLevels> {
        self.minimum_levels.get(column)
    }

    /// A column of the table before pre-generalization.
    pub(crate) fn raw<'a>(&'a self, column: &'a QuasiIdentifier) -> &'a QuasiIdentifier {
        let same = |raw: &&QuasiIdentifier| raw.position == column.position;
        self.raw.iter().find(same).unwrap_or(column)
    }
}
