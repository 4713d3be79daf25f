//! Models of how often the values of one sensitive column stand in a group: distinct, entropy and
//! recursive diversity, and t-closeness.
//!
//! All are kept by the union of two groups that meet them, so that a group that is not split
//! meets them too.

use pais_core::model::{Diversity, Factor, Fraction};
use pais_core::table::{NULL_CODE, SensitiveColumn};

/// How far an entropy may fall short for rounding; the verifier allows more.
const ROUNDING: f64 = 1e-10;

/// What is asked of the frequencies.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Distinct(usize),
    Entropy(f64),
    Recursive(Factor, usize),
    Closeness(Fraction),
}

/// The one sensitive column with what is asked of it.
pub(super) struct Single {
    bound: Bound,
    /// One code a row; `missing` for a cell that is.
    codes: Vec<u32>,
    missing: u32,
    /// Rows of the whole table with each code.
    whole: Vec<u64>,
}

/// What would let the whole table meet the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The parameter to change.
    pub parameter: &'static str,
    /// How.
    pub fix: String,
}

/// Rows of a group with each code; working space.
pub(super) struct Counts {
    rows: Vec<u32>,
    seen: Vec<u32>,
}

impl Counts {
    pub(super) fn new(codes: usize) -> Self {
        Self {
            rows: vec![0; codes],
            seen: Vec::new(),
        }
    }
}

impl Single {
    /// `None` for a model that is about something else.
    pub(super) fn of(diversity: &Diversity, column: &SensitiveColumn) -> Option<Self> {
        let bound = match *diversity {
            Diversity::Unasked | Diversity::Strikes { .. } => return None,
            Diversity::Distinct { l } => Bound::Distinct(l.get() as usize),
            Diversity::Entropy { l } => Bound::Entropy(l),
            Diversity::Recursive { c, l } => Bound::Recursive(c, l.get() as usize),
            Diversity::Closeness { t } => Bound::Closeness(t),
        };
        let missing = column.values.len() as u32;
        let known = |&code: &u32| if code == NULL_CODE { missing } else { code };
        let codes: Vec<u32> = column.codes.iter().map(known).collect();
        let mut whole = vec![0; column.values.len() + 1];
        for &code in &codes {
            whole[code as usize] += 1;
        }
        Some(Self {
            bound,
            codes,
            missing,
            whole,
        })
    }

    /// Number of codes, that of missing cells among them.
    pub(super) fn values(&self) -> usize {
        self.whole.len()
    }

    /// Whether the frequencies among some rows are as asked.
    pub(super) fn accepts(&self, rows: &[u32], counts: &mut Counts) -> bool {
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
            Bound::Closeness(t) => self.is_close(found, rows.len() as u64, t),
            _ => self.holds(known(found, self.missing)),
        };
        for code in counts.seen.drain(..) {
            counts.rows[code as usize] = 0;
        }
        accepted
    }

    fn is_close(&self, found: impl Iterator<Item = (u32, u32)>, size: u64, t: Fraction) -> bool {
        let total = self.codes.len() as u64;
        let surplus = found.map(|(code, rows)| {
            let expected = self.whole[code as usize] * size;
            (u64::from(rows) * total).saturating_sub(expected)
        });
        !t.is_exceeded_by(surplus.sum(), size * total)
    }

    fn holds(&self, mut counts: Vec<u64>) -> bool {
        match self.bound {
            Bound::Distinct(l) => counts.len() >= l,
            Bound::Entropy(l) => !counts.is_empty() && entropy(&counts) >= l.ln() - ROUNDING,
            Bound::Recursive(c, l) => {
                let (head, tail) = head_and_tail(&mut counts, l);
                c.times_exceeds(tail, head)
            }
            Bound::Closeness(_) => true,
        }
    }

    /// What to change for the whole table to meet the model, which it does not.
    pub(super) fn remedy(&self) -> Remedy {
        let whole = (0..)
            .zip(&self.whole)
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
            Bound::Entropy(_) => {
                // Rounded down, so that the bound named is one that holds.
                let l = (entropy(&counts).exp() * 10_000.0).floor() / 10_000.0;
                lower(l.to_string())
            }
            Bound::Recursive(_, l) if counts.len() >= l => {
                let (head, tail) = head_and_tail(&mut counts, l);
                let above = head as f64 / tail as f64;
                let c = ((above * 10_000.0).floor() + 1.0) / 10_000.0;
                Remedy {
                    parameter: "c",
                    fix: format!("raise `c` to at least {c}, or lower `l`"),
                }
            }
            Bound::Distinct(_) | Bound::Recursive(..) | Bound::Closeness(_) => {
                lower(counts.len().to_string())
            }
        }
    }
}

/// The counts of codes that are not missing, whose rows protect nobody.
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

/// The greatest count, and the sum of the `l`-th and all smaller ones.
fn head_and_tail(counts: &mut [u64], l: usize) -> (u64, u64) {
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let head = counts.first().copied().unwrap_or(0);
    (head, counts.iter().skip(l - 1).sum())
}
