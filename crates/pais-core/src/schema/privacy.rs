//! A job's privacy model checked against the columns: whether it can be applied to them, and
//! whether it asks for anything.
//!
//! Jobs and verifications make the same checks.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Schema, SchemaColumn};
use crate::definition::json::escape;
use crate::definition::{ColumnKind, ColumnRole, Job, JobError, JobErrorKind, Output};
use crate::model::{Diversity, GroupModel, Lkc, MinimumAnonymity, PrivacyModel};
use crate::taxonomy::MOST_LABEL_BYTES;
use crate::warning::{Warning, WarningCode};

/// Maximum number of sensitive values that a job may list for a column.
const MOST_VALUES: usize = 10_000;

impl Schema {
    /// The privacy model of a job. Its listed sensitive values have the form of the column's cells.
    ///
    /// # Errors
    /// Columns and values that do not exist, and a model that binds nothing; with a pointer into the
    /// job.
    pub fn privacy_model(&self, job: &Job) -> Result<PrivacyModel, JobError> {
        let mut model = job.model.clone();
        match &mut model {
            PrivacyModel::Lkc(lkc) => {
                if lkc.asks_nothing() {
                    return Err(asks_nothing(
                        "every table meets the model with K = 1 and a confidence of 1; raise `k`, \
                         or lower the greatest confidence",
                    ));
                }
                self.check_lkc(lkc)?;
                self.list_canonical_values(lkc);
            }
            PrivacyModel::KmAnonymity(model) if model.k == MinimumAnonymity::MIN => {
                return Err(asks_nothing(
                    "every table meets the model with K = 1; raise `k`",
                ));
            }
            PrivacyModel::KmAnonymity(_) => {}
            PrivacyModel::Groups(model) => self.check_groups(model)?,
        }
        if job.output() == Output::Generalized {
            return Ok(model);
        }
        match &model {
            PrivacyModel::Lkc(model) if model.is_k_anonymity() => Err(unfit(
                "/output",
                "anatomized output has exact quasi-identifiers, so k-anonymity alone protects \
                 nobody in it; choose a model of diversity, or `generalized`",
            )),
            PrivacyModel::Groups(model)
                if !model.diversity.binds(&self.names(ColumnRole::Sensitive)) =>
            {
                Err(unfit(
                    "/output",
                    "anatomized output has exact quasi-identifiers, and the model's diversity binds \
                     nothing; raise `l` or the column limits, or choose `generalized`",
                ))
            }
            _ => Ok(model),
        }
    }

    /// What a holder should know about a model before any row is read: sensitive columns that it
    /// leaves without a bound.
    pub fn model_warnings(&self, model: &PrivacyModel) -> Vec<Warning> {
        let unbounded = |name: &str, field: &str| {
            let detail = format!(
                "the model bounds no value of the sensitive column `{name}`, so they can be inferred; add \
                 it, or give it the role `insensitive` if that harms nobody"
            );
            let code = WarningCode::UnboundedSensitiveColumn;
            Warning::at(code, format!("/privacy/{field}"), detail).of_columns([name])
        };
        let bounds_none = |name: &str| {
            let detail = format!(
                "the model bounds no sensitive value, so those of `{name}` can be inferred, also of everybody in a \
                 group; choose `lkc` with `c` below 1 or a model of diversity, or give the column the role \
                 `insensitive` if that harms nobody"
            );
            let code = WarningCode::UnboundedSensitiveColumn;
            Warning::at(code, "/privacy", detail).of_columns([name])
        };
        let sensitive = self.names(ColumnRole::Sensitive);
        let names = sensitive.iter().map(AsRef::as_ref);
        match model {
            PrivacyModel::Lkc(Lkc { c, .. }) if c.is_unbounded() => {
                names.map(bounds_none).collect()
            }
            PrivacyModel::KmAnonymity(_) => names.map(bounds_none).collect(),
            PrivacyModel::Lkc(Lkc {
                sensitive_values: Some(listed),
                ..
            }) => names
                .filter(|name| !listed.contains_key(*name))
                .map(|name| unbounded(name, "sensitive_values"))
                .collect(),
            PrivacyModel::Groups(GroupModel {
                diversity: Diversity::MinimumCover { column_limits, .. },
                ..
            }) => names
                .filter(|name| column_limits.get(*name) == Some(&0))
                .map(|name| unbounded(name, "column_limits"))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Names of the stored columns with a role, in the declared order.
    pub fn names(&self, role: ColumnRole) -> Vec<Box<str>> {
        let columns = self.with_role(role);
        columns.map(|column| column.name.clone()).collect()
    }

    fn sensitive(&self, name: &str) -> Option<&SchemaColumn> {
        let mut columns = self.with_role(ColumnRole::Sensitive);
        columns.find(|column| *column.name == *name)
    }

    fn check_lkc(&self, model: &Lkc) -> Result<(), JobError> {
        let mut bounds_some = !self.names(ColumnRole::Sensitive).is_empty();
        if let Some(listed) = &model.sensitive_values {
            bounds_some = !listed.is_empty();
            for (column, values) in listed {
                self.check_listed(column, values)?;
            }
        }
        if !model.c.is_unbounded() && !bounds_some {
            let detail = "a confidence below 1 bounds nothing without sensitive values; give a \
                          column the role `sensitive` and name it, or set the bound to 1";
            return Err(unfit("/privacy", detail));
        }
        Ok(())
    }

    fn check_listed(&self, column: &str, values: &[String]) -> Result<(), JobError> {
        let pointer = format!("/privacy/sensitive_values/{}", escape(column));
        let Some(spec) = self.sensitive(column) else {
            return Err(unfit(pointer, NO_SENSITIVE_COLUMN));
        };
        if values.is_empty() {
            return Err(unfit(
                pointer,
                "name at least one sensitive value, or leave the column out",
            ));
        }
        if values.len() > MOST_VALUES {
            let detail = format!(
                "{} values are named and {MOST_VALUES} can be; leave `sensitive_values` out to \
                 bound all",
                values.len()
            );
            return Err(unfit(pointer, detail));
        }
        let mut named = HashSet::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            let pointer = format!("{pointer}/{index}");
            if value.len() > MOST_LABEL_BYTES {
                return Err(unfit(pointer, "a listed value has at most 1,024 bytes"));
            }
            let value = spec.canonical(value);
            if spec.is_missing(&value) {
                return Err(unfit(
                    pointer,
                    "a word for missing cannot be a sensitive value",
                ));
            }
            if let Some(detail) = spec.why_no_value(&value) {
                return Err(unfit(pointer, detail));
            }
            if !named.insert(value) {
                return Err(unfit(pointer, "this value is named twice"));
            }
        }
        Ok(())
    }

    fn list_canonical_values(&self, model: &mut Lkc) {
        for (column, values) in model.sensitive_values.iter_mut().flatten() {
            let Some(spec) = self.sensitive(column) else {
                continue;
            };
            for value in values {
                *value = spec.rounded(&spec.canonical(value)).into_owned();
            }
        }
    }

    fn check_groups(&self, model: &GroupModel) -> Result<(), JobError> {
        let sensitive = self.names(ColumnRole::Sensitive);
        let binds = model.diversity.binds(&sensitive);
        if sensitive.is_empty() && model.diversity != Diversity::None {
            return Err(unfit(
                "/privacy/model",
                "this model needs a column with the role `sensitive`, and the dataset has none",
            ));
        }
        if model.diversity.is_of_one_column() && sensitive.len() != 1 {
            return Err(unfit(
                "/privacy/model",
                format!(
                    "this model takes exactly one sensitive column, and the dataset has {}; \
                     `l_diversity` takes several",
                    sensitive.len()
                ),
            ));
        }
        if let Diversity::MinimumCover { l, column_limits } = &model.diversity {
            if let Some(column) = column_limits
                .keys()
                .find(|column| self.sensitive(column).is_none())
            {
                let pointer = format!("/privacy/column_limits/{}", escape(column));
                return Err(unfit(pointer, NO_SENSITIVE_COLUMN));
            }
            if l.get() > 1 && !binds {
                return Err(unfit(
                    "/privacy/column_limits",
                    "all limits are 0, so no sensitive value may be eliminated and the diversity \
                     binds nothing; raise a limit, or leave `column_limits` out",
                ));
            }
        }
        for column in model.min_range.keys() {
            let is_numeric = |spec: &SchemaColumn| spec.kind == ColumnKind::Numeric;
            if !self.sensitive(column).is_some_and(is_numeric) {
                let pointer = format!("/privacy/min_range/{}", escape(column));
                let detail =
                    "the dataset has no numeric column of this name and the role `sensitive`";
                return Err(unfit(pointer, detail));
            }
        }
        if model.k == MinimumAnonymity::MIN && !binds {
            return Err(asks_nothing(
                "every table meets the model with these parameters; raise `k`, or ask for more \
                 diversity",
            ));
        }
        Ok(())
    }
}

const NO_SENSITIVE_COLUMN: &str = "the dataset has no column of this name and the role `sensitive`";

impl SchemaColumn {
    /// Why a text in canonical form is not a value of the column; `None` for a value. A tree that is made from
    /// the rows of a table says nothing of values that later rows can have, but its labels above values are none.
    fn why_no_value(&self, value: &str) -> Option<Cow<'static, str>> {
        if self.kind == ColumnKind::Numeric {
            let is_number = crate::taxonomy::interval::number(value).is_some();
            let detail = "this value is not a number, and the column is numeric";
            return (!is_number).then_some(detail.into());
        }
        if self.kind.is_of_dates() && self.why_no_date(value).is_some() {
            return Some("this value is not a date, and the column has dates".into());
        }
        let is_value = self.tree.as_deref().is_none_or(|tree| {
            let is_unknown = self.made.is_some() && tree.find(value).is_none();
            is_unknown || tree.leaf_number(value).is_some()
        });
        (!is_value).then(|| {
            let name = &self.name;
            let detail = "this value is not a leaf of the taxonomy of";
            format!("{detail} `{name}`; write it as the tree has it").into()
        })
    }
}

fn unfit(pointer: impl Into<String>, detail: impl Into<String>) -> JobError {
    JobError::at(JobErrorKind::Unfit, pointer, detail)
}

fn asks_nothing(detail: &str) -> JobError {
    let detail = format!("the job asks for nothing: {detail}");
    unfit("/privacy", detail)
}
