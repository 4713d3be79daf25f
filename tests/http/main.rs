//! The service over HTTP, on a real PostgreSQL: the contract as its clients see it.

mod app;
mod database;
#[path = "../golden/mod.rs"]
mod golden;
mod hospital;

mod anatomy;
mod contract_access;
mod contract_jobs;
mod contract_lists;
mod contract_releases;
mod contract_submissions;
mod crash;
mod datasets;
mod documented;
mod errors;
mod examples;
mod golden_runs;
mod grants;
mod idempotency;
mod jobs;
mod openapi;
mod operation;
mod organizations;
mod problems;
mod queue;
mod releases;
mod roles;
mod sets;
mod submissions;
mod sweeps;
mod taxonomies;
mod tokens;
mod wrong_documents;
mod wrong_input;
mod wrong_tables;
