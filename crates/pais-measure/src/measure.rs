//! The report of a release: its measures, side by side.

use pais_core::table::Verdict;
use pais_verify::{EquivalenceClasses, VerifyError};

use crate::classification::classification_error;
use crate::frequencies::CodeFrequencies;
use crate::guidelines::{UniqueRows, guidelines};
use crate::release::{MeasuredRelease, MethodFacts};
use crate::sample::{RawSample, SAMPLED_ROWS};
use crate::utility::{
    Report, add_adversaries, add_unchanged, attribute_risk, item_counts, item_losses,
    item_query_error, measured_distortion, query_error,
};

/// Measures a release, its parts side by side. Without `facts`, what is computed from raw rows is
/// left out. `progress` receives the fraction that is done, from 0 to 1.
///
/// # Errors
/// [`VerifyError::Stopped`], and other errors for a table that cannot be measured.
pub fn measure(
    release: &MeasuredRelease,
    facts: Option<&MethodFacts>,
    progress: &dyn Fn(f64),
) -> Result<Report, VerifyError> {
    let classes = release.classes()?;
    let frequencies = CodeFrequencies::new(release, &classes);
    let sample = facts.map(|_| RawSample::new(release));
    let sample = sample.as_ref();
    release.cancellation.check()?;
    progress(0.2);
    let (counted, (classification, (queries, distortion))) = rayon::join(
        || counted(release, &classes, &frequencies.released),
        || {
            rayon::join(
                || classification_error(release, &frequencies, sample),
                || {
                    rayon::join(
                        || query_error(release, facts?.groups.as_ref(), sample?),
                        || {
                            let measured =
                                |sample| measured_distortion(release, &frequencies, sample);
                            sample.map(measured).transpose()
                        },
                    )
                },
            )
        },
    );
    release.cancellation.check()?;
    let mut report = counted?;
    let Report { utility, risk, .. } = &mut report;
    utility.classification_error = classification;
    let is_sampled =
        release.table.rows > SAMPLED_ROWS && (sample.is_some() || classification.is_some());
    utility.sampled_rows = is_sampled.then_some(SAMPLED_ROWS as u64);
    match facts {
        Some(facts) => {
            let distortion = distortion?.unwrap_or_default();
            utility.item_loss_by_column = item_losses(release, &facts.item_labels);
            utility.items_by_column = item_counts(release);
            utility.item_query_error = item_query_error(release);
            utility.query_error = queries;
            utility.entropy_loss_by_column = distortion.entropy_loss_by_column;
            utility.frequency_survival_by_column = distortion.frequency_survival_by_column;
            utility.association_survival = distortion.association_survival;
            report.distributions = distortion.distributions;
        }
        None => risk.greatest_confidence_per_subject = None,
    }
    release.cancellation.check()?;
    progress(1.0);
    Ok(report)
}

/// The parts of a report that count all rows of the release.
fn counted(
    release: &MeasuredRelease,
    classes: &EquivalenceClasses<'_>,
    frequencies: &[Vec<u64>],
) -> Result<Report, VerifyError> {
    let mut report = Report::new(release, classes.sizes(), frequencies)?;
    let risk = &mut report.risk;
    risk.attribute = attribute_risk(release)?;
    add_unchanged(risk, release)?;
    // Measuring adversaries takes longest: a thread without other work takes the second part.
    let (adversaries, unique) = rayon::join(
        || add_adversaries(risk, release, classes),
        || UniqueRows::new(release, classes),
    );
    adversaries?;
    report.guidelines = Some(guidelines(release, &report.risk, &unique?, frequencies)?);
    report.verdict = Verdict::of(release.finding.holds(), &report.risk.unchanged);
    Ok(report)
}
