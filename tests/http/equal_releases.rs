//! Recipients of equal releases receive equal documents, whichever rows are suppressed.

use std::collections::BTreeMap;

use pais::roles::Role;
use serde_json::{Value, json};

use crate::app::text;
use crate::hospital::{Hospital, id};
use crate::packages::files;

/// Columns with hierarchies that are made. No two persons of one sex are alike in any of the others.
fn columns() -> Value {
    json!([
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "pay", "role": "quasi_identifier", "kind": "numeric",
         "taxonomy": {"generate": "ranges", "widths": [20, 40]}},
        {"name": "zip", "role": "quasi_identifier", "taxonomy": {"generate": "mask_right"}},
        {"name": "born", "role": "quasi_identifier", "kind": "date",
         "taxonomy": {"generate": "age", "at": "2026-01-01"}},
        {"name": "ill", "role": "sensitive"},
    ])
}

fn table(suppressed: &str) -> String {
    let row = |row: usize| {
        let (sex, person) = (["f", "m"][row / 6], row % 6 + 1);
        let ill = ["flu", "cold"][row % 2];
        format!(
            "{sex},{},{person}{person},19{person}0-05-05,{ill}\n",
            115 * person
        )
    };
    let rows: String = (0..12).map(row).collect();
    format!("sex,pay,zip,born,ill\n{rows}other,{suppressed}\n")
}

/// Fields of documents that are ids, times, or digests of rows in random order.
const OF_THE_RELEASE_ALONE: [&str; 9] = [
    "id",
    "job_id",
    "dataset_id",
    "release_id",
    "created_at",
    "created",
    "sha256",
    "bytes",
    "hash",
];

/// A document without what is of one release alone.
fn plain(mut document: Value, ids: &[&str]) -> Value {
    match &mut document {
        Value::Object(fields) => {
            fields.retain(|name, _| !OF_THE_RELEASE_ALONE.contains(&name.as_str()));
            for value in fields.values_mut() {
                *value = plain(value.take(), ids);
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = plain(item.take(), ids);
            }
        }
        Value::String(text) => *text = without(text, ids),
        _ => {}
    }
    document
}

fn without(text: &str, ids: &[&str]) -> String {
    let mut text = text.to_owned();
    for id in ids {
        text = text.replace(id, "");
    }
    // The time on a page has minutes.
    let parts = text.split(" UTC").map(|part| {
        let is_time = |char: char| char.is_ascii_digit() || char == ':';
        part.trim_end_matches(is_time)
    });
    parts.collect::<Vec<_>>().join(" UTC")
}

/// Everything that a recipient receives of the release of a table with this suppressed row, from a
/// hospital of its own.
async fn received(suppressed: &str) -> BTreeMap<String, String> {
    let hospital = Hospital::new().await;
    let definition = json!({"name": "staff", "columns": columns()});
    let dataset = hospital.post("/v1/datasets", &definition).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&dataset["id"]));
    hospital.submit(&dataset, table(suppressed)).await.json(201);
    let job = json!({"privacy": {"model": "k_anonymity", "k": 6}, "suppression_limit": 0.1,
        "release": true});
    let job = hospital.job(&dataset, job).await;
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let release = format!("/v1/releases/{}", text(&ended["release_id"]));
    let own = hospital.get(&release).await.json(200);
    assert!(own["step"].is_number(), "the holder sees the step: {own}");
    let token = hospital.app.token("bts", Role::Recipient).await;
    let grant = json!({"recipient": "bts", "purpose": "research"});
    let granted = hospital.post(&format!("{release}/grants"), &grant).await;
    granted.json(201);
    let ids = [id(&release), id(&job), id(&dataset)];
    let get = async |path: &str| hospital.app.get(&token, path).await;

    let mut documents = BTreeMap::new();
    let mut add = |name: &str, document: Value| {
        documents.insert(name.to_owned(), plain(document, &ids).to_string());
    };
    let shown = get(&release).await.json(200);
    assert!(shown.get("step").is_none(), "{shown}");
    add("release", shown);
    let list = get("/v1/releases").await.json(200);
    let mut items = list["items"].as_array().unwrap().iter();
    let item = items.find(|item| item["id"] == id(&release)).unwrap();
    assert!(item.get("step").is_none(), "{item}");
    add("list", item.clone());
    add("report", get(&format!("{release}/report")).await.json(200));
    let package = files(&get(&format!("{release}/package")).await.bytes);
    for name in ["datapackage.json", "report.json"] {
        add(name, serde_json::from_slice(&package[name]).unwrap());
    }
    let page = String::from_utf8(package["report.html"].clone()).unwrap();
    // The digest is that of rows in random order.
    let page = page.replace(text(&own["sha256"]), "");
    add("report.html", json!(page));
    let rows = String::from_utf8(package["data.csv"].clone()).unwrap();
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.sort_unstable();
    documents.insert("data.csv".to_owned(), rows.join("\n"));
    documents
}

#[tokio::test(flavor = "multi_thread")]
async fn recipients_of_equal_releases_receive_equal_documents() {
    let first = received("50,15,1970-01-01,flu").await;
    assert!(
        first["data.csv"].contains("\"[80,720)\""),
        "{}",
        first["data.csv"]
    );
    assert!(
        first["release"].contains("\"suppressed_rows\":1"),
        "{}",
        first["release"]
    );
    for suppressed in [
        "995,1234567890123,1891-12-31,cold",
        "99500,1*#,2031-01-01,HIV",
        "-80,9,1970-01-01,flu",
    ] {
        let other = received(suppressed).await;
        for (name, document) in &first {
            assert_eq!(*document, other[name], "{name}: {suppressed}");
        }
    }
}
