//! A raw column beside its released labels.

use pais_core::schema::SchemaColumn;
use pais_core::table::{Domain, QuasiIdentifier, ReleasedColumn};
use pais_core::taxonomy::Interval;

use crate::frequencies::CodeFrequencies;
use crate::release::MeasuredRelease;
use crate::sample::RawSample;

use super::label_cover::Bins;

/// A raw column with its released labels.
pub(super) struct DistortedColumn<'a> {
    pub(super) spec: &'a SchemaColumn,
    /// With the codes of the raw rows.
    pub(super) raw: &'a QuasiIdentifier,
    pub(super) released: &'a ReleasedColumn,
    /// Number of released rows.
    pub(super) rows: usize,
    /// The raw codes of the first released rows.
    pub(super) sampled: &'a [u32],
    /// Number of raw rows with each code.
    pub(super) raw_counts: &'a [u64],
    /// Number of released rows with each label.
    pub(super) label_counts: &'a [u64],
}

/// The relational quasi-identifiers; `None` where the table lacks one.
pub(super) fn distorted_columns<'a>(
    release: &MeasuredRelease<'a>,
    frequencies: &'a CodeFrequencies,
    sample: &'a RawSample,
) -> Option<Vec<DistortedColumn<'a>>> {
    let columns = release.quasi_identifiers.iter().zip(&frequencies.raw);
    let columns = columns.zip(&sample.quasi_identifiers);
    let columns = columns.map(|((raw, raw_counts), sampled)| {
        let mut released = release.table.columns.iter().zip(&frequencies.released);
        let (released, label_counts) = released.find(|(released, _)| released.name == raw.name)?;
        Some(DistortedColumn {
            spec: release.schema.stored_at(raw.position)?,
            raw,
            released,
            rows: release.rows.len(),
            sampled,
            raw_counts,
            label_counts,
        })
    });
    columns.collect()
}

impl DistortedColumn<'_> {
    /// The labels that occur, each with its code and number of rows.
    pub(super) fn labels(&self) -> impl Iterator<Item = (usize, &str, u64)> {
        let labels = self
            .released
            .column
            .dictionary
            .iter()
            .zip(self.label_counts);
        let labels = labels.enumerate().filter(|(_, (_, rows))| **rows > 0);
        labels.map(|(code, (label, &rows))| (code, &**label, rows))
    }

    /// The bins of a column of grown intervals: bins of the declared domain, or of the range that the release
    /// shows, so that no bin ends at a value of a suppressed row.
    pub(super) fn bins(&self) -> Option<Bins> {
        let Domain::Numeric { scale, .. } = &self.raw.domain else {
            return None;
        };
        let shown = self
            .labels()
            .filter_map(|(_, label, _)| Interval::parse_on(label, *scale));
        let shown = shown.map(|it| (it.lo, it.hi));
        let shown = shown.reduce(|(lo, hi), (least, most)| (lo.min(least), hi.max(most)));
        let (lo, hi) = self.spec.domain().or(shown).unwrap_or((0.0, 0.0));
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

    /// The share of each bin as the labels give it.
    pub(super) fn released_bins(&self, bins: &Bins) -> Vec<f64> {
        let mut found = vec![0.0; bins.len()];
        for (_, label, rows) in self.labels() {
            bins.spread(label, rows as f64 / self.rows as f64, &mut found);
        }
        found
    }
}
