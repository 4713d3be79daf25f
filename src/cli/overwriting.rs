//! Keeps a command from writing over the files that it reads.

use std::fs::{Metadata, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::failure::Failure;

/// A file, whatever path or link leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The file with this metadata; `None` for what is no regular file, such as a pipe.
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        metadata.is_file().then(|| Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    fn at(path: &Path) -> Option<Self> {
        Self::of(&metadata(path).ok()?)
    }
}

/// Refuses an output that is the input, or a directory of tables one of which would be.
///
/// # Errors
/// If writing the output would replace the input.
pub(crate) fn refuse(input: Option<FileIdentity>, output: &Path) -> Result<(), Failure> {
    let Some(input) = input else { return Ok(()) };
    let is_input = |path: &Path| FileIdentity::at(path) == Some(input);
    let has_input = |directory: &Path| {
        let entries = directory.read_dir().into_iter().flatten().flatten();
        let mut tables = entries.filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name == "qit.csv" || (name.starts_with("st_") && name.ends_with(".csv"))
        });
        tables.any(|entry| is_input(&entry.path()))
    };
    if is_input(output) || (output.is_dir() && has_input(output)) {
        return Err(Failure::Usage(format!(
            "{}: this is the raw table, which would be overwritten; name another output",
            output.display()
        )));
    }
    Ok(())
}
