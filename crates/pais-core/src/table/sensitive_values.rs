//! What a holder should know about the values of a sensitive column under a privacy model.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::Column;
use super::unchanged_column::{UnchangedColumn, present_rows};
use crate::definition::json::escape;
use crate::look_alike::{value_without_case_and_punctuation, visible_text};
use crate::missing_words::is_word_for_missing;
use crate::model::Lkc;
use crate::schema::SchemaColumn;
use crate::warning::{Warning, WarningCode};

/// Maximum number of words for missing that a warning names.
const MOST_WORDS: usize = 10;

/// The warning about listed values that are in no row.
pub(super) fn absent_values(model: &Lkc, spec: &SchemaColumn, column: &Column) -> Option<Warning> {
    let listed = model.sensitive_values.as_ref()?.get(&*spec.name)?;
    let rows = present_rows(spec, column, &column.row_counts());
    let values = column.dictionary.iter().zip(rows);
    let present: HashSet<Cow<'_, str>> = values
        .filter(|(_, rows)| *rows > 0)
        .map(|(text, _)| visible_text(text))
        .collect();
    let is_absent = |value: &String| !present.contains(&visible_text(value));
    let places = (0..listed.len()).filter(|&place| is_absent(&listed[place]));
    let places: Vec<usize> = places.collect();
    let pointer = format!("/privacy/sensitive_values/{}", escape(&spec.name));
    let (pointer, detail) = match places.as_slice() {
        [] => return None,
        [place] => (
            format!("{pointer}/{place}"),
            format!(
                "this value of `{}` is in no row, so its bound has no effect; check its spelling, \
                 also upper and lower case",
                spec.name
            ),
        ),
        several => (
            pointer,
            format!(
                "{} of the {} values listed for `{}` are in no row, so their bounds have no effect; \
                 check their spelling, also upper and lower case",
                several.len(),
                listed.len(),
                spec.name
            ),
        ),
    };
    let code = WarningCode::ListedValueAbsent;
    Some(Warning::at(code, pointer, detail).of_columns([spec.name()]))
}

/// The warning about values that are spelled nearly as a listed one, and are not listed. Numbers and dates have
/// one spelling.
///
/// One pass over the dictionary; over the codes only if a text of it is a variant.
pub(super) fn variants(model: &Lkc, unchanged: &UnchangedColumn<'_>) -> Option<Warning> {
    let spec = unchanged.spec;
    let listed = model.sensitive_values.as_ref()?.get(&*spec.name)?;
    if spec.kind.scale().is_some() {
        return None;
    }
    let bounded: HashSet<Cow<'_, str>> = listed.iter().map(|it| visible_text(it)).collect();
    let forms = listed
        .iter()
        .map(|it| value_without_case_and_punctuation(it));
    let places: HashMap<String, usize> = forms.zip(0..).collect();
    let place_of = |text: &str| {
        let is_other = !spec.is_missing(text) && !bounded.contains(&visible_text(text));
        let form = is_other.then(|| value_without_case_and_punctuation(text));
        form.and_then(|form| places.get(&form).copied())
    };
    let found = MarkedRows::new(unchanged, place_of)?;
    let pointer = format!("/privacy/sensitive_values/{}", escape(&spec.name));
    let pointer = match *found.marks {
        [place] => format!("{pointer}/{place}"),
        _ => pointer,
    };
    let detail = format!(
        "in {} the value of `{}` differs from a listed value only in case, spaces or punctuation and is \
         not bounded; list it too, or correct the rows",
        found.rows, spec.name
    );
    let code = WarningCode::ListedValueHasVariants;
    Some(Warning::at(code, pointer, detail).of_columns([spec.name()]))
}

/// The warning about words for missing that are not declared and count as sensitive values. In a quasi-identifier
/// they are labels like any other, which protect nobody less.
///
/// One pass over the dictionary; over the codes only if a text of it is such a word.
pub(super) fn undeclared_missing(unchanged: &UnchangedColumn<'_>) -> Option<Warning> {
    let spec = unchanged.spec;
    let is_word = |text: &str| is_word_for_missing(text) && !spec.is_missing(text);
    let found = MarkedRows::new(unchanged, |text| is_word(text).then(|| text.to_owned()))?;
    // Apart from upper and lower case, they are words of a fixed list.
    let words = found.marks.iter().take(MOST_WORDS);
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    let detail = format!(
        "in {} the sensitive column `{}` has a word for missing ({}) that counts as a sensitive value; \
         declare it as `missing`",
        found.rows,
        spec.name,
        words.join(", ")
    );
    let code = WarningCode::UndeclaredMissing;
    Some(Warning::new(code, detail).of_columns([spec.name()]))
}

/// The rows of a column whose texts have a mark.
struct MarkedRows<M> {
    /// Their number, as a text.
    rows: String,
    /// Each mark once, ascending.
    marks: Vec<M>,
}

impl<M: Ord> MarkedRows<M> {
    /// `None` without such rows.
    fn new(unchanged: &UnchangedColumn<'_>, mark: impl Fn(&str) -> Option<M>) -> Option<Self> {
        let column = unchanged.column;
        let texts = column.dictionary.iter().map(|text| mark(text));
        let mut marked: Vec<(usize, M)> = Vec::new();
        marked.extend((0..).zip(texts).filter_map(|(code, it)| Some((code, it?))));
        if marked.is_empty() {
            return None;
        }
        let of_text = column.row_counts();
        marked.retain(|(code, _)| of_text[*code] > 0);
        let rows: u64 = marked.iter().map(|(code, _)| of_text[*code]).sum();
        let mut marks: Vec<M> = marked.into_iter().map(|(_, mark)| mark).collect();
        marks.sort_unstable();
        marks.dedup();
        // Of distinct rows, how many rows of the table each stands for is not known here.
        let rows = if unchanged.rows == column.codes.len() as u64 {
            format!("{rows} of {} rows", unchanged.rows)
        } else {
            "some rows".to_owned()
        };
        (!marks.is_empty()).then_some(Self { rows, marks })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::definition::Job;
    use crate::schema::Schema;
    use crate::table::{Column, EncodedTable, NULL_CODE, Table, UnchangedColumn, row_warnings};
    use crate::warning::{Warning, WarningCode};

    /// The warnings with this code about one sensitive column with these cells.
    fn warnings(code: WarningCode, column: Value, listed: Value, cells: &[&str]) -> Vec<Warning> {
        let definition = json!({"name": "t", "columns": [column]});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let privacy = json!({"model": "lkc", "l": 1, "k": 2, "c": 0.5, "sensitive_values": listed});
        let job: Job =
            serde_json::from_value::<crate::definition::JobDefinition>(json!({"privacy": privacy}))
                .unwrap()
                .parse()
                .unwrap();
        let mut column = Column::default();
        for cell in cells {
            let known = column.dictionary.iter().position(|known| **known == **cell);
            let code = known.unwrap_or_else(|| {
                column.dictionary.push((*cell).into());
                column.dictionary.len() - 1
            });
            column.codes.push(code as u32);
        }
        column.dictionary.push("in no row".into());
        column.codes.push(NULL_CODE);
        let table = Table {
            rows: column.codes.len(),
            columns: vec![column],
        };
        let model = schema.privacy_model(&job).unwrap();
        let table = EncodedTable::new(&schema, table);
        let mut found = row_warnings(&model, UnchangedColumn::of(&schema, &table));
        found.retain(|warning| warning.code == code);
        found
    }

    #[test]
    fn variants_of_listed_values_are_counted_and_not_named() {
        let code = WarningCode::ListedValueHasVariants;
        let flat = json!({"name": "Diagnose", "role": "sensitive"});
        let cells = ["B20", "b20", "B20.", "B 20", "B20", "I10", "B20.1"];
        let found = warnings(
            code,
            flat.clone(),
            json!({"Diagnose": ["J45", "B20"]}),
            &cells,
        );
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .detail
                .starts_with("in 3 of 8 rows the value of `Diagnose` differs"),
            "{}",
            found[0].detail
        );
        let at = "/privacy/sensitive_values/Diagnose";
        assert_eq!(found[0].pointer, Some(format!("{at}/1")));
        assert_eq!(found[0].columns, ["Diagnose"]);

        // Those that are listed are bounded; so is a value that looks the same.
        let all = json!({"Diagnose": ["B20", "b20", "B20.", "B 20"]});
        let alike = [&cells[..], &["B20\u{200b}"]].concat();
        assert_eq!(warnings(code, flat.clone(), all, &alike), []);
        let two = json!({"Diagnose": ["I10", "B20"]});
        let found = warnings(code, flat, two, &["b20", "i10"]);
        assert_eq!(found[0].pointer.as_deref(), Some(at));
    }

    #[test]
    fn variants_that_are_leaves_of_a_taxonomy_are_found_and_numbers_have_none() {
        let code = WarningCode::ListedValueHasVariants;
        let leaves = ["B20", "b20", "I10", "i10"].map(|label| json!({"label": label}));
        let tree = json!({"name": "d", "role": "sensitive",
            "taxonomy": {"label": "*", "children": leaves}});
        let found = warnings(code, tree, json!({"d": ["B20"]}), &["B20", "b20", "I10"]);
        assert_eq!(found.len(), 1);
        let number = json!({"name": "d", "role": "sensitive", "kind": "numeric"});
        assert_eq!(
            warnings(code, number, json!({"d": ["15"]}), &["1.5", "15"]),
            []
        );
    }

    #[test]
    fn undeclared_words_for_missing_are_named_and_declared_ones_are_not() {
        let code = WarningCode::UndeclaredMissing;
        let all = Value::Null;
        let column = json!({"name": "d", "role": "sensitive"});
        let cells = ["I10", "unbekannt", "unbekannt", "K.A.", "keine", "-"];
        let found = warnings(code, column, all.clone(), &cells);
        assert_eq!(found.len(), 1);
        let begin =
            "in 3 of 7 rows the sensitive column `d` has a word for missing (`K.A.`, `unbekannt`)";
        assert!(found[0].detail.starts_with(begin), "{}", found[0].detail);
        assert_eq!(found[0].columns, ["d"]);
        let declared =
            json!({"name": "d", "role": "sensitive", "missing": ["", "unbekannt", "K.A."]});
        assert_eq!(warnings(code, declared, all.clone(), &cells), []);
        assert_eq!(
            warnings(
                code,
                json!({"name": "d", "role": "sensitive"}),
                all,
                &["keine"]
            ),
            []
        );
    }
}
