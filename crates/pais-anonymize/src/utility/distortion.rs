//! How far released labels distort the raw columns: entropy, frequencies of values, and pairs of
//! columns. Raw rows are needed, so that all of it is for the holder, rounded.

use std::collections::BTreeMap;

use pais_core::model::PrivacyModel;
use pais_core::schema::SchemaColumn;
use pais_core::table::{Domain, QuasiIdentifier, ReleasedColumn};
use pais_core::taxonomy::Interval;
use rayon::prelude::*;

use super::associations;
use super::distributions::ColumnDistribution;
use super::holder_only::rounded;
use super::label_cover::{Bins, covered};
use super::report::Report;
use crate::error::RunError;
use crate::method::{Candidate, Claim};
use crate::observer::{Observer, stop_if_asked};
use crate::prepared::PreparedTable;

/// A raw column beside its released labels.
pub(super) struct DistortedColumn<'a> {
    pub(super) spec: &'a SchemaColumn,
    /// With the codes of the raw rows.
    pub(super) raw: &'a QuasiIdentifier,
    pub(super) released: &'a ReleasedColumn,
    /// The raw row of each released row.
    pub(super) rows: &'a [u32],
    /// Number of raw rows with each code.
    pub(super) raw_counts: Vec<u64>,
    /// Number of released rows with each label.
    pub(super) label_counts: Vec<u64>,
}

/// Adds the measures of distortion. A set is measured by its items elsewhere.
///
/// # Errors
/// [`RunError::Cancelled`].
pub(crate) fn add_distortion(
    report: &mut Report,
    input: &PreparedTable,
    candidate: &Candidate,
    observer: &dyn Observer,
) -> Result<(), RunError> {
    let model = match &candidate.claim {
        Claim::Global(model) | Claim::Local(model) => model,
        Claim::Anatomized(_) => {
            exact(report, input);
            return Ok(());
        }
    };
    let Some(columns) = distorted_columns(input, candidate) else {
        return Ok(());
    };
    if columns.is_empty() {
        return Ok(());
    }
    let measured: Vec<_> = columns
        .par_iter()
        .map(|column| {
            let figures = if observer.must_stop() {
                (0.0, 0.0)
            } else {
                (column.entropy_loss(), column.frequency_survival())
            };
            (column.spec.name.to_string(), figures)
        })
        .collect();
    stop_if_asked(observer)?;
    let by_column = |figure: &dyn Fn((f64, f64)) -> f64| {
        let figures = measured.iter();
        let figures = figures.map(|(name, found)| (name.clone(), rounded(figure(*found))));
        Some(figures.collect::<BTreeMap<_, _>>())
    };
    let utility = &mut report.utility;
    utility.entropy_loss_by_column = by_column(&|(entropy, _)| entropy);
    utility.frequency_survival_by_column = by_column(&|(_, frequency)| frequency);
    let survival = associations::survival(input, &columns, observer);
    stop_if_asked(observer)?;
    utility.association_survival = survival.map(rounded);
    let k = match model {
        PrivacyModel::Lkc(model) => model.k,
        PrivacyModel::KmAnonymity(model) => model.k,
        PrivacyModel::Groups(model) => model.k,
    };
    let shown = columns
        .iter()
        .map(|column| ColumnDistribution::new(column, k.get()));
    report.distributions = Some(shown.collect());
    Ok(())
}

/// The measures of an anatomized release, whose quasi-identifiers are exact.
fn exact(report: &mut Report, input: &PreparedTable) {
    let columns = &input.table.quasi_identifiers;
    let by_column = |figure: f64| {
        let names = columns.iter().map(|column| column.name.to_string());
        Some(names.map(|name| (name, figure)).collect())
    };
    report.utility.entropy_loss_by_column = by_column(0.0);
    report.utility.frequency_survival_by_column = by_column(1.0);
}

/// The relational quasi-identifiers; `None` where the table lacks one.
fn distorted_columns<'a>(
    input: &'a PreparedTable,
    candidate: &'a Candidate,
) -> Option<Vec<DistortedColumn<'a>>> {
    let table = candidate.tables.first()?;
    let stored: Vec<_> = input.schema.stored().collect();
    let columns = input.table.quasi_identifiers.iter().map(|column| {
        let mut released = table.columns.iter();
        let released = released.find(|released| released.name == column.name)?;
        let spec = *stored.get(column.position)?;
        let raw = input.pre_generalization.raw(column);
        Some(DistortedColumn::new(spec, raw, released, &candidate.rows))
    });
    columns.collect()
}

impl<'a> DistortedColumn<'a> {
    pub(super) fn new(
        spec: &'a SchemaColumn,
        raw: &'a QuasiIdentifier,
        released: &'a ReleasedColumn,
        rows: &'a [u32],
    ) -> Self {
        Self {
            raw_counts: counts(&raw.codes, raw.domain.code_count()),
            label_counts: counts(&released.column.codes, released.column.dictionary.len()),
            spec,
            raw,
            released,
            rows,
        }
    }

    /// The labels that occur, each with its code and number of rows.
    pub(super) fn labels(&self) -> impl Iterator<Item = (usize, &str, u64)> {
        let labels = self
            .released
            .column
            .dictionary
            .iter()
            .zip(&self.label_counts);
        let labels = labels.enumerate().filter(|(_, (_, rows))| **rows > 0);
        labels.map(|(code, (label, &rows))| (code, &**label, rows))
    }

    /// Non-uniform entropy loss (Gionis and Tassa, TKDE 2009, Section 3): the mean of *-log P(value |
    /// label)* with the raw frequencies, divided by that of a column that is generalized or
    /// suppressed as a whole. 0 where the raw column has one value.
    pub(super) fn entropy_loss(&self) -> f64 {
        let logarithm = |&count: &u64| (count.max(1) as f64).log2();
        let of_code: Vec<f64> = self.raw_counts.iter().map(logarithm).collect();
        let all = logarithm(&(self.raw.codes.len() as u64));
        let codes = of_code.iter().zip(&self.raw_counts);
        let whole: f64 = codes.map(|(log, &rows)| rows as f64 * (all - log)).sum();
        if whole <= 0.0 {
            return 0.0;
        }
        let mut sums = vec![0u64; self.raw_counts.len() + 1];
        for (code, &rows) in self.raw_counts.iter().enumerate() {
            sums[code + 1] = sums[code] + rows;
        }
        let mut of_label = vec![all; self.label_counts.len()];
        for (code, label, _) in self.labels() {
            if let Some((first, end, with_missing)) = covered(&self.raw.domain, label) {
                let missing = match &self.raw.domain {
                    Domain::Numeric { values, .. } if with_missing => {
                        sums[sums.len() - 1] - sums[values.len()]
                    }
                    _ => 0,
                };
                of_label[code] = logarithm(&(sums[end] - sums[first] + missing));
            }
        }
        // What the released rows still have; suppressed rows lost all of theirs.
        let pairs = self.rows.iter().zip(&self.released.column.codes);
        let kept = pairs.map(|(&row, &label)| {
            let label = of_label.get(label as usize).copied().unwrap_or(all);
            let code = of_code[self.raw.codes[row as usize] as usize];
            all - label.max(code)
        });
        let kept: f64 = kept.sum();
        (1.0 - kept / whole).clamp(0.0, 1.0)
    }

    /// 1 - total variation distance between the raw shares and those that labels give if their
    /// values are equally likely: of the leaves of a taxonomy, or of bins of a numeric column.
    pub(super) fn frequency_survival(&self) -> f64 {
        if self.rows.is_empty() {
            return 0.0;
        }
        let (raw, estimated) = match self.bins() {
            Some(bins) => (self.raw_bins(&bins), self.released_bins(&bins)),
            None => (shares(&self.raw_counts), self.leaf_shares()),
        };
        let differences = raw
            .iter()
            .zip(&estimated)
            .map(|(one, other)| (one - other).abs());
        let distance = differences.sum::<f64>() / 2.0;
        (1.0 - distance).clamp(0.0, 1.0)
    }

    /// The bins of a column of grown intervals: of the declared domain, or of the range that the
    /// release shows, so that no bin ends at a value of a suppressed row.
    pub(super) fn bins(&self) -> Option<Bins> {
        let Domain::Numeric { scale, .. } = &self.raw.domain else {
            return None;
        };
        let shown = self
            .labels()
            .filter_map(|(_, label, _)| Interval::parse_on(label, *scale));
        let shown = shown.map(|it| (it.lo, it.hi));
        let shown = shown.reduce(|(lo, hi), (least, most)| (lo.min(least), hi.max(most)));
        let (lo, hi) = self.spec.domain.or(shown).unwrap_or((0.0, 0.0));
        Some(Bins::new(lo, hi, *scale))
    }

    /// Number of raw rows in each bin.
    pub(super) fn raw_bin_counts(&self, bins: &Bins) -> Vec<u64> {
        let mut counts = vec![0; bins.len()];
        for (code, &rows) in self.raw_counts.iter().enumerate() {
            counts[self.bin(bins, code)] += rows;
        }
        counts
    }

    /// The bin of a raw code.
    pub(super) fn bin(&self, bins: &Bins, code: usize) -> usize {
        match &self.raw.domain {
            Domain::Numeric { values, .. } => match values.get(code) {
                Some(&value) => bins.of(value),
                None => bins.missing(),
            },
            Domain::Taxonomy(_) => bins.missing(),
        }
    }

    fn raw_bins(&self, bins: &Bins) -> Vec<f64> {
        shares(&self.raw_bin_counts(bins))
    }

    /// The share of each bin as the labels give it.
    pub(super) fn released_bins(&self, bins: &Bins) -> Vec<f64> {
        let mut found = vec![0.0; bins.len()];
        for (_, label, rows) in self.labels() {
            bins.spread(label, rows as f64 / self.rows.len() as f64, &mut found);
        }
        found
    }

    /// The share of each leaf as the labels give it.
    fn leaf_shares(&self) -> Vec<f64> {
        let mut found = vec![0.0; self.raw_counts.len()];
        for (_, label, rows) in self.labels() {
            if let Some((first, end, _)) = covered(&self.raw.domain, label) {
                let share = rows as f64 / self.rows.len() as f64 / (end - first).max(1) as f64;
                found[first..end].iter_mut().for_each(|leaf| *leaf += share);
            }
        }
        found
    }
}

/// How often each code below `count` occurs.
fn counts(codes: &[u32], count: usize) -> Vec<u64> {
    let mut counts = vec![0u64; count];
    for &code in codes {
        if let Some(rows) = counts.get_mut(code as usize) {
            *rows += 1;
        }
    }
    counts
}

/// Each count divided by their sum.
pub(super) fn shares(counts: &[u64]) -> Vec<f64> {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    counts.iter().map(|&count| count as f64 / total).collect()
}
