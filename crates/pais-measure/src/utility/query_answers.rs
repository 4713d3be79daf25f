//! The exact counts and the estimates of queries, block by block.
//!
//! A block is indexed once for all queries ([`super::prefix_bitmaps`]) while it is in the processor's caches. A
//! query then combines a few bitmaps of rows for its exact count, and a few bitmaps of groups for those whose
//! labels meet its conditions; only these groups are estimated one by one. If labels are cuts, at most two of
//! them partly meet a condition, and rows with the same shares are estimated together. The order of all
//! additions is fixed, so the same groups always have the same errors.

use multiversion::multiversion;
use pais_core::cancellation::Cancellation;
use pais_core::table::codes::CodeRange;
use rayon::prelude::*;

use super::prefix_bitmaps::{RangeCodes, ThresholdRange};
use super::query_blocks::{BLOCK, BlockPart, GroupBlock, PartIndex, QueryThresholds};
use super::query_table::{GroupLabels, Query, QueryTable};

/// Maximum number of rows of a part of a block, which is indexed at a time.
const PART: usize = 2 * BLOCK;

/// Blocks whose answers are kept until they are added up.
const BLOCKS_AT_ONCE: usize = 64;

/// How many records a query counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct QueryAnswer {
    /// Those of the raw rows.
    pub(super) exact: u64,
    /// The estimate from the release.
    pub(super) estimate: f64,
}

/// The answers to all queries; `None` when stopped.
pub(super) fn answers(
    table: &QueryTable,
    queries: &[Query],
    cancellation: &Cancellation,
) -> Option<Vec<QueryAnswer>> {
    answers_in_parts(table, queries, PART, cancellation)
}

/// As [`answers`], with parts of at most `most_rows`.
pub(super) fn answers_in_parts(
    table: &QueryTable,
    queries: &[Query],
    most_rows: usize,
    cancellation: &Cancellation,
) -> Option<Vec<QueryAnswer>> {
    let labels = table.labels();
    let cuts = labels.as_deref();
    let cuts = cuts.filter(|labels| labels.iter().all(|it| it.are_disjoint()));
    let thresholds = thresholds(table, cuts, queries);
    let queries = queries.iter();
    let queries = queries.map(|query| NumberedQuery::new(query, cuts, &thresholds));
    let query_set = QuerySet {
        table,
        queries: queries.collect(),
        labels,
        thresholds,
        most_rows,
    };
    let mut totals = vec![QueryAnswer::default(); query_set.queries.len()];
    for blocks in GroupBlock::all(table).chunks(BLOCKS_AT_ONCE) {
        let found: Option<Vec<Vec<QueryAnswer>>> = blocks
            .par_iter()
            .map_init(QueryBuffers::default, |buffers, block| {
                (!cancellation.is_cancelled()).then(|| query_set.block_answers(block, buffers))
            })
            .collect();
        for answers in found? {
            for (total, answer) in totals.iter_mut().zip(answers) {
                total.exact += answer.exact;
                total.estimate += answer.estimate;
            }
        }
    }
    Some(totals)
}

fn thresholds(
    table: &QueryTable,
    cuts: Option<&[&GroupLabels]>,
    queries: &[Query],
) -> QueryThresholds {
    let conditions = |column: usize| {
        let conditions = queries.iter().flat_map(|query| &query.known);
        let of_column = conditions.filter(move |(dimension, _)| *dimension == column);
        of_column.map(|(_, range)| *range)
    };
    let sensitive = |column: usize| {
        let conditions = queries.iter().map(|query| query.sensitive);
        let of_column = conditions.filter(move |(sensitive, _)| *sensitive == column);
        RangeCodes::of(of_column.map(|(_, range)| range))
    };
    let cut = |(column, labels): (usize, &&GroupLabels)| {
        let met = conditions(column).flat_map(|range| met_labels(labels, range));
        RangeCodes::of(met.map(|(numbers, _)| numbers))
    };
    let dimensions = (0..table.dimensions.len()).map(|column| RangeCodes::of(conditions(column)));
    QueryThresholds {
        dimensions: dimensions.collect(),
        sensitive: (0..table.sensitive.len()).map(sensitive).collect(),
        cuts: cuts
            .iter()
            .flat_map(|cuts| cuts.iter().enumerate().map(cut))
            .collect(),
    }
}

/// The labels of a cut that have codes of a condition, by their numbers, with the share of the codes of each that meet
/// it: three ranges at most, since all but the first and the last label are met as a whole.
pub(super) fn met_labels(cut: &GroupLabels, codes: CodeRange) -> Vec<(CodeRange, f64)> {
    let first = cut.ranges.partition_point(|label| label.last < codes.first);
    let end = cut
        .ranges
        .partition_point(|label| label.first <= codes.last);
    let (second, last) = (first + 1, end.saturating_sub(1));
    let mut met: Vec<(CodeRange, f64)> = Vec::new();
    for (from, to) in [
        (first, end.min(second)),
        (second, last),
        (second.max(last), end),
    ] {
        if from >= to {
            continue;
        }
        let share = share_met(codes, cut.ranges[from]);
        match met.last_mut() {
            Some((numbers, same)) if *same == share => numbers.last = to as u32 - 1,
            _ => met.push((CodeRange::new(from as u32, to as u32 - 1), share)),
        }
    }
    met
}

/// A condition on a quasi-identifier.
struct KnownCondition {
    column: usize,
    codes: CodeRange,
    /// Those of `codes`.
    thresholds: ThresholdRange,
    /// In a cut, the labels that it meets and the share of their codes.
    labels: Vec<(ThresholdRange, f64)>,
}

/// A query whose conditions are thresholds.
struct NumberedQuery {
    sensitive: (usize, ThresholdRange),
    known: Vec<KnownCondition>,
}

impl NumberedQuery {
    fn new(query: &Query, cuts: Option<&[&GroupLabels]>, thresholds: &QueryThresholds) -> Self {
        let (column, range) = query.sensitive;
        let known = query.known.iter().map(|&(column, codes)| {
            let cut = cuts.iter().map(|cuts| cuts[column]);
            let met = cut.flat_map(|cut| met_labels(cut, codes));
            let labels =
                met.map(|(numbers, share)| (thresholds.cuts[column].range(numbers), share));
            KnownCondition {
                column,
                codes,
                thresholds: thresholds.dimensions[column].range(codes),
                labels: labels.collect(),
            }
        });
        Self {
            sensitive: (column, thresholds.sensitive[column].range(range)),
            known: known.collect(),
        }
    }
}

/// Working space of a thread.
#[derive(Default)]
struct QueryBuffers {
    index: PartIndex,
    sensitive: Vec<u64>,
    known: Vec<u64>,
    /// The segments whose labels have values that meet the conditions of a query.
    met: Vec<u64>,
    buffer: Vec<u64>,
    /// For each condition of a query on a quasi-identifier, the share of each label that meets it.
    shares: Vec<Vec<f64>>,
    met_rows: MetRows,
    met_before: MetRows,
}

/// Rows by the share of the codes of their labels that meets some conditions.
#[derive(Default)]
struct MetRows {
    /// Products of the shares of conditions.
    shares: Vec<f64>,
    /// The rows of each, in bitmaps of the same length.
    rows: Vec<u64>,
}

impl MetRows {
    fn clear(&mut self) {
        self.shares.clear();
        self.rows.clear();
    }

    /// Adds rows with this share, if there are any.
    #[inline(always)]
    fn push(&mut self, share: f64, rows: impl Iterator<Item = u64>) {
        let start = self.rows.len();
        self.rows.extend(rows);
        if self.rows[start..].iter().any(|&word| word != 0) {
            self.shares.push(share);
        } else {
            self.rows.truncate(start);
        }
    }

    /// Shares with their rows; `words` is the length of a bitmap.
    #[inline(always)]
    fn iter(&self, words: usize) -> impl Iterator<Item = (f64, &[u64])> {
        self.shares
            .iter()
            .copied()
            .zip(self.rows.chunks_exact(words))
    }
}

/// The rows of a group that meet the sensitive condition, and those that meet the others, in the
/// parts of its block so far.
type GroupCounts = (u64, u64);

/// The partial result of a query after some parts of a block.
#[derive(Clone, Copy, Default)]
struct PartialAnswer {
    found: QueryAnswer,
    /// The counts of the group that continues in the next part.
    open: GroupCounts,
}

/// Queries on a table.
struct QuerySet<'a> {
    table: &'a QueryTable,
    queries: Vec<NumberedQuery>,
    /// For each quasi-identifier; `None` where the release has exact codes.
    labels: Option<Vec<&'a GroupLabels>>,
    thresholds: QueryThresholds,
    most_rows: usize,
}

impl QuerySet<'_> {
    /// The answers of all queries in one block.
    fn block_answers(&self, block: &GroupBlock, buffers: &mut QueryBuffers) -> Vec<QueryAnswer> {
        let mut answers = vec![PartialAnswer::default(); self.queries.len()];
        for part in block.parts(&self.table.sizes, self.most_rows) {
            buffers.index.build(self.table, &part, &self.thresholds);
            for (query, answer) in self.queries.iter().zip(&mut answers) {
                let mut known = query.known.iter();
                if !known.any(|it| block.excludes(it.column, it.codes)) {
                    answer_part(self, query, &part, buffers, answer);
                }
            }
        }
        answers.iter().map(|answer| answer.found).collect()
    }
}

/// Adds the rows and groups of a part to an answer. It is compiled three times, for what processors of
/// x86-64 have to combine and count bits, and the first call chooses.
#[multiversion(targets("x86_64+avx2+bmi1+popcnt", "x86_64+popcnt"))]
fn answer_part(
    set: &QuerySet,
    query: &NumberedQuery,
    part: &BlockPart,
    buffers: &mut QueryBuffers,
    answer: &mut PartialAnswer,
) {
    let QueryBuffers {
        index,
        sensitive,
        known,
        met,
        buffer,
        shares,
        met_rows,
        met_before,
    } = buffers;
    let (column, thresholds) = query.sensitive;
    let ranks = &index.ranks[column];
    let holding = u64::from(ranks.count(thresholds));
    if query.known.is_empty() {
        // Every share is 1.
        answer.found.exact += holding;
        answer.found.estimate += holding as f64;
        return;
    }
    // Shares of exact codes are of all rows of a group, also of those in other parts.
    let is_by_itself = set.labels.is_some() || (!part.begins_inside && !part.ends_inside);
    if holding == 0 && is_by_itself {
        return;
    }
    let words = part.rows.len().div_ceil(64);
    for bits in [&mut *sensitive, known, buffer] {
        bits.resize(words, 0);
    }
    ranks.rows_between(thresholds, sensitive);
    let mut is_first = true;
    for condition in &query.known {
        let into = if is_first { &mut *known } else { &mut *buffer };
        index.codes[condition.column].rows_between(condition.thresholds, into);
        if !is_first {
            known.iter_mut().zip(&*buffer).for_each(|(a, b)| *a &= b);
        }
        is_first = false;
    }
    let both = known.iter().zip(&*sensitive).map(|(a, b)| a & b);
    answer.found.exact += ones(both);
    let Some(labels) = &set.labels else {
        let segmented = SegmentedPart {
            part,
            segment_of_row: &index.segments,
        };
        add_exact_groups(set.table, segmented, [&*sensitive, &*known], answer);
        return;
    };
    if !index.cuts.is_empty() {
        met_rows.clear();
        met_rows.push(1.0, sensitive.iter().copied());
        for condition in &query.known {
            std::mem::swap(met_rows, met_before);
            met_rows.clear();
            for &(labels, met) in &condition.labels {
                index.cuts[condition.column].rows_between(labels, buffer);
                for (share, rows) in met_before.iter(words) {
                    let both = rows.iter().zip(&*buffer).map(|(a, b)| a & b);
                    met_rows.push(share * met, both);
                }
            }
        }
        for (share, rows) in met_rows.iter(words) {
            answer.found.estimate += share * ones(rows.iter().copied()) as f64;
        }
        return;
    }
    // A segment without a value from the first to the last of the sensitive condition does not count.
    let segments = part.segments.len();
    met.clear();
    met.resize(segments.div_ceil(64), !0);
    let buffer = &mut buffer[..segments.div_ceil(64)];
    index.rank_ranges[column].keep_meeting(thresholds, met, buffer);
    for condition in &query.known {
        index.labels[condition.column].keep_meeting(condition.thresholds, met, buffer);
    }
    let met_segments = ones(met.iter().copied()) as usize;
    shares.resize_with(query.known.len().max(shares.len()), Vec::new);
    for (shares, condition) in shares.iter_mut().zip(&query.known) {
        shares.clear();
        // Otherwise it costs less to divide for each segment.
        let ranges = &labels[condition.column].ranges;
        if ranges.len() <= met_segments {
            let of_labels = ranges
                .iter()
                .map(|&label| share_met(condition.codes, label));
            shares.extend(of_labels);
        }
    }
    for (place, &word) in met.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            let segment = place * 64 + left.trailing_zeros() as usize;
            left &= left - 1;
            let (group, rows) = &part.segments[segment];
            let holding = ones_in(sensitive, rows.start, rows.end);
            if holding == 0 {
                continue;
            }
            // All values that a label covers are equally likely.
            let mut share = 1.0;
            for (shares, condition) in shares.iter().zip(&query.known) {
                let labels = labels[condition.column];
                let label = labels.of_group[*group] as usize;
                share *= match shares.get(label) {
                    Some(share) => *share,
                    None => share_met(condition.codes, labels.ranges[label]),
                };
            }
            answer.found.estimate += share * holding as f64;
        }
    }
}

/// The share of the codes of a label that meet a condition.
#[inline(always)]
pub(super) fn share_met(codes: CodeRange, label: CodeRange) -> f64 {
    let met = (codes.last.min(label.last) + 1).saturating_sub(codes.first.max(label.first));
    f64::from(met) / f64::from(label.last - label.first + 1)
}

/// A part of a block whose rows are divided into segments.
#[derive(Clone, Copy)]
struct SegmentedPart<'a> {
    part: &'a BlockPart,
    segment_of_row: &'a [u32],
}

/// Calls `each` with the segments that have some of the rows `bits`, in ascending order.
#[inline(always)]
fn for_each_segment(bits: &[u64], segmented: SegmentedPart<'_>, mut each: impl FnMut(usize)) {
    let SegmentedPart {
        part,
        segment_of_row,
    } = segmented;
    let mut row = 0;
    while row < part.rows.len() {
        let left = bits[row / 64] >> (row % 64);
        if left == 0 {
            row = (row / 64 + 1) * 64;
            continue;
        }
        let segment = segment_of_row[row + left.trailing_zeros() as usize] as usize;
        each(segment);
        row = part.segments[segment].1.end;
    }
}

/// Adds the groups of a part of a release with exact codes: of the rows of each, those that meet the
/// sensitive condition, and those that meet the others.
#[inline(always)]
fn add_exact_groups(
    table: &QueryTable,
    segmented: SegmentedPart<'_>,
    [sensitive, known]: [&[u64]; 2],
    answer: &mut PartialAnswer,
) {
    let part = segmented.part;
    let last = part.segments.len() - 1;
    let is_begun = |segment: usize| part.begins_inside && segment == 0;
    let is_open = |segment: usize| part.ends_inside && segment == last;
    let mut add = |segment: usize| {
        let (group, rows) = &part.segments[segment];
        let mut holding = ones_in(sensitive, rows.start, rows.end);
        let mut meeting = ones_in(known, rows.start, rows.end);
        if is_begun(segment) {
            holding += answer.open.0;
            meeting += answer.open.1;
        }
        if is_open(segment) {
            answer.open = (holding, meeting);
        } else {
            let share = meeting as f64 / f64::from(table.sizes[*group]);
            answer.found.estimate += share * holding as f64;
        }
    };
    if part.begins_inside {
        add(0);
    }
    for_each_segment(known, segmented, |segment| {
        if !is_begun(segment) && !is_open(segment) {
            add(segment);
        }
    });
    if is_open(last) && !is_begun(last) {
        add(last);
    }
}

#[inline(always)]
fn ones(words: impl Iterator<Item = u64>) -> u64 {
    words.map(|word| u64::from(word.count_ones())).sum()
}

/// The number of bits from `start` to `end`.
#[inline(always)]
fn ones_in(bits: &[u64], start: usize, end: usize) -> u64 {
    if start >= end {
        return 0;
    }
    let (first, last) = (start / 64, (end - 1) / 64);
    let from_start = !0u64 << (start % 64);
    let to_end = !0u64 >> (63 - (end - 1) % 64);
    if first == last {
        return ones([bits[first] & from_start & to_end].into_iter());
    }
    let inner = bits[first + 1..last].iter().copied();
    ones([bits[first] & from_start, bits[last] & to_end].into_iter()) + ones(inner)
}
