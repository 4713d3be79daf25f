//! A dataset's schema with its taxonomies resolved, and the checks of column definitions.

mod cell;
mod checks;
mod dates;
mod made;
mod preview;
mod privacy;
mod resolution;
mod roles;
mod subject_id;
mod value;

use std::sync::Arc;

use crate::calendar::DateFormat;
use crate::definition::{
    ColumnDefinition, ColumnKind, ColumnRole, DatasetDefinition, GeneratedHierarchy, TaxonomyId,
};
use crate::rejection::{Fault, Place, Rejection};
use crate::taxonomy::{Interval, MISSING_LABEL, Multiples, Tree, TreeLimits};

use resolution::{DeclaredColumn, unwritable};

pub use crate::canonical_text::canonical_text;
pub use cell::{UnfitCells, no_number, no_subject, unfit_cells};
pub use checks::MOST_NAME_BYTES;
pub use made::ReleasedLeaves;
pub use preview::{CellRows, HierarchyPreview, UnfitValue};
pub use value::items;

/// The separator of a set's items if the definition has none.
pub const DEFAULT_SEPARATOR: char = '|';

/// What is wrong with a dataset's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaErrorKind {
    /// It names a taxonomy that does not exist.
    UnknownTaxonomy,
    /// An inline taxonomy is not a tree of distinct labels.
    Taxonomy,
    /// The columns do not fit together.
    Columns,
}

/// Why a dataset's definition is refused, with pointers into it.
pub type SchemaError = Rejection<SchemaErrorKind>;

/// A column with its taxonomy.
#[derive(Clone, Debug)]
pub struct SchemaColumn {
    /// The name, as in the header.
    pub(crate) name: Box<str>,
    /// Its role.
    pub(crate) role: ColumnRole,
    /// How its cells are read.
    pub(crate) kind: ColumnKind,
    /// Its taxonomy; `None` for a column with a flat tree or with intervals that are grown during
    /// the run.
    pub(crate) tree: Option<Arc<Tree>>,
    /// The tree of all raw rows, to which the levels of a pre-generalization refer, if `tree` is another tree,
    /// with the labels of a release.
    pub(crate) searched: Option<Arc<Tree>>,
    /// Leaves of `tree` except `?` as ascending ranges, for a numeric column with a tree.
    pub(crate) ranges: Option<Arc<[Interval]>>,
    /// The outermost interval of a column of numbers or dates; see [`crate::taxonomy::Scale`].
    pub(crate) domain: Option<(f64, f64)>,
    /// The character between two items of a set.
    pub(crate) separator: char,
    /// Words that mean missing: each in canonical form, and as declared.
    pub(crate) missing: Vec<Box<str>>,
    /// Whether the outermost interval is widened to round numbers where no domain is declared.
    pub(crate) round_range: bool,
    /// The multiples at which intervals that are grown during a run end.
    pub(crate) round: Option<Multiples>,
    /// The columns of a file that have the items of this set. Empty for a column that a file has
    /// under its own name.
    pub(crate) from: Vec<Box<str>>,
    /// The format of dates, in addition to ISO 8601.
    pub(crate) format: Option<DateFormat>,
    /// The hierarchy that is made from the values of a table, for each run.
    pub(crate) made: Option<GeneratedHierarchy>,
    /// Whether cells stay as they are written: what is written differently is distinguishable.
    pub(crate) is_verbatim: bool,
}

/// The declared columns, checked one by one and against each other.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The columns in the declared order, including identifiers.
    pub columns: Vec<SchemaColumn>,
}

impl Schema {
    /// Checks a definition and resolves its taxonomies.
    ///
    /// `taxonomy` returns a taxonomy by id; `None` if the organization has no taxonomy with this
    /// id.
    ///
    /// # Errors
    /// [`SchemaErrorKind`]: for an unknown taxonomy, for an invalid inline tree, and with every
    /// fault found for the rest.
    pub fn resolve(
        definition: &DatasetDefinition,
        limits: TreeLimits,
        mut taxonomy: impl FnMut(TaxonomyId) -> Option<Arc<Tree>>,
    ) -> Result<Self, SchemaError> {
        let mut faults = checks::set_faults(&definition.columns);
        let mut columns = Vec::with_capacity(definition.columns.len());
        if definition.columns.is_empty() {
            faults.push(Fault::at("/columns", "a dataset needs at least one column"));
        }
        for index in 0..definition.columns.len() {
            let mut declared = DeclaredColumn::new(definition, index, &mut faults);
            columns.push(declared.resolve(limits, &mut taxonomy)?);
        }
        faults.extend(checks::subject_faults(&definition.columns));
        let missing = definition.missing.as_deref();
        faults.extend(missing.and_then(|words| unwritable(words, "/missing")));
        let classes = columns
            .iter()
            .filter(|column| column.role == ColumnRole::Class)
            .count();
        if classes > 1 {
            faults.push(
                Fault::at(
                    "/columns",
                    format!("{classes} columns have the role class; at most one can"),
                )
                .fix("give the others the role insensitive"),
            );
        }
        if !faults.is_empty() {
            let detail = format!("the columns do not make a schema: {}", faults[0].detail);
            return Err(SchemaError::with(SchemaErrorKind::Columns, detail, faults));
        }
        Ok(Self { columns })
    }

    /// A schema that a program declares column by column.
    ///
    /// ```
    /// use pais_core::definition::{ColumnDefinition, TaxonomyNode};
    /// use pais_core::schema::Schema;
    ///
    /// let sex = TaxonomyNode::new("ANY", ["F", "M"]);
    /// let schema = Schema::builder()
    ///     .column(ColumnDefinition::quasi_identifier("Sex").taxonomy(sex))
    ///     .column(ColumnDefinition::quasi_identifier("Age").numeric(1.0, 99.0))
    ///     .column(ColumnDefinition::sensitive("Surgery"))
    ///     .build()?;
    /// assert_eq!(schema.columns.len(), 3);
    ///
    /// let twice = Schema::builder()
    ///     .column(ColumnDefinition::class("Transfuse"))
    ///     .column(ColumnDefinition::class("Transfuse"))
    ///     .build();
    /// assert_eq!(twice.unwrap_err().faults[0].column(), Some("Transfuse"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder {
            columns: Vec::new(),
        }
    }

    /// Checks a definition whose taxonomies are all inline, within [`TreeLimits::default`].
    ///
    /// ```
    /// use pais_core::definition::{DatasetDefinition, json};
    /// use pais_core::schema::{Schema, SchemaErrorKind};
    ///
    /// let none: DatasetDefinition = json::parse(br#"{"name": "a", "columns": []}"#)?;
    /// let error = Schema::inline(&none).unwrap_err();
    /// assert_eq!(error.kind, SchemaErrorKind::Columns);
    /// assert_eq!(error.faults[0].pointer(), Some("/columns"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::resolve`]; [`SchemaErrorKind::UnknownTaxonomy`] for a taxonomy given by id.
    pub fn inline(definition: &DatasetDefinition) -> Result<Self, SchemaError> {
        Self::resolve(definition, TreeLimits::default(), |_| None)
    }

    /// The columns that are stored: all but identifiers, in the declared order. Indices into a
    /// [`crate::table::Table`] are positions in this list.
    pub fn stored(&self) -> impl Iterator<Item = &SchemaColumn> {
        self.columns
            .iter()
            .filter(|column| column.role != ColumnRole::Identifier)
    }

    /// The stored column with this name.
    pub fn stored_named(&self, name: &str) -> Option<&SchemaColumn> {
        self.stored().find(|column| *column.name == *name)
    }

    /// The stored column at this position.
    pub fn stored_at(&self, position: usize) -> Option<&SchemaColumn> {
        self.stored().nth(position)
    }

    /// The columns with this role, in the declared order.
    pub fn with_role(&self, role: ColumnRole) -> impl Iterator<Item = &SchemaColumn> {
        self.columns
            .iter()
            .filter(move |column| column.role == role)
    }

    /// The positions, among the stored columns, of the columns with this role.
    pub fn stored_with(&self, role: ColumnRole) -> Vec<usize> {
        self.stored()
            .enumerate()
            .filter(|(_, column)| column.role == role)
            .map(|(position, _)| position)
            .collect()
    }
}

/// The columns of a [`Schema`] that is being declared, in the order of releases.
#[derive(Clone, Debug)]
pub struct SchemaBuilder {
    columns: Vec<ColumnDefinition>,
}

impl SchemaBuilder {
    /// Adds a column.
    pub fn column(mut self, column: ColumnDefinition) -> Self {
        self.columns.push(column);
        self
    }

    /// Checks the columns, one by one and against each other.
    ///
    /// # Errors
    /// As [`Schema::inline`], with the name of the column in place of a pointer.
    pub fn build(self) -> Result<Schema, SchemaError> {
        let definition = DatasetDefinition {
            columns: self.columns,
            ..DatasetDefinition::default()
        };
        Schema::inline(&definition).map_err(|mut error| {
            for fault in &mut error.faults {
                let index = fault
                    .pointer()
                    .and_then(|pointer| pointer.split('/').nth(2));
                let index = index.and_then(|index| index.parse::<usize>().ok());
                if let Some(column) = index.and_then(|index| definition.columns.get(index)) {
                    let column = column.name.clone();
                    fault.place = Place::Column { column };
                }
            }
            error
        })
    }
}

impl SchemaColumn {
    /// An insensitive column of labels without a taxonomy.
    pub(crate) fn of_labels(name: Box<str>) -> Self {
        Self {
            name,
            role: ColumnRole::Insensitive,
            kind: ColumnKind::Categorical,
            tree: None,
            searched: None,
            ranges: None,
            domain: None,
            separator: DEFAULT_SEPARATOR,
            missing: Vec::new(),
            round_range: false,
            round: None,
            from: Vec::new(),
            format: None,
            made: None,
            is_verbatim: false,
        }
    }

    /// The name, as in the header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The role of the column for the adversary and the analyst.
    pub fn role(&self) -> ColumnRole {
        self.role
    }

    /// How its cells are read.
    pub fn kind(&self) -> ColumnKind {
        self.kind
    }

    /// Its taxonomy; `None` for a column with a flat tree or with intervals that are grown during
    /// the run.
    pub fn tree(&self) -> Option<&Arc<Tree>> {
        self.tree.as_ref()
    }

    /// The outermost interval of a column of numbers or dates; see [`crate::taxonomy::Scale`].
    pub fn domain(&self) -> Option<(f64, f64)> {
        self.domain
    }

    /// The columns of a file that have the items of this set. Empty for a column that a file has
    /// under its own name.
    pub fn from(&self) -> &[Box<str>] {
        &self.from
    }

    /// The character between two items of a set.
    pub fn separator(&self) -> char {
        self.separator
    }

    /// Words that mean missing: each in canonical form, and as declared.
    pub fn missing(&self) -> &[Box<str>] {
        &self.missing
    }

    /// Whether the outermost interval is widened to round numbers where no domain is declared.
    pub fn round_range(&self) -> bool {
        self.round_range
    }

    /// The leaf number of a cell that is not missing: by label, or by range in a numeric column
    /// with a tree. `None` if the column has no tree, or the tree has no leaf for the cell.
    pub(crate) fn leaf(&self, cell: &str) -> Option<u32> {
        let Some(ranges) = &self.ranges else {
            return self.leaf_of_label(cell);
        };
        let value = crate::taxonomy::interval::number(cell)?;
        let place = ranges.partition_point(|range| range.is_below(value));
        ranges.get(place).filter(|range| range.contains(value))?;
        let place = place as u32;
        let missing = self.tree.as_ref()?.missing_leaf();
        Some(place + u32::from(missing.is_some_and(|missing| missing <= place)))
    }

    /// Whether a cell in canonical form is generalized as a missing one: a word that means missing, or the label
    /// `?`, where the service makes the tree of the column from the values of a table.
    pub fn is_generalized_as_missing(&self, cell: &str) -> bool {
        let is_flat_or_made = || self.made.is_some() || self.is_flat();
        self.is_missing(cell) || (cell == MISSING_LABEL && is_flat_or_made())
    }

    /// Whether the column has a flat tree, in which the service adds the labels `?` and `*`.
    pub(crate) fn is_flat(&self) -> bool {
        self.tree.is_none() && !self.has_grown_intervals()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Schema;
    use crate::definition::{ColumnDefinition, ColumnKind, TaxonomyNode};
    use crate::taxonomy::Interval;

    proptest! {
        /// Ranges of the widths, in nodes of several leaves, with `?` somewhere among the nodes.
        #[test]
        fn the_leaf_of_a_number_is_that_of_a_linear_search(
            widths in prop::collection::vec(prop::collection::vec(1u32..3, 1..4), 2..5),
            is_closed in any::<bool>(),
            missing in prop::option::of(0usize..6),
        ) {
            let last = widths.iter().flatten().sum::<u32>();
            let range = |start: u32, width: u32| {
                let end = start + width;
                let close = if is_closed && end == last { ']' } else { ')' };
                format!("[{start},{end}{close}")
            };
            let mut start = 0;
            let mut nodes = Vec::new();
            for widths in &widths {
                let label = range(start, widths.iter().sum());
                let mut leaves: Vec<TaxonomyNode> = Vec::new();
                for &width in widths {
                    leaves.push(range(start, width).as_str().into());
                    start += width;
                }
                // A node of one leaf is that leaf.
                let leaves = if leaves.len() == 1 { Vec::new() } else { leaves };
                nodes.push(TaxonomyNode::new(label, leaves));
            }
            if let Some(at) = missing {
                nodes.insert(at.min(nodes.len()), "?".into());
            }
            let root = TaxonomyNode::new(range(0, last), nodes);
            let column = ColumnDefinition::quasi_identifier("n").taxonomy(root);
            let column = ColumnDefinition { kind: ColumnKind::Numeric, ..column };
            let schema = Schema::builder().column(column).build().unwrap();
            let spec = schema.stored_at(0).unwrap();
            let tree = spec.tree().unwrap();
            for half in 0..2 * last + 4 {
                let value = f64::from(half) / 2.0 - 1.0;
                let covers = |leaf: &u32| {
                    let label = &tree.node(tree.leaf(*leaf)).label;
                    Interval::parse(label).is_some_and(|range| range.contains(value))
                };
                let expected = (0..tree.leaf_count() as u32).find(covers);
                prop_assert_eq!(spec.leaf(&value.to_string()), expected, "{}", value);
            }
        }
    }
}
