//! The service over HTTP, on a real PostgreSQL server, as its clients see it.

mod app;
mod database;
mod dump;
mod events;
mod hospital;
#[path = "../support/mod.rs"]
mod support;

mod anatomy;
mod api_access;
mod api_jobs;
mod api_lists;
mod api_releases;
mod api_submissions;
mod crash;
mod datasets;
mod disclosure;
mod documented;
mod edge;
mod errors;
mod examples;
mod golden_runs;
mod grants;
mod idempotency;
mod jobs;
mod old_rows;
mod openapi;
mod operation;
mod organizations;
mod problems;
mod process;
mod queue;
mod releases;
mod roles;
mod row_order;
mod sets;
mod submissions;
mod survival;
mod sweeps;
mod taxonomies;
mod tokens;
mod warnings;
mod wrong_documents;
mod wrong_input;
mod wrong_tables;
