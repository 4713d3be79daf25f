//! Dictionary-encoded tables: what readers produce, methods and the verifier work on, and writers
//! take.
//!
//! A cell is a `u32` code into its column's dictionary; each distinct value is handled as text
//! only once.

mod bounds;
mod canonical;
mod classes;
pub mod codes;
mod column;
mod encoded;
mod hidden_values;
mod minimum_levels;
pub mod profile;
mod read_error;
mod released;
mod rounding;
mod row_warnings;
mod sensitive_values;
mod sets;
mod subjects;
mod together;
mod unchanged;
mod unchanged_column;
mod unchanged_keys;
mod value_codes;
mod value_counter;

pub use bounds::{BoundedColumn, names_of_bounds, taken_name};
pub use classes::Persons;
pub(crate) use classes::{Classes, Divider, Division, PersonSet, SEVERAL};
pub(crate) use column::VALUE_BYTES;
pub use column::{Column, NULL_CODE, Table, code_counts};
pub(crate) use encoded::RankedNumbers;
pub use encoded::{
    ClassColumn, ContinuedEnds, Domain, EncodedTable, Positioned, QuasiIdentifier, SensitiveColumn,
};
pub use hidden_values::unchanged_tells_hidden;
pub use minimum_levels::{minimum_levels, pre_generalization_error};
pub use read_error::{MAX_FAULTS, ReadError, ReadErrorKind};
pub use released::{COUNT_COLUMN, Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable};
pub use row_warnings::row_warnings;
pub use sets::SetColumn;
pub use subjects::{SubjectCounter, SubjectCounts, Subjects};
pub(crate) use together::pairs_that_single_out;
pub use unchanged::{ACCEPTED_RISK, TellingColumns, TellingSample, UnchangedRisk, Verdict};
pub use unchanged_column::{PersonCounts, UnchangedColumn, ValueCounts};
pub use unchanged_keys::{KeyCounter, refuse_keys};
pub(crate) use value_codes::{ValueCodes, items_of};
pub use value_counter::{ColumnValueCounts, ValueCounters};
