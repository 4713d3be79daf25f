//! Attacks on the real program: what one client does must not harm the others, and what is around the
//! service must not harm its data.

mod archives;
mod backups;
mod connections;
mod database_server;
mod doctor;
mod erasure;
mod fairness;
mod full_disk;
mod hostile_files;
mod keys;
mod killed;
mod large_json;
mod monitoring;
mod mutations;
mod operations_page;
mod poison_job;
mod slow_uploads;
mod stopping;
mod text;
mod traces;
mod two_hospitals;
mod worker_processes;
