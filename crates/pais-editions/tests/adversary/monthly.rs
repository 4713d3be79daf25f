//! Twelve months of a hospital, with persons who come in several of them, to one recipient.

use std::collections::BTreeSet;

use pais_core::definition::{Job, Objective};
use pais_core::model::Lkc;
use pais_editions::{EditionLabels, common_labels};

use crate::{Edition, Persons, Publication, Visit, shown};

/// Numbers from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Twelve months of 400 visits. Every fourth is of one of 300 persons who come again and again.
fn months() -> Vec<Vec<Visit>> {
    let mut numbers = Numbers(12);
    let mut person = |id: u32| Visit {
        person: id,
        age: (numbers.below(50) + numbers.below(50)) as u8,
        ward: numbers.below(16) as u8,
        diagnosis: 0,
    };
    let regulars: Vec<Visit> = (0..300).map(&mut person).collect();
    let others: Vec<Visit> = (300..4_000).map(&mut person).collect();
    let mut others = others.into_iter();
    let mut numbers = Numbers(13);
    let month = |_| {
        let visit = |_| {
            let visit = if numbers.below(4) == 0 {
                regulars[numbers.below(300) as usize]
            } else {
                others.next().unwrap()
            };
            Visit {
                diagnosis: numbers.below(8) as u8,
                ..visit
            }
        };
        (0..300).map(visit).collect()
    };
    (0..12).map(month).collect()
}

fn job() -> (Lkc, Job) {
    let model = Lkc::new(2, 5, 0.6).unwrap();
    let mut job = Job::new(model.clone());
    job.objective = Some(Objective::Ncp);
    (model, job)
}

#[test]
fn twelve_months_are_published_and_every_prefix_is_private() {
    let (model, job) = job();
    let mut publication = Publication::new(Persons::Named, job.clone(), 1);
    let mut sent = 0;
    println!("month,rows,held_back,ncp,ncp_alone");
    for (month, visits) in months().iter().enumerate() {
        sent += visits.len();
        let published = publication.publish(visits, &[0]);
        assert_eq!(published, Some(month), "a month is not published");
        publication.assert_nothing_lost();
        publication.assert_private(&publication.editions_of(0), &model);
        // The same rows, anonymized alone.
        let edition = &publication.editions[month];
        let same = edition.release.source_rows.iter();
        let same: Vec<Visit> = same.map(|&row| publication.visits[row as usize]).collect();
        let mut alone = Publication::new(Persons::Named, job.clone(), 1);
        alone.publish(&same, &[0]).unwrap();
        let rows = edition.release.source_rows.len();
        let waiting = publication.waiting().len();
        let (ncp, alone) = (edition.ncp, alone.editions[0].ncp);
        println!("{},{rows},{waiting},{ncp:.4},{alone:.4}", month + 1);
        assert!(month < 11 || ncp <= 1.25 * alone, "{ncp} and {alone} alone");
    }
    let released: usize = publication
        .editions
        .iter()
        .map(|it| it.release.source_rows.len())
        .sum();
    assert_eq!(released + publication.waiting().len(), sent);
    // Most rows are of persons who come once.
    assert!(released * 10 >= sent * 7, "{released} of {sent}");
    labels_fit(&publication);
}

/// The labels of later editions are those of the first, or above them; the common ones are one cut.
fn labels_fit(publication: &Publication) {
    let first = &publication.editions[0].cut;
    for edition in &publication.editions[1..] {
        for label in &edition.cut["ward"] {
            let below = first["ward"]
                .iter()
                .any(|it| label.starts_with(it.as_str()));
            let above = first["ward"]
                .iter()
                .any(|it| it.starts_with(label.as_str()));
            assert!(above || !below, "{label} is below a label of {first:?}");
        }
        let ends = |edition: &Edition| -> BTreeSet<String> {
            let labels = edition.cut["age"].iter();
            let ends = labels.flat_map(|label| {
                let label = label.trim_matches(['[', ')', ']']);
                label.split(',').map(str::to_owned).collect::<Vec<_>>()
            });
            ends.collect()
        };
        let (own, first) = (ends(edition), ends(&publication.editions[0]));
        assert!(own.is_subset(&first), "{own:?} and {first:?}");
    }
    let editions = publication.editions.iter().map(shown);
    let editions = editions.map(|(table, codebook)| EditionLabels { table, codebook });
    let editions: Vec<EditionLabels> = editions.collect();
    let labels = common_labels(&editions);
    for column in ["age", "ward"] {
        let common: BTreeSet<&str> = labels[column].values().map(AsRef::as_ref).collect();
        let covered =
            |label: &&str| common.iter().filter(|it| label.starts_with(**it)).count() == 1;
        assert!(column == "age" || common.iter().all(covered), "{common:?}");
        // A common label is its own.
        assert!(
            labels[column]
                .values()
                .all(|it| labels[column].get(it).is_none_or(|own| own == it))
        );
    }
}
