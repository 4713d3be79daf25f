//! What a hospital's service survives: hostile and broken clients, and full disks.

mod hostile_files;
mod mutations;
mod text;
