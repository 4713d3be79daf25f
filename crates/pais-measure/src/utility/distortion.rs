//! How far released labels distort the raw columns: entropy, frequencies of values, and pairs of
//! columns. Raw rows are needed, so that all of it is for the holder, rounded.

use std::collections::BTreeMap;

use pais_core::cancellation::Cancellation;
use pais_core::definition::ColumnRole;
use pais_core::parallel;
use pais_core::table::{Domain, code_counts};

use pais_verify::VerifyError;

use crate::frequencies::CodeFrequencies;
use crate::release::{MeasuredRelease, ReleaseRecoding};
use crate::sample::RawSample;

use super::distorted_column::{DistortedColumn, distorted_columns};
use super::distributions::ColumnDistribution;
use super::holder_only::rounded;
use super::label_cover::{Bins, above_missing, covered};

/// The measures of distortion, those that a release has.
#[derive(Default)]
pub(crate) struct Distortion {
    /// See [`super::Utility`].
    pub(crate) entropy_loss_by_column: Option<BTreeMap<String, f64>>,
    /// See [`super::Utility`].
    pub(crate) frequency_survival_by_column: Option<BTreeMap<String, f64>>,
    /// See [`super::Utility`].
    pub(crate) association_survival: Option<f64>,
    /// See [`super::Report`].
    pub(crate) distributions: Option<Vec<ColumnDistribution>>,
}

/// Measures the distortion. A set is measured by its items elsewhere.
///
/// # Errors
/// [`VerifyError::Stopped`].
pub(crate) fn measured_distortion(
    release: &MeasuredRelease,
    frequencies: &CodeFrequencies,
    sample: &RawSample,
) -> Result<Distortion, VerifyError> {
    if release.recoding == ReleaseRecoding::Anatomized {
        return Ok(exact(release));
    }
    let columns = distorted_columns(release, frequencies, sample).unwrap_or_default();
    release.cancellation.check()?;
    if columns.is_empty() {
        return Ok(Distortion::default());
    }
    let measured = parallel::map(&columns, |column| {
        let figures = if release.cancellation.is_cancelled() {
            (0.0, 0.0)
        } else {
            (
                column.entropy_loss(),
                column.frequency_survival(release.cancellation),
            )
        };
        (column.spec.name().to_owned(), figures)
    });
    release.cancellation.check()?;
    let by_column = |figure: &dyn Fn((f64, f64)) -> f64| {
        let figures = measured.iter();
        let figures = figures.map(|(name, found)| (name.clone(), rounded(figure(*found))));
        Some(figures.collect::<BTreeMap<_, _>>())
    };
    let survival = survival(release, &columns, sample);
    release.cancellation.check()?;
    let k = release.model.k();
    let subjects = release.raw.subjects.as_deref();
    let shown = parallel::map(&columns, |column| {
        ColumnDistribution::new(column, subjects, k.get())
    });
    release.cancellation.check()?;
    Ok(Distortion {
        entropy_loss_by_column: by_column(&|(entropy, _)| entropy),
        frequency_survival_by_column: by_column(&|(_, frequency)| frequency),
        association_survival: survival.map(rounded),
        distributions: Some(shown),
    })
}

/// The measures of an anatomized release, whose quasi-identifiers are exact.
fn exact(release: &MeasuredRelease) -> Distortion {
    let columns = release.quasi_identifiers;
    let by_column = |figure: f64| {
        let names = columns.iter().map(|column| column.name.to_string());
        Some(names.map(|name| (name, figure)).collect())
    };
    Distortion {
        entropy_loss_by_column: by_column(0.0),
        frequency_survival_by_column: by_column(1.0),
        ..Distortion::default()
    }
}

impl DistortedColumn<'_> {
    /// Non-uniform entropy loss (Gionis and Tassa, TKDE 2009, Section 3): the mean of *-log P(value |
    /// label)* with the raw frequencies, divided by that of a column that is generalized or
    /// suppressed as a whole. 0 where the raw column has one value. The values of a numeric column with
    /// a taxonomy are its leaf ranges.
    pub(super) fn entropy_loss(&self) -> f64 {
        let logarithm = |&count: &u64| (count.max(1) as f64).log2();
        let of_code: Vec<f64> = self.raw_counts.iter().map(logarithm).collect();
        let all = logarithm(&(self.raw.codes.rows() as u64));
        let codes = of_code.iter().zip(self.raw_counts);
        let whole: f64 = codes.map(|(log, &rows)| rows as f64 * (all - log)).sum();
        if whole <= 0.0 {
            return 0.0;
        }
        let mut sums = vec![0u64; self.raw_counts.len() + 1];
        for (code, &rows) in self.raw_counts.iter().enumerate() {
            sums[code + 1] = sums[code] + rows;
        }
        let above = above_missing(self.raw, self.spec, self.released, self.sampled);
        let mut of_label = vec![all; self.label_counts.len()];
        for (code, label, _) in self.labels() {
            if let Some((first, end, with_missing)) = covered(&self.raw.domain, label, above) {
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
        let pairs = self.sampled.iter().zip(&self.released.column.codes);
        let kept = pairs.map(|(&code, &label)| {
            let label = of_label.get(label as usize).copied().unwrap_or(all);
            all - label.max(of_code[code as usize])
        });
        let each = self.rows as f64 / self.sampled.len().max(1) as f64;
        let kept = kept.sum::<f64>() * each;
        let lost = (1.0 - kept / whole).clamp(0.0, 1.0);
        // What is left of a sum of all rows is its rounding.
        if lost < 1e-9 { 0.0 } else { lost }
    }

    /// 1 - total variation distance between the raw shares and those that labels give if their
    /// values are equally likely: of the leaves of a taxonomy, or of bins of a numeric column.
    /// Not meaningful when stopped.
    pub(super) fn frequency_survival(&self, cancellation: &Cancellation) -> f64 {
        if self.rows == 0 {
            return 0.0;
        }
        let (raw, estimated) = match self.bins() {
            Some(bins) => (self.raw_bins(&bins), self.released_bins(&bins)),
            None => (shares(self.raw_counts), self.leaf_shares(cancellation)),
        };
        let differences = raw
            .iter()
            .zip(&estimated)
            .map(|(one, other)| (one - other).abs());
        let distance = differences.sum::<f64>() / 2.0;
        (1.0 - distance).clamp(0.0, 1.0)
    }

    fn raw_bins(&self, bins: &Bins) -> Vec<f64> {
        shares(&self.raw_bin_counts(bins))
    }

    /// The share of each leaf as the labels give it. Labels of groups overlap, so there can be many
    /// above each leaf.
    fn leaf_shares(&self, cancellation: &Cancellation) -> Vec<f64> {
        let mut found = vec![0.0; self.raw_counts.len()];
        let labels = self.labels();
        for (_, label, rows) in labels.take_while(|_| !cancellation.is_cancelled()) {
            if let Some((first, end, _)) = covered(&self.raw.domain, label, None) {
                let share = rows as f64 / self.rows as f64 / (end - first).max(1) as f64;
                found[first..end].iter_mut().for_each(|leaf| *leaf += share);
            }
        }
        found
    }
}

/// Each count divided by their sum.
pub(super) fn shares(counts: &[u64]) -> Vec<f64> {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    counts.iter().map(|&count| count as f64 / total).collect()
}

/// Maximum number of pairs of columns, in the declared order.
const PAIRS: usize = 100;

/// Maximum number of values of a column that are kept apart, the most frequent ones; all others are one.
const VALUES: usize = 50;

/// A column on both sides, with a value for each row of the sample.
struct PairedColumn {
    raw: FrequentValues,
    released: FrequentValues,
    is_quasi_identifier: bool,
}

/// 1 - the mean absolute difference of Cramér's V on raw and on released values, over pairs of
/// quasi-identifiers, and of a quasi-identifier with a sensitive or class column. `None` without a
/// pair or a released row, and when stopped.
fn survival(
    release: &MeasuredRelease,
    columns: &[DistortedColumn],
    sample: &RawSample,
) -> Option<f64> {
    let rows = columns.first()?.sampled.len();
    let paired = paired_columns(release, columns, sample);
    let pairs = paired.iter().enumerate().flat_map(|(index, one)| {
        let others = paired[index + 1..].iter();
        let others = others.filter(|_| one.is_quasi_identifier);
        others.map(move |other| (one, other))
    });
    let difference = |(one, other): (&PairedColumn, &PairedColumn)| {
        let raw = cramers_v(&one.raw, &other.raw);
        let of_pair = (raw - cramers_v(&one.released, &other.released)).abs();
        (!release.cancellation.is_cancelled()).then_some(of_pair)
    };
    let differences = parallel::map(pairs.take(PAIRS), difference).into_iter();
    let differences: Vec<f64> = differences.collect::<Option<_>>()?;
    let is_measured = !differences.is_empty() && rows > 0;
    is_measured.then(|| 1.0 - differences.iter().sum::<f64>() / differences.len() as f64)
}

/// Quasi-identifiers first. Raw numbers are in bins of equal width.
fn paired_columns(
    release: &MeasuredRelease,
    columns: &[DistortedColumn],
    sample: &RawSample,
) -> Vec<PairedColumn> {
    let mut paired: Vec<PairedColumn> = columns
        .iter()
        .map(|column| {
            let bins = column.bins();
            let raw = |&code: &u32| {
                let bin = |bins| column.bin(bins, code as usize) as u32;
                bins.as_ref().map_or(code, bin)
            };
            let released = &column.released.column;
            let null = released.dictionary.len() as u32;
            let labels = released.codes[..column.sampled.len()].iter();
            PairedColumn {
                raw: FrequentValues::new(column.sampled.iter().map(raw)),
                released: FrequentValues::new(labels.map(|&code| code.min(null))),
                is_quasi_identifier: true,
            }
        })
        .collect();
    for (untouched, codes) in release.raw.untouched.iter().zip(&sample.untouched) {
        let spec = release.schema.stored_at(untouched.position);
        let role = spec.map(|spec| spec.role());
        if !matches!(role, Some(ColumnRole::Sensitive | ColumnRole::Class)) {
            continue;
        }
        let null = untouched.column.dictionary.len() as u32;
        let values = FrequentValues::new(codes.iter().map(|&code| code.min(null)));
        paired.push(PairedColumn {
            raw: values.clone(),
            released: values,
            is_quasi_identifier: false,
        });
    }
    paired
}

/// Values numbered by frequency; those beyond [`VALUES`] are one.
#[derive(Clone, Debug)]
struct FrequentValues {
    numbers: Vec<u8>,
    /// How often each number occurs.
    counts: Vec<u64>,
}

impl FrequentValues {
    fn new(values: impl Iterator<Item = u32>) -> Self {
        let values: Vec<u32> = values.collect();
        let most = values.iter().max().map_or(0, |most| *most as usize + 1);
        let by_value = code_counts(&values, most);
        let mut order: Vec<usize> = (0..most).filter(|&value| by_value[value] > 0).collect();
        order.sort_by_key(|&value| (std::cmp::Reverse(by_value[value]), value));
        let mut number = vec![VALUES as u8; most];
        let mut counts = vec![0; order.len().min(VALUES + 1)];
        for (index, &value) in order.iter().enumerate() {
            let index = index.min(VALUES);
            number[value] = index as u8;
            counts[index] += by_value[value];
        }
        Self {
            numbers: values.iter().map(|&value| number[value as usize]).collect(),
            counts,
        }
    }
}

/// Cramér's V of two columns, from 0 to 1; 0 where one of them has a single value.
fn cramers_v(one: &FrequentValues, other: &FrequentValues) -> f64 {
    let width = other.counts.len();
    let least = one.counts.len().min(width);
    if least < 2 {
        return 0.0;
    }
    // Two tables take turns: an addition waits for the previous one at the same place.
    let places = one.counts.len() * width;
    let mut joint = vec![0u32; 2 * places];
    let (even, odd) = joint.split_at_mut(places);
    let place = |first: u8, second: u8| usize::from(first) * width + usize::from(second);
    let (pairs, last) = one.numbers.as_chunks::<2>();
    let (other_pairs, other_last) = other.numbers.as_chunks::<2>();
    for (one, other) in pairs.iter().zip(other_pairs) {
        even[place(one[0], other[0])] += 1;
        odd[place(one[1], other[1])] += 1;
    }
    for (&one, &other) in last.iter().zip(other_last) {
        even[place(one, other)] += 1;
    }
    even.iter_mut()
        .zip(odd)
        .for_each(|(even, odd)| *even += *odd);
    let cells = joint[..places].iter().enumerate();
    let cells = cells.filter(|(_, count)| **count > 0);
    let sum: f64 = cells
        .map(|(cell, &count)| {
            let expected = one.counts[cell / width] as f64 * other.counts[cell % width] as f64;
            f64::from(count) * f64::from(count) / expected
        })
        .sum();
    ((sum - 1.0).max(0.0) / (least - 1) as f64).sqrt().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::{FrequentValues, cramers_v};

    #[test]
    fn cramers_v_is_1_for_a_function_and_0_for_independence() {
        let of = |one: &[u32], other: &[u32]| {
            let [one, other] = [one, other].map(|it| FrequentValues::new(it.iter().copied()));
            cramers_v(&one, &other)
        };
        assert!((of(&[0, 0, 1, 1], &[1, 1, 0, 0]) - 1.0).abs() < 1e-12);
        assert_eq!(of(&[0, 0, 1, 1], &[0, 1, 0, 1]), 0.0);
        assert_eq!(of(&[0, 0, 0, 0], &[0, 1, 0, 1]), 0.0);
        // Counts 2, 1, 1, 2: chi-square is 6 / 9, and V its root over 6 rows.
        let found = of(&[0, 0, 0, 1, 1, 1], &[0, 0, 1, 0, 1, 1]);
        assert!((found - 1.0 / 3.0).abs() < 1e-12);
        // Counts 2 and 3, and a row of an odd number.
        let odd = of(&[0, 0, 1, 1, 1], &[7, 7, 2, 2, 2]);
        assert!((odd - 1.0).abs() < 1e-12);
    }

    #[test]
    fn values_beyond_the_fifty_most_frequent_are_one() {
        let values = (0..60u32).flat_map(|value| std::iter::repeat_n(value, 60 - value as usize));
        let FrequentValues { numbers, counts } = FrequentValues::new(values);
        assert_eq!((numbers[0], numbers.last()), (0, Some(&50)));
        assert_eq!((counts[49], counts[50]), (11, (1..=10).sum()));
    }
}
