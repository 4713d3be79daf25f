//! `/v1/datasets/{id}/submissions`: uploads.

use std::io::Write;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use pais::roles::Role;
use reqwest::{Body, Method};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use crate::api_submissions::{PARQUET, parquet};
use crate::app::{TestApp, text};
use crate::hospital::{Hospital, TABLE};
use pais_test_support::hex::hex;
use pais_test_support::poll::poll_async;

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_is_stored_completely() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let stored = hospital.submit(&dataset, TABLE).await;
    let document = stored.json(201);
    assert_eq!(stored.header("location"), dataset);
    assert_eq!(document["rows"], 11);
    assert_eq!(document["bytes"], TABLE.len());
    assert_eq!(document["sha256"], hex(&Sha256::digest(TABLE)));

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(TABLE.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(TABLE.as_bytes(), 1).unwrap();
    for (encoding, body) in [("gzip", gzip), ("zstd", zstd)] {
        let headers = [
            ("content-type", "text/csv; charset=utf-8"),
            ("content-encoding", encoding),
        ];
        let document = hospital.submit_with(&dataset, &headers, body).await;
        assert_eq!(document.json(201)["sha256"], hex(&Sha256::digest(TABLE)));
    }
    let listed = hospital.get(&dataset).await.json(200);
    assert_eq!(listed["rows"], 33);
    assert_eq!(listed["submissions"].as_array().unwrap().len(), 3);
    let sealed: Vec<u8> = sqlx::query_scalar("SELECT sealed FROM submission_chunks LIMIT 1")
        .fetch_one(hospital.app.state.unscoped().db.owner())
        .await
        .unwrap();
    assert!(!sealed.windows(7).any(|bytes| bytes == b"Janitor"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_may_be_ndjson_or_parquet() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let record = json!({
        "ID": 1, "Job": "Mover", "Sex": "M", "Age": 34, "Transfuse": "Y", "Surgery": "Plastic",
    });
    let headers = [("content-type", "application/x-ndjson")];
    let body = format!("{record}\n{record}\n");
    let stored = hospital.submit_with(&dataset, &headers, body).await;
    assert_eq!(stored.json(201)["rows"], 2);

    // A released table in Parquet has too few columns.
    let release = hospital.release().await;
    let path = format!("{release}/data?format=parquet");
    let request = hospital.app.request(Method::GET, &path);
    let file = request.bearer_auth(&hospital.token).send().await.unwrap();
    let file = file.bytes().await.unwrap();
    let headers = [("content-type", "application/vnd.apache.parquet")];
    let refused = hospital.submit_with(&dataset, &headers, file).await;
    refused.problem(422, "invalid_header");
    let refused = hospital.submit_with(&dataset, &headers, TABLE).await;
    refused.problem(400, "malformed_body");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_submission_is_refused_and_stores_nothing() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let cases: [(&[u8], u16, &str); 10] = [
        (
            b"ID,Job,Sex,Age,Transfuse\n1,Mover,M,1,Y\n",
            422,
            "invalid_header",
        ),
        (
            b"ID,Job,Sex,Age,Transfuse,Surgery,Extra\n1,Mover,M,1,Y,x,y\n",
            422,
            "invalid_header",
        ),
        (
            b"ID,Job,Sex,Age,Transfuse,Surgery\n1,Mover,M,1,Y\n",
            422,
            "invalid_cells",
        ),
        (
            b"ID,Job,Sex,Age,Transfuse,Surgery\n1,Mover,M,old,Y,x\n",
            422,
            "invalid_cells",
        ),
        (
            b"ID,Job,Sex,Age,Transfuse,Surgery\n1,Pilot,M,1,Y,x\n",
            422,
            "invalid_cells",
        ),
        (
            b"ID,Job,Sex,Age,Transfuse,Surgery\n1,Mover,M,100,Y,x\n",
            422,
            "invalid_cells",
        ),
        (
            b"ID,Job,Sex,Age,Transfuse,Surgery\n1,Mover,M,1,Y,\xff\n",
            400,
            "malformed_body",
        ),
        (
            b"ID,Job,Sex,Age,Transfuse,Surgery\n1,Mover,M,1,Y,\"x\n",
            400,
            "malformed_body",
        ),
        (
            b"ID,Job,Sex,Age,Transfuse,Surgery\n",
            422,
            "empty_submission",
        ),
        (b"", 422, "empty_submission"),
    ];
    for (body, status, code) in cases {
        let refused = hospital.submit(&dataset, body).await;
        refused.problem(status, code);
    }
    for (media, encoding, status, code) in [
        ("text/plain", "identity", 415, "unsupported_media_type"),
        (
            "text/csv; charset=latin1",
            "identity",
            415,
            "unsupported_media_type",
        ),
        ("text/csv", "br", 415, "unsupported_media_type"),
        ("text/csv", "gzip", 400, "malformed_body"),
    ] {
        let headers = [("content-type", media), ("content-encoding", encoding)];
        let refused = hospital.submit_with(&dataset, &headers, TABLE).await;
        refused.problem(status, code);
    }
    nothing_is_stored(&hospital).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused() {
    const LIMIT: usize = 1 << 20;
    let builder = TestApp::builder().limits(|limits| limits.upload_bytes = LIMIT as u64);
    let hospital = Hospital::with_app(builder.start().await).await;
    let dataset = hospital.dataset().await;
    let header = "ID,Job,Sex,Age,Transfuse,Surgery\n";
    let row = "1,Mover,M,34,Y,Plastic\n";
    let fits = header.to_owned() + &row.repeat((LIMIT - header.len()) / row.len());
    let over = fits.clone() + row;
    hospital.submit(&dataset, fits).await.json(201);
    let refused = hospital.submit(&dataset, over.clone()).await;
    refused.problem(413, "too_large");
    // The limit applies to the decoded body.
    let small = zstd::encode_all(over.as_bytes(), 1).unwrap();
    let headers = [("content-type", "text/csv"), ("content-encoding", "zstd")];
    let refused = hospital.submit_with(&dataset, &headers, small).await;
    refused.problem(413, "too_large");
    let listed = hospital.get(&dataset).await.json(200);
    assert_eq!(listed["submissions"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upload_stores_nothing() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    // An upload has a place when its first 64 KiB have come.
    let part = TABLE.to_owned() + &"1,Mover,M,34,Y,Plastic\n".repeat(3000);
    let address = hospital.app.address();
    let mut connection = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST {dataset}/submissions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: text/csv\r\ncontent-length: 100000\r\n\r\n",
        hospital.token
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(part.as_bytes()).await.unwrap();
    uploads_running(&hospital, 1).await;
    drop(connection);
    uploads_running(&hospital, 0).await;

    // A chunked body that ends in an error has no last chunk.
    let (interrupt, interrupted) = tokio::sync::oneshot::channel::<()>();
    let failing = async {
        let _ = interrupted.await;
        Err(std::io::Error::other("interrupted"))
    };
    let frames = stream::once(async { Ok(part) }).chain(stream::once(failing));
    let path = format!("{dataset}/submissions");
    let request = hospital.app.request(Method::POST, &path);
    let request = request
        .bearer_auth(&hospital.token)
        .header("content-type", "text/csv")
        .body(Body::wrap_stream(frames.boxed()));
    let (sent, ()) = tokio::join!(request.send(), async {
        uploads_running(&hospital, 1).await;
        drop(interrupt);
    });
    assert!(sent.is_err());
    uploads_running(&hospital, 0).await;
    nothing_is_stored(&hospital).await;
}

/// How long the service may take to begin or end an upload.
const LIMIT: Duration = Duration::from_secs(10);

/// Waits until this many uploads of the two permitted ones are running.
async fn uploads_running(hospital: &Hospital, expected: usize) {
    let service = hospital.app.state.unscoped();
    let reached = poll_async(LIMIT, async || {
        (2 - service.free_uploads() == expected).then_some(())
    });
    reached
        .await
        .unwrap_or_else(|| panic!("expected {expected} running uploads"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_with_an_idempotency_key_gets_the_first_answer() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let headers = [
        ("content-type", "text/csv"),
        ("idempotency-key", "night of the 3rd"),
    ];
    // A refusal is not stored.
    let refused = hospital.submit_with(&dataset, &headers, "ID\n1\n").await;
    refused.problem(422, "invalid_header");
    let first = hospital.submit_with(&dataset, &headers, TABLE).await;
    let again = hospital.submit_with(&dataset, &headers, TABLE).await;
    assert_eq!(again.json(201), first.json(201));
    assert_eq!(again.header("location"), dataset);
    let refused = hospital.submit_with(&dataset, &headers, "ID\n1\n").await;
    refused.problem(409, "idempotency_key_reused");
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_of_another_organization_is_not_found() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let other = hospital.app.token("clinic", Role::Holder).await;
    let path = format!("{dataset}/submissions");
    let theirs = hospital
        .app
        .post_bytes(&other, &path, "text/csv", TABLE)
        .await;
    hospital.app.delete(&hospital.token, &dataset).await;
    let gone = hospital.submit(&dataset, TABLE).await;
    assert_eq!(
        theirs.problem(404, "not_found"),
        gone.problem(404, "not_found")
    );
}

async fn nothing_is_stored(hospital: &Hospital) {
    for table in ["submissions", "submission_chunks"] {
        let query = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let rows: i64 = sqlx::query_scalar(query)
            .fetch_one(hospital.app.state.unscoped().db.owner())
            .await
            .unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn white_space_around_a_label_is_not_part_of_it() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let before = hospital.get(&format!("{dataset}/profile")).await.json(200);
    let row = "ID,Job,Sex,Age,Transfuse,Surgery\n1, Mover ,M\t,34,Y , Plastic\n";
    hospital.submit(&dataset, row).await.json(201);
    let after = hospital.get(&format!("{dataset}/profile")).await.json(200);
    for (before, after) in
        [0, 1, 3, 4].map(|index| (&before["columns"][index], &after["columns"][index]))
    {
        assert_eq!(before["distinct"], after["distinct"], "{after}");
    }
}

/// The temporary files of uploads have the limit of the spool directory.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_does_not_fit_into_the_spool_directory_is_refused() {
    let builder = TestApp::builder().storage(|limits| limits.spool = 512);
    let hospital = Hospital::with_app(builder.without_workers().start().await).await;
    let dataset = hospital.dataset().await;
    let body = parquet();
    assert!(body.len() > 512);
    let headers = [("content-type", PARQUET)];
    let refused = hospital.submit_with(&dataset, &headers, body).await;
    let document = refused.problem(507, "storage_full");
    assert!(text(&document["detail"]).contains("storage.spool_bytes"));
    assert_eq!(refused.header("retry-after"), "60");
    nothing_is_stored(&hospital).await;
}
