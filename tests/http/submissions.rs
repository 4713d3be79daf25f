//! `/v1/datasets/{id}/submissions`: uploads.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::ArrayRef;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use futures_util::StreamExt;
use futures_util::stream;
use pais::roles::Role;
use pais_test_support::hex::hex;
use pais_test_support::poll::poll_async;
use parquet::arrow::ArrowWriter;
use reqwest::Body;
use reqwest::Method;
use serde_json::Value;
use serde_json::json;
use sha2::Digest;
use sha2::Sha256;
use tokio::io::AsyncWriteExt;

use crate::app::Answer;
use crate::app::TestApp;
use crate::app::text;
use crate::hospital::Hospital;
use crate::hospital::TABLE;
use crate::hospital::id;
use crate::hospital::job_on;

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

pub(crate) const NDJSON: &str = "application/x-ndjson";
pub(crate) const PARQUET: &str = "application/vnd.apache.parquet";

const HEADER: &str = "ID,Job,Sex,Age,Transfuse,Surgery";

/// [`TABLE`] as NDJSON, ages as numbers.
pub(crate) fn ndjson() -> Vec<u8> {
    let mut lines = TABLE.lines().map(|line| line.split(','));
    let names: Vec<&str> = lines.next().unwrap().collect();
    let mut text = String::new();
    for cells in lines {
        let cells = names.iter().zip(cells).map(|(name, cell)| {
            let value = match *name {
                "Age" => json!(cell.parse::<i64>().unwrap()),
                _ => json!(cell),
            };
            ((*name).to_owned(), value)
        });
        let record: serde_json::Map<String, Value> = cells.collect();
        text.push_str(&Value::Object(record).to_string());
        text.push('\n');
    }
    text.into_bytes()
}

/// [`TABLE`] as Parquet, ages as numbers.
pub(crate) fn parquet() -> Vec<u8> {
    let mut lines = TABLE
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let rows: Vec<_> = lines.collect();
    let columns = names.iter().enumerate().map(|(index, name)| {
        let cells = rows.iter().map(|row| row[index]);
        let array: ArrayRef = match *name {
            "Age" => Arc::new(
                cells
                    .map(|cell| cell.parse::<i64>().unwrap())
                    .collect::<Int64Array>(),
            ),
            _ => Arc::new(StringArray::from_iter_values(cells)),
        };
        (*name, array)
    });
    parquet_file(RecordBatch::try_from_iter(columns).unwrap())
}

/// A record batch as a Parquet file.
pub(crate) fn parquet_file(batch: RecordBatch) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A submission is CSV, NDJSON or Parquet, with or without `Content-Encoding: gzip` or `zstd`. Its
/// `sha256` is that of the decoded body.
#[tokio::test(flavor = "multi_thread")]
async fn every_format_is_accepted_in_every_encoding() {
    let hospital = Hospital::new().await;
    let mut profiles: Vec<Value> = Vec::new();
    for (media, body) in [
        ("text/csv", TABLE.as_bytes().to_vec()),
        (NDJSON, ndjson()),
        (PARQUET, parquet()),
    ] {
        let dataset = hospital.dataset().await;
        let zstd = zstd::encode_all(&body[..], 1).unwrap();
        for (encoding, sent) in [
            ("identity", body.clone()),
            ("gzip", gzip(&body)),
            ("zstd", zstd),
        ] {
            let headers = [("content-type", media), ("content-encoding", encoding)];
            let stored = hospital.submit_with(&dataset, &headers, sent).await;
            let stored = stored.json(201);
            assert_eq!(stored["rows"], 11, "{media} {encoding}");
            assert_eq!(stored["sha256"], hex(&Sha256::digest(&body)));
            assert_eq!(stored["bytes"], body.len());
        }
        let profile = hospital.get(&format!("{dataset}/profile")).await.json(200);
        assert_eq!(profile["rows"], 33);
        profiles.push(profile["columns"].clone());
        // No part of the upload is left on disk.
        let spool = std::fs::read_dir(hospital.app.spool.path()).unwrap();
        assert_eq!(spool.count(), 0);
    }
    assert_eq!(profiles[0], profiles[1]);
    assert_eq!(profiles[0], profiles[2]);
}

/// A profile has numbers of distinct and missing values, set sizes and the range of numeric columns
/// for each column; no other value and no row.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_has_counts_and_ranges_and_no_other_values() {
    let hospital = Hospital::new().await;
    let empty = hospital.dataset().await;
    let profile = hospital.get(&format!("{empty}/profile")).await.json(200);
    assert_eq!(profile["rows"], 0);
    let names = |profile: &Value| {
        let columns = profile["columns"].as_array().unwrap().clone();
        columns
            .iter()
            .map(|column| column["name"].clone())
            .collect::<Vec<_>>()
    };
    let stored = ["Job", "Sex", "Age", "Transfuse", "Surgery"];
    assert_eq!(names(&profile), stored);
    assert_eq!(profile["columns"][0]["distinct"], 0);

    let dataset = hospital.filled_dataset().await;
    let answer = hospital.get(&format!("{dataset}/profile")).await;
    let profile = answer.json(200);
    assert_eq!(names(&profile), stored);
    assert_eq!(profile["columns"][1]["distinct"], 2);
    assert_eq!(profile["columns"][2]["min"], 24.0);
    assert_eq!(profile["columns"][2]["max"], 63.0);
    for value in ["Janitor", "Doctor", "Transgender", "\"M\""] {
        assert!(!answer.text.contains(value), "{value}");
    }
    let admin = hospital.app.token("hospital", Role::Admin).await;
    let refused = hospital
        .app
        .get(&admin, &format!("{dataset}/profile"))
        .await;
    refused.problem(403, "forbidden");
}

/// The header of a submission has exactly the declared columns, in any order. A byte order mark and
/// CRLF are accepted. Identifiers are not stored.
#[tokio::test(flavor = "multi_thread")]
async fn columns_may_be_in_any_order_and_a_file_may_have_bom_and_crlf() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let file =
        "\u{feff}Surgery,Age,\"Sex\",Job,ID,Transfuse\r\nPlastic,34,M,Mover,\"Jane\nDoe\",Y\r\n";
    let stored = hospital.submit(&dataset, file).await;
    assert_eq!(stored.json(201)["rows"], 1);
    let ndjson = "\u{feff}{\"Surgery\":\"Plastic\",\"Age\":34,\"Sex\":\"M\",\"Job\":\"Mover\",\
        \"ID\":7,\"Transfuse\":\"Y\"}\r\n\r\n";
    let headers = [("content-type", NDJSON)];
    let stored = hospital.submit_with(&dataset, &headers, ndjson).await;
    assert_eq!(stored.json(201)["rows"], 1);
    let profile = hospital.get(&format!("{dataset}/profile")).await.json(200);
    assert_eq!(profile["columns"].as_array().unwrap().len(), 5);
    for column in profile["columns"].as_array().unwrap() {
        assert_eq!(column["distinct"], 1, "{column}");
    }
}

#[track_caller]
fn places(refused: &Answer) -> Vec<(u64, String)> {
    let document = refused.problem(422, "invalid_cells");
    let errors = document["errors"].as_array().unwrap().iter();
    let place = |error: &Value| {
        let column = error["column"].as_str().unwrap_or_default();
        (error["line"].as_u64().unwrap(), column.to_owned())
    };
    errors.map(place).collect()
}

/// A rejected submission names the first 20 invalid cells by column name and line, and stores
/// nothing. The line is the physical line of a CSV file on which the record starts (the header is
/// line 1), or the number of the record in NDJSON and Parquet.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_cells_are_named_by_line_and_column() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let file = format!(
        "{HEADER}\r\n\"a\r\nb\",Mover,M,34,Y,x\r\n\r\n1,zz-secret-zz,M,old,Y,x\r\n2,Mover,M,34,Y\r\n"
    );
    let refused = hospital.submit(&dataset, file).await;
    let expected = [(5, "Job"), (5, "Age"), (6, "")];
    assert_eq!(
        places(&refused),
        expected.map(|(line, name)| (line, name.to_owned()))
    );
    assert!(!refused.text.contains("secret"));

    let many = format!("{HEADER}\n") + &"1,zz-secret-zz,M,34,Y,x\n".repeat(30);
    let refused = hospital.submit(&dataset, many).await;
    let twenty: Vec<_> = (2..22).map(|line| (line, "Job".to_owned())).collect();
    assert_eq!(places(&refused), twenty);

    let good = r#"{"ID":1,"Job":"Mover","Sex":"M","Age":34,"Transfuse":"Y","Surgery":"x"}"#;
    let bad = good.replace("34", "\"zz-secret-zz\"");
    let file = format!("{good}\n\n{good}\n{bad}\n");
    let headers = [("content-type", NDJSON)];
    let refused = hospital.submit_with(&dataset, &headers, file).await;
    assert_eq!(places(&refused), [(3, "Age".to_owned())]);
    assert!(!refused.text.contains("secret"));

    let text = |cells: [&str; 3]| -> ArrayRef { Arc::new(StringArray::from_iter_values(cells)) };
    let batch = RecordBatch::try_from_iter([
        ("ID", text(["1", "2", "3"])),
        ("Job", text(["Mover", "Mover", "zz-secret-zz"])),
        ("Sex", text(["M", "M", "M"])),
        ("Age", text(["1", "200", "3"])),
        ("Transfuse", text(["Y", "Y", "Y"])),
        ("Surgery", text(["x", "x", "x"])),
    ]);
    let headers = [("content-type", PARQUET)];
    let body = parquet_file(batch.unwrap());
    let refused = hospital.submit_with(&dataset, &headers, body).await;
    assert_eq!(
        places(&refused),
        [(2, "Age".to_owned()), (3, "Job".to_owned())]
    );
    assert!(!refused.text.contains("secret"));
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 0);
}

/// `missing` lists the cell values that mean "missing", by default the empty cell; `null` always
/// does. A numeric column has a `domain: [min, max]` or a taxonomy of ranges.
#[tokio::test(flavor = "multi_thread")]
async fn missing_values_domains_and_ranges_restrict_cells() {
    let hospital = Hospital::new().await;
    let ranges = json!({"label": "[1,99]", "children": [
        {"label": "[1,60)", "children": [{"label": "[1,30)"}, {"label": "[30,60)"}]},
        {"label": "[60,99]"}]});
    let body = json!({"name": "d", "columns": [
        {"name": "a", "role": "quasi_identifier", "kind": "numeric", "taxonomy": ranges},
        {"name": "b", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 10],
         "missing": ["NA", "-"]},
        {"name": "c", "role": "quasi_identifier",
         "taxonomy": {"label": "*", "children": [{"label": "x"}, {"label": "y"}]}}]});
    let made = hospital.post("/v1/datasets", &body).await;
    let dataset = made.header("location").to_owned();
    for (row, fits) in [
        ("1,0,x", true),
        ("99,10,y", true),
        ("59.5,3.25,x", true),
        (",NA,", true),
        ("1,-,x", true),
        ("100,1,x", false),
        ("0.5,1,x", false),
        ("1,,x", false),
        ("1,10.01,x", false),
        ("1,1,z", false),
        ("1,1,*", false),
        ("\"[1,30)\",1,x", false),
        ("NaN,1,x", false),
        ("1,inf,x", false),
    ] {
        let answer = hospital.submit(&dataset, format!("a,b,c\n{row}\n")).await;
        match fits {
            true => drop(answer.json(201)),
            false => drop(answer.problem(422, "invalid_cells")),
        }
    }
    let headers = [("content-type", NDJSON)];
    let null = "{\"a\":null,\"b\":null,\"c\":null}\n";
    hospital
        .submit_with(&dataset, &headers, null)
        .await
        .json(201);
    let profile = hospital.get(&format!("{dataset}/profile")).await.json(200);
    let missing = profile["columns"].as_array().unwrap().iter();
    let missing: Vec<_> = missing
        .map(|column| column["missing"].as_u64().unwrap())
        .collect();
    assert_eq!(missing, [2, 3, 2]);

    let job = json!({"dataset_id": id(&dataset), "release": true,
        "privacy": {"model": "k_anonymity", "k": 2}});
    let job = hospital.post("/v1/jobs", &job).await;
    let path = job.header("location").to_owned();
    let workers = hospital.work();
    let ended = hospital.ended(&path).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
}

/// Deleting a dataset cancels its jobs and deletes its raw rows; its releases stay. Names of datasets
/// are unique in an organization (409), and free again after a deletion.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_dataset_keeps_its_releases_and_frees_its_name() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let document = hospital.get(&release).await.json(200);
    let table = hospital.get(&format!("{release}/data")).await.bytes;
    let dataset = format!("/v1/datasets/{}", text(&document["dataset_id"]));
    let declared = hospital.get(&dataset).await.json(200);
    let waiting = hospital.job(&dataset, json!({})).await;
    let mut again = json!({"name": declared["name"], "columns": declared["columns"]});
    let refused = hospital.post("/v1/datasets", &again).await;
    refused.problem(409, "name_taken");

    let deleted = hospital.app.delete(&hospital.token, &dataset).await;
    assert_eq!(deleted.status, 204);
    assert!(deleted.text.is_empty());
    assert_eq!(
        hospital.get(&waiting).await.json(200)["status"],
        "cancelled"
    );
    for path in [dataset.clone(), format!("{dataset}/profile")] {
        hospital.get(&path).await.problem(404, "not_found");
    }
    let refused = hospital.post("/v1/jobs", &job_on(&dataset)).await;
    refused.problem(404, "not_found");
    for table in ["submissions", "submission_chunks"] {
        let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let count =
            sqlx::query_scalar::<_, i64>(count).fetch_one(hospital.app.state.unscoped().db.owner());
        assert_eq!(count.await.unwrap(), 0, "{table}");
    }
    assert_eq!(hospital.get(&release).await.json(200), document);
    for below in [
        "report",
        "data",
        "data?format=parquet",
        "data?format=ndjson",
    ] {
        let served = hospital.get(&format!("{release}/{below}")).await;
        assert_eq!(served.status, 200, "{below}");
    }
    assert_eq!(hospital.get(&format!("{release}/data")).await.bytes, table);
    let body = json!({ "job_id": document["job_id"] });
    let refused = hospital.post("/v1/releases", &body).await;
    refused.problem(409, "dataset_deleted");
    again["description"] = json!("second");
    hospital.post("/v1/datasets", &again).await.json(201);
}

/// An `Idempotency-Key` belongs to an organization and an endpoint. A repeated request gets the first
/// answer; the same key with another body is 409 `idempotency_key_reused`.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_submission_gets_the_first_answer() {
    let hospital = Hospital::new().await;
    for (media, body) in [(NDJSON, ndjson()), (PARQUET, parquet())] {
        let dataset = hospital.dataset().await;
        let headers = [("content-type", media), ("idempotency-key", "once")];
        let first = hospital.submit_with(&dataset, &headers, body.clone()).await;
        let again = hospital.submit_with(&dataset, &headers, body).await;
        assert_eq!(again.json(201), first.json(201));
        assert_eq!(again.header("location"), first.header("location"));
        let other = hospital.submit_with(&dataset, &headers, "{}").await;
        other.problem(409, "idempotency_key_reused");
        assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 11);
        // Another organization's key of the same name is another key.
        let clinic = hospital.app.token("clinic", Role::Holder).await;
        let path = format!("{dataset}/submissions");
        let theirs = hospital.app.post_bytes(&clinic, &path, media, "{}").await;
        theirs.problem(404, "not_found");
    }
}

/// A taxonomy may be sent as `text/csv` hierarchy rows with `?name=`. A label that is repeated on the
/// next level is one node; a node without children is a leaf.
#[tokio::test(flavor = "multi_thread")]
async fn a_hierarchy_file_makes_the_same_tree_as_json() {
    let hospital = Hospital::new().await;
    let rows = "a;A;*\r\nb;A;*\r\nc;c;*\r\n";
    let path = "/v1/taxonomies?name=rows";
    let made = hospital
        .app
        .post_bytes(&hospital.token, path, "text/csv", rows)
        .await;
    let root = json!({"label": "*", "children": [
        {"label": "A", "children": [{"label": "a"}, {"label": "b"}]}, {"label": "c"}]});
    let document = made.json(201);
    assert_eq!(document["root"], root);
    assert_eq!(document["name"], "rows");
    let found = hospital.get(made.header("location")).await.json(200);
    assert_eq!(found, document);
    let taken = hospital
        .app
        .post_bytes(&hospital.token, path, "text/csv", rows)
        .await;
    taken.problem(409, "name_taken");
}
