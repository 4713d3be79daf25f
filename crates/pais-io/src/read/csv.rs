//! Reads CSV submissions, a header and rows, in chunks.
//!
//! RFC 4180, with commas or another delimiter. BOM and CRLF are accepted, blank lines are skipped; a
//! line with a quoted empty cell is not blank. Line numbers in faults are physical: the line on which
//! the record starts. The header is line 1.

mod batch;

use std::convert::Infallible;
use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use pais_core::rejection::Fault;
use pais_core::schema::Schema;
use pais_core::table::{ReadError, ReadErrorKind, Table};

use crate::chunk::Assembler;
use crate::read::chunk_builder::{ChunkBuilder, RECORD_BYTES};
use crate::read::decoding::DecodedText;
use crate::read::failure::{ChunkSink, read_into};
use crate::read::header::{self, Target};
use crate::read::identifiers::IdentifierCells;
use crate::read::set_columns::SetColumns;
use crate::read::text_format::{Delimiter, TextFormat};
use crate::read::{IdentifierRepeats, ReadFailure, ReadLimits};

use batch::Batch;

/// Reads a CSV file with a header row and passes its rows to `chunk`, in chunks of the stored
/// columns. Returns the number of rows.
///
/// One pass over the bytes: another thread divides them into cells, and this one codes the cells. A cell
/// costs one hash look-up, or two in a long spelling that is not canonical; a distinct spelling of a chunk
/// costs one check and one allocation. Memory is one chunk, and two batches of 256 KiB and a record each.
/// The first [`pais_core::table::MAX_FAULTS`] faults are collected and all are counted before the file is
/// refused; no chunk is passed on after the first fault.
///
/// # Errors
/// As [`ReadFailure`].
pub fn read<E>(
    schema: &Schema,
    source: impl Read + Send,
    limits: ReadLimits,
    chunk: impl FnMut(Table) -> Result<(), E>,
) -> Result<u64, ReadFailure<E>> {
    read_as(schema, source, TextFormat::CSV, limits, None, chunk)
}

/// Like [`read`], for a file whose text is written in another format. Numbers are stored as if they
/// were written with a point and without separators of thousands. With `repeats`, counts the rows
/// whose identifiers occurred before.
///
/// # Errors
/// As [`read`].
pub fn read_as<E>(
    schema: &Schema,
    mut source: impl Read + Send,
    format: TextFormat,
    limits: ReadLimits,
    repeats: Option<&mut IdentifierRepeats>,
    chunk: impl FnMut(Table) -> Result<(), E>,
) -> Result<u64, ReadFailure<E>> {
    read_into(chunk, |chunk| {
        read_chunks(schema, &mut source, format, limits, repeats, chunk)
    })
}

fn read_chunks<'s>(
    schema: &'s Schema,
    source: &mut (dyn Read + Send),
    format: TextFormat,
    limits: ReadLimits,
    repeats: Option<&'s mut IdentifierRepeats>,
    chunk: &'s mut ChunkSink<'s>,
) -> Result<u64, ReadFailure<Infallible>> {
    let mut reader = records(source, format);
    let mut record = csv::ByteRecord::new();
    if !next(&mut reader, &mut record).map_err(ReadFailure::source)? {
        return Err(unclosed(&reader).unwrap_or_else(header::empty).into());
    }
    let names: Vec<&[u8]> = cells_of(&reader, &record).collect();
    let targets = header::columns(schema, &names, Some(&format))?;
    let mut builder = ChunkBuilder::new(schema, limits, chunk).written_as(format);
    builder.count_identifiers(repeats.map(|it| IdentifierCells::new(it, schema, &names)));
    let mut rows = RowCoder {
        targets: &targets,
        sets: SetColumns::new(schema),
        cell_bytes: limits.cell_bytes,
        builder,
    };
    // One batch is filled while the other is coded.
    let (full, batches) = mpsc::sync_channel(0);
    let (used, to_fill) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || divide(reader, &full, &to_fill));
        // The sender of full batches ends with the file, or with its failure.
        for batch in batches {
            let batch = batch.map_err(ReadFailure::source)?;
            rows.code(&batch)?;
            // The other thread may have come to the end of the file.
            let _ = used.send(batch);
        }
        let empty = "the file has a header and no rows; a submission needs at least one";
        rows.builder.finish(empty)
    })
}

/// Divides the rest of a file into batches, and fills those that come back again. Ends with the file, after
/// a failure, or when nobody takes them any more.
fn divide<R: Read>(
    mut reader: csv::Reader<CountingReader<R>>,
    full: &SyncSender<io::Result<Batch>>,
    used: &Receiver<Batch>,
) {
    let mut record = csv::ByteRecord::new();
    loop {
        let mut batch = used.try_recv().unwrap_or_default();
        let filled = batch.fill(&mut reader, &mut record);
        let goes_on = matches!(filled, Ok(true));
        if full.send(filled.map(|_| batch)).is_err() || !goes_on {
            return;
        }
    }
}

/// Codes the cells of records.
struct RowCoder<'s> {
    /// By cell of a record.
    targets: &'s [Target],
    sets: SetColumns<'s>,
    cell_bytes: usize,
    builder: ChunkBuilder<'s>,
}

impl RowCoder<'_> {
    fn code(&mut self, batch: &Batch) -> Result<(), ReadFailure<Infallible>> {
        let (targets, builder) = (self.targets, &mut self.builder);
        for record in batch.records() {
            if record.len() == targets.len() {
                for (cell, target) in record.cells().zip(targets) {
                    match *target {
                        Target::Cell(slot) => {
                            builder.push_cell(slot, cell, || record.line())?;
                        }
                        Target::Item(item) => self.sets.put(item, cell, self.cell_bytes),
                    }
                }
                self.sets.end_row(builder, || record.line())?;
                builder.end_row()?;
            } else {
                let detail = format!(
                    "the record has {} cells, but the header has {}",
                    record.len(),
                    targets.len()
                );
                builder.add_fault(Fault::record(record.line(), detail));
            }
        }
        Ok(())
    }
}

/// Reads a whole CSV file with a header row into one table.
///
/// ```
/// use pais_core::definition::{DatasetDefinition, json};
/// use pais_core::table::ReadErrorKind;
/// use pais_io::read::csv;
/// use pais_core::schema::Schema;
///
/// let dataset: DatasetDefinition = json::parse(
///     br#"{"name": "a", "columns": [{"name": "age", "role": "insensitive", "kind": "numeric"}]}"#,
/// )?;
/// let schema = Schema::inline(&dataset)?;
/// let table = csv::read_table(&schema, "age\n41\n42\n".as_bytes())?;
/// assert_eq!((table.rows, table.columns.len()), (2, 1));
///
/// let error = csv::read_table(&schema, "age\nold\n".as_bytes()).unwrap_err();
/// assert_eq!(error.kind, ReadErrorKind::Cells);
/// assert_eq!(error.faults[0].line(), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ReadError`] for a file that does not fit the schema; [`ReadErrorKind::Malformed`] where the
/// source cannot be read to its end.
pub fn read_table(schema: &Schema, source: impl Read + Send) -> Result<Table, ReadError> {
    let mut rows = Assembler::default();
    let limits = ReadLimits::default();
    let pushed = read(schema, source, limits, |chunk| rows.push(chunk));
    match pushed {
        Ok(_) => Ok(rows.finish()),
        Err(ReadFailure::Refused(error)) => Err(error),
        Err(ReadFailure::Source(error)) => {
            let detail = format!("the source cannot be read to its end: {error}");
            Err(ReadError::new(ReadErrorKind::Malformed, detail))
        }
        Err(ReadFailure::Sink(error)) => {
            Err(ReadError::new(ReadErrorKind::TooLarge, error.to_string()))
        }
    }
}

/// The names in a file's header, for a caller that must know the columns before it reads them;
/// empty where there is no header.
///
/// # Errors
/// As [`read`].
pub fn names(
    source: impl Read,
    format: TextFormat,
) -> Result<Vec<String>, ReadFailure<Infallible>> {
    let mut reader = records(source, format);
    let mut record = csv::ByteRecord::new();
    next(&mut reader, &mut record).map_err(ReadFailure::source)?;
    let name = |cell| String::from_utf8_lossy(cell).into_owned();
    Ok(cells_of(&reader, &record).map(name).collect())
}

fn records<R: Read>(source: R, format: TextFormat) -> csv::Reader<CountingReader<R>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(format.delimiter().byte())
        .terminator(csv::Terminator::Any(b'\n'))
        .buffer_capacity(128 << 10)
        .from_reader(CountingReader::new(source, format))
}

/// Reads the next record that is not a blank line.
fn next<R: Read>(
    reader: &mut csv::Reader<CountingReader<R>>,
    record: &mut csv::ByteRecord,
) -> io::Result<bool> {
    loop {
        reader.get_mut().start_record();
        let read = reader.read_byte_record(record);
        let is_record = read.map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            // The reader has no other error: byte records are not decoded, and `flexible` is set.
            kind => io::Error::other(format!("{kind:?}")),
        })?;
        check_quotes(reader)?;
        if !is_record || !is_blank(reader, record) {
            return Ok(is_record);
        }
    }
}

/// Checks that no quoted cell of the last read record continues after its closing quote. A header may: it is
/// compared with the columns, which gives a better message for a file in another format.
fn check_quotes<R: Read>(reader: &mut csv::Reader<CountingReader<R>>) -> io::Result<()> {
    let Some(behind) = reader.get_ref().quotes.behind_closed else {
        return Ok(());
    };
    let (end, line) = (reader.position().byte(), last_line(reader));
    if behind.first >= end {
        return Ok(());
    }
    let counted = reader.get_mut();
    if counted.records <= 1 {
        counted.quotes.behind_closed = behind.after(end);
        return Ok(());
    }
    let detail = format!(
        "a quoted cell of the record that ends on line {line} goes on behind the double quote that closes it; write a \
         quote inside a quoted cell as two"
    );
    Err(io::Error::other(ReadError::new(
        ReadErrorKind::Malformed,
        detail,
    )))
}

/// Cells without the CR of a CRLF.
fn cells_of<'r, R: Read>(
    reader: &csv::Reader<CountingReader<R>>,
    record: &'r csv::ByteRecord,
) -> impl Iterator<Item = &'r [u8]> {
    let kept = record.as_slice().len() - usize::from(has_crlf(reader, record));
    let ranges = (0..record.len()).filter_map(|cell| record.range(cell));
    ranges.map(move |range| &record.as_slice()[range.start..range.end.min(kept)])
}

/// Whether a record ends in the CR of a CRLF, which the reader leaves at the end of the last cell.
fn has_crlf<R: Read>(reader: &csv::Reader<CountingReader<R>>, record: &csv::ByteRecord) -> bool {
    // A CR that is part of a quoted cell is before the closing quote.
    record.as_slice().ends_with(b"\r")
        && reader.get_ref().before(line_end(reader), 1) == Some(b'\r')
}

/// Whether a record is a blank line that ends in CRLF; the reader skips those that end in LF. The
/// quoted empty cell is not blank.
fn is_blank<R: Read>(reader: &csv::Reader<CountingReader<R>>, record: &csv::ByteRecord) -> bool {
    if record.len() != 1 || record[0] != *b"\r" {
        return false;
    }
    let (counted, end) = (reader.get_ref(), line_end(reader));
    counted.before(end, 1) == Some(b'\r') && counted.before(end, 2) != Some(b'"')
}

/// The number of bytes before the line feed that ends the last read record, or before the end of
/// the file.
fn line_end<R: Read>(reader: &csv::Reader<CountingReader<R>>) -> u64 {
    reader.position().byte() - u64::from(is_terminated(reader))
}

/// Whether the last read record ends in a line feed. Only the last one of a file may not.
fn is_terminated<R: Read>(reader: &csv::Reader<CountingReader<R>>) -> bool {
    let counted = reader.get_ref();
    let at_end = counted.ended && reader.position().byte() == counted.bytes;
    !at_end || counted.last == b'\n'
}

/// The physical line on which the last read record ends. The reader counts line feeds up to the record's
/// end, so the one there is subtracted.
fn last_line<R: Read>(reader: &csv::Reader<CountingReader<R>>) -> u64 {
    reader.position().line() - u64::from(is_terminated(reader))
}

fn unclosed<R: Read>(reader: &csv::Reader<CountingReader<R>>) -> Option<ReadError> {
    let counted = reader.get_ref();
    (counted.ended && counted.quotes.is_open).then(|| {
        let line = reader.position().line().saturating_sub(counted.quotes.behind);
        let detail = format!(
            "the double quote that opens a cell on line {line} is never closed; close it, and write a quote \
             inside a quoted cell as two"
        );
        ReadError::new(ReadErrorKind::Malformed, detail)
    })
}

/// Where quoted cells continue after their closing quote: such a cell would be ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextBehindQuotes {
    /// The offsets of the first and the last such text.
    first: u64,
    last: u64,
}

impl TextBehindQuotes {
    /// The part of it that is not before an offset.
    fn after(self, offset: u64) -> Option<Self> {
        let first = if self.first < offset {
            self.last
        } else {
            self.first
        };
        (self.last >= offset).then_some(Self { first, ..self })
    }
}

/// Whether the text so far ends inside a quoted cell. A quote opens a cell at its beginning only, and two quotes in
/// a quoted cell are one of its characters.
#[derive(Clone, Copy, Debug, Default)]
struct QuotedCell {
    is_open: bool,
    /// Line feeds after its opening quote.
    behind: u64,
    /// The offset after its last closing quote; 0 for none.
    closed: u64,
    behind_closed: Option<TextBehindQuotes>,
}

impl QuotedCell {
    /// Reads a block that begins at an offset, after this byte.
    fn read(&mut self, block: &[u8], offset: u64, before: u8, delimiter: u8) {
        // After a closing quote, a CR can only be that of a CRLF.
        let goes_on = |place: usize| {
            let next = block.get(place);
            next.is_some_and(|byte| ![delimiter, b'"', b'\r', b'\n'].contains(byte))
        };
        if self.closed == offset && self.closed > 0 && goes_on(0) {
            self.goes_on_at(offset);
        }
        let mut opened = None;
        for place in memchr::memchr_iter(b'"', block) {
            let at = offset + place as u64;
            if self.is_open {
                self.is_open = false;
                self.closed = at + 1;
                if goes_on(place + 1) {
                    self.goes_on_at(at + 1);
                }
                continue;
            }
            let is_escaped = self.closed == at && self.closed > 0;
            let previous = place.checked_sub(1).map_or(before, |it| block[it]);
            if !is_escaped && [delimiter, b'\n'].contains(&previous) {
                opened = Some(place);
            }
            self.is_open = is_escaped || opened == Some(place);
        }
        // The first of two quotes may end the block.
        if self.is_open || self.closed == offset + block.len() as u64 {
            let cell = &block[opened.unwrap_or(0)..];
            let earlier = opened.map_or(self.behind, |_| 0);
            self.behind = earlier + memchr::memchr_iter(b'\n', cell).count() as u64;
        }
    }

    fn goes_on_at(&mut self, offset: u64) {
        let first = self.behind_closed.map_or(offset, |behind| behind.first);
        self.behind_closed = Some(TextBehindQuotes {
            first,
            last: offset,
        });
    }
}

/// Maximum size of the header, in bytes.
const HEADER_BYTES: u64 = 1 << 20;

/// Maximum number of delimiters of a record that are read beyond its first MiB. The reader takes 8
/// bytes for each cell.
const MORE_DELIMITERS: u64 = 1 << 20;

/// The bytes before the end of a line that decide whether a CR belongs to its last cell.
const LINE_END: usize = 2;

/// Counts bytes and quotes while reading, so that faults of the whole file are found in the same
/// pass.
struct CountingReader<R> {
    source: DecodedText<R>,
    delimiter: Delimiter,
    /// The last block that was read, after the last bytes of the previous block. The block is left out where it
    /// has no CR.
    recent: Vec<u8>,
    /// The offset of the first byte of `recent` in the file.
    recent_start: u64,
    /// The last bytes that were read.
    tail: Vec<u8>,
    bytes: u64,
    quotes: QuotedCell,
    last: u8,
    ended: bool,
    /// Number of records of which reading has begun; the header is the first.
    records: u64,
    /// Bytes read since the record began, and delimiters after its first MiB. Both include the rest
    /// of the block that was read for the record before.
    since_record: u64,
    more_delimiters: u64,
}

impl<R: Read> CountingReader<R> {
    fn new(source: R, format: TextFormat) -> Self {
        Self {
            source: DecodedText::new(source, format.encoding()),
            delimiter: format.delimiter(),
            recent: Vec::new(),
            recent_start: 0,
            tail: Vec::with_capacity(2 * LINE_END),
            bytes: 0,
            quotes: QuotedCell::default(),
            last: b'\n',
            ended: false,
            records: 0,
            since_record: 0,
            more_delimiters: 0,
        }
    }

    fn start_record(&mut self) {
        self.records += 1;
        self.since_record = 0;
        self.more_delimiters = 0;
    }

    /// Checks the size of the record that is being read, of which `block` is a part.
    fn check_record(&mut self, block: &[u8]) -> Result<(), ReadError> {
        self.since_record += block.len() as u64;
        let limit = if self.records <= 1 {
            HEADER_BYTES
        } else {
            RECORD_BYTES
        };
        if self.since_record <= HEADER_BYTES {
            return Ok(());
        }
        self.more_delimiters += memchr::memchr_iter(self.delimiter.byte(), block).count() as u64;
        let detail = if self.since_record > limit {
            let megabytes = limit >> 20;
            if self.records <= 1 {
                format!(
                    "the header is longer than {megabytes} MiB; check whether a quote is never closed, and \
                     whether the line ends were sent: `curl --data` drops them, `--data-binary` does not"
                )
            } else {
                format!(
                    "a record is longer than {megabytes} MiB; check whether a quote is never closed"
                )
            }
        } else if self.more_delimiters > MORE_DELIMITERS {
            "a record has more than a million cells; check whether a line end is missing".to_owned()
        } else {
            return Ok(());
        };
        Err(ReadError::new(ReadErrorKind::Malformed, detail))
    }

    /// The byte `distance` bytes before an offset of the file, for an offset in the last block.
    /// `None` also for a byte of a block without CR.
    fn before(&self, offset: u64, distance: u64) -> Option<u8> {
        let index = offset
            .checked_sub(distance)?
            .checked_sub(self.recent_start)?;
        self.recent.get(usize::try_from(index).ok()?).copied()
    }

    /// Keeps a block that begins at the offset `self.bytes`.
    fn keep(&mut self, block: &[u8]) {
        self.recent.clear();
        self.recent.extend_from_slice(&self.tail);
        self.recent_start = self.bytes - self.tail.len() as u64;
        if memchr::memchr(b'\r', block).is_some() {
            self.recent.extend_from_slice(block);
        }
        let last = &block[block.len().saturating_sub(LINE_END)..];
        self.tail.extend_from_slice(last);
        self.tail.drain(..self.tail.len().saturating_sub(LINE_END));
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        let Some(&last) = buffer[..read].last() else {
            self.ended = true;
            return Ok(0);
        };
        let block = &buffer[..read];
        let delimiter = self.delimiter.byte();
        self.quotes.read(block, self.bytes, self.last, delimiter);
        self.last = last;
        self.keep(block);
        self.bytes += read as u64;
        self.check_record(block).map_err(std::io::Error::other)?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use pais_core::schema::Schema;
    use pais_core::table::ReadErrorKind;
    use proptest::prelude::*;

    use super::QuotedCell;

    /// The state after a text that is read in blocks of these lengths.
    fn read(text: &[u8], lengths: &[usize]) -> QuotedCell {
        let mut quotes = QuotedCell::default();
        let (mut at, mut before) = (0, b'\n');
        let mut lengths = lengths.iter().cycle();
        while at < text.len() {
            let length = lengths.next().copied().unwrap_or(text.len()).max(1);
            let block = &text[at..text.len().min(at + length)];
            quotes.read(block, at as u64, before, b',');
            at += block.len();
            before = block[block.len() - 1];
        }
        quotes
    }

    /// Whether the reader of records takes what comes behind a text as a part of its last cell.
    fn ends_in_a_quoted_cell(text: &[u8]) -> bool {
        let marked = [text, b"\nmark\n"].concat();
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .terminator(csv::Terminator::Any(b'\n'))
            .from_reader(marked.as_slice());
        let last = reader.into_byte_records().last().unwrap().unwrap();
        last != vec!["mark"]
    }

    #[test]
    fn the_line_of_the_quote_that_is_never_closed_is_known() {
        for (text, behind) in [
            ("q,v\nA,6\" tall\nA,\"never closed\nA,2\n", Some(2)),
            ("q,v\n\"A\",\"a \"\"quoted\"\" word\"\nB,2\"\n", None),
            ("\"", Some(0)),
            ("a,\"b\n\"\"\nc", Some(2)),
        ] {
            for lengths in [&[usize::MAX][..], &[1], &[3, 2], &[4, 2]] {
                let found = read(text.as_bytes(), lengths);
                assert_eq!(found.is_open.then_some(found.behind), behind, "{text:?}");
            }
        }
        let schema = columns(&["q", "v"]);
        let file = "q,v\n\nA,6\" tall\nA,\"never closed\nA,2\nA,3\n";
        let refused = super::read_table(&schema, file.as_bytes()).unwrap_err();
        assert_eq!(refused.kind, ReadErrorKind::Malformed);
        assert!(refused.detail.contains("on line 4"), "{refused}");
    }

    fn columns(names: &[&str]) -> Schema {
        let columns = names.iter();
        let columns = columns.map(|name| serde_json::json!({"name": name, "role": "insensitive"}));
        let columns: Vec<serde_json::Value> = columns.collect();
        let definition = serde_json::json!({"name": "t", "columns": columns});
        Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn an_open_cell_is_found_as_the_reader_of_records_has_it(
            text in "[a\",\r\n]{0,24}", lengths in prop::collection::vec(1..5usize, 1..4),
        ) {
            let text = text.as_bytes();
            let found = read(text, &lengths);
            prop_assert_eq!(found.behind_closed.is_some(), goes_on_behind_a_quote(text));
            prop_assert_eq!(found.is_open, ends_in_a_quoted_cell(text));
        }
    }

    /// Whether a quoted cell of a text goes on behind the quote that closes it, byte by byte.
    fn goes_on_behind_a_quote(text: &[u8]) -> bool {
        let (mut quoted, mut at) = (false, 0);
        while at < text.len() {
            let is_first = at == 0 || b",\n".contains(&text[at - 1]);
            match (quoted, text[at], text.get(at + 1)) {
                (true, b'"', Some(b'"')) => at += 1,
                (true, b'"', None | Some(b',' | b'\r' | b'\n')) => quoted = false,
                (true, b'"', Some(_)) => return true,
                (false, b'"', _) if is_first => quoted = true,
                _ => {}
            }
            at += 1;
        }
        false
    }

    #[test]
    fn a_cell_that_goes_on_behind_its_closing_quote_is_refused_with_its_line() {
        let schema = columns(&["q", "v"]);
        let good = "A,\"b, c\"\n".repeat(1 << 16);
        for (rows, line) in [
            ("A,\"Smith\" Hospital\n", 2),
            ("\n\"a\nb\",\"\"x\n", 4),
            (&format!("{good}\"Smith\" ,2\n{good}"), 2 + (1 << 16)),
        ] {
            let file = format!("q,v\n{rows}");
            let refused = super::read_table(&schema, file.as_bytes()).unwrap_err();
            assert_eq!(refused.kind, ReadErrorKind::Malformed);
            assert!(
                refused.detail.contains(&format!("on line {line} ")),
                "{refused}"
            );
        }
        let open = super::read_table(&schema, "q,v\nA,6\" tall\nA \"b\",2\n".as_bytes());
        assert_eq!(open.unwrap().rows, 2);
    }
}
