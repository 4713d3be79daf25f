//! Blocks of whole groups, and the parts of a block that are indexed at a time.

use std::ops::Range;

use super::prefix_bitmaps::{PrefixBitmaps, Thresholds};
use super::query_table::{CodeRange, QueryTable};

/// Fewest rows of a block, except for the last one. Estimates are added up by block.
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
            let bounds = table.dimensions.iter().map(|(dimension, _)| {
                let bounds = codes_range(&dimension.codes[start..row]);
                match &dimension.labels {
                    Some(labels) => labels[first..group].iter().copied().fold(bounds, widen),
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
    pub(super) fn excludes(&self, dimension: usize, (lo, hi): CodeRange) -> bool {
        let (least, most) = self.bounds[dimension];
        hi < least || most < lo
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
    pub(super) dimensions: Vec<Thresholds>,
    pub(super) sensitive: Vec<Thresholds>,
}

/// The bitmaps of a part of a block.
#[derive(Default)]
pub(super) struct PartIndex {
    /// The rows by the code of each quasi-identifier.
    pub(super) codes: Vec<PrefixBitmaps>,
    /// The rows by the first code that their label covers; as built before where the release has exact
    /// codes.
    pub(super) first_codes: Vec<PrefixBitmaps>,
    /// The rows by the last one.
    pub(super) last_codes: Vec<PrefixBitmaps>,
    /// The rows by the rank of each sensitive column.
    pub(super) ranks: Vec<PrefixBitmaps>,
    /// The segment of each row.
    pub(super) segments: Vec<u32>,
    /// The codes that the label of each row covers.
    spans: Vec<CodeRange>,
}

impl PartIndex {
    /// Replaces the bitmaps by those of a part.
    pub(super) fn build(
        &mut self,
        table: &QueryTable,
        part: &BlockPart,
        thresholds: &QueryThresholds,
    ) {
        self.segments.clear();
        for (segment, (_, rows)) in (0..).zip(&part.segments) {
            self.segments.resize(rows.end, segment);
        }
        let known = table.dimensions.len();
        for bitmaps in [&mut self.codes, &mut self.first_codes, &mut self.last_codes] {
            bitmaps.resize_with(known, PrefixBitmaps::default);
        }
        self.ranks
            .resize_with(table.sensitive.len(), PrefixBitmaps::default);
        for (column, (dimension, _)) in table.dimensions.iter().enumerate() {
            let thresholds = &thresholds.dimensions[column];
            let codes = &dimension.codes[part.rows.clone()];
            self.codes[column].build(codes.iter().copied(), thresholds);
            if let Some(labels) = &dimension.labels {
                self.spans.clear();
                for (group, rows) in &part.segments {
                    self.spans.resize(rows.end, labels[*group]);
                }
                let spans = self.spans.iter();
                self.first_codes[column].build(spans.clone().map(|span| span.0), thresholds);
                self.last_codes[column].build(spans.map(|span| span.1), thresholds);
            }
        }
        for (column, sensitive) in table.sensitive.iter().enumerate() {
            let ranks = sensitive.ranks[part.rows.clone()].iter().copied();
            self.ranks[column].build(ranks, &thresholds.sensitive[column]);
        }
    }
}

/// The least and the greatest code.
fn codes_range(codes: &[u32]) -> CodeRange {
    let exact = codes.iter().map(|&code| (code, code));
    exact.fold((u32::MAX, 0), widen)
}

fn widen((least, most): CodeRange, (lo, hi): CodeRange) -> CodeRange {
    (least.min(lo), most.max(hi))
}
