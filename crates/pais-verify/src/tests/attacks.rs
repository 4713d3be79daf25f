//! What an adversary tried to learn from a table that a model let pass.

use std::num::{NonZeroU32, NonZeroU64};

use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, Diversity, GroupModel, KmAnonymity, MissingSensitive};
use pais_core::table::{Form, ReleasedTable};
use proptest::prelude::*;

use super::{columns, names, table, verified, verify_lkc};
use crate::facts::verify_km;
use crate::partition::verify_groups;
use crate::{ColumnValue, LkcRequirement, SensitiveRequirement, SensitiveSet};

fn k_anonymity(k: u64) -> GroupModel {
    GroupModel {
        k: NonZeroU64::new(k).unwrap(),
        diversity: Diversity::None,
        min_range: Default::default(),
    }
}

fn requirement(c: f64, missing_sensitive: MissingSensitive) -> LkcRequirement {
    LkcRequirement {
        l: 1,
        k: 2,
        c: Confidence::new(c).unwrap(),
        sensitive: vec![SensitiveRequirement {
            column: "illness".into(),
            values: SensitiveSet::Every,
        }],
        missing_sensitive,
    }
}

/// Five lawyers, of whom one has HIV and four have no value; five movers with five illnesses.
fn diluted() -> ReleasedTable {
    let illnesses = ["hiv", "", "", "", "", "a", "b", "c", "d", "e"];
    let rows: Vec<Vec<&str>> = illnesses
        .iter()
        .enumerate()
        .map(|(row, illness)| vec![if row < 5 { "lawyer" } else { "mover" }, illness])
        .collect();
    table(&["job", "illness"], &rows)
}

#[test]
fn missing_cells_do_not_dilute_confidence() {
    let job = names(&["job"]);
    let requirement = |reading| requirement(0.2, reading);
    let found = verified(&diluted(), &job, &requirement(MissingSensitive::Excluded)).unwrap();
    assert!(!found.holds);
    assert_eq!((found.greatest_confidence, found.violations), (1.0, 1));
    assert_eq!(found.greatest_bounded_confidence, Some(1.0));
    assert_eq!(found.missing_sensitive, MissingSensitive::Excluded);
    let [worst] = &found.worst[..] else {
        panic!("{:?}", found.worst)
    };
    // All five lawyers share what is known, and the one with a value has HIV.
    assert_eq!((worst.size, worst.confidence), (5, 1.0));
    let hiv = ColumnValue {
        column: "illness".into(),
        value: Some("hiv".into()),
    };
    assert_eq!(worst.sensitive.as_ref(), Some(&hiv));
    // By the letter of Definition 3.1, one of five records.
    let found = verified(&diluted(), &job, &requirement(MissingSensitive::Counted)).unwrap();
    assert!(found.holds);
    assert_eq!(found.greatest_confidence, 0.2);

    let groups = verify_groups(
        &diluted(),
        columns(&job, &names(&["illness"])),
        &k_anonymity(2),
        &Cancellation::new(),
    );
    assert_eq!(groups.unwrap().greatest_confidence, 1.0);
}

#[test]
fn a_qid_that_violates_in_two_columns_is_one_violation() {
    let rows = vec![
        vec!["a", "hiv", "high"],
        vec!["a", "", ""],
        vec!["a", "hiv", ""],
    ];
    let rows = [rows, vec![vec!["b", "flu", "low"]]].concat();
    let table = table(&["job", "illness", "income"], &rows);
    let mut requirement = requirement(0.5, MissingSensitive::Excluded);
    requirement.sensitive.push(SensitiveRequirement {
        column: "income".into(),
        values: SensitiveSet::Every,
    });
    let found = verified(&table, &names(&["job"]), &requirement).unwrap();
    assert_eq!((found.violations, found.worst.len()), (2, 2));
    // The group of one record, with b, is below K; the sensitive value of both groups is certain.
    assert_eq!((found.worst[0].size, found.worst[1].size), (1, 3));
}

/// Three lawyers, all with HIV, and three movers with different illnesses.
fn uniform() -> ReleasedTable {
    let rows = ["hiv", "hiv", "hiv", "flu", "cold", "cough"];
    let rows: Vec<Vec<&str>> = rows
        .iter()
        .enumerate()
        .map(|(row, illness)| vec![if row < 3 { "lawyer" } else { "mover" }, "x|y", illness])
        .collect();
    let mut table = table(&["job", "drugs", "illness"], &rows);
    table.columns[1].form = Form::Set { separator: '|' };
    table
}

#[test]
fn a_group_of_one_value_has_confidence_one_under_k_anonymity() {
    let (table, cancellation) = (uniform(), Cancellation::new());
    let (known, sensitive) = (names(&["job", "drugs"]), names(&["illness"]));
    let global = LkcRequirement {
        l: 2,
        k: 3,
        c: Confidence::UNBOUNDED,
        sensitive: Vec::new(),
        missing_sensitive: MissingSensitive::Excluded,
    };
    let global = verify_lkc(&table, columns(&known, &sensitive), &global, &cancellation).unwrap();
    let local = verify_groups(
        &table,
        columns(&known, &sensitive),
        &k_anonymity(3),
        &cancellation,
    )
    .unwrap();
    let km = KmAnonymity {
        k: NonZeroU64::new(3).unwrap(),
        m: NonZeroU32::new(2).unwrap(),
    };
    let km = verify_km(&table, columns(&known, &sensitive), km, &cancellation).unwrap();
    assert!(global.holds && local.holds && km.holds);
    assert_eq!(global.greatest_confidence, 1.0);
    assert_eq!(local.greatest_confidence, 1.0);
    assert_eq!(km.greatest_confidence, 1.0);
    assert_eq!(global.greatest_bounded_confidence, None);
    assert_eq!(km.greatest_bounded_confidence, None);
    assert_eq!(global.smallest_equivalence_class, 3);
    assert_eq!(local.smallest_equivalence_class, 3);
    assert_eq!(km.smallest_equivalence_class, 3);
}

/// A bound on the values of one column says nothing about another, which is measured all the same.
#[test]
fn a_column_without_a_bound_is_measured() {
    let rows = vec![vec!["a", "flu", "high"], vec!["a", "cold", "high"]];
    let table = table(&["job", "illness", "income"], &rows);
    let requirement = requirement(0.5, MissingSensitive::Excluded);
    let sensitive = names(&["illness", "income"]);
    let cancellation = Cancellation::new();
    let found = verify_lkc(
        &table,
        columns(&names(&["job"]), &sensitive),
        &requirement,
        &cancellation,
    );
    let found = found.unwrap();
    assert!(found.holds);
    assert_eq!(found.greatest_bounded_confidence, Some(0.5));
    assert_eq!(found.greatest_confidence, 1.0);
}

proptest! {
    #[test]
    fn groups_are_measured_among_the_rows_with_a_value(
        rows in prop::collection::vec((0usize..3, 0usize..4, 0usize..3), 0..14),
    ) {
        const JOBS: [&str; 3] = ["a", "b", "?"];
        const ILLNESSES: [&str; 4] = ["", "flu", "hiv", "cold"];
        const INCOMES: [&str; 3] = ["", "high", "low"];
        let cells: Vec<Vec<&str>> = rows
            .iter()
            .map(|&(job, illness, income)| vec![JOBS[job], ILLNESSES[illness], INCOMES[income]])
            .collect();
        let table = table(&["job", "illness", "income"], &cells);
        let sensitive = names(&["illness", "income"]);
        let cancellation = Cancellation::new();
        let found = verify_groups(&table, columns(&names(&["job"]), &sensitive), &k_anonymity(1), &cancellation).unwrap();
        let mut greatest = 0f64;
        for job in JOBS {
            for column in 1..3 {
                let group = cells.iter().filter(|row| row[0] == job && !row[column].is_empty());
                let values: Vec<&str> = group.map(|row| row[column]).collect();
                for value in &values {
                    let same = values.iter().filter(|other| *other == value).count();
                    greatest = greatest.max(same as f64 / values.len() as f64);
                }
            }
        }
        prop_assert_eq!(found.greatest_confidence, greatest);
    }
}
