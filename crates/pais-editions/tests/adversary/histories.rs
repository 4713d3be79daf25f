//! Random tables, arrivals and recipients.

use pais_core::definition::{Job, Recoding};
use pais_core::model::Lkc;
use proptest::prelude::*;

use crate::{Persons, Publication, Visit};

/// A month: the visits, and which of three recipients get its edition.
type Month = (Vec<Visit>, [bool; 3]);

fn months() -> impl Strategy<Value = Vec<Month>> {
    let persons = prop::collection::vec((0u8..100, 0u8..16), 4..40);
    let visit = (any::<prop::sample::Index>(), 0u8..4);
    let month = (prop::collection::vec(visit, 3..60), any::<[bool; 3]>());
    (persons, prop::collection::vec(month, 2..6)).prop_map(|(persons, months)| {
        let visits = |(visits, recipients): (Vec<(prop::sample::Index, u8)>, [bool; 3])| {
            let visits = visits.into_iter().map(|(person, diagnosis)| {
                let person = person.index(persons.len());
                let (age, ward) = persons[person];
                Visit {
                    person: person as u32,
                    age,
                    ward,
                    diagnosis,
                }
            });
            (visits.collect(), recipients)
        };
        months.into_iter().map(visits).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..Default::default() })]

    /// For random arrivals and recipients: no recipient learns more than the model allows, and each
    /// row is released or waits.
    #[test]
    fn no_recipient_learns_more_than_the_model_allows(
        months in months(),
        (l, k, c) in (1u32..3, 2u64..4, prop::sample::select(vec![0.6, 0.8, 1.0])),
        (persons, recoding) in (
            prop::sample::select(vec![Persons::Named, Persons::Named, Persons::EachRow]),
            prop::sample::select(vec![Recoding::Global, Recoding::Global, Recoding::Local]),
        ),
    ) {
        let model = Lkc::new(l, k, c).unwrap();
        let mut job = Job::new(model.clone());
        job.recoding = Some(recoding);
        let mut publication = Publication::new(persons, job, 3);
        for (visits, gets) in &months {
            let recipients: Vec<usize> = (0..3).filter(|it| gets[*it]).collect();
            publication.publish(visits, &recipients);
            for recipient in 0..3 {
                publication.assert_private(&publication.editions_of(recipient), &model);
            }
            publication.assert_nothing_lost();
        }
    }
}
