//! Top-down specialization as a method: LKC-privacy and its special cases by one cut per column.

use std::time::Duration;

use pais_core::definition::{
    ColumnRole, Job, JobError, JobErrorKind, Objective, SplitRule, SuppressionFor,
};
use pais_core::model::{Lkc, PrivacyModel};
use pais_core::schema::Schema;
use pais_core::subsets::choose;
use pais_core::table::{Domain, EncodedTable};
use pais_core::taxonomy::NodeId;

use super::counted::CountedTable;
use super::frequencies::Rounds;
use super::requirement::Requirement;
use super::search::{self, SpecializationSettings, SpecializationTask};
use super::sensitive::SensitiveSlots;
use super::thorough::{self, Effort};
use super::topmost::{self, Draw};
use super::{group_index, replay};
use crate::error::RunError;
use crate::job_checks::{check_global, check_no_weights, check_some, first_set, unfit};
use crate::method::{Candidate, Method, Planned, SearchOutcome};
use crate::methods::bounded_values::bounded_values;
use crate::observer::Observer;
use crate::prepared::PreparedTable;
use crate::row_counter::CountedRows;
use crate::row_order::{Purpose, RowDraw};
use crate::step::StepRecord;
use crate::{memory, pre_generalization};

/// Maximum product of subsets of quasi-identifiers and rows that a search and its verification may have to
/// count: hours on a large machine. Most are never counted, since subsets share their prefixes
/// and groups below *K* end them.
const MOST_WORK: u64 = 1 << 50;

/// Maximum number of counters of a column's values by class that a run keeps, 8 bytes each.
const CLASS_COUNTERS: usize = 1 << 25;

/// Top-down specialization under the parameters of one job.
struct Specialization {
    model: Lkc,
    settings: SpecializationSettings,
    /// The time limit of a thorough search; `None` where the search is greedy.
    thorough: Option<Duration>,
    /// In the declared order.
    quasi_identifiers: Vec<Box<str>>,
    /// In the declared order.
    sensitive: Vec<Box<str>>,
}

/// Takes LKC-privacy and its special cases.
pub(crate) fn plan(schema: &Schema, job: &Job, model: &PrivacyModel) -> Planned {
    let PrivacyModel::Lkc(model) = model else {
        return Ok(None);
    };
    check_columns(schema, job)?;
    let quasi_identifiers = schema.names(ColumnRole::QuasiIdentifier);
    check_some(&quasi_identifiers, job)?;
    let sensitive = schema.names(ColumnRole::Sensitive);
    let settings = settings(schema, job)?;
    if job.thorough.is_some() && settings.objective == Objective::DiscernibilityEq4 {
        return Err(unfit(
            "/utility/objective",
            "`discernibility_eq4` orders specializations and measures no table, so a thorough \
             search has nothing to minimize; choose `discernibility`, `ncp` or `classification`",
        ));
    }
    Ok(Some(Box::new(Specialization {
        model: model.clone(),
        settings,
        thorough: job.thorough,
        quasi_identifiers,
        sensitive,
    })))
}

impl Specialization {
    /// *L*, at most the number of quasi-identifiers.
    fn known_values(&self) -> usize {
        let width = self.quasi_identifiers.len();
        self.model.l.map_or(width, |l| width.min(l.get() as usize))
    }

    /// Bytes of the index of the groups, if rows may be suppressed.
    fn index_bytes(&self, rows: u64) -> u64 {
        if self.settings.suppression_limit.floor_of(rows) == 0 {
            return 0;
        }
        let (width, l) = (self.quasi_identifiers.len(), self.known_values());
        let subsets = choose(width, l);
        let most = (group_index::MAX_ENTRIES as u64).max(rows);
        let entries = subsets.saturating_mul(rows).min(most);
        // A group has at least K rows.
        let groups = subsets.saturating_mul(rows / self.model.k.get()).min(most);
        // The values of each part, its groups under the prefixes of a subset, and its shares.
        let part = 64 + 4 * (width + l) as u64;
        entries
            .saturating_mul(4)
            .saturating_add(groups.saturating_mul(17))
            .saturating_add(rows.saturating_mul(part))
    }

    /// Whether a run over this many rows can be expected to end.
    fn check_work(&self, rows: u64) -> Result<(), JobError> {
        let (width, l) = (self.quasi_identifiers.len(), self.known_values());
        let fits = |l: usize| choose(width, l).saturating_mul(rows) <= MOST_WORK;
        if fits(l) {
            return Ok(());
        }
        // Small ones fit before great ones do, and the greatest of all is k-anonymity.
        let feasible = (1..l).rev().find(|&l| fits(l));
        let advice = feasible.map_or_else(String::new, |l| format!("lower `l` to {l}, "));
        let detail = format!(
            "an adversary who knows {l} of {width} values may know {} sets of columns, too many to \
             count over {rows} rows; {advice}raise it to {width}, which is one set, or give fewer \
             columns the role `quasi_identifier`",
            choose(width, l)
        );
        let kind = JobErrorKind::LimitExceeded;
        Err(JobError::at(kind, "/privacy/l", detail))
    }
}

impl Method for Specialization {
    fn bytes_needed(&self, schema: &Schema, rows: u64, searches: u64) -> Result<u64, JobError> {
        self.check_work(rows)?;
        let codes = memory::code_bytes(schema);
        let attributes = self.quasi_identifiers.len() as u64;
        // Where the adversary knows all attributes, a partition has at least K rows.
        let knows_all = (self.model.l).is_none_or(|known| u64::from(known.get()) >= attributes);
        let least = if knows_all { self.model.k.get() } else { 1 };
        let partitions = (rows / least).saturating_mul(attributes * 12 + 96);
        // The rows of an interval by partition and number, as they are counted and as they are
        // gathered.
        let points = match self.settings.split {
            SplitRule::BestValid => 80,
            SplitRule::Fixed => 0,
        };
        // A row's place in the order and while it is moved there, the code of its sensitive values,
        // and what is known of each of those.
        let sensitive = 16 * (self.sensitive.len() as u64).max(1);
        // The person of each row, and the persons of the parts that a candidate would make.
        let persons = if schema.subject().is_some() { 16 } else { 0 };
        // The distinct rows, by column too, and the cuts that the chains compare.
        let thorough = match self.thorough {
            Some(_) => 80 + 16 * attributes,
            None => 0,
        };
        let row = 8 + sensitive + points + persons + thorough;
        let search = rows.saturating_mul(row).saturating_add(partitions);
        let search = search.saturating_add(self.index_bytes(rows));
        let searched = rows.saturating_mul(codes + 8);
        let searched = searched.saturating_add(search.saturating_mul(searches));
        Ok(searched.max(memory::release_codes(schema, rows, rows / least)))
    }

    fn search(
        &self,
        input: &PreparedTable,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError> {
        check_classes(input)?;
        let table = &input.table;
        let requirement = Requirement::of_model(&self.model, table);
        let suppression_for = self.settings.suppression_for;
        let mut draw = match suppression_for {
            SuppressionFor::SizeAndConfidence => {
                let mut draw = RowDraw::new(&input.order, Purpose::Suppression)?;
                Some(move |count| draw.below(count))
            }
            SuppressionFor::Size => None,
        };
        let draw = draw.as_mut().map(|draw| draw as &mut Draw<'_>);
        let task = SpecializationTask {
            table,
            requirement: &requirement,
            settings: self.settings,
            node_ncp: &node_ncp(&input.schema, table),
            above_first_cut: &above_first_cut(input),
            observer,
        };
        let steps = match self.thorough {
            None => search::search(task, draw),
            Some(limit) => {
                let effort = Effort {
                    limit,
                    iterations: usize::MAX,
                    seed: input.job.seed.unwrap_or_default(),
                };
                thorough::search(task, draw, effort)
            }
        };
        steps.map(SearchOutcome::new)
    }

    fn search_counts(
        &self,
        input: &PreparedTable,
        counts: CountedRows<'_>,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError> {
        check_classes(input)?;
        let values = &*input.table;
        let requirement = Requirement::of_model(&self.model, values);
        let bounded = bounded_values(&self.model, values);
        let slot_columns: Vec<usize> = bounded.map(|(column, _)| column.position).collect();
        let rows_of = slot_columns.iter().map(|&column| &*counts.rows_of[column]);
        let rows_of: Vec<&[u64]> = rows_of.collect();
        let sensitive = SensitiveSlots::of_values(&requirement, &rows_of);
        topmost::check(counts.rows, &requirement, &sensitive)?;
        let source = CountedTable {
            values,
            rows_of: counts.rows_of,
            rows: counts.rows,
            sensitive: &sensitive,
            slot_columns,
            class_column: input.schema.stored_with(ColumnRole::Class).first().copied(),
            counter: counts.counter,
        };
        let task = SpecializationTask {
            table: values,
            requirement: &requirement,
            settings: self.settings,
            node_ncp: &node_ncp(&input.schema, values),
            above_first_cut: &above_first_cut(input),
            observer,
        };
        let rounds = Rounds {
            source: &source,
            budget: counts.budget,
        };
        search::search_over(task, &sensitive, rounds).map(SearchOutcome::new)
    }

    fn build(
        &self,
        input: &PreparedTable,
        outcome: &SearchOutcome,
        step: u32,
    ) -> Result<Candidate, RunError> {
        let steps: &Vec<StepRecord> = outcome.of()?;
        let table = &input.table;
        let cuts = replay::cuts_at(table, steps, step)?;
        let mut kept = vec![true; table.rows];
        for record in steps.iter().filter(|record| record.item.step <= step) {
            for &row in &record.suppressed {
                kept[row as usize] = false;
            }
        }
        let rows = input.released_rows(step, |row| kept[row as usize])?;
        Ok(Candidate::of_cuts(input, cuts, Vec::new(), rows))
    }
}

/// Whether the class column has few enough values to be counted by value of a quasi-identifier.
fn check_classes(input: &PreparedTable) -> Result<(), RunError> {
    let Some(class) = &input.table.class else {
        return Ok(());
    };
    let raw = |column| input.pre_generalization.raw(column).domain.code_count();
    let columns = input.table.quasi_identifiers.iter();
    let widest = columns.map(raw).max();
    let widest = widest.unwrap_or(0);
    if widest.saturating_mul(class.classes) <= CLASS_COUNTERS {
        return Ok(());
    }
    Err(RunError::limit_exceeded(format!(
        "the class column has about {} values, too many to count beside the {widest} of a \
         quasi-identifier; give it fewer, or give it the role `insensitive`",
        class.classes
    )))
}

/// By quasi-identifier, whether the nodes of its taxonomy are above labels of the continued cut that the
/// search goes below; empty where there is none.
fn above_first_cut(input: &PreparedTable) -> Vec<Vec<bool>> {
    let cut = input.job.continued_cut.as_ref();
    let Some(cut) = cut.filter(|cut| cut.goes_below) else {
        return Vec::new();
    };
    let columns = input.table.quasi_identifiers.iter();
    let is_above = columns.map(|column| match &column.domain {
        Domain::Taxonomy(tree) => {
            let mut is_above = vec![false; tree.nodes().len()];
            let labels = cut.labels.get(&*column.name).into_iter().flatten();
            for label in labels.filter_map(|label| tree.find(label)) {
                let parent = |node: &NodeId| tree.node(*node).parent;
                for node in std::iter::successors(parent(&label), parent) {
                    is_above[node.index()] = true;
                }
            }
            is_above
        }
        Domain::Numeric { .. } => Vec::new(),
    });
    is_above.collect()
}

/// By quasi-identifier, the NCP of each node of its taxonomy; empty for a column without one.
pub(super) fn node_ncp(schema: &Schema, table: &EncodedTable) -> Vec<Vec<f64>> {
    let stored: Vec<_> = schema.stored().collect();
    let columns = table.quasi_identifiers.iter();
    let node_ncp = columns.map(|column| match &column.domain {
        Domain::Taxonomy(tree) => {
            let kind = stored.get(column.position).map(|spec| spec.kind());
            pais_measure::node_ncp(tree, kind.unwrap_or_default())
        }
        Domain::Numeric { .. } => Vec::new(),
    });
    node_ncp.collect()
}

fn check_columns(schema: &Schema, job: &Job) -> Result<(), JobError> {
    check_global(job)?;
    if let Some(column) = first_set(schema) {
        return Err(unfit(
            "/privacy/model",
            format!(
                "this model cannot take the set-valued quasi-identifier `{}`; `lkc`, \
                 `k_anonymity` and `k_m_anonymity` can",
                column.name()
            ),
        ));
    }
    check_no_weights(job)?;
    pre_generalization::check(schema, job)
}

fn settings(schema: &Schema, job: &Job) -> Result<SpecializationSettings, JobError> {
    let has_class = schema
        .stored()
        .any(|column| column.role() == ColumnRole::Class);
    let default = if has_class {
        Objective::Classification
    } else {
        Objective::Discernibility
    };
    let objective = job.objective.unwrap_or(default);
    if objective == Objective::Classification && !has_class {
        return Err(unfit(
            "/utility/objective",
            "`classification` needs a column of the role `class`; give one, or choose \
             `discernibility` or `ncp`",
        ));
    }
    Ok(SpecializationSettings {
        objective,
        split: job.split.unwrap_or_default(),
        suppression_limit: job.suppression_limit,
        suppression_for: job.suppression_for(),
    })
}
