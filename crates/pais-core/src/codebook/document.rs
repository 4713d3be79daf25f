//! The document of a release, as `GET /v1/releases/{id}` answers it, in place of a schema and a job.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Codebook, CodebookColumn};
use crate::definition::{
    ColumnDefinition, ColumnRole, DatasetDefinition, DocumentError, DomainBound, JobDefinition,
    PrivacyDefinition, json,
};
use crate::model::MissingSensitive;
use crate::schema::{Schema, SchemaError};
use crate::table::BoundedColumn;
use crate::taxonomy::{Interval, Scale, TreeLimits};

/// The terms of a release, as its document states them. Its other fields are not needed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ReleaseTerms {
    /// Its rows.
    pub rows: u64,
    /// Resolves its labels.
    pub codebook: Option<Codebook>,
    /// The privacy model with its parameters.
    pub privacy: PrivacyDefinition,
    /// Column to the labels of its cut; with global recoding only.
    pub cut: Option<BTreeMap<String, Vec<String>>>,
    /// How missing sensitive cells count.
    pub missing_sensitive: Option<MissingSensitive>,
}

impl ReleaseTerms {
    /// Reads the document of a release.
    ///
    /// # Errors
    /// As [`json::parse`].
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        json::parse(body)
    }

    /// The job with the privacy model of the release. The roles are those of the codebook.
    pub fn job(&self) -> JobDefinition {
        JobDefinition {
            dataset_id: None,
            privacy: self.privacy.clone(),
            utility: None,
            suppression_limit: None,
            suppression_for: None,
            missing_sensitive: self.missing_sensitive,
            recoding: None,
            output: None,
            pre_generalization: None,
            roles: None,
            submissions: None,
            release: None,
            executor: None,
            seed: None,
            acknowledge_unchanged: None,
        }
    }
}

impl Codebook {
    /// The schema under which a table of the release can be read and verified.
    ///
    /// # Errors
    /// [`SchemaError`] for a codebook whose columns do not form a schema.
    pub fn schema(&self, limits: TreeLimits) -> Result<Schema, SchemaError> {
        Schema::resolve(&self.definition(), limits, |_| None)
    }

    /// The schema under which raw rows of the dataset can be read, without any taxonomy.
    ///
    /// # Errors
    /// As [`Self::schema`].
    pub fn raw_schema(&self) -> Result<Schema, SchemaError> {
        let columns = self.columns.iter().map(CodebookColumn::raw_definition);
        Schema::inline(&DatasetDefinition {
            columns: columns.collect(),
            ..self.definition()
        })
    }
}

impl Codebook {
    /// The generalized columns of numbers and dates, whose labels have bounds. The label `*` has
    /// those of the declared domain, else those of the root of the taxonomy.
    pub fn bounded_columns(&self) -> Vec<BoundedColumn> {
        let columns = self.columns.iter();
        let generalized = columns.filter(|column| column.role == ColumnRole::QuasiIdentifier);
        let bounded = generalized.filter_map(|column| {
            let scale = column.kind.scale()?;
            Some(BoundedColumn {
                name: column.name.as_str().into(),
                scale,
                outermost: column.outermost(scale),
            })
        });
        bounded.collect()
    }
}

impl CodebookColumn {
    fn outermost(&self, scale: Scale) -> Option<(f64, f64)> {
        let end = |end: &DomainBound| match end {
            DomainBound::Number(number) => Some(*number),
            DomainBound::Date(date) => scale.value(date),
        };
        if let Some([lo, hi]) = &self.domain {
            return end(lo).zip(end(hi));
        }
        let root = Interval::parse_on(&self.taxonomy.as_ref()?.label, scale)?;
        Some((root.lo, root.hi))
    }

    fn raw_definition(&self) -> ColumnDefinition {
        let without_taxonomy = Self {
            taxonomy: None,
            ..self.clone()
        };
        without_taxonomy.definition()
    }
}
