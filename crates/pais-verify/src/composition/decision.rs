//! Whether the models of releases hold on their meet.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::slice::ChunksExact;

use pais_core::cancellation::Cancellation;
use pais_core::model::{Diversity, Lkc, PrivacyModel};
use pais_core::table::{Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable};

use super::composed_release::{Meet, PlacedRelease, Published, Recoded};
use super::person_rows::{PersonRows, bits};
use super::presence::{PlaceRows, Presence, ReleaseBits};
use super::reading::{Reading, gathered};
use super::{Composition, RawRows};
use crate::model_columns::ModelColumns;
use crate::models::{by_groups, verify_model};
use crate::source_rows::NOWHERE;
use crate::verification::VerifyError;
use crate::{CountedTable, PrivacyFinding};

/// Rows to be decided together, or combinations of rows of one person.
struct Join<'p, 'a> {
    parts: Vec<JoinedPart<'p, 'a>>,
    /// The raw rows of the combinations, one after the other. The sensitive values of the first one of each are
    /// inferred.
    rows: Vec<u32>,
    /// Raw rows of a combination; 1 if rows are not combined.
    width: usize,
    /// The members that have rows of the persons.
    persons: ReleaseBits,
}

/// What a release says about each combination.
struct JoinedPart<'p, 'a> {
    placed: &'p PlacedRelease<'a>,
    /// The place in a combination of the row that is looked up in the release; `None` if it has no row of the
    /// persons.
    own: Option<usize>,
    /// The place of a row of another release, which is looked up instead if the release has it.
    other: Option<usize>,
}

impl Composition {
    /// Decides releases that have persons in common: the rows of each place, and the rows of each
    /// person in several releases combined.
    ///
    /// # Errors
    /// [`VerifyError`] of a malformed table, [`VerifyError::TooManyCombinations`] and
    /// [`VerifyError::Stopped`].
    pub(super) fn decide_members(
        &mut self,
        members: &[&PlacedRelease],
        raw: RawRows,
        cancellation: &Cancellation,
    ) -> Result<(), VerifyError> {
        let places = Presence::new(members, raw).rows_by_place(raw.rows);
        let by_labels = members.iter().all(|member| is_exact(member));
        // A row of each member can say in which group of an anatomized release a person is.
        let anatomized = members.iter().filter(|member| is_anatomized(member));
        let columns =
            quasi_identifiers(members.iter().copied()).len() + anatomized.count() * members.len();
        for of_person in places.chunk_by(|one, other| one.place.person == other.place.person) {
            let person = of_person.first().map_or(0, |it| it.place.person);
            if by_labels {
                for PlaceRows { rows, .. } in of_person {
                    self.decide_rows(members, person, rows.clone(), raw, cancellation)?;
                }
            } else {
                // A row that a release lacks has a label of its own there.
                let mut rows: Vec<u32> = of_person
                    .iter()
                    .flat_map(|it| it.rows.iter().copied())
                    .collect();
                rows.sort_unstable();
                self.decide_rows(members, person, rows, raw, cancellation)?;
            }
            let Some(subjects) = raw.subjects else {
                continue;
            };
            for read in bits(person) {
                if let Some(combined) =
                    PersonRows::new(person, read, of_person, subjects, columns, cancellation)?
                {
                    self.exact = false;
                    self.decide_combinations(members, combined, raw, cancellation)?;
                }
            }
        }
        Ok(())
    }

    fn decide_rows(
        &mut self,
        members: &[&PlacedRelease],
        persons: ReleaseBits,
        rows: Vec<u32>,
        raw: RawRows,
        cancellation: &Cancellation,
    ) -> Result<(), VerifyError> {
        let parts = members.iter().map(|placed| JoinedPart {
            placed,
            own: Some(0),
            other: None,
        });
        let join = Join {
            parts: parts.collect(),
            rows,
            width: 1,
            persons,
        };
        self.decide(&join, raw, cancellation)
    }

    fn decide_combinations(
        &mut self,
        members: &[&PlacedRelease],
        combined: PersonRows,
        raw: RawRows,
        cancellation: &Cancellation,
    ) -> Result<(), VerifyError> {
        let releases = &combined.releases;
        let parts = (0..).zip(members).map(|(number, placed)| JoinedPart {
            placed,
            own: releases.iter().position(|release| *release == number),
            other: None,
        });
        let mut parts: Vec<JoinedPart> = parts.collect();
        // The labels of a row in all releases that have it, also where it stands for another one.
        for (own, release) in releases.iter().enumerate() {
            let others = (0..releases.len()).filter(|other| *other != own);
            parts.extend(others.map(|other| JoinedPart {
                placed: members[*release],
                own: Some(own),
                other: Some(other),
            }));
        }
        let mut join = Join {
            parts: Vec::new(),
            width: releases.len(),
            rows: combined.rows,
            persons: combined.persons,
        };
        parts.retain(|part| join.is_news(part));
        join.parts = parts;
        self.decide(&join, raw, cancellation)
    }

    /// Decides all models on a join. Once a model does not hold, the figures are its figures.
    fn decide(
        &mut self,
        join: &Join,
        raw: RawRows,
        cancellation: &Cancellation,
    ) -> Result<(), VerifyError> {
        let members: Vec<&PlacedRelease> = join.parts.iter().map(|part| part.placed).collect();
        self.joined
            .extend(members.iter().map(|member| member.position));
        let by_labels = members.iter().all(|member| is_exact(member));
        let meet = join.columns()?;
        let reading = join.reading(&meet);
        let subjects = subjects_of(raw, &reading.rows);
        for model in models_to_decide(&members) {
            let known = meet.iter().filter(|column| is_known(model, &column.name));
            let names: Vec<Box<str>> = known.clone().map(|column| column.name.clone()).collect();
            let decided = if by_labels {
                Cow::Borrowed(model.release.model)
            } else {
                Cow::Owned(by_groups(model.release.model))
            };
            // An adversary who knows all quasi-identifiers knows a group as a whole.
            self.exact &= by_labels || knows_all(model.release.model);
            let sensitive = raw.sensitive.iter();
            let sensitive =
                sensitive.filter(|column| model.release.sensitive.contains(&column.name));
            let sensitive = sensitive.map(|column| gathered(column, &reading.rows));
            let table = ReleasedTable {
                name: "meet".into(),
                rows: reading.rows.len(),
                columns: known
                    .map(|column| reading.column(column))
                    .chain(sensitive)
                    .collect(),
            };
            let counted = CountedTable {
                table: &table,
                subjects: subjects.as_deref(),
            };
            let columns = ModelColumns {
                quasi_identifiers: &names,
                sensitive: model.release.sensitive,
            };
            let (found, _) = verify_model(counted, columns, &decided, cancellation)?;
            if !found.holds() {
                let among = bits(join.persons).into_iter();
                let among = among.filter_map(|number| members.get(number));
                self.broken_among
                    .push(among.map(|member| member.position).collect());
            }
            self.add(&found, model.position);
        }
        Ok(())
    }

    fn add(&mut self, found: &PrivacyFinding, position: usize) {
        if self.broken.is_some() {
            return;
        }
        let smallest = found.smallest_group();
        let greatest = match found {
            PrivacyFinding::Subsets(found) => found.greatest_bounded_confidence,
            PrivacyFinding::Groups(_) => None,
        };
        let greatest = greatest.unwrap_or(found.greatest_confidence());
        if found.holds() {
            let known = self.smallest_group.unwrap_or(u64::MAX);
            self.smallest_group = Some(known.min(smallest));
            let known = self.greatest_confidence.unwrap_or(0.0);
            self.greatest_confidence = Some(known.max(greatest));
        } else {
            self.holds = false;
            self.broken = Some(position);
            self.smallest_group = Some(smallest);
            self.greatest_confidence = Some(greatest);
        }
    }
}

/// Whether the meet of a release with others like it is decided exactly under its model.
fn is_exact(member: &PlacedRelease) -> bool {
    member.release.recoded == Recoded::OneCut
        && !has_sets(member)
        && matches!(member.release.model, PrivacyModel::Lkc(_))
}

fn is_anatomized(member: &PlacedRelease) -> bool {
    member.release.recoded == Recoded::Anatomized
}

/// The quasi-identifiers of releases, each once.
fn quasi_identifiers<'p, 'a: 'p>(
    releases: impl Iterator<Item = &'p PlacedRelease<'a>>,
) -> BTreeSet<&'a str> {
    let names = releases.flat_map(|placed| placed.release.quasi_identifiers);
    names.map(|name| &**name).collect()
}

fn has_sets(member: &PlacedRelease) -> bool {
    let is_set = |column: &&ReleasedColumn| matches!(column.form, Form::Set { .. });
    let columns = member.labelled();
    columns.is_ok_and(|columns| columns.iter().any(is_set))
}

fn subjects_of(raw: RawRows, rows: &[u32]) -> Option<Vec<u32>> {
    let subjects = raw.subjects?;
    Some(rows.iter().map(|&row| subjects[row as usize]).collect())
}

/// The releases whose models have to hold. If the model of one implies the model of another, only the weaker
/// model is decided: a recipient who has the release with the weaker model can know as much from that release
/// alone.
fn models_to_decide<'p, 'a>(releases: &[&'p PlacedRelease<'a>]) -> Vec<&'p PlacedRelease<'a>> {
    let mut kept: Vec<&PlacedRelease> = Vec::new();
    for &release in releases {
        if kept.iter().any(|other| implies(release, other)) {
            continue;
        }
        kept.retain(|other| !implies(other, release));
        kept.push(release);
    }
    kept
}

/// Whether every table that meets the model of `stronger` meets that of `weaker`.
fn implies(stronger: &PlacedRelease, weaker: &PlacedRelease) -> bool {
    let has_sets = has_sets(stronger) || has_sets(weaker);
    let (stronger, weaker) = (stronger.release, weaker.release);
    if stronger.quasi_identifiers != weaker.quasi_identifiers
        || stronger.sensitive != weaker.sensitive
    {
        return false;
    }
    match (stronger.model, weaker.model) {
        (PrivacyModel::Lkc(strong), PrivacyModel::Lkc(weak)) => {
            // A length of more values than there are quasi-identifiers means all.
            let length = |l: Option<NonZeroU32>| match l {
                Some(l) if has_sets => l.get(),
                Some(l) => l.get().min(stronger.quasi_identifiers.len() as u32),
                None if has_sets => u32::MAX,
                None => stronger.quasi_identifiers.len() as u32,
            };
            let bounds_as_much = strong.missing_sensitive == weak.missing_sensitive
                && bounds_all(strong, weak)
                && strong.c.as_f64() <= weak.c.as_f64();
            length(strong.l) >= length(weak.l)
                && strong.k >= weak.k
                && (weak.c.is_unbounded() || bounds_as_much)
        }
        (PrivacyModel::KmAnonymity(strong), PrivacyModel::KmAnonymity(weak)) => {
            strong.k >= weak.k && strong.m >= weak.m
        }
        (PrivacyModel::Groups(strong), PrivacyModel::Groups(weak)) => {
            let spans = |(column, weak): (&String, &f64)| {
                strong
                    .min_range
                    .get(column)
                    .is_some_and(|strong| strong >= weak)
            };
            strong.k >= weak.k
                && is_as_diverse(&strong.diversity, &weak.diversity)
                && weak.min_range.iter().all(spans)
        }
        _ => false,
    }
}

/// Whether one model bounds each sensitive value that another one bounds.
fn bounds_all(one: &Lkc, other: &Lkc) -> bool {
    let Some(bounded) = &one.sensitive_values else {
        return true;
    };
    let Some(others) = &other.sensitive_values else {
        return false;
    };
    others.iter().all(|(column, values)| {
        let bounded = bounded.get(column);
        bounded.is_some_and(|bounded| values.iter().all(|value| bounded.contains(value)))
    })
}

/// Whether values that meet `strong` meet `weak`, of one kind of diversity.
fn is_as_diverse(strong: &Diversity, weak: &Diversity) -> bool {
    match (strong, weak) {
        (_, Diversity::None) => true,
        (Diversity::Distinct { l: strong }, Diversity::Distinct { l: weak }) => strong >= weak,
        (Diversity::Entropy { l: strong }, Diversity::Entropy { l: weak }) => strong >= weak,
        (strong, weak) => strong == weak,
    }
}

/// Whether the adversary of a model knows all quasi-identifiers.
fn knows_all(model: &PrivacyModel) -> bool {
    match model {
        PrivacyModel::Lkc(model) => model.l.is_none(),
        PrivacyModel::KmAnonymity(_) => false,
        PrivacyModel::Groups(_) => true,
    }
}

/// Whether the adversary of a release's model may know a column of the meet. The group is known of every row
/// whose quasi-identifiers are.
fn is_known(model: &PlacedRelease, name: &str) -> bool {
    let mut names = model.release.quasi_identifiers.iter();
    names.any(|known| **known == *name) || name.starts_with(GROUP_PREFIX)
}

/// Prefix of the names of the columns of groups. No declared column's name has a line break.
const GROUP_PREFIX: &str = "\n";

impl Join<'_, '_> {
    fn combinations(&self) -> ChunksExact<'_, u32> {
        self.rows.chunks_exact(self.width)
    }

    /// The released row of each combination in a release, or `NOWHERE`.
    fn released(&self, part: &JoinedPart) -> impl Iterator<Item = u32> {
        let JoinedPart { placed, own, other } = *part;
        self.combinations().map(move |combination| {
            let row = |place: Option<usize>| match place {
                Some(place) => placed.row_of[combination[place] as usize],
                None => NOWHERE,
            };
            match row(other) {
                NOWHERE => row(own),
                found => found,
            }
        })
    }

    /// Whether a part looks up other rows than its own.
    fn is_news(&self, part: &JoinedPart) -> bool {
        let (Some(own), Some(other)) = (part.own, part.other) else {
            return true;
        };
        self.combinations().any(|combination| {
            let (own, other) = (combination[own], combination[other]);
            other != own && part.placed.has(other as usize)
        })
    }

    /// The raw rows, each once, however many rows of other releases it is combined with.
    fn reading(&self, meet: &[ReleasedColumn]) -> Reading {
        if self.width == 1 {
            return Reading::of_rows(&self.rows);
        }
        let read: Vec<u32> = self
            .combinations()
            .map(|combination| combination[0])
            .collect();
        let mut all = Meet::unknown(read.len());
        for column in meet {
            all.and(column, 0..column.column.codes.len() as u32);
        }
        Reading::of_combinations(&read, all.codes())
    }

    /// Whether all releases are anatomized, and none has a row's value of a column that is sensitive in another.
    fn says_only_groups(&self) -> bool {
        let releases = || self.parts.iter().map(|part| part.placed);
        let mut sensitive = releases().flat_map(|placed| placed.release.sensitive);
        releases().all(is_anatomized)
            && sensitive.all(|name| {
                let of_row = |it| matches!(it, Published::Raw | Published::Labels);
                releases().all(|placed| !placed.published(name).is_some_and(of_row))
            })
    }

    /// The meets of all columns that an adversary may know, and the groups of anatomized releases.
    fn columns(&self) -> Result<Vec<ReleasedColumn>, VerifyError> {
        let names = quasi_identifiers(self.parts.iter().map(|part| part.placed));
        let rows = self.combinations().len();
        let mut columns = Vec::with_capacity(names.len());
        // The exact values of anatomized releases tell this adversary nothing but the groups, unless another release
        // says of each row what they say of groups only.
        let has_exact = !self.says_only_groups();
        for name in names {
            let mut meet = Meet::unknown(rows);
            let parts = self.parts.iter();
            for part in parts.filter(|part| has_exact || !is_anatomized(part.placed)) {
                if let Some(Published::Labels | Published::Raw) = part.placed.published(name)
                    && let Some(column) = part.placed.column(name)
                {
                    meet.and(column, self.released(part));
                }
            }
            columns.push(meet.into_column(name));
        }
        let anatomized = self.parts.iter().filter(|part| is_anatomized(part.placed));
        for (number, part) in anatomized.enumerate() {
            let mut meet = Meet::unknown(rows);
            for column in part.placed.labelled()? {
                meet.and(column, self.released(part));
            }
            let name = format!("{GROUP_PREFIX}{GROUP_COLUMN}{number}");
            columns.push(meet.into_column(&name));
        }
        Ok(columns)
    }
}
