//! The service: what `pais serve` runs, over the library crates of the workspace.
//!
//! `docs/architecture.md` is the map of the modules. Imports run one way:
//! `http → service → worker → store → pais-anonymize → pais-verify → pais-core`.

pub mod clock;
pub mod config;
pub mod http;
pub mod ids;
pub mod memory;
pub mod oidc;
pub mod policy;
pub mod problem;
pub mod roles;
pub mod service;
pub mod storage;
pub mod store;
pub mod telemetry;
pub mod worker;
