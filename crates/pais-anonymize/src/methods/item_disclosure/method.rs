//! Item disclosure as a method: k-anonymity, k^m-anonymity and LKC-privacy with sets.

use std::collections::BTreeMap;

use pais_core::definition::json::escape;
use pais_core::definition::{ColumnKind, ColumnRole, Job, JobError, JobErrorKind, Objective};
use pais_core::model::{MinimumAnonymity, PrivacyModel};
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{Column, EncodedTable, Form, Positioned, ReleasedColumn, SetColumn};
use pais_measure::MethodFacts;

use super::facts::search_facts;
use super::km::search_km;
use super::labels;
use super::outcome::{DisclosedSet, DisclosedTable};
use super::search::{DisclosureSettings, DisclosureTask, ThoroughSearch};
use crate::error::RunError;
use crate::job_checks::{check_global, check_greedy, first_set, is_set, unfit};
use crate::memory;
use crate::method::{Candidate, Method, Planned, SearchOutcome};
use crate::observer::Observer;
use crate::pre_generalization;
use crate::prepared::PreparedTable;

/// Maximum weight of a column; with a larger one, a sum of weighted shares would lose the others.
const GREATEST_WEIGHT: f64 = 1e6;

/// Bytes of a row for the list of its facts, and while rows are gathered by fact; a column adds 64
/// for up to 16 facts.
const FACT_ROW_BYTES: u64 = 96;

/// Seed of a thorough search whose job has none.
const SEARCH_SEED: u64 = 1;

/// A number of rows so large that every fraction that a job can give is at least one row.
const MANY_ROWS: u64 = u64::MAX;

/// Concurrent item disclosure under the parameters of one job.
struct ItemDisclosure {
    model: PrivacyModel,
    settings: DisclosureSettings,
}

/// Takes k-anonymity and LKC-privacy where a quasi-identifier is a set, and k^m-anonymity.
pub(crate) fn plan(schema: &Schema, job: &Job, model: &PrivacyModel) -> Planned {
    let has_sets = first_set(schema).is_some();
    let k = match model {
        PrivacyModel::Lkc(model) if has_sets && model.is_k_anonymity() => model.k,
        PrivacyModel::Lkc(model) if has_sets && model.l.is_some() => {
            check_global(job)?;
            if job.suppression_limit.floor_of(MANY_ROWS) > 0 {
                return Err(unfit(
                    "/suppression_limit",
                    "`lkc` with a set-valued quasi-identifier hides items and suppresses no row; \
                     leave `suppression_limit` out",
                ));
            }
            model.k
        }
        PrivacyModel::KmAnonymity(_) if !has_sets => {
            return Err(unfit(
                "/privacy/model",
                "`k_m_anonymity` is over set-valued quasi-identifiers, and the dataset has none",
            ));
        }
        PrivacyModel::KmAnonymity(model) => model.k,
        PrivacyModel::Lkc(_) | PrivacyModel::Groups(_) => return Ok(None),
    };
    check_global(job)?;
    // The other models with sets have one search.
    if !matches!(model, PrivacyModel::Lkc(model) if model.is_k_anonymity()) {
        check_greedy(job)?;
    }
    pre_generalization::check(schema, job)?;
    Ok(Some(Box::new(ItemDisclosure {
        model: model.clone(),
        settings: settings(schema, job, k)?,
    })))
}

impl Method for ItemDisclosure {
    fn bytes_needed(&self, schema: &Schema, rows: u64, _: u64) -> Result<u64, JobError> {
        let codes = memory::release_codes(schema, rows, rows);
        Ok(match &self.model {
            PrivacyModel::Lkc(model) if model.l.is_some() => {
                let columns = self.settings.weights.len() as u64;
                codes.saturating_add(rows.saturating_mul(FACT_ROW_BYTES + 64 * columns))
            }
            _ => codes,
        })
    }

    fn search(
        &self,
        input: &PreparedTable,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError> {
        let minimum_levels = |name: &str| input.pre_generalization.minimum_levels(name);
        let task = || DisclosureTask::new(&input.table, minimum_levels, &self.settings, observer);
        let disclosed = match &self.model {
            PrivacyModel::KmAnonymity(model) => {
                task().and_then(|task| search_km(&task, model.m.get()))
            }
            PrivacyModel::Lkc(model) if model.l.is_some() => {
                task().and_then(|task| search_facts(&task, model))
            }
            PrivacyModel::Lkc(_) | PrivacyModel::Groups(_) => {
                let is_pre_generalized = |name: &str| minimum_levels(name).is_some();
                let may_label = labels::columns_with_labels(&input.schema, is_pre_generalized);
                labels::search_with_labels(
                    &input.table,
                    &may_label,
                    minimum_levels,
                    &self.settings,
                    observer,
                )
            }
        };
        disclosed.map(SearchOutcome::new)
    }

    fn build(
        &self,
        input: &PreparedTable,
        outcome: &SearchOutcome,
        step: u32,
    ) -> Result<Candidate, RunError> {
        let disclosed: &DisclosedTable = outcome.of()?;
        let rows = input.released_rows(step, |row| disclosed.released[row as usize])?;
        let sets = released_sets(&input.table, &disclosed.sets, &rows);
        Ok(Candidate::of_cuts(
            input,
            disclosed.cuts.clone(),
            sets,
            rows,
        ))
    }

    fn facts<'a>(
        &self,
        input: &'a PreparedTable,
        outcome: &'a SearchOutcome,
    ) -> Result<MethodFacts<'a>, RunError> {
        let disclosed: &DisclosedTable = outcome.of()?;
        let labels = |column: &'a SetColumn| {
            let pre_generalized = || input.pre_generalization.minimum_levels(&column.name);
            let levels = disclosed
                .labels
                .get(&column.name)
                .or_else(pre_generalized)?;
            Some((&*column.name, levels))
        };
        Ok(MethodFacts {
            groups: None,
            item_labels: input.table.sets.iter().filter_map(labels).collect(),
        })
    }
}

/// The released columns of disclosed sets.
fn released_sets(
    table: &EncodedTable,
    disclosed: &[DisclosedSet],
    rows: &[u32],
) -> Vec<Positioned<ReleasedColumn>> {
    let columns = table.sets.iter().zip(disclosed);
    let released = columns.map(|(column, disclosed)| {
        let cells = rows.iter().map(|&row| disclosed.codes[row as usize]);
        let released = ReleasedColumn {
            name: column.name.clone(),
            form: Form::Set {
                separator: column.separator,
            },
            column: Column::of_cells(&disclosed.cells, cells),
            missing: Vec::new(),
        };
        Positioned {
            position: column.position,
            column: released,
        }
    });
    released.collect()
}

pub(super) fn settings(
    schema: &Schema,
    job: &Job,
    k: MinimumAnonymity,
) -> Result<DisclosureSettings, JobError> {
    if job.objective.is_some_and(|it| it != Objective::Ncp) {
        return Err(unfit(
            "/utility/objective",
            "with a set-valued quasi-identifier columns are chosen by `ncp` alone; leave \
             `objective` out",
        ));
    }
    if job.split.is_some() {
        return Err(unfit(
            "/utility/split",
            "with a set-valued quasi-identifier intervals are halved beforehand; leave `split` out",
        ));
    }
    let relational = |column: &&SchemaColumn| {
        column.role() == ColumnRole::QuasiIdentifier && column.kind() != ColumnKind::Set
    };
    let kinds = schema
        .stored()
        .filter(relational)
        .map(|column| column.kind());
    Ok(DisclosureSettings {
        k,
        kinds: kinds.collect(),
        suppression_limit: job.suppression_limit,
        weights: weights(schema, job.weights.as_ref())?,
        thorough: job.thorough.map(|limit| ThoroughSearch {
            limit,
            seed: job.seed.unwrap_or(SEARCH_SEED),
        }),
    })
}

/// The weight of each quasi-identifier, relational ones first, then sets.
fn weights(
    schema: &Schema,
    requested: Option<&BTreeMap<String, f64>>,
) -> Result<Vec<f64>, JobError> {
    let quasi_identifiers = || schema.with_role(ColumnRole::QuasiIdentifier);
    for (name, &weight) in requested.into_iter().flatten() {
        let pointer = format!("/utility/weights/{}", escape(name));
        if !quasi_identifiers().any(|column| *column.name() == **name) {
            return Err(unfit(
                pointer,
                "the dataset has no column of this name and the role `quasi_identifier`",
            ));
        }
        if !(weight > 0.0 && weight <= GREATEST_WEIGHT) {
            let detail = format!("a weight is greater than 0 and at most {GREATEST_WEIGHT}");
            return Err(JobError::at(JobErrorKind::InvalidValue, pointer, detail));
        }
    }
    let weight = |column: &SchemaColumn| {
        let requested = requested.and_then(|weights| weights.get(column.name()));
        requested.copied().unwrap_or(1.0)
    };
    let (sets, relational): (Vec<_>, Vec<_>) =
        quasi_identifiers().partition(|column| is_set(column));
    Ok(relational.into_iter().chain(sets).map(weight).collect())
}
