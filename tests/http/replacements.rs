//! Submissions that take the place of others.

use std::sync::Arc;
use std::time::Duration;

use pais::roles::Role;
use pais_test_support::poll::poll_async;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{PgConnection, Row};

use crate::app::{Answer, send, text};
use crate::database::lock_waits;
use crate::hospital::{Hospital, TABLE, id};
use crate::publications::{JOB, editions, month, publication, published, settled, visits};

/// Sends rows in the place of a submission.
async fn replace(
    hospital: &Hospital,
    dataset: &str,
    replaced: &Value,
    rows: impl Into<reqwest::Body>,
) -> Answer {
    let path = format!("{dataset}/submissions?replaces={}", text(replaced));
    let token = &hospital.token;
    hospital
        .app
        .post_bytes(token, &path, "text/csv", rows)
        .await
}

/// [`TABLE`] with another age in its first row.
fn corrected() -> String {
    let corrected = TABLE.replacen("34", "35", 1);
    assert_ne!(corrected, TABLE);
    corrected
}

async fn submissions(hospital: &Hospital, dataset: &str) -> Vec<Value> {
    let path = format!("{dataset}/submissions");
    let found = hospital.get(&path).await.json(200);
    found["items"].as_array().unwrap().clone()
}

/// The pairs of submissions, each with that which took its place.
async fn replacements(hospital: &Hospital, dataset: &str) -> Vec<(Value, Value)> {
    let found = submissions(hospital, dataset).await.into_iter();
    let replaced = found.filter(|it| it.get("replaced_by").is_some());
    let pairs = replaced.map(|it| (it["id"].clone(), it["replaced_by"].clone()));
    pairs.collect()
}

/// The submissions that a job reads.
async fn read_by(hospital: &Hospital, job: &str) -> Value {
    let owner = hospital.app.state.unscoped().db.owner();
    let job: uuid::Uuid = id(job).parse().unwrap();
    let read = sqlx::query_scalar("SELECT submissions FROM jobs WHERE id = $1").bind(job);
    let read: Vec<uuid::Uuid> = read.fetch_one(owner).await.unwrap();
    json!(read)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_takes_the_place_of_another() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let first = hospital.submit(&dataset, TABLE).await.json(201);
    let more = TABLE.lines().take(4).collect::<Vec<_>>().join("\n");
    let other = hospital.submit(&dataset, more).await.json(201);
    let second = replace(&hospital, &dataset, &first["id"], corrected()).await;
    let second = second.json(201);
    assert_eq!(second["replaces"], first["id"]);
    assert!(first.get("replaces").is_none() && first.get("replaced_by").is_none());

    // The dataset has the new rows in the place of the old ones.
    let shown = hospital.get(&dataset).await.json(200);
    assert_eq!(
        (&shown["rows"], &shown["submissions_total"]),
        (&json!(14), &json!(3))
    );
    assert_eq!(shown["submissions"][0]["replaces"], first["id"]);
    assert_eq!(shown["submissions"][2]["replaced_by"], second["id"]);
    let listed = hospital.get("/v1/datasets").await.json(200);
    let listed = &listed["items"][0];
    assert_eq!(
        (&listed["rows"], &listed["submissions"]),
        (&json!(14), &json!(3))
    );
    let pairs = [(first["id"].clone(), second["id"].clone())];
    assert_eq!(replacements(&hospital, &dataset).await, pairs);
    for figures in ["profile", "risk"] {
        let found = hospital
            .get(&format!("{dataset}/{figures}"))
            .await
            .json(200);
        assert_eq!(found["rows"], 14, "{figures}");
    }

    // So does a job, which cannot ask for the old ones.
    let job = hospital.job(&dataset, json!({})).await;
    let read = read_by(&hospital, &job).await;
    assert_eq!(read, json!([other["id"], second["id"]]));
    let mut body = crate::hospital::job_on(&dataset);
    body["submissions"] = json!([first["id"]]);
    let refused = hospital.post("/v1/jobs", &body).await;
    refused.problem(404, "not_found");

    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let events = "/v1/audit?action=submission.replaced";
    let events = hospital.app.get(&auditor, events).await.json(200);
    let event = &events["items"][0];
    assert_eq!(
        (&event["subject"], &event["outcome"]),
        (&first["id"], &json!("done"))
    );
    let detail = json!({ "dataset_id": id(&dataset), "replaced_by": second["id"] });
    assert_eq!(event["detail"], detail);
    assert_eq!(events["items"].as_array().unwrap().len(), 1);

    // The same rows are not sent in the place of themselves, but those of before can come back.
    let same = replace(&hospital, &dataset, &second["id"], corrected()).await;
    same.problem(409, "duplicate_submission");
    let back = replace(&hospital, &dataset, &second["id"], TABLE).await;
    let back = back.json(201);
    let pairs = [
        (first["id"].clone(), second["id"].clone()),
        (second["id"].clone(), back["id"].clone()),
    ];
    assert_eq!(replacements(&hospital, &dataset).await, pairs);
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_is_not_a_second_replacement() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let first = hospital.submit(&dataset, TABLE).await.json(201);
    let sent = async |query: &str| {
        let path = format!("{dataset}/submissions?{query}");
        let request = hospital.app.request(Method::POST, &path);
        let request = request.bearer_auth(&hospital.token);
        let headers = request
            .header("content-type", "text/csv")
            .header("idempotency-key", "march");
        send(headers.body(corrected())).await
    };
    let replaces = format!("replaces={}", text(&first["id"]));
    let second = sent(&replaces).await.json(201);
    assert_eq!(sent(&replaces).await.json(201), second);
    assert_eq!(submissions(&hospital, &dataset).await.len(), 2);
    // The key stands for the replacement, not for the rows alone.
    for query in ["", &format!("replaces={}", text(&second["id"]))] {
        let other = sent(query).await;
        other.problem(409, "idempotency_key_reused");
    }
    assert_eq!(submissions(&hospital, &dataset).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_replaced_is_refused_and_stays() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let first = hospital.submit(&dataset, TABLE).await.json(201);
    let elsewhere = hospital.dataset().await;
    let elsewhere = hospital.submit(&elsewhere, TABLE).await.json(201);
    let deleted = hospital.submit(&dataset, TABLE).await.json(201);
    let path = format!("{dataset}/submissions/{}", text(&deleted["id"]));
    assert_eq!(
        hospital.app.delete(&hospital.token, &path).await.status,
        204
    );

    let malformed = replace(&hospital, &dataset, &json!("march"), corrected()).await;
    malformed.problem(400, "invalid_parameter");
    let unknown = json!(uuid::Uuid::now_v7());
    for replaced in [&unknown, &elsewhere["id"], &deleted["id"]] {
        // The body is not looked at.
        for rows in [corrected(), "no table".to_owned()] {
            let refused = replace(&hospital, &dataset, replaced, rows).await;
            let problem = refused.problem(404, "not_found");
            let detail = text(&problem["detail"]);
            assert!(detail.contains(text(replaced)), "{detail}");
        }
    }
    // Another organization sees neither the dataset nor the submission, and has no use of its id.
    let other = hospital.app.token("other", Role::Holder).await;
    let query = format!("?replaces={}", text(&first["id"]));
    let path = format!("{dataset}/submissions{query}");
    let foreign = hospital
        .app
        .post_bytes(&other, &path, "text/csv", corrected());
    foreign.await.problem(404, "not_found");
    let own = crate::hospital::definition("patients");
    let own = hospital
        .app
        .post(&other, "/v1/datasets", &own)
        .await
        .json(201);
    let path = format!("/v1/datasets/{}/submissions{query}", text(&own["id"]));
    let foreign = hospital
        .app
        .post_bytes(&other, &path, "text/csv", corrected());
    foreign.await.problem(404, "not_found");

    // Rows that are refused replace nothing.
    let unfit = corrected() + "12,Janitor,M,old,Y,Plastic\n";
    let refused = replace(&hospital, &dataset, &first["id"], unfit).await;
    refused.problem(422, "invalid_cells");
    assert_eq!(replacements(&hospital, &dataset).await, []);
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 11);

    let second = replace(&hospital, &dataset, &first["id"], corrected()).await;
    let second = second.json(201);
    let again = replace(&hospital, &dataset, &first["id"], "no table").await;
    let problem = again.problem(409, "not_replaceable");
    let detail = text(&problem["detail"]);
    assert!(detail.contains(text(&second["id"])), "{detail}");
}

/// Returns when this number of statements wait for a lock.
pub(crate) async fn wait_for(hospital: &Hospital, number: i64) {
    let owner = hospital.app.state.unscoped().db.owner();
    let waits = poll_async(Duration::from_secs(60), async || {
        (lock_waits(owner).await == number).then_some(())
    });
    waits.await.expect("statements wait for a lock");
}

async fn run(connection: &mut PgConnection, statement: &'static str) {
    sqlx::raw_sql(statement).execute(connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_replacements_at_once_one_is_stored() {
    let hospital = Arc::new(Hospital::new().await);
    let dataset = hospital.dataset().await;
    let first = hospital.submit(&dataset, TABLE).await.json(201);
    // Both have been found to be possible before either is stored.
    let owner = hospital.app.state.unscoped().db.owner();
    let mut blocking = owner.begin().await.unwrap();
    run(&mut blocking, "SELECT FROM datasets FOR NO KEY UPDATE").await;
    let uploads = ["35", "36"].map(|age| {
        let (hospital, dataset, first) = (hospital.clone(), dataset.clone(), first.clone());
        let rows = TABLE.replacen("34", age, 1);
        tokio::spawn(async move { replace(&hospital, &dataset, &first["id"], rows).await })
    });
    wait_for(&hospital, 2).await;
    blocking.rollback().await.unwrap();
    let mut stored = Vec::new();
    for upload in uploads {
        let answer = upload.await.unwrap();
        if answer.status == 201 {
            stored.push(answer.json(201));
        } else {
            answer.problem(409, "not_replaceable");
        }
    }
    let [second] = stored.as_slice() else {
        panic!("{stored:?}");
    };
    assert_eq!(submissions(&hospital, &dataset).await.len(), 2);
    let pairs = [(first["id"].clone(), second["id"].clone())];
    assert_eq!(replacements(&hospital, &dataset).await, pairs);
}

/// Neither deletion brings old rows back, or takes new ones.
#[tokio::test(flavor = "multi_thread")]
async fn the_deletion_of_one_of_two_submissions_leaves_the_other_as_it_is() {
    let hospital = Hospital::new().await;
    let delete = async |dataset: &str, submission: &Value| {
        let path = format!("{dataset}/submissions/{}", text(&submission["id"]));
        let deleted = hospital.app.delete(&hospital.token, &path).await;
        assert_eq!(deleted.status, 204);
    };
    let replaced = async || {
        let dataset = hospital.dataset().await;
        let first = hospital.submit(&dataset, TABLE).await.json(201);
        let second = replace(&hospital, &dataset, &first["id"], corrected()).await;
        (dataset, first, second.json(201))
    };
    let (dataset, first, second) = replaced().await;
    delete(&dataset, &second).await;
    let pairs = [(first["id"].clone(), second["id"].clone())];
    assert_eq!(replacements(&hospital, &dataset).await, pairs);
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 0);
    let job = hospital
        .post("/v1/jobs", &crate::hospital::job_on(&dataset))
        .await;
    job.problem(422, "invalid_job");
    let again = replace(&hospital, &dataset, &first["id"], corrected()).await;
    again.problem(409, "not_replaceable");
    // The rows can be sent as new ones.
    hospital.submit(&dataset, corrected()).await.json(201);
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 11);

    let (dataset, first, second) = replaced().await;
    delete(&dataset, &first).await;
    let left = submissions(&hospital, &dataset).await;
    assert_eq!((left.len(), &left[0]["id"]), (1, &second["id"]));
    assert!(left[0].get("replaces").is_none(), "{left:?}");
    assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 11);
    let job = hospital.job(&dataset, json!({})).await;
    assert_eq!(read_by(&hospital, &job).await, json!([second["id"]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_release_is_made_of_rows_that_are_replaced() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let first = hospital.submit(&dataset, TABLE).await.json(201);
    let done = hospital.job(&dataset, json!({})).await;
    let workers = hospital.work();
    assert_eq!(hospital.ended(&done).await["status"], "succeeded");
    workers.stop().await;
    // One job waits; another is about to store its release.
    let queued = hospital.job(&dataset, json!({})).await;
    let owner = hospital.app.state.unscoped().db.owner();
    let mut blocking = owner.begin().await.unwrap();
    let trigger = "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_advisory_xact_lock(4); RETURN NEW; END $$;
         CREATE TRIGGER waits BEFORE INSERT ON job_steps FOR EACH ROW EXECUTE FUNCTION waits()";
    run(&mut owner.acquire().await.unwrap(), trigger).await;
    run(&mut blocking, "SELECT pg_advisory_xact_lock(4)").await;
    let workers = hospital.work();
    let path = queued.clone();
    wait_for(&hospital, 1).await;
    let second = replace(&hospital, &dataset, &first["id"], corrected()).await;
    let second = second.json(201);
    let waiting = hospital.job(&dataset, json!({ "release": true })).await;
    let third = replace(&hospital, &dataset, &second["id"], TABLE).await;
    third.json(201);
    blocking.rollback().await.unwrap();
    // Without a release it ends as any, and has none later.
    assert_eq!(hospital.ended(&path).await["status"], "succeeded");
    let ended = hospital.ended(&waiting).await;
    workers.stop().await;
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["error"]["code"], "submission_replaced", "{ended}");
    for job in [&done, &queued] {
        let body = json!({ "job_id": id(job) });
        let refused = hospital.post("/v1/releases", &body).await;
        let problem = refused.problem(409, "submission_replaced");
        let detail = text(&problem["detail"]);
        assert!(detail.contains(text(&second["id"])), "{detail}");
    }
    let releases = hospital.get("/v1/releases").await.json(200);
    assert_eq!(releases["items"], json!([]));
}

/// Of a release and a replacement at the same time, that which is stored first keeps the other back.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_and_a_replacement_of_its_rows_wait_for_each_other() {
    let hospital = Arc::new(Hospital::new().await);
    let owner = hospital.app.state.unscoped().db.owner();
    let function = "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_advisory_xact_lock(4); RETURN NEW; END $$";
    run(&mut owner.acquire().await.unwrap(), function).await;
    for (is_first, [create, drop]) in [
        (
            false,
            [
                "CREATE TRIGGER waits BEFORE INSERT ON job_steps FOR EACH ROW
                 EXECUTE FUNCTION waits()",
                "DROP TRIGGER waits ON job_steps",
            ],
        ),
        (
            true,
            [
                "CREATE TRIGGER waits BEFORE INSERT ON release_chunks FOR EACH ROW
                 EXECUTE FUNCTION waits()",
                "DROP TRIGGER waits ON release_chunks",
            ],
        ),
    ] {
        let dataset = hospital.dataset().await;
        let first = hospital.submit(&dataset, TABLE).await.json(201);
        let job = hospital.job(&dataset, json!({ "release": true })).await;
        run(&mut owner.acquire().await.unwrap(), create).await;
        let mut blocking = owner.begin().await.unwrap();
        run(&mut blocking, "SELECT pg_advisory_xact_lock(4)").await;
        let workers = hospital.work();
        wait_for(&hospital, 1).await;
        let replacement = tokio::spawn({
            let (hospital, dataset) = (hospital.clone(), dataset.clone());
            async move { replace(&hospital, &dataset, &first["id"], corrected()).await }
        });
        let ended = if is_first {
            wait_for(&hospital, 2).await;
            blocking.rollback().await.unwrap();
            replacement.await.unwrap().problem(409, "not_replaceable");
            hospital.ended(&job).await
        } else {
            replacement.await.unwrap().json(201);
            blocking.rollback().await.unwrap();
            hospital.ended(&job).await
        };
        workers.stop().await;
        if is_first {
            assert_eq!(ended["status"], "succeeded", "{ended}");
        } else {
            assert_eq!(ended["error"]["code"], "submission_replaced", "{ended}");
        }
        run(&mut owner.acquire().await.unwrap(), drop).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn released_rows_are_replaced_only_where_persons_are_known() {
    for persons in ["insensitive", "subject"] {
        let hospital = Hospital::new().await;
        hospital.app.token("bts", Role::Recipient).await;
        let dataset = visits(&hospital, persons).await;
        let publication = publication(&hospital, &dataset, "submission", JOB()).await;
        let workers = hospital.work();
        let first = hospital.submit(&dataset, month(0)).await.json(201);
        published(&hospital, &publication, 1).await;
        // Everybody comes again, with other diagnoses.
        let corrected = month(0).replace(",d0", ",d5");
        let answer = replace(&hospital, &dataset, &first["id"], corrected).await;
        if persons == "insensitive" {
            let problem = answer.problem(409, "not_replaceable");
            let detail = text(&problem["detail"]);
            assert!(detail.contains("`subject`"), "{detail}");
            assert_eq!(replacements(&hospital, &dataset).await, []);
            assert_eq!(editions(&hospital, &publication).await.len(), 1);
            workers.stop().await;
            continue;
        }
        let second = answer.json(201);
        let edition = published(&hospital, &publication, 2).await;
        assert_eq!(edition["submissions"], json!([second["id"]]));
        assert_eq!(
            (&edition["rows"], &edition["held_back_rows"]),
            (&json!(16), &json!(0))
        );

        // One of them gets another age: nobody else has the labels of before and after.
        let alone = month(0).replace("p0,20,", "p0,70,");
        let third = replace(&hospital, &dataset, &second["id"], alone).await;
        let third = third.json(201);
        // So that person waits, and the other of the pair, who would have been found without.
        let edition = published(&hospital, &publication, 3).await;
        let figures = (&edition["rows"], &edition["held_back_rows"]);
        assert_eq!(figures, (&json!(14), &json!(2)));
        // Both of them have the new age: two are enough.
        let pair = month(0)
            .replace("p0,20,", "p0,70,")
            .replace("p1,20,", "p1,70,");
        let fourth = replace(&hospital, &dataset, &third["id"], pair).await;
        let fourth = fourth.json(201);
        let edition = published(&hospital, &publication, 4).await;
        workers.stop().await;
        assert_eq!(edition["submissions"], json!([fourth["id"]]));
        assert_eq!(
            (&edition["rows"], &edition["held_back_rows"]),
            (&json!(16), &json!(0))
        );
        // The decision of the releases together, over replaced rows too, agrees.
        let path = format!(
            "/v1/releases/{}/composition?recipient=bts",
            text(&edition["release_id"])
        );
        let found = hospital.get(&path).await.json(200);
        assert_eq!(found["holds"], true, "{found}");
        assert_eq!(found["releases"].as_array().unwrap().len(), 4);
        // A job has the rows of today alone.
        assert_eq!(hospital.get(&dataset).await.json(200)["rows"], 16);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edition_takes_no_rows_that_are_replaced_before_it_runs() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let first = hospital.submit(&dataset, month(0)).await.json(201);
    let corrected = month(0).replace(",d0", ",d5");
    let second = replace(&hospital, &dataset, &first["id"], corrected).await;
    let second = second.json(201);
    let workers = hospital.work();
    let edition = settled(&hospital, &publication, 1).await;
    assert_eq!(edition["status"], "failed", "{edition}");
    assert_eq!(edition["error"]["code"], "submission_replaced", "{edition}");
    let edition = published(&hospital, &publication, 2).await;
    workers.stop().await;
    assert_eq!(edition["submissions"], json!([second["id"]]));
    assert_eq!(edition["rows"], 16);
    let diagnoses = hospital
        .get(&format!(
            "/v1/releases/{}/data",
            text(&edition["release_id"])
        ))
        .await;
    assert!(diagnoses.text.contains("d5") && !diagnoses.text.contains("d0"));
    // What waits of a replaced submission is not tried again.
    let owner = hospital.app.state.unscoped().db.owner();
    let taken = sqlx::query("SELECT count(*) FROM edition_submissions WHERE number > 1");
    let taken: i64 = taken.fetch_one(owner).await.unwrap().get(0);
    assert_eq!(taken, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edition_that_waits_for_approval_is_refused_when_its_rows_are_replaced() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let policy = json!({ "require_approval": true });
    let request = hospital.app.request(Method::PUT, "/v1/policy");
    let policy = send(request.bearer_auth(&hospital.token).json(&policy)).await;
    policy.json(200);
    let dataset = visits(&hospital, "subject").await;
    let publication = publication(&hospital, &dataset, "submission", JOB()).await;
    let workers = hospital.work();
    let first = hospital.submit(&dataset, month(0)).await.json(201);
    let edition = settled(&hospital, &publication, 1).await;
    assert_eq!(edition["status"], "awaiting_approval", "{edition}");
    let corrected = month(0).replace(",d0", ",d5");
    let second = replace(&hospital, &dataset, &first["id"], corrected).await;
    let second = second.json(201);
    let edition = &editions(&hospital, &publication).await[0];
    assert_eq!(edition["status"], "refused", "{edition}");
    assert_eq!(edition["error"]["code"], "submission_replaced", "{edition}");
    let edition = settled(&hospital, &publication, 2).await;
    workers.stop().await;
    assert_eq!(edition["status"], "awaiting_approval", "{edition}");
    assert_eq!(edition["submissions"], json!([second["id"]]));
}
