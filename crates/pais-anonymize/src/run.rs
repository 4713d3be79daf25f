//! From a raw table to a verified release: encoded once, searched once, released at any step.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use pais_core::definition::json::escape;
use pais_core::definition::{Job, JobError, JobErrorKind};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::schema::unfit_cells;
use pais_core::table::{ReleasedTable, Table};
use pais_core::taxonomy::MinimumLevels;
use pais_core::warning::Warning;
use pais_measure::{MeasuredRelease, Report, TableFigures, group_figures};
use pais_verify::VerifyError;
use zeroize::Zeroizing;

use crate::error::RunError;
use crate::gate::{self, VerifiedRelease, VerifiedTables};
use crate::method::{Method, SearchOutcome};
use crate::observer::{Observer, Phase, Unobserved};
use crate::plan::JobPlan;
use crate::prepared::PreparedTable;
use crate::redrawn::redraw;
use crate::row_order::OrderSource;
use crate::step::StepRecord;
use crate::{outcome_warnings, pre_generalization};

/// A raw table encoded for a job, and the method that anonymizes it.
///
/// The table is encoded once and searched once; each step can be released.
///
/// ```
/// # use std::sync::Arc;
/// use pais_anonymize::{AnonymizationRun, RunError, Unobserved};
/// # use pais_core::definition::{ColumnDefinition, Job};
/// # use pais_core::model::Lkc;
/// # use pais_io::read::csv;
/// # use pais_core::schema::Schema;
/// # let sex = ColumnDefinition::quasi_identifier("sex");
/// # let schema = Arc::new(Schema::builder().column(sex).build()?);
/// # let table = csv::read_table(&schema, "sex\nF\nM\nF\nM\n".as_bytes())?;
/// let job = Job::new(Lkc::k_anonymity(2)?);
///
/// // Four rows of a column `sex`, with 2-anonymity.
/// let observer = Unobserved::default();
/// let run = AnonymizationRun::new(schema, job, table, &observer)?;
/// let found = run.search(&observer)?;
/// // Step 0 is the topmost table; step 1 specializes `*` to F and M.
/// assert_eq!(found.steps().len(), 2);
/// assert_eq!(found.steps()[1].item.children, ["F", "M"]);
///
/// let last = run.release(&found, None, &observer)?;
/// assert_eq!((last.step, last.rows, last.tables().len()), (Some(1), 4, 1));
/// let topmost = run.release(&found, Some(0), &observer)?;
/// assert_eq!(topmost.cut.unwrap()["sex"], ["*"]);
/// let error = run.release(&found, Some(2), &observer).unwrap_err();
/// assert_eq!(error, RunError::NoSuchStep { step: 2, last: Some(1) });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AnonymizationRun {
    method: Box<dyn Method>,
    input: PreparedTable,
}

/// Anonymizes tables under one job: searches, and releases the last step.
///
/// The order of released rows is random; drawn from the job's seed where it has one.
///
/// ```
/// use pais_anonymize::{Anonymizer, RunError};
/// use pais_core::definition::ColumnDefinition;
/// use pais_core::model::Lkc;
/// use pais_io::read::csv;
/// use pais_core::schema::Schema;
///
/// let schema = Schema::builder()
///     .column(ColumnDefinition::quasi_identifier("sex"))
///     .build()?;
/// let table = csv::read_table(&schema, "sex\nF\nM\nF\n".as_bytes())?;
/// let release = Anonymizer::new(Lkc::k_anonymity(3)?).run(&schema, &table)?;
/// assert_eq!(release.cut.as_ref().unwrap()["sex"], ["*"]);
/// assert_eq!(release.report().utility.ncp, 1.0);
///
/// let error = Anonymizer::new(Lkc::k_anonymity(4)?).run(&schema, &table).unwrap_err();
/// assert!(matches!(error, RunError::NotAnonymizable { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Anonymizer(Job);

impl Anonymizer {
    /// Under a privacy model alone.
    pub fn new(model: impl Into<PrivacyModel>) -> Self {
        Self(Job::new(model))
    }

    /// Under a job.
    pub fn with_job(job: Job) -> Self {
        Self(job)
    }

    /// Anonymizes a table. [`AnonymizationRun`] does the same without copying the rows, with progress, and
    /// releases any step.
    ///
    /// # Errors
    /// [`RunError`]: the job does not fit the schema, or no generalization meets it.
    pub fn run(&self, schema: &Schema, table: &Table) -> Result<VerifiedRelease, RunError> {
        let (job, observer) = (self.0.clone(), &Unobserved::default());
        let schema = Arc::new(schema.clone());
        let run = AnonymizationRun::new(schema, job, table.clone(), observer)?;
        run.release(&run.search(observer)?, None, observer)
    }
}

impl AnonymizationRun {
    /// Encodes the rows for a job.
    ///
    /// # Errors
    /// [`RunError::Job`] for a job that does not fit the schema or whose work exceeds a limit,
    /// and [`RunError::Cancelled`].
    pub fn new(
        schema: Arc<Schema>,
        job: Job,
        table: Table,
        observer: &dyn Observer,
    ) -> Result<Self, RunError> {
        let JobPlan { method, .. } = JobPlan::new(&schema, &job)?;
        let schema = schema_of_job(schema, &job, &table)?;
        observer.check()?;
        let schema = if schema.has_made_hierarchies() {
            Arc::new(
                schema
                    .with_made_hierarchies(&table)
                    .map_err(RunError::unmade_hierarchy)?,
            )
        } else {
            schema
        };
        observer.check()?;
        Self::with_method(method, schema, job, table, observer)
    }

    /// Encodes the rows for a job that `method` runs.
    pub(crate) fn with_method(
        method: Box<dyn Method>,
        schema: Arc<Schema>,
        job: Job,
        table: Table,
        observer: &dyn Observer,
    ) -> Result<Self, RunError> {
        // Refuses a run that cannot be expected to end.
        method.bytes_needed(&schema, table.rows as u64, 1)?;
        let input = PreparedTable::new(schema, job, table, observer)?;
        observer.check()?;
        observer.progress(Phase::Reading, 1.0);
        Ok(Self { method, input })
    }

    /// The same encoded rows under other privacy parameters of the same method, such as another
    /// combination of a sweep; nothing is encoded again.
    ///
    /// # Errors
    /// As [`JobPlan::new`].
    pub(crate) fn with_job(&self, job: Job) -> Result<Self, RunError> {
        let JobPlan { method, .. } = JobPlan::new(&self.input.schema, &job)?;
        let input = PreparedTable {
            model: self.input.schema.privacy_model(&job)?,
            order: self.input.order.with_job(&job)?,
            job,
            ..self.input.clone()
        };
        Ok(Self { method, input })
    }

    /// The same run with the secret of its dataset, on which the order of a seeded release then depends. A run
    /// without one, such as that of the command line, has an order that follows from a guessed seed and the
    /// rows.
    pub fn with_order_key(mut self, key: Zeroizing<[u8; 32]>) -> Self {
        self.input.order = self.input.order.with_key(key);
        self
    }

    /// What the holder should know about the job and its rows.
    pub fn warnings(&self) -> Vec<Warning> {
        self.input.warnings()
    }

    /// What the holder should know about the steps of a search.
    pub fn warnings_after(&self, outcome: &SearchOutcome) -> Vec<Warning> {
        outcome_warnings::of_steps(&self.input, self.input.table.rows as u64, outcome.steps())
    }

    /// Searches for an anonymous table.
    ///
    /// # Errors
    /// [`RunError::NotAnonymizable`] with what would satisfy the model, and
    /// [`RunError::Cancelled`].
    pub fn search(&self, observer: &dyn Observer) -> Result<SearchOutcome, RunError> {
        observer.progress(Phase::Searching, 0.0);
        self.method.search(&self.input, observer)
    }

    /// The outcome of an earlier search over the same rows and job from its recorded steps, without
    /// a new search; a method without steps searches again.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub fn search_recorded(
        &self,
        steps: Vec<StepRecord>,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError> {
        if steps.is_empty() {
            self.search(observer)
        } else {
            Ok(SearchOutcome::new(steps))
        }
    }

    /// The figures of the table that was found: of the last step, or of the groups of a method
    /// without steps.
    ///
    /// # Errors
    /// [`RunError::Cancelled`].
    pub(crate) fn figures(
        &self,
        outcome: &SearchOutcome,
        observer: &dyn Observer,
    ) -> Result<TableFigures, RunError> {
        if let Some(last) = outcome.steps().last() {
            return Ok(TableFigures::from(&last.item));
        }
        let input = PreparedTable {
            order: OrderSource::AsRead,
            ..self.input.clone()
        };
        let mut candidate = self.method.build(&input, outcome, 0)?;
        // What is built after a request to stop is incomplete.
        observer.check()?;
        let redrawn = redraw(&input, &mut candidate)?;
        observer.check()?;
        let [table] = candidate.tables.as_slice() else {
            return Err(RunError::internal("there is not exactly one table"));
        };
        let subjects = input.table.subjects.as_deref();
        let cancellation = observer.cancellation();
        let figures = group_figures(table, subjects, &redrawn.schema, cancellation);
        figures.map_err(unmeasured)
    }

    /// The verified and measured tables after `step`, the last one when `None`.
    ///
    /// # Errors
    /// As [`Self::verify`].
    pub fn release(
        &self,
        outcome: &SearchOutcome,
        step: Option<u32>,
        observer: &dyn Observer,
    ) -> Result<VerifiedRelease, RunError> {
        let tables = self.verify(outcome, step, observer)?;
        let report = self.measure(outcome, &tables, observer)?;
        Ok(tables.with_report(report))
    }

    /// The verified tables after `step`, the last one when `None`. They can be packed while
    /// [`Self::measure`] measures them.
    ///
    /// # Errors
    /// [`RunError::NoSuchStep`], [`RunError::NotVerified`] and [`RunError::Cancelled`].
    pub fn verify(
        &self,
        outcome: &SearchOutcome,
        step: Option<u32>,
        observer: &dyn Observer,
    ) -> Result<VerifiedTables, RunError> {
        observer.progress(Phase::Verifying, 0.0);
        let last = outcome.steps().last().map(|record| record.item.step);
        if let Some(step) = step.filter(|&step| Some(step) > last) {
            return Err(RunError::NoSuchStep { step, last });
        }
        let step = step.or(last);
        let input = &self.input;
        let mut candidate = self.method.build(input, outcome, step.unwrap_or(0))?;
        // What is built after a request to stop is incomplete.
        observer.check()?;
        let redrawn = redraw(input, &mut candidate)?;
        gate::admit(input, candidate, redrawn, step, observer)
    }

    /// Measures tables that [`Self::verify`] has returned for the same outcome.
    ///
    /// # Errors
    /// [`RunError::Cancelled`].
    pub fn measure(
        &self,
        outcome: &SearchOutcome,
        verified: &VerifiedTables,
        observer: &dyn Observer,
    ) -> Result<Report, RunError> {
        let (input, candidate) = (&self.input, verified.candidate());
        let redrawn = verified.redrawn();
        let Some(table) = candidate.tables.first() else {
            return Err(RunError::internal("there is no table"));
        };
        let columns = input.table.quasi_identifiers.iter();
        let raw: Vec<_> = columns.map(|it| redrawn.raw(input, it)).collect();
        let sets = input.table.sets.iter();
        let sets: Vec<_> = sets.map(|it| redrawn.raw_set(it)).collect();
        let release = MeasuredRelease {
            schema: &redrawn.schema,
            raw: &input.table,
            quasi_identifiers: &raw,
            sets: &sets,
            exact: &input.exact,
            table,
            rows: &candidate.rows,
            model: &candidate.claim.model,
            recoding: candidate.claim.recoding,
            finding: verified.verification(),
            classes: verified.classes(),
            persons: verified.persons(),
            cancellation: observer.cancellation(),
        };
        let mut facts = if input.job.raw_figures {
            Some(self.method.facts(input, outcome)?)
        } else {
            None
        };
        let item_labels = input.table.sets.iter().filter_map(|set| {
            let labels = facts.as_ref()?.item_labels.get(&*set.name)?;
            Some((&*set.name, redrawn.item_labels(set, labels)?))
        });
        let item_labels: Vec<(&str, MinimumLevels)> = item_labels.collect();
        if let Some(facts) = &mut facts {
            let labels = item_labels.iter().map(|(name, labels)| (*name, labels));
            facts.item_labels.extend(labels);
        }
        let progress = |done: f64| observer.progress(Phase::Verifying, 0.7 + 0.3 * done);
        let report = pais_measure::measure(&release, facts.as_ref(), &progress);
        let report = report.map_err(unmeasured)?;
        Ok(of_job(report, &redrawn.schema, &input.job, table))
    }
}

/// The report with what the job says about its release. `table` has all labels that are released.
pub(crate) fn of_job(report: Report, schema: &Schema, job: &Job, table: &ReleasedTable) -> Report {
    // A reason for a column that is generalized has no effect.
    let unchanged = schema.stored().filter(|column| column.is_unchanged());
    let acknowledged: BTreeMap<String, String> = unchanged
        .filter_map(|column| job.acknowledged.get_key_value(column.name()))
        .map(|(column, reason)| (column.clone(), reason.clone()))
        .collect();
    Report {
        pre_generalization: pre_generalization::published(schema, job, table),
        acknowledged_unchanged: (!acknowledged.is_empty()).then_some(acknowledged),
        ..report
    }
}

pub(crate) fn unmeasured(error: VerifyError) -> RunError {
    match error {
        VerifyError::Stopped => RunError::Cancelled,
        _ => RunError::internal("the verified table cannot be measured"),
    }
}

/// The schema under the job's roles. The cells of a column with another role than declared are
/// checked again, because they were read under the declared one.
///
/// # Errors
/// For roles that do not fit the schema, and cells that do not fit a role.
pub(crate) fn schema_of_job(
    declared: Arc<Schema>,
    job: &Job,
    table: &Table,
) -> Result<Arc<Schema>, JobError> {
    let schema = match declared.with_roles(&job.roles)? {
        Cow::Borrowed(_) => return Ok(declared),
        Cow::Owned(schema) => schema,
    };
    let pairs = declared.stored().zip(schema.stored()).zip(&table.columns);
    for ((before, after), column) in pairs {
        if before.role() == after.role() {
            continue;
        }
        if let Some(unfit) = unfit_cells(after, column) {
            let pointer = format!("/roles/{}", escape(after.name()));
            let detail = format!("cells of the column do not fit this role: {}", unfit.detail);
            return Err(JobError::at(JobErrorKind::Unfit, pointer, detail));
        }
    }
    Ok(Arc::new(schema))
}
