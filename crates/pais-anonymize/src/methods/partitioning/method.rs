//! The k-d split as a method: k-anonymity, LKC-privacy and models of groups by local recoding,
//! generalized or anatomized.

use std::collections::BTreeMap;

use pais_core::definition::{ColumnRole, Job, JobError, Objective, Output, Recoding};
use pais_core::model::{Diversity, GroupModel, PrivacyModel};
use pais_core::schema::Schema;
use pais_core::table::{COUNT_COLUMN, GROUP_COLUMN};
use pais_measure::{MethodFacts, MethodGroups, ReleaseRecoding};

use super::partition::partition;
use super::split::GroupPartition;
use super::tables;
use super::valid_cuts::SplitGuide;
use crate::error::RunError;
use crate::job_checks::{check_greedy, check_no_weights, check_some, first_set, unfit};
use crate::memory;
use crate::method::{Candidate, Claim, Method, Planned, SearchOutcome};
use crate::observer::Observer;
use crate::pre_generalization;
use crate::prepared::PreparedTable;
use crate::row_order::Purpose;

/// The k-d split under the parameters of one job.
struct Partitioning {
    model: PrivacyModel,
    output: Output,
    guide: SplitGuide,
    /// In the declared order.
    quasi_identifiers: Vec<Box<str>>,
}

/// Takes the models of groups, and k-anonymity and LKC-privacy with local recoding.
pub(crate) fn plan(schema: &Schema, job: &Job, model: &PrivacyModel) -> Planned {
    let is_local = job.recoding == Some(Recoding::Local);
    let model = match model {
        PrivacyModel::Lkc(model) if is_local && model.is_k_anonymity() => {
            PrivacyModel::Groups(GroupModel {
                k: model.k,
                diversity: Diversity::None,
                min_range: BTreeMap::new(),
            })
        }
        PrivacyModel::Lkc(model) if is_local => PrivacyModel::Lkc(model.clone()),
        PrivacyModel::Groups(_) if job.recoding == Some(Recoding::Global) => {
            return Err(unfit(
                "/recoding",
                "this model takes local recoding only; leave `recoding` out",
            ));
        }
        PrivacyModel::Groups(model) => PrivacyModel::Groups(model.clone()),
        PrivacyModel::Lkc(_) | PrivacyModel::KmAnonymity(_) => return Ok(None),
    };
    Ok(Some(Box::new(Partitioning::new(schema, job, model)?)))
}

impl Partitioning {
    fn new(schema: &Schema, job: &Job, model: PrivacyModel) -> Result<Self, JobError> {
        let output = job.output();
        if let (PrivacyModel::Lkc(_), Output::Anatomized) = (&model, output) {
            return Err(unfit(
                "/output",
                "anatomized output has exact quasi-identifiers and needs a model of diversity; \
                 choose `l_diversity`, or `generalized`",
            ));
        }
        if let (PrivacyModel::Lkc(_), Some(_)) = (&model, job.suppression_for) {
            return Err(unfit(
                "/suppression_for",
                "local recoding suppresses no rows; leave `suppression_for` out",
            ));
        }
        if job.pre_generalization.is_some() && output == Output::Anatomized {
            return Err(unfit(
                "/pre_generalization",
                "anatomized output has the exact quasi-identifiers; leave `pre_generalization` \
                 out, or set `output` to `generalized`",
            ));
        }
        pre_generalization::check(schema, job)?;
        if let Some(column) = first_set(schema) {
            let pointer = match job.recoding {
                Some(_) => "/recoding",
                None => "/privacy/model",
            };
            return Err(unfit(
                pointer,
                format!(
                    "local recoding cannot take the set-valued quasi-identifier `{}`; `lkc`, `k_anonymity` and \
                     `k_m_anonymity` with global recoding can",
                    column.name()
                ),
            ));
        }
        let method = Self {
            output,
            guide: guide(schema, job, &model, output)?,
            quasi_identifiers: schema.names(ColumnRole::QuasiIdentifier),
            model,
        };
        check_some(&method.quasi_identifiers, job)?;
        method.check_columns(schema)?;
        Ok(method)
    }

    fn check_columns(&self, schema: &Schema) -> Result<(), JobError> {
        if self.output == Output::Generalized {
            return Ok(());
        }
        let reserved = |name: &str| name == GROUP_COLUMN || name == COUNT_COLUMN;
        if let Some(column) = schema.columns.iter().find(|column| reserved(column.name())) {
            return Err(unfit(
                "/output",
                format!(
                    "anatomized tables have a column `{}` of their own; declare the dataset's under \
                     another name",
                    column.name()
                ),
            ));
        }
        Ok(())
    }
}

impl Method for Partitioning {
    /// Exact columns, sensitive values row by row, and the groups as the verifier and the queries see them, in
    /// addition to what every release needs.
    fn bytes_needed(&self, schema: &Schema, rows: u64, _: u64) -> Result<u64, JobError> {
        let divided = rows.saturating_mul(5 * memory::code_bytes(schema) + 64);
        let least = match &self.model {
            PrivacyModel::Groups(model) => model.k.get(),
            PrivacyModel::Lkc(_) | PrivacyModel::KmAnonymity(_) => 1,
        };
        Ok(divided.max(memory::release_codes(schema, rows, rows / least)))
    }

    fn search(
        &self,
        input: &PreparedTable,
        observer: &dyn Observer,
    ) -> Result<SearchOutcome, RunError> {
        let (schema, table) = (&input.schema, &input.table);
        partition(schema, table, &self.model, self.guide, observer).map(SearchOutcome::new)
    }

    fn build(
        &self,
        input: &PreparedTable,
        outcome: &SearchOutcome,
        step: u32,
    ) -> Result<Candidate, RunError> {
        let partition: &GroupPartition = outcome.of()?;
        let rows = input.released_rows(step, |_| true)?;
        let (tables, recoding) = match self.output {
            Output::Generalized => {
                let made = tables::generalized(input, partition, &rows);
                (vec![made], ReleaseRecoding::Local)
            }
            Output::Anatomized => {
                let groups = (0..partition.sizes.len() as u32).collect();
                let numbers = input.order.shuffled(Purpose::Groups, groups)?;
                let made = tables::anatomized(input, partition, &numbers, &rows);
                (made, ReleaseRecoding::Anatomized)
            }
        };
        Ok(Candidate {
            tables,
            rows,
            cut: None,
            claim: Claim {
                model: self.model.clone(),
                recoding,
            },
        })
    }

    fn facts<'a>(
        &self,
        input: &'a PreparedTable,
        outcome: &'a SearchOutcome,
    ) -> Result<MethodFacts<'a>, RunError> {
        let partition: &GroupPartition = outcome.of()?;
        let is_generalized = self.output == Output::Generalized;
        Ok(MethodFacts {
            groups: Some(MethodGroups {
                rows: &partition.rows,
                sizes: &partition.sizes,
                labels: is_generalized.then(|| tables::covered_by_groups(input, partition)),
            }),
            ..MethodFacts::default()
        })
    }
}

fn guide(
    schema: &Schema,
    job: &Job,
    model: &PrivacyModel,
    output: Output,
) -> Result<SplitGuide, JobError> {
    if job.split.is_some() {
        return Err(unfit(
            "/utility/split",
            "`split` is for the intervals of global recoding; leave it out",
        ));
    }
    check_no_weights(job)?;
    check_greedy(job)?;
    match (job.objective, output) {
        (None, Output::Generalized) | (Some(Objective::Ncp), Output::Generalized) => {
            Ok(SplitGuide::Ncp)
        }
        (None, Output::Anatomized) | (Some(Objective::Discernibility), _) => Ok(SplitGuide::Median),
        (Some(Objective::Ncp), Output::Anatomized) => Err(unfit(
            "/utility/objective",
            "anatomized quasi-identifiers are exact and lose nothing that `ncp` could measure; \
             leave `objective` out",
        )),
        (Some(Objective::Classification), _) if matches!(model, PrivacyModel::Lkc(_)) => {
            let mut columns = schema.stored();
            if columns.any(|column| column.role() == ColumnRole::Class) {
                Ok(SplitGuide::Class)
            } else {
                Err(unfit(
                    "/utility/objective",
                    "`classification` needs a column of the role `class`; give one, or choose \
                     `discernibility` or `ncp`",
                ))
            }
        }
        (Some(Objective::Classification | Objective::DiscernibilityEq4), _) => Err(unfit(
            "/utility/objective",
            "local recoding takes `discernibility`, `ncp` where the output is generalized, and \
             `classification` under `lkc`, `alpha_k` and `confidence_bounding`",
        )),
    }
}
