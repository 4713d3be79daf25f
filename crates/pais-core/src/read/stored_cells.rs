//! Checks cells that were read before, against a column that was declared anew.

use crate::read::cells::{Refusal, check};
use crate::schema::SchemaColumn;
use crate::table::Column;

/// Why the stored cells of a column do not fit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfitCells {
    /// Distinct values that do not fit.
    pub values: usize,
    /// What is wrong with the first one, without its value.
    pub detail: String,
}

/// Checks each distinct value of a stored column that is in some row. `None` where all fit.
///
/// ```
/// use pais_core::definition::{DatasetDefinition, json};
/// use pais_core::read::{csv, unfit_cells};
/// use pais_core::schema::Schema;
///
/// let schema = |domain: &str| -> Result<Schema, Box<dyn std::error::Error>> {
///     let text = format!(
///         r#"{{"name": "a", "columns": [{{"name": "age", "role": "insensitive",
///              "kind": "numeric", "domain": {domain}}}]}}"#
///     );
///     let dataset: DatasetDefinition = json::parse(text.as_bytes())?;
///     Ok(Schema::inline(&dataset)?)
/// };
/// let table = csv::read_table(&schema("[0,99]")?, "age\n41\n42\n70\n".as_bytes())?;
/// let age = &table.columns[0];
/// assert_eq!(unfit_cells(&schema("[40,80]")?.columns[0], age), None);
/// let unfit = unfit_cells(&schema("[0,41]")?.columns[0], age).unwrap();
/// assert_eq!(unfit.values, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn unfit_cells(spec: &SchemaColumn, column: &Column) -> Option<UnfitCells> {
    let mut is_used = vec![false; column.dictionary.len()];
    for &code in &column.codes {
        // Null is missing in every column.
        if let Some(is_used) = is_used.get_mut(code as usize) {
            *is_used = true;
        }
    }
    let mut found: Option<UnfitCells> = None;
    let used = column.dictionary.iter().zip(is_used);
    for (text, _) in used.filter(|(_, is_used)| *is_used) {
        let Err(refusal) = check(spec, &spec.canonical(text), None) else {
            continue;
        };
        match &mut found {
            Some(found) => found.values += 1,
            None => {
                let detail = match refusal {
                    Refusal::Undecodable(detail) => detail.to_owned(),
                    // Stored text is UTF-8.
                    Refusal::NotUtf8 => "a value is not UTF-8".to_owned(),
                    Refusal::Unfit { detail, .. } => detail,
                };
                found = Some(UnfitCells { values: 1, detail });
            }
        }
    }
    found
}
