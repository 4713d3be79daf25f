//! A job's pre-generalization on the columns of an encoded table.

use std::collections::BTreeMap;

use crate::definition::json::escape;
use crate::definition::{Job, JobError, JobErrorKind};
use crate::schema::Schema;
use crate::table::{Domain, EncodedTable, QuasiIdentifier};
use crate::taxonomy::{MinimumLevels, PreGeneralizationError};

/// The minimum generalization of each leaf, by column that a job pre-generalizes (*PGD* of the 2014 paper,
/// Section 4.1) or whose cut it continues. The table is encoded by the schema.
///
/// The levels of a made hierarchy are those of the tree that was searched. In the tree with the labels of its
/// release, a node is equally far above a value, but the longest path below it, and so its level, can differ.
///
/// # Errors
/// [`JobErrorKind::Unfit`] for a level or value that a column does not have,
/// [`JobErrorKind::Shape`] for a key that is not a level; with a pointer into the job.
pub fn minimum_levels(
    job: &Job,
    schema: &Schema,
    table: &EncodedTable,
) -> Result<BTreeMap<Box<str>, MinimumLevels>, JobError> {
    let mut minimum_levels = BTreeMap::new();
    for (name, description) in job.pre_generalization.iter().flatten() {
        let set = table.sets.iter().find(|column| *column.name == **name);
        let mut relational = table.quasi_identifiers.iter();
        let tree = match (set, relational.find(|column| *column.name == **name)) {
            (Some(set), _) => &set.tree,
            (None, Some(QuasiIdentifier { domain, .. })) => match domain {
                Domain::Taxonomy(tree) => tree,
                Domain::Numeric { .. } => continue,
            },
            (None, None) => continue,
        };
        let searched = schema
            .stored_named(name)
            .and_then(|spec| spec.searched.as_deref());
        let found = MinimumLevels::new(searched.unwrap_or(tree), description)
            .map_err(|error| pre_generalization_error(name, &error))?;
        let found = match searched {
            Some(searched) => found.as_far_above(searched, tree),
            None => found,
        };
        minimum_levels.insert(name.as_str().into(), found);
    }
    for column in &table.quasi_identifiers {
        let cut = job.continued_cut.as_ref().filter(|cut| !cut.goes_below);
        let labels = cut.and_then(|cut| cut.labels.get(&*column.name));
        let (Some(labels), Domain::Taxonomy(tree)) = (labels, &column.domain) else {
            continue;
        };
        let found = MinimumLevels::of_cut(tree, labels);
        let found = match minimum_levels.get(&column.name) {
            Some(levels) => levels.joined(&found, tree),
            None => found,
        };
        minimum_levels.insert(column.name.clone(), found);
    }
    Ok(minimum_levels)
}

/// The error of a column's pre-generalization, with a pointer into the job.
pub fn pre_generalization_error(column: &str, error: &PreGeneralizationError) -> JobError {
    let kind = match error {
        PreGeneralizationError::NoLevel { .. } => JobErrorKind::Shape,
        _ => JobErrorKind::Unfit,
    };
    let pointer = format!("/pre_generalization/{}{}", escape(column), error.pointer());
    JobError::at(kind, pointer, error.to_string())
}
