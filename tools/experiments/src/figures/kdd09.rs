//! Figures 4 and 5 of the KDD'09 paper: utility of LKC-privacy over *L*, *K* and *C*.

use serde_json::{Value, json};

use super::claims::{benefit, cost, dr, effect_of_c, level, over_traditional};
use super::{Extent, TRADITIONAL, named, report, runs};
use crate::axis::Axis;
use crate::plan::{Figure, Measure, Series};
use crate::tables::TableSpec;

pub(super) const CE: &str = "/utility/classification_error/ce";
pub(super) const COST: &str = "/utility/classification_error/ce_minus_be";
const BENEFIT: &str = "/utility/classification_error/ue_minus_ce";
/// The report has both errors with two digits, so one percent. The differences are more precise.
pub(super) const BE: Measure = Measure::Combined(CE, -1.0, COST);
const UE: Measure = Measure::Combined(CE, 1.0, BENEFIT);
pub(super) const DR: &str = "/utility/dr";

pub(super) const K_AXIS: Axis = Axis::new("K, rows");
pub(super) const CE_AXIS: Axis = Axis::percent("Classification error, %");
pub(super) const DR_AXIS: Axis = Axis::new("Discernibility ratio (DR)");
const C_AXIS: Axis = Axis::new("C, %");

const K_PLACES: [f64; 5] = [20.0, 40.0, 60.0, 80.0, 100.0];
const C_PLACES: [f64; 6] = [5.0, 10.0, 15.0, 20.0, 25.0, 30.0];
pub(super) const L_VALUES: [usize; 3] = [2, 4, 6];

/// What a run costs and what it gains, as in the report, for the table below a picture.
fn differences(l: usize, places: &[f64], run: impl Fn(f64) -> (TableSpec, Value)) -> [Series; 2] {
    let line = |what, pointer| {
        runs(
            format!("{what}, L = {l}"),
            None,
            places,
            &report(pointer),
            &run,
        )
    };
    [line("CE - BE", COST), line("UE - CE", BENEFIT)]
}

/// The objective whose runs measure CE. Others need not measure raw rows, which takes time.
const CLASSIFICATION: &str = "classification";

/// LKC-privacy on the blood table, where every diagnosis is sensitive.
fn blood_job(l: usize, k: f64, objective: &str) -> Value {
    json!({
        "privacy": {"model": "lkc", "l": l, "k": k as u64, "c": 0.2},
        "utility": {"objective": objective, "raw_figures": objective == CLASSIFICATION},
    })
}

/// LKC-privacy on Adult; C in percent.
pub(super) fn adult_job(l: usize, k: f64, c: f64, objective: &str) -> Value {
    json!({
        "privacy": {
            "model": "lkc", "l": l, "k": k as u64, "c": c / 100.0,
            "sensitive_values": {"marital-status": ["Divorced", "Separated"]},
        },
        "utility": {"objective": objective, "raw_figures": objective == CLASSIFICATION},
    })
}

/// K-anonymity over all quasi-identifiers.
fn traditional_job(k: f64, objective: &str) -> Value {
    json!({
        "privacy": {"model": "k_anonymity", "k": k as u64},
        "utility": {"objective": objective, "raw_figures": objective == CLASSIFICATION},
    })
}

/// The rows of Adult.
pub(super) fn adult_table(extent: Extent) -> TableSpec {
    TableSpec::Adult {
        rows: extent.rows(45_222),
    }
}

/// Figure 4.
pub(super) fn blood(extent: Extent) -> Vec<Figure> {
    let table = TableSpec::blood(extent.rows(10_000));
    let places = extent.places(&K_PLACES);
    let series = |pointer: &str, objective: &'static str| {
        let mut series: Vec<Series> = Vec::new();
        for (index, l) in L_VALUES.into_iter().enumerate() {
            series.push(runs(named(l), (index, 0), &places, &report(pointer), |k| {
                (table.clone(), blood_job(l, k, objective))
            }));
        }
        series.push(runs(TRADITIONAL, (3, 1), &places, &report(pointer), |k| {
            (table.clone(), traditional_job(k, objective))
        }));
        series
    };
    let blood = |l| {
        let table = table.clone();
        move |k| (table.clone(), blood_job(l, k, "classification"))
    };
    let mut classification = series(CE, "classification");
    classification.push(runs("BE", (5, 1), &places, &BE, blood(2)));
    classification.push(runs("UE", (5, 2), &places, &UE, blood(2)));
    for l in L_VALUES {
        classification.extend(differences(l, &places, blood(l)));
    }
    vec![
        Figure {
            id: "kdd09-4a",
            title: "KDD'09, Figure 4a: blood, CE over K (C = 20 %)",
            x: K_AXIS,
            y: CE_AXIS,
            series: classification,
            claims: vec![
                level("BE", "22.1 %"),
                level("UE", "44.1 %"),
                cost(&[2, 4], "-2.9 to 5.2 points"),
                benefit(&[2, 4], "16.8 to 24.9 points"),
                cost(&[6], "about 17 points"),
                benefit(&[6], "5 points"),
            ],
        },
        Figure {
            id: "kdd09-4b",
            title: "KDD'09, Figure 4b: blood, DR over K (C = 20 %), greatest reduction",
            x: K_AXIS,
            y: DR_AXIS,
            series: series(DR, "discernibility"),
            claims: over_traditional(&L_VALUES),
        },
        Figure {
            id: "kdd09-4b-example3",
            title: "KDD'09, Figure 4b: blood, DR over K (C = 20 %), the score of Example 3",
            x: K_AXIS,
            y: DR_AXIS,
            series: series(DR, "discernibility_eq4"),
            claims: over_traditional(&L_VALUES),
        },
        Figure {
            id: "kdd09-4b-classification",
            title: "KDD'09, Figure 4b: blood, DR over K (C = 20 %), information gain",
            x: K_AXIS,
            y: DR_AXIS,
            series: series(DR, "classification"),
            claims: over_traditional(&L_VALUES),
        },
    ]
}

/// Figure 5.
pub(super) fn adult(extent: Extent) -> Vec<Figure> {
    let (over_k, over_c) = (extent.places(&K_PLACES), extent.places(&C_PLACES));
    let table = adult_table(extent);
    let series = |pointer: &str, objective: &'static str, is_k: bool| -> Vec<Series> {
        let places = if is_k { &over_k } else { &over_c };
        let one = |(index, l): (usize, usize)| {
            runs(named(l), (index, 0), places, &report(pointer), |x| {
                let (k, c) = if is_k { (x, 20.0) } else { (100.0, x) };
                (table.clone(), adult_job(l, k, c, objective))
            })
        };
        L_VALUES.into_iter().enumerate().map(one).collect()
    };
    let with_errors = |is_k: bool| {
        let places = if is_k { &over_k } else { &over_c };
        let run = |l, x| {
            let (k, c) = if is_k { (x, 20.0) } else { (100.0, x) };
            (table.clone(), adult_job(l, k, c, "classification"))
        };
        let mut all = series(CE, "classification", is_k);
        all.push(runs("BE", (5, 1), places, &BE, |x| run(2, x)));
        all.push(runs("UE", (5, 2), places, &UE, |x| run(2, x)));
        for l in L_VALUES {
            all.extend(differences(l, places, |x| run(l, x)));
        }
        all
    };
    let mut with_traditional = series(DR, "discernibility", true);
    with_traditional.push(runs(TRADITIONAL, (3, 1), &over_k, &report(DR), |k| {
        (table.clone(), traditional_job(k, "discernibility"))
    }));
    vec![
        Figure {
            id: "kdd09-5a",
            title: "KDD'09, Figure 5a: Adult, CE over K (C = 20 %)",
            x: K_AXIS,
            y: CE_AXIS,
            series: with_errors(true),
            claims: vec![
                level("BE", "14.7 %"),
                level("UE", "24.5 %"),
                cost(&[2], "less than 1 point"),
                benefit(&[2], "8.9 to 9.5 points"),
                cost(&[4, 6], "1.1 to 4.1 points"),
                benefit(&[4, 6], "5.8 to 8.8 points"),
            ],
        },
        Figure {
            id: "kdd09-5b",
            title: "KDD'09, Figure 5b: Adult, CE over C (K = 100)",
            x: C_AXIS,
            y: CE_AXIS,
            series: with_errors(false),
            claims: effect_of_c("CE", &L_VALUES),
        },
        Figure {
            id: "kdd09-5c",
            title: "KDD'09, Figure 5c: Adult, DR over K (C = 20 %)",
            x: K_AXIS,
            y: DR_AXIS,
            series: with_traditional,
            claims: vec![
                dr(&[2], "close to 0, insensitive to K"),
                dr(&[4], "much greater"),
                dr(&[6], "equal to traditional k-anonymity"),
                level(TRADITIONAL, "no number"),
            ],
        },
        Figure {
            id: "kdd09-5d",
            title: "KDD'09, Figure 5d: Adult, DR over C (K = 100)",
            x: C_AXIS,
            y: DR_AXIS,
            series: series(DR, "discernibility", false),
            claims: effect_of_c("DR", &L_VALUES),
        },
    ]
}
