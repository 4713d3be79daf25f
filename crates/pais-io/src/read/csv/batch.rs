//! Records on their way from the thread that divides a file to the one that codes its cells.

use std::io::{self, Read};

use super::{CountingReader, has_crlf, last_line, next, unclosed};

/// A batch ends when it has more bytes than this.
const BATCH_BYTES: usize = 256 << 10;

/// A batch ends when it has more cells than this, of which each takes 4 bytes in addition to its text.
const BATCH_CELLS: usize = 32 << 10;

/// Records one after the other.
#[derive(Default)]
pub(super) struct Batch {
    /// The text of the cells.
    text: Vec<u8>,
    /// By cell, its end in `text`, which is shorter than 4 GiB: a record has a few MiB at most.
    ends: Vec<u32>,
    records: Vec<RecordEnd>,
}

struct RecordEnd {
    /// Number of cells of this record and those before it.
    cells: usize,
    /// The physical line on which it ends.
    line: u64,
}

/// A record of a batch.
pub(super) struct Record<'b> {
    text: &'b [u8],
    start: u32,
    ends: &'b [u32],
    last_line: u64,
}

impl Batch {
    /// Fills the batch with the next records of a file, in place of its current ones. Returns whether the file
    /// continues.
    ///
    /// # Errors
    /// Those of the file, which is also read to its end.
    pub(super) fn fill<R: Read>(
        &mut self,
        reader: &mut csv::Reader<CountingReader<R>>,
        record: &mut csv::ByteRecord,
    ) -> io::Result<bool> {
        self.empty();
        while self.text.len() <= BATCH_BYTES && self.ends.len() <= BATCH_CELLS {
            if !next(reader, record)? {
                return unclosed(reader).map_or(Ok(false), |error| Err(io::Error::other(error)));
            }
            let start = self.text.len();
            self.text.extend_from_slice(record.as_slice());
            self.text
                .truncate(self.text.len() - usize::from(has_crlf(reader, record)));
            let ends = (0..record.len()).filter_map(|cell| record.range(cell));
            let ends = ends.map(|range| (start + range.end).min(self.text.len()) as u32);
            self.ends.extend(ends);
            self.records.push(RecordEnd {
                cells: self.ends.len(),
                line: last_line(reader),
            });
        }
        Ok(true)
    }

    /// Forgets the records, and gives back the memory of a large one.
    fn empty(&mut self) {
        self.text.clear();
        self.text.shrink_to(2 * BATCH_BYTES);
        self.ends.clear();
        self.ends.shrink_to(2 * BATCH_CELLS);
        self.records.clear();
    }

    /// Its records.
    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let (mut cells, mut start) = (0, 0);
        self.records.iter().map(move |record| {
            let ends = &self.ends[cells..record.cells];
            let found = Record {
                text: &self.text,
                start,
                ends,
                last_line: record.line,
            };
            cells = record.cells;
            start = ends.last().copied().unwrap_or(start);
            found
        })
    }
}

impl<'b> Record<'b> {
    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Its cells, without the CR of a CRLF.
    pub(super) fn cells(&self) -> impl Iterator<Item = &'b [u8]> {
        let mut start = self.start;
        self.ends.iter().map(move |&end| {
            let cell = &self.text[start as usize..end as usize];
            start = end;
            cell
        })
    }

    /// The physical line on which it starts.
    pub(super) fn line(&self) -> u64 {
        let end = self.ends.last().copied().unwrap_or(self.start);
        let text = &self.text[self.start as usize..end as usize];
        let inside = memchr::memchr_iter(b'\n', text);
        self.last_line - inside.count() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io::{self, Read};

    use pais_core::definition::json;
    use pais_core::schema::Schema;
    use pais_core::table::{ReadErrorKind, Table};
    use proptest::prelude::*;

    use super::{BATCH_BYTES, BATCH_CELLS};
    use crate::chunk::Assembler;
    use crate::read::csv::read;
    use crate::read::{ReadFailure, ReadLimits};

    fn schema() -> Schema {
        let dataset = json::parse(
            br#"{"name": "a", "columns": [
                {"name": "id", "role": "insensitive", "kind": "numeric"},
                {"name": "note", "role": "insensitive"}]}"#,
        );
        Schema::inline(&dataset.unwrap()).unwrap()
    }

    fn read_all(file: &str) -> Result<Table, ReadFailure<Infallible>> {
        let mut rows = Assembler::default();
        read(&schema(), file.as_bytes(), ReadLimits::default(), |chunk| {
            rows.push(chunk).unwrap();
            Ok(())
        })?;
        Ok(rows.finish())
    }

    /// A cell as a file has it.
    fn quoted(cell: &str) -> String {
        format!("\"{}\"", cell.replace('"', "\"\""))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn records_are_the_same_wherever_a_batch_ends(
            notes in prop::collection::vec("[a \",\n\r]{0,12}b", 1..40),
            has_crlf: bool,
            is_terminated: bool,
        ) {
            let end = if has_crlf { "\r\n" } else { "\n" };
            let rows = 3 * BATCH_BYTES / 16;
            let mut file = format!("id,note{end}");
            for row in 0..rows {
                file.push_str(&format!("{row},{}{end}", quoted(&notes[row % notes.len()])));
            }
            if !is_terminated {
                file.truncate(file.len() - end.len());
            }
            let table = read_all(&file).unwrap();
            prop_assert_eq!(table.rows, rows);
            for row in 0..rows {
                let cell = |at: usize| {
                    let column = &table.columns[at];
                    &*column.dictionary[column.codes[row] as usize]
                };
                prop_assert_eq!(cell(0), row.to_string());
                prop_assert_eq!(cell(1), &notes[row % notes.len()]);
            }
        }
    }

    #[test]
    fn a_fault_has_its_line_in_a_later_batch_and_after_a_large_record() {
        let long = "x".repeat(65_000);
        let mut file = "id,note\n".to_owned();
        let mut line = 1;
        while file.len() < 4 * BATCH_BYTES {
            file.push_str(&format!("{line},{}\n", quoted("two\nlines")));
            line += 2;
        }
        file.push_str(&format!("7,{long}\nold,note\n8\n"));
        let Err(ReadFailure::Refused(error)) = read_all(&file) else {
            panic!("two records do not fit");
        };
        let lines: Vec<_> = error.faults.iter().map(|fault| fault.line()).collect();
        assert_eq!(lines, [Some(line + 2), Some(line + 3)]);
    }

    #[test]
    fn a_file_without_end_is_read_no_further_than_its_receiver_wants() {
        let rows = io::Cursor::new("1,a\n".repeat(1 << 16));
        let endless = io::Cursor::new("id,note\n").chain(Endless(rows));
        let mut chunks = 0;
        let stopped = read(&schema(), endless, ReadLimits::default(), |_| {
            chunks += 1;
            if chunks == 3 { Err("enough") } else { Ok(()) }
        });
        assert!(matches!(stopped, Err(ReadFailure::Sink("enough"))));
        assert_eq!(chunks, 3);
    }

    #[test]
    fn a_source_that_fails_ends_the_rows_before_it() {
        let rows = "1,a\n".repeat(2 * BATCH_CELLS);
        let broken = io::Cursor::new(format!("id,note\n{rows}")).chain(Broken);
        let failed = read(&schema(), broken, ReadLimits::default(), |_| {
            Ok::<_, Infallible>(())
        });
        assert!(matches!(failed, Err(ReadFailure::Source(_))));

        let unclosed = format!("id,note\n{rows}1,\"a\n");
        let Err(ReadFailure::Refused(error)) = read_all(&unclosed) else {
            panic!("a quote is never closed");
        };
        assert_eq!(error.kind, ReadErrorKind::Malformed);
    }

    /// The same text again and again.
    struct Endless(io::Cursor<String>);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            self.0.set_position(0);
            self.0.read(buffer)
        }
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("broken"))
        }
    }
}
