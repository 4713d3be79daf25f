//! Sweeps: one job with lists of L, K and C.

use serde_json::{Value, json};

use crate::app::text;
use crate::hospital::{Hospital, id};

fn privacy(l: Value, k: Value) -> Value {
    json!({ "model": "lkc", "l": l, "k": k, "c": 0.5,
            "sensitive_values": { "Surgery": ["Transgender"] } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_has_a_row_for_each_combination_and_each_can_be_released() {
    let hospital = Hospital::new().await;
    let extra = json!({ "privacy": privacy(json!([1, 2]), json!([2, 12])), "seed": 5 });
    let job = hospital.done(extra).await;

    let sweep = hospital.get(&format!("{job}/sweep")).await.json(200);
    let rows = sweep["items"].as_array().unwrap();
    let ended = hospital.get(&job).await.json(200);
    assert_eq!(
        (&ended["rows"], &ended["rows_read"]),
        (&json!(11), &json!(11))
    );
    let steps = rows.iter().filter_map(|row| row["steps"].as_u64());
    assert_eq!(ended["steps_done"], steps.sum::<u64>());
    let asked: Vec<_> = rows
        .iter()
        .map(|row| [&row["l"], &row["k"], &row["c"]])
        .collect();
    assert_eq!(
        json!(asked),
        json!([[1, 2, 0.5], [1, 12, 0.5], [2, 2, 0.5], [2, 12, 0.5]])
    );
    for row in [&rows[1], &rows[3]] {
        assert_eq!(row["status"], "failed");
        assert_eq!(row["dr"], Value::Null);
        assert_eq!(row["error"]["code"], "not_anonymizable");
    }
    // The expected result of the paper's example, as in `tests/data/kdd09/runs.json`.
    let golden = &rows[2];
    assert_eq!(golden["status"], "succeeded");
    assert_eq!(golden["steps"], 6);
    assert_eq!(golden["groups"], 5);
    assert!((golden["dr"].as_f64().unwrap() - 25.0 / 121.0).abs() < 1e-12);
    assert!(golden["seconds"].as_f64().unwrap() > 0.0);

    let page = hospital
        .get(&format!("{job}/sweep?limit=3"))
        .await
        .json(200);
    let cursor = text(&page["next_cursor"]);
    let rest = hospital.get(&format!("{job}/sweep?cursor={cursor}")).await;
    assert_eq!(rest.json(200)["items"], json!([rows[3]]));

    let steps = hospital
        .get(&format!("{job}/steps?l=2&k=2"))
        .await
        .json(200);
    assert_eq!(steps["items"].as_array().unwrap().len(), 7);
    let open = hospital.get(&format!("{job}/steps?k=2")).await;
    let problem = open.problem(422, "invalid_job");
    // A pointer would be into a body.
    assert!(
        text(&problem["detail"]).ends_with("choose one by `l`"),
        "{problem}"
    );

    let body = json!({ "job_id": id(&job), "l": 2, "k": 2 });
    let release = hospital.post("/v1/releases", &body).await.json(201);
    assert_eq!(release["step"], 6);
    assert_eq!(release["privacy"], privacy(json!(2), json!(2)));
    assert_eq!(release["verification"]["holds"], true);
    let body = json!({ "job_id": id(&job), "l": 1, "k": 2, "c": 0.5, "step": 0 });
    let topmost = hospital.post("/v1/releases", &body).await.json(201);
    assert_eq!(topmost["step"], 0);

    for (body, status, code) in [
        (json!({ "l": 2, "k": 12 }), 409, "job_not_succeeded"),
        (json!({ "l": 3, "k": 2 }), 422, "invalid_job"),
        (json!({ "k": 2 }), 422, "invalid_job"),
        (json!({ "l": 2, "k": 2, "step": 7 }), 422, "no_such_step"),
    ] {
        let mut body = body;
        body["job_id"] = json!(id(&job));
        let refused = hospital.post("/v1/releases", &body).await;
        refused.problem(status, code);
    }
}

/// Global and local recoding by two objectives, side by side. Each has the figures of its release.
#[tokio::test(flavor = "multi_thread")]
async fn recodings_and_objectives_are_swept_too() {
    let hospital = Hospital::new().await;
    let extra = json!({
        "privacy": privacy(json!(2), json!([2, 12])), "recoding": ["global", "local"],
        "utility": { "objective": ["ncp", "discernibility"] },
    });
    let job = hospital.done(extra).await;
    let sweep = hospital.get(&format!("{job}/sweep")).await.json(200);
    let rows = sweep["items"].as_array().unwrap();
    let asked: Vec<_> = rows
        .iter()
        .map(|row| [&row["k"], &row["recoding"], &row["objective"]])
        .collect();
    assert_eq!(
        json!(asked),
        json!([
            [2, "global", "ncp"],
            [2, "global", "discernibility"],
            [2, "local", "ncp"],
            [2, "local", "discernibility"],
            [12, "global", "ncp"],
            [12, "global", "discernibility"],
            [12, "local", "ncp"],
            [12, "local", "discernibility"],
        ])
    );
    for row in &rows[..4] {
        let mut body = json!({ "job_id": id(&job), "k": 2 });
        for name in ["recoding", "objective"] {
            body[name] = row[name].clone();
        }
        let release = hospital.post("/v1/releases", &body).await.json(201);
        let report = format!("/v1/releases/{}/report", text(&release["id"]));
        let utility = hospital.get(&report).await.json(200)["utility"].clone();
        for figure in ["groups", "dr", "ncp"] {
            assert_eq!(utility[figure], row[figure], "{figure} of {body}");
        }
        assert_eq!(row["steps"].is_null(), row["recoding"] == "local");
        assert_eq!(release["cut"].is_null(), row["recoding"] == "local");
    }
    for row in &rows[4..] {
        assert_eq!(row["error"]["code"], "not_anonymizable");
        let mut body = json!({ "job_id": id(&job), "k": 12 });
        for name in ["recoding", "objective"] {
            body[name] = row[name].clone();
        }
        let refused = hospital.post("/v1/releases", &body).await;
        refused.problem(409, "job_not_succeeded");
    }
    let body = json!({ "job_id": id(&job), "k": 2, "recoding": "local" });
    let open = hospital.post("/v1/releases", &body).await;
    let problem = open.problem(422, "invalid_job");
    assert_eq!(problem["errors"][0]["pointer"], "/objective");
    let steps = format!("{job}/steps?k=2&recoding=global&objective=ncp");
    let steps = hospital.get(&steps).await.json(200);
    assert!(steps["items"].as_array().unwrap().len() > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_lists_has_an_empty_sweep() {
    let hospital = Hospital::new().await;
    let job = hospital.done(json!({})).await;
    let sweep = hospital.get(&format!("{job}/sweep")).await.json(200);
    assert_eq!(sweep, json!({ "items": [], "next_cursor": null }));
    let body = json!({ "job_id": id(&job), "l": 2, "k": 2, "c": 0.5 });
    hospital.post("/v1/releases", &body).await.json(201);
    let body = json!({ "job_id": id(&job), "l": 4 });
    let refused = hospital.post("/v1/releases", &body).await;
    refused.problem(422, "invalid_job");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_sweep_is_refused() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let many: Vec<u32> = (1..=33).collect();
    for (extra, status, code, pointer) in [
        (
            json!({ "privacy": privacy(json!([]), json!(2)) }),
            422,
            "invalid_privacy",
            "/privacy/l",
        ),
        (
            json!({ "privacy": privacy(json!([1, 1]), json!(2)) }),
            422,
            "invalid_privacy",
            "/privacy/l",
        ),
        (
            json!({ "privacy": privacy(json!([1, 2]), json!(many)) }),
            422,
            "invalid_privacy",
            "/privacy",
        ),
        (
            json!({ "privacy": privacy(json!([1, 0]), json!(2)) }),
            422,
            "invalid_privacy",
            "/privacy/l",
        ),
        (
            json!({ "privacy": privacy(json!([1, "2"]), json!(2)) }),
            400,
            "invalid_shape",
            "/privacy/l/1",
        ),
        (
            json!({ "privacy": privacy(json!(1), json!(2)), "recoding": ["local", "local"] }),
            422,
            "invalid_privacy",
            "/recoding",
        ),
        (
            json!({ "privacy": privacy(json!(1), json!(2)),
                    "utility": { "objective": ["ncp", "speed"] } }),
            400,
            "invalid_shape",
            "/utility/objective/1",
        ),
        (
            json!({ "privacy": privacy(json!([1, 2]), json!(2)), "release": true }),
            422,
            "invalid_job",
            "/release",
        ),
        (
            json!({ "privacy": { "model": "k_anonymity", "k": [2, 3], "l": [1, 2] } }),
            400,
            "invalid_shape",
            "/privacy/l",
        ),
    ] {
        let mut body = json!({ "dataset_id": id(&dataset) });
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let refused = hospital.post("/v1/jobs", &body).await;
        let problem = refused.problem(status, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
}

/// The sweep as a page: every combination, and the name of the best one.
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_is_a_page_that_names_the_best_combination() {
    let hospital = Hospital::new().await;
    let extra = json!({ "privacy": privacy(json!([1, 2]), json!([2, 12])),
                        "recoding": ["global", "local"], "seed": 5 });
    let job = hospital.done(extra).await;
    let path = format!("{job}/sweep");
    let rows = hospital.get(&path).await.json(200);
    let rows = rows["items"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    let page = async |token: &str| {
        let request = hospital.app.request(reqwest::Method::GET, &path);
        let request = request.header("accept", "text/html").bearer_auth(token);
        crate::app::send(request).await
    };
    let shown = page(&hospital.token).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    assert!(shown.header("content-type").starts_with("text/html"));
    assert!(shown.header("vary").contains("accept"));
    // Four combinations have a table, since eleven rows have no group of twelve. The best of each L is that of
    // least distance to no loss and no risk, of those that none with at least this L beats.
    let found = rows.iter().filter(|row| row["status"] == "succeeded");
    let found: Vec<&Value> = found.collect();
    let loss = |row: &Value| row["ncp"].as_f64().unwrap();
    let risk = |row: &Value| 1.0 / row["smallest_known_group"].as_f64().unwrap();
    let is_beaten = |row: &Value| {
        found.iter().any(|other| {
            let no_worse = loss(other) <= loss(row) && risk(other) <= risk(row);
            let is_better = loss(other) < loss(row) || risk(other) < risk(row);
            other["l"].as_u64() >= row["l"].as_u64() && no_worse && is_better
        })
    };
    let mut named = 0;
    for l in [1, 2] {
        let candidates = found.iter().filter(|row| row["l"] == l && !is_beaten(row));
        let distance = |row: &Value| loss(row).hypot(risk(row));
        let best = candidates.min_by(|one, other| distance(one).total_cmp(&distance(other)));
        let Some(best) = best else { continue };
        named += 1;
        let name = format!(
            "Best: <strong>L {l}, K {}, C 50 %, {}</strong>",
            best["k"],
            text(&best["recoding"])
        );
        assert!(shown.text.contains(&name), "{name}: {}", shown.text);
    }
    assert_eq!(shown.text.matches("Best: ").count(), named);
    assert_eq!(shown.text.matches("no table meets it").count(), 4);
    assert!(shown.text.contains("<svg"));
    let other = hospital.app.token("other", pais::roles::Role::Holder).await;
    page(&other).await.problem(404, "not_found");
    let request = hospital.app.request(reqwest::Method::GET, &path);
    let refused = request
        .header("accept", "image/png")
        .bearer_auth(&hospital.token);
    let refused = crate::app::send(refused).await;
    refused.problem(406, "not_acceptable");
}
