//! The average relative error of random counting queries on a release of groups (Gal, Chen,
//! Gangopadhyay 2008, *Experimental Evaluation*).
//!
//! A query counts the records that meet one to four conditions, one of them on a sensitive
//! column and the others on different quasi-identifiers. Each condition is an equality or a
//! range. A query is drawn around a record, so that the exact count is at least 1. The estimate
//! for a group is the share of its records that meet the conditions on quasi-identifiers, times
//! its number of records that meet the condition on the sensitive column. The share is exact in
//! an anatomized release; in a generalized one it is the share of each label's values that meet
//! the condition.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::holder_only::{rounded, rounded_count};

/// Number of random queries, as in the paper.
pub(super) const QUERIES: u64 = 8_800;

/// A query is large if it counts at least 1 / `LARGE` of the rows.
const LARGE: u64 = 100;

/// Most conditions of a query.
const CONDITIONS: usize = 4;

/// Rows of a block. A block is skipped if no group in it can meet a query.
const BLOCK: usize = 4096;

/// Seed of the random generator, fixed so that equal releases have equal errors. It is public, so
/// that unrounded errors would single out the raw table among those that a release may come from.
const SEED: u64 = 2008;

/// Average relative errors of random count queries: *|estimate - exact| / exact*.
///
/// They are computed from raw rows, so a report has them rounded to two significant digits, and
/// for the holder alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueryError {
    /// Number of queries.
    pub queries: u64,
    /// Over all of them.
    pub all: f64,
    /// Over those that count fewer than 1 % of the rows; 0 where there are none.
    pub below_one_percent: f64,
    /// Over those that count 1 % of the rows or more; 0 where there are none.
    pub from_one_percent: f64,
    /// How many count 1 % of the rows or more.
    pub queries_from_one_percent: u64,
}

impl QueryError {
    /// The errors with two significant digits.
    pub(super) fn rounded(self) -> Self {
        Self {
            queries: rounded_count(self.queries),
            all: rounded(self.all),
            below_one_percent: rounded(self.below_one_percent),
            from_one_percent: rounded(self.from_one_percent),
            queries_from_one_percent: rounded_count(self.queries_from_one_percent),
        }
    }
}

/// A quasi-identifier for queries, with rows in the order of groups.
#[derive(Clone, Debug)]
pub(crate) struct QueryDimension {
    /// The raw code of each row.
    pub codes: Vec<u32>,
    /// For each group, the first and the last code that its label covers; `None` if the release
    /// has the exact codes.
    pub labels: Option<Vec<(u32, u32)>>,
}

/// A sensitive column for queries, with rows in the order of groups.
#[derive(Clone, Debug)]
pub(crate) struct QuerySensitive {
    /// The rank of each row's value; `u32::MAX` for a missing value, which meets no condition.
    pub ranks: Vec<u32>,
    /// Number of ranks.
    pub count: u32,
}

impl QuerySensitive {
    /// The rows that have a value.
    fn rows(&self) -> Vec<u32> {
        let rows = (0..).zip(&self.ranks);
        rows.filter(|(_, rank)| **rank < self.count)
            .map(|(row, _)| row)
            .collect()
    }
}

/// A release of groups for queries.
#[derive(Clone, Debug)]
pub(crate) struct QueryTable {
    /// Number of rows of each group.
    pub sizes: Vec<u32>,
    /// The quasi-identifiers, each with its number of codes.
    pub dimensions: Vec<(QueryDimension, u32)>,
    /// The sensitive columns.
    pub sensitive: Vec<QuerySensitive>,
}

/// A condition: the codes from the first to the second, both included.
type CodeRange = (u32, u32);

/// A random query.
#[derive(Clone, Debug)]
struct Query {
    /// Sensitive column and condition.
    sensitive: (usize, CodeRange),
    /// Quasi-identifiers and conditions, at most three.
    known: Vec<(usize, CodeRange)>,
}

/// Consecutive whole groups.
struct GroupBlock {
    groups: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
    /// For each quasi-identifier, the range of the codes of its rows and labels.
    bounds: Vec<CodeRange>,
}

impl QueryTable {
    /// The errors of [`QUERIES`] random queries. Returns `None` if no row has a sensitive value,
    /// and when stopped.
    ///
    /// Blocks whose groups cannot meet the conditions are skipped, so a query reads only a part
    /// of the rows.
    pub(crate) fn error(&self, stopped: &(dyn Fn() -> bool + Sync)) -> Option<QueryError> {
        let blocks = self.blocks();
        let drawn: Vec<Query> = self.draw();
        let rows = self.sizes.iter().map(|&size| u64::from(size)).sum::<u64>();
        let answers: Option<Vec<(u64, f64)>> = drawn
            .par_iter()
            .map_init(QueryBuffers::default, |buffers, query| {
                (!stopped()).then(|| self.answer(query, &blocks, buffers))
            })
            .collect();
        let answers = answers.filter(|answers| !answers.is_empty())?;
        let mean = |keeps: &dyn Fn(u64) -> bool| {
            let kept = answers.iter().filter(|(exact, _)| keeps(*exact));
            let (count, sum) = kept.fold((0u64, 0.0), |(count, sum), &(exact, estimate)| {
                let exact = exact as f64;
                (count + 1, sum + (estimate - exact).abs() / exact)
            });
            (count, if count == 0 { 0.0 } else { sum / count as f64 })
        };
        let is_large = |exact: u64| exact * LARGE >= rows;
        let (queries, all) = mean(&|_| true);
        let (large, from_one_percent) = mean(&is_large);
        let (_, below_one_percent) = mean(&|exact| !is_large(exact));
        Some(QueryError {
            queries,
            all,
            below_one_percent,
            from_one_percent,
            queries_from_one_percent: large,
        })
    }

    /// The groups in blocks of at least [`BLOCK`] rows, except for the last one.
    fn blocks(&self) -> Vec<GroupBlock> {
        let mut blocks: Vec<GroupBlock> = Vec::new();
        let (mut group, mut row) = (0, 0);
        while group < self.sizes.len() {
            let (first, start) = (group, row);
            while group < self.sizes.len() && (group == first || row - start < BLOCK) {
                row += self.sizes[group] as usize;
                group += 1;
            }
            let bounds = self.dimensions.iter().map(|(dimension, _)| {
                let widen =
                    |(least, most): CodeRange, (lo, hi): CodeRange| (least.min(lo), most.max(hi));
                let exact = dimension.codes[start..row].iter().map(|&code| (code, code));
                let bounds = exact.fold((u32::MAX, 0), widen);
                match &dimension.labels {
                    Some(labels) => labels[first..group].iter().copied().fold(bounds, widen),
                    None => bounds,
                }
            });
            blocks.push(GroupBlock {
                groups: first..group,
                rows: start..row,
                bounds: bounds.collect(),
            });
        }
        blocks
    }

    /// Draws queries around random records that have a sensitive value.
    fn draw(&self) -> Vec<Query> {
        let mut random = StdRng::seed_from_u64(SEED);
        let rows_with_value: Vec<Vec<u32>> =
            self.sensitive.iter().map(QuerySensitive::rows).collect();
        let has_values = |column: &usize| !rows_with_value[*column].is_empty();
        let columns: Vec<usize> = (0..self.sensitive.len()).filter(has_values).collect();
        let mut drawn = Vec::new();
        while !columns.is_empty() && (drawn.len() as u64) < QUERIES {
            let sensitive = columns[random.random_range(0..columns.len())];
            let column = &self.sensitive[sensitive];
            let rows = &rows_with_value[sensitive];
            let row = rows[random.random_range(0..rows.len())] as usize;
            let range = around(column.ranks[row], column.count, &mut random);
            let others = random.random_range(0..CONDITIONS);
            let mut known: Vec<usize> = (0..self.dimensions.len()).collect();
            while known.len() > others {
                known.swap_remove(random.random_range(0..known.len()));
            }
            let known = known.into_iter().map(|dimension| {
                let (column, codes) = &self.dimensions[dimension];
                (dimension, around(column.codes[row], *codes, &mut random))
            });
            drawn.push(Query {
                known: known.collect(),
                sensitive: (sensitive, range),
            });
        }
        drawn
    }

    /// The exact count and the estimate of a query.
    fn answer(
        &self,
        query: &Query,
        blocks: &[GroupBlock],
        buffers: &mut QueryBuffers,
    ) -> (u64, f64) {
        let (mut exact, mut estimate) = (0, 0.0);
        for block in blocks {
            let excludes = |&(dimension, (lo, hi)): &(usize, CodeRange)| {
                let (least, most) = block.bounds[dimension];
                hi < least || most < lo
            };
            if !query.known.iter().any(excludes) {
                let (counted, estimated) = self.answer_in(query, block, buffers);
                exact += counted;
                estimate += estimated;
            }
        }
        (exact, estimate)
    }

    /// As [`Self::answer`], for the rows of one block.
    fn answer_in(
        &self,
        query: &Query,
        block: &GroupBlock,
        buffers: &mut QueryBuffers,
    ) -> (u64, f64) {
        let QueryBuffers { known, sensitive } = buffers;
        let rows = block.rows.clone();
        sensitive.clear();
        known.clear();
        known.resize(rows.len(), 1);
        let (column, range) = query.sensitive;
        sensitive.resize(rows.len(), 1);
        keep(
            sensitive,
            &self.sensitive[column].ranks[rows.clone()],
            range,
        );
        for &(dimension, range) in &query.known {
            keep(
                known,
                &self.dimensions[dimension].0.codes[rows.clone()],
                range,
            );
        }
        let both = known
            .iter()
            .zip(sensitive.iter())
            .map(|(one, other)| one & other);
        let exact = both.map(u64::from).sum();
        let (mut estimate, mut row) = (0.0, 0);
        for group in block.groups.clone() {
            let size = self.sizes[group] as usize;
            let members = row..row + size;
            row += size;
            let count = |bits: &[u8]| bits.iter().map(|&bit| u64::from(bit)).sum::<u64>() as f64;
            let holding = count(&sensitive[members.clone()]);
            if holding == 0.0 {
                continue;
            }
            let exact_columns = self.dimensions.iter().all(|(it, _)| it.labels.is_none());
            let share = if exact_columns {
                count(&known[members]) / size as f64
            } else {
                self.share(query, group)
            };
            estimate += share * holding;
        }
        (exact, estimate)
    }

    /// The expected share of a group's records that meet the conditions on quasi-identifiers, if
    /// all values that a label covers are equally likely.
    fn share(&self, query: &Query, group: usize) -> f64 {
        let shares = query.known.iter().map(|&(dimension, (lo, hi))| {
            let Some(labels) = &self.dimensions[dimension].0.labels else {
                return 1.0;
            };
            let (first, last) = labels[group];
            let met = (hi.min(last) + 1).saturating_sub(lo.max(first));
            f64::from(met) / f64::from(last - first + 1)
        });
        shares.product()
    }
}

/// Working space of a thread: 1 for each row of a block that meets the conditions, else 0.
#[derive(Default)]
struct QueryBuffers {
    known: Vec<u8>,
    sensitive: Vec<u8>,
}

/// Sets the bits of rows that do not meet a condition to 0. It has no branches, so that the
/// compiler vectorizes it.
#[inline]
fn keep(bits: &mut [u8], codes: &[u32], (lo, hi): CodeRange) {
    let width = hi - lo;
    for (bit, &code) in bits.iter_mut().zip(codes) {
        *bit &= u8::from(code.wrapping_sub(lo) <= width);
    }
}

/// An equality with a code, or a range that contains it, with equal probability. `count` is the
/// number of codes.
fn around(code: u32, count: u32, random: &mut StdRng) -> CodeRange {
    if random.random_bool(0.5) {
        return (code, code);
    }
    let lo = random.random_range(0..=code);
    (lo, random.random_range(code..count.max(code + 1)))
}

#[cfg(test)]
mod tests {
    use super::{Query, QueryBuffers, QueryDimension, QuerySensitive, QueryTable};

    /// Figure 3's group: ages 41, 42, 43, 49 as codes 0 to 3 in the order of Figure 1; of the
    /// treatments in sorted order IV is 0, medicine 1, surgery 2.
    fn figure_3(labels: Option<Vec<(u32, u32)>>) -> QueryTable {
        QueryTable {
            sizes: vec![4],
            dimensions: vec![(
                QueryDimension {
                    codes: vec![1, 0, 3, 2],
                    labels,
                },
                4,
            )],
            sensitive: vec![QuerySensitive {
                ranks: vec![1, 2, 0, 0],
                count: 3,
            }],
        }
    }

    fn answer(table: &QueryTable, age: (u32, u32)) -> (u64, f64) {
        let query = Query {
            sensitive: (0, (0, 0)),
            known: vec![(0, age)],
        };
        table.answer(&query, &table.blocks(), &mut QueryBuffers::default())
    }

    /// Treatment = IV and Age from 40 to 45 on Figure 3: exactly 1 patient; the estimate is 1.5.
    #[test]
    fn the_worked_query_is_estimated_at_one_and_a_half() {
        assert_eq!(answer(&figure_3(None), (0, 2)), (1, 1.5));
        // Generalized to [41,49]: three of its four ages.
        assert_eq!(answer(&figure_3(Some(vec![(0, 3)])), (0, 2)), (1, 1.5));
        assert_eq!(answer(&figure_3(None), (3, 3)), (1, 0.5));
    }

    #[test]
    fn errors_are_repeatable_and_zero_for_groups_of_one_record() {
        let table = figure_3(None);
        let error = table.error(&|| false).unwrap();
        assert_eq!(Some(error), table.error(&|| false));
        assert_eq!(error.queries, super::QUERIES);
        // One record is a quarter of this table.
        assert_eq!(error.queries_from_one_percent, error.queries);
        assert!(error.all > 0.0 && error.below_one_percent == 0.0);
        let mut exact = table;
        exact.sizes = vec![1; 4];
        assert_eq!(exact.error(&|| false).unwrap().all, 0.0);
        exact.sensitive[0].ranks = vec![u32::MAX; 4];
        assert!(exact.error(&|| false).is_none());
    }
}
