//! Columns as codes that are equal exactly where the values are equal.

use std::borrow::Cow;

use hashbrown::HashMap;

use crate::definition::{ColumnKind, ColumnRole};
use crate::schema::{SchemaColumn, items};

use super::{Column, NULL_CODE, code_counts};

/// The values of a column as codes: equal values have equal codes, and all missing cells have one.
#[derive(Clone, Debug)]
pub(crate) struct ValueCodes<'a> {
    /// One code per row.
    pub(crate) codes: Cow<'a, [u32]>,
    /// Exclusive upper bound of the codes. A code may be in no row.
    pub(crate) count: usize,
    /// The code of missing cells; `None` if no cell is missing.
    pub(crate) missing: Option<u32>,
}

impl<'a> ValueCodes<'a> {
    /// The values of a column in canonical form ([`super::Table::canonical`]). Two sets are equal if
    /// they have the same items; a set without items is missing.
    ///
    /// Reads each distinct text once. The codes of the column itself are used where no cell is
    /// missing and no two texts are one value.
    pub(crate) fn new(spec: &SchemaColumn, column: &'a Column) -> Self {
        let missing = column.dictionary.len() as u32;
        let map = match spec.kind {
            ColumnKind::Set => codes_of_sets(spec, &column.dictionary, missing),
            _ => {
                let texts = column.dictionary.iter().map(AsRef::as_ref);
                let code = |(code, text)| {
                    if is_missing(spec, text) {
                        missing
                    } else {
                        code
                    }
                };
                (0u32..).zip(texts).map(code).collect()
            }
        };
        let is_kept = (0u32..).zip(&map).all(|(old, new)| old == *new);
        if is_kept && !column.codes.contains(&NULL_CODE) {
            return Self {
                codes: Cow::Borrowed(&column.codes),
                count: map.len(),
                missing: None,
            };
        }
        let code = |code: &u32| map.get(*code as usize).copied().unwrap_or(missing);
        let codes: Vec<u32> = column.codes.iter().map(code).collect();
        Self {
            missing: codes.contains(&missing).then_some(missing),
            codes: Cow::Owned(codes),
            count: map.len() + 1,
        }
    }

    /// The values of some rows, in this order.
    pub(crate) fn select(&self, rows: &[u32]) -> ValueCodes<'static> {
        let codes: Vec<u32> = rows.iter().map(|&row| self.codes[row as usize]).collect();
        ValueCodes {
            codes: codes.into(),
            ..*self
        }
    }

    /// Number of rows by code.
    pub(crate) fn rows_by_code(&self) -> Vec<u64> {
        code_counts(&self.codes, self.count)
    }
}

/// Whether a text in canonical form is a missing cell of its column, as methods take it.
fn is_missing(spec: &SchemaColumn, text: &str) -> bool {
    match spec.role {
        ColumnRole::QuasiIdentifier => spec.is_generalized_as_missing(text),
        _ => spec.is_missing(text),
    }
}

/// The code of each distinct cell of a column of sets: that of the first cell with the same items.
fn codes_of_sets(spec: &SchemaColumn, dictionary: &[Box<str>], missing: u32) -> Vec<u32> {
    let mut known: HashMap<Vec<&str>, u32> = HashMap::with_capacity(dictionary.len());
    let mut codes = Vec::with_capacity(dictionary.len());
    for (code, text) in (0u32..).zip(dictionary) {
        let set = items_of(spec, text);
        codes.push(if set.is_empty() {
            missing
        } else {
            *known.entry(set).or_insert(code)
        });
    }
    codes
}

/// The distinct items of a cell, in the order of their text; words for missing are no items.
pub(crate) fn items_of<'t>(spec: &SchemaColumn, text: &'t str) -> Vec<&'t str> {
    let items = items(text, spec.separator).filter(|item| !spec.is_missing(item));
    let mut items: Vec<&str> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::ValueCodes;
    use crate::schema::Schema;
    use crate::table::{Column, NULL_CODE};

    fn schema(column: serde_json::Value) -> Schema {
        let definition = json!({"name": "t", "columns": [column]});
        Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap()
    }

    fn column(texts: &[&str], codes: &[u32]) -> Column {
        Column {
            dictionary: texts.iter().map(|text| (*text).into()).collect(),
            codes: codes.to_vec(),
        }
    }

    #[test]
    fn all_words_for_missing_and_null_are_one_value() {
        let schema = schema(json!({"name": "job", "role": "sensitive", "missing": ["", "NA"]}));
        let cells = column(&["Mover", "NA", "", "Lawyer"], &[0, 1, 2, NULL_CODE, 3, 0]);
        let found = ValueCodes::new(&schema.columns[0], &cells);
        assert_eq!(*found.codes, [0, 4, 4, 4, 3, 0]);
        assert_eq!((found.count, found.missing), (5, Some(4)));
        assert_eq!(found.rows_by_code(), [2, 0, 0, 1, 3]);
    }

    #[test]
    fn a_question_mark_is_missing_in_a_quasi_identifier_without_a_taxonomy_only() {
        for (role, missing) in [("quasi_identifier", Some(2)), ("insensitive", None)] {
            let schema = schema(json!({"name": "job", "role": role}));
            let cells = column(&["Mover", "?"], &[0, 1]);
            let found = ValueCodes::new(&schema.columns[0], &cells);
            assert_eq!(found.missing, missing, "{role}");
        }
    }

    #[test]
    fn sets_are_equal_in_any_order_and_an_empty_one_is_missing() {
        let schema = schema(json!({"name": "dx", "role": "insensitive", "kind": "set",
            "missing": ["NA"]}));
        let cells = column(&["a|b", "b|a|b", "a", "NA", "NA|a"], &[0, 1, 2, 3, 4, 1]);
        let found = ValueCodes::new(&schema.columns[0], &cells);
        assert_eq!(*found.codes, [0, 0, 2, 5, 2, 0]);
        assert_eq!(found.missing, Some(5));
    }

    #[test]
    fn a_column_without_missing_cells_keeps_its_codes() {
        let schema = schema(json!({"name": "job", "role": "class"}));
        let cells = column(&["Mover", "Lawyer"], &[1, 0, 1]);
        let found = ValueCodes::new(&schema.columns[0], &cells);
        assert!(matches!(found.codes, Cow::Borrowed(_)));
        assert_eq!((&*found.codes, found.missing), (&[1, 0, 1][..], None));
    }
}
