//! A thorough search on small tables: valid at every step, never worse than greedy runs, and
//! optimal where all cuts can be enumerated.

mod adult;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use pais_core::cancellation::Cancellation;
use pais_core::definition::JobErrorKind;
use pais_core::model::PrivacyModel;
use pais_core::table::{EncodedTable, Table};

use super::super::requirement::Requirement;
use super::super::score::entropy;
use super::super::tests::properties::{LabelRows, holds};
use super::super::tests::random_tables::{SpecializationCase, case, prepared};
use super::super::{replay, search as greedy};
use super::{Effort, search};
use crate::test_data::{job_of, load, refusal, schema, steps, verified};
use crate::{
    AnonymizationRun, JobPlan, Observer, Phase, RunError, StepRecord, Unobserved, VerifiedTables,
};

const QUASI_IDENTIFIERS: [&str; 4] = ["a", "b", "f", "n"];

fn with_utility(case: &SpecializationCase, utility: Value) -> SpecializationCase {
    let mut case = case.clone();
    case.job["utility"] = utility;
    case
}

fn label_rows(release: &VerifiedTables) -> LabelRows {
    let table = &release.tables()[0];
    let row = |row: usize| {
        let cells = table.columns.iter();
        let text = |column: &pais_core::table::ReleasedColumn| {
            let text = column.column.text(row).unwrap_or("");
            (column.name.to_string(), text.to_owned())
        };
        cells.map(text).collect()
    };
    (0..table.rows).map(row).collect()
}

/// The loss under an objective, from the labels of a released table.
fn loss(case: &SpecializationCase, objective: &str, steps: &[StepRecord], rows: &LabelRows) -> f64 {
    let last = &steps.last().unwrap().item;
    match objective {
        "ncp" => last.ncp,
        "discernibility" => last.dr,
        _ => {
            let class_entropy = |classes: &[&str]| {
                let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
                for &class in classes {
                    *counts.entry(class).or_default() += 1;
                }
                entropy(&counts.into_values().collect::<Vec<_>>())
            };
            let mut groups: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
            for row in rows {
                let key = QUASI_IDENTIFIERS.map(|name| row[name].as_str()).to_vec();
                groups.entry(key).or_default().push(&row["class"]);
            }
            let groups = groups.values();
            let within: f64 = groups
                .map(|group| group.len() as f64 * class_entropy(group))
                .sum();
            let all: Vec<&str> = case.rows.iter().map(|row| row[7].as_str()).collect();
            let suppressed = (case.rows.len() - rows.len()) as f64;
            (within + suppressed * class_entropy(&all)) / case.rows.len() as f64
        }
    }
}

fn run(case: &SpecializationCase) -> Result<(AnonymizationRun, Vec<StepRecord>), RunError> {
    let run = prepared(case)?;
    let steps = steps(&run)?;
    Ok((run, steps))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_step_is_valid_and_the_last_one_no_worse_than_any_greedy_run(
        case in case(),
        objective in prop::sample::select(vec!["classification", "discernibility", "ncp"]),
    ) {
        let utility = json!({"objective": objective, "search": "thorough"});
        let found = run(&with_utility(&case, utility));
        let Ok((prepared, steps)) = found else {
            // The topmost table decides, as for a greedy search. How many of its rows are suppressed for C
            // depends on draws, which are not those of another job.
            if case.job["suppression_for"] == "size" {
                let utility = json!({"objective": objective});
                prop_assert!(run(&with_utility(&case, utility)).is_err());
            }
            return Ok(());
        };
        let mut suppressed = BTreeSet::new();
        let mut least = f64::INFINITY;
        for (number, record) in steps.iter().enumerate() {
            prop_assert_eq!(record.item.step as usize, number);
            prop_assert_eq!(record.item.score.is_some(), number > 0);
            if let (Some(before), "ncp") = (number.checked_sub(1), objective)
                && record.suppressed.is_empty()
            {
                let decrease = steps[before].item.ncp - record.item.ncp;
                prop_assert!((record.item.score.unwrap() - decrease).abs() < 1e-9);
            }
            let release = verified(&prepared, &steps, Some(record.item.step));
            let rows = label_rows(&release.unwrap());
            prop_assert!(holds(&rows, &case, &QUASI_IDENTIFIERS), "step {}", number);
            suppressed.extend(record.suppressed.iter().copied());
            prop_assert_eq!(record.item.suppressed_rows, suppressed.len() as u64);
            prop_assert_eq!(rows.len() + suppressed.len(), case.rows.len());
            least = loss(&case, objective, &steps, &rows);
        }
        let limit = case.job["suppression_limit"].as_f64().unwrap();
        prop_assert!(suppressed.len() as f64 <= limit * case.rows.len() as f64);
        // Which rows of the topmost table are suppressed for C is drawn anew for each job.
        if case.job["suppression_for"] != "size" {
            return Ok(());
        }
        for other in ["classification", "discernibility", "discernibility_eq4", "ncp"] {
            for split in ["fixed", "best_valid"] {
                let utility = json!({"objective": other, "split": split});
                let (prepared, steps) = run(&with_utility(&case, utility)).unwrap();
                let release = verified(&prepared, &steps, None).unwrap();
                let greedy = loss(&case, objective, &steps, &label_rows(&release));
                prop_assert!(least <= greedy + 1e-9, "{} is above {} of {}", least, greedy, other);
            }
        }
    }

    #[test]
    fn equal_seeds_find_equal_steps_where_the_search_ends_by_itself(case in case()) {
        let case = with_utility(&case, json!({"objective": "ncp", "search": "thorough"}));
        let found = || run(&case).map(|(_, steps)| steps);
        prop_assert_eq!(found(), found());
    }

    #[test]
    fn a_small_table_gets_the_best_of_all_cuts(
        rows in prop::collection::vec((0..4usize, 0..3usize, 0..5usize, 0..3usize), 6..30),
        l in 1..4u32,
        k in 2..4u32,
        c in prop::sample::select(vec![0.5, 0.75, 1.0]),
    ) {
        let file: String = rows.iter().map(|(a, b, n, s)| format!("a{a},b{b},{n},s{s}\n")).collect();
        let schema = tiny_schema();
        let table = load(&schema, format!("a,b,n,s\n{file}").as_bytes());
        let job = job_of(json!({
            "privacy": {"model": "lkc", "l": l, "k": k, "c": c, "sensitive_values": {"s": ["s0"]}},
            "utility": {"objective": "ncp", "search": "thorough"}})).unwrap();
        let observer = Unobserved::default();
        let run = AnonymizationRun::new(schema, job, table, &observer).unwrap();
        let best = best_of_all_cuts(&rows, l as usize, k as usize, c);
        match run.search(&observer) {
            Err(_) => prop_assert_eq!(best, None),
            Ok(steps) => {
                let found = steps.steps().last().unwrap().item.ncp;
                let best = best.unwrap();
                prop_assert!((found - best).abs() < 1e-9, "{} instead of {}", found, best);
            }
        }
    }
}

fn tiny_schema() -> std::sync::Arc<pais_core::schema::Schema> {
    let leaf = |label: &str| json!({"label": label});
    schema(json!([
        {"name": "a", "role": "quasi_identifier", "taxonomy": {"label": "any a", "children": [
            {"label": "low", "children": [leaf("a0"), leaf("a1")]},
            {"label": "high", "children": [leaf("a2"), leaf("a3")]}]}},
        {"name": "b", "role": "quasi_identifier", "taxonomy": {"label": "any b", "children": [
            {"label": "first", "children": [leaf("b0"), leaf("b1")]}, leaf("b2")]}},
        {"name": "n", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 4]},
        {"name": "s", "role": "sensitive"},
    ]))
}

/// By leaf, the group and the NCP of its label.
type LeafCut = Vec<(usize, f64)>;

/// The least mean NCP of all valid cuts; `None` if the topmost table is invalid.
fn best_of_all_cuts(
    rows: &[(usize, usize, usize, usize)],
    l: usize,
    k: usize,
    c: f64,
) -> Option<f64> {
    let a: Vec<LeafCut> = vec![
        vec![(0, 1.0); 4],
        vec![(0, 0.5), (0, 0.5), (1, 0.5), (1, 0.5)],
        vec![(0, 0.0), (1, 0.0), (2, 0.5), (2, 0.5)],
        vec![(0, 0.5), (0, 0.5), (1, 0.0), (2, 0.0)],
        vec![(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.0)],
    ];
    let third = 2.0 / 3.0;
    let b: Vec<LeafCut> = vec![
        vec![(0, 1.0); 3],
        vec![(0, third), (0, third), (1, 0.0)],
        vec![(0, 0.0), (1, 0.0), (2, 0.0)],
    ];
    let present: BTreeSet<usize> = rows.iter().map(|row| row.2).collect();
    let points: Vec<usize> = present.iter().copied().skip(1).collect();
    let intervals = |chosen: usize| -> LeafCut {
        let chosen = points
            .iter()
            .enumerate()
            .filter(|(bit, _)| chosen >> bit & 1 == 1);
        let mut ends = vec![0];
        ends.extend(chosen.map(|(_, &point)| point));
        let of_value = |value: usize| {
            let at = ends.partition_point(|&end| end <= value) - 1;
            let end = ends.get(at + 1).copied().unwrap_or(4);
            (at, (end - ends[at]) as f64 / 4.0)
        };
        (0..5).map(of_value).collect()
    };
    let mut best: Option<f64> = None;
    for (a, b) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
        for chosen in 0..1usize << points.len() {
            let n = intervals(chosen);
            let places = |row: &(usize, usize, usize, usize)| [a[row.0], b[row.1], n[row.2]];
            let is_valid = (0u32..8)
                .filter(|known| known.count_ones() as usize <= l)
                .all(|known| {
                    let mut groups: BTreeMap<Vec<usize>, (usize, usize)> = BTreeMap::new();
                    for row in rows {
                        let labels = places(row).into_iter().enumerate();
                        let labels = labels.filter(|(bit, _)| known >> bit & 1 == 1);
                        let group = groups.entry(labels.map(|(_, (place, _))| place).collect());
                        let counts = group.or_default();
                        counts.0 += 1;
                        counts.1 += usize::from(row.3 == 0);
                    }
                    let mut groups = groups.values();
                    groups.all(|&(size, holding)| size >= k && holding as f64 <= c * size as f64)
                });
            if is_valid {
                let ncp = rows
                    .iter()
                    .flat_map(places)
                    .map(|(_, ncp)| ncp)
                    .sum::<f64>();
                let ncp = ncp / (3 * rows.len()) as f64;
                best = Some(best.map_or(ncp, |best| best.min(ncp)));
            }
        }
    }
    best
}

/// Stops the run after a number of reports of progress.
struct StopsAfter(Cancellation, std::sync::atomic::AtomicI64);

impl Observer for StopsAfter {
    fn progress(&self, _: Phase, fraction: f64) {
        assert!((0.0..=1.0).contains(&fraction));
        if self.1.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) <= 0 {
            self.0.cancel();
        }
    }

    fn cancellation(&self) -> &Cancellation {
        &self.0
    }
}

fn forty_rows() -> (std::sync::Arc<pais_core::schema::Schema>, Table) {
    let row = |at: usize| format!("a{},b{},{},s{}\n", at % 4, at * 7 % 3, at * 3 % 5, at % 3);
    let file: String = (0..40).map(row).collect();
    let schema = tiny_schema();
    let table = load(&schema, format!("a,b,n,s\n{file}").as_bytes());
    (schema, table)
}

#[test]
fn a_thorough_search_can_be_cancelled() {
    let (schema, table) = forty_rows();
    let job = json!({"privacy": {"model": "k_anonymity", "k": 3},
                     "utility": {"objective": "ncp", "search": "thorough"}});
    let job = job_of(job).unwrap();
    let run = AnonymizationRun::new(schema, job, table, &Unobserved::default()).unwrap();
    let observer = StopsAfter(Cancellation::new(), 2.into());
    assert_eq!(run.search(&observer).err(), Some(RunError::Cancelled));
}

/// Without any time there is the greedy run alone.
#[test]
fn the_time_limit_ends_the_search_with_a_valid_cut() {
    let (schema, table) = forty_rows();
    let job = json!({"privacy": {"model": "k_anonymity", "k": 3}, "utility": {"objective": "ncp"}});
    let job = job_of(job).unwrap();
    let PrivacyModel::Lkc(model) = job.model.clone() else {
        panic!("k-anonymity is LKC-privacy");
    };
    let table = EncodedTable::new(&schema, table);
    let requirement = Requirement::of_model(&model, &table);
    let settings = greedy::SpecializationSettings {
        objective: pais_core::definition::Objective::Ncp,
        split: Default::default(),
        suppression_limit: job.suppression_limit,
        suppression_for: job.suppression_for(),
    };
    let task = greedy::SpecializationTask {
        table: &table,
        requirement: &requirement,
        settings,
        node_ncp: &super::super::method::node_ncp(&schema, &table),
        above_first_cut: &[],
        observer: &Unobserved::default(),
    };
    let limited = |seconds: u64, iterations| {
        let effort = Effort {
            limit: Duration::from_secs(seconds),
            iterations,
            seed: 1,
        };
        search(task, None, effort).unwrap()
    };
    let asked = greedy::search(task, None).unwrap();
    assert_eq!(limited(0, usize::MAX), asked);
    let steps = limited(3600, 16);
    assert!(steps.last().unwrap().item.ncp <= asked.last().unwrap().item.ncp);
    assert!(replay::cuts_at(&table, &steps, steps.len() as u32 - 1).is_ok());
}

#[test]
fn equation_4_measures_no_table_and_is_refused() {
    let (schema, _) = forty_rows();
    let job = json!({"privacy": {"model": "k_anonymity", "k": 3},
                     "utility": {"objective": "discernibility_eq4", "search": "thorough"}});
    let job = job_of(job).unwrap();
    let (kind, pointer) = refusal(JobPlan::new(&schema, &job));
    assert_eq!(
        (kind, &*pointer),
        (JobErrorKind::Unfit, "/utility/objective")
    );
}

/// The steps of a thorough search on rows of `x`, `y` and, with a subject column, `p`.
fn steps_on(rows: &str, privacy: Value, utility: Value) -> Vec<StepRecord> {
    let number = |name| json!({"name": name, "role": "quasi_identifier", "kind": "numeric"});
    let mut columns = vec![number("x"), number("y")];
    let mut header = "x,y\n";
    if rows.lines().all(|row| row.split(',').count() == 3) {
        columns.push(json!({"name": "p", "role": "subject"}));
        header = "x,y,p\n";
    }
    let schema = schema(json!(columns));
    let table = load(&schema, format!("{header}{rows}").as_bytes());
    let job = job_of(json!({"privacy": privacy, "utility": utility})).unwrap();
    let run = AnonymizationRun::new(schema, job, table, &Unobserved::default()).unwrap();
    steps(&run).unwrap()
}

/// Three persons have two rows each ("The person is the unit" in `docs/methods/values.md`).
#[test]
fn the_smallest_groups_of_steps_count_persons() {
    let rows = "3,9,2\n5,9,4\n9,1,1\n7,4,2\n3,7,4\n6,2,2\n";
    let thorough = json!({"search": "thorough"});
    let figures = |privacy: Value| -> Vec<_> {
        let steps = steps_on(rows, privacy, thorough.clone());
        let figures = steps.iter().map(|step| {
            let item = &step.item;
            (item.groups, item.smallest_group, item.smallest_known_group)
        });
        figures.collect()
    };
    let of_all = figures(json!({"model": "k_anonymity", "k": 2}));
    assert_eq!(of_all, [(1, 3, Some(3)), (2, 2, Some(2)), (3, 2, Some(2))]);
    let of_one = figures(json!({"model": "lkc", "l": 1, "k": 2, "c": 1}));
    let last = [(5, 1, Some(2)), (6, 1, Some(2))];
    assert_eq!(of_one, [&of_all[..], &last].concat());
}

/// The run under `discernibility` finds the best cut first; the run goes on under `ncp` ("Steps and
/// sweeps" in `docs/methods/lkc.md`).
#[test]
fn the_scores_of_steps_are_those_of_the_objective() {
    let rows = "1,9\n8,3\n4,4\n4,1\n7,4\n7,6\n";
    let utility = json!({"objective": "ncp", "search": "thorough"});
    let steps = steps_on(rows, json!({"model": "k_anonymity", "k": 2}), utility);
    assert_eq!(steps.len(), 3);
    for pair in steps.windows(2) {
        let [before, after] = [0, 1].map(|at| &pair[at].item);
        let decrease = before.ncp - after.ncp;
        assert!((after.score.unwrap() - decrease).abs() < 1e-12, "{after:?}");
    }
}
