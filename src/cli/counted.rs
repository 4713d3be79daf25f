//! Reads a file and reports which share of it has been read.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

/// A file that counts the bytes read from it.
pub(crate) struct CountedFile {
    file: File,
    share: ReadShare,
}

/// The share of a [`CountedFile`] that has been read. It is updated while the file is read.
#[derive(Clone, Debug)]
pub(crate) struct ReadShare {
    read: Rc<Cell<u64>>,
    /// Size of the file in bytes; 0 if it has no size, such as a pipe.
    bytes: u64,
}

impl CountedFile {
    /// Wraps a file of which nothing has been read yet.
    pub(crate) fn new(file: File) -> Self {
        let share = ReadShare {
            read: Rc::default(),
            bytes: file.metadata().map_or(0, |metadata| metadata.len()),
        };
        Self { file, share }
    }

    /// A handle on the share that has been read. It stays valid while the file is read.
    pub(crate) fn share(&self) -> ReadShare {
        self.share.clone()
    }
}

impl Read for CountedFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        let before = self.share.read.get();
        self.share.read.set(before + read as u64);
        Ok(read)
    }
}

impl ReadShare {
    /// The share read so far, from 0 to 1; 0 if the size of the file is not known.
    pub(crate) fn now(&self) -> f64 {
        match self.bytes {
            0 => 0.0,
            bytes => (self.read.get() as f64 / bytes as f64).min(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::CountedFile;

    #[test]
    fn the_share_grows_while_the_file_is_read() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"1234").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut counted = CountedFile::new(file);
        let share = counted.share();
        assert_eq!(share.now(), 0.0);
        counted.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(share.now(), 0.75);
    }
}
