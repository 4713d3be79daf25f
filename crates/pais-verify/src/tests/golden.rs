//! Golden tests: the tables of the KDD'09 paper, and malformed tables.

use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, MissingSensitive};
use pais_core::table::ReleasedTable;

use super::{columns, names, table, table_1, table_2, verified, verify_lkc};
use crate::{ColumnValue, LkcRequirement, SensitiveRequirement, SensitiveSet, VerifyError};

fn requirement(l: usize, k: u64, c: f64) -> LkcRequirement {
    LkcRequirement {
        l,
        k,
        c: Confidence::new(c).unwrap(),
        sensitive: vec![SensitiveRequirement {
            column: "Surgery".into(),
            values: SensitiveSet::Listed(names(&["Transgender"])),
        }],
        missing_sensitive: MissingSensitive::Excluded,
    }
}

#[test]
fn table_1_does_not_satisfy_lkc() {
    let qids = names(&["Job", "Sex", "Age"]);
    let found = verified(&table_1(), &qids, &requirement(2, 2, 0.5)).unwrap();
    assert!(!found.holds);
    assert_eq!((found.rows, found.groups, found.subsets), (11, 11, 3));
    assert_eq!((found.smallest_group, found.greatest_confidence), (1, 1.0));
    assert_eq!(found.worst.len(), 10);
    assert!(found.worst.iter().all(|group| group.size == 1));
}

#[test]
fn table_2_satisfies_lkc() {
    let qids = names(&["Job", "Sex", "Age"]);
    let found = verified(&table_2(), &qids, &requirement(2, 2, 0.5)).unwrap();
    assert!(found.holds);
    assert_eq!((found.rows, found.groups, found.subsets), (11, 5, 3));
    assert_eq!((found.smallest_group, found.greatest_confidence), (2, 0.5));
    assert_eq!(found.greatest_bounded_confidence, Some(0.5));
    // The one record of a Professional, M, [30,60) is known by three values, not by two.
    assert_eq!(found.smallest_equivalence_class, 1);
    assert_eq!((found.violations, found.worst.len()), (0, 0));
}

#[test]
fn table_2_is_not_2_anonymous() {
    let qids = names(&["Job", "Sex", "Age"]);
    let found = verified(&table_2(), &qids, &requirement(3, 2, 1.0)).unwrap();
    assert!(!found.holds);
    assert_eq!((found.smallest_group, found.violations), (1, 1));
    assert_eq!(found.smallest_equivalence_class, 1);
    let [offender] = &found.worst[..] else {
        panic!("{:?}", found.worst)
    };
    let mut values: Vec<_> = offender
        .quasi_identifiers
        .iter()
        .filter_map(|known| known.value.as_deref())
        .collect();
    values.sort_unstable();
    assert_eq!(values, ["M", "Professional", "[30,60)"]);
    assert_eq!(
        (offender.size, &offender.sensitive, offender.confidence),
        (1, &None, 0.0)
    );
}

#[test]
fn a_confidence_above_the_bound_is_listed_with_its_value() {
    let qids = names(&["Job", "Sex", "Age"]);
    let found = verified(&table_2(), &qids, &requirement(2, 2, 0.49)).unwrap();
    assert!(!found.holds);
    // Non-Technical with M, and Non-Technical with [30,60): one qid each, of four records.
    assert_eq!(found.violations, 2);
    let value = ColumnValue {
        column: "Surgery".into(),
        value: Some("Transgender".into()),
    };
    assert!(
        found
            .worst
            .iter()
            .all(|group| group.sensitive.as_ref() == Some(&value))
    );
    assert_eq!((found.worst[0].size, found.worst[0].confidence), (4, 0.5));
}

#[test]
fn a_missing_cell_is_a_value_of_a_quasi_identifier_but_never_sensitive() {
    let rows = [
        vec!["?", ""],
        vec!["?", ""],
        vec!["a", "flu"],
        vec!["a", ""],
    ];
    let table = table(&["Job", "Surgery"], &rows);
    let every = |missing_sensitive| LkcRequirement {
        sensitive: vec![SensitiveRequirement {
            column: "Surgery".into(),
            values: SensitiveSet::Every,
        }],
        missing_sensitive,
        ..requirement(1, 2, 0.5)
    };
    let figures = |reading| {
        let found = verified(&table, &names(&["Job"]), &every(reading)).unwrap();
        let confidence = found.greatest_confidence;
        (found.holds, found.groups, found.smallest_group, confidence)
    };
    // Group a has 2 records, of which 1 has flu and 1 has no value: 1 of 2 records, and 1 of the
    // 1 record with a value.
    assert_eq!(figures(MissingSensitive::Counted), (true, 2, 2, 0.5));
    assert_eq!(figures(MissingSensitive::Excluded), (false, 2, 2, 1.0));
}

#[test]
fn an_empty_table_satisfies_lkc() {
    let table = table(&["Job", "Surgery"], &[]);
    let found = verified(&table, &names(&["Job"]), &requirement(2, 2, 0.5)).unwrap();
    assert!(found.holds);
    assert_eq!((found.rows, found.groups, found.smallest_group), (0, 0, 0));
    assert_eq!((found.greatest_confidence, found.subsets), (0.0, 0));
}

#[test]
fn without_quasi_identifiers_the_table_is_one_group() {
    for (qids, l) in [(names(&[]), 2), (names(&["Job"]), 0)] {
        let found = verified(&table_1(), &qids, &requirement(l, 11, 0.2)).unwrap();
        assert!(found.holds, "2 of 11 records are Transgender");
        assert_eq!((found.smallest_group, found.subsets), (11, 1));
        assert!(
            !verified(&table_1(), &qids, &requirement(l, 12, 0.2))
                .unwrap()
                .holds
        );
    }
}

#[test]
fn a_repeated_dictionary_entry_is_counted_as_one_value() {
    let mut twice = table(
        &["Job", "Surgery"],
        &[vec!["a", "Transgender"], vec!["a", "x"]],
    );
    twice.columns[1].column.dictionary = names(&["Transgender", "Transgender"]);
    let found = verified(&twice, &names(&["Job"]), &requirement(1, 1, 0.5)).unwrap();
    assert_eq!(found.greatest_confidence, 1.0);
}

#[test]
fn a_malformed_table_is_an_error() {
    let good = table_2();
    let verify = |table: &ReleasedTable, qids: &[&str]| {
        verified(table, &names(qids), &requirement(2, 2, 0.5))
    };
    assert_eq!(
        verify(&good, &["Town"]),
        Err(VerifyError::NoSuchColumn {
            column: "Town".into()
        })
    );
    let mut uneven = good.clone();
    uneven.columns[0].column.codes.pop();
    assert!(matches!(
        verify(&uneven, &["Job"]),
        Err(VerifyError::UnevenColumn { .. })
    ));
    let mut unknown = good.clone();
    let beyond = unknown.columns[0].column.dictionary.len() as u32;
    unknown.columns[0].column.codes[3] = beyond;
    assert!(matches!(
        verify(&unknown, &["Job"]),
        Err(VerifyError::UnknownCode { .. })
    ));
    let mut repeated = good;
    repeated.columns[1].name = "Job".into();
    assert!(matches!(
        verify(&repeated, &["Job"]),
        Err(VerifyError::RepeatedColumn { .. })
    ));
}

#[test]
fn a_verification_can_be_stopped() {
    let qids = names(&["Job", "Sex", "Age"]);
    let cancellation = Cancellation::new();
    cancellation.cancel();
    let requirement = requirement(2, 2, 0.5);
    let stopped = verify_lkc(&table_1(), columns(&qids, &[]), &requirement, &cancellation);
    assert_eq!(stopped, Err(VerifyError::Stopped));
}
