//! Random changes of files and documents, the same for the same seed.

use crate::split_mix::SplitMix64;

/// Numbers that have caused faults in readers.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "127",
    "128",
    "255",
    "256",
    "32767",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1e309",
    "-0",
    "NaN",
    "0.1e-400",
];

/// Changes samples of one format.
pub struct Mutations<'a> {
    random: SplitMix64,
    samples: &'a [Vec<u8>],
    /// Parts of the format that are worth repeating.
    tokens: &'a [&'a [u8]],
    /// Maximum size of a result, in bytes.
    limit: usize,
}

impl<'a> Mutations<'a> {
    pub fn new(seed: u64, samples: &'a [Vec<u8>], tokens: &'a [&'a [u8]], limit: usize) -> Self {
        assert!(!samples.is_empty());
        Self {
            random: SplitMix64(seed),
            samples,
            tokens,
            limit,
        }
    }

    /// A sample with one to eight changes.
    pub fn mutated(&mut self) -> Vec<u8> {
        let mut bytes = self.sample().clone();
        for _ in 0..=self.random.below(8) {
            self.change(&mut bytes);
            bytes.truncate(self.limit);
        }
        bytes
    }

    fn sample(&mut self) -> &'a Vec<u8> {
        &self.samples[self.random.below(self.samples.len())]
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.random.below(bytes.len() + 1);
        let length = self.random.below(bytes.len() - at + 1);
        match self.random.below(10) {
            0 => flip(bytes, at, 1 << self.random.below(8)),
            1 => flip(bytes, at, self.random.next_u64() as u8),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + length.min(64))),
            // Binary formats have lengths at their ends.
            4 => {
                let at = bytes.len().saturating_sub(1 + self.random.below(64));
                flip(bytes, at, self.random.next_u64() as u8);
            }
            5 => {
                let part = bytes[at..at + length].to_vec();
                let times = self.times(10);
                for _ in 0..times {
                    if bytes.len() + part.len() > self.limit {
                        break;
                    }
                    bytes.splice(at..at, part.iter().copied());
                }
            }
            6 => {
                let other = self.sample();
                let from = self.random.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            7 => self.set_number(bytes, at),
            8 => {
                // All bits of a varint, or of an integer of fixed width.
                let value = [0xff; 10];
                let length = 1 + self.random.below(10);
                let end = (at + length).min(bytes.len());
                bytes.splice(at..end, value[..length].iter().copied());
            }
            _ => {
                let token = self.tokens[self.random.below(self.tokens.len())];
                let times = self.times(12);
                let times = times.min(self.limit / token.len().max(1));
                bytes.splice(at..at, token.repeat(times));
            }
        }
    }

    /// How often to repeat something: up to 2 to the power of `most`, mostly less.
    fn times(&mut self, most: usize) -> usize {
        let power = self.random.below(most);
        1 + self.random.below(1 << power)
    }

    /// Replaces the digits at a place, if there are any, by another number.
    fn set_number(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let number = NUMBERS[self.random.below(NUMBERS.len())];
        let start = bytes[at..].iter().position(u8::is_ascii_digit);
        let start = at + start.unwrap_or(0);
        let digits = bytes[start..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let end = start + digits.count();
        bytes.splice(start..end, number.bytes());
    }
}

fn flip(bytes: &mut [u8], at: usize, bits: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= bits;
    }
}

/// Parts of each format of a submission.
pub mod tokens {
    pub const CSV: &[&[u8]] = &[
        b",",
        b"\"",
        b"\"\"",
        b"\n",
        b"\r\n",
        b"\r",
        b"\xef\xbb\xbf",
        b"\0",
        b"\xff",
        b";",
        b"|",
        b"a",
        b" ",
    ];
    pub const NDJSON: &[&[u8]] = &[
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b",",
        b":",
        b"\n",
        b"null",
        b"true",
        b"\\u0000",
        b"\\ud800",
        b"\\",
        b"{\"x\":",
        b"\xff",
        b"\"id\":1,",
        b"1e999",
    ];
    pub const PARQUET: &[&[u8]] = &[
        b"PAR1",
        b"PARE",
        b"\x1c",
        b"\x2c",
        b"\x3c",
        b"\x19\xfc",
        b"\x29\xfc\xff\xff\xff\xff\x07",
        b"\x15\xfe\xff\xff\xff\x0f",
        b"\x26\xfe\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\0",
        b"\x00\x00",
        b"\x15\x00\x15",
        b"\xff\xff\xff\x7f",
    ];
}
