//! The commands `pais anonymize` and `pais verify` on files, and the commands of the README.

mod cli_dir;
mod document_shell;
mod drafts;
mod encounters;
#[cfg(feature = "scale")]
mod executors;
mod golden_runs;
mod groups;
mod guide;
mod guidelines;
mod hostile_files;
mod missing_cells;
mod outputs;
mod publish;
mod readme;
mod scale;
mod sets;
mod taxonomies;
mod terminal;
mod text_formats;
mod tokens;
mod verify;
