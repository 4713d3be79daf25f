//! Answers of a release to the questions of guidelines that privacy officers have to answer.
//!
//! Computed from the release and the declarations alone, so that recipients see it too. It decides nothing: if
//! a guideline needs a judgement, or something that the service cannot see, it says so.

mod opinion;
mod safe_harbor;
mod thresholds;

use pais_verify::VerifyError;
use serde::{Deserialize, Serialize};

use crate::release::MeasuredRelease;
use crate::utility::Risk;

pub(crate) use opinion::UniqueRows;
pub use opinion::{Inference, Linkability, Opinion, RiskAnswer, SinglingOut};
pub use safe_harbor::{
    ColumnOutcome, SafeHarbor, SafeHarborCategoryFinding, SafeHarborColumn, SafeHarborFinding,
};
pub use thresholds::{RiskThreshold, SmallCells};

/// The sentence that goes with every answer.
const NOTE: &str = "These answers help a privacy officer to decide. They are computed from the release and from \
                    what was declared of its columns, and are no legal advice.";

/// The answers of a release to the questions of guidelines. It is computed from the release and the
/// declarations alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Guidelines {
    /// A note on the limits of these answers.
    pub note: String,
    /// The three questions of opinion 05/2014 (WP216) of the European Article 29 Working Party.
    pub opinion_05_2014: Opinion,
    /// The risk compared with 0.09, the threshold of EMA Policy 0070 and of Health Canada.
    pub risk_threshold: RiskThreshold,
    /// The groups compared with 11, the smallest cell that CMS permits to be shown.
    pub small_cells: SmallCells,
    /// The 18 categories of HIPAA Safe Harbor, 45 CFR 164.514(b)(2).
    pub safe_harbor: SafeHarbor,
}

/// The answers for a release whose risk was measured, and whose unique rows are those of `rows`. `frequencies`
/// are those of the codes of its columns.
///
/// # Errors
/// [`VerifyError::Stopped`], and other errors for a table that cannot be measured.
pub(crate) fn guidelines(
    release: &MeasuredRelease,
    risk: &Risk,
    rows: &UniqueRows<'_>,
    frequencies: &[Vec<u64>],
) -> Result<Guidelines, VerifyError> {
    release.cancellation.check()?;
    Ok(Guidelines {
        note: NOTE.to_owned(),
        opinion_05_2014: Opinion::new(release, risk, rows),
        risk_threshold: RiskThreshold::new(risk, release.persons),
        small_cells: SmallCells::new(release, risk, rows),
        safe_harbor: SafeHarbor::new(release, frequencies)?,
    })
}
