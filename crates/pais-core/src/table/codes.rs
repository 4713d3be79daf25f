//! Codes of rows in as few bytes as the number of codes allows. Reading millions of rows is bound
//! by memory, above all in random order, and four times as many one-byte codes fit into the cache
//! as four-byte codes.

use std::borrow::Cow;
use std::ops::Range;

use super::code_counts;
use crate::parallel;

/// One code per row.
#[derive(Clone, Debug)]
pub enum Codes<'a> {
    /// Each of this many rows has the code 0.
    Zero(usize),
    /// At most 2⁸ distinct codes.
    One(Cow<'a, [u8]>),
    /// At most 2¹⁶ distinct codes.
    Two(Cow<'a, [u16]>),
    /// More distinct codes.
    Four(Cow<'a, [u32]>),
}

/// An inclusive range of the codes of values, or of other numbers of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeRange {
    /// The lowest code.
    pub first: u32,
    /// The highest code.
    pub last: u32,
}

impl CodeRange {
    /// No codes.
    pub const EMPTY: Self = Self::new(u32::MAX, 0);

    /// The codes from one to another.
    pub const fn new(first: u32, last: u32) -> Self {
        Self { first, last }
    }

    /// The narrowest range with these codes and one more.
    #[inline(always)]
    pub fn widened(self, code: u32) -> Self {
        Self::new(self.first.min(code), self.last.max(code))
    }

    /// Whether a code is in both.
    #[inline(always)]
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Whether all codes of another range are in it.
    #[inline(always)]
    pub fn encloses(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// A slice of codes, as a scan reads it.
pub trait RowCodes: Copy + Send + Sync {
    /// The code of a row.
    fn at(self, row: usize) -> u32;

    /// The codes of a range of rows; in the result these rows are numbered from 0.
    fn part(self, rows: Range<usize>) -> Self;

    /// The codes of a range of rows, in their order.
    fn in_rows(self, rows: Range<usize>) -> impl Iterator<Item = u32> + Clone;
}

impl<C: Copy + Send + Sync + Into<u32>> RowCodes for &[C] {
    #[inline(always)]
    fn at(self, row: usize) -> u32 {
        self[row].into()
    }

    fn part(self, rows: Range<usize>) -> Self {
        &self[rows]
    }

    fn in_rows(self, rows: Range<usize>) -> impl Iterator<Item = u32> + Clone {
        self[rows].iter().map(|&code| code.into())
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

    fn in_rows(self, rows: Range<usize>) -> impl Iterator<Item = u32> + Clone {
        rows.map(|_| 0)
    }
}

/// Evaluates an expression with `$slice` the [`RowCodes`] of `$codes`, compiled for each width.
#[macro_export]
macro_rules! with_codes {
    ($codes:expr, $slice:ident => $body:expr) => {
        match $codes {
            $crate::table::codes::Codes::Zero(_) => {
                let $slice = $crate::table::codes::Zeros;
                $body
            }
            $crate::table::codes::Codes::One(codes) => {
                let $slice: &[u8] = codes;
                $body
            }
            $crate::table::codes::Codes::Two(codes) => {
                let $slice: &[u16] = codes;
                $body
            }
            $crate::table::codes::Codes::Four(codes) => {
                let $slice: &[u32] = codes;
                $body
            }
        }
    };
}

/// Appends the codes of a range of rows.
type CodesOfRows<'f> = &'f (dyn Fn(Range<usize>, &mut Vec<u32>) + Sync);

impl Codes<'static> {
    /// The codes of `rows` rows, all below `count`, in as few bytes as that allows. Threads share the rows.
    pub fn computed(rows: usize, count: usize, codes_of: CodesOfRows<'_>) -> Self {
        if count <= 1 << 8 {
            Self::One(computed(rows, codes_of, |code| code as u8))
        } else if count <= 1 << 16 {
            Self::Two(computed(rows, codes_of, |code| code as u16))
        } else {
            Self::Four(computed(rows, codes_of, |code| code))
        }
    }
}

/// The codes of `rows` rows, each as `stored`.
fn computed<C: Copy + Default + Send>(
    rows: usize,
    codes_of: CodesOfRows<'_>,
    stored: impl Fn(u32) -> C + Sync,
) -> Cow<'static, [C]> {
    /// One code costs almost nothing, so a thread takes many at once.
    const BLOCK: usize = 1 << 14;
    let mut all = vec![C::default(); rows];
    parallel::map(all.chunks_mut(BLOCK).enumerate(), |(number, block)| {
        let start = number * BLOCK;
        let mut codes = Vec::with_capacity(block.len());
        codes_of(start..start + block.len(), &mut codes);
        for (place, code) in block.iter_mut().zip(codes) {
            *place = stored(code);
        }
    });
    all.into()
}

impl<'a> Codes<'a> {
    /// The same codes in as few bytes as codes below `count` need, or unchanged if there are other codes, such
    /// as that of null; one pass.
    pub fn new(codes: &'a [u32], count: usize) -> Self {
        let mut greatest = 0;
        let seen = codes.iter().map(|&code| {
            greatest = code.max(greatest);
            code
        });
        let narrowed = if count <= 1 << 8 {
            Self::One(seen.map(|code| code as u8).collect())
        } else if count <= 1 << 16 {
            Self::Two(seen.map(|code| code as u16).collect())
        } else {
            return Self::Four(Cow::Borrowed(codes));
        };
        if (greatest as usize) < count {
            narrowed
        } else {
            Self::Four(Cow::Borrowed(codes))
        }
    }

    /// The same codes, borrowed.
    pub fn borrowed(&self) -> Codes<'_> {
        match self {
            Self::Zero(rows) => Codes::Zero(*rows),
            Self::One(codes) => Codes::One(Cow::Borrowed(codes)),
            Self::Two(codes) => Codes::Two(Cow::Borrowed(codes)),
            Self::Four(codes) => Codes::Four(Cow::Borrowed(codes)),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Zero(rows) => *rows,
            Self::One(codes) => codes.len(),
            Self::Two(codes) => codes.len(),
            Self::Four(codes) => codes.len(),
        }
    }

    /// The code of a row. Loops use [`with_codes`], which asks for the width once.
    #[inline]
    pub fn at(&self, row: usize) -> u32 {
        with_codes!(self, codes => codes.at(row))
    }

    /// The codes of these rows, in their order.
    pub fn of_rows(&self, rows: &[u32]) -> Vec<u32> {
        with_codes!(self, codes => rows.iter().map(|&row| codes.at(row as usize)).collect())
    }

    /// How often each code below `count` occurs.
    pub fn counts(&self, count: usize) -> Vec<u64> {
        match self {
            Self::Zero(rows) => (0..count)
                .map(|code| if code == 0 { *rows as u64 } else { 0 })
                .collect(),
            Self::One(codes) => byte_counts(codes, count),
            Self::Two(codes) => code_counts(codes, count),
            Self::Four(codes) => code_counts(codes, count),
        }
    }

    /// Replaces each code by `new[code]`.
    pub fn renamed(&self, new: &[u32]) -> Codes<'static> {
        let count = new.iter().max().map_or(0, |last| *last as usize + 1);
        with_codes!(self, codes => Codes::computed(self.rows(), count, &|rows, out| {
            out.extend(codes.in_rows(rows).map(|code| new[code as usize]));
        }))
    }
}

/// As [`code_counts`], of codes of one byte. Each code has a place, so none is compared with `count`.
fn byte_counts(codes: &[u8], count: usize) -> Vec<u64> {
    // An addition waits for the previous one at the same place, so eight tables take turns.
    let mut tables = [[0u32; 1 << 8]; 8];
    let (blocks, rest) = codes.as_chunks::<8>();
    for block in blocks {
        for (table, &code) in tables.iter_mut().zip(block) {
            table[usize::from(code)] += 1;
        }
    }
    for &code in rest {
        tables[0][usize::from(code)] += 1;
    }
    let sum = |code| {
        tables
            .iter()
            .filter_map(|table| table.get(code))
            .map(|&rows| u64::from(rows))
            .sum()
    };
    (0..count).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::{Codes, RowCodes};

    #[test]
    fn codes_are_the_same_in_every_width() {
        for (count, bytes) in [(1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4)] {
            let codes: Vec<u32> = (0..count).rev().collect();
            let narrowed = Codes::new(&codes, count as usize);
            let computed = Codes::computed(codes.len(), count as usize, &|rows, out| {
                out.extend_from_slice(&codes[rows]);
            });
            for found in [narrowed, computed] {
                let width = match &found {
                    Codes::Zero(_) => 0,
                    Codes::One(_) => 1,
                    Codes::Two(_) => 2,
                    Codes::Four(_) => 4,
                };
                assert_eq!(width, bytes, "{count} codes");
                let read: Vec<u32> = with_codes!(&found, slice => {
                    (0..codes.len()).map(|row| slice.at(row)).collect()
                });
                assert_eq!(read, codes);
                assert_eq!(found.rows(), codes.len());
                assert_eq!(found.borrowed().of_rows(&[count - 1, 0]), [0, count - 1]);
                assert_eq!(found.counts(count as usize), vec![1; count as usize]);
            }
        }
    }

    #[test]
    fn codes_are_renamed_in_the_width_of_the_new_ones() {
        let codes = Codes::computed(3, 2, &|rows, out| {
            out.extend(rows.map(|row| row as u32 % 2))
        });
        for new in [[7, 0], [300, 7], [u32::MAX, 7]] {
            let renamed = codes.renamed(&new);
            assert_eq!(renamed.of_rows(&[0, 1, 2]), [new[0], new[1], new[0]]);
        }
    }

    #[test]
    fn rows_without_codes_of_their_own_have_the_code_zero() {
        let codes = Codes::Zero(3);
        assert_eq!((codes.rows(), codes.at(2)), (3, 0));
        assert_eq!(codes.counts(2), [3, 0]);
        assert_eq!(codes.renamed(&[5]).of_rows(&[0, 1, 2]), [5; 3]);
    }

    #[test]
    fn codes_that_do_not_fit_are_borrowed_unchanged() {
        let codes = [0, u32::MAX, 2];
        let Codes::Four(kept) = Codes::new(&codes, 3) else {
            panic!("a code was cut off");
        };
        assert_eq!(*kept, codes);
    }
}
