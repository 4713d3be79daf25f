//! Headers: checks the column names of a file against the declared ones.
//!
//! Messages never contain text of the header: in a file without a header the first line is a
//! patient's.

use std::collections::BTreeMap;

use pais_core::definition::ColumnRole;
use pais_core::rejection::Fault;
use pais_core::schema::Schema;
use pais_core::table::{ReadError, ReadErrorKind};

use super::cells::check_text;
use super::suggestions;
use super::text_format::TextFormat;

/// Maximum number of changed, missing or added characters of a name for which a declared one is suggested.
const MAX_TYPOS: usize = 2;

/// Where the cells of a file's column go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To the stored column with this position (slot); nowhere for an identifier, whose cells are
    /// not stored.
    Cell(Option<usize>),
    /// To a set that is made of several columns: the item with this number, counted over all sets.
    Item(usize),
}

impl Target {
    /// Whether the cells are stored.
    pub(super) fn is_stored(self) -> bool {
        self != Self::Cell(None)
    }
}

/// A column that a file has under a schema.
#[derive(Clone, Copy)]
pub(super) struct ExpectedColumn<'s> {
    pub(super) name: &'s str,
    /// Where its cells go.
    pub(super) target: Target,
}

/// The columns that a file has under a schema.
pub(super) fn expected(schema: &Schema) -> Vec<ExpectedColumn<'_>> {
    let (mut slots, mut items) = (0.., 0..);
    let mut expected = Vec::with_capacity(schema.columns.len());
    for column in &schema.columns {
        let is_dropped = column.role() == ColumnRole::Identifier;
        let slot = if is_dropped { None } else { slots.next() };
        if column.from().is_empty() {
            expected.push(ExpectedColumn {
                name: column.name(),
                target: Target::Cell(slot),
            });
        }
        for name in column.from() {
            let item = if is_dropped { None } else { items.next() };
            expected.push(ExpectedColumn {
                name,
                target: item.map_or(Target::Cell(None), Target::Item),
            });
        }
    }
    expected
}

/// Where the cells of each column of the file go. `format` is that of a file of text.
///
/// # Errors
/// [`ReadErrorKind::Malformed`] for undecodable names; [`ReadErrorKind::Header`], with all faults,
/// for a column that is missing, repeated or not declared.
pub(super) fn columns(
    schema: &Schema,
    names: &[&[u8]],
    format: Option<&TextFormat>,
) -> Result<Vec<Target>, ReadError> {
    let mut texts = Vec::with_capacity(names.len());
    for name in names {
        texts.push(check_text(name).map_err(|_| undecodable(format))?);
    }
    let expected = expected(schema);
    if texts.len() > expected.len() + pais_core::table::MAX_FAULTS {
        let detail = format!(
            "the header has {} columns, but {} are declared; nothing was stored",
            texts.len(),
            expected.len()
        );
        return Err(ReadError::with(
            ReadErrorKind::Header,
            detail.clone(),
            vec![Fault::record(1, detail)],
        ));
    }
    let mut faults = Vec::new();
    let mut targets = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let Some(column) = expected.iter().find(|it| it.name == *text) else {
            // The nearest name is searched only for the faults that are reported.
            if faults.len() < pais_core::table::MAX_FAULTS {
                faults.push(undeclared(schema, &expected, &texts, index, format));
            }
            continue;
        };
        if texts[..index].contains(text) {
            let detail = "the header names this column twice";
            faults.push(Fault::cell(1, *text, detail));
        }
        targets.push(column.target);
    }
    for ExpectedColumn { name, .. } in &expected {
        if !texts.contains(name) {
            let detail = "the header does not name this declared column";
            let fix = "add the column, or declare the dataset without it";
            faults.push(Fault::cell(1, *name, detail).fix(fix));
        }
    }
    if faults.is_empty() {
        return Ok(targets);
    }
    let detail = format!(
        "the header must name exactly the {} declared columns, and nothing was stored: {}",
        expected.len(),
        faults[0].detail
    );
    let mut by_column = BTreeMap::new();
    for column in faults.iter().filter_map(Fault::column) {
        *by_column.entry(column.to_owned()).or_default() += 1;
    }
    faults.truncate(pais_core::table::MAX_FAULTS);
    let mut error = ReadError::with(ReadErrorKind::Header, detail, faults);
    error.faults_by_column = by_column;
    Err(error)
}

/// The error of a header with names that are not text.
fn undecodable(format: Option<&TextFormat>) -> ReadError {
    let detail = "the header is not UTF-8 or contains NUL; save the file as UTF-8 without NUL";
    let faults = format.map(|_| Fault::record(1, detail).fix(suggestions::encoding()));
    ReadError::with(
        ReadErrorKind::Malformed,
        detail,
        faults.into_iter().collect(),
    )
}

/// The error of an empty file, which has no header either.
pub(super) fn empty() -> ReadError {
    ReadError::new(
        ReadErrorKind::Empty,
        "the file is empty; send a header row and at least one row",
    )
}

fn undeclared(
    schema: &Schema,
    expected: &[ExpectedColumn<'_>],
    texts: &[&str],
    index: usize,
    format: Option<&TextFormat>,
) -> Fault {
    let fault = Fault::record(
        1,
        format!("column {} of the header is not declared", index + 1),
    );
    let text = texts[index];
    let is_expected = |part: &str| expected.iter().any(|it| it.name == part);
    let is_only = texts.len() == 1 && expected.len() > 1;
    let format = format.filter(|_| expected.len() > texts.len());
    let fix = format.and_then(|it| suggestions::delimiter(it, text, is_only, is_expected));
    if let Some(fix) = fix {
        return fault.fix(fix);
    }
    let made = schema.columns.iter().find(|set| *set.name() == *text);
    if let Some(set) = made.filter(|set| !set.from().is_empty()) {
        let detail = "remove the column: the set is made of the columns of its `from`";
        return fault.fix(format!("`{}`: {detail}", set.name()));
    }
    let text = text.trim().to_lowercase();
    let length = text.chars().count();
    let nearest = expected
        .iter()
        .filter(|it| !texts.contains(&it.name))
        .map(|it| (it.name, it.name.to_lowercase()))
        // The distance is at least the difference of the lengths, and costs their product.
        .filter(|(_, lower)| lower.chars().count().abs_diff(length) <= MAX_TYPOS)
        .map(|(name, lower)| (strsim::levenshtein(&lower, &text), name))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, name)) if distance <= MAX_TYPOS => {
            fault.fix(format!("did you mean `{name}`?"))
        }
        _ => fault.fix("remove the column from the file, or declare it"),
    }
}
