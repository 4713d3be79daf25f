//! The audit log: its chain, its filters and its export.

use pais::db::audit_archive::{self, ArchiveFault, Archived, ArchivedLogs};
use pais::db::audit_chain::{self, ChainFault};
use pais::db::open_ring::open_ring;
use pais::roles::Role;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::app::send;
use crate::hospital::{Hospital, id};

/// A hospital with some events, and the token of its auditor.
async fn with_events() -> (Hospital, String) {
    let hospital = Hospital::new().await;
    hospital.release().await;
    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    (hospital, auditor)
}

async fn events(hospital: &Hospital, auditor: &str, query: &str) -> Vec<Value> {
    let path = format!("/v1/audit{query}");
    let page = hospital.app.get(auditor, &path).await.json(200);
    without_reads(page["items"].as_array().unwrap())
}

/// The events but those of the test's own reads of the log.
fn without_reads(events: &[Value]) -> Vec<Value> {
    let events = events.iter();
    let others = events.filter(|event| event["action"] != "audit.read");
    others.cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_an_organization_are_a_chain() {
    let (hospital, auditor) = with_events().await;
    let newest_first = events(&hospital, &auditor, "").await;
    assert!(newest_first.len() > 3, "{newest_first:?}");
    let mut previous = "0".repeat(64);
    for (place, event) in newest_first.iter().rev().enumerate() {
        assert_eq!(event["seq"], place + 1);
        assert_eq!(event["previous_hash"], previous);
        previous = event["hash"].as_str().unwrap().to_owned();
    }

    // An auditor can compute the hashes from what is shown.
    let organization: String =
        sqlx::query_scalar("SELECT id::text FROM organizations WHERE name = 'hospital'")
            .fetch_one(hospital.app.state.unscoped().db.owner())
            .await
            .unwrap();
    for event in &newest_first {
        let text = json!({
            "action": event["action"], "at": event["at"], "detail": event["detail"],
            "id": event["id"], "organization_id": organization, "seq": event["seq"],
            "subject": event["subject"], "token_id": event["token_id"],
            "address": event["address"], "outcome": event["outcome"],
        });
        let previous = event["previous_hash"].as_str().unwrap();
        let hash = Sha256::digest(format!("{previous}\n{text}"));
        assert_eq!(event["hash"], hex::encode(hash));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_filtered_and_exported() {
    let (hospital, auditor) = with_events().await;
    let all = events(&hospital, &auditor, "").await;
    let made = events(&hospital, &auditor, "?action=dataset.created").await;
    assert_eq!(made.len(), 1);
    let token = made[0]["token_id"].as_str().unwrap();
    let by_token = events(&hospital, &auditor, &format!("?actor={token}")).await;
    let expected = all.iter().filter(|event| event["token_id"] == token);
    assert_eq!(by_token.len(), expected.count());
    let at = made[0]["at"].as_str().unwrap();
    let from = events(&hospital, &auditor, &format!("?from={at}")).await;
    let to = events(&hospital, &auditor, &format!("?to={at}")).await;
    assert_eq!(from.len() + to.len(), all.len());
    assert!(from.contains(&made[0]) && !to.contains(&made[0]));

    let export = hospital.app.get(&auditor, "/v1/audit?format=ndjson").await;
    assert_eq!(export.header("content-type"), "application/x-ndjson");
    let lines = export.text.lines();
    let mut lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    lines.reverse();
    assert_eq!(without_reads(&lines), all);

    let mut cursor = String::new();
    let mut paged = Vec::new();
    loop {
        let path = format!("/v1/audit?limit=2{cursor}");
        let page = hospital.app.get(&auditor, &path).await.json(200);
        paged.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(without_reads(&paged), all);

    for query in [
        "from=yesterday",
        "to=1",
        "action=x",
        "actor=",
        "format=xml",
        "cursor=x",
    ] {
        let refused = hospital
            .app
            .get(&auditor, &format!("/v1/audit?{query}"))
            .await;
        refused.problem(400, "invalid_parameter");
    }
    let both = hospital
        .app
        .get(&auditor, "/v1/audit?format=ndjson&limit=3")
        .await;
    both.problem(422, "invalid_value");
}

/// Changes the tables as somebody can who rules the database and has no key.
async fn tamper(hospital: &Hospital, sql: &str) {
    let options = hospital.app.state.unscoped().db.owner().connect_options();
    let superuser = (*options).clone().username("postgres");
    let mut connection = superuser.connect().await.unwrap();
    let sql = format!("SET session_replication_role = replica; {sql}");
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

async fn faults(hospital: &Hospital) -> Vec<ChainFault> {
    let service = hospital.app.state.unscoped();
    audit_chain::extend(&service.db, &service.keys)
        .await
        .unwrap();
    let check = audit_chain::verify(&service.db, &service.keys)
        .await
        .unwrap();
    check.faults
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_log_is_found() {
    const LOG: &str = "(SELECT id FROM organizations WHERE name = 'hospital')";
    const LAST: &str = "(SELECT max(seq) FROM audit_chain c JOIN organizations o
                         ON o.id = c.organization_id WHERE o.name = 'hospital')";
    let chain = format!("audit_chain WHERE organization_id = {LOG}");
    let event = |seq: &str| format!("(SELECT event_id FROM {chain} AND seq = {seq})");
    let attacks = [
        format!("UPDATE audit_events SET detail = '{{}}' WHERE id = {}", event("2")),
        format!("UPDATE audit_events SET at = at + interval '1 s' WHERE id = {}", event("1")),
        format!("UPDATE audit_events SET token_id = gen_random_uuid() WHERE id = {}", event("2")),
        format!("UPDATE audit_events SET action = 'x' WHERE id = {}", event(LAST)),
        format!("UPDATE audit_events SET address = '192.0.2.9' WHERE id = {}", event("2")),
        format!("UPDATE audit_events SET outcome = 'refused' WHERE id = {}", event("2")),
        // Removed: in the middle, with its link, and at the end.
        format!("DELETE FROM audit_events WHERE id = {}", event("2")),
        format!("DELETE FROM {chain} AND seq = 2"),
        format!("DELETE FROM {chain} AND seq = {LAST}"),
        format!("DELETE FROM {chain}"),
        // Moved: two events change places.
        format!(
            "UPDATE audit_chain c SET event_id = CASE seq WHEN 1 THEN {} ELSE {} END
             WHERE organization_id = {LOG} AND seq IN (1, 2)",
            event("2"),
            event("1")
        ),
        // Added without a link.
        format!(
            "INSERT INTO audit_events (id, organization_id, at, action)
             VALUES (gen_random_uuid(), {LOG}, now(), 'dataset.created')"
        ),
        // The end cut off together with its record, which the key authenticates.
        format!(
            "DELETE FROM {chain} AND seq = {LAST};
             UPDATE audit_heads SET seq = seq - 1, hash = (SELECT hash FROM {chain} AND seq = {LAST})
             WHERE organization_id = {LOG}"
        ),
        format!("DELETE FROM audit_heads WHERE organization_id = {LOG}"),
        // The whole log.
        format!(
            "DELETE FROM {chain};
             DELETE FROM audit_heads WHERE organization_id = {LOG};
             DELETE FROM audit_events WHERE organization_id = {LOG}"
        ),
        "TRUNCATE audit_events, audit_chain, audit_heads CASCADE".to_owned(),
        "TRUNCATE audit_events, audit_chain, audit_heads, audit_root CASCADE".to_owned(),
        "DELETE FROM audit_root".to_owned(),
        // Passed off as archived, with the record of an end that is authentic.
        format!(
            "INSERT INTO audit_archives SELECT organization_id, seq, hash, mac FROM audit_heads
             WHERE organization_id = {LOG};
             DELETE FROM {chain};
             DELETE FROM audit_events WHERE organization_id = {LOG}"
        ),
    ];
    for attack in attacks {
        let (hospital, _) = with_events().await;
        assert_eq!(faults(&hospital).await, [], "before the attack");
        tamper(
            &hospital,
            "ALTER TABLE audit_chain DROP CONSTRAINT audit_chain_event_id_key",
        )
        .await;
        tamper(&hospital, &attack).await;
        assert_ne!(faults(&hospital).await, [], "{attack}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_put_back_to_an_older_end_is_found() {
    let (hospital, auditor) = with_events().await;
    assert_eq!(faults(&hospital).await, []);
    tamper(&hospital, "CREATE TABLE kept AS SELECT * FROM audit_heads").await;
    hospital.filled_dataset().await;
    assert_eq!(faults(&hospital).await, []);
    tamper(
        &hospital,
        "UPDATE audit_heads h SET (seq, hash, mac) = (k.seq, k.hash, k.mac) FROM kept k
         WHERE k.organization_id = h.organization_id;
         CREATE TABLE gone AS SELECT c.event_id FROM audit_chain c JOIN kept k USING (organization_id)
         WHERE c.seq > k.seq;
         DELETE FROM audit_chain WHERE event_id IN (SELECT event_id FROM gone);
         DELETE FROM audit_events WHERE id IN (SELECT event_id FROM gone)",
    )
    .await;
    assert_eq!(faults(&hospital).await, [ChainFault::Ends]);

    // Nothing is chained behind it.
    hospital.app.get(&auditor, "/v1/whoami").await.json(200);
    hospital.filled_dataset().await;
    let service = hospital.app.state.unscoped();
    let extended = audit_chain::extend(&service.db, &service.keys).await;
    assert!(extended.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_can_only_add_events() {
    let (hospital, _) = with_events().await;
    assert_eq!(faults(&hospital).await, []);
    let pool = hospital.app.state.unscoped().db.owner();
    for statement in [
        "UPDATE audit_events SET detail = '{}'",
        "DELETE FROM audit_events",
        "TRUNCATE audit_events CASCADE",
        "UPDATE audit_chain SET seq = seq + 1",
        "DELETE FROM audit_chain",
    ] {
        let error = sqlx::query(statement).execute(pool).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
    assert_eq!(faults(&hospital).await, []);
}

/// What reads anything about rows, and what is beyond a role, leaves an event; the rest of the log is
/// as it would be without.
#[tokio::test(flavor = "multi_thread")]
async fn reads_are_in_the_log() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let release = hospital.release().await;
    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let read = [
        (format!("{release}/data"), "release.fetched"),
        (format!("{release}/report"), "release.fetched"),
        (format!("{dataset}/profile"), "profile.read"),
        (format!("{dataset}/risk"), "risk.read"),
        (
            format!("{release}/composition?recipient=hospital"),
            "composition.read",
        ),
    ];
    for (path, action) in &read {
        let seen = hospital.get(path).await;
        assert_eq!(seen.status, 200, "{path}");
        let newest = events(&hospital, &auditor, &format!("?action={action}")).await;
        assert_eq!(newest.first().unwrap()["action"], *action);
    }
    // Each read of the log is an event, however many pages it has.
    let path = "/v1/audit?action=audit.read&limit=2";
    let logs = hospital.app.get(&auditor, path).await.json(200);
    assert_eq!(logs["items"].as_array().unwrap().len(), 2);
    let cursor = logs["next_cursor"].as_str().unwrap();
    let next = format!("{path}&cursor={cursor}");
    hospital.app.get(&auditor, &next).await.json(200);
    let path = "/v1/audit?action=audit.read";
    let logs = hospital.app.get(&auditor, path).await.json(200);
    assert_eq!(logs["items"].as_array().unwrap().len(), read.len() + 1);

    let refused = hospital.app.get(&auditor, &release).await;
    refused.problem(403, "forbidden");
    let refused = events(&hospital, &auditor, "?action=token.refused").await;
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["detail"]["reason"], "role");
}

/// Who, from where, and whether it was done: a grant that the policy refuses is in the log, too.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_says_from_where_and_whether_it_was_refused() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    hospital.app.token("bts", Role::Recipient).await;
    let policy = json!({ "recipients": ["nobody"], "k_min": 50 });
    let put = hospital.app.request(reqwest::Method::PUT, "/v1/policy");
    send(put.bearer_auth(&hospital.token).json(&policy))
        .await
        .json(200);
    let asked = json!({ "recipient": "bts", "purpose": "blood usage" });
    let refused = hospital.post(&format!("{release}/grants"), &asked).await;
    refused.problem(422, "below_policy");
    let dataset = hospital.filled_dataset().await;
    let job = json!({ "dataset_id": id(&dataset), "privacy": { "model": "k_anonymity", "k": 2 } });
    let refused = hospital.post("/v1/jobs", &job).await;
    refused.problem(422, "below_policy");

    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    for (action, subject) in [("grant.created", &release), ("job.created", &dataset)] {
        let newest = events(&hospital, &auditor, &format!("?action={action}")).await;
        assert_eq!(newest[0]["outcome"], "refused", "{action}");
        assert_eq!(newest[0]["subject"], id(subject));
        assert_eq!(newest[0]["detail"]["code"], "below_policy");
    }
    let all = events(&hospital, &auditor, "").await;
    for event in &all {
        // The tokens were made on the command line, and the release by its job.
        let address = match event["token_id"].is_null() {
            true => Value::Null,
            false => json!("127.0.0.1"),
        };
        assert_eq!(event["address"], address, "{event}");
    }
    assert!(all.iter().any(|event| event["outcome"] == "done"));
}

/// The lines that an archive of the events before this time has.
async fn archived(hospital: &Hospital, before: time::OffsetDateTime) -> (Archived, Vec<u8>) {
    let service = hospital.app.state.unscoped();
    let mut file = Vec::new();
    let done = audit_archive::archive(&service.db, &service.keys, before, &mut file, |_| Ok(()))
        .await
        .unwrap();
    (done, file)
}

async fn archive_faults(hospital: &Hospital, files: &[&[u8]]) -> Vec<ArchiveFault> {
    let service = hospital.app.state.unscoped();
    let mut logs = ArchivedLogs::default();
    for file in files {
        if let Some(fault) = logs.read(*file).unwrap() {
            return vec![fault];
        }
    }
    logs.check_ends(&service.db, &service.keys).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn old_events_are_archived_and_the_rest_continues_the_chain() {
    let (hospital, auditor) = with_events().await;
    let before = events(&hospital, &auditor, "").await;
    hospital.app.clock.advance(time::Duration::days(30));
    let now = hospital.app.state.unscoped().db.now();
    hospital.filled_dataset().await;
    let (first, file) = archived(&hospital, now).await;
    let log = |file: &[u8]| {
        let lines = std::str::from_utf8(file).unwrap().lines();
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.collect::<Vec<_>>()
    };
    assert_eq!(first.events as usize, log(&file).len());
    for event in &before {
        let kept = log(&file)
            .into_iter()
            .find(|line| line["id"] == event["id"]);
        let kept = kept.expect("every older event is in the file");
        for field in [
            "seq",
            "at",
            "action",
            "subject",
            "detail",
            "hash",
            "previous_hash",
        ] {
            assert_eq!(kept[field], event[field]);
        }
    }
    assert_eq!(faults(&hospital).await, []);
    assert_eq!(archive_faults(&hospital, &[&file]).await, []);

    // What is left continues where the archive ends, and says so.
    let left = events(&hospital, &auditor, "").await;
    let oldest = left.last().unwrap();
    assert!(oldest["seq"].as_u64().unwrap() > before.len() as u64);
    let end = log(&file)
        .into_iter()
        .rev()
        .find(|line| line["seq"] == oldest["seq"].as_u64().unwrap() - 1)
        .unwrap();
    assert_eq!(oldest["previous_hash"], end["hash"]);
    assert!(left.iter().any(|event| event["action"] == "audit.archived"));

    // A second archive continues the first one.
    let (nothing, empty) = archived(&hospital, now - time::Duration::days(60)).await;
    assert_eq!((nothing, empty), (Archived::default(), Vec::new()));
    hospital.app.clock.advance(time::Duration::days(1));
    let later = hospital.app.state.unscoped().db.now();
    let (_, second) = archived(&hospital, later).await;
    assert_eq!(faults(&hospital).await, []);
    assert_eq!(archive_faults(&hospital, &[&file, &second]).await, []);

    // Missing, in another order, cut off, changed.
    assert_ne!(archive_faults(&hospital, &[]).await, []);
    assert_ne!(archive_faults(&hospital, &[&file]).await, []);
    assert_ne!(archive_faults(&hospital, &[&second, &file]).await, []);
    let lines: Vec<&[u8]> = second.split_inclusive(|&byte| byte == b'\n').collect();
    let cut = lines[..lines.len() - 1].concat();
    assert_ne!(archive_faults(&hospital, &[&file, &cut]).await, []);
    let changed = String::from_utf8(file.clone()).unwrap();
    let changed = changed.replacen("dataset.created", "dataset.deleted", 1);
    assert_ne!(
        archive_faults(&hospital, &[changed.as_bytes(), &second]).await,
        []
    );
    let mut logs = ArchivedLogs::default();
    logs.read(&b"{\"seq\": 1}\n"[..]).unwrap_err();
    logs.read(&file[..file.len() - 3]).unwrap_err();
    logs.read(&vec![b' '; 3 << 20][..]).unwrap_err();
}

/// The attack: without the root, the newest events of a log could be removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_root_is_found() {
    let hospital = Hospital::new().await;
    let db = &hospital.app.state.unscoped().db;
    let keys = [[7; 32].into()];
    let ring = open_ring(db, &keys, None).await.unwrap();
    hospital.dataset().await;
    assert!(audit_chain::extend(db, &ring).await.unwrap() > 0);
    let faults = async |ring| audit_chain::verify(db, ring).await.unwrap().faults;
    assert_eq!(faults(&ring).await, []);
    let remove = "DELETE FROM audit_root";
    sqlx::query(remove).execute(db.owner()).await.unwrap();
    let ring = open_ring(db, &keys, None).await.unwrap();
    assert_eq!(faults(&ring).await, [ChainFault::Ends]);
}

/// A dump is restored under a running service, whose own key is another one than that of the restored
/// database. What it chained then would never be right again.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_chains_nothing_in_a_database_that_was_restored_under_it() {
    let hospital = Hospital::new().await;
    let db = &hospital.app.state.unscoped().db;
    let (keys, pool) = ([[7; 32].into()], db.owner());
    let running = open_ring(db, &keys, None).await.unwrap();
    sqlx::query("DELETE FROM service_keys")
        .execute(pool)
        .await
        .unwrap();
    let restored = open_ring(db, &keys, None).await.unwrap();
    hospital.dataset().await;
    audit_chain::extend(db, &restored).await.unwrap();
    // An event that has no place in the chain yet.
    hospital.dataset().await;
    let places = async || -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM audit_chain");
        count.fetch_one(pool).await.unwrap()
    };
    let before = places().await;
    let refused = audit_chain::extend(db, &running).await.unwrap_err();
    assert!(
        refused.to_string().contains("restart the service"),
        "{refused}"
    );
    assert_eq!(places().await, before);
    // After the restart.
    let restarted = open_ring(db, &keys, None).await.unwrap();
    assert!(audit_chain::extend(db, &restarted).await.unwrap() > 0);
    let check = audit_chain::verify(db, &restarted).await.unwrap();
    assert_eq!(check.faults, []);
}
