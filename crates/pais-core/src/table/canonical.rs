//! Tables in canonical form: equal cells of a column have the same code.

use std::borrow::Cow;

use hashbrown::HashMap;

use crate::schema::Schema;
use crate::table::{Column, NULL_CODE, Table};

impl Table {
    /// The table with each cell in the canonical form of its column
    /// ([`crate::schema::SchemaColumn::canonical`]), and null as a word for missing
    /// ([`crate::schema::SchemaColumn::null_word`]).
    ///
    /// A reader returns tables in this form; a table that a program built need not have it. Checks each
    /// distinct value once. Codes are only written for a column in which different texts become equal.
    pub fn canonical(mut self, schema: &Schema) -> Self {
        for (spec, column) in schema.stored().zip(&mut self.columns) {
            column.replace_texts(|text| Some(spec.canonical(text)));
            if let Some(word) = spec.null_word() {
                column.replace_null(word);
            }
        }
        self
    }
}

impl Column {
    /// Replaces each distinct text by its `replacement`, `None` being null, and merges texts that
    /// become equal.
    pub fn replace_texts(&mut self, replacement: impl for<'t> Fn(&'t str) -> Option<Cow<'t, str>>) {
        let is_kept = |text: &str| replacement(text).is_some_and(|new| *new == *text);
        let Some(first) = self.dictionary.iter().position(|text| !is_kept(text)) else {
            return;
        };
        let texts = std::mem::take(&mut self.dictionary);
        let mut known: HashMap<Box<str>, u32> = HashMap::with_capacity(texts.len());
        let mut code_of = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            let text: Option<Box<str>> = match replacement(&text) {
                _ if index < first => Some(text),
                Some(new) if *new == *text => Some(text),
                Some(new) => Some(new.into()),
                None => None,
            };
            code_of.push(text.map_or(NULL_CODE, |text| {
                let dictionary = &mut self.dictionary;
                *known.entry(text).or_insert_with_key(|text| {
                    dictionary.push(text.clone());
                    dictionary.len() as u32 - 1
                })
            }));
        }
        if self.dictionary.len() < code_of.len() {
            for code in &mut self.codes {
                *code = code_of.get(*code as usize).copied().unwrap_or(NULL_CODE);
            }
        }
    }

    /// Replaces null cells by cells with `text`.
    pub(crate) fn replace_null(&mut self, text: &str) {
        if !self.codes.contains(&NULL_CODE) {
            return;
        }
        let known = self.dictionary.iter().position(|known| **known == *text);
        let code = known.unwrap_or_else(|| {
            self.dictionary.push(text.into());
            self.dictionary.len() - 1
        });
        let nulls = self.codes.iter_mut().filter(|code| **code == NULL_CODE);
        nulls.for_each(|null| *null = code as u32);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::Schema;
    use crate::table::{Column, EncodedTable, NULL_CODE, Table};

    fn schema(column: serde_json::Value) -> Schema {
        let definition = json!({"name": "t", "columns": [column]});
        Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap()
    }

    fn table(texts: &[&str], codes: &[u32]) -> Table {
        let column = Column {
            dictionary: texts.iter().map(|text| (*text).into()).collect(),
            codes: codes.to_vec(),
        };
        Table {
            rows: codes.len(),
            columns: vec![column],
        }
    }

    #[test]
    fn rows_stored_in_several_spellings_are_one_value() {
        let load = schema(json!({"name": "load", "role": "sensitive", "kind": "numeric"}));
        let stored = table(&["200", "7", "200.0", "2e2"], &[0, 1, 2, NULL_CODE, 3]);
        let encoded = EncodedTable::new(&load, stored);
        let texts = ["200".into(), "7".into()];
        assert_eq!(encoded.sensitive[0].values, texts);
        assert_eq!(encoded.sensitive[0].codes, [0, 1, 0, NULL_CODE, 0]);
        assert_eq!(encoded.untouched[0].column.dictionary, texts);

        let city = schema(json!({"name": "city", "role": "quasi_identifier"}));
        let stored = table(&["K\u{f6}ln ", "Ko\u{308}ln", " "], &[0, 1, 2, 0]);
        let encoded = EncodedTable::new(&city, stored);
        // The leaf 1 is `?`: the default word for missing is the empty cell.
        assert_eq!(
            encoded.quasi_identifiers[0].codes.of_rows(&[0, 1, 2, 3]),
            [0, 0, 1, 0]
        );
    }

    #[test]
    fn a_canonical_table_is_its_own_canonical_form() {
        let load = schema(
            json!({"name": "load", "role": "insensitive", "kind": "numeric",
            "missing": ["-1.0", "NA"]}),
        );
        let stored = table(&["3", "-1.0", "03", "NA"], &[0, 1, 2, 3, NULL_CODE]);
        let canonical = stored.canonical(&load);
        let texts = ["3".into(), "-1".into(), "NA".into()];
        assert_eq!(canonical.columns[0].dictionary, texts);
        assert_eq!(canonical.columns[0].codes, [0, 1, 0, 2, 1]);
        assert_eq!(canonical.clone().canonical(&load), canonical);
    }
}
