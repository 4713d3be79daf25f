//! `pais verify` and `pais anonymize` with the service's own documents: a dataset whose taxonomy is
//! an id, a job, and a release, as files or by their addresses.

use std::path::Path;
use std::process::Output;

use serde_json::json;
use tokio::process::Command;

use crate::app::{TestApp, text};
use crate::hospital::{Hospital, TABLE, definition, job_on};

/// A running service with a release of a dataset that names its taxonomy by id.
struct Released {
    hospital: Hospital,
    folder: tempfile::TempDir,
    dataset: String,
    job: String,
    taxonomy: String,
}

impl Released {
    async fn new() -> Self {
        let hospital = Hospital::with_app(TestApp::new().await).await;
        let mut body = definition("patients");
        let root = body["columns"][1]["taxonomy"].take();
        let taxonomy = json!({"name": "jobs", "root": root});
        let taxonomy = hospital.post("/v1/taxonomies", &taxonomy).await.json(201);
        body["columns"][1]["taxonomy"] = taxonomy["id"].clone();
        let dataset = hospital.post("/v1/datasets", &body).await.json(201);
        let dataset = format!("/v1/datasets/{}", text(&dataset["id"]));
        let submission = hospital.submit(&dataset, TABLE).await.json(201);
        let mut body = job_on(&dataset);
        body["release"] = json!(true);
        body["submissions"] = json!([submission["id"]]);
        let job = hospital.post("/v1/jobs", &body).await.json(202);
        let job = format!("/v1/jobs/{}", text(&job["id"]));
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let data = format!("/v1/releases/{}/data", text(&ended["release_id"]));
        let released = Self {
            folder: tempfile::tempdir().unwrap(),
            taxonomy: format!("/v1/taxonomies/{}", text(&taxonomy["id"])),
            hospital,
            dataset,
            job,
        };
        released.save(&data, "release.csv").await;
        std::fs::write(released.path().join("raw.csv"), TABLE).unwrap();
        released
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.hospital.app.address())
    }

    async fn save(&self, path: &str, name: &str) {
        let answer = self.hospital.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        std::fs::write(self.path().join(name), answer.text).unwrap();
    }

    /// Runs the program with the hospital's token.
    async fn pais(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pais"));
        let command = command.current_dir(self.path()).args(arguments);
        let command = command.env("PAIS_TOKEN", &self.hospital.token);
        command.output().await.unwrap()
    }
}

#[track_caller]
fn assert_holds(ran: &Output) {
    let text = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{text}{errors}");
    assert!(
        text.contains("LKC-privacy, L = 2, K = 2, C = 50 %"),
        "{text}"
    );
    assert!(text.contains("truthful             yes"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_verified_with_the_addresses_of_its_dataset_and_its_job() {
    let released = Released::new().await;
    let (dataset, job) = (
        released.address(&released.dataset),
        released.address(&released.job),
    );
    let verify = [
        "verify",
        "--schema",
        &dataset,
        "--job",
        &job,
        "release.csv",
        "--raw",
        "raw.csv",
    ];
    assert_holds(&released.pais(&verify).await);

    let mut stranger = Command::new(env!("CARGO_BIN_EXE_pais"));
    let stranger = stranger.current_dir(released.path()).args(verify);
    let refused = stranger.env("PAIS_TOKEN", "wrong").output().await.unwrap();
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(errors.contains("401"), "{errors}");
    assert!(!errors.contains("wrong"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_verified_with_saved_documents() {
    let released = Released::new().await;
    released.save(&released.dataset, "dataset.json").await;
    released.save(&released.job, "job.json").await;
    released.save(&released.taxonomy, "jobs.json").await;
    let verify = [
        "verify",
        "--schema",
        "dataset.json",
        "--job",
        "job.json",
        "release.csv",
    ];
    let with = |more: &[&'static str]| [verify.as_slice(), &["--raw", "raw.csv"], more].concat();
    let ran = released.pais(&with(&["--taxonomies", "jobs.json"])).await;
    assert_holds(&ran);

    let list = std::fs::read_to_string(released.path().join("jobs.json")).unwrap();
    std::fs::write(released.path().join("all.json"), format!("[{list}]")).unwrap();
    assert_holds(&released.pais(&with(&["--taxonomies", "all.json"])).await);
    let service = released.address("");
    let arguments = [with(&[]).as_slice(), &["--taxonomies", &service]].concat();
    assert_holds(&released.pais(&arguments).await);

    let without = released.pais(&with(&[])).await;
    let errors = String::from_utf8(without.stderr).unwrap();
    assert_eq!(without.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--taxonomies"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_of_the_service_is_anonymized_from_a_file() {
    let released = Released::new().await;
    let dataset = released.address(&released.dataset);
    let privacy = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    std::fs::write(released.path().join("j.json"), privacy.to_string()).unwrap();
    let run = [
        "anonymize",
        "--schema",
        &dataset,
        "--job",
        "j.json",
        "raw.csv",
        "-o",
        "out.csv",
    ];
    let ran = released.pais(&run).await;
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let out = std::fs::read_to_string(released.path().join("out.csv")).unwrap();
    assert_eq!(out.lines().count(), TABLE.lines().count());
}
