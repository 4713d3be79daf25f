//! The tables that are made of groups: generalized, or anatomized.

use hashbrown::HashMap;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::domain::ColumnKind;
use crate::engine::release::standing;
use crate::privacy::{COUNT_COLUMN, GROUP_COLUMN};
use crate::table::{
    Column, Domain, EncodedTable, Form, NULL_CODE, QuasiIdentifier, ReleasedColumn, ReleasedTable,
    Schema, SchemaColumn,
};
use crate::taxonomy::interval::number;
use crate::taxonomy::{Interval, MISSING_LABEL, Tree};

use super::split::Partition;

/// *Generalize*: each group's quasi-identifiers as the range or the lowest common ancestor of
/// its values (Definition 2); rows in the order of `rows`.
pub(super) fn generalized(
    schema: &Schema,
    table: &EncodedTable,
    partition: &Partition,
    rows: &[u32],
) -> ReleasedTable {
    let mut columns: Vec<(usize, ReleasedColumn)> = table
        .quasi_identifiers
        .iter()
        .map(|column| (column.position, labelled(column, partition, rows)))
        .collect();
    columns.extend(untouched(schema, &table.untouched, rows, |_| true));
    finish("data", rows.len(), columns)
}

/// Stored columns as they came, by their positions.
fn untouched<'a>(
    schema: &'a Schema,
    columns: &'a [(usize, Column)],
    rows: &'a [u32],
    keeps: impl Fn(&SchemaColumn) -> bool + 'a,
) -> impl Iterator<Item = (usize, ReleasedColumn)> + 'a {
    columns.iter().filter_map(move |(position, column)| {
        let spec = schema.stored().nth(*position).filter(|spec| keeps(spec))?;
        let cells = rows.iter().map(|&row| column.codes[row as usize]);
        let column = ReleasedColumn {
            name: spec.name.clone(),
            form: Form::untouched(spec),
            column: standing(&column.dictionary, cells),
            missing: spec.missing.clone(),
        };
        Some((*position, column))
    })
}

fn finish(name: &str, rows: usize, mut columns: Vec<(usize, ReleasedColumn)>) -> ReleasedTable {
    columns.sort_by_key(|(position, _)| *position);
    ReleasedTable {
        name: name.into(),
        rows,
        columns: columns.into_iter().map(|(_, column)| column).collect(),
    }
}

fn labelled(column: &QuasiIdentifier, partition: &Partition, rows: &[u32]) -> ReleasedColumn {
    let mut known: HashMap<String, u32> = HashMap::new();
    let mut dictionary: Vec<Box<str>> = Vec::new();
    let mut code_of = vec![0u32; column.codes.len()];
    for group in partition.groups() {
        let codes = group.iter().map(|&row| column.codes[row as usize]);
        let label = label(&column.domain, codes);
        let code = *known.entry(label).or_insert_with_key(|label| {
            dictionary.push(label.as_str().into());
            dictionary.len() as u32 - 1
        });
        for &row in group {
            code_of[row as usize] = code;
        }
    }
    ReleasedColumn {
        name: column.name.clone(),
        form: Form::Generalized,
        // In the order of the released rows, as that of the groups would tell of the split.
        column: standing(&dictionary, rows.iter().map(|&row| code_of[row as usize])),
        missing: Vec::new(),
    }
}

/// The label that covers a group's values, by their codes: the closed range of numbers, the
/// lowest common ancestor of leaves. A missing number has no other label than `?` and the
/// outermost interval.
pub(super) fn label(domain: &Domain, codes: impl Iterator<Item = u32>) -> String {
    let (least, most) = codes.fold((u32::MAX, 0), |(least, most), code| {
        (least.min(code), most.max(code))
    });
    match domain {
        Domain::Numeric { values, lo, hi, .. } => {
            match (values.get(least as usize), values.get(most as usize)) {
                (Some(&least), Some(&most)) => Interval::closed(least, most).to_string(),
                (Some(_), None) => Interval::closed(*lo, *hi).to_string(),
                (None, _) => MISSING_LABEL.to_owned(),
            }
        }
        Domain::Taxonomy(tree) => ancestor(tree, least, most).to_owned(),
    }
}

/// The label of the lowest node over two leaves, the first not after the second.
fn ancestor(tree: &Tree, first: u32, last: u32) -> &str {
    let mut node = tree.node(tree.leaf(first));
    while node.end_leaf <= last {
        match node.parent {
            Some(parent) => node = tree.node(parent),
            None => break,
        }
    }
    &node.label
}

/// *Anatomize* (Definition 3): the quasi-identifier table, and a sensitive table for each
/// sensitive column. `exact` holds the quasi-identifiers as they came; `number_of` numbers the
/// groups from 0.
pub(super) fn anatomized(
    schema: &Schema,
    table: &EncodedTable,
    exact: &[(usize, Column)],
    (partition, number_of): (&Partition, &[u32]),
    rows: &[u32],
) -> Vec<ReleasedTable> {
    let mut group_of = vec![0u32; table.rows];
    for (group, number) in partition.groups().zip(number_of) {
        for &row in group {
            group_of[row as usize] = *number;
        }
    }
    let sensitive = |position: usize| table.sensitive.iter().any(|it| it.position == position);
    let mut columns: Vec<_> = untouched(schema, exact, rows, |_| true).collect();
    let others = untouched(schema, &table.untouched, rows, |_| true);
    columns.extend(others.filter(|(position, _)| !sensitive(*position)));
    let groups = integers(
        GROUP_COLUMN,
        rows.iter().map(|&row| group_of[row as usize] + 1),
    );
    columns.push((usize::MAX, groups));
    let mut tables = vec![finish("qit", rows.len(), columns)];
    let counts = table.untouched.par_iter().filter_map(|(position, column)| {
        let spec = schema.stored().nth(*position)?;
        sensitive(*position).then(|| counted(spec, column, &group_of))
    });
    tables.par_extend(counts);
    tables
}

/// A sensitive table: how many records of each group hold each value, sorted by both.
fn counted(spec: &SchemaColumn, column: &Column, group_of: &[u32]) -> ReleasedTable {
    let ranks = Ranks::of(spec, column);
    let mut cells: Vec<u64> = group_of
        .iter()
        .zip(&column.codes)
        .map(|(&group, &code)| u64::from(group) << 32 | u64::from(ranks.of_code(code)))
        .collect();
    cells.sort_unstable();
    let runs: Vec<&[u64]> = cells.chunk_by(|one, other| one == other).collect();
    let group = runs.iter().map(|run| (run[0] >> 32) as u32 + 1);
    let value = runs.iter().map(|run| ranks.codes[run[0] as u32 as usize]);
    let count = runs.iter().map(|run| run.len() as u32);
    let columns = vec![
        integers(GROUP_COLUMN, group),
        ReleasedColumn {
            name: spec.name.clone(),
            form: Form::untouched(spec),
            column: standing(&column.dictionary, value),
            missing: spec.missing.clone(),
        },
        integers(COUNT_COLUMN, count),
    ];
    ReleasedTable {
        name: format!("st_{}", spec.name).into(),
        rows: runs.len(),
        columns,
    }
}

/// The values of a column in order: missing ones first, then numbers by size or words by their
/// bytes.
struct Ranks {
    /// Of each code, its rank.
    rank: Vec<u32>,
    /// Of each rank, a code; that of a cell that holds nothing is [`NULL_CODE`].
    codes: Vec<u32>,
}

impl Ranks {
    fn of(spec: &SchemaColumn, column: &Column) -> Self {
        struct Value<'t> {
            code: u32,
            missing: bool,
            size: Option<f64>,
            text: &'t str,
        }
        let mut values: Vec<Value> = (0..)
            .zip(&column.dictionary)
            .map(|(code, text)| Value {
                code,
                missing: spec.is_missing(text),
                size: (spec.kind == ColumnKind::Numeric)
                    .then(|| number(text))
                    .flatten(),
                text,
            })
            .collect();
        values.sort_by(|one, other| {
            let size = |value: &Value| value.size.unwrap_or(f64::NEG_INFINITY);
            let missing = other.missing.cmp(&one.missing);
            let order = missing.then(size(one).total_cmp(&size(other)));
            order.then(one.text.cmp(other.text))
        });
        let mut ranks = Self {
            rank: vec![0; column.dictionary.len()],
            codes: vec![NULL_CODE],
        };
        // CSV cannot tell an empty word for missing from a cell that holds nothing.
        for value in values
            .iter()
            .filter(|it| !(it.missing && it.text.is_empty()))
        {
            ranks.rank[value.code as usize] = ranks.codes.len() as u32;
            ranks.codes.push(value.code);
        }
        ranks
    }

    /// The rank of a cell; 0 where it holds nothing.
    fn of_code(&self, code: u32) -> u32 {
        self.rank.get(code as usize).copied().unwrap_or(0)
    }
}

/// A column of whole numbers that the service made.
fn integers(name: &str, numbers: impl Iterator<Item = u32>) -> ReleasedColumn {
    let mut known: FxHashMap<u32, u32> = FxHashMap::default();
    let mut column = Column::default();
    for number in numbers {
        let code = *known.entry(number).or_insert_with(|| {
            column.dictionary.push(number.to_string().into());
            column.dictionary.len() as u32 - 1
        });
        column.codes.push(code);
    }
    ReleasedColumn {
        name: name.into(),
        form: Form::Integer,
        column,
        missing: Vec::new(),
    }
}
