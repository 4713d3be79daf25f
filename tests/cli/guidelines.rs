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
            "opinion-05-2014.json",
            "safe-harbor.json"
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

/// Nothing is missing: what is left is to be looked up by a person.
#[test]
fn the_job_for_safe_harbor_releases_years_and_three_digits_at_most() {
    let report = report("safe-harbor.json");
    let found = &report["guidelines"]["safe_harbor"];
    let findings = found["categories"].as_array().unwrap().iter();
    let findings: Vec<&Value> = findings.map(|it| &it["finding"]).collect();
    assert!(findings.iter().all(|it| **it != "missing"), "{found}");
    assert_eq!(
        (findings[1], findings[2]),
        (&"to_check".into(), &"to_check".into())
    );
    assert!(
        report["utility"]["ncp"].as_f64().unwrap() < 0.7,
        "the columns say something"
    );
}

/// Levels of hierarchies that are made from the rows: none below is released, and one above the root is
/// refused when the rows are known. They were refused for dates and numbers, and above 1.
#[test]
fn levels_of_made_hierarchies_bound_the_released_labels() {
    let dir = CliDir::new();
    let column = |name: &str, extra: Value| {
        let mut column = serde_json::json!({"name": name, "role": "quasi_identifier"});
        column
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        column
    };
    let made =
        |kind: &str, hierarchy: Value| serde_json::json!({"kind": kind, "taxonomy": hierarchy});
    let columns = [
        column(
            "zip",
            made(
                "categorical",
                serde_json::json!({"generate": "prefix", "lengths": [4, 3, 1]}),
            ),
        ),
        column(
            "day",
            made(
                "date",
                serde_json::json!({"generate": "calendar", "levels": ["month", "year"]}),
            ),
        ),
        column(
            "units",
            made(
                "numeric",
                serde_json::json!({"generate": "ranges", "widths": [10, 20]}),
            ),
        ),
    ];
    dir.write(
        "s.json",
        &serde_json::json!({"name": "t", "columns": columns}).to_string(),
    );
    let rows = (0..200).map(|row| {
        let (month, day) = (row % 12 + 1, row % 28 + 1);
        format!(
            "0{}115,20{}-{month:02}-{day:02},{}\n",
            row % 3,
            20 + row % 4,
            row % 70
        )
    });
    dir.write(
        "raw.csv",
        &format!("zip,day,units\n{}", rows.collect::<String>()),
    );
    let job = |zip: u32| {
        let levels =
            serde_json::json!({"zip": {"level": zip}, "day": {"level": 2}, "units": {"level": 2}});
        serde_json::json!({"privacy": {"model": "k_anonymity", "k": 2}, "recoding": "local",
                           "pre_generalization": levels})
        .to_string()
    };
    dir.write("j.json", &job(2));
    dir.anonymize("raw.csv", "out.csv");
    let (status, text) = dir.verify("out.csv", true);
    assert_eq!(status, Some(0), "{text}");
    let out = std::fs::read_to_string(dir.path().join("out.csv")).unwrap();
    for line in out.lines().skip(1) {
        let (zip, rest) = line.split_once(',').unwrap();
        let (day, units) = rest.split_once(',').unwrap();
        assert!(["001*", "011*", "021*", "0*", "*"].contains(&zip), "{line}");
        assert!(day.len() == 4 || day == "*", "{line}");
        let ends: Vec<u32> = units
            .split(|it: char| !it.is_ascii_digit())
            .filter_map(|end| end.parse().ok())
            .collect();
        assert!(ends[1] - ends[0] >= 10, "{line}");
    }
    dir.write("j.json", &job(9));
    let refused = dir.run(&[
        "anonymize",
        "--schema",
        "s.json",
        "--job",
        "j.json",
        "raw.csv",
        "-o",
        "none.csv",
    ]);
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(
        text.contains("/pre_generalization/zip/level") && text.contains("above the root"),
        "{text}"
    );
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
