//! A cut through the values of one attribute.

/// *Cut_i* of one attribute: exactly one value on each root-to-leaf path (Section 3.2).
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    /// Labels, from left to right.
    pub labels: Vec<String>,
    /// For each code of the attribute, the index of its label.
    pub label_of: Vec<u32>,
}
