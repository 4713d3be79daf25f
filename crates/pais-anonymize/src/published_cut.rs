//! The cut that a release publishes.

use std::collections::BTreeMap;

use pais_core::schema::Schema;
use pais_core::table::{Domain, EncodedTable, QuasiIdentifier};
use pais_core::taxonomy::Interval;

use crate::cut::Cut;

/// The cuts and their published labels, by column: without labels that only a suppressed row had.
///
/// A label of a column without a taxonomy is a raw value or made from raw values. Where rows are
/// suppressed, labels that no released row has are not published, and an outermost interval ends
/// where the released numbers do. Columns with a taxonomy or a domain publish only what was
/// declared.
pub(crate) fn publish(
    schema: &Schema,
    table: &EncodedTable,
    mut cuts: Vec<Cut>,
    rows: &[u32],
) -> (Vec<Cut>, BTreeMap<String, Vec<String>>) {
    let all = rows.len() == table.rows;
    let mut published = BTreeMap::new();
    for (column, cut) in table.quasi_identifiers.iter().zip(&mut cuts) {
        let declared = schema
            .stored()
            .nth(column.position)
            .is_some_and(|spec| spec.tree.is_some() || spec.domain.is_some());
        let mut is_released = vec![all || declared; cut.labels.len()];
        if !all && !declared {
            narrow(column, cut, rows);
            for &row in rows {
                is_released[cut.label_of[column.codes[row as usize] as usize] as usize] = true;
            }
        }
        let labels = cut
            .labels
            .iter()
            .zip(is_released)
            .filter(|(_, is_released)| *is_released);
        let labels = labels.map(|(label, _)| label.clone()).collect();
        published.insert(column.name.to_string(), labels);
    }
    (cuts, published)
}

/// Ends the outermost intervals of a grown cut at the released numbers.
fn narrow(column: &QuasiIdentifier, cut: &mut Cut, rows: &[u32]) {
    let Domain::Numeric {
        values,
        lo,
        hi,
        missing,
    } = &column.domain
    else {
        return;
    };
    // The topmost interval covers missing cells too, unlike narrower ones.
    if *missing && cut.labels.len() == 1 {
        return;
    }
    let released = rows
        .iter()
        .filter_map(|&row| values.get(column.codes[row as usize] as usize));
    let (least, most) = released.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), &value| (least.min(value), most.max(value)),
    );
    if least > most {
        return;
    }
    for label in &mut cut.labels {
        let Some(mut interval) = Interval::parse(label) else {
            continue;
        };
        if interval.lo == *lo {
            interval.lo = least.min(interval.hi);
        }
        if interval.hi == *hi && interval.closed {
            interval.hi = most.max(interval.lo);
        }
        *label = interval.to_string();
    }
}
