//! The examples of the papers, from upload to release.

use serde_json::json;

use crate::app::text;
use crate::hospital::{Hospital, TABLE};
use pais_test_support::golden;

#[tokio::test(flavor = "multi_thread")]
async fn table_1_is_anonymized_as_expected() {
    let hospital = Hospital::new().await;
    let workers = hospital.work();
    for run in golden::runs() {
        let dataset = hospital.post("/v1/datasets", &run.schema).await.json(201);
        let dataset = format!("/v1/datasets/{}", text(&dataset["id"]));
        hospital.submit(&dataset, TABLE).await.json(201);
        let mut extra = run.job.clone();
        extra["release"] = json!(true);
        let job = hospital.job(&dataset, extra).await;
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let steps = hospital.get(&format!("{job}/steps")).await.json(200);
        run.assert_steps(&steps["items"]);
        let release = format!("/v1/releases/{}", text(&ended["release_id"]));
        let document = hospital.get(&release).await.json(200);
        assert_eq!(document["cut"], *run.cut(), "{}", run.name);
        assert_eq!(document["verification"]["holds"], true);
        let table = hospital.get(&format!("{release}/data")).await;
        assert_eq!(table.status, 200);
        run.assert_labels(&table.text);
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_records_of_the_2014_paper_are_anonymized_as_expected() {
    let hospital = Hospital::new().await;
    let workers = hospital.work();
    for run in golden::records::runs() {
        let dataset = hospital.post("/v1/datasets", &run.schema).await.json(201);
        let dataset = format!("/v1/datasets/{}", text(&dataset["id"]));
        hospital.submit(&dataset, run.raw).await.json(201);
        let mut extra = run.job.clone();
        extra["release"] = json!(true);
        let job = hospital.job(&dataset, extra).await;
        let ended = hospital.ended(&job).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let release = format!("/v1/releases/{}", text(&ended["release_id"]));
        let report = hospital.get(&format!("{release}/report")).await;
        run.assert_report(&report.json(200));
        let table = hospital.get(&format!("{release}/data")).await;
        run.assert_rows(&table.text);
    }
    workers.stop().await;
}
