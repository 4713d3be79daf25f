//! Publications: editions of new rows, their labels, grants, approval, and what their readers get.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pais::roles::Role;
use pais_test_support::poll::poll_async;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, send, text};
use crate::hospital::{Hospital, id};
use crate::process::{ServiceProcess, call, pais};

const JOB: fn() -> Value = || {
    json!({
        "privacy": { "model": "lkc", "l": 2, "k": 2, "c": 1.0 },
        "utility": { "objective": "ncp" },
    })
};

/// A dataset of visits with a tree of wards.
async fn visits(hospital: &Hospital, persons: &str) -> String {
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
fn month(first: usize) -> String {
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

async fn publication(hospital: &Hospital, dataset: &str, trigger: &str, job: Value) -> String {
    let body = json!({
        "name": "monthly", "dataset_id": id(dataset), "job": job, "trigger": trigger,
        "recipients": [{ "recipient": "bts", "purpose": "blood usage" }],
    });
    let made = hospital.post("/v1/publications", &body).await.json(201);
    assert_eq!(made["recipients"][0]["recipient"]["name"], "bts");
    assert_eq!(made["trigger"], trigger);
    format!("/v1/publications/{}", text(&made["id"]))
}

async fn editions(hospital: &Hospital, publication: &str) -> Vec<Value> {
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

/// The edition with a number, once it has ended or waits for approval.
async fn settled(hospital: &Hospital, publication: &str, number: usize) -> Value {
    let settled = poll_async(Duration::from_secs(60), async || {
        let found = editions(hospital, publication).await;
        let edition = found.get(number - 1)?;
        let is_under_way = ["queued", "running"].contains(&text(&edition["status"]));
        (!is_under_way).then(|| edition.clone())
    });
    settled.await.expect("an edition is not settled after 60 s")
}

async fn published(hospital: &Hospital, publication: &str, number: usize) -> Value {
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
    let expected = ["number", "published_at", "release_id", "rows", "sha256"];
    assert_eq!(seen, BTreeSet::from(expected));
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
    let policy = json!({ "require_approval": true });
    let put = change(&hospital, Method::PUT, &officer, "/v1/policy", &policy);
    put.await.json(200);
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
    let publish = |rows: String| {
        let file = folder.path().join("month.csv");
        std::fs::write(&file, rows).unwrap();
        let mut command = pais(&data);
        command.args([
            "publish",
            "--publication",
            "monthly",
            "--url",
            &service.base,
        ]);
        command
            .arg(&file)
            .env("PAIS_TOKEN", &token)
            .output()
            .unwrap()
    };
    let done = publish(month(900));
    let printed = String::from_utf8_lossy(&done.stdout);
    assert_eq!(
        done.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(
        printed.contains("edition 5 of monthly is published: 16 rows"),
        "{printed}"
    );
    let failed = publish("person,age,ward,diagnosis\nx,1,a1,d0\n".to_owned());
    assert_eq!(failed.status.code(), Some(1));
    // The same rows again are refused.
    assert_eq!(publish(month(900)).status.code(), Some(1));
    let policy = json!({ "require_approval": true });
    call(client.put(at(&service, "/v1/policy")).json(&policy), &token).await;
    assert_eq!(publish(month(1_000)).status.code(), Some(3));
    service.stop();
}
