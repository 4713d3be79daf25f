//! The error on the Adult table, beside scikit-learn's and the paper's.

use pais_core::cancellation::Cancellation;
use std::io::Read;

use super::examples::Examples;
use super::gain::Logs;
use super::holdout::{held_out_error, two_thirds};
use super::tests::{Attribute, of, rows_of};

/// The columns of numbers.
const NUMBERS: [usize; 6] = [0, 2, 4, 10, 11, 12];

/// Adult as it is: 14 attributes and the income.
fn adult() -> Examples {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/adult/adult.csv.gz"
    );
    let packed = std::fs::read(path).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_string(&mut text)
        .unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .map(|it| it.split(',').collect())
        .collect();
    let column = |at: usize| rows.iter().map(move |row| row[at].trim());
    let nominal = |at: usize| {
        let mut values: Vec<&str> = column(at).collect();
        values.sort_unstable();
        values.dedup();
        let codes = column(at).map(|text| values.binary_search(&text).unwrap() as u32);
        Attribute::nominal(values.len() as u32, codes.collect())
    };
    let ordered = |at: usize| {
        let numbers: Vec<f64> = column(at).map(|text| text.parse().unwrap()).collect();
        let mut values = numbers.clone();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let rank = |number: &f64| values.partition_point(|value| value < number) as u32;
        let codes = numbers.iter().map(rank).collect();
        Attribute::ordered(values, codes)
    };
    let attribute = |at: usize| {
        if NUMBERS.contains(&at) {
            ordered(at)
        } else {
            nominal(at)
        }
    };
    let classes = nominal(14);
    of((0..14).map(attribute).collect(), classes.codes, 2)
}

/// `scikit_learn.py` beside this file printed the errors of scikit-learn 1.9.1 on the same
/// divisions. The paper's baseline error is 14.7 %, without the marital status.
#[test]
fn the_error_on_adult_is_that_of_another_library_within_a_point() {
    let examples = rows_of(&adult());
    assert_eq!(examples.len(), 45_222);
    let logs = Logs::new(45_222);
    let scikit_learn = [0.1462, 0.1452, 0.1448, 0.1418, 0.1469];
    let errors = (0..).zip(scikit_learn).map(|(seed, expected)| {
        let error = held_out_error(
            &examples,
            &two_thirds(45_222, seed),
            &logs,
            &Cancellation::new(),
        )
        .unwrap();
        assert!((error - expected).abs() < 0.01, "{seed}: {error}");
        error
    });
    let mean = errors.sum::<f64>() / 5.0;
    assert!((mean - 0.147).abs() < 0.01, "{mean}");
}
