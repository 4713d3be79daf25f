//! Rows that no cut tells apart, counted together.

use rustc_hash::FxHashMap;

use pais_core::table::EncodedTable;

use super::super::requirement::Requirement;
use super::dimension::Dimension;

/// The unit of a row that was removed.
pub(super) const REMOVED: u32 = u32::MAX;

/// The distinct rows. Where *K* counts persons, each row is a unit.
pub(super) struct Units {
    /// Number of rows by unit.
    pub(super) weight: Vec<u32>,
    /// Class by unit; empty where none is counted.
    pub(super) class: Vec<u32>,
    /// Number of classes.
    pub(super) classes: usize,
    /// Person by unit; empty where *K* counts rows.
    pub(super) person: Vec<u32>,
    /// By row its unit, or [`REMOVED`].
    pub(super) of_row: Vec<u32>,
    /// Counted sensitive values, unit after unit.
    values: Vec<u32>,
    value_ends: Vec<u32>,
    /// By attribute, the units in ascending order of their codes.
    order: Vec<Vec<u32>>,
    /// By attribute, where the units of a range of codes start in `order`, and the end.
    starts: Vec<Vec<u32>>,
}

impl Units {
    /// Collapses the rows of a table that are not `removed`. `with_class` keeps classes apart.
    pub(super) fn new(
        table: &EncodedTable,
        dimensions: &[Dimension<'_>],
        requirement: &Requirement<'_>,
        removed: &[bool],
        with_class: bool,
    ) -> Self {
        let class = table.class.as_ref().filter(|_| with_class);
        let mut units = Self {
            weight: Vec::new(),
            class: Vec::new(),
            classes: class.map_or(0, |(classes, _)| *classes),
            person: Vec::new(),
            of_row: vec![REMOVED; table.rows],
            values: Vec::new(),
            value_ends: Vec::new(),
            order: Vec::new(),
            starts: Vec::new(),
        };
        let mut found: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
        let mut first_row = Vec::new();
        let mut key = Vec::new();
        for row in (0..table.rows).filter(|&row| !removed[row]) {
            key.clear();
            let columns = dimensions.iter();
            key.extend(columns.map(|it| it.base(it.attribute.column.codes[row])));
            key.extend(class.map(|(_, codes)| codes[row]));
            if requirement.subjects.is_some() {
                key.push(row as u32);
            }
            let before = key.len();
            if requirement.bounds_confidence() {
                requirement.for_each_counted_value(row, |value| key.push(value as u32));
            }
            let next = units.weight.len() as u32;
            let unit = match found.get(key.as_slice()) {
                Some(&unit) => unit,
                None => {
                    found.insert(key.as_slice().into(), next);
                    units.weight.push(0);
                    units.class.extend(class.map(|(_, codes)| codes[row]));
                    let person = requirement.subjects.map(|it| it.of_row()[row]);
                    units.person.extend(person);
                    units.values.extend(&key[before..]);
                    units.value_ends.push(units.values.len() as u32);
                    first_row.push(row);
                    next
                }
            };
            units.weight[unit as usize] += 1;
            units.of_row[row] = unit;
        }
        for dimension in dimensions {
            let codes = &dimension.attribute.column.codes;
            let base = |unit: usize| dimension.base(codes[first_row[unit]]) as usize;
            let mut starts = vec![0u32; dimension.base_count() + 1];
            (0..first_row.len()).for_each(|unit| starts[base(unit) + 1] += 1);
            for at in 1..starts.len() {
                starts[at] += starts[at - 1];
            }
            let mut next = starts.clone();
            let mut order = vec![0; first_row.len()];
            for unit in 0..first_row.len() {
                let at = &mut next[base(unit)];
                order[*at as usize] = unit as u32;
                *at += 1;
            }
            units.order.push(order);
            units.starts.push(starts);
        }
        units
    }

    /// Number of units.
    pub(super) fn count(&self) -> usize {
        self.weight.len()
    }

    /// The units with these ranges of codes of an attribute.
    pub(super) fn with(&self, attribute: usize, bases: std::ops::Range<usize>) -> &[u32] {
        let starts = &self.starts[attribute];
        &self.order[attribute][starts[bases.start] as usize..starts[bases.end] as usize]
    }

    /// The counted sensitive values of a unit.
    #[inline]
    pub(super) fn values(&self, unit: usize) -> &[u32] {
        let start = unit
            .checked_sub(1)
            .map_or(0, |before| self.value_ends[before]);
        &self.values[start as usize..self.value_ends[unit] as usize]
    }
}
