//! A release of groups with its raw rows, as random counting queries need it, and the queries.

use chacha20::ChaCha12Rng;
use pais_core::table::codes::CodeRange;
use rand::{RngExt, SeedableRng};

/// Number of random queries, as in the paper, on a table that is read as a whole.
pub(super) const QUERIES: u64 = 8_800;

/// Number of queries on a sample.
const QUERIES_ON_SAMPLE: u64 = 1_000;

/// Maximum number of conditions of a query; those on quasi-identifiers are one fewer where one is on a sensitive
/// column.
const CONDITIONS: usize = 4;

/// Seed of the random generator, fixed so that equal releases have equal errors. It is public, so unrounded
/// errors would single out the raw table among those that a release may come from.
const SEED: u64 = 2008;

/// A quasi-identifier for queries, with rows in the order of groups.
#[derive(Clone, Debug)]
pub(super) struct QueryDimension {
    /// The raw code of each row.
    pub(super) codes: Vec<u32>,
    /// Number of codes.
    pub(super) count: u32,
    /// `None` if the release has the exact codes.
    pub(super) labels: Option<GroupLabels>,
}

/// The labels of groups in a column.
#[derive(Clone, Debug)]
pub(super) struct GroupLabels {
    /// What each covers, ascending.
    pub(super) ranges: Vec<CodeRange>,
    /// The number of the label of each group.
    pub(super) of_group: Vec<u32>,
}

impl GroupLabels {
    /// The groups have some of these `labels`, by number: what each covers. `None` where a group has one that covers
    /// nothing.
    pub(super) fn new(labels: &[Option<CodeRange>], of_group: &[u32]) -> Option<Self> {
        let mut is_used = vec![false; labels.len()];
        for &label in of_group {
            *is_used.get_mut(label as usize)? = true;
        }
        let used = labels.iter().zip(is_used).filter(|(_, is_used)| *is_used);
        let mut ranges: Vec<CodeRange> = used.map(|(label, _)| *label).collect::<Option<_>>()?;
        ranges.sort_unstable();
        ranges.dedup();
        let number = |label: CodeRange| ranges.partition_point(|it| *it < label) as u32;
        let numbers: Vec<u32> = labels.iter().map(|label| label.map_or(0, number)).collect();
        Some(Self {
            of_group: of_group
                .iter()
                .map(|&label| numbers[label as usize])
                .collect(),
            ranges,
        })
    }

    /// What the label of a group covers.
    pub(super) fn of(&self, group: usize) -> CodeRange {
        self.ranges[self.of_group[group] as usize]
    }

    /// Whether no code has two labels, as in a cut.
    pub(super) fn are_disjoint(&self) -> bool {
        self.ranges
            .is_sorted_by(|one, other| one.last < other.first)
    }
}

/// A sensitive column for queries, with rows in the order of groups.
#[derive(Clone, Debug)]
pub(super) struct QuerySensitive {
    /// The rank of each row's value; `u32::MAX` for a missing value, which meets no condition.
    pub(super) ranks: Vec<u32>,
    /// Number of ranks.
    pub(super) count: u32,
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
pub(super) struct QueryTable {
    /// Number of rows of each group.
    pub(super) sizes: Vec<u32>,
    /// The quasi-identifiers.
    pub(super) dimensions: Vec<QueryDimension>,
    /// The sensitive columns.
    pub(super) sensitive: Vec<QuerySensitive>,
    /// Whether the release has them.
    has_sensitive: bool,
    /// Number of queries.
    queries: u64,
}

/// A random query.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// Sensitive column and the ranks that meet its condition.
    pub(super) sensitive: (usize, CodeRange),
    /// Quasi-identifiers and the codes that meet their conditions.
    pub(super) known: Vec<(usize, CodeRange)>,
}

impl QueryTable {
    /// A release of groups of these sizes, each at least 1, with labels in all dimensions or in none.
    /// Without a sensitive column its queries count records by quasi-identifiers alone.
    ///
    /// # Panics
    /// For an empty group, and for labels in some dimensions alone.
    pub(super) fn new(
        sizes: Vec<u32>,
        dimensions: Vec<QueryDimension>,
        mut sensitive: Vec<QuerySensitive>,
    ) -> Self {
        assert!(sizes.iter().all(|&size| size > 0), "a group has rows");
        let labelled = dimensions.iter().filter(|it| it.labels.is_some());
        assert!(
            [0, dimensions.len()].contains(&labelled.count()),
            "all or none"
        );
        let has_sensitive = !sensitive.is_empty();
        if !has_sensitive {
            // One value for all rows: a condition on it excludes nothing.
            let rows = sizes.iter().map(|&size| size as usize).sum();
            sensitive.push(QuerySensitive {
                ranks: vec![0; rows],
                count: 1,
            });
        }
        Self {
            sizes,
            dimensions,
            sensitive,
            has_sensitive,
            queries: QUERIES,
        }
    }

    /// The same table, a sample of a larger one: it is asked fewer queries.
    pub(super) fn sampled(self) -> Self {
        Self {
            queries: QUERIES_ON_SAMPLE,
            ..self
        }
    }

    /// Whether the release has the exact codes of all quasi-identifiers.
    pub(super) fn has_exact_codes(&self) -> bool {
        self.labels().is_none()
    }

    /// The labels of each quasi-identifier; `None` if the release has the exact codes.
    pub(super) fn labels(&self) -> Option<Vec<&GroupLabels>> {
        let labels = self.dimensions.iter().map(|it| it.labels.as_ref());
        let labels: Vec<&GroupLabels> = labels.collect::<Option<_>>()?;
        (!labels.is_empty()).then_some(labels)
    }

    /// Draws queries around random records that have a sensitive value, or around any records where
    /// there is no sensitive column.
    pub(super) fn draw(&self) -> Vec<Query> {
        let mut random = ChaCha12Rng::seed_from_u64(SEED);
        let rows_with_value: Vec<Vec<u32>> =
            self.sensitive.iter().map(QuerySensitive::rows).collect();
        let has_values = |column: &usize| !rows_with_value[*column].is_empty();
        let columns: Vec<usize> = (0..self.sensitive.len()).filter(has_values).collect();
        let mut drawn = Vec::new();
        while !columns.is_empty() && (drawn.len() as u64) < self.queries {
            let sensitive = columns[random.random_range(0..columns.len())];
            let column = &self.sensitive[sensitive];
            let rows = &rows_with_value[sensitive];
            let row = rows[random.random_range(0..rows.len())] as usize;
            let range = around(column.ranks[row], column.count, &mut random);
            let others = if self.has_sensitive {
                random.random_range(0..CONDITIONS)
            } else {
                random.random_range(1..=CONDITIONS)
            };
            let mut known: Vec<usize> = (0..self.dimensions.len()).collect();
            while known.len() > others {
                known.swap_remove(random.random_range(0..known.len()));
            }
            let known = known.into_iter().map(|dimension| {
                let column = &self.dimensions[dimension];
                let range = around(column.codes[row], column.count, &mut random);
                (dimension, range)
            });
            drawn.push(Query {
                known: known.collect(),
                sensitive: (sensitive, range),
            });
        }
        drawn
    }
}

/// An equality with a code, or a range that contains it, with equal probability. `count` is the
/// number of codes.
fn around(code: u32, count: u32, random: &mut ChaCha12Rng) -> CodeRange {
    if random.random_bool(0.5) {
        return CodeRange::new(code, code);
    }
    let first = random.random_range(0..=code);
    CodeRange::new(first, random.random_range(code..count.max(code + 1)))
}
