//! The privacy models taken together.

use super::{GroupModel, KmAnonymity, Lkc};

/// A privacy model with its parameters in range.
#[derive(Clone, Debug, PartialEq)]
pub enum PrivacyModel {
    /// k^m-anonymity.
    KmAnonymity(KmAnonymity),
    /// LKC-privacy and its special cases.
    Lkc(Lkc),
    /// A model of groups of records, such as l-diversity over several sensitive attributes.
    Groups(GroupModel),
}
