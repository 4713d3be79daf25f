//! How many items of a set-valued column a release has, and how well it answers counting queries
//! over items.
//!
//! Both compare the release with raw rows, so they are for the holder alone.

use std::collections::BTreeMap;

use chacha20::ChaCha12Rng;
use pais_core::cancellation::Cancellation;
use pais_core::schema::items;
use pais_core::table::{Form, ReleasedColumn, SetColumn};
use pais_core::taxonomy::{NodeId, Tree};
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::queries::QueryError;
use super::query_answers::QueryAnswer;
use crate::release::MeasuredRelease;
use crate::sample::SAMPLED_ROWS;

/// Rows after which it is checked whether to stop.
pub(super) const ROWS_PER_CHECK: usize = 1 << 10;

/// The items of a set-valued quasi-identifier, raw and released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ItemCounts {
    /// Items in all raw rows, each once in a row.
    pub raw: u64,
    /// Labels in all released rows: items, and labels replacing items, each once in a row.
    pub released: u64,
    /// Raw rows without any item.
    pub raw_cells_without_items: u64,
    /// Released rows without any label. Whether the raw row had an item is not in the release.
    pub released_cells_without_items: u64,
}

/// The items of each set-valued column; `None` without such a column, or when stopped.
pub(crate) fn item_counts(release: &MeasuredRelease) -> Option<BTreeMap<String, ItemCounts>> {
    let columns = &release.raw.sets;
    if columns.is_empty() {
        return None;
    }
    let counts = columns.iter().map(|set| {
        let released = release.table.column(&set.name)?;
        let counts = counts_of(set, released, release.cancellation)?;
        Some((set.name.to_string(), counts))
    });
    counts.collect()
}

fn counts_of(
    set: &SetColumn,
    released: &ReleasedColumn,
    cancellation: &Cancellation,
) -> Option<ItemCounts> {
    let Form::Set { separator } = released.form else {
        return None;
    };
    let mut counts = ItemCounts::default();
    for row in 0..set.rows() {
        if row.is_multiple_of(ROWS_PER_CHECK) {
            cancellation.check().ok()?;
        }
        let size = set.of_row(row).len() as u64;
        counts.raw += size;
        counts.raw_cells_without_items += u64::from(size == 0);
    }
    let column = &released.column;
    let labels: Vec<u64> = column
        .dictionary
        .iter()
        .map(|cell| items(cell, separator).count() as u64)
        .collect();
    for (row, &code) in column.codes.iter().enumerate() {
        if row.is_multiple_of(ROWS_PER_CHECK) {
            cancellation.check().ok()?;
        }
        // Null has no label.
        let labels = labels.get(code as usize).copied().unwrap_or(0);
        counts.released += labels;
        counts.released_cells_without_items += u64::from(labels == 0);
    }
    Some(counts)
}

/// The labels in the cells of a released column of sets.
pub(super) struct ReleasedLabels<'a> {
    /// One code for each row.
    pub(super) codes: &'a [u32],
    /// The nodes of each distinct cell, ascending.
    cells: Vec<Vec<NodeId>>,
}

impl ReleasedLabels<'_> {
    /// The nodes of a code, ascending; none of null.
    pub(super) fn of(&self, code: u32) -> &[NodeId] {
        self.cells.get(code as usize).map_or(&[], Vec::as_slice)
    }
}

/// The labels of a column; `None` if it is not released as sets, and when stopped.
pub(super) fn released_labels<'a>(
    released: &'a ReleasedColumn,
    tree: &Tree,
    cancellation: &Cancellation,
) -> Option<ReleasedLabels<'a>> {
    let Form::Set { separator } = released.form else {
        return None;
    };
    let nodes = |cell: &str| {
        let mut nodes: Vec<NodeId> = tree.find_all(cell, separator);
        nodes.sort_unstable();
        nodes
    };
    let cells = released.column.dictionary.iter().map(|cell| {
        cancellation.check().ok()?;
        Some(nodes(cell))
    });
    Some(ReleasedLabels {
        codes: &released.column.codes,
        cells: cells.collect::<Option<_>>()?,
    })
}

/// Number of random queries over items.
const QUERIES: usize = 1_000;

/// Maximum number of items that a query names.
const MOST_ITEMS: usize = 2;

/// Seed of the queries, fixed so that equal releases have equal errors.
const SEED: u64 = 2014;

/// A set-valued column with its raw and its released rows, of a sample of the release.
struct ItemTable<'a> {
    tree: &'a Tree,
    /// Number of rows.
    rows: usize,
    /// By item, the rows that have it, ascending.
    rows_of_item: Vec<Vec<u32>>,
    /// By node of the tree, the rows that release its label, ascending.
    rows_of_label: Vec<Vec<u32>>,
    /// The items of the rows that have any.
    sets: Vec<Vec<u32>>,
}

/// A row that releases an item or a label above it.
struct RowShare {
    row: u32,
    /// The share of the label's items that the item is.
    share: f64,
}

/// The rounded error of counting queries over items. Each query counts the released records that have one or
/// two items of the same column that a random record has. The estimate for a record that releases a label in
/// place of items is the queried share of the label's items, times that of the second item; a hidden item is
/// not counted. `None` without items, and when stopped.
pub(crate) fn item_query_error(release: &MeasuredRelease) -> Option<QueryError> {
    let tables: Option<Vec<ItemTable<'_>>> = release
        .sets
        .iter()
        .map(|&set| ItemTable::new(release, set))
        .collect();
    let mut tables = tables?;
    tables.retain(|table| !table.sets.is_empty());
    if tables.is_empty() {
        return None;
    }
    let mut random = ChaCha12Rng::seed_from_u64(SEED);
    let mut answers = Vec::with_capacity(QUERIES);
    let mut rows = 0;
    for _ in 0..QUERIES {
        release.cancellation.check().ok()?;
        let table = &tables[random.random_range(0..tables.len())];
        rows = table.rows as u64;
        let mut items = table.sets[random.random_range(0..table.sets.len())].clone();
        let most = random.random_range(1..=MOST_ITEMS.min(items.len()));
        while items.len() > most {
            items.swap_remove(random.random_range(0..items.len()));
        }
        answers.push(QueryAnswer {
            exact: table.count(&items),
            estimate: table.estimate(&items),
        });
    }
    Some(QueryError::of_answers(&answers, rows).rounded())
}

impl<'a> ItemTable<'a> {
    fn new(release: &MeasuredRelease, set: &'a SetColumn) -> Option<Self> {
        let tree = &set.tree;
        let released = release.table.column(&set.name)?;
        let labels = released_labels(released, tree, release.cancellation)?;
        let sampled = release.rows.len().min(SAMPLED_ROWS);
        let mut table = Self {
            tree,
            rows: sampled,
            rows_of_item: vec![Vec::new(); tree.leaf_count()],
            rows_of_label: vec![Vec::new(); tree.nodes().len()],
            sets: Vec::new(),
        };
        let rows = release.rows.iter().zip(labels.codes).take(sampled);
        for (row, (&raw, &code)) in (0u32..).zip(rows) {
            if (row as usize).is_multiple_of(ROWS_PER_CHECK) {
                release.cancellation.check().ok()?;
            }
            let items = set.of_row(raw as usize);
            for &item in items {
                table.rows_of_item[item as usize].push(row);
            }
            if !items.is_empty() {
                table.sets.push(items.to_vec());
            }
            table.add_labels(row, labels.of(code));
        }
        Some(table)
    }

    fn add_labels(&mut self, row: u32, labels: &[NodeId]) {
        for label in labels {
            self.rows_of_label[label.index()].push(row);
        }
    }

    /// The rows that release an item or a label above it, ascending.
    fn shares(&self, item: u32) -> Vec<RowShare> {
        let mut shares = Vec::new();
        let mut next = Some(self.tree.leaf(item));
        while let Some(label) = next {
            let node = self.tree.node(label);
            let share = 1.0 / f64::from(node.leaf_count());
            let rows = self.rows_of_label[label.index()].iter();
            shares.extend(rows.map(|&row| RowShare { row, share }));
            next = node.parent;
        }
        // Of a label and an ancestor of it, the lower one says more; a stable sort leaves it first.
        shares.sort_by_key(|it| it.row);
        shares.dedup_by_key(|it| it.row);
        shares
    }

    /// Raw rows of the release that have all of one or two items.
    fn count(&self, items: &[u32]) -> u64 {
        let rows = |item: u32| &self.rows_of_item[item as usize];
        match items {
            [] => self.rows as u64,
            [one] => rows(*one).len() as u64,
            [one, other, ..] => {
                let has_other = |row: &&u32| rows(*other).binary_search(row).is_ok();
                rows(*one).iter().filter(has_other).count() as u64
            }
        }
    }

    /// The number of them that a reader of the release expects.
    fn estimate(&self, items: &[u32]) -> f64 {
        match items {
            [] => self.rows as f64,
            [one] => self.shares(*one).iter().map(|it| it.share).sum(),
            [one, other, ..] => {
                let mut others = self.shares(*other).into_iter().peekable();
                let ones = self.shares(*one);
                let together = ones.iter().filter_map(|it| {
                    while others.next_if(|other| other.row < it.row).is_some() {}
                    let other = others.next_if(|other| other.row == it.row)?;
                    Some(it.share * other.share)
                });
                together.sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ItemTable;
    use pais_core::definition::TaxonomyNode;
    use pais_core::taxonomy::{Tree, TreeLimits};

    /// Items a, b below A and c, d below B.
    fn tree() -> Tree {
        let root = TaxonomyNode {
            label: "ANY".to_owned(),
            children: vec![
                TaxonomyNode::new("A", ["a", "b"]),
                TaxonomyNode::new("B", ["c", "d"]),
            ],
        };
        Tree::new(&root, TreeLimits::default()).unwrap()
    }

    /// Rows {a, c}, {a}, {b, c} are released as {A, c}, {a} and {A}.
    fn table(tree: &Tree) -> ItemTable<'_> {
        let item = |label: &str| tree.leaf_number(label).unwrap();
        let mut table = ItemTable {
            tree,
            rows: 3,
            rows_of_item: vec![Vec::new(); 4],
            rows_of_label: vec![Vec::new(); tree.nodes().len()],
            sets: Vec::new(),
        };
        let rows = [
            (vec!["a", "c"], vec!["A", "c"]),
            (vec!["a"], vec!["a"]),
            (vec!["b", "c"], vec!["A"]),
        ];
        for (row, (items, labels)) in (0u32..).zip(rows) {
            for label in items {
                table.rows_of_item[item(label) as usize].push(row);
            }
            let labels: Vec<_> = labels
                .iter()
                .map(|label| tree.find(label).unwrap())
                .collect();
            table.add_labels(row, &labels);
        }
        table
    }

    #[test]
    fn labels_count_for_their_share_and_hidden_items_for_nothing() {
        let tree = tree();
        let table = table(&tree);
        let answer = |items: &[&str]| {
            let items = items.iter().map(|item| tree.leaf_number(item).unwrap());
            let items: Vec<u32> = items.collect();
            (table.count(&items), table.estimate(&items))
        };
        assert_eq!(answer(&["a"]), (2, 2.0));
        assert_eq!(answer(&["b"]), (1, 1.0));
        assert_eq!(answer(&["c"]), (2, 1.0));
        assert_eq!(answer(&["a", "c"]), (1, 0.5));
        assert_eq!(answer(&["b", "c"]), (1, 0.5));
        assert_eq!(answer(&["a", "b"]), (0, 0.5));
    }

    #[test]
    fn a_label_takes_one_place_for_a_row_however_many_items_are_below_it() {
        let items: Vec<String> = (0..1000).map(|item| format!("i{item}")).collect();
        let names = items.iter().map(String::as_str);
        let tree = Tree::new(&TaxonomyNode::new("ANY", names), TreeLimits::default()).unwrap();
        let mut table = ItemTable {
            tree: &tree,
            rows: 100,
            rows_of_item: vec![Vec::new(); 1000],
            rows_of_label: vec![Vec::new(); tree.nodes().len()],
            sets: Vec::new(),
        };
        let any = tree.find("ANY").unwrap();
        let seven = tree.find("i7").unwrap();
        for row in 0..100 {
            table.add_labels(row, &[any]);
        }
        table.add_labels(99, &[seven]);
        assert_eq!(table.rows_of_label.iter().map(Vec::len).sum::<usize>(), 101);
        let item = |label: &str| tree.leaf_number(label).unwrap();
        assert!((table.estimate(&[item("i3")]) - 0.1).abs() < 1e-12);
        assert!((table.estimate(&[item("i7")]) - 1.099).abs() < 1e-12);
    }
}
