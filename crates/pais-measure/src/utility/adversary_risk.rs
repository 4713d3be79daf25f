//! The risk by the number of values that an adversary knows, and the columns that are released unchanged and
//! single out rows.

use pais_core::definition::ColumnRole;
use pais_core::model::{Confidence, Lkc, MissingSensitive, PrivacyModel};
use pais_core::schema::Schema;
use pais_core::table::{Persons, UnchangedColumn, UnchangedRisk};
use pais_verify::{
    AdversaryFigures, AdversaryLengths, CountedTable, EquivalenceClasses, LkcRequirement,
    SensitiveRequirement, VerifyError, measure_adversaries,
};

use super::holder_only::rounded;
use super::risk::{LengthRisk, Risk};
use crate::release::{CountedRelease, MeasuredRelease, ReleaseRecoding};

/// How many values beyond *L* the report goes.
const BEYOND: u32 = 2;

/// Adds what columns that are released unchanged say about the rows.
///
/// # Errors
/// [`VerifyError::Stopped`].
pub(crate) fn add_unchanged(risk: &mut Risk, release: &MeasuredRelease) -> Result<(), VerifyError> {
    let subjects = release.subjects();
    let persons = match (&subjects, &release.raw.subjects) {
        (Some(of_row), Some(subjects)) => Persons::Named(of_row, subjects.codes()),
        _ => Persons::Rows(release.table.rows),
    };
    risk.insensitive_singled_out = singled_out(release, persons);
    let cancellation = release.cancellation;
    risk.unchanged =
        UnchangedRisk::of_released(release.schema, release.table, persons, cancellation)?;
    if subjects.is_some() {
        risk.unchanged.round(rounded);
    }
    Ok(())
}

/// Adds the risk by length. `classes` are those of [`MeasuredRelease::classes`].
///
/// # Errors
/// [`VerifyError::Stopped`], and other errors for a table that cannot be measured.
pub(crate) fn add_adversaries(
    risk: &mut Risk,
    release: &MeasuredRelease,
    classes: &EquivalenceClasses,
) -> Result<(), VerifyError> {
    if release.recoding == ReleaseRecoding::Anatomized || !release.raw.sets.is_empty() {
        return Ok(());
    }
    let columns = release.schema.names(ColumnRole::QuasiIdentifier).len();
    let (requirement, lengths) = adversaries(release, columns);
    let subjects = release.subjects();
    let counted = CountedTable {
        table: release.table,
        subjects: subjects.as_deref(),
    };
    let cancellation = release.cancellation;
    let mut found = measure_adversaries(counted, classes, &requirement, lengths, cancellation)?;
    if release.persons.is_some() {
        for length in &mut found.by_length {
            length.share_below_k = rounded(length.share_below_k);
        }
    }
    add_lengths(risk, found, release.recoding);
    Ok(())
}

/// Adds the risk by length of a release by one cut for each column.
///
/// # Errors
/// As [`add_adversaries`].
pub(super) fn add_adversaries_of_counted(
    risk: &mut Risk,
    release: &CountedRelease,
) -> Result<(), VerifyError> {
    let names = release.schema.names(ColumnRole::QuasiIdentifier);
    let (requirement, lengths) = of_lkc(release.model, release.schema, names.len());
    let cancellation = release.cancellation;
    let found = release
        .distinct
        .adversaries(&names, &requirement, lengths, cancellation)?;
    add_lengths(risk, found, ReleaseRecoding::Global);
    Ok(())
}

fn add_lengths(risk: &mut Risk, found: AdversaryFigures, recoding: ReleaseRecoding) {
    let by_length = found.by_length.iter().map(|found| LengthRisk {
        length: found.length,
        smallest: found.smallest,
        share_below_k: found.share_below_k,
        greatest_confidence: found.greatest_confidence,
    });
    risk.by_length = by_length.collect();
    let is_exact = recoding == ReleaseRecoding::Global;
    risk.by_length_exact = (!risk.by_length.is_empty()).then_some(is_exact);
    risk.lengths_left_out = found.lengths_left_out;
    risk.qid_sizes = found.qid_sizes;
    risk.qid_confidences = found.qid_confidences;
}

/// *K*, the sensitive values and the lengths of a model.
fn adversaries(release: &MeasuredRelease, columns: usize) -> (LkcRequirement, AdversaryLengths) {
    let all = columns as u32;
    let whole = AdversaryLengths {
        assumed: all,
        longest: all,
    };
    match release.model {
        PrivacyModel::Lkc(model) => of_lkc(model, release.schema, columns),
        model => (every(model.k().get(), release.schema, columns), whole),
    }
}

/// As [`adversaries`], for LKC-privacy.
fn of_lkc(model: &Lkc, schema: &Schema, columns: usize) -> (LkcRequirement, AdversaryLengths) {
    let sensitive = schema.names(ColumnRole::Sensitive);
    let mut requirement = LkcRequirement::from_model(model, columns, &sensitive);
    if requirement.sensitive.is_empty() {
        // If the model bounds no value, all values are measured.
        requirement.sensitive = every(model.k.get(), schema, columns).sensitive;
    }
    let assumed = requirement.l as u32;
    let longest = assumed.saturating_add(BEYOND);
    (requirement, AdversaryLengths { assumed, longest })
}

/// Groups of *K* records, with every sensitive value.
fn every(k: u64, schema: &Schema, columns: usize) -> LkcRequirement {
    let sensitive = schema.names(ColumnRole::Sensitive);
    LkcRequirement {
        l: columns,
        k,
        c: Confidence::UNBOUNDED,
        sensitive: sensitive
            .iter()
            .map(|column| SensitiveRequirement::every(column))
            .collect(),
        missing_sensitive: MissingSensitive::Excluded,
    }
}

/// The insensitive columns with a value, not missing, that only one row of the release has, or one person.
fn singled_out(release: &MeasuredRelease, persons: Persons<'_>) -> Vec<String> {
    let insensitive = release.schema.with_role(ColumnRole::Insensitive);
    let singles = insensitive.filter(|spec| {
        let released = release.table.column(spec.name());
        released.is_some_and(|released| {
            let counted = UnchangedColumn::new(spec, &released.column, persons);
            counted.counts.singled_out() > 0
        })
    });
    singles.map(|spec| spec.name().to_owned()).collect()
}
