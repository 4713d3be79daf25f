//! Tests that a released table is read back as it was written, from every format.

use pais_core::definition::ColumnKind;
use pais_core::reimport::{self, anatomized, read_back_error};
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{
    Column, Domain, EncodedTable, Form, NULL_CODE, ReleasedColumn, ReleasedTable, Table,
};
use pais_core::taxonomy::Interval;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use crate::read::cells::ColumnBuilder;
use crate::read::format_tests::{from_csv, from_ndjson, from_parquet};
use crate::read::tests::schema;

/// The files of a table, each read by `read_by`.
fn read_each(table: &ReleasedTable, read_by: &Schema) -> [Table; 3] {
    let (mut in_csv, mut in_ndjson, mut in_parquet) = (Vec::new(), Vec::new(), Vec::new());
    crate::write::csv(table, &mut in_csv).unwrap();
    crate::write::ndjson(table, &mut in_ndjson).unwrap();
    crate::write::parquet(table, &mut in_parquet).unwrap();
    [
        from_csv(read_by, &in_csv).unwrap(),
        from_ndjson(read_by, &in_ndjson).unwrap(),
        from_parquet(read_by, &in_parquet, u64::MAX).unwrap(),
    ]
}

fn taxonomy() -> Value {
    json!({"label": "ANY ", "children": [
        {"label": "NA", "children": [{"label": "a"}, {"label": "e\u{301}"}]},
        {"label": "b c"}, {"label": "*"}]})
}

/// A declared column, and cells in many spellings, `None` being null. Some cells are refused.
fn any_column(roles: Vec<&'static str>) -> impl Strategy<Value = (Value, Vec<Option<String>>)> {
    let roles = select(roles);
    let kinds = select(vec!["categorical", "numeric", "set", "date", "datetime"]);
    let missing = select(vec![
        Value::Null,
        json!([]),
        json!(["NA"]),
        json!(["", "NA"]),
        json!(["-1.0", " NA", "b|a"]),
    ]);
    (roles, kinds, any::<bool>(), missing)
        .prop_filter(
            "only quasi-identifiers and insensitive columns are sets",
            |it| it.1 != "set" || !["sensitive", "class"].contains(&it.0),
        )
        .prop_flat_map(|(role, kind, has_tree, missing)| {
            let has_tree = has_tree && ["categorical", "set"].contains(&kind);
            let mut declared = json!({"role": role, "kind": kind, "missing": missing});
            if has_tree {
                declared["taxonomy"] = taxonomy();
            }
            let cell = match (kind, has_tree) {
                ("date", _) => " ?(1987-0[1-3]-[0-3][0-9]( 00:00)?|[0-9]{4}-02-29)|NA|-1||x".boxed(),
                ("datetime", _) => {
                    " ?1987-03-0[1-3]([T ]1[0-2]:[0-5]0(:01|:0[0-2]\\.[0-9]{1,4})?(Z|\\+02:00)?)?|NA|"
                        .boxed()
                }
                ("numeric", _) => prop_oneof![
                    "[+-]?0{0,2}[0-9]{1,3}(\\.[0-9]{0,3})?([eE]-?[0-9])?",
                    "-?90071992547409[0-9]{2,4}(\\.0|\\.5)?",
                    "1152921504606846976|1.5e300|1e-300|-1(.0)?|NA|",
                ]
                .boxed(),
                ("set", true) => "( ?(a|\u{e9}|b c|\\*)\t?\\|){0,3}(a|e\u{301} )|NA| ?".boxed(),
                (_, true) => " ?(a|\u{e9}|e\u{301}|b c|\\*) ?|NA|  ?|".boxed(),
                ("set", false) => "[a-c\u{e9} \r]{0,2}(\\|[a-c\"]{1,2}\r?){0,3}|NA|b\\|a|".boxed(),
                _ => "[a-c,\"\n\r\t\\\\ \u{e9}\u{301}?]{0,4}|NA|null|1.50|\\[1,2\\)| ".boxed(),
            };
            let cells = prop::collection::vec(prop::option::weighted(0.8, cell), 12);
            (Just(declared), cells)
        })
}

/// The schema of some columns, and a table of their cells as a reader stores them; refused cells
/// are null.
fn stored(columns: &[(Value, Vec<Option<String>>)], rows: usize) -> (Schema, Table) {
    let named = columns.iter().enumerate().map(|(index, (declared, _))| {
        let mut declared = declared.clone();
        declared["name"] = json!(format!("column {index}"));
        // At most one column can be the class.
        if index > 0 && declared["role"] == "class" {
            declared["role"] = json!("sensitive");
        }
        declared
    });
    let schema = schema(named.collect());
    let read = schema.stored().zip(columns).map(|(spec, (_, cells))| {
        let mut builder = ColumnBuilder::new(spec);
        for cell in &cells[..rows] {
            match cell {
                None => builder.push_null(),
                Some(cell) => drop(builder.push(cell.as_bytes())),
            }
        }
        builder.take()
    });
    let columns = read.collect();
    let table = Table { rows, columns }.canonical(&schema);
    assert_eq!(table.clone().canonical(&schema), table);
    (schema, table)
}

fn exact(spec: &SchemaColumn, column: &Column) -> ReleasedColumn {
    ReleasedColumn {
        name: spec.name().into(),
        form: Form::untouched(spec),
        column: column.clone(),
        missing: spec.missing().to_vec(),
    }
}

/// Cells with null for those that are missing.
fn cells(spec: &SchemaColumn, column: &Column) -> Vec<Option<String>> {
    let texts = (0..column.codes.len()).map(|row| column.text(row));
    texts
        .map(|text| {
            text.filter(|text| !spec.is_missing(text))
                .map(str::to_owned)
        })
        .collect()
}

fn released(columns: Vec<ReleasedColumn>, rows: usize) -> ReleasedTable {
    ReleasedTable {
        name: "data".into(),
        rows,
        columns,
    }
}

/// Labels that a release can have for a stored column, chosen by some numbers.
fn labels(schema: &Schema, table: &Table, choices: &[prop::sample::Index]) -> ReleasedColumn {
    let spec = &schema.columns[0];
    let encoded = EncodedTable::new(schema, table.clone());
    let mut column = Column::default();
    for choice in choices {
        let label = match encoded.quasi_identifiers.first().map(|it| &it.domain) {
            Some(Domain::Taxonomy(tree)) => choice.get(tree.nodes()).label.to_string(),
            Some(Domain::Numeric { values, .. }) if values.is_empty() => "?".to_owned(),
            Some(Domain::Numeric { values, scale, .. }) => {
                let (lo, hi) = (choice.index(values.len()), choice.index(values.len() + 1));
                let (lo, hi) = (values[lo.min(hi)], values[lo.max(hi).min(values.len() - 1)]);
                match choice.index(4) {
                    0 => "?".to_owned(),
                    1 if lo < hi => Interval::half_open(lo, hi).on(*scale).to_string(),
                    _ => Interval::closed(lo, hi).on(*scale).to_string(),
                }
            }
            None => {
                let nodes = encoded.sets[0].tree.nodes();
                let size = choice.index(nodes.len().min(4));
                let start = choice.index(nodes.len() - size);
                let mut items: Vec<&str> = nodes[start..start + size]
                    .iter()
                    .map(|node| &*node.label)
                    .collect();
                items.sort_unstable();
                items.join("|")
            }
        };
        let known = column.dictionary.iter().position(|known| **known == *label);
        let code = known.unwrap_or_else(|| {
            column.dictionary.push(label.into());
            column.dictionary.len() - 1
        });
        column.codes.push(code as u32);
    }
    let form = match Form::untouched(spec) {
        Form::Set { separator } => Form::Set { separator },
        _ => Form::Generalized,
    };
    ReleasedColumn {
        name: spec.name().into(),
        form,
        column,
        missing: Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_is_read_back_is_what_was_released(
        columns in prop::collection::vec(
            any_column(vec!["sensitive", "class", "insensitive"]), 1..4),
        rows in 1usize..12,
    ) {
        let (schema, table) = stored(&columns, rows);
        let columns = schema.stored().zip(&table.columns);
        let written = released(columns.map(|(spec, column)| exact(spec, column)).collect(), rows);
        prop_assert_eq!(read_back_error(&schema, &written), None);
        let names: Vec<String> = schema.stored().map(|spec| spec.name().to_string()).collect();
        let read_by = reimport::columns(&schema, &names);
        for (format, read) in read_each(&written, &read_by).into_iter().enumerate() {
            let read = reimport::released(&schema, &read_by, read, 1).unwrap();
            prop_assert_eq!(read.rows, rows);
            for ((spec, column), read) in schema.stored().zip(&table.columns).zip(&read.columns) {
                let found = cells(spec, &read.column);
                prop_assert_eq!(&found, &cells(spec, column), "{}", format);
                // CSV also keeps the word for missing, except the empty one.
                for row in 0..rows {
                    let found = read.column.text(row).filter(|_| format == 0);
                    let empty = found.is_none_or(str::is_empty);
                    prop_assert!(empty || found == column.text(row));
                }
            }
        }
    }

    #[test]
    fn exact_values_of_an_anatomized_table_are_read_back(
        column in any_column(vec!["quasi_identifier", "sensitive", "class", "insensitive"]),
        rows in 1usize..12,
    ) {
        let (schema, table) = stored(&[column], rows);
        let spec = &schema.columns[0];
        let written = released(vec![exact(spec, &table.columns[0])], rows);
        let is_set = spec.kind() == ColumnKind::Set;
        let is_text = spec.kind() == ColumnKind::Categorical && spec.tree().is_none();
        let is_empty_value = (is_text || is_set) && !spec.is_missing("");
        let null = table.columns[0].codes.contains(&NULL_CODE) && is_empty_value;
        // The one case that CSV cannot show: both null and the empty cell, which is a value.
        prop_assume!(!null);
        let is_read_back = read_back_error(&schema, &written).is_none();
        prop_assert!(is_read_back || is_set);
        // A sensitive table has its exact column between those that the anatomy adds.
        let exact_column = anatomized::sensitive_columns(spec).columns[1].clone();
        let read_by = Schema { columns: vec![exact_column] };
        for read in read_each(&written, &read_by) {
            let read = reimport::rewritten(spec, read.columns[0].clone());
            prop_assert_eq!(cells(spec, &read), cells(spec, &table.columns[0]));
        }
    }

    #[test]
    fn labels_are_read_back(
        column in any_column(vec!["quasi_identifier"]),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let (schema, table) = stored(&[column], 12);
        let label = labels(&schema, &table, &choices);
        let written = released(vec![label.clone()], choices.len());
        if read_back_error(&schema, &written).is_some() {
            // The one label that is not: two items of a column without a taxonomy that make a
            // word for missing.
            prop_assert!(label.column.dictionary.contains(&"a|b".into()));
            return Ok(());
        }
        let names = [schema.columns[0].name().to_owned()];
        let read_by = reimport::columns(&schema, &names);
        for read in read_each(&written, &read_by) {
            let read = reimport::released(&schema, &read_by, read, 1).unwrap();
            for row in 0..choices.len() {
                prop_assert_eq!(read.columns[0].column.text(row), label.column.text(row));
            }
        }
    }

    #[test]
    fn large_and_fractional_numbers_of_one_column_are_read_back_exactly(
        numbers in subsequence(vec![
            "9007199254740993", "-9223372036854775807", "1152921504606846976", "0.5", "1e-6",
            "1.2345678901234568e29", "1e300", "1e-300", "-7", "123456789.125",
        ], 1..=10),
    ) {
        let cells = numbers.iter().map(|number| Some((*number).to_owned())).collect();
        let declared = json!({"role": "insensitive", "kind": "numeric"});
        let (schema, table) = stored(&[(declared, cells)], numbers.len());
        let written = released(vec![exact(&schema.columns[0], &table.columns[0])], numbers.len());
        for read in read_each(&written, &schema) {
            prop_assert_eq!(read.columns[0].dictionary.iter().map(|text| &**text).collect::<Vec<_>>(), numbers.clone());
        }
    }
}

#[test]
fn a_table_that_is_not_read_back_is_found() {
    let schema = schema(json!([
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "job", "role": "quasi_identifier", "taxonomy": taxonomy()},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
        {"name": "load", "role": "sensitive", "kind": "numeric", "missing": ["-1"]},
        {"name": "note", "role": "insensitive", "missing": ["NA"]},
        {"name": "born", "role": "quasi_identifier", "kind": "date", "format": "%d.%m.%Y"},
        {"name": "seen", "role": "insensitive", "kind": "datetime"},
    ]));
    let found = |name: &str, texts: &[&str], codes: &[u32]| {
        let spec = schema.stored_named(name);
        let form = match spec.map(Form::untouched) {
            None => Form::Integer,
            Some(Form::Text | Form::Number) if ["age", "job", "born"].contains(&name) => {
                Form::Generalized
            }
            Some(form) => form,
        };
        let missing = spec.map_or_else(Vec::new, |spec| match spec.role() {
            pais_core::definition::ColumnRole::QuasiIdentifier => Vec::new(),
            _ => spec.missing().to_vec(),
        });
        let column = ReleasedColumn {
            name: name.into(),
            form,
            column: Column {
                dictionary: texts.iter().map(|text| (*text).into()).collect(),
                codes: codes.to_vec(),
            },
            missing,
        };
        let error = read_back_error(&schema, &released(vec![column], codes.len()));
        assert!(error.as_ref().is_none_or(|error| *error.column == *name));
        error.is_none()
    };
    assert!(found("age", &["[1,30)", "30", "?"], &[0, 1, 2]));
    assert!(!found("age", &["[1,30.0)"], &[0]));
    assert!(!found("age", &["[1,30)"], &[0, NULL_CODE]));
    assert!(found(
        "born",
        &["[1987-01-01,1990-07-01)", "1987-09-03", "?"],
        &[0, 1, 2]
    ));
    assert!(!found("born", &["[1987-01-01, 1990-07-01)"], &[0]));
    assert!(!found("born", &["[1,30)"], &[0]));
    assert!(!found("born", &["03.09.1987"], &[0]));
    assert!(found("seen", &["1987-09-03T10:15:00.5"], &[0, NULL_CODE]));
    assert!(!found("seen", &["1987-09-03T10:15:00Z"], &[0]));
    assert!(found("job", &["ANY", "NA", "\u{e9}", "?"], &[0]));
    assert!(!found("job", &["ANY "], &[0]));
    assert!(!found("job", &["other"], &[0]));
    assert!(found("drugs", &["a|b", ""], &[0, 1]));
    assert!(!found("drugs", &["b|a"], &[0]));
    assert!(found("load", &["200", "-1"], &[0, 1]));
    assert!(!found("load", &["200.0"], &[0]));
    assert!(!found("load", &["200", "200"], &[0, 1]));
    assert!(found("load", &["200"], &[0, NULL_CODE]));
    assert!(found("note", &["", "a\rb"], &[0, 1]));
    assert!(!found("note", &["a\r"], &[0]));
    assert!(!found("note", &["", "b"], &[0, NULL_CODE]));
    assert!(found("group_id", &["1", "12"], &[0, 1]));
    assert!(!found("count", &["01"], &[0]));
}

#[test]
fn a_label_of_a_taxonomy_is_read_before_a_word_for_missing() {
    let schema = schema(json!([
        {"name": "drugs", "role": "quasi_identifier", "kind": "set", "missing": ["NA", "none"],
         "taxonomy": taxonomy()}]));
    let read_by = reimport::columns(&schema, &["drugs".to_owned()]);
    let table = from_csv(&read_by, b"drugs\nNA\nnone\nNA|b c\n").unwrap();
    let read = reimport::released(&schema, &read_by, table, 2).unwrap();
    let texts: Vec<_> = (0..3).map(|row| read.columns[0].column.text(row)).collect();
    assert_eq!(texts, [Some("NA"), Some(""), Some("NA|b c")]);
}
