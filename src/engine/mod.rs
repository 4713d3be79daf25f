//! The anonymizers, and the one way from a raw table to a verified release.

pub mod groups;
pub mod observer;
pub mod pais;
pub mod plan;
mod release;
mod requirement;
pub mod run;

pub use observer::{Observer, Phase, Unobserved};
pub use run::{FinishedRelease, Prepared, StepItem, StepRecord};
