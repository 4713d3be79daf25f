//! How strongly the rows of a raw table single out persons, before any run: figures for the holder that
//! say which columns identify, and what a job can ask for.
//!
//! Only counts and shares are computed, never a value. Where a table has no subject column, each
//! row is a person of its own.

mod columns;
mod combinations;
mod feasible;
mod topmost;
mod work;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use thiserror::Error;

use crate::cancellation::{Cancellation, Stopped};
use crate::definition::ColumnRole;
use crate::safe_harbor::SafeHarborAdvice;
use crate::schema::{Schema, SchemaColumn};
use crate::table::{
    Column, Persons, Subjects, Table, UnchangedRisk, ValueCodes, pairs_that_single_out,
};

pub use work::{DEFAULT_COMBINED, MOST_COMBINED, bytes_needed, check_work};

/// Maximum number of combinations that are listed.
pub(crate) const MOST_LISTED: usize = 1_000;

/// The risk of a raw table in numbers. Shares are from 0 to 1, and 0 in a table without rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TableRisk {
    /// Number of rows.
    pub rows: u64,
    /// Number of persons; of rows where there is no subject column.
    pub subjects: u64,
    /// Share of persons with values of all quasi-identifiers that nobody else has.
    pub unique_share: f64,
    /// The stored columns in the declared order, without the subject.
    pub columns: Vec<ColumnRisk>,
    /// Combinations of 2 to `l` quasi-identifiers, those that single out most persons first; at
    /// most 1,000.
    pub combinations: Vec<CombinationRisk>,
    /// Number of all combinations that were examined.
    pub combinations_total: u64,
    /// Insensitive columns with a value that only one person has. They are released unchanged.
    pub singling_out: Vec<String>,
    /// Pairs of insensitive columns that have such values together, though neither has one alone;
    /// those that single out most persons first.
    pub singling_out_pairs: Vec<[String; 2]>,
    /// What the columns that are released unchanged say of the rows by themselves, in rows.
    #[serde(default)]
    pub unchanged: UnchangedRisk,
    /// What the whole table can meet.
    pub feasible: Feasible,
}

/// One column of a raw table in numbers. All missing cells are one value; a set is one value,
/// regardless of the order of its items.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ColumnRisk {
    /// As declared.
    pub name: String,
    /// As declared.
    pub role: ColumnRole,
    /// Distinct values by rows.
    pub distinctness: f64,
    /// Share of the pairs of rows that differ in the column.
    pub separation: f64,
    /// Share of persons with a value that nobody else has.
    pub unique_share: f64,
    /// Share of persons with an item that nobody else has, in a column of sets.
    pub unique_item_share: Option<f64>,
    /// Of a quasi-identifier, the greatest *K* with which its topmost value can be specialized while
    /// all others stay at theirs; absent where there is nothing to specialize, and for sets.
    pub top_k_max: Option<u64>,
    /// Of a sensitive column with a taxonomy, the number of its leaves that are in no row.
    pub absent_leaves: Option<u64>,
    /// Of a sensitive column, the shares that its most frequent values have among the rows that have a
    /// value in it, the greatest first; at most 20. A *C* below one of them cannot bound that value.
    pub shares_by_rank: Option<Vec<f64>>,
    /// What HIPAA Safe Harbor requires of the column; absent for a column of none of its categories.
    pub safe_harbor: Option<SafeHarborAdvice>,
}

/// A combination of quasi-identifiers in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CombinationRisk {
    /// Names of the quasi-identifiers, in the declared order.
    pub columns: Vec<String>,
    /// Distinct combinations of their values by rows.
    pub distinctness: f64,
    /// Share of persons with values of all of them that nobody else has.
    pub unique_share: f64,
}

/// What the whole table can meet, and so the most that a job on all rows can ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Feasible {
    /// The greatest *K*: the number of persons.
    pub k_max: u64,
    /// The greatest *l* such that no sensitive value occurs in more than 1/*l* of the rows that
    /// have a value in its column; null without such rows.
    pub l_max: Option<u64>,
    /// The smallest *C* in millionths, rounded up: the greatest share that one sensitive value has
    /// among the rows that have a value in its column; null without such rows.
    pub c_min: Option<f64>,
}

/// Why a risk is not computed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RiskError {
    /// There are too many combinations for this number of rows.
    #[error(
        "{combinations} combinations of up to {l} of {columns} quasi-identifiers on {rows} rows are \
         more than can be examined: {} combinations, and {} rows times combinations; choose `l` of \
         at most {feasible}",
        work::MOST_COMBINATIONS,
        work::MOST_WORK
    )]
    TooMuchWork {
        /// Number of combinations.
        combinations: u64,
        /// Size of the largest ones.
        l: usize,
        /// Number of quasi-identifiers.
        columns: usize,
        /// Number of rows.
        rows: u64,
        /// The largest feasible `l`.
        feasible: usize,
    },
    /// A hierarchy that is made from the values would be too large.
    #[error("{0}")]
    Hierarchy(String),
    /// The computation was stopped.
    #[error("the computation of the risk was stopped")]
    Cancelled,
}

impl From<Stopped> for RiskError {
    fn from(_: Stopped) -> Self {
        Self::Cancelled
    }
}

/// A stored column with its declaration and its values.
struct Coded<'a> {
    spec: &'a SchemaColumn,
    column: &'a Column,
    values: ValueCodes<'a>,
}

/// Computes the risk of a table, with the combinations of up to `l` quasi-identifiers.
///
/// Makes one pass over the rows for each column and each combination, less if previous columns have already
/// separated rows. Threads share the columns and the combinations.
///
/// # Errors
/// [`RiskError`].
pub fn assess(
    schema: &Schema,
    table: Table,
    l: usize,
    cancellation: &Cancellation,
) -> Result<TableRisk, RiskError> {
    let rows = table.rows;
    check_work(schema, rows as u64, l)?;
    // A table that a program built can have several spellings of a value.
    let table = table.as_released(schema);
    let made = if schema.has_made_hierarchies() {
        Some(schema.with_made_hierarchies(&table))
    } else {
        None
    };
    let made = made.transpose().map_err(RiskError::Hierarchy)?;
    let subject = schema.subject().and_then(|at| table.columns.get(at));
    let named = subject.and_then(|column| Subjects::new(column.clone()));
    let people = Persons::new(named.as_ref(), rows);
    let stored = schema.stored().zip(&table.columns);
    let stored = stored.filter(|(spec, _)| spec.role != ColumnRole::Subject);
    let coded: Vec<Coded<'_>> = stored
        .map(|(spec, column)| Coded {
            spec,
            column,
            values: ValueCodes::new(spec, column),
        })
        .collect();
    cancellation.check()?;
    let subjects = named.as_ref().map_or(rows as u64, Subjects::len);
    let per_row = Share::of(rows as u64);
    let per_person = Share::of(subjects);

    let specs = made.as_ref().unwrap_or(schema);
    let specialized = |name: &str| specs.stored_named(name);
    let columns = columns::measure(
        &coded,
        people,
        per_row,
        per_person,
        specialized,
        cancellation,
    )?;

    let with_role = |role| coded.iter().filter(move |column| column.spec.role == role);
    let qids: Vec<&Coded<'_>> = with_role(ColumnRole::QuasiIdentifier).collect();
    let values: Vec<&ValueCodes<'_>> = qids.iter().map(|column| &column.values).collect();
    let search = combinations::Search {
        columns: &values,
        persons: people,
        rows,
        l,
        cancellation,
    };
    let unique = search.unique_under_all()?;
    let found = search.run()?;
    let combinations_total = found.len() as u64;
    let listed = combinations::most_identifying(found, MOST_LISTED);
    let combinations = listed.iter().map(|found| CombinationRisk {
        columns: found
            .columns()
            .map(|index| qids[index].spec.name.to_string())
            .collect(),
        distinctness: per_row.share(found.classes),
        unique_share: per_person.share(found.alone),
    });
    let combinations = combinations.collect();

    let insensitive = with_role(ColumnRole::Insensitive);
    let (single, others): (Vec<&Coded<'_>>, Vec<_>) =
        insensitive.partition(|column| columns::singles_out(&column.values, people));
    let together: Vec<&ValueCodes<'_>> = others.iter().map(|it| &it.values).collect();
    let pairs = pairs_that_single_out(&together, people, rows as u64).into_iter();
    let name = |column: &Coded<'_>| column.spec.name.to_string();
    let unchanged = coded.iter().map(|coded| (coded.spec, &coded.values));
    let unchanged = UnchangedRisk::of_codes(unchanged, people, cancellation)?;
    Ok(TableRisk {
        rows: rows as u64,
        subjects,
        unique_share: per_person.share(unique),
        columns,
        combinations,
        combinations_total,
        singling_out: single.into_iter().map(name).collect(),
        singling_out_pairs: pairs
            .map(|pair| [name(others[pair.first]), name(others[pair.second])])
            .collect(),
        unchanged,
        feasible: feasible::of(with_role(ColumnRole::Sensitive), subjects),
    })
}

/// Counts as shares of a whole.
#[derive(Clone, Copy)]
struct Share {
    whole: u64,
}

impl Share {
    fn of(whole: u64) -> Self {
        Self { whole }
    }

    fn share(self, count: u64) -> f64 {
        match self.whole {
            0 => 0.0,
            whole => count as f64 / whole as f64,
        }
    }
}
