//! The role of a column for an adversary.
//!
//! Keys, dates, places and fine codes are never proposed to be released unchanged, whatever their name is. A
//! role follows from the values of a column, and from its name if the values are inconclusive. Decisions that
//! depend on other columns, such as which of several keys identifies the persons, are in `proposal`.

use pais_core::definition::{ColumnKind, ColumnRole};
use pais_core::name_meaning::NameMeaning;

use super::doubt::OpenQuestion;
use super::numbers::NumberRange;
use super::observed::{ColumnType, MOST_KEPT, Observed};

/// The share of distinct values from which on a column nearly identifies its rows.
const NEARLY_UNIQUE: f64 = 0.9;

/// Minimum number of rows for the share of distinct values to be meaningful.
const LEAST_ROWS: u64 = 10;

/// Maximum number of distinct values of a column of answers, findings or categories.
const FEW_VALUES: u64 = 12;

/// Maximum number of distinct whole numbers that can be what people know, such as the day of a month.
const FEW_NUMBERS: u64 = 31;

/// Maximum number of distinct values of an outcome.
const FEW_OUTCOMES: u64 = 3;

/// Maximum number of distinct values of a column whose name is `status` or `result`.
const FEW_RESULTS: u64 = 5;

/// Length in characters from which on a text is written freely.
const FREE_TEXT: usize = 100;

/// Digits from which on numbers of one length are keys.
const KEY_DIGITS: usize = 5;

/// Maximum average number of rows per person for a key that looks like any number.
const MOST_ROWS_A_PERSON: u64 = 50;

/// The range of four-digit whole numbers that may be years.
const YEARS: std::ops::RangeInclusive<f64> = 1_900.0..=2_100.0;

/// How well a key fits as the key of the persons, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SubjectRank {
    /// Its name says that it is of stays, of which a person can have several.
    Stay,
    /// Its values repeat, and no name says what it is a key of.
    Repeats,
    /// Its name says that it is of persons, and its values repeat.
    Person,
    /// Its name says that it is of persons, and each has one row.
    PersonOnce,
}

/// How well a column fits as the outcome, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OutcomeRank {
    /// It has two values, which is only an outcome in the last column.
    TwoValues,
    /// Its name is that of a status or result.
    Result,
    /// Its name is that of an outcome.
    Outcome,
}

/// The role of a column by itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RoleProposal {
    pub(super) role: ColumnRole,
    pub(super) reason: &'static str,
    pub(super) question: Option<OpenQuestion>,
    pub(super) subject: Option<SubjectRank>,
    pub(super) outcome: Option<OutcomeRank>,
}

impl RoleProposal {
    const fn new(role: ColumnRole, reason: &'static str) -> Self {
        Self {
            role,
            reason,
            question: None,
            subject: None,
            outcome: None,
        }
    }

    const fn identifier(reason: &'static str) -> Self {
        Self::new(ColumnRole::Identifier, reason)
    }

    fn asking(self, question: OpenQuestion) -> Self {
        let question = Some(question);
        Self { question, ..self }
    }
}

/// Proposes the role of a column. Numbers are read in this form, one of `numbers::FORMS`.
pub(super) fn propose(
    column: &Observed,
    name: NameMeaning,
    kind: ColumnKind,
    form: usize,
) -> RoleProposal {
    if column.rows == 0 {
        let reason = "nothing is known of it, so it is dropped: declare its role where later files \
                      have values";
        return RoleProposal::identifier(reason);
    }
    let range = column.range(form);
    let mut proposal = identifying(column, name, kind, range)
        .or_else(|| sensitive(column, name, kind))
        .unwrap_or_else(|| known(column, name, kind, column.numbers.range(form).or(range)));
    if proposal.role != ColumnRole::Identifier {
        proposal.outcome = outcome(column, name, kind, proposal.role);
    }
    proposal
}

/// Whether a column names a person or a record.
fn identifying(
    column: &Observed,
    name: NameMeaning,
    kind: ColumnKind,
    range: Option<NumberRange>,
) -> Option<RoleProposal> {
    let is_text = kind == ColumnKind::Categorical;
    let is_one_value = is_text || kind == ColumnKind::Numeric;
    if !is_one_value {
        return None;
    }
    if let Some(reason) = address(column) {
        return Some(RoleProposal::identifier(reason));
    }
    if name.is_direct && (column.distinct > 2 || !has_answers(column)) {
        return Some(RoleProposal::identifier(
            "by its name it names or reaches a person",
        ));
    }
    let is_code = name.is_diagnosis || name.is_procedure;
    let is_nearly_unique = column.rows >= LEAST_ROWS && column.distinct_share() >= NEARLY_UNIQUE;
    let is_shaped = is_shaped_as_key(column, range);
    if !is_code && !name.is_postal {
        let names_persons = name.is_person_alone
            && (column.distinct > FEW_VALUES
                || ((is_shaped || has_short_keys(column)) && !has_answers(column)));
        let names_stays = (name.is_stay_alone || (name.is_stay && name.is_number))
            && (is_nearly_unique || (is_shaped && !has_answers(column)));
        let is_whole = range.is_some_and(|range| range.is_whole);
        let is_unnamed = (is_random_key(column) && column.distinct > FEW_VALUES)
            || (name.is_key_at_end && is_whole && column.kept.is_none());
        if (name.is_key || names_persons || names_stays || is_unnamed)
            && let Some(proposal) = key(column, name, is_shaped)
        {
            return Some(proposal);
        }
        if let Some(proposal) = unnamed_key(column, name, range, is_shaped) {
            return Some(proposal);
        }
    }
    if is_text && !name.is_known && !name.is_postal && is_nearly_unique {
        let reason = if column.is_all_distinct() {
            "all values are distinct texts: each one names its row"
        } else {
            "nearly every value is a distinct text"
        };
        return Some(RoleProposal::identifier(reason));
    }
    let is_long = column.longest >= FREE_TEXT && column.distinct > MOST_KEPT as u64;
    let is_text_of_code = name.is_description && column.distinct_share() < 0.5;
    (is_text && is_long && !is_text_of_code).then_some(RoleProposal::identifier(
        "long texts, which can name persons",
    ))
}

/// Whether the values are yes/no answers about the column's subject, such as whether a telephone number is known.
fn has_answers(column: &Observed) -> bool {
    const ANSWERS: [&str; 22] = [
        "0", "1", "y", "n", "yes", "no", "t", "f", "true", "false", "x", "j", "ja", "nein", "o",
        "oui", "non", "s", "si", "sì", "sí", "unknown",
    ];
    let kept = column.kept.as_ref();
    kept.is_some_and(|kept| {
        let mut values = kept.keys();
        values.all(|value| ANSWERS.contains(&value.trim().to_lowercase().as_str()))
    })
}

/// Whether values can be keys of the few persons of a small file, such as `7` or `P7`.
fn has_short_keys(column: &Observed) -> bool {
    let is_numbered = |value: &str| {
        value
            .trim_end()
            .ends_with(|last: char| last.is_ascii_digit())
    };
    column.distinct > 2
        && column.distinct * MOST_ROWS_A_PERSON >= column.rows
        && (column.kept.as_ref()).is_some_and(|kept| kept.keys().all(|value| is_numbered(value)))
}

/// What kind of addresses the values are, if they are addresses.
fn address(column: &Observed) -> Option<&'static str> {
    let codes = &column.codes;
    [
        (codes.email, "its values are addresses of electronic mail"),
        (
            codes.ssn,
            "its values have the form of social security numbers",
        ),
        (codes.phone, "its values have the form of telephone numbers"),
        (codes.ip, "its values are addresses of the internet"),
        (codes.url, "its values are web addresses"),
    ]
    .into_iter()
    .find_map(|(rows, reason)| column.is_most(rows).then_some(reason))
}

/// Whether values are random keys: UUIDs, or many hexadecimal digits.
fn is_random_key(column: &Observed) -> bool {
    column.is_most(column.codes.uuid) || column.is_most(column.codes.hex)
}

/// Whether values look like keys: random ones, letters before digits, or digits of one length.
fn is_shaped_as_key(column: &Observed, range: Option<NumberRange>) -> bool {
    let is_of_one_length = column
        .one_length()
        .is_some_and(|length| length >= KEY_DIGITS);
    let is_whole = range.is_some_and(|range| range.is_whole) && column.codes.fractions == 0;
    let is_plain = column.is_most(column.codes.prefixed) || is_whole;
    is_random_key(column) || (is_of_one_length && is_plain)
}

/// The role of a key by name or by random values; `None` for a key of few values, which is a label.
fn key(column: &Observed, name: NameMeaning, is_shaped: bool) -> Option<RoleProposal> {
    if column.is_all_distinct() {
        let reason = "it is a key by its name or its values, and all values are distinct";
        let rank = if name.is_person && !name.is_stay {
            Some(SubjectRank::PersonOnce)
        } else {
            stay_rank(column, name)
        };
        return Some(RoleProposal {
            subject: rank,
            ..RoleProposal::identifier(reason)
        });
    }
    let is_few = column.kept.is_some() && column.distinct * 10 <= column.rows;
    if !name.is_person && is_few && !is_shaped {
        return None;
    }
    let proposal = RoleProposal::identifier("it is a key by its name or its values");
    if name.is_stay || (name.is_event && !name.is_person) {
        let subject = stay_rank(column, name);
        return Some(RoleProposal {
            subject,
            ..proposal
        });
    }
    if column.missing_rows() > 0 {
        let reason = "it is a key that is missing in some rows, so it cannot be the subject";
        return Some(RoleProposal::identifier(reason));
    }
    let repeats = column.distinct_share() < if name.is_person { 1.0 } else { NEARLY_UNIQUE };
    if !repeats {
        return Some(proposal);
    }
    let is_plausible = is_shaped || column.distinct * MOST_ROWS_A_PERSON >= column.rows;
    if !is_plausible {
        let proposed = ColumnRole::Identifier;
        return Some(proposal.asking(OpenQuestion::PersonsKey { proposed }));
    }
    let rank = if name.is_person {
        SubjectRank::Person
    } else {
        SubjectRank::Repeats
    };
    Some(RoleProposal {
        subject: Some(rank),
        ..proposal
    })
}

/// Whether a column can be a key, by its name and its kind.
pub(super) fn can_be_key(column: &Observed, name: NameMeaning, kind: ColumnKind) -> bool {
    let is_one_value = matches!(kind, ColumnKind::Categorical | ColumnKind::Numeric);
    is_one_value
        && column.codes.fractions == 0
        && !(name.is_known || name.is_year || name.is_count || name.is_date || name.is_sensitive)
        && !is_postal(column, name)
        && icd(column, name).is_none()
}

/// The rank of a key of stays, which no row may be without.
fn stay_rank(column: &Observed, name: NameMeaning) -> Option<SubjectRank> {
    (name.is_stay && column.missing_rows() == 0).then_some(SubjectRank::Stay)
}

/// A key that only its values show: nearly all distinct, and digits of one length, a counter, or numbers
/// without a gap.
fn unnamed_key(
    column: &Observed,
    name: NameMeaning,
    range: Option<NumberRange>,
    is_shaped: bool,
) -> Option<RoleProposal> {
    if name.is_known || name.is_count || column.rows < LEAST_ROWS {
        return None;
    }
    let share = column.distinct_share();
    if name.is_number && share >= NEARLY_UNIQUE {
        let reason = "it is a number of something, and nearly every value is distinct";
        return Some(RoleProposal::identifier(reason));
    }
    let range = range.filter(|range| range.is_whole && column.codes.fractions == 0)?;
    if column.rows < 2 * LEAST_ROWS || share < NEARLY_UNIQUE {
        return None;
    }
    let is_gapless = range.hi - range.lo + 1.0 == column.distinct as f64;
    if column.is_all_distinct() && is_gapless {
        let reason = "whole numbers without a gap, each of them once: they number the rows";
        return Some(RoleProposal::identifier(reason));
    }
    if column.order.is_ascending() {
        let reason = "whole numbers that ascend from row to row: they number the rows";
        return Some(RoleProposal::identifier(reason).asking(OpenQuestion::KeyOrMeasure));
    }
    let reason = "whole numbers of one length, nearly each of them once, as keys are";
    is_shaped.then(|| RoleProposal::identifier(reason).asking(OpenQuestion::KeyOrMeasure))
}

/// Whether the values of a column are sensitive.
fn sensitive(column: &Observed, name: NameMeaning, kind: ColumnKind) -> Option<RoleProposal> {
    let is_single = matches!(kind, ColumnKind::Categorical | ColumnKind::Numeric);
    if !is_single || (name.is_known && !name.is_sensitive) {
        return None;
    }
    if kind == ColumnKind::Categorical
        && let Some(system) = icd(column, name)
    {
        return Some(RoleProposal::new(ColumnRole::Sensitive, system.reason()));
    }
    if !name.is_sensitive {
        return None;
    }
    if kind == ColumnKind::Numeric && (column.kept.is_none() || name.is_count) {
        return Some(measure());
    }
    if name.is_group_of_cases {
        let reason =
            "by its name it is a group of diagnoses or stays, which says what a person has";
        return Some(RoleProposal::new(ColumnRole::Sensitive, reason));
    }
    let reason = "by its name nobody should learn it about a person";
    Some(RoleProposal::new(ColumnRole::Sensitive, reason))
}

/// What is measured or counted.
fn measure() -> RoleProposal {
    let reason = "it has numbers that are measured or counted, so it is released as it is: declare it a \
                  quasi-identifier where people know it of each other";
    RoleProposal::new(ColumnRole::Insensitive, reason)
}

/// A system of codes of diseases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeSystem {
    Icd10,
    Icd9,
    /// ICD-9 without its point.
    PlainIcd9,
}

impl CodeSystem {
    fn reason(self) -> &'static str {
        match self {
            Self::Icd10 => "its values are codes of ICD-10",
            Self::Icd9 => "its values are codes of ICD-9",
            Self::PlainIcd9 => "its values are codes of ICD-9 without the point",
        }
    }
}

/// The system of codes of diseases that a column has; `None` for other columns.
pub(super) fn icd(column: &Observed, name: NameMeaning) -> Option<CodeSystem> {
    let codes = &column.codes;
    let is_of_diseases = name.is_diagnosis || name.is_procedure;
    let is_other = name.is_postal
        || name.is_group_of_cases
        || name.is_count
        || (name.is_person && !is_of_diseases);
    if column.distinct < 3 || is_other {
        return None;
    }
    if column.is_most(codes.icd10) {
        return Some(CodeSystem::Icd10);
    }
    // `V45` and `E812` are codes of ICD-10 by their shape too.
    if column.is_most(codes.icd9.max(codes.icd10)) && (is_of_diseases || codes.icd9_letters > 0) {
        return Some(CodeSystem::Icd9);
    }
    let has_letters = codes.icd9_plain_letters > 0 && column.kept.is_none();
    (column.is_most(codes.icd9_plain) && (is_of_diseases || has_letters))
        .then_some(CodeSystem::PlainIcd9)
}

/// Whether a column has postal codes.
pub(super) fn is_postal(column: &Observed, name: NameMeaning) -> bool {
    name.is_postal || (column.codes.leading_zeros > 0 && column.is_most(column.codes.zip))
}

/// Whether whole numbers are years.
pub(super) fn is_year(column: &Observed, range: Option<NumberRange>) -> bool {
    let is_in_years = |range: NumberRange| {
        range.is_whole && YEARS.contains(&range.lo) && YEARS.contains(&range.hi)
    };
    column.codes.fractions == 0 && range.is_some_and(is_in_years) && column.distinct_share() < 0.5
}

/// Whether values are years with months: `201305`, `2013-05` or `05/2013`.
fn is_year_and_month(column: &Observed) -> bool {
    let is_one = |text: &str| {
        let plain = || text.get(..4).zip(text.get(4..)).filter(|_| text.len() == 6);
        let parts = text.split_once(['/', '-']).or_else(plain);
        parts.is_some_and(|(first, second)| {
            let in_years = |part: &str| part.parse().is_ok_and(|year| YEARS.contains(&year));
            let in_months = |part: &str| part.parse().is_ok_and(|month| (1..=12).contains(&month));
            (in_years(first) && in_months(second)) || (in_months(first) && in_years(second))
        })
    };
    column.rows > 0 && column.sketch.values().all(is_one)
}

/// Whether nearly all values are whole numbers of one length, as codes of places and things are.
fn is_code_like(column: &Observed, range: Option<NumberRange>) -> bool {
    let is_of_one_length = column.one_length().is_some_and(|length| {
        length >= KEY_DIGITS && column.lengths[length] as f64 >= 0.95 * column.rows as f64
    });
    let is_whole = range.is_some_and(|range| range.is_whole) && column.codes.fractions == 0;
    is_of_one_length && is_whole && column.distinct_share() < 0.5
}

/// The roles of what people know about each other, and of the rest.
fn known(
    column: &Observed,
    name: NameMeaning,
    kind: ColumnKind,
    range: Option<NumberRange>,
) -> RoleProposal {
    let quasi_identifier = |reason| RoleProposal::new(ColumnRole::QuasiIdentifier, reason);
    if name.is_sensitive && kind == ColumnKind::Set {
        let proposal = quasi_identifier(
            "by its name nobody should learn it, but a set cannot be sensitive; several items together \
             single out a person",
        );
        return match column.declared {
            Some(ColumnType::List) => proposal,
            _ => proposal.asking(OpenQuestion::ItemsOrValue),
        };
    }
    match kind {
        ColumnKind::Date | ColumnKind::Datetime => {
            return quasi_identifier("people know dates of each other");
        }
        ColumnKind::Set => return quasi_identifier("several items together single out a person"),
        ColumnKind::Categorical | ColumnKind::Numeric => {}
    }
    if is_postal(column, name) {
        return quasi_identifier("its values are postal codes");
    }
    if kind == ColumnKind::Numeric && name.is_count && column.codes.fractions > 0 {
        return measure();
    }
    if name.is_known {
        return quasi_identifier("by its name people know it of each other");
    }
    let is_many = kind == ColumnKind::Numeric && column.kept.is_none();
    if is_many && (name.is_outcome || name.is_day) && !name.is_count {
        return quasi_identifier("by its name it can be the day of an event as a number");
    }
    if column.distinct > 1 && is_year_and_month(column) {
        return quasi_identifier(
            "its values are years and months, which people know of each other",
        );
    }
    if is_many && !name.is_count && is_code_like(column, range) {
        let reason = "whole numbers of one length that repeat, as codes are; rare ones single out a \
                      person";
        return quasi_identifier(reason).asking(OpenQuestion::CodeOrMeasure);
    }
    if column.distinct == 1 && column.missing_rows() == 0 {
        let reason = "all rows have the same value, which tells nothing about one of them";
        return RoleProposal::new(ColumnRole::Insensitive, reason);
    }
    let is_named_year = name.is_year && range.is_some_and(|range| range.is_whole);
    if column.distinct > 1 && (is_named_year || is_year(column, range)) {
        return quasi_identifier("its values are years, which people know of each other");
    }
    if kind == ColumnKind::Numeric {
        let is_whole = range.is_some_and(|range| range.is_whole) && column.codes.fractions == 0;
        let is_few = (2..=FEW_NUMBERS).contains(&column.distinct) && !name.is_count;
        let measure = measure();
        return if is_whole && is_few {
            measure.asking(OpenQuestion::KnownOrNot)
        } else {
            measure
        };
    }
    if column.kept.is_some() && column.distinct <= FEW_VALUES {
        let reason = "it has few values, and neither they nor its name say that people know it of each \
                      other";
        let proposal = RoleProposal::new(ColumnRole::Insensitive, reason);
        return proposal.asking(OpenQuestion::KnownOrNot);
    }
    quasi_identifier("it has many values that repeat, and rare ones single out a person")
}

/// Whether a column can be the outcome.
fn outcome(
    column: &Observed,
    name: NameMeaning,
    kind: ColumnKind,
    role: ColumnRole,
) -> Option<OutcomeRank> {
    let is_flag = matches!(kind, ColumnKind::Categorical | ColumnKind::Numeric);
    if !is_flag || column.kept.is_none() || column.distinct < 2 {
        return None;
    }
    if name.is_outcome && column.distinct <= FEW_OUTCOMES {
        return Some(OutcomeRank::Outcome);
    }
    if name.is_result && column.distinct <= FEW_RESULTS {
        return Some(OutcomeRank::Result);
    }
    let is_open = role == ColumnRole::Insensitive && column.missing_rows() == 0;
    (is_open && column.distinct == 2).then_some(OutcomeRank::TwoValues)
}
