//! `/v1/releases` and the tables of a release.

use std::time::Duration;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use bytes::Bytes;
use pais::roles::Role;
use pais_test_support::hex::hex;
use pais_test_support::poll::poll_async;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use reqwest::Method;
use serde_json::Value;
use serde_json::json;
use sha2::Digest;
use sha2::Sha256;

use crate::app::Answer;
use crate::app::send;
use crate::app::text;
use crate::hospital::Hospital;
use crate::hospital::id;

async fn fetch(hospital: &Hospital, path: &str, headers: &[(&str, &str)]) -> Answer {
    request(hospital, Method::GET, path, headers).await
}

async fn request(
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

/// The CSV is rendered for its digest when the release is made, and kept for its first download.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_download_is_the_file_that_the_job_rendered() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let spooled = || {
        let files = std::fs::read_dir(hospital.app.spool.path()).unwrap();
        let files = files.map(|file| file.unwrap().path());
        files.collect::<Vec<_>>()
    };
    // It is named once the release is stored.
    let named = poll_async(Duration::from_secs(10), async || {
        let kept = spooled();
        kept[0].extension().is_some().then_some(kept)
    });
    let kept = named.await.unwrap();
    let rendered = std::fs::read(&kept[0]).unwrap();
    let data = format!("{release}/data");
    assert_eq!(hospital.get(&data).await.bytes, rendered);
    assert_eq!(spooled(), kept);
    // Without the file, the stored table is rendered again.
    std::fs::remove_file(&kept[0]).unwrap();
    assert_eq!(hospital.get(&data).await.bytes, rendered);
    assert_eq!(spooled(), kept);
    // A release that is made of a step has one, too.
    let job = text(&hospital.get(&release).await.json(200)["job_id"]).to_owned();
    let made = hospital
        .post("/v1/releases", &json!({ "job_id": job }))
        .await;
    made.json(201);
    assert_eq!(spooled().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_served_in_parts_and_not_again_if_unchanged() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let data = format!("{release}/data");
    let whole = hospital.get(&data).await;
    let etag = whole.header("etag").to_owned();
    let get = async |headers: &[(&str, &str)]| fetch(&hospital, &data, headers).await;

    let part = get(&[("range", "bytes=4-9")]).await;
    assert_eq!(part.status, 206);
    assert_eq!(part.text, whole.text[4..10]);
    assert_eq!(part.header("etag"), etag);
    let range = format!("bytes 4-9/{}", whole.text.len());
    assert_eq!(part.header("content-range"), range);
    // A reader of Parquet asks for more than the end may have.
    let all = get(&[("range", "bytes=-65536")]).await;
    assert_eq!(all.status, 206);
    assert_eq!(all.text, whole.text);
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
    let head = request(&hospital, Method::HEAD, &data, &[]).await;
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
    let refused = fetch(&hospital, &data, &pdf).await;
    refused.problem(406, "not_acceptable");
    let csv = format!("{data}?format=csv");
    let served = fetch(&hospital, &csv, &pdf).await;
    assert_eq!(served.status, 200);
    let ndjson = [("accept", "application/x-ndjson, text/csv;q=0.5")];
    let served = fetch(&hospital, &data, &ndjson).await;
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
    let refused = fetch(&hospital, &format!("{release}/report"), &pdf).await;
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
    let as_listed = |mut release: Value| {
        for field in ["codebook", "cut", "verification", "verdict"] {
            release.as_object_mut().unwrap().remove(field).unwrap();
        }
        release
    };
    let expected = json!([as_listed(top), as_listed(last)]);
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
        let cached = fetch(&hospital, &path, &headers).await;
        assert_eq!(cached.status, 304);
        let headers = [("if-none-match", exact.header("etag"))];
        let other = fetch(&hospital, &path, &headers).await;
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

const FORMATS: [(&str, &str); 3] = [
    ("csv", "text/csv"),
    ("ndjson", "application/x-ndjson"),
    ("parquet", "application/vnd.apache.parquet"),
];

/// A release has the published cut of each column, and the SHA-256 of its CSV as served,
/// uncompressed.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_describes_its_table() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let document = hospital.get(&release).await.json(200);
    for field in [
        "id",
        "rows",
        "suppressed_rows",
        "tables",
        "privacy",
        "cut",
        "verification",
        "verdict",
    ] {
        assert!(!document[field].is_null(), "{field}");
    }
    assert_eq!(document["suppressed_rows"], 0);
    assert_eq!(document["privacy"]["model"], "lkc");
    let cut = document["cut"].as_object().unwrap();
    assert_eq!(cut.keys().collect::<Vec<_>>(), ["Age", "Job", "Sex"]);
    let csv = fetch(
        &hospital,
        &format!("{release}/data"),
        &[("accept-encoding", "gzip")],
    )
    .await;
    assert!(csv.headers.get("content-encoding").is_none());
    assert_eq!(document["sha256"], hex(&Sha256::digest(&csv.bytes)));
    assert_eq!(document["tables"][0]["sha256"], document["sha256"]);
    for line in csv.text.lines().skip(1) {
        let job = line.split(',').next().unwrap();
        assert!(
            cut["Job"].as_array().unwrap().contains(&json!(job)),
            "{line}"
        );
    }
}

/// `?format=` is `csv` (the default), `ndjson` or `parquet` and takes precedence over `Accept`. An
/// unknown format is 400, an unacceptable `Accept` 406.
#[tokio::test(flavor = "multi_thread")]
async fn a_format_is_chosen_by_parameter_or_by_accept() {
    let hospital = Hospital::new().await;
    let data = format!("{}/data", hospital.release().await);
    let default = hospital.get(&data).await;
    assert_eq!(default.header("content-type"), "text/csv; charset=utf-8");
    for (format, media) in FORMATS {
        let path = format!("{data}?format={format}");
        let asked = fetch(&hospital, &path, &[("accept", "image/png")]).await;
        assert_eq!(asked.status, 200);
        assert!(asked.header("content-type").starts_with(media));
        let disposition = asked.header("content-disposition");
        assert!(
            disposition.ends_with(&format!(".{format}\"")),
            "{disposition}"
        );
        let accept = format!("{media};q=0.9, application/pdf");
        let accepted = fetch(&hospital, &data, &[("accept", &accept)]).await;
        assert_eq!(accepted.bytes, asked.bytes);
        assert_eq!(accepted.header("etag"), asked.header("etag"));
    }
    let any = fetch(&hospital, &data, &[("accept", "*/*")]).await;
    assert_eq!(any.bytes, default.bytes);
    let refused = fetch(&hospital, &data, &[("accept", "application/json")]).await;
    refused.problem(406, "not_acceptable");
    for format in ["xlsx", "CSV", ""] {
        let refused = hospital.get(&format!("{data}?format={format}")).await;
        refused.problem(400, "invalid_parameter");
    }
}

/// CSV, NDJSON and Parquet carry the same values, generalized columns as strings.
#[tokio::test(flavor = "multi_thread")]
async fn the_three_formats_have_the_same_rows() {
    let hospital = Hospital::new().await;
    let data = format!("{}/data", hospital.release().await);
    let csv = hospital.get(&data).await.text;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<String> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    let rows: Vec<Vec<String>> = reader
        .records()
        .map(|record| record.unwrap().iter().map(str::to_owned).collect())
        .collect();
    assert_eq!(names, ["Job", "Sex", "Age", "Transfuse", "Surgery"]);
    assert_eq!(rows.len(), 11);

    let ndjson = hospital.get(&format!("{data}?format=ndjson")).await.text;
    let records = ndjson
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let records: Vec<Vec<String>> = records
        .map(|record| {
            names
                .iter()
                .map(|name| text(&record[name]).to_owned())
                .collect()
        })
        .collect();
    assert_eq!(records, rows);

    let parquet = hospital.get(&format!("{data}?format=parquet")).await.bytes;
    let reader = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
    let fields: Vec<_> = reader
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    assert_eq!(fields, names);
    let mut found = vec![Vec::new(); rows.len()];
    for batch in reader.build().unwrap() {
        for column in batch.unwrap().columns() {
            let column = arrow_cast(column);
            for (row, value) in column.into_iter().enumerate() {
                found[row].push(value);
            }
        }
    }
    assert_eq!(found, rows);
}

fn arrow_cast(column: &dyn Array) -> Vec<String> {
    assert_eq!(column.data_type(), &DataType::Utf8);
    let column = column.as_string::<i32>().iter();
    column.map(|text| text.unwrap().to_owned()).collect()
}

/// Every format has an `ETag` and takes `Range`. The parts are uncompressed and add up to the whole.
#[tokio::test(flavor = "multi_thread")]
async fn the_parts_of_every_format_add_up_to_the_whole() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let document = hospital.get(&release).await.json(200);
    let mut etags = Vec::new();
    for (format, _) in FORMATS {
        let path = format!("{release}/tables/data?format={format}");
        let whole = hospital.get(&path).await;
        let etag = whole.header("etag").to_owned();
        assert!(etag.contains(text(&document["sha256"])));
        let length = whole.bytes.len();
        let mut parts: Vec<u8> = Vec::new();
        let mut hasher = Sha256::new();
        while parts.len() < length {
            let range = format!("bytes={}-{}", parts.len(), parts.len() + 99);
            let headers = [
                ("range", range.as_str()),
                ("if-range", etag.as_str()),
                ("accept-encoding", "gzip, zstd"),
            ];
            let part = fetch(&hospital, &path, &headers).await;
            assert_eq!(part.status, 206, "{format}");
            assert!(part.headers.get("content-encoding").is_none());
            let end = (parts.len() + 100).min(length) - 1;
            let expected = format!("bytes {}-{end}/{length}", parts.len());
            assert_eq!(part.header("content-range"), expected);
            assert_eq!(part.header("etag"), etag);
            hasher.update(&part.bytes);
            parts.extend_from_slice(&part.bytes);
        }
        assert_eq!(Bytes::from(parts), whole.bytes);
        let digest = hex(&hasher.finalize());
        assert_eq!(digest == document["sha256"], format == "csv");
        etags.push(etag);
    }
    etags.dedup();
    assert_eq!(etags.len(), 3);
}

/// Every format takes `HEAD`, `If-None-Match` and `If-Range`. A range outside the table is 416.
#[tokio::test(flavor = "multi_thread")]
async fn conditional_requests_work_for_every_format() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    for (format, media) in FORMATS {
        let path = format!("{release}/data?format={format}");
        let whole = hospital.get(&path).await;
        let (etag, length) = (whole.header("etag").to_owned(), whole.bytes.len());
        let size = length.to_string();
        let head = request(&hospital, Method::HEAD, &path, &[("range", "bytes=0-1")]).await;
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-length"), size);
        assert_eq!(head.header("etag"), etag);
        assert!(head.header("content-type").starts_with(media));
        assert!(head.bytes.is_empty());
        for known in [
            etag.clone(),
            format!("W/{etag}"),
            format!("\"x\", {etag}"),
            "*".into(),
        ] {
            let same = fetch(&hospital, &path, &[("if-none-match", &known)]).await;
            assert_eq!(same.status, 304, "{known}");
            assert_eq!(same.header("etag"), etag);
            assert!(same.bytes.is_empty());
        }
        let other = fetch(&hospital, &path, &[("if-none-match", "\"x\"")]).await;
        assert_eq!(other.bytes, whole.bytes);
        let stale = [("range", "bytes=0-1"), ("if-range", "\"x\"")];
        let stale = fetch(&hospital, &path, &stale).await;
        assert_eq!((stale.status.as_u16(), stale.bytes.len()), (200, length));
        let outside = format!("bytes={length}-");
        let outside = fetch(&hospital, &path, &[("range", &outside)]).await;
        outside.problem(416, "range_not_satisfiable");
        assert_eq!(outside.header("content-range"), format!("bytes */{length}"));
        let tail = fetch(&hospital, &path, &[("range", "bytes=-7")]).await;
        assert_eq!(
            (tail.status.as_u16(), &tail.bytes[..]),
            (206, &whole.bytes[length - 7..])
        );
        // A server may ignore `Range`: for several ranges the whole table is sent.
        for ignored in ["bytes=0-1,4-5", "lines=0-1", "bytes=5-2"] {
            let whole = fetch(&hospital, &path, &[("range", ignored)]).await;
            assert_eq!(
                (whole.status.as_u16(), whole.bytes.len()),
                (200, length),
                "{ignored}"
            );
        }
    }
}

/// The report of utility and risk is JSON, or an HTML page if `Accept` prefers it.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_json_or_html() {
    let hospital = Hospital::new().await;
    let job = hospital.done(json!({})).await;
    let job = job.rsplit('/').next().unwrap();
    let name = "<script>alert('x')</script> & \"more\"";
    let made = hospital
        .post("/v1/releases", &json!({"job_id": job, "name": name}))
        .await;
    let path = format!("{}/report", made.header("location"));
    let report = hospital.get(&path).await;
    assert_eq!(report.header("content-type"), "application/json");
    let report = report.json(200);
    let utility = [
        "dr",
        "discernibility",
        "ncp",
        "information_remain",
        "groups",
        "smallest_group",
        "average_group",
        "average_group_per_record",
    ];
    for field in utility {
        assert!(report["utility"][field].is_number(), "{field}");
    }
    for column in ["Job", "Sex", "Age"] {
        assert!(
            report["utility"]["ncp_by_column"][column].is_number(),
            "{column}"
        );
    }
    for field in ["highest", "average", "records_at_highest"] {
        assert!(report["risk"][field].is_number(), "{field}");
    }
    assert_eq!(report["suppressed_rows"], 0);

    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let page = fetch(&hospital, &path, &[("accept", browser)]).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(
        page.header("content-security-policy")
            .starts_with("default-src 'none'")
    );
    for loaded in [
        "<script",
        "http://",
        "https://",
        "<link",
        "<img",
        "javascript:",
    ] {
        assert!(!page.text.contains(loaded), "{loaded}");
    }
    assert!(page.text.contains("&lt;script&gt;alert('x')"));
    for expected in [
        "What was asked",
        "LKC-privacy",
        "What is guaranteed",
        "meets its privacy model",
        "What it cost",
        "discernibility",
        "What risk remains",
        "records_at_highest",
        "Quasi-identifiers, by which a patient could be known",
        "Sizes of groups",
    ] {
        assert!(page.text.contains(expected), "{expected}");
    }
    let json = fetch(
        &hospital,
        &path,
        &[("accept", "application/json, text/html;q=0.5")],
    )
    .await;
    assert_eq!(json.json(200), report);
    let refused = fetch(&hospital, &path, &[("accept", "application/pdf")]).await;
    refused.problem(406, "not_acceptable");
}

/// A recipient lists and fetches the releases granted to its organization, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_fetches_what_was_granted_in_every_format() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let grants = format!("{release}/grants");
    let unknown = json!({"recipient": "nobody", "purpose": "x"});
    hospital
        .post(&grants, &unknown)
        .await
        .problem(404, "not_found");
    let below = [
        "",
        "/data",
        "/data?format=ndjson",
        "/data?format=parquet",
        "/tables/data",
        "/report",
    ];
    for below in below {
        let hidden = hospital.app.get(&bts, &format!("{release}{below}")).await;
        hidden.problem(404, "not_found");
    }
    let grant = json!({"recipient": "bts", "purpose": "blood usage"});
    let made = hospital.post(&grants, &grant).await;
    for below in below {
        let own = hospital.get(&format!("{release}{below}")).await;
        let seen = hospital.app.get(&bts, &format!("{release}{below}")).await;
        assert_eq!(seen.status, 200, "{below}");
        if below.is_empty() {
            let mut seen = seen.json(200);
            let purpose = seen.as_object_mut().unwrap().remove("purpose");
            assert_eq!(purpose, Some(json!("blood usage")));
            // How many steps a search takes is for the holder.
            let mut own = own.json(200);
            own.as_object_mut().unwrap().remove("step");
            assert_eq!(seen, own);
            continue;
        }
        if below == "/report" {
            let own = pais_measure::for_recipient(own.json(200));
            assert_eq!(seen.json(200), own);
            continue;
        }
        assert_eq!(seen.bytes, own.bytes, "{below}");
    }
    let listed = hospital.get(&grants).await.json(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let withdrawn = hospital
        .app
        .delete(&hospital.token, made.header("location"))
        .await;
    assert_eq!((withdrawn.status.as_u16(), withdrawn.text.len()), (204, 0));
    let hidden = hospital.app.get(&bts, &format!("{release}/data")).await;
    hidden.problem(404, "not_found");
}
