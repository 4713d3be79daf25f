//! Whether the models of releases hold on their meet.

use std::borrow::Cow;
use std::collections::BTreeSet;

use hashbrown::HashMap;

use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, Lkc, MissingSensitive, PrivacyModel};
use pais_core::table::{Column, Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable};

use super::super::verification::VerifyError;
use super::super::{CountedTable, verify_groups, verify_lkc_model};
use super::RawRows;
use super::composed_release::{PlacedRelease, Published, Recoded};
use super::join::Meet;
use super::models::models_to_decide;
use super::subject_pairs::RowPair;

/// What was found on a meet.
pub(super) struct Decision {
    /// The positions of the releases.
    pub(super) joined: Vec<usize>,
    /// The position of a release whose model does not hold.
    pub(super) broken: Option<usize>,
    pub(super) smallest_group: u64,
    pub(super) greatest_confidence: f64,
    pub(super) exact: bool,
}

/// Rows to be decided together.
struct Join<'p, 'a> {
    /// The releases, each with its released row for each joined row, or `NOWHERE`.
    parts: Vec<(&'p PlacedRelease<'a>, Vec<u32>)>,
    /// The raw rows whose sensitive values are inferred, in one or more readings.
    sensitive_rows: Vec<Vec<u32>>,
    /// The person of each joined row.
    subjects: Option<Vec<u32>>,
}

/// Decides releases that have rows in common.
///
/// # Errors
/// [`VerifyError`] of a malformed table, and [`VerifyError::Stopped`].
pub(super) fn decide_rows(
    members: &[&PlacedRelease],
    raw: RawRows,
    cancellation: &Cancellation,
) -> Result<Decision, VerifyError> {
    let is_in = |row: &u32| members.iter().any(|member| member.has(*row as usize));
    let rows: Vec<u32> = (0..raw.rows as u32).filter(is_in).collect();
    let of_rows = |rows: Vec<u32>| {
        let released = |member: &PlacedRelease| {
            let released = rows.iter().map(|&row| member.row_of[row as usize]);
            released.collect::<Vec<u32>>()
        };
        let parts = members.iter().map(|&member| (member, released(member)));
        Join {
            parts: parts.collect(),
            subjects: subjects_of(raw, &rows),
            sensitive_rows: vec![rows],
        }
    };
    if !members.iter().all(|member| is_exact(member)) {
        // A row that a release lacks has a label of its own there.
        let mut decision = Decision::start(members);
        decision.decide(&of_rows(rows), raw, cancellation)?;
        return Ok(decision);
    }
    let mut decision = Decision::start(members);
    for part in parts_of_equal_presence(members, rows) {
        decision.decide(&of_rows(part), raw, cancellation)?;
    }
    Ok(decision)
}

/// Decides pairs of rows of one person in two releases.
///
/// # Errors
/// As [`decide_rows`].
pub(super) fn decide_pairs(
    members: [&PlacedRelease; 2],
    pairs: &[RowPair],
    raw: RawRows,
    cancellation: &Cancellation,
) -> Result<Decision, VerifyError> {
    let firsts: Vec<u32> = pairs.iter().map(|pair| pair.0).collect();
    let seconds: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
    let released = |member: &PlacedRelease, rows: &[u32]| {
        let released = rows.iter().map(|&row| member.row_of[row as usize]);
        released.collect::<Vec<u32>>()
    };
    let join = Join {
        parts: vec![
            (members[0], released(members[0], &firsts)),
            (members[1], released(members[1], &seconds)),
        ],
        subjects: subjects_of(raw, &firsts),
        sensitive_rows: vec![firsts, seconds],
    };
    let mut decision = Decision::start(&members);
    decision.decide(&join, raw, cancellation)?;
    decision.exact = false;
    Ok(decision)
}

/// Whether the meet of a release with others like it is decided exactly under its model.
fn is_exact(member: &PlacedRelease) -> bool {
    let is_set = |column: &&ReleasedColumn| matches!(column.form, Form::Set { .. });
    let has_sets = member
        .labelled()
        .is_ok_and(|columns| columns.iter().any(is_set));
    member.release.recoded == Recoded::OneCut
        && !has_sets
        && matches!(member.release.model, PrivacyModel::Lkc(_))
}

fn subjects_of(raw: RawRows, rows: &[u32]) -> Option<Vec<u32>> {
    let subjects = raw.subjects?;
    Some(rows.iter().map(|&row| subjects[row as usize]).collect())
}

/// The rows, apart by the releases that have them.
fn parts_of_equal_presence(members: &[&PlacedRelease], rows: Vec<u32>) -> Vec<Vec<u32>> {
    let mut parts: Vec<Vec<u32>> = Vec::new();
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    for row in rows {
        let bits = members.iter().enumerate();
        let bits = bits.map(|(number, member)| u64::from(member.has(row as usize)) << number);
        let pattern = bits.fold(0, |all, bit| all | bit);
        let number = *numbers.entry(pattern).or_insert_with(|| {
            parts.push(Vec::new());
            parts.len() - 1
        });
        parts[number].push(row);
    }
    parts
}

impl Decision {
    fn start(members: &[&PlacedRelease]) -> Self {
        Self {
            joined: members.iter().map(|member| member.position).collect(),
            broken: None,
            smallest_group: u64::MAX,
            greatest_confidence: 0.0,
            exact: true,
        }
    }

    /// Decides all models on a join. Once a model does not hold, the figures are those of it.
    fn decide(
        &mut self,
        join: &Join,
        raw: RawRows,
        cancellation: &Cancellation,
    ) -> Result<(), VerifyError> {
        let members: Vec<&PlacedRelease> = join.parts.iter().map(|(member, _)| *member).collect();
        let by_labels = members.iter().all(|member| is_exact(member));
        let meet = join.columns()?;
        for model in models_to_decide(&members) {
            let names: Vec<Box<str>> = meet
                .iter()
                .map(|column| &column.name)
                .filter(|name| is_known(model, name))
                .cloned()
                .collect();
            let decided = if by_labels {
                Cow::Borrowed(model.release.model)
            } else {
                Cow::Owned(by_groups(model.release.model))
            };
            // An adversary who knows all quasi-identifiers knows a group as a whole.
            self.exact &= by_labels || knows_all(model.release.model);
            for rows in &join.sensitive_rows {
                let sensitive = raw.sensitive.iter();
                let sensitive = sensitive.filter(|column| is_sensitive(model, &column.name));
                let known = meet.iter().filter(|column| names.contains(&column.name));
                let table = ReleasedTable {
                    name: "meet".into(),
                    rows: rows.len(),
                    columns: known
                        .cloned()
                        .chain(sensitive.map(|column| gathered(column, rows)))
                        .collect(),
                };
                let counted = CountedTable {
                    table: &table,
                    subjects: join.subjects.as_deref(),
                };
                let columns = (names.as_slice(), model.release.sensitive);
                let found = verify(counted, columns, &decided, cancellation)?;
                self.add(found, model.position);
            }
        }
        Ok(())
    }

    fn add(&mut self, found: Found, position: usize) {
        if self.broken.is_some() {
            return;
        }
        if !found.holds {
            self.broken = Some(position);
            self.smallest_group = found.smallest_group;
            self.greatest_confidence = found.greatest_confidence;
            return;
        }
        self.smallest_group = self.smallest_group.min(found.smallest_group);
        self.greatest_confidence = self.greatest_confidence.max(found.greatest_confidence);
    }
}

/// What a verifier found on a meet.
struct Found {
    holds: bool,
    smallest_group: u64,
    greatest_confidence: f64,
}

fn verify(
    table: CountedTable,
    (quasi_identifiers, sensitive): (&[Box<str>], &[Box<str>]),
    model: &PrivacyModel,
    cancellation: &Cancellation,
) -> Result<Found, VerifyError> {
    match model {
        PrivacyModel::Groups(model) => {
            let found = verify_groups(table, quasi_identifiers, sensitive, model, cancellation)?;
            Ok(Found {
                holds: found.holds,
                smallest_group: found.smallest_group,
                greatest_confidence: found.greatest_confidence,
            })
        }
        PrivacyModel::Lkc(model) => {
            verify_by_lkc(table, (quasi_identifiers, sensitive), model, cancellation)
        }
        PrivacyModel::KmAnonymity(model) => {
            let model = Lkc {
                l: None,
                k: model.k,
                c: Confidence::UNBOUNDED,
                sensitive_values: None,
                missing_sensitive: MissingSensitive::default(),
            };
            verify_by_lkc(table, (quasi_identifiers, sensitive), &model, cancellation)
        }
    }
}

fn verify_by_lkc(
    table: CountedTable,
    (quasi_identifiers, sensitive): (&[Box<str>], &[Box<str>]),
    model: &Lkc,
    cancellation: &Cancellation,
) -> Result<Found, VerifyError> {
    let found = verify_lkc_model(table, quasi_identifiers, sensitive, model, cancellation)?;
    let bounded = found.greatest_bounded_confidence;
    Ok(Found {
        holds: found.holds,
        smallest_group: found.smallest_group,
        greatest_confidence: bounded.unwrap_or(found.greatest_confidence),
    })
}

/// The model as a condition on every group of equal labels.
fn by_groups(model: &PrivacyModel) -> PrivacyModel {
    match model {
        PrivacyModel::Lkc(model) => PrivacyModel::Lkc(Lkc {
            l: None,
            ..model.clone()
        }),
        other => other.clone(),
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

/// Whether the adversary of a release's model may know a column of the meet. Groups are known of
/// every row whose quasi-identifiers are.
fn is_known(model: &PlacedRelease, name: &str) -> bool {
    let mut names = model.release.quasi_identifiers.iter();
    names.any(|known| **known == *name) || name.starts_with(GROUP_PREFIX)
}

fn is_sensitive(model: &PlacedRelease, name: &str) -> bool {
    let mut names = model.release.sensitive.iter();
    names.any(|sensitive| **sensitive == *name)
}

/// What the names of the columns of groups begin with. No declared column's name has a line break.
const GROUP_PREFIX: &str = "\n";

impl Join<'_, '_> {
    /// The meets of all columns that an adversary may know, and the groups of anatomized releases.
    fn columns(&self) -> Result<Vec<ReleasedColumn>, VerifyError> {
        let names: BTreeSet<&str> = self
            .parts
            .iter()
            .flat_map(|(member, _)| member.release.quasi_identifiers)
            .map(|name| &**name)
            .collect();
        let rows = self.sensitive_rows.first().map_or(0, Vec::len);
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let mut meet = Meet::unknown(rows);
            for (member, released) in &self.parts {
                // The exact values of an anatomized release are no news to this adversary: what it
                // discloses is the group.
                if member.release.recoded == Recoded::Anatomized {
                    continue;
                }
                if let Some(Published::Labels | Published::Raw) = member.published(name)
                    && let Some(column) = member.column(name)
                {
                    meet.and(column, released.iter().copied());
                }
            }
            columns.push(meet.into_column(name));
        }
        for (member, released) in &self.parts {
            if member.release.recoded != Recoded::Anatomized {
                continue;
            }
            let mut meet = Meet::unknown(rows);
            for column in member.labelled()? {
                meet.and(column, released.iter().copied());
            }
            let name = format!("{GROUP_PREFIX}{GROUP_COLUMN}{}", member.position);
            columns.push(meet.into_column(&name));
        }
        Ok(columns)
    }
}

/// The cells of some raw rows.
fn gathered(column: &ReleasedColumn, rows: &[u32]) -> ReleasedColumn {
    let codes = &column.column.codes;
    ReleasedColumn {
        name: column.name.clone(),
        form: column.form,
        column: Column {
            dictionary: column.column.dictionary.clone(),
            codes: rows.iter().map(|&row| codes[row as usize]).collect(),
        },
        missing: column.missing.clone(),
    }
}
