//! The page of a sweep: each of its figures, calculated again from the release of each combination.

use pais_report::percent;
use reqwest::Method;
use serde_json::{Value, json};

use super::table::Table;
use super::text::PageText;
use super::{KNOWN, RAW_ROWS, adversary, at_most, losses, record_groups, stays};
use crate::app::{send, text as string};
use crate::hospital::{Hospital, id};

/// The figures of one combination, from its released file alone.
struct Combination {
    name: String,
    l: u64,
    figures: Option<Figures>,
}

#[derive(Clone, Copy)]
struct Figures {
    loss: f64,
    smallest: usize,
    dr: f64,
    suppressed: usize,
}

impl Figures {
    fn risk(self) -> f64 {
        1.0 / self.smallest as f64
    }

    fn is_beaten_by(self, other: Self) -> bool {
        let no_worse = other.loss <= self.loss && other.risk() <= self.risk();
        no_worse && (other.loss < self.loss || other.risk() < self.risk())
    }

    fn distance(self) -> f64 {
        self.loss.hypot(self.risk())
    }

    /// Releases a combination of a job and measures its file.
    async fn of_release(hospital: &Hospital, body: &Value, known: usize) -> Self {
        let release = hospital.post("/v1/releases", body).await.json(201);
        let data = format!("/v1/releases/{}/data", string(&release["id"]));
        let csv = hospital.get(&data).await;
        assert_eq!(csv.status, 200);
        let table = Table::read(&csv.text);
        let rows = table.rows.len();
        let (_, smallest) = adversary(&table, &KNOWN, known, None);
        let groups = record_groups(&table, &KNOWN).sizes;
        let squares: usize = groups.iter().map(|size| size * size).sum();
        let losses = losses(&table, &KNOWN, RAW_ROWS - rows);
        Self {
            loss: rounded(losses.values().sum::<f64>() / losses.len() as f64),
            smallest,
            dr: squares as f64 / (rows * rows) as f64,
            suppressed: RAW_ROWS - rows,
        }
    }
}

/// Without what depends on the order of the rows in the file.
fn rounded(loss: f64) -> f64 {
    (loss * 1e9).round() / 1e9
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep() {
    let privacy = json!({"model": "lkc", "l": [1, 2], "k": [3, 8, 62], "c": 0.9});
    let job =
        json!({"privacy": privacy, "recoding": ["global", "local"], "suppression_limit": 0.05});
    let (hospital, ended) = stays("sweep", job.clone()).ended(job).await;
    let path = format!("/v1/jobs/{}/sweep", string(&ended["id"]));
    let request = hospital.app.request(Method::GET, &path);
    let shown = send(
        request
            .header("accept", "text/html")
            .bearer_auth(&hospital.token),
    )
    .await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    if let Ok(directory) = std::env::var("PAIS_PAGES") {
        std::fs::write(format!("{directory}/sweep.html"), &shown.text).unwrap();
    }

    let mut combinations = Vec::new();
    for l in [1, 2] {
        for k in [3, 8, 62] {
            for recoding in ["global", "local"] {
                let body =
                    json!({"job_id": string(&ended["id"]), "l": l, "k": k, "recoding": recoding});
                let figures = if k > RAW_ROWS {
                    None
                } else {
                    // A group of local recoding is known by all columns: its labels overlap.
                    let known = if recoding == "local" { KNOWN.len() } else { l };
                    Some(Figures::of_release(&hospital, &body, known).await)
                };
                combinations.push(Combination {
                    name: format!("L {l}, K {k}, C 90 %, {recoding}"),
                    l: l as u64,
                    figures,
                });
            }
        }
    }

    let mut page = PageText::new(&shown.text);
    page.take(id(&path.replace("/sweep", "")));
    let is_beaten = |one: &Combination, figures: Figures| {
        combinations.iter().any(|other| {
            let is_better = |other| figures.is_beaten_by(other);
            other.l >= one.l && other.figures.is_some_and(is_better)
        })
    };
    let best_of = |l: u64| {
        let unbeaten = combinations.iter().filter(|one| one.l == l);
        let unbeaten = unbeaten.filter_map(|one| Some((one, one.figures?)));
        let unbeaten = unbeaten.filter(|(one, figures)| !is_beaten(one, *figures));
        unbeaten.min_by(|one, other| one.1.distance().total_cmp(&other.1.distance()))
    };
    let best = [1, 2].map(best_of);
    assert!(best.iter().any(Option::is_some));
    for (one, figures) in best.into_iter().flatten() {
        page.take(&format!(
            "Best: {}, which loses {} of the detail; the chance to pick the right one of those that fit is at most {}.",
            one.name,
            percent(figures.loss),
            at_most(figures.risk())
        ));
    }
    for l in [1, 2] {
        page.take(&format!("not dominated, L {l}, C 90 %"));
    }
    for one in &combinations {
        let is_best = best
            .into_iter()
            .flatten()
            .any(|(best, _)| best.name == one.name);
        match one.figures {
            None => page.take_row(&[&one.name, "no table meets it"]),
            Some(figures) => page.take_row(&[
                &one.name,
                &percent(figures.loss),
                &at_most(figures.risk()),
                &figures.smallest.to_string(),
                &percent(figures.dr),
                &figures.suppressed.to_string(),
                match (is_best, is_beaten(one, figures)) {
                    (true, _) => "best",
                    (_, true) => "dominated",
                    _ => "not dominated",
                },
            ]),
        }
    }
    page.assert_no_figure_is_left();
}
