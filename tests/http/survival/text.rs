//! Long text: cells have a limit, and the memory of a job counts the text of its rows.

use serde_json::json;

use crate::app::{TestApp, text};
use crate::hospital::{Hospital, job_on};

const HEADER: &str = "ID,Job,Sex,Age,Transfuse,Surgery\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_long_cell_is_refused_by_its_place_and_long_text_counts_as_memory_of_a_job() {
    let small = TestApp::builder().without_workers();
    let small = small.limits(|limits| limits.job_bytes = 8 << 20).start();
    let hospital = Hospital::with_app(small.await).await;
    let dataset = hospital.dataset().await;
    let file = format!(
        "{HEADER}1,Mover,M,34,Y,x\n2,Mover,M,34,Y,{}\n",
        "x".repeat(4097)
    );
    let refused = hospital.submit(&dataset, file).await;
    let refused = refused.problem(422, "invalid_cells");
    assert_eq!(refused["errors"][0]["line"], json!(3));
    assert_eq!(refused["errors"][0]["column"], json!("Surgery"));
    assert!(
        text(&refused["detail"]).contains("limits.cell_bytes"),
        "{refused}"
    );

    // The same rows, once with short and once with long text.
    let rows = |length: usize| {
        let row = |number| format!("1,Mover,M,34,Y,{number:0length$}\n");
        HEADER.to_owned() + &(0..2000).map(row).collect::<String>()
    };
    for (length, fits) in [(4, true), (2000, false)] {
        let dataset = hospital.dataset().await;
        hospital.submit(&dataset, rows(length)).await.json(201);
        let mut job = job_on(&dataset);
        job["acknowledge_unchanged"] = json!({ "Surgery": "long text is wanted" });
        let answer = hospital.post("/v1/jobs", &job).await;
        if fits {
            answer.json(202);
        } else {
            let problem = answer.problem(422, "limit_exceeded");
            assert!(
                text(&problem["detail"]).contains("memory.job_bytes"),
                "{problem}"
            );
        }
    }
}
