//! Warnings about quasi-identifiers that a run leaves at their topmost value.

use std::collections::HashSet;

use pais_core::definition::ColumnKind;
use pais_core::schema::Schema;
use pais_core::table::{Domain, EncodedTable, Form, ReleasedColumn, ReleasedTable};
use pais_core::taxonomy::NodeId;
use pais_core::warning::{Warning, WarningCode, by_code};

use crate::step::StepRecord;

/// The quasi-identifiers that have their topmost value in every row of a release: the root of their
/// taxonomy, one interval, or sets without items. The release itself shows this. `schema` is that of
/// the release.
pub(crate) fn of_release(
    table: &EncodedTable,
    schema: &Schema,
    released: &ReleasedTable,
) -> Vec<Warning> {
    let columns = released.columns.iter();
    let at_top = columns.filter(|released| is_released_at_top(table, schema, released));
    by_code(at_top.map(|released| warning(&released.name)))
}

/// The quasi-identifiers that no step of a run specializes; none for a method without steps.
pub(crate) fn of_steps(table: &EncodedTable, steps: &[StepRecord]) -> Vec<Warning> {
    if steps.is_empty() || table.rows == 0 {
        return Vec::new();
    }
    let specialized = steps
        .iter()
        .filter_map(|step| step.item.attribute.as_deref());
    let specialized: HashSet<&str> = specialized.collect();
    let columns = table.quasi_identifiers.iter();
    let at_top = columns.filter(|column| {
        let is_general = match &column.domain {
            Domain::Taxonomy(tree) => !tree.node(NodeId::ROOT).children.is_empty(),
            Domain::Numeric { lo, hi, .. } => lo < hi,
        };
        is_general && !specialized.contains(&*column.name)
    });
    by_code(at_top.map(|column| warning(&column.name)))
}

fn is_released_at_top(table: &EncodedTable, schema: &Schema, released: &ReleasedColumn) -> bool {
    let column = &released.column;
    let Some((first, others)) = column.codes.split_first() else {
        return false;
    };
    if others.iter().any(|code| code != first) {
        return false;
    }
    let label = column.text(0);
    let mut relational = table.quasi_identifiers.iter();
    match released.form {
        Form::Generalized => {
            let found = relational.find(|column| column.name == released.name);
            match found.map(|column| &column.domain) {
                Some(Domain::Taxonomy(tree)) => {
                    let spec = schema.stored_named(&released.name);
                    let made = spec.filter(|spec| spec.has_made_tree());
                    if made.is_some_and(|spec| spec.kind() == ColumnKind::Numeric) {
                        // How wide the others would be is not in the release.
                        return label.is_some_and(|label| label.starts_with('['));
                    }
                    let tree = made.and_then(|spec| spec.tree()).unwrap_or(tree);
                    let root = tree.node(NodeId::ROOT);
                    !root.children.is_empty() && label == Some(&*root.label)
                }
                // A single number or date is written without brackets.
                Some(Domain::Numeric { .. }) => label.is_some_and(|label| label.starts_with('[')),
                None => false,
            }
        }
        Form::Set { .. } => {
            let is_quasi_identifier = table.sets.iter().any(|set| set.name == released.name);
            is_quasi_identifier && label.is_none_or(str::is_empty)
        }
        Form::Text | Form::Number | Form::Integer | Form::Day | Form::Moment => false,
    }
}

fn warning(column: &str) -> Warning {
    let detail = format!(
        "the quasi-identifier `{column}` stays at its topmost value in every row, so it says nothing \
         about them; give it a hierarchy that divides the rows more evenly at the top, leave out \
         columns that recipients do not need (role `identifier`), or ask for less (a smaller K or L, \
         a greater C)"
    );
    Warning::new(WarningCode::ColumnAtTop, detail).of_columns([column])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pais_core::schema::Schema;
    use pais_core::warning::WarningCode;
    use pais_io::read::csv;
    use serde_json::json;

    use crate::test_data::job_of;
    use crate::{AnonymizationRun, Unobserved};

    /// Ages that differ, cities of which one has a single row, and one job.
    const CSV: &str = "age,city,job\n21,Ulm,Mover\n25,Ulm,Mover\n71,Ulm,Mover\n78,Kiel,Mover\n";

    /// The columns that warnings of the search and of the release say stay at their topmost value.
    fn at_top(k: u64, recoding: &str) -> [Vec<String>; 2] {
        let definition = json!({"name": "t", "columns": [
            {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
            {"name": "city", "role": "quasi_identifier"},
            {"name": "job", "role": "insensitive"}]});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let job = json!({"privacy": {"model": "k_anonymity", "k": k}, "recoding": recoding});
        let job = job_of(job).unwrap();
        let table = csv::read_table(&schema, CSV.as_bytes()).unwrap();
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(Arc::new(schema), job, table, &observer).unwrap();
        let steps = run.search(&observer).unwrap();
        let release = run.release(&steps, None, &observer).unwrap();
        [run.warnings_after(&steps), release.warnings].map(|warnings| {
            let at_top = warnings.into_iter();
            let at_top = at_top.filter(|it| it.code == WarningCode::ColumnAtTop);
            at_top.flat_map(|warning| warning.columns).collect()
        })
    }

    #[test]
    fn a_column_that_is_never_specialized_is_named() {
        assert_eq!(at_top(2, "global"), [vec!["city"], vec!["city"]]);
        assert_eq!(
            at_top(4, "global"),
            [vec!["age", "city"], vec!["age", "city"]]
        );
    }

    #[test]
    fn a_local_release_is_judged_by_its_labels() {
        let [of_search, of_release] = at_top(4, "local");
        assert_eq!(of_search, Vec::<String>::new());
        assert_eq!(of_release, ["age", "city"]);
        let [_, of_release] = at_top(2, "local");
        assert!(!of_release.contains(&"age".to_owned()), "{of_release:?}");
    }
}
