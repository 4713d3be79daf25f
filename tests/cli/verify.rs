//! `pais verify` on files: releases that meet the model, releases that do not, unreadable files.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli_dir::CliDir;

/// A directory with a schema, a job and a raw table of five patients.
fn patients(privacy: Value, suppression_limit: f64) -> CliDir {
    let dir = CliDir::new();
    let job = json!({"tree": {"label": "ANY", "children": [
            {"label": "Blue", "children": [{"label": "Mover"}, {"label": "Janitor"}]},
            {"label": "White", "children": [{"label": "Doctor"}, {"label": "Lawyer"}]}]}});
    let schema = json!({"name": "t", "columns": [
        {"name": "name", "role": "identifier"},
        {"name": "job", "role": "quasi_identifier", "taxonomy": job["tree"]},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
        {"name": "ill", "role": "sensitive"},
        {"name": "cost", "role": "insensitive", "kind": "numeric"},
    ]});
    dir.write("s.json", &schema.to_string());
    let job = json!({"privacy": privacy, "suppression_limit": suppression_limit});
    dir.write("j.json", &job.to_string());
    dir.write(
        "raw.csv",
        "name,job,age,ill,cost\n1,Mover,20,flu,1.50\n2,Janitor,30,hiv,2\n\
             3,Doctor,40,flu,3\n4,Lawyer,50,flu,\n5,Lawyer,,flu,5\n",
    );
    dir
}

fn anonymity(k: u64) -> Value {
    json!({"model": "k_anonymity", "k": k})
}

#[test]
fn a_release_meets_its_model_or_not() {
    let dir = patients(anonymity(2), 0.2);
    // Rows and columns in another order, a number spelled differently, row 5 suppressed.
    dir.write(
        "r.csv",
        "age,job,cost,ill\n\"[0, 35)\",Blue,2.0,hiv\n\"[35,99]\",White,,flu\n\
         \"[0, 35)\",Blue,1.5,flu\n\"[35,99]\",White,3,flu\n",
    );
    let (status, text) = dir.verify("r.csv", true);
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("1 of 5 raw rows are left out, at most 1"),
        "{text}"
    );
    assert!(text.contains("one cut"), "{text}");
    let strict = patients(anonymity(3), 0.0);
    strict.write(
        "r.csv",
        &std::fs::read_to_string(dir.path().join("r.csv")).unwrap(),
    );
    let (status, text) = strict.verify("r.csv", false);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("worst groups") && text.contains("job = Blue"),
        "{text}"
    );
    let (status, text) = strict.verify("r.csv", true);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("no records lost      NO"), "{text}");
}

#[test]
fn a_label_that_is_written_in_two_ways_is_refused() {
    let dir = patients(anonymity(2), 0.0);
    for (job, age, other_job, other_age) in [
        ("Blue", "[0,50)", "Blue", "[0, 50)"),
        ("Blue", "[0,50)", "Blue", "[0.0,50)"),
        ("Blue", "20", "Blue", "20.0"),
        ("Blue", "20", "Blue ", "20"),
        ("ANY", "20", "*", "20"),
    ] {
        // Also where the rows are read in several parts.
        let rows = format!("{job},\"{age}\",flu\n").repeat(200_000);
        let row = format!("{other_job},\"{other_age}\",flu\n");
        dir.write("r.csv", &format!("job,age,ill\n{rows}{row}{row}"));
        let (status, text) = dir.verify("r.csv", false);
        assert_eq!(status, Some(2), "{other_job} {other_age}: {text}");
        let problem: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(problem["errors"][0]["line"], 200_002, "{text}");
        assert!(text.contains("written differently"), "{text}");
    }
    dir.write(
        "r.ndjson",
        "{\"job\":\"Blue\",\"age\":null,\"ill\":\"flu\"}\n{\"job\":\"Blue\",\"age\":\"?\",\"ill\":\"flu\"}\n",
    );
    assert_eq!(dir.verify("r.ndjson", false).0, Some(2));
}

/// Six visits of five patients.
fn visits(k: u64) -> CliDir {
    let dir = CliDir::new();
    let schema = json!({"name": "t", "columns": [
        {"name": "patient", "role": "subject"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
        {"name": "ill", "role": "sensitive"},
    ]});
    dir.write("s.json", &schema.to_string());
    dir.write("j.json", &json!({"privacy": anonymity(k)}).to_string());
    dir.write(
        "raw.csv",
        "patient,age,ill\np1,21,flu\np1,25,cold\np2,33,flu\np3,71,flu\np4,78,cold\np5,90,flu\n",
    );
    dir.write(
        "r.csv",
        "age,ill\n\"[0,50)\",flu\n\"[0,50)\",cold\n\"[0,50)\",flu\n\"[50,99]\",cold\n\
         \"[50,99]\",flu\n\"[50,99]\",flu\n",
    );
    dir
}

#[test]
fn k_over_persons_is_open_without_the_raw_table() {
    let dir = visits(3);
    let (status, text) = dir.verify("r.csv", false);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("holds in rows        yes"), "{text}");
    assert!(
        text.contains("K = 3 over subjects was not decided"),
        "{text}"
    );
    assert!(text.contains("--raw"), "{text}");
    let (status, text) = dir.verify("r.csv", true);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("holds                NO"), "{text}");
    assert!(text.contains("persons              5"), "{text}");
    assert!(text.contains("The fewest persons that share"), "{text}");
    assert!(!text.contains("not decided"), "{text}");
    let (status, text) = visits(2).verify("r.csv", true);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("smallest group       2"), "{text}");
    let (status, text) = visits(4).verify("r.csv", false);
    assert_eq!(status, Some(1), "{text}");
    assert!(!text.contains("not decided"), "{text}");
}

#[test]
fn confidence_is_checked_in_rows_with_the_root() {
    let privacy =
        json!({"model": "lkc", "l": 1, "k": 2, "c": 0.4, "sensitive_values": {"ill": ["hiv"]}});
    let dir = patients(privacy, 0.0);
    dir.write(
        "r.ndjson",
        "{\"job\":\"Blue\",\"age\":\"*\",\"ill\":\"flu\"}\n{\"job\":\"Blue\",\"age\":\"*\",\"ill\":\"hiv\"}\n\
         {\"job\":\"White\",\"age\":\"*\",\"ill\":\"flu\"}\n{\"job\":\"White\",\"age\":\"*\",\"ill\":\"flu\"}\n\
         {\"job\":\"White\",\"age\":\"*\",\"ill\":\"flu\"}\n",
    );
    let (status, text) = dir.verify("r.ndjson", false);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("ill = hiv"), "{text}");
}

#[test]
fn a_star_is_the_root_of_every_taxonomy() {
    let dir = patients(anonymity(5), 0.0);
    let rows = ["flu", "flu", "hiv", "flu", "flu"].map(|ill| format!("*,*,{ill}\n"));
    dir.write("r.csv", &("job,age,ill\n".to_owned() + &rows.concat()));
    let (status, text) = dir.verify("r.csv", true);
    assert_eq!(status, Some(0), "{text}");
    dir.write(
        "r.csv",
        &("job,age,ill\n".to_owned() + &rows[..4].concat() + "*,*,hiv\n"),
    );
    let (status, text) = dir.verify("r.csv", true);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("1 row is not the generalization of a raw row"),
        "{text}"
    );
}

#[test]
fn overlapping_labels_are_matched() {
    let nothing_occurs = json!({"model": "alpha_k", "k": 1, "alpha": 0.5,
        "sensitive_values": {"ill": ["none"]}});
    let dir = patients(nothing_occurs, 0.0);
    let head = "job,age,ill\n";
    let rows =
        "Blue,\"[0,99]\",hiv\nANY,\"[40,50]\",flu\nANY,\"[20,40]\",flu\nWhite,\"[0,99]\",flu\n";
    dir.write("r.csv", &format!("{head}{rows}ANY,\"[0,60)\",flu\n"));
    let (status, text) = dir.verify("r.csv", true);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("overlap"), "{text}");
    dir.write(
        "r.csv",
        &format!("{head}{rows}ANY,\"[45,60)\",flu\nANY,\"[45,60)\",flu\n"),
    );
    let (status, text) = dir.verify("r.csv", true);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("truthful             NO   1 row"), "{text}");
}

#[test]
fn labels_of_made_hierarchies_are_read_with_and_without_the_raw_table() {
    let dir = CliDir::new();
    let schema = json!({"name": "t", "columns": [
        {"name": "zip", "role": "quasi_identifier", "taxonomy": {"generate": "prefix"}},
        {"name": "born", "role": "quasi_identifier", "kind": "date",
         "taxonomy": {"generate": "calendar"}},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric",
         "taxonomy": {"generate": "ranges", "widths": [5, 20]}},
    ]});
    dir.write("s.json", &schema.to_string());
    let mut raw = "zip,born,age\n".to_owned();
    for row in 0..60 {
        let (zip, month, age) = (80_330 + row % 7, row % 12 + 1, 20 + row % 40);
        raw += &format!("{zip},19{}-{month:02}-11,{age}\n", 50 + row % 30);
    }
    dir.write("raw.csv", &raw);
    for recoding in ["global", "local"] {
        let job = json!({"privacy": anonymity(5), "recoding": recoding});
        dir.write("j.json", &job.to_string());
        dir.anonymize("raw.csv", "r.csv");
        for raw in [true, false] {
            let (status, text) = dir.verify("r.csv", raw);
            assert_eq!(status, Some(0), "{recoding}, {raw}: {text}");
        }
    }
}

#[test]
fn an_unreadable_release_has_its_own_exit_status() {
    let dir = patients(anonymity(2), 0.0);
    for (name, text) in [
        ("a.csv", "job,age,ill\nPilot,\"[0,99]\",flu\n"),
        ("b.csv", "job,age,ill\nBlue,young,flu\n"),
        ("c.csv", "job,age\nBlue,*\n"),
        ("d.csv", "name,job,age,ill\nJane,Blue,*,flu\n"),
        ("e.csv", "job,age,ill,extra\nBlue,*,flu,x\n"),
        ("f.parquet", "PAR1"),
        ("g.xls", ""),
    ] {
        dir.write(name, text);
        let (status, text) = dir.verify(name, false);
        assert_eq!(status, Some(2), "{name}: {text}");
        assert!(!text.contains("Jane") && !text.contains("Pilot"), "{text}");
    }
    assert_eq!(dir.verify("absent.csv", false).0, Some(2));
}

#[test]
fn releases_in_every_format_pass_the_verifier() {
    let dir = patients(anonymity(2), 0.0);
    for name in [
        "o.csv",
        "o.csv.gz",
        "o.csv.zst",
        "o.ndjson",
        "o.ndjson.gz",
        "o.parquet",
    ] {
        let arguments = [
            "anonymize",
            "--schema",
            "s.json",
            "--job",
            "j.json",
            "raw.csv",
            "-o",
            name,
        ];
        let output = dir.run(&arguments);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(Path::new(&dir.path().join(name)).exists());
        let (status, text) = dir.verify(name, true);
        assert_eq!(status, Some(0), "{name}: {text}");
        assert!(text.contains("one cut"), "{name}: {text}");
    }
}

#[test]
fn groups_are_at_least_as_general_as_requested() {
    let privacy = anonymity(2);
    let dir = patients(privacy.clone(), 0.0);
    let levels = json!({"job": {"level": 1, "values": {"0": ["Lawyer"]}}});
    let job = json!({"privacy": privacy, "recoding": "local", "pre_generalization": levels});
    dir.write("j.json", &job.to_string());
    dir.anonymize("raw.csv", "o.csv");
    let (status, text) = dir.verify("o.csv", true);
    assert_eq!(status, Some(0), "{text}");
    let released = std::fs::read_to_string(dir.path().join("o.csv")).unwrap();
    for row in released.lines().skip(1) {
        let label = row.split(',').next().unwrap();
        assert!(
            ["ANY", "Blue", "White", "Lawyer"].contains(&label),
            "{label}"
        );
    }
    let report = dir.json("report.json");
    assert_eq!(report["pre_generalization"]["job"]["level"], 1);
    // The NCP counts the loss by pre-generalization too: Blue covers two of the four leaves.
    assert!(report["utility"]["ncp_by_column"]["job"].as_f64().unwrap() > 0.0);
    let mut exact = job;
    exact["output"] = json!("anatomized");
    exact["privacy"] = json!({"model": "l_diversity", "k": 2, "l": 2});
    dir.write("j.json", &exact.to_string());
    let refused = dir.run(&[
        "anonymize",
        "--schema",
        "s.json",
        "--job",
        "j.json",
        "raw.csv",
        "-o",
        "out",
    ]);
    assert_eq!(refused.status.code(), Some(1));
    let problem: Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!(problem["errors"][0]["pointer"], "/pre_generalization");
}

/// A directory with patients of two jobs and a sensitive column, and a job of 2-diversity.
fn diverse(sensitive: Value) -> CliDir {
    let dir = CliDir::new();
    let mut sensitive = sensitive;
    sensitive["name"] = json!("ill");
    sensitive["role"] = json!("sensitive");
    let schema = json!({"name": "t", "columns": [
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]}, sensitive,
    ]});
    dir.write("s.json", &schema.to_string());
    let privacy = json!({"model": "distinct_l_diversity", "k": 2, "l": 2});
    let job = json!({"privacy": privacy, "recoding": "local"});
    dir.write("j.json", &job.to_string());
    dir
}

#[test]
fn an_anatomized_directory_has_nothing_beside_its_tables() {
    let dir = diverse(json!({}));
    let mut job = dir.json("j.json");
    job["output"] = json!("anatomized");
    dir.write("j.json", &job.to_string());
    dir.write("raw.csv", "age,ill\n20,flu\n30,cold\n40,flu\n50,cold\n");
    dir.anonymize("raw.csv", "out");
    let (status, text) = dir.verify("out", true);
    assert_eq!(status, Some(0), "{text}");
    for extra in ["data.csv", "st_raw.csv", ".notes"] {
        let path = dir.path().join("out").join(extra);
        std::fs::copy(dir.path().join("raw.csv"), &path).unwrap();
        let (status, text) = dir.verify("out", true);
        assert_eq!(status, Some(2), "{extra}: {text}");
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(dir.verify("out", true).0, Some(0));
}

#[test]
fn texts_that_look_alike_are_one_sensitive_value() {
    let alike = [
        "H\u{200b}IV",
        "HIV\u{feff}",
        "H\u{ad}IV",
        "\u{ff28}IV",
        " HIV",
    ];
    for other in alike {
        let dir = diverse(json!({}));
        let table = |second: &str| format!("age,ill\n\"[0,99]\",HIV\n\"[0,99]\",{second}\n");
        dir.write("r.csv", &table(other));
        let (status, text) = dir.verify("r.csv", false);
        assert_eq!(status, Some(1), "{other:?}: {text}");
        dir.write("r.csv", &table("flu"));
        assert_eq!(dir.verify("r.csv", false).0, Some(0));

        // A listed value is bounded however it is written.
        let listed = json!({"ill": ["HIV"]});
        let bound = json!({"model": "lkc", "l": 1, "k": 2, "c": 0.5, "sensitive_values": listed});
        dir.write("j.json", &json!({ "privacy": bound }).to_string());
        let three = format!("{}\"[0,99]\",flu\n", table(other));
        dir.write("r.csv", &three);
        assert_eq!(dir.verify("r.csv", false).0, Some(1), "{other:?}");
    }
}

#[test]
fn groups_are_not_made_diverse_by_texts_that_look_alike() {
    let dir = diverse(json!({}));
    let raw = "age,ill\n20,HIV\n30,H\u{200b}IV\n70,flu\n80,cold\n";
    dir.write("raw.csv", raw);
    dir.anonymize("raw.csv", "o.csv");
    let released = std::fs::read_to_string(dir.path().join("o.csv")).unwrap();
    assert!(released.contains("H\u{200b}IV"), "{released}");
    let labels: Vec<&str> = released.lines().skip(1).map(|row| &row[..8]).collect();
    assert_eq!(labels, [labels[0]; 4], "{released}");
    assert_eq!(dir.verify("o.csv", true).0, Some(0));
}

#[test]
fn cells_of_sensitive_numbers_and_dates_are_values_or_refused() {
    let table = |one: &str, other: &str| format!("age,ill\n\"[0,99]\",{one}\n\"[0,99]\",{other}\n");
    let cases = [
        ("numeric", "1", "NaN", 2),
        ("numeric", "1", "1e400", 2),
        ("numeric", "1", "\u{661}", 2),
        ("numeric", "1", "\u{ff11}", 2),
        ("numeric", "1", "1.0", 1),
        ("numeric", "0", "-0e5", 1),
        ("numeric", "1", "2", 0),
        ("date", "2020-01-01", "20200101", 2),
        ("date", "2020-01-01", "2020-01-01 ", 1),
        ("date", "2020-01-01", "2020-01-1", 2),
        ("date", "2020-01-01", "2020-01-02", 0),
        ("datetime", "2020-01-01T00:00:00", "2020-01-01T00:00Z", 1),
    ];
    for (kind, one, other, expected) in cases {
        let dir = diverse(json!({ "kind": kind }));
        dir.write("r.csv", &table(one, other));
        let (status, text) = dir.verify("r.csv", false);
        assert_eq!(status, Some(expected), "{one} {other}: {text}");
    }
}

#[test]
fn numbers_of_a_group_span_the_range_that_is_asked_for() {
    let dir = diverse(json!({"kind": "numeric", "missing": ["NA"]}));
    let with = |min_range: Value| {
        let mut job = dir.json("j.json");
        job["privacy"]["min_range"] = min_range;
        dir.write("j.json", &job.to_string());
    };
    let groups = "age,ill\n\"[20,30]\",51000\n\"[20,30]\",51020\n\"[40,50]\",0.3\n\"[40,50]\",0.1\n\
                  \"[40,50]\",NA\n";
    dir.write("r.csv", groups);
    for (least, status) in [(0.2, 0), (0.3, 1), (20.0, 1)] {
        with(json!({ "ill": least }));
        let (found, text) = dir.verify("r.csv", false);
        assert_eq!(found, Some(status), "{least}: {text}");
        assert!(text.contains("ill spans at least"), "{text}");
    }
    // A group without numbers spans nothing, under any diversity.
    dir.write("r.csv", "age,ill\n20,NA\n20,NA\n");
    with(json!({"ill": 0.1}));
    assert_eq!(dir.verify("r.csv", false).0, Some(1));

    dir.write(
        "raw.csv",
        "age,ill\n20,10\n21,12\n30,11\n31,40\n50,41\n51,11\n60,12\n61,13\n",
    );
    let groups_at = |least: Option<f64>| {
        with(least.map_or(Value::Null, |least| json!({ "ill": least })));
        dir.anonymize("raw.csv", "o.csv");
        assert_eq!(dir.verify("o.csv", true).0, Some(0));
        let released = std::fs::read_to_string(dir.path().join("o.csv")).unwrap();
        let mut groups: std::collections::BTreeMap<String, Vec<f64>> = Default::default();
        for row in released.lines().skip(1) {
            let (label, number) = row.rsplit_once(',').unwrap();
            groups
                .entry(label.to_owned())
                .or_default()
                .push(number.parse().unwrap());
        }
        groups
    };
    let range = |numbers: &Vec<f64>| {
        let (least, greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        numbers.iter().copied().fold(greatest, f64::max)
            - numbers.iter().copied().fold(least, f64::min)
    };
    assert!(
        groups_at(None)
            .values()
            .any(|numbers| range(numbers) < 20.0)
    );
    let wide = groups_at(Some(20.0));
    assert!(
        wide.len() > 1 && wide.values().all(|numbers| range(numbers) >= 20.0),
        "{wide:?}"
    );

    with(json!({"ill": 32}));
    let arguments = [
        "anonymize",
        "--schema",
        "s.json",
        "--job",
        "j.json",
        "raw.csv",
        "-o",
        "x.csv",
    ];
    let refused = dir.run(&arguments);
    assert_eq!(refused.status.code(), Some(1));
    let problem: Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!(problem["errors"][0]["pointer"], "/privacy/min_range/ill");
    for (least, column) in [
        (json!(0), "ill"),
        (json!(-1), "ill"),
        (json!(1), "age"),
        (json!(1), "x"),
    ] {
        with(json!({ column: least }));
        let refused = dir.run(&arguments);
        assert_eq!(refused.status.code(), Some(1), "{column}");
        let problem: Value = serde_json::from_slice(&refused.stderr).unwrap();
        let pointer = format!("/privacy/min_range/{column}");
        assert_eq!(problem["errors"][0]["pointer"], pointer);
    }
}

/// A release of 40 patients in one Parquet file, and in a directory with two parts that have all rows of
/// it each; `raw.csv` and `twice.csv` are the raw tables of these.
fn in_parts() -> CliDir {
    let dir = CliDir::new();
    let schema = json!({"name": "t", "columns": [
        {"name": "id", "role": "identifier"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "city", "role": "quasi_identifier"},
        {"name": "ill", "role": "sensitive", "missing": ["NA"]},
        {"name": "cost", "role": "insensitive", "kind": "numeric"},
    ]});
    dir.write("s.json", &schema.to_string());
    let privacy = json!({"model": "lkc", "l": 2, "k": 3, "c": 0.9});
    dir.write("j.json", &json!({"privacy": privacy}).to_string());
    let row = |row: u32| {
        let (city, ill) = (
            ["Rome", "Bonn"][row as usize % 2],
            ["flu", "hiv", "NA"][row as usize % 3],
        );
        format!("{row},{},{city},{ill},{}\n", 20 + row % 40, row % 7)
    };
    let rows: String = (0..40).map(row).collect();
    dir.write("raw.csv", &format!("id,age,city,ill,cost\n{rows}"));
    dir.write("twice.csv", &format!("id,age,city,ill,cost\n{rows}{rows}"));
    dir.anonymize("raw.csv", "o.parquet");
    std::fs::create_dir(dir.path().join("parts")).unwrap();
    for part in ["data-00000.parquet", "data-00001.parquet"] {
        let part = dir.path().join("parts").join(part);
        std::fs::copy(dir.path().join("o.parquet"), part).unwrap();
    }
    dir
}

/// What `pais verify --json` prints, with what follows the release.
fn found(dir: &CliDir, release: &str, others: &[&str]) -> (Option<i32>, Value) {
    let arguments = [
        "verify", "--json", "--schema", "s.json", "--job", "j.json", release,
    ];
    let ran = dir.run(&[&arguments[..], others].concat());
    let text = if ran.stdout.is_empty() {
        ran.stderr
    } else {
        ran.stdout
    };
    (ran.status.code(), serde_json::from_slice(&text).unwrap())
}

#[test]
fn a_release_in_parts_is_verified_as_one_table() {
    let dir = in_parts();
    let (status, whole) = found(&dir, "o.parquet", &["--raw", "raw.csv"]);
    assert_eq!(status, Some(0), "{whole}");
    let (status, parts) = found(&dir, "parts", &["--raw", "twice.csv"]);
    assert_eq!(status, Some(0), "{parts}");
    assert_eq!(parts["verification"]["rows"], 80);
    assert_eq!(
        parts["verification"]["groups"],
        whole["verification"]["groups"]
    );
    let smallest = |found: &Value| found["verification"]["smallest_group"].as_u64().unwrap();
    assert_eq!(smallest(&parts), 2 * smallest(&whole));
    assert_eq!(parts["raw"]["recoding"], "global");

    // One of the parts is lost.
    let (status, lost) = found(&dir, "parts", &["--raw", "raw.csv"]);
    assert_eq!((status, &lost["raw"]["made_up"]), (Some(1), &json!(40)));
    std::fs::remove_file(dir.path().join("parts/data-00001.parquet")).unwrap();
    let (status, lost) = found(&dir, "parts", &["--raw", "twice.csv"]);
    assert_eq!((status, &lost["raw"]["lost"]), (Some(1), &json!(40)));
}

#[test]
fn a_directory_with_a_gap_or_another_file_is_no_release_in_parts() {
    let dir = in_parts();
    let parts = dir.path().join("parts");
    std::fs::rename(
        parts.join("data-00001.parquet"),
        parts.join("data-00002.parquet"),
    )
    .unwrap();
    let (status, text) = dir.verify("parts", false);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("data-00001.parquet"), "{text}");
    std::fs::rename(parts.join("data-00002.parquet"), parts.join("notes.txt")).unwrap();
    let (status, text) = dir.verify("parts", false);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("notes.txt"), "{text}");
}

/// Standard input is read once, so the comparison with it holds all rows in memory.
#[test]
fn the_finding_does_not_depend_on_whether_rows_are_held_in_memory() {
    let dir = in_parts();
    dir.anonymize("raw.csv", "o.csv");
    dir.anonymize("raw.csv", "o.ndjson");
    let csv = std::fs::read_to_string(dir.path().join("o.csv")).unwrap();
    let mut rows: Vec<&str> = csv.lines().collect();
    dir.write("lost.csv", &rows[..40].join("\n"));
    rows[40] = rows[39];
    dir.write("replaced.csv", &rows.join("\n"));
    for (release, status) in [
        ("o.parquet", 0),
        ("o.csv", 0),
        ("o.ndjson", 0),
        ("lost.csv", 1),
        ("replaced.csv", 1),
    ] {
        let streamed = found(&dir, release, &["--raw", "raw.csv"]);
        assert_eq!(streamed.0, Some(status), "{release}: {}", streamed.1);
        let shell = format!(
            "{} verify --json --schema s.json --job j.json {release} --raw - < raw.csv",
            env!("CARGO_BIN_EXE_pais")
        );
        let mut sh = std::process::Command::new("sh");
        let ran = sh
            .current_dir(dir.path())
            .args(["-c", &shell])
            .output()
            .unwrap();
        let in_memory: Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!(streamed, (ran.status.code(), in_memory), "{release}");
    }
}

#[test]
fn without_a_sensitive_column_no_confidence_is_shown() {
    let dir = CliDir::new();
    let columns = json!([{ "name": "a", "role": "quasi_identifier" }]);
    let schema = json!({ "name": "t", "columns": columns });
    dir.write("s.json", &schema.to_string());
    let job = json!({ "privacy": { "model": "k_anonymity", "k": 2 } });
    dir.write("j.json", &job.to_string());
    for (rows, expected) in [("x\nx\n", 0), ("x\ny\n", 1)] {
        dir.write("o.csv", &format!("a\n{rows}"));
        let (status, text) = dir.verify("o.csv", false);
        assert_eq!(status, Some(expected), "{text}");
        assert!(text.contains("none: no column is sensitive"), "{text}");
        assert!(!text.contains('%'), "{text}");
    }
}
