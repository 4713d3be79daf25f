//! What a job asks for, checked against the schema: everything that can be refused before a
//! single row is read.

use std::collections::{BTreeMap, HashSet};

use pais_core::definition::json::escape;
use crate::problem::{Code, Problem};
use pais_core::definition::{ColumnKind, ColumnRole, JobDefinition, ModelWord, Objective, Output, Recoding, SplitRule};
use pais_core::model::{Diversity, GroupModel, KmAnonymity, Lkc, MinimumAnonymity, PrivacyModel};
use pais_core::schema::{Schema, SchemaColumn};

use super::groups::GroupPlan;
use super::{items, pais, pre_generalization};

/// Most sensitive values that a job names of a column.
const MOST_VALUES: usize = 10_000;

/// The greatest weight of a column; beyond it a sum of weighted shares would lose the others.
const GREATEST_WEIGHT: f64 = 1e6;

/// A job that fits its schema, by the method that runs it.
#[derive(Clone, Debug)]
pub enum Plan {
    /// PAIS: one cut for the whole table, found by top-down specialization.
    Specialization(SpecializationPlan),
    /// Concurrent item disclosure: k-anonymity with set-valued quasi-identifiers.
    Disclosure(DisclosurePlan),
    /// Groups of a k-d split, generalized or anatomized.
    Groups(GroupPlan),
}

/// A run of concurrent item disclosure.
#[derive(Clone, Debug)]
pub struct DisclosurePlan {
    /// What is asked of the table.
    pub model: SetModel,
    /// What the run is led by.
    pub settings: items::Settings,
    /// Quasi-identifiers, sets among them, in the declared order.
    pub quasi_identifiers: Vec<Box<str>>,
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

/// The models that take set-valued quasi-identifiers.
#[derive(Clone, Debug)]
pub enum SetModel {
    /// k-anonymity over all quasi-identifiers.
    KAnonymity(Lkc),
    /// k^m-anonymity over the sets, in classes of k rows over the other quasi-identifiers.
    KmAnonymity(KmAnonymity),
}

impl SetModel {
    fn k(&self) -> MinimumAnonymity {
        match self {
            Self::KAnonymity(model) => model.k,
            Self::KmAnonymity(model) => model.k,
        }
    }
}

impl Plan {
    /// Checks a job against a schema.
    ///
    /// # Errors
    /// The contract's 400 and 422, with a pointer into the job.
    pub fn new(schema: &Schema, job: &JobDefinition) -> Result<Self, Problem> {
        let model = job.privacy.parse()?;
        let has_sets = schema.stored().any(is_set);
        // k-anonymity is met by either recoding; LKC-privacy speaks of one cut.
        let is_local = job.recoding == Some(Recoding::Local);
        match model {
            PrivacyModel::Lkc(model) if is_local && job.privacy.model == ModelWord::KAnonymity => {
                let model = GroupModel {
                    k: model.k,
                    diversity: Diversity::Unasked,
                };
                GroupPlan::new(schema, job, model).map(Self::Groups)
            }
            PrivacyModel::Lkc(model) if has_sets && job.privacy.model == ModelWord::KAnonymity => {
                let model = SetModel::KAnonymity(model);
                DisclosurePlan::new(schema, job, model).map(Self::Disclosure)
            }
            PrivacyModel::KmAnonymity(model) => {
                if !has_sets {
                    return Err(refused(
                        "/privacy/model",
                        "`k_m_anonymity` is over set-valued quasi-identifiers, and the dataset \
                         has none",
                    ));
                }
                let model = SetModel::KmAnonymity(model);
                DisclosurePlan::new(schema, job, model).map(Self::Disclosure)
            }
            PrivacyModel::Lkc(model) => {
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

/// Most subsets of quasi-identifiers times rows that a search and its verification may have to
/// look at: hours on a large machine. Most are never looked at, since subsets share their
/// beginnings and groups below *K* end them.
const MOST_WORK: u128 = 1 << 50;

impl Plan {
    /// Whether a run over so many rows can be expected to end.
    ///
    /// # Errors
    /// `limit_exceeded` with the figures, and what would make it feasible.
    pub fn check_work(&self, rows: u64) -> Result<(), Problem> {
        let Self::Specialization(plan) = self else {
            return Ok(());
        };
        let width = plan.quasi_identifiers.len();
        let l = plan.model.l.map_or(width, |l| l.get() as usize);
        let fits = |l: usize| pais::subsets(width, l).saturating_mul(rows.into()) <= MOST_WORK;
        if fits(l) {
            return Ok(());
        }
        // Small ones fit before great ones do, and the greatest of all is k-anonymity.
        let feasible = (1..l).rev().find(|&l| fits(l));
        let advice = feasible.map_or_else(String::new, |l| format!("lower `l` to {l}, "));
        let detail = format!(
            "an adversary who knows {l} of {width} values may know {} sets of columns, too many to \
             look at over {rows} rows; {advice}raise it to {width}, which is one set, or give fewer \
             columns the role `quasi_identifier`",
            pais::subsets(width, l)
        );
        Err(Problem::at(Code::LimitExceeded, "/privacy/l", detail))
    }

    /// What stands in the released tables.
    pub fn output(&self) -> Output {
        match self {
            Self::Specialization(_) | Self::Disclosure(_) => Output::Generalized,
            Self::Groups(plan) => plan.output,
        }
    }
}

impl DisclosurePlan {
    fn new(schema: &Schema, job: &JobDefinition, model: SetModel) -> Result<Self, Problem> {
        check_global(job)?;
        pre_generalization::check(schema, job, false)?;
        let utility = job.utility.clone().unwrap_or_default();
        if utility.objective.is_some_and(|it| it != Objective::Ncp) {
            return Err(refused(
                "/utility/objective",
                "with a set-valued quasi-identifier columns are chosen by `ncp` alone; leave \
                 `objective` out",
            ));
        }
        if utility.split.is_some() {
            return Err(refused(
                "/utility/split",
                "with a set-valued quasi-identifier intervals are halved beforehand; leave \
                 `split` out",
            ));
        }
        let quasi_identifiers = named(schema, ColumnRole::QuasiIdentifier);
        let settings = items::Settings {
            k: model.k(),
            suppression_limit: job.suppression_limit()?,
            weights: weights(schema, utility.weights.as_ref())?,
        };
        Ok(Self {
            model,
            settings,
            quasi_identifiers,
        })
    }
}

fn is_set(column: &SchemaColumn) -> bool {
    column.role == ColumnRole::QuasiIdentifier && column.kind == ColumnKind::Set
}

fn named(schema: &Schema, role: ColumnRole) -> Vec<Box<str>> {
    let columns = schema.stored().filter(|column| column.role == role);
    columns.map(|column| column.name.clone()).collect()
}

/// The weight of each quasi-identifier, relational ones first, then sets.
fn weights(schema: &Schema, asked: Option<&BTreeMap<String, f64>>) -> Result<Vec<f64>, Problem> {
    let quasi_identifiers = || {
        let columns = schema.stored();
        columns.filter(|column| column.role == ColumnRole::QuasiIdentifier)
    };
    for (name, &weight) in asked.into_iter().flatten() {
        let pointer = format!("/utility/weights/{}", escape(name));
        if !quasi_identifiers().any(|column| *column.name == **name) {
            return Err(refused(
                pointer,
                "the dataset has no column of this name and the role `quasi_identifier`",
            ));
        }
        if !(weight > 0.0 && weight <= GREATEST_WEIGHT) {
            let detail = format!("a weight is greater than 0 and at most {GREATEST_WEIGHT}");
            return Err(Problem::at(Code::InvalidValue, pointer, detail));
        }
    }
    let weight = |column: &SchemaColumn| {
        let asked = asked.and_then(|weights| weights.get(&*column.name));
        asked.copied().unwrap_or(1.0)
    };
    let (sets, relational): (Vec<_>, Vec<_>) =
        quasi_identifiers().partition(|column| is_set(column));
    Ok(relational.into_iter().chain(sets).map(weight).collect())
}

impl SpecializationPlan {
    fn new(schema: &Schema, job: &JobDefinition, model: Lkc) -> Result<Self, Problem> {
        check_method(schema, job)?;
        let quasi_identifiers = named(schema, ColumnRole::QuasiIdentifier);
        if quasi_identifiers.is_empty() {
            return Err(refused(
                "/dataset_id",
                "the dataset has no column of the role `quasi_identifier`, so there is nothing to \
                 anonymize",
            ));
        }
        let sensitive = named(schema, ColumnRole::Sensitive);
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

fn check_global(job: &JobDefinition) -> Result<(), Problem> {
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
    Ok(())
}

fn check_method(schema: &Schema, job: &JobDefinition) -> Result<(), Problem> {
    check_global(job)?;
    if let Some(column) = schema.stored().find(|column| is_set(column)) {
        return Err(refused(
            "/privacy/model",
            format!(
                "this model cannot take the set-valued quasi-identifier `{}`; `k_anonymity` and \
                 `k_m_anonymity` can",
                column.name
            ),
        ));
    }
    if job.utility.as_ref().is_some_and(|it| it.weights.is_some()) {
        return Err(refused(
            "/utility/weights",
            "weights are for tables with a set-valued quasi-identifier; leave `weights` out",
        ));
    }
    pre_generalization::check(schema, job, true)
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
