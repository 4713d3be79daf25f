//! Decodes text to UTF-8 while it is read, with two small buffers.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, UTF_16BE, UTF_16LE, WINDOWS_1252};
use pais_core::table::ReadError;

use crate::read::chunk_builder::undecodable;
use crate::read::text_format::TextEncoding;

/// Bytes that are read and decoded at once.
const BLOCK_BYTES: usize = 32 << 10;

/// The longest byte order mark.
const MARK_BYTES: usize = 3;

/// A source as UTF-8, without a byte order mark. A mark at its start says how it is encoded; else
/// `encoding` does. UTF-8 is passed on as it is, and not checked.
///
/// An undecodable byte is an [`io::Error`] with a [`ReadError`] inside, which names its line.
pub(super) struct DecodedText<R> {
    source: R,
    state: State,
}

enum State {
    /// Nothing was read yet.
    Start(TextEncoding),
    /// UTF-8, of which the first bytes were read.
    Unchanged {
        head: [u8; MARK_BYTES],
        from: usize,
        to: usize,
    },
    Decoded(Box<Transcoder>),
}

impl<R: Read> DecodedText<R> {
    /// The text of a source.
    pub(super) fn new(source: R, encoding: TextEncoding) -> Self {
        Self {
            source,
            state: State::Start(encoding),
        }
    }

    /// Reads the byte order mark.
    fn start(&mut self, encoding: TextEncoding) -> io::Result<()> {
        let mut head = [0; MARK_BYTES];
        let mut to = 0;
        while to < MARK_BYTES {
            match self.source.read(&mut head[to..]) {
                Ok(0) => break,
                Ok(read) => to += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let decoded = |single_byte: Option<SingleByte>, decoder: Decoder, from: usize| {
            let head = &head[from..to];
            State::Decoded(Box::new(Transcoder::new(single_byte, decoder, head)))
        };
        self.state = match (&head[..to], encoding) {
            ([0xEF, 0xBB, 0xBF], _) => State::Unchanged {
                head,
                from: MARK_BYTES,
                to,
            },
            ([0xFF, 0xFE, ..], _) => decoded(None, UTF_16LE.new_decoder_without_bom_handling(), 2),
            ([0xFE, 0xFF, ..], _) => decoded(None, UTF_16BE.new_decoder_without_bom_handling(), 2),
            (_, TextEncoding::Utf8) => State::Unchanged { head, from: 0, to },
            // An empty file is refused as one.
            ([], TextEncoding::Utf16) => State::Unchanged { head, from: 0, to },
            (_, TextEncoding::Utf16) => {
                let detail = "the file has no byte order mark of UTF-16";
                let fix = "save the file with a byte order mark, or as UTF-8";
                return Err(refused(1, detail, fix));
            }
            (_, TextEncoding::Iso8859_1) => {
                let decoder = WINDOWS_1252.new_decoder_without_bom_handling();
                decoded(Some(SingleByte::Iso8859_1), decoder, 0)
            }
            (_, TextEncoding::Windows1252) => {
                let decoder = WINDOWS_1252.new_decoder_without_bom_handling();
                decoded(Some(SingleByte::Windows1252), decoder, 0)
            }
        };
        Ok(())
    }
}

impl<R: Read> Read for DecodedText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let State::Start(encoding) = self.state {
            self.start(encoding)?;
        }
        match &mut self.state {
            // `start` has left this state.
            State::Start(_) => Ok(0),
            State::Unchanged { head, from, to } if *from < *to => {
                let length = buffer.len().min(*to - *from);
                buffer[..length].copy_from_slice(&head[*from..*from + length]);
                *from += length;
                Ok(length)
            }
            State::Unchanged { .. } => self.source.read(buffer),
            State::Decoded(transcoder) => transcoder.read(&mut self.source, buffer),
        }
    }
}

/// An encoding whose characters are one byte. They differ in the bytes that they do not define.
#[derive(Clone, Copy)]
pub(crate) enum SingleByte {
    Iso8859_1,
    Windows1252,
}

impl SingleByte {
    /// The place of the first byte that is not a character.
    pub(crate) fn first_refused(self, block: &[u8]) -> Option<usize> {
        let is_refused = |byte: u8| match self {
            // Control characters, that no table has: such a file is Windows-1252.
            Self::Iso8859_1 => (0x80..=0x9F).contains(&byte),
            Self::Windows1252 => matches!(byte, 0x81 | 0x8D | 0x8F | 0x90 | 0x9D),
        };
        block.iter().position(|&byte| is_refused(byte))
    }

    fn refused(self, line: u64) -> io::Error {
        match self {
            Self::Iso8859_1 => refused(
                line,
                "a byte from 0x80 to 0x9F is a control character in ISO-8859-1",
                "name the encoding that has letters and signs there: `?encoding=windows-1252` (on \
                 the command line `--encoding windows-1252`)",
            ),
            Self::Windows1252 => refused(
                line,
                "a byte is no character of Windows-1252",
                "name the file's `encoding`, or save it as UTF-8",
            ),
        }
    }
}

fn refused(line: u64, detail: &str, fix: &str) -> io::Error {
    let mut error: ReadError = undecodable(line, None, detail);
    for fault in &mut error.faults {
        fault.suggested_fix = Some(fix.to_owned());
    }
    io::Error::other(error)
}

/// Decodes blocks of a source.
struct Transcoder {
    decoder: Decoder,
    single_byte: Option<SingleByte>,
    /// Bytes that were read, of which those from `input_from` on are not decoded.
    input: Vec<u8>,
    input_from: usize,
    /// Whether the source has ended, and whether its end was decoded.
    ended: bool,
    finished: bool,
    /// Text, of which that from `output_from` on is not taken.
    output: Box<[u8]>,
    output_from: usize,
    output_to: usize,
    /// Line feeds in the text so far.
    line_feeds: u64,
}

impl Transcoder {
    /// A decoder of a source that begins with `head`.
    fn new(single_byte: Option<SingleByte>, decoder: Decoder, head: &[u8]) -> Self {
        Self {
            decoder,
            single_byte,
            input: head.to_vec(),
            input_from: 0,
            ended: false,
            finished: false,
            output: vec![0; BLOCK_BYTES].into(),
            output_from: 0,
            output_to: 0,
            line_feeds: 0,
        }
    }

    fn read(&mut self, source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
        while self.output_from == self.output_to && !self.finished {
            if self.input_from == self.input.len() && !self.ended {
                self.fill(source)?;
            }
            self.decode()?;
        }
        let length = buffer.len().min(self.output_to - self.output_from);
        let text = &self.output[self.output_from..self.output_from + length];
        buffer[..length].copy_from_slice(text);
        self.output_from += length;
        Ok(length)
    }

    /// Reads a block.
    fn fill(&mut self, source: &mut impl Read) -> io::Result<()> {
        self.input.resize(BLOCK_BYTES, 0);
        self.input_from = 0;
        let read = loop {
            match source.read(&mut self.input) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.input.truncate(*read.as_ref().unwrap_or(&0));
        self.ended = read? == 0;
        Ok(())
    }

    /// Decodes what fits into the output.
    fn decode(&mut self) -> io::Result<()> {
        let input = &self.input[self.input_from..];
        if let Some(single_byte) = self.single_byte
            && let Some(at) = single_byte.first_refused(input)
        {
            return Err(single_byte.refused(self.line(&input[..at])));
        }
        let (result, read, written) =
            self.decoder
                .decode_to_utf8_without_replacement(input, &mut self.output, self.ended);
        self.input_from += read;
        (self.output_from, self.output_to) = (0, written);
        match result {
            DecoderResult::InputEmpty => self.finished = self.ended,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(_, _) => {
                let line = self.line(&self.output[..written]);
                let detail = "a part of the text is not UTF-16, or the file is not complete";
                return Err(refused(
                    line,
                    detail,
                    "save the file again, as UTF-8 or UTF-16",
                ));
            }
        }
        self.line_feeds += memchr::memchr_iter(b'\n', &self.output[..written]).count() as u64;
        Ok(())
    }

    /// The physical line on which `text` ends, which follows the text so far.
    fn line(&self, text: &[u8]) -> u64 {
        1 + self.line_feeds + memchr::memchr_iter(b'\n', text).count() as u64
    }
}
