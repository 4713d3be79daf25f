//! Submissions, jobs, releases and grants over HTTP, against a PostgreSQL of their own.

mod app;
mod jobs;
mod queue;
mod releases;
mod roles;
mod server;
mod submissions;
