//! Models of the frequencies of one sensitive column's values in a group: distinct, entropy and
//! recursive diversity, and t-closeness.
//!
//! The union of two groups that meet one of these models also meets it, so a group that is not
//! split still meets the model.

use pais_core::model::{Decimal, Diversity};
use pais_core::table::{NULL_CODE, SensitiveColumn};

/// Tolerance for rounding when an entropy is compared with its bound; the verifier allows more.
const ROUNDING: f64 = 1e-10;

/// The bound on the frequencies.
#[derive(Clone, Copy, Debug)]
enum FrequencyBound {
    Distinct(usize),
    Entropy(f64),
    Recursive(Decimal, usize),
    Closeness(Decimal),
}

/// The one sensitive column with the bound on its frequencies.
pub(super) struct FrequencyCheck {
    bound: FrequencyBound,
    /// One code per row; `missing` for a missing cell.
    codes: Vec<u32>,
    missing: u32,
    /// Number of rows of the whole table with each code.
    table_counts: Vec<u64>,
}

/// The change of a parameter with which the whole table would meet the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remedy {
    /// The field of `privacy` to change.
    pub parameter: &'static str,
    /// The suggested change.
    pub fix: String,
}

/// Number of rows of a group with each code; working space.
pub(super) struct CodeCounts {
    /// By code; 0 between calls.
    rows: Vec<u32>,
    /// Codes with a count above 0.
    seen: Vec<u32>,
}

impl CodeCounts {
    pub(super) fn new(codes: usize) -> Self {
        Self {
            rows: vec![0; codes],
            seen: Vec::new(),
        }
    }
}

impl FrequencyCheck {
    /// The check of a model on a column; `None` for a model that is not about the frequencies of
    /// one column.
    pub(super) fn new(diversity: &Diversity, column: &SensitiveColumn) -> Option<Self> {
        let bound = match *diversity {
            Diversity::None | Diversity::MinimumCover { .. } => return None,
            Diversity::Distinct { l } => FrequencyBound::Distinct(l.get() as usize),
            Diversity::Entropy { l } => FrequencyBound::Entropy(l),
            Diversity::Recursive { c, l } => FrequencyBound::Recursive(c, l.get() as usize),
            Diversity::Closeness { t } => FrequencyBound::Closeness(t),
        };
        let missing = column.values.len() as u32;
        let known = |&code: &u32| if code == NULL_CODE { missing } else { code };
        let codes: Vec<u32> = column.codes.iter().map(known).collect();
        let mut table_counts = vec![0; column.values.len() + 1];
        for &code in &codes {
            table_counts[code as usize] += 1;
        }
        Some(Self {
            bound,
            codes,
            missing,
            table_counts,
        })
    }

    /// Number of codes, including that of missing cells.
    pub(super) fn code_count(&self) -> usize {
        self.table_counts.len()
    }

    /// Whether the frequencies in `rows` meet the bound.
    pub(super) fn accepts(&self, rows: &[u32], counts: &mut CodeCounts) -> bool {
        for &row in rows {
            let code = self.codes[row as usize];
            let count = &mut counts.rows[code as usize];
            if *count == 0 {
                counts.seen.push(code);
            }
            *count += 1;
        }
        let found = counts
            .seen
            .iter()
            .map(|&code| (code, counts.rows[code as usize]));
        let accepted = match self.bound {
            FrequencyBound::Closeness(t) => self.is_close(found, rows.len() as u64, t),
            _ => self.is_diverse(known(found, self.missing)),
        };
        for code in counts.seen.drain(..) {
            counts.rows[code as usize] = 0;
        }
        accepted
    }

    /// Whether the shares differ by at most *t* from those of the table, among all rows and among
    /// those with a value: missing cells must neither be recognizable nor hide that a group's
    /// known values differ from the table's.
    fn is_close(
        &self,
        found: impl Iterator<Item = (u32, u32)> + Clone,
        size: u64,
        t: Decimal,
    ) -> bool {
        let total = self.codes.len() as u64;
        let missing_rows = self.table_counts[self.missing as usize];
        if !self.shares_are_close(found.clone(), size, total, t) {
            return false;
        }
        if missing_rows == 0 {
            return true;
        }
        let known = found.filter(|(code, _)| *code != self.missing);
        let rows = known.clone().map(|(_, rows)| u64::from(rows)).sum();
        self.shares_are_close(known, rows, total - missing_rows, t)
    }

    /// Whether the shares of these counts among `size` rows differ by at most *t* from those among
    /// `total` rows of the table; no rows are close to any.
    fn shares_are_close(
        &self,
        found: impl Iterator<Item = (u32, u32)>,
        size: u64,
        total: u64,
        t: Decimal,
    ) -> bool {
        let surplus = found.map(|(code, rows)| {
            let expected = self.table_counts[code as usize] * size;
            (u64::from(rows) * total).saturating_sub(expected)
        });
        !t.is_exceeded_by(surplus.sum(), size * total)
    }

    fn is_diverse(&self, mut counts: Vec<u64>) -> bool {
        match self.bound {
            FrequencyBound::Distinct(l) => counts.len() >= l,
            FrequencyBound::Entropy(l) => {
                !counts.is_empty() && entropy(&counts) >= l.ln() - ROUNDING
            }
            FrequencyBound::Recursive(c, l) => {
                let (head, tail) = head_and_tail(&mut counts, l);
                c.times_exceeds(tail, head)
            }
            FrequencyBound::Closeness(_) => true,
        }
    }

    /// The change with which the whole table would meet the model. Only for a table that does not
    /// meet it.
    pub(super) fn remedy(&self) -> Remedy {
        let whole = (0..)
            .zip(&self.table_counts)
            .map(|(code, &rows)| (code, rows as u32));
        let mut counts = known(whole.filter(|(_, rows)| *rows > 0), self.missing);
        let lower = |l: String| Remedy {
            parameter: "l",
            fix: format!("lower `l` to at most {l}"),
        };
        match self.bound {
            _ if counts.is_empty() => Remedy {
                parameter: "model",
                fix: "choose `k_anonymity`: no row has a sensitive value".to_owned(),
            },
            FrequencyBound::Entropy(_) => {
                // Rounded down, so that the suggested bound holds.
                let l = (entropy(&counts).exp() * 10_000.0).floor() / 10_000.0;
                lower(l.to_string())
            }
            FrequencyBound::Recursive(_, l) if counts.len() >= l => {
                let (head, tail) = head_and_tail(&mut counts, l);
                let above = head as f64 / tail as f64;
                let c = ((above * 10_000.0).floor() + 1.0) / 10_000.0;
                Remedy {
                    parameter: "c",
                    fix: format!("raise `c` to at least {c}, or lower `l`"),
                }
            }
            FrequencyBound::Distinct(_)
            | FrequencyBound::Recursive(..)
            | FrequencyBound::Closeness(_) => lower(counts.len().to_string()),
        }
    }
}

/// The counts without that of missing cells, which do not count towards diversity.
fn known(found: impl Iterator<Item = (u32, u32)>, missing: u32) -> Vec<u64> {
    let known = found.filter(|(code, _)| *code != missing);
    known.map(|(_, rows)| u64::from(rows)).collect()
}

fn entropy(counts: &[u64]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    let weighted: f64 = counts
        .iter()
        .map(|&count| count as f64 * (count as f64).ln())
        .sum();
    total.ln() - weighted / total
}

/// The greatest count, and the sum of the `l`-th greatest and all smaller ones.
fn head_and_tail(counts: &mut [u64], l: usize) -> (u64, u64) {
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let head = counts.first().copied().unwrap_or(0);
    (head, counts.iter().skip(l - 1).sum())
}
