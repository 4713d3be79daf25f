//! k^m-anonymity against brute force.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};

use proptest::prelude::*;

use super::columns;
use crate::CountedTable;
use crate::facts::verify_km;
use pais_core::cancellation::Cancellation;
use pais_core::model::KmAnonymity;
use pais_core::table::{Column, Form, ReleasedColumn, ReleasedTable};

/// Sex, items, and a sensitive value, which is missing where it is 0.
type Row = (u8, Vec<u8>, u8);

fn table(rows: &[Row]) -> ReleasedTable {
    let column = |name: &str, form, cells: Vec<String>| ReleasedColumn {
        name: name.into(),
        form,
        column: Column {
            codes: (0..cells.len() as u32).collect(),
            dictionary: cells.into_iter().map(Into::into).collect(),
        },
        missing: vec!["0".into()],
    };
    let sets = rows.iter().map(|(_, items, _)| {
        let items: Vec<String> = items.iter().map(u8::to_string).collect();
        items.join("|")
    });
    let cells = |of: fn(&Row) -> u8| rows.iter().map(|row| of(row).to_string()).collect();
    ReleasedTable {
        name: "data".into(),
        rows: rows.len(),
        columns: vec![
            column("sex", Form::Generalized, cells(|row| row.0)),
            column("drugs", Form::Set { separator: '|' }, sets.collect()),
            column("illness", Form::Text, cells(|row| row.2)),
        ],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_brute_force(
        rows in prop::collection::vec(
            (0..2u8, prop::collection::vec(0..5u8, 0..5), 0..4u8), 0..12),
        subjects in prop::option::of(prop::collection::vec(0..5u32, 12)),
        k in 1..4u64,
        m in 1..6u32,
    ) {
        let names = ["sex".into(), "drugs".into()];
        let model = KmAnonymity {
            k: NonZeroU64::new(k).unwrap(),
            m: NonZeroU32::new(m).unwrap(),
        };
        let sensitive = ["illness".into()];
        let cancellation = Cancellation::new();
        let table = table(&rows);
        let subjects = subjects.as_ref().map(|subjects| &subjects[..rows.len()]);
        let counted = CountedTable { table: &table, subjects };
        let found = verify_km(counted, columns(&names, &sensitive), model, &cancellation).unwrap();
        let person = |row: usize| subjects.map_or(row as u32, |subjects| subjects[row]);
        let people: Vec<(&Row, u32)> = rows.iter().zip((0..rows.len()).map(person)).collect();
        let count = |persons: Vec<(&Row, u32)>| {
            let distinct: BTreeSet<u32> = persons.iter().map(|(_, person)| *person).collect();
            distinct.len() as u64
        };
        let (mut smallest, mut greatest) = (u64::MAX, 0f64);
        let (mut smallest_class, mut violations) = (u64::MAX, 0);
        for sex in 0..2 {
            for set in 0u8..1 << 5 {
                let is_of = |(row, _): &&(&Row, u32), exactly: bool| {
                    let has = |item: u8| row.1.contains(&item);
                    row.0 == sex && (0..5).all(|item| if set >> item & 1 == 1 { has(item) } else { !exactly || !has(item) })
                };
                let of_class = people.iter().filter(|row| is_of(row, true));
                let class: Vec<_> = of_class.copied().collect();
                if !class.is_empty() {
                    smallest_class = smallest_class.min(count(class));
                }
                if set.count_ones() > m {
                    continue;
                }
                let holding: Vec<_> =
                    people.iter().filter(|row| is_of(row, false)).copied().collect();
                let of = |value: u8| holding.iter().filter(|(row, _)| row.2 == value).count();
                let present: usize = (1..4).map(of).sum();
                let most = (1..4).map(of).max().unwrap();
                if present > 0 {
                    greatest = greatest.max(most as f64 / present as f64);
                }
                if !holding.is_empty() {
                    let size = count(holding);
                    smallest = smallest.min(size);
                    violations += u64::from(size < k);
                }
            }
        }
        let of_none = |size: u64| if rows.is_empty() { 0 } else { size };
        prop_assert_eq!(found.smallest_group, of_none(smallest));
        prop_assert_eq!(found.smallest_equivalence_class, of_none(smallest_class));
        prop_assert_eq!(found.worst.is_empty(), violations == 0);
        if let Some(first) = found.worst.first() {
            prop_assert_eq!(first.size, smallest);
        }
        prop_assert_eq!(found.greatest_confidence, greatest);
        prop_assert_eq!(found.greatest_bounded_confidence, None);
        prop_assert_eq!(found.holds, rows.is_empty() || smallest >= k);
        prop_assert_eq!(found.holds, found.worst.is_empty());
    }
}
