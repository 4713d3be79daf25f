//! Codes of rows in as few bytes as their number allows: a scan of millions of rows waits for
//! memory, and four times as many codes of one byte stand in a line of the cache.

use std::borrow::Cow;
use std::ops::Range;

/// One code a row.
#[derive(Debug)]
pub enum Codes<'a> {
    /// Every row has the code 0.
    Zero,
    /// Fewer than 2⁸ codes.
    One(Vec<u8>),
    /// Fewer than 2¹⁶ codes.
    Two(Vec<u16>),
    /// More codes.
    Four(Cow<'a, [u32]>),
}

/// A slice of codes, as a scan reads it.
pub trait RowCodes: Copy + Send + Sync {
    /// The code of a row.
    fn at(self, row: usize) -> u32;

    /// The codes of some rows, which are counted from 0 again.
    fn part(self, rows: Range<usize>) -> Self;
}

impl<C: Copy + Send + Sync + Into<u32>> RowCodes for &[C] {
    #[inline(always)]
    fn at(self, row: usize) -> u32 {
        self[row].into()
    }

    fn part(self, rows: Range<usize>) -> Self {
        &self[rows]
    }
}

/// The codes of [`Codes::Zero`].
#[derive(Clone, Copy, Debug)]
pub struct Zeros;

impl RowCodes for Zeros {
    #[inline(always)]
    fn at(self, _: usize) -> u32 {
        0
    }

    fn part(self, _: Range<usize>) -> Self {
        self
    }
}

/// Evaluates an expression with `$slice` the [`RowCodes`] of `$codes`, compiled for each width.
macro_rules! with_codes {
    ($codes:expr, $slice:ident => $body:expr) => {
        match $codes {
            $crate::engine::pais::codes::Codes::Zero => {
                let $slice = $crate::engine::pais::codes::Zeros;
                $body
            }
            $crate::engine::pais::codes::Codes::One(codes) => {
                let $slice = codes.as_slice();
                $body
            }
            $crate::engine::pais::codes::Codes::Two(codes) => {
                let $slice = codes.as_slice();
                $body
            }
            $crate::engine::pais::codes::Codes::Four(codes) => {
                let $slice: &[u32] = codes;
                $body
            }
        }
    };
}
pub(super) use with_codes;

impl<'a> Codes<'a> {
    /// The same codes, all below `count`, in as few bytes as hold them; one pass.
    pub fn of(codes: &'a [u32], count: usize) -> Self {
        if count <= 1 << 8 {
            Self::One(codes.iter().map(|&code| code as u8).collect())
        } else if count <= 1 << 16 {
            Self::Two(codes.iter().map(|&code| code as u16).collect())
        } else {
            Self::Four(Cow::Borrowed(codes))
        }
    }
}
