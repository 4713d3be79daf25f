//! A quasi-identifier as a dimension of the k-d split: its ordered codes, each with a z-score.

use pais_core::table::{Domain, QuasiIdentifier};

/// A dimension of the k-d split.
pub(super) struct SplitDimension<'a> {
    /// One code per row; codes ascend in the order of the dimension.
    pub(super) codes: &'a [u32],
    /// The z-score of each code over the whole table (Gal, Chen, Gangopadhyay 2008, *Overview*).
    position: Vec<f64>,
}

impl<'a> SplitDimension<'a> {
    /// The position of a number is its value. The position of a label is its leaf index in the
    /// taxonomy, or its index in sorted order where the column has no taxonomy. A missing number
    /// is placed beyond the greatest number by the whole width of the range, so that missing
    /// numbers are split off first.
    pub(super) fn new(column: &'a QuasiIdentifier) -> Self {
        let codes = column.domain.code_count();
        let mut rows = vec![0u64; codes];
        for &code in &column.codes {
            rows[code as usize] += 1;
        }
        let mut position: Vec<f64> = match &column.domain {
            Domain::Numeric { values, .. } => values.clone(),
            Domain::Taxonomy(tree) => (0..tree.leaf_count()).map(|leaf| leaf as f64).collect(),
        };
        let known = position.len();
        let total: u64 = rows[..known].iter().sum();
        let mean = |value_of: &dyn Fn(usize) -> f64| {
            let sum: f64 = (0..known)
                .map(|code| value_of(code) * rows[code] as f64)
                .sum();
            sum / total.max(1) as f64
        };
        let middle = mean(&|code| position[code]);
        let deviation = mean(&|code| (position[code] - middle).powi(2)).sqrt();
        for score in &mut position {
            // Squares of large numbers may be infinite; only the order of the codes matters then.
            *score = match (*score - middle) / deviation {
                finite if finite.is_finite() => finite,
                _ => 0.0,
            };
        }
        let (least, most) = (position.first().copied(), position.last().copied());
        let (least, most) = (least.unwrap_or(0.0), most.unwrap_or(0.0));
        position.resize(codes, most + (most - least).max(1.0));
        Self {
            codes: &column.codes,
            position,
        }
    }

    /// The least and the greatest code among `rows`.
    pub(super) fn range(&self, rows: &[u32]) -> (u32, u32) {
        rows.iter().fold((u32::MAX, 0), |(least, most), &row| {
            let code = self.codes[row as usize];
            (least.min(code), most.max(code))
        })
    }

    /// The width of a range of codes in standard deviations.
    pub(super) fn width(&self, (least, most): (u32, u32)) -> f64 {
        self.position[most as usize] - self.position[least as usize]
    }
}
