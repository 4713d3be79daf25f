//! A page of each kind of release, with names and labels as long as they come.

use pais_report::{GrantFact, Reader, ReportPage, StepFact, SweepFact};
use serde_json::{Value, json};

/// The pages with their names.
pub(crate) fn all() -> Vec<(&'static str, ReportPage)> {
    vec![
        ("global", global()),
        ("recipient", recipient()),
        ("local", local()),
        ("sets", sets()),
        ("anatomy", anatomy()),
        ("sweep", sweep()),
        ("persons", persons()),
        ("fifty columns", fifty_columns()),
        ("empty", ReportPage::default()),
    ]
}

fn holder() -> Reader {
    Reader::Holder {
        grants: vec![
            GrantFact {
                recipient: "Blood Transfusion Service of the Red Cross".to_owned(),
                purpose: "Planning the supply of blood components for the winter of 2026"
                    .to_owned(),
                until: Some("31 March 2027".to_owned()),
            },
            GrantFact {
                recipient: "bts-research".to_owned(),
                purpose: "Quality assurance".to_owned(),
                until: None,
            },
        ],
    }
}

fn buckets() -> Value {
    json!([
        {"from": 1, "to": 1, "groups": 5430, "rows": 5430},
        {"from": 2, "to": 4, "groups": 3658, "rows": 9611},
        {"from": 5, "to": 9, "groups": 1398, "rows": 8974},
        {"from": 10, "to": 19, "groups": 700, "rows": 9800},
        {"from": 20, "to": 49, "groups": 210, "rows": 6400},
        {"from": 50, "to": 99, "groups": 57, "rows": 5007},
    ])
}

fn losses() -> Value {
    json!({"age": 0.362, "workclass": 0.875, "education": 0.494, "relationship": 1.0, "sex": 0.0,
           "Medical practitioner in charge of the transfusion": 0.333, "native-country": 1.0})
}

fn report() -> Value {
    json!({
        "rows": 45222, "suppressed_rows": 0, "verdict": "holds_but_singles_out",
        "acknowledged_unchanged": {"fnlwgt": "The weight is needed for estimates of the population"},
        "utility": {
            "ncp": 0.451252, "dr": 0.000424, "discernibility": 867834, "groups": 11453,
            "smallest_group": 1, "smallest_known_group": 21, "average_group": 3.948485,
            "average_group_per_record": 19.19, "greatest_confidence": 0.2,
            "information_remain": 0.548748, "ncp_by_column": losses(), "group_sizes": buckets(),
            "classification_error": {"ce": 0.152, "be": 0.147, "ue": 0.245, "ce_minus_be": 0.005,
                                     "ue_minus_ce": 0.093, "ce_spread": 0.002, "repeats": 3},
            "query_error": {"queries": 8800, "all": 0.21, "below_one_percent": 0.75, "from_one_percent": 0.13},
            "frequency_survival_by_column": losses(), "entropy_loss_by_column": losses(),
            "association_survival": 0.61,
        },
        "risk": {
            "highest": 1.0, "average": 0.253, "records_at_highest": 5430, "prosecutor": 1.0,
            "journalist": 1.0, "marketer": 0.253,
            "share_above": [{"threshold": 0.05, "share": 0.81}, {"threshold": 0.5, "share": 0.2}],
            "by_length_exact": false,
            "qid_sizes": [{"from": 20, "to": 49, "qids": 1200}, {"from": 50, "to": 99, "qids": 800},
                          {"from": 100, "to": 199, "qids": 93}],
            "by_length": [
                {"length": 1, "smallest": 230, "share_below_k": 0.0, "greatest_confidence": 0.18},
                {"length": 2, "smallest": 21, "share_below_k": 0.0, "greatest_confidence": 0.2},
                {"length": 3, "smallest": 2, "share_below_k": 0.08, "greatest_confidence": 0.6},
                {"length": 4, "smallest": 1, "share_below_k": 0.31, "greatest_confidence": 1.0},
            ],
            "insensitive_singled_out": ["fnlwgt"],
            "unchanged": {
                "columns": ["fnlwgt", "hours-per-week", "marital-status", "class"],
                "singled_out_share": 0.951, "by_column": {"fnlwgt": 0.38, "hours-per-week": 0.0,
                "marital-status": 0.0, "class": 0.0},
                "most_telling": {"columns": ["fnlwgt", "hours-per-week", "marital-status"],
                                 "singled_out_share": 0.902},
            },
            "attribute": {"highest": 0.2, "column": "marital-status"},
        },
        "guidelines": guidelines(),
        "distributions": [
            {"column": "age", "raw": [{"label": "[0,10)", "share": 0.41}, {"label": "[10,20)", "share": 0.59}],
             "released": [{"label": "[0,20]", "share": 1.0}]},
            {"column": "sex", "raw": [{"label": "Male", "share": 0.67}, {"label": "Female", "share": 0.33}],
             "released": [{"label": "*", "share": 1.0}]},
        ],
        "warnings": [{"code": "column_at_top", "detail":
            "the quasi-identifier `native-country` stays at its topmost value in every row, so it says nothing about them"}],
    })
}

fn guidelines() -> Value {
    let category = |letter: &str, title: &str, columns: Value| {
        let missing = columns
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["missing"] != json!([]));
        let finding = match (columns == json!([]), missing) {
            (true, _) => "no_column_recognized",
            (_, true) => "missing",
            _ => "removed",
        };
        json!({"letter": letter, "category": "x", "title": title, "finding": finding, "columns": columns})
    };
    json!({
        "note": "These answers help a privacy officer to decide. They are no legal advice.",
        "opinion_05_2014": {
            "singling_out": {"answer": "possible", "unique_by_quasi_identifiers": 0.12, "unique_share": 0.31,
                             "unique_by_all_columns": 0.98, "smallest_known_group": 21},
            "linkability": {"answer": "possible", "smallest_group": 1, "exact_links": ["fnlwgt"]},
            "inference": {"answer": "partly_limited", "greatest_confidence": 0.2, "unprotected": ["income"],
                          "listed_only": ["marital-status"]},
        },
        "risk_threshold": {"threshold": 0.09, "highest": 1.0, "average": 0.253,
                           "highest_is_within": false, "average_is_within": false},
        "small_cells": {"least": 11, "smallest": 1, "all_are_within": false, "share_in_smaller": 0.53},
        "safe_harbor": {
            "categories": [
                category("A", "names", json!([])),
                category("B", "geographic subdivisions smaller than a state", json!([
                    {"name": "native-country", "outcome": "generalized", "missing": ["state_or_larger", "meaning_of_labels"]},
                    {"name": "Postal code of the place in which the patient lives", "outcome": "unchanged",
                     "missing": ["three_digits", "population"]}])),
                category("C", "elements of dates but the year, and ages over 89", json!([
                    {"name": "age", "outcome": "generalized", "missing": ["ages_over_89"]}])),
                category("D", "telephone numbers", json!([])),
                category("H", "medical record numbers", json!([
                    {"name": "patient", "outcome": "dropped", "missing": []}])),
            ],
            "unrecognized": ["workclass", "education", "relationship", "sex", "income"],
        },
    })
}

fn lkc() -> Value {
    json!({"model": "lkc", "l": 2, "k": 20, "c": 0.2,
           "sensitive_values": {"marital-status": ["Divorced", "Separated"]}})
}

fn verification() -> Value {
    json!({"holds": true, "rows": 45222, "groups": 11453, "smallest_group": 21, "subsets": 91,
           "greatest_bounded_confidence": 0.2, "greatest_confidence": 0.62,
           "missing_sensitive": "excluded", "violations": 0})
}

fn education() -> Value {
    json!({"label": "Any", "children": [
        {"label": "Without-Post-Secondary", "children": [{"label": "Elementary"}, {"label": "Secondary"}]},
        {"label": "Post-secondary", "children": [{"label": "Some-college"},
            {"label": "Professional-school-of-a-very-long-name-without-any-space-in-it"}]},
    ]})
}

fn codebook() -> Value {
    let column =
        |name: &str, role: &str, kind: &str| json!({"name": name, "role": role, "kind": kind});
    let mut columns: Vec<Value> = losses()
        .as_object()
        .unwrap()
        .keys()
        .map(|name| {
            column(
                name,
                "quasi_identifier",
                if name == "age" {
                    "numeric"
                } else {
                    "categorical"
                },
            )
        })
        .collect();
    columns[2]["taxonomy"] = education();
    columns.push(column("marital-status", "sensitive", "categorical"));
    columns.push(column("income", "class", "categorical"));
    columns.push(column("fnlwgt", "insensitive", "numeric"));
    json!({"columns": columns})
}

fn global() -> ReportPage {
    let step = |step: u32| StepFact {
        step,
        column: (step > 0).then(|| "education".to_owned()),
        ncp: 1.0 - 0.55 * f64::from(step) / 32.0,
        dr: 0.9f64.powi(step as i32 * 2),
        smallest: 45222 / u64::from(step + 1),
    };
    ReportPage {
        release: "01a200ba-f611-76b8-849c-62935a449876".to_owned(),
        dataset: Some("Adult census records of the hospital of St. Anna".to_owned()),
        description: Some(
            "45,222 records of the census of 1994, which serve as patients".to_owned(),
        ),
        holder: Some("St. Anna Hospital".to_owned()),
        made_at: Some("23 November 2026, 09:12 UTC".to_owned()),
        reader: holder(),
        privacy: lkc(),
        verification: verification(),
        report: report(),
        tables: json!([{"name": "data", "rows": 45222, "bytes": 5000000,
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}]),
        cut: json!({
            "age": ["[17,28)", "[28,37)", "[37,48)", "[48,90]"], "sex": ["Female", "Male"],
            "education": ["Without-Post-Secondary", "Some-college",
                          "Professional-school-of-a-very-long-name-without-any-space-in-it"],
            "native-country": ["*"], "relationship": ["Any"],
        }),
        codebook: codebook(),
        steps: (0..=32).map(step).collect(),
        released_step: Some(32),
        ..ReportPage::default()
    }
}

fn recipient() -> ReportPage {
    let mut page = global();
    for field in [
        "classification_error",
        "query_error",
        "frequency_survival_by_column",
    ] {
        page.report["utility"]
            .as_object_mut()
            .unwrap()
            .remove(field);
    }
    page.report.as_object_mut().unwrap().remove("distributions");
    ReportPage {
        reader: Reader::Recipient {
            recipient: Some("Blood Transfusion Service".to_owned()),
            purpose: Some("Planning the supply of blood".to_owned()),
        },
        steps: Vec::new(),
        ..page
    }
}

fn local() -> ReportPage {
    let mut page = global();
    page.report["utility"]["smallest_group"] = json!(20);
    page.report["risk"]["highest"] = json!(0.05);
    page.report["suppressed_rows"] = json!(1204);
    ReportPage {
        privacy: json!({"model": "alpha_k", "k": 20, "alpha": 0.2}),
        suppression_for: json!("size_and_confidence"),
        cut: Value::Null,
        steps: Vec::new(),
        released_step: None,
        ..page
    }
}

fn sets() -> ReportPage {
    let mut page = local();
    page.report["utility"]["item_loss_by_column"] = json!({"diseases": 0.22, "drugs": 0.48});
    page.report["utility"]["items_by_column"] = json!({"diseases": {"raw": 10407, "released": 1425,
        "raw_cells_without_items": 12, "released_cells_without_items": 1800}});
    page.report["utility"]["item_query_error"] = json!({"queries": 1000, "all": 0.62});
    page.codebook["columns"].as_array_mut().unwrap().push(
        json!({"name": "diseases", "role": "quasi_identifier", "kind": "set", "taxonomy": education()}));
    ReportPage {
        privacy: json!({"model": "k_anonymity", "k": 10}),
        ..page
    }
}

fn anatomy() -> ReportPage {
    ReportPage {
        privacy: json!({"model": "l_diversity", "k": 50, "l": 10}),
        verification: json!({"holds": true, "diversity": 10.0}),
        tables: json!([{"name": "qit", "rows": 72194, "sha256": "00"}, {"name": "st_histology", "rows": 9000, "sha256": "11"}]),
        ..local()
    }
}

fn sweep() -> ReportPage {
    let one = |k: u64| SweepFact {
        name: format!("L 4, K {k}, C 20 %, local recoding, objective discernibility"),
        ncp: (k < 500).then_some(k as f64 / 600.0),
        dr: (k < 500).then_some(k as f64 / 9000.0),
        is_released: k == 20,
    };
    ReportPage {
        sweep: [5, 10, 20, 50, 100, 500].map(one).to_vec(),
        ..global()
    }
}

fn persons() -> ReportPage {
    let mut page = global();
    page.report["subjects"] = json!(20114);
    page
}

/// A page with every section, of fifty columns of each of which something is shown.
fn fifty_columns() -> ReportPage {
    let mut page = global();
    let name = |column: usize| format!("{column}. finding of the examination at admission");
    let names: Vec<String> = (0..50).map(name).collect();
    let by_column = |value: f64| -> Value {
        names
            .iter()
            .map(|name| (name.clone(), json!(value)))
            .collect()
    };
    for field in [
        "ncp_by_column",
        "entropy_loss_by_column",
        "frequency_survival_by_column",
    ] {
        page.report["utility"][field] = by_column(0.4321);
    }
    let labels = ["[0,20)", "[20,40)", "[40,60)", "[60,80)", "[80,100]"];
    let share = |label: &str| json!({"label": label, "share": 0.2});
    let shares: Vec<Value> = labels.into_iter().map(share).collect();
    let distribution = |name: &String| json!({"column": name, "raw": shares, "released": shares});
    page.report["distributions"] = names.iter().map(distribution).collect();
    page.cut = names
        .iter()
        .map(|name| (name.clone(), json!(labels)))
        .collect();
    let column = |name: &String| {
        let leaf = |label: &str| json!({"label": label});
        let children: Vec<Value> = labels.into_iter().map(leaf).collect();
        json!({"name": name, "role": "quasi_identifier", "kind": "numeric",
               "taxonomy": {"label": "[0,100]", "children": children}})
    };
    let mut columns: Vec<Value> = names.iter().map(column).collect();
    for number in 0..30 {
        columns.push(json!({"name": format!("{number}. laboratory value"), "role": "insensitive", "kind": "numeric"}));
    }
    page.codebook = json!({"columns": columns});
    page
}
