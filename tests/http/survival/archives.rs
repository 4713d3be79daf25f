//! The archive of the audit log, made beside a running service.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::process::{ServiceProcess, call, pais};

/// What a command prints, and its exit status.
async fn audit(data: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let mut command = pais(data);
    command.arg("audit").args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.unwrap().unwrap();
    let mut printed = String::from_utf8(output.stdout).unwrap();
    printed.push_str(&String::from_utf8_lossy(&output.stderr));
    (printed, output.status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_archived_beside_a_running_service() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = ServiceProcess::start(&data, &[]).await;
    let holder = service.token("hospital", "holder");
    let auditor = service.token("hospital", "auditor");
    // As large as an event can be.
    let names: Vec<String> = (0..1000).map(|number| format!("{number:0>1024}")).collect();
    let policy = serde_json::json!({ "quasi_identifiers": names });
    let client = reqwest::Client::new();
    let put = client.put(format!("{}/v1/policy", service.base));
    let answer = put.bearer_auth(&holder).json(&policy).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let file = folder.path().join("2026.ndjson");
    let path = file.to_str().unwrap();
    let archive = [
        "archive",
        "--before",
        "2999-01-01T00:00:00Z",
        "--output",
        path,
    ];
    let (printed, status) = audit(&data, &archive).await;
    assert_eq!(status, Some(0), "{printed}");
    assert!(printed.contains("events of 1 logs are in"), "{printed}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["seq"], &first["action"]),
        (&1.into(), &"organization.created".into())
    );

    // The service goes on, and an existing file is not replaced.
    let request = client.post(format!("{}/v1/datasets", service.base));
    call(request.json(&crate::hospital::definition("d")), &holder).await;
    let log = client.get(format!("{}/v1/audit", service.base));
    let log = call(log, &auditor).await;
    let actions = log["items"].as_array().unwrap().iter();
    let actions: Vec<&str> = actions
        .filter_map(|event| event["action"].as_str())
        .collect();
    assert_eq!(actions, ["dataset.created", "audit.archived"]);
    let (printed, status) = audit(&data, &archive).await;
    assert_eq!(status, Some(2), "{printed}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);

    let verify = ["verify", "--archive", path];
    let (printed, status) = audit(&data, &verify).await;
    assert_eq!(status, Some(0), "{printed}");
    assert!(printed.contains("every one is in its place"), "{printed}");
    std::fs::write(
        &file,
        text.replace("organization.created", "organization.enabled"),
    )
    .unwrap();
    let (printed, status) = audit(&data, &verify).await;
    assert_eq!(status, Some(1), "{printed}");
    std::fs::write(&file, &text[..text.len() - 2]).unwrap();
    let (printed, status) = audit(&data, &verify).await;
    assert_eq!(status, Some(2), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_stopped_service_are_chained_when_the_log_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = ServiceProcess::start(&data, &[]).await;
    service.token("hospital", "holder");
    service.stop();
    let events = async || {
        let (printed, status) = audit(&data, &["verify"]).await;
        assert_eq!(status, Some(0), "{printed}");
        assert!(!printed.contains("not protected"), "{printed}");
        let line = printed
            .lines()
            .find(|line| line.contains(" logs: ") || line.contains(" log: "));
        let number = line.and_then(|line| line.split(' ').next());
        number.unwrap().parse::<u64>().unwrap()
    };
    let before = events().await;
    let mut command = pais(&data);
    let names = ["--organization", "hospital", "--role", "holder"];
    let made = command.args(["token", "create"]).args(names).output();
    assert!(made.unwrap().status.success());
    assert_eq!(events().await, before + 1);
}
