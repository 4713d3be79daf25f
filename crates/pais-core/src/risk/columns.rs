//! The risk of single columns.

use hashbrown::HashMap;

use crate::cancellation::{Cancellation, Stopped};
use crate::definition::{ColumnKind, ColumnRole};
use crate::parallel;
use crate::safe_harbor::SafeHarborAdvice;
use crate::schema::SchemaColumn;
use crate::table::{
    Classes, Divider, Division, NULL_CODE, PersonSet, Persons, ValueCodes, items_of,
};

use super::{Coded, ColumnRisk, Share, topmost};

/// The figures of each column. `specialized` is the declaration of a column with the hierarchy that is made for
/// a run.
pub(super) fn measure<'s>(
    columns: &[Coded<'_>],
    persons: Persons<'_>,
    per_row: Share,
    per_person: Share,
    specialized: impl Fn(&str) -> Option<&'s SchemaColumn> + Sync,
    cancellation: &Cancellation,
) -> Result<Vec<ColumnRisk>, Stopped> {
    let measured = parallel::map(columns, |coded| {
        cancellation.check()?;
        let Coded { spec, values, .. } = coded;
        let (distinct, alone) = divided(values, persons);
        let rows_by_code = values.rows_by_code();
        let is_set = spec.kind == ColumnKind::Set;
        let generalized = spec.role == ColumnRole::QuasiIdentifier && !is_set;
        let made = specialized(&spec.name);
        let tree = made.filter(|_| generalized);
        Ok(ColumnRisk {
            name: spec.name.to_string(),
            role: spec.role,
            distinctness: per_row.share(distinct),
            separation: separation(&rows_by_code),
            unique_share: per_person.share(alone),
            unique_item_share: is_set.then(|| per_person.share(alone_by_item(coded, persons))),
            top_k_max: tree.and_then(|tree| topmost::greatest_k(tree, coded, persons)),
            absent_leaves: match spec.role {
                ColumnRole::Sensitive => absent_leaves(coded, &rows_by_code),
                _ => None,
            },
            // Most columns have no category, and their values are not listed.
            safe_harbor: spec.safe_harbor().and_then(|_| {
                SafeHarborAdvice::new(made.unwrap_or(spec), &texts(coded, &rows_by_code))
            }),
            shares_by_rank: (spec.role == ColumnRole::Sensitive)
                .then(|| shares_by_rank(values, rows_by_code)),
        })
    });
    measured.into_iter().collect()
}

/// The values that occur in rows; for a set, its cells.
fn texts<'c>(coded: &Coded<'c>, rows_by_code: &[u64]) -> Vec<&'c str> {
    let texts = coded.column.dictionary.iter().zip(rows_by_code);
    let texts = texts.filter(|(text, rows)| **rows > 0 && !coded.spec.is_missing(text));
    texts.map(|(text, _)| &**text).collect()
}

/// Whether a value that is not missing is that of one person only.
pub(super) fn singles_out(values: &ValueCodes<'_>, persons: Persons<'_>) -> bool {
    let mut alone = PersonSet::new(persons.codes());
    let rows = Classes::of(0..values.codes.len() as u32);
    let by = Division::by_values(values, persons);
    Divider::default().divide(&rows, by, &mut alone, None);
    alone.len() > 0
}

/// Number of distinct values, and of persons with a value that nobody else has.
fn divided(values: &ValueCodes<'_>, persons: Persons<'_>) -> (u64, u64) {
    let mut alone = PersonSet::new(persons.codes());
    let rows = Classes::of(0..values.codes.len() as u32);
    let by = Division::by_cells(values, persons);
    let distinct = Divider::default().divide(&rows, by, &mut alone, None);
    (distinct, alone.len())
}

/// Share of the pairs of rows whose values differ; 0 where there is no pair.
fn separation(rows_by_code: &[u64]) -> f64 {
    let pairs = |rows: u64| u128::from(rows) * u128::from(rows.saturating_sub(1)) / 2;
    let all = pairs(rows_by_code.iter().sum());
    let equal: u128 = rows_by_code.iter().map(|&rows| pairs(rows)).sum();
    match all {
        0 => 0.0,
        all => (all - equal) as f64 / all as f64,
    }
}

/// Maximum number of values whose shares are listed.
const MOST_RANKS: usize = 20;

/// The shares of the most frequent values among the rows with a value, in descending order.
fn shares_by_rank(values: &ValueCodes<'_>, mut rows_by_code: Vec<u64>) -> Vec<f64> {
    if let Some(missing) = values.missing {
        rows_by_code[missing as usize] = 0;
    }
    let with_value = Share::of(rows_by_code.iter().sum());
    rows_by_code.sort_unstable_by(|one, other| other.cmp(one));
    let present = rows_by_code.into_iter().take_while(|rows| *rows > 0);
    let shares = present.map(|rows| with_value.share(rows));
    shares.take(MOST_RANKS).collect()
}

/// Number of leaves of the declared taxonomy that no cell has; `None` without a taxonomy.
fn absent_leaves(coded: &Coded<'_>, rows_by_code: &[u64]) -> Option<u64> {
    let tree = coded.spec.tree.as_ref()?;
    let mut is_present = vec![false; tree.leaf_count()];
    let texts = coded.column.dictionary.iter().zip(rows_by_code);
    for (text, _) in texts.filter(|(_, rows)| **rows > 0) {
        if let Some(leaf) = coded.spec.leaf(text) {
            is_present[leaf as usize] = true;
        }
    }
    Some(is_present.into_iter().filter(|present| !*present).count() as u64)
}

/// Number of persons with an item that nobody else has, in a column of sets.
fn alone_by_item(coded: &Coded<'_>, persons: Persons<'_>) -> u64 {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let cells = coded.column.dictionary.iter();
    let items_of_cell: Vec<Vec<u32>> = cells
        .map(|text| {
            let items = items_of(coded.spec, text).into_iter();
            let number = |item| {
                let next = numbers.len() as u32;
                *numbers.entry(item).or_insert(next)
            };
            items.map(number).collect()
        })
        .collect();
    // By item: nobody, one person, or several.
    let mut holder: Vec<Holder> = vec![Holder::Nobody; numbers.len()];
    for (row, &code) in (0u32..).zip(&coded.column.codes) {
        let person = match persons {
            Persons::Rows(_) => row,
            Persons::Named(of_row, _) => of_row[row as usize],
        };
        if code == NULL_CODE {
            continue;
        }
        for &item in &items_of_cell[code as usize] {
            let holder = &mut holder[item as usize];
            *holder = match *holder {
                Holder::Nobody => Holder::One(person),
                Holder::One(other) if other == person => Holder::One(person),
                Holder::One(_) | Holder::Several => Holder::Several,
            };
        }
    }
    let mut alone: Vec<u32> = holder
        .into_iter()
        .filter_map(|holder| match holder {
            Holder::One(person) => Some(person),
            Holder::Nobody | Holder::Several => None,
        })
        .collect();
    alone.sort_unstable();
    alone.dedup();
    alone.len() as u64
}

/// The persons who have an item.
#[derive(Clone, Copy)]
enum Holder {
    Nobody,
    One(u32),
    Several,
}
