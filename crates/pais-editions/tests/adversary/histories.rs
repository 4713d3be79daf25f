//! Random tables, arrivals, corrections and recipients.

use std::sync::atomic::{AtomicUsize, Ordering};

use pais_core::definition::{Job, Recoding};
use pais_core::model::Lkc;
use proptest::prelude::*;

use crate::{BaseTrials, Persons, Publication, Visit};

/// A month: the visits, which of three recipients get its edition, and perhaps a correction.
#[derive(Clone, Debug)]
struct Month {
    visits: Vec<Visit>,
    gets: [bool; 3],
    correction: Option<Correction>,
}

/// An earlier month whose submission the month replaces, and what happens to its visits, in turn.
#[derive(Clone, Debug)]
struct Correction {
    month: prop::sample::Index,
    changes: Vec<Change>,
}

/// What happens to a visit of a month that is replaced.
#[derive(Clone, Copy, Debug)]
enum Change {
    Kept,
    Dropped,
    Age,
    Ward,
    Diagnosis,
}

impl Change {
    /// The visit after the change. A second change of a place is back at the first place.
    fn of(self, visit: Visit) -> Option<Visit> {
        match self {
            Self::Kept => Some(visit),
            Self::Dropped => None,
            Self::Age => Some(Visit {
                age: 99 - visit.age,
                ..visit
            }),
            Self::Ward => Some(Visit {
                ward: 15 - visit.ward,
                ..visit
            }),
            Self::Diagnosis => Some(Visit {
                diagnosis: 3 - visit.diagnosis,
                ..visit
            }),
        }
    }
}

fn correction() -> impl Strategy<Value = Correction> {
    let change = prop_oneof![
        6 => Just(Change::Kept),
        1 => Just(Change::Dropped),
        1 => Just(Change::Age),
        1 => Just(Change::Ward),
        1 => Just(Change::Diagnosis),
    ];
    let changes = prop::collection::vec(change, 1..60);
    (any::<prop::sample::Index>(), changes)
        .prop_map(|(month, changes)| Correction { month, changes })
}

fn months() -> impl Strategy<Value = Vec<Month>> {
    let persons = prop::collection::vec((0u8..100, 0u8..16), 4..40);
    let moved = || prop::bool::weighted(0.2);
    let visit = (any::<prop::sample::Index>(), 0u8..4, [moved(), moved()]);
    let visits = prop::collection::vec(visit, 3..60);
    let month = (visits, any::<[bool; 3]>(), prop::option::of(correction()));
    let months = prop::collection::vec(month, 2..6);
    // In half of the cases each person stays in one place.
    (persons, months, any::<bool>()).prop_map(|(persons, months, may_move)| {
        let months = months.into_iter().map(|(visits, gets, correction)| {
            let visits = visits.into_iter().map(|(person, diagnosis, moved)| {
                let person = person.index(persons.len());
                let (age, ward) = persons[person];
                let [age_moved, ward_moved] = moved.map(|moved| moved && may_move);
                Visit {
                    person: person as u32,
                    age: if age_moved { 99 - age } else { age },
                    ward: if ward_moved { 15 - ward } else { ward },
                    diagnosis,
                }
            });
            Month {
                visits: visits.collect(),
                gets,
                correction,
            }
        });
        months.collect()
    })
}

/// The submission that a month replaces, and the rows that take the place of its rows; `None` where it
/// corrects nothing, or what it would correct cannot be replaced.
fn corrected(
    publication: &Publication,
    number: usize,
    month: &Month,
) -> Option<(usize, Vec<Visit>)> {
    let correction = month.correction.as_ref().filter(|_| number > 0)?;
    let replaced = correction.month.index(number);
    let visits = publication.replaceable(replaced)?.iter();
    let changes = correction.changes.iter().cycle();
    let visits = visits
        .zip(changes)
        .filter_map(|(visit, change)| change.of(*visit));
    Some((
        replaced,
        visits.chain(month.visits.iter().copied()).collect(),
    ))
}

/// New base editions of all cases, by what an adversary knows of rows: which are of one person, or nothing.
static NEW_BASES: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// Threads that the 1,000 cases of a run are divided among.
const THREADS: u32 = 2;

/// For random arrivals, corrections and recipients: no recipient learns more than the model allows,
/// each row is released, waits, or was replaced before, and the labels of all bases fit.
#[test]
fn no_recipient_learns_more_than_the_model_allows() {
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(histories);
        }
    });
    for bases in &NEW_BASES {
        let bases = bases.load(Ordering::Relaxed);
        println!("{bases} new base editions");
        assert!(
            bases > 0,
            "no new base was made, so that none was tried out"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000 / THREADS, ..Default::default() })]

    fn histories(
        months in months(),
        (l, k, c) in (1u32..3, 2u64..4, prop::sample::select(vec![0.6, 0.8, 1.0])),
        (persons, recoding) in (
            prop::sample::select(vec![Persons::Named, Persons::Named, Persons::EachRow]),
            prop::sample::select(vec![Recoding::Global, Recoding::Global, Recoding::Local]),
        ),
        trials in prop::sample::select(vec![BaseTrials::AsDue, BaseTrials::Always]),
    ) {
        let model = Lkc::new(l, k, c).unwrap();
        let mut job = Job::new(model.clone());
        job.recoding = Some(recoding);
        let mut publication = Publication::new(persons, job, 3);
        publication.trials = trials;
        for (number, month) in months.iter().enumerate() {
            let recipients: Vec<usize> = (0..3).filter(|it| month.gets[*it]).collect();
            match corrected(&publication, number, month) {
                Some((replaced, visits)) => publication.replace(replaced, &visits, &recipients),
                None => publication.publish(&month.visits, &recipients),
            };
            for recipient in 0..3 {
                publication.assert_private(&publication.editions_of(recipient), &model);
            }
            publication.assert_nothing_lost();
        }
        publication.assert_bases_fit();
        if recoding == Recoding::Global {
            let new = publication.editions.iter().skip(1).filter(|it| it.is_base).count();
            let of_persons = usize::from(persons == Persons::EachRow);
            NEW_BASES[of_persons].fetch_add(new, Ordering::Relaxed);
        }
    }
}
