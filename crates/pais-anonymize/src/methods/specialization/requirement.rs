//! The LKC-privacy requirement on the anonymous table, resolved against the rows of a run.
//!
//! The confidence in a sensitive value is its share among the rows of a group. Where missing cells
//! are excluded, only the rows that have a value in its column count. Then the missing cells of a
//! column are counted like one more value, the last one of the column, and the rows without a value
//! are subtracted from the size of the group.
//!
//! Both readings are anti-monotone: the share of a group is the mean of the shares of its parts,
//! weighted by their rows that have a value. A part in which no row has one imposes nothing.

use pais_core::model::{Confidence, Lkc, MinimumAnonymity, MissingSensitive};
use pais_core::table::{EncodedTable, NULL_CODE, Subjects};

use crate::methods::bounded_values::bounded_values;

/// One sensitive column and the values of it that are bounded.
#[derive(Clone, Debug)]
pub(super) struct SensitiveBound<'a> {
    /// One code per row; [`NULL_CODE`] for a missing cell.
    pub codes: &'a [u32],
    /// By code: the index of the value among the counted values of all sensitive columns, or
    /// [`NULL_CODE`] for a value that is not sensitive.
    pub numbers: Vec<u32>,
    /// The index under which the missing cells are counted, the highest one of the column. `None` if no cell is
    /// missing, or if missing cells count like other values.
    pub missing: Option<u32>,
}

/// The most frequent sensitive value of some rows: how many of them have it, and how many rows its
/// share is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueShare {
    /// Number of rows with the value.
    pub holding: u32,
    /// Number of rows that its share is measured on; 0 if no row has a value.
    pub of: u32,
}

impl ValueShare {
    /// The share when there are no rows with a value.
    pub(super) const NONE: Self = Self { holding: 0, of: 1 };

    /// The greater of two shares; the first one if they are equal, or if no row of the second one
    /// has a value.
    #[inline]
    pub(super) fn greater(self, other: Self) -> Self {
        let left = u64::from(other.holding) * u64::from(self.of);
        if left > u64::from(self.holding) * u64::from(other.of) {
            other
        } else {
            self
        }
    }

    /// From 0 to 1.
    pub(super) fn as_f64(self) -> f64 {
        f64::from(self.holding) / f64::from(self.of.max(1))
    }
}

/// How many rows have a counted value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ValueRows {
    /// The value.
    pub value: u32,
    /// Number of rows.
    pub rows: u32,
}

/// Rows by counted value, as [`Requirement::greatest_share`] takes them.
#[inline]
pub(super) fn by_value(totals: &[u64]) -> impl DoubleEndedIterator<Item = (u32, u64)> {
    let totals = totals.iter().enumerate();
    totals.map(|(value, &total)| (value as u32, total))
}

/// Rows by counted value from counters of 32 bits, as [`Requirement::greatest_share`] takes them.
#[inline]
pub(super) fn as_rows(counts: &[ValueRows]) -> impl DoubleEndedIterator<Item = (u32, u64)> {
    let counts = counts.iter();
    counts.map(|it| (it.value, u64::from(it.rows)))
}

/// Where a counted value comes from.
#[derive(Clone, Debug)]
pub(super) struct ValueSource {
    /// Its column.
    pub column: Box<str>,
    /// Its place in the job where it is listed.
    pub place: Option<usize>,
}

/// *L*, *K*, *C* and *S* of Definition 3.1.
#[derive(Clone, Debug)]
pub(super) struct Requirement<'a> {
    /// *L*, capped at the number of quasi-identifiers.
    pub l: usize,
    /// *K*.
    pub k: MinimumAnonymity,
    /// *C*.
    pub c: Confidence,
    /// *S*, by column; empty if no sensitive value is bounded.
    pub sensitive: Vec<SensitiveBound<'a>>,
    /// The person of each row, where *K* counts persons and some person has several rows.
    pub subjects: Option<&'a Subjects>,
    /// Number of rows from which on a group always has *K* persons, whichever rows it has; *K* if rows are
    /// counted.
    sufficient_rows: u64,
    /// Number of counted values over all columns: the sensitive values, and one more for the
    /// missing cells of each column that excludes them.
    pub counted_values: usize,
    /// By counted value, for errors.
    pub sources: Vec<ValueSource>,
    /// By counted value, the index of its column in `sensitive`.
    column_of: Vec<u32>,
    /// By counted value, the one that counts the missing cells of its column, or [`NULL_CODE`].
    /// Empty if no column excludes missing cells.
    missing_of: Vec<u32>,
}

impl<'a> Requirement<'a> {
    /// The requirement of a model on a table.
    pub(super) fn of_model(model: &Lkc, table: &'a EncodedTable) -> Self {
        let mut sources = Vec::new();
        let mut sensitive = Vec::new();
        for (column, values) in bounded_values(model, table) {
            let mut number = |place: Option<usize>| {
                sources.push(ValueSource {
                    column: column.name.clone(),
                    place,
                });
                sources.len() as u32 - 1
            };
            let numbers = values.iter();
            let numbers = numbers.map(|value| value.map_or(NULL_CODE, |value| number(value.place)));
            let numbers = numbers.collect();
            let excludes_missing = model.missing_sensitive == MissingSensitive::Excluded
                && column.codes.contains(&NULL_CODE);
            sensitive.push(SensitiveBound {
                codes: &column.codes,
                numbers,
                missing: excludes_missing.then(|| number(None)),
            });
        }
        let all = table.quasi_identifiers.len();
        let l = model.l.map_or(all, |l| all.min(l.get() as usize)).max(1);
        let (k, subjects) = (model.k.get(), table.subjects.as_deref());
        Self {
            sources,
            sufficient_rows: subjects.map_or(k, |subjects| subjects.sufficient_rows(k)),
            subjects,
            ..Self::new(l, model.k, model.c, sensitive)
        }
    }

    /// The requirement with these bounded columns. Their counted values are numbered from 0,
    /// column after column.
    pub(super) fn new(
        l: usize,
        k: MinimumAnonymity,
        c: Confidence,
        sensitive: Vec<SensitiveBound<'a>>,
    ) -> Self {
        let mut column_of = Vec::new();
        let mut missing_of = Vec::new();
        for (column, bound) in sensitive.iter().enumerate() {
            let numbers = bound.numbers.iter().copied().chain(bound.missing);
            let end = numbers.filter(|&number| number != NULL_CODE).max();
            let end = end.map_or(column_of.len(), |last| last as usize + 1);
            column_of.resize(end.max(column_of.len()), column as u32);
            missing_of.resize(column_of.len(), bound.missing.unwrap_or(NULL_CODE));
        }
        if sensitive.iter().all(|bound| bound.missing.is_none()) {
            missing_of.clear();
        }
        Self {
            l,
            k,
            c,
            sensitive,
            subjects: None,
            sufficient_rows: k.get(),
            counted_values: column_of.len(),
            sources: Vec::new(),
            column_of,
            missing_of,
        }
    }

    /// Whether a group of `size` rows has *K* persons, whichever rows they are.
    #[inline]
    pub(super) fn surely_meets_k(&self, size: u64) -> bool {
        size >= self.sufficient_rows
    }

    /// Whether a group of `size` rows has enough of them. It may still have fewer than *K*
    /// persons unless it [surely has](Self::surely_meets_k) enough.
    #[inline]
    pub(super) fn meets_k(&self, size: u64) -> bool {
        size >= self.k.get()
    }

    /// Whether a group of `size` rows with this most frequent sensitive value is allowed.
    #[inline]
    pub(super) fn allows(&self, size: u64, greatest: ValueShare) -> bool {
        self.meets_k(size) && self.bounds(u64::from(greatest.holding), u64::from(greatest.of))
    }

    /// Whether `holding` rows with the same sensitive value are within *C* among `of` rows.
    #[inline]
    pub(super) fn bounds(&self, holding: u64, of: u64) -> bool {
        !self.c.is_exceeded_by(holding, of)
    }

    /// Whether a group of `size` rows is allowed. `counts` are the rows by counted value, as for
    /// [`Self::greatest_share`].
    #[inline]
    pub(super) fn allows_counts(
        &self,
        size: u64,
        counts: impl DoubleEndedIterator<Item = (u32, u64)>,
    ) -> bool {
        self.meets_k(size) && self.allows(size, self.greatest_share(size, counts))
    }

    /// The sensitive value with the greatest share among `size` rows. `counts` are the rows by
    /// counted value, in ascending order of the values; values without rows may be omitted.
    #[inline]
    pub(super) fn greatest_share(
        &self,
        size: u64,
        counts: impl DoubleEndedIterator<Item = (u32, u64)>,
    ) -> ValueShare {
        if !self.excludes_missing() {
            let holding = counts.map(|(_, count)| count).max().unwrap_or(0) as u32;
            let of = size as u32;
            return ValueShare { holding, of };
        }
        let mut greatest = ValueShare::NONE;
        // In descending order, the missing cells of a column come before its values.
        let mut missing = (NULL_CODE, 0);
        for (value, count) in counts.rev() {
            let counter = self.missing_of[value as usize];
            if counter == value {
                missing = (value, count);
                continue;
            }
            let without_value = if counter == missing.0 { missing.1 } else { 0 };
            greatest = greatest.greater(ValueShare {
                holding: count as u32,
                of: (size - without_value) as u32,
            });
        }
        greatest
    }

    /// Whether *C* bounds any sensitive value.
    pub(super) fn bounds_confidence(&self) -> bool {
        self.counted_values > 0 && !self.c.is_unbounded()
    }

    /// Whether the missing cells of any column are counted apart. Otherwise the share of every
    /// value is measured on all rows of a group.
    #[inline]
    pub(super) fn excludes_missing(&self) -> bool {
        !self.missing_of.is_empty()
    }

    /// The index in `sensitive` of the column of a counted value.
    #[inline]
    pub(super) fn column_of(&self, value: u32) -> usize {
        self.column_of[value as usize] as usize
    }

    /// The value that counts the missing cells of the column of a counted value; `None` if the
    /// share of its values is measured on all rows.
    #[inline]
    pub(super) fn missing_of(&self, value: u32) -> Option<u32> {
        let counter = self.missing_of.get(value as usize).copied();
        counter.filter(|&counter| counter != NULL_CODE)
    }

    /// Whether a counted value counts the missing cells of its column.
    #[inline]
    pub(super) fn counts_missing(&self, value: u32) -> bool {
        self.missing_of(value) == Some(value)
    }

    /// A size from which on every subgroup of a group is allowed, whichever rows it has; `totals` are the rows
    /// of the whole group by counted value. At least *K*.
    pub(super) fn least_group_within(&self, totals: &[u64]) -> u64 {
        let (mut greatest, mut most_missing) = (0, 0);
        for (value, &count) in totals.iter().enumerate() {
            if self.counts_missing(value as u32) {
                most_missing = count.max(most_missing);
            } else {
                greatest = count.max(greatest);
            }
        }
        // No subgroup has more rows with a value, or more without one, than the whole group.
        let least = self.c.least_group(greatest).saturating_add(most_missing);
        least.max(self.k.get())
    }

    /// Calls `found` with the index of each counted value that `row` has.
    #[inline]
    pub(super) fn for_each_counted_value(&self, row: usize, mut found: impl FnMut(usize)) {
        for bound in &self.sensitive {
            let number = match bound.codes[row] {
                NULL_CODE => bound.missing.unwrap_or(NULL_CODE),
                code => bound.numbers[code as usize],
            };
            if number != NULL_CODE {
                found(number as usize);
            }
        }
    }
}
