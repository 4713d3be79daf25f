//! Numbers of columns that are released unchanged, rounded to the declared multiples.

use hashbrown::HashMap;
use rayon::prelude::*;

use crate::schema::{Schema, SchemaColumn};
use crate::table::{Column, Table};

impl Table {
    /// The table in canonical form ([`Self::canonical`]), with the numbers of unchanged columns as they are
    /// released ([`SchemaColumn::rounded`]). Repeating this changes nothing.
    ///
    /// Rounds each distinct number once; threads share them.
    pub fn as_released(self, schema: &Schema) -> Self {
        let mut table = self.canonical(schema);
        for (spec, column) in schema.stored().zip(&mut table.columns) {
            if spec.is_unchanged() {
                column.round(spec);
            }
        }
        table
    }
}

impl Column {
    /// Rounds the numbers of a column in canonical form, and merges those that become equal. A
    /// column without `round` stays as it is.
    pub fn round(&mut self, spec: &SchemaColumn) {
        if spec.round.is_none() {
            return;
        }
        let texts = self.dictionary.par_iter();
        let rounded: Vec<Box<str>> = texts.map(|text| spec.rounded(text).into()).collect();
        self.dictionary.clear();
        let dictionary = &mut self.dictionary;
        let mut known: HashMap<Box<str>, u32> = HashMap::new();
        let code = |text: Box<str>| {
            *known.entry(text).or_insert_with_key(|text| {
                dictionary.push(text.clone());
                dictionary.len() as u32 - 1
            })
        };
        let code_of: Vec<u32> = rounded.into_iter().map(code).collect();
        // Null has no entry, and stays.
        for code in &mut self.codes {
            *code = code_of.get(*code as usize).copied().unwrap_or(*code);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::schema::Schema;
    use crate::table::{Column, NULL_CODE, Table};

    fn rounded(column: Value, texts: &[&str]) -> (Vec<String>, Vec<u32>) {
        let definition = json!({"name": "t", "columns": [column]});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let mut codes: Vec<u32> = (0..texts.len() as u32).collect();
        codes.push(NULL_CODE);
        let column = Column {
            dictionary: texts.iter().map(|text| (*text).into()).collect(),
            codes,
        };
        let table = Table {
            rows: texts.len() + 1,
            columns: vec![column],
        };
        let once = table.as_released(&schema);
        assert_eq!(once.clone().as_released(&schema), once);
        let column = &once.columns[0];
        let texts = column.dictionary.iter().map(|text| text.to_string());
        (texts.collect(), column.codes.clone())
    }

    #[test]
    fn numbers_of_unchanged_columns_are_rounded_and_merged() {
        for role in ["insensitive", "sensitive", "class"] {
            let cost = json!({"name": "cost", "role": role, "kind": "numeric", "round": 50});
            let (texts, codes) = rounded(cost, &["1012", "", "1020.5", "-30", "975", "20"]);
            assert_eq!(texts, ["1000", "", "-50", "0"], "{role}");
            assert_eq!(codes, [0, 1, 0, 2, 0, 3, NULL_CODE], "{role}");
        }
        let age = json!({"name": "age", "role": "quasi_identifier", "kind": "numeric", "round": 5});
        assert_eq!(rounded(age, &["17", "18"]).0, ["17", "18"]);
    }

    #[test]
    fn a_rounded_number_is_never_a_word_for_missing() {
        let cost = json!({"name": "cost", "role": "insensitive", "kind": "numeric", "round": 10,
            "missing": ["0", "10", "NA"]});
        let (texts, _) = rounded(cost, &["3", "0", "NA", "18", "-3"]);
        assert_eq!(texts, ["20", "0", "NA"]);
    }
}
