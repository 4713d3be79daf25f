//! The disk of the data directory is filled to the brim, and freed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{ServiceProcess, call, pais};
use crate::small_disk::SmallDisk;
use pais_test_support::poll::poll_async;
use pais_test_support::split_mix::SplitMix64;

/// Size of the disk.
const DISK_MIB: u64 = 400;

/// A hospital with datasets in a running service.
struct Client {
    token: String,
    http: reqwest::Client,
    body: Vec<u8>,
}

impl Client {
    /// Uploads have some 2 kB of each of these rows, which no method makes smaller than half.
    fn new(service: &ServiceProcess, rows: u32) -> Self {
        let mut body = b"age,note,disease\n".to_vec();
        let mut random = SplitMix64(1);
        for _ in 0..rows {
            let note: String = (0..120)
                .map(|_| format!("{:016x}", random.next_u64()))
                .collect();
            body.extend(format!("{},{note},flu\n", random.next_u64() % 90).bytes());
        }
        Self {
            token: service.token("hospital", "holder"),
            http: reqwest::Client::new(),
            body,
        }
    }

    async fn dataset(&self, service: &ServiceProcess, name: &str) -> String {
        let columns = json!([
            { "name": "age", "role": "quasi_identifier", "kind": "numeric" },
            { "name": "note", "role": "insensitive" },
            { "name": "disease", "role": "sensitive" },
        ]);
        let body = json!({ "name": name, "columns": columns });
        let request = self.http.post(format!("{}/v1/datasets", service.base));
        let made = call(request.json(&body), &self.token).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// Status and code of an upload.
    async fn upload(&self, service: &ServiceProcess, dataset: &str) -> (u16, String) {
        let path = format!(
            "{}/v1/datasets/{dataset}/submissions?allow_duplicate=true",
            service.base
        );
        // A refusal can close the connection while the body is still being sent.
        let sent = poll_async(Duration::from_secs(30), async || {
            let request = self.http.post(&path).header("content-type", "text/csv");
            let request = request.bearer_auth(&self.token).body(self.body.clone());
            request.send().await.ok()
        });
        let answer = sent.await.expect("no answer to an upload");
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.unwrap();
        let code = body["code"].as_str().unwrap_or_default();
        (status, code.to_owned())
    }

    /// Uploads rows until one of the uploads is refused: the disk is nearly full.
    async fn fill(&self, service: &ServiceProcess, dataset: &str) {
        let refused = loop {
            let (status, code) = self.upload(service, dataset).await;
            if status != 201 {
                break (status, code);
            }
        };
        assert_eq!(refused, (507, "storage_full".to_owned()));
    }

    /// Status and code of a new dataset with a large taxonomy, which takes space at once.
    async fn declare(&self, service: &ServiceProcess, name: &str) -> (u16, String) {
        let mut random = SplitMix64(2);
        let mut label = || {
            let digits: String = (0..60)
                .map(|_| format!("{:016x}", random.next_u64()))
                .collect();
            json!({ "label": digits })
        };
        let leaves: Vec<Value> = (0..2_000).map(|_| label()).collect();
        let columns = json!([{
            "name": "age", "role": "quasi_identifier",
            "taxonomy": { "label": "any", "children": leaves },
        }]);
        let body = json!({ "name": name, "columns": columns });
        let request = self.http.post(format!("{}/v1/datasets", service.base));
        let answer = request
            .bearer_auth(&self.token)
            .json(&body)
            .send()
            .await
            .unwrap();
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.unwrap();
        (status, body["code"].as_str().unwrap_or_default().to_owned())
    }

    async fn delete(&self, service: &ServiceProcess, dataset: &str) -> u16 {
        let request = self
            .http
            .delete(format!("{}/v1/datasets/{dataset}", service.base));
        let answer = request.bearer_auth(&self.token).send().await.unwrap();
        answer.status().as_u16()
    }
}

async fn readiness(service: &ServiceProcess) -> (u16, Value) {
    let answer = reqwest::get(format!("{}/readyz", service.base))
        .await
        .unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Waits until the service is ready.
async fn ready(service: &ServiceProcess) {
    let ready = poll_async(Duration::from_secs(120), async || {
        (readiness(service).await.0 == 200).then_some(())
    });
    ready.await.expect("the service is not ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_rows_and_lets_data_be_deleted() {
    let Some(disk) = SmallDisk::mount(DISK_MIB) else {
        println!("not run: this process may not mount a file system");
        return;
    };
    let data = disk.path().join("data");
    let mut service = ServiceProcess::start(&data, &[]).await;
    let client = Client::new(&service, 2_000);
    let kept = client.dataset(&service, "kept").await;
    assert_eq!(client.upload(&service, &kept).await.0, 201);
    assert!(data.join("reserve").exists());

    // Filled by uploads: refused early, while a tenth of the disk is still free.
    disk.leave(DISK_MIB / 5);
    let large = client.dataset(&service, "large").await;
    client.fill(&service, &large).await;

    // Filled to the last byte by something else: the service says so, and deleting still works.
    disk.fill();
    let (status, document) = readiness(&service).await;
    assert_eq!((status, &document["code"]), (503, &json!("unavailable")));
    let detail = document["detail"].as_str().unwrap();
    assert!(detail.contains("storage.min_free_bytes"), "{detail}");
    assert_eq!(client.upload(&service, &kept).await.0, 507);
    let refused = client.declare(&service, "more").await;
    assert_eq!(refused, (507, "storage_full".to_owned()));
    assert_eq!(client.delete(&service, &large).await, 204);
    assert!(!data.join("reserve").exists());
    assert!(service.is_running());
    disk.free();
    ready(&service).await;
    assert_eq!(client.upload(&service, &kept).await.0, 201);

    // Killed while the disk is full: the reserve, which is made again when there is space, lets it
    // start and delete.
    let reserve = poll_async(Duration::from_secs(120), async || {
        // Refused while the disk is tight. Each deletion makes space.
        let columns = json!([{ "name": "age", "role": "quasi_identifier" }]);
        let body = json!({ "name": "unused", "columns": columns });
        let request = client.http.post(format!("{}/v1/datasets", service.base));
        let made = request.bearer_auth(&client.token).json(&body).send().await;
        let made: Value = made.unwrap().json().await.unwrap();
        if let Some(unused) = made["id"].as_str() {
            assert_eq!(client.delete(&service, unused).await, 204);
        }
        data.join("reserve").exists().then_some(())
    });
    reserve.await.expect("the reserve was not made again");
    disk.fill();
    drop(service);
    service = ServiceProcess::start_unready(&data, &[]).await;
    assert_eq!(client.delete(&service, &kept).await, 204);
    disk.free();
    ready(&service).await;
    let new = client.dataset(&service, "new").await;
    assert_eq!(client.upload(&service, &new).await.0, 201);
    service.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_of_rows_has_its_space_back_once_they_are_deleted() {
    let Some(disk) = SmallDisk::mount(2 * DISK_MIB / 3) else {
        println!("not run: this process may not mount a file system");
        return;
    };
    let data = disk.path().join("data");
    let service = ServiceProcess::start(&data, &[]).await;
    let client = Client::new(&service, 30_000);
    let large = client.dataset(&service, "large").await;
    client.fill(&service, &large).await;
    assert!(disk.free_mebibytes() < DISK_MIB / 6);
    assert_eq!(client.delete(&service, &large).await, 204);
    ready(&service).await;
    // The rows were more than half of the disk.
    let freed = poll_async(Duration::from_secs(120), async || {
        (disk.free_mebibytes() > DISK_MIB / 3).then_some(())
    });
    freed.await.expect("the space is not given back");
    assert!(!service.log().contains("could not be removed"));
    let of_database = std::fs::read_to_string(data.join("postgres/server.log")).unwrap();
    assert!(!of_database.contains("PANIC"), "{of_database}");
    service.stop();
}

/// The program with a log that is on a full disk.
fn without_log(data: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" \"$@\" 2>/dev/full"])
        .arg(pais(data).get_program())
        .env_remove("DATABASE_URL")
        .env("PAIS__SERVER__DATA_DIR", data)
        .stdin(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_written_does_not_end_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = ServiceProcess::start_with(without_log(&data), &data, &[]).await;
    let client = Client::new(&service, 2_000);
    // Each request is a line of the log.
    let dataset = client.dataset(&service, "patients").await;
    assert_eq!(client.upload(&service, &dataset).await.0, 201);
    service.stop();
}
