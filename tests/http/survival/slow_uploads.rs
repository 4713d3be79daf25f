//! Uploads that come slowly, or never end.

use std::io::Write;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use reqwest::Body;
use serde_json::{Value, json};

use crate::process::{ServiceProcess, call};

/// A dataset of one column, and the path of its submissions.
async fn dataset(client: &reqwest::Client, service: &ServiceProcess, token: &str) -> String {
    let definition = json!({
        "name": "texts",
        "columns": [{"name": "text", "role": "insensitive", "kind": "categorical"}],
    });
    let request = client.post(format!("{}/v1/datasets", service.base));
    let made: Value = call(request.json(&definition), token).await;
    let id = made["id"].as_str().unwrap();
    format!(
        "{}/v1/datasets/{id}/submissions?allow_duplicate=true",
        service.base
    )
}

/// A body that begins with `first` and then has one byte every 200 ms.
fn slow(first: Vec<u8>) -> Body {
    let first = stream::iter([Ok::<_, std::io::Error>(first)]);
    let rest = stream::repeat(()).then(async |()| {
        pais_test_support::poll::pace(Duration::from_millis(200)).await;
        Ok(b"x".to_vec())
    });
    Body::wrap_stream(first.chain(rest).boxed())
}

fn upload(
    client: &reqwest::Client,
    path: &str,
    token: &str,
    body: Body,
) -> reqwest::RequestBuilder {
    let request = client.post(path).bearer_auth(token);
    request.header("content-type", "text/csv").body(body)
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_of_one_organization_do_not_stop_another() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings = [
        ("PAIS__LIMITS__UPLOAD_WAIT_SECONDS", "1"),
        ("PAIS__LIMITS__UPLOAD_SECONDS", "6"),
    ];
    let service = ServiceProcess::start(&data, &settings).await;
    let client = reqwest::Client::new();
    let attacker = service.token("attacker", "holder");
    let hospital = service.token("hospital", "holder");
    let theirs = dataset(&client, &service, &attacker).await;
    let ours = dataset(&client, &service, &hospital).await;

    // Half of them have sent enough for a place, the other half have not.
    let began = Instant::now();
    let attacks: Vec<_> = (0..16)
        .map(|number| {
            let first = match number % 2 {
                0 => b"text\n".repeat(20_000),
                _ => b"text\n".to_vec(),
            };
            tokio::spawn(upload(&client, &theirs, &attacker, slow(first)).send())
        })
        .collect();
    while began.elapsed() < Duration::from_secs(4) {
        let body = Body::from("text\na\nb\n");
        let answer = upload(&client, &ours, &hospital, body).send().await;
        assert_eq!(answer.unwrap().status(), 201);
    }
    // Four had a place until the time was over; the others got none, or were too slow for one.
    let mut problems = Vec::new();
    for attack in attacks {
        let answer = attack.await.unwrap().unwrap();
        let retry_after = answer.headers().contains_key("retry-after");
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(retry_after, problem["status"] == 503, "{problem}");
        problems.push(problem);
    }
    let of = |code: &str, limit: &str| {
        let is = |problem: &&Value| {
            problem["code"] == code && problem["detail"].as_str().unwrap().contains(limit)
        };
        problems.iter().filter(is).count()
    };
    assert_eq!(of("busy", "organizations.uploads"), 4, "{problems:?}");
    assert_eq!(
        of("request_timeout", "limits.upload_seconds"),
        12,
        "{problems:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(15));
    service.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_decodes_to_nothing_ends() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut service = ServiceProcess::start(&data, &[]).await;
    let client = reqwest::Client::new();
    let token = service.token("attacker", "holder");
    let path = dataset(&client, &service, &token).await;
    let gzip = |text: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    };
    let mut skippable = vec![0x50, 0x2a, 0x4d, 0x18, 0, 16, 0, 0];
    skippable.resize(8 + 4096, 0);
    let zstd = zstd::encode_all(&b"text\na\n"[..], 1).unwrap();
    for (encoding, first, empty) in [
        ("gzip", gzip(b"text\na\n"), gzip(b"").repeat(1000)),
        ("zstd", zstd, skippable),
    ] {
        let endless = stream::repeat(empty).map(Ok::<_, std::io::Error>);
        let body = stream::iter([Ok(first)]).chain(endless);
        let request = upload(&client, &path, &token, Body::wrap_stream(body));
        let request = request.header("content-encoding", encoding);
        let answer = request.timeout(Duration::from_secs(10)).send().await;
        // The service closes the connection; a client that still sends may not see the answer.
        if let Ok(answer) = answer {
            let problem: Value = answer.json().await.unwrap();
            assert_eq!(problem["code"], "malformed_body", "{problem}");
        } else {
            assert!(!answer.unwrap_err().is_timeout());
        }
        assert!(service.is_running());
    }
    service.stop();
}
