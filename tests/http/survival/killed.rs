//! The process is killed while a request with an idempotency key is under way.

use std::time::Duration;

use futures_util::{StreamExt, stream};

use pais_test_support::poll::poll_async;
use sqlx::ConnectOptions;

use crate::hospital::{TABLE, definition};
use crate::process::{ServiceProcess, call};

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_a_crash_goes_through_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let request = client.post(format!("{}/v1/datasets", service.base));
    let made = call(request.json(&definition("patients")), &token).await;
    let path = format!("/v1/datasets/{}/submissions", made["id"].as_str().unwrap());
    let upload = |base: &str, body: reqwest::Body| {
        let request = client.post(format!("{base}{path}")).bearer_auth(&token);
        let request = request.header("content-type", "text/csv");
        request.header("idempotency-key", "one").body(body)
    };
    let first = stream::iter([Ok::<_, std::io::Error>(vec![b'#'; 1 << 17])]);
    let endless = reqwest::Body::wrap_stream(first.chain(stream::pending()));
    let under_way = tokio::spawn(upload(&service.base, endless).send());
    let database = pais_postgres::attach(&data).await.unwrap().unwrap();
    let mut database = database.connect().await.unwrap();
    let reserved = poll_async(Duration::from_secs(10), async || {
        let keys = sqlx::query_scalar("SELECT count(*) FROM idempotent_answers");
        let keys: i64 = keys.fetch_one(&mut database).await.unwrap();
        (keys > 0).then_some(())
    });
    reserved.await.expect("the key is reserved");
    let busy = upload(&service.base, TABLE.into()).send().await.unwrap();
    assert_eq!(busy.status(), 409, "the key is reserved");
    drop(service);
    assert!(under_way.await.unwrap().is_err());

    let service = ServiceProcess::start(&data, &[]).await;
    let retried = upload(&service.base, TABLE.into()).send().await.unwrap();
    assert_eq!(retried.status(), 201);
    service.stop();
}
