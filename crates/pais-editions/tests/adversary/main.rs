//! Publications beside an adversary that tries every victim and every combination of known values, over
//! raw rows and released labels, without the decision of compositions.

mod histories;
mod monthly;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use pais_anonymize::{RunError, Unobserved};
use pais_core::codebook::{Codebook, CodebookOrganization};
use pais_core::definition::{
    ColumnDefinition, ColumnRole, DatasetDefinition, Job, Objective, TaxonomyNode,
};
use pais_core::model::Lkc;
use pais_core::schema::Schema;
use pais_core::table::{ReleasedTable, Table};
use pais_core::taxonomy::Interval;
use pais_editions::{
    EarlierEdition, EditionError, EditionTask, KnownRelease, RawTable, decide_edition,
};
use pais_io::read::csv;
use pais_test_support::adversary::{self, RawRow, ReleasedLabels};
use pais_verify::Recoded;

/// A visit of a person: the place among 0 to 99, the ward among `w00` to `w33`, and the diagnosis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) person: u32,
    pub(crate) age: u8,
    pub(crate) ward: u8,
    pub(crate) diagnosis: u8,
}

/// The quasi-identifiers.
const KNOWN: [&str; 2] = ["age", "ward"];

impl Visit {
    fn text(self, column: &str) -> String {
        match column {
            "age" => self.age.to_string(),
            "ward" => format!("w{}{}", self.ward / 4, self.ward % 4),
            _ => format!("d{}", self.diagnosis),
        }
    }
}

/// Whether an adversary knows of rows which are of one person.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Persons {
    Named,
    EachRow,
}

pub(crate) fn definition(persons: Persons) -> DatasetDefinition {
    let wards = (0..4).map(|floor| {
        let wards = (0..4).map(|ward| TaxonomyNode::from(format!("w{floor}{ward}").as_str()));
        TaxonomyNode::new(format!("w{floor}"), wards)
    });
    let mut columns = vec![
        ColumnDefinition::quasi_identifier("age").numeric(0.0, 99.0),
        ColumnDefinition::quasi_identifier("ward").taxonomy(TaxonomyNode::new("w", wards)),
        ColumnDefinition::sensitive("diagnosis"),
    ];
    let role = match persons {
        Persons::Named => ColumnRole::Subject,
        Persons::EachRow => ColumnRole::Insensitive,
    };
    columns.push(ColumnDefinition::new("person", role));
    DatasetDefinition {
        name: "visits".to_owned(),
        columns,
        ..DatasetDefinition::default()
    }
}

pub(crate) fn table(schema: &Schema, visits: &[Visit]) -> Table {
    let mut text = "age,ward,diagnosis,person\n".to_owned();
    for visit in visits {
        let cells = ["age", "ward", "diagnosis"].map(|column| visit.text(column));
        text += &format!("{},p{}\n", cells.join(","), visit.person);
    }
    csv::read_table(schema, text.as_bytes()).unwrap()
}

/// An edition: the raw row of each released one, and the labels of the quasi-identifiers.
#[derive(Clone, Debug)]
pub(crate) struct Edition {
    pub(crate) release: KnownRelease,
    pub(crate) cut: Option<BTreeMap<String, Vec<String>>>,
    pub(crate) is_base: bool,
    /// `None` where the publication is not measured.
    pub(crate) ncp: Option<f64>,
    pub(crate) codebook: Codebook,
}

/// How often a new base edition is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BaseTrials {
    AsDue,
    Always,
}

impl Edition {
    /// As the next edition sees it. A base is always tried where no earlier edition has rows.
    fn earlier(&self, trials: BaseTrials) -> EarlierEdition {
        EarlierEdition {
            cut: self.cut.clone(),
            rows: match trials {
                BaseTrials::AsDue => self.release.source_rows.len() as u64,
                BaseTrials::Always => 0,
            },
            is_base: self.is_base,
        }
    }

    /// The labels of a column in its cut.
    pub(crate) fn cut_labels(&self, column: &str) -> BTreeSet<String> {
        let cut = self.cut.iter().flat_map(|cut| &cut[column]);
        cut.cloned().collect()
    }

    /// The labels of each raw row that it has.
    fn labels(&self) -> ReleasedLabels {
        let column = |name: &str, row: usize| {
            let mut columns = self.release.table.columns.iter();
            let column = columns.find(|column| *column.name == *name).unwrap();
            column.column.text(row).unwrap().to_owned()
        };
        let sources = self.release.source_rows.iter().enumerate();
        sources
            .map(|(row, &raw)| (raw, KNOWN.map(|name| column(name, row)).to_vec()))
            .collect()
    }
}

/// Rows that were sent at once.
struct Submission {
    rows: Range<u32>,
    is_replaced: bool,
}

/// A publication that grows.
pub(crate) struct Publication {
    pub(crate) persons: Persons,
    pub(crate) schema: Arc<Schema>,
    definition: DatasetDefinition,
    pub(crate) job: Job,
    pub(crate) trials: BaseTrials,
    /// Whether the loss of each edition is measured, which takes longer than to find it.
    pub(crate) is_measured: bool,
    pub(crate) visits: Vec<Visit>,
    submissions: Vec<Submission>,
    pub(crate) editions: Vec<Edition>,
    /// The recipients, each with the numbers of the editions that it has.
    pub(crate) histories: Vec<Vec<usize>>,
}

impl Publication {
    pub(crate) fn new(persons: Persons, job: Job, recipients: usize) -> Self {
        let definition = definition(persons);
        Self {
            persons,
            schema: Arc::new(Schema::inline(&definition).unwrap()),
            definition,
            job,
            trials: BaseTrials::AsDue,
            is_measured: false,
            visits: Vec::new(),
            submissions: Vec::new(),
            editions: Vec::new(),
            histories: vec![Vec::new(); recipients],
        }
    }

    fn released(&self) -> HashSet<u32> {
        let released = self.editions.iter();
        let released = released.flat_map(|edition| &edition.release.source_rows);
        released.copied().collect()
    }

    /// The rows of submissions that are replaced or not, and in no edition.
    fn unreleased(&self, are_replaced: bool) -> Vec<u32> {
        let released = self.released();
        let submissions = self.submissions.iter();
        let submissions = submissions.filter(|it| it.is_replaced == are_replaced);
        let rows = submissions.flat_map(|it| it.rows.clone());
        rows.filter(|row| !released.contains(row)).collect()
    }

    fn waiting(&self) -> Vec<u32> {
        self.unreleased(false)
    }

    /// The visits of a submission that another may replace; `None` where it is replaced, or where rows of
    /// it are released and nobody knows which are of one person.
    pub(crate) fn replaceable(&self, submission: usize) -> Option<&[Visit]> {
        let Submission { rows, is_replaced } = &self.submissions[submission];
        let released = self.released();
        let is_released = rows.clone().any(|row| released.contains(&row));
        let is_refused = *is_replaced || is_released && self.persons == Persons::EachRow;
        let visits = &self.visits[rows.start as usize..rows.end as usize];
        (!is_refused).then_some(visits)
    }

    /// Adds rows in the place of those of a submission, and publishes an edition, as [`Self::publish`].
    pub(crate) fn replace(
        &mut self,
        submission: usize,
        visits: &[Visit],
        recipients: &[usize],
    ) -> Option<usize> {
        assert!(self.replaceable(submission).is_some());
        self.submissions[submission].is_replaced = true;
        self.publish(visits, recipients)
    }

    /// Adds rows, and publishes an edition for some recipients; `None` where all rows wait.
    pub(crate) fn publish(&mut self, visits: &[Visit], recipients: &[usize]) -> Option<usize> {
        let start = self.visits.len() as u32;
        self.visits.extend_from_slice(visits);
        self.submissions.push(Submission {
            rows: start..self.visits.len() as u32,
            is_replaced: false,
        });
        let raw = table(&self.schema, &self.visits);
        let known: Vec<KnownRelease> = self.editions.iter().map(|it| it.release.clone()).collect();
        let histories = recipients.iter().map(|&it| self.histories[it].clone());
        let histories: Vec<Vec<usize>> = histories.collect();
        let mut job = self.job.clone();
        let reason = "rows of one person each are wanted".to_owned();
        job.acknowledged.insert("person".to_owned(), reason);
        let earlier = self.editions.iter().map(|it| it.earlier(self.trials));
        let earlier: Vec<EarlierEdition> = earlier.collect();
        let candidates = self.waiting();
        let task = EditionTask {
            schema: self.schema.clone(),
            job: job.clone(),
            earlier: &earlier,
            order_key: None,
            views: std::slice::from_ref(&*self.schema),
            raw: &raw,
            candidates: candidates.clone(),
            known: &known,
            histories: &histories,
        };
        let observer = Unobserved::default();
        let edition = match decide_edition(task, &observer) {
            Ok(edition) => edition,
            Err(
                EditionError::NothingLeft | EditionError::Run(RunError::NotAnonymizable { .. }),
            ) => {
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let source_rows = edition.source_rows();
        // Each row of the edition is new, and is in it once.
        let distinct: BTreeSet<u32> = source_rows.iter().copied().collect();
        assert_eq!(distinct.len(), source_rows.len());
        assert!(distinct.iter().all(|row| candidates.contains(row)));
        let schema = edition.verified.schema();
        let ncp = self.is_measured.then(|| {
            let run = &edition.run;
            let report = run.measure(&edition.found, &edition.verified, &observer);
            report.unwrap().utility.ncp
        });
        let organization = CodebookOrganization {
            name: "hospital".to_owned(),
            display_name: None,
        };
        let tables = edition.verified.tables();
        let number = self.editions.len();
        let cut = edition.verified.cut().cloned();
        assert!(edition.is_base || !earlier.is_empty() && cut.is_some());
        self.editions.push(Edition {
            codebook: Codebook::of_release(organization, &self.definition, schema, tables),
            ncp,
            release: KnownRelease {
                table: tables[0].clone(),
                source_rows,
                quasi_identifiers: schema.names(ColumnRole::QuasiIdentifier),
                sensitive: schema.names(ColumnRole::Sensitive),
                model: schema.privacy_model(&job).unwrap(),
                recoded: match &cut {
                    Some(_) => Recoded::OneCut,
                    None => Recoded::Overlapping,
                },
            },
            cut,
            is_base: edition.is_base,
        });
        for &recipient in recipients {
            self.histories[recipient].push(number);
        }
        Some(number)
    }

    /// The editions of a recipient.
    pub(crate) fn editions_of(&self, recipient: usize) -> Vec<&Edition> {
        let history = self.histories[recipient].iter();
        history.map(|&number| &self.editions[number]).collect()
    }

    /// Asserts that the editions are private together.
    pub(crate) fn assert_private(&self, editions: &[&Edition], model: &Lkc) {
        let rows = self.visits.iter().enumerate().map(|(row, visit)| RawRow {
            person: match self.persons {
                Persons::Named => visit.person,
                Persons::EachRow => row as u32,
            },
            known: KNOWN.map(|column| visit.text(column)).to_vec(),
            sensitive: visit.text("diagnosis"),
        });
        let rows: Vec<RawRow> = rows.collect();
        let publication = adversary::Publication {
            rows: &rows,
            model,
            covers,
        };
        let labels = editions.iter().map(|edition| edition.labels());
        publication.assert_private(&labels.collect::<Vec<ReleasedLabels>>());
    }

    /// Asserts that no label of one base has a value in common with one of another without being inside or
    /// around it. The wards are a tree.
    pub(crate) fn assert_bases_fit(&self) {
        let bases = self.editions.iter().filter(|it| it.is_base);
        let labels = bases.flat_map(|it| it.cut_labels("age"));
        let labels: BTreeSet<String> = labels.filter(|label| label != "?").collect();
        let parsed = labels.iter().map(|it| Interval::parse(it).unwrap());
        let parsed: Vec<Interval> = parsed.collect();
        for one in &parsed {
            for other in &parsed {
                let meet = one.lo.max(other.lo) < one.hi.min(other.hi);
                assert!(
                    !meet || one.encloses(other) || other.encloses(one),
                    "{one} and {other}"
                );
            }
        }
    }

    /// Asserts that each row is in one edition, waits, or was replaced before it was in one.
    pub(crate) fn assert_nothing_lost(&self) {
        let released: usize = self
            .editions
            .iter()
            .map(|it| it.release.source_rows.len())
            .sum();
        let others = self.waiting().len() + self.unreleased(true).len();
        assert_eq!(released + others, self.visits.len());
    }
}

/// Whether a label covers a value: as an interval of numbers, or as what the value begins with.
fn covers(label: &str, value: &str) -> bool {
    adversary::interval_covers(label, value).unwrap_or_else(|| match value.parse::<f64>() {
        Ok(_) => label == value,
        Err(_) => value.starts_with(label),
    })
}

/// The released table of an edition with its codebook.
pub(crate) fn shown(edition: &Edition) -> (&ReleasedTable, &Codebook) {
    (&edition.release.table, &edition.codebook)
}

#[test]
fn the_adversary_of_the_tests_breaks_a_month_that_is_published_alone() {
    // Six persons come again: each month is 3-anonymous, but only two come in both with one age.
    let visit = |person, age| Visit {
        person,
        age,
        ward: 0,
        diagnosis: (person % 3) as u8,
    };
    let model = Lkc::k_anonymity(3).unwrap();
    let mut publication = Publication::new(Persons::Named, Job::new(model.clone()), 2);
    let first: Vec<Visit> = (0..6).map(|it| visit(it, 10)).collect();
    publication.publish(&first, &[0]).unwrap();
    let second: Vec<Visit> = (4..10).map(|it| visit(it, 10)).collect();
    // The second recipient has nothing, so nobody is held back for it.
    publication.publish(&second, &[1]).unwrap();
    publication.assert_private(&publication.editions_of(0), &model);
    publication.assert_private(&publication.editions_of(1), &model);
    let both: Vec<&Edition> = publication.editions.iter().collect();
    let broken = std::panic::AssertUnwindSafe(|| publication.assert_private(&both, &model));
    assert!(std::panic::catch_unwind(broken).is_err());
}

/// A month of nine persons with one age and three with another, and the month that replaces it: the last
/// ones of the nine have the other age, and three persons are new.
fn corrected(changed: u32) -> (Publication, Vec<Visit>) {
    let visit = |person, age| Visit {
        person,
        age,
        ward: 0,
        diagnosis: (person % 3) as u8,
    };
    let mut job = Job::new(Lkc::k_anonymity(3).unwrap());
    job.objective = Some(Objective::Ncp);
    let mut publication = Publication::new(Persons::Named, job, 2);
    let age = |person, first_old| if person < first_old { 10 } else { 90 };
    let first = (0..12).map(|it| visit(it, age(it, 9)));
    let first: Vec<Visit> = first.collect();
    publication.publish(&first, &[0]).unwrap();
    let corrected = (0..15).map(|it| visit(it, age(it, 9 - changed)));
    (publication, corrected.collect())
}

#[test]
fn the_adversary_of_the_tests_finds_the_one_whose_rows_were_corrected() {
    let model = Lkc::k_anonymity(3).unwrap();
    let (mut publication, corrected) = corrected(1);
    // The second recipient has nothing, so nobody is held back for it.
    publication.replace(0, &corrected, &[1]).unwrap();
    publication.assert_private(&publication.editions_of(1), &model);
    let both: Vec<&Edition> = publication.editions.iter().collect();
    let broken = std::panic::AssertUnwindSafe(|| publication.assert_private(&both, &model));
    assert!(std::panic::catch_unwind(broken).is_err());
}

#[test]
fn a_correction_of_one_person_waits_with_the_others_and_that_of_three_is_published() {
    let model = Lkc::k_anonymity(3).unwrap();
    for (changed, published) in [(1, 6), (3, 15)] {
        let (mut publication, corrected) = corrected(changed);
        let edition = publication.replace(0, &corrected, &[0]).unwrap();
        publication.assert_private(&publication.editions_of(0), &model);
        publication.assert_nothing_lost();
        let rows = publication.editions[edition].release.source_rows.len();
        assert_eq!(rows, published, "{changed} corrected");
    }
}

/// Two persons are in each ward, but only one of them is in no other: nobody waits, the wards are not shown.
#[test]
fn whose_rows_are_all_alike_is_not_found_among_those_who_have_others() {
    let visit = |person, ward| Visit {
        person,
        age: 50,
        ward,
        diagnosis: (person % 3) as u8,
    };
    let visits = [visit(0, 0), visit(0, 15), visit(1, 0), visit(2, 15)];
    let model = Lkc::new(1, 2, 1.0).unwrap();
    for (is_linked, wards) in [(true, &["w"][..]), (false, &["w00", "w33"])] {
        let mut job = Job::new(model.clone());
        job.objective = Some(Objective::Ncp);
        let persons = if is_linked {
            Persons::Named
        } else {
            Persons::EachRow
        };
        let mut publication = Publication::new(persons, job, 1);
        publication.publish(&visits, &[0]).unwrap();
        publication.assert_private(&publication.editions_of(0), &model);
        let edition = &publication.editions[0];
        assert_eq!(edition.release.source_rows.len(), 4);
        assert!(edition.cut_labels("ward").iter().eq(wards));
    }
}

#[test]
fn rows_of_a_replaced_month_wait_no_more() {
    let (mut publication, corrected) = corrected(3);
    let alone = |person, age| Visit {
        person,
        age,
        ..corrected[0]
    };
    assert_eq!(publication.publish(&[alone(20, 0)], &[0]), None);
    assert_eq!(publication.replace(1, &[alone(20, 30)], &[0]), None);
    assert_eq!(publication.waiting(), [13]);
    publication.publish(&corrected[12..], &[0]).unwrap();
    publication.assert_nothing_lost();
    assert!(!publication.released().contains(&12));
}

#[test]
fn raw_rows_are_persons_of_their_own_without_a_subject() {
    let schema = Schema::inline(&definition(Persons::EachRow)).unwrap();
    let visit = Visit {
        person: 1,
        age: 1,
        ward: 1,
        diagnosis: 1,
    };
    let raw = RawTable::new(&schema, table(&schema, &[visit, visit]));
    assert_ne!(raw.person(0), raw.person(1));
}
