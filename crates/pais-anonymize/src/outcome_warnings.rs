//! Warnings about what a run has made of the rows: quasi-identifiers at their topmost value, quasi-identifiers
//! that are all as they were, and many rows left out.

use std::collections::HashSet;

use pais_core::definition::{ColumnKind, Output, SuppressionFor};
use pais_core::schema::Schema;
use pais_core::table::{
    Domain, EncodedTable, Form, Persons, ReleasedColumn, ReleasedTable, UnchangedColumn,
    row_warnings,
};
use pais_core::taxonomy::NodeId;
use pais_core::warning::{Warning, WarningCode, by_code};

use crate::prepared::PreparedTable;
use crate::step::StepRecord;

/// Rows that are left out are many if they are more than one of this number.
const FEW_OF: u64 = 10;

/// What the holder should know about a release: about the job and the released rows. `schema` is that of the
/// release, and `rows` are the raw rows of its first table.
pub(crate) fn release_warnings(
    input: &PreparedTable,
    schema: &Schema,
    tables: &[ReleasedTable],
    rows: &[u32],
) -> Vec<Warning> {
    let mut warnings = input.job_warnings();
    let for_confidence = input.job.suppression_for() == SuppressionFor::SizeAndConfidence;
    if rows.len() < input.table.rows && for_confidence {
        let detail = "rows were suppressed to reach the greatest confidence too: a reader who \
                      knows that a person is in the raw table and finds no such row in the \
                      release learns that the person's sensitive values were frequent among \
                      those alike";
        let code = WarningCode::SuppressedForConfidence;
        warnings.push(Warning::at(code, "/suppression_for", detail));
    }
    let of_row = input
        .table
        .subjects
        .as_deref()
        .map(|it| (it.select(rows), it.codes()));
    let persons = match &of_row {
        Some((of_row, codes)) => Persons::Named(of_row, *codes),
        None => Persons::Rows(rows.len()),
    };
    // The rows of sensitive tables are groups and values, not persons.
    let columns = tables.iter().take(1).flat_map(|table| &table.columns);
    let columns = columns.filter_map(|released| {
        let spec = input.schema.stored_named(&released.name)?;
        let is_unchanged = spec.is_unchanged();
        is_unchanged.then(|| UnchangedColumn::new(spec, &released.column, persons))
    });
    warnings.extend(row_warnings(&input.model, columns));
    let first = tables.iter().take(1);
    warnings.extend(first.flat_map(|table| of_release(input, schema, table)));
    let suppressed = input.table.rows - rows.len();
    warnings.extend(of_suppression(suppressed as u64, input.table.rows as u64));
    by_code(warnings)
}

/// About the quasi-identifiers of a release: those that have their topmost value in every row, the root of
/// their taxonomy, one interval, or sets without items; and whether all are as they were. The release itself
/// shows this. `schema` is that of the release.
fn of_release(input: &PreparedTable, schema: &Schema, released: &ReleasedTable) -> Vec<Warning> {
    let table = &input.table;
    let columns = released.columns.iter();
    let at_top = columns.filter(|released| is_released_at_top(table, schema, released));
    let at_top = at_top.map(|released| at_top_warning(&released.name));
    let mut generalized = released.columns.iter();
    // A cell of a set may have lost items.
    let is_raw = table.sets.is_empty()
        && generalized
            .all(|column| column.form != Form::Generalized || has_leaves(table, schema, column));
    by_code(at_top.chain(raw_warning(input, is_raw)))
}

/// About the last of the steps of a run on `rows` rows: the quasi-identifiers that none specializes, whether
/// all are as they were, and many rows left out; nothing for a method without steps.
pub(crate) fn of_steps(input: &PreparedTable, rows: u64, steps: &[StepRecord]) -> Vec<Warning> {
    let table = &input.table;
    let Some(last) = steps.last().filter(|_| table.rows > 0) else {
        return Vec::new();
    };
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
    let at_top = at_top.map(|column| at_top_warning(&column.name));
    let is_raw = table.sets.is_empty() && last.item.ncp == 0.0;
    let suppressed = of_suppression(last.item.suppressed_rows, rows);
    by_code(at_top.chain(raw_warning(input, is_raw)).chain(suppressed))
}

/// About rows that a run on `rows` rows left out, if they are many.
fn of_suppression(suppressed: u64, rows: u64) -> Option<Warning> {
    let share = suppressed as f64 / rows as f64 * 100.0;
    let detail = format!(
        "{suppressed} of {rows} rows ({share:.1} %) were left out, and they need not be like the others; a \
         smaller `suppression_limit` may lose less in all"
    );
    let code = WarningCode::ManyRowsSuppressed;
    let is_many = suppressed.saturating_mul(FEW_OF) > rows;
    is_many.then(|| Warning::at(code, "/suppression_limit", detail))
}

/// The warning if no quasi-identifier is generalized although rows are counted, not persons, and have to be
/// alike.
fn raw_warning(input: &PreparedTable, is_raw: bool) -> Option<Warning> {
    let counts_rows = input.schema.subject().is_none() && input.model.k().get() > 1;
    let is_warned = is_raw && counts_rows && input.job.output() == Output::Generalized;
    let detail = "no quasi-identifier was generalized: the raw rows already repeat in them as often as the model \
                  asks; if several rows can be of one person, declare that person's column as `subject`: a \
                  person's rows then count as one";
    is_warned.then(|| Warning::new(WarningCode::NothingGeneralized, detail))
}

/// Whether the values of a released column are all leaves of its domain. A made hierarchy is that of the release, so
/// that raw values which it does not show decide nothing.
fn has_leaves(table: &EncodedTable, schema: &Schema, released: &ReleasedColumn) -> bool {
    let spec = schema.stored_named(&released.name);
    let is_scaled = spec.is_some_and(|spec| spec.kind().scale().is_some());
    let made = spec.filter(|spec| spec.has_made_tree());
    let mut columns = table.quasi_identifiers.iter();
    let column = columns.find(|column| column.name == released.name);
    let mut labels = released.column.dictionary.iter();
    match column.map(|column| &column.domain) {
        Some(Domain::Taxonomy(tree)) => {
            let tree = made.and_then(|spec| spec.tree()).unwrap_or(tree);
            let is_leaf = |node| tree.node(node).children.is_empty();
            // A leaf of ranges is one.
            let is_raw = |label: &str| !label.starts_with('[') || !is_scaled;
            labels.all(|label| is_raw(label) && tree.find(label).is_some_and(is_leaf))
        }
        // A single number or date is written without brackets.
        Some(Domain::Numeric { .. }) => !labels.any(|label| label.starts_with('[')),
        None => true,
    }
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

fn at_top_warning(column: &str) -> Warning {
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

    /// The number of warnings with this code of the search and of the release of 40 rows, of which this many are
    /// alone in their city.
    fn warned(code: WarningCode, alone: usize, of: serde_json::Value) -> [usize; 2] {
        let mut columns = json!([
            {"name": "city", "role": "quasi_identifier"},
            {"name": "patient", "role": "insensitive"}]);
        columns[1]["role"] = of["patient"].clone();
        let definition = json!({"name": "t", "columns": columns});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let job = job_of(of["job"].clone()).unwrap();
        let mut csv = "city,patient\n".to_owned();
        for row in 0..40 {
            let city = if row < alone { row } else { 99 };
            csv += &format!("c{city},p{row}\n");
        }
        let table = csv::read_table(&schema, csv.as_bytes()).unwrap();
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(Arc::new(schema), job, table, &observer).unwrap();
        let steps = run.search(&observer).unwrap();
        let release = run.release(&steps, None, &observer).unwrap();
        let found = [run.warnings_after(&steps), release.warnings];
        found.map(|warnings| warnings.iter().filter(|it| it.code == code).count())
    }

    #[test]
    fn rows_that_are_alike_as_they_are_give_a_warning_unless_persons_are_counted() {
        let code = WarningCode::NothingGeneralized;
        let job = |k: u64, recoding: &str| {
            let model = json!({"model": "lkc", "l": 1, "k": k, "c": 1});
            json!({"privacy": model, "recoding": recoding})
        };
        let global = json!({"patient": "identifier", "job": job(2, "global")});
        assert_eq!(warned(code, 0, global.clone()), [1, 1]);
        let local = json!({"patient": "identifier", "job": job(2, "local")});
        assert_eq!(warned(code, 0, local), [0, 1]);
        let persons = json!({"patient": "subject", "job": job(2, "global")});
        assert_eq!(warned(code, 0, persons), [0, 0]);
        assert_eq!(warned(code, 1, global), [0, 0]);
    }

    #[test]
    fn more_than_a_tenth_of_the_rows_left_out_gives_a_warning() {
        let code = WarningCode::ManyRowsSuppressed;
        let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "suppression_limit": 0.5});
        let of = json!({"patient": "identifier", "job": job});
        assert_eq!(warned(code, 4, of.clone()), [0, 0]);
        assert_eq!(warned(code, 5, of), [1, 1]);
    }
}
