//! The report of a release: its measures, side by side.

use pais_core::table::Verdict;
use pais_verify::VerifyError;

use crate::classification::classification_error;
use crate::guidelines::guidelines;
use crate::release::{MeasuredRelease, MethodFacts};
use crate::utility::{
    Report, add_adversaries, attribute_risk, item_counts, item_losses, item_query_error,
    measured_distortion, query_error,
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
    let groups = release.group_sizes()?;
    let mut report = Report::new(release, &groups)?;
    release.stop_if_asked()?;
    progress(0.2);
    let Report {
        utility,
        risk,
        guidelines: answers,
        verdict,
        ..
    } = &mut report;
    let ((adversaries, classification), (queries, distortion)) = rayon::join(
        || {
            rayon::join(
                || {
                    risk.attribute = attribute_risk(release)?;
                    add_adversaries(risk, release)
                },
                || classification_error(release, facts.is_some()),
            )
        },
        || {
            rayon::join(
                || query_error(release, facts?.groups.as_ref()),
                || facts.map(|_| measured_distortion(release)).transpose(),
            )
        },
    );
    release.stop_if_asked()?;
    adversaries?;
    *answers = Some(guidelines(release, risk, &groups)?);
    utility.classification_error = classification;
    *verdict = Verdict::of(release.finding.holds(), &risk.unchanged);
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
    release.stop_if_asked()?;
    progress(1.0);
    Ok(report)
}
