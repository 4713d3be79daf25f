//! The enumeration of facts against brute force.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroU64};

use proptest::prelude::*;

use super::{FactLists, verify_km};
use crate::classes::Values;
use crate::tests::columns;
use crate::{CountedTable, PrivacyFinding, Verification, verify_model};
use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, KmAnonymity, Lkc, MissingSensitive};
use pais_core::table::{Column, Form, ReleasedColumn, ReleasedTable};

/// Sex, ward, items, and a sensitive value, which is missing where it is 0.
type Row = (u8, u8, Vec<u8>, u8);

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
    let sets = rows.iter().map(|row| {
        let items: Vec<String> = row.2.iter().map(u8::to_string).collect();
        items.join("|")
    });
    let cells = |of: fn(&Row) -> u8| rows.iter().map(|row| of(row).to_string()).collect();
    ReleasedTable {
        name: "data".into(),
        rows: rows.len(),
        columns: vec![
            column("sex", Form::Generalized, cells(|row| row.0)),
            column("ward", Form::Generalized, cells(|row| row.1)),
            column("drugs", Form::Set { separator: '|' }, sets.collect()),
            column("illness", Form::Text, cells(|row| row.3)),
        ],
    }
}

/// The facts of a row: the column and the value or item.
fn facts(row: &Row) -> Vec<(u8, u8)> {
    let items: BTreeSet<u8> = row.2.iter().copied().collect();
    let known = [(0, row.0), (1, row.1)].into_iter();
    known
        .chain(items.into_iter().map(|item| (2, item)))
        .collect()
}

/// Two rows have seven facts. Lists of more than 32 bits can number would have wrong ends.
#[test]
fn more_facts_than_can_be_numbered_have_no_lists() {
    let table = table(&[(0, 1, vec![1, 2], 1), (0, 2, vec![3], 1)]);
    let known = ["sex", "ward", "drugs"];
    let columns = Values::new_all(&table, &known).unwrap();
    let entries = |most| FactLists::new(2, &columns, most).map(|it| it.of_row.entries());
    assert_eq!((entries(7), entries(6)), (Some(7), None));
}

/// What is found under k^m-anonymity.
fn found(rows: &[Row]) -> Verification {
    let model = KmAnonymity {
        k: NonZeroU64::new(2).unwrap(),
        m: NonZeroU32::new(2).unwrap(),
    };
    let known = ["sex".into(), "ward".into(), "drugs".into()];
    verify_km(
        &table(rows),
        columns(&known, &[]),
        model,
        &Cancellation::new(),
    )
    .unwrap()
}

/// The order in which the items of the raw rows are read, hidden ones included, cannot be seen in it.
#[test]
fn the_number_of_combinations_does_not_depend_on_the_order_of_rows() {
    let mut rows: Vec<Row> = vec![(0, 0, vec![1, 2], 1), (0, 0, vec![1, 2], 1)];
    rows.extend([(0, 0, vec![2], 1), (0, 0, vec![2], 1)]);
    let one = found(&rows);
    rows.reverse();
    assert_eq!(found(&rows).subsets, one.subsets);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rows_in_another_order_are_found_alike(
        rows in prop::collection::vec((0..2u8, 0..2u8, prop::collection::vec(0..5u8, 0..4), 0..4u8), 1..14),
        by in 0..14usize,
    ) {
        let mut others = rows.clone();
        others.rotate_left(by % rows.len());
        let (one, other) = (found(&rows), found(&others));
        prop_assert_eq!(one.subsets, other.subsets);
        prop_assert_eq!(one.violations, other.violations);
        prop_assert_eq!(one.smallest_group, other.smallest_group);
    }

    #[test]
    fn agrees_with_brute_force(
        rows in prop::collection::vec(
            (0..2u8, 0..2u8, prop::collection::vec(0..4u8, 0..4), 0..4u8), 0..14),
        subjects in prop::option::of(prop::collection::vec(0..6u32, 14)),
        k in 1..4u64,
        l in 1..7u32,
        c in prop::sample::select(vec![0.4, 0.5, 0.75, 1.0]),
        listed in any::<bool>(),
        counted in any::<bool>(),
    ) {
        let reading = if counted { MissingSensitive::Counted } else { MissingSensitive::Excluded };
        let values = BTreeMap::from([("illness".to_owned(), vec!["1".to_owned()])]);
        let model = Lkc {
            l: NonZeroU32::new(l),
            k: NonZeroU64::new(k).unwrap(),
            c: Confidence::new(c).unwrap(),
            sensitive_values: listed.then_some(values),
            missing_sensitive: reading,
        };
        let table = table(&rows);
        let subjects = subjects.as_ref().map(|subjects| &subjects[..rows.len()]);
        let (found, _) = verify_model(CountedTable { table: &table, subjects }, columns(&["sex".into(), "ward".into(), "drugs".into()], &["illness".into()]), &model.into(), &Cancellation::new()).unwrap();
        let PrivacyFinding::Subsets(found) = found else {
            panic!("LKC-privacy is decided by subsets");
        };

        // By combination of facts, the rows that have all of them.
        let mut holding: BTreeMap<Vec<(u8, u8)>, Vec<usize>> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let facts = facts(row);
            for chosen in 0u32..1 << facts.len() {
                if chosen.count_ones() <= l {
                    let is_chosen = |(place, _): &(usize, &(u8, u8))| chosen >> place & 1 == 1;
                    let known = facts.iter().enumerate().filter(is_chosen);
                    let known = known.map(|(_, fact)| *fact).collect();
                    holding.entry(known).or_default().push(at);
                }
            }
        }
        let (mut smallest, mut greatest, mut holds) = (u64::MAX, 0f64, true);
        for holders in holding.values() {
            let person = |&at: &usize| subjects.map_or(at as u32, |subjects| subjects[at]);
            let persons: BTreeSet<u32> = holders.iter().map(person).collect();
            smallest = smallest.min(persons.len() as u64);
            holds &= persons.len() as u64 >= k;
            let of = |value: u8| holders.iter().filter(|&&at| rows[at].3 == value).count();
            let whole = if counted { holders.len() } else { holders.len() - of(0) };
            let most = (1..if listed { 2 } else { 4 }).map(of).max().unwrap();
            if most > 0 {
                let share = most as f64 / whole as f64;
                greatest = greatest.max(share);
                holds &= share <= c;
            }
        }
        let of_none = |size: u64| if rows.is_empty() { 0 } else { size };
        prop_assert_eq!(found.holds, holds);
        prop_assert_eq!(found.worst.is_empty(), holds);
        prop_assert_eq!(found.smallest_group, of_none(smallest));
        prop_assert_eq!(found.greatest_confidence, greatest);
        prop_assert_eq!(found.greatest_bounded_confidence, (c < 1.0).then_some(greatest));
        if let Some(first) = found.worst.first() {
            prop_assert!(first.size >= k || first.size == smallest);
        }
    }
}
