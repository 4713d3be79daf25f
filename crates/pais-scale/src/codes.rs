//! Rows of codes in a sealed file, in blocks of columns.

use std::io;

use crate::sealed::SealedFile;

/// Rows of a block: some 256 KiB of 16 columns of one byte.
pub(crate) const BLOCK_ROWS: usize = 16_384;

/// Writes rows of codes.
pub(crate) struct CodeWriter {
    file: SealedFile,
    block_rows: usize,
    rows: u64,
    /// By column, the codes of the block that is not full.
    pending: Vec<Vec<u32>>,
    /// By column, its greatest code so far.
    greatest: Vec<u32>,
    bytes: Vec<u8>,
}

impl CodeWriter {
    /// Writes rows of this many columns into an empty file, sealed in blocks of `block_rows` rows.
    pub(crate) fn new(file: SealedFile, columns: usize, block_rows: usize) -> Self {
        Self {
            file,
            block_rows,
            rows: 0,
            pending: vec![Vec::new(); columns],
            greatest: vec![0; columns],
            bytes: Vec::new(),
        }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Those of the file system.
    #[inline]
    pub(crate) fn push(&mut self, row: impl Iterator<Item = u32>) -> io::Result<()> {
        for (pending, code) in self.pending.iter_mut().zip(row) {
            pending.push(code);
        }
        self.rows += 1;
        if self.rows.is_multiple_of(self.block_rows as u64) {
            self.seal(&mut |_| ())?;
        }
        Ok(())
    }

    /// Appends rows given by columns. `sealing` sees each full block before it is sealed.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn push_columns(
        &mut self,
        columns: &[Vec<u32>],
        rows: usize,
        sealing: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut start = 0;
        while start < rows {
            let room = self.block_rows - (self.rows % self.block_rows as u64) as usize;
            let end = rows.min(start + room);
            for (pending, codes) in self.pending.iter_mut().zip(columns) {
                pending.extend_from_slice(&codes[start..end]);
            }
            self.rows += (end - start) as u64;
            if end - start == room {
                self.seal(sealing)?;
            }
            start = end;
        }
        Ok(())
    }

    /// The finished file.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn finish(mut self, sealing: &mut dyn FnMut(&[u8])) -> io::Result<CodeFile> {
        if !self.rows.is_multiple_of(self.block_rows as u64) {
            self.seal(sealing)?;
        }
        Ok(CodeFile {
            file: self.file,
            block_rows: self.block_rows,
            rows: self.rows,
            greatest: self.greatest,
        })
    }

    /// Seals the pending rows as a block: for each column, the width of its codes and the codes.
    fn seal(&mut self, sealing: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.bytes.clear();
        for (codes, all) in self.pending.iter_mut().zip(&mut self.greatest) {
            let greatest = codes.iter().copied().max().unwrap_or(0);
            *all = greatest.max(*all);
            let width: u8 = match greatest {
                0..=0xff => 1,
                0x100..=0xffff => 2,
                _ => 4,
            };
            self.bytes.push(width);
            for code in codes.iter() {
                let bytes = code.to_le_bytes();
                self.bytes.extend_from_slice(&bytes[..width.into()]);
            }
            codes.clear();
        }
        sealing(&self.bytes);
        self.file.push(&self.bytes)
    }
}

/// Rows of codes, numbered from 0.
pub(crate) struct CodeFile {
    /// Its blocks.
    pub(crate) file: SealedFile,
    /// Rows of each block except the last one, at least 1.
    pub(crate) block_rows: usize,
    /// Number of rows.
    pub(crate) rows: u64,
    /// By column, its greatest code; 0 without rows.
    pub(crate) greatest: Vec<u32>,
}

impl CodeFile {
    /// Number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.file.blocks()
    }

    /// The number of the first row of a block.
    pub(crate) fn first_row(&self, block: usize) -> u64 {
        (block * self.block_rows) as u64
    }

    /// Number of rows of a block.
    pub(crate) fn rows_of(&self, block: usize) -> usize {
        let left = self.rows - self.first_row(block);
        self.block_rows.min(left as usize)
    }

    /// Opens a block.
    ///
    /// # Errors
    /// Those of the file system, and for a file that was changed.
    pub(crate) fn block(&self, block: usize) -> io::Result<CodeBlock> {
        Ok(CodeBlock {
            bytes: self.file.block(block)?,
            rows: self.rows_of(block),
        })
    }
}

/// A block of rows.
pub(crate) struct CodeBlock {
    bytes: Vec<u8>,
    rows: usize,
}

impl CodeBlock {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Calls `found` with the codes of each column, in order.
    pub(crate) fn for_each_column(&self, mut found: impl FnMut(usize, ColumnCodes<'_>)) {
        let mut rest = self.bytes.as_slice();
        let mut column = 0;
        while let Some((&width, after)) = rest.split_first() {
            let (codes, after) = after.split_at(self.rows * usize::from(width));
            found(
                column,
                ColumnCodes {
                    bytes: codes,
                    width,
                },
            );
            rest = after;
            column += 1;
        }
    }

    /// All codes, by column.
    pub(crate) fn columns(&self) -> Vec<Vec<u32>> {
        let mut columns = Vec::new();
        self.for_each_column(|_, codes| columns.push(codes.mapped(|code| code)));
        columns
    }
}

/// The codes of a column of a block.
pub(crate) struct ColumnCodes<'a> {
    bytes: &'a [u8],
    width: u8,
}

impl ColumnCodes<'_> {
    /// The codes, mapped.
    pub(crate) fn mapped<T>(&self, map: impl FnMut(u32) -> T) -> Vec<T> {
        let mut mapped = Vec::new();
        self.for_each(map, |value| mapped.push(value));
        mapped
    }

    /// Adds the mapped value of each code.
    pub(crate) fn add_to(&self, sums: &mut [u64], addend: impl FnMut(u32) -> u64) {
        let mut sums = sums.iter_mut();
        self.for_each(addend, |value| {
            if let Some(sum) = sums.next() {
                *sum += value;
            }
        });
    }

    #[inline]
    fn for_each<T>(&self, mut map: impl FnMut(u32) -> T, mut found: impl FnMut(T)) {
        match self.width {
            1 => self.bytes.iter().for_each(|&code| found(map(code.into()))),
            2 => {
                let codes = self.bytes.as_chunks().0.iter();
                codes.for_each(|&code| found(map(u16::from_le_bytes(code).into())));
            }
            _ => {
                let codes = self.bytes.as_chunks().0.iter();
                codes.for_each(|&code| found(map(u32::from_le_bytes(code))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::CodeWriter;
    use crate::sealed::Sealer;

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(
            rows in prop::collection::vec([0..3u32, 0..70_000u32, 0..u32::MAX], 0..60),
            block_rows in 1..20usize,
            by_columns in any::<bool>(),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let sealer = Sealer::new(directory.path().to_owned()).unwrap();
            let mut writer = CodeWriter::new(sealer.file().unwrap(), 3, block_rows);
            if by_columns {
                for rows in rows.chunks(7) {
                    let column = |at: usize| rows.iter().map(|row| row[at]).collect();
                    let columns = [column(0), column(1), column(2)];
                    writer.push_columns(&columns, rows.len(), &mut |_| ()).unwrap();
                }
            } else {
                rows.iter().for_each(|row| writer.push(row.iter().copied()).unwrap());
            }
            let file = writer.finish(&mut |_| ()).unwrap();
            prop_assert_eq!(file.rows(), rows.len() as u64);
            prop_assert_eq!(file.blocks(), rows.len().div_ceil(block_rows));
            let mut found = Vec::new();
            for block in 0..file.blocks() {
                prop_assert_eq!(file.first_row(block), found.len() as u64);
                let block = file.block(block).unwrap();
                let columns = block.columns();
                found.extend((0..block.rows()).map(|row| [0, 1, 2].map(|at| columns[at][row])));
            }
            let greatest = [0, 1, 2].map(|at| rows.iter().map(|row| row[at]).max().unwrap_or(0));
            prop_assert_eq!(&file.greatest, &greatest);
            prop_assert_eq!(found, rows);
        }
    }
}
