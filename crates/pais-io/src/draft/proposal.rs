//! Makes the definition of a dataset from what is known of its columns.

use pais_core::definition::{ColumnKind, ColumnRole, DatasetDefinition};
use pais_core::schema::{Schema, SchemaError, SchemaErrorKind};
use pais_core::taxonomy::round_range;
use serde_json::{Map, Value, json};

use super::kind::{self, FileHabits, ProposedKind};
use super::names::NameMeaning;
use super::observed::Observed;
use super::{hierarchy, role};

/// A column of a file: its name, and what is known of it.
pub(super) struct FileColumn {
    pub(super) name: String,
    pub(super) observed: Observed,
    /// The separator with which its lists were read.
    pub(super) list_separator: Option<char>,
}

/// What is known of a whole file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileFacts {
    pub(super) habits: FileHabits,
    /// Rows that were read.
    pub(super) rows: u64,
    /// Whether these are all rows.
    pub(super) is_whole: bool,
}

/// Sentences about each column, in the order of the file.
pub(super) type Reasons = Vec<(String, Vec<String>)>;

/// Proposes a definition.
///
/// # Errors
/// If the names of the columns make no schema.
pub(super) fn propose(
    name: &str,
    columns: &[FileColumn],
    file: FileFacts,
) -> Result<(DatasetDefinition, Reasons), SchemaError> {
    let mut has_subject = false;
    let mut proposed = Vec::with_capacity(columns.len());
    let mut reasons = Vec::with_capacity(columns.len());
    for column in columns {
        let (fields, why) = self::column(column, has_subject, file);
        has_subject |= fields["role"] == ColumnRole::Subject.as_str();
        proposed.push(fields);
        reasons.push((column.name.clone(), why));
    }
    let definition = accepted(name, &mut proposed, &mut reasons)?;
    Ok((definition, reasons))
}

/// The fields of a column, and the reasons for them.
fn column(
    column: &FileColumn,
    has_subject: bool,
    file: FileFacts,
) -> (Map<String, Value>, Vec<String>) {
    let mut reasons = Vec::new();
    let FileColumn {
        name,
        observed,
        list_separator,
    } = column;
    let meaning = NameMeaning::of(name);
    let proposed = kind::propose(
        observed,
        meaning,
        file.habits,
        *list_separator,
        &mut reasons,
    );
    let kind = proposed.kind;
    counts(observed, &mut reasons);
    let role = role::propose(observed, meaning, kind, has_subject, &mut reasons);
    let is_stored = role != ColumnRole::Identifier;
    let mut fields = Map::new();
    fields.insert("name".to_owned(), json!(name));
    fields.insert("role".to_owned(), json!(role));
    // What is dropped or hashed needs no kind.
    if is_stored && role != ColumnRole::Subject {
        kind_fields(&proposed, &mut fields);
        if let Some(words) = observed.missing.declared() {
            fields.insert("missing".to_owned(), json!(words));
        }
        range_fields(observed, (kind, role), file, &mut fields, &mut reasons);
        let of_column = (kind, role);
        let made = hierarchy::propose(observed, meaning, of_column, file.is_whole, &mut reasons);
        if let Some(made) = made {
            fields.insert("taxonomy".to_owned(), json!(made));
        }
    }
    if name.parse::<f64>().is_ok() {
        reasons.push(
            "its name is a number: check whether the file has a row with the names of the columns"
                .to_owned(),
        );
    }
    if !file.is_whole {
        reasons.push(format!(
            "only the first {} rows were read, and the file has more",
            file.rows
        ));
    }
    (fields, reasons)
}

fn kind_fields(proposed: &ProposedKind, fields: &mut Map<String, Value>) {
    if proposed.kind != ColumnKind::Categorical {
        fields.insert("kind".to_owned(), json!(proposed.kind));
    }
    if let Some(format) = proposed.format {
        fields.insert("format".to_owned(), json!(format));
    }
    if let Some(separator) = proposed.separator {
        fields.insert("separator".to_owned(), json!(separator));
    }
}

/// The outermost interval of a quasi-identifier of numbers.
fn range_fields(
    observed: &Observed,
    (kind, role): (ColumnKind, ColumnRole),
    file: FileFacts,
    fields: &mut Map<String, Value>,
    reasons: &mut Vec<String>,
) {
    let is_known = role == ColumnRole::QuasiIdentifier && kind == ColumnKind::Numeric;
    let Some(range) = observed
        .numbers
        .range(file.habits.number_form)
        .filter(|_| is_known)
    else {
        return;
    };
    if file.is_whole {
        let (lo, hi) = round_range(range.lo, range.hi);
        fields.insert("domain".to_owned(), json!([plain(lo), plain(hi)]));
        reasons.push(
            "its domain is the range of its numbers, widened to round ones: widen it where later \
             files have others"
                .to_owned(),
        );
    } else {
        fields.insert("round_range".to_owned(), json!(true));
    }
}

/// A whole number without a fraction, as people write it.
fn plain(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

/// Sentences with numbers of rows and values.
fn counts(observed: &Observed, reasons: &mut Vec<String>) {
    let missing = observed.missing_rows();
    if observed.rows > 0 {
        let distinct = if observed.distinct == observed.rows {
            "all of them distinct".to_owned()
        } else {
            format!("{} of them distinct", observed.distinct)
        };
        reasons.push(format!("{} values, {distinct}", observed.rows));
    }
    if missing > 0 {
        reasons.push(format!("{missing} cells are missing"));
    }
}

/// The definition as the service accepts it. What the schema refuses of a proposal is taken back.
fn accepted(
    name: &str,
    columns: &mut [Map<String, Value>],
    reasons: &mut Reasons,
) -> Result<DatasetDefinition, SchemaError> {
    match resolved(name, columns) {
        Ok(definition) => Ok(definition),
        Err(error) => {
            for fault in &error.faults {
                let parts = fault.pointer().and_then(|it| it.strip_prefix("/columns/"));
                let Some((column, field)) = parts.and_then(|it| it.split_once('/')) else {
                    continue;
                };
                let field = field.split('/').next().unwrap_or(field);
                let Some(column) = column.parse().ok().filter(|&at: &usize| at < columns.len())
                else {
                    continue;
                };
                if OPTIONAL.contains(&field) && columns[column].remove(field).is_some() {
                    let reason =
                        format!("no `{field}` is proposed, because a schema does not take it here");
                    reasons[column].1.push(reason);
                }
            }
            resolved(name, columns)
        }
    }
}

/// The fields without which a column is still one.
const OPTIONAL: [&str; 4] = ["taxonomy", "domain", "round_range", "missing"];

/// Parses and resolves the definition, as the service does.
fn resolved(name: &str, columns: &[Map<String, Value>]) -> Result<DatasetDefinition, SchemaError> {
    let body = json!({"name": name, "columns": columns});
    let definition: DatasetDefinition = serde_json::from_value(body)
        .map_err(|error| SchemaError::new(SchemaErrorKind::Columns, error.to_string()))?;
    Schema::inline(&definition)?;
    Ok(definition)
}
