//! The rows of a submission on their way into the store: read, encoded, sealed and inserted while
//! the body still arrives. No stage holds more than a few frames or chunks.

pub(crate) mod body;
pub(crate) mod pipeline;
mod reader;
mod sealing;
pub(crate) mod spool_file;
