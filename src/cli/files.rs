//! The files that a command reads and writes: it writes over none that it reads, and writes none twice.

use std::ffi::OsStr;
use std::fs::{Metadata, metadata, read_link, symlink_metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pais::storage::directory_of;

use super::output::Failure;
use super::sources::DocumentSource;

/// Maximum number of links that a path is followed through, as in the Linux kernel.
const LINKS: usize = 40;

/// What an input or output is on the disk.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A regular file, whatever path or link leads to it.
    File {
        /// Its file system.
        device: u64,
        /// Its number there.
        inode: u64,
    },
    /// A file that does not exist yet: its directory without links, and its name.
    New(PathBuf),
    /// A directory without links, for the tables of an anatomized release.
    Tables(PathBuf),
}

impl Place {
    /// The places of an input: a file, or those in a directory.
    fn of_input(path: &Path) -> Vec<Self> {
        if path.is_dir() {
            files_in(path, |_| true)
        } else {
            existing(path).into_iter().collect()
        }
    }

    /// The places of an output: a file, or a directory with the tables in it.
    fn of_output(path: &Path) -> Vec<Self> {
        if let Some(directory) = path.is_dir().then(|| path.canonicalize().ok()).flatten() {
            let mut places = files_in(path, is_table);
            places.push(Self::Tables(directory));
            return places;
        }
        let new = || Some(Self::New(target(path).ok().flatten()?));
        let place = if path.exists() { existing(path) } else { new() };
        place.into_iter().collect()
    }

    /// Whether writing to one would overwrite the other.
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tables(directory), Self::New(path))
            | (Self::New(path), Self::Tables(directory)) => {
                path.parent() == Some(directory) && path.file_name().is_some_and(is_table)
            }
            _ => self == other,
        }
    }
}

/// The regular file at a path; `None` where there is none, and for a pipe or device.
fn existing(path: &Path) -> Option<Place> {
    let metadata = metadata(path).ok().filter(Metadata::is_file)?;
    Some(Place::File {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

fn files_in(directory: &Path, is_one: impl Fn(&OsStr) -> bool) -> Vec<Place> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let files = entries.filter(|entry| is_one(&entry.file_name()));
    files.filter_map(|entry| existing(&entry.path())).collect()
}

/// Whether an anatomized release has tables of such a name.
pub(super) fn is_table(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == "qit.csv" || (name.starts_with("st_") && name.ends_with(".csv"))
}

/// Where a file at a path is or will be created: its directory without symbolic links, and its name, which is not
/// a link. `None` for anything but a regular file, such as a pipe, and for the open files of a process
/// (`/dev/stdout`).
///
/// # Errors
/// If there is no such directory, or the links have no end.
pub(super) fn target(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Some(name) = path.file_name() else {
            return Ok(None);
        };
        let directory = directory_of(&path).canonicalize()?;
        if directory.starts_with("/proc") {
            return Ok(None);
        }
        let place = directory.join(name);
        match symlink_metadata(&place) {
            Ok(metadata) if metadata.is_symlink() => path = directory.join(read_link(&place)?),
            Ok(metadata) => return Ok(metadata.is_file().then_some(place)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(place)),
            Err(error) => return Err(error),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// What an argument names.
struct NamedFile {
    /// The argument.
    name: String,
    places: Vec<Place>,
}

impl NamedFile {
    fn meets(&self, other: &Self) -> bool {
        let mut places = self.places.iter();
        places.any(|place| other.places.iter().any(|other| place.meets(other)))
    }
}

/// The files of a command.
#[derive(Default)]
pub(crate) struct Files {
    inputs: Vec<NamedFile>,
    outputs: Vec<NamedFile>,
}

impl Files {
    /// With a file that is read.
    pub(crate) fn input(mut self, argument: &str, path: &Path) -> Self {
        let name = format!("{argument} {}", path.display());
        let places = Place::of_input(path);
        self.inputs.push(NamedFile { name, places });
        self
    }

    /// With the raw table; `-` is standard input.
    pub(crate) fn raw_table(mut self, argument: &str, path: &Path) -> Self {
        if path != Path::new("-") {
            return self.input(argument, path);
        }
        self.inputs.push(NamedFile {
            name: "standard input".to_owned(),
            places: Place::of_input(Path::new("/dev/stdin")),
        });
        self
    }

    /// With documents that are read, as far as they are in files.
    pub(crate) fn documents<'a>(
        self,
        option: &str,
        sources: impl IntoIterator<Item = &'a DocumentSource>,
    ) -> Self {
        sources
            .into_iter()
            .fold(self, |files, source| match source {
                DocumentSource::File(path) => files.input(option, path),
                DocumentSource::Service(_) => files,
            })
    }

    /// With a file that is written, where it is given.
    pub(crate) fn output(mut self, option: &str, path: Option<&Path>) -> Self {
        if let Some(path) = path {
            let name = format!("{option} {}", path.display());
            let places = Place::of_output(path);
            self.outputs.push(NamedFile { name, places });
        }
        self
    }

    /// With the file that `-o` names, or else standard output.
    pub(crate) fn main_output(mut self, path: Option<&Path>) -> Self {
        if path.is_some() {
            return self.output("-o", path);
        }
        self.outputs.push(NamedFile {
            name: "standard output".to_owned(),
            places: Place::of_output(Path::new("/dev/stdout")),
        });
        self
    }

    /// Refuses an output that is an input or another output.
    ///
    /// # Errors
    /// If there is one.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for (number, output) in self.outputs.iter().enumerate() {
            let name = &output.name;
            let same = |others: &[NamedFile]| {
                let found = others.iter().find(|other| output.meets(other));
                found.map(|other| other.name.clone())
            };
            if let Some(input) = same(&self.inputs) {
                return Err(Failure::Usage(format!(
                    "{name}: this is the file of {input}, which would be overwritten; name another file"
                )));
            }
            if let Some(other) = same(&self.outputs[..number]) {
                return Err(Failure::Usage(format!(
                    "{name}: this is the file of {other}, too; name another file"
                )));
            }
        }
        Ok(())
    }
}
