//! Withdrawals: what remains of a withdrawn release.

use pais::roles::Role;
use serde_json::json;

use crate::hospital::Hospital;

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_release_is_served_to_nobody_and_keeps_its_metadata() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let asked = json!({ "recipient": "bts", "purpose": "blood usage" });
    let grants = format!("{release}/grants");
    hospital.post(&grants, &asked).await.json(201);
    let served =
        ["data", "tables/data", "report", "package"].map(|part| format!("{release}/{part}"));
    for path in &served {
        assert_eq!(hospital.app.get(&bts, path).await.status, 200, "{path}");
    }

    let withdrawal = format!("{release}/withdrawal");
    let reason = json!({ "reason": "two hospitals sent the same patients" });
    let made = hospital.post(&withdrawal, &reason).await.json(201);
    assert_eq!(made["reason"], reason["reason"]);
    for token in [&hospital.token, &bts] {
        for path in &served {
            let gone = hospital.app.get(token, path).await;
            gone.problem(410, "withdrawn");
        }
        let shown = hospital.app.get(token, &release).await.json(200);
        assert_eq!(shown["withdrawn"], made);
        assert_eq!(shown["rows"], 11);
    }
    let listed = hospital.app.get(&bts, "/v1/releases").await.json(200);
    assert_eq!(listed["items"][0]["withdrawn"], made);

    let again = hospital.post(&withdrawal, &reason).await;
    again.problem(410, "withdrawn");
    let other = json!({ "recipient": "hospital", "purpose": "blood usage" });
    hospital
        .post(&grants, &other)
        .await
        .problem(410, "withdrawn");

    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let events = hospital.app.get(&auditor, "/v1/audit").await.json(200);
    let events = events["items"].as_array().unwrap();
    let withdrawn = events
        .iter()
        .find(|event| event["action"] == "release.withdrawn")
        .unwrap();
    assert_eq!(withdrawn["detail"]["reason"], reason["reason"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_needs_a_reason_and_a_release_of_the_holder() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let withdrawal = format!("{release}/withdrawal");
    let empty = hospital.post(&withdrawal, &json!({ "reason": "  " })).await;
    empty.problem(422, "invalid_value");
    let long = json!({ "reason": "x".repeat(2_001) });
    hospital
        .post(&withdrawal, &long)
        .await
        .problem(422, "invalid_value");
    let absent = hospital.post(&withdrawal, &json!({})).await;
    absent.problem(400, "invalid_shape");

    let reason = json!({ "reason": "an error in the rows" });
    let other = hospital.app.token("other", Role::Holder).await;
    let foreign = hospital.app.post(&other, &withdrawal, &reason).await;
    foreign.problem(404, "not_found");
    assert_eq!(hospital.get(&format!("{release}/data")).await.status, 200);
}
