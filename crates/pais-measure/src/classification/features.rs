//! Columns as a classifier learns from them: released labels and raw values as codes.
//!
//! Equal cells get equal codes for any order of rows and dictionaries, so that a tree depends on the rows
//! alone.

use std::cmp::Reverse;

use pais_core::schema::SchemaColumn;
use pais_core::table::codes::Codes;
use pais_core::table::{Column, Domain, NULL_CODE, QuasiIdentifier};
use pais_core::taxonomy::{Interval, MISSING_LABEL, SUPPRESSED_LABEL, Tree};

use super::examples::Domain as AttributeDomain;

/// Maximum number of values of a nominal attribute. If a column has more, the rarest are one value.
pub(super) const MOST_VALUES: usize = 1_000;

/// An attribute of a column: what its codes mean, and the code of each code of the column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Encoding {
    pub(super) domain: AttributeDomain,
    /// The last one is that of null.
    code_of: Vec<u32>,
}

impl Encoding {
    fn new(domain: AttributeDomain, codes: impl Iterator<Item = u32>, null: u32) -> Self {
        Self {
            domain,
            code_of: codes.chain([null]).collect(),
        }
    }

    /// Number of codes, without that of missing numbers.
    pub(super) fn value_count(&self) -> u32 {
        match &self.domain {
            AttributeDomain::Nominal(values) => *values,
            AttributeDomain::Ordered(values) => values.len() as u32,
        }
    }

    /// Cells that are already the codes of an attribute.
    #[cfg(test)]
    pub(super) fn identity(domain: AttributeDomain) -> Self {
        let codes = 0..domain.code_count() as u32;
        Self::new(domain, codes, u32::MAX)
    }

    /// The attribute's code of a cell.
    #[inline]
    pub(super) fn code(&self, cell: u32) -> u32 {
        self.code_of[(cell as usize).min(self.code_of.len() - 1)]
    }
}

/// An attribute of a column: its code in each row.
#[derive(Clone, Copy)]
pub(super) struct RowAttribute<'a> {
    pub(super) cells: &'a Codes<'a>,
    pub(super) encoding: &'a Encoding,
}

/// A column with its attributes.
pub(super) struct Feature<'a> {
    /// The cell of each row.
    pub(super) cells: Codes<'a>,
    /// One; or two where intervals overlap, their lower and their upper ends.
    pub(super) encodings: Vec<Encoding>,
}

impl<'a> Feature<'a> {
    /// A column of text: released labels, or values as they are. `frequencies` are the rows of each.
    pub(super) fn of_text(spec: &SchemaColumn, column: &'a Column, frequencies: &[u64]) -> Self {
        let texts: Vec<&str> = column.dictionary.iter().map(AsRef::as_ref).collect();
        Self::new(spec, &texts, all_of(&column.codes), frequencies)
    }

    /// The raw values of a quasi-identifier, as its method reads them: a number of a column whose
    /// taxonomy has ranges is the lowest range.
    pub(super) fn of_raw(
        spec: &SchemaColumn,
        column: &'a QuasiIdentifier,
        frequencies: &[u64],
    ) -> Self {
        match &column.domain {
            Domain::Numeric { values, .. } => Self {
                cells: column.codes.borrowed(),
                encodings: vec![Encoding::new(
                    AttributeDomain::Ordered(values.as_slice().into()),
                    0..=values.len() as u32,
                    values.len() as u32,
                )],
            },
            Domain::Taxonomy(tree) => Self::new(
                spec,
                &leaf_labels(tree),
                column.codes.borrowed(),
                frequencies,
            ),
        }
    }

    /// The feature with other cells of the same column, if they are given.
    pub(super) fn with_cells(self, cells: Option<&'a [u32]>) -> Self {
        Self {
            cells: cells.map_or(self.cells, all_of),
            ..self
        }
    }

    /// The attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = RowAttribute<'_>> {
        let attribute = |encoding| RowAttribute {
            cells: &self.cells,
            encoding,
        };
        self.encodings.iter().map(attribute)
    }

    fn new(spec: &SchemaColumn, texts: &[&str], cells: Codes<'a>, frequencies: &[u64]) -> Self {
        let encodings = match intervals(spec, texts) {
            Some(intervals) => ordered(&intervals),
            None => vec![nominal(texts, frequencies)],
        };
        Self { cells, encodings }
    }
}

/// The cells of a column of text, as they are.
pub(super) fn all_of(cells: &[u32]) -> Codes<'_> {
    Codes::Four(cells.into())
}

/// The classes of a column in the order of their text; null, where it occurs, is the last one.
pub(super) fn classes(column: &Column) -> Encoding {
    let texts: Vec<&str> = column.dictionary.iter().map(AsRef::as_ref).collect();
    let all: Vec<usize> = (0..texts.len()).collect();
    let by_text = by_text(&texts, all);
    let codes = &by_text.code_of[..texts.len()];
    let named = codes.iter().max().map_or(0, |last| last + 1);
    let null = u32::from(column.codes.contains(&NULL_CODE));
    let domain = AttributeDomain::Nominal(named + null);
    Encoding::new(domain, codes.iter().copied(), named)
}

fn leaf_labels(tree: &Tree) -> Vec<&str> {
    let leaves = 0..tree.leaf_count() as u32;
    leaves
        .map(|leaf| &*tree.node(tree.leaf(leaf)).label)
        .collect()
}

/// The ends of each label of a column of numbers or dates, `None` for what says nothing of the
/// value; or `None` where other labels are among them.
fn intervals(spec: &SchemaColumn, texts: &[&str]) -> Option<Vec<Option<(f64, f64)>>> {
    let scale = spec.kind().scale()?;
    let ends = |text: &&str| match Interval::parse_on(text, scale) {
        Some(interval) => Some(Some((interval.lo, interval.hi))),
        None => {
            let is_unknown =
                *text == MISSING_LABEL || *text == SUPPRESSED_LABEL || spec.is_missing(text);
            is_unknown.then_some(None)
        }
    };
    texts.iter().map(ends).collect()
}

/// Disjoint intervals are one attribute in their order. Of overlapping intervals, as local recoding releases
/// them, each end is an attribute: a midpoint would not distinguish a wide interval from a narrow one.
fn ordered(intervals: &[Option<(f64, f64)>]) -> Vec<Encoding> {
    let mut sorted: Vec<(f64, f64)> = intervals.iter().copied().flatten().collect();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    sorted.dedup();
    let ranked = |number: &dyn Fn((f64, f64)) -> f64| {
        let mut values: Vec<f64> = sorted.iter().map(|&it| number(it)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let missing = values.len() as u32;
        let rank = |ends: &Option<(f64, f64)>| match ends {
            Some(ends) => values.partition_point(|&value| value < number(*ends)) as u32,
            None => missing,
        };
        let codes: Vec<u32> = intervals.iter().map(rank).collect();
        let domain = AttributeDomain::Ordered(values.into());
        Encoding::new(domain, codes.into_iter(), missing)
    };
    if sorted.windows(2).all(|pair| pair[0].1 <= pair[1].0) {
        vec![ranked(&|(lo, hi)| f64::midpoint(lo, hi))]
    } else {
        vec![ranked(&|(lo, _)| lo), ranked(&|(_, hi)| hi)]
    }
}

/// Values without an order; null is a value of its own.
fn nominal(texts: &[&str], frequencies: &[u64]) -> Encoding {
    let mut shown: Vec<usize> = (0..texts.len()).filter(|&at| frequencies[at] > 0).collect();
    if shown.len() > MOST_VALUES {
        // The last value is that of the rare ones.
        shown.select_nth_unstable_by_key(MOST_VALUES - 1, |&at| {
            (Reverse(frequencies[at]), texts[at])
        });
        shown.truncate(MOST_VALUES - 1);
    }
    by_text(texts, shown)
}

/// Codes of some texts in their order, then one of all others, then one of null.
fn by_text(texts: &[&str], mut named: Vec<usize>) -> Encoding {
    named.sort_unstable_by_key(|&at| texts[at]);
    let mut code_of = vec![u32::MAX; texts.len()];
    let mut last: Option<&str> = None;
    let mut codes = 0u32;
    for at in named {
        codes += u32::from(last != Some(texts[at]));
        last = Some(texts[at]);
        code_of[at] = codes - 1;
    }
    for code in code_of.iter_mut().filter(|code| **code == u32::MAX) {
        *code = codes;
    }
    let domain = AttributeDomain::Nominal(codes + 2);
    Encoding::new(domain, code_of.into_iter(), codes + 1)
}

#[cfg(test)]
mod tests {
    use super::super::examples::Domain;
    use pais_core::table::{Column, NULL_CODE};
    use serde_json::{Value, json};

    use super::{Feature, MOST_VALUES, classes};
    use crate::test_data::schema;

    fn column(cells: &[&str]) -> Column {
        Column {
            dictionary: cells.iter().map(|&cell| cell.into()).collect(),
            codes: (0..cells.len() as u32).chain([NULL_CODE]).collect(),
        }
    }

    /// The codes of the cells and of null, for each attribute.
    fn codes(declared: Value, cells: &[&str]) -> Vec<(Domain, Vec<u32>)> {
        let mut declared = declared;
        declared["name"] = "q".into();
        declared["role"] = "quasi_identifier".into();
        let column = column(cells);
        let frequencies = column.row_counts();
        let schema = schema(json!([declared]));
        let feature = Feature::of_text(&schema.columns[0], &column, &frequencies);
        let attributes = feature.encodings.iter().map(|encoding| {
            let codes = (0..feature.cells.rows()).map(|row| encoding.code(feature.cells.at(row)));
            (encoding.domain.clone(), codes.collect())
        });
        attributes.collect()
    }

    #[test]
    fn disjoint_intervals_are_ordered_by_their_middle() {
        let numeric = json!({"kind": "numeric"});
        let found = codes(numeric.clone(), &["[60,99]", "?", "[1,30)", "[30,60)"]);
        let middles = Domain::Ordered([15.5, 45.0, 79.5].into());
        assert_eq!(found, [(middles, vec![2, 3, 0, 1, 3])]);
        let numbers = Domain::Ordered([2.0, 10.0].into());
        assert_eq!(codes(numeric, &["10", "2"]), [(numbers, vec![1, 0, 2])]);
        let days = codes(json!({"kind": "date"}), &["2020-01-02", "1999-01-01", "*"]);
        assert_eq!(days[0].1, [1, 0, 2, 2]);
    }

    #[test]
    fn overlapping_intervals_are_ordered_by_each_end() {
        let found = codes(
            json!({"kind": "numeric"}),
            &["[1,9]", "[2,5]", "[1,5]", "7"],
        );
        let lower = Domain::Ordered([1.0, 2.0, 7.0].into());
        let upper = Domain::Ordered([5.0, 7.0, 9.0].into());
        let expected = [(lower, vec![0, 1, 0, 2, 3]), (upper, vec![2, 0, 0, 1, 3])];
        assert_eq!(found, expected);
    }

    #[test]
    fn other_labels_are_values_in_the_order_of_their_text() {
        let found = codes(json!({}), &["M", "?", "F"]);
        assert_eq!(found, [(Domain::Nominal(5), vec![2, 0, 1, 4])]);
        // Labels of a taxonomy of dates, such as months, need not be intervals.
        let found = codes(json!({"kind": "date"}), &["2020-02", "2020-01-02"]);
        assert_eq!(found, [(Domain::Nominal(4), vec![1, 0, 3])]);
        let classes = classes(&column(&["b", "a"]));
        assert_eq!([0, 1, NULL_CODE].map(|cell| classes.code(cell)), [1, 0, 2]);
        assert_eq!(classes.value_count(), 3);
    }

    #[test]
    fn the_rarest_of_many_values_are_one() {
        let texts: Vec<String> = (0..MOST_VALUES + 7).map(|at| format!("{at:06}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = codes(json!({}), &texts);
        let [(Domain::Nominal(values), codes)] = &*found else {
            panic!("one attribute is expected");
        };
        assert_eq!(*values as usize, MOST_VALUES + 1);
        let other = MOST_VALUES as u32 - 1;
        let lumped = codes.iter().filter(|code| **code == other).count();
        assert_eq!((lumped, codes[0]), (8, 0), "the last ones by their text");
    }
}
