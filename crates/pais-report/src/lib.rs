//! The report of a release as a page for people: a privacy officer, a hospital's board, an analyst.
//!
//! [`ReportPage`] is what is known about the release; [`ReportPage::render`] gives one HTML document
//! with its styles and charts inside. It has no script and loads nothing. All text is escaped.
//!
//! ```
//! use pais_report::{Reader, ReportPage};
//! use serde_json::json;
//!
//! let page = ReportPage {
//!     dataset: Some("Blood use 2026".to_owned()),
//!     privacy: json!({"model": "k_anonymity", "k": 5}),
//!     report: json!({"rows": 100, "suppressed_rows": 0,
//!                    "utility": {"smallest_known_group": 6}, "risk": {}}),
//!     reader: Reader::Recipient { recipient: None, purpose: Some("Planning".to_owned()) },
//!     ..ReportPage::default()
//! };
//! let html = page.render();
//! assert!(html.contains("finds at least 6 records"));
//! ```

#![forbid(unsafe_code)]

mod annex;
pub mod chart;
mod columns;
mod cost;
mod distributions;
mod facts;
mod guarantee;
mod guidelines;
mod hierarchies;
mod input;
mod page;
mod risk;
mod sets;
mod summary;
mod sweep_page;
mod table;
mod tradeoff;
mod unchanged;
mod words;

pub use input::{
    ApprovalFact, ApprovalState, EditionFact, GrantFact, Reader, ReportPage, StepFact, SweepFact,
};
pub use sweep_page::{SweepPage, SweepPoint, SweepPromise, SweepTable};
pub use words::percent;
