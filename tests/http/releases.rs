//! `/v1/releases` and the tables of a release.

use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::{Answer, send, text};
use crate::hospital::{Hospital, id};
use pais_test_support::hex::hex;

async fn fetch(
    hospital: &Hospital,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = hospital.app.request(method, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request.bearer_auth(&hospital.token)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_has_the_digest_of_its_release() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let document = hospital.get(&release).await.json(200);
    let data = format!("{release}/data");
    let table = hospital.get(&data).await;
    assert_eq!(table.status, 200);
    let digest = hex(&Sha256::digest(&table.text));
    assert_eq!(document["sha256"], digest);
    assert_eq!(document["tables"][0]["sha256"], digest);
    assert_eq!(document["tables"][0]["bytes"], table.text.len());
    assert_eq!(document["tables"][0]["name"], "data");
    assert_eq!(document["rows"], table.text.lines().count() - 1);
    assert_eq!(table.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(table.header("etag"), format!("\"{digest}\""));
    assert_eq!(table.header("accept-ranges"), "bytes");
    let name = format!("attachment; filename=\"{}.csv\"", id(&release));
    assert_eq!(table.header("content-disposition"), name);
    assert!(table.headers.get("last-modified").is_none());
    let same = hospital.get(&format!("{release}/tables/data")).await;
    assert_eq!(same.text, table.text);
    let report = hospital.get(&format!("{release}/report")).await.json(200);
    assert!(report["utility"]["groups"].is_number(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_served_in_parts_and_not_again_if_unchanged() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let data = format!("{release}/data");
    let whole = hospital.get(&data).await;
    let etag = whole.header("etag").to_owned();
    let get = async |headers: &[(&str, &str)]| fetch(&hospital, Method::GET, &data, headers).await;

    let part = get(&[("range", "bytes=4-9")]).await;
    assert_eq!(part.status, 206);
    assert_eq!(part.text, whole.text[4..10]);
    assert_eq!(part.header("etag"), etag);
    let range = format!("bytes 4-9/{}", whole.text.len());
    assert_eq!(part.header("content-range"), range);
    let tail = get(&[("range", "bytes=-5"), ("if-range", &etag)]).await;
    assert_eq!(tail.status, 206);
    assert_eq!(tail.text, whole.text[whole.text.len() - 5..]);
    let changed = get(&[("range", "bytes=-5"), ("if-range", "\"other\"")]).await;
    assert_eq!(changed.status, 200);
    assert_eq!(changed.text, whole.text);
    let outside = get(&[("range", "bytes=999999-")]).await;
    outside.problem(416, "range_not_satisfiable");
    let size = format!("bytes */{}", whole.text.len());
    assert_eq!(outside.header("content-range"), size);

    let known = get(&[("if-none-match", &etag)]).await;
    assert_eq!(known.status, 304);
    assert_eq!(known.header("etag"), etag);
    assert!(known.text.is_empty());
    let head = fetch(&hospital, Method::HEAD, &data, &[]).await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), whole.text.len().to_string());
    assert!(head.text.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_format_parameter_takes_precedence_over_accept() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let data = format!("{release}/data");
    let pdf = [("accept", "application/pdf")];
    let refused = fetch(&hospital, Method::GET, &data, &pdf).await;
    refused.problem(406, "not_acceptable");
    let csv = format!("{data}?format=csv");
    let served = fetch(&hospital, Method::GET, &csv, &pdf).await;
    assert_eq!(served.status, 200);
    let ndjson = [("accept", "application/x-ndjson, text/csv;q=0.5")];
    let served = fetch(&hospital, Method::GET, &data, &ndjson).await;
    assert_eq!(served.header("content-type"), "application/x-ndjson");
    for line in served.text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert!(row["Job"].is_string(), "{row}");
    }
    let parquet = hospital.get(&format!("{data}?format=parquet")).await;
    assert!(parquet.text.starts_with("PAR1"));
    assert_ne!(parquet.header("etag"), served.header("etag"));
    let refused = hospital.get(&format!("{data}?format=xlsx")).await;
    refused.problem(400, "invalid_parameter");
    let refused = fetch(&hospital, Method::GET, &format!("{release}/report"), &pdf).await;
    refused.problem(406, "not_acceptable");
    for missing in ["tables/qit", "tables/st_Surgery", "tables/%00"] {
        let missing = hospital.get(&format!("{release}/{missing}")).await;
        missing.problem(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_step_of_a_job_can_be_released() {
    let hospital = Hospital::new().await;
    let job = hospital.done(json!({})).await;
    let release = async |body: Value| hospital.post("/v1/releases", &body).await;
    let top = release(json!({ "job_id": id(&job), "step": 0, "name": "top / most" })).await;
    let path = top.header("location").to_owned();
    let top = top.json(201);
    assert_eq!(top["step"], 0);
    assert_eq!(top["cut"]["Job"], json!(["ANY_Job"]));
    assert_eq!(hospital.get(&path).await.json(200), top);
    let table = hospital.get(&format!("{path}/data")).await;
    assert_eq!(
        table.header("content-disposition"),
        "attachment; filename=\"top___most.csv\""
    );
    let last = release(json!({ "job_id": id(&job) })).await.json(201);
    assert_ne!(last["sha256"], top["sha256"]);
    for step in [99, -1] {
        let body = json!({ "job_id": id(&job), "step": step });
        release(body).await.problem(422, "no_such_step");
    }
    let unknown = json!({ "job_id": uuid::Uuid::new_v4() });
    release(unknown).await.problem(404, "not_found");
    let listed = hospital.get("/v1/releases").await.json(200);
    let without_codebook = |mut release: Value| {
        release.as_object_mut().unwrap().remove("codebook").unwrap();
        release
    };
    let expected = json!([without_codebook(top), without_codebook(last)]);
    assert_eq!(listed["items"], expected);

    let dataset = hospital.get(&job).await.json(200);
    let dataset = format!("/v1/datasets/{}", text(&dataset["dataset_id"]));
    let deleted = hospital.app.delete(&hospital.token, &dataset).await;
    assert_eq!(deleted.status, 204);
    let refused = release(json!({ "job_id": id(&job) })).await;
    refused.problem(409, "dataset_deleted");
    assert_eq!(hospital.get(&format!("{path}/data")).await.text, table.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_another_organization_is_not_found() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let other = hospital.app.token("clinic", Role::Holder).await;
    let nobody = format!("/v1/releases/{}", uuid::Uuid::new_v4());
    for below in ["", "/data", "/tables/data", "/report", "/grants"] {
        let theirs = hospital.app.get(&other, &format!("{release}{below}")).await;
        let missing = hospital.app.get(&other, &format!("{nobody}{below}")).await;
        assert_eq!(
            theirs.problem(404, "not_found"),
            missing.problem(404, "not_found")
        );
    }
    let listed = hospital.app.get(&other, "/v1/releases").await.json(200);
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_can_be_made_safe_for_spreadsheets() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let table = crate::hospital::TABLE.replace("Plastic", "=HYPERLINK(1)");
    let table = table.replace("Vascular", "@SUM(1)");
    hospital.submit(&dataset, table).await.json(201);
    let job = hospital.job(&dataset, json!({ "release": true })).await;
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    let data = format!("/v1/releases/{}/data", text(&ended["release_id"]));

    let exact = hospital.get(&data).await;
    assert!(exact.text.contains(",=HYPERLINK("), "{}", exact.text);
    for path in [
        format!("{data}?safe_csv=true"),
        format!("{data}?safe_csv=true&format=csv"),
        format!("{}?safe_csv=true", data.replace("/data", "/tables/data")),
    ] {
        let safe = hospital.get(&path).await;
        assert_eq!(
            safe.text,
            exact.text.replace(",=H", ",'=H").replace(",@", ",'@")
        );
        assert_ne!(safe.text, exact.text);
        assert_ne!(safe.header("etag"), exact.header("etag"));
        let headers = [("if-none-match", safe.header("etag"))];
        let cached = fetch(&hospital, Method::GET, &path, &headers).await;
        assert_eq!(cached.status, 304);
        let headers = [("if-none-match", exact.header("etag"))];
        let other = fetch(&hospital, Method::GET, &path, &headers).await;
        assert_eq!(other.status, 200);
    }
    let same = hospital.get(&format!("{data}?safe_csv=false")).await;
    assert_eq!(same.text, exact.text);
    for format in ["ndjson", "parquet"] {
        let query = format!("safe_csv=true&format={format}");
        let refused = hospital.get(&format!("{data}?{query}")).await;
        refused.problem(422, "invalid_value");
    }
    let refused = hospital.get(&format!("{data}?safe_csv=1")).await;
    refused.problem(400, "invalid_parameter");
}
