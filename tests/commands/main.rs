//! The commands on files, run as a user runs them.

mod desk;
#[path = "../golden/mod.rs"]
mod golden;
mod golden_runs;
mod groups;
mod missing_cells;
mod readme;
mod sets;
mod verify;
