//! Makes the definition of a dataset from what is known of its columns.
//!
//! Each column is first examined by itself. Then the columns are compared: which key identifies the persons,
//! which column is the outcome, which texts repeat a code, which columns are one set.

use std::collections::BTreeMap;

use pais_core::definition::{ColumnKind, ColumnRole, DatasetDefinition, GeneratedHierarchy};
use pais_core::name_meaning::NameMeaning;
use pais_core::safe_harbor::SafeHarborCategory;
use pais_core::schema::{Schema, SchemaError, SchemaErrorKind};
use pais_core::taxonomy::round_range;
use serde_json::{Map, Value, json};

use super::doubt::{AS_MISSING, AS_VALUE, Doubt, OpenQuestion};
use super::families::{self, Family};
use super::hierarchy::{self, KindAndRole};
use super::kind::{self, FileHabits, ProposedKind};
use super::numbers::NumberRange;
use super::observed::{FileColumn, Observed};
use super::pairs::Pairs;
use super::role::{self, OutcomeRank, RoleProposal, SubjectRank};
use super::{rounding, safe_harbor};

/// What is known about a whole file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileFacts {
    pub(super) habits: FileHabits,
    /// Rows that were read.
    pub(super) rows: u64,
    /// Whether these are all rows.
    pub(super) is_whole: bool,
}

/// What is proposed for a file.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    pub(super) dataset: DatasetDefinition,
    /// Sentences about each column, in the order of the dataset.
    pub(super) reasons: Vec<(String, Vec<String>)>,
    pub(super) doubts: Vec<Doubt>,
    pub(super) safe_harbor: Vec<(String, SafeHarborCategory)>,
}

/// Answers to doubts: column to a choice for each of its doubts.
pub(super) type Answers = BTreeMap<String, Vec<String>>;

/// Proposes a definition.
///
/// # Errors
/// If the names of the columns make no schema.
pub(super) fn propose(
    name: &str,
    columns: &[FileColumn],
    pairs: &Pairs,
    file: FileFacts,
    answers: &Answers,
) -> Result<Proposal, SchemaError> {
    let mut plans: Vec<Plan<'_>> = columns
        .iter()
        .map(|column| Plan::new(column, file))
        .collect();
    choose_subject(&mut plans);
    drop_other_keys(&mut plans, pairs);
    choose_outcome(&mut plans);
    tell_texts_of_codes(&mut plans, pairs);
    for plan in &mut plans {
        for answer in answers.get(&plan.column.name).into_iter().flatten() {
            plan.take(answer);
        }
    }
    let is_label = |position: usize| {
        let plan: &Plan<'_> = &plans[position];
        !plan.is_answered
            && plan.role != ColumnRole::Subject
            && families::is_label(plan.kind.kind, &plan.column.observed, plan.meaning)
    };
    let families = families::find(columns, is_label);
    let doubts = doubts(&plans, &families);
    let mut proposed = Proposed::default();
    for (position, plan) in plans.into_iter().enumerate() {
        let family = families.iter().find(|it| it.columns.contains(&position));
        match family {
            None => proposed.add(plan, file),
            Some(family) if family.columns.iter().min() == Some(&position) => {
                proposed.add_set(family, columns);
            }
            Some(_) => {}
        }
    }
    let Proposed {
        mut fields,
        mut reasons,
        safe_harbor,
    } = proposed;
    let dataset = accepted(name, &mut fields, &mut reasons)?;
    Ok(Proposal {
        dataset,
        reasons,
        doubts,
        safe_harbor,
    })
}

/// What is proposed for a column before the columns are compared.
struct Plan<'c> {
    column: &'c FileColumn,
    meaning: NameMeaning,
    kind: ProposedKind,
    role: ColumnRole,
    reasons: Vec<String>,
    question: Option<OpenQuestion>,
    /// Values that may stand for missing ones, until somebody says that they are values.
    placeholders: Vec<&'static str>,
    /// Whether they stand for missing ones, by an answer.
    are_missing: bool,
    subject: Option<SubjectRank>,
    outcome: Option<OutcomeRank>,
    is_answered: bool,
}

impl<'c> Plan<'c> {
    fn new(column: &'c FileColumn, file: FileFacts) -> Self {
        let mut reasons = Vec::new();
        let observed = &column.observed;
        let meaning = NameMeaning::of(&column.name);
        let separator = column.list_separator;
        let kind = kind::propose(observed, meaning, file.habits, separator, &mut reasons);
        counts(observed, &mut reasons);
        let form = file.habits.number_form;
        let RoleProposal {
            role,
            reason,
            mut question,
            subject,
            outcome,
        } = role::propose(observed, meaning, kind.kind, form);
        reasons.push(reason.to_owned());
        if let (Some(format), Some(other)) = (kind.format, kind.other_format) {
            let formats = [format, other];
            question = Some(OpenQuestion::DayOrMonth { formats });
        } else if kind.format.is_some_and(|format| format.contains("%y"))
            && role != ColumnRole::Identifier
        {
            question = Some(OpenQuestion::Century { proposed: role });
        }
        let placeholders = placeholders(observed, meaning, kind.kind, form);
        Self {
            column,
            meaning,
            kind,
            role,
            reasons,
            question,
            placeholders,
            are_missing: false,
            subject,
            outcome,
            is_answered: false,
        }
    }

    /// Gives the column another role than the one proposed for it alone.
    fn give(&mut self, role: ColumnRole, reason: impl Into<String>) {
        self.role = role;
        self.reasons.push(reason.into());
    }

    /// Takes the answer to a doubt. Other text than a choice changes nothing.
    fn take(&mut self, answer: &str) {
        match answer {
            AS_VALUE => return self.placeholders.clear(),
            AS_MISSING => {
                self.are_missing = true;
                let reason = "that values stand for missing ones is the answer to a question";
                return self.reasons.push(reason.to_owned());
            }
            _ => {}
        }
        let role: Result<ColumnRole, _> = serde_json::from_value(json!(answer));
        let is_asked = self.question == Some(OpenQuestion::ItemsOrValue);
        if is_asked && matches!(role, Ok(ColumnRole::Sensitive)) {
            self.kind = ProposedKind::of(ColumnKind::Categorical);
        }
        let is_one_value = matches!(
            self.kind.kind,
            ColumnKind::Categorical | ColumnKind::Numeric
        );
        match (role, self.kind.format, self.kind.other_format) {
            (Ok(role), ..) if is_one_value || self.role != ColumnRole::Sensitive => {
                self.give(role, "its role is the answer to a question");
            }
            (_, Some(format), Some(other)) if answer == other => {
                self.kind.format = Some(other);
                self.kind.other_format = Some(format);
                let reason = "the order of day and month is the answer to a question";
                self.reasons.push(reason.to_owned());
            }
            (_, Some(format), _) if answer == format => {}
            _ => return,
        }
        self.question = None;
        self.is_answered = true;
    }

    /// The questions that are open.
    fn questions(&self) -> impl Iterator<Item = OpenQuestion> {
        let is_kept = !matches!(self.role, ColumnRole::Identifier | ColumnRole::Subject);
        let is_open = is_kept && !self.placeholders.is_empty() && !self.are_missing;
        let values = self.placeholders.clone();
        let placeholders = is_open.then_some(OpenQuestion::Placeholders { values });
        self.question.clone().into_iter().chain(placeholders)
    }

    /// Whether most values are phrases, or the name says that they are texts.
    fn is_text(&self) -> bool {
        let observed = &self.column.observed;
        self.meaning.is_description || 2 * observed.phrases > observed.rows
    }
}

/// The values of a column that may stand for missing ones.
fn placeholders(
    column: &Observed,
    name: NameMeaning,
    kind: ColumnKind,
    form: usize,
) -> Vec<&'static str> {
    let found = &column.placeholders;
    match (kind, column.numbers.range(form)) {
        (ColumnKind::Date | ColumnKind::Datetime, _) => found.days(column.rows),
        (ColumnKind::Numeric, Some(others)) => found.far_numbers(column.rows, others),
        (ColumnKind::Categorical, _) if role::is_postal(column, name) => {
            found.postal_codes(column.rows)
        }
        _ => Vec::new(),
    }
}

/// Gives the key that fits best the role of the subject. Other keys stay identifiers.
fn choose_subject(plans: &mut [Plan<'_>]) {
    let ranks = plans.iter().enumerate();
    let ranks = ranks.filter_map(|(position, plan)| Some((plan.subject?, position)));
    // Of keys that fit equally, the first one.
    let best = ranks.max_by_key(|&(rank, position)| (rank, std::cmp::Reverse(position)));
    let Some((rank, chosen)) = best else { return };
    match rank {
        SubjectRank::PersonOnce => {
            ask_for_other_files(plans);
            return;
        }
        SubjectRank::Stay => {
            ask_for_persons(plans, chosen);
            return;
        }
        SubjectRank::Repeats | SubjectRank::Person => {}
    }
    // A key that has each row once may be that of the persons.
    let has_other = plans.iter().enumerate().any(|(position, plan)| {
        let is_unnamed = plan.meaning.is_key && !plan.meaning.is_event;
        position != chosen && is_unnamed && plan.column.observed.is_all_distinct()
    });
    for (position, plan) in plans.iter_mut().enumerate() {
        if position == chosen && rank == SubjectRank::Repeats && has_other {
            let proposed = ColumnRole::Identifier;
            plan.question = Some(OpenQuestion::PersonsKey { proposed });
        } else if position == chosen {
            let reason = "its values repeat: several rows are about one person";
            plan.give(ColumnRole::Subject, reason);
            let proposed = ColumnRole::Subject;
            plan.question =
                (rank == SubjectRank::Repeats).then_some(OpenQuestion::PersonsKey { proposed });
        } else if plan.subject > Some(SubjectRank::Stay) {
            plan.reasons
                .push("another column is the subject".to_owned());
        }
    }
}

/// Asks about the first key of persons that no row is without, as a subject must be.
fn ask_for_other_files(plans: &mut [Plan<'_>]) {
    let asked = plans.iter_mut().find(|plan| {
        let is_of_persons = plan.subject == Some(SubjectRank::PersonOnce);
        is_of_persons && plan.column.observed.missing_rows() == 0
    });
    if let Some(plan) = asked {
        plan.question = Some(OpenQuestion::PersonsElsewhere);
    }
}

/// Asks about a key of stays, unless a key of persons is there that some rows are without.
fn ask_for_persons(plans: &mut [Plan<'_>], stays: usize) {
    if plans.iter().any(|plan| plan.meaning.is_key_of_persons()) {
        return;
    }
    let plan = &mut plans[stays];
    if !plan.column.observed.is_all_distinct() {
        let reason =
            "several rows are about one stay, and no column says which person they are about";
        plan.give(ColumnRole::Subject, reason);
    }
    let proposed = plan.role;
    plan.question = Some(OpenQuestion::StaysKey { proposed });
}

/// Drops the columns that say the same as the subject, such as the number of an insurance card, unless their
/// name or their kind says what others know.
fn drop_other_keys(plans: &mut [Plan<'_>], pairs: &Pairs) {
    let is_subject = |plan: &Plan<'_>| plan.role == ColumnRole::Subject;
    let Some(subject) = plans.iter().position(is_subject) else {
        return;
    };
    let name = plans[subject].column.name.clone();
    for position in pairs.same_as(subject) {
        let plan = &mut plans[position];
        let is_open = matches!(
            plan.role,
            ColumnRole::QuasiIdentifier | ColumnRole::Insensitive
        );
        if is_open && role::can_be_key(&plan.column.observed, plan.meaning, plan.kind.kind) {
            let reason =
                format!("each of its values is in the rows of one `{name}`: it is another key");
            plan.give(ColumnRole::Identifier, reason);
            plan.question = None;
            plan.outcome = None;
        }
    }
}

/// Gives the column that fits best the role of the class, of which a dataset has one.
fn choose_outcome(plans: &mut [Plan<'_>]) {
    let last = plans.len().saturating_sub(1);
    let ranks = plans.iter().enumerate();
    let ranks = ranks.filter_map(|(position, plan)| Some((plan.outcome?, position)));
    let possible = ranks.filter(|&(rank, at)| rank > OutcomeRank::TwoValues || at == last);
    let Some((rank, chosen)) = possible.max() else {
        return;
    };
    let plan = &mut plans[chosen];
    let reason = match rank {
        OutcomeRank::Outcome => "by its name and its few values it is the outcome of the rows",
        OutcomeRank::Result => "a status or result of few values is the outcome of the rows",
        OutcomeRank::TwoValues => "the last column has two values, as an outcome does",
    };
    plan.give(ColumnRole::Class, reason);
    plan.question = (rank < OutcomeRank::Outcome).then_some(OpenQuestion::Outcome);
}

/// Gives a code and its text one role, or drops the text where the code is generalized.
fn tell_texts_of_codes(plans: &mut [Plan<'_>], pairs: &Pairs) {
    let is_open = |plan: &Plan<'_>| {
        let is_label = plan.kind.kind == ColumnKind::Categorical;
        is_label && !matches!(plan.role, ColumnRole::Identifier | ColumnRole::Subject)
    };
    for [one, other] in pairs.found() {
        if !is_open(&plans[one]) || !is_open(&plans[other]) {
            continue;
        }
        let [code, text] = match (plans[one].is_text(), plans[other].is_text()) {
            (false, true) => [one, other],
            (true, false) => [other, one],
            _ => continue,
        };
        let role = stricter(plans[code].role, plans[text].role);
        let name = plans[code].column.name.clone();
        if plans[code].role != role {
            plans[code].give(role, "its text has this role");
        }
        plans[code].question = None;
        let text = &mut plans[text];
        if role == ColumnRole::QuasiIdentifier {
            let reason =
                format!("it says the same as `{name}`, which is generalized: it is dropped");
            text.give(ColumnRole::Identifier, reason);
        } else {
            text.give(
                role,
                format!("it says the same as `{name}`, so it has its role"),
            );
        }
        let role = text.role;
        text.question =
            (role != ColumnRole::Identifier).then_some(OpenQuestion::TextOf { code: name, role });
    }
}

/// The stricter of two roles, with which a release discloses less; a class is released unchanged.
fn stricter(one: ColumnRole, other: ColumnRole) -> ColumnRole {
    let order = [ColumnRole::QuasiIdentifier, ColumnRole::Sensitive];
    let found = order
        .into_iter()
        .find(|role| *role == one || *role == other);
    found.unwrap_or(ColumnRole::Insensitive)
}

/// A question that is asked about a column, and about others in the same way.
struct Asked<'p> {
    question: OpenQuestion,
    column: &'p str,
    also: Vec<String>,
}

/// The open questions. Columns with the same few values share one question.
fn doubts(plans: &[Plan<'_>], families: &[Family]) -> Vec<Doubt> {
    let is_in_set = |position: usize| families.iter().any(|it| it.columns.contains(&position));
    let mut all: Vec<Asked<'_>> = Vec::new();
    let mut with_values: BTreeMap<(bool, Vec<&str>), usize> = BTreeMap::new();
    let open = plans.iter().enumerate().filter(|(at, _)| !is_in_set(*at));
    let questions = open.flat_map(|(_, plan)| plan.questions().map(move |it| (plan, it)));
    for (plan, question) in questions {
        let column = plan.column.name.as_str();
        let kept = plan.column.observed.kept.as_ref();
        let values: Option<Vec<&str>> = match &question {
            OpenQuestion::KnownOrNot => kept.map(|it| it.keys().map(AsRef::as_ref).collect()),
            OpenQuestion::Placeholders { values } => Some(values.clone()),
            _ => None,
        };
        if let Some(values) = values {
            let key = (question == OpenQuestion::KnownOrNot, values);
            if let Some(&at) = with_values.get(&key) {
                all[at].also.push(column.to_owned());
                continue;
            }
            with_values.insert(key, all.len());
        }
        let also = Vec::new();
        all.push(Asked {
            question,
            column,
            also,
        });
    }
    let all = all.into_iter();
    all.map(|asked| asked.question.doubt(asked.column, asked.also))
        .collect()
}

/// The columns of the dataset, as far as they are proposed.
#[derive(Default)]
struct Proposed {
    fields: Vec<Map<String, Value>>,
    reasons: Vec<(String, Vec<String>)>,
    safe_harbor: Vec<(String, SafeHarborCategory)>,
}

impl Proposed {
    fn add(&mut self, plan: Plan<'_>, file: FileFacts) {
        let Plan {
            column,
            meaning,
            kind,
            role,
            mut reasons,
            placeholders,
            are_missing,
            ..
        } = plan;
        let FileColumn { name, observed, .. } = column;
        let mut fields = Map::new();
        fields.insert("name".to_owned(), json!(name));
        fields.insert("role".to_owned(), json!(role));
        let mut made = None;
        // What is dropped or hashed needs no kind.
        if !matches!(role, ColumnRole::Identifier | ColumnRole::Subject) {
            kind_fields(&kind, &mut fields);
            let missing: &[_] = if are_missing { &placeholders } else { &[] };
            if let Some(words) = observed.missing.declared(missing) {
                fields.insert("missing".to_owned(), json!(words));
            }
            let proposed = KindAndRole {
                kind: kind.kind,
                role,
            };
            let form = file.habits.number_form;
            // What may stand for a missing value does not make ages those of months.
            let range = if placeholders.is_empty() {
                observed.range(form)
            } else {
                observed.numbers.range(form)
            };
            made = hierarchy::propose(
                observed,
                meaning,
                proposed,
                range,
                file.is_whole,
                &mut reasons,
            );
            match &made {
                Some(made) => {
                    fields.insert("taxonomy".to_owned(), json!(made));
                }
                None => {
                    let range = if are_missing {
                        range
                    } else {
                        observed.range(form)
                    };
                    range_fields(range, proposed, file, &mut fields, &mut reasons);
                }
            }
            round_field(observed, proposed, file, &mut fields, &mut reasons);
        }
        if name.parse::<f64>().is_ok() {
            let reason = "its name is a number: check whether the file has a row with the names of the \
                          columns";
            reasons.push(reason.to_owned());
        }
        if !file.is_whole {
            reasons.push(format!(
                "only the first {} rows were read, and the file has more",
                file.rows
            ));
        }
        let category = safe_harbor::category(name, observed, role, kind.kind, made.as_ref());
        self.safe_harbor
            .extend(category.map(|it| (name.clone(), it)));
        self.fields.push(fields);
        self.reasons.push((name.clone(), reasons));
    }

    fn add_set(&mut self, family: &Family, columns: &[FileColumn]) {
        let members = || family.columns.iter().map(|&position| &columns[position]);
        let from: Vec<&str> = members().map(|column| column.name.as_str()).collect();
        let mut fields = Map::new();
        fields.insert("name".to_owned(), json!(family.name));
        fields.insert("role".to_owned(), json!(ColumnRole::QuasiIdentifier));
        fields.insert("kind".to_owned(), json!(ColumnKind::Set));
        fields.insert("from".to_owned(), json!(from));
        if let Some(separator) = family.separator {
            fields.insert("separator".to_owned(), json!(separator));
        }
        let mut words: Vec<&str> = Vec::new();
        for word in members().flat_map(|it| it.observed.missing.declared(&[]).unwrap_or_default()) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        if !words.is_empty() {
            fields.insert("missing".to_owned(), json!(words));
        }
        let mut reasons = vec![format!(
            "its {} columns are numbered and have the same codes, so they are one set; several items \
             together single out a person",
            from.len()
        )];
        if let Some(system) = family.system {
            let (made, reason): (GeneratedHierarchy, _) = hierarchy::codes_of(system);
            fields.insert("taxonomy".to_owned(), json!(made));
            reasons.push(reason.to_owned());
        }
        self.fields.push(fields);
        self.reasons.push((family.name.clone(), reasons));
    }
}

fn kind_fields(proposed: &ProposedKind, fields: &mut Map<String, Value>) {
    if proposed.kind != ColumnKind::Categorical {
        fields.insert("kind".to_owned(), json!(proposed.kind));
    }
    if let Some(format) = proposed.format {
        fields.insert("format".to_owned(), json!(format));
    }
    if let Some(separator) = proposed.separator {
        fields.insert("separator".to_owned(), json!(separator));
    }
}

/// The outermost interval of a quasi-identifier of numbers.
fn range_fields(
    range: Option<NumberRange>,
    proposed: KindAndRole,
    file: FileFacts,
    fields: &mut Map<String, Value>,
    reasons: &mut Vec<String>,
) {
    let KindAndRole { kind, role } = proposed;
    let is_known = role == ColumnRole::QuasiIdentifier && kind == ColumnKind::Numeric;
    let Some(range) = range.filter(|_| is_known) else {
        return;
    };
    if file.is_whole {
        let (lo, hi) = round_range(range.lo, range.hi);
        fields.insert("domain".to_owned(), json!([plain(lo), plain(hi)]));
        reasons.push(
            "its domain is the range of its numbers, widened to round ones: widen it where later \
             files have others"
                .to_owned(),
        );
    } else {
        fields.insert("round_range".to_owned(), json!(true));
    }
}

/// The rounding of a measure that is released.
fn round_field(
    observed: &Observed,
    proposed: KindAndRole,
    file: FileFacts,
    fields: &mut Map<String, Value>,
    reasons: &mut Vec<String>,
) {
    let KindAndRole { kind, role } = proposed;
    let is_released = matches!(role, ColumnRole::Insensitive | ColumnRole::Sensitive);
    if kind != ColumnKind::Numeric || !is_released {
        return;
    }
    if let Some(step) = rounding::step(observed, file.habits.number_form) {
        fields.insert("round".to_owned(), plain(step));
        let reason = "its numbers are rounded, because exact ones single out rows";
        reasons.push(reason.to_owned());
    }
}

/// A whole number without a fraction, as people write it.
fn plain(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

/// Sentences with numbers of rows and values.
fn counts(observed: &Observed, reasons: &mut Vec<String>) {
    let missing = observed.missing_rows();
    if observed.rows > 0 {
        let distinct = match (observed.is_estimated, observed.is_all_distinct()) {
            (false, true) => "all of them distinct".to_owned(),
            (false, false) => format!("{} of them distinct", observed.distinct),
            (true, true) => "nearly all of them distinct".to_owned(),
            (true, false) => format!("about {} of them distinct", observed.distinct),
        };
        reasons.push(format!("{} values, {distinct}", observed.rows));
    }
    if missing > 0 {
        reasons.push(format!("{missing} cells are missing"));
    }
}

/// The definition as the service accepts it. Parts of a proposal that the schema refuses are dropped.
fn accepted(
    name: &str,
    columns: &mut [Map<String, Value>],
    reasons: &mut [(String, Vec<String>)],
) -> Result<DatasetDefinition, SchemaError> {
    match resolved(name, columns) {
        Ok(definition) => Ok(definition),
        Err(error) => {
            for fault in &error.faults {
                let parts = fault.pointer().and_then(|it| it.strip_prefix("/columns/"));
                let Some((column, field)) = parts.and_then(|it| it.split_once('/')) else {
                    continue;
                };
                let field = field.split('/').next().unwrap_or(field);
                let Some(column) = column.parse().ok().filter(|&at: &usize| at < columns.len())
                else {
                    continue;
                };
                if OPTIONAL.contains(&field) && columns[column].remove(field).is_some() {
                    let reason =
                        format!("no `{field}` is proposed, because a schema does not take it here");
                    reasons[column].1.push(reason);
                }
            }
            resolved(name, columns)
        }
    }
}

/// The fields that a column can do without.
const OPTIONAL: [&str; 5] = ["taxonomy", "domain", "round_range", "round", "missing"];

/// Parses and resolves the definition, as the service does.
fn resolved(name: &str, columns: &[Map<String, Value>]) -> Result<DatasetDefinition, SchemaError> {
    let body = json!({"name": name, "columns": columns});
    let definition: DatasetDefinition = serde_json::from_value(body)
        .map_err(|error| SchemaError::new(SchemaErrorKind::Columns, error.to_string()))?;
    Schema::inline(&definition)?;
    Ok(definition)
}
