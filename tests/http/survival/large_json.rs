//! Large JSON bodies beside a running job.

use std::time::{Duration, Instant};

use reqwest::Body;
use serde_json::{Value, json};

use crate::process::{ServiceProcess, call};
use pais_test_support::adult;

/// A tree of about 32 MB, below the limits of a taxonomy, with a name of its own.
fn taxonomy(number: usize) -> Vec<u8> {
    const LEAVES: usize = 199_000;
    let filler = "x".repeat(145);
    let mut body = format!(r#"{{"name":"tree-{number}","root":{{"label":"root","children":["#);
    for leaf in 0..LEAVES {
        let comma = if leaf == 0 { "" } else { "," };
        body += &format!(r#"{comma}{{"label":"{leaf:06}{filler}"}}"#);
    }
    (body + "]}}").into_bytes()
}

/// The greatest resident memory of a process so far, in MiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<u64>().unwrap() >> 10
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_hold_up_neither_probes_nor_a_job() {
    const PROCESS_MIB: u64 = 3072;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let bytes = (PROCESS_MIB << 20).to_string();
    let settings = [
        ("PAIS__MEMORY__PROCESS_BYTES", bytes.as_str()),
        ("PAIS__MEMORY__WAIT_SECONDS", "5"),
    ];
    let service = ServiceProcess::start(&data, &settings).await;
    let token = service.token("hospital", "holder");
    let client = reqwest::Client::new();
    let url = |path: &str| format!("{}{path}", service.base);

    let mut definition = adult::dataset("adult").unwrap();
    for column in definition["columns"].as_array_mut().unwrap() {
        column.as_object_mut().unwrap().remove("taxonomy");
    }
    let dataset = call(client.post(url("/v1/datasets")).json(&definition), &token).await;
    let id = dataset["id"].as_str().unwrap();
    let rows = adult::csv().unwrap();
    for _ in 0..4 {
        let request = client.post(url(&format!(
            "/v1/datasets/{id}/submissions?allow_duplicate=true"
        )));
        let request = request
            .header("content-type", "text/csv")
            .body(rows.clone());
        call(request, &token).await;
    }
    let job = json!({
        "dataset_id": id,
        "privacy": {"model": "lkc", "l": 4, "k": 20, "c": 1.0},
        "utility": {"objective": "discernibility"},
    });
    let job = call(client.post(url("/v1/jobs")).json(&job), &token).await;
    let job = url(&format!("/v1/jobs/{}", job["id"].as_str().unwrap()));

    let taxonomies = [0, 1, 2, 3].map(|number| bytes::Bytes::from(taxonomy(number)));
    let bodies: Vec<_> = (0..40)
        .map(|number| {
            let request = client.post(url("/v1/taxonomies")).bearer_auth(&token);
            let request = request.header("content-type", "application/json");
            let body = Body::from(taxonomies[number % 4].clone());
            tokio::spawn(async move {
                let answer = request.body(body).send().await.unwrap();
                let status = answer.status().as_u16();
                (status, answer.bytes().await.map(|bytes| bytes.len()))
            })
        })
        .collect();
    let mut probes = Vec::new();
    while !bodies.iter().all(tokio::task::JoinHandle::is_finished) {
        let began = Instant::now();
        let probe = reqwest::Client::new().get(url("/healthz"));
        let answer = probe.timeout(Duration::from_secs(20)).send().await;
        assert_eq!(answer.unwrap().status(), 200);
        probes.push(began.elapsed());
        pais_test_support::poll::pace(Duration::from_millis(50)).await;
    }
    let mut statuses = std::collections::BTreeMap::new();
    for body in bodies {
        let (status, _) = body.await.unwrap();
        *statuses.entry(status).or_insert(0) += 1;
    }
    let ended = pais_test_support::poll::poll_async(Duration::from_secs(60), async || {
        let seen: Value = call(client.get(&job), &token).await;
        (seen["status"] != "queued" && seen["status"] != "running").then_some(seen)
    });
    let ended = ended.await.expect("the job did not end");
    let peak = peak(service.pid());
    probes.sort_unstable();
    // Other tests run at the same time, so a few probes may wait for a core.
    let (slow, slowest) = (probes[probes.len() * 49 / 50], probes[probes.len() - 1]);
    let number = probes.len();
    println!("{number} probes: {slow:?} to {slowest:?}; answers: {statuses:?}; peak: {peak} MiB");
    assert_eq!(
        (&ended["status"], &ended["attempt"]),
        (&json!("succeeded"), &json!(1))
    );
    assert!(slow < Duration::from_secs(1), "{slow:?} {slowest:?}");
    assert!(peak < PROCESS_MIB, "{peak} MiB");
    // Each of the four names is given once; what does not fit is refused for the moment.
    assert!(statuses.contains_key(&201), "{statuses:?}");
    let known = |status: &u16| [201, 409, 503].contains(status);
    assert!(statuses.keys().all(known), "{statuses:?}");
    service.stop();
}
