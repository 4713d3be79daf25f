use std::collections::HashSet;
use std::sync::Arc;

use pais_core::schema::Schema;
use pais_io::read::csv;
use proptest::prelude::*;
use serde_json::json;

use super::RowDraw;
use crate::test_data::job_with_keys;
use crate::{AnonymizationRun, Unobserved};

/// The released rows of `rows` patients, each with a note of its own, in the order of the release.
fn order(rows: u32, seed: u64, key: Option<[u8; 32]>) -> Vec<String> {
    let schema = json!({"name": "t", "columns": [
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "note", "role": "insensitive"}]});
    let schema = Schema::inline(&serde_json::from_value(schema).unwrap()).unwrap();
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "seed": seed});
    let job = job_with_keys(job, &schema).unwrap();
    let file: String = (0..rows).map(|row| format!("F,n{row}\n")).collect();
    let table = csv::read_table(&schema, format!("sex,note\n{file}").as_bytes()).unwrap();
    let observer = Unobserved::default();
    let mut run = AnonymizationRun::new(Arc::new(schema), job, table, &observer).unwrap();
    if let Some(key) = key {
        run = run.with_order_key(key.into());
    }
    let steps = run.search(&observer).unwrap();
    let release = run.release(&steps, None, &observer).unwrap();
    let notes = &release.tables()[0].columns[1].column;
    (0..rows as usize)
        .map(|row| notes.text(row).unwrap().to_owned())
        .collect()
}

fn same_positions(one: &[String], other: &[String]) -> usize {
    one.iter().zip(other).filter(|(a, b)| a == b).count()
}

#[test]
fn a_seed_does_not_link_two_releases_by_position() {
    let (before, after) = (order(1_000, 7, None), order(1_020, 7, None));
    let kept = same_positions(&before, &after);
    assert!(kept < 20, "{kept} of 1,000 rows kept their position");
}

#[test]
fn two_datasets_of_the_same_rows_have_unrelated_orders() {
    let (one, other) = (
        order(1_000, 7, Some([1; 32])),
        order(1_000, 7, Some([2; 32])),
    );
    assert!(same_positions(&one, &other) < 20);
    assert_eq!(
        one,
        order(1_000, 7, Some([1; 32])),
        "equal input, equal order"
    );
}

#[test]
fn a_guessed_seed_does_not_restore_the_order_without_the_key() {
    let released = order(1_000, 7, Some([1; 32]));
    assert!(same_positions(&released, &order(1_000, 7, None)) < 20);
}

#[test]
fn the_order_of_a_seed_is_the_same_in_every_version() {
    let expected = [6, 5, 9, 11, 4, 1, 2, 0, 10, 3, 7, 8].map(|row| format!("n{row}"));
    assert_eq!(order(12, 7, None), expected);
}

proptest! {
    #[test]
    fn a_number_below_a_bound_is_below_it(count in 1u64.., small in 1u64..20) {
        let mut draw = RowDraw(rand::SeedableRng::from_seed([3; 32]));
        prop_assert!(draw.below(count) < count);
        let drawn: HashSet<u64> = (0..400).map(|_| draw.below(small)).collect();
        prop_assert_eq!(drawn.len() as u64, small, "every number is drawn");
    }
}
