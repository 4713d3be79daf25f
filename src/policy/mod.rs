//! The policy of an organization: the floor below which its jobs, releases and grants are refused.

mod bounded_values;

use std::collections::BTreeMap;

use pais_core::codebook::CodebookColumn;
use pais_core::definition::json::escape;
use pais_core::definition::{ColumnRole, JobDefinition, ModelKind, OneOrMany, PrivacyDefinition};
use pais_core::look_alike::visible_text;
use pais_core::rejection::Fault;
use pais_core::schema::{MOST_NAME_BYTES, Schema, SchemaColumn};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::bounded_values::BoundedValues;
use self::bounded_values::unbounding;

use crate::ids::OrganizationId;
use crate::problem::{Code, Problem};

/// Maximum number of columns and of recipients that a policy names.
const MOST_NAMES: usize = 1_000;

/// A policy; what is omitted is not restricted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The models that jobs may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    pub models: Option<Vec<ModelKind>>,
    /// The minimum K.
    #[serde(
        default,
        deserialize_with = "pais_core::definition::whole::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(minimum = 1)]
    pub k_min: Option<i64>,
    /// The minimum L, for models that have one.
    #[serde(
        default,
        deserialize_with = "pais_core::definition::whole::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(minimum = 1)]
    pub l_min: Option<i64>,
    /// The maximum confidence: C, or alpha. It does not apply to models that bound sensitive values in
    /// their own terms, by an L above 1 or a t below 1; a model that bounds none is refused, unless
    /// `models` names it. `sensitive_values` lists the values that have to be bounded; without it, these are all
    /// values of all sensitive columns, and a job must not list any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0, maximum = 1)]
    pub c_max: Option<f64>,
    /// The maximum share of rows that may be suppressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub suppression_max: Option<f64>,
    /// Columns that are quasi-identifiers wherever a table has them, unless they are not released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 1000)]
    pub quasi_identifiers: Option<Vec<String>>,
    /// By column, the values whose confidence or diversity a job has to bound wherever a table has
    /// the column, unless it is not released: `"all"`, or a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitive_values: Option<BTreeMap<String, BoundedValues>>,
    /// Names or ids of the organizations that may get grants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 1000)]
    pub recipients: Option<Vec<String>>,
    /// Whether a second token of the holder has to approve a release before its grants take effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_approval: Option<bool>,
}

impl Policy {
    /// Checks the ranges of the lines.
    ///
    /// # Errors
    /// `invalid_value` with all faults.
    pub fn check(&self) -> Result<(), Problem> {
        let mut faults = Vec::new();
        let mut require = |holds: bool, line: &str, expected: &str| {
            if !holds {
                faults.push(Fault::at(
                    format!("/{line}"),
                    format!("`{line}` {expected}"),
                ));
            }
        };
        let least = |number: Option<i64>| number.is_none_or(|number| number >= 1);
        require(least(self.k_min), "k_min", "is a whole number from 1 on");
        require(least(self.l_min), "l_min", "is a whole number from 1 on");
        let c_max = self.c_max.is_none_or(|c| c > 0.0 && c <= 1.0);
        require(c_max, "c_max", "is a share above 0 and up to 1");
        let share = |share: f64| (0.0..=1.0).contains(&share);
        let suppression = self.suppression_max.is_none_or(share);
        require(suppression, "suppression_max", "is a share from 0 to 1");
        let models = self.models.as_ref().is_none_or(|models| !models.is_empty());
        require(
            models,
            "models",
            "is empty, so no job could run; name a model",
        );
        for (line, names) in [
            ("quasi_identifiers", &self.quasi_identifiers),
            ("recipients", &self.recipients),
        ] {
            let fits = |name: &String| (1..=MOST_NAME_BYTES).contains(&name.len());
            let fit = |names: &Vec<String>| names.len() <= MOST_NAMES && names.iter().all(fits);
            let expected = "is a list of at most 1000 names of 1 to 1,024 bytes";
            require(names.as_ref().is_none_or(fit), line, expected);
        }
        faults.extend(self.faults_of_values());
        refuse(Code::InvalidValue, faults)
    }

    /// Whether a release has to be approved before its grants take effect.
    pub fn requires_approval(&self) -> bool {
        self.require_approval.unwrap_or(false)
    }
}

/// The properties of a finished release that a policy can restrict.
pub struct ReleaseProperties<'a> {
    /// The privacy model with its parameters.
    pub privacy: &'a PrivacyDefinition,
    /// The share of the raw rows that were suppressed.
    pub suppressed: f64,
    /// The names of its columns that are not quasi-identifiers.
    pub other_columns: &'a [String],
    /// Its columns.
    pub columns: &'a [CodebookColumn],
}

impl Policy {
    /// Checks a job against the policy; `schema` is that of its dataset.
    ///
    /// # Errors
    /// `below_policy` with all faults; the pointers are into the job.
    pub fn check_job(&self, job: &JobDefinition, schema: &Schema) -> Result<(), Problem> {
        let mut faults = self.below_in_model(&job.privacy);
        let limit = job.suppression_limit.unwrap_or(0.0);
        let suppression = self.suppression(limit);
        faults.extend(suppression.map(|detail| Fault::at("/suppression_limit", detail)));
        for name in self.quasi_identifiers.iter().flatten() {
            for column in schema.columns.iter().filter(|it| is_of(it, name)) {
                let given = job
                    .roles
                    .as_ref()
                    .and_then(|roles| roles.get(column.name()));
                let role = given.copied().unwrap_or(column.role());
                if is_protected(role) {
                    continue;
                }
                let pointer = match given {
                    Some(_) => format!("/roles/{}", escape(column.name())),
                    None => "/dataset_id".to_owned(),
                };
                faults.push(Fault::at(pointer, must_be_quasi_identifier(name)));
            }
        }
        faults.extend(self.unbounded_in_job(job, schema));
        refuse(Code::BelowPolicy, faults)
    }

    /// Checks a finished release against the policy. The pointers are `pointer`, the place of the
    /// release in the body that was sent.
    ///
    /// # Errors
    /// `below_policy` with all faults.
    pub fn check_release(
        &self,
        release: &ReleaseProperties<'_>,
        pointer: &str,
    ) -> Result<(), Problem> {
        let of_model = self.below_in_model(release.privacy).into_iter();
        let mut details: Vec<String> = of_model.map(|fault| fault.detail).collect();
        details.extend(self.suppression(release.suppressed));
        let named = self.quasi_identifiers.iter().flatten();
        let others = named.filter(|name| {
            let is_other = |column: &str| release.other_columns.iter().any(|it| it == column);
            let mut columns = release.columns.iter();
            columns.any(|column| is_other(&column.name) && is_released_of(column, name))
        });
        details.extend(others.map(|name| must_be_quasi_identifier(name)));
        details.extend(self.unbounded_in_release(release));
        let faults = details.into_iter();
        refuse(
            Code::BelowPolicy,
            faults.map(|detail| Fault::at(pointer, detail)).collect(),
        )
        .map_err(|problem| Problem {
            detail: format!(
                "{}; a finished release cannot be changed: make another one, by a job that meets the policy",
                problem.detail
            ),
            ..problem
        })
    }

    /// Whether an organization of this name and id may get grants.
    pub fn allows_recipient(&self, name: &str, id: OrganizationId) -> bool {
        let id = id.to_string();
        let recipients = self.recipients.as_ref();
        recipients.is_none_or(|allowed| allowed.iter().any(|it| *it == name || *it == id))
    }

    /// The parts of a privacy model that are below the policy, with pointers into a job.
    fn below_in_model(&self, privacy: &PrivacyDefinition) -> Vec<Fault> {
        let model = privacy.model;
        let word = model.as_str();
        let mut faults = Vec::new();
        let mut add = |place: &str, detail: String| {
            faults.push(Fault::at(format!("/privacy/{place}"), detail));
        };
        let is_named = self
            .models
            .as_ref()
            .is_some_and(|models| models.contains(&model));
        if self.models.is_some() && !is_named {
            add(
                "model",
                format!("the policy's `models` does not name `{word}`"),
            );
        }
        if let Some(k_min) = self.k_min {
            match &privacy.k {
                Some(k) if k.all().any(|&k| k < k_min) => {
                    add("k", format!("the policy's `k_min` is {k_min}; raise `k`"));
                }
                None if k_min > 1 => add(
                    "model",
                    format!("the policy's `k_min` is {k_min}, and `{word}` has no K"),
                ),
                _ => {}
            }
        }
        if let Some(l_min) = self.l_min {
            let is_below = |l: &serde_json::Number| l.as_f64().is_none_or(|l| l < l_min as f64);
            if privacy.l.as_ref().is_some_and(|l| l.all().any(is_below)) {
                add("l", format!("the policy's `l_min` is {l_min}; raise `l`"));
            }
            for (column, limit) in privacy.column_limits.iter().flatten() {
                if *limit < l_min {
                    let place = format!("column_limits/{}", escape(column));
                    add(
                        &place,
                        format!("the policy's `l_min` is {l_min}; raise the limit"),
                    );
                }
            }
        }
        if let Some(c_max) = self.c_max {
            let (place, greatest) = match model {
                ModelKind::Lkc | ModelKind::ConfidenceBounding => {
                    let values = privacy.c.iter().flat_map(OneOrMany::all);
                    ("c", values.copied().fold(0.0, f64::max))
                }
                ModelKind::AlphaK => ("alpha", privacy.alpha.unwrap_or(1.0)),
                _ if is_named => ("model", 0.0),
                _ => unbounding(privacy).map_or(("model", 0.0), |place| (place, 1.0)),
            };
            if greatest > c_max {
                let remedy = match place {
                    "model" => format!("`{word}` bounds no sensitive value; use `lkc`"),
                    "l" | "column_limits" => {
                        format!("with this `{place}` a column is not bounded; raise it above 1")
                    }
                    place => format!("lower `{place}`"),
                };
                add(place, format!("the policy's `c_max` is {c_max}; {remedy}"));
            }
        }
        faults
    }

    fn suppression(&self, share: f64) -> Option<String> {
        let most = self.suppression_max?;
        (share > most).then(|| format!("the policy's `suppression_max` is {most}"))
    }
}

/// Whether two names look the same.
fn is_same(one: &str, other: &str) -> bool {
    visible_text(one) == visible_text(other)
}

/// Whether a column has this name, or is made from one that has it.
fn is_of(spec: &SchemaColumn, name: &str) -> bool {
    let sources = spec.from().iter().map(AsRef::as_ref);
    let mut names = std::iter::once(spec.name()).chain(sources);
    names.any(|own| is_same(own, name))
}

/// As [`is_of`], of a column of a release.
fn is_released_of(column: &CodebookColumn, name: &str) -> bool {
    let sources = column.from.iter().flatten();
    let mut names = std::iter::once(&column.name).chain(sources);
    names.any(|own| is_same(own, name))
}

/// Whether knowing the value of a patient in a column of this role helps no more than knowing a
/// quasi-identifier does.
fn is_protected(role: ColumnRole) -> bool {
    match role {
        ColumnRole::QuasiIdentifier | ColumnRole::Identifier | ColumnRole::Subject => true,
        ColumnRole::Sensitive | ColumnRole::Class | ColumnRole::Insensitive => false,
    }
}

fn must_be_quasi_identifier(name: &str) -> String {
    format!("the policy's `quasi_identifiers` names `{name}`, which has another role here")
}

/// The problem with these faults, if there are any.
fn refuse(code: Code, faults: Vec<Fault>) -> Result<(), Problem> {
    match faults.first() {
        None => Ok(()),
        Some(first) => Err(Problem::with(code, first.detail.clone(), faults)),
    }
}
