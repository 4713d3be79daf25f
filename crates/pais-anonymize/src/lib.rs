//! The anonymizers, and the one way from a raw table to a verified release.

pub mod estimate;
pub mod groups;
pub mod items;
pub mod observer;
pub mod pais;
pub mod plan;
pub mod pre_generalization;
mod release;
mod requirement;
pub mod run;
pub mod sweep;
pub mod tally;

pub use observer::{Count, Observer, Phase, Unobserved};
pub use run::{FinishedRelease, Prepared, StepItem, StepRecord};
pub use sweep::{SweepItem, SweepStatus};
pub use tally::{Standing, Tally};
