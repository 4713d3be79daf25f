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
                counts.sort_unstable_by(|one, other| other.cmp(one));
                let tail = counts.iter().skip(l - 1).sum();
                c.times_exceeds(tail, counts.first().copied().unwrap_or(0))
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
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let choose_k = |why: &str| Remedy {
            parameter: "model",
            fix: format!("choose `k_anonymity`: {why}"),
        };
        let lower = |l: f64| {
            if l <= 1.0 {
                return choose_k("almost all rows with a sensitive value have the same one");
            }
            Remedy {
                parameter: "l",
                fix: format!("lower `l` to at most {l}"),
            }
        };
        match self.bound {
            _ if counts.is_empty() => choose_k("no row has a sensitive value"),
            // Rounded down, so that the suggested bound holds.
            FrequencyBound::Entropy(_) => {
                // Rounding of the logarithms.
                lower((entropy(&counts).exp() * 10_000.0 + 1e-6).floor() / 10_000.0)
            }
            FrequencyBound::Recursive(c, l) => recursive_remedy(&counts, c, l),
            FrequencyBound::Distinct(_) | FrequencyBound::Closeness(_) => {
                lower(counts.len() as f64)
            }
        }
    }
}

/// The remedy for recursive (*c*, *l*)-diversity. `counts` descend.
fn recursive_remedy(counts: &[u64], c: Decimal, l: usize) -> Remedy {
    let tail = |l: usize| counts.iter().skip(l - 1).sum::<u64>();
    let kept = l.min(counts.len());
    let above = counts[0] as f64 / tail(kept) as f64;
    let greater = ((above * 10_000.0).floor() + 1.0) / 10_000.0;
    let lower = (2..=kept)
        .rev()
        .find(|&l| c.times_exceeds(tail(l), counts[0]));
    let (parameter, fix) = match lower {
        Some(lower) if kept < l => ("l", format!("lower `l` to at most {lower}")),
        Some(lower) => (
            "c",
            format!("raise `c` to at least {greater}, or lower `l` to at most {lower}"),
        ),
        None if kept < l => (
            "l",
            format!("lower `l` to at most {kept}, and raise `c` to at least {greater}"),
        ),
        None => ("c", format!("raise `c` to at least {greater}")),
    };
    Remedy { parameter, fix }
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
