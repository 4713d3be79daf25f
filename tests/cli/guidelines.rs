//! The jobs in `examples/guidelines`, each of which aims at a guideline: what the report says to it.

use std::path::Path;

use serde_json::Value;

use crate::cli_dir::CliDir;

/// The directory of the examples.
fn examples() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/guidelines"))
}

/// The report of the example's table under a job of the examples.
fn report(job: &str) -> Value {
    let dir = CliDir::new();
    for (from, to) in [
        ("dataset.json", "s.json"),
        (job, "j.json"),
        ("admissions.csv", "raw.csv"),
    ] {
        std::fs::copy(examples().join(from), dir.path().join(to)).unwrap();
    }
    dir.anonymize("raw.csv", "out.csv");
    let (status, text) = dir.verify("out.csv", true);
    assert_eq!(status, Some(0), "{text}");
    dir.json("report.json")
}

#[test]
fn every_example_is_tested() {
    let files = std::fs::read_dir(examples()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "cms-cells.json",
            "dataset.json",
            "ema-0070.json",
            "opinion-05-2014.json"
        ]
    );
}

/// The answers say `limited`, never `excluded`; linkability always remains.
#[test]
fn the_job_for_the_european_opinion_limits_singling_out_and_inference() {
    let report = report("opinion-05-2014.json");
    let answers = &report["guidelines"]["opinion_05_2014"];
    assert_eq!(answers["singling_out"]["answer"], "limited", "{answers}");
    assert_eq!(answers["singling_out"]["unique_share"], 0.0);
    assert_eq!(answers["linkability"]["answer"], "possible");
    assert_eq!(answers["inference"]["answer"], "limited");
    assert!(
        answers["inference"]["greatest_confidence"]
            .as_f64()
            .unwrap()
            <= 0.5
    );
}

#[test]
fn the_job_for_ema_and_health_canada_keeps_the_greatest_risk_below_0_09() {
    let report = report("ema-0070.json");
    let risk = &report["guidelines"]["risk_threshold"];
    assert_eq!(risk["threshold"], 0.09);
    assert_eq!(risk["highest"], report["risk"]["highest"]);
    assert!(risk["highest"].as_f64().unwrap() <= 1.0 / 12.0, "{risk}");
    assert_eq!(risk["highest_is_within"], true);
    assert_eq!(risk["average_is_within"], true);
}

#[test]
fn the_job_for_cms_has_no_cell_below_11() {
    let report = report("cms-cells.json");
    let cells = &report["guidelines"]["small_cells"];
    assert_eq!(cells["all_are_within"], true, "{cells}");
    assert_eq!(cells["smallest"], report["utility"]["smallest_group"]);
    assert_eq!(cells["share_in_smaller"], 0.0);
}

/// 164.514(b)(2)(i)(C): ages over 89 may be one group.
#[test]
fn one_group_of_90_or_older_is_permitted() {
    let report = report("cms-cells.json");
    let categories = report["guidelines"]["safe_harbor"]["categories"]
        .as_array()
        .unwrap();
    let ages = &categories[2]["columns"];
    let age = ages
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "age")
        .unwrap();
    assert_eq!(
        age["missing"],
        serde_json::json!([]),
        "one group of 90 or older: {age}"
    );
}
