//! Policies: what is below the floor of an organization is refused, and a release that needs an
//! approval is served to recipients only with it.

use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, send};
use crate::database::lock_waits;
use crate::hospital::{Hospital, id, job_on};
use pais_test_support::poll::poll_async;

async fn set(hospital: &Hospital, policy: &Value) -> Answer {
    let request = hospital.app.request(Method::PUT, "/v1/policy");
    send(request.bearer_auth(&hospital.token).json(policy)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_stored_as_it_was_sent_for_one_organization() {
    let hospital = Hospital::new().await;
    assert_eq!(hospital.get("/v1/policy").await.json(200), json!({}));
    let policy = json!({
        "models": ["lkc", "l_diversity"], "k_min": 5, "l_min": 2, "c_max": 0.5,
        "suppression_max": 0.05, "quasi_identifiers": ["Job"],
        "sensitive_values": { "Surgery": ["Transgender"], "HIV": "all" }, "recipients": ["bts"],
        "require_approval": true,
    });
    assert_eq!(set(&hospital, &policy).await.json(200), policy);
    assert_eq!(hospital.get("/v1/policy").await.json(200), policy);
    let other = hospital.app.token("other", Role::Holder).await;
    let theirs = hospital.app.get(&other, "/v1/policy").await;
    assert_eq!(theirs.json(200), json!({}));

    let auditor = hospital.app.token("hospital", Role::Auditor).await;
    let events = hospital
        .app
        .get(&auditor, "/v1/audit?action=policy.changed")
        .await;
    // The log has no value of a sensitive column.
    let mut logged = policy;
    logged["sensitive_values"]["Surgery"] = json!({ "values": 1 });
    assert_eq!(events.json(200)["items"][0]["detail"]["policy"], logged);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_policy_is_refused_with_all_its_faults() {
    let hospital = Hospital::new().await;
    let policy = json!({ "k_min": 0, "c_max": 0, "models": [], "recipients": [""],
                         "sensitive_values": { "Surgery": [] } });
    let refused = set(&hospital, &policy).await;
    let refused = refused.problem(422, "invalid_value");
    let pointers = refused["errors"].as_array().unwrap();
    let pointers: Vec<&Value> = pointers.iter().map(|fault| &fault["pointer"]).collect();
    assert_eq!(
        pointers,
        [
            "/k_min",
            "/c_max",
            "/models",
            "/recipients",
            "/sensitive_values/Surgery"
        ]
    );
    for shape in [
        json!({ "k_max": 3 }),
        json!({ "models": ["x"] }),
        json!({ "k_min": "3" }),
        json!({ "sensitive_values": { "Surgery": "some" } }),
    ] {
        set(&hospital, &shape).await.problem(400, "invalid_shape");
    }
    let number = json!({ "sensitive_values": { "Surgery": [1] } });
    let problem = set(&hospital, &number).await.problem(400, "invalid_shape");
    let pointer = &problem["errors"][0]["pointer"];
    assert_eq!(pointer, "/sensitive_values/Surgery/0", "{problem}");
    assert_eq!(hospital.get("/v1/policy").await.json(200), json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_below_the_policy_is_refused_with_the_pointer_of_the_line() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let job = |changes: Value| {
        let mut body = job_on(&dataset);
        for (name, value) in changes.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let lkc = |l: Value, k: Value, c: Value| json!({ "privacy": { "model": "lkc", "l": l, "k": k, "c": c } });
    let groups = json!({ "privacy": { "model": "l_diversity", "k": 2, "l": 2 } });
    let k_anonymity = json!({ "privacy": { "model": "k_anonymity", "k": 3 } });
    let alpha = json!({ "privacy": { "model": "alpha_k", "k": 3, "alpha": 0.6 } });
    let bounding = json!({ "privacy": { "model": "confidence_bounding", "c": 0.4 } });
    let roles = json!({ "roles": { "Transfuse": "insensitive" } });
    let limit = json!({ "suppression_limit": 0.1 });
    let cases = [
        (json!({ "k_min": 3 }), json!({}), "/privacy/k"),
        (
            json!({ "k_min": 3 }),
            lkc(json!(2), json!([2, 4]), json!(0.5)),
            "/privacy/k",
        ),
        (json!({ "k_min": 2 }), bounding, "/privacy/model"),
        (json!({ "l_min": 3 }), json!({}), "/privacy/l"),
        (json!({ "l_min": 3 }), groups.clone(), "/privacy/l"),
        (json!({ "c_max": 0.4 }), json!({}), "/privacy/c"),
        (
            json!({ "c_max": 0.5 }),
            lkc(json!(2), json!(2), json!([0.4, 0.6])),
            "/privacy/c",
        ),
        (json!({ "c_max": 0.5 }), alpha, "/privacy/alpha"),
        (
            json!({ "c_max": 0.5 }),
            k_anonymity.clone(),
            "/privacy/model",
        ),
        (json!({ "models": ["lkc"] }), k_anonymity, "/privacy/model"),
        (
            json!({ "suppression_max": 0.05 }),
            limit,
            "/suppression_limit",
        ),
        (
            json!({ "quasi_identifiers": ["Transfuse"] }),
            json!({}),
            "/dataset_id",
        ),
        (
            json!({ "quasi_identifiers": ["Transfuse"] }),
            roles,
            "/roles/Transfuse",
        ),
    ];
    for (policy, changes, pointer) in cases {
        set(&hospital, &policy).await.json(200);
        let body = job(changes);
        let refused = hospital.post("/v1/jobs", &body).await;
        let refused = refused.problem(422, "below_policy");
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{policy} {body}");
        let line = policy.as_object().unwrap().keys().next().unwrap();
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("`{line}`")), "{detail}");
    }

    let allowed = [
        json!({ "k_min": 2, "l_min": 2, "c_max": 0.5, "suppression_max": 0, "models": ["lkc"],
                "sensitive_values": { "Surgery": ["Transgender"] } }),
        json!({ "quasi_identifiers": ["Job", "ID", "Blood group"] }),
    ];
    for policy in allowed {
        set(&hospital, &policy).await.json(200);
        hospital.post("/v1/jobs", &job(json!({}))).await.json(202);
    }
    // A model without C is allowed where the policy names it.
    set(
        &hospital,
        &json!({ "c_max": 0.5, "models": ["l_diversity"] }),
    )
    .await
    .json(200);
    hospital.post("/v1/jobs", &job(groups)).await.json(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_values_meets_the_policy_only_with_those_that_it_names() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let with = |privacy: Value| {
        let mut body = job_on(&dataset);
        body["privacy"] = privacy;
        body
    };
    let lkc = |c: f64, values: Value| {
        let mut privacy = json!({ "model": "lkc", "l": 2, "k": 2, "c": c });
        if !values.is_null() {
            privacy["sensitive_values"] = values;
        }
        with(privacy)
    };
    let listed = |values: Value| lkc(0.5, json!({ "Surgery": values }));
    let all = lkc(0.5, Value::Null);
    let of_all = json!({ "c_max": 0.5 });
    let of_some =
        json!({ "c_max": 0.5, "sensitive_values": { "Surgery": ["Transgender", "Urology"] } });
    let of_column = json!({ "sensitive_values": { "Surgery": "all" } });
    let place = "/privacy/sensitive_values/Surgery";
    let mut as_is = listed(json!(["Transgender"]));
    as_is["roles"] = json!({ "Surgery": "insensitive" });
    as_is["privacy"] = json!({ "model": "k_anonymity", "k": 2 });
    let k_anonymity = with(json!({ "model": "k_anonymity", "k": 2 }));
    let refused = [
        // A value that no row has, and one harmless value.
        (
            &of_all,
            listed(json!(["Nonsense"])),
            "/privacy/sensitive_values",
        ),
        (
            &of_all,
            listed(json!(["Plastic"])),
            "/privacy/sensitive_values",
        ),
        (&of_some, listed(json!(["Nonsense"])), place),
        (&of_some, listed(json!(["Plastic", "Transgender"])), place),
        (&of_column, listed(json!(["Transgender", "Urology"])), place),
        (&of_column, lkc(1.0, Value::Null), "/privacy/c"),
        (&of_column, k_anonymity, "/privacy/model"),
        (&of_column, as_is, "/roles/Surgery"),
    ];
    for (policy, body, pointer) in refused {
        set(&hospital, policy).await.json(200);
        let answer = hospital.post("/v1/jobs", &body).await;
        let refused = answer.problem(422, "below_policy");
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{policy} {body}");
    }
    let diverse = with(json!({ "model": "l_diversity", "k": 2, "l": 2 }));
    let absent = json!({ "c_max": 0.5, "sensitive_values": { "HIV": "all" } });
    let allowed = [
        (&of_all, all.clone()),
        (&of_some, all.clone()),
        (
            &of_some,
            listed(json!([" Urology", "Transgender", "Plastic"])),
        ),
        (&of_column, all),
        (&of_column, diverse),
        // The table has no such column.
        (&absent, listed(json!(["Plastic"]))),
    ];
    for (policy, body) in allowed {
        set(&hospital, policy).await.json(200);
        hospital.post("/v1/jobs", &body).await.json(202);
    }
}

/// A line of the policy is about what a reader takes for its name, and about columns that are made of it; a value that
/// it names is no word for missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_column_does_not_get_round_the_policy_by_its_words_its_sources_or_its_name() {
    let hospital = Hospital::new().await;
    let policy = json!({ "c_max": 0.5, "quasi_identifiers": ["age"], "sensitive_values": { "dx": ["hiv"] } });
    set(&hospital, &policy).await.json(200);
    let other = json!({ "name": "other", "role": "sensitive" });
    let sex = json!({ "name": "sex", "role": "quasi_identifier" });
    for (name, column) in [
        (
            "words",
            json!({ "name": "dx", "role": "sensitive", "missing": ["hiv"] }),
        ),
        (
            "written otherwise",
            json!({ "name": "dx", "role": "sensitive", "missing": [" hiv\u{200b}"] }),
        ),
        (
            "sources",
            json!({ "name": "x", "kind": "set", "role": "insensitive", "from": ["age", "dx"] }),
        ),
        (
            "age",
            json!({ "name": "age\u{200b}", "role": "insensitive" }),
        ),
        ("dx", json!({ "name": "dx ", "role": "insensitive" })),
    ] {
        let columns = json!([sex, other, column]);
        let body = json!({ "name": name, "columns": columns });
        let made = hospital.post("/v1/datasets", &body).await.json(201);
        let job = json!({ "dataset_id": made["id"],
            "privacy": { "model": "lkc", "l": 1, "k": 2, "c": 0.5 } });
        let refused = hospital.post("/v1/jobs", &job).await;
        let problem = refused.problem(422, "below_policy");
        assert_eq!(
            problem["errors"][0]["pointer"], "/dataset_id",
            "{name}: {problem}"
        );
    }
}

/// Also where the policy comes after the release.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_does_not_get_round_a_later_policy_by_its_words_or_its_sources() {
    let hospital = Hospital::new().await;
    hospital.app.token("bts", Role::Recipient).await;
    let workers = hospital.work();
    let values = json!({ "c_max": 0.5, "sensitive_values": { "dx": ["hiv"] } });
    let set_of_two =
        json!({ "name": "x", "kind": "set", "role": "insensitive", "from": ["one", "two"] });
    for (name, column, rows, policy) in [
        (
            "words",
            json!({ "name": "dx", "role": "sensitive", "missing": ["hiv"] }),
            "sex,dx\nf,hiv\nf,flu\nf,gout\nf,cold\n",
            values,
        ),
        (
            "sources",
            set_of_two.clone(),
            "sex,one,two\nf,a,b\nf,a,c\nf,b,c\nf,a,b\n",
            json!({ "quasi_identifiers": ["two"] }),
        ),
        (
            "sources of a sensitive value",
            set_of_two,
            "sex,one,two\nf,a,b\nf,a,c\nf,b,c\nf,a,b\n",
            json!({ "sensitive_values": { "one": "all" } }),
        ),
    ] {
        set(&hospital, &json!({})).await.json(200);
        let columns = json!([{ "name": "sex", "role": "quasi_identifier" }, column]);
        let body = json!({ "name": name, "columns": columns });
        let made = hospital.post("/v1/datasets", &body).await.json(201);
        let dataset = format!("/v1/datasets/{}", made["id"].as_str().unwrap());
        hospital.submit(&dataset, rows).await.json(201);
        let privacy = match name {
            "words" => json!({ "model": "lkc", "l": 1, "k": 2, "c": 0.5 }),
            _ => json!({ "model": "k_anonymity", "k": 2 }),
        };
        let job = hospital
            .job(&dataset, json!({ "privacy": privacy, "release": true }))
            .await;
        let ended = hospital.ended(&job).await;
        set(&hospital, &policy).await.json(200);
        let release = ended["release_id"].as_str().unwrap();
        let grants = format!("/v1/releases/{release}/grants");
        let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
        let refused = hospital.post(&grants, &grant).await;
        assert_eq!(refused.status, 422, "{name}: {}", refused.text);
        refused.problem(422, "below_policy");
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_bounds_other_values_than_the_policy_names_is_not_granted() {
    let hospital = Hospital::new().await;
    let release = hospital.release().await;
    let grants = format!("{release}/grants");
    hospital.app.token("bts", Role::Recipient).await;
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    for policy in [
        json!({ "c_max": 0.5 }),
        json!({ "sensitive_values": { "Surgery": "all" } }),
        json!({ "sensitive_values": { "Surgery": ["Transgender", "Urology"] } }),
        json!({ "sensitive_values": { "Job": "all" } }),
    ] {
        set(&hospital, &policy).await.json(200);
        let refused = hospital.post(&grants, &grant).await;
        refused.problem(422, "below_policy");
    }
    let named = json!({ "c_max": 0.5, "sensitive_values": { "Surgery": ["Transgender"] } });
    set(&hospital, &named).await.json(200);
    hospital.post(&grants, &grant).await.json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_and_grants_meet_a_policy_that_was_made_stricter() {
    let hospital = Hospital::new().await;
    let job = hospital.done(json!({})).await;
    let asked = json!({ "job_id": id(&job) });
    let release = hospital.post("/v1/releases", &asked).await.json(201);
    let grants = format!("/v1/releases/{}/grants", release["id"].as_str().unwrap());
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });

    set(&hospital, &json!({ "k_min": 3 })).await.json(200);
    let refused = hospital.post("/v1/releases", &asked).await;
    let refused = refused.problem(422, "below_policy");
    assert_eq!(refused["errors"][0]["pointer"], "/job_id");
    hospital
        .post(&grants, &grant)
        .await
        .problem(422, "below_policy");

    set(&hospital, &json!({ "quasi_identifiers": ["Surgery"] }))
        .await
        .json(200);
    hospital
        .post(&grants, &grant)
        .await
        .problem(422, "below_policy");

    set(&hospital, &json!({ "recipients": ["research"] }))
        .await
        .json(200);
    let refused = hospital.post(&grants, &grant).await;
    let refused = refused.problem(422, "below_policy");
    assert_eq!(refused["errors"][0]["pointer"], "/recipient");
    let whoami = hospital.app.get(&bts, "/v1/whoami").await.json(200);
    let by_id = [&whoami["organization"]["id"]];
    set(&hospital, &json!({ "recipients": by_id, "k_min": 2 }))
        .await
        .json(200);
    hospital.post(&grants, &grant).await.json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_token_approves_a_release_before_its_grants_take_effect() {
    let hospital = Hospital::new().await;
    let early = hospital.release().await;
    let late = hospital.release().await;
    let bts = hospital.app.token("bts", Role::Recipient).await;
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    let fetch = async |release: &str| hospital.app.get(&bts, &format!("{release}/data")).await;
    hospital
        .post(&format!("{early}/grants"), &grant)
        .await
        .json(201);
    assert_eq!(fetch(&early).await.status, 200);

    set(&hospital, &json!({ "require_approval": true }))
        .await
        .json(200);
    fetch(&early).await.problem(404, "not_found");
    let refused = hospital.post(&format!("{late}/grants"), &grant).await;
    refused.problem(409, "approval_required");
    // No approval would help a recipient that the policy does not name.
    let named = json!({ "require_approval": true, "recipients": ["registry"] });
    set(&hospital, &named).await.json(200);
    let refused = hospital.post(&format!("{late}/grants"), &grant).await;
    refused.problem(422, "below_policy");
    set(&hospital, &json!({ "require_approval": true }))
        .await
        .json(200);

    let own = hospital
        .post(&format!("{early}/approval"), &json!({}))
        .await;
    own.problem(409, "conflict");
    let second = hospital.app.token("hospital", Role::Holder).await;
    for release in [&early, &late] {
        let approval = format!("{release}/approval");
        let other = hospital.app.token("other", Role::Holder).await;
        let foreign = hospital.app.post(&other, &approval, &json!({})).await;
        foreign.problem(404, "not_found");
        let approved = hospital.app.post(&second, &approval, &json!({})).await;
        assert_eq!(approved.json(201)["release_id"], id(release));
        let again = hospital.app.post(&second, &approval, &json!({})).await;
        again.problem(409, "conflict");
    }
    assert_eq!(fetch(&early).await.status, 200);
    fetch(&late).await.problem(404, "not_found");
    hospital
        .post(&format!("{late}/grants"), &grant)
        .await
        .json(201);
    assert_eq!(fetch(&late).await.status, 200);
}

/// What is decided while a policy is replaced waits for it, and is decided under the new one.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_under_a_policy_that_is_being_replaced() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.done(json!({})).await;
    let release = hospital.release().await;
    let second = hospital.app.token("hospital", Role::Holder).await;
    hospital.app.token("bts", Role::Recipient).await;
    let grant = json!({ "recipient": "bts", "purpose": "blood usage" });
    let requests = [
        (format!("{release}/grants"), grant),
        (format!("{release}/approval"), json!({})),
        ("/v1/releases".to_owned(), json!({ "job_id": id(&job) })),
        ("/v1/jobs".to_owned(), job_on(&dataset)),
    ];
    for (path, body) in requests {
        set(&hospital, &json!({})).await.json(200);
        // The new policy is written, and cannot be committed: its event waits.
        let mut held = hospital
            .app
            .state
            .unscoped()
            .db
            .owner()
            .begin()
            .await
            .unwrap();
        sqlx::query("LOCK TABLE audit_events IN ACCESS EXCLUSIVE MODE")
            .execute(&mut *held)
            .await
            .unwrap();
        let policy = json!({ "k_min": 50 });
        let replaced = hospital.app.request(Method::PUT, "/v1/policy");
        let replaced = replaced.bearer_auth(&hospital.token).json(&policy).send();
        let replaced = tokio::spawn(replaced);
        let longest = std::time::Duration::from_secs(30);
        let wait_for = async |count: i64| {
            let waits = poll_async(longest, async || {
                (lock_waits(hospital.app.state.unscoped().db.owner()).await >= count).then_some(())
            });
            waits.await.expect("nothing waits");
        };
        wait_for(1).await;
        let made = hospital.app.request(Method::POST, &path);
        let made = tokio::spawn(send(made.bearer_auth(&second).json(&body)));
        wait_for(2).await;
        held.rollback().await.unwrap();
        assert_eq!(replaced.await.unwrap().unwrap().status(), 200);
        made.await.unwrap().problem(422, "below_policy");
    }
}

/// A job that was allowed when it began makes no release that is not allowed when it ends.
#[tokio::test(flavor = "multi_thread")]
async fn the_release_of_a_job_meets_the_policy_at_its_end() {
    let hospital = Hospital::new().await;
    let dataset = hospital.filled_dataset().await;
    let job = hospital.job(&dataset, json!({ "release": true })).await;
    set(&hospital, &json!({ "k_min": 50 })).await.json(200);
    let workers = hospital.work();
    let ended = hospital.ended(&job).await;
    workers.stop().await;
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["error"]["code"], "below_policy");
    let page = hospital.get("/v1/releases").await.json(200);
    assert_eq!(page["items"], json!([]));
}
