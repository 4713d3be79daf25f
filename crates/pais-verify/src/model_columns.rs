//! The columns that a privacy model is about.

/// The columns of a table that a privacy model is about.
#[derive(Clone, Copy, Debug)]
pub struct ModelColumns<'a> {
    /// Those whose values an adversary knows.
    pub quasi_identifiers: &'a [Box<str>],
    /// All that are declared sensitive. The confidence in their values is measured even if the model does not
    /// bound it.
    pub sensitive: &'a [Box<str>],
}
