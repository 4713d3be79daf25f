//! What a holder should know about a dataset, a job and a release reaches its readers.

use pais::roles::Role;
use serde_json::{Value, json};

use crate::app::text;
use crate::events::EventStream;
use crate::hospital::Hospital;

/// Rows with an age, an illness, a number of the patient's file that no other row has, and a note
/// that only one row has.
fn rows() -> String {
    let mut csv = "age,illness,file,note\n".to_owned();
    for row in 0..20 {
        let note = if row == 0 { "special" } else { "usual" };
        csv += &format!(
            "{},{},{row},{note}\n",
            20 + row % 4,
            ["flu", "cold"][row % 2]
        );
    }
    csv
}

pub(crate) fn codes(document: &Value) -> Vec<&str> {
    let warnings = document["warnings"].as_array().unwrap().iter();
    let mut codes: Vec<_> = warnings.map(|warning| text(&warning["code"])).collect();
    codes.sort_unstable();
    codes
}

async fn dataset(hospital: &Hospital) -> (String, Value) {
    let body = json!({ "name": "warned", "columns": [
        { "name": "age", "role": "quasi_identifier", "kind": "numeric" },
        { "name": "illness", "role": "sensitive" },
        { "name": "file", "role": "insensitive", "kind": "numeric" },
        { "name": "note", "role": "insensitive" },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    (format!("/v1/datasets/{}", text(&made["id"])), made)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_identifies_rows_is_a_warning_of_dataset_job_release_and_report() {
    let hospital = Hospital::new().await;
    let (dataset, made) = dataset(&hospital).await;
    assert_eq!(codes(&made), ["exact_range"]);
    assert_eq!(made["warnings"][0]["pointer"], "/columns/0/domain");
    // Two submissions: one warning for each code and column.
    hospital.submit(&dataset, rows()).await.json(201);
    hospital.submit(&dataset, rows()).await.json(201);
    let expected = ["exact_range", "nearly_unique_column", "singled_out_rows"];
    let shown = hospital.get(&dataset).await;
    assert_eq!(codes(&shown.json(200)), expected);
    assert!(!shown.text.contains("special"), "{}", shown.text);

    let submissions = shown.json(200)["submissions"][0]["id"].clone();
    let privacy = json!({ "model": "lkc", "l": 1, "k": 2, "c": 0.9,
        "sensitive_values": { "illness": ["flu", "Flu"] } });
    let extra = json!({ "privacy": privacy, "submissions": [submissions], "release": true,
        "acknowledge_unchanged": { "file": "links the study's own files" },
        "recoding": "global" });
    let job = hospital.job(&dataset, extra).await;
    assert_eq!(hospital.get(&job).await.json(200)["warnings"], json!([]));
    let stream = EventStream::open(&hospital, &job).await;
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let expected = [
        "listed_value_absent",
        "nearly_unique_column",
        "singled_out_rows",
    ];
    assert_eq!(codes(&ended), expected);
    let absent = "/privacy/sensitive_values/illness/1";
    let pointers = ended["warnings"].as_array().unwrap().iter();
    assert!(
        pointers.clone().any(|warning| warning["pointer"] == absent),
        "{ended}"
    );
    let (name, end) = stream.rest().await.pop().unwrap();
    assert_eq!(
        (name.as_str(), &end["warnings"]),
        ("end", &ended["warnings"])
    );
    workers.stop().await;

    let path = format!("/v1/releases/{}", text(&ended["release_id"]));
    let recipient = hospital.app.token("bts", Role::Recipient).await;
    let grant = json!({ "recipient": "bts", "purpose": "a study" });
    hospital
        .post(&format!("{path}/grants"), &grant)
        .await
        .json(201);
    let report_path = format!("{path}/report");
    for token in [&hospital.token, &recipient] {
        let release = hospital.app.get(token, &path).await.json(200);
        assert_eq!(codes(&release), expected);
        assert_eq!(release["missing_sensitive"], "excluded");
        assert!(release.get("suppression_for").is_none(), "{release}");
        let report = hospital.app.get(token, &report_path).await.json(200);
        assert_eq!(report["warnings"], release["warnings"]);
    }
}

/// Four patients with two stays each, in a table without a key of persons and in one that counts stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_persons_that_only_its_name_tells_is_a_warning_of_job_release_and_report() {
    let hospital = Hospital::new().await;
    let mut rows = "PatNr,Fallnummer,age,illness\n".to_owned();
    for row in 0..8 {
        rows += &format!("7{},{row},{},flu\n", row / 2, 20 + row % 4);
    }
    let workers = hospital.work();
    for (name, stay, columns) in [
        ("rows", "insensitive", json!(["PatNr", "Fallnummer"])),
        ("stays", "subject", json!(["PatNr"])),
        ("neither", "identifier", json!(["PatNr"])),
    ] {
        let body = json!({ "name": name, "columns": [
            { "name": "PatNr", "role": "insensitive" },
            { "name": "Fallnummer", "role": stay },
            { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99] },
            { "name": "illness", "role": "sensitive" },
        ] });
        let made = hospital.post("/v1/datasets", &body).await.json(201);
        let dataset = format!("/v1/datasets/{}", text(&made["id"]));
        hospital.submit(&dataset, rows.clone()).await.json(201);
        let privacy = json!({ "model": "k_anonymity", "k": 2 });
        let job = json!({ "privacy": privacy, "release": true, "recoding": "global" });
        let job = hospital.job(&dataset, job).await;
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let path = format!("/v1/releases/{}", text(&ended["release_id"]));
        let release = hospital.get(&path).await.json(200);
        let report = hospital.get(&format!("{path}/report")).await.json(200);
        for document in [&ended, &release, &report] {
            let mut warnings = document["warnings"].as_array().unwrap().iter();
            let found = warnings.find(|it| it["code"] == "unchanged_names_persons");
            assert_eq!(found.unwrap()["columns"], columns, "{document}");
        }
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_names_what_rows_could_be_suppressed_for() {
    let hospital = Hospital::new().await;
    let (dataset, _) = dataset(&hospital).await;
    hospital.submit(&dataset, rows()).await.json(201);
    let workers = hospital.work();
    for (extra, reading) in [
        (json!({}), "size"),
        (
            json!({ "suppression_for": "size_and_confidence" }),
            "size_and_confidence",
        ),
    ] {
        let mut extra = extra;
        extra["privacy"] = json!({ "model": "lkc", "l": 1, "k": 2, "c": 0.9 });
        extra["acknowledge_unchanged"] = json!({ "file": "links the study's own files" });
        extra["suppression_limit"] = json!(0.1);
        extra["missing_sensitive"] = json!("counted");
        extra["release"] = json!(true);
        let job = hospital.job(&dataset, extra).await;
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let path = format!("/v1/releases/{}", text(&ended["release_id"]));
        let release = hospital.get(&path).await.json(200);
        assert_eq!(release["suppression_for"], reading);
        assert_eq!(release["missing_sensitive"], "counted");
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_suppressed_for_confidence_are_a_warning_of_the_job_and_its_release() {
    let hospital = Hospital::new().await;
    let columns = json!([{ "name": "sex", "role": "quasi_identifier" }, { "name": "ill", "role": "sensitive" }]);
    let body = json!({ "name": "confidence", "columns": columns });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    // Six of ten have the flu; without two of them it is half of the rows.
    let rows = format!(
        "sex,ill\n{}F,cold\nF,gout\nF,TB\nF,HIV\n",
        "F,flu\n".repeat(6)
    );
    hospital.submit(&dataset, rows).await.json(201);
    let workers = hospital.work();
    for (reading, is_warned) in [("size_and_confidence", true), ("size", false)] {
        let c = if is_warned { 0.5 } else { 0.6 };
        let job = json!({
            "privacy": { "model": "lkc", "l": 1, "k": 2, "c": c },
            "suppression_limit": 0.3, "suppression_for": reading, "release": true,
        });
        let job = hospital.job(&dataset, job).await;
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let release = format!("/v1/releases/{}", text(&ended["release_id"]));
        let release = hospital.get(&release).await.json(200);
        assert_eq!(release["suppressed_rows"], if is_warned { 2 } else { 0 });
        for document in [&ended, &release] {
            let found = codes(document);
            let is_found = found.contains(&"suppressed_for_confidence");
            assert_eq!(is_found, is_warned, "{reading}: {found:?}");
        }
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_single_out_together_or_stay_at_their_top_are_warnings_of_all() {
    let hospital = Hospital::new().await;
    let body = json!({ "name": "top", "columns": [
        { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99] },
        { "name": "city", "role": "quasi_identifier" },
        { "name": "ward", "role": "insensitive" },
        { "name": "bed", "role": "insensitive" },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    // One row has the second city; each ward and each bed has four rows, each pair of them one.
    let mut csv = "age,city,ward,bed\n".to_owned();
    for row in 0..16 {
        let city = if row == 0 { "zz-ulm" } else { "zz-kiel" };
        csv += &format!("{},{city},w{},b{}\n", 20 + row, row % 4, row / 4);
    }
    hospital.submit(&dataset, csv).await.json(201);
    let workers = hospital.work();
    let expected = ["column_at_top", "singled_out_rows"];
    // A local run has no steps, so its job learns from its release.
    let local = json!({ "recoding": "local", "release": true });
    let global = json!({ "recoding": "global" });
    let released = json!({ "recoding": "global", "release": true });
    for (k, extra) in [(8, released), (8, global), (16, local)] {
        let mut extra = extra;
        extra["privacy"] = json!({ "model": "k_anonymity", "k": k });
        let job = hospital.job(&dataset, extra.clone()).await;
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        assert_eq!(codes(&ended), expected, "{extra}: {ended}");
        let details: Vec<&str> = ended["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|warning| text(&warning["detail"]))
            .collect();
        assert!(
            details.iter().any(|it| it.contains("`city`")),
            "{details:?}"
        );
        assert!(
            details
                .iter()
                .any(|it| it.contains("`ward` and `bed`") && it.contains("16 of 16"))
        );
        assert!(details.iter().all(|it| !it.contains("zz-")), "{details:?}");
        if extra["release"] != true {
            continue;
        }
        let path = format!("/v1/releases/{}", text(&ended["release_id"]));
        let release = hospital.get(&path).await.json(200);
        assert_eq!(codes(&release), expected);
        let report = hospital.get(&format!("{path}/report")).await.json(200);
        assert_eq!(report["warnings"], release["warnings"]);
    }
    workers.stop().await;
}

/// 60 stays of 20 patients, of whom nothing, the stay or the patient is declared the person.
#[tokio::test(flavor = "multi_thread")]
async fn that_rows_are_not_persons_is_a_warning_of_dataset_job_release_and_report() {
    let hospital = Hospital::new().await;
    let rows = (0..60).map(|row| format!("zz-{row},zz-{},{}\n", row % 20, ["f", "m"][row % 2]));
    let csv = format!("case,patient,sex\n{}", rows.collect::<String>());
    let workers = hospital.work();
    for (case, patient, text_of_warning) in [
        (
            "identifier",
            "identifier",
            "in 40 of 60 rows the identifier `patient`",
        ),
        (
            "subject",
            "identifier",
            "the 20 values of the identifier `patient` occur with several values of the subject column `case`",
        ),
        ("identifier", "subject", ""),
    ] {
        let body = json!({ "name": format!("stays {case} {patient}"), "columns": [
            { "name": "case", "role": case },
            { "name": "patient", "role": patient },
            { "name": "sex", "role": "quasi_identifier" },
        ] });
        let made = hospital.post("/v1/datasets", &body).await.json(201);
        let dataset = format!("/v1/datasets/{}", text(&made["id"]));
        hospital.submit(&dataset, csv.clone()).await.json(201);
        let privacy = json!({ "model": "k_anonymity", "k": 2 });
        let job = json!({ "privacy": privacy, "release": true });
        let job = hospital.job(&dataset, job).await;
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let release = format!("/v1/releases/{}", text(&ended["release_id"]));
        let made = json!({ "job_id": ended["id"], "step": 0 });
        let made = hospital.post("/v1/releases", &made).await.json(201);
        let paths = [
            dataset,
            job.clone(),
            release.clone(),
            format!("{release}/report"),
            format!("{job}/report"),
            format!("/v1/releases/{}", text(&made["id"])),
        ];
        for path in paths {
            let document = hospital.get(&path).await.json(200);
            let warnings = document["warnings"].as_array().unwrap().iter();
            let found: Vec<&Value> = warnings
                .filter(|warning| warning["code"] == "repeated_identifier")
                .collect();
            let is_warned = !text_of_warning.is_empty();
            assert_eq!(found.len(), usize::from(is_warned), "{path}: {document}");
            for warning in found {
                assert!(
                    text(&warning["detail"]).starts_with(text_of_warning),
                    "{warning}"
                );
                assert_eq!(warning["columns"], json!(["patient"]));
            }
            assert!(!document["warnings"].to_string().contains("zz-"));
        }
        // It is counted on raw rows, so recipients do not learn it.
        let recipient = hospital.app.token("bts", Role::Recipient).await;
        let body = json!({ "recipient": "bts", "purpose": "a test" });
        let grants = format!("{release}/grants");
        hospital.post(&grants, &body).await.json(201);
        for path in [release.clone(), format!("{release}/report")] {
            let shown = hospital.app.get(&recipient, &path).await.json(200);
            assert!(
                !shown.to_string().contains("repeated_identifier"),
                "{shown}"
            );
        }
    }
    workers.stop().await;
}

/// A job that does not say its recoding learns what the other one would lose; no recipient does.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_learns_that_local_recoding_loses_less() {
    let hospital = Hospital::new().await;
    let body = json!({ "name": "places", "columns": [
        { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 999] },
        { "name": "place", "role": "quasi_identifier" },
        { "name": "illness", "role": "sensitive" },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    let mut rows = "age,place,illness\n".to_owned();
    for row in 0..400 {
        rows += &format!(
            "{},p{},{}\n",
            row / 2,
            row / 5 % 40,
            ["a", "b", "c"][row % 3]
        );
    }
    hospital.submit(&dataset, rows).await.json(201);
    let model = json!({ "model": "lkc", "l": 2, "k": 5, "c": 0.9 });
    let run = async |extra: Value| {
        let mut body = json!({ "privacy": model, "release": true });
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let job = hospital.job(&dataset, body).await;
        let workers = hospital.work();
        let ended = hospital.ended(&job).await;
        workers.stop().await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        ended
    };
    let silent = run(json!({})).await;
    let mut warned = silent["warnings"].as_array().unwrap().iter();
    let warning = warned.find(|warning| warning["code"] == "local_loses_less");
    let warning = warning.unwrap_or_else(|| panic!("no warning in {silent}"));
    assert_eq!(warning["pointer"], "/recoding");
    let local = run(json!({ "recoding": "local" })).await;
    assert!(!codes(&local).contains(&"local_loses_less"), "{local}");
    // Both figures, as the reports of such releases have them; a report measures the redrawn labels.
    let words = text(&warning["detail"]).split(' ');
    let figures: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    assert_eq!(figures.len(), 2, "{warning}");
    for (job, figure) in [&silent, &local].into_iter().zip(figures) {
        let report = format!("/v1/releases/{}/report", text(&job["release_id"]));
        let report = hospital.get(&report).await.json(200);
        let ncp = 100.0 * report["utility"]["ncp"].as_f64().unwrap();
        assert!((ncp - figure).abs() < 0.2, "{ncp} and {figure}");
    }
    let chosen = run(json!({ "recoding": "global" })).await;
    assert!(!codes(&chosen).contains(&"local_loses_less"), "{chosen}");

    let bts = hospital.app.token("bts", Role::Recipient).await;
    let release = format!("/v1/releases/{}", text(&silent["release_id"]));
    let grant = json!({ "recipient": "bts", "purpose": "planning" });
    let granted = hospital.post(&format!("{release}/grants"), &grant).await;
    granted.json(201);
    for path in [release.clone(), format!("{release}/report")] {
        let seen = hospital.app.get(&bts, &path).await;
        assert_eq!(seen.status, 200);
        assert!(!seen.text.contains("local_loses_less"), "{}", seen.text);
    }
}
