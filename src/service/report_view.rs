//! The report of a release as each viewer sees it.

use pais_anonymize::utility;
use serde_json::Value;

use crate::db::StoreError;
use crate::db::releases::{StoredReport, Viewer};

/// The report with its warnings, as the viewer sees it.
///
/// # Errors
/// When a warning cannot be written as JSON.
pub(super) fn shown(stored: StoredReport, viewer: Viewer) -> Result<Value, StoreError> {
    let mut report = match viewer {
        Viewer::Holder(_) => stored.report,
        Viewer::Recipient(_) => utility::for_recipient(stored.report),
    };
    report["warnings"] = serde_json::to_value(stored.warnings)?;
    Ok(report)
}
