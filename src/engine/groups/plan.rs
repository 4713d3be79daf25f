//! A job for groups, checked against its schema.

use crate::domain::json::escape;
use crate::domain::{
    ColumnKind, ColumnRole, Diversity, GroupModel, JobDefinition, Objective, Output, Problem,
};
use crate::engine::plan::refused;
use crate::engine::pre_generalization;
use crate::table::{COUNT_COLUMN, GROUP_COLUMN, Schema};

/// What the split is led by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guide {
    /// Medians, as in the paper: groups of few and equally many records.
    Median,
    /// The least loss of generalized values.
    Ncp,
}

/// A run of the k-d split.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// What each group has to meet.
    pub model: GroupModel,
    /// What is made of the groups.
    pub output: Output,
    /// What the split is led by.
    pub guide: Guide,
    /// Quasi-identifiers, in the declared order.
    pub quasi_identifiers: Vec<Box<str>>,
    /// Sensitive columns, in the declared order.
    pub sensitive: Vec<Box<str>>,
}

impl GroupPlan {
    /// Checks a job with `recoding: local` against a schema.
    ///
    /// # Errors
    /// The contract's 422, with a pointer into the job.
    pub fn new(schema: &Schema, job: &JobDefinition, model: GroupModel) -> Result<Self, Problem> {
        // Groups need no suppression: what is taken away makes none of them more diverse.
        job.suppression_limit()?;
        let default = match model.diversity {
            Diversity::Strikes { .. } => Output::Anatomized,
            _ => Output::Generalized,
        };
        let output = job.output.unwrap_or(default);
        if job.pre_generalization.is_some() && output == Output::Anatomized {
            return Err(refused(
                "/pre_generalization",
                "anatomized output has the exact quasi-identifiers; leave `pre_generalization` \
                 out, or set `output` to `generalized`",
            ));
        }
        pre_generalization::check(schema, job, true)?;
        let set = schema.stored().find(|column| {
            column.role == ColumnRole::QuasiIdentifier && column.kind == ColumnKind::Set
        });
        if let Some(column) = set {
            return Err(refused(
                "/recoding",
                format!(
                    "local recoding cannot take the set-valued quasi-identifier `{}`",
                    column.name
                ),
            ));
        }
        let named = |role| {
            let columns = schema.stored().filter(|column| column.role == role);
            columns
                .map(|column| column.name.clone())
                .collect::<Vec<_>>()
        };
        let plan = Self {
            output,
            guide: guide(job, output)?,
            quasi_identifiers: named(ColumnRole::QuasiIdentifier),
            sensitive: named(ColumnRole::Sensitive),
            model,
        };
        plan.check_columns(schema)?;
        Ok(plan)
    }

    fn check_columns(&self, schema: &Schema) -> Result<(), Problem> {
        if self.quasi_identifiers.is_empty() {
            return Err(refused(
                "/dataset_id",
                "the dataset has no column of the role `quasi_identifier`, so there is nothing to \
                 anonymize",
            ));
        }
        if self.sensitive.is_empty() && self.model.diversity != Diversity::Unasked {
            return Err(refused(
                "/privacy/model",
                "the dataset has no column of the role `sensitive`, whose values could be diverse",
            ));
        }
        if self.model.diversity.is_of_one_column() && self.sensitive.len() != 1 {
            return Err(refused(
                "/privacy/model",
                format!(
                    "this model is about one sensitive column, and the dataset has {}; \
                     `l_diversity` takes several",
                    self.sensitive.len()
                ),
            ));
        }
        if let Diversity::Strikes { column_limits, .. } = &self.model.diversity {
            let known = |column: &String| self.sensitive.iter().any(|name| **name == **column);
            if let Some(column) = column_limits.keys().find(|column| !known(column)) {
                return Err(refused(
                    format!("/privacy/column_limits/{}", escape(column)),
                    "the dataset has no column of this name and the role `sensitive`",
                ));
            }
        }
        if self.output == Output::Generalized {
            return Ok(());
        }
        if self.sensitive.is_empty() {
            return Err(refused(
                "/output",
                "anatomized output parts sensitive columns from the others, and the dataset has no \
                 column of the role `sensitive`",
            ));
        }
        let reserved = |name: &str| name == GROUP_COLUMN || name == COUNT_COLUMN;
        if let Some(column) = schema.columns.iter().find(|column| reserved(&column.name)) {
            return Err(refused(
                "/output",
                format!(
                    "anatomized tables have a column `{}` of their own; declare the dataset's under \
                     another name",
                    column.name
                ),
            ));
        }
        Ok(())
    }
}

fn guide(job: &JobDefinition, output: Output) -> Result<Guide, Problem> {
    let utility = job.utility.clone().unwrap_or_default();
    if utility.split.is_some() {
        return Err(refused(
            "/utility/split",
            "`split` is about the intervals of global recoding; leave it out",
        ));
    }
    if utility.weights.is_some() {
        return Err(refused(
            "/utility/weights",
            "weights are for tables with a set-valued quasi-identifier; leave `weights` out",
        ));
    }
    match (utility.objective, output) {
        (None, Output::Generalized) | (Some(Objective::Ncp), Output::Generalized) => Ok(Guide::Ncp),
        (None, Output::Anatomized) | (Some(Objective::Discernibility), _) => Ok(Guide::Median),
        (Some(Objective::Ncp), Output::Anatomized) => Err(refused(
            "/utility/objective",
            "anatomized quasi-identifiers are exact and lose nothing that `ncp` could measure; \
             leave `objective` out",
        )),
        (Some(Objective::Classification | Objective::DiscernibilityEq4), _) => Err(refused(
            "/utility/objective",
            "local recoding is led by `discernibility`, or by `ncp` where the output is \
             generalized",
        )),
    }
}
