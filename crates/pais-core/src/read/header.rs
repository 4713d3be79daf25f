//! Headers: checks the column names of a file against the declared ones.
//!
//! Messages never contain text of the header: in a file without a header the first line is a
//! patient's.

use crate::definition::ColumnRole;
use crate::read::{ReadError, ReadErrorKind};
use crate::rejection::Fault;

use super::cells::check_text;
use crate::schema::Schema;

/// Most changed, missing or added characters of a name for which a declared one is suggested.
const MAX_TYPOS: usize = 2;

/// For each column of the file, its position among the stored columns; `None` for an identifier,
/// whose cells are not stored.
///
/// # Errors
/// [`ReadErrorKind::Malformed`] for undecodable names; [`ReadErrorKind::Header`], with all faults,
/// for a column that is missing, repeated or not declared.
pub(super) fn columns(schema: &Schema, names: &[&[u8]]) -> Result<Vec<Option<usize>>, ReadError> {
    let mut texts = Vec::with_capacity(names.len());
    for name in names {
        let text = check_text(name).map_err(|_| {
            ReadError::new(
                ReadErrorKind::Malformed,
                "the header is not UTF-8 or contains NUL; save the file as UTF-8 without NUL",
            )
        })?;
        texts.push(text);
    }
    if texts.len() > schema.columns.len() + crate::read::MAX_FAULTS {
        let detail = format!(
            "the header has {} columns, but {} are declared; nothing was stored",
            texts.len(),
            schema.columns.len()
        );
        return Err(ReadError::with(
            ReadErrorKind::Header,
            detail.clone(),
            vec![Fault::record(1, detail)],
        ));
    }
    let mut faults = Vec::new();
    let mut slots = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let Some(column) = schema.columns.iter().find(|column| *column.name == **text) else {
            // The nearest name is searched only for the faults that are reported.
            if faults.len() < crate::read::MAX_FAULTS {
                faults.push(undeclared(schema, &texts, index));
            }
            continue;
        };
        if texts[..index].contains(text) {
            let detail = "the header names this column twice";
            faults.push(Fault::cell(1, &*column.name, detail));
        }
        slots.push(match column.role {
            ColumnRole::Identifier => None,
            _ => schema.stored_position(&column.name),
        });
    }
    for column in schema
        .columns
        .iter()
        .filter(|column| !texts.contains(&&*column.name))
    {
        faults.push(
            Fault::cell(
                1,
                &*column.name,
                "the header does not name this declared column",
            )
            .fix("add the column, or declare the dataset without it"),
        );
    }
    if faults.is_empty() {
        return Ok(slots);
    }
    let detail = format!(
        "the header must name exactly the {} declared columns, and nothing was stored: {}",
        schema.columns.len(),
        faults[0].detail
    );
    faults.truncate(crate::read::MAX_FAULTS);
    Err(ReadError::with(ReadErrorKind::Header, detail, faults))
}

/// The error of an empty file, which has no header either.
pub(super) fn empty() -> ReadError {
    ReadError::new(
        ReadErrorKind::Empty,
        "the file is empty; send a header row and at least one row",
    )
}

fn undeclared(schema: &Schema, texts: &[&str], index: usize) -> Fault {
    let fault = Fault::record(
        1,
        format!("column {} of the header is not declared", index + 1),
    );
    let text = texts[index];
    if texts.len() == 1 && schema.columns.len() > 1 && text.contains([';', '\t']) {
        return fault.fix("separate the cells by commas");
    }
    let text = text.trim().to_lowercase();
    let length = text.chars().count();
    let nearest = schema
        .columns
        .iter()
        .filter(|column| !texts.contains(&&*column.name))
        .map(|column| (column, column.name.to_lowercase()))
        // The distance is at least the difference of the lengths, and costs their product.
        .filter(|(_, name)| name.chars().count().abs_diff(length) <= MAX_TYPOS)
        .map(|(column, name)| (strsim::levenshtein(&name, &text), column))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, column)) if distance <= MAX_TYPOS => {
            fault.fix(format!("did you mean `{}`?", column.name))
        }
        _ => fault.fix("remove the column from the file, or declare it"),
    }
}
