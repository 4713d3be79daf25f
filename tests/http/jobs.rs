//! `/v1/jobs`, from the request to the end.

use pais::clock::Clock;
use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, send, text};
use crate::events::{EventStream, events};
use crate::hospital::{Hospital, TABLE, id, job_on};

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
    assert_eq!(pointer(&refused), "/dataset_id");
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
