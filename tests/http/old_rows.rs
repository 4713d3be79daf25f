//! Rows that an earlier version stored in clear are sealed at the start of the service.

use pais::db::Store;
use pais::db::sealing_of_old_rows::seal_old_rows;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::types::Json;

use crate::app::{Answer, send, text};
use crate::dump::Planted;
use crate::hospital::{Hospital, id};

const PREFIX: &str = "zzold";

fn rows() -> String {
    let mut csv = "city,illness\n".to_owned();
    for row in 0..12 {
        csv += &format!("{PREFIX}-city-{},{PREFIX}-illness-{}\n", row % 2, row % 3);
    }
    csv
}

fn planted() -> Planted {
    let cities = (0..2).map(|city| format!("{PREFIX}-city-{city}"));
    let illnesses = (0..3).map(|illness| format!("{PREFIX}-illness-{illness}"));
    let listed = [format!("{PREFIX}-illness-listed")];
    Planted::new(PREFIX, cities.chain(illnesses).chain(listed), [])
}

struct Stored {
    hospital: Hospital,
    dataset: String,
    job: String,
    job_body: Value,
}

impl Stored {
    async fn new() -> Self {
        let hospital = Hospital::new().await;
        let columns = json!([
            { "name": "city", "role": "quasi_identifier" },
            { "name": "illness", "role": "sensitive" },
        ]);
        let body = json!({ "name": "old", "columns": columns });
        let made = hospital.post("/v1/datasets", &body).await.json(201);
        let dataset = format!("/v1/datasets/{}", text(&made["id"]));
        hospital.submit(&dataset, rows()).await.json(201);
        let job_body = json!({ "dataset_id": id(&dataset), "privacy": {
            "model": "lkc", "l": 1, "k": 2, "c": 0.9,
            "sensitive_values": { "illness": [format!("{PREFIX}-illness-listed")] },
        } });
        let queued = ask(&hospital, &job_body).await.json(202);
        let job = format!("/v1/jobs/{}", text(&queued["id"]));
        let workers = hospital.work();
        let ended = hospital.ended(&job).await;
        workers.stop().await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        Self {
            hospital,
            dataset,
            job,
            job_body,
        }
    }

    fn store(&self) -> &Store {
        &self.hospital.app.state.unscoped().db
    }

    /// Everything that the holder sees of it.
    async fn shown(&self) -> [Value; 4] {
        let steps = format!("{}/steps", self.job);
        let [dataset, job, steps] = [&self.dataset, &self.job, &steps];
        [
            self.hospital.get(dataset).await.json(200),
            self.hospital.get(job).await.json(200),
            self.hospital.get(steps).await.json(200),
            ask(&self.hospital, &self.job_body).await.json(202),
        ]
    }

    /// Writes the rows as the earlier version wrote them.
    async fn store_in_clear(&self, [dataset, job, steps, answer]: &[Value; 4]) {
        let pool = self.store().owner();
        for step in steps["items"].as_array().unwrap() {
            let query = "UPDATE job_steps SET item = $1, sealed_item = NULL WHERE step = $2";
            let query = sqlx::query(query).bind(Json(step));
            let number = step["step"].as_i64().unwrap() as i32;
            query.bind(number).execute(pool).await.unwrap();
        }
        sqlx::query("UPDATE jobs SET definition = $1, sealed_definition = NULL")
            .bind(&job["definition"])
            .execute(pool)
            .await
            .unwrap();
        let sha256 = text(&dataset["submissions"][0]["sha256"]);
        sqlx::query(
            "UPDATE submissions
             SET sha256 = decode($1, 'hex'), sealed_sha256 = NULL, body_digest = NULL",
        )
        .bind(sha256)
        .execute(pool)
        .await
        .unwrap();
        let body = serde_json::to_vec(&self.job_body).unwrap();
        sqlx::query(
            "UPDATE idempotent_answers
             SET body_sha256 = sha256($1), body = $2, fingerprint = NULL, sealed_body = NULL",
        )
        .bind(body)
        .bind(answer.to_string().into_bytes())
        .execute(pool)
        .await
        .unwrap();
    }
}

async fn ask(hospital: &Hospital, body: &Value) -> Answer {
    let request = hospital.app.request(Method::POST, "/v1/jobs");
    let request = request.bearer_auth(&hospital.token).json(body);
    send(request.header("idempotency-key", "old")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_earlier_version_are_sealed_at_the_start() {
    let stored = Stored::new().await;
    let shown = stored.shown().await;
    stored.store_in_clear(&shown).await;
    let planted = planted();
    assert_eq!(planted.found_in_tables(stored.store()).await.len(), 3);
    assert!(
        !planted
            .found_in_files(stored.store(), false)
            .await
            .is_empty()
    );

    let keys = &stored.hospital.app.state.unscoped().keys;
    let steps = shown[2]["items"].as_array().unwrap().len() as u64;
    let sealed = seal_old_rows(stored.store(), keys).await.unwrap();
    assert_eq!(sealed, steps + 3);
    assert_eq!(seal_old_rows(stored.store(), keys).await.unwrap(), 0);
    assert_eq!(stored.shown().await, shown);
    let left = planted.found_in_tables(stored.store()).await;
    assert!(left.is_empty(), "{left:?}");
    let left = planted.found_in_files(stored.store(), false).await;
    assert!(left.is_empty(), "{left:?}");
    // The sealed steps can be released.
    let release = json!({ "job_id": id(&stored.job), "step": 1 });
    stored
        .hospital
        .post("/v1/releases", &release)
        .await
        .json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_values_of_an_earlier_version_go_with_their_dataset() {
    let stored = Stored::new().await;
    let shown = stored.shown().await;
    stored
        .hospital
        .app
        .delete(&stored.hospital.token, &stored.dataset)
        .await;
    let pool = stored.store().owner();
    sqlx::query("UPDATE jobs SET definition = $1, error = $2")
        .bind(&shown[1]["definition"])
        .bind(json!({ "code": "verification_failed", "detail": format!("{PREFIX}-city-1") }))
        .execute(pool)
        .await
        .unwrap();
    let keys = &stored.hospital.app.state.unscoped().keys;
    assert_eq!(seal_old_rows(stored.store(), keys).await.unwrap(), 1);
    let left = planted().found_in_tables(stored.store()).await;
    assert!(left.is_empty(), "{left:?}");
}
