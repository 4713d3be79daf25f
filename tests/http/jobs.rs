//! `/v1/jobs`, from the request to the end.

use std::fmt::Write;
use std::time::Duration;
use std::time::Instant;

use pais::clock::Clock;
use pais::roles::Role;
use pais_test_support::poll::poll_async;
use reqwest::Method;
use serde_json::Value;
use serde_json::json;

use crate::app::Answer;
use crate::app::send;
use crate::app::text;
use crate::events::EventStream;
use crate::events::events;
use crate::hospital::Hospital;
use crate::hospital::TABLE;
use crate::hospital::id;
use crate::hospital::job_on;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_to_its_release() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let mut asked = job_on(&dataset);
    asked["release"] = json!(true);
    let queued = hospital.post("/v1/jobs", &asked).await;
    let job = queued.header("location").to_owned();
    let queued = queued.json(202);
    assert_eq!(queued["status"], "queued");
    assert_eq!(queued["definition"], asked);
    assert_eq!(queued["progress"], 0.0);
    assert_eq!(
        (&queued["rows"], &queued["rows_read"]),
        (&json!(11), &json!(0))
    );
    assert_eq!(queued["remaining_seconds"], Value::Null);

    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(ended["progress"], 1.0);
    assert_eq!(ended["attempt"], 1);
    let steps = hospital.get(&format!("{job}/steps")).await.json(200);
    let steps = steps["items"].as_array().unwrap();
    assert_eq!(steps[0]["step"], 0);
    assert!(steps.len() > 1);
    assert_eq!(
        (&ended["rows"], &ended["rows_read"]),
        (&json!(11), &json!(11))
    );
    assert_eq!(ended["steps_done"], steps.len() - 1);
    assert_eq!(ended["remaining_seconds"], Value::Null);
    let first = hospital
        .get(&format!("{job}/steps?limit=1"))
        .await
        .json(200);
    let cursor = text(&first["next_cursor"]);
    let rest = format!("{job}/steps?cursor={cursor}");
    let rest = hospital.get(&rest).await.json(200);
    assert_eq!(rest["items"].as_array().unwrap()[..], steps[1..]);
    assert_eq!(rest["next_cursor"], Value::Null);

    let release = format!("/v1/releases/{}", text(&ended["release_id"]));
    let release = hospital.get(&release).await.json(200);
    assert_eq!(release["job_id"], ended["id"]);
    assert_eq!(release["step"], steps.len() - 1);
    let listed = hospital.get("/v1/jobs").await.json(200);
    // A list has no definitions.
    let mut summary = ended.clone();
    summary
        .as_object_mut()
        .unwrap()
        .remove("definition")
        .unwrap();
    assert_eq!(listed["items"], json!([summary]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_model_cannot_be_met_fails_with_a_reason() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let privacy = json!({ "model": "k_anonymity", "k": 12 });
    let extra = json!({ "privacy": privacy, "release": true });
    let job = hospital.job(&dataset, extra).await;
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "failed");
    assert_eq!(ended["error"]["code"], "not_anonymizable");
    assert_eq!(ended["error"]["status"], 422);
    assert_eq!(
        (&ended["rows_read"], &ended["steps_done"]),
        (&json!(11), &json!(0))
    );
    assert_eq!(ended["remaining_seconds"], Value::Null);
    assert!(ended.get("release_id").is_none());
    let body = json!({ "job_id": id(&job) });
    let refused = hospital.post("/v1/releases", &body).await;
    refused.problem(409, "job_not_succeeded");
}

/// Every column with a value that is more frequent than C is named at once, in the order of their shares, and no
/// value is.
#[tokio::test(flavor = "multi_thread")]
async fn all_columns_above_the_greatest_confidence_are_named_at_once() {
    let hospital = Hospital::new().await;
    let definition = json!({ "name": "two", "columns": [
        { "name": "age", "role": "quasi_identifier", "kind": "numeric" },
        { "name": "ill", "role": "sensitive" },
        { "name": "paid", "role": "sensitive" },
        { "name": "ward", "role": "sensitive" },
    ] });
    let made = hospital.post("/v1/datasets", &definition).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    // `ill` has 3 of 5, `paid` 4 of 5, and `ward` 2 of 5.
    let rows = "age,ill,paid,ward\n1,flu,yes,A\n2,flu,yes,A\n3,flu,yes,B\n4,HIV,yes,B\n5,TB,no,C\n";
    hospital.submit(&dataset, rows).await.json(201);
    let risk = hospital.get(&format!("{dataset}/risk")).await.json(200);
    assert_eq!(risk["columns"][2]["shares_by_rank"], json!([0.8, 0.2]));
    for extra in [
        json!({}),
        json!({ "recoding": "local" }),
        json!({ "suppression_limit": 0.2, "suppression_for": "size_and_confidence" }),
    ] {
        let mut body = extra;
        body["privacy"] = json!({ "model": "lkc", "l": 1, "k": 2, "c": 0.5 });
        let job = hospital.job(&dataset, body.clone()).await;
        let workers = hospital.work();
        let ended = hospital.ended(&job).await;
        workers.stop().await;
        let error = &ended["error"];
        assert_eq!(error["code"], "not_anonymizable", "{ended}");
        let detail = text(&error["detail"]);
        assert!(detail.contains("`paid` is in 80.00 %"), "{detail}");
        assert!(detail.contains("`ill` (60.00 %)"), "{detail}");
        assert!(detail.contains("at least 0.8"), "{detail}");
        assert!(!detail.contains("`ward`"), "{detail}");
        assert_eq!(error["errors"].as_array().unwrap().len(), 2, "{error}");
        for value in ["flu", "HIV", "yes"] {
            assert!(!error.to_string().contains(value), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_cannot_run_is_refused() {
    let hospital = Hospital::new().await;
    let empty = hospital.dataset().await;
    let post = async |body: &Value| hospital.post("/v1/jobs", body).await;
    let pointer = |answer: &Answer| {
        let document: Value = serde_json::from_str(&answer.text).unwrap();
        text(&document["errors"][0]["pointer"]).to_owned()
    };
    let refused = post(&job_on(&empty)).await;
    refused.problem(422, "invalid_job");

    let dataset = hospital.filled_dataset().await;
    let with = |name: &str, value: Value| {
        let mut body = job_on(&dataset);
        body[name] = value;
        body
    };
    let mut body = job_on(&dataset);
    body.as_object_mut().unwrap().remove("dataset_id");
    let refused = post(&body).await;
    refused.problem(400, "invalid_shape");
    assert_eq!(pointer(&refused), "");
    let refused = post(&with("unknown", json!(1))).await;
    refused.problem(400, "invalid_shape");
    let refused = post(&with("privacy", json!({ "model": "k_anonymity", "k": 0 }))).await;
    refused.problem(422, "invalid_privacy");
    let nobody = uuid::Uuid::new_v4();
    let refused = post(&with("submissions", json!([nobody]))).await;
    refused.problem(404, "not_found");
    assert_eq!(pointer(&refused), "/submissions/0");
    let refused = post(&with("submissions", json!([]))).await;
    refused.problem(422, "invalid_job");
    let values =
        json!({ "model": "lkc", "l": 1, "k": 2, "c": 1, "sensitive_values": {"a\u{0}": []} });
    let refused = post(&with("privacy", values)).await;
    assert!(refused.status.is_client_error(), "{}", refused.text);

    let other = hospital.app.token("clinic", Role::Holder).await;
    let theirs = hospital
        .app
        .post(&other, "/v1/jobs", &job_on(&dataset))
        .await;
    let nobody = job_on(&format!("/v1/datasets/{nobody}"));
    let missing = hospital.app.post(&other, "/v1/jobs", &nobody).await;
    assert_eq!(
        theirs.problem(404, "not_found"),
        missing.problem(404, "not_found")
    );
    hospital.app.delete(&hospital.token, &dataset).await;
    post(&job_on(&dataset)).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_uses_the_rows_of_its_creation() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    hospital.submit(&dataset, TABLE).await.json(201);
    let workers = hospital.work();
    hospital.ended(&job).await;
    workers.stop().await;
    let body = json!({ "job_id": id(&job), "step": 0 });
    let release = hospital.post("/v1/releases", &body).await.json(201);
    assert_eq!(release["rows"], 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_with_an_idempotency_key_creates_no_second_job() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let post = async |body: &Value| {
        let request = hospital.app.request(Method::POST, "/v1/jobs");
        let request = request.bearer_auth(&hospital.token).json(body);
        send(request.header("idempotency-key", "k1")).await
    };
    let first = post(&job_on(&dataset)).await;
    let again = post(&job_on(&dataset)).await;
    assert_eq!(again.json(202), first.json(202));
    assert_eq!(again.header("location"), first.header("location"));
    let mut other = job_on(&dataset);
    other["release"] = json!(true);
    let refused = post(&other).await;
    refused.problem(409, "idempotency_key_reused");
    let listed = hospital.get("/v1/jobs").await.json(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_job_is_cancelled_at_once() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    let other = hospital.app.token("clinic", Role::Holder).await;
    let theirs = hospital.app.delete(&other, &job).await;
    theirs.problem(404, "not_found");
    let cancelled = hospital.app.delete(&hospital.token, &job).await.json(202);
    assert_eq!(cancelled["status"], "cancelled");
    let again = hospital.app.delete(&hospital.token, &job).await;
    again.problem(409, "job_ended");

    let job = hospital.job(&dataset, json!({})).await;
    let deleted = hospital.app.delete(&hospital.token, &dataset).await;
    assert_eq!(deleted.status, 204);
    let document = hospital.get(&job).await.json(200);
    assert_eq!(document["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_job_end_with_the_job() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    let stream = EventStream::open(&hospital, &job).await;
    let workers = hospital.work();
    let (events, ended) = tokio::join!(stream.rest(), hospital.ended(&job));
    workers.stop().await;
    let (name, end) = events.last().unwrap();
    assert_eq!(name, "end");
    assert_eq!(*end, ended);
    let progress = &events[..events.len() - 1];
    assert_eq!(progress[0].1["status"], "queued");
    let mut before = 0.0;
    for (name, data) in progress {
        assert_eq!(name, "progress");
        assert_eq!(data["id"], ended["id"]);
        let now = data["progress"].as_f64().unwrap();
        assert!(now >= before, "{now} after {before}");
        before = now;
        assert_eq!(data["rows"], 11);
    }
    let last = &progress.last().unwrap().1;
    for field in ["rows", "rows_read", "steps_done", "remaining_seconds"] {
        assert_eq!(last[field], ended[field], "{field}");
    }
    // The stream of a job that has ended has its end only.
    let late = hospital.get(&format!("{job}/events")).await;
    let late = self::events(&late.text);
    assert_eq!(late.iter().filter(|(name, _)| name == "end").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_end_when_the_service_stops() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    let stream = EventStream::open(&hospital, &job).await;
    hospital.app.state.unscoped().shutdown.cancel();
    let events = stream.rest().await;
    assert!(events.iter().all(|(name, _)| name == "progress"));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_end_when_their_token_expires_or_is_revoked() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({})).await;
    let path = format!("{job}/events");
    let app = &hospital.app;
    let until = Some(app.clock.now() + HOUR);
    let expiring = app.token_until("hospital", Role::Holder, until).await;
    let revoked = app.token_with_id("hospital", Role::Holder).await;
    let admin = app.token("operator", Role::Admin).await;
    let mut streams = Vec::new();
    for (_, token) in [&expiring, &revoked] {
        let request = app.request(Method::GET, &path).bearer_auth(token);
        streams.push(request.send().await.unwrap());
    }
    app.clock.advance(2 * HOUR);
    let revoked = format!("/v1/tokens/{}", revoked.0);
    assert_eq!(app.delete(&admin, &revoked).await.status, 204);
    // The job is still queued, so nothing else ends the streams.
    for stream in streams {
        assert_eq!(stream.status(), 200);
        let events = events(&stream.text().await.unwrap());
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].0, "progress");
    }
    assert_eq!(hospital.get(&job).await.json(200)["status"], "queued");
}

const HOUR: time::Duration = time::Duration::HOUR;

fn with(dataset: &str, name: &str, value: Value) -> Value {
    let mut body = job_on(dataset);
    body[name] = value;
    body
}

/// `lkc`, `k_anonymity`, `confidence_bounding` and `alpha_k` with their parameters, and every
/// objective and split.
#[tokio::test(flavor = "multi_thread")]
async fn every_model_of_global_recoding_runs() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let sensitive = json!({"Surgery": ["Transgender"]});
    let models = [
        json!({"model": "lkc", "l": 2, "k": 2, "c": 0.5, "sensitive_values": sensitive}),
        json!({"model": "lkc", "l": 99, "k": 2, "c": 1}),
        json!({"model": "k_anonymity", "k": 3}),
        json!({"model": "confidence_bounding", "c": 0.5, "sensitive_values": sensitive}),
        json!({"model": "alpha_k", "alpha": 0.5, "k": 2, "sensitive_values": sensitive}),
    ];
    let workers = hospital.work();
    for model in models {
        let extra = json!({"privacy": model, "release": true, "recoding": "global",
            "output": "generalized"});
        let job = hospital.job(&dataset, extra).await;
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        assert_eq!(ended["progress"], 1.0);
        assert!(ended.get("error").is_none());
        let release = format!("/v1/releases/{}", text(&ended["release_id"]));
        let release = hospital.get(&release).await.json(200);
        assert_eq!(release["privacy"]["model"], model["model"]);
        assert_eq!(release["verification"]["holds"], true);
    }
    for objective in [
        "classification",
        "discernibility",
        "discernibility_eq4",
        "ncp",
    ] {
        for split in ["fixed", "best_valid"] {
            let extra = json!({"utility": {"objective": objective, "split": split}});
            let job = hospital.job(&dataset, extra).await;
            let ended = hospital.ended(&job).await;
            assert_eq!(ended["status"], "succeeded", "{ended}");
        }
    }
    workers.stop().await;
}

/// A body that does not match the schema is 400: a wrong type, an unknown or missing field, an
/// unknown enumeration value, an invalid UUID, a parameter of another model. A value out of range or
/// an impossible combination is 422.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_shape_is_400_and_a_wrong_value_422() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let privacy = |value: Value| with(&dataset, "privacy", value);
    let lkc = |name: &str, value: Value| {
        let mut body = job_on(&dataset);
        body["privacy"][name] = value;
        body
    };
    let cases = [
        (privacy(json!({"model": "t_closeness", "k": 2})), 400),
        (privacy(json!({"model": "k_anonymity"})), 400),
        (privacy(json!({"model": "k_anonymity", "k": "2"})), 400),
        (privacy(json!({"model": "k_anonymity", "k": 2.5})), 400),
        (
            privacy(json!({"model": "k_anonymity", "k": 2, "l": 2})),
            400,
        ),
        (
            privacy(json!({"model": "k_anonymity", "k": 2, "K": 2})),
            400,
        ),
        (
            privacy(json!({"model": "l_diversity", "k": 2, "l": 2, "c": 0.5})),
            400,
        ),
        (privacy(json!("k_anonymity")), 400),
        (with(&dataset, "dataset_id", json!("no-uuid")), 400),
        (with(&dataset, "dataset_id", json!(7)), 400),
        (with(&dataset, "submissions", json!(["no-uuid"])), 400),
        (with(&dataset, "release", json!("yes")), 400),
        (with(&dataset, "recoding", json!("both")), 400),
        (with(&dataset, "output", json!("csv")), 400),
        (
            with(&dataset, "utility", json!({"objective": "speed"})),
            400,
        ),
        (with(&dataset, "utility", json!({"goal": "ncp"})), 400),
        (with(&dataset, "suppression_limit", json!("0.1")), 400),
        (with(&dataset, "owner", json!("me")), 400),
        (lkc("l", json!(0)), 422),
        (lkc("k", json!(0)), 422),
        (lkc("k", json!(-5)), 422),
        (lkc("c", json!(0)), 422),
        (lkc("c", json!(1.01)), 422),
        (lkc("c", json!(-0.5)), 422),
        (lkc("sensitive_values", json!({"Job": ["Mover"]})), 422),
        (lkc("sensitive_values", json!({"Nothing": ["x"]})), 422),
        (lkc("sensitive_values", json!({"Surgery": []})), 422),
        (privacy(json!({"model": "k_anonymity", "k": 0})), 422),
        (with(&dataset, "suppression_limit", json!(1.5)), 422),
        (with(&dataset, "suppression_limit", json!(-0.1)), 422),
        (with(&dataset, "output", json!("anatomized")), 422),
    ];
    for (body, status) in cases {
        let answer = hospital.post("/v1/jobs", &body).await;
        assert_eq!(answer.status.as_u16(), status, "{body}: {}", answer.text);
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let document: Value = serde_json::from_str(&answer.text).unwrap();
        assert!(document["errors"][0]["pointer"].is_string(), "{document}");
    }
    let listed = hospital.get("/v1/jobs").await.json(200);
    assert_eq!(listed["items"], json!([]));
}

/// A job on a table that cannot meet its model fails with an error that names the condition. It has
/// no steps, cannot be released (409), and can no longer be cancelled (409).
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_job_has_an_error_and_nothing_to_release() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let rows = json!({"privacy": {"model": "k_anonymity", "k": 12}, "release": true});
    let certain = json!({"privacy": {"model": "confidence_bounding", "c": 0.01}, "release": true});
    let jobs = [
        hospital.job(&dataset, rows).await,
        hospital.job(&dataset, certain).await,
    ];
    let workers = hospital.work();
    for job in jobs {
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "failed");
        assert_eq!(ended["error"]["code"], "not_anonymizable");
        assert!(!text(&ended["error"]["detail"]).contains("Transgender"));
        let steps = hospital.get(&format!("{job}/steps")).await.json(200);
        assert_eq!(steps["items"], json!([]));
        let refused = hospital
            .post("/v1/releases", &json!({"job_id": id(&job)}))
            .await;
        refused.problem(409, "job_not_succeeded");
        let refused = hospital.app.delete(&hospital.token, &job).await;
        refused.problem(409, "job_ended");
        let stream = events(&hospital.get(&format!("{job}/events")).await.text);
        let ends: Vec<_> = stream.iter().filter(|(name, _)| name == "end").collect();
        assert_eq!(ends.len(), 1);
        assert_eq!(ends[0].1, ended);
        assert_eq!(stream.last().unwrap().0, "end");
    }
    workers.stop().await;
    assert_eq!(
        hospital.get("/v1/releases").await.json(200)["items"],
        json!([])
    );
}

/// `submissions` lists the submissions to use, by default all. `step` is the step after which the
/// table is released, by default the last; an unknown step is 422.
#[tokio::test(flavor = "multi_thread")]
async fn chosen_submissions_and_chosen_steps_are_released() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let stored = hospital.submit(&dataset, TABLE).await.json(201);
        ids.push(stored["id"].clone());
    }
    let chosen = json!({"submissions": [ids[2], ids[0], ids[2]]});
    let two = hospital.job(&dataset, chosen).await;
    let all = hospital.job(&dataset, json!({})).await;
    let workers = hospital.work();
    hospital.ended(&two).await;
    hospital.ended(&all).await;
    workers.stop().await;
    let steps = hospital.get(&format!("{two}/steps")).await.json(200);
    let steps = steps["items"].as_array().unwrap().clone();
    for (number, step) in steps.iter().enumerate() {
        assert_eq!(step["step"], number);
        let fields = [
            "attribute",
            "value",
            "children",
            "score",
            "groups",
            "smallest_group",
            "smallest_known_group",
            "dr",
            "ncp",
        ];
        assert!(
            fields.iter().all(|field| step.get(field).is_some()),
            "{step}"
        );
        let body = json!({"job_id": id(&two), "step": number});
        let release = hospital.post("/v1/releases", &body).await.json(201);
        assert_eq!(release["rows"], 22);
        let path = format!("/v1/releases/{}/report", text(&release["id"]));
        let report = hospital.get(&path).await.json(200);
        assert_eq!(report["utility"]["groups"], step["groups"]);
        for figure in ["smallest_group", "smallest_known_group"] {
            assert_eq!(report["utility"][figure], step[figure], "{figure}");
        }
    }
    let body = json!({"job_id": id(&two), "step": steps.len()});
    let refused = hospital.post("/v1/releases", &body).await;
    refused.problem(422, "no_such_step");
    let body = json!({"job_id": id(&all)});
    let release = hospital.post("/v1/releases", &body).await.json(201);
    assert_eq!(release["rows"], 33);
}

/// A second request with the same `Idempotency-Key` gets the first answer. The stream of events has
/// `progress` events, then one `end` event with the job.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_first_job_even_after_its_end() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let post = async |token: &str, body: &Value| -> Answer {
        let request = hospital
            .app
            .request(Method::POST, "/v1/jobs")
            .bearer_auth(token);
        send(request.json(body).header("idempotency-key", "once")).await
    };
    let body = job_on(&dataset);
    let first = post(&hospital.token, &body).await;
    let job = first.header("location").to_owned();
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    let again = post(&hospital.token, &body).await;
    assert_eq!(again.json(202), first.json(202));
    assert_eq!(again.header("location"), job);
    assert_eq!(again.header("content-type"), "application/json");
    let other = with(&dataset, "release", json!(true));
    let refused = post(&hospital.token, &other).await;
    refused.problem(409, "idempotency_key_reused");
    // Keys belong to an organization.
    let clinic = hospital.app.token("clinic", Role::Holder).await;
    post(&clinic, &body).await.problem(404, "not_found");
    for _ in 0..2 {
        let stream = hospital.get(&format!("{job}/events")).await;
        assert_eq!(stream.header("content-type"), "text/event-stream");
        let events = events(&stream.text);
        let (last, before) = events.split_last().unwrap();
        assert_eq!((last.0.as_str(), &last.1), ("end", &ended));
        assert!(before.iter().all(|(name, _)| name == "progress"));
    }
}

/// A dataset and rows on which a job takes minutes.
fn long_table() -> (Value, String) {
    const COLUMNS: usize = 14;
    let columns: Vec<Value> = (0..COLUMNS)
        .map(|column| {
            json!({"name": format!("c{column}"), "role": "quasi_identifier", "kind": "numeric"})
        })
        .collect();
    let names: Vec<String> = (0..COLUMNS).map(|column| format!("c{column}")).collect();
    let mut rows = names.join(",") + "\n";
    let mut state = 1u64;
    for _ in 0..30_000 {
        for column in 0..COLUMNS {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let comma = if column == 0 { "" } else { "," };
            write!(rows, "{comma}{}", (state >> 33) % 5_000).unwrap();
        }
        rows.push('\n');
    }
    (json!({"name": "long", "columns": columns}), rows)
}

/// `DELETE /v1/jobs/{id}` cancels a running job within a second, and its events end. Uncancelled,
/// the job takes minutes. One of three attempts must be in time, since other tests running on the
/// machine may delay the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_stops_within_a_second() {
    let hospital = Hospital::new().await;
    let (definition, rows) = long_table();
    let made = hospital.post("/v1/datasets", &definition).await;
    let dataset = made.header("location").to_owned();
    hospital.submit(&dataset, rows).await.json(201);
    let mut took = Vec::new();
    while took.len() < 3 {
        took.push(seconds_to_cancel(&hospital, &dataset).await);
        // One second to cancel, and one for the requests.
        if took.last() < Some(&2.0) {
            return;
        }
    }
    panic!("the jobs were cancelled after {took:?} s; expected less than 2 s");
}

/// Seconds from the request to cancel a job in the middle of its search to the end of the job.
async fn seconds_to_cancel(hospital: &Hospital, dataset: &str) -> f64 {
    let body = json!({"dataset_id": id(dataset), "release": true,
        "utility": {"split": "best_valid"},
        "privacy": {"model": "lkc", "l": 7, "k": 2, "c": 1}});
    let job = hospital.post("/v1/jobs", &body).await;
    let job = job.header("location").to_owned();
    let workers = hospital.work();
    let searching = poll_async(Duration::from_secs(120), async || {
        let document = hospital.get(&job).await.json(200);
        assert!(document["ended_at"].is_null(), "{document}");
        let progress = document["progress"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&progress));
        let in_the_middle = document["phase"] == "searching" && document["steps_done"] != 0;
        in_the_middle.then_some(document)
    });
    let document = searching.await.expect("the search performed no step");
    assert_eq!(document["rows_read"], document["rows"]);
    assert!(document["remaining_seconds"].as_f64().unwrap() > 0.0);
    let path = format!("{job}/events");
    let watching = hospital.get(&path);
    let cancelling = async {
        let asked = Instant::now();
        let answer = hospital.app.delete(&hospital.token, &job).await;
        assert_eq!(answer.json(202)["id"], id(&job));
        let ended = hospital.ended(&job).await;
        (asked.elapsed().as_secs_f64(), ended)
    };
    let (stream, (took, ended)) = tokio::join!(watching, cancelling);
    workers.stop().await;
    assert_eq!(ended["status"], "cancelled");
    assert!(ended.get("release_id").is_none());
    let stream = events(&stream.text);
    let mut steps = 1;
    for (_, event) in &stream {
        assert_eq!(event["rows_read"], 30_000, "{event}");
        let now = event["steps_done"].as_u64().unwrap();
        assert!(now >= steps, "{now} after {steps}");
        steps = now;
    }
    assert_eq!(ended["remaining_seconds"], Value::Null);
    assert_eq!(stream.last().unwrap(), &("end".to_owned(), ended));
    let refused = hospital.app.delete(&hospital.token, &job).await;
    refused.problem(409, "job_ended");
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_would_not_end_is_refused_with_a_feasible_l() {
    let hospital = Hospital::new().await;
    let columns: Vec<Value> = (0..60)
        .map(|number| json!({ "name": format!("c{number}"), "role": "quasi_identifier" }))
        .collect();
    let wide = json!({ "name": "wide", "columns": columns });
    let made = hospital.post("/v1/datasets", &wide).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    let line = |cell: &dyn Fn(usize) -> String| (0..60).map(cell).collect::<Vec<_>>().join(",");
    let header = line(&|number| format!("c{number}"));
    let row = line(&|number| number.to_string());
    let table = format!("{header}\n{row}\n{row}\n");
    hospital.submit(&dataset, table).await.json(201);
    let privacy = |l: u32| json!({ "model": "lkc", "l": l, "k": 2, "c": 1 });
    let mut body = json!({ "dataset_id": id(&dataset), "privacy": privacy(30) });
    let refused = hospital.post("/v1/jobs", &body).await;
    let problem = refused.problem(422, "limit_exceeded");
    assert_eq!(problem["errors"][0]["pointer"], "/privacy/l");
    let advised = text(&problem["detail"])
        .split_once("lower `l` to ")
        .unwrap()
        .1;
    let advised: u32 = advised.split_once(',').unwrap().0.parse().unwrap();
    for l in [advised, 60] {
        body["privacy"] = privacy(l);
        hospital.post("/v1/jobs", &body).await.json(202);
    }
    body["privacy"] = privacy(advised + 1);
    let refused = hospital.post("/v1/jobs", &body).await;
    refused.problem(422, "limit_exceeded");
}
