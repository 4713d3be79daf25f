//! The released table: labels in place of codes.

use pais_core::cancellation::Cancellation;
use pais_core::parallel;
use pais_core::schema::Schema;
use pais_core::table::codes::{Codes, RowCodes};
use pais_core::table::{
    Column, EncodedTable, Form, Positioned, QuasiIdentifier, ReleasedColumn, ReleasedTable,
};
use pais_core::with_codes;

use crate::published_cut::Cut;

/// The released table. Each column is gathered once in the order of `rows`; threads share the
/// columns. After a request to stop, columns are left empty.
pub(crate) fn assemble(
    schema: &Schema,
    table: &EncodedTable,
    cuts: &[Cut],
    sets: Vec<Positioned<ReleasedColumn>>,
    rows: &[u32],
    cancellation: &Cancellation,
) -> ReleasedTable {
    let generalize = |(column, cut): (&QuasiIdentifier, &Cut)| {
        let labels: Vec<Box<str>> = cut
            .labels
            .iter()
            .map(|label| label.as_str().into())
            .collect();
        let codes = column.codes.renamed(&cut.label_of);
        let released = ReleasedColumn {
            name: column.name.clone(),
            form: Form::Generalized,
            column: gathered(&labels, &codes, rows, cancellation),
            missing: Vec::new(),
        };
        Positioned {
            position: column.position,
            column: released,
        }
    };
    let generalized = table.quasi_identifiers.iter().zip(cuts);
    let mut columns = sets;
    columns.extend(parallel::map(generalized, generalize));
    columns.extend(untouched(schema, &table.untouched, rows, cancellation));
    finish("data", rows.len(), columns)
}

/// Columns that are released as they were read; empty after a request to stop.
pub(crate) fn untouched(
    schema: &Schema,
    columns: &[Positioned],
    rows: &[u32],
    cancellation: &Cancellation,
) -> Vec<Positioned<ReleasedColumn>> {
    let untouched = |Positioned { position, column }: &Positioned| {
        let spec = schema.stored_at(*position)?;
        let codes = Codes::new(&column.codes, column.dictionary.len());
        let released = ReleasedColumn {
            name: spec.name().into(),
            form: Form::untouched(spec),
            column: gathered(&column.dictionary, &codes, rows, cancellation),
            missing: spec.missing().to_vec(),
        };
        Some(Positioned {
            position: *position,
            column: released,
        })
    };
    let columns = parallel::map(columns, untouched);
    columns.into_iter().flatten().collect()
}

/// The table of these columns, in the order of their positions.
pub(crate) fn finish(
    name: &str,
    rows: usize,
    mut columns: Vec<Positioned<ReleasedColumn>>,
) -> ReleasedTable {
    columns.sort_by_key(|it| it.position);
    ReleasedTable {
        name: name.into(),
        rows,
        columns: columns.into_iter().map(|it| it.column).collect(),
    }
}

/// The cells of some rows; none after a request to stop. They are read in random order, so narrow codes pay
/// off.
fn gathered(
    dictionary: &[Box<str>],
    codes: &Codes<'_>,
    rows: &[u32],
    cancellation: &Cancellation,
) -> Column {
    if cancellation.is_cancelled() {
        return Column::default();
    }
    with_codes!(codes, codes => {
        Column::of_cells(dictionary, rows.iter().map(|&row| codes.at(row as usize)))
    })
}
