//! `pais`: privacy-aware sharing of health data.
//!
//! A hospital sends a table; `pais` anonymizes it to a stated privacy model, proves that the
//! result meets it, stores it, and hands it to exactly the recipients who were granted it.
//! `docs/architecture.md` is the map of the modules below; imports run one way,
//! `http → jobs → store, engine → privacy, utility → table, taxonomy → domain`.

pub mod clock;
pub mod config;
pub mod domain;
pub mod engine;
pub mod http;
pub mod jobs;
pub mod postgres;
pub mod privacy;
pub mod sample;
pub mod store;
pub mod table;
pub mod taxonomy;
pub mod telemetry;
pub mod utility;
