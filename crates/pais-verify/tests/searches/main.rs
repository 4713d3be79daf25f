//! The two searches of the verifier find what the former searches find: the same verdict, figures,
//! counts and worst groups, of random tables under every model that is decided by enumeration.
//!
//! Every run draws new cases. A failure prints the number of its case; `PAIS_CASE=<number>` runs
//! that case alone.

mod dice;
mod former;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::num::{NonZeroU32, NonZeroU64};

use pais_core::cancellation::Cancellation;
use pais_core::definition::DatasetDefinition;
use pais_core::model::{Confidence, KmAnonymity, Lkc, MissingSensitive};
use pais_core::schema::Schema;
use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
use pais_verify::{
    AdversaryLengths, CountedTable, EquivalenceClasses, LkcRequirement, SensitiveRequirement,
    SensitiveSet, measure_adversaries, verify_km, verify_lkc, verify_lkc_classes, verify_lkc_model,
    verify_overlapping_lkc,
};
use rayon::prelude::*;
use serde_json::json;

use dice::Dice;

/// Tables that are verified.
const TABLES: u64 = 10_000;

#[test]
fn the_searches_find_what_the_former_ones_find() {
    if let Ok(case) = std::env::var("PAIS_CASE") {
        compare(case.parse().expect("PAIS_CASE is a whole number"));
        return;
    }
    let first = RandomState::new().hash_one(()) >> 16;
    // On the threads of the searches, which then need not wake each other up for each table.
    let cases = (first..first + TABLES).into_par_iter();
    let holding: u64 = cases
        .map(|case| {
            let holds = std::panic::catch_unwind(|| compare(case)).unwrap_or_else(|panic| {
                eprintln!("run this case alone by PAIS_CASE={case}");
                std::panic::resume_unwind(panic)
            });
            u64::from(holds)
        })
        .sum();
    println!("cases from {first} on, of which {holding} hold");
    let share = TABLES / 20..TABLES * 19 / 20;
    assert!(share.contains(&holding), "{holding} tables hold");
}

/// Compares the findings on a table; returns whether it satisfies LKC-privacy.
fn compare(case: u64) -> bool {
    let mut dice = Dice::new(case);
    let columns = if dice.chance(1, 20) {
        // Searched with bitmaps.
        8 + dice.below(2)
    } else {
        1 + dice.below(6)
    };
    let table = table(&mut dice, columns);
    let subjects = dice.chance(1, 3).then(|| subjects(&mut dice, table.rows));
    let counted = CountedTable {
        table: &table,
        subjects: subjects.as_deref(),
    };
    let known: Vec<Box<str>> = (0..columns).map(|column| name('q', column)).collect();
    let sensitive: Vec<Box<str>> = (0..2).map(|column| name('s', column)).collect();
    let cancellation = Cancellation::new();
    let cancel = &cancellation;
    let requirement = requirement(&mut dice, &sensitive);

    let found = verify_lkc(counted, &known, &sensitive, &requirement, cancel);
    let former = former::lkc::verify_lkc(counted, &known, &sensitive, &requirement, cancel);
    assert_eq!(found, former);
    let holds = found.is_ok_and(|found| found.holds);

    let model = model(&mut dice, &requirement);
    let found = verify_lkc_model(counted, &known, &sensitive, &model, cancel);
    let former = former::facts::verify_lkc_model(counted, &known, &sensitive, &model, cancel);
    assert_eq!(found, former);

    let km = KmAnonymity {
        k: NonZeroU64::new(requirement.k).unwrap(),
        m: NonZeroU32::new(1 + dice.below(4) as u32).unwrap(),
    };
    let found = verify_km(counted, &known, &sensitive, km, cancel);
    let former = former::itemsets::verify_km(counted, &known, &sensitive, km, cancel);
    assert_eq!(found, former);

    let lengths = AdversaryLengths {
        assumed: dice.below(5) as u32,
        longest: dice.below(8) as u32,
    };
    let classes = EquivalenceClasses::new(counted.table, &known, None, cancel).unwrap();
    let found = measure_adversaries(counted, &classes, &requirement, lengths, cancel);
    let former =
        former::adversaries::measure_adversaries(counted, &known, &requirement, lengths, cancel);
    assert_eq!(found, former);

    // The classes that the verifier has found are as good as those of the table.
    let verified = verify_lkc_classes(counted, &known, &sensitive, &model, cancel);
    let of_verifier = verified.ok().and_then(|(_, classes)| classes);
    let same =
        EquivalenceClasses::new(counted.table, &known, of_verifier.as_ref(), cancel).unwrap();
    let found = measure_adversaries(counted, &same, &requirement, lengths, cancel);
    assert_eq!(found, former);
    assert_eq!(same.sizes(), classes.sizes());
    let by_all: Vec<Box<str>> = known.iter().chain(&sensitive).cloned().collect();
    let by_all = EquivalenceClasses::new(counted.table, &by_all, None, cancel).unwrap();
    let alone = by_all.sizes().iter().filter(|&&size| size == 1).count() as u64;
    assert_eq!(
        same.alone_by(counted.table, &sensitive, cancel).unwrap(),
        alone
    );

    let overlapping = overlapping_table(&mut dice, table.rows);
    let found = verify_overlapping_lkc(&overlapping, &schema(), &model, cancel);
    let former = former::overlap::verify_overlapping_lkc(&overlapping, &schema(), &model, cancel);
    assert_eq!(found, former);
    holds
}

fn name(kind: char, column: usize) -> Box<str> {
    format!("{kind}{column}").into()
}

/// A column of texts. Where the dictionary has a text twice, or words for missing, the verifier has
/// to see that.
fn column(name: Box<str>, form: Form, texts: &[&str], codes: Vec<u32>) -> ReleasedColumn {
    ReleasedColumn {
        name,
        form,
        column: Column {
            dictionary: texts.iter().map(|&text| text.into()).collect(),
            codes,
        },
        missing: vec!["".into()],
    }
}

/// A table with this number of quasi-identifiers, some of them sets, and two sensitive columns.
fn table(dice: &mut Dice, quasi_identifiers: usize) -> ReleasedTable {
    let most = dice.pick(&[4, 16, 40, 120]);
    let drawn = dice.below(most);
    // Each row is repeated, because otherwise hardly any table would satisfy a requirement.
    let repeated = 1 + dice.below(6);
    let rows = drawn * repeated;
    let codes = |dice: &mut Dice, values: usize| {
        let null = dice.below(3);
        let mut code = || {
            if dice.below(20) < null {
                NULL_CODE
            } else {
                dice.below(values) as u32
            }
        };
        let codes: Vec<u32> = (0..drawn).map(|_| code()).collect();
        (0..rows)
            .map(|row| codes[row % drawn])
            .collect::<Vec<u32>>()
    };
    let has_sets = dice.chance(1, 2);
    let mut columns = Vec::new();
    for number in 0..quasi_identifiers {
        let values = 1 + dice.below(5);
        let codes = codes(dice, values);
        let column = if has_sets && dice.chance(1, 2) {
            let sets = ["a|b", "b|a", "", "c", "a|c|d|e"];
            column(
                name('q', number),
                Form::Set { separator: '|' },
                &sets,
                codes,
            )
        } else {
            let texts = ["a", "b", "?", "", "a"];
            column(name('q', number), Form::Generalized, &texts, codes)
        };
        columns.push(column);
    }
    for number in 0..2 {
        let values = 1 + dice.below(5);
        let mut codes = codes(dice, values);
        if dice.chance(1, 2) {
            let turn = rows / 3;
            codes.rotate_left(turn);
        }
        let texts = ["x", "y", "", "z", "x"];
        columns.push(column(name('s', number), Form::Text, &texts, codes));
    }
    ReleasedTable {
        name: "data".into(),
        rows,
        columns,
    }
}

/// The person of each row: of few or of many, by numbers with or without gaps.
fn subjects(dice: &mut Dice, rows: usize) -> Vec<u32> {
    let persons = dice.pick(&[1, 3, 12, 60]);
    let gap = dice.pick(&[1, 1_000_003]);
    let person = |_| dice.below(persons) as u32 * gap;
    (0..rows).map(person).collect()
}

fn requirement(dice: &mut Dice, sensitive: &[Box<str>]) -> LkcRequirement {
    let mut named = Vec::new();
    for column in sensitive {
        let values = dice.pick(&[
            None,
            Some(SensitiveSet::Every),
            Some(SensitiveSet::Listed(vec!["x".into(), "".into()])),
            Some(SensitiveSet::Listed(Vec::new())),
        ]);
        named.extend(values.map(|values| SensitiveRequirement {
            column: column.clone(),
            values,
        }));
    }
    LkcRequirement {
        l: dice.below(7),
        k: 1 + dice.below(6) as u64,
        c: Confidence::new(dice.pick(&[0.2, 0.25, 0.5, 0.75, 0.9, 1.0])).unwrap(),
        sensitive: named,
        missing_sensitive: dice.pick(&[MissingSensitive::Excluded, MissingSensitive::Counted]),
    }
}

/// The model of a job that is most like a requirement.
fn model(dice: &mut Dice, requirement: &LkcRequirement) -> Lkc {
    let listed = |named: &SensitiveRequirement| match &named.values {
        SensitiveSet::Every => vec!["x".to_owned(), "y".to_owned()],
        SensitiveSet::Listed(values) => values.iter().map(|value| value.to_string()).collect(),
    };
    let named = requirement.sensitive.iter();
    let values: BTreeMap<String, Vec<String>> = named
        .map(|named| (named.column.to_string(), listed(named)))
        .collect();
    Lkc {
        l: NonZeroU32::new(requirement.l as u32),
        k: NonZeroU64::new(requirement.k).unwrap(),
        c: requirement.c,
        sensitive_values: dice.chance(1, 2).then_some(values),
        missing_sensitive: requirement.missing_sensitive,
    }
}

fn schema() -> Schema {
    let definition: DatasetDefinition = serde_json::from_value(json!({"name": "a", "columns": [
        {"name": "t", "role": "quasi_identifier", "taxonomy": {"label": "any", "children": [
            {"label": "low", "children": [{"label": "t0"}, {"label": "t1"}]}, {"label": "t2"}]}},
        {"name": "n", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 10]},
        {"name": "f", "role": "quasi_identifier"},
        {"name": "s0", "role": "sensitive"},
        {"name": "s1", "role": "sensitive"},
    ]}))
    .unwrap();
    Schema::inline(&definition).unwrap()
}

/// A table of the schema whose labels may overlap.
fn overlapping_table(dice: &mut Dice, rows: usize) -> ReleasedTable {
    let rows = rows.min(40);
    let labels: [(&str, Form, &[&str]); 5] = [
        (
            "t",
            Form::Generalized,
            &["t0", "t1", "t2", "low", "any", "?"],
        ),
        (
            "n",
            Form::Generalized,
            &["0", "[0,5]", "[3,8)", "[5,9]", "[0,10]", "?"],
        ),
        ("f", Form::Generalized, &["f0", "f1", "*", "?"]),
        ("s0", Form::Text, &["x", "y", ""]),
        ("s1", Form::Text, &["x", "y", "z"]),
    ];
    let columns = labels.into_iter().map(|(name, form, texts)| {
        let values = 1 + dice.below(texts.len());
        let codes = (0..rows).map(|_| dice.below(values) as u32).collect();
        column(name.into(), form, texts, codes)
    });
    ReleasedTable {
        name: "data".into(),
        rows,
        columns: columns.collect(),
    }
}
