//! A verified release with its raw rows.

use std::collections::BTreeMap;

use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_core::model::{Lkc, PrivacyModel};
use pais_core::schema::Schema;
use pais_core::table::codes::CodeRange;
use pais_core::table::{
    EncodedTable, Positioned, QuasiIdentifier, ReleasedTable, SetColumn, UnchangedRisk,
};
use pais_core::taxonomy::MinimumLevels;
use pais_verify::{
    Classes, DistinctRelease, EquivalenceClasses, PrivacyFinding, SubjectGroups, VerifyError,
};

/// How the quasi-identifiers of a release are recoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseRecoding {
    /// Each column is one cut.
    Global,
    /// The rows of a group have equal labels.
    Local,
    /// Exact, with a group.
    Anatomized,
}

/// A verified release with its raw rows.
#[derive(Clone, Copy)]
pub struct MeasuredRelease<'a> {
    /// The schema of the release: its made hierarchies are over the released values.
    pub schema: &'a Schema,
    /// The raw rows.
    pub raw: &'a EncodedTable,
    /// The quasi-identifiers of `raw`, in their order, before pre-generalization, and in hierarchies
    /// with the labels of the release.
    pub quasi_identifiers: &'a [&'a QuasiIdentifier],
    /// The set-valued quasi-identifiers of `raw`, in their order.
    pub sets: &'a [&'a SetColumn],
    /// The quasi-identifiers as they were read, if they are released unchanged.
    pub exact: &'a [Positioned],
    /// The released rows; of an anatomized release the table of quasi-identifiers.
    pub table: &'a ReleasedTable,
    /// The raw row of each released row.
    pub rows: &'a [u32],
    /// The privacy model that holds.
    pub model: &'a PrivacyModel,
    /// How it is recoded.
    pub recoding: ReleaseRecoding,
    /// What the verifier found.
    pub finding: &'a PrivacyFinding,
    /// The classes of its quasi-identifiers, where the verifier has found them.
    pub classes: Option<&'a Classes<'static>>,
    /// The persons of the groups, where the dataset has a subject column.
    pub persons: Option<&'a SubjectGroups>,
    /// The request to stop.
    pub cancellation: &'a Cancellation,
}

/// A verified release whose rows were counted while they were read, by one cut for each column.
#[derive(Clone, Copy)]
pub struct CountedRelease<'a> {
    /// The schema of the release.
    pub schema: &'a Schema,
    /// Its distinct rows.
    pub distinct: &'a DistinctRelease,
    /// The privacy model that holds.
    pub model: &'a Lkc,
    /// What the verifier found.
    pub finding: &'a PrivacyFinding,
    /// The insensitive columns that have a value in one row only.
    pub singled_out: &'a [String],
    /// What the columns that are released unchanged say about the rows.
    pub unchanged: &'a UnchangedRisk,
    /// The request to stop.
    pub cancellation: &'a Cancellation,
}

/// What only a method knows about its release.
#[derive(Clone, Debug, Default)]
pub struct MethodFacts<'a> {
    /// The groups that it formed; `None` where groups are the rows with equal labels.
    pub groups: Option<MethodGroups<'a>>,
    /// The labels in place of the items of each set-valued column whose items are generalized.
    pub item_labels: BTreeMap<&'a str, &'a MinimumLevels>,
}

/// The groups that a method formed.
#[derive(Clone, Debug)]
pub struct MethodGroups<'a> {
    /// The raw rows, group by group.
    pub rows: &'a [u32],
    /// Number of rows of each group.
    pub sizes: &'a [u32],
    /// For each quasi-identifier what the label of each group covers; `None` where the exact values
    /// are released.
    pub labels: Option<Vec<Vec<CodeRange>>>,
}

impl MeasuredRelease<'_> {
    /// Number of raw rows that were left out.
    pub(crate) fn suppressed_rows(&self) -> u64 {
        (self.raw.rows - self.rows.len()) as u64
    }

    /// The classes of equal quasi-identifiers.
    ///
    /// # Errors
    /// As [`EquivalenceClasses::new`].
    pub(crate) fn classes(&self) -> Result<EquivalenceClasses<'_>, VerifyError> {
        let names = self.schema.names(ColumnRole::QuasiIdentifier);
        EquivalenceClasses::new(self.table, &names, self.classes, self.cancellation)
    }

    /// The person of each released row; `None` where each row is a person of its own.
    pub(crate) fn subjects(&self) -> Option<Vec<u32>> {
        let subjects = self.raw.subjects.as_deref();
        subjects.map(|subjects| subjects.select(self.rows))
    }
}
