//! The service over HTTP, on a real PostgreSQL: the contract as its clients see it.

mod app;
mod database;
mod hospital;

mod crash;
mod datasets;
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
mod submissions;
mod taxonomies;
mod tokens;
