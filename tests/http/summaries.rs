//! Lists are summaries, and trees are stored once.

use pais::db::Store;
use pais::roles::Role;
use serde_json::{Value, json};

use crate::app::{TestApp, text};
use crate::hospital::{Hospital, TABLE};

async fn trees(store: &Store) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM trees")
        .fetch_one(store.owner())
        .await
        .unwrap()
}

fn tree(leaves: usize) -> Value {
    let leaves =
        (0..leaves).map(|leaf| json!({ "label": format!("a leaf with the number {leaf}") }));
    json!({ "label": "*", "children": leaves.collect::<Vec<_>>() })
}

fn dataset(name: &str, taxonomies: &[&Value]) -> Value {
    let columns = taxonomies.iter().enumerate().map(|(number, taxonomy)| {
        json!({ "name": format!("c{number}"), "role": "quasi_identifier", "taxonomy": taxonomy })
    });
    json!({ "name": name, "columns": columns.collect::<Vec<_>>() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_datasets_is_small_however_large_their_trees_are() {
    let builder = TestApp::builder().limits(|limits| {
        limits.json_bytes = 1 << 24;
        limits.taxonomy.leaves = 30_000;
    });
    let app = builder.start().await;
    let holder = app.token("hospital", Role::Holder).await;
    let tree = tree(20_000);
    let body = json!({ "name": "t", "root": tree });
    let taxonomy = app.post(&holder, "/v1/taxonomies", &body).await.json(201)["id"].clone();
    let mut last = String::new();
    for number in 0..20 {
        // By id and inline, in turn.
        let taxonomy = [&taxonomy, &tree][number % 2];
        let body = dataset(&format!("d{number}"), &[taxonomy]);
        let made = app.post(&holder, "/v1/datasets", &body).await;
        last = made.header("location").to_owned();
        assert_eq!(made.json(201)["columns"][0]["taxonomy"], *taxonomy);
    }
    let listed = app.get(&holder, "/v1/datasets").await;
    assert!(listed.bytes.len() < 100_000, "{} bytes", listed.bytes.len());
    let items = listed.json(200)["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 20);
    assert_eq!(items[0]["columns"], 1);
    assert_eq!(trees(&app.state.unscoped().db).await, 1);
    // The schema is complete.
    let shown = app.get(&holder, &last).await.json(200);
    assert_eq!(shown["columns"][0]["taxonomy"], tree);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_removed_with_the_last_dataset_that_uses_it() {
    let app = TestApp::new().await;
    let store = &app.state.unscoped().db;
    let holder = app.token("hospital", Role::Holder).await;
    let clinic = app.token("clinic", Role::Holder).await;
    let (shared, own) = (tree(3), tree(4));
    let body = json!({ "name": "t", "root": own });
    app.post(&holder, "/v1/taxonomies", &body).await.json(201);
    let mut paths = Vec::new();
    for (token, name, taxonomies) in [
        (&holder, "a", vec![&shared, &shared]),
        (&holder, "b", vec![&shared, &own]),
        (&clinic, "c", vec![&shared]),
    ] {
        let made = app
            .post(token, "/v1/datasets", &dataset(name, &taxonomies))
            .await;
        made.json(201);
        paths.push((token, made.header("location").to_owned()));
    }
    // One that is refused leaves nothing.
    let refused = dataset("a", &[&tree(5)]);
    app.post(&holder, "/v1/datasets", &refused)
        .await
        .problem(409, "name_taken");
    // The organizations share nothing.
    assert_eq!(trees(store).await, 3);
    for left in [3, 2, 1] {
        let (token, path) = paths.remove(0);
        assert_eq!(app.delete(token, &path).await.status, 204);
        assert_eq!(trees(store).await, left, "{path}");
    }
    // That of the taxonomy.
    let listed = app.get(&holder, "/v1/taxonomies").await.json(200);
    let taxonomy = format!("/v1/taxonomies/{}", text(&listed["items"][0]["id"]));
    assert_eq!(app.get(&holder, &taxonomy).await.json(200)["root"], own);
}

#[tokio::test(flavor = "multi_thread")]
async fn submissions_are_listed_in_pages() {
    let hospital = Hospital::new().await;
    let dataset = hospital.dataset().await;
    let list = format!("{dataset}/submissions");
    assert_eq!(hospital.get(&list).await.json(200)["items"], json!([]));
    let mut sent = Vec::new();
    for _ in 0..3 {
        let made = hospital.submit(&dataset, TABLE).await.json(201);
        sent.push(made["id"].clone());
    }
    let first = hospital.get(&format!("{list}?limit=2")).await.json(200);
    let cursor = text(&first["next_cursor"]);
    let rest = format!("{list}?limit=2&cursor={cursor}");
    let rest = hospital.get(&rest).await.json(200);
    assert_eq!(rest["next_cursor"], Value::Null);
    let ids = |page: &Value| -> Vec<Value> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["id"].clone()).collect()
    };
    assert_eq!([ids(&first), ids(&rest)].concat(), sent);
    // The dataset has the latest, newest first.
    let shown = hospital.get(&dataset).await.json(200);
    assert_eq!(shown["submissions_total"], 3);
    assert_eq!(
        (&shown["submissions"][0], &shown["rows"]),
        (&rest["items"][0], &json!(33))
    );
    let item = hospital.get("/v1/datasets").await.json(200)["items"][0].clone();
    let counts = (&item["submissions"], &item["rows"], &item["columns"]);
    assert_eq!(counts, (&json!(3), &json!(33), &json!(6)));

    let other = hospital.app.token("clinic", Role::Holder).await;
    hospital
        .app
        .get(&other, &list)
        .await
        .problem(404, "not_found");
    hospital.app.delete(&hospital.token, &dataset).await;
    hospital.get(&list).await.problem(404, "not_found");
}
