//! Finds the encoding of a text while it is read, and passes it on as UTF-8.
//!
//! Text begins as UTF-8. Where it is no longer UTF-8 and every character before was ASCII, it is
//! Windows-1252; otherwise the bytes are passed on as they are, and the reader refuses them.

use std::io::{self, Read};

use crate::read::TextEncoding;

/// Size of a block, in bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// The characters of Windows-1252 from 0x80 to 0x9F; NUL where there is none.
const WINDOWS: [char; 32] = [
    '\u{20ac}', '\0', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\0', '\u{17d}', '\0', '\0',
    '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}',
    '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\0', '\u{17e}', '\u{178}',
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing was read.
    Nothing,
    Ascii,
    Utf8,
    Windows1252,
    Utf16 {
        is_big_endian: bool,
    },
}

/// The text of a source as UTF-8, without a byte order mark.
pub(super) struct FoundText<R> {
    source: R,
    found: Found,
    given: Option<TextEncoding>,
    /// Bytes at the end of a block that begin a character.
    rest: Vec<u8>,
    text: Vec<u8>,
    taken: usize,
    ended: bool,
}

impl<R: Read> FoundText<R> {
    /// The text of a source. A `given` encoding is not looked for, but a byte order mark wins over
    /// it.
    pub(super) fn new(source: R, given: Option<TextEncoding>) -> Self {
        Self {
            source,
            found: Found::Nothing,
            given,
            rest: Vec::new(),
            text: Vec::new(),
            taken: 0,
            ended: false,
        }
    }

    /// The encoding of what was read so far.
    pub(super) fn encoding(&self) -> TextEncoding {
        match self.found {
            Found::Nothing | Found::Ascii | Found::Utf8 => TextEncoding::Utf8,
            Found::Windows1252 => TextEncoding::Windows1252,
            Found::Utf16 { .. } => TextEncoding::Utf16,
        }
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
        let bytes = match self.found {
            Found::Nothing => self.start(&block),
            _ => block.as_slice(),
        };
        match self.found {
            Found::Utf16 { is_big_endian } => self.decode_utf16(bytes, is_big_endian),
            Found::Windows1252 => push_windows(bytes, &mut self.text),
            Found::Nothing | Found::Ascii | Found::Utf8 => self.decode_utf8(bytes),
        }
        Ok(())
    }

    /// Skips the byte order mark, which names the encoding.
    fn start<'b>(&mut self, block: &'b [u8]) -> &'b [u8] {
        let (found, mark) = match block {
            [0xEF, 0xBB, 0xBF, ..] => (Found::Utf8, 3),
            [0xFF, 0xFE, ..] => (
                Found::Utf16 {
                    is_big_endian: false,
                },
                2,
            ),
            [0xFE, 0xFF, ..] => (
                Found::Utf16 {
                    is_big_endian: true,
                },
                2,
            ),
            _ => match self.given {
                None => (Found::Ascii, 0),
                Some(TextEncoding::Utf8 | TextEncoding::Utf16) => (Found::Utf8, 0),
                Some(TextEncoding::Iso8859_1 | TextEncoding::Windows1252) => {
                    (Found::Windows1252, 0)
                }
            },
        };
        self.found = found;
        &block[mark..]
    }

    fn decode_utf8(&mut self, bytes: &[u8]) {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => {
                if !text.is_ascii() {
                    self.found = Found::Utf8;
                }
                self.text.extend_from_slice(bytes);
                return;
            }
            Err(error) => error,
        };
        let (valid, invalid) = bytes.split_at(error.valid_up_to());
        if !valid.is_ascii() {
            self.found = Found::Utf8;
        }
        self.text.extend_from_slice(valid);
        if error.error_len().is_none() && !self.ended {
            self.rest = invalid.to_vec();
        } else if self.found == Found::Ascii && is_windows(invalid) {
            self.found = Found::Windows1252;
            push_windows(invalid, &mut self.text);
        } else {
            // The reader refuses it, and names the line.
            self.found = Found::Utf8;
            self.text.extend_from_slice(invalid);
        }
    }

    fn decode_utf16(&mut self, bytes: &[u8], is_big_endian: bool) {
        let (pairs, odd) = bytes.as_chunks::<2>();
        let units = pairs.iter().map(|pair| {
            if is_big_endian {
                u16::from_be_bytes(*pair)
            } else {
                u16::from_le_bytes(*pair)
            }
        });
        let mut units: Vec<u16> = units.collect();
        let mut rest = Vec::new();
        // Half of a character at the end of a block belongs to the next one.
        if !self.ended
            && let Some(0xD800..=0xDBFF) = units.last()
        {
            units.pop();
            rest.extend(pairs.last().into_iter().flatten());
        }
        rest.extend_from_slice(odd);
        let is_half = self.ended && !odd.is_empty();
        self.rest = rest;
        for character in char::decode_utf16(units) {
            match character {
                Ok(character) => push_char(character, &mut self.text),
                Err(_) => self.text.push(0xFF),
            }
        }
        if is_half {
            // Half a unit: no text of UTF-16, so no text of UTF-8 either.
            self.text.push(0xFF);
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
    let is_character = |byte: &u8| match byte {
        0x80..=0x9F => WINDOWS[usize::from(byte - 0x80)] != '\0',
        byte => *byte != 0,
    };
    bytes.iter().all(is_character)
}

fn push_windows(bytes: &[u8], text: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            0..0x80 => text.push(byte),
            0x80..=0x9F => push_char(WINDOWS[usize::from(byte - 0x80)], text),
            byte => push_char(char::from(byte), text),
        }
    }
}

fn push_char(character: char, text: &mut Vec<u8>) {
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
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
