//! The service: what `pais serve` runs, over the library crates of the workspace.
//!
//! `docs/architecture.md` is the map of the modules. Imports run one way:
//! `api → jobs → engine → db → pais-anonymize → pais-measure → pais-verify → pais-core`.

pub mod allocator;
pub mod api;
pub mod clock;
pub mod config;
pub mod db;
pub mod engine;
pub mod executors;
pub mod ids;
pub mod jobs;
pub mod memory;
pub mod oidc;
pub mod policy;
pub mod problem;
pub mod roles;
mod secret;
pub mod storage;
pub mod telemetry;
