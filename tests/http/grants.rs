//! Grants: what a recipient may see, and until when.

use pais::roles::Role;
use serde_json::json;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use crate::app::text;
use crate::hospital::Hospital;

fn rfc3339(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_sees_what_was_granted_and_nothing_else() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let hidden = hospital.release().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let see = async |path: &str| hospital.app.get(&bts, path).await;
    see(&release).await.problem(404, "not_found");

    let grants = format!("{release}/grants");
    let asked = json!({ "recipient": "bts", "purpose": "blood usage" });
    let granted = hospital.post(&grants, &asked).await;
    let path = granted.header("location").to_owned();
    let granted = granted.json(201);
    assert_eq!(granted["recipient"]["name"], "bts");
    assert_eq!(granted["purpose"], "blood usage");
    let again = hospital.post(&grants, &asked).await;
    again.problem(409, "grant_exists");

    let mut own = hospital.get(&release).await.json(200);
    let mut seen = see(&release).await.json(200);
    // The recipient sees the purpose of its grant, and no step; a list has none of what is long.
    assert_eq!(seen["purpose"], "blood usage");
    seen.as_object_mut().unwrap().remove("purpose");
    own.as_object_mut().unwrap().remove("step");
    assert_eq!(seen, own);
    for field in ["codebook", "cut", "verification", "verdict"] {
        own.as_object_mut().unwrap().remove(field).unwrap();
    }
    let listed = see("/v1/releases").await.json(200);
    assert_eq!(listed["items"], json!([own]));
    assert_eq!(see(&format!("{release}/data")).await.status, 200);
    assert_eq!(see(&format!("{release}/report")).await.status, 200);
    for below in ["", "/data", "/report"] {
        let refused = see(&format!("{hidden}{below}")).await;
        refused.problem(404, "not_found");
    }
    see(&grants).await.problem(403, "forbidden");
    let listed = hospital.get(&grants).await.json(200);
    assert_eq!(listed["items"], json!([granted]));

    // The audit logs of both organizations record the downloads.
    for organization in ["hospital", "bts"] {
        let auditor = hospital.app.token(organization, Role::Auditor).await;
        let events = hospital.app.get(&auditor, "/v1/audit").await.json(200);
        let events = events["items"].as_array().unwrap();
        let fetched = events
            .iter()
            .filter(|event| event["action"] == "release.fetched")
            .count();
        assert_eq!(fetched, 2, "{organization}");
    }

    let withdrawn = hospital.app.delete(&hospital.token, &path).await;
    assert_eq!(withdrawn.status, 204);
    see(&format!("{release}/data"))
        .await
        .problem(404, "not_found");
    let again = hospital.app.delete(&hospital.token, &path).await;
    again.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_ends_when_it_expires() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let grants = format!("{release}/grants");
    let now = hospital.app.state.unscoped().db.now();
    let asked = json!({
        "recipient": "bts",
        "purpose": "blood usage",
        "expires_at": rfc3339(now + Duration::hours(1)),
    });
    let granted = hospital.post(&grants, &asked).await.json(201);
    let data = format!("{release}/data");
    assert_eq!(hospital.app.get(&bts, &data).await.status, 200);
    hospital.app.clock.advance(Duration::hours(2));
    let late = hospital.app.get(&bts, &data).await;
    late.problem(404, "not_found");
    let listed = hospital.app.get(&bts, "/v1/releases").await.json(200);
    assert_eq!(listed["items"], json!([]));
    // An expired grant does not prevent a new one. The recipient may be named by id.
    let asked = json!({ "recipient": text(&granted["recipient"]["id"]), "purpose": "more" });
    hospital.post(&grants, &asked).await.json(201);
    assert_eq!(hospital.app.get(&bts, &data).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_grant_is_refused() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    hospital.app.token("bts", Role::Recipient).await;
    let past = rfc3339(hospital.app.state.unscoped().db.now() - Duration::seconds(1));
    let cases = [
        (
            json!({ "recipient": "nobody", "purpose": "x" }),
            404,
            "not_found",
        ),
        (
            json!({ "recipient": "bts", "purpose": " " }),
            422,
            "invalid_value",
        ),
        (json!({ "recipient": "bts" }), 400, "invalid_shape"),
        (
            json!({ "recipient": "bts", "purpose": "x", "expires_at": past }),
            422,
            "invalid_value",
        ),
        (
            json!({ "recipient": "bts", "purpose": "x", "expires_at": "tomorrow" }),
            400,
            "invalid_shape",
        ),
    ];
    for (body, status, code) in cases {
        let refused = hospital.post(&format!("{release}/grants"), &body).await;
        refused.problem(status, code);
    }
}
