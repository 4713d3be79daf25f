//! What the releases of a recipient say together, before a grant and in answer to a question.

use pais::roles::Role;
use serde_json::{Value, json};

use crate::app::{Answer, text};
use crate::hospital::{Hospital, id};
use crate::publications::settled;

/// Rows of which no two agree in both quasi-identifiers. Each of the two other columns follows from
/// one of them, so that as the class it decides which one is specialized.
const ROWS: &str = "a,b,like_a,like_b,s\n\
    east,old,p,u,x\neast,young,p,v,y\nwest,old,q,u,x\nwest,young,q,v,y\n";

async fn dataset(hospital: &Hospital) -> String {
    let columns = json!([
        { "name": "a", "role": "quasi_identifier" },
        { "name": "b", "role": "quasi_identifier" },
        { "name": "like_a", "role": "insensitive" },
        { "name": "like_b", "role": "insensitive" },
        { "name": "s", "role": "sensitive" },
    ]);
    let body = json!({ "name": "crossing", "columns": columns });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    hospital.submit(&dataset, ROWS).await.json(201);
    dataset
}

/// [`dataset`] with twelve more rows.
async fn larger_dataset(hospital: &Hospital) -> String {
    let dataset = dataset(hospital).await;
    let more: String = (0..12)
        .map(|row| {
            format!(
                "a{},b{},p,u,{}\n",
                row % 3,
                row % 5,
                ["x", "y", "z"][row % 3]
            )
        })
        .collect();
    let body = format!("a,b,like_a,like_b,s\n{more}");
    hospital.submit(&dataset, body).await.json(201);
    dataset
}

/// The path of the release of a job, which ends well.
async fn released(hospital: &Hospital, mut job: Value) -> String {
    job["release"] = json!(true);
    let queued = hospital.post("/v1/jobs", &job).await.json(202);
    let job = format!("/v1/jobs/{}", text(&queued["id"]));
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    format!("/v1/releases/{}", text(&ended["release_id"]))
}

/// A release that specializes the column that `class` follows from, and not the other one.
async fn specialized_by(hospital: &Hospital, dataset: &str, class: &str) -> String {
    let mut roles = serde_json::Map::new();
    roles.insert(class.to_owned(), json!("class"));
    let job = json!({
        "dataset_id": id(dataset), "roles": roles,
        "privacy": { "model": "k_anonymity", "k": 2 },
        "utility": { "objective": "classification" },
    });
    released(hospital, job).await
}

async fn grant(hospital: &Hospital, release: &str, extra: Value) -> Answer {
    let mut body = json!({ "recipient": "bts", "purpose": "blood usage" });
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    hospital.post(&format!("{release}/grants"), &body).await
}

async fn composition(hospital: &Hospital, release: &str, recipient: &str) -> Value {
    let path = format!("{release}/composition?recipient={recipient}");
    hospital.get(&path).await.json(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_that_single_out_rows_together_are_refused_unless_acknowledged() {
    let hospital = Hospital::new().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    hospital.app.token("other", Role::Recipient).await;
    let dataset = dataset(&hospital).await;
    let by_a = specialized_by(&hospital, &dataset, "like_a").await;
    let by_b = specialized_by(&hospital, &dataset, "like_b").await;

    let alone = composition(&hospital, &by_a, "bts").await;
    assert_eq!(alone["holds"], true);
    assert_eq!(alone["releases"], json!([id(&by_a)]));
    assert_eq!(alone["smallest_group"], 2);
    grant(&hospital, &by_a, json!({})).await.json(201);

    let found = composition(&hospital, &by_b, "bts").await;
    assert_eq!(found["holds"], false);
    assert_eq!(found["exact"], true);
    assert_eq!(found["releases"], json!([id(&by_b), id(&by_a)]));
    assert_eq!(found["smallest_group"], 1);
    let refused = grant(&hospital, &by_b, json!({})).await;
    let refused = refused.problem(409, "composition_risk");
    let detail = text(&refused["detail"]);
    assert!(detail.contains(id(&by_a)) && detail.contains("`k_anonymity`"));
    assert!(detail.contains("a group of 1"), "{detail}");
    for raw in ["east", "young", "\"x\""] {
        assert!(!detail.contains(raw), "a value in: {detail}");
    }
    // Another recipient, who has nothing else, gets it.
    assert_eq!(composition(&hospital, &by_b, "other").await["holds"], true);

    let empty = json!({ "acknowledge_composition_risk": " " });
    let empty = grant(&hospital, &by_b, empty).await;
    empty.problem(422, "invalid_value");
    let reason = "the analysts work on our premises";
    let acknowledged = json!({ "acknowledge_composition_risk": reason });
    grant(&hospital, &by_b, acknowledged).await.json(201);
    let data = hospital.app.get(&bts, &format!("{by_b}/data")).await;
    assert_eq!(data.status, 200);
    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let path = "/v1/audit?action=grant.created";
    let events = hospital.app.get(&auditor, path).await.json(200);
    let detail = &events["items"][0]["detail"];
    assert_eq!(detail["acknowledged_composition_risk"], reason);
    assert_eq!(detail["composed_with"], json!([id(&by_a)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_fetched_counts_after_its_grant_has_ended() {
    let hospital = Hospital::new().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let dataset = dataset(&hospital).await;
    let by_a = specialized_by(&hospital, &dataset, "like_a").await;
    let by_b = specialized_by(&hospital, &dataset, "like_b").await;

    let granted = grant(&hospital, &by_a, json!({})).await;
    let path = granted.header("location").to_owned();
    granted.json(201);
    let deleted = hospital.app.delete(&hospital.token, &path).await;
    assert_eq!(deleted.status, 204);
    // Nobody has read it.
    assert_eq!(composition(&hospital, &by_b, "bts").await["holds"], true);

    let granted = grant(&hospital, &by_a, json!({})).await;
    let path = granted.header("location").to_owned();
    granted.json(201);
    let data = hospital.app.get(&bts, &format!("{by_a}/data")).await;
    assert_eq!(data.status, 200);
    hospital.app.delete(&hospital.token, &path).await;
    let reason = json!({ "reason": "an error in the rows" });
    let withdrawal = format!("{by_a}/withdrawal");
    hospital.post(&withdrawal, &reason).await.json(201);
    assert_eq!(composition(&hospital, &by_b, "bts").await["holds"], false);
    let refused = grant(&hospital, &by_b, json!({})).await;
    refused.problem(409, "composition_risk");
}

/// Of the releases of other datasets that the recipient has, those with columns of the same names may be about the
/// same persons.
#[tokio::test(flavor = "multi_thread")]
async fn releases_of_other_datasets_are_listed_as_not_compared() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    hospital.app.token("other", Role::Recipient).await;
    let mut releases = Vec::new();
    for (name, columns) in [
        ("first", ["sex", "city", "illness"]),
        ("alike", ["Sex", "city", "drug"]),
        ("unlike", ["sex", "town", "drug"]),
    ] {
        let roles = ["quasi_identifier", "insensitive", "sensitive"];
        let declared = columns.iter().zip(roles);
        let declared = declared.map(|(name, role)| json!({ "name": name, "role": role }));
        let body = json!({ "name": name, "columns": declared.collect::<Vec<_>>() });
        let made = hospital.post("/v1/datasets", &body).await.json(201);
        let dataset = format!("/v1/datasets/{}", text(&made["id"]));
        let rows = "f,u,x\nf,u,y\nm,u,x\nm,u,y\n";
        let file = format!("{}\n{rows}", columns.join(","));
        hospital.submit(&dataset, file).await.json(201);
        let privacy = json!({ "model": "k_anonymity", "k": 2 });
        let job = json!({ "dataset_id": made["id"], "privacy": privacy });
        releases.push(released(&hospital, job).await);
    }
    let [first, alike, unlike] = [&releases[0], &releases[1], &releases[2]];
    let before = composition(&hospital, first, "bts").await;
    assert_eq!(before["not_compared"], json!([]), "nothing is granted");
    for release in [alike, unlike] {
        grant(&hospital, release, json!({})).await.json(201);
    }
    let found = composition(&hospital, first, "bts").await;
    assert_eq!(found["not_compared"], json!([id(alike)]));
    assert_eq!(found["holds"], true);
    assert_eq!(found["releases"], json!([id(first)]));
    let found = composition(&hospital, first, "other").await;
    assert_eq!(found["not_compared"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_of_one_run_say_no_more_than_the_last_of_them() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let job = hospital.done(json!({})).await;
    let steps = hospital.get(&format!("{job}/steps")).await.json(200);
    let last = steps["items"].as_array().unwrap().len() - 1;
    assert!(last >= 2);
    let mut releases = Vec::new();
    for step in [1, last] {
        let body = json!({ "job_id": id(&job), "step": step });
        let made = hospital.post("/v1/releases", &body).await.json(201);
        releases.push(format!("/v1/releases/{}", text(&made["id"])));
    }
    grant(&hospital, &releases[0], json!({})).await.json(201);
    let found = composition(&hospital, &releases[1], "bts").await;
    assert_eq!(found["holds"], true);
    assert_eq!(found["releases"].as_array().unwrap().len(), 2);
    let last = hospital.get(&releases[1]).await.json(200);
    assert_eq!(
        found["smallest_group"],
        last["verification"]["smallest_group"]
    );
    grant(&hospital, &releases[1], json!({})).await.json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_anatomies_of_the_same_rows_are_refused() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = larger_dataset(&hospital).await;
    let mut releases = Vec::new();
    for (k, l) in [(2, 2), (5, 3)] {
        let privacy = json!({ "model": "l_diversity", "k": k, "l": l });
        let job = json!({ "dataset_id": id(&dataset), "privacy": privacy });
        releases.push(released(&hospital, job).await);
    }
    grant(&hospital, &releases[0], json!({})).await.json(201);
    let found = composition(&hospital, &releases[1], "bts").await;
    assert_eq!(found["releases"].as_array().unwrap().len(), 2);
    assert_eq!(found["holds"], false, "{found}");
    let refused = grant(&hospital, &releases[1], json!({})).await;
    refused.problem(409, "composition_risk");
}

/// One has the exact values of each row, the other its sensitive value.
#[tokio::test(flavor = "multi_thread")]
async fn an_anatomy_is_refused_beside_a_generalized_table_of_its_rows() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = larger_dataset(&hospital).await;
    let mut releases = Vec::new();
    for output in ["generalized", "anatomized"] {
        let privacy = json!({ "model": "l_diversity", "k": 3, "l": 3 });
        let job = json!({ "dataset_id": id(&dataset), "privacy": privacy, "output": output });
        releases.push(released(&hospital, job).await);
    }
    grant(&hospital, &releases[0], json!({})).await.json(201);
    let found = composition(&hospital, &releases[1], "bts").await;
    assert_eq!(
        (&found["holds"], &found["smallest_group"]),
        (&json!(false), &json!(1))
    );
    let refused = grant(&hospital, &releases[1], json!({})).await;
    refused.problem(409, "composition_risk");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_rows_are_deleted_nothing_can_be_decided() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let dataset = dataset(&hospital).await;
    let by_a = specialized_by(&hospital, &dataset, "like_a").await;
    let by_b = specialized_by(&hospital, &dataset, "like_b").await;
    hospital.app.delete(&hospital.token, &dataset).await;
    // A single release needs no decision.
    grant(&hospital, &by_a, json!({})).await.json(201);
    let found = composition(&hospital, &by_b, "bts").await;
    assert_eq!(
        (&found["holds"], &found["exact"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(found["smallest_group"], Value::Null);
    let refused = grant(&hospital, &by_b, json!({})).await;
    refused.problem(409, "composition_risk");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composition_is_for_the_holder_and_a_recipient_that_exists() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let path = format!("{release}/composition");
    let absent = hospital.get(&format!("{path}?recipient=nobody")).await;
    absent.problem(404, "not_found");
    let missing = hospital.get(&path).await;
    let missing = missing.problem(400, "invalid_parameter");
    assert_eq!(
        missing["detail"],
        "the query parameter `recipient` is missing"
    );
    let other = hospital.app.token("other", Role::Holder).await;
    let foreign = format!("{path}?recipient=hospital");
    let foreign = hospital.app.get(&other, &foreign).await;
    foreign.problem(404, "not_found");
}

/// What releases say together is what they show: a word that means missing since, or a rounding that ended since, takes
/// nothing back.
#[tokio::test(flavor = "multi_thread")]
async fn a_later_change_of_a_column_does_not_change_what_releases_say() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let leaf = |label: &str| json!({ "label": label });
    let tree = json!({ "label": "*", "children": [
        { "label": "b1", "children": [leaf("p"), leaf("q")] },
        { "label": "b2", "children": [leaf("r"), leaf("s")] }] });
    // Each of 24 rows has another value of dx, but for the 8 rows of y and b1.
    let mut number = 0;
    let mut rows = |a: &str, b: [&str; 2], count: usize, dx: Option<&str>| {
        let row = |place: usize| {
            number += 1;
            let value = dx.map_or_else(|| format!("{}", 1000 + number * 100), str::to_owned);
            format!("{a},{},{value}\n", b[place % 2])
        };
        (0..count).map(row).collect::<String>()
    };
    for (name, column, values, change) in [
        ("words", json!({}), Some("7"), json!({ "missing": ["7"] })),
        (
            "rounding",
            json!({ "kind": "numeric", "round": 10 }),
            None,
            json!({ "round": null }),
        ),
    ] {
        let mut dx = column;
        (dx["name"], dx["role"]) = (json!("dx"), json!("sensitive"));
        let columns = json!([{ "name": "a", "role": "quasi_identifier" },
            { "name": "b", "role": "quasi_identifier", "taxonomy": tree }, dx]);
        let body = json!({ "name": name, "columns": columns });
        let made = hospital.post("/v1/datasets", &body).await.json(201);
        let dataset = format!("/v1/datasets/{}", text(&made["id"]));
        let (b1, b2) = (["p", "q"], ["r", "s"]);
        let bounded = match values {
            Some(value) => rows("y", b1, 8, Some(value)),
            None => [6, 7, 8, 9]
                .map(|it| rows("y", b1, 2, Some(&it.to_string())))
                .concat(),
        };
        let others = [
            rows("x", b1, 24, None),
            rows("x", b2, 24, None),
            rows("y", b2, 8, None),
        ];
        let file = format!("a,b,dx\n{}{bounded}", others.concat());
        hospital.submit(&dataset, file).await.json(201);
        let by = async |objective: &str| {
            let job = json!({ "dataset_id": made["id"], "utility": { "objective": objective },
                "privacy": { "model": "lkc", "l": 2, "k": 4, "c": 0.5 } });
            released(&hospital, job).await
        };
        let (one, other) = (by("ncp").await, by("discernibility").await);
        grant(&hospital, &one, json!({})).await.json(201);
        let refused = grant(&hospital, &other, json!({})).await;
        refused.problem(409, "composition_risk");
        let mut column = change;
        column["name"] = json!("dx");
        let change = hospital.app.request(reqwest::Method::PATCH, &dataset);
        let change = change
            .bearer_auth(&hospital.token)
            .json(&json!({ "columns": [column] }));
        assert_eq!(change.send().await.unwrap().status(), 200, "{name}");
        let refused = grant(&hospital, &other, json!({})).await;
        refused.problem(409, "composition_risk");
        assert_eq!(
            composition(&hospital, &other, "bts").await["holds"],
            false,
            "{name}"
        );
    }
}

/// The rows of a dataset with two quasi-identifiers, of which the 8 rows of (a1,b1) have the first two values.
fn crossing_rows(values: [&str; 2]) -> String {
    let cells = [
        ("a1,b1", values),
        ("a1,b2", ["1000", "1300"]),
        ("a2,b1", ["2000", "2300"]),
        ("a2,b2", ["3000", "3300"]),
    ];
    let row = |(labels, [one, other]): (&str, [&str; 2])| {
        format!("{labels},{one}\n{labels},{other}\n").repeat(4)
    };
    format!("a,b,s\n{}", cells.map(row).concat())
}

async fn crossing(hospital: &Hospital, name: &str, sensitive: &Value, values: [&str; 2]) -> String {
    let columns = json!([
        { "name": "a", "role": "quasi_identifier" },
        { "name": "b", "role": "quasi_identifier" },
        sensitive,
    ]);
    let body = json!({ "name": name, "columns": columns });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    let rows = crossing_rows(values);
    hospital.submit(&dataset, rows).await.json(201);
    dataset
}

/// LKC-privacy with one of the quasi-identifiers at its topmost value.
async fn without(hospital: &Hospital, dataset: &str, column: &str, c: f64) -> String {
    let mut levels = serde_json::Map::new();
    levels.insert(column.to_owned(), json!({ "level": 1 }));
    let job = json!({
        "dataset_id": id(dataset), "pre_generalization": levels,
        "privacy": { "model": "lkc", "l": 2, "k": 2, "c": c },
    });
    released(hospital, job).await
}

async fn change_sensitive(hospital: &Hospital, dataset: &str, mut change: Value) {
    change["name"] = json!("s");
    let request = hospital.app.request(reqwest::Method::PATCH, dataset);
    let request = request
        .bearer_auth(&hospital.token)
        .json(&json!({ "columns": [change] }));
    assert_eq!(request.send().await.unwrap().status(), 200);
}

/// Values that one rounding merges can be apart in a coarser one, and words for missing of one release can be values of another.
#[tokio::test(flavor = "multi_thread")]
async fn releases_are_decided_as_each_of_them_shows_the_values() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let rounded =
        |round: u32| json!({ "name": "s", "role": "sensitive", "kind": "numeric", "round": round });
    let words = |words: &[&str]| json!({ "name": "s", "role": "sensitive", "missing": words });
    for (name, column, change, values) in [
        // 40 and 60 are 0 and 100, but both 50.
        (
            "coarser first",
            rounded(100),
            json!({ "round": 50 }),
            ["40", "60"],
        ),
        (
            "coarser last",
            rounded(50),
            json!({ "round": 100 }),
            ["40", "60"],
        ),
        // 20 and 30 are 0 and 50, but both 30.
        (
            "not nested",
            rounded(50),
            json!({ "round": 30 }),
            ["20", "30"],
        ),
        // Of those whose value is known, all have the first one.
        (
            "missing last",
            words(&[""]),
            json!({ "missing": ["", "unknown"] }),
            ["HIV", "unknown"],
        ),
        (
            "missing first",
            words(&["", "unknown"]),
            json!({ "missing": [""] }),
            ["HIV", "unknown"],
        ),
    ] {
        let dataset = crossing(&hospital, name, &column, values).await;
        let one = without(&hospital, &dataset, "b", 0.6).await;
        grant(&hospital, &one, json!({})).await.json(201);
        change_sensitive(&hospital, &dataset, change).await;
        let other = without(&hospital, &dataset, "a", 0.6).await;
        let refused = grant(&hospital, &other, json!({})).await;
        assert_eq!(refused.status, 409, "{name}: {}", refused.text);
        refused.problem(409, "composition_risk");
    }
}

/// A value that a publication bounds is that of its editions, however a release before them rounds it.
#[tokio::test(flavor = "multi_thread")]
async fn an_edition_is_decided_as_it_shows_the_values_and_as_earlier_releases_do() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let column = json!({ "name": "s", "role": "sensitive", "kind": "numeric", "round": 50 });
    let dataset = crossing(&hospital, "rounded", &column, ["30", "30"]).await;
    let known = without(&hospital, &dataset, "b", 1.0).await;
    grant(&hospital, &known, json!({})).await.json(201);
    change_sensitive(&hospital, &dataset, json!({ "round": 10 })).await;
    let publication = json!({
        "name": "rounded", "dataset_id": id(&dataset), "trigger": "manual",
        "recipients": [{ "recipient": "bts", "purpose": "blood usage" }],
        "job": {
            "privacy": { "model": "lkc", "l": 2, "k": 2, "c": 0.6, "sensitive_values": { "s": ["30"] } },
            "pre_generalization": { "a": { "level": 1 } },
        },
    });
    let made = hospital
        .post("/v1/publications", &publication)
        .await
        .json(201);
    let publication = format!("/v1/publications/{}", text(&made["id"]));
    let editions = format!("{publication}/editions");
    hospital.post(&editions, &json!({})).await.json(202);
    let workers = hospital.work();
    let ended = settled(&hospital, &publication, 1).await;
    workers.stop().await;
    // All rows of (a1,b1) have the value 30, so those of b1 wait.
    assert_eq!(ended["status"], "published", "{ended}");
    assert_eq!(
        (&ended["rows"], &ended["held_back_rows"]),
        (&json!(16), &json!(16))
    );
}
