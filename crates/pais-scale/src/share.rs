//! The requests of a run to an executor, and the executor's answers.
//!
//! A request is a [`Share`] as JSON, sealed under the key that both have: without the key nobody gets a count,
//! and no byte of a request is parsed before it is known to come from a holder of the key. An answer is a
//! sequence of frames: the number of records as 4 bytes, then by column 8 bytes for each record. Two special
//! numbers mark other endings. All numbers are little-endian.

use std::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use datafusion::arrow::array::RecordBatch;
use pais_anonymize::ColumnParts;
use serde::{Deserialize, Serialize};

use crate::codes::CodeFile;
use crate::keys::KeyCounts;
use crate::spool::{ExecutorKey, RunId};

/// Maximum number of bytes of a request.
pub(crate) const MOST_REQUEST: usize = 64 << 20;

/// What a request is sealed for.
const PURPOSE: &[u8] = b"pais-scale share 1";

/// Maximum number of records of a frame.
const FRAME_RECORDS: usize = 8_192;

/// In place of a number of records: all were sent.
const ENDED: u32 = 0;

/// There are more than asked for.
const MORE_THAN: u32 = u32::MAX;

/// The executor failed.
const FAILED: u32 = u32::MAX - 1;

/// The rows that an executor counts for a statement, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Share {
    /// The run of the rows.
    pub(crate) run: RunId,
    /// The blocks.
    pub(crate) blocks: Range<usize>,
    /// The columns that are distinguished.
    pub(crate) columns: Vec<ColumnParts>,
    /// Maximum number of records of the answer.
    pub(crate) most: Option<usize>,
}

impl Share {
    /// The sealed request.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub(crate) fn sealed(&self, key: &ExecutorKey) -> std::io::Result<Bytes> {
        let sealed = key.0.seal(&serde_json::to_vec(self)?, PURPOSE);
        Ok(sealed.map_err(std::io::Error::other)?.into())
    }

    /// Opens a request; `None` if it was not sealed under this key.
    pub(crate) fn open(sealed: &[u8], key: &ExecutorKey) -> Option<Self> {
        serde_json::from_slice(&key.0.open(sealed, PURPOSE).ok()?).ok()
    }

    /// Whether its blocks exist, and each code of its columns has a part.
    pub(crate) fn fits(&self, rows: &CodeFile) -> bool {
        let fits = |column: &ColumnParts| {
            let greatest = rows.greatest.get(column.column);
            greatest.is_some_and(|greatest| column.part_of.len() > *greatest as usize)
                && column.part_of.iter().all(|part| *part < column.parts)
        };
        let Range { start, end } = self.blocks;
        start < end && end <= rows.blocks() && self.columns.iter().all(fits)
    }
}

/// A part of an answer.
pub(crate) enum Frame {
    /// Some records.
    Counts(KeyCounts),
    /// The last frame.
    Last(Ending),
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All records were sent.
    Ended,
    /// There are more than asked for.
    MoreThan,
    /// The executor failed.
    Failed,
}

impl Ending {
    /// Its bytes.
    pub(crate) fn bytes(self) -> Bytes {
        let number = match self {
            Self::Ended => ENDED,
            Self::MoreThan => MORE_THAN,
            Self::Failed => FAILED,
        };
        Bytes::copy_from_slice(&number.to_le_bytes())
    }
}

/// The frames of an engine's results, whose records have this many keys.
///
/// # Errors
/// When they are not numbers.
pub(crate) fn frames(batch: &RecordBatch, keys: usize) -> datafusion::error::Result<Bytes> {
    let mut bytes = BytesMut::new();
    for start in (0..batch.num_rows()).step_by(FRAME_RECORDS) {
        let records = FRAME_RECORDS.min(batch.num_rows() - start);
        let mut counts = KeyCounts::new(keys);
        counts.push(&batch.slice(start, records))?;
        bytes.reserve(4 + records * 8 * (keys + 2));
        bytes.put_u32_le(records as u32);
        for column in counts.columns_mut() {
            column.iter().for_each(|number| bytes.put_u64_le(*number));
        }
    }
    Ok(bytes.freeze())
}

/// Splits an answer whose records have this many keys into frames.
pub(crate) struct FrameReader {
    keys: usize,
    /// Bytes that do not form a whole frame yet.
    rest: BytesMut,
}

impl FrameReader {
    /// Before the first byte.
    pub(crate) fn new(keys: usize) -> Self {
        Self {
            keys,
            rest: BytesMut::new(),
        }
    }

    /// Appends received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// The next frame; `None` until it is whole.
    ///
    /// # Errors
    /// What is wrong with the answer.
    pub(crate) fn frame(&mut self) -> Result<Option<Frame>, &'static str> {
        let Some(head) = self.rest.first_chunk() else {
            return Ok(None);
        };
        let records = match u32::from_le_bytes(*head) {
            ENDED => return Ok(Some(Frame::Last(Ending::Ended))),
            MORE_THAN => return Ok(Some(Frame::Last(Ending::MoreThan))),
            FAILED => return Ok(Some(Frame::Last(Ending::Failed))),
            records if records as usize > FRAME_RECORDS => return Err("a frame is too large"),
            records => records as usize,
        };
        let mut counts = KeyCounts::new(self.keys);
        if self.rest.len() < 4 + records * 8 * (self.keys + 2) {
            return Ok(None);
        }
        self.rest.advance(4);
        for column in counts.columns_mut() {
            let bytes = self.rest.split_to(8 * records);
            let numbers = bytes.as_chunks().0.iter();
            column.extend(numbers.map(|number| u64::from_le_bytes(*number)));
        }
        Ok(Some(Frame::Counts(counts)))
    }
}
