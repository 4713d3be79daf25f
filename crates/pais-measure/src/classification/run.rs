//! The errors of classifiers on a release and on its raw rows.

use std::collections::BTreeMap;
use std::iter::repeat;

use pais_core::cancellation::Cancellation;
use pais_core::definition::{ColumnKind, ColumnRole};
use pais_core::parallel;
use pais_core::schema::SchemaColumn;
use pais_core::table::{Column, Positioned};
use rayon::prelude::*;

use super::error::{ClassificationError, DivisionErrors};
use super::examples::{MOST_CLASSES, RowExamples};
use super::features::{Feature, all_of, classes};
use super::gain::Logs;
use super::holdout::{Thirds, held_out_error};
use super::rows::{ClassifiedRows, Division, RowKey, drawn, repeats};
use crate::frequencies::CodeFrequencies;
use crate::release::MeasuredRelease;
use crate::sample::{RawSample, SAMPLED_ROWS, first_rows};

/// A column of the release that a classifier uses.
struct UsedColumn<'a> {
    position: usize,
    spec: &'a SchemaColumn,
    released: &'a Column,
    /// Rows of each code of `released`.
    frequencies: &'a [u64],
}

/// The errors on a released table, rounded, and with a `sample` those on the raw rows. `None` where the
/// table has no class column, too many classes or fewer than two rows, and when stopped.
pub(crate) fn classification_error(
    release: &MeasuredRelease,
    frequencies: &CodeFrequencies,
    sample: Option<&RawSample>,
) -> Option<ClassificationError> {
    let used = used_columns(release, frequencies);
    let is_class = |it: &UsedColumn<'_>| it.spec.role() == ColumnRole::Class;
    let (class, used): (Vec<_>, Vec<_>) = used.into_iter().partition(is_class);
    let class = class.first()?;
    let released = ClassifiedRows {
        features: parallel::map(&used, UsedColumn::as_released),
        class_cells: all_of(&class.released.codes),
        classes: classes(class.released),
    };
    if released.classes.value_count() > MOST_CLASSES || release.cancellation.is_cancelled() {
        return None;
    }
    let raw = match sample {
        Some(sample) => Some(raw_rows(
            release,
            frequencies,
            &used,
            class.position,
            sample,
        )?),
        None => None,
    };
    if raw
        .as_ref()
        .is_some_and(|raw| raw.rows.classes.value_count() > MOST_CLASSES)
    {
        return None;
    }
    let sample = Sample::new(&released, raw.as_ref(), release.rows);
    if release.cancellation.is_cancelled() {
        return None;
    }
    let of_release = released.examples(&sample.released, |_| true);
    let of_raw = raw.map(|raw| {
        let is_open = |at: usize| used[at].spec.role() != ColumnRole::QuasiIdentifier;
        rayon::join(
            || raw.rows.examples(&sample.raw, |_| true),
            || raw.rows.examples(&sample.raw, is_open),
        )
    });
    let errors = errors(&of_release, of_raw.as_ref(), release.cancellation)?;
    Some(errors.rounded())
}

/// The means over the divisions, whose trees are learnt by several threads.
fn errors(
    of_release: &RowExamples,
    of_raw: Option<&(RowExamples, RowExamples)>,
    cancellation: &Cancellation,
) -> Option<ClassificationError> {
    let released = of_release.len();
    let suppressed = of_raw.map_or(0, |(all, _)| all.len() - released);
    let divisions = 0..repeats(released as u64);
    let divisions: Vec<Division> = divisions
        .map(|repeat| Division::new(released, suppressed, repeat))
        .collect();
    // The trees of all raw columns take longest, so they come first: threads take one tree after another, and
    // no thread is left with a long one at the end.
    let mut trees: Vec<(&RowExamples, &Thirds)> = Vec::new();
    if let Some((all, open)) = of_raw {
        trees.extend(divisions.iter().map(|it| (all, &it.all)));
        trees.extend(divisions.iter().map(|it| (open, &it.all)));
    }
    trees.extend(divisions.iter().map(|it| (of_release, &it.released)));
    let most = trees.iter().map(|(_, it)| it.learning.len()).max();
    let logs = Logs::new(most.unwrap_or(0) as u64);
    let trees = trees.into_iter().enumerate().par_bridge();
    let errors = trees.map(|(at, (examples, thirds))| {
        let error = held_out_error(examples, thirds, &logs, cancellation)?;
        Some((at, error))
    });
    let errors: BTreeMap<usize, f64> = errors.collect::<Option<_>>()?;
    let errors: Vec<f64> = errors.into_values().collect();
    let (raw, released) = errors.split_at(errors.len() - divisions.len());
    let (be, ue) = raw.split_at(raw.len() / 2);
    let raw = be.iter().copied().zip(ue.iter().copied());
    let raw = raw.map(Some).chain(repeat(None));
    let found = released.iter().zip(raw);
    let found: Vec<_> = found.map(|(&ce, raw)| DivisionErrors { ce, raw }).collect();
    ClassificationError::mean(&found, &divisions.first()?.released)
}

impl<'a> UsedColumn<'a> {
    fn as_released(&self) -> Feature<'a> {
        Feature::of_text(self.spec, self.released, self.frequencies)
    }

    /// The raw column: as it is in an anatomized release, as the method reads it otherwise. With the cells of
    /// the `sample`, where it is given.
    fn as_raw(
        &self,
        release: &MeasuredRelease<'a>,
        frequencies: &CodeFrequencies,
        sample: Option<&'a RawSample>,
    ) -> Option<Feature<'a>> {
        let of_text =
            |column: &'a Column| Feature::of_text(self.spec, column, &column.row_counts());
        if let Some(at) = place_of(release.exact, self.position) {
            return Some(of_text(&release.exact[at].column));
        }
        let mut quasi_identifiers = release.quasi_identifiers.iter();
        if let Some(at) = quasi_identifiers.position(|it| it.position == self.position) {
            let (column, frequencies) = (release.quasi_identifiers[at], &frequencies.raw[at]);
            let feature = Feature::of_raw(self.spec, column, frequencies);
            return Some(feature.with_cells(sample.map(|it| &*it.quasi_identifiers[at])));
        }
        let at = place_of(&release.raw.untouched, self.position)?;
        let feature = of_text(&release.raw.untouched[at].column);
        Some(feature.with_cells(sample.map(|it| &*it.untouched[at])))
    }
}

/// The columns of the release that the dataset has, without sets. Sensitive ones are included: the paper
/// removes only the quasi-identifiers, and a recipient of the release has them too.
fn used_columns<'a>(
    release: &MeasuredRelease<'a>,
    frequencies: &'a CodeFrequencies,
) -> Vec<UsedColumn<'a>> {
    let used = |(position, spec): (usize, &'a SchemaColumn)| {
        let is_used = spec.kind() != ColumnKind::Set;
        let columns = release.table.columns.iter().zip(&frequencies.released);
        let mut columns = columns.filter(|_| is_used);
        let (released, frequencies) = columns.find(|(column, _)| *column.name == *spec.name())?;
        Some(UsedColumn {
            position,
            spec,
            released: &released.column,
            frequencies,
        })
    };
    let stored = release.schema.stored().enumerate();
    stored.filter_map(used).collect()
}

/// Where the column with this position is.
fn place_of(columns: &[Positioned], position: usize) -> Option<usize> {
    columns.iter().position(|it| it.position == position)
}

/// The raw rows with the columns `used`: those of the sample where they are enough, or all of them.
struct RawRows<'a> {
    rows: ClassifiedRows<'a>,
    /// Of each of the first released rows, its number among `rows`.
    of_released: Vec<u32>,
}

fn raw_rows<'a>(
    release: &MeasuredRelease<'a>,
    frequencies: &CodeFrequencies,
    used: &[UsedColumn<'a>],
    class: usize,
    sample: &'a RawSample,
) -> Option<RawRows<'a>> {
    let is_enough = release.suppressed_rows() == 0 && release.exact.is_empty();
    let sample = is_enough.then_some(sample);
    let released = first_rows(release.rows);
    let class_at = place_of(&release.raw.untouched, class)?;
    let class = &release.raw.untouched[class_at].column;
    let as_raw = |column: &UsedColumn<'a>| column.as_raw(release, frequencies, sample);
    let features: Option<Vec<_>> = parallel::map(used, as_raw).into_iter().collect();
    let rows = ClassifiedRows {
        features: features?,
        class_cells: all_of(sample.map_or(&class.codes, |it| &it.untouched[class_at])),
        classes: classes(class),
    };
    Some(RawRows {
        rows,
        of_released: match sample {
            Some(_) => (0..released.len() as u32).collect(),
            None => released.to_vec(),
        },
    })
}

/// The rows that are learnt from and tested on.
struct Sample {
    /// Rows of the release.
    released: Vec<u32>,
    /// The same rows by their numbers in [`RawRows`], then suppressed ones.
    raw: Vec<u32>,
}

impl Sample {
    /// `rows` are the raw rows of the release.
    fn new(released: &ClassifiedRows<'_>, raw: Option<&RawRows<'_>>, rows: &[u32]) -> Self {
        let places: Vec<u32> = (0..first_rows(rows).len() as u32).collect();
        let hashes = released.hashes(&places);
        let ties = match raw {
            Some(raw) => raw.rows.hashes(&raw.of_released),
            None => vec![0; places.len()],
        };
        let keys = places.iter().zip(hashes).zip(ties);
        let keys = keys.map(|((&row, hash), tie)| RowKey { hash, tie, row });
        let sampled = drawn(keys.collect(), places.len());
        let of_released = raw.map_or(&[][..], |raw| &raw.of_released);
        let raw_row = |&place: &u32| of_released[place as usize];
        let mut of_raw: Vec<u32> = match raw {
            Some(_) => sampled.iter().map(raw_row).collect(),
            None => Vec::new(),
        };
        if let Some(raw) = raw.map(|raw| &raw.rows).filter(|it| it.len() > rows.len()) {
            let mut is_released = vec![false; raw.len()];
            rows.iter()
                .for_each(|&row| is_released[row as usize] = true);
            let suppressed = (0..raw.len() as u32).filter(|&row| !is_released[row as usize]);
            let suppressed: Vec<u32> = suppressed.collect();
            // The same share of the suppressed rows as of the released ones, where they are not too many.
            let most = match rows.len() {
                0 => 0,
                all => (suppressed.len() * sampled.len() / all).min(SAMPLED_ROWS),
            };
            let keys = suppressed.iter().zip(raw.hashes(&suppressed));
            let keys = keys.map(|(&row, hash)| RowKey { hash, tie: 0, row });
            of_raw.extend(drawn(keys.collect(), most));
        }
        Self {
            released: sampled,
            raw: of_raw,
        }
    }
}
