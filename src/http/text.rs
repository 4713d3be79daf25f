//! Names and free text in bodies.

use crate::problem::{Code, Problem};

/// Longest name, in bytes.
const NAME_BYTES: usize = 200;

/// A name as it is kept: without surrounding white space.
///
/// # Errors
/// `invalid_name` at `/name` for an empty or too long one and for control characters.
pub fn name(text: &str) -> Result<String, Problem> {
    let name = text.trim();
    if !(1..=NAME_BYTES).contains(&name.len()) || name.contains(char::is_control) {
        return Err(Problem::at(
            Code::InvalidName,
            "/name",
            format!("a name has 1 to {NAME_BYTES} bytes and no control characters"),
        ));
    }
    Ok(name.to_owned())
}

/// Checks free text of at most `bytes` bytes.
///
/// # Errors
/// `invalid_value` at `pointer` for a longer one.
pub fn free(pointer: &str, text: Option<&str>, bytes: usize) -> Result<(), Problem> {
    match text {
        Some(text) if text.len() > bytes => Err(Problem::at(
            Code::InvalidValue,
            pointer,
            format!("this text has at most {bytes} bytes"),
        )),
        _ => Ok(()),
    }
}

/// The refusal of a name that another `thing` of the organization has.
pub fn name_taken(thing: &str) -> Problem {
    Problem::at(
        Code::NameTaken,
        "/name",
        format!("there is {thing} of this name already; choose another"),
    )
}
