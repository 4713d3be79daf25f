//! What a page is made from.

use serde_json::Value;

/// What is known about a release and about the reader of its report. Documents are as the HTTP interface shows
/// them; what is absent is left out of the page.
#[derive(Clone, Debug, Default)]
pub struct ReportPage {
    /// The id of the release.
    pub release: String,
    /// Its display name.
    pub name: Option<String>,
    /// The name of its dataset.
    pub dataset: Option<String>,
    /// What the dataset is, in the holder's words.
    pub description: Option<String>,
    /// The name of the organization that released it.
    pub holder: Option<String>,
    /// When it was made, as text.
    pub made_at: Option<String>,
    /// Who reads the page.
    pub reader: Reader,
    /// Whether a second person lets the release leave; `None` where nobody has to.
    pub approval: Option<ApprovalFact>,
    /// The privacy model with its parameters.
    pub privacy: Value,
    /// What rows could be suppressed for; null where none could.
    pub suppression_for: Value,
    /// What the verifier found.
    pub verification: Value,
    /// The utility and risk report, as the reader may see it.
    pub report: Value,
    /// The tables: `[{name, rows, sha256, bytes}]`.
    pub tables: Value,
    /// Column to the labels of its cut; null without one.
    pub cut: Value,
    /// The columns with their roles, kinds and trees above the released labels; null where unknown.
    pub codebook: Value,
    /// The steps of the run, from the topmost table on; the last is the one released or a later one.
    pub steps: Vec<StepFact>,
    /// The edition of a publication that the release is; `None` if it is none.
    pub edition: Option<EditionFact>,
    /// The number of the released step.
    pub released_step: Option<u32>,
    /// The combinations of a sweep.
    pub sweep: Vec<SweepFact>,
}

/// An edition of a publication.
#[derive(Clone, Copy, Debug)]
pub struct EditionFact {
    /// Its number.
    pub number: u32,
    /// Rows that wait for a later edition; `None` for recipients and in packages.
    pub held_back_rows: Option<u64>,
}

/// Who reads a page.
#[derive(Clone, Debug)]
pub enum Reader {
    /// The holder, who sees the grants and what is computed from raw rows.
    Holder {
        /// Who may fetch the release.
        grants: Vec<GrantFact>,
    },
    /// A recipient.
    Recipient {
        /// The name of the recipient.
        recipient: Option<String>,
        /// The purpose of its grant.
        purpose: Option<String>,
    },
}

impl Default for Reader {
    fn default() -> Self {
        Self::Holder { grants: Vec::new() }
    }
}

/// The approval of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalFact {
    /// Its state.
    pub state: ApprovalState,
    /// When it was decided, as text.
    pub at: Option<String>,
    /// Who decided; for the holder.
    pub by: Option<String>,
    /// Why; for the holder.
    pub reason: Option<String>,
}

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    /// Nobody has decided.
    Pending,
    /// The release may be delivered.
    Approved,
    /// It may not.
    Rejected,
}

/// A recipient that may fetch the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantFact {
    /// The organization.
    pub recipient: String,
    /// What it needs the data for.
    pub purpose: String,
    /// Until when, as text; `None` for without end.
    pub until: Option<String>,
}

/// One step of a run: the table as it was after it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFact {
    /// Its number, from 0.
    pub step: u32,
    /// The column that it specialized; `None` for the topmost table.
    pub column: Option<String>,
    /// Mean loss of detail, 0 to 1.
    pub ncp: f64,
    /// Discernibility ratio, 0 to 1.
    pub dr: f64,
    /// Records of the smallest group that an adversary of the model can know.
    pub smallest: u64,
}

/// One combination of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepFact {
    /// The combination in words, such as `L 2, K 5, C 20 %`.
    pub name: String,
    /// Mean loss of detail, 0 to 1; `None` where no table meets it.
    pub ncp: Option<f64>,
    /// Discernibility ratio, 0 to 1.
    pub dr: Option<f64>,
    /// Whether it is the one released.
    pub is_released: bool,
}
