//! Thrift's compact protocol, the encoding of the footer and the page headers of a Parquet file. Nesting is
//! bounded, and memory is never allocated by a claimed length.

use std::io::{self, Read};

/// Maximum nesting depth of a value that is skipped; the format has five levels.
const DEPTH: usize = 16;

/// The type of a value in Thrift's compact protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThriftType {
    /// The value of a boolean field is part of its type code.
    Boolean(bool),
    Byte,
    /// An integer of any width.
    Integer,
    Double,
    Binary,
    /// A list or a set.
    List,
    Map,
    Struct,
}

impl ThriftType {
    fn from_code(code: u8) -> io::Result<Self> {
        Ok(match code {
            1 | 2 => Self::Boolean(code == 1),
            3 => Self::Byte,
            4..=6 => Self::Integer,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            _ => return Err(invalid()),
        })
    }
}

/// Reads Thrift's compact protocol.
pub(super) struct CompactReader<R> {
    input: io::Take<R>,
}

impl<R: Read> CompactReader<R> {
    /// A reader of at most `bytes` bytes.
    pub(super) fn new(input: R, bytes: u64) -> Self {
        Self {
            input: input.take(bytes),
        }
    }

    /// The bytes that are left.
    pub(super) fn remaining(&self) -> u64 {
        self.input.limit()
    }

    /// The rest of the input, beyond the limit too.
    pub(super) fn into_inner(self) -> R {
        self.input.into_inner()
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn varint(&mut self) -> io::Result<u64> {
        varint(|| self.byte())
    }

    /// An integer of any width except one byte.
    ///
    /// # Errors
    /// If the input is invalid, as for all functions of this reader.
    pub(super) fn integer(&mut self) -> io::Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// An integer of 32 bits. A wider one is damage: other readers cut it off.
    pub(super) fn integer32(&mut self) -> io::Result<i32> {
        i32::try_from(self.integer()?).map_err(|_| invalid())
    }

    /// An integer of 32 bits that is not negative.
    pub(super) fn size32(&mut self) -> io::Result<u64> {
        u64::try_from(self.integer32()?).map_err(|_| invalid())
    }

    /// An integer of 64 bits that is not negative.
    pub(super) fn size(&mut self) -> io::Result<u64> {
        u64::try_from(self.integer()?).map_err(|_| invalid())
    }

    /// An integer of one byte.
    pub(super) fn integer8(&mut self) -> io::Result<i8> {
        Ok(self.byte()?.cast_signed())
    }

    /// A text of at most `limit` bytes.
    pub(super) fn text(&mut self, limit: u64) -> io::Result<String> {
        let bytes = self.varint()?;
        if bytes > limit.min(self.remaining()) {
            return Err(invalid());
        }
        let mut text = String::new();
        let read = self.input.by_ref().take(bytes).read_to_string(&mut text)?;
        if read as u64 == bytes {
            Ok(text)
        } else {
            Err(invalid())
        }
    }

    /// The number of elements of a list of structs, of which each takes at least a byte. The number
    /// may be more than there are bytes.
    pub(super) fn structs(&mut self) -> io::Result<u64> {
        match self.list_head()? {
            (0, _) => Ok(0),
            (count, ThriftType::Struct) => Ok(count),
            _ => Err(invalid()),
        }
    }

    /// Some writers give no type to the elements of an empty list.
    fn list_head(&mut self) -> io::Result<(u64, ThriftType)> {
        let head = self.byte()?;
        if head == 0 {
            return Ok((0, ThriftType::Byte));
        }
        let count = match head >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        Ok((count, ThriftType::from_code(head & 0x0f)?))
    }

    /// The type of a struct's next field; `None` at the end of the struct. `number` is the number
    /// of the previous field and is set to that of this field.
    pub(super) fn field(&mut self, number: &mut i64) -> io::Result<Option<ThriftType>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *number = match byte >> 4 {
            0 => self.integer()?,
            delta => *number + i64::from(delta),
        };
        // Another reader could take a wider number for that of a field it knows.
        i16::try_from(*number).map_err(|_| invalid())?;
        ThriftType::from_code(byte & 0x0f).map(Some)
    }

    /// Skips a value.
    pub(super) fn skip(&mut self, kind: ThriftType) -> io::Result<()> {
        self.skip_nested(kind, DEPTH)
    }

    fn skip_nested(&mut self, kind: ThriftType, depth: usize) -> io::Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(invalid)?;
        match kind {
            ThriftType::Boolean(_) => Ok(()),
            ThriftType::Byte => self.byte().map(drop),
            ThriftType::Integer => self.varint().map(drop),
            ThriftType::Double => self.skip_bytes(8),
            ThriftType::Binary => {
                let bytes = self.varint()?;
                self.skip_bytes(bytes)
            }
            ThriftType::List => {
                let (count, kind) = self.list_head()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth))
            }
            ThriftType::Map => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (
                    ThriftType::from_code(kinds >> 4)?,
                    ThriftType::from_code(kinds & 0x0f)?,
                );
                (0..count).try_for_each(|_| {
                    self.skip_element(key, depth)?;
                    self.skip_element(value, depth)
                })
            }
            ThriftType::Struct => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip_nested(kind, depth)?;
                }
                Ok(())
            }
        }
    }

    /// Skips an element of a list or map. Readers do not agree on how a boolean is written there, and
    /// the format has none.
    fn skip_element(&mut self, kind: ThriftType, depth: usize) -> io::Result<()> {
        match kind {
            ThriftType::Boolean(_) => Err(invalid()),
            kind => self.skip_nested(kind, depth),
        }
    }

    fn skip_bytes(&mut self, bytes: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.input.by_ref().take(bytes), &mut io::sink())?;
        if passed == bytes {
            Ok(())
        } else {
            Err(invalid())
        }
    }
}

/// The error of a file whose bytes are not of the format.
pub(super) fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
/// An integer of any number of bytes, seven bits in each (LEB128).
///
/// # Errors
/// That of `byte`, and if it has more than 64 bits.
pub(super) fn varint(mut byte: impl FnMut() -> io::Result<u8>) -> io::Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(invalid())
}
