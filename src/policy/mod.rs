//! The policy of an organization: the floor below which its jobs, releases and grants are refused.

mod floor;

use pais_core::definition::ModelKind;
use pais_core::rejection::Fault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::{Code, Problem};

pub use floor::ReleasedTable;

/// Maximum number of columns and of recipients that a policy names.
const MOST_NAMES: usize = 1_000;

/// Maximum length of a name in a policy, in characters.
const NAME_LENGTH: usize = 200;

/// A policy; what is omitted is not restricted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The models that jobs may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    pub models: Option<Vec<ModelKind>>,
    /// Least K.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub k_min: Option<i64>,
    /// Least L, of the models that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub l_min: Option<i64>,
    /// Greatest confidence: C, or alpha. A model that bounds no confidence is refused then, unless
    /// `models` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0, maximum = 1)]
    pub c_max: Option<f64>,
    /// Greatest share of rows that may be suppressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub suppression_max: Option<f64>,
    /// Columns that are quasi-identifiers wherever a table has them, unless they are not released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 1000)]
    pub quasi_identifiers: Option<Vec<String>>,
    /// Names of the organizations that may get grants.
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
            let fits = |name: &String| (1..=NAME_LENGTH).contains(&name.chars().count());
            let fit = |names: &Vec<String>| names.len() <= MOST_NAMES && names.iter().all(fits);
            let expected = "is a list of at most 1000 names of 1 to 200 characters";
            require(names.as_ref().is_none_or(fit), line, expected);
        }
        match faults.first() {
            None => Ok(()),
            Some(first) => Err(Problem::with(
                Code::InvalidValue,
                first.detail.clone(),
                faults,
            )),
        }
    }

    /// Whether a release has to be approved before its grants take effect.
    pub fn requires_approval(&self) -> bool {
        self.require_approval.unwrap_or(false)
    }
}
