//! The codebook of a release: the declarations and trees that a recipient needs to interpret and verify it.
//!
//! It reveals no more about the rows than the release does. A taxonomy has the released labels and their
//! ancestors, so it has no value below the cut, and a column whose taxonomy consists of raw values only has
//! none.

mod build;
mod document;
mod transform;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::schema::Schema;

use crate::definition::{
    ColumnDefinition, ColumnKind, ColumnRole, DatasetDefinition, DomainBound, TaxonomyNode,
    TaxonomyReference,
};

pub use document::ReleaseTerms;
pub use transform::{input_schema, transform};

/// The codebook of a release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Codebook {
    /// The dataset that the release is of.
    pub dataset: CodebookDataset,
    /// The organization that holds the dataset.
    pub organization: CodebookOrganization,
    /// The declared columns, in order. Identifiers and the subject are not released.
    pub columns: Vec<CodebookColumn>,
}

/// The dataset of a release.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CodebookDataset {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
}

/// The distinct schemas under which these releases show the sensitive values of a dataset. A later change of
/// the dataset neither makes a released value missing nor rounds it. `own` is one of them if the dataset's own
/// schema is wanted too.
///
/// A model must hold in each of them: multiples of 50 and of 30 divide numbers differently, and a word that
/// means missing in only one release is counted in the other.
pub fn views<'c>(
    schema: &Schema,
    own: Option<&Schema>,
    codebooks: impl IntoIterator<Item = &'c Codebook>,
) -> Vec<Schema> {
    let shown = codebooks.into_iter().map(|codebook| {
        let mut shown = schema.clone();
        let sensitive = codebook.columns.iter();
        for column in sensitive.filter(|column| column.role == ColumnRole::Sensitive) {
            let mut columns = shown.columns.iter_mut();
            if let Some(spec) = columns.find(|spec| *spec.name() == *column.name) {
                spec.show_as(column.missing.as_deref(), column.round);
            }
        }
        shown
    });
    let mut views: Vec<Schema> = Vec::new();
    for shown in own.cloned().into_iter().chain(shown) {
        let are_alike = |other: &Schema| {
            let mut columns = other.columns.iter().zip(&shown.columns);
            columns.all(|(one, other)| one.shows_as(other))
        };
        if !views.iter().any(are_alike) {
            views.push(shown);
        }
    }
    views
}

/// The holder of a release.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CodebookOrganization {
    /// Its slug.
    pub name: String,
    /// Its name for people.
    pub display_name: Option<String>,
}

/// A column of a release.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CodebookColumn {
    /// The name.
    pub name: String,
    /// Its role in the job of the release.
    pub role: ColumnRole,
    /// How its raw cells were read.
    pub kind: ColumnKind,
    /// The columns of the raw rows that its items come from, of a set that is made of several.
    pub from: Option<Vec<String>>,
    /// The released labels and the labels above them, of a generalized column with a taxonomy.
    pub taxonomy: Option<TaxonomyNode>,
    /// The declared outermost interval.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<DomainBound>>, min_items = 2, max_items = 2))]
    pub domain: Option<[DomainBound; 2]>,
    /// Between the items of a set.
    pub separator: Option<String>,
    /// How raw dates were written, where it was not ISO 8601.
    pub format: Option<String>,
    /// The step of which released numbers are multiples, for a column otherwise released unchanged.
    pub round: Option<f64>,
    /// The declared words that mean missing.
    pub missing: Option<Vec<String>>,
}

/// Prefix of the label of a leaf that stands for unknown values: a Unicode private-use character, so that no
/// declared label is equal.
const OTHER_VALUES: &str = "\u{e000}other values of ";

impl Codebook {
    /// The dataset as its released table describes it: the released labels are the leaves of the taxonomies. A
    /// table of the release is valid under this definition and under the dataset's own.
    ///
    /// A label with labels below it has one more leaf, for values without a released label of their own: an
    /// adversary may know one of them.
    pub fn definition(&self) -> DatasetDefinition {
        DatasetDefinition {
            name: self.dataset.name.clone(),
            description: self.dataset.description.clone(),
            columns: self
                .columns
                .iter()
                .map(CodebookColumn::definition)
                .collect(),
            ..DatasetDefinition::default()
        }
    }
}

impl CodebookColumn {
    fn definition(&self) -> ColumnDefinition {
        let has_taxonomy = self.taxonomy.is_some();
        // Labels above numbers and dates are labels, and so are the released ones below.
        let kind = match self.kind {
            ColumnKind::Set => ColumnKind::Set,
            _ if has_taxonomy => ColumnKind::Categorical,
            kind => kind,
        };
        // A root alone generalizes nothing.
        let taxonomy = self.taxonomy.clone();
        let mut taxonomy = taxonomy.filter(|root| !root.children.is_empty());
        if let Some(root) = taxonomy.as_mut().filter(|_| kind != ColumnKind::Set) {
            add_other_values(root);
        }
        ColumnDefinition {
            kind,
            taxonomy: taxonomy.map(TaxonomyReference::Inline),
            domain: self.domain.clone().filter(|_| kind.scale().is_some()),
            separator: self.separator.clone().filter(|_| kind == ColumnKind::Set),
            round: self.round.filter(|_| kind == ColumnKind::Numeric),
            missing: self.missing.clone(),
            format: self.format.clone().filter(|_| kind.is_of_dates()),
            ..ColumnDefinition::new(&self.name, self.role)
        }
    }
}

/// Adds a leaf below each inner label.
fn add_other_values(node: &mut TaxonomyNode) {
    if node.children.is_empty() {
        return;
    }
    node.children.iter_mut().for_each(add_other_values);
    let other_values = format!("{OTHER_VALUES}{}", node.label);
    node.children.push(other_values.as_str().into());
}
