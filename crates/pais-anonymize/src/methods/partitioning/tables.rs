//! Builds the released tables from groups: generalized or anatomized.

use hashbrown::HashMap;
use pais_core::parallel;
use pais_core::schema::SchemaColumn;
use pais_core::table::codes::CodeRange;
use pais_core::table::{
    COUNT_COLUMN, Column, Domain, Form, GROUP_COLUMN, NULL_CODE, Positioned, QuasiIdentifier,
    ReleasedColumn, ReleasedTable,
};
use pais_core::taxonomy::{Interval, MISSING_LABEL};
use pais_measure::ValueRanks;
use rustc_hash::FxHashMap;

use super::split::GroupPartition;
use crate::prepared::PreparedTable;
use crate::released_table::{finish, untouched};

/// *Generalize*: the quasi-identifiers of each group become the range or the lowest common
/// ancestor of its values (Definition 2). The released rows are in the order of `rows`.
pub(super) fn generalized(
    input: &PreparedTable,
    partition: &GroupPartition,
    rows: &[u32],
) -> ReleasedTable {
    let (table, cancellation) = (&input.table, &input.cancellation);
    let mut columns: Vec<Positioned<ReleasedColumn>> = table
        .quasi_identifiers
        .iter()
        .take_while(|_| !cancellation.is_cancelled())
        .map(|column| Positioned {
            position: column.position,
            column: generalized_column(column, partition, rows),
        })
        .collect();
    let others = untouched(&input.schema, &table.untouched, rows, cancellation);
    columns.extend(others);
    finish("data", rows.len(), columns)
}

fn generalized_column(
    column: &QuasiIdentifier,
    partition: &GroupPartition,
    rows: &[u32],
) -> ReleasedColumn {
    let mut known: HashMap<String, u32> = HashMap::new();
    let mut dictionary: Vec<Box<str>> = Vec::new();
    let mut code_of = vec![0u32; column.codes.rows()];
    for group in partition.groups() {
        let codes = group.iter().map(|&row| column.codes.at(row as usize));
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
        // In the order of the released rows; the order of the groups would reveal the split.
        column: Column::of_cells(&dictionary, rows.iter().map(|&row| code_of[row as usize])),
        missing: Vec::new(),
    }
}

/// The label that covers the values of a group: the closed range of numbers, or the lowest common
/// ancestor of leaves. A missing number is covered only by `?` and by the outermost interval.
fn label(domain: &Domain, codes: impl Iterator<Item = u32>) -> String {
    let CodeRange {
        first: least,
        last: most,
    } = ends(domain, codes);
    match domain {
        Domain::Numeric {
            values,
            lo,
            hi,
            scale,
            ..
        } => {
            let written = |lo, hi| Interval::closed(lo, hi).on(*scale).to_string();
            match (values.get(least as usize), values.get(most as usize)) {
                (Some(&least), Some(&most)) => {
                    let (least, most) = closed(domain, least, most);
                    written(least, most)
                }
                (Some(_), None) => written(*lo, *hi),
                (None, _) => MISSING_LABEL.to_owned(),
            }
        }
        Domain::Taxonomy(tree) => tree
            .node(tree.lowest_common_ancestor(least, most))
            .label
            .to_string(),
    }
}

/// The ends of the closed interval from the least to the greatest number of a group; with rounding
/// the next multiples outside of them.
fn closed(domain: &Domain, least: f64, most: f64) -> (f64, f64) {
    match domain {
        Domain::Numeric {
            round: Some(round),
            lo,
            hi,
            ..
        } => round.enclosing(least, most, Some(Interval::closed(*lo, *hi))),
        _ => (least, most),
    }
}

/// From the lowest to the highest of a group's codes; from the first code of the column on if the group has
/// missing and other numbers.
fn ends(domain: &Domain, codes: impl Iterator<Item = u32>) -> CodeRange {
    let range = codes.fold(CodeRange::EMPTY, CodeRange::widened);
    let CodeRange { first, last } = range;
    match domain {
        Domain::Numeric { values, .. } if last as usize == values.len() && first != last => {
            range.widened(0)
        }
        Domain::Numeric { .. } | Domain::Taxonomy(_) => range,
    }
}

/// What the label of a group with these codes covers.
fn covered_codes(domain: &Domain, codes: impl Iterator<Item = u32>) -> CodeRange {
    let range = ends(domain, codes);
    match domain {
        Domain::Numeric {
            values,
            round: Some(_),
            ..
        } => match [range.first, range.last].map(|code| values.get(code as usize)) {
            [Some(&least), Some(&most)] => {
                let (lo, hi) = closed(domain, least, most);
                let places = Interval::closed(lo, hi).places(values);
                CodeRange::new(places.start as u32, (places.end as u32).saturating_sub(1))
            }
            _ => range,
        },
        Domain::Numeric { .. } => range,
        Domain::Taxonomy(tree) => {
            let node = tree.node(tree.lowest_common_ancestor(range.first, range.last));
            CodeRange::new(node.first_leaf, node.end_leaf - 1)
        }
    }
}

/// *Anatomize* (Definition 3): the quasi-identifier table with the columns as they were read,
/// followed by a sensitive table for each sensitive column. `number_of` gives the number of each
/// group, from 0.
pub(super) fn anatomized(
    input: &PreparedTable,
    partition: &GroupPartition,
    number_of: &[u32],
    rows: &[u32],
) -> Vec<ReleasedTable> {
    let (schema, table) = (&input.schema, &input.table);
    let mut group_of = vec![0u32; table.rows];
    for (group, number) in partition.groups().zip(number_of) {
        for &row in group {
            group_of[row as usize] = *number;
        }
    }
    let sensitive = |position: usize| table.sensitive.iter().any(|it| it.position == position);
    let cancellation = &input.cancellation;
    let mut columns = untouched(schema, &input.exact, rows, cancellation);
    let others = untouched(schema, &table.untouched, rows, cancellation);
    let others = others.into_iter();
    columns.extend(others.filter(|it| !sensitive(it.position)));
    let groups = integers(
        GROUP_COLUMN,
        rows.iter().map(|&row| group_of[row as usize] + 1),
    );
    columns.push(Positioned {
        position: usize::MAX,
        column: groups,
    });
    let mut tables = vec![finish("qit", rows.len(), columns)];
    let counts = parallel::map(&table.untouched, |it| {
        let spec = schema.stored_at(it.position)?;
        let is_made = sensitive(it.position) && !cancellation.is_cancelled();
        is_made.then(|| sensitive_table(spec, &it.column, &group_of))
    });
    tables.extend(counts.into_iter().flatten());
    tables
}

/// A sensitive table: the number of records of each group with each value, sorted by group and
/// value. All missing cells of a group are one row.
fn sensitive_table(spec: &SchemaColumn, column: &Column, group_of: &[u32]) -> ReleasedTable {
    let column = &with_one_missing(spec, column);
    let ranks = ValueRanks::new(spec, column);
    let mut cells: Vec<u64> = group_of
        .iter()
        .zip(&column.codes)
        .map(|(&group, &code)| u64::from(group) << 32 | u64::from(ranks.of_code(code)))
        .collect();
    cells.sort_unstable();
    let runs: Vec<&[u64]> = cells.chunk_by(|one, other| one == other).collect();
    let group = runs.iter().map(|run| (run[0] >> 32) as u32 + 1);
    let value = runs.iter().map(|run| ranks.code(run[0] as u32));
    let count = runs.iter().map(|run| run.len() as u32);
    let columns = vec![
        integers(GROUP_COLUMN, group),
        ReleasedColumn {
            name: spec.name().into(),
            form: Form::untouched(spec),
            column: Column::of_cells(&column.dictionary, value),
            missing: spec.missing().to_vec(),
        },
        integers(COUNT_COLUMN, count),
    ];
    ReleasedTable {
        name: format!("st_{}", spec.name()).into(),
        rows: runs.len(),
        columns,
    }
}

/// The column with the first word for missing in place of all others, which formats that have
/// types do not keep apart; null where that word is the empty cell.
fn with_one_missing(spec: &SchemaColumn, column: &Column) -> Column {
    let mut column = column.clone();
    let is_missing: Vec<bool> = column
        .dictionary
        .iter()
        .map(|text| spec.is_missing(text))
        .collect();
    let word = spec.missing().first().filter(|word| !word.is_empty());
    let missing = word.map_or(NULL_CODE, |word| {
        let known = column.dictionary.iter().position(|text| text == word);
        known.unwrap_or_else(|| {
            column.dictionary.push(word.clone());
            column.dictionary.len() - 1
        }) as u32
    });
    for code in &mut column.codes {
        if is_missing.get(*code as usize) != Some(&false) {
            *code = missing;
        }
    }
    column
}

/// A column of integers that the service generates.
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

/// For each quasi-identifier the raw codes that the label of each group covers; of some groups only
/// after a request to stop.
pub(super) fn covered_by_groups(
    input: &PreparedTable,
    partition: &GroupPartition,
) -> Vec<Vec<CodeRange>> {
    let columns = input.table.quasi_identifiers.iter().map(|column| {
        let column = input.pre_generalization.raw(column);
        let minimum_levels = input.pre_generalization.minimum_levels(&column.name);
        let of_group = |group: &[u32]| {
            let codes = group.iter().map(|&row| column.codes.at(row as usize));
            match (minimum_levels, &column.domain) {
                (Some(minimum_levels), Domain::Taxonomy(tree)) => {
                    let floor = |leaf| tree.node(minimum_levels.level_of(leaf));
                    let ends = codes.map(floor).map(|it| [it.first_leaf, it.end_leaf - 1]);
                    covered_codes(&column.domain, ends.flatten())
                }
                _ => covered_codes(&column.domain, codes),
            }
        };
        let groups = partition.groups();
        let groups = groups.take_while(|_| !input.cancellation.is_cancelled());
        groups.map(of_group).collect()
    });
    columns.collect()
}
