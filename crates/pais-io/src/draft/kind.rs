//! How the cells of a column are read.

use pais_core::definition::ColumnKind;
use pais_core::name_meaning::NameMeaning;

use super::dates::DateForm;
use super::numbers::NumberRange;
use super::observed::{ColumnType, Observed};

/// The proposed kind of a column, with its options.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProposedKind {
    pub(super) kind: ColumnKind,
    /// The format of dates; `None` for ISO 8601.
    pub(super) format: Option<&'static str>,
    /// The format in which all dates also fit, with day and month in the other order, if nothing decides
    /// between them.
    pub(super) other_format: Option<&'static str>,
    /// The separator of a set, where it is not the default.
    pub(super) separator: Option<char>,
}

impl ProposedKind {
    pub(super) fn of(kind: ColumnKind) -> Self {
        Self {
            kind,
            format: None,
            other_format: None,
            separator: None,
        }
    }
}

/// What the columns of a file have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileHabits {
    /// The form of its numbers, among [`super::numbers::FORMS`].
    pub(super) number_form: usize,
    /// Whether the month is before the day in dates where both orders fit.
    pub(super) is_month_first: bool,
    /// Why: another column shows the order.
    pub(super) is_order_shown: bool,
}

/// Longest whole number in digits that is a number and not a key.
const MOST_DIGITS: usize = 15;

/// Proposes the kind of a column, and adds reasons.
pub(super) fn propose(
    column: &Observed,
    name: NameMeaning,
    habits: FileHabits,
    list_separator: Option<char>,
    reasons: &mut Vec<String>,
) -> ProposedKind {
    if column.declared == Some(ColumnType::List) {
        reasons.push("its cells are lists, so it is a set".to_owned());
        return ProposedKind {
            separator: list_separator.filter(|&it| it != pais_core::schema::DEFAULT_SEPARATOR),
            ..ProposedKind::of(ColumnKind::Set)
        };
    }
    if column.rows == 0 {
        reasons.push("no row has a value in it".to_owned());
        return ProposedKind::of(ColumnKind::Categorical);
    }
    if let Some(FoundDates { form, other_format }) = date_form(column, name, habits, reasons) {
        let kind = if form.is_moment {
            ColumnKind::Datetime
        } else {
            ColumnKind::Date
        };
        return ProposedKind {
            format: form.format,
            other_format,
            ..ProposedKind::of(kind)
        };
    }
    if let Some(range) = column.range(habits.number_form) {
        let why_label = label_reason(column, name, range);
        match why_label {
            Some(reason) => reasons.push(reason.to_owned()),
            None => {
                reasons.push(if range.is_whole {
                    "all values are whole numbers".to_owned()
                } else {
                    "all values are numbers".to_owned()
                });
                return ProposedKind::of(ColumnKind::Numeric);
            }
        }
        return ProposedKind::of(ColumnKind::Categorical);
    }
    if column.is_most(column.codes.slashed) {
        let reason = "its cells are numbers with `/` between them, as months or blood pressures are: labels, \
                      not items";
        reasons.push(reason.to_owned());
    } else if let Some(separator) = column.divisions.separator(column.rows)
        && !name.is_direct
        && !name.is_description
        && !name.is_day
        && !(name.is_known && separator == ',')
    {
        reasons.push(format!(
            "many cells have several items with `{}` between them, and the items repeat",
            separator
        ));
        return ProposedKind {
            separator: (separator != pais_core::schema::DEFAULT_SEPARATOR).then_some(separator),
            ..ProposedKind::of(ColumnKind::Set)
        };
    }
    ProposedKind::of(ColumnKind::Categorical)
}

/// Maximum number of distinct whole numbers that are labels, without the name of a count.
const FEW_LABELS: u64 = 5;

/// Maximum number of distinct whole numbers that are labels where numbers between them are missing.
const FEW_WITH_GAPS: u64 = 12;

/// Minimum number of rows for a small number of distinct numbers to be meaningful.
const LEAST_ROWS: u64 = 20;

/// Why numbers are labels; `None` where they are numbers.
fn label_reason(column: &Observed, name: NameMeaning, range: NumberRange) -> Option<&'static str> {
    let is_code = (name.is_diagnosis || name.is_procedure || name.is_code) && !name.is_count;
    if column.declared == Some(ColumnType::Text) {
        return Some("the file declares it as text, so its numbers are labels");
    }
    if name.is_postal {
        return Some("a postal code is a label, not a number");
    }
    if is_code && name.is_diagnosis && column.is_most(column.codes.icd9) {
        return Some("its numbers are codes of diseases, so they are labels");
    }
    if !range.is_whole || column.codes.fractions > 0 {
        return None;
    }
    if column.codes.leading_zeros > 0 {
        return Some("numbers that begin with 0 are labels");
    }
    if column.longest > MOST_DIGITS {
        return Some("numbers of so many digits are labels");
    }
    if name.is_key && !name.is_known {
        return Some("the numbers of a key are labels");
    }
    if column.distinct <= 2 && (0.0..=2.0).contains(&range.lo) && range.hi <= 2.0 {
        return Some("0, 1 and 2 are labels where there are no other numbers");
    }
    if is_code {
        return Some("the numbers of a code are labels");
    }
    if name.is_number && column.one_length().is_some_and(|length| length >= 4) {
        return Some("numbers of one length that number something are labels");
    }
    let is_of_numbers = name.is_count || name.is_age || name.is_year || name.is_income;
    if column.kept.is_none() || is_of_numbers || column.rows < LEAST_ROWS {
        return None;
    }
    let is_key = name.is_key || name.is_number;
    if is_key && column.distinct_share() <= 0.1 {
        return Some("few numbers of a key that repeat are labels");
    }
    if column.distinct <= FEW_LABELS {
        return Some("few whole numbers are labels, as in a list of choices");
    }
    // -1, 9 and 99 stand for no answer, and codes of a list are not used up.
    let has_gaps = range.hi - range.lo + 1.0 > 1.5 * column.distinct as f64;
    (column.distinct <= FEW_WITH_GAPS && has_gaps)
        .then_some("few whole numbers with gaps between them are labels, as in a list of choices")
}

/// The form of dates, and an equally good format.
struct FoundDates {
    form: DateForm,
    other_format: Option<&'static str>,
}

fn date_form(
    column: &Observed,
    name: NameMeaning,
    habits: FileHabits,
    reasons: &mut Vec<String>,
) -> Option<FoundDates> {
    let mut fit = column.dates.all();
    let first = match column.declared {
        // A column of moments can have midnights only.
        Some(ColumnType::Moment) => fit.find(|form| form.is_moment),
        _ => fit.next(),
    }?;
    if first.format == Some("%Y%m%d") && !name.is_date && !name.is_known && column.distinct < 5 {
        return None;
    }
    let what = if first.is_moment {
        "dates with a time of day"
    } else {
        "dates"
    };
    let other = first
        .swapped()
        .filter(|&swapped| fit.any(|form| form == swapped));
    let chosen = match other {
        Some(other) if first.is_month_first() != habits.is_month_first => other,
        _ => first,
    };
    let mut other_format = None;
    match (chosen.format, other) {
        (None, _) => reasons.push(format!("all values are {what} in ISO 8601")),
        (Some(format), None) => {
            reasons.push(format!("all values are {what} of the format {format}"));
        }
        (Some(format), Some(other)) => {
            let other = other.format.filter(|&it| it != format);
            let other = other.or(first.format).unwrap_or_default();
            let because = if habits.is_order_shown {
                "as in another column"
            } else {
                other_format = Some(other);
                "which no value decides: check the order of day and month"
            };
            reasons.push(format!(
                "all values are {what} of the format {format}, or {other}; the first is proposed, \
                 {because}"
            ));
        }
    }
    Some(FoundDates {
        form: chosen,
        other_format,
    })
}

/// Whether the dates of a column show the order of day and month.
pub(super) fn shown_order(column: &Observed) -> Option<bool> {
    let fit: Vec<DateForm> = column.dates.all().collect();
    let first = *fit.first()?;
    let swapped = first.swapped()?;
    (!fit.contains(&swapped)).then(|| first.is_month_first())
}
