//! A run over a table that is not in memory: its distinct values are, and an engine counts its rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use pais_core::definition::{Job, JobError, Recoding};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{Column, EncodedTable, NULL_CODE, ReleasedTable, Table};
use pais_core::warning::Warning;
use pais_measure::{CountedRelease, Report};
use pais_verify::{DistinctRelease, ReleaseError, ReleaseVerification, StreamedVerification};
use zeroize::Zeroizing;

use crate::error::RunError;
use crate::gate;
use crate::job_checks::first_set;
use crate::method::{Method, SearchOutcome};
use crate::observer::{Observer, Phase};
use crate::outcome_warnings;
use crate::plan::JobPlan;
use crate::pre_generalization::PreGeneralized;
use crate::prepared::PreparedTable;
use crate::row_counter::{CountedRows, RowCounter, needs_rows};
use crate::row_order::{OrderSource, Purpose, RowDraw};
use crate::run::{of_job, schema_of_job, unmeasured};

/// The distinct values of a column; a value's number is its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnValues {
    /// The texts; `None` for null cells.
    pub values: Vec<Option<Box<str>>>,
    /// Rows by value.
    pub rows: Vec<u64>,
}

/// What is known about a table whose rows are elsewhere.
#[derive(Clone, Debug)]
pub struct DistinctValues {
    /// Of each stored column.
    pub columns: Vec<ColumnValues>,
    /// Number of rows.
    pub rows: u64,
    /// A digest of all rows, on which the order of a seeded release depends.
    pub digest: [u8; 32],
}

/// A job over a table of which only the distinct values are in memory.
///
/// It takes global recoding by `lkc` and its special cases, without suppression, sets and persons. Its
/// steps are those of [`crate::AnonymizationRun`] over the same rows.
pub struct CountedRun {
    method: Box<dyn Method>,
    /// A row for each number of a value, in all columns at once.
    values: PreparedTable,
    rows_of: Vec<Vec<u64>>,
    rows: u64,
}

/// The release of distinct values.
#[derive(Clone, Debug)]
pub struct RecodedValues {
    /// A row for each number of a value, with the label that the value is released as.
    pub table: ReleasedTable,
    /// The step that the table follows.
    pub step: u32,
    /// Column to the labels of its cut.
    pub cut: BTreeMap<String, Vec<String>>,
}

impl CountedRun {
    /// Refuses a job that needs its rows in memory, or whose release does, before any row is read.
    ///
    /// # Errors
    /// [`pais_core::definition::JobErrorKind::Unfit`] with what an executor does not take.
    pub fn check(declared: &Schema, job: &Job) -> Result<(), JobError> {
        let plan = JobPlan::new(declared, job)?;
        let schema = plan.schema(declared);
        let refuse =
            |pointer: &str, what: &str, change: &str| Err(needs_rows(pointer, what, change));
        if !matches!(job.model, PrivacyModel::Lkc(_)) {
            return refuse(
                "/privacy/model",
                "the models of groups and of sets",
                "choose `lkc`, `k_anonymity`, `alpha_k` or `confidence_bounding`",
            );
        }
        if job.suppression_limit.floor_of(u64::from(u32::MAX)) > 0 {
            let what = "a `suppression_limit` above 0";
            return refuse("/suppression_limit", what, "set it to 0");
        }
        if job.recoding == Some(Recoding::Local) {
            return refuse("/recoding", "`recoding: local`", "choose `global`");
        }
        if first_set(schema).is_some() {
            return refuse(
                "/dataset_id",
                "a set-valued quasi-identifier",
                "declare another dataset without the column",
            );
        }
        if schema.subject().is_some() {
            return refuse(
                "/dataset_id",
                "a column of the role `subject`",
                "declare another dataset, with one row for each person",
            );
        }
        if schema.has_made_hierarchies() {
            return refuse(
                "/dataset_id",
                "a hierarchy that is made from the rows",
                "declare a taxonomy of the values",
            );
        }
        if job.thorough.is_some() {
            return refuse("/utility/search", "a thorough search", "leave it out");
        }
        // Its release is verified while it is read.
        let verification = StreamedVerification::new(declared, job, 0);
        match verification.and_then(|verification| verification.can_compare()) {
            Ok(()) => Ok(()),
            Err(ReleaseError::Job(error)) => Err(error),
            Err(ReleaseError::NeedsAllRows(what)) => refuse("/executor", what, "change the job"),
            Err(error) => refuse("/executor", &error.to_string(), "change the job"),
        }
    }

    /// Encodes the distinct values for a job.
    ///
    /// # Errors
    /// As [`Self::check`] and [`crate::AnonymizationRun::new`].
    pub fn new(
        schema: Arc<Schema>,
        job: Job,
        values: &DistinctValues,
        observer: &dyn Observer,
    ) -> Result<Self, RunError> {
        Self::check(&schema, &job)?;
        let JobPlan { method, .. } = JobPlan::new(&schema, &job)?;
        let (table, rows_of) = table_of(&values.columns);
        let schema = schema_of_job(schema, &job, &table)?;
        // Refuses a run that cannot be expected to end.
        method.bytes_needed(&schema, values.rows, 1)?;
        let order = OrderSource::of_digest(&job, values.digest)?;
        let mut table = EncodedTable::new(&schema, table);
        observer.check()?;
        let pre_generalization = PreGeneralized::new(&schema, &job, &mut table)?;
        let input = PreparedTable {
            model: schema.privacy_model(&job)?,
            schema,
            job,
            table: Arc::new(table),
            value_counts: Arc::default(),
            pre_generalization: Arc::new(pre_generalization),
            exact: Arc::default(),
            order,
            cancellation: observer.cancellation().clone(),
        };
        Ok(Self {
            method,
            values: input,
            rows_of,
            rows: values.rows,
        })
    }

    /// The same run with the secret of its dataset; see [`crate::AnonymizationRun::with_order_key`].
    pub fn with_order_key(mut self, key: Zeroizing<[u8; 32]>) -> Self {
        self.values.order = self.values.order.with_key(key);
        self
    }

    /// The schema under the job's roles.
    pub fn schema(&self) -> &Schema {
        &self.values.schema
    }

    /// Searches for an anonymous table by counts of at most `budget` records, if that is enough to decide
    /// anything.
    ///
    /// # Errors
    /// As [`crate::AnonymizationRun::search`], and [`RunError::NotCounted`] where the counts contradict
    /// the table, or one another, several times in a row.
    pub fn search(
        &self,
        counter: &dyn RowCounter,
        budget: usize,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError> {
        observer.progress(Phase::Searching, 0.0);
        let counts = CountedRows {
            rows_of: &self.rows_of,
            rows: self.rows,
            counter,
            budget,
        };
        self.method.search_counts(&self.values, counts, observer)
    }

    /// What the distinct values are released as after the last step. The labels cover their values, each column
    /// is one cut, and readers get the labels as they are; whether the rows meet the model is decided by the
    /// verifier, on the files.
    ///
    /// # Errors
    /// [`RunError::NotVerified`] and [`RunError::Cancelled`].
    pub fn recode(
        &self,
        outcome: &SearchOutcome,
        observer: &dyn Observer,
    ) -> Result<RecodedValues, RunError> {
        let last = outcome.steps().last();
        let last = last.ok_or_else(|| RunError::internal("the search has no step"))?;
        let step = last.item.step;
        let in_order = PreparedTable {
            order: OrderSource::AsRead,
            ..self.values.clone()
        };
        let candidate = self.method.build(&in_order, outcome, step)?;
        observer.check()?;
        let (Some(table), Some(cut)) = (candidate.tables.into_iter().next(), candidate.cut) else {
            return Err(RunError::internal("there is no table with one cut"));
        };
        gate::check_labels(&in_order, &table, observer)?;
        Ok(RecodedValues { table, step, cut })
    }

    /// The report of written files, as far as it follows from their distinct rows. `distinct` and
    /// `verification` are what was found in the files, `singled_out` the insensitive columns with a value in
    /// one row only.
    ///
    /// # Errors
    /// [`RunError::Cancelled`], and [`RunError::Internal`] for groups that cannot be measured.
    pub fn measure(
        &self,
        recoded: &RecodedValues,
        distinct: &DistinctRelease,
        verification: &ReleaseVerification,
        singled_out: &[String],
        observer: &dyn Observer,
    ) -> Result<Report, RunError> {
        let finding = verification.privacy.as_ref();
        let PrivacyModel::Lkc(model) = &verification.model else {
            return Err(RunError::internal("the files have another model"));
        };
        let finding = finding.ok_or_else(|| RunError::internal("the files were not verified"))?;
        let (schema, job) = (&self.values.schema, &self.values.job);
        let release = CountedRelease {
            schema,
            distinct,
            model,
            finding,
            singled_out,
            unchanged: &verification.unchanged,
            cancellation: observer.cancellation(),
        };
        let report = Report::of_counted(&release).map_err(unmeasured)?;
        Ok(of_job(report, schema, job, &recoded.table))
    }

    /// The draws of the order of the released rows.
    ///
    /// # Errors
    /// [`RunError::Internal`] when the system has no random bytes.
    pub fn order(&self, step: u32) -> Result<RowDraw, RunError> {
        RowDraw::new(&self.values.order, Purpose::Rows { step })
    }

    /// What the holder should know about the job, without what the values of single columns say.
    pub fn warnings(&self) -> Vec<Warning> {
        self.values.job_warnings()
    }

    /// What the holder should know about the steps of a search.
    pub fn warnings_after(&self, outcome: &SearchOutcome) -> Vec<Warning> {
        outcome_warnings::of_steps(&self.values, self.rows, outcome.steps())
    }
}

/// A table with a row for each number of a value, and the rows of each value. A column with fewer values
/// repeats its first one in the remaining rows.
fn table_of(columns: &[ColumnValues]) -> (Table, Vec<Vec<u64>>) {
    let rows = columns.iter().map(|column| column.values.len()).max();
    let rows = rows.unwrap_or(0);
    let columns = columns.iter().map(|column| {
        let mut table = Column::default();
        for value in &column.values {
            table.codes.push(match value {
                None => NULL_CODE,
                Some(text) => {
                    table.dictionary.push(text.clone());
                    table.dictionary.len() as u32 - 1
                }
            });
        }
        let first = table.codes.first().copied().unwrap_or(NULL_CODE);
        table.codes.resize(rows, first);
        (table, column.rows.clone())
    });
    let (columns, rows_of) = columns.unzip();
    (Table { rows, columns }, rows_of)
}
