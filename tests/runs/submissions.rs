use std::io::Write;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use pais::domain::Role;
use reqwest::{Body, Method};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use crate::app::{App, TABLE, UPLOAD_BYTES, code};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn rows_are_stored_whole() {
    let app = App::start().await;
    let dataset = app.dataset().await;
    let response = app.submit(&dataset, TABLE).await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["location"], dataset.as_str());
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["rows"], 11);
    assert_eq!(document["bytes"], TABLE.len());
    assert_eq!(document["sha256"], hex(&Sha256::digest(TABLE)));

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(TABLE.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(TABLE.as_bytes(), 1).unwrap();
    for (encoding, body) in [("gzip", gzip), ("zstd", zstd)] {
        let path = format!("{dataset}/submissions");
        let request = app.request(Method::POST, &app.holder, &path).body(body);
        let request = request
            .header("content-type", "text/csv; charset=utf-8")
            .header("content-encoding", encoding);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 201, "{encoding}");
        let document: Value = response.json().await.unwrap();
        assert_eq!(document["sha256"], hex(&Sha256::digest(TABLE)));
    }
    let listed = app.read(&dataset).await;
    assert_eq!(listed["rows"], 33);
    assert_eq!(listed["submissions"].as_array().unwrap().len(), 3);
    let sealed: Vec<u8> = sqlx::query_scalar("SELECT sealed FROM submission_chunks LIMIT 1")
        .fetch_one(app.store.pool())
        .await
        .unwrap();
    assert!(!sealed.windows(7).any(|bytes| bytes == b"Janitor"));
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let app = App::start().await;
    let dataset = app.dataset().await;
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
    for (body, status, word) in cases {
        let found = code(app.submit(&dataset, body).await, status).await;
        assert_eq!(found, word, "{}", String::from_utf8_lossy(body));
    }
    let path = format!("{dataset}/submissions");
    let send = |media: &'static str, encoding: &'static str, body: &'static str| {
        let request = app.request(Method::POST, &app.holder, &path).body(body);
        let request = request.header("content-type", media);
        request.header("content-encoding", encoding).send()
    };
    let refused = send("text/plain", "identity", TABLE).await.unwrap();
    assert_eq!(code(refused, 415).await, "unsupported_media_type");
    let refused = send("text/csv", "br", TABLE).await.unwrap();
    assert_eq!(code(refused, 415).await, "unsupported_media_type");
    let refused = send("text/csv", "gzip", TABLE).await.unwrap();
    assert_eq!(code(refused, 400).await, "malformed_body");
    nothing_is_stored(&app).await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let app = App::start().await;
    let dataset = app.dataset().await;
    let header = "ID,Job,Sex,Age,Transfuse,Surgery\n";
    let row = "1,Mover,M,34,Y,Plastic\n";
    let rows = row.repeat((UPLOAD_BYTES as usize - header.len()) / row.len());
    let fits = format!("{header}{rows}");
    assert_eq!(app.submit(&dataset, fits.clone()).await.status(), 201);
    let over = format!("{fits}{row}");
    assert_eq!(
        code(app.submit(&dataset, over.clone()).await, 413).await,
        "too_large"
    );
    // What decides is the size of the decoded body.
    let path = format!("{dataset}/submissions");
    let request = app.request(Method::POST, &app.holder, &path);
    let request = request
        .header("content-type", "text/csv")
        .header("content-encoding", "zstd")
        .body(zstd::encode_all(over.as_bytes(), 1).unwrap());
    assert_eq!(code(request.send().await.unwrap(), 413).await, "too_large");
    assert_eq!(
        app.read(&dataset).await["submissions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn an_upload_broken_off_leaves_nothing() {
    let app = App::start().await;
    let dataset = app.dataset().await;
    let address = app.address();
    let mut connection = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST {dataset}/submissions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: text/csv\r\ncontent-length: 100000\r\n\r\n",
        app.holder
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(TABLE.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(connection);

    // A chunked body that ends in an error is cut off without its last chunk.
    let frames = stream::iter([Ok(TABLE), Err(std::io::Error::other("gone"))]);
    let path = format!("{dataset}/submissions");
    let request = app.request(Method::POST, &app.holder, &path);
    let request = request.header("content-type", "text/csv");
    let sent = request.body(Body::wrap_stream(frames.boxed())).send().await;
    assert!(sent.is_err());
    tokio::time::sleep(Duration::from_millis(300)).await;
    nothing_is_stored(&app).await;
    assert_eq!(app.state.uploads.available_permits(), 2);
}

#[tokio::test]
async fn a_retry_with_its_key_gives_the_first_answer() {
    let app = App::start().await;
    let dataset = app.dataset().await;
    let send = async |body: &'static str| {
        let path = format!("{dataset}/submissions");
        let request = app.request(Method::POST, &app.holder, &path);
        let request = request
            .header("content-type", "text/csv")
            .header("idempotency-key", "night of the 3rd");
        request.body(body).send().await.unwrap()
    };
    // What was refused is not kept.
    assert_eq!(code(send("ID\n1\n").await, 422).await, "invalid_header");
    let first: Value = send(TABLE).await.json().await.unwrap();
    let again = send(TABLE).await;
    assert_eq!(again.status(), 201);
    assert_eq!(again.headers()["location"], dataset.as_str());
    assert_eq!(again.json::<Value>().await.unwrap(), first);
    assert_eq!(
        code(send("ID\n1\n").await, 409).await,
        "idempotency_key_reused"
    );
    assert_eq!(app.read(&dataset).await["rows"], 11);
}

#[tokio::test]
async fn the_dataset_of_another_is_not_there() {
    let app = App::start().await;
    let dataset = app.dataset().await;
    let other = app.token("clinic", Role::Holder).await;
    let path = format!("{dataset}/submissions");
    let request = app.request(Method::POST, &other, &path);
    let request = request.header("content-type", "text/csv").body(TABLE);
    let theirs = code(request.send().await.unwrap(), 404).await;
    app.delete(&app.holder, &dataset).await;
    let gone = code(app.submit(&dataset, TABLE).await, 404).await;
    assert_eq!(theirs, gone);
}

async fn nothing_is_stored(app: &App) {
    for table in ["submissions", "submission_chunks"] {
        let query = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let rows: i64 = sqlx::query_scalar(query)
            .fetch_one(app.store.pool())
            .await
            .unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}
