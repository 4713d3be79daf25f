//! Publications: editions of new rows, their labels, grants, approval, and what their readers get.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pais::roles::Role;
use pais_test_support::poll::poll_async;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{Answer, TestApp, send, text};
use crate::database::lock_waits;
use crate::hospital::{Hospital, id};
use crate::process::{ServiceProcess, call, pais};
use crate::warnings::codes;

pub(crate) const JOB: fn() -> Value = || {
    json!({
        "privacy": { "model": "lkc", "l": 2, "k": 2, "c": 1.0 },
        "utility": { "objective": "ncp" },
    })
};

/// A dataset of visits with a tree of wards.
pub(crate) async fn visits(hospital: &Hospital, persons: &str) -> String {
    let ward = |floor: &str| {
        let children: Vec<Value> = ["1", "2"]
            .iter()
            .map(|ward| json!({ "label": format!("{floor}{ward}") }))
            .collect();
        json!({ "label": floor, "children": children })
    };
    let columns = json!([
        { "name": "person", "role": persons },
        { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99] },
        { "name": "ward", "role": "quasi_identifier",
          "taxonomy": { "label": "all", "children": [ward("a"), ward("b")] } },
        { "name": "diagnosis", "role": "sensitive" },
    ]);
    let body = json!({ "name": "visits", "columns": columns });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    format!("/v1/datasets/{}", text(&made["id"]))
}

/// A month of visits, of persons from `first` on: each age and ward twice.
pub(crate) fn month(first: usize) -> String {
    let mut rows = "person,age,ward,diagnosis\n".to_owned();
    for number in 0..16 {
        let (age, ward) = (
            [20, 70][number / 2 % 2],
            ["a1", "a2", "b1", "b2"][number / 4],
        );
        let person = first + number;
        rows += &format!("p{person},{age},{ward},d{}\n", number % 3);
    }
    rows
}

pub(crate) async fn publication(
    hospital: &Hospital,
    dataset: &str,
    trigger: &str,
    job: Value,
) -> String {
    let body = json!({
        "name": "monthly", "dataset_id": id(dataset), "job": job, "trigger": trigger,
        "recipients": [{ "recipient": "bts", "purpose": "blood usage" }],
    });
    let made = hospital.post("/v1/publications", &body).await.json(201);
    assert_eq!(made["recipients"][0]["recipient"]["name"], "bts");
    assert_eq!(made["trigger"], trigger);
    format!("/v1/publications/{}", text(&made["id"]))
}

pub(crate) async fn editions(hospital: &Hospital, publication: &str) -> Vec<Value> {
    let found = hospital
        .get(&format!("{publication}/editions"))
        .await
        .json(200);
    found["items"].as_array().unwrap().clone()
}

async fn change(
    hospital: &Hospital,
    method: Method,
    token: &str,
    path: &str,
    body: &Value,
) -> Answer {
    let request = hospital.app.request(method, path).bearer_auth(token);
    send(request.json(body)).await
}

/// Sets the policy that a second person approves each release.
async fn require_approval(hospital: &Hospital, token: &str) {
    let policy = json!({ "require_approval": true });
    let put = change(hospital, Method::PUT, token, "/v1/policy", &policy);
    put.await.json(200);
}

/// The edition with a number, once it has ended or waits for approval.
pub(crate) async fn settled(hospital: &Hospital, publication: &str, number: usize) -> Value {
    let settled = poll_async(Duration::from_secs(60), async || {
        let found = editions(hospital, publication).await;
        let edition = found.get(number - 1)?;
        let is_under_way = ["queued", "running"].contains(&text(&edition["status"]));
        (!is_under_way).then(|| edition.clone())
    });
    settled.await.expect("an edition is not settled after 60 s")
}

pub(crate) async fn published(hospital: &Hospital, publication: &str, number: usize) -> Value {
    let edition = settled(hospital, publication, number).await;
    assert_eq!(edition["status"], "published", "{edition}");
    edition
}

fn csv(answer: &Answer) -> Vec<BTreeMap<String, String>> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut reader = csv::Reader::from_reader(&answer.bytes[..]);
    reader.deserialize().map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_submission_becomes_an_edition_with_the_labels_of_the_first() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    assert!(editions(&hospital, &publication).await.is_empty());
    let workers = hospital.work();
    let sent = hospital.submit(&dataset, month(0)).await.json(201);
    let stream = hospital
        .app
        .request(Method::GET, &format!("{publication}/events"));
    let mut stream = stream.bearer_auth(&hospital.token).send().await.unwrap();
    // It is queued before the submission is answered.
    assert_eq!(editions(&hospital, &publication).await.len(), 1);
    let first = published(&hospital, &publication, 1).await;
    assert_eq!(first["submissions"], json!([sent["id"]]));
    assert_eq!(
        (&first["rows"], &first["held_back_rows"]),
        (&json!(16), &json!(0))
    );
    let watched = tokio::time::timeout(Duration::from_secs(60), async {
        let mut seen = String::new();
        while !seen.contains("\"status\":\"published\"") {
            let chunk = stream.chunk().await.unwrap().expect("the stream goes on");
            seen += &String::from_utf8_lossy(&chunk);
        }
        seen
    });
    let watched = watched.await.expect("no event of the published edition");
    assert!(watched.contains("event: edition"), "{watched}");
    hospital.submit(&dataset, month(100)).await.json(201);
    let second = published(&hospital, &publication, 2).await;
    workers.stop().await;

    let release = |edition: &Value| format!("/v1/releases/{}", text(&edition["release_id"]));
    let one = hospital.get(&release(&first)).await.json(200);
    let two = hospital.get(&release(&second)).await.json(200);
    assert_eq!(one["cut"], two["cut"]);
    let place = json!({ "publication_id": id(&publication), "number": 2 });
    assert_eq!((&two["edition"], &two["rows"]), (&place, &json!(16)));

    // The recipient finds both, without what is the holder's.
    let list = hospital
        .app
        .get(&analyst, "/v1/publications")
        .await
        .json(200);
    let seen: BTreeSet<&str> = list["items"][0]
        .as_object()
        .unwrap()
        .keys()
        .map(|it| &**it)
        .collect();
    assert_eq!(seen, BTreeSet::from(["created_at", "holder", "id", "name"]));
    let path = format!("{publication}/editions?after=1&wait=1");
    let found = hospital.app.get(&analyst, &path).await.json(200);
    let item = &found["items"][0];
    let seen: BTreeSet<&str> = item.as_object().unwrap().keys().map(|it| &**it).collect();
    let expected = [
        "is_base",
        "number",
        "published_at",
        "release_id",
        "rows",
        "sha256",
    ];
    assert_eq!(seen, BTreeSet::from(expected));
    assert_eq!(
        (&first["is_base"], &item["is_base"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&item["number"], &item["sha256"]),
        (&json!(2), &two["sha256"])
    );
    let manifest = format!("{publication}/manifest");
    let manifest = hospital.app.get(&analyst, &manifest).await.json(200);
    assert_eq!(manifest["editions"].as_array().unwrap().len(), 2);

    let data = hospital
        .app
        .get(&analyst, &format!("{publication}/data"))
        .await;
    let rows = csv(&data);
    assert!(data.text.starts_with("edition,"), "{}", data.text);
    let of = |number: &str| rows.iter().filter(|row| row["edition"] == number).count();
    assert_eq!((rows.len(), of("1"), of("2")), (32, 16, 16));
    let again = hospital
        .app
        .request(Method::GET, &format!("{publication}/data"));
    let again = again
        .bearer_auth(&analyst)
        .header("if-none-match", data.header("etag"));
    assert_eq!(send(again).await.status, 304);
    let common = format!("{publication}/data?editions=common&format=ndjson");
    let common = hospital.app.get(&analyst, &common).await;
    assert_eq!(common.status, 200);
    assert_eq!(common.text.lines().count(), 32);
    let unknown = format!("{publication}/data?editions=finest");
    hospital
        .get(&unknown)
        .await
        .problem(400, "invalid_parameter");
    // The fetch is one of each edition's release.
    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let events = "/v1/audit?action=release.fetched";
    let events = hospital.app.get(&auditor, events).await.json(200);
    assert!(events["items"].as_array().unwrap().len() >= 4);
    let events = "/v1/audit?action=edition.published";
    let events = hospital.app.get(&auditor, events).await.json(200);
    assert_eq!(events["items"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn common_labels_cover_an_edition_that_needed_coarser_ones() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "manual", JOB()).await;
    let path = format!("{publication}/editions");
    hospital
        .post(&path, &json!({}))
        .await
        .problem(409, "nothing_new");
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    hospital.post(&path, &json!({})).await.json(202);
    let first = published(&hospital, &publication, 1).await;
    hospital
        .post(&path, &json!({}))
        .await
        .problem(409, "nothing_new");
    // One row on each ward of floor b: it needs the label `b`.
    let rows = "person,age,ward,diagnosis\nq1,20,a1,d0\nq2,20,a1,d1\nq3,20,b1,d0\nq4,20,b2,d1\n";
    hospital.submit(&dataset, rows).await.json(201);
    hospital.post(&path, &json!({})).await.json(202);
    let second = published(&hospital, &publication, 2).await;
    workers.stop().await;
    let cut = async |edition: &Value| {
        let path = format!("/v1/releases/{}", text(&edition["release_id"]));
        hospital.get(&path).await.json(200)["cut"]["ward"].clone()
    };
    assert_eq!(cut(&first).await, json!(["a1", "a2", "b1", "b2"]));
    assert_eq!(cut(&second).await, json!(["a1", "b"]));
    let labels = async |editions: &str| -> BTreeSet<String> {
        let data = hospital
            .get(&format!("{publication}/data?editions={editions}"))
            .await;
        csv(&data)
            .into_iter()
            .map(|mut row| row.remove("ward").unwrap())
            .collect()
    };
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let released: BTreeSet<String> = names(&["a1", "a2", "b", "b1", "b2"]);
    assert_eq!(labels("as_released").await, released);
    let common: BTreeSet<String> = names(&["a1", "a2", "b"]);
    assert_eq!(labels("common").await, common);

    let deleted = hospital.app.delete(&hospital.token, &dataset).await;
    assert!(deleted.status.is_success());
    hospital
        .post(&path, &json!({}))
        .await
        .problem(409, "dataset_deleted");
}

/// The labels of the wards in the rows of each edition.
async fn wards(hospital: &Hospital, publication: &str, labels: &str) -> Vec<BTreeSet<String>> {
    let path = format!("{publication}/data?editions={labels}");
    let mut wards: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for mut row in csv(&hospital.get(&path).await) {
        let edition = row["edition"].parse().unwrap();
        let ward = row.remove("ward").unwrap();
        wards.entry(edition).or_default().insert(ward);
    }
    wards.into_values().collect()
}

/// Two rows on each floor, in wards of their own.
const FLOORS: &str = "person,age,ward,diagnosis
q1,20,a1,d0
q2,20,a2,d1
q3,20,b1,d0
q4,20,b2,d1
";

#[tokio::test(flavor = "multi_thread")]
async fn an_edition_of_many_more_rows_is_a_new_base_that_later_ones_continue() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, FLOORS).await.json(201);
    published(&hospital, &publication, 1).await;
    hospital.submit(&dataset, month(0)).await.json(201);
    published(&hospital, &publication, 2).await;
    hospital.submit(&dataset, month(100)).await.json(201);
    published(&hospital, &publication, 3).await;
    workers.stop().await;
    let is_base = |editions: &[Value]| -> Vec<Value> {
        let editions = editions.iter();
        editions.map(|edition| edition["is_base"].clone()).collect()
    };
    let expected = [json!(true), json!(true), json!(false)];
    assert_eq!(is_base(&editions(&hospital, &publication).await), expected);
    let manifest = format!("{publication}/manifest");
    let manifest = hospital.app.get(&analyst, &manifest).await.json(200);
    assert_eq!(is_base(manifest["editions"].as_array().unwrap()), expected);
    let set = |names: &[&str]| -> BTreeSet<String> {
        let names = names.iter();
        names.map(|&name| name.to_owned()).collect()
    };
    let (floors, all) = (set(&["a", "b"]), set(&["a1", "a2", "b1", "b2"]));
    let released = wards(&hospital, &publication, "as_released").await;
    assert_eq!(released, [floors.clone(), all.clone(), all]);
    let common = wards(&hospital, &publication, "common").await;
    assert_eq!(common, [floors.clone(), floors.clone(), floors]);
}

/// Each person comes in both months. The second one has twice the rows, so that a base is tried, whose
/// labels would leave a returning person alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_base_that_would_single_somebody_out_is_not_made() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, FLOORS).await.json(201);
    published(&hospital, &publication, 1).await;
    let again = FLOORS
        .replace("d1", "d2")
        .replace("person,age,ward,diagnosis\n", "");
    hospital.submit(&dataset, month(0) + &again).await.json(201);
    let second = published(&hospital, &publication, 2).await;
    workers.stop().await;
    assert_eq!(
        (
            &second["is_base"],
            &second["rows"],
            &second["held_back_rows"]
        ),
        (&json!(false), &json!(20), &json!(0)),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_who_would_be_singled_out_wait_and_nothing_is_lost() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    published(&hospital, &publication, 1).await;
    // Person 0 comes again, alone of the sixteen, beside sixteen new ones.
    let rows = month(100) + "p0,20,a1,d1\n";
    hospital.submit(&dataset, rows).await.json(201);
    let second = published(&hospital, &publication, 2).await;
    assert_eq!(
        (&second["rows"], &second["held_back_rows"]),
        (&json!(16), &json!(1))
    );
    // With all the others of the first month, nobody is alone.
    let rows: String = month(0)
        .lines()
        .filter(|row| !row.starts_with("p0,"))
        .fold(String::new(), |rows, row| {
            rows + &row.replace("d0", "d1") + "\n"
        });
    hospital.submit(&dataset, rows).await.json(201);
    let third = published(&hospital, &publication, 3).await;
    assert_eq!(
        (&third["rows"], &third["held_back_rows"]),
        (&json!(16), &json!(0))
    );
    let submissions = third["submissions"].as_array().unwrap();
    assert_eq!(
        submissions.len(),
        2,
        "the held-back row is of the second submission"
    );
    workers.stop().await;

    // The decision of the releases together agrees.
    let path = format!("/v1/releases/{}", text(&third["release_id"]));
    let found = hospital
        .get(&format!("{path}/composition?recipient=bts"))
        .await
        .json(200);
    assert_eq!(found["holds"], true, "{found}");
    assert_eq!(found["releases"].as_array().unwrap().len(), 3);
    // The recipient learns nothing of what waits.
    let seen = hospital
        .app
        .get(&analyst, &format!("{publication}/editions"))
        .await;
    assert!(!seen.text.contains("held_back"));
    // Other releases of the job would be of other rows.
    let body = json!({ "job_id": third["job_id"], "step": 0 });
    hospital
        .post("/v1/releases", &body)
        .await
        .problem(409, "conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_published_fails_and_its_rows_join_the_next_edition() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    let rows = "person,age,ward,diagnosis\np900,20,a1,d0\n";
    hospital.submit(&dataset, rows).await.json(201);
    let first = settled(&hospital, &publication, 1).await;
    assert_eq!(first["status"], "failed");
    assert_eq!(first["error"]["code"], "not_anonymizable", "{first}");
    hospital.submit(&dataset, month(0)).await.json(201);
    let second = published(&hospital, &publication, 2).await;
    assert_eq!(second["rows"], 17);
    // Nothing is left for a third, and a failed one is not tried without new rows.
    workers.stop().await;
    assert_eq!(editions(&hospital, &publication).await.len(), 2);
}

/// Drafts propose such a hierarchy for codes, and a rare diagnosis is not in each month.
#[tokio::test(flavor = "multi_thread")]
async fn an_edition_without_a_listed_value_is_published_with_a_warning() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let columns = json!([
        { "name": "ward", "role": "quasi_identifier" },
        { "name": "diagnosis", "role": "sensitive", "taxonomy": { "generate": "prefix" } },
    ]);
    let body = json!({ "name": "visits", "columns": columns });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    let mut job = JOB();
    job["privacy"] = json!({ "model": "lkc", "l": 1, "k": 2, "c": 0.6,
        "sensitive_values": { "diagnosis": ["B20", "I10"] } });
    let publication = publication(&hospital, &dataset, "submission", job).await;
    let workers = hospital.work();
    let month = |diagnosis: &str| {
        let ward = |ward| format!("{ward},I10\n{ward},{diagnosis}\n").repeat(4);
        format!("ward,diagnosis\n{}{}", ward("a"), ward("b"))
    };
    for (number, diagnosis, expected) in [
        (
            1,
            "J45",
            json!(["listed_value_absent", "nothing_generalized"]),
        ),
        (2, "B20", json!(["nothing_generalized"])),
        (
            3,
            "J45",
            json!(["listed_value_absent", "nothing_generalized"]),
        ),
    ] {
        hospital.submit(&dataset, month(diagnosis)).await.json(201);
        let edition = published(&hospital, &publication, number).await;
        let release = format!("/v1/releases/{}", text(&edition["release_id"]));
        let release = hospital.get(&release).await.json(200);
        let warnings = release["warnings"].as_array().unwrap().iter();
        let codes: Vec<&Value> = warnings.map(|warning| &warning["code"]).collect();
        assert_eq!(json!(codes), expected, "{release}");
    }
    workers.stop().await;
}

/// A release of all rows of a dataset, granted to `bts`.
async fn granted_release(hospital: &Hospital, dataset: &str) -> String {
    let mut job = JOB();
    job["release"] = json!(true);
    job["acknowledge_unchanged"] = json!({ "person": "the numbers are of this test" });
    let job = hospital.job(dataset, job).await;
    let ended = hospital.ended(&job).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    format!("/v1/releases/{}", text(&ended["release_id"]))
}

async fn grant(hospital: &Hospital, release: &str) {
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    let path = format!("{release}/grants");
    hospital.post(&path, &grant).await.json(201);
}

/// Each row is a person. A release of rows that are deleted in part has rows of the edition in its other
/// part: what both say together cannot be decided.
#[tokio::test(flavor = "multi_thread")]
async fn no_edition_of_rows_of_a_known_release_is_published_undecided() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let workers = hospital.work();
    let deleted = hospital.submit(&dataset, month(0)).await.json(201);
    hospital.submit(&dataset, month(100)).await.json(201);
    let known = granted_release(&hospital, &dataset).await;
    grant(&hospital, &known).await;
    let path = format!("{dataset}/submissions/{}", text(&deleted["id"]));
    let gone = hospital.app.delete(&hospital.token, &path).await;
    assert_eq!(gone.status, 204, "{}", gone.text);
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let first = settled(&hospital, &publication, 1).await;
    assert_eq!(first["status"], "failed", "{first}");
    assert_eq!(first["error"]["code"], "composition_risk", "{first}");
    assert!(text(&first["error"]["detail"]).contains(id(&known)));
    workers.stop().await;
}

/// A release whose rows are all deleted says nothing about other persons.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_release_of_other_persons_keeps_no_edition_back() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let workers = hospital.work();
    let deleted = hospital.submit(&dataset, month(0)).await.json(201);
    let known = granted_release(&hospital, &dataset).await;
    grant(&hospital, &known).await;
    hospital.submit(&dataset, month(100)).await.json(201);
    let path = format!("{dataset}/submissions/{}", text(&deleted["id"]));
    hospital.app.delete(&hospital.token, &path).await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let first = published(&hospital, &publication, 1).await;
    assert_eq!(first["rows"], 16);
    workers.stop().await;
}

/// The job of the second edition reads its rows alone. A release that is granted before it runs has
/// further rows, so that the job does not decide it.
#[tokio::test(flavor = "multi_thread")]
async fn an_edition_is_decided_again_with_a_release_of_rows_that_its_job_does_not_read() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "manual", JOB()).await;
    let path = format!("{publication}/editions");
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    hospital.post(&path, &json!({})).await.json(202);
    published(&hospital, &publication, 1).await;
    hospital.submit(&dataset, month(100)).await.json(201);
    let known = granted_release(&hospital, &dataset).await;
    workers.stop().await;
    let second = hospital.post(&path, &json!({})).await.json(202);
    grant(&hospital, &known).await;
    let workers = hospital.work();
    let decided = published(&hospital, &publication, 2).await;
    workers.stop().await;
    assert_ne!(decided["job_id"], second["job_id"], "{decided}");
    let job = format!("/v1/jobs/{}", text(&second["job_id"]));
    let job = hospital.get(&job).await.json(200);
    let release = format!("/v1/releases/{}", text(&job["release_id"]));
    let reason = hospital.get(&release).await.json(200)["withdrawn"]["reason"].clone();
    assert!(text(&reason).contains("edition 2"), "{reason}");
    let path = format!("/v1/releases/{}", text(&decided["release_id"]));
    let path = format!("{path}/composition?recipient=bts");
    let found = hospital.get(&path).await.json(200);
    assert_eq!(found["holds"], true, "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edition_waits_for_approval_and_its_grants_come_with_it() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let other = hospital.app.token("university", Role::Recipient).await;
    let second = hospital.app.token("hospital", Role::Holder).await;
    let policy = json!({ "require_approval": true });
    change(&hospital, Method::PUT, &second, "/v1/policy", &policy)
        .await
        .json(200);
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    let edition = settled(&hospital, &publication, 1).await;
    assert_eq!(edition["status"], "awaiting_approval");
    let release = format!("/v1/releases/{}", text(&edition["release_id"]));
    let none = hospital
        .app
        .get(&analyst, &format!("{publication}/editions"))
        .await
        .json(200);
    assert_eq!(none["items"], json!([]));
    hospital
        .app
        .get(&analyst, &release)
        .await
        .problem(404, "not_found");
    let approve = format!("{release}/approval");
    hospital
        .app
        .post(&second, &approve, &json!({}))
        .await
        .json(201);
    published(&hospital, &publication, 1).await;
    assert_eq!(
        hospital
            .app
            .get(&analyst, &format!("{release}/data"))
            .await
            .status,
        200
    );

    // A recipient is added and the first is removed: who was there keeps what it has.
    let recipients = json!([{ "recipient": "university", "purpose": "teaching" }]);
    let patch = json!({ "recipients": recipients });
    let token = hospital.token.as_str();
    change(&hospital, Method::PATCH, token, &publication, &patch)
        .await
        .json(200);
    hospital.submit(&dataset, month(100)).await.json(201);
    let edition = settled(&hospital, &publication, 2).await;
    let approve = format!("/v1/releases/{}/approval", text(&edition["release_id"]));
    hospital
        .app
        .post(&second, &approve, &json!({}))
        .await
        .json(201);
    published(&hospital, &publication, 2).await;
    workers.stop().await;
    let numbers = async |token: &str| -> Vec<u64> {
        let path = format!("{publication}/editions");
        let found = hospital.app.get(token, &path).await.json(200);
        let items = found["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| item["number"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(
        (numbers(&analyst).await, numbers(&other).await),
        (vec![1], vec![2])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_edition_is_refused_and_its_rows_join_the_next_one() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let officer = hospital.app.token("hospital", Role::Officer).await;
    require_approval(&hospital, &officer).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    let first = settled(&hospital, &publication, 1).await;
    let path = format!("/v1/releases/{}/approval", text(&first["release_id"]));
    let reject = json!({ "decision": "rejected", "reason": "the month is too small" });
    hospital.app.post(&officer, &path, &reject).await.json(201);
    let path = format!("{publication}/editions");
    let seen = hospital.app.get(&officer, &path).await.json(200);
    assert_eq!(seen["items"][0]["status"], "refused", "{seen}");
    assert_eq!(seen["items"][0]["error"]["code"], "approval_required");
    hospital.submit(&dataset, month(100)).await.json(201);
    let second = settled(&hospital, &publication, 2).await;
    workers.stop().await;
    assert_eq!(second["status"], "awaiting_approval");
    assert_eq!(second["rows"], 32);
    let asked = hospital.app.post(&officer, &path, &json!({})).await;
    asked.problem(403, "forbidden");
}

/// Its rows are in no later edition: a rejection would take them from everybody for good.
#[tokio::test(flavor = "multi_thread")]
async fn an_edition_that_was_published_before_the_policy_is_approved_or_withdrawn() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let officer = hospital.app.token("hospital", Role::Officer).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    let first = settled(&hospital, &publication, 1).await;
    workers.stop().await;
    assert_eq!(first["status"], "published");
    let editions = format!("{publication}/editions");
    let readable = async || {
        let seen = hospital.app.get(&analyst, &editions).await.json(200);
        seen["items"].as_array().unwrap().len()
    };
    assert_eq!(readable().await, 1);
    require_approval(&hospital, &officer).await;
    assert_eq!(readable().await, 0);
    let approval = format!("/v1/releases/{}/approval", text(&first["release_id"]));
    let reject = json!({ "decision": "rejected", "reason": "the month is too small" });
    let refused = hospital.app.post(&officer, &approval, &reject).await;
    let problem = refused.problem(409, "conflict");
    assert!(text(&problem["detail"]).contains("withdraw the release"));
    let approved = hospital.app.post(&officer, &approval, &json!({})).await;
    approved.json(201);
    assert_eq!(readable().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edition_whose_rows_are_deleted_while_it_awaits_approval_is_refused() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let officer = hospital.app.token("hospital", Role::Officer).await;
    require_approval(&hospital, &officer).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "manual", JOB()).await;
    let workers = hospital.work();
    let sent = hospital.submit(&dataset, month(0)).await.json(201);
    hospital.submit(&dataset, month(100)).await.json(201);
    let editions = format!("{publication}/editions");
    hospital.post(&editions, &json!({})).await.json(202);
    let edition = settled(&hospital, &publication, 1).await;
    assert_eq!(edition["status"], "awaiting_approval");
    let submission = format!("{dataset}/submissions/{}", text(&sent["id"]));
    let deleted = hospital.app.delete(&hospital.token, &submission).await;
    assert_eq!(deleted.status, 204);
    let approval = format!("/v1/releases/{}/approval", text(&edition["release_id"]));
    let approved = hospital.app.post(&officer, &approval, &json!({})).await;
    approved.problem(410, "withdrawn");
    let pending = hospital.get("/v1/approvals?status=pending").await.json(200);
    assert_eq!(pending["items"], json!([]));
    let refused = settled(&hospital, &publication, 1).await;
    assert_eq!(refused["status"], "refused", "{refused}");
    assert_eq!(refused["error"]["code"], "dataset_deleted", "{refused}");
    let seen = hospital.app.get(&analyst, &editions).await;
    assert!(seen.status == 404 || seen.json(200)["items"] == json!([]));

    // What is left is in the next edition.
    hospital.post(&editions, &json!({})).await.json(202);
    let next = settled(&hospital, &publication, 2).await;
    assert_eq!(
        (&next["status"], &next["rows"]),
        (&json!("awaiting_approval"), &json!(16)),
        "{next}"
    );
    // No worker is needed to end what waits.
    workers.stop().await;
    let release = format!("/v1/releases/{}/withdrawal", text(&next["release_id"]));
    let reason = json!({ "reason": "wrong rows" });
    hospital.post(&release, &reason).await.json(201);
    let ended = settled(&hospital, &publication, 2).await;
    assert_eq!(ended["status"], "refused", "{ended}");
    assert_eq!(ended["error"]["code"], "withdrawn", "{ended}");

    hospital.post(&editions, &json!({})).await.json(202);
    let workers = hospital.work();
    let last = settled(&hospital, &publication, 3).await;
    workers.stop().await;
    assert_eq!(last["status"], "awaiting_approval", "{last}");
    let gone = hospital.app.delete(&hospital.token, &dataset).await;
    assert_eq!(gone.status, 204);
    let found = hospital.app.get(&officer, &editions).await.json(200);
    assert_eq!(found["items"][2]["status"], "refused", "{found}");
}

/// One token alone shares no rows: neither with recipients that it set nor rows that it sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_sent_rows_or_set_recipients_does_not_approve_the_edition() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let second = hospital.app.token("hospital", Role::Holder).await;
    let third = hospital.app.token("hospital", Role::Holder).await;
    require_approval(&hospital, &second).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    let choose = async |token: &str| {
        let recipients = json!([{ "recipient": "bts", "purpose": "planning" }]);
        let patch = json!({ "recipients": recipients });
        let changed = change(&hospital, Method::PATCH, token, &publication, &patch);
        changed.await.json(200);
    };
    let decide = async |token: &str, number: usize| {
        let edition = settled(&hospital, &publication, number).await;
        let approval = format!("/v1/releases/{}/approval", text(&edition["release_id"]));
        hospital.app.post(token, &approval, &json!({})).await
    };
    choose(&second).await;
    hospital.submit(&dataset, month(0)).await.json(201);
    for token in [&second, &hospital.token] {
        let refused = decide(token, 1).await;
        let problem = refused.problem(409, "conflict");
        assert!(text(&problem["detail"]).contains("last set the recipients"));
    }
    choose(&hospital.token).await;
    decide(&second, 1).await.json(201);
    published(&hospital, &publication, 1).await;

    let rows = format!("{dataset}/submissions");
    let sent = hospital
        .app
        .post_bytes(&second, &rows, "text/csv", month(100));
    sent.await.json(201);
    decide(&second, 2).await.problem(409, "conflict");
    decide(&third, 2).await.json(201);
    workers.stop().await;
}

/// The token that set the recipients when it made the publication does not approve what others sent and asked for.
#[tokio::test(flavor = "multi_thread")]
async fn who_made_the_publication_does_not_approve_an_edition_for_its_recipients() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let asks = hospital.app.token("hospital", Role::Holder).await;
    let sends = hospital.app.token("hospital", Role::Holder).await;
    let other = hospital.app.token("hospital", Role::Holder).await;
    require_approval(&hospital, &other).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "manual", JOB()).await;
    let rows = format!("{dataset}/submissions");
    let sent = hospital.app.post_bytes(&sends, &rows, "text/csv", month(0));
    sent.await.json(201);
    let path = format!("{publication}/editions");
    hospital.app.post(&asks, &path, &json!({})).await.json(202);
    let workers = hospital.work();
    let edition = settled(&hospital, &publication, 1).await;
    let approval = format!("/v1/releases/{}/approval", text(&edition["release_id"]));
    for token in [&hospital.token, &sends, &asks] {
        let refused = hospital.app.post(token, &approval, &json!({})).await;
        refused.problem(409, "conflict");
    }
    let approved = hospital.app.post(&other, &approval, &json!({})).await;
    approved.json(201);
    published(&hospital, &publication, 1).await;
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_organization_publishes_nothing_until_it_is_enabled() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let admin = hospital.app.token("operator", Role::Admin).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    hospital.submit(&dataset, month(0)).await.json(201);
    let whoami = hospital.get("/v1/whoami").await.json(200);
    let organization = format!("/v1/organizations/{}", text(&whoami["organization"]["id"]));
    let disabled = async |disabled: bool| {
        let body = json!({ "disabled": disabled });
        let changed = change(&hospital, Method::PATCH, &admin, &organization, &body);
        changed.await.json(200);
    };
    let owner = hospital.app.state.unscoped().db.owner();
    let count = async |condition: &str| -> i64 {
        let counted = format!("SELECT count(*) FROM {condition}");
        let counted = sqlx::query_scalar(sqlx::AssertSqlSafe(counted));
        counted.fetch_one(owner).await.unwrap()
    };
    disabled(true).await;
    let workers = hospital.work();
    let run = poll_async(Duration::from_secs(60), async || {
        (count("jobs WHERE status = 'succeeded'").await == 1).then_some(())
    });
    run.await.expect("the job ends");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(count("grants").await, 0);
    disabled(false).await;
    let edition = settled(&hospital, &publication, 1).await;
    workers.stop().await;
    assert_eq!(edition["status"], "published");
    assert_eq!(count("grants").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_is_checked_paused_and_deleted() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let made = publication(&hospital, &dataset, "manual", JOB()).await;
    let body = |job: Value| json!({ "name": "other", "dataset_id": id(&dataset), "job": job });
    let refused = async |job: Value, code: &str, pointer: &str| {
        let answer = hospital.post("/v1/publications", &body(job)).await;
        let problem = answer.problem(422, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    };
    let model = |model: Value| json!({ "privacy": model });
    let diversity = json!({ "model": "l_diversity", "k": 2, "l": 2 });
    refused(model(diversity), "invalid_job", "/job/output").await;
    let sweep = json!({ "model": "k_anonymity", "k": [2, 3] });
    refused(model(sweep), "invalid_job", "/job/privacy/k").await;
    let nothing = json!({ "model": "k_anonymity", "k": 0 });
    refused(model(nothing), "invalid_privacy", "/job/privacy/k").await;
    let mut chosen = JOB();
    chosen["submissions"] = json!([]);
    refused(chosen, "invalid_job", "/job/submissions").await;
    let mut taken = body(JOB());
    taken["name"] = json!("monthly");
    hospital
        .post("/v1/publications", &taken)
        .await
        .problem(409, "name_taken");
    let mut unknown = body(JOB());
    unknown["recipients"] = json!([{ "recipient": "nobody", "purpose": "x" }]);
    hospital
        .post("/v1/publications", &unknown)
        .await
        .problem(404, "not_found");

    // Another organization finds nothing, and a recipient changes nothing.
    let stranger = hospital.app.token("clinic", Role::Holder).await;
    for path in ["", "/editions", "/data", "/manifest", "/events"] {
        let path = format!("{made}{path}");
        hospital
            .app
            .get(&stranger, &path)
            .await
            .problem(404, "not_found");
    }
    let pause = json!({ "paused": true });
    let patch = async |token: &str, body: &Value| {
        change(&hospital, Method::PATCH, token, &made, body).await
    };
    patch(&analyst, &pause).await.problem(403, "forbidden");
    patch(&stranger, &pause).await.problem(404, "not_found");
    let paused = patch(&hospital.token, &pause).await.json(200);
    assert_eq!(paused["paused"], true);
    hospital.submit(&dataset, month(0)).await.json(201);
    let path = format!("{made}/editions");
    hospital
        .post(&path, &json!({}))
        .await
        .problem(409, "publication_paused");
    let go_on = json!({ "paused": false });
    patch(&hospital.token, &go_on).await.json(200);
    hospital.post(&path, &json!({})).await.json(202);
    hospital
        .post(&path, &json!({}))
        .await
        .problem(409, "edition_open");
    assert_eq!(
        hospital.app.delete(&hospital.token, &made).await.status,
        204
    );
    hospital.get(&made).await.problem(404, "not_found");
    // Its name is free, and its job does not run.
    let again = publication(&hospital, &dataset, "submission", JOB()).await;
    let jobs = hospital.get("/v1/jobs").await.json(200);
    let statuses: Vec<&Value> = jobs["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| &job["status"])
        .collect();
    assert_eq!(statuses, ["cancelled", "queued"]);
    assert_eq!(editions(&hospital, &again).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_without_a_subject_column_says_that_editions_count_rows() {
    for (persons, expected) in [
        ("identifier", &["editions_count_rows"][..]),
        ("subject", &[]),
    ] {
        let hospital = Hospital::new().await;
        let analyst = hospital.app.token("bts", Role::Recipient).await;
        let dataset = visits(&hospital, persons).await;
        let made = publication(&hospital, &dataset, "manual", JOB()).await;
        let found = hospital.get(&made).await.json(200);
        assert_eq!(codes(&found), expected);
        let listed = hospital.get("/v1/publications").await.json(200);
        assert_eq!(listed["items"][0]["warnings"], Value::Null);
        let received = hospital.app.get(&analyst, &made).await.json(200);
        assert_eq!(received["warnings"], Value::Null);
        // What happens without the rows is decided.
        let answer = hospital.app.delete(&hospital.token, &dataset).await;
        assert_eq!(answer.status, 204);
        let found = hospital.get(&made).await.json(200);
        assert_eq!(found["warnings"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_settle_at_the_same_time_publish_an_edition_once() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = [hospital.work(), hospital.work(), hospital.work()];
    for number in 1..=3 {
        hospital
            .submit(&dataset, month(number * 100))
            .await
            .json(201);
    }
    // Submissions that came while an edition was open share the next one.
    let last = poll_async(Duration::from_secs(60), async || {
        let found = editions(&hospital, &publication).await;
        let rows = found
            .iter()
            .filter_map(|edition| edition["rows"].as_u64())
            .sum::<u64>();
        let is_done = found.iter().all(|edition| edition["status"] == "published");
        (rows == 48 && is_done).then_some(found)
    });
    let last = last
        .await
        .expect("the editions are not published after 60 s");
    for workers in workers {
        workers.stop().await;
    }
    let numbers: Vec<usize> = last
        .iter()
        .map(|edition| edition["number"].as_u64().unwrap() as usize)
        .collect();
    assert_eq!(numbers, (1..=last.len()).collect::<Vec<_>>());
    for edition in &last {
        let path = format!("/v1/releases/{}/grants", text(&edition["release_id"]));
        let grants = hospital.get(&path).await.json(200);
        assert_eq!(grants["items"].as_array().unwrap().len(), 1);
    }
    let releases = hospital.get("/v1/releases").await.json(200);
    assert_eq!(releases["items"].as_array().unwrap().len(), last.len());
}

/// What PostgreSQL does in the middle of the transaction that publishes an edition is as if the process
/// died there.
#[tokio::test(flavor = "multi_thread")]
async fn what_fails_while_an_edition_is_published_leaves_nothing_of_it() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let owner = hospital.app.state.unscoped().db.owner();
    let run = async |statement: &'static str| {
        sqlx::raw_sql(statement).execute(owner).await.unwrap();
    };
    run("CREATE FUNCTION dies() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'the process dies'; END $$")
    .await;
    for (number, [create, drop]) in [
        [
            "CREATE TRIGGER dies BEFORE INSERT ON grants FOR EACH ROW EXECUTE FUNCTION dies()",
            "DROP TRIGGER dies ON grants",
        ],
        [
            "CREATE TRIGGER dies BEFORE UPDATE OF published_at ON editions FOR EACH ROW
             EXECUTE FUNCTION dies()",
            "DROP TRIGGER dies ON editions",
        ],
        [
            "CREATE TRIGGER dies BEFORE INSERT ON audit_events FOR EACH ROW
             WHEN (NEW.action = 'edition.published') EXECUTE FUNCTION dies()",
            "DROP TRIGGER dies ON audit_events",
        ],
    ]
    .into_iter()
    .enumerate()
    {
        run(create).await;
        let workers = hospital.work();
        hospital
            .submit(&dataset, month(100 * number))
            .await
            .json(201);
        let job = editions(&hospital, &publication).await[number]["job_id"].clone();
        let job = hospital.ended(&format!("/v1/jobs/{}", text(&job))).await;
        assert_eq!(job["status"], "succeeded", "{job}");
        workers.stop().await;
        let edition = &editions(&hospital, &publication).await[number];
        assert_eq!(edition["status"], "running", "{edition}");
        let grants = format!("/v1/releases/{}/grants", text(&edition["release_id"]));
        let made = hospital.get(&grants).await.json(200);
        assert_eq!(made["items"], json!([]));
        let path = format!("{publication}/editions?after={number}");
        let seen = hospital.app.get(&analyst, &path).await.json(200);
        assert_eq!(seen["items"], json!([]));

        run(drop).await;
        let workers = hospital.work();
        published(&hospital, &publication, number + 1).await;
        workers.stop().await;
        let made = hospital.get(&grants).await.json(200);
        assert_eq!(made["items"].as_array().unwrap().len(), 1);
    }
    let releases = hospital.get("/v1/releases").await.json(200);
    assert_eq!(releases["items"].as_array().unwrap().len(), 3);
}

/// An edition whose job has succeeded, and which nobody has brought on yet.
async fn unsettled(hospital: &Hospital, publication: &str, dataset: &str, number: usize) -> Value {
    let owner = hospital.app.state.unscoped().db.owner();
    let run = async |statement: &'static str| {
        sqlx::raw_sql(statement).execute(owner).await.unwrap();
    };
    run(
        "CREATE OR REPLACE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'not yet'; END $$;
         CREATE TRIGGER waits BEFORE UPDATE OF published_at ON editions FOR EACH ROW
         EXECUTE FUNCTION waits()",
    )
    .await;
    let workers = hospital.work();
    hospital
        .submit(dataset, month(1_000 * number))
        .await
        .json(201);
    let job = editions(hospital, publication).await[number - 1]["job_id"].clone();
    let job = hospital.ended(&format!("/v1/jobs/{}", text(&job))).await;
    assert_eq!(job["status"], "succeeded", "{job}");
    workers.stop().await;
    run("DROP TRIGGER waits ON editions").await;
    editions(hospital, publication).await[number - 1].clone()
}

/// Whether a statement of the database waits for a lock.
pub(crate) async fn waits_for_lock(hospital: &Hospital) -> bool {
    lock_waits(hospital.app.state.unscoped().db.owner()).await > 0
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edition_waits_for_a_withdrawal_or_deletion_that_is_under_way() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let owner = hospital.app.state.unscoped().db.owner();
    for (number, statement, code) in [
        (
            1,
            "UPDATE releases SET withdrawn_at = now(), withdrawn_reason = 'an error' WHERE id = $1",
            "withdrawn",
        ),
        (
            2,
            "UPDATE publications p SET deleted_at = now() FROM editions e
             WHERE e.release_id = $1 AND e.publication_id = p.id",
            "cancelled",
        ),
    ] {
        let edition = unsettled(&hospital, &publication, &dataset, number).await;
        let release: uuid::Uuid = text(&edition["release_id"]).parse().unwrap();
        let mut change = owner.begin().await.unwrap();
        let changed = sqlx::query(statement).bind(release);
        changed.execute(&mut *change).await.unwrap();
        let workers = hospital.work();
        let seen = poll_async(Duration::from_secs(60), async || {
            let edition = &editions(&hospital, &publication).await[number - 1];
            let is_published = edition["status"] == "published";
            (is_published || waits_for_lock(&hospital).await).then_some(is_published)
        });
        assert_eq!(seen.await, Some(false), "published by {statement}");
        change.commit().await.unwrap();
        let edition = settled(&hospital, &publication, number).await;
        workers.stop().await;
        assert_eq!(edition["status"], "refused", "{edition}");
        assert_eq!(edition["error"]["code"], code, "{edition}");
    }
}

/// A dataset is locked before its publications, so that its deletion and a new edition do not wait for
/// each other.
#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_is_locked_before_its_publication() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    hospital.submit(&dataset, month(0)).await.json(201);
    let publication = publication(&hospital, &dataset, "manual", JOB()).await;
    let owner = hospital.app.state.unscoped().db.owner();
    let mut deletion = owner.begin().await.unwrap();
    sqlx::raw_sql("SELECT FROM datasets FOR NO KEY UPDATE")
        .execute(&mut *deletion)
        .await
        .unwrap();
    let path = format!("{publication}/editions");
    let asked = async { hospital.post(&path, &json!({})).await };
    let deleted = async {
        let waits = poll_async(Duration::from_secs(60), async || {
            waits_for_lock(&hospital).await.then_some(())
        });
        waits.await.expect("the edition waits for the dataset");
        let locked = sqlx::raw_sql("SELECT FROM publications FOR NO KEY UPDATE NOWAIT");
        let locked = locked.execute(&mut *deletion).await;
        deletion.rollback().await.unwrap();
        locked.expect("the publication is not locked");
    };
    let (asked, ()) = tokio::join!(asked, deleted);
    asked.json(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edition_ends_without_a_worker_if_its_job_is_cancelled_or_its_publication_deleted() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "manual", JOB()).await;
    hospital.submit(&dataset, month(0)).await.json(201);
    let path = format!("{publication}/editions");
    let queued = hospital.post(&path, &json!({})).await.json(202);
    let job = format!("/v1/jobs/{}", text(&queued["job_id"]));
    hospital.app.delete(&hospital.token, &job).await.json(202);
    let edition = &editions(&hospital, &publication).await[0];
    assert_eq!(edition["status"], "failed", "{edition}");
    assert_eq!(edition["error"]["code"], "cancelled", "{edition}");

    hospital.post(&path, &json!({})).await.json(202);
    let deleted = hospital.app.delete(&hospital.token, &publication).await;
    assert_eq!(deleted.status, 204);
    let edition = &editions(&hospital, &publication).await[1];
    assert_eq!(edition["status"], "failed", "{edition}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asked_for_an_edition_does_not_approve_it_when_it_is_decided_again() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    hospital.app.token("university", Role::Recipient).await;
    let asks = hospital.app.token("hospital", Role::Holder).await;
    let approves = hospital.app.token("hospital", Role::Holder).await;
    require_approval(&hospital, &approves).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "manual", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    let path = format!("{publication}/editions");
    let asked = hospital.app.post(&asks, &path, &json!({})).await;
    asked.json(202);
    let approval =
        |edition: &Value| format!("/v1/releases/{}/approval", text(&edition["release_id"]));
    let edition = settled(&hospital, &publication, 1).await;
    let own = hospital
        .app
        .post(&asks, &approval(&edition), &json!({}))
        .await;
    own.problem(409, "conflict");
    // Another recipient: the edition is decided again.
    let recipients = json!([{ "recipient": "university", "purpose": "teaching" }]);
    let patch = json!({ "recipients": recipients });
    change(&hospital, Method::PATCH, &asks, &publication, &patch)
        .await
        .json(200);
    let first = hospital
        .app
        .post(&approves, &approval(&edition), &json!({}))
        .await;
    first.problem(410, "withdrawn");
    let again = poll_async(Duration::from_secs(60), async || {
        let again = settled(&hospital, &publication, 1).await;
        (again["job_id"] != edition["job_id"]).then_some(again)
    });
    let again = again.await.expect("the edition is decided again");
    assert_eq!(again["status"], "awaiting_approval");
    let waiting = hospital.get("/v1/approvals?status=pending").await.json(200);
    let waiting = waiting["items"].as_array().unwrap().iter();
    let waiting: Vec<&Value> = waiting.map(|it| &it["release_id"]).collect();
    assert_eq!(waiting, [&again["release_id"]]);
    let own = hospital
        .app
        .post(&asks, &approval(&again), &json!({}))
        .await;
    own.problem(409, "conflict");
    let other = hospital
        .app
        .post(&approves, &approval(&again), &json!({}))
        .await;
    other.json(201);
    published(&hospital, &publication, 1).await;
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edition_that_fails_does_not_stop_those_of_others() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let fails = publication(&hospital, &dataset, "submission", JOB()).await;
    let body = json!({
        "name": "other", "dataset_id": id(&dataset), "job": JOB(), "recipients": [],
    });
    let other = hospital.post("/v1/publications", &body).await.json(201);
    let other = format!("/v1/publications/{}", text(&other["id"]));
    let owner = hospital.app.state.unscoped().db.owner();
    let statement = format!(
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'this one fails'; END $$;
         CREATE TRIGGER fails BEFORE UPDATE OF published_at ON editions FOR EACH ROW
         WHEN (NEW.publication_id = '{}') EXECUTE FUNCTION fails()",
        id(&fails)
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
        .execute(owner)
        .await
        .unwrap();
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    published(&hospital, &other, 1).await;
    let edition = &editions(&hospital, &fails).await[0];
    assert_eq!(edition["status"], "running", "{edition}");
    workers.stop().await;
}

/// Nothing is granted to a recipient whose time has ended, so what it knows does not count.
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_whose_time_has_ended_keeps_no_edition_back() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    hospital.app.token("university", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let workers = hospital.work();
    let deleted = hospital.submit(&dataset, month(0)).await.json(201);
    let known = granted_release(&hospital, &dataset).await;
    grant(&hospital, &known).await;
    let path = format!("{dataset}/submissions/{}", text(&deleted["id"]));
    hospital.app.delete(&hospital.token, &path).await;
    let end = hospital.app.state.unscoped().db.now() + time::Duration::hours(1);
    let end = end.format(&time::format_description::well_known::Rfc3339);
    let body = json!({
        "name": "monthly", "dataset_id": id(&dataset), "job": JOB(), "trigger": "submission",
        "recipients": [
            { "recipient": "bts", "purpose": "blood usage", "expires_at": end.unwrap() },
            { "recipient": "university", "purpose": "teaching" },
        ],
    });
    let made = hospital.post("/v1/publications", &body).await.json(201);
    let publication = format!("/v1/publications/{}", text(&made["id"]));
    hospital.submit(&dataset, month(100)).await.json(201);
    let first = settled(&hospital, &publication, 1).await;
    assert_eq!(first["error"]["code"], "composition_risk", "{first}");
    hospital.app.clock.advance(time::Duration::hours(2));
    hospital.submit(&dataset, month(200)).await.json(201);
    let second = published(&hospital, &publication, 2).await;
    workers.stop().await;
    assert_eq!(second["rows"], 32);
    let path = format!("/v1/releases/{}/grants", text(&second["release_id"]));
    let grants = hospital.get(&path).await.json(200);
    let names = grants["items"].as_array().unwrap();
    assert_eq!(names.len(), 1);
    assert_eq!(names[0]["recipient"]["name"], "university");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_of_publications_are_limited_as_any() {
    let app = TestApp::builder().without_workers().limits(|limits| {
        limits.job_json_bytes = 1_000;
        limits.quotas.queued_jobs = 1;
    });
    let hospital = Hospital::with_app(app.start().await).await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let mut large = JOB();
    let values: Vec<String> = (0..200).map(|number| format!("d{number}")).collect();
    large["privacy"]["sensitive_values"] = json!({ "diagnosis": values });
    let body = json!({ "name": "large", "dataset_id": id(&dataset), "job": large });
    let refused = hospital.post("/v1/publications", &body).await;
    let problem = refused.problem(413, "too_large");
    let detail = text(&problem["detail"]);
    assert!(detail.contains("limits.job_json_bytes"), "{detail}");

    let manual = publication(&hospital, &dataset, "manual", JOB()).await;
    let list = hospital.get("/v1/publications").await.json(200);
    assert!(list["items"][0].get("job").is_none(), "{list}");
    let one = hospital.get(&manual).await.json(200);
    assert_eq!(one["job"], JOB());
    hospital.submit(&dataset, month(0)).await.json(201);
    // No job waits beside another one.
    let waiting = hospital
        .job(&dataset, json!({ "privacy": JOB()["privacy"] }))
        .await;
    let path = format!("{manual}/editions");
    let refused = hospital.post(&path, &json!({})).await;
    refused.problem(429, "quota_exceeded");
    let body = json!({
        "name": "other", "dataset_id": id(&dataset), "job": JOB(), "trigger": "submission",
    });
    let other = hospital.post("/v1/publications", &body).await.json(201);
    let other = format!("/v1/publications/{}", text(&other["id"]));
    assert!(editions(&hospital, &other).await.is_empty());
    // The edition is queued as soon as there is a place.
    hospital.app.delete(&hospital.token, &waiting).await;
    let go_on = json!({ "paused": false });
    let token = hospital.token.as_str();
    change(&hospital, Method::PATCH, token, &other, &go_on)
        .await
        .json(200);
    assert_eq!(editions(&hospital, &other).await.len(), 1);
    let refused = hospital.post(&path, &json!({})).await;
    refused.problem(429, "quota_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_waits_takes_the_place_of_a_stream() {
    let app = TestApp::builder()
        .without_workers()
        .limits(|limits| limits.streams.per_token = 1);
    let hospital = Hospital::with_app(app.start().await).await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let path = format!("{publication}/events");
    let stream = hospital.app.request(Method::GET, &path);
    let stream = stream.bearer_auth(&hospital.token).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let path = format!("{publication}/editions?wait=30");
    hospital.get(&path).await.problem(429, "quota_exceeded");
    assert!(editions(&hospital, &publication).await.is_empty());
    drop(stream);
    let waits = async {
        let found = poll_async(Duration::from_secs(60), async || {
            let found = hospital.get(&path).await;
            (found.status == 200).then_some(found)
        });
        found.await.expect("the place is free")
    };
    let submits = async { hospital.submit(&dataset, month(0)).await.json(201) };
    let (found, _) = tokio::join!(waits, submits);
    assert_eq!(found.json(200)["items"][0]["number"], 1);
}

/// The attack: of more than 10,000 editions only the oldest were watched, listed and in the table.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_editions_of_a_long_publication_are_watched_and_listed() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    published(&hospital, &publication, 1).await;
    workers.stop().await;
    // 10,000 more editions like the first.
    let copies = "CREATE TEMPORARY TABLE copies AS
             SELECT number, gen_random_uuid() AS job_id, gen_random_uuid() AS release_id
             FROM generate_series(2, 10001) AS number;
         INSERT INTO jobs SELECT copy.* FROM jobs j CROSS JOIN copies c
             CROSS JOIN jsonb_populate_record(j, jsonb_build_object('id', c.job_id)) copy;
         INSERT INTO releases SELECT copy.* FROM releases r CROSS JOIN copies c
             CROSS JOIN jsonb_populate_record(
                 r, jsonb_build_object('id', c.release_id, 'job_id', c.job_id)) copy;
         INSERT INTO release_tables SELECT copy.* FROM release_tables t CROSS JOIN copies c
             CROSS JOIN jsonb_populate_record(
                 t, jsonb_build_object('release_id', c.release_id)) copy;
         INSERT INTO editions SELECT copy.* FROM editions e CROSS JOIN copies c
             CROSS JOIN jsonb_populate_record(e, to_jsonb(c)) copy";
    let owner = hospital.app.state.unscoped().db.owner();
    sqlx::raw_sql(copies).execute(owner).await.unwrap();

    let found = hospital.get(&format!("{publication}/manifest")).await;
    let found = found.json(200);
    let listed = found["editions"].as_array().unwrap();
    assert_eq!(
        (listed.len(), &listed[10_000]["number"]),
        (10_001, &json!(10_001))
    );
    let data = hospital.get(&format!("{publication}/data")).await;
    data.problem(422, "limit_exceeded");

    let path = format!("{publication}/events");
    let stream = hospital.app.request(Method::GET, &path);
    let mut stream = stream.bearer_auth(&hospital.token).send().await.unwrap();
    let mut seen = async |number: u32| {
        let (edition, mut events) = (format!("{{\"number\":{number},"), String::new());
        while !events.contains(&edition) {
            if events.ends_with("\n\n") {
                events.clear();
            }
            let part = stream.chunk().await.unwrap().expect("the stream ended");
            events += str::from_utf8(&part).unwrap();
        }
    };
    let watches = async {
        seen(10_001).await;
        hospital.submit(&dataset, month(1_000)).await.json(201);
        seen(10_002).await;
    };
    let watched = tokio::time::timeout(Duration::from_secs(60), watches).await;
    watched.expect("the newest edition is not watched");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editions_of_a_deleted_publication_stay() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let later = hospital.app.token("university", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    published(&hospital, &publication, 1).await;
    workers.stop().await;
    let recipients = json!([
        { "recipient": "bts", "purpose": "blood usage" },
        { "recipient": "university", "purpose": "teaching" },
    ]);
    let token = hospital.token.as_str();
    let patch = json!({ "recipients": recipients });
    change(&hospital, Method::PATCH, token, &publication, &patch)
        .await
        .json(200);
    hospital.app.get(&later, &publication).await.json(200);
    let deleted = hospital.app.delete(token, &publication).await;
    assert_eq!(deleted.status, 204);

    // Who has editions keeps them, and who made them too.
    for token in [&analyst, &hospital.token] {
        for path in ["editions", "manifest"] {
            let path = format!("{publication}/{path}");
            let found = hospital.app.get(token, &path).await.json(200);
            let items = found.get("items").unwrap_or(&found["editions"]);
            assert_eq!(items.as_array().unwrap().len(), 1, "{found}");
        }
        let data = hospital
            .app
            .get(token, &format!("{publication}/data"))
            .await;
        assert_eq!(csv(&data).len(), 16);
    }
    let list = hospital.app.get(&analyst, "/v1/publications").await;
    assert_eq!(list.json(200)["items"].as_array().unwrap().len(), 1);
    // It publishes nothing any more.
    let path = format!("{publication}/editions");
    hospital
        .post(&path, &json!({}))
        .await
        .problem(404, "not_found");
    hospital.get(&publication).await.problem(404, "not_found");
    for path in ["", "/editions", "/data", "/manifest", "/events"] {
        let path = format!("{publication}{path}");
        hospital
            .app
            .get(&later, &path)
            .await
            .problem(404, "not_found");
    }
}

/// What the client has is answered without a look at the editions' codebooks and rows.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_has_is_answered_before_anything_is_loaded() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    published(&hospital, &publication, 1).await;
    workers.stop().await;
    let path = format!("{publication}/data?editions=common");
    let data = hospital.app.get(&analyst, &path).await;
    assert_eq!(data.status, 200);
    let owner = hospital.app.state.unscoped().db.owner();
    sqlx::raw_sql("UPDATE releases SET codebook = '[]'")
        .execute(owner)
        .await
        .unwrap();
    let again = hospital.app.request(Method::GET, &path);
    let again = again.bearer_auth(&analyst);
    let again = again.header("if-none-match", data.header("etag"));
    assert_eq!(send(again).await.status, 304);
    hospital
        .app
        .get(&analyst, &path)
        .await
        .problem(500, "internal");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_does_not_see_when_the_job_of_an_edition_ran() {
    let hospital = Hospital::new().await;
    let analyst = hospital.app.token("bts", Role::Recipient).await;
    let officer = hospital.app.token("hospital", Role::Officer).await;
    require_approval(&hospital, &officer).await;
    let dataset = visits(&hospital, "insensitive").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    hospital.submit(&dataset, month(0)).await.json(201);
    let edition = settled(&hospital, &publication, 1).await;
    hospital.app.clock.advance(time::Duration::hours(2));
    let release = format!("/v1/releases/{}", text(&edition["release_id"]));
    let path = format!("{release}/approval");
    hospital
        .app
        .post(&officer, &path, &json!({}))
        .await
        .json(201);
    let edition = published(&hospital, &publication, 1).await;
    workers.stop().await;
    let published_at = &edition["published_at"];
    let seen = hospital.app.get(&analyst, &release).await.json(200);
    assert_eq!(seen["created_at"], *published_at);
    let seen = hospital.app.get(&analyst, "/v1/releases").await.json(200);
    assert_eq!(seen["items"][0]["created_at"], *published_at);
    let held = hospital.get(&release).await.json(200);
    assert_ne!(held["created_at"], *published_at);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_killed_at_any_phase_publishes_each_edition_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let client = reqwest::Client::new();
    let mut service = ServiceProcess::start(&data, &[]).await;
    let token = service.token("hospital", "holder");
    service.token("bts", "recipient");
    let at = |service: &ServiceProcess, path: &str| format!("{}{path}", service.base);
    let columns = json!([
        { "name": "person", "role": "subject" },
        { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99] },
        { "name": "ward", "role": "quasi_identifier" },
        { "name": "diagnosis", "role": "sensitive" },
    ]);
    let body = json!({ "name": "visits", "columns": columns });
    let dataset = call(
        client.post(at(&service, "/v1/datasets")).json(&body),
        &token,
    )
    .await;
    let body = json!({
        "name": "monthly", "dataset_id": dataset["id"], "job": JOB(),
        "recipients": [{ "recipient": "bts", "purpose": "blood usage" }],
    });
    let made = call(
        client.post(at(&service, "/v1/publications")).json(&body),
        &token,
    )
    .await;
    let list = format!("/v1/publications/{}/editions", text(&made["id"]));
    let submissions = format!("/v1/datasets/{}/submissions", text(&dataset["id"]));
    let phases = ["queued", "running", "awaiting_approval", "published"];
    for (number, phase) in phases.into_iter().enumerate() {
        let request = client
            .post(at(&service, &submissions))
            .header("content-type", "text/csv");
        call(request.body(month(100 * number)), &token).await;
        // Killed at the first sight of this phase or a later one.
        let reached = poll_async(Duration::from_secs(60), async || {
            let found = call(client.get(at(&service, &list)), &token).await;
            let status = found["items"][number]["status"].as_str()?.to_owned();
            let place = |word: &str| phases.iter().position(|phase| *phase == word);
            (place(&status) >= place(phase)).then_some(())
        });
        reached.await.expect("the edition is under way");
        drop(service);
        service = ServiceProcess::start(&data, &[]).await;
        let published = poll_async(Duration::from_secs(120), async || {
            let found = call(client.get(at(&service, &list)), &token).await;
            (found["items"][number]["status"] == "published").then_some(())
        });
        published
            .await
            .expect("the edition is published after the crash");
    }
    let found = call(client.get(at(&service, &list)), &token).await;
    let editions = found["items"].as_array().unwrap();
    assert_eq!(editions.len(), phases.len());
    for edition in editions {
        assert_eq!(edition["rows"], 16);
        let path = format!("/v1/releases/{}/grants", text(&edition["release_id"]));
        let grants = call(client.get(at(&service, &path)), &token).await;
        assert_eq!(grants["items"].as_array().unwrap().len(), 1);
    }
    let releases = call(client.get(at(&service, "/v1/releases")), &token).await;
    assert_eq!(releases["items"].as_array().unwrap().len(), phases.len());

    // Files from the command line, to the publication by its name.
    let publish_as = |token: &str, arguments: &[&str], files: &[String]| {
        let mut command = pais(&data);
        let name = ["--publication", "monthly", "--url", &service.base];
        command.arg("publish").args(name).args(arguments);
        command.env("PAIS_TOKEN", token);
        for (number, rows) in files.iter().enumerate() {
            let file = folder.path().join(format!("{number}.csv"));
            std::fs::write(&file, rows).unwrap();
            command.arg(file);
        }
        command.output().unwrap()
    };
    let publish_with = |arguments: &[&str], files: &[String]| publish_as(&token, arguments, files);
    let publish = |files: &[String]| publish_with(&[], files);
    let ended = |done: std::process::Output, status: i32, line: &str| {
        let printed = String::from_utf8_lossy(&done.stdout).into_owned();
        let error = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{printed}{error}");
        assert!(printed.contains(line), "{printed}");
        printed + &error
    };
    let line = "edition 5 of monthly is published: 16 rows";
    let printed = ended(publish(&[month(900)]), 0, line);
    let sent = printed.split("submission ").nth(1).unwrap();
    let sent = sent.lines().next().unwrap();
    let header = "person,age,ward,diagnosis\n";
    // The row of the first file cannot be published alone, and joins the edition of the second file.
    let files = [format!("{header}x,1,a1,d0\n"), month(950)];
    let line = "edition 7 of monthly is published: 17 rows";
    ended(publish(&files), 0, line);
    ended(
        publish(&[format!("{header}y,1,a1,d0\n")]),
        1,
        "edition 8 of monthly has failed",
    );
    // The same rows again are refused.
    let refused = ended(publish(&[month(900)]), 1, "");
    assert!(refused.contains("--allow-duplicate"), "{refused}");
    // So is a token that may not publish.
    let recipient = service.token("bts", "recipient");
    let refused = publish_as(&recipient, &[], &[month(910)]);
    assert!(ended(refused, 1, "").contains("may not publish"));
    // A file takes the place of what was sent, once, and two files do not. The row that waits goes on.
    let replaces =
        |replaced: &str, files: &[String]| publish_with(&["--replaces", replaced], files);
    let corrected = month(900).replace(",d0", ",d9");
    let line = "edition 9 of monthly is published: 16 rows, 1 wait";
    ended(replaces(sent, std::slice::from_ref(&corrected)), 0, line);
    let refused = replaces(sent, &[month(900)]);
    assert!(ended(refused, 1, "").contains("not_replaceable"));
    let refused = replaces(&Uuid::now_v7().to_string(), &[month(960)]);
    assert!(ended(refused, 1, "").contains("has no submission"));
    let refused = replaces(sent, &[month(960), month(970)]);
    assert!(ended(refused, 2, "").contains("takes one file"));
    ended(replaces("march", &[month(960)]), 2, "");
    let policy = json!({ "require_approval": true });
    call(client.put(at(&service, "/v1/policy")).json(&policy), &token).await;
    ended(publish(&[month(1_000)]), 3, "waits for approval");
    service.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_is_paused_while_the_command_waits_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let client = reqwest::Client::new();
    let service = ServiceProcess::start_without_workers(&data, &[]).await;
    let token = service.token("hospital", "holder");
    let at = |path: &str| format!("{}{path}", service.base);
    let columns = json!([
        { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99] },
        { "name": "diagnosis", "role": "sensitive" },
    ]);
    let body = json!({ "name": "visits", "columns": columns });
    let dataset = call(client.post(at("/v1/datasets")).json(&body), &token).await;
    let body = json!({ "name": "monthly", "dataset_id": dataset["id"], "job": JOB() });
    let made = call(client.post(at("/v1/publications")).json(&body), &token).await;
    let publication = format!("/v1/publications/{}", text(&made["id"]));
    let mut command = pais(&data);
    command.args([
        "publish",
        "--publication",
        "monthly",
        "--url",
        &service.base,
    ]);
    for number in 0..2 {
        let file = folder.path().join(format!("{number}.csv"));
        std::fs::write(&file, format!("age,diagnosis\n{number},d\n")).unwrap();
        command.arg(file);
    }
    command.env("PAIS_TOKEN", &token);
    let command = command.stderr(std::process::Stdio::piped()).spawn();
    let mut command = command.unwrap();
    let submissions = format!("/v1/datasets/{}/submissions", text(&dataset["id"]));
    let sent = poll_async(Duration::from_secs(60), async || {
        let found = call(client.get(at(&submissions)), &token).await;
        (found["items"].as_array()?.len() == 2).then_some(())
    });
    sent.await.expect("both files are sent");
    // The second file is in no edition: the first one is under way.
    let list = call(client.get(at(&format!("{publication}/editions"))), &token).await;
    let job = format!("/v1/jobs/{}", text(&list["items"][0]["job_id"]));
    for _ in 0..2 {
        let pause = json!({ "paused": true });
        call(client.patch(at(&publication)).json(&pause), &token).await;
        let cancel = client.delete(at(&job)).bearer_auth(&token);
        cancel.send().await.unwrap();
    }
    let ended = poll_async(Duration::from_secs(30), async || {
        command.try_wait().unwrap()
    })
    .await;
    let _ = command.kill();
    assert_eq!(ended.map(|it| it.code()), Some(Some(1)));
    let mut error = String::new();
    let output = command.stderr.as_mut().unwrap();
    std::io::Read::read_to_string(output, &mut error).unwrap();
    assert!(
        error.contains("is paused") && error.contains("wait"),
        "{error}"
    );
    service.stop();
}
