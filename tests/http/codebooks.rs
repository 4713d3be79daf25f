//! The codebook of a release, and what a recipient does with it on the command line.

use std::path::Path;
use std::process::Output;

use pais::roles::Role;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::app::TestApp;
use crate::hospital::{Hospital, TABLE};

/// The labels above others in the taxonomy of jobs.
const INNER: [&str; 6] = [
    "ANY_Job",
    "Blue-collar",
    "White-collar",
    "Non-Technical",
    "Technical",
    "Professional",
];

/// Runs the program in a directory, with a token.
async fn pais(directory: &Path, token: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pais"));
    let command = command.current_dir(directory).args(arguments);
    command.env("PAIS_TOKEN", token).output().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_resolves_the_labels_of_a_release() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    hospital
        .post(&format!("{release}/grants"), &grant)
        .await
        .json(201);
    let document = hospital.app.get(&bts, &release).await.json(200);
    let codebook = &document["codebook"];
    assert_eq!(codebook["organization"], json!({"name": "hospital"}));
    let columns = codebook["columns"].as_array().unwrap();
    let roles: Vec<(&str, &str)> = columns
        .iter()
        .map(|column| {
            (
                column["name"].as_str().unwrap(),
                column["role"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        roles,
        [
            ("ID", "identifier"),
            ("Job", "quasi_identifier"),
            ("Sex", "quasi_identifier"),
            ("Age", "quasi_identifier"),
            ("Transfuse", "class"),
            ("Surgery", "sensitive"),
        ]
    );
    assert_eq!(columns[3]["domain"], json!([1.0, 99.0]));
    assert_eq!(columns[1]["taxonomy"]["label"], "ANY_Job");
    let labels = labels(&columns[1]["taxonomy"]);
    for label in document["cut"]["Job"].as_array().unwrap() {
        assert!(
            labels.contains(&label.as_str().unwrap()),
            "{label} is not in the codebook"
        );
    }
    for below in labels {
        let cut = document["cut"]["Job"].as_array().unwrap();
        let is_above = INNER.contains(&below);
        assert!(
            is_above || cut.contains(&below.into()),
            "a label below the cut"
        );
    }
    assert_eq!(document["purpose"], "blood usage");
    let own = hospital.get(&release).await.json(200);
    assert!(own.get("purpose").is_none());
    assert_eq!(own["codebook"], *codebook);
}

fn labels(node: &Value) -> Vec<&str> {
    let below = node["children"].as_array().into_iter().flatten();
    let below = below.flat_map(labels);
    [node["label"].as_str().unwrap()]
        .into_iter()
        .chain(below)
        .collect()
}

fn sorted(csv: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = csv.lines().collect();
    lines.sort_unstable();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_verifies_a_release_and_maps_rows_through_its_cut() {
    let hospital = Hospital::with_app(TestApp::builder().without_workers().start().await).await;
    let release = hospital.release().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    hospital
        .post(&format!("{release}/grants"), &grant)
        .await
        .json(201);
    let folder = tempfile::tempdir().unwrap();
    let get = async |below: &str| hospital.app.get(&bts, &format!("{release}{below}")).await;
    std::fs::write(folder.path().join("R.json"), get("").await.bytes).unwrap();
    std::fs::write(folder.path().join("data.csv"), get("/data").await.bytes).unwrap();
    let address = format!("http://{}{release}", hospital.app.address());
    for document in ["R.json", &address] {
        let ran = pais(
            folder.path(),
            &bts,
            &["verify", "--release", document, "data.csv"],
        )
        .await;
        let found = String::from_utf8_lossy(&ran.stdout);
        assert!(
            ran.status.success(),
            "{found}{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        assert!(
            found.contains("LKC-privacy, L = 2, K = 2, C = 50 %"),
            "{found}"
        );
    }
    // A row alone breaks the model.
    let mut rows = std::fs::read_to_string(folder.path().join("data.csv")).unwrap();
    rows.push_str("ANY_Job,*,\"[1,99]\",N,Transgender\n");
    std::fs::write(folder.path().join("wrong.csv"), rows).unwrap();
    let ran = pais(
        folder.path(),
        &bts,
        &["verify", "--release", "R.json", "wrong.csv"],
    )
    .await;
    assert_eq!(
        ran.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&ran.stdout)
    );

    // Another table is not that of the release, even where the model holds.
    let data = std::fs::read_to_string(folder.path().join("data.csv")).unwrap();
    let twice = format!("{data}{}", data.split_once('\n').unwrap().1);
    let described = get("").await.json(200);
    let replaced = |column: &str, other: &str| {
        let label = described["cut"][column][0].as_str().unwrap();
        data.replace(label, other)
    };
    let another = replaced("Age", "[2,3)");
    let beyond = replaced("Age", "[1,999]");
    let unknown = replaced("Job", "Nonsense");
    assert!(beyond != data && unknown != data);
    for (other, status) in [(twice, 1), (another, 1), (unknown, 2), (beyond, 2)] {
        std::fs::write(folder.path().join("other.csv"), other).unwrap();
        let verify = ["verify", "--release", "R.json", "other.csv"];
        let ran = pais(folder.path(), &bts, &verify).await;
        assert_eq!(ran.status.code(), Some(status));
        assert!(ran.stdout.is_empty());
        assert!(!String::from_utf8_lossy(&ran.stderr).contains("Nonsense"));
    }

    for mixed in [
        &[
            "verify",
            "--release",
            "R.json",
            "--job",
            "R.json",
            "data.csv",
        ][..],
        &[
            "verify",
            "--release",
            "R.json",
            "--raw",
            "data.csv",
            "data.csv",
        ],
        &["verify", "data.csv"],
    ] {
        assert_eq!(
            pais(folder.path(), &bts, mixed).await.status.code(),
            Some(2)
        );
    }

    // The raw rows become the released ones, in another order; labels below the cut need the
    // dataset's schema.
    std::fs::write(folder.path().join("new.csv"), TABLE).unwrap();
    let dataset = crate::hospital::definition("patients");
    std::fs::write(folder.path().join("S.json"), dataset.to_string()).unwrap();
    let map = [
        "transform",
        "--release",
        "R.json",
        "--schema",
        "S.json",
        "new.csv",
    ];
    let ran = pais(folder.path(), &bts, &map).await;
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let mapped = String::from_utf8(ran.stdout).unwrap();
    let released = get("/data").await.text;
    assert!(sorted(&mapped) == sorted(&released));

    let another =
        json!({"name": "other", "columns": [{"name": "zip", "role": "quasi_identifier"}]});
    std::fs::write(folder.path().join("S.json"), another.to_string()).unwrap();
    let refused = pais(folder.path(), &bts, &map).await;
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("it does not declare the column"),
        "{errors}"
    );
    std::fs::write(folder.path().join("S.json"), dataset.to_string()).unwrap();

    std::fs::write(
        folder.path().join("new.csv"),
        "Job,Sex,Age\nDoctor,M,1000\n",
    )
    .unwrap();
    let refused = pais(folder.path(), &bts, &map).await;
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("Age") && !errors.contains("1000"),
        "an error without its place"
    );
}

/// Missing numbers at the root are generalized with the rest, and cells of sensitive and class columns lose the spaces
/// around them.
#[tokio::test(flavor = "multi_thread")]
async fn raw_rows_with_missing_and_spaced_cells_are_mapped_as_the_release_has_them() {
    let hospital = Hospital::new().await;
    let workers = hospital.work();
    let folder = tempfile::tempdir().unwrap();
    for (name, column) in [
        ("grown", json!({"kind": "numeric"})),
        ("dates", json!({"kind": "date"})),
        (
            "ranges",
            json!({"kind": "numeric", "taxonomy": {"generate": "ranges", "widths": [10, 20]}}),
        ),
    ] {
        let mut q = column;
        q["name"] = json!("q");
        q["role"] = json!("quasi_identifier");
        let columns =
            json!([q, {"name": "s", "role": "sensitive"}, {"name": "c", "role": "class"}]);
        let definition = json!({"name": name, "columns": columns});
        let made = hospital.post("/v1/datasets", &definition).await.json(201);
        let dataset = format!("/v1/datasets/{}", made["id"].as_str().unwrap());
        let of_date = |cell: &'static str| match name {
            "dates" if !cell.is_empty() => format!("2020-01-0{cell}"),
            _ => cell.to_owned(),
        };
        let rows = ["1", "2", "", "3"].map(|cell| format!("{}, x ,y \n", of_date(cell)));
        let rows = format!("q,s,c\n{}", rows.concat());
        hospital.submit(&dataset, rows.clone()).await.json(201);
        let job = json!({"dataset_id": made["id"], "release": true,
            "privacy": {"model": "k_anonymity", "k": 4}});
        let made = hospital.post("/v1/jobs", &job).await.json(202);
        let ended = hospital
            .ended(&format!("/v1/jobs/{}", made["id"].as_str().unwrap()))
            .await;
        let release = format!("/v1/releases/{}", ended["release_id"].as_str().unwrap());
        let released = hospital.get(&format!("{release}/data")).await.text;
        let document = hospital.get(&release).await.text;
        std::fs::write(folder.path().join("R.json"), document).unwrap();
        std::fs::write(folder.path().join("new.csv"), rows).unwrap();
        let map = ["transform", "--release", "R.json", "new.csv"];
        let ran = pais(folder.path(), &hospital.token, &map).await;
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{name}: {errors}");
        let mapped = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(sorted(&mapped), sorted(&released), "{name}");
    }
    workers.stop().await;
}

/// The release of a job is verified by the recipient's document alone.
#[tokio::test(flavor = "multi_thread")]
async fn every_recoding_is_verified_by_the_document_of_its_release() {
    let hospital = Hospital::new().await;
    let folder = tempfile::tempdir().unwrap();
    for job in [
        json!({"recoding": "local"}),
        json!({"recoding": "local", "utility": {"objective": "ncp"}}),
        json!({"privacy": {"model": "k_anonymity", "k": 3}, "suppression_limit": 0.2}),
        json!({"privacy": {"model": "t_closeness", "k": 2, "t": 0.5}}),
        json!({"privacy": {"model": "distinct_l_diversity", "k": 2, "l": 2}}),
    ] {
        let mut body = job.clone();
        body["release"] = json!(true);
        let ended = hospital.get(&hospital.done(body).await).await.json(200);
        let release = format!("/v1/releases/{}", ended["release_id"].as_str().unwrap());
        for (path, name) in [("", "R.json"), ("/data", "data.csv")] {
            let answer = hospital.get(&format!("{release}{path}")).await;
            std::fs::write(folder.path().join(name), answer.bytes).unwrap();
        }
        let verify = ["verify", "--release", "R.json", "data.csv"];
        let ran = pais(folder.path(), &hospital.token, &verify).await;
        let found = String::from_utf8_lossy(&ran.stdout);
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{job}: {found}{errors}");
        assert!(found.contains("holds                yes"), "{job}: {found}");
    }
}
