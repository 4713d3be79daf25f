//! The figures of random tables against brute force, and of a table that is counted by hand.

use std::collections::{BTreeMap, BTreeSet};

use pais_core::cancellation::Cancellation;
use pais_core::model::Confidence;
use pais_core::risk::{RiskError, TableRisk, assess, check_work};
use pais_core::schema::Schema;
use pais_io::read::csv;
use proptest::prelude::*;
use serde_json::json;

/// A row: the patient, then job, age, drugs, illness, ward and bed. `None` is a missing cell.
type Row = (u8, [Option<u8>; 6]);

const QIDS: usize = 3;

fn schema(has_subject: bool) -> Schema {
    let patient = if has_subject {
        json!({"name": "patient", "role": "subject"})
    } else {
        json!({"name": "patient", "role": "identifier"})
    };
    let definition = json!({"name": "t", "columns": [
        patient,
        {"name": "job", "role": "quasi_identifier", "missing": ["", "NA"]},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
        {"name": "illness", "role": "sensitive"},
        {"name": "ward", "role": "insensitive"},
        {"name": "bed", "role": "insensitive"},
    ]});
    Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap()
}

/// The same values in several spellings: a missing job as two words, numbers with and without a
/// fraction, and sets in both orders.
fn text(rows: &[Row]) -> String {
    let mut csv = "patient,job,age,drugs,illness,ward,bed\n".to_owned();
    for (number, (patient, cells)) in rows.iter().enumerate() {
        let other = number % 2 == 1;
        let mut texts = vec![format!("p{patient}")];
        for (index, cell) in cells.iter().enumerate() {
            texts.push(match (index, cell) {
                (0, None) if other => "NA".to_owned(),
                (_, None) => String::new(),
                (1, Some(value)) if other => format!("{value}.0"),
                (1, Some(value)) => value.to_string(),
                (2, Some(value)) if other => format!("i{value}|all|a"),
                (2, Some(value)) => format!("a|all|i{value}"),
                (_, Some(value)) => format!("v{value}"),
            });
        }
        csv += &(texts.join(",") + "\n");
    }
    csv
}

fn risk(schema: &Schema, rows: &[Row], l: usize) -> TableRisk {
    let table = csv::read_table(schema, text(rows).as_bytes()).unwrap();
    assess(schema, table, l, &Cancellation::new()).unwrap()
}

/// Distinct values of some columns, and persons with such values that nobody else has.
fn counted(rows: &[(u32, Row)], columns: &[usize]) -> (usize, usize) {
    let mut people: BTreeMap<Vec<Option<u8>>, BTreeSet<u32>> = BTreeMap::new();
    for (person, (_, cells)) in rows {
        let values = columns.iter().map(|&column| cells[column]).collect();
        people.entry(values).or_default().insert(*person);
    }
    let alone = people.values().filter(|people| people.len() == 1).flatten();
    (people.len(), alone.collect::<BTreeSet<_>>().len())
}

/// The greatest number of persons that the smaller part of a split of the ages can have.
fn best_split(rows: &[(u32, Row)]) -> Option<u64> {
    let people = |part: &dyn Fn(Option<u8>) -> bool| {
        let found = rows.iter().filter(|(_, (_, cells))| part(cells[1]));
        found
            .map(|(person, _)| *person)
            .collect::<BTreeSet<_>>()
            .len() as u64
    };
    let splits = (0..20u8).map(|at| {
        let left = people(&|age| age.is_some_and(|age| age < at));
        let right = people(&|age| age.is_some_and(|age| age >= at));
        left.min(right)
    });
    let missing = people(&|age| age.is_none());
    let best = splits.max().unwrap();
    Some(if missing > 0 { best.min(missing) } else { best }).filter(|best| *best > 0)
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let cell = || prop::option::weighted(0.9, 0..5u8);
    let row = (0..7u8, [cell(), cell(), cell(), cell(), cell(), cell()]);
    prop::collection::vec(row, 1..30)
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-12
}

proptest! {
    #[test]
    fn all_figures_are_those_of_brute_force(rows in rows(), has_subject: bool, l in 1..5usize) {
        let schema = schema(has_subject);
        let found = risk(&schema, &rows, l);
        let person = |(number, row): (usize, &Row)| {
            let person = if has_subject { u32::from(row.0) } else { number as u32 };
            (person, *row)
        };
        let rows: Vec<(u32, Row)> = rows.iter().enumerate().map(person).collect();
        let persons: BTreeSet<u32> = rows.iter().map(|(person, _)| *person).collect();
        prop_assert_eq!((found.rows, found.subjects), (rows.len() as u64, persons.len() as u64));
        prop_assert_eq!(found.feasible.k_max, persons.len() as u64);
        let share = |count: usize, of: usize| count as f64 / of as f64;

        prop_assert_eq!(found.columns.len(), 6);
        for (index, column) in found.columns.iter().enumerate() {
            let (distinct, alone) = counted(&rows, &[index]);
            prop_assert!(close(column.distinctness, share(distinct, rows.len())));
            prop_assert!(close(column.unique_share, share(alone, persons.len())));
            let pairs = (0..rows.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
            let differ = |&(one, other): &(usize, usize)| rows[one].1.1[index] != rows[other].1.1[index];
            let separated = pairs.clone().filter(differ).count();
            prop_assert!(close(column.separation, share(separated, pairs.count().max(1))));
        }
        let children = |index: usize| {
            let mut people: BTreeMap<Option<u8>, BTreeSet<u32>> = BTreeMap::new();
            for (person, (_, cells)) in &rows {
                people.entry(cells[index]).or_default().insert(*person);
            }
            people.values().map(|people| people.len() as u64).min()
        };
        prop_assert_eq!(found.columns[0].top_k_max, children(0));
        let ages: BTreeSet<_> = rows.iter().map(|(_, (_, cells))| cells[1]).collect();
        // One age beside missing cells spans no interval: each is a child of `*`.
        let is_flat = ages.contains(&None) && ages.len() <= 2;
        let age = if is_flat { children(1) } else { best_split(&rows) };
        prop_assert_eq!(found.columns[1].top_k_max, age);
        prop_assert_eq!(found.columns[2].top_k_max, None);
        // The items `a` and `all` are in every set, so a set of one person is one by its own item.
        let sets: Vec<_> = rows.iter().filter(|(_, (_, cells))| cells[2].is_some()).copied().collect();
        let sole = usize::from(sets.iter().map(|it| it.0).collect::<BTreeSet<_>>().len() == 1);
        let by_item = counted(&sets, &[2]).1.max(sole);
        prop_assert_eq!(found.columns[2].unique_item_share, Some(share(by_item, persons.len())));

        let mut expected: BTreeMap<Vec<usize>, (usize, usize)> = BTreeMap::new();
        for mask in 1..1 << QIDS {
            let columns: Vec<usize> = (0..QIDS).filter(|column| mask >> column & 1 == 1).collect();
            if columns.len() > 1 && columns.len() <= l {
                let figures = counted(&rows, &columns);
                expected.insert(columns, figures);
            }
        }
        prop_assert_eq!(found.combinations_total, expected.len() as u64);
        prop_assert_eq!(found.combinations.len(), expected.len());
        for combination in &found.combinations {
            let index = |name: &String| found.columns.iter().position(|column| column.name == *name);
            let columns: Vec<usize> = combination.columns.iter().filter_map(index).collect();
            let (distinct, alone) = expected[&columns];
            prop_assert!(close(combination.distinctness, share(distinct, rows.len())));
            prop_assert!(close(combination.unique_share, share(alone, persons.len())));
        }
        let shares = found.combinations.iter().map(|it| it.unique_share);
        prop_assert!(shares.rev().is_sorted());
        let all = counted(&rows, &[0, 1, 2]).1;
        prop_assert!(close(found.unique_share, share(all, persons.len())));

        let single = |column: usize| {
            let present: Vec<_> =
                rows.iter().filter(|(_, (_, cells))| cells[column].is_some()).copied().collect();
            counted(&present, &[column]).1 > 0
        };
        let (ward, bed) = (single(4), single(5));
        let names: Vec<&str> = found.singling_out.iter().map(String::as_str).collect();
        let columns = [("ward", ward), ("bed", bed)];
        let expected: Vec<&str> = columns.into_iter().filter(|it| it.1).map(|it| it.0).collect();
        prop_assert_eq!(names, expected);
        let is_present = |(_, (_, cells)): &&(u32, Row)| cells[4].is_some() && cells[5].is_some();
        let both: Vec<_> = rows.iter().filter(is_present).copied().collect();
        let pair = !ward && !bed && counted(&both, &[4, 5]).1 > 0;
        prop_assert_eq!(found.singling_out_pairs.len(), usize::from(pair));

        let mut illnesses: BTreeMap<u8, u64> = BTreeMap::new();
        for illness in rows.iter().filter_map(|(_, (_, cells))| cells[3]) {
            *illnesses.entry(illness).or_default() += 1;
        }
        let n: u64 = illnesses.values().sum();
        let most = illnesses.values().copied().max();
        prop_assert_eq!(found.feasible.l_max, most.map(|most| n / most));
        prop_assert_eq!(found.feasible.c_min.is_some(), most.is_some());
        if let (Some(c), Some(most)) = (found.feasible.c_min, most) {
            prop_assert!(!Confidence::new(c).unwrap().is_exceeded_by(most, n));
            prop_assert!(close((c - share(most as usize, n as usize)).max(1e-6), 1e-6));
        }
    }
}

#[test]
fn a_table_that_is_counted_by_hand() {
    let leaf = |label: &str| json!({ "label": label });
    let definition = json!({"name": "t", "columns": [
        {"name": "patient", "role": "subject"},
        {"name": "city", "role": "quasi_identifier", "taxonomy": {"label": "any", "children": [
            {"label": "north", "children": [leaf("Kiel"), leaf("Bremen")]},
            {"label": "south", "children": [leaf("Ulm"), leaf("Passau")]},
            {"label": "abroad", "children": [leaf("Wien"), leaf("Bern")]}]}},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
        {"name": "illness", "role": "sensitive", "taxonomy": {"label": "ill", "children": [
            leaf("flu"), leaf("cold"), leaf("HIV"), leaf("asthma")]}},
    ]});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let file = "patient,city,age,illness\n\
                p1,Kiel,34,flu\np1,Kiel,35,flu\np2,Bremen,34,cold\np3,Ulm,34,flu\np4,Ulm,70,cold\n\
                p4,Ulm,70,\n";
    let table = csv::read_table(&schema, file.as_bytes()).unwrap();
    let found = assess(&schema, table, 2, &Cancellation::new()).unwrap();
    assert_eq!((found.rows, found.subjects), (6, 4));
    let [city, age, illness] = found.columns.as_slice() else {
        panic!("three columns");
    };
    // Kiel is that of p1 alone and Bremen that of p2. Of 15 pairs, 1 + 3 have the same city.
    assert_eq!((city.distinctness, city.unique_share), (0.5, 0.5));
    assert_eq!(city.separation, 11.0 / 15.0);
    // p1 and p2 are in the north, p3 and p4 in the south, and nobody is abroad.
    assert_eq!(city.top_k_max, Some(2));
    // At 35 the parts have p1, p2, p3 and p1, p4; at 70 they have p1, p2, p3 and p4.
    assert_eq!((age.distinctness, age.top_k_max), (0.5, Some(2)));
    assert_eq!((illness.absent_leaves, illness.top_k_max), (Some(2), None));
    assert_eq!(city.absent_leaves, None);
    // Of five rows with an illness three have the flu.
    assert_eq!(illness.shares_by_rank, Some(vec![0.6, 0.4]));
    assert_eq!(city.shares_by_rank, None);
    // Each person has a row with a city and an age that nobody else has.
    assert_eq!(found.combinations[0].columns, ["city", "age"]);
    assert_eq!(found.combinations[0].unique_share, 1.0);
    assert_eq!(found.combinations[0].distinctness, 5.0 / 6.0);
    assert_eq!((found.unique_share, found.combinations_total), (1.0, 1));
    // Of 5 rows with an illness, 3 have the flu.
    let feasible = found.feasible;
    assert_eq!(
        (feasible.k_max, feasible.l_max, feasible.c_min),
        (4, Some(1), Some(0.6))
    );
}

#[test]
fn a_made_hierarchy_is_specialized_at_its_root() {
    let definition = json!({"name": "t", "columns": [
        {"name": "zip", "role": "quasi_identifier", "taxonomy": {"generate": "mask_right"}},
        {"name": "born", "role": "quasi_identifier", "kind": "date"},
    ]});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let file = "zip,born\n2511,1987-01-01\n2512,1988-01-01\n2600,1990-01-01\n3100,1991-01-01\n\
                3200,1992-01-01\n";
    let table = csv::read_table(&schema, file.as_bytes()).unwrap();
    let found = assess(&schema, table, 2, &Cancellation::new()).unwrap();
    // Below `*`, 2*** has three rows and 3*** two.
    assert_eq!(found.columns[0].top_k_max, Some(2));
    assert_eq!(found.columns[1].top_k_max, Some(2));
}

#[test]
fn a_table_without_rows_has_no_risk() {
    let schema = schema(true);
    let mut table = pais_core::table::Table::default();
    table.columns.resize_with(7, Default::default);
    let found = assess(&schema, table, 3, &Cancellation::new()).unwrap();
    let shares = found
        .columns
        .iter()
        .map(|it| it.distinctness + it.separation + it.unique_share);
    assert_eq!(shares.sum::<f64>(), 0.0);
    assert_eq!(
        (found.rows, found.subjects, found.unique_share),
        (0, 0, 0.0)
    );
    assert_eq!((found.feasible.k_max, found.feasible.c_min), (0, None));
}

#[test]
fn too_many_combinations_are_refused_with_a_size_that_is_not_too_much() {
    let columns: Vec<_> = (0..40)
        .map(|index| json!({"name": format!("c{index}"), "role": "quasi_identifier"}))
        .collect();
    let definition = json!({"name": "t", "columns": columns});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    for (rows, l, feasible) in [(1_000_000, 3, 2), (3_000_000, 2, 1), (1, 6, 4)] {
        let error = check_work(&schema, rows, l).unwrap_err();
        let RiskError::TooMuchWork {
            feasible: found, ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!(found, feasible);
        assert_eq!(check_work(&schema, rows, feasible), Ok(()));
    }
}

#[test]
fn a_computation_that_is_stopped_ends_without_figures() {
    let schema = schema(false);
    let rows = [(0, [Some(1); 6]), (1, [Some(2); 6])];
    let table = csv::read_table(&schema, text(&rows).as_bytes()).unwrap();
    let cancellation = Cancellation::new();
    cancellation.cancel();
    assert_eq!(
        assess(&schema, table, 2, &cancellation),
        Err(RiskError::Cancelled)
    );
}

/// The lowest level that Safe Harbor permits, of every form of a hierarchy, and what stays open there.
#[test]
fn columns_have_the_level_that_safe_harbor_permits() {
    let ages = |last: &str| {
        json!({"label": "[0,120]", "children": [
            {"label": "[0,65)"},
            {"label": "[65,120]", "children": [{"label": "[65,90)"}, {"label": last}]},
        ]})
    };
    let prefix = |lengths: &[u32]| json!({"generate": "prefix", "lengths": lengths});
    let calendar = |levels: &[&str]| json!({"generate": "calendar", "levels": levels});
    let column = |name: &str, extra: serde_json::Value| {
        let mut column = json!({"name": name, "role": "quasi_identifier"});
        let extra = extra.as_object().unwrap().clone();
        column.as_object_mut().unwrap().extend(extra);
        column
    };
    let (population, years) = (json!(["population"]), json!(["years_of_ages_over_89"]));
    for (column, values, level, missing) in [
        (
            column("zip", json!({"taxonomy": prefix(&[3])})),
            ["02115", "10025"],
            Some(1),
            &population,
        ),
        (
            column("zip", json!({"taxonomy": prefix(&[4, 3, 1])})),
            ["02115", "10025"],
            Some(2),
            &population,
        ),
        // No prefix is short enough: only the root is.
        (
            column("zip", json!({"taxonomy": prefix(&[4])})),
            ["02115", "10025"],
            Some(2),
            &json!([]),
        ),
        (
            column("zip", json!({})),
            ["02115", "10025"],
            Some(1),
            &json!([]),
        ),
        (
            column("zip", json!({})),
            ["021", "100"],
            Some(0),
            &population,
        ),
        (
            column("zip", json!({"role": "insensitive"})),
            ["02115", "10025"],
            None,
            &json!(["three_digits", "population"]),
        ),
        (
            column("city", json!({})),
            ["Boston", "Salem"],
            Some(1),
            &json!([]),
        ),
        (
            column(
                "born",
                json!({"kind": "date", "taxonomy": calendar(&["month", "year"])}),
            ),
            ["1987-09-03", "1990-01-01"],
            Some(2),
            &years,
        ),
        // Intervals grow with the rows, and have no levels.
        (
            column("born", json!({"kind": "date"})),
            ["1987-09-03", "1990-01-01"],
            None,
            &json!(["year_only", "years_of_ages_over_89"]),
        ),
        (
            column(
                "age",
                json!({"kind": "numeric", "taxonomy": ages("[90,120]")}),
            ),
            ["12", "93"],
            Some(0),
            &json!([]),
        ),
        (
            column(
                "age",
                json!({"kind": "numeric", "taxonomy": {"label": "[0,120]", "children": [
            {"label": "[0,95)"}, {"label": "[95,120]"}]}}),
            ),
            ["12", "93"],
            Some(1),
            &json!([]),
        ),
        (
            column("phone", json!({})),
            ["617-555-0791", "617-555-8313"],
            Some(1),
            &json!([]),
        ),
        (
            column("ssn", json!({"role": "sensitive"})),
            ["078-05-1120", "078-05-1121"],
            None,
            &json!(["remove_column"]),
        ),
    ] {
        let name = column["name"].as_str().unwrap();
        let definition = json!({"name": "t", "columns": [
            column, {"name": "sex", "role": "quasi_identifier"}, {"name": "illness", "role": "sensitive"},
        ]});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let csv = format!(
            "{name},sex,illness\n{},f,flu\n{},m,gout\n",
            values[0], values[1]
        );
        let table = csv::read_table(&schema, csv.as_bytes()).unwrap();
        let found = assess(&schema, table, 2, &Cancellation::new()).unwrap();
        let found = serde_json::to_value(&found.columns).unwrap();
        let advice = &found[0]["safe_harbor"];
        assert_eq!(advice["level"], json!(level), "{column}");
        assert_eq!(advice["missing"], *missing, "{column}");
        assert!(
            found[1].get("safe_harbor").is_none(),
            "a sex is of no category"
        );
    }
}
