use std::collections::BTreeMap;

use pais_core::codebook::{
    Codebook, CodebookColumn, CodebookOrganization, ReleaseTerms, input_schema, transform,
};
use pais_core::definition::DatasetDefinition;
use pais_core::reimport;
use pais_core::schema::Schema;
use pais_core::table::{Column, Form, ReleasedColumn, ReleasedTable};
use pais_core::taxonomy::TreeLimits;
use pais_io::read::csv;
use serde_json::{Value, json};

const JOBS: &str = r#"{"label": "ANY", "children": [
    {"label": "Blue", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
    {"label": "White", "children": [{"label": "Doctor"}, {"label": "Lawyer"}]},
    {"label": "Grey", "children": [{"label": "Spy"}]}]}"#;

fn definition() -> DatasetDefinition {
    let jobs: Value = serde_json::from_str(JOBS).unwrap();
    let columns = json!([
        {"name": "id", "role": "identifier"},
        {"name": "job", "role": "quasi_identifier", "taxonomy": jobs},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 120]},
        {"name": "zip", "role": "quasi_identifier", "taxonomy": {"generate": "prefix"}},
        {"name": "town", "role": "quasi_identifier"},
        {"name": "born", "role": "quasi_identifier", "kind": "date", "format": "%d.%m.%Y",
         "taxonomy": {"generate": "calendar"}},
        {"name": "units", "role": "quasi_identifier", "kind": "numeric",
         "taxonomy": {"generate": "ranges", "widths": [10, 100]}},
        {"name": "ill", "role": "sensitive", "missing": ["unknown"], "taxonomy":
         {"label": "any", "children": [{"label": "flu"}, {"label": "cold"}, {"label": "HIV"}]}},
    ]);
    serde_json::from_value(
        json!({"name": "patients", "description": "of 2026", "columns": columns}),
    )
    .unwrap()
}

const RAW: &str = "id,job,age,zip,town,born,units,ill\n\
    1,Janitor,31,2511,Linz,03.09.1987,7,flu\n\
    2,Mover,35,2512,Graz,04.09.1987,8,cold\n\
    3,Doctor,61,2611,Linz,05.09.1987,9,flu\n\
    4,Spy,99,9999,Bern,06.09.1901,995,HIV\n";

fn column(name: &str, form: Form, labels: &[&str], codes: &[u32]) -> ReleasedColumn {
    ReleasedColumn {
        name: name.into(),
        form,
        column: Column {
            dictionary: labels.iter().map(|&label| label.into()).collect(),
            codes: codes.to_vec(),
        },
        missing: Vec::new(),
    }
}

/// A release of the first three raw rows: the spy is suppressed.
fn codebook() -> Codebook {
    let definition = definition();
    let schema = Schema::inline(&definition).unwrap();
    let raw = csv::read_table(&schema, RAW.as_bytes()).unwrap();
    let schema = schema.with_made_hierarchies(&raw).unwrap();
    let generalized =
        |name, labels: &[&str], codes: &[u32]| column(name, Form::Generalized, labels, codes);
    let table = ReleasedTable {
        name: "data".into(),
        rows: 3,
        columns: vec![
            generalized("job", &["Grey", "Blue", "Doctor"], &[1, 1, 2]),
            generalized("age", &["[0,60)", "[60,120]"], &[0, 0, 1]),
            generalized("zip", &["251*", "26*"], &[0, 0, 1]),
            generalized("town", &["Linz", "Graz"], &[0, 1, 0]),
            generalized("born", &["1987-Q3"], &[0, 0, 0]),
            generalized("units", &["[0,10)"], &[0, 0, 0]),
            column("ill", Form::Text, &["flu", "cold"], &[0, 1, 0]),
        ],
    };
    let holder = CodebookOrganization {
        name: "city".to_owned(),
        display_name: None,
    };
    Codebook::of_release(holder, &definition, &schema, &[table])
}

#[test]
fn a_codebook_has_the_released_labels_and_those_above_them() {
    let found = serde_json::to_value(codebook()).unwrap();
    assert_eq!(
        found["dataset"],
        json!({"name": "patients", "description": "of 2026"})
    );
    assert_eq!(found["organization"], json!({"name": "city"}));
    let jobs = json!({"label": "ANY", "children": [
        {"label": "Blue"}, {"label": "White", "children": [{"label": "Doctor"}]}]});
    assert_eq!(found["columns"][1]["taxonomy"], jobs);
    assert_eq!(
        found["columns"][2],
        json!({"name": "age", "role": "quasi_identifier", "kind": "numeric",
               "domain": [0.0, 120.0]})
    );
    let born = &found["columns"][5];
    assert_eq!(born["format"], "%d.%m.%Y");
    let labels = born["taxonomy"].to_string();
    assert!(
        labels.contains("1987-Q3") && labels.contains("1980s"),
        "{labels}"
    );
    assert_eq!(found["columns"][7]["missing"], json!(["unknown"]));
}

#[test]
fn no_value_below_the_cut_and_no_suppressed_value_is_in_a_codebook() {
    let text = serde_json::to_string(&codebook()).unwrap();
    for secret in [
        "Janitor", "Mover", "Lawyer", "Spy", "Grey", "2511", "2611", "999", "Linz", "Bern",
        "1987-09", "1901", "1900", "1000", "HIV", "flu",
    ] {
        assert!(
            !text.contains(secret),
            "a secret of length {}",
            secret.len()
        );
    }
}

fn terms(cut: Value) -> ReleaseTerms {
    let document = json!({
        "id": "7", "rows": 3, "codebook": codebook(), "cut": cut,
        "privacy": {"model": "k_anonymity", "k": 2}, "missing_sensitive": "excluded",
    });
    ReleaseTerms::parse(document.to_string().as_bytes()).unwrap()
}

#[test]
fn a_release_is_a_table_under_its_codebook() {
    let terms = terms(json!({}));
    assert_eq!(
        terms.job().privacy.model,
        pais_core::definition::ModelKind::KAnonymity
    );
    let codebook = terms.codebook.unwrap();
    let schema = codebook.schema(TreeLimits::default()).unwrap();
    let names = ["job", "age", "zip", "town", "born", "units", "ill"].map(str::to_owned);
    let read_by = reimport::columns(&schema, &names);
    let read = |row: &str| {
        let text = format!("{}\n{row}\n", names.join(","));
        let table = csv::read_table(&read_by, text.as_bytes()).unwrap();
        reimport::released(&schema, &read_by, table, 2)
    };
    let row = "White,\"[0,60)\",251*,Linz,1987-Q3,\"[0,10)\",flu";
    assert_eq!(read(row).unwrap().rows, 1);
    assert!(read(&row.replace("White", "Green")).is_err());
}

/// Maps rows through a cut. Only its columns are quasi-identifiers of the release.
fn mapped(cut: Value, rows: &str, with_schema: bool) -> Result<String, Vec<(u64, String)>> {
    let cut: BTreeMap<String, Vec<String>> = serde_json::from_value(cut).unwrap();
    let mut codebook = codebook();
    codebook.columns.retain(|column| {
        column.role != pais_core::definition::ColumnRole::QuasiIdentifier
            || cut.contains_key(&column.name)
    });
    let raw = if with_schema {
        Schema::inline(&definition()).unwrap()
    } else {
        codebook.raw_schema().unwrap()
    };
    let names: Vec<String> = rows
        .lines()
        .next()
        .unwrap()
        .split(',')
        .map(str::to_owned)
        .collect();
    let read_by = input_schema(&codebook, &raw, &names);
    let table = csv::read_table(&read_by, rows.as_bytes()).unwrap();
    let mapped = transform(&codebook, &cut, &raw, &read_by, table, 2);
    let mapped = mapped.map_err(|error| {
        let place = |fault: &pais_core::rejection::Fault| {
            (fault.line().unwrap(), fault.column().unwrap().to_owned())
        };
        error.faults.iter().map(place).collect::<Vec<_>>()
    })?;
    let mut out = Vec::new();
    pais_io::write::csv(&mapped, &mut out).unwrap();
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn numbers_and_dates_are_mapped_by_the_codebook_alone() {
    let cut = json!({"age": ["[0,60)", "[60,120]", "?"], "born": ["1987-Q3", "1987-Q4"],
                     "units": ["[0,10)", "[10,20)"]});
    let rows = "id,age,born,units,ill\n7,59.5,01.10.1987,10,new\n8,120,30.09.1987,9.99,flu\n";
    assert_eq!(
        mapped(cut.clone(), rows, false).unwrap(),
        "age,born,units,ill\n\"[0,60)\",1987-Q4,\"[10,20)\",new\n\"[60,120]\",1987-Q3,\"[0,10)\",flu\n"
    );
    let rows = "age,born,units\n,01.08.1987,1\n121,01.08.1987,1\n3,01.08.1987,20\n";
    assert_eq!(
        mapped(cut, rows, false),
        Err(vec![(3, "age".to_owned()), (4, "units".to_owned())])
    );
}

/// The error names the column and no row.
#[test]
fn a_cut_whose_labels_overlap_is_refused() {
    for ages in [
        ["[0,60)", "[50,120]"],
        ["[0,60]", "[60,120]"],
        ["[0,60)", "[0,60]"],
    ] {
        let cut = json!({"age": ages});
        assert_eq!(mapped(cut, "age\n55\n", false), Err(Vec::new()), "{ages:?}");
    }
    let cut = json!({"age": ["[60,120]", "[30,60)", "[0,30)", "[0,30)"]});
    let found = mapped(cut, "age\n29\n30\n120\n", false).unwrap();
    assert_eq!(found, "age\n\"[0,30)\"\n\"[30,60)\"\n\"[60,120]\"\n");
}

/// A label that no released row has would single the row out.
#[test]
fn a_missing_value_needs_a_label_of_the_cut() {
    let ages = json!(["[0,60)", "[60,120]"]);
    let cut = json!({"job": ["Blue", "White"], "age": ages, "town": ["Linz", "Graz"]});
    let rows = "job,age,town\nMover,3,Linz\n?,3,Linz\nMover,,Linz\nMover,3,\nMover,3,?\n";
    let places = [(3, "job"), (4, "age"), (5, "town"), (6, "town")];
    let places = places.map(|(line, column)| (line, column.to_owned()));
    assert_eq!(mapped(cut, rows, true), Err(places.to_vec()));
    let cut = json!({"job": ["Blue", "?"], "age": ["[0,120]"], "town": ["Linz", "?"]});
    assert_eq!(
        mapped(cut, "job,age,town\n?,,\n", true).unwrap(),
        "job,age,town\n?,\"[0,120]\",?\n"
    );
}

#[test]
fn labels_are_mapped_by_the_taxonomy_of_the_datasets_schema() {
    let cut = json!({"job": ["Blue", "Doctor", "Lawyer", "Grey"], "zip": ["251*", "26*"]});
    let rows = "job,zip\nMover,2515\nDoctor,2699\n";
    assert_eq!(
        mapped(cut.clone(), rows, true).unwrap(),
        "job,zip\nBlue,251*\nDoctor,26*\n"
    );
    // The codebook has no value below `Blue`, and `Doctor` is a label of the cut.
    let places = mapped(cut, "job,zip\nMover,251*\nDoctor,26*\n", false).unwrap_err();
    assert_eq!(places, [(2, "job".to_owned())]);
    // One label covers every value.
    let rows = "town,job\nRome,Mover\n,?\n";
    let found = mapped(json!({"town": ["*"], "job": ["ANY"]}), rows, false).unwrap();
    assert_eq!(found, "job,town\nANY,*\nANY,*\n");
}

#[test]
fn numbers_that_a_release_rounds_are_rounded_by_its_codebook() {
    let mut codebook = codebook();
    codebook.columns.retain(|column| column.name == "ill");
    codebook.columns.push(CodebookColumn {
        name: "cost".to_owned(),
        role: pais_core::definition::ColumnRole::Insensitive,
        kind: pais_core::definition::ColumnKind::Numeric,
        from: None,
        round: Some(1000.0),
        taxonomy: None,
        domain: None,
        separator: None,
        format: None,
        missing: None,
    });
    let raw = codebook.raw_schema().unwrap();
    let names = ["ill", "cost"].map(str::to_owned);
    let read_by = input_schema(&codebook, &raw, &names);
    let rows = "ill,cost\nflu,20621.22\nnew,499\n";
    let table = csv::read_table(&read_by, rows.as_bytes()).unwrap();
    let mapped = transform(&codebook, &BTreeMap::new(), &raw, &read_by, table, 2).unwrap();
    let mut out = Vec::new();
    pais_io::write::csv(&mapped, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "ill,cost\nflu,21000\nnew,0\n"
    );
}

#[test]
fn a_codebook_says_what_unchanged_numbers_are_multiples_of() {
    let definition = json!({"name": "t", "columns": [
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "round": 5},
        {"name": "cost", "role": "insensitive", "kind": "numeric", "round": 1000}]});
    let definition = serde_json::from_value(definition).unwrap();
    let schema = Schema::inline(&definition).unwrap();
    let organization = CodebookOrganization {
        name: "o".to_owned(),
        display_name: None,
    };
    let codebook = Codebook::of_release(organization, &definition, &schema, &[]);
    let rounds = codebook.columns.iter().map(|column| column.round);
    assert!(rounds.eq([None, Some(1000.0)]));
}
