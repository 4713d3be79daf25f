//! Attacks on the real program: what one client does must not harm the others.

mod connections;
mod fairness;
mod large_json;
mod poison_job;
mod slow_uploads;
mod stopping;
mod two_hospitals;
