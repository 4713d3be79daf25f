//! Which persons of an edition are held back, so that all releases of a recipient together meet the model.
//!
//! Persons who are in the same releases form a set for an adversary who knows in which releases the victim is.
//! An edition divides each of these sets: persons who return, and persons who do not. In both parts every group
//! of persons with equal labels in at most *L* columns, in all rows of each release, needs *K* persons, and no
//! bounded value above *C*. Persons of a group that fails in the first part are held back. If a group fails in
//! the second part, the persons of this group who return to the edition are held back, which restores the
//! group. Groups are held back as a whole, whatever the value of one of their persons, and only the holder
//! learns how many rows wait.
//!
//! This only chooses. Whether the model holds is decided by [`pais_verify::compose`].

use std::borrow::Cow;
use std::iter;
use std::sync::{Mutex, PoisonError};

use hashbrown::{HashMap, HashSet};
use pais_core::cancellation::{Cancellation, Stopped};
use pais_core::look_alike::visible_text;
use pais_core::model::{Lkc, MissingSensitive, PrivacyModel};
use pais_core::parallel;
use pais_core::subsets::{self, choose};
use pais_core::table::{NULL_CODE, ReleasedColumn};
use pais_verify::{Composition, MOST_RELEASES, Recoded, VerifyError};

use crate::known::{KnownRelease, RawTable};

/// Maximum number of groups of persons and columns that are counted for one set of columns after another; above
/// it, groups have equal labels in all columns, which is sufficient.
const MOST_WORK: u64 = 1 << 27;

/// A set of releases of a history, as bits.
type ReleaseBits = u64;

/// An edition, and what one recipient has.
pub(crate) struct History<'a> {
    new: &'a KnownRelease,
    earlier: &'a [&'a KnownRelease],
    raw: &'a RawTable,
    /// The model of the edition, with its listed values in the form of the cells.
    model: PrivacyModel,
    /// The earlier releases that a person is in; none for a person who is only in the edition.
    presence: HashMap<u32, ReleaseBits>,
    /// The persons of the edition.
    persons: HashSet<u32>,
}

/// A person who is in the same earlier releases as others.
struct Member {
    person: u32,
    /// By column, the number of its labels in the earlier releases.
    before: Vec<u32>,
    /// The same with those of the edition; empty for one who is not in it.
    after: Vec<u32>,
    /// The labels of each row, if those of one release differ: then the labels of two columns together say
    /// more.
    rows: Vec<LabelledRow>,
}

/// The labels of a row of a person.
struct LabelledRow {
    release: u32,
    /// By column; [`NULL_CODE`] for one that the release does not have.
    labels: Vec<u32>,
}

/// Which labels of members are compared, and which of their rows are counted.
#[derive(Clone, Copy, PartialEq)]
enum Labels {
    Before,
    After,
}

impl Member {
    fn labels(&self, which: Labels) -> &[u32] {
        match which {
            Labels::Before => &self.before,
            Labels::After => &self.after,
        }
    }

    /// The key that members with equal labels in some columns have in common. `edition` is the number of the
    /// edition among the releases.
    fn key(&self, which: Labels, columns: &[usize], edition: u32) -> Vec<u32> {
        let labels = self.labels(which);
        let mut key: Vec<u32> = columns.iter().map(|&column| labels[column]).collect();
        let rows = self.rows.iter();
        let rows = rows.filter(|row| which == Labels::After || row.release != edition);
        let rows = rows.map(|row| {
            let labels = columns.iter().map(|&column| row.labels[column]);
            iter::once(row.release).chain(labels).collect()
        });
        let mut rows: Vec<Vec<u32>> = rows.collect();
        rows.sort_unstable();
        rows.dedup();
        // Labels that are the same in all rows of each release are in the key already.
        if rows.windows(2).any(|it| it[0][0] == it[1][0]) {
            key.extend(rows.into_iter().flatten());
        }
        key
    }
}

impl<'a> History<'a> {
    /// # Errors
    /// [`VerifyError::TooManyReleases`].
    pub(crate) fn new(
        new: &'a KnownRelease,
        earlier: &'a [&'a KnownRelease],
        raw: &'a RawTable,
    ) -> Result<Self, VerifyError> {
        if earlier.len() >= MOST_RELEASES {
            return Err(VerifyError::TooManyReleases {
                most: MOST_RELEASES,
            });
        }
        let mut presence: HashMap<u32, ReleaseBits> = HashMap::new();
        for (number, release) in earlier.iter().enumerate() {
            for &row in &release.source_rows {
                *presence.entry(raw.person(row)).or_default() |= 1 << number;
            }
        }
        let persons = new.source_rows.iter().map(|&row| raw.person(row));
        Ok(Self {
            new,
            earlier,
            raw,
            model: raw.canonical(&new.model),
            presence,
            persons: persons.collect(),
        })
    }

    fn presence_of(&self, person: u32) -> ReleaseBits {
        self.presence.get(&person).copied().unwrap_or_default()
    }

    /// The persons of the edition who are in an earlier release.
    pub(crate) fn returning(&self) -> impl Iterator<Item = u32> {
        let persons = self.persons.iter().copied();
        persons.filter(|person| self.presence_of(*person) != 0)
    }

    /// The persons whose rows in one release have different labels.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    pub(crate) fn varying(&self, cancellation: &Cancellation) -> Result<HashSet<u32>, VerifyError> {
        let members = self.divided(cancellation)?.into_values().flatten();
        let members = members.filter(|member| !member.rows.is_empty());
        Ok(members.map(|member| member.person).collect())
    }

    /// The persons of the edition among whom a composition was found broken, of this edition (at position 0)
    /// and the earlier releases in their order: persons who are in the same earlier releases as persons of a
    /// broken set. New persons only if no others are left.
    pub(crate) fn returning_among(&self, found: &Composition) -> HashSet<u32> {
        let bits = |positions: &[usize]| {
            let earlier = positions.iter().filter_map(|it| it.checked_sub(1));
            earlier.fold(0, |all: ReleaseBits, number| all | 1 << number)
        };
        let joined = bits(&found.joined);
        let broken: HashSet<ReleaseBits> = found.broken_among.iter().map(|it| bits(it)).collect();
        let persons = self.persons.iter().copied();
        let among = persons.filter(|&it| broken.contains(&(self.presence_of(it) & joined)));
        let (returning, fresh): (HashSet<u32>, HashSet<u32>) =
            among.partition(|&person| self.presence_of(person) != 0);
        if returning.is_empty() && self.returning().next().is_some() {
            fresh
        } else {
            returning
        }
    }

    /// The members of the sets of persons that the edition divides, by the earlier releases that have
    /// them; new persons too.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    fn divided(
        &self,
        cancellation: &Cancellation,
    ) -> Result<HashMap<ReleaseBits, Vec<Member>>, VerifyError> {
        let divided: HashSet<ReleaseBits> = self
            .persons
            .iter()
            .map(|it| self.presence_of(*it))
            .collect();
        let earlier = self.presence.iter();
        let earlier = earlier.filter(|(_, bits)| divided.contains(*bits));
        let mut numbers: HashMap<u32, usize> = HashMap::new();
        let mut members: Vec<Member> = Vec::new();
        let persons = earlier.map(|(person, _)| *person);
        for person in persons.chain(self.persons.iter().copied()) {
            numbers.entry(person).or_insert_with(|| {
                members.push(Member {
                    person,
                    before: Vec::new(),
                    after: Vec::new(),
                    rows: Vec::new(),
                });
                members.len() - 1
            });
        }
        let fixed = members.len();
        let mut varies = vec![false; fixed];
        for name in &self.new.quasi_identifiers {
            cancellation.check()?;
            let mut labels: Vec<Vec<(u32, u32)>> = vec![Vec::new(); fixed];
            for (number, release) in (0..).zip(self.earlier) {
                self.add_labels(name, number, release, &numbers, &mut labels);
            }
            let before = numbered(&mut labels);
            self.add_labels(name, self.edition(), self.new, &numbers, &mut labels);
            let after = numbered(&mut labels);
            for (varies, labels) in varies.iter_mut().zip(&labels) {
                *varies |= labels.windows(2).any(|it| it[0].0 == it[1].0);
            }
            for ((member, before), after) in members.iter_mut().zip(before).zip(after) {
                member.before.push(before);
                if self.persons.contains(&member.person) {
                    member.after.push(after);
                }
            }
        }
        numbers.retain(|_, member| varies[*member]);
        for (number, release) in (0..).zip(self.releases()) {
            cancellation.check()?;
            self.add_rows(number, release, &numbers, &mut members);
        }
        let mut sets: HashMap<ReleaseBits, Vec<Member>> = HashMap::new();
        for member in members {
            let presence = self.presence_of(member.person);
            sets.entry(presence).or_default().push(member);
        }
        Ok(sets)
    }

    /// The number of the edition among the releases: the last one.
    fn edition(&self) -> u32 {
        self.earlier.len() as u32
    }

    /// The earlier releases, and the edition.
    fn releases(&self) -> impl Iterator<Item = &'a KnownRelease> {
        self.earlier.iter().copied().chain([self.new])
    }

    /// Adds the rows of one release to those of the persons who have a number.
    fn add_rows(
        &self,
        number: u32,
        release: &KnownRelease,
        numbers: &HashMap<u32, usize>,
        members: &mut [Member],
    ) {
        if numbers.is_empty() {
            return;
        }
        let names = self.new.quasi_identifiers.iter();
        let columns = names.map(|name| release.table.column(name));
        let columns: Vec<Option<&ReleasedColumn>> = columns.collect();
        for (place, &row) in release.source_rows.iter().enumerate() {
            let Some(&member) = numbers.get(&self.raw.person(row)) else {
                continue;
            };
            let labels = columns.iter();
            let labels = labels.map(|it| it.map_or(NULL_CODE, |it| it.column.codes[place]));
            members[member].rows.push(LabelledRow {
                release: number,
                labels: labels.collect(),
            });
        }
    }

    /// Adds the labels of a column of one release to those of the persons who have a number.
    fn add_labels(
        &self,
        name: &str,
        number: u32,
        release: &KnownRelease,
        numbers: &HashMap<u32, usize>,
        labels: &mut [Vec<(u32, u32)>],
    ) {
        let Some(column) = release.table.column(name) else {
            return;
        };
        for (&row, &code) in release.source_rows.iter().zip(&column.column.codes) {
            if let Some(&member) = numbers.get(&self.raw.person(row)) {
                labels[member].push((number, code));
            }
        }
    }
}

/// The number of each set of labels; equal sets have equal numbers. Sorts the sets.
fn numbered(labels: &mut [Vec<(u32, u32)>]) -> Vec<u32> {
    let mut numbers: HashMap<Vec<(u32, u32)>, u32> = HashMap::new();
    let number = |labels: &mut Vec<(u32, u32)>| {
        labels.sort_unstable();
        labels.dedup();
        let fresh = numbers.len() as u32;
        *numbers.entry_ref(labels.as_slice()).or_insert(fresh)
    };
    labels.iter_mut().map(number).collect()
}

/// The condition that every group of persons has to meet.
struct Condition<'a> {
    k: u64,
    /// Number of columns that an adversary knows.
    known: usize,
    confidence: Option<&'a Lkc>,
}

impl<'a> Condition<'a> {
    fn of(history: &'a History<'_>) -> Self {
        let columns = history.new.quasi_identifiers.len();
        let mut releases = history.releases();
        // Where labels overlap, groups are decided by all their labels.
        let is_one_cut = releases.all(|release| release.recoded == Recoded::OneCut);
        match &history.model {
            PrivacyModel::Lkc(model) => Self {
                k: model.k.get(),
                known: match model.l {
                    Some(l) if is_one_cut => columns.min(l.get() as usize),
                    _ => columns,
                },
                confidence: (!model.c.is_unbounded()).then_some(model),
            },
            model => Self {
                k: model.k().get(),
                known: columns,
                confidence: None,
            },
        }
    }
}

/// The sensitive values of persons that a model bounds, by release and column.
struct BoundedValues<'a> {
    model: &'a Lkc,
    /// By person, the release, the column and the value of each of its rows; `None` for a value that
    /// is not bounded.
    of_person: HashMap<u32, Vec<Cell>>,
    /// Number of the edition among the releases.
    edition: u32,
}

/// A sensitive cell.
#[derive(Clone, Copy)]
struct Cell {
    release: u32,
    column: u32,
    /// The number of the value; `None` if it is not bounded.
    bounded: Option<u32>,
}

/// How the cells of a value count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Not at all: they are missing.
    Excluded,
    /// The model does not bound the value.
    Unbounded,
    /// The model bounds the value with this number.
    Bounded(u32),
}

/// By code of a sensitive column, and last for null, how its cells count, as the verifier reads them. Texts that look
/// alike are one value.
fn readings(column: &ReleasedColumn, model: &Lkc) -> Vec<Reading> {
    let words = column.missing.iter().map(|word| visible_text(word));
    let words: HashSet<Cow<str>> = words.collect();
    let listed = model.sensitive_values.as_ref().map(|listed| {
        let listed = listed.iter().filter(|(name, _)| **name == *column.name);
        let values = listed.flat_map(|(_, values)| values);
        values.map(|value| visible_text(value)).collect()
    });
    let listed: Option<HashSet<Cow<str>>> = listed;
    let missing = match model.missing_sensitive {
        MissingSensitive::Excluded => Reading::Excluded,
        MissingSensitive::Counted => Reading::Unbounded,
    };
    let mut numbers: HashMap<Cow<str>, u32> = HashMap::new();
    let texts = column.column.dictionary.iter();
    let values = texts.map(|text| {
        let text = visible_text(text);
        if words.contains(&text) {
            return missing;
        }
        if listed
            .as_ref()
            .is_some_and(|listed| !listed.contains(&text))
        {
            return Reading::Unbounded;
        }
        let fresh = numbers.len() as u32;
        Reading::Bounded(*numbers.entry(text).or_insert(fresh))
    });
    values.chain([missing]).collect()
}

impl<'a> BoundedValues<'a> {
    fn new(history: &History<'_>, members: &HashSet<u32>, model: &'a Lkc) -> Self {
        let mut of_person: HashMap<u32, Vec<Cell>> = HashMap::new();
        let releases = history.releases();
        let names = history.new.sensitive.iter();
        let columns = names.filter_map(|name| history.raw.column(name));
        let columns: Vec<_> = columns.map(|it| (it, readings(it, model))).collect();
        for (release, known) in (0..).zip(releases) {
            for &row in &known.source_rows {
                let person = history.raw.person(row);
                if !members.contains(&person) {
                    continue;
                }
                let cells = of_person.entry(person).or_default();
                for (number, (column, readings)) in (0..).zip(&columns) {
                    let code = column.column.codes[row as usize] as usize;
                    let bounded = match readings[code.min(readings.len() - 1)] {
                        Reading::Excluded => continue,
                        Reading::Unbounded => None,
                        Reading::Bounded(value) => Some(value),
                    };
                    cells.push(Cell {
                        release,
                        column: number,
                        bounded,
                    });
                }
            }
        }
        Self {
            model,
            of_person,
            edition: history.edition(),
        }
    }

    /// The cells of a person in the releases of `labels`.
    fn cells(&self, person: u32, labels: Labels) -> impl Iterator<Item = Cell> {
        let cells = self.of_person.get(&person).into_iter().flatten().copied();
        cells.filter(move |cell| labels == Labels::After || cell.release != self.edition)
    }
}

/// The persons of an edition in groups that fail, among those that no earlier release has, with nobody held back.
///
/// # Errors
/// [`VerifyError::Stopped`].
pub(crate) fn failing_alone(
    history: &History<'_>,
    cancellation: &Cancellation,
) -> Result<HashSet<u32>, VerifyError> {
    let members = history.divided(cancellation)?.remove(&0);
    let members = members.unwrap_or_default();
    let rule = GroupRule::new(history, &history.persons, cancellation);
    let all: Vec<&Member> = members.iter().collect();
    rule.failing(&all, &all, Labels::After)
}

/// The persons of the edition who are held back.
///
/// # Errors
/// [`VerifyError::Stopped`].
pub(crate) fn persons_to_hold_back(
    history: &History<'_>,
    cancellation: &Cancellation,
) -> Result<HashSet<u32>, VerifyError> {
    let mut held_back = HashSet::new();
    // If each person has one row, the model of the edition alone says the same about new persons.
    let has_several_rows = history.persons.len() < history.new.source_rows.len();
    if !has_several_rows && history.returning().next().is_none() {
        return Ok(held_back);
    }
    let mut sets = history.divided(cancellation)?;
    let members = sets.values().flatten();
    let members = members.map(|member| member.person).collect();
    let rule = GroupRule::new(history, &members, cancellation);
    let fresh = sets.remove(&0).unwrap_or_default();
    let mut is_divided = has_several_rows;
    for (&presence, members) in &sets {
        let division = Division {
            presence,
            members,
            rule: &rule,
        };
        let returning = |member: &Member| history.persons.contains(&member.person);
        let kept = division.kept(returning)?;
        is_divided |= !kept.is_empty();
        let persons = members.iter().filter(|it| returning(it));
        let persons = persons.map(|member| member.person);
        held_back.extend(persons.filter(|person| !kept.contains(person)));
    }
    if is_divided {
        // Persons who are only in this edition are a set of their own, apart from those who return.
        let division = Division {
            presence: 0,
            members: &fresh,
            rule: &rule,
        };
        let kept = division.kept(|_| true)?;
        let persons = fresh.iter().map(|member| member.person);
        held_back.extend(persons.filter(|person| !kept.contains(person)));
    }
    Ok(held_back)
}

/// A set of persons that an edition divides.
struct Division<'a> {
    /// The earlier releases that have the persons.
    presence: ReleaseBits,
    members: &'a [Member],
    rule: &'a GroupRule<'a>,
}

/// The requirement on every group of persons.
struct GroupRule<'a> {
    condition: Condition<'a>,
    bounded: Option<BoundedValues<'a>>,
    /// The number of the edition among the releases.
    edition: u32,
    cancellation: &'a Cancellation,
}

impl<'a> GroupRule<'a> {
    fn new(
        history: &'a History<'_>,
        members: &HashSet<u32>,
        cancellation: &'a Cancellation,
    ) -> Self {
        let condition = Condition::of(history);
        let bounded = condition.confidence;
        Self {
            bounded: bounded.map(|model| BoundedValues::new(history, members, model)),
            condition,
            edition: history.edition(),
            cancellation,
        }
    }
}

impl Division<'_> {
    /// The returning persons who can be in the edition.
    fn kept(&self, returning: impl Fn(&Member) -> bool) -> Result<HashSet<u32>, VerifyError> {
        let mut kept: Vec<&Member> = self.members.iter().filter(|it| returning(it)).collect();
        loop {
            let before = kept.len();
            let failing = self.rule.failing(&kept, &kept, Labels::After)?;
            kept.retain(|member| !failing.contains(&member.person));
            // New persons who are held back are in no release.
            if self.presence != 0 {
                let in_edition: HashSet<u32> = kept.iter().map(|member| member.person).collect();
                let others = self.members.iter();
                let others = others.filter(|member| !in_edition.contains(&member.person));
                let others: Vec<&Member> = others.collect();
                let failing = self.rule.failing(&others, &kept, Labels::Before)?;
                kept.retain(|member| !failing.contains(&member.person));
            }
            if kept.len() == before {
                return Ok(kept.into_iter().map(|member| member.person).collect());
            }
        }
    }
}

impl GroupRule<'_> {
    /// The `probed` members whose labels are those of a failing group of the `counted` members, for any set of
    /// known columns.
    fn failing(
        &self,
        counted: &[&Member],
        probed: &[&Member],
        labels: Labels,
    ) -> Result<HashSet<u32>, VerifyError> {
        let width = counted.first().map_or(0, |it| it.labels(labels).len());
        if width == 0 {
            return Ok(HashSet::new());
        }
        let counted = self.alike(counted, labels, |group, member| {
            self.count(group, member, labels)
        });
        let probed = self.alike(probed, labels, |persons: &mut Vec<u32>, member| {
            persons.push(member.person);
        });
        let members = counted.len().max(probed.len()) as u64;
        let known = self.condition.known.min(width);
        // All columns together if there are too many sets of those that an adversary may know.
        let is_too_much = choose(width, known).saturating_mul(members) > MOST_WORK;
        let known = if is_too_much { width } else { known };
        let found = Mutex::new(HashSet::new());
        // A task for each first column.
        let done = parallel::map(0..=width - known, |first| {
            let mut columns: Vec<usize> = (first..first + known).collect();
            loop {
                self.cancellation.check()?;
                let key = |member: &Member| member.key(labels, &columns, self.edition);
                let mut groups: HashMap<Vec<u32>, Group> = HashMap::new();
                for (member, part) in &counted {
                    groups.entry(key(member)).or_default().add(part);
                }
                let fails = |member: &Member| {
                    let group = groups.get(&key(member));
                    group.is_some_and(|group| !self.allows(group))
                };
                let failing = probed.iter().filter(|(member, _)| fails(member));
                let failing: Vec<&Vec<u32>> = failing.map(|(_, persons)| persons).collect();
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.extend(failing.into_iter().flatten());
                if subsets::next(&mut columns[1..], width).is_none() {
                    return Ok(());
                }
            }
        });
        done.into_iter().collect::<Result<(), Stopped>>()?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Merges members with equal labels in all columns into one, with the sum of all by `add`.
    fn alike<'m, T: Default>(
        &self,
        members: &[&'m Member],
        labels: Labels,
        add: impl Fn(&mut T, &Member),
    ) -> Vec<(&'m Member, T)> {
        let mut alike: HashMap<Vec<u32>, (&Member, T)> = HashMap::new();
        let width = members.first().map_or(0, |it| it.labels(labels).len());
        let columns: Vec<usize> = (0..width).collect();
        for &member in members {
            let key = member.key(labels, &columns, self.edition);
            let (_, made) = alike.entry(key).or_insert_with(|| (member, T::default()));
            add(made, member);
        }
        alike.into_values().collect()
    }

    /// Adds a person to a group.
    fn count(&self, group: &mut Group, member: &Member, labels: Labels) {
        group.persons += 1;
        let bounded = self.bounded.iter();
        for cell in bounded.flat_map(|it| it.cells(member.person, labels)) {
            group.rows.add((cell.release, cell.column), 1);
            if let Some(value) = cell.bounded {
                group.values.add((cell.release, cell.column, value), 1);
            }
        }
    }

    fn allows(&self, group: &Group) -> bool {
        let mut values = group.values.0.iter();
        let exceeds = values.any(|(value, holding)| {
            let (release, column, _) = *value;
            let rows = group.rows.of((release, column));
            let model = self.bounded.as_ref().map(|bounded| bounded.model);
            model.is_some_and(|model| model.c.is_exceeded_by(*holding, rows))
        });
        group.persons >= self.condition.k && !exceeds
    }
}

/// Persons with equal labels.
#[derive(Default)]
struct Group {
    persons: u64,
    /// Rows that the share of a value is measured on, by release and column.
    rows: Counts<(u32, u32)>,
    /// Rows with a bounded value, by release, column and value.
    values: Counts<(u32, u32, u32)>,
}

impl Group {
    fn add(&mut self, other: &Self) {
        self.persons += other.persons;
        for (place, rows) in &other.rows.0 {
            self.rows.add(*place, *rows);
        }
        for (value, rows) in &other.values.0 {
            self.values.add(*value, *rows);
        }
    }
}

/// Counts of few keys, which ascend.
struct Counts<K>(Vec<(K, u64)>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord> Counts<K> {
    fn place(&self, key: &K) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(key))
    }

    fn of(&self, key: K) -> u64 {
        self.place(&key).map_or(0, |at| self.0[at].1)
    }

    fn add(&mut self, key: K, by: u64) {
        match self.place(&key) {
            Ok(at) => self.0[at].1 += by,
            Err(at) => self.0.insert(at, (key, by)),
        }
    }
}

#[cfg(test)]
mod tests {
    use pais_core::cancellation::Cancellation;
    use pais_core::model::{Lkc, MissingSensitive};
    use pais_core::table::{Column, Form, ReleasedColumn};
    use pais_verify::VerifyError;

    use super::{Condition, GroupRule, Labels, Member, Reading, readings};

    /// The verifier counts texts that look alike as one value.
    #[test]
    fn texts_that_look_like_a_listed_value_are_bounded() {
        let texts = ["HIV", "flu", "HIV\u{200b}", "?\u{200b}"];
        let column = ReleasedColumn {
            name: "ill".into(),
            form: Form::Text,
            column: Column {
                dictionary: texts.map(Box::from).to_vec(),
                codes: (0..4).collect(),
            },
            missing: vec!["?".into()],
        };
        let mut model = Lkc::new(1, 2, 0.5).unwrap();
        let listed = [("ill".to_owned(), vec!["HIV".to_owned()])];
        model.sensitive_values = Some(listed.into());
        let (hiv, flu) = (Reading::Bounded(0), Reading::Unbounded);
        let missing = Reading::Excluded;
        model.missing_sensitive = MissingSensitive::Excluded;
        assert_eq!(readings(&column, &model), [hiv, flu, hiv, missing, missing]);
        model.missing_sensitive = MissingSensitive::Counted;
        assert_eq!(readings(&column, &model), [hiv, flu, hiv, flu, flu]);
        model.sensitive_values = None;
        let (flu, missing) = (Reading::Bounded(1), Reading::Unbounded);
        assert_eq!(readings(&column, &model), [hiv, flu, hiv, missing, missing]);
    }

    /// One person with 100 columns, of which 5 are known: 75 million sets of columns, which are not listed.
    #[test]
    fn a_request_to_stop_ends_the_visit_of_many_sets_at_once() {
        let member = Member {
            person: 0,
            before: vec![0; 100],
            after: Vec::new(),
            rows: Vec::new(),
        };
        let cancellation = Cancellation::new();
        cancellation.cancel();
        let rule = GroupRule {
            condition: Condition {
                k: 2,
                known: 5,
                confidence: None,
            },
            bounded: None,
            edition: 1,
            cancellation: &cancellation,
        };
        let found = rule.failing(&[&member], &[&member], Labels::Before);
        assert!(matches!(found, Err(VerifyError::Stopped)));
    }
}
