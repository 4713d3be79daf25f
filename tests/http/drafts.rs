//! Drafts: a dataset is proposed from rows, accepted as it is, and nothing is stored.

use std::io::Write;

use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{TestApp, send, text};

const CSV: &str = "text/csv";

const ROWS: &str = "Nr;Geburtstag;Geschlecht;Gewicht\n1;03.09.1987;m;71,5\n2;31.12.1990;w;80\n";

async fn draft(app: &TestApp, token: &str, path: &str, rows: impl Into<reqwest::Body>) -> Value {
    app.post_bytes(token, path, CSV, rows).await.json(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_accepted_as_a_dataset_and_its_format_as_that_of_its_rows() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let rows = "Name;Kosten;Stufe\nJosé;1,5;a\nAnn;2;b\nBen;3;a\n";
    let latin: Vec<u8> = rows.chars().map(|it| it as u8).collect();
    let draft = draft(
        &app,
        &holder,
        "/v1/datasets/draft?name=Kosten",
        latin.clone(),
    )
    .await;
    let format = &draft["format"];
    assert_eq!(
        *format,
        json!({"delimiter": ";", "decimal": ",", "thousands": null, "encoding": "windows-1252"})
    );
    assert_eq!(draft["dataset"]["name"], "Kosten");
    assert!(draft["reasons"]["Name"][0].is_string());
    let listed = app.get(&holder, "/v1/datasets").await.json(200);
    assert_eq!(listed["items"], json!([]));

    let made = app
        .post(&holder, "/v1/datasets", &draft["dataset"])
        .await
        .json(201);
    let path = format!(
        "/v1/datasets/{}/submissions?delimiter=%3B&decimal=,&encoding=windows-1252",
        text(&made["id"])
    );
    let sent = app.post_bytes(&holder, &path, CSV, latin).await.json(201);
    assert_eq!(sent["rows"], 3);
}

/// A key that repeats, dates whose order nothing shows, and flags of which nothing says who knows them.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_rows_leave_open_is_asked_and_categories_of_hipaa_are_named() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let rows = (0..60).map(|row| {
        let (person, day) = (41_000 + row / 3, row % 9 + 1);
        let flags = ["yes,no", "no,yes"][row % 2];
        format!(
            "{person},0{day}/0{}/2024,{flags},x{}\n",
            row % 5 + 1,
            row % 7
        )
    });
    let rows = "id,seen,fever,cough,unit\n".to_owned() + &rows.collect::<String>();
    let draft = draft(&app, &holder, "/v1/datasets/draft", rows).await;
    let doubts = draft["doubts"].as_array().unwrap();
    let of = |name: &str| doubts.iter().find(|doubt| doubt["column"] == name).unwrap();
    assert_eq!(of("id")["choices"], json!(["subject", "identifier"]));
    assert_eq!(of("seen")["choices"], json!(["%m/%d/%Y", "%d/%m/%Y"]));
    assert_eq!(of("fever")["also"], json!(["cough"]));
    assert!(
        doubts
            .iter()
            .all(|doubt| doubt["question"].as_str().unwrap().ends_with(['?', '.']))
    );
    // The first choice is the proposed one.
    let columns = &draft["dataset"]["columns"];
    assert_eq!(columns[0]["role"], "subject");
    assert_eq!(columns[1]["format"], "%m/%d/%Y");
    let categories = json!({"id": "other_identifiers", "seen": "dates"});
    assert_eq!(draft["safe_harbor"], categories);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_and_compressed_bodies_are_drafted_too() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let rows = "{\"age\": 41, \"drugs\": [\"a\"]}\n{\"age\": 42, \"drugs\": []}\n";
    let path = "/v1/datasets/draft";
    let media_type = "application/x-ndjson";
    let draft = app
        .post_bytes(&holder, path, media_type, rows)
        .await
        .json(200);
    assert_eq!(draft["dataset"]["columns"][1]["kind"], "set");

    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(ROWS.as_bytes()).unwrap();
    let request = app.request(Method::POST, path).bearer_auth(&holder);
    let request = request
        .header("content-type", CSV)
        .header("content-encoding", "gzip");
    let draft = send(request.body(packed.finish().unwrap())).await.json(200);
    assert_eq!(draft["dataset"]["columns"][1]["format"], "%d.%m.%Y");
    assert_eq!(draft["dataset"]["columns"][3]["kind"], "numeric");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_win_over_what_is_found() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = "/v1/datasets/draft?decimal=,";
    let draft = draft(&app, &holder, path, "a,b;c\n1,2;3\n").await;
    assert_eq!(draft["format"]["delimiter"], ";");
    for (path, media_type) in [
        ("/v1/datasets/draft?decimal=x", CSV),
        ("/v1/datasets/draft?other=1", CSV),
    ] {
        let answer = app.post_bytes(&holder, path, media_type, "{}").await;
        answer.problem(400, "invalid_parameter");
    }
    let path = "/v1/datasets/draft?decimal=,";
    let answer = app.post_bytes(&holder, path, "application/x-ndjson", "{}");
    answer.await.problem(422, "invalid_value");
    let path = "/v1/datasets/draft?delimiter=,&decimal=,";
    let answer = app.post_bytes(&holder, path, CSV, "a;b\n1,2;3\n");
    answer.await.problem(422, "invalid_value");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_tables_are_refused_without_their_cells() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let path = "/v1/datasets/draft";
    for (rows, status, code) in [
        (&b""[..], 422, "empty_submission"),
        (b"zzsecretzz\n", 422, "empty_submission"),
        (b"zzsecretzz,zzsecretzz\n1,2\n", 422, "invalid_header"),
        (b"a,b\nzzsecretzz\n", 422, "invalid_cells"),
        (b"a\n\"zzsecretzz\n", 400, "malformed_body"),
    ] {
        let answer = app.post_bytes(&holder, path, CSV, rows).await;
        answer.problem(status, code);
        assert!(!answer.text.contains("secret"), "{}", answer.text);
    }
    let wide = (0..65)
        .map(|at| format!("c{at}"))
        .collect::<Vec<_>>()
        .join(",");
    let answer = app.post_bytes(&holder, path, CSV, wide).await;
    answer.problem(422, "invalid_header");
    let answer = app
        .post_bytes(&holder, path, "application/vnd.apache.parquet", "PAR1")
        .await;
    answer.problem(400, "malformed_body");
    let answer = app
        .post_bytes(&holder, path, "application/json", "{}")
        .await;
    answer.problem(415, "unsupported_media_type");
    let recipient = app.token("bts", Role::Recipient).await;
    app.post_bytes(&recipient, path, CSV, ROWS)
        .await
        .problem(403, "forbidden");
}
