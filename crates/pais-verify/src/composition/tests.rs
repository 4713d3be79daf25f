//! Releases of one table decided together, beside an adversary who tries every victim and every
//! combination of known values.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroU64};

use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, Diversity, GroupModel, Lkc, MissingSensitive, PrivacyModel};
use pais_core::table::{Column, Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable};
use proptest::prelude::*;

use super::{ComposedRelease, Composition, RawRows, Recoded, compose};

/// Quasi-identifiers with values 0 to 3, and a sensitive value, of each raw row.
#[derive(Clone, Debug)]
struct Raw {
    values: Vec<[u8; 2]>,
    sensitive: Vec<u8>,
    subjects: Option<Vec<u32>>,
}

/// A label: the values from the first to the last.
type Label = (u8, u8);

/// A release: for each raw row the labels, or `None` where the row is not released.
#[derive(Clone, Debug)]
struct Labels {
    rows: Vec<Option<[Label; 2]>>,
    recoded: Recoded,
}

const CUTS: [&[Label]; 5] = [
    &[(0, 3)],
    &[(0, 1), (2, 3)],
    &[(0, 0), (1, 1), (2, 3)],
    &[(0, 1), (2, 2), (3, 3)],
    &[(0, 0), (1, 1), (2, 2), (3, 3)],
];

fn name(text: &str) -> Box<str> {
    text.into()
}

fn column(name: &str, form: Form, cells: impl Iterator<Item = String>) -> ReleasedColumn {
    let mut dictionary: Vec<Box<str>> = Vec::new();
    let codes = cells.map(|text| {
        let found = dictionary.iter().position(|known| **known == *text);
        found.unwrap_or_else(|| {
            dictionary.push(text.into());
            dictionary.len() - 1
        }) as u32
    });
    let codes = codes.collect();
    ReleasedColumn {
        name: name.into(),
        form,
        column: Column { dictionary, codes },
        missing: Vec::new(),
    }
}

fn sensitive_column(raw: &Raw) -> ReleasedColumn {
    let cells = raw.sensitive.iter().map(|value| format!("s{value}"));
    column("s", Form::Text, cells)
}

/// The released table and its source rows, in an order of its own.
fn table(raw: &Raw, labels: &Labels) -> (ReleasedTable, Vec<u32>) {
    let sources = (0..raw.values.len()).filter(|&row| labels.rows[row].is_some());
    let mut sources: Vec<u32> = sources.map(|row| row as u32).collect();
    sources.sort_by_key(|row| row.wrapping_mul(2_654_435_761));
    let cells = |attribute: usize| {
        let sources = sources.iter();
        sources.map(move |&row| format!("{:?}", labels.rows[row as usize].unwrap()[attribute]))
    };
    let values = sources.iter();
    let values = values.map(|&row| format!("s{}", raw.sensitive[row as usize]));
    let columns = vec![
        column("a", Form::Generalized, cells(0)),
        column("b", Form::Generalized, cells(1)),
        column("s", Form::Text, values),
    ];
    let table = ReleasedTable {
        name: "data".into(),
        rows: sources.len(),
        columns,
    };
    (table, sources)
}

fn lkc(l: Option<u32>, k: u64, c: f64) -> Lkc {
    Lkc {
        l: l.and_then(NonZeroU32::new),
        k: NonZeroU64::new(k).unwrap(),
        c: Confidence::new(c).unwrap(),
        sensitive_values: None,
        missing_sensitive: MissingSensitive::Excluded,
    }
}

fn decide(raw: &Raw, releases: &[(&Labels, &PrivacyModel)]) -> Composition {
    let tables: Vec<_> = releases
        .iter()
        .map(|(labels, _)| table(raw, labels))
        .collect();
    let (known, sensitive) = ([name("a"), name("b")], [name("s")]);
    let composed: Vec<ComposedRelease> = tables
        .iter()
        .zip(releases)
        .map(|((table, source_rows), (labels, model))| ComposedRelease {
            table,
            source_rows,
            quasi_identifiers: &known,
            sensitive: &sensitive,
            model,
            recoded: labels.recoded,
        })
        .collect();
    let sensitive = [sensitive_column(raw)];
    let raw = RawRows {
        rows: raw.values.len(),
        sensitive: &sensitive,
        subjects: raw.subjects.as_deref(),
    };
    compose(&composed, raw, &Cancellation::new()).unwrap()
}

/// Which releases have a row, and which have a row of its person.
fn presence(raw: &Raw, releases: &[&Labels], row: usize) -> [Vec<bool>; 2] {
    let is_of_person = |other: &usize| match &raw.subjects {
        Some(subjects) => subjects[*other] == subjects[row],
        None => *other == row,
    };
    let has = releases.iter().map(|release| release.rows[row].is_some());
    let of_person = releases.iter().map(|release| {
        let mut rows = (0..raw.values.len()).filter(is_of_person);
        rows.any(|other| release.rows[other].is_some())
    });
    [has.collect(), of_person.collect()]
}

/// Whether no adversary who knows at most L values of a victim's row, which releases have that row
/// and which have the victim, finds fewer than K records (or persons) or a greater confidence than
/// C.
fn brute_force(raw: &Raw, releases: &[&Labels], model: &Lkc) -> bool {
    let most_known = model.l.map_or(2, |l| l.get().min(2)) as usize;
    let places = (0..raw.values.len()).map(|row| presence(raw, releases, row));
    let places: Vec<[Vec<bool>; 2]> = places.collect();
    let presence = |row: usize| &places[row];
    let victims = (0..raw.values.len()).filter(|&row| presence(row)[0].contains(&true));
    victims.into_iter().all(|victim| {
        let known = COMBINATIONS.iter();
        let known = known.filter(|known| known.len() <= most_known);
        known.into_iter().all(|known| {
            let fits = |&row: &usize| {
                presence(row) == presence(victim)
                    && releases.iter().all(|release| {
                        release.rows[row].is_none_or(|labels| {
                            let mut known = known.iter();
                            known.all(|&at| covers(labels[at], raw.values[victim][at]))
                        })
                    })
            };
            let found: Vec<usize> = (0..raw.values.len()).filter(fits).collect();
            let person = |&row: &usize| match &raw.subjects {
                Some(subjects) => subjects[row],
                None => row as u32,
            };
            let persons: BTreeSet<u32> = found.iter().map(person).collect();
            let most = (0..4).map(|value| {
                let has = |&&row: &&usize| raw.sensitive[row] == value;
                found.iter().filter(has).count() as u64
            });
            persons.len() as u64 >= model.k.get()
                && !model
                    .c
                    .is_exceeded_by(most.max().unwrap(), found.len() as u64)
        })
    })
}

/// The combinations of quasi-identifiers that an adversary may know.
const COMBINATIONS: [&[usize]; 4] = [&[], &[0], &[1], &[0, 1]];

fn covers((first, last): Label, value: u8) -> bool {
    (first..=last).contains(&value)
}

/// Whether no adversary who knows at most L values of a victim, the same in all rows of the victim,
/// and which releases have the victim, finds fewer than K persons or a greater confidence than C in
/// the rows of a release: those that fit, of persons who have a row that fits in each of the
/// releases.
fn brute_force_of_persons(raw: &Raw, releases: &[&Labels], model: &Lkc) -> bool {
    let subjects = raw.subjects.as_ref().unwrap();
    let most_known = model.l.map_or(2, |l| l.get().min(2)) as usize;
    let rows_of = |person: u32| {
        let rows = (0..raw.values.len()).filter(move |&row| subjects[row] == person);
        rows.collect::<Vec<usize>>()
    };
    let persons: BTreeSet<u32> = subjects.iter().copied().collect();
    let places = persons.iter().map(|&person| {
        let [_, of_person] = presence(raw, releases, rows_of(person)[0]);
        (person, of_person)
    });
    let places: BTreeMap<u32, Vec<bool>> = places.filter(|(_, has)| has.contains(&true)).collect();
    places.iter().all(|(&victim, has)| {
        let values = raw.values[rows_of(victim)[0]];
        let known = COMBINATIONS.iter();
        let mut known = known.filter(|known| known.len() <= most_known);
        known.all(|known| {
            // A row is known as one row in all releases that have it.
            let fits = |release: &Labels, row: usize| {
                let covers =
                    |labels: [Label; 2]| known.iter().all(|&at| covers(labels[at], values[at]));
                release.rows[row].is_some()
                    && releases
                        .iter()
                        .all(|release| release.rows[row].is_none_or(covers))
            };
            let having: Vec<&Labels> = releases
                .iter()
                .zip(has)
                .filter_map(|(release, has)| has.then_some(*release))
                .collect();
            let is_candidate = |person: &u32| {
                let rows = rows_of(*person);
                places[person] == *has
                    && having
                        .iter()
                        .all(|release| rows.iter().any(|&row| fits(release, row)))
            };
            let found: Vec<u32> = places.keys().copied().filter(is_candidate).collect();
            let is_bounded = |release: &&Labels| {
                let rows = found.iter().flat_map(|&person| rows_of(person));
                let rows: Vec<usize> = rows.filter(|&row| fits(release, row)).collect();
                (0..4u8).all(|value| {
                    let has = |&&row: &&usize| raw.sensitive[row] == value;
                    let share = rows.iter().filter(has).count() as u64;
                    !model.c.is_exceeded_by(share, rows.len() as u64)
                })
            };
            found.len() as u64 >= model.k.get() && having.iter().all(is_bounded)
        })
    })
}

/// Rows of a few persons, whose values are the same in all of their rows.
fn rows_of_persons() -> impl Strategy<Value = Raw> {
    let persons = prop::collection::vec([0u8..4, 0u8..4], 3..12);
    let rows = prop::collection::vec((any::<prop::sample::Index>(), 0u8..3), 6..40);
    (persons, rows).prop_map(|(persons, rows)| {
        let of_row = rows.iter().map(|(person, _)| person.index(persons.len()));
        let of_row: Vec<usize> = of_row.collect();
        Raw {
            values: of_row.iter().map(|&person| persons[person]).collect(),
            sensitive: rows.iter().map(|row| row.1).collect(),
            subjects: Some(of_row.iter().map(|&person| person as u32).collect()),
        }
    })
}

fn raw_rows() -> impl Strategy<Value = Raw> {
    let row = ([0u8..4, 0u8..4], 0u8..3, 0u32..24);
    (prop::collection::vec(row, 4..40), any::<bool>()).prop_map(|(rows, has_subjects)| Raw {
        values: rows.iter().map(|row| row.0).collect(),
        sensitive: rows.iter().map(|row| row.1).collect(),
        subjects: has_subjects.then(|| rows.iter().map(|row| row.2).collect()),
    })
}

/// How a release is made from the rows of a table: its cuts, or its groups, and which rows it
/// leaves out.
#[derive(Clone, Debug)]
struct Recipe {
    cuts: [usize; 2],
    groups: Option<Vec<usize>>,
    left_out: Option<Vec<bool>>,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let groups = prop::option::weighted(0.3, prop::collection::vec(0usize..3, 40));
    let left_out = prop::collection::vec(prop::bool::weighted(0.3), 40);
    let left_out = prop::option::weighted(0.3, left_out);
    ([0usize..5, 0usize..5], groups, left_out).prop_map(|(cuts, groups, left_out)| Recipe {
        cuts,
        groups,
        left_out,
    })
}

fn released(raw: &Raw, recipe: &Recipe) -> Labels {
    let is_left_out = |row: usize| recipe.left_out.as_ref().is_some_and(|rows| rows[row]);
    let label = |row: usize, at: usize| match &recipe.groups {
        None => {
            let value = raw.values[row][at];
            let mut cut = CUTS[recipe.cuts[at]].iter();
            *cut.find(|(first, last)| (*first..=*last).contains(&value))
                .unwrap()
        }
        Some(groups) => {
            let members = (0..raw.values.len()).filter(|&other| groups[other] == groups[row]);
            let values: Vec<u8> = members.map(|other| raw.values[other][at]).collect();
            (*values.iter().min().unwrap(), *values.iter().max().unwrap())
        }
    };
    let labels = |row| (!is_left_out(row)).then(|| [label(row, 0), label(row, 1)]);
    Labels {
        rows: (0..raw.values.len()).map(labels).collect(),
        recoded: match recipe.groups {
            None => Recoded::OneCut,
            Some(_) => Recoded::Overlapping,
        },
    }
}

/// The labels of both columns tell all rows of `other` apart, so that the labels of `release` follow from them;
/// but an adversary who knows only one value finds a single row.
fn assert_one_value_singles_out(raw: &Raw, release: &Labels, other: &Labels) {
    let parameters = lkc(Some(1), 2, 1.0);
    for alone in [release, other] {
        assert!(brute_force(raw, &[alone], &parameters));
    }
    assert!(!brute_force(raw, &[release, other], &parameters));
    let model = PrivacyModel::Lkc(parameters);
    for releases in [[release, other], [other, release]] {
        assert!(!decide(raw, &releases.map(|labels| (labels, &model))).holds);
    }
}

fn raw_values(values: &[[u8; 2]]) -> Raw {
    Raw {
        values: values.to_vec(),
        sensitive: vec![0; values.len()],
        subjects: None,
    }
}

/// An adversary who knows 1 finds only the row of 1: one cut has it with 0, the other with 2 and 3.
#[test]
fn cuts_that_cross_are_joined_though_rows_differ_in_another_column() {
    let raw = raw_values(&[[0, 0], [0, 1], [1, 0], [2, 1], [3, 1]]);
    let labels = |of: fn([u8; 2]) -> [Label; 2]| Labels {
        rows: raw.values.iter().map(|&row| Some(of(row))).collect(),
        recoded: Recoded::OneCut,
    };
    let halves = labels(|[first, _]| [if first < 2 { (0, 1) } else { (2, 3) }, (0, 3)]);
    let rest = labels(|[first, second]| {
        let first = if first < 1 { (0, 0) } else { (1, 3) };
        [first, (second, second)]
    });
    assert_one_value_singles_out(&raw, &halves, &rest);
}

/// An adversary who knows 0 excludes the last row by its overlapping label, which begins at 1.
#[test]
fn overlapping_labels_that_follow_from_rows_may_exclude_values() {
    let raw = raw_values(&[[2, 0], [2, 2], [0, 2], [1, 0]]);
    let by_cut = Recipe {
        cuts: [1, 1],
        groups: None,
        left_out: None,
    };
    let local = Recipe {
        groups: Some(vec![0, 1, 0, 1]),
        ..by_cut.clone()
    };
    assert_one_value_singles_out(&raw, &released(&raw, &local), &released(&raw, &by_cut));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_global_rejects: 200_000, ..Default::default() })]

    /// What the brute force refuses is never accepted; where every release is one cut, the two
    /// agree.
    #[test]
    fn an_adversary_over_all_releases_finds_no_more_than_was_decided(
        raw in raw_rows(),
        recipes in prop::collection::vec(recipe(), 2..4),
        (l, k, c) in (prop::option::of(1u32..3), 1u64..4, prop::sample::select(vec![0.5, 0.7, 1.0])),
    ) {
        let parameters = lkc(l, k, c);
        let all: Vec<Labels> = recipes.iter().map(|recipe| released(&raw, recipe)).collect();
        // Only releases that meet the model alone are ever stored.
        prop_assume!(all.iter().all(|labels| brute_force(&raw, &[labels], &parameters)));
        let model = PrivacyModel::Lkc(parameters.clone());
        let releases: Vec<_> = all.iter().map(|labels| (labels, &model)).collect();
        let without_persons = Raw { subjects: None, ..raw.clone() };
        for raw in [&raw, &without_persons] {
            let found = decide(raw, &releases);
            let labels: Vec<&Labels> = all.iter().collect();
            let expected = brute_force(raw, &labels, &parameters);
            prop_assert!(expected || !found.holds, "accepted, though an adversary wins: {found:?}");
            let is_one_cut = all.iter().all(|labels| labels.recoded == Recoded::OneCut);
            if is_one_cut && raw.subjects.is_none() {
                prop_assert!(found.exact);
                prop_assert_eq!(found.holds, expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_global_rejects: 100_000, ..Default::default() })]

    /// Persons have rows in some of up to three releases, of submissions of their own or of the same
    /// rows.
    #[test]
    fn an_adversary_who_knows_in_which_releases_a_person_is_finds_no_more_than_was_decided(
        raw in rows_of_persons(),
        recipes in prop::collection::vec(recipe(), 2..4),
        submissions in prop::option::of(prop::collection::vec(0usize..3, 40)),
        (l, k, c) in (prop::option::of(1u32..3), 1u64..4, prop::sample::select(vec![0.5, 0.7, 1.0])),
    ) {
        let parameters = lkc(l, k, c);
        let mut all: Vec<Labels> = recipes.iter().map(|recipe| released(&raw, recipe)).collect();
        if let Some(submissions) = submissions {
            for (number, labels) in all.iter_mut().enumerate() {
                let rows = labels.rows.iter_mut().zip(&submissions);
                rows.filter(|(_, of)| **of != number).for_each(|(row, _)| *row = None);
            }
        }
        prop_assume!(all.iter().all(|labels| brute_force(&raw, &[labels], &parameters)));
        let model = PrivacyModel::Lkc(parameters.clone());
        let releases: Vec<_> = all.iter().map(|labels| (labels, &model)).collect();
        let found = decide(&raw, &releases);
        let labels: Vec<&Labels> = all.iter().collect();
        let joined: Vec<&Labels> = found.joined.iter().map(|&at| labels[at]).collect();
        let of_rows = brute_force(&raw, &labels, &parameters);
        let of_persons = brute_force_of_persons(&raw, &labels, &parameters);
        let expected = of_rows && of_persons;
        prop_assert!(expected || !found.holds, "accepted, though an adversary wins: {found:?}");
        let is_one_cut = all.iter().all(|labels| labels.recoded == Recoded::OneCut);
        // A release that shares no person with another one is not decided again.
        if is_one_cut && joined.len() == labels.len() {
            prop_assert_eq!(found.holds, expected);
        }
    }
}

/// Rows with these values, all present under these cuts.
fn cut_release(raw: &Raw, cuts: [usize; 2]) -> Labels {
    let recipe = Recipe {
        cuts,
        groups: None,
        left_out: None,
    };
    released(raw, &recipe)
}

/// Eight rows: every combination of 0/1 and 2/3 once, with two sensitive values.
fn eight_rows() -> Raw {
    Raw {
        values: vec![
            [0, 0],
            [0, 1],
            [1, 0],
            [1, 1],
            [2, 2],
            [2, 3],
            [3, 2],
            [3, 3],
        ],
        sensitive: vec![0, 1, 1, 0, 0, 1, 1, 0],
        subjects: None,
    }
}

#[test]
fn two_cuts_that_cross_are_refused_though_each_is_private() {
    let raw = eight_rows();
    let model = PrivacyModel::Lkc(lkc(Some(2), 2, 1.0));
    // One splits `a` and keeps `b` whole, the other the reverse: together they name single rows.
    let (one, other) = (cut_release(&raw, [4, 0]), cut_release(&raw, [0, 4]));
    let found = decide(&raw, &[(&one, &model), (&other, &model)]);
    assert!(!found.holds && found.exact);
    assert_eq!((found.smallest_group, found.joined), (Some(1), vec![0, 1]));
    // An adversary who knows a single value learns nothing from the second release.
    let weaker = PrivacyModel::Lkc(lkc(Some(1), 2, 1.0));
    let found = decide(&raw, &[(&one, &weaker), (&other, &weaker)]);
    assert!(found.holds && found.exact);
}

#[test]
fn nested_cuts_of_the_same_rows_say_no_more_than_the_finer() {
    let raw = eight_rows();
    let model = PrivacyModel::Lkc(lkc(Some(2), 4, 1.0));
    let (coarse, fine) = (cut_release(&raw, [0, 0]), cut_release(&raw, [1, 0]));
    let found = decide(&raw, &[(&coarse, &model), (&fine, &model)]);
    assert_eq!(found, Composition::unjoined());
}

#[test]
fn steps_that_suppress_different_rows_are_refused_for_the_difference() {
    let raw = eight_rows();
    let model = PrivacyModel::Lkc(lkc(Some(2), 2, 1.0));
    let all = cut_release(&raw, [1, 0]);
    let mut fewer = all.clone();
    fewer.rows[0] = None;
    let found = decide(&raw, &[(&all, &model), (&fewer, &model)]);
    assert!(!found.holds);
    assert_eq!(found.smallest_group, Some(1));
}

#[test]
fn releases_without_rows_in_common_are_not_joined() {
    let raw = eight_rows();
    let model = PrivacyModel::Lkc(lkc(Some(2), 2, 1.0));
    let (mut one, mut other) = (cut_release(&raw, [1, 0]), cut_release(&raw, [0, 1]));
    one.rows[4..].fill(None);
    other.rows[..4].fill(None);
    let found = decide(&raw, &[(&one, &model), (&other, &model)]);
    assert_eq!(found, Composition::unjoined());
}

#[test]
fn persons_with_rows_in_both_releases_are_joined_in_pairs() {
    let mut raw = eight_rows();
    // The first four rows and the last four are stays of the same four persons.
    raw.subjects = Some(vec![1, 2, 3, 4, 1, 2, 3, 4]);
    let model = PrivacyModel::Lkc(lkc(Some(2), 2, 1.0));
    let (mut one, mut other) = (cut_release(&raw, [4, 0]), cut_release(&raw, [0, 4]));
    one.rows[4..].fill(None);
    other.rows[..4].fill(None);
    let found = decide(&raw, &[(&one, &model), (&other, &model)]);
    assert!(!found.holds && !found.exact);
    assert_eq!(found.smallest_group, Some(1));
}

/// Persons 1 and 2 are in both releases and person 3 only in the first, all in one group.
#[test]
fn a_person_in_one_release_only_is_apart_from_those_in_both() {
    let raw = Raw {
        values: vec![[0, 0]; 5],
        sensitive: vec![0, 1, 2, 0, 1],
        subjects: Some(vec![1, 2, 3, 1, 2]),
    };
    let model = PrivacyModel::Lkc(lkc(Some(2), 2, 1.0));
    let (mut one, mut other) = (cut_release(&raw, [0, 0]), cut_release(&raw, [0, 0]));
    one.rows[3..].fill(None);
    other.rows[..3].fill(None);
    let found = decide(&raw, &[(&one, &model), (&other, &model)]);
    assert!(!found.holds);
    assert_eq!(
        (found.smallest_group, found.greatest_confidence),
        (Some(1), Some(1.0))
    );
    // A second person who is in the first release only hides the third.
    let raw = Raw {
        values: vec![[0, 0]; 6],
        sensitive: vec![0, 1, 2, 0, 1, 1],
        subjects: Some(vec![1, 2, 3, 1, 2, 4]),
    };
    let labels = |rows: [bool; 6]| {
        let mut labels = cut_release(&raw, [0, 0]);
        let left_out = labels.rows.iter_mut().zip(rows).filter(|(_, has)| !has);
        left_out.for_each(|(row, _)| *row = None);
        labels
    };
    let one = labels([true, true, true, false, false, true]);
    let other = labels([false, false, false, true, true, false]);
    let found = decide(&raw, &[(&one, &model), (&other, &model)]);
    assert!(found.holds, "{found:?}");
    assert_eq!(found.smallest_group, Some(2));
}

#[test]
fn of_two_models_the_weaker_has_to_hold() {
    let raw = eight_rows();
    let strong = PrivacyModel::Lkc(lkc(Some(2), 4, 1.0));
    let weak = PrivacyModel::Lkc(lkc(Some(2), 2, 1.0));
    let (one, other) = (cut_release(&raw, [1, 0]), cut_release(&raw, [0, 2]));
    let found = decide(&raw, &[(&one, &strong), (&other, &weak)]);
    let brute = brute_force(&raw, &[&one, &other], &lkc(Some(2), 2, 1.0));
    assert_eq!(found.holds, brute);
    assert!(found.smallest_group < Some(4));
}

/// All two quasi-identifiers are known, whichever number names them, and a list bounds less than all values.
#[test]
fn a_model_is_weaker_by_what_its_parameters_mean() {
    let raw = eight_rows();
    let listed = |values: &[&str]| {
        let values = values.iter().map(|value| (*value).to_owned());
        let listed = [("s".to_owned(), values.collect())].into_iter().collect();
        PrivacyModel::Lkc(Lkc {
            sensitive_values: Some(listed),
            ..lkc(Some(2), 2, 0.6)
        })
    };
    let all = |l, k, c| PrivacyModel::Lkc(lkc(l, k, c));
    let (one, other) = (cut_release(&raw, [1, 0]), cut_release(&raw, [0, 1]));
    for (weak, strong, holds) in [
        (all(Some(5), 2, 1.0), all(Some(2), 3, 1.0), true),
        (all(None, 2, 1.0), all(Some(2), 3, 1.0), true),
        (listed(&["s0"]), all(Some(2), 3, 0.5), true),
        (listed(&["s0"]), listed(&["s0", "s1"]), true),
        // Neither implies the other, and groups of two are not of three.
        (listed(&["s0"]), all(Some(1), 5, 0.5), false),
    ] {
        let found = decide(&raw, &[(&one, &weak), (&other, &strong)]);
        assert_eq!(found.holds, holds, "{weak:?} beside {strong:?}: {found:?}");
    }
}

fn anatomized(raw: &Raw, groups: &[u32]) -> (ReleasedTable, Vec<u32>) {
    let cells = |at: usize| raw.values.iter().map(move |values| values[at].to_string());
    let columns = vec![
        column("a", Form::Text, cells(0)),
        column("b", Form::Text, cells(1)),
        column(
            GROUP_COLUMN,
            Form::Integer,
            groups.iter().map(u32::to_string),
        ),
    ];
    let rows = raw.values.len();
    let table = ReleasedTable {
        name: "qit".into(),
        rows,
        columns,
    };
    (table, (0..rows as u32).collect())
}

#[test]
fn two_anatomies_with_other_groups_are_refused() {
    let raw = eight_rows();
    let (one, sources) = anatomized(&raw, &[1, 1, 1, 1, 2, 2, 2, 2]);
    let (other, _) = anatomized(&raw, &[1, 2, 2, 1, 2, 1, 1, 2]);
    let diversity = Diversity::Distinct {
        l: NonZeroU32::new(2).unwrap(),
    };
    let model = PrivacyModel::Groups(GroupModel {
        k: NonZeroU64::new(2).unwrap(),
        diversity,
        min_range: BTreeMap::new(),
    });
    let (known, sensitive) = ([name("a"), name("b")], [name("s")]);
    let release = |table| ComposedRelease {
        table,
        source_rows: &sources,
        quasi_identifiers: &known,
        sensitive: &sensitive,
        model: &model,
        recoded: Recoded::Anatomized,
    };
    let columns = [sensitive_column(&raw)];
    let rows = RawRows {
        rows: raw.values.len(),
        sensitive: &columns,
        subjects: None,
    };
    let decide = |releases: &[ComposedRelease]| compose(releases, rows, &Cancellation::new());
    // Each group of the meet has two rows, both with the same value.
    let found = decide(&[release(&one), release(&other)]).unwrap();
    assert!(!found.holds);
    assert_eq!(
        (found.smallest_group, found.greatest_confidence),
        (Some(2), Some(1.0))
    );
    // The same groups under other numbers say nothing new.
    let (same, _) = anatomized(&raw, &[9, 9, 9, 9, 7, 7, 7, 7]);
    let found = decide(&[release(&one), release(&same)]).unwrap();
    assert_eq!(found, Composition::unjoined());
}

/// `decide` for releases of which some are anatomized: the table, its sensitive columns, and how it is recoded.
fn decide_tables(
    raw: &Raw,
    model: &PrivacyModel,
    releases: &[(&ReleasedTable, &[Box<str>], Recoded)],
) -> Composition {
    let known = [name("a"), name("b")];
    let sources: Vec<u32> = (0..raw.values.len() as u32).collect();
    let releases = releases
        .iter()
        .map(|&(table, sensitive, recoded)| ComposedRelease {
            table,
            source_rows: &sources,
            quasi_identifiers: &known,
            sensitive,
            model,
            recoded,
        });
    let releases: Vec<ComposedRelease> = releases.collect();
    let mut other = sensitive_column(raw);
    other.name = name("t");
    let columns = [sensitive_column(raw), other];
    let rows = RawRows {
        rows: raw.values.len(),
        sensitive: &columns,
        subjects: None,
    };
    compose(&releases, rows, &Cancellation::new()).unwrap()
}

/// A table with rows in the order of the raw ones.
fn in_order(raw: &Raw, labels: &Labels) -> ReleasedTable {
    let cells = |attribute: usize| {
        let rows = labels.rows.iter();
        rows.map(move |labels| format!("{:?}", labels.unwrap()[attribute]))
    };
    ReleasedTable {
        name: "data".into(),
        rows: raw.values.len(),
        columns: vec![
            column("a", Form::Generalized, cells(0)),
            column("b", Form::Generalized, cells(1)),
            sensitive_column(raw),
        ],
    }
}

/// One release has the exact values of each row, the other its sensitive value.
#[test]
fn an_anatomy_beside_a_generalized_table_shows_whose_values_they_are() {
    let raw = eight_rows();
    let (qit, _) = anatomized(&raw, &[1, 1, 1, 1, 2, 2, 2, 2]);
    let cut = in_order(&raw, &cut_release(&raw, [1, 1]));
    let model = PrivacyModel::Lkc(lkc(None, 2, 0.5));
    let sensitive = [name("s")];
    let found = decide_tables(
        &raw,
        &model,
        &[
            (&cut, &sensitive, Recoded::OneCut),
            (&qit, &sensitive, Recoded::Anatomized),
        ],
    );
    assert_eq!((found.holds, found.smallest_group), (false, Some(1)));
}

/// Each has the other's sensitive column among its rows.
#[test]
fn an_anatomy_that_has_the_sensitive_column_of_another_one_is_refused() {
    let raw = eight_rows();
    let groups = [1, 1, 1, 1, 2, 2, 2, 2];
    let (mut one, _) = anatomized(&raw, &groups);
    let (mut other, _) = anatomized(&raw, &groups);
    let mut t = sensitive_column(&raw);
    t.name = name("t");
    one.columns.push(t);
    other.columns.push(sensitive_column(&raw));
    let model = PrivacyModel::Lkc(lkc(None, 2, 0.5));
    let found = decide_tables(
        &raw,
        &model,
        &[
            (&one, &[name("s")], Recoded::Anatomized),
            (&other, &[name("t")], Recoded::Anatomized),
        ],
    );
    assert_eq!((found.holds, found.smallest_group), (false, Some(1)));
}

proptest! {
    /// An anatomy beside a cut is a release of the exact values beside it.
    #[test]
    fn an_anatomy_beside_a_cut_discloses_the_exact_values(
        raw in raw_rows(),
        cuts in [0usize..5, 0usize..5],
        groups in prop::collection::vec(0u32..3, 40),
        (k, c) in (1u64..4, prop::sample::select(vec![0.5, 0.7, 1.0])),
    ) {
        let raw = Raw { subjects: None, ..raw };
        let (labels, exact) = (cut_release(&raw, cuts), cut_release(&raw, [4, 4]));
        let (qit, _) = anatomized(&raw, &groups[..raw.values.len()]);
        let cut = in_order(&raw, &labels);
        let model = PrivacyModel::Lkc(lkc(None, k, c));
        let sensitive = [name("s")];
        let found = decide_tables(&raw, &model, &[
            (&cut, &sensitive, Recoded::OneCut),
            (&qit, &sensitive, Recoded::Anatomized),
        ]);
        let expected = brute_force(&raw, &[&labels, &exact], &lkc(None, k, c));
        prop_assert!(expected || !found.holds, "accepted, though an adversary wins: {:?}", found);
    }
}
