//! A file on its way in, and how much of it has been read.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

/// A file whose bytes are counted as they are read.
pub struct CountedFile {
    file: File,
    share: ReadShare,
}

/// What share of a file has been read.
#[derive(Clone, Debug)]
pub struct ReadShare {
    read: Rc<Cell<u64>>,
    /// Bytes of the file; 0 for what has no length, such as a pipe.
    bytes: u64,
}

impl CountedFile {
    /// Nothing of the file has been read.
    pub fn new(file: File) -> Self {
        let share = ReadShare {
            read: Rc::default(),
            bytes: file.metadata().map_or(0, |about| about.len()),
        };
        Self { file, share }
    }

    /// What share of it has been read, for as long as it is read.
    pub fn share(&self) -> ReadShare {
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
    /// 0 to 1; 0 where it is not known.
    pub fn now(&self) -> f64 {
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
    fn a_file_is_read_by_and_by() {
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
