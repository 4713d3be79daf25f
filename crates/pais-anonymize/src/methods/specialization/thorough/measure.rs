//! What a thorough search minimizes.

use pais_core::definition::Objective;

use super::super::score::entropy;

/// Sums over the equivalence classes of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// The sum of [`Measure::term`] over the classes that are not suppressed.
    pub(super) sum: f64,
    /// Number of rows that are not suppressed.
    pub(super) kept: u64,
}

/// The loss of a table under an objective. Lower is better.
///
/// - `ncp`: the mean NCP, where a suppressed row counts 1 in each column;
/// - `discernibility`: the sum of squared class sizes over the square of the released rows;
/// - `classification`: the entropy of the class within equivalence classes, in bits per row. The
///   information gain that is kept is the entropy of the whole table minus it, so that the least
///   loss is the greatest gain. A suppressed row counts the entropy of the whole table.
#[derive(Clone, Debug)]
pub(super) struct Measure {
    objective: Objective,
    rows: f64,
    width: f64,
    whole_entropy: f64,
}

impl Measure {
    /// For a table of `rows` rows, suppressed ones included, and `width` quasi-identifiers.
    pub(super) fn new(
        objective: Objective,
        (rows, width): (usize, usize),
        class: Option<&(usize, Vec<u32>)>,
    ) -> Self {
        let whole_entropy = class.map_or(0.0, |(classes, codes)| {
            let mut counts = vec![0; *classes];
            codes.iter().for_each(|&code| counts[code as usize] += 1);
            entropy(&counts)
        });
        Self {
            objective,
            rows: (rows as f64).max(1.0),
            width: width as f64,
            whole_entropy,
        }
    }

    pub(super) fn objective(&self) -> Objective {
        self.objective
    }

    /// Whether the loss depends on classes of rows rather than on each column alone.
    pub(super) fn is_over_classes(&self) -> bool {
        self.objective != Objective::Ncp
    }

    /// The part of an equivalence class. `ncp` is the sum of the NCP of a row over the columns.
    pub(super) fn term(&self, size: u32, by_class: &[u64], ncp: f64) -> f64 {
        let size = f64::from(size);
        match self.objective {
            Objective::Ncp => size * ncp,
            Objective::Classification => size * entropy(by_class),
            Objective::Discernibility | Objective::DiscernibilityEq4 => size * size,
        }
    }

    /// The loss of a table.
    pub(super) fn loss(&self, tally: Tally) -> f64 {
        let kept = tally.kept as f64;
        let suppressed = self.rows - kept;
        match self.objective {
            Objective::Ncp => {
                (tally.sum + suppressed * self.width) / (self.rows * self.width.max(1.0))
            }
            Objective::Classification => (tally.sum + suppressed * self.whole_entropy) / self.rows,
            Objective::Discernibility | Objective::DiscernibilityEq4 => {
                tally.sum / (kept * kept).max(1.0)
            }
        }
    }

    /// By how much a decrease of the NCP summed over rows decreases the loss under `ncp`.
    pub(super) fn of_ncp_sum(&self, decrease: f64) -> f64 {
        decrease / (self.rows * self.width.max(1.0))
    }
}
