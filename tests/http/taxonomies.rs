//! Taxonomies: valid and invalid trees.

use pais::roles::Role;
use serde_json::json;

use crate::app::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_stored_as_sent() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let root = json!({"label": "ANY", "children": [
        {"label": "Blue-collar", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
        {"label": "White-collar"}]});
    let body = json!({"name": " Job ", "root": root});
    let answer = app.post(&holder, "/v1/taxonomies", &body).await;
    let made = answer.json(201);
    assert_eq!(made["name"], "Job");
    assert_eq!(made["root"], root);
    let sizes = [&made["leaves"], &made["nodes"], &made["depth"]];
    assert_eq!(sizes, [3, 5, 3]);
    let found = app.get(&holder, answer.header("location")).await.json(200);
    assert_eq!(found, made);
    let listed = app.get(&holder, "/v1/taxonomies").await.json(200);
    assert_eq!(listed["items"][0]["id"], made["id"]);
    assert!(listed["items"][0].get("root").is_none());
    app.post(&holder, "/v1/taxonomies", &body)
        .await
        .problem(409, "name_taken");

    let other = app.token("elsewhere", Role::Holder).await;
    let foreign = app.get(&other, answer.header("location")).await;
    let unknown = "/v1/taxonomies/01900000-0000-7000-8000-000000000000";
    assert_eq!(foreign.text, app.get(&other, unknown).await.text);
    foreign.problem(404, "not_found");
    app.post(&other, "/v1/taxonomies", &body).await.json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_may_be_sent_as_hierarchy_rows() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let rows = "Janitor;Blue-collar;ANY\nMover;Blue-collar;ANY\nLawyer;White-collar;ANY\n";
    let path = "/v1/taxonomies?name=Job%20titles";
    let made = app.post_bytes(&holder, path, "text/csv; charset=utf-8", rows);
    let made = made.await.json(201);
    assert_eq!(made["name"], "Job titles");
    let root = json!({"label": "ANY", "children": [
        {"label": "Blue-collar", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
        {"label": "White-collar", "children": [{"label": "Lawyer"}]}]});
    assert_eq!(made["root"], root);
    let cases = [
        ("/v1/taxonomies", rows, 400, "invalid_parameter"),
        ("/v1/taxonomies?name=", rows, 422, "invalid_name"),
        (
            "/v1/taxonomies?name=a",
            "a;b;*\nc;d;+\n",
            422,
            "invalid_taxonomy",
        ),
        (
            "/v1/taxonomies?name=a",
            "a;*\n\0;*\n",
            400,
            "malformed_body",
        ),
    ];
    for (path, rows, status, code) in cases {
        app.post_bytes(&holder, path, "text/csv", rows)
            .await
            .problem(status, code);
    }
    app.post_bytes(&holder, "/v1/taxonomies?name=a", "text/plain", rows)
        .await
        .problem(415, "unsupported_media_type");
    // Two names, of which one would be ignored.
    let body = json!({"name": "b", "root": root});
    app.post(&holder, "/v1/taxonomies?name=a", &body)
        .await
        .problem(422, "invalid_name");
}

/// Rows of different length, rows without a common top, and Amnesia's own format.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_arx_and_amnesia_are_read_as_they_are() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let root = json!({"label": "*", "children": [
        {"label": "Asia", "children": [{"label": "Laos"}, {"label": "Japan"}]},
        {"label": "Other"}]});
    let amnesia = "distinct\nname c\ntype string\nheight 3\n\nAsia has Laos Japan \n\n\
        * has Asia Other \n";
    let files = [
        "\u{feff}Laos;Asia;*\r\nJapan;\"Asia\";*;;\r\nOther;*\r\n",
        "Laos;Asia\nJapan;Asia;*\nOther\n",
        amnesia,
    ];
    for (number, file) in files.into_iter().enumerate() {
        let path = format!("/v1/taxonomies?name=t{number}");
        let made = app.post_bytes(&holder, &path, "text/csv", file).await;
        assert_eq!(made.json(201)["root"], root, "{file:?}");
    }
    let ranges = "range\nname age\ntype int\nheight 2\n\n0,99 has 0,49 50,99 \n";
    let path = "/v1/taxonomies?name=ages";
    let made = app.post_bytes(&holder, path, "text/csv", ranges).await;
    let taxonomy = made.json(201)["id"].clone();
    let columns = json!([{"name": "age", "role": "quasi_identifier", "kind": "numeric",
        "taxonomy": taxonomy}]);
    let body = json!({"name": "patients", "columns": columns});
    app.post(&holder, "/v1/datasets", &body).await.json(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_their_position() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let leaf = |label: &str| json!({ "label": label });
    let deep = (0..20).fold(
        leaf("leaf"),
        |below, level| json!({"label": level.to_string(), "children": [below]}),
    );
    let wide: Vec<_> = (0..1001).map(|number| leaf(&number.to_string())).collect();
    let trees = [
        (json!({"label": "*"}), "/root"),
        (json!({"label": "*", "children": []}), "/root"),
        (
            json!({"label": "*", "children": [leaf("a"), leaf("a")]}),
            "/root/children/1",
        ),
        (
            json!({"label": "*", "children": [leaf("*")]}),
            "/root/children/0",
        ),
        (
            json!({"label": "*", "children": [leaf("a"), leaf("")]}),
            "/root/children/1",
        ),
        (
            json!({"label": "*", "children": [{"label": "a", "children": [leaf("?")]}]}),
            "/root/children/0/children/0",
        ),
        (deep, "/root"),
        (json!({"label": "*", "children": wide}), "/root"),
    ];
    for (root, pointer) in trees {
        let body = json!({"name": "t", "root": root});
        let answer = app.post(&holder, "/v1/taxonomies", &body).await;
        let document = answer.problem(422, "invalid_taxonomy");
        assert_eq!(document["errors"][0]["pointer"], pointer, "{document}");
    }
    for root in [
        json!("*"),
        json!({"children": []}),
        json!({"label": "*", "kids": []}),
    ] {
        let body = json!({"name": "t", "root": root});
        app.post(&holder, "/v1/taxonomies", &body)
            .await
            .problem(400, "invalid_shape");
    }
    for name in ["", "  ", "a\nb", &"n".repeat(201)] {
        let root = json!({"label": "*", "children": [leaf("a")]});
        let body = json!({"name": name, "root": root});
        app.post(&holder, "/v1/taxonomies", &body)
            .await
            .problem(422, "invalid_name");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_100_000_leaves_is_accepted_if_the_limits_permit() {
    let builder = TestApp::builder().limits(|limits| {
        limits.json_bytes = 32 << 20;
        limits.taxonomy.leaves = 200_000;
        limits.taxonomy.depth = 60;
    });
    let app = builder.start().await;
    let holder = app.token("hospital", Role::Holder).await;
    let leaves: Vec<_> = (0..100_000)
        .map(|leaf| json!({ "label": leaf.to_string() }))
        .collect();
    let root = json!({"label": "*", "children": leaves});
    let body = json!({"name": "json", "root": root});
    let made = app.post(&holder, "/v1/taxonomies", &body).await;
    assert_eq!(made.json(201)["leaves"], 100_000);
    let rows: String = (0..100_000).map(|leaf| format!("{leaf};*\n")).collect();
    let path = "/v1/taxonomies?name=csv";
    let made = app.post_bytes(&holder, path, "text/csv", rows).await;
    assert_eq!(made.json(201)["root"], root);
    let columns = json!([{"name": "x", "role": "quasi_identifier", "taxonomy": root}]);
    let body = json!({"name": "d", "columns": columns});
    app.post(&holder, "/v1/datasets", &body).await.json(201);
    // A tree of the maximum depth is accepted, in the body of a dataset too.
    let deep = (0..59).fold(
        json!({"label": "leaf"}),
        |below, level| json!({"label": level.to_string(), "children": [below]}),
    );
    let body = json!({"name": "deep", "root": deep});
    app.post(&holder, "/v1/taxonomies", &body).await.json(201);
    let columns = json!([{"name": "x", "role": "quasi_identifier", "taxonomy": deep}]);
    let body = json!({"name": "deep", "columns": columns});
    app.post(&holder, "/v1/datasets", &body).await.json(201);
}

/// A taxonomy that a dataset names stays until the dataset is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_taxonomy_is_deleted_once_no_dataset_uses_it() {
    let app = TestApp::new().await;
    let holder = app.token("hospital", Role::Holder).await;
    let body = json!({"name": "jobs", "root": {"label": "any", "children": [{"label": "cook"}]}});
    let taxonomy = app.post(&holder, "/v1/taxonomies", &body).await;
    let path = taxonomy.header("location").to_owned();
    let id = taxonomy.json(201)["id"].clone();
    let columns = json!([{"name": "job", "role": "quasi_identifier", "taxonomy": id}]);
    let definition = json!({"name": "staff", "columns": columns});
    let dataset = app.post(&holder, "/v1/datasets", &definition).await;
    let dataset = dataset.header("location").to_owned();

    let other = app.token("clinic", Role::Holder).await;
    app.delete(&other, &path).await.problem(404, "not_found");
    app.delete(&holder, &path)
        .await
        .problem(409, "taxonomy_in_use");
    app.get(&holder, &path).await.json(200);

    assert_eq!(app.delete(&holder, &dataset).await.status, 204);
    assert_eq!(app.delete(&holder, &path).await.status, 204);
    app.get(&holder, &path).await.problem(404, "not_found");
    app.delete(&holder, &path).await.problem(404, "not_found");
    // The name is free again.
    app.post(&holder, "/v1/taxonomies", &body).await.json(201);
}

/// A label is written in every row that has it: one of a mebibyte made a release of 200 GB.
#[tokio::test(flavor = "multi_thread")]
async fn labels_and_listed_values_are_short() {
    let hospital = crate::hospital::Hospital::new().await;
    let (longest, long) = ("é".repeat(512), "é".repeat(512) + "x");
    let tree = |label: &str| {
        json!({"label": "ANY", "children": [
            {"label": "a"}, {"label": "b", "children": [{"label": label}, {"label": "c"}]}]})
    };
    let taxonomy = |label: &str| json!({ "name": "t", "root": tree(label) });
    let refused = hospital.post("/v1/taxonomies", &taxonomy(&long)).await;
    let refused = refused.problem(422, "invalid_taxonomy");
    assert_eq!(
        refused["errors"][0]["pointer"],
        "/root/children/1/children/0"
    );
    hospital
        .post("/v1/taxonomies", &taxonomy(&longest))
        .await
        .json(201);
    let rows = format!("{long};b;ANY\na;b;ANY\n");
    let path = "/v1/taxonomies?name=rows";
    let refused = hospital
        .app
        .post_bytes(&hospital.token, path, "text/csv", rows);
    refused.await.problem(422, "invalid_taxonomy");

    let dataset = |column: serde_json::Value| json!({ "name": "d", "columns": [column] });
    for column in [
        json!({ "name": "q", "role": "quasi_identifier", "taxonomy": tree(&long) }),
        json!({ "name": "q", "role": "quasi_identifier", "missing": [long] }),
        json!({ "name": "q", "role": "quasi_identifier", "order": ["a", long],
                "taxonomy": { "generate": "ordered", "order": ["a", long] } }),
        json!({ "name": long, "role": "quasi_identifier" }),
    ] {
        let answer = hospital.post("/v1/datasets", &dataset(column)).await;
        assert_eq!(answer.status, 422, "{}", answer.text);
    }

    let filled = hospital.filled_dataset().await;
    for (field, value, pointer) in [
        (
            "privacy",
            json!({ "model": "lkc", "l": 2, "k": 2, "c": 0.5, "sensitive_values": { "Surgery": ["Plastic", long] } }),
            "/privacy/sensitive_values/Surgery/1",
        ),
        (
            "pre_generalization",
            json!({ "Sex": { "level": 0, "values": { "1": [long] } } }),
            "/pre_generalization/Sex/values/1/0",
        ),
    ] {
        let mut job = crate::hospital::job_on(&filled);
        job[field] = value;
        let refused = hospital
            .post("/v1/jobs", &job)
            .await
            .problem(422, "invalid_job");
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{refused}");
    }
}
