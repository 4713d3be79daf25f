//! Blocks of whole groups, and the parts of a block that are indexed at a time.

use std::ops::Range;

use pais_core::table::codes::CodeRange;

use super::prefix_bitmaps::{PrefixBitmaps, RangeCodes, ThresholdRange};
use super::query_table::QueryTable;

/// Minimum number of rows of a block, except for the last one. Estimates are added up by block.
pub(super) const BLOCK: usize = 4096;

/// Consecutive whole groups.
pub(super) struct GroupBlock {
    pub(super) groups: Range<usize>,
    pub(super) rows: Range<usize>,
    /// For each quasi-identifier, the range of the codes of its rows and labels.
    bounds: Vec<CodeRange>,
}

impl GroupBlock {
    /// All groups of a table in blocks.
    pub(super) fn all(table: &QueryTable) -> Vec<Self> {
        let mut blocks: Vec<Self> = Vec::new();
        let (mut group, mut row) = (0, 0);
        while group < table.sizes.len() {
            let (first, start) = (group, row);
            while group < table.sizes.len() && (group == first || row - start < BLOCK) {
                row += table.sizes[group] as usize;
                group += 1;
            }
            let bounds = table.dimensions.iter().map(|dimension| {
                let bounds = codes_range(&dimension.codes[start..row]);
                match &dimension.labels {
                    Some(labels) => (first..group).fold(bounds, |bounds, group| {
                        let label = labels.of(group);
                        bounds.widened(label.first).widened(label.last)
                    }),
                    None => bounds,
                }
            });
            blocks.push(Self {
                groups: first..group,
                rows: start..row,
                bounds: bounds.collect(),
            });
        }
        blocks
    }

    /// Whether no row and no label meets a condition.
    pub(super) fn excludes(&self, dimension: usize, codes: CodeRange) -> bool {
        !self.bounds[dimension].overlaps(codes)
    }

    /// The rows in parts of at most `most_rows`.
    pub(super) fn parts(&self, sizes: &[u32], most_rows: usize) -> Vec<BlockPart> {
        let mut parts: Vec<BlockPart> = Vec::new();
        let (mut group, mut start) = (self.groups.start, self.rows.start);
        for first in self.rows.clone().step_by(most_rows) {
            let rows = first..self.rows.end.min(first + most_rows);
            let mut part = BlockPart {
                segments: Vec::new(),
                begins_inside: start < rows.start,
                ends_inside: false,
                rows,
            };
            while group < self.groups.end && start < part.rows.end {
                let end = start + sizes[group] as usize;
                let within = start.max(part.rows.start)..end.min(part.rows.end);
                let offset = part.rows.start;
                part.segments
                    .push((group, within.start - offset..within.end - offset));
                part.ends_inside = end > part.rows.end;
                if part.ends_inside {
                    break;
                }
                (group, start) = (group + 1, end);
            }
            parts.push(part);
        }
        parts
    }
}

/// Some rows of a block.
pub(super) struct BlockPart {
    pub(super) rows: Range<usize>,
    /// The groups, each with its rows, counted from the first row of the part.
    pub(super) segments: Vec<(usize, Range<usize>)>,
    /// Whether the first group has rows in the part before this one.
    pub(super) begins_inside: bool,
    /// Whether the last group has rows in the part after this one.
    pub(super) ends_inside: bool,
}

/// The thresholds of each column in all queries.
pub(super) struct QueryThresholds {
    pub(super) dimensions: Vec<RangeCodes>,
    pub(super) sensitive: Vec<RangeCodes>,
    /// Of the labels of cuts, by number; empty where there are none.
    pub(super) cuts: Vec<RangeCodes>,
}

/// The bitmaps of a part of a block.
#[derive(Default)]
pub(super) struct PartIndex {
    /// The rows by the code of each quasi-identifier.
    pub(super) codes: Vec<PrefixBitmaps>,
    /// The rows by the rank of each sensitive column.
    pub(super) ranks: Vec<PrefixBitmaps>,
    /// The rows by the number of their label of each quasi-identifier; empty where there are no cuts.
    pub(super) cuts: Vec<PrefixBitmaps>,
    /// The segments by the codes that their labels cover, for each quasi-identifier; empty where labels do not
    /// overlap.
    pub(super) labels: Vec<RangeBitmaps>,
    /// The segments by the ranks of their rows, for each sensitive column; empty as `labels`.
    pub(super) rank_ranges: Vec<RangeBitmaps>,
    /// The segment of each row; empty where the release has labels.
    pub(super) segments: Vec<u32>,
    /// A range for each segment.
    ranges: Vec<CodeRange>,
    /// The number of the label of each row.
    numbers: Vec<u32>,
}

/// Segments by a range of codes each.
#[derive(Default)]
pub(super) struct RangeBitmaps {
    first: PrefixBitmaps,
    last: PrefixBitmaps,
}

impl RangeBitmaps {
    fn build(&mut self, ranges: &[CodeRange], thresholds: &RangeCodes) {
        let first = ranges.iter().map(|it| it.first);
        self.first.build(first, thresholds);
        let last = ranges.iter().map(|it| it.last);
        self.last.build(last, thresholds);
    }

    /// Removes the segments whose range has no code from one threshold to another.
    #[inline(always)]
    pub(super) fn keep_meeting(
        &self,
        range: ThresholdRange,
        segments: &mut [u64],
        buffer: &mut [u64],
    ) {
        self.first.keep_below(range.to, segments, buffer);
        self.last.remove_below(range.from, segments, buffer);
    }
}

impl PartIndex {
    /// Replaces the bitmaps by those of a part.
    pub(super) fn build(
        &mut self,
        table: &QueryTable,
        part: &BlockPart,
        thresholds: &QueryThresholds,
    ) {
        self.codes
            .resize_with(table.dimensions.len(), PrefixBitmaps::default);
        self.ranks
            .resize_with(table.sensitive.len(), PrefixBitmaps::default);
        for (column, dimension) in table.dimensions.iter().enumerate() {
            let codes = dimension.codes[part.rows.clone()].iter().copied();
            self.codes[column].build(codes, &thresholds.dimensions[column]);
        }
        for (column, sensitive) in table.sensitive.iter().enumerate() {
            let ranks = sensitive.ranks[part.rows.clone()].iter().copied();
            self.ranks[column].build(ranks, &thresholds.sensitive[column]);
        }
        self.segments.clear();
        if table.has_exact_codes() {
            for (segment, (_, rows)) in (0..).zip(&part.segments) {
                self.segments.resize(rows.end, segment);
            }
            return;
        }
        self.cuts
            .resize_with(thresholds.cuts.len(), PrefixBitmaps::default);
        let dimensions = table.dimensions.iter().zip(&thresholds.cuts);
        for (bitmaps, (dimension, thresholds)) in self.cuts.iter_mut().zip(dimensions) {
            self.numbers.clear();
            if let Some(labels) = &dimension.labels {
                for (group, rows) in &part.segments {
                    self.numbers.resize(rows.end, labels.of_group[*group]);
                }
            }
            bitmaps.build(self.numbers.iter().copied(), thresholds);
        }
        if !self.cuts.is_empty() {
            return;
        }
        self.labels
            .resize_with(table.dimensions.len(), RangeBitmaps::default);
        self.rank_ranges
            .resize_with(table.sensitive.len(), RangeBitmaps::default);
        for (column, dimension) in table.dimensions.iter().enumerate() {
            self.ranges.clear();
            if let Some(labels) = &dimension.labels {
                let of_segments = part.segments.iter().map(|(group, _)| labels.of(*group));
                self.ranges.extend(of_segments);
            }
            self.labels[column].build(&self.ranges, &thresholds.dimensions[column]);
        }
        for (column, sensitive) in table.sensitive.iter().enumerate() {
            let ranks = &sensitive.ranks[part.rows.clone()];
            let of_segment = part.segments.iter();
            let of_segment = of_segment.map(|(_, rows)| codes_range(&ranks[rows.clone()]));
            self.ranges.clear();
            self.ranges.extend(of_segment);
            self.rank_ranges[column].build(&self.ranges, &thresholds.sensitive[column]);
        }
    }
}

/// From the least to the greatest code.
fn codes_range(codes: &[u32]) -> CodeRange {
    let codes = codes.iter().copied();
    codes.fold(CodeRange::EMPTY, CodeRange::widened)
}
