//! The cut that a release publishes.
//!
//! It depends on the declared columns and on the released rows alone: a suppressed row leaves no
//! label, no end of an interval and no split point.

use std::collections::BTreeMap;

use pais_core::parallel;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::codes::RowCodes;
use pais_core::table::{ContinuedEnds, Domain, EncodedTable, QuasiIdentifier};
use pais_core::taxonomy::{Interval, MISSING_LABEL, Multiples, SUPPRESSED_LABEL, Scale};
use pais_core::with_codes;

/// The cuts that a release of `rows` publishes, and their labels by column.
///
/// Labels that no released row has are dropped. An interval that is no node of a taxonomy ends at the smallest
/// released number of the next one, which changes the label of no released row. The outermost intervals end at
/// the declared domain, otherwise at the released numbers. Where a cut is continued, its ends around the
/// released numbers take the place of ends that are further away. The label of a code that no released row has
/// is not meaningful.
///
/// Makes one pass over the codes of each column; threads share the columns.
pub(crate) fn publish(
    schema: &Schema,
    table: &EncodedTable,
    cuts: Vec<Cut>,
    rows: &[u32],
) -> (Vec<Cut>, BTreeMap<String, Vec<String>>) {
    let is_released = (rows.len() < table.rows).then(|| {
        let mut is_released = vec![false; table.rows];
        for &row in rows {
            is_released[row as usize] = true;
        }
        is_released
    });
    let stored: Vec<&SchemaColumn> = schema.stored().collect();
    let columns = table.quasi_identifiers.iter().zip(cuts);
    let publish = |(column, cut): (&QuasiIdentifier, Cut)| {
        let occurs = occurring_codes(column, is_released.as_deref());
        let mut cut = with_released_labels(cut, &occurs);
        if let Domain::Numeric {
            values,
            lo,
            hi,
            scale,
            round,
            ends,
            ..
        } = &column.domain
        {
            let missing = values.len();
            let has_missing = occurs.get(missing).copied().unwrap_or(false);
            let spec = stored.get(column.position).copied();
            let domain = match (&is_released, spec.and_then(|spec| spec.domain())) {
                // Without suppression the domain was computed from the released rows.
                (None, _) => Some((*lo, *hi)),
                (_, declared) => declared,
            };
            let ends = GrownEnds {
                domain,
                round_range: spec.is_some_and(|spec| spec.round_range()),
                round: *round,
                scale: *scale,
                // An interval that has missing cells is the outermost one.
                continued: ends.as_ref().filter(|_| {
                    let mut numbers = cut.label_of.iter().take(missing);
                    let label = cut.label_of.get(missing);
                    !has_missing || numbers.all(|it| Some(it) != label)
                }),
            };
            end_at_released_numbers(&mut cut, values, &occurs, ends);
        }
        cut
    };
    let cuts: Vec<Cut> = parallel::map(columns, publish);
    let names = table.quasi_identifiers.iter();
    let names = names.map(|column| column.name.to_string());
    let published = names.zip(cuts.iter().map(|cut| cut.labels.clone()));
    let published = published.collect();
    (cuts, published)
}

/// Whether any released row has a code, by code; every row is released if `is_released` is `None`.
fn occurring_codes(column: &QuasiIdentifier, is_released: Option<&[bool]>) -> Vec<bool> {
    let count = column.domain.code_count();
    let Some(is_released) = is_released else {
        return column
            .codes
            .counts(count)
            .into_iter()
            .map(|rows| rows > 0)
            .collect();
    };
    let mut occurs = vec![false; count];
    with_codes!(&column.codes, codes => {
        let pairs = codes.in_rows(0..is_released.len()).zip(is_released);
        pairs.for_each(|(code, is_released)| occurs[code as usize] |= is_released);
    });
    occurs
}

/// The cut with only the labels of codes that occur.
fn with_released_labels(cut: Cut, occurs: &[bool]) -> Cut {
    let mut is_kept = vec![false; cut.labels.len()];
    for (&label, _) in cut
        .label_of
        .iter()
        .zip(occurs)
        .filter(|(_, occurs)| **occurs)
    {
        is_kept[label as usize] = true;
    }
    let mut kept = 0;
    let new_number = |&is_kept: &bool| {
        let number = kept;
        kept += u32::from(is_kept);
        if is_kept { number } else { 0 }
    };
    let new_numbers: Vec<u32> = is_kept.iter().map(new_number).collect();
    let labels = cut.labels.into_iter().zip(is_kept);
    let new = |&label: &u32| new_numbers[label as usize];
    Cut {
        labels: labels
            .filter_map(|(label, is_kept)| is_kept.then_some(label))
            .collect(),
        label_of: cut.label_of.iter().map(new).collect(),
    }
}

/// Where the intervals of a cut without a taxonomy end.
#[derive(Clone, Copy)]
struct GrownEnds<'a> {
    /// The outermost ends; `None` where they follow from the released numbers.
    domain: Option<(f64, f64)>,
    /// Whether the outermost ends are then widened to round numbers.
    round_range: bool,
    /// The multiples at which all ends are.
    round: Option<Multiples>,
    /// The scale of the ends.
    scale: Scale,
    /// The ends of a cut that is continued.
    continued: Option<&'a ContinuedEnds>,
}

impl GrownEnds<'_> {
    /// The outermost ends, from the least and the greatest released number.
    fn outermost(self, least: f64, greatest: f64) -> (f64, f64) {
        if let Some(domain) = self.domain {
            return domain;
        }
        let (lo, hi) = if self.round_range {
            self.scale.widened(least, greatest)
        } else {
            (least, greatest)
        };
        match self.round {
            Some(round) => round.enclosing(lo, hi, None),
            None => (lo, hi),
        }
    }

    /// The start of an interval with this smallest released number, after the start `before`.
    fn start(self, before: Option<f64>, least: f64) -> f64 {
        if let Some(end) = self.continued.and_then(|it| it.between(before, least)) {
            return end;
        }
        let rounded = self.round.and_then(|round| round.floor(least));
        rounded.unwrap_or(least)
    }
}

/// Sets the ends of the intervals of a cut without a taxonomy.
fn end_at_released_numbers(cut: &mut Cut, values: &[f64], occurs: &[bool], ends: GrownEnds<'_>) {
    // The intervals with released numbers, from left to right: the label and where it starts.
    let mut intervals: Vec<(usize, f64)> = Vec::new();
    let mut last_of: Vec<f64> = Vec::new();
    let (mut least, mut greatest) = (None, None);
    for ((&value, &label), _) in values
        .iter()
        .zip(&cut.label_of)
        .zip(occurs)
        .filter(|(_, occurs)| **occurs)
    {
        let before = greatest.replace(value);
        if intervals
            .last()
            .is_none_or(|(last, _)| *last != label as usize)
        {
            intervals.push((label as usize, ends.start(before, value)));
            last_of.push(value);
            least = least.or(Some(value));
        } else if let Some(last) = last_of.last_mut() {
            *last = value;
        }
    }
    let (Some(least), Some(greatest)) = (least, greatest) else {
        // Every released cell is missing. The ends of the topmost interval are then declared, or
        // numbers of suppressed rows.
        for label in cut.labels.iter_mut().filter(|_| ends.domain.is_none()) {
            MISSING_LABEL.clone_into(label);
        }
        return;
    };
    let missing = values.len();
    let has_missing = occurs.get(missing) == Some(&true);
    let of_missing = cut.label_of.get(missing).filter(|_| has_missing);
    let of_missing = of_missing.map(|&label| label as usize);
    let (lo, mut hi) = ends.outermost(least, greatest);
    let is_continued = |end: f64| ends.continued.is_some_and(|it| it.ends.contains(&end));
    if let (Some(round), Some((_, last))) = (ends.round, intervals.last_mut())
        && *last >= hi
        && !is_continued(*last)
    {
        // The last interval would be one point. Its split was below a declared end.
        match ends.domain {
            Some(_) => *last = round.below(hi).unwrap_or(*last),
            None => hi = round.above(*last).unwrap_or(hi),
        }
    }
    for (at, (&(label, start), last)) in intervals.iter().zip(last_of).enumerate() {
        let is_outermost = at == 0 && !is_continued(start);
        let lo = if is_outermost { lo } else { start };
        let next = intervals.get(at + 1).map(|(_, next)| *next);
        let end = ends.continued.and_then(|it| it.after(last));
        let interval = match next.into_iter().chain(end).reduce(f64::min) {
            Some(next) => Interval::half_open(lo, next),
            None => Interval::closed(lo, hi),
        };
        // An interval of one number would also stand for missing cells.
        cut.labels[label] = if of_missing == Some(label) && interval.lo == interval.hi {
            SUPPRESSED_LABEL.to_owned()
        } else {
            interval.on(ends.scale).to_string()
        };
    }
}

#[cfg(test)]
mod tests;

/// *Cut_i* of one attribute: exactly one value on each root-to-leaf path (Section 3.2).
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    /// Labels, from left to right.
    pub labels: Vec<String>,
    /// For each code of the attribute, the index of its label.
    pub label_of: Vec<u32>,
}
