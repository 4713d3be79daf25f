//! Reads anonymized tables, of this service or of another tool: their cells are labels, not leaves.

pub mod anatomized;
mod read_back;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::definition::{ColumnKind, ColumnRole};
use crate::rejection::{Fault, Place};
use crate::schema::{Schema, SchemaColumn, canonical_text, items};
use crate::table::{
    Column, Form, MAX_FAULTS, NULL_CODE, ReadError, ReadErrorKind, ReleasedColumn, ReleasedTable,
    Table,
};
use crate::taxonomy::{Interval, MISSING_LABEL, Node, NodeId, SUPPRESSED_LABEL};

pub use read_back::{ReadBackError, read_back_error};

/// The schema for reading a finished table that has columns with these names. Its columns accept
/// every cell, and insensitive columns and identifiers can be absent.
pub fn columns(schema: &Schema, names: &[String]) -> Schema {
    let is_expected = |column: &&SchemaColumn| {
        let optional = matches!(
            column.role,
            ColumnRole::Insensitive | ColumnRole::Identifier | ColumnRole::Subject
        );
        !optional || names.iter().any(|name| **name == *column.name)
    };
    let unchecked = |column: &SchemaColumn| SchemaColumn {
        kind: match column.kind {
            ColumnKind::Set => ColumnKind::Set,
            _ => ColumnKind::Categorical,
        },
        separator: column.separator,
        is_verbatim: true,
        ..SchemaColumn::of_labels(column.name.clone())
    };
    let columns = schema.columns.iter().filter(is_expected);
    Schema {
        columns: columns.map(unchecked).collect(),
    }
}

/// Converts `table`, which was read with the schema `read_by` of [`columns`], to a released table
/// under the dataset's own schema. The first row is on line `first_line`.
///
/// Labels and numbers are written in canonical form, so that equal ones have equal text. All cells with
/// the same label must be written alike: the rows of the table as it is are distinguishable otherwise.
///
/// # Errors
/// [`ReadErrorKind::Cells`] for cells that are not labels of their column, or whose label is written in two
/// ways, [`ReadErrorKind::Header`] for an identifier that is not completely suppressed.
pub fn released(
    schema: &Schema,
    read_by: &Schema,
    table: Table,
    first_line: u64,
) -> Result<ReleasedTable, ReadError> {
    released_part(
        schema,
        read_by,
        table,
        first_line,
        &mut Spellings::default(),
    )
}

/// How the labels of a table are written, by column.
#[derive(Debug, Default)]
pub struct Spellings(HashMap<Box<str>, ColumnSpellings>);

/// By label, the text of its cells; `None` for null.
type ColumnSpellings = HashMap<Box<str>, Option<Box<str>>>;

/// As [`released`], for some rows of a table. `spellings` are those of the rows before.
///
/// # Errors
/// As [`released`].
pub fn released_part(
    schema: &Schema,
    read_by: &Schema,
    table: Table,
    first_line: u64,
    spellings: &mut Spellings,
) -> Result<ReleasedTable, ReadError> {
    let mut columns = Vec::with_capacity(table.columns.len());
    let mut faults = Vec::new();
    for (read, column) in read_by.columns.iter().zip(table.columns) {
        // Always found: `read_by` was made from the columns of `schema`.
        let Some(spec) = schema.columns.iter().find(|spec| spec.name == read.name) else {
            continue;
        };
        match spec.role {
            ColumnRole::Identifier | ColumnRole::Subject => {
                let suppressed = |text: &str| matches!(text.trim(), "" | SUPPRESSED_LABEL);
                if !column.dictionary.iter().all(|text| suppressed(text)) {
                    let detail = "the table still has this identifier";
                    let column = spec.name.to_string();
                    let fault = Fault::new(Place::Column { column }, detail);
                    let detail = format!("{detail}: `{}`", spec.name);
                    return Err(ReadError::with(ReadErrorKind::Header, detail, vec![fault]));
                }
            }
            ColumnRole::QuasiIdentifier => {
                let known = spellings.0.entry(spec.name.clone()).or_default();
                check_spellings(spec, &column, known, first_line, &mut faults);
                let mut column = with_canonical_labels(spec, column, first_line, &mut faults);
                column.replace_null(null_label(spec));
                let form = match spec.kind {
                    ColumnKind::Set => Form::untouched(spec),
                    _ => Form::Generalized,
                };
                columns.push(ReleasedColumn {
                    name: spec.name.clone(),
                    form,
                    column,
                    missing: Vec::new(),
                });
            }
            ColumnRole::Sensitive | ColumnRole::Class | ColumnRole::Insensitive => {
                columns.push(ReleasedColumn {
                    name: spec.name.clone(),
                    form: Form::untouched(spec),
                    column: exact_values(spec, column, first_line, &mut faults),
                    missing: spec.missing.clone(),
                });
            }
        }
    }
    let refused = "the table is not a generalization under this schema";
    table_of(table.rows, columns, faults, refused)
}

/// Checks that the labels of a released table belong to a cut, by column. The first row is on line
/// `first_line`.
///
/// # Errors
/// [`ReadErrorKind::Cells`] for other labels.
pub fn within_cut(
    table: &ReleasedTable,
    cut: &BTreeMap<String, Vec<String>>,
    first_line: u64,
) -> Result<(), ReadError> {
    let mut faults = Vec::new();
    for ReleasedColumn { name, column, .. } in &table.columns {
        let Some(labels) = cut.get(&**name) else {
            continue;
        };
        let labels: HashSet<&str> = labels.iter().map(String::as_str).collect();
        let is_label = |text: &str| labels.contains(text);
        let fault = |line| Fault::cell(line, &**name, "the cell is no label of the release's cut");
        add_faults(column, is_label, first_line, fault, &mut faults);
    }
    refuse(faults, "the table is another one than that of the release")
}

/// The released table of these columns; refused with the first faults, if there are any.
pub(crate) fn table_of(
    rows: usize,
    columns: Vec<ReleasedColumn>,
    faults: Vec<Fault>,
    refused: &str,
) -> Result<ReleasedTable, ReadError> {
    refuse(faults, refused)?;
    Ok(ReleasedTable {
        name: "data".into(),
        rows,
        columns,
    })
}

/// Refuses a table with the first faults, if there are any.
fn refuse(mut faults: Vec<Fault>, refused: &str) -> Result<(), ReadError> {
    faults.sort_by_key(Fault::line);
    faults.truncate(MAX_FAULTS);
    let Some(first) = faults.first() else {
        return Ok(());
    };
    let detail = format!("{refused}: {}", first.detail);
    Err(ReadError::with(ReadErrorKind::Cells, detail, faults))
}

/// Adds a fault for each cell whose label was written differently before.
fn check_spellings(
    spec: &SchemaColumn,
    column: &Column,
    known: &mut ColumnSpellings,
    first_line: u64,
    faults: &mut Vec<Fault>,
) {
    let mut is_as_before = |label: Cow<str>, text: Option<&str>| {
        let first = known.entry(label.into());
        first.or_insert_with(|| text.map(Into::into)).as_deref() == text
    };
    let detail =
        "the label is written differently in another row, so these rows are distinguishable";
    let fault = |line| Fault::cell(line, &*spec.name, detail).fix("write each label in one way");
    let null = column.codes.iter().position(|code| *code == NULL_CODE);
    if let Some(row) = null.filter(|_| !is_as_before(null_label(spec).into(), None)) {
        faults.push(fault(first_line + row as u64));
    }
    let is_alike = |text: &str| {
        canonical_label(spec, text).is_none_or(|label| is_as_before(label, Some(text)))
    };
    add_faults(column, is_alike, first_line, fault, faults);
}

/// The label of a null cell. Of a set it is the empty set: nothing is known about its items.
fn null_label(spec: &SchemaColumn) -> &'static str {
    match spec.kind {
        ColumnKind::Set => "",
        _ => MISSING_LABEL,
    }
}

fn with_canonical_labels(
    spec: &SchemaColumn,
    column: Column,
    first_line: u64,
    faults: &mut Vec<Fault>,
) -> Column {
    let expected = match spec.kind {
        ColumnKind::Date | ColumnKind::Datetime if spec.has_grown_intervals() => {
            "an interval such as [1987-01-01,1990-07-01), a date or `?`"
        }
        ColumnKind::Numeric if spec.tree.is_none() => {
            "an interval such as [30,60), a number or `?`"
        }
        ColumnKind::Set => "a label of the column's taxonomy or `?` for each item, each label once",
        _ => "a label of the column's taxonomy or `?`",
    };
    let within = declared_interval(spec).map_or_else(String::new, |domain| {
        format!(", within the domain {domain}")
    });
    let detail = format!("the cell is not valid; expected {expected}{within}");
    let label = |text: &'_ str| canonical_label(spec, text).map(Cow::into_owned);
    let at = |line| Fault::cell(line, &*spec.name, &*detail);
    labelled(column, label, first_line, at, faults)
}

/// The column with the label of each text in its place. A text without a label is kept and reported as a fault
/// at the line of its first row; the first row of the column is on line `first_line`.
pub(crate) fn labelled(
    mut column: Column,
    label: impl Fn(&str) -> Option<String>,
    first_line: u64,
    fault_at: impl Fn(u64) -> Fault,
    faults: &mut Vec<Fault>,
) -> Column {
    let is_label = |text: &str| label(text).is_some();
    add_faults(&column, is_label, first_line, fault_at, faults);
    column.replace_texts(|text| Some(label(text).map_or(Cow::Borrowed(text), Cow::Owned)));
    column
}

/// Adds a fault for each text that is not valid, at the line of its first row.
fn add_faults(
    column: &Column,
    mut is_valid: impl FnMut(&str) -> bool,
    first_line: u64,
    fault_at: impl Fn(u64) -> Fault,
    faults: &mut Vec<Fault>,
) {
    let texts = (0..).zip(&column.dictionary);
    let invalid = texts.filter(|(_, text)| !is_valid(text));
    for (code, _) in invalid.take(MAX_FAULTS) {
        let row = column.codes.iter().position(|&other: &u32| other == code);
        faults.push(fault_at(first_line + row.unwrap_or(0) as u64));
    }
}

/// The column of exact values in canonical form. In a column of numbers or dates, any other text is a fault:
/// two such texts could be one value.
fn exact_values(
    spec: &SchemaColumn,
    column: Column,
    first_line: u64,
    faults: &mut Vec<Fault>,
) -> Column {
    let expected = match spec.kind {
        ColumnKind::Numeric => "a number",
        ColumnKind::Date | ColumnKind::Datetime => "a date",
        ColumnKind::Categorical | ColumnKind::Set => return rewritten(spec, column),
    };
    let is_value = |text: &str| {
        exact_text(spec, text)
            .is_none_or(|value| spec.is_missing(&value) || spec.scale().value(&value).is_some())
    };
    let detail = format!("the cell is not valid; expected {expected} or a word for missing");
    let at = |line| Fault::cell(line, &*spec.name, &*detail);
    add_faults(&column, is_value, first_line, at, faults);
    rewritten(spec, column)
}

/// The canonical form of a label of the column; `None` if the text is not such a label.
fn canonical_label<'a>(spec: &SchemaColumn, text: &'a str) -> Option<Cow<'a, str>> {
    if spec.kind != ColumnKind::Set {
        return canonical_item_label(spec, text);
    }
    // A label of the taxonomy can be equal to a word for missing.
    let is_known = |item| spec.tree.as_ref()?.find(&canonical_text(item));
    let is_of_tree = items(text, spec.separator).all(|item| is_known(item).is_some());
    if !is_of_tree && spec.is_missing(text) {
        return Some("".into());
    }
    let items = items(text, spec.separator);
    let mut labels: Vec<Cow<str>> = items
        .map(|item| canonical_item_label(spec, item))
        .collect::<Option<_>>()?;
    labels.sort_unstable();
    if labels.windows(2).any(|two| two[0] == two[1]) {
        return None;
    }
    let mut separator = [0; 4];
    Some(
        labels
            .join(spec.separator.encode_utf8(&mut separator))
            .into(),
    )
}

fn canonical_item_label<'a>(spec: &SchemaColumn, text: &'a str) -> Option<Cow<'a, str>> {
    let text = canonical_text(text);
    // A balanced tree depends on the raw rows.
    let tree = spec.tree.as_deref().filter(|_| !spec.is_balanced());
    if text == MISSING_LABEL || tree.is_some_and(|tree| tree.find(&text).is_some()) {
        return Some(text);
    }
    // Before words for missing, which it can be one of: missing cells are released as `?`.
    if text == SUPPRESSED_LABEL {
        return Some(match tree {
            Some(tree) => tree.node(NodeId::ROOT).label.to_string().into(),
            None => text,
        });
    }
    if spec.is_missing(&text) {
        return Some(MISSING_LABEL.into());
    }
    let is_range = spec.has_grown_intervals() || spec.ranges.is_some();
    if !is_range {
        return tree.is_none().then_some(text);
    }
    // The labels of a hierarchy that is made from raw values are not known without them.
    if tree.is_none() && spec.made.is_some() {
        let interval = Interval::parse_on(&text, spec.scale());
        return Some(interval.map_or(text, |interval| interval.to_string().into()));
    }
    let interval = Interval::parse_on(&text, spec.scale())?;
    let Some(tree) = tree else {
        let domain = declared_interval(spec);
        let is_within = domain.is_none_or(|domain| domain.encloses(&interval));
        return is_within.then(|| interval.to_string().into());
    };
    // The tree's labels can contain spaces that the table's labels do not have, or the reverse.
    let is_same_interval = |node: &&Node| Interval::parse(&node.label) == Some(interval);
    let node = tree.nodes().iter().find(is_same_interval)?;
    Some(node.label.to_string().into())
}

/// The outermost interval of a column whose intervals are grown, if it is declared.
fn declared_interval(spec: &SchemaColumn) -> Option<Interval> {
    let (lo, hi) = spec.domain.filter(|_| spec.has_grown_intervals())?;
    Some(Interval::closed(lo, hi).on(spec.scale()))
}

/// A column of exact values in canonical form, so that two tables can be compared. Empty cells, which CSV
/// writes for null, become null unless they are values.
///
/// Texts that become equal are merged.
pub fn rewritten(spec: &SchemaColumn, mut column: Column) -> Column {
    column.replace_texts(|text| exact_text(spec, text));
    column
}

/// The canonical form of an exact cell; `None` for null.
fn exact_text<'t>(spec: &SchemaColumn, text: &'t str) -> Option<Cow<'t, str>> {
    let text = spec.canonical(text);
    let is_null = text.is_empty() && spec.is_empty_null();
    (!is_null).then_some(text)
}

/// The column for reading the exact values of an anatomized table: as declared, except that the empty cell,
/// which CSV writes for null, is missing unless it is a value, and that a rounded number can be outside the
/// domain.
fn exact_column(spec: &SchemaColumn) -> SchemaColumn {
    let mut column = spec.clone();
    column.from.clear();
    if column.is_unchanged() && column.round.is_some() {
        column.domain = None;
    }
    if column.missing.is_empty() && column.is_empty_null() {
        column.missing.push("".into());
    }
    column
}
