//! A raw table encoded for a job.

use std::sync::Arc;

use pais_core::cancellation::Cancellation;
use pais_core::definition::{ColumnRole, Job, Output};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{
    EncodedTable, Positioned, Table, UnchangedColumn, ValueCounts, refuse_keys, row_warnings,
    unchanged_tells_hidden,
};
use pais_core::warning::{Warning, WarningCode, by_code};
use rayon::prelude::*;

use crate::error::RunError;
use crate::observer::Observer;
use crate::pre_generalization::PreGeneralized;
use crate::row_order::{OrderSource, Purpose};

/// A raw table encoded for a job; what methods and the gate work on. Clones share the rows.
#[derive(Clone)]
pub(crate) struct PreparedTable {
    pub(crate) schema: Arc<Schema>,
    pub(crate) job: Job,
    pub(crate) table: Arc<EncodedTable>,
    /// The value counts of the untouched columns of `table`, in their order.
    pub(crate) value_counts: Arc<Vec<ValueCounts>>,
    pub(crate) pre_generalization: Arc<PreGeneralized>,
    /// Quasi-identifiers as they were read, with their positions, if they are released unchanged.
    pub(crate) exact: Arc<Vec<Positioned>>,
    pub(crate) model: PrivacyModel,
    /// What the random orders of the run depend on.
    pub(crate) order: OrderSource,
    /// The request to stop the run. What is built after it is incomplete; the gate asks before it
    /// looks at a table.
    pub(crate) cancellation: Cancellation,
}

/// Checks that the cells of each column are leaves of its taxonomy, because they are encoded as leaves. Readers
/// check this, but rows that were stored under another taxonomy would be released as a value that they never
/// had.
fn check_leaves(schema: &Schema, table: &Table) -> Result<(), RunError> {
    for (spec, column) in schema.stored().zip(&table.columns) {
        let is_recoded = spec.role() == ColumnRole::QuasiIdentifier && spec.tree().is_some();
        if !is_recoded {
            continue;
        }
        let cells = column.dictionary.par_iter();
        if !cells.all(|cell| spec.is_generalized_as_missing(cell) || spec.check(cell).is_ok()) {
            let reason = "the stored rows of a column have a cell that is no leaf of its taxonomy; \
                          send the rows again to a new dataset";
            return Err(RunError::internal(reason));
        }
    }
    Ok(())
}

impl PreparedTable {
    /// Encodes the rows for a job.
    ///
    /// # Errors
    /// [`RunError::Job`] for a job that does not fit the rows, and [`RunError::Cancelled`].
    pub(crate) fn new(
        schema: Arc<Schema>,
        job: Job,
        table: Table,
        observer: &dyn Observer,
    ) -> Result<Self, RunError> {
        // A table that a program built can have several spellings of a value.
        let table = table.as_released(&schema);
        let model = schema.privacy_model(&job)?;
        let exact = match job.output() {
            Output::Anatomized => {
                let positions = schema.stored_with(ColumnRole::QuasiIdentifier);
                let column = |position: usize| Positioned {
                    position,
                    column: table.columns[position].clone(),
                };
                positions.into_iter().map(column).collect()
            }
            Output::Generalized => Vec::new(),
        };
        observer.check()?;
        let order = OrderSource::new(&job, &table, observer.cancellation())?;
        observer.check()?;
        check_leaves(&schema, &table)?;
        let mut table = EncodedTable::new(&schema, table);
        observer.check()?;
        let unchanged = UnchangedColumn::of(&schema, &table);
        let value_counts = unchanged.iter().map(|column| column.counts).collect();
        refuse_keys(unchanged, &job)?;
        observer.check()?;
        let pre_generalization = PreGeneralized::new(&schema, &job, &mut table)?;
        Ok(Self {
            schema,
            job,
            table: Arc::new(table),
            value_counts: Arc::new(value_counts),
            pre_generalization: Arc::new(pre_generalization),
            exact: Arc::new(exact),
            model,
            order,
            cancellation: observer.cancellation().clone(),
        })
    }

    /// The raw rows of a release after a step, in a random order: the raw order may disclose who they are.
    ///
    /// # Errors
    /// [`RunError::Internal`] when the system has no random bytes.
    pub(crate) fn released_rows(
        &self,
        step: u32,
        is_released: impl Fn(u32) -> bool,
    ) -> Result<Vec<u32>, RunError> {
        let rows = (0..self.table.rows as u32).filter(|&row| is_released(row));
        self.order.shuffled(Purpose::Rows { step }, rows.collect())
    }

    /// Names of the stored columns with a role, in the declared order.
    pub(crate) fn names(&self, role: ColumnRole) -> Vec<Box<str>> {
        self.schema.names(role)
    }

    /// What the holder should know about the job and the raw rows.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.job_warnings();
        let columns = UnchangedColumn::counted(&self.schema, &self.table, &self.value_counts);
        warnings.extend(row_warnings(&self.model, columns));
        // Anatomized output hides no quasi-identifier.
        if self.job.output() == Output::Generalized {
            let hidden = self.table.quasi_identifiers.iter();
            let hidden = hidden.map(|column| self.pre_generalization.raw(column));
            let found =
                unchanged_tells_hidden(&self.schema, &self.table, hidden, &self.cancellation);
            // A run that is to stop ends at its next step.
            warnings.extend(found.ok().flatten());
        }
        by_code(warnings)
    }

    pub(crate) fn job_warnings(&self) -> Vec<Warning> {
        let mut warnings = self.schema.model_warnings(&self.model);
        if matches!(&self.order, OrderSource::Seeded(seeded) if seeded.key.is_none()) {
            let detail = "the order of the released rows comes from `seed` and the rows alone; a \
                          seeded file is for tests, do not hand it out";
            warnings.push(Warning::at(WarningCode::SeededOrder, "/seed", detail));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::test_data::{job_of, load, schema};
    use crate::{AnonymizationRun, RunError, Unobserved};

    /// Rows that were stored before their column had the taxonomy, or by a reader that did not check them. They would
    /// be released as its first leaf.
    #[test]
    fn stored_cells_that_are_no_leaves_of_their_taxonomy_are_not_released() {
        let tree = json!({"label": "*", "children": [{"label": "A"}, {"label": "B"}]});
        for (kind, rows) in [
            ("categorical", "q\nA\nA\nZ\nZ\n"),
            ("set", "q\nA\nA|B\nA|Z\nZ\n"),
        ] {
            let column = json!({"name": "q", "kind": kind, "role": "quasi_identifier"});
            let mut with_tree = column.clone();
            with_tree["taxonomy"] = tree.clone();
            let table = load(&schema(json!([column])), rows.as_bytes());
            let job = job_of(json!({"privacy": {"model": "k_anonymity", "k": 2}})).unwrap();
            let schema = schema(json!([with_tree]));
            let run = AnonymizationRun::new(schema, job, table, &Unobserved::default());
            assert!(matches!(run, Err(RunError::Internal { .. })), "{kind}");
        }
    }

    /// Anatomized output has exact quasi-identifiers, so nothing can tell them.
    #[test]
    fn an_unchanged_column_that_tells_a_generalized_one_is_a_warning() {
        let columns = json!([
            {"name": "zip", "role": "quasi_identifier"},
            {"name": "town", "role": "insensitive"},
            {"name": "illness", "role": "sensitive"},
        ]);
        let row = |row: usize| format!("{},town {},{}\n", 80 + row % 5, row % 5, row % 3);
        let rows: String = (0..60).map(row).collect();
        let schema = schema(columns);
        let table = load(&schema, format!("zip,town,illness\n{rows}").as_bytes());
        for (output, level, is_warned) in [
            ("generalized", json!(null), true),
            (
                "generalized",
                json!({"zip": {"level": 1, "values": {}}}),
                true,
            ),
            ("anatomized", json!(null), false),
        ] {
            let privacy = json!({"model": "l_diversity", "k": 2, "l": 2});
            let privacy = match output {
                "anatomized" => privacy,
                _ => json!({"model": "k_anonymity", "k": 2}),
            };
            let job = json!({"privacy": privacy, "output": output, "pre_generalization": level});
            let observer = Unobserved::default();
            let job = job_of(job).unwrap();
            let run = AnonymizationRun::new(schema.clone(), job, table.clone(), &observer);
            let warnings = run.unwrap().warnings();
            let found = warnings.iter().filter(|it| it.columns == ["town", "zip"]);
            assert_eq!(found.count() == 1, is_warned, "{output}: {warnings:?}");
        }
    }
}
