//! Rows that a dataset has already are refused, whatever their order and file format.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use reqwest::Method;
use serde_json::json;

use crate::app::{Answer, send, text};
use crate::hospital::{Hospital, TABLE, id};
use crate::submissions::{NDJSON, PARQUET, ndjson, parquet, parquet_file};

/// Sends rows, `query` after the path.
async fn submit(
    hospital: &Hospital,
    (dataset, query): (&str, &str),
    media: &str,
    body: impl Into<reqwest::Body>,
) -> Answer {
    let path = format!("{dataset}/submissions{query}");
    let request = hospital.app.request(Method::POST, &path);
    let request = request.header("content-type", media).body(body);
    send(request.bearer_auth(&hospital.token)).await
}

/// [`TABLE`] with its rows in reverse order and its columns in another one.
fn turned() -> String {
    let mut lines: Vec<String> = TABLE
        .lines()
        .map(|line| {
            let mut cells: Vec<&str> = line.split(',').collect();
            cells.rotate_left(2);
            cells.join(",") + "\n"
        })
        .collect();
    lines[1..].reverse();
    lines.concat()
}

async fn chunks(hospital: &Hospital) -> i64 {
    let count = sqlx::query_scalar("SELECT count(*) FROM submission_chunks");
    count
        .fetch_one(hospital.app.state.unscoped().db.owner())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_rows_are_refused_in_any_order_and_format() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let at = (dataset.as_str(), "");
    let first = submit(&hospital, at, "text/csv", TABLE).await.json(201);
    for (media, body) in [
        ("text/csv", TABLE.as_bytes().to_vec()),
        ("text/csv", turned().into_bytes()),
        (NDJSON, ndjson()),
        (PARQUET, parquet()),
    ] {
        let refused = submit(&hospital, at, media, body).await;
        let problem = refused.problem(409, "duplicate_submission");
        let detail = text(&problem["detail"]);
        assert!(detail.contains(text(&first["id"])), "{media}: {detail}");
        assert!(detail.contains("?allow_duplicate=true"), "{detail}");
    }
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 11);
    assert_eq!(chunks(&hospital).await, 1);

    // Other rows are other rows: one cell, one row more, one row less, one row twice.
    let mut lines: Vec<&str> = TABLE.lines().collect();
    let changed = TABLE.replacen("34", "35", 1);
    assert_ne!(changed, TABLE);
    let last = lines.pop().unwrap();
    let less = lines.join("\n");
    let more = format!("{TABLE}\n{last}\n");
    for body in [changed, less, more] {
        submit(&hospital, at, "text/csv", body).await.json(201);
    }
    // Another dataset may have them.
    let other = hospital.dataset().await;
    submit(&hospital, (&other, ""), "text/csv", TABLE)
        .await
        .json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_that_is_allowed_is_stored_again() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    submit(&hospital, (&dataset, ""), "text/csv", TABLE)
        .await
        .json(201);
    let allowed = (dataset.as_str(), "?allow_duplicate=true");
    submit(&hospital, allowed, "text/csv", TABLE)
        .await
        .json(201);
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 22);
    let not_allowed = (dataset.as_str(), "?allow_duplicate=false");
    let refused = submit(&hospital, not_allowed, "text/csv", TABLE).await;
    refused.problem(409, "duplicate_submission");
    for query in ["?allow_duplicate=perhaps", "?allow_duplicates=true"] {
        let refused = submit(&hospital, (&dataset, query), "text/csv", TABLE).await;
        refused.problem(400, "invalid_parameter");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_first_answer_and_a_refused_one_frees_its_key() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let path = format!("{dataset}/submissions");
    let with_key = async |key: &str, body: String| {
        let request = hospital.app.request(Method::POST, &path);
        let request = request.header("content-type", "text/csv").body(body);
        send(
            request
                .header("idempotency-key", key)
                .bearer_auth(&hospital.token),
        )
        .await
    };
    let first = with_key("one", TABLE.to_owned()).await;
    let again = with_key("one", TABLE.to_owned()).await;
    assert_eq!(again.json(201), first.json(201));
    let refused = with_key("two", turned()).await;
    refused.problem(409, "duplicate_submission");
    let changed = TABLE.replacen("34", "35", 1);
    with_key("two", changed).await.json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_equal_submissions_at_once_one_is_stored() {
    let hospital = Arc::new(Hospital::new().await);
    let dataset = hospital.dataset().await;
    let uploads = (0..4).map(|number| {
        let (hospital, dataset) = (Arc::clone(&hospital), dataset.clone());
        tokio::spawn(async move {
            let body = if number % 2 == 0 {
                TABLE.to_owned()
            } else {
                turned()
            };
            submit(&hospital, (&dataset, ""), "text/csv", body)
                .await
                .status
        })
    });
    let mut statuses = Vec::new();
    for upload in uploads.collect::<Vec<_>>() {
        statuses.push(upload.await.unwrap().as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409]);
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_deleted_can_be_sent_again() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let at = (dataset.as_str(), "");
    let first = submit(&hospital, at, "text/csv", TABLE).await.json(201);
    let store = &hospital.app.state.unscoped().db;
    sqlx::query("DELETE FROM submissions WHERE id = $1")
        .bind(text(&first["id"]).parse::<uuid::Uuid>().unwrap())
        .execute(store.owner())
        .await
        .unwrap();
    submit(&hospital, at, "text/csv", TABLE).await.json(201);
    // A deleted dataset is gone, and one of the same columns begins empty.
    hospital.app.delete(&hospital.token, &dataset).await;
    let new = hospital.dataset().await;
    assert_ne!(id(&new), id(&dataset));
    submit(&hospital, (&new, ""), "text/csv", TABLE)
        .await
        .json(201);
}

/// Numbers are compared as numbers, text without the space around it, and missing cells as one
/// value.
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_compared_as_they_are_stored() {
    let hospital = Hospital::new().await;
    let body = json!({ "name": "stays", "columns": [
        { "name": "patient", "role": "subject" },
        { "name": "age", "role": "quasi_identifier", "kind": "numeric" },
        { "name": "drugs", "role": "insensitive", "kind": "set" },
        { "name": "note", "role": "identifier" },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    let at = (dataset.as_str(), "");
    let csv = "patient,age,drugs,note\np1,34.0,a|b,x\np2,,,y\n";
    submit(&hospital, at, "text/csv", csv).await.json(201);
    let ndjson = "{\"age\":null,\"patient\":\"p2\",\"drugs\":null,\"note\":\"v\"}\n\
                  {\"age\":34,\"patient\":\" p1\",\"drugs\":[\"a\",\"b\"],\"note\":\"w\"}\n";
    let refused = submit(&hospital, at, NDJSON, ndjson).await;
    refused.problem(409, "duplicate_submission");
    let columns: [(&str, ArrayRef); 4] = [
        (
            "drugs",
            Arc::new(StringArray::from(vec![Some("a|b"), None])),
        ),
        ("age", Arc::new(Int64Array::from(vec![Some(34), None]))),
        ("note", Arc::new(StringArray::from(vec!["x", "y"]))),
        ("patient", Arc::new(StringArray::from(vec!["p1", "p2"]))),
    ];
    let file = parquet_file(
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
            .unwrap(),
    );
    let refused = submit(&hospital, at, PARQUET, file).await;
    refused.problem(409, "duplicate_submission");
    let other = csv.replace("p1", "p3");
    submit(&hospital, at, "text/csv", other).await.json(201);
}
