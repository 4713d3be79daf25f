//! What a job asks for, checked against the schema: everything that can be refused before a
//! single row is read.

use std::collections::HashSet;

use crate::domain::json::escape;
use crate::domain::{
    Code, ColumnKind, ColumnRole, Diversity, GroupModel, JobDefinition, Lkc, ModelWord, Objective,
    Output, PrivacyModel, Problem, Recoding, SplitRule,
};
use crate::table::{Schema, SchemaColumn};

use super::groups::GroupPlan;
use super::pais;

/// Most sensitive values that a job names of a column.
const MOST_VALUES: usize = 10_000;

/// A job that fits its schema, by the method that runs it.
#[derive(Clone, Debug)]
pub enum Plan {
    /// PAIS: one cut for the whole table, found by top-down specialization.
    Specialization(SpecializationPlan),
    /// Groups of a k-d split, generalized or anatomized.
    Groups(GroupPlan),
}

/// A run of PAIS.
#[derive(Clone, Debug)]
pub struct SpecializationPlan {
    /// LKC-privacy or one of its special cases.
    pub model: Lkc,
    /// What PAIS is led by.
    pub settings: pais::Settings,
    /// Quasi-identifiers, in the declared order.
    pub quasi_identifiers: Vec<Box<str>>,
    /// Sensitive columns, in the declared order.
    pub sensitive: Vec<Box<str>>,
}

impl Plan {
    /// Checks a job against a schema.
    ///
    /// # Errors
    /// The contract's 400 and 422, with a pointer into the job.
    pub fn new(schema: &Schema, job: &JobDefinition) -> Result<Self, Problem> {
        match job.privacy.parse()? {
            PrivacyModel::Lkc(model) => {
                // k-anonymity is met by either recoding; LKC-privacy speaks of one cut.
                let alone = job.privacy.model == ModelWord::KAnonymity;
                if alone && job.recoding == Some(Recoding::Local) {
                    let model = GroupModel {
                        k: model.k,
                        diversity: Diversity::Unasked,
                    };
                    return GroupPlan::new(schema, job, model).map(Self::Groups);
                }
                SpecializationPlan::new(schema, job, model).map(Self::Specialization)
            }
            PrivacyModel::Groups(model) => {
                if job.recoding == Some(Recoding::Global) {
                    return Err(refused(
                        "/recoding",
                        "this model is reached by local recoding only; leave `recoding` out",
                    ));
                }
                GroupPlan::new(schema, job, model).map(Self::Groups)
            }
        }
    }
}

impl Plan {
    /// What stands in the released tables.
    pub fn output(&self) -> Output {
        match self {
            Self::Specialization(_) => Output::Generalized,
            Self::Groups(plan) => plan.output,
        }
    }
}

impl SpecializationPlan {
    fn new(schema: &Schema, job: &JobDefinition, model: Lkc) -> Result<Self, Problem> {
        check_method(schema, job)?;
        let named = |role| {
            let columns = schema.stored().filter(|column| column.role == role);
            columns
                .map(|column| column.name.clone())
                .collect::<Vec<_>>()
        };
        let quasi_identifiers = named(ColumnRole::QuasiIdentifier);
        if quasi_identifiers.is_empty() {
            return Err(refused(
                "/dataset_id",
                "the dataset has no column of the role `quasi_identifier`, so there is nothing to \
                 anonymize",
            ));
        }
        let sensitive = named(ColumnRole::Sensitive);
        let mut bounded = !sensitive.is_empty();
        if let Some(values) = &model.sensitive_values {
            bounded = !values.is_empty();
            for (column, values) in values {
                check_sensitive(schema, column, values)?;
            }
        }
        if !model.c.is_unbounded() && !bounded {
            let detail = "a confidence below 1 bounds nothing without sensitive values; give a \
                          column the role `sensitive` and name it, or set the bound to 1";
            return Err(refused("/privacy", detail));
        }
        let settings = settings(schema, job)?;
        Ok(Self {
            model,
            settings,
            quasi_identifiers,
            sensitive,
        })
    }
}

/// A job that does not fit, with a pointer into it.
pub(super) fn refused(pointer: impl Into<String>, detail: impl Into<String>) -> Problem {
    Problem::at(Code::InvalidJob, pointer, detail)
}

fn check_method(schema: &Schema, job: &JobDefinition) -> Result<(), Problem> {
    if job.recoding == Some(Recoding::Local) {
        return Err(refused(
            "/recoding",
            "this model is reached by global recoding only; `recoding: local` takes `k_anonymity` \
             and the models of groups",
        ));
    }
    if job.output == Some(Output::Anatomized) {
        return Err(refused(
            "/output",
            "anatomized output needs `recoding: local`",
        ));
    }
    if job.pre_generalization.is_some() {
        return Err(refused(
            "/pre_generalization",
            "this version does not pre-generalize; leave `pre_generalization` out",
        ));
    }
    let set = |column: &&SchemaColumn| {
        column.role == ColumnRole::QuasiIdentifier && column.kind == ColumnKind::Set
    };
    if let Some(column) = schema.stored().find(set) {
        return Err(refused(
            "/privacy/model",
            format!(
                "this model cannot take the set-valued quasi-identifier `{}`",
                column.name
            ),
        ));
    }
    Ok(())
}

fn check_sensitive(schema: &Schema, column: &str, values: &[String]) -> Result<(), Problem> {
    let pointer = format!("/privacy/sensitive_values/{}", escape(column));
    let spec = schema.stored().find(|spec| *spec.name == *column);
    let Some(spec) = spec.filter(|spec| spec.role == ColumnRole::Sensitive) else {
        return Err(refused(
            pointer,
            "the dataset has no column of this name and the role `sensitive`",
        ));
    };
    if values.is_empty() {
        return Err(refused(
            pointer,
            "name at least one sensitive value, or leave the column out",
        ));
    }
    if values.len() > MOST_VALUES {
        let detail = format!(
            "{} values are named and {MOST_VALUES} can be; leave `sensitive_values` out to bound all",
            values.len()
        );
        return Err(refused(pointer, detail));
    }
    let mut named = HashSet::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let pointer = format!("{pointer}/{index}");
        if !named.insert(value) {
            return Err(refused(pointer, "this value is named twice"));
        }
        if spec.is_missing(value) {
            return Err(refused(
                pointer,
                "a word for missing cannot be a sensitive value",
            ));
        }
        if spec
            .tree
            .as_ref()
            .is_some_and(|tree| tree.leaf_number(value).is_none())
        {
            return Err(refused(
                pointer,
                "this value is no leaf of the column's taxonomy",
            ));
        }
    }
    Ok(())
}

fn settings(schema: &Schema, job: &JobDefinition) -> Result<pais::Settings, Problem> {
    let utility = job.utility.clone().unwrap_or_default();
    let has_class = schema
        .stored()
        .any(|column| column.role == ColumnRole::Class);
    let default = if has_class {
        Objective::Classification
    } else {
        Objective::Discernibility
    };
    let objective = utility.objective.unwrap_or(default);
    if objective == Objective::Classification && !has_class {
        return Err(refused(
            "/utility/objective",
            "`classification` needs a column of the role `class`; give one, or choose \
             `discernibility` or `ncp`",
        ));
    }
    Ok(pais::Settings {
        objective,
        split: utility.split.unwrap_or(SplitRule::Fixed),
        suppression_limit: job.suppression_limit()?,
    })
}
