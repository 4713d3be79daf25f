//! The order of released rows: a seed repeats it for equal rows of one dataset, and for no others.

use serde_json::{Value, json};

use crate::app::text;
use crate::hospital::Hospital;

/// Rows that differ in a column that is released unchanged, so that a release shows their order.
fn rows(count: usize) -> String {
    let mut csv = "sex,number\n".to_owned();
    for row in 0..count {
        csv += &format!("{},{row}\n", ["F", "M"][row % 2]);
    }
    csv
}

async fn dataset(hospital: &Hospital, rows: &str) -> String {
    let body = json!({ "name": uuid::Uuid::new_v4().to_string(), "columns": [
        { "name": "sex", "role": "quasi_identifier" },
        { "name": "number", "role": "insensitive", "kind": "numeric" },
    ] });
    let made = hospital.post("/v1/datasets", &body).await.json(201);
    let dataset = format!("/v1/datasets/{}", text(&made["id"]));
    hospital.submit(&dataset, rows.to_owned()).await.json(201);
    dataset
}

/// The CSV of a release with a seed.
async fn released(hospital: &Hospital, dataset: &str, k: u64) -> String {
    let privacy = json!({ "model": "k_anonymity", "k": k });
    let extra = json!({ "privacy": privacy, "seed": 9, "release": true,
        "acknowledge_unchanged": { "number": "shows the order of the rows" } });
    let job = hospital.job(dataset, extra).await;
    let ended = hospital.ended(&job).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let path = format!("/v1/releases/{}/data", text(&ended["release_id"]));
    hospital.get(&path).await.text
}

/// The numbers of the rows, in the order of the release.
fn order(csv: &str) -> Vec<&str> {
    let cells = csv.lines().skip(1).map(|row| row.rsplit(',').next());
    cells.map(Option::unwrap).collect()
}

fn sorted(csv: &str) -> Vec<&str> {
    let mut rows: Vec<_> = csv.lines().collect();
    rows.sort_unstable();
    rows
}

/// How many rows have the same position in both orders.
fn in_place(one: &[&str], two: &[&str]) -> usize {
    one.iter().zip(two).filter(|(one, two)| one == two).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_seed_makes_no_link_between_datasets_rows_or_models() {
    let hospital = Hospital::new().await;
    let workers = hospital.work();
    let first = dataset(&hospital, &rows(200)).await;
    let release = released(&hospital, &first, 4).await;
    assert_eq!(released(&hospital, &first, 4).await, release);

    let same_rows = dataset(&hospital, &rows(200)).await;
    let more_rows = dataset(&hospital, &rows(204)).await;
    let others = [
        released(&hospital, &same_rows, 4).await,
        released(&hospital, &more_rows, 4).await,
        released(&hospital, &first, 5).await,
    ];
    assert_eq!(sorted(&others[0]), sorted(&release));
    // One row in place is expected by chance; 20 have a probability below 10^-18.
    for other in &others {
        let kept = in_place(&order(&release), &order(other));
        assert!(kept < 20, "{kept} of 200 rows kept their position");
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_without_a_seed_are_in_unrelated_orders() {
    let hospital = Hospital::new().await;
    let workers = hospital.work();
    let dataset = dataset(&hospital, &rows(200)).await;
    let privacy = json!({ "model": "k_anonymity", "k": 4 });
    let job = hospital
        .job(
            &dataset,
            json!({ "privacy": privacy,
        "acknowledge_unchanged": { "number": "shows the order of the rows" } }),
        )
        .await;
    hospital.ended(&job).await;
    workers.stop().await;
    let mut tables = Vec::new();
    for _ in 0..2 {
        let body: Value = json!({ "job_id": job.rsplit('/').next() });
        let made = hospital.post("/v1/releases", &body).await.json(201);
        let path = format!("/v1/releases/{}/data", text(&made["id"]));
        tables.push(hospital.get(&path).await.text);
    }
    assert_eq!(sorted(&tables[0]), sorted(&tables[1]));
    assert!(in_place(&order(&tables[0]), &order(&tables[1])) < 20);
}
