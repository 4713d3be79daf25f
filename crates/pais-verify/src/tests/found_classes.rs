//! The classes that the verifier has found, against those of the table.

use std::collections::BTreeSet;

use pais_core::cancellation::Cancellation;
use pais_core::model::Lkc;
use proptest::prelude::*;

use super::brute_force::{subjects, tables};
use super::{columns, names};
use crate::{
    AdversaryLengths, CountedTable, EquivalenceClasses, LkcRequirement, measure_adversaries,
    verify_model,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn found_classes_measure_as_those_of_the_table(
        table in tables(40, 4),
        subjects in subjects(),
        has_subjects: bool,
        k in 1..6u64,
        assumed in 0..5u32,
        longest in 0..8u32,
    ) {
        let none = &Cancellation::new();
        let (known, sensitive) = (names(&["q0", "q1", "q2", "q3", "q4"]), names(&["s0", "s1"]));
        let counted = CountedTable {
            table: &table,
            subjects: has_subjects.then(|| &subjects[..table.rows]),
        };
        let model = Lkc::k_anonymity(k).unwrap();
        let requirement = LkcRequirement::from_model(&model, known.len(), &sensitive);
        let (_, classes) = verify_model(counted, columns(&known, &sensitive), &model.into(), none).unwrap();
        let classes = classes.expect("LKC-privacy without sets is decided on classes");
        let found = EquivalenceClasses::new(&table, &known, Some(&classes), none).unwrap();
        let expected = EquivalenceClasses::new(&table, &known, None, none).unwrap();
        prop_assert_eq!(found.sizes(), expected.sizes());
        let lengths = AdversaryLengths { assumed, longest };
        let measured = |classes| measure_adversaries(counted, classes, &requirement, lengths, none);
        prop_assert_eq!(measured(&found), measured(&expected));
        let by_all = [known.clone(), sensitive.clone()].concat();
        let by_all = EquivalenceClasses::new(&table, &by_all, None, none).unwrap();
        let alone = by_all.sizes().iter().filter(|&&size| size == 1).count();
        let share = alone as f64 / table.rows.max(1) as f64;
        prop_assert_eq!(found.share_alone_by(&table, &sensitive, none).unwrap(), share);

        let whole = |row: usize| table.columns.iter().map(|it| it.column.codes[row]).collect::<Vec<_>>();
        let person = |row: usize| if has_subjects { subjects[row] } else { row as u32 };
        let others = |row: usize| (0..table.rows).any(|other| person(other) != person(row) && whole(other) == whole(row));
        let alone: BTreeSet<u32> = (0..table.rows).filter(|&row| !others(row)).map(person).collect();
        let all: BTreeSet<u32> = (0..table.rows).map(person).collect();
        let share = alone.len() as f64 / all.len().max(1) as f64;
        prop_assert_eq!(found.share_alone_by(counted, &sensitive, none).unwrap(), share);
    }
}
