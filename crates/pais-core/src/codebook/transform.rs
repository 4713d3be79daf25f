//! Maps new raw rows through the cut of a release with global recoding.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{Codebook, CodebookColumn};
use crate::definition::{ColumnKind, ColumnRole};
use crate::reimport::{labelled, table_of};
use crate::rejection::Fault;
use crate::schema::{Schema, SchemaColumn, items};
use crate::table::{
    Column, Form, NULL_CODE, ReadError, ReadErrorKind, ReleasedColumn, ReleasedTable, Table,
};
use crate::taxonomy::{Interval, MISSING_LABEL, SUPPRESSED_LABEL, Tree};

/// The schema for reading a file of raw rows with these columns for [`transform`]: the quasi-identifiers of the
/// release, and those of the other columns that the file has.
///
/// `raw` is the schema of raw rows: that of the codebook, or the dataset's own.
pub fn input_schema(codebook: &Codebook, raw: &Schema, names: &[String]) -> Schema {
    let role = |spec: &SchemaColumn| {
        let known = codebook.columns.iter().find(|it| *it.name == *spec.name)?;
        let is_given = !spec.from.is_empty() || names.iter().any(|name| **name == *spec.name);
        match known.role {
            ColumnRole::QuasiIdentifier => Some(ColumnRole::QuasiIdentifier),
            // Their cells are read as those of the release were.
            role @ (ColumnRole::Sensitive | ColumnRole::Class) => is_given.then_some(role),
            _ => is_given.then_some(ColumnRole::Insensitive),
        }
    };
    let columns = raw.columns.iter().filter_map(|spec| {
        Some(SchemaColumn {
            role: role(spec)?,
            tree: None,
            ranges: None,
            domain: None,
            made: None,
            ..spec.clone()
        })
    });
    Schema {
        columns: columns.collect(),
    }
}

/// Raw rows with the labels of a release's cut in place of their quasi-identifiers.
///
/// `cut` has the labels of each quasi-identifier. `raw` is the schema of raw rows: that of the codebook, or the
/// dataset's own, whose taxonomies have the values below the cut. `table` was read with the schema `read_by` of
/// [`input_schema`]; its first row is on line `first_line`. Identifiers and the subject are left out; other
/// columns stay as they are, except for `round`.
///
/// Each distinct value is mapped once.
///
/// # Errors
/// [`ReadErrorKind::Cells`] for cells that have no label in the cut, with line and column, and
/// [`ReadErrorKind::Malformed`] where a taxonomy cannot be made, and for a cut with intervals that overlap.
pub fn transform(
    codebook: &Codebook,
    cut: &BTreeMap<String, Vec<String>>,
    raw: &Schema,
    read_by: &Schema,
    table: Table,
    first_line: u64,
) -> Result<ReleasedTable, ReadError> {
    let raw = with_trees(raw, read_by, &table)?;
    let mut faults = Vec::new();
    let mut columns = Vec::new();
    for (spec, mut column) in raw.iter().zip(table.columns) {
        let known = codebook.columns.iter().find(|it| *it.name == *spec.name);
        let Some(known) = known else { continue };
        let (form, column) = match (known.role, cut.get(&known.name)) {
            (ColumnRole::Identifier | ColumnRole::Subject, _) => continue,
            (ColumnRole::QuasiIdentifier, Some(labels)) => {
                let map = CutMap::new(known, labels, spec)?;
                let form = match spec.kind {
                    ColumnKind::Set => Form::untouched(spec),
                    _ => Form::Generalized,
                };
                (form, map.column(column, first_line, &mut faults))
            }
            _ => {
                column.round(spec);
                (Form::untouched(spec), column)
            }
        };
        columns.push(ReleasedColumn {
            name: spec.name.clone(),
            form,
            column,
            missing: match known.role {
                ColumnRole::QuasiIdentifier => Vec::new(),
                _ => spec.missing.clone(),
            },
        });
    }
    table_of(table.rows, columns, faults, "rows cannot be mapped")
}

/// The raw columns that were read, in their order, with the hierarchies that are made from values.
fn with_trees(
    raw: &Schema,
    read_by: &Schema,
    table: &Table,
) -> Result<Vec<SchemaColumn>, ReadError> {
    let specs = read_by.columns.iter();
    let specs = specs.filter_map(|read| raw.columns.iter().find(|spec| spec.name == read.name));
    let schema = Schema {
        columns: specs
            .zip(&read_by.columns)
            .map(|(spec, read)| SchemaColumn {
                // Identifiers are in the table here.
                role: read.role,
                ..spec.clone()
            })
            .collect(),
    };
    let made = schema.with_made_hierarchies(table);
    let made = made.map_err(|detail| ReadError::new(ReadErrorKind::Malformed, detail))?;
    Ok(made.columns)
}

/// The cut of one column, for mapping values.
struct CutMap<'a> {
    spec: &'a SchemaColumn,
    labels: HashSet<&'a str>,
    /// The numbers or dates that labels cover, in ascending order, with the labels. No two overlap.
    intervals: Vec<(Interval, &'a str)>,
    /// The label that covers every value, if the cut is that label alone.
    topmost: Option<&'a str>,
    /// The label of a missing value; `None` if the cut has none.
    of_missing: Option<&'a str>,
    tree: Option<Arc<Tree>>,
}

impl<'a> CutMap<'a> {
    fn new(
        known: &'a CodebookColumn,
        labels: &'a [String],
        spec: &'a SchemaColumn,
    ) -> Result<Self, ReadError> {
        let is_root = |label: &&String| match (&known.taxonomy, &spec.tree) {
            (Some(root), _) => root.label == **label,
            (None, Some(tree)) => *tree.nodes()[0].label == ***label,
            (None, None) => **label == SUPPRESSED_LABEL,
        };
        let topmost = labels.iter().find(is_root).map(String::as_str);
        let tree = spec.balanced_with_labels(&labels.iter().map(String::as_str).collect());
        let tree = tree.or_else(|| spec.tree.clone());
        // The outermost interval covers missing values, too: it is the whole cut.
        let scale = spec.kind.scale();
        let is_interval = |label: &&str| scale.is_some_and(|scale| scale.value(label).is_none());
        let outermost = match labels {
            [label] => Some(&**label).filter(is_interval),
            _ => None,
        };
        let missing = || labels.iter().find(|label| **label == MISSING_LABEL);
        let of_missing = match spec.kind {
            // Nothing is known about its items.
            ColumnKind::Set => Some(""),
            _ => topmost
                .or(outermost)
                .or_else(|| missing().map(String::as_str)),
        };
        let labels: HashSet<&str> = labels.iter().map(String::as_str).collect();
        let covered = |&label: &&'a str| Some((Interval::of_label(label, scale?)?, label));
        let mut intervals: Vec<(Interval, &str)> = labels.iter().filter_map(covered).collect();
        intervals.sort_by(|(one, _), (other, _)| one.lo.total_cmp(&other.lo));
        let mut pairs = intervals.windows(2);
        if pairs.any(|pair| !pair[0].0.is_below(pair[1].0.lo)) {
            let detail = format!("the cut of `{}` has labels that overlap", spec.name);
            return Err(ReadError::new(ReadErrorKind::Malformed, detail));
        }
        Ok(Self {
            spec,
            of_missing,
            labels,
            intervals,
            topmost,
            tree,
        })
    }

    /// The column with labels in place of values. Faults are added for values without one.
    fn column(&self, column: Column, first_line: u64, faults: &mut Vec<Fault>) -> Column {
        let label = |text: &str| self.label(text).map(Cow::into_owned);
        let at = |line| Fault::cell(line, &*self.spec.name, self.why_unknown());
        let null = column.codes.iter().position(|code| *code == NULL_CODE);
        if let Some(row) = null.filter(|_| self.of_missing.is_none()) {
            faults.push(at(first_line + row as u64));
        }
        let mut column = labelled(column, label, first_line, at, faults);
        if let Some(label) = self.of_missing {
            column.replace_null(label);
        }
        column
    }

    /// The label of a cell; `None` if the cut has none for it.
    fn label<'t>(&'t self, text: &'t str) -> Option<Cow<'t, str>> {
        if self.spec.is_missing(text) || text == MISSING_LABEL {
            return self.of_missing.map(Cow::Borrowed);
        }
        let value = self.spec.canonical(text);
        if self.spec.kind != ColumnKind::Set {
            return self.label_of(&value).map(Cow::Borrowed);
        }
        let labels = items(&value, self.spec.separator).map(|item| self.label_of(item));
        let mut labels: Vec<&str> = labels.collect::<Option<_>>()?;
        labels.sort_unstable();
        labels.dedup();
        let mut separator = [0; 4];
        Some(
            labels
                .join(&*self.spec.separator.encode_utf8(&mut separator))
                .into(),
        )
    }

    /// The label of a value in its one form.
    fn label_of(&self, value: &str) -> Option<&str> {
        if let Some(label) = self.labels.get(value) {
            return Some(label);
        }
        let number = self.spec.kind.scale().and_then(|scale| scale.value(value));
        let covering = number.and_then(|number| {
            let before = |(interval, _): &(Interval, &str)| interval.is_below(number);
            let place = self.intervals.partition_point(before);
            let (interval, label) = self.intervals.get(place)?;
            interval.contains(number).then_some(*label)
        });
        covering
            .or_else(|| self.above(value))
            .or(self.topmost.filter(|_| self.is_value(number)))
    }

    /// Whether a text that no label covers can be a value of the column. In a column of numbers or dates, only
    /// a number or date can.
    fn is_value(&self, number: Option<f64>) -> bool {
        self.spec.kind.scale().is_none() || number.is_some()
    }

    /// The label of the cut above a leaf of the taxonomy.
    fn above(&self, value: &str) -> Option<&str> {
        let tree = self.tree.as_deref()?;
        let mut node = Some(tree.leaf(self.spec.leaf(value)?));
        while let Some(id) = node {
            let label = &*tree.node(id).label;
            if let Some(label) = self.labels.get(label) {
                return Some(label);
            }
            node = tree.node(id).parent;
        }
        None
    }

    fn why_unknown(&self) -> &'static str {
        match (self.spec.kind.scale(), &self.tree) {
            (Some(_), None) => "no interval of the cut has this value",
            (None, None) => {
                "no label of the cut is above this value, as far as the codebook says; give the \
                 dataset's schema, whose taxonomy has the values below the cut"
            }
            (_, Some(_)) => "no label of the cut is above this value in the column's taxonomy",
        }
    }
}
