//! Twelve months of a hospital, with persons who come in several of them, to one recipient.

use std::collections::BTreeSet;

use pais_core::definition::{Job, Objective};
use pais_core::model::Lkc;
use pais_core::split_mix::SplitMix64;
use pais_editions::{EditionLabels, common_labels};

use crate::{Edition, Persons, Publication, Visit, shown};

/// Twelve months of 400 visits. Every fourth is of one of 300 persons who come again and again.
fn months() -> Vec<Vec<Visit>> {
    let mut numbers = SplitMix64(12);
    let mut person = |id: u32| Visit {
        person: id,
        age: (numbers.next_u64() % 50 + numbers.next_u64() % 50) as u8,
        ward: (numbers.next_u64() % 16) as u8,
        diagnosis: 0,
    };
    let regulars: Vec<Visit> = (0..300).map(&mut person).collect();
    let others: Vec<Visit> = (300..4_000).map(&mut person).collect();
    let mut others = others.into_iter();
    let mut numbers = SplitMix64(13);
    let month = |_| {
        let visit = |_| {
            let visit = if numbers.next_u64().is_multiple_of(4) {
                regulars[(numbers.next_u64() % 300) as usize]
            } else {
                others.next().unwrap()
            };
            Visit {
                diagnosis: (numbers.next_u64() % 8) as u8,
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
    publication.is_measured = true;
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
        alone.is_measured = true;
        alone.publish(&same, &[0]).unwrap();
        let rows = edition.release.source_rows.len();
        let waiting = publication.waiting().len();
        let ncp = |edition: &Edition| edition.ncp.unwrap();
        let (ncp, alone) = (ncp(edition), ncp(&alone.editions[0]));
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
    labels_continue(&publication);
}

/// The labels of all bases fit, and the common ones of all editions are one cut.
fn labels_fit(publication: &Publication) {
    publication.assert_bases_fit();
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

/// The labels of later editions are those of the base edition before them, or above them.
fn labels_continue(publication: &Publication) {
    let mut base = &publication.editions[0];
    for edition in &publication.editions[1..] {
        if edition.is_base {
            base = edition;
        }
        let known = base.cut_labels("ward");
        for label in edition.cut_labels("ward") {
            let below = known.iter().any(|it| label.starts_with(it.as_str()));
            let above = known.iter().any(|it| it.starts_with(label.as_str()));
            assert!(above || !below, "{label} is below a label of {known:?}");
        }
        let ends = |edition: &Edition| -> BTreeSet<String> {
            let labels = edition.cut_labels("age").into_iter();
            let ends = labels.flat_map(|label| {
                let label = label.trim_matches(['[', ')', ']']);
                label.split(',').map(str::to_owned).collect::<Vec<_>>()
            });
            ends.collect()
        };
        let (own, known) = (ends(edition), ends(base));
        assert!(own.is_subset(&known), "{own:?} and {known:?}");
    }
}

#[test]
fn a_publication_that_grows_gets_finer_labels_and_common_ones_stay() {
    let (model, job) = job();
    let all: Vec<Visit> = months().into_iter().flatten().collect();
    let mut publication = Publication::new(Persons::EachRow, job, 1);
    publication.is_measured = true;
    let sizes = [100, 120, 500, 500, 90];
    let mut start = 0;
    for size in sizes {
        publication
            .publish(&all[start..start + size], &[0])
            .unwrap();
        start += size;
        publication.assert_private(&publication.editions_of(0), &model);
    }
    let is_base: Vec<bool> = publication.editions.iter().map(|it| it.is_base).collect();
    assert_eq!(is_base, [true, false, true, false, false]);
    labels_fit(&publication);
    labels_continue(&publication);
    let ncp = |edition: usize| publication.editions[edition].ncp.unwrap();
    // Half of the tree of wards is not gone below: few rows are left in each group.
    assert!(ncp(2) <= 0.9 * ncp(1), "{} and {}", ncp(2), ncp(1));
    assert!(ncp(3) <= 0.9 * ncp(1), "{} and {}", ncp(3), ncp(1));
}

/// Editions of equal size, of persons who come once: every twelfth is tried as a base.
#[test]
fn a_new_base_is_tried_once_a_year() {
    let (_, job) = job();
    let all: Vec<Visit> = months().into_iter().flatten().collect();
    let mut publication = Publication::new(Persons::EachRow, job, 1);
    // The first month has one age, so that its cut says nothing about ages.
    let first: Vec<Visit> = all[..100]
        .iter()
        .map(|&it| Visit { age: 50, ..it })
        .collect();
    publication.publish(&first, &[0]).unwrap();
    for month in all[100..].chunks(100).take(13) {
        publication.publish(month, &[0]).unwrap();
    }
    let bases = publication.editions.iter().enumerate();
    let bases = bases.filter(|(_, it)| it.is_base).map(|(number, _)| number);
    assert_eq!(bases.collect::<Vec<_>>(), [0, 12]);
    labels_fit(&publication);
    labels_continue(&publication);
}
