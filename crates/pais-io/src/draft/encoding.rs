//! Finds the encoding of a text while it is read, and passes it on as UTF-8.
//!
//! Text is taken as UTF-8 at first. If it is no longer UTF-8 and all characters before were ASCII, it is
//! Windows-1252; otherwise the bytes are passed on unchanged, and the reader refuses them.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::read::{SingleByte, TextEncoding};

/// Size of a block, in bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// The text of a source as UTF-8, without a byte order mark.
pub(super) struct FoundText<R> {
    source: R,
    given: Option<TextEncoding>,
    /// The encoding of what was read so far; `None` before the first block.
    found: Option<TextEncoding>,
    /// Whether all of it is ASCII.
    is_ascii: bool,
    /// Of text that is not UTF-8.
    decoder: Option<Decoder>,
    /// Bytes at the end of a block that begin a character of UTF-8.
    rest: Vec<u8>,
    text: Vec<u8>,
    taken: usize,
    ended: bool,
}

impl<R: Read> FoundText<R> {
    /// The text of a source. A `given` encoding is used, but a byte order mark takes precedence over it.
    pub(super) fn new(source: R, given: Option<TextEncoding>) -> Self {
        Self {
            source,
            given,
            found: None,
            is_ascii: true,
            decoder: None,
            rest: Vec::new(),
            text: Vec::new(),
            taken: 0,
            ended: false,
        }
    }

    /// The encoding of what was read so far.
    pub(super) fn encoding(&self) -> TextEncoding {
        self.found.unwrap_or_default()
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut block = std::mem::take(&mut self.rest);
        let kept = block.len();
        block.resize(kept + BLOCK_BYTES, 0);
        let mut length = kept;
        // The first block is long enough for a byte order mark.
        while length < kept + 3 {
            match self.source.read(&mut block[length..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        block.truncate(length);
        self.text.clear();
        self.taken = 0;
        let mark = if self.found.is_none() {
            self.start(&block)
        } else {
            0
        };
        self.decode(&block[mark..]);
        Ok(())
    }

    /// Finds the encoding that the byte order mark names, or the given one. Returns the length of
    /// the mark.
    fn start(&mut self, block: &[u8]) -> usize {
        let (found, decoder, mark) = match (block, self.given) {
            ([0xEF, 0xBB, 0xBF, ..], _) => (TextEncoding::Utf8, None, 3),
            ([0xFF, 0xFE, ..], _) => (TextEncoding::Utf16, Some(UTF_16LE), 2),
            ([0xFE, 0xFF, ..], _) => (TextEncoding::Utf16, Some(UTF_16BE), 2),
            (_, Some(TextEncoding::Iso8859_1 | TextEncoding::Windows1252)) => {
                (TextEncoding::Windows1252, Some(WINDOWS_1252), 0)
            }
            (_, given) => {
                self.is_ascii = given.is_none();
                (TextEncoding::Utf8, None, 0)
            }
        };
        self.found = Some(found);
        self.decoder = decoder.map(Encoding::new_decoder_without_bom_handling);
        self.is_ascii &= mark == 0;
        mark
    }

    fn decode(&mut self, bytes: &[u8]) {
        if self.decoder.is_some() {
            return self.decode_other(bytes);
        }
        let (valid, invalid, is_cut) = match std::str::from_utf8(bytes) {
            Ok(_) => (bytes, &[][..], false),
            Err(error) => {
                let (valid, invalid) = bytes.split_at(error.valid_up_to());
                (valid, invalid, error.error_len().is_none() && !self.ended)
            }
        };
        self.is_ascii &= valid.is_ascii();
        self.text.extend_from_slice(valid);
        if is_cut {
            self.rest = invalid.to_vec();
        } else if !invalid.is_empty() && self.is_ascii && is_windows(invalid) {
            self.found = Some(TextEncoding::Windows1252);
            self.decoder = Some(WINDOWS_1252.new_decoder_without_bom_handling());
            self.decode_other(invalid);
        } else {
            // The reader refuses it, and names the line.
            self.text.extend_from_slice(invalid);
            self.is_ascii &= invalid.is_empty();
        }
    }

    /// Decodes a block of another encoding than UTF-8.
    fn decode_other(&mut self, mut bytes: &[u8]) {
        let is_windows = self.found == Some(TextEncoding::Windows1252);
        let refused = SingleByte::Windows1252.first_refused(bytes);
        let refused = refused.filter(|_| is_windows);
        bytes = &bytes[..refused.unwrap_or(bytes.len())];
        let Some(decoder) = &mut self.decoder else {
            return;
        };
        loop {
            let start = self.text.len();
            let most = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
            self.text.resize(start + most.unwrap_or(bytes.len()), 0);
            let into = &mut self.text[start..];
            let (result, read, written) =
                decoder.decode_to_utf8_without_replacement(bytes, into, self.ended);
            self.text.truncate(start + written);
            bytes = &bytes[read..];
            match result {
                DecoderResult::InputEmpty => break,
                DecoderResult::OutputFull => {}
                // No text of UTF-16, so no text of UTF-8 either.
                DecoderResult::Malformed(_, _) => self.text.push(0xFF),
            }
        }
        if refused.is_some() {
            // No character: the reader refuses NUL, so what follows is not read.
            self.text.push(0);
            self.ended = true;
        }
    }
}

impl<R: Read> Read for FoundText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.text.len() {
            if self.ended {
                return Ok(0);
            }
            self.fill()?;
        }
        let length = buffer.len().min(self.text.len() - self.taken);
        buffer[..length].copy_from_slice(&self.text[self.taken..self.taken + length]);
        self.taken += length;
        Ok(length)
    }
}

fn is_windows(bytes: &[u8]) -> bool {
    SingleByte::Windows1252.first_refused(bytes).is_none() && !bytes.contains(&0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::{FoundText, TextEncoding};

    /// Gives one byte at a time.
    struct Slow<'b>(&'b [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    fn found(bytes: &[u8]) -> (Vec<u8>, TextEncoding) {
        let mut text = Vec::new();
        let mut reader = FoundText::new(bytes, None);
        reader.read_to_end(&mut text).unwrap();
        let mut slow = Vec::new();
        let mut slow_reader = FoundText::new(Slow(bytes), None);
        slow_reader.read_to_end(&mut slow).unwrap();
        assert_eq!((&slow, slow_reader.encoding()), (&text, reader.encoding()));
        (text, reader.encoding())
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(to_bytes)
            .collect()
    }

    #[test]
    fn bytes_and_marks_show_the_encoding() {
        let text = "Name;Größe\nMüller 😀;1\n";
        assert_eq!(found(text.as_bytes()), (text.into(), TextEncoding::Utf8));
        let marked = format!("\u{feff}{text}");
        assert_eq!(found(marked.as_bytes()), (text.into(), TextEncoding::Utf8));
        for bytes in [utf16(text, u16::to_le_bytes), utf16(text, u16::to_be_bytes)] {
            assert_eq!(found(&bytes), (text.into(), TextEncoding::Utf16));
        }
        let latin = b"a;Gr\xf6\xdfe\n\x80;\x9f\n";
        let expected = ("a;Größe\n€;Ÿ\n".into(), TextEncoding::Windows1252);
        assert_eq!(found(latin), expected);
        assert_eq!(found(b""), (Vec::new(), TextEncoding::Utf8));
        assert_eq!(found(b"a\xf6"), ("aö".into(), TextEncoding::Windows1252));
    }

    #[test]
    fn a_given_encoding_is_used_unless_a_mark_names_another() {
        let read = |bytes: &[u8], given| {
            let mut text = Vec::new();
            let mut reader = FoundText::new(bytes, Some(given));
            reader.read_to_end(&mut text).unwrap();
            (text, reader.encoding())
        };
        let (text, _) = read("ß".as_bytes(), TextEncoding::Windows1252);
        assert_eq!(text, "ÃŸ".as_bytes());
        assert_eq!(read(b"\xdf", TextEncoding::Utf8).0, b"\xdf");
        let marked = utf16("ß", u16::to_le_bytes);
        let expected = ("ß".into(), TextEncoding::Utf16);
        assert_eq!(read(&marked, TextEncoding::Windows1252), expected);
    }

    #[test]
    fn what_is_no_text_is_passed_on_to_be_refused() {
        assert_eq!(found("é\u{a}".as_bytes()).1, TextEncoding::Utf8);
        let mixed = b"\xc3\xa9\n\xe9\n";
        assert_eq!(found(mixed), (mixed.to_vec(), TextEncoding::Utf8));
        let mut half = utf16("ab", u16::to_le_bytes);
        half.pop();
        assert!(String::from_utf8(found(&half).0).is_err());
        let lone = [0xFF, 0xFE, 0x00, 0xD8, 0x41, 0x00];
        assert!(String::from_utf8(found(&lone).0).is_err());
    }

    proptest! {
        #[test]
        fn text_is_passed_on_unchanged(text in "[a-zß€😀;\n]{0,300}") {
            let bytes = found(text.as_bytes()).0;
            prop_assert_eq!(bytes, text.as_bytes().to_vec());
            let bytes = found(&utf16(&text, u16::to_be_bytes)).0;
            prop_assert_eq!(bytes, text.into_bytes());
        }
    }
}
