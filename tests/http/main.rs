//! The service over HTTP, on a real PostgreSQL: the contract as its clients see it.

mod app;
mod database;

mod datasets;
mod idempotency;
mod openapi;
mod operation;
mod organizations;
mod problems;
mod roles;
mod taxonomies;
mod tokens;
