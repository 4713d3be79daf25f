//! Checks of names and free text.

use pais_core::look_alike::visible_text;

use time::OffsetDateTime;

use crate::problem::{Code, Problem};

/// Maximum length of a name, in characters.
const NAME_LENGTH: usize = 200;

/// Maximum length of a reason, in characters.
const REASON_LENGTH: usize = 2_000;

/// Checks a name and removes surrounding white space.
///
/// # Errors
/// `invalid_name` at `/name` if it is empty or too long, or has control characters.
pub(crate) fn name(text: &str) -> Result<String, Problem> {
    let name = text.trim();
    if !(1..=NAME_LENGTH).contains(&name.chars().count()) || name.contains(char::is_control) {
        return Err(Problem::at(
            Code::InvalidName,
            "/name",
            format!("a name has 1 to {NAME_LENGTH} characters, none of them a control character"),
        ));
    }
    Ok(name.to_owned())
}

/// A text without surrounding white space; empty if nothing of it would be visible.
pub(crate) fn trimmed(text: &str) -> &str {
    if visible_text(text).is_empty() {
        ""
    } else {
        text.trim()
    }
}

/// Checks the reason for an action, such as `the rows must be kept`, and removes surrounding white space.
///
/// # Errors
/// `invalid_value` at `/reason` if it is empty or too long.
pub(crate) fn reason<'t>(text: &'t str, action: &str) -> Result<&'t str, Problem> {
    let reason = trimmed(text);
    if reason.is_empty() {
        let detail = format!("the reason is empty; say why {action}");
        return Err(Problem::at(Code::InvalidValue, "/reason", detail));
    }
    check_length("/reason", Some(reason), REASON_LENGTH)?;
    Ok(reason)
}

/// Maximum length of a purpose, and of the reason why a risk is taken, in characters.
pub(crate) const PURPOSE_LENGTH: usize = 2_000;

/// Checks the purpose of a grant, and removes surrounding white space.
///
/// # Errors
/// `invalid_value` at `pointer` if it is empty or too long.
pub(crate) fn purpose(text: &str, pointer: &str) -> Result<String, Problem> {
    let purpose = trimmed(text);
    if purpose.is_empty() {
        let detail = "the purpose is empty; say what the recipient needs the data for";
        return Err(Problem::at(Code::InvalidValue, pointer, detail));
    }
    check_length(pointer, Some(purpose), PURPOSE_LENGTH)?;
    Ok(purpose.to_owned())
}

/// Checks that an end, if there is one, is in the future.
///
/// # Errors
/// `invalid_value` at `pointer`.
pub(crate) fn check_end(
    end: Option<OffsetDateTime>,
    pointer: &str,
    now: OffsetDateTime,
) -> Result<(), Problem> {
    if end.is_none_or(|end| end > now) {
        return Ok(());
    }
    let detail = "`expires_at` is in the past; give a later time, or leave it out";
    Err(Problem::at(Code::InvalidValue, pointer, detail))
}

/// Checks that free text has at most this number of characters.
///
/// # Errors
/// `invalid_value` at `pointer` if it is longer.
pub(crate) fn check_length(
    pointer: &str,
    text: Option<&str>,
    longest: usize,
) -> Result<(), Problem> {
    match text {
        Some(text) if text.chars().count() > longest => Err(Problem::at(
            Code::InvalidValue,
            pointer,
            format!("this text has at most {longest} characters"),
        )),
        _ => Ok(()),
    }
}

/// The error for a name that another resource has. `resource` includes its article, such as `a dataset`.
pub(crate) fn name_taken(resource: &str) -> Problem {
    Problem::at(
        Code::NameTaken,
        "/name",
        format!("there is already {resource} with this name; choose another"),
    )
}
