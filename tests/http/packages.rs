//! `/v1/releases/{id}/package`: what is in it, for whom, and that it is signed.

use std::collections::BTreeMap;
use std::io::Cursor;

use pais::roles::Role;
use pais_package::{PublicKey, verify};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::{Answer, send, text};
use crate::hospital::{Hospital, id};
use pais_test_support::hex::hex;

/// The files of a package, by the directory of the zip file.
pub(crate) fn files(package: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let found = verify(&mut Cursor::new(package), None).unwrap();
    assert!(found.holds(), "{:?}", found.faults);
    let mut files = BTreeMap::new();
    let mut at = 0;
    while package[at..].starts_with(b"PK\x03\x04") {
        let number =
            |from: usize| package[at + from] as usize + 256 * package[at + from + 1] as usize;
        let (size, name) = (number(18) + 65_536 * number(20), number(26));
        let start = at + 30 + name;
        let name = String::from_utf8(package[at + 30..start].to_vec()).unwrap();
        files.insert(name, package[start..start + size].to_vec());
        at = start + size;
    }
    files
}

fn json_of(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Value {
    serde_json::from_slice(&files[name]).unwrap()
}

/// The path of an anatomized release.
async fn anatomized(hospital: &Hospital) -> String {
    let job = json!({"privacy": {"model": "l_diversity", "k": 3, "l": 2},
        "roles": {"Transfuse": "insensitive"}, "release": true, "seed": 5});
    let job = hospital.done(job).await;
    let ended = hospital.get(&job).await.json(200);
    format!("/v1/releases/{}", text(&ended["release_id"]))
}

/// The key of the service, which needs no token.
async fn key(hospital: &Hospital) -> PublicKey {
    let request = hospital
        .app
        .request(reqwest::Method::GET, "/.well-known/pais-signing-key.json");
    let answer: Answer = send(request).await;
    assert_eq!(answer.json(200)["alg"], "EdDSA");
    PublicKey::from_json(&answer.bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_has_the_tables_their_description_and_the_report() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let answer = hospital.get(&format!("{release}/package")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("content-type"), "application/zip");
    let name = format!("attachment; filename=\"{}.zip\"", id(&release));
    assert_eq!(answer.header("content-disposition"), name);

    let found = verify(&mut Cursor::new(&answer.bytes), Some(&key(&hospital).await)).unwrap();
    assert!(found.holds(), "{:?}", found.faults);
    assert_eq!(found.release_id.as_deref(), Some(id(&release)));
    let files = files(&answer.bytes);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "data.csv",
            "data.parquet",
            "datapackage.json",
            "manifest.json",
            "report.html",
            "report.json"
        ]
    );
    let document = hospital.get(&release).await.json(200);
    let table = hospital.get(&format!("{release}/data")).await;
    assert!(files["data.csv"] == table.bytes);
    let parquet = hospital
        .get(&format!("{release}/data?format=parquet"))
        .await;
    assert!(files["data.parquet"] == parquet.bytes);
    let mut report = hospital.get(&format!("{release}/report")).await.json(200);
    // A package may be passed on; what the holder sees of raw values stays with the service.
    report.as_object_mut().unwrap().remove("distributions");
    assert_eq!(json_of(&files, "report.json"), report);
    assert!(files["report.html"].starts_with(b"<!DOCTYPE html>"));

    let described = json_of(&files, "datapackage.json");
    assert_eq!(described["profile"], "data-package");
    assert_eq!(described["pais"]["codebook"], document["codebook"]);
    assert_eq!(described["pais"]["cut"], document["cut"]);
    for resource in described["resources"].as_array().unwrap() {
        let content = &files[text(&resource["path"])];
        assert_eq!(resource["bytes"], content.len());
        let digest = format!("sha256:{}", hex(&Sha256::digest(content)));
        assert_eq!(resource["hash"], digest);
    }
    let job = &described["resources"][0]["schema"]["fields"][0];
    assert_eq!(job["name"], "Job");
    assert_eq!(job["pais:role"], "quasi_identifier");
    assert_eq!(job["constraints"]["enum"], document["cut"]["Job"]);
    assert_eq!(job["missingValues"], json!(["?"]));
    let schema = &described["resources"][0]["schema"];
    assert_eq!(schema["missingValues"], json!([""]));
    let sensitive = schema["fields"].as_array().unwrap().last().unwrap();
    assert!(sensitive.get("missingValues").is_none(), "{sensitive}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_the_same_until_it_changes_and_is_served_in_parts() {
    let hospital = Hospital::new().await;
    let path = format!("{}/package", hospital.release().await);
    let first = hospital.get(&path).await;
    let etag = first.header("etag").to_owned();
    let spool = hospital.app.spool.path();
    for entry in std::fs::read_dir(spool).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let again = hospital.get(&path).await;
    assert!(again.bytes == first.bytes && again.header("etag") == etag);
    let get = async |name: &str, value: &str| {
        let request = hospital.app.request(reqwest::Method::GET, &path);
        send(request.header(name, value).bearer_auth(&hospital.token)).await
    };
    assert_eq!(get("if-none-match", &etag).await.status, 304);
    let part = get("range", "bytes=0-3").await;
    assert_eq!(
        (part.status.as_u16(), &part.bytes[..]),
        (206, &b"PK\x03\x04"[..])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_gets_its_purpose_and_its_report_and_the_fetch_is_recorded() {
    let hospital = Hospital::new().await;
    let release = anatomized(&hospital).await;
    let path = format!("{release}/package");
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let get = async |token: &str| hospital.app.get(token, &path).await;
    get(&bts).await.problem(404, "not_found");
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    hospital
        .post(&format!("{release}/grants"), &grant)
        .await
        .json(201);

    let (own, theirs) = (get(&hospital.token).await, get(&bts).await);
    let (own, theirs) = (files(&own.bytes), files(&theirs.bytes));
    let described = json_of(&theirs, "datapackage.json");
    assert_eq!(described["pais"]["purpose"], "blood usage");
    assert!(
        json_of(&own, "datapackage.json")["pais"]
            .get("purpose")
            .is_none()
    );
    let report = hospital.app.get(&bts, &format!("{release}/report")).await;
    assert_eq!(json_of(&theirs, "report.json"), report.json(200));
    // What needs raw rows is for the holder only.
    let has_errors = |files| json_of(files, "report.json")["utility"]["query_error"].is_object();
    assert!(has_errors(&own) && !has_errors(&theirs));

    // The holder has fetched its own, and sees that the recipient has.
    for (organization, times) in [("hospital", 2), ("bts", 1)] {
        let auditor = hospital.app.token(organization, Role::Auditor).await;
        let events = hospital.app.get(&auditor, "/v1/audit").await.json(200);
        let of_package = |event: &&Value| event["detail"]["part"] == "package";
        let fetched = events["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(of_package);
        assert_eq!(fetched.count(), times, "{organization}");
    }
    for role in [Role::Admin, Role::Auditor] {
        let token = hospital.app.token("hospital", role).await;
        get(&token).await.problem(403, "forbidden");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_package_of_an_anatomized_release_has_all_its_tables() {
    let hospital = Hospital::new().await;
    let release = anatomized(&hospital).await;
    let tables = hospital.get(&release).await.json(200)["tables"].clone();
    let files = files(&hospital.get(&format!("{release}/package")).await.bytes);
    for table in tables.as_array().unwrap() {
        let name = text(&table["name"]);
        let csv = &files[&format!("{name}.csv")];
        assert_eq!(table["sha256"], hex(&Sha256::digest(csv)));
        assert!(files[&format!("{name}.parquet")].starts_with(b"PAR1"));
    }
    assert!(tables.as_array().unwrap().len() > 1);
}
