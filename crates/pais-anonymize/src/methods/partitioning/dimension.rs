//! A quasi-identifier as a dimension of the k-d split: its codes in order, each at its z-score.

use pais_core::table::{Domain, QuasiIdentifier};

/// A dimension.
pub(super) struct Dimension<'a> {
    /// One code a row, in the order of the dimension.
    pub(super) codes: &'a [u32],
    /// The z-score of each code, over the whole table (Gal, Chen, Gangopadhyay 2008, *Overview*).
    position: Vec<f64>,
}

impl<'a> Dimension<'a> {
    /// Numbers stand at their values, labels at their places in the taxonomy, which is the
    /// sorted order where there is none. A missing number lies as far beyond the greatest as
    /// that lies from the least, so that it is parted from numbers first.
    pub(super) fn of(column: &'a QuasiIdentifier) -> Self {
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
        let mean = |of: &dyn Fn(usize) -> f64| {
            let sum: f64 = (0..known).map(|code| of(code) * rows[code] as f64).sum();
            sum / total.max(1) as f64
        };
        let middle = mean(&|code| position[code]);
        let deviation = mean(&|code| (position[code] - middle).powi(2)).sqrt();
        for place in &mut position {
            // Squares of great numbers may be infinite; the order of the codes is what counts.
            *place = match (*place - middle) / deviation {
                score if score.is_finite() => score,
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

    /// The least and the greatest code of some rows.
    pub(super) fn range(&self, rows: &[u32]) -> (u32, u32) {
        rows.iter().fold((u32::MAX, 0), |(least, most), &row| {
            let code = self.codes[row as usize];
            (least.min(code), most.max(code))
        })
    }

    /// The width of a range of codes, in standard deviations.
    pub(super) fn width(&self, (least, most): (u32, u32)) -> f64 {
        self.position[most as usize] - self.position[least as usize]
    }
}
