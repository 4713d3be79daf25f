//! The description of a package by the Frictionless Data Package standard, version 1.
//!
//! Words for missing are in the fields, as in version 2. That version has no type for files that are
//! not tables, without which Frictionless would read Parquet as a table.

use pais_core::codebook::Codebook;
use pais_core::definition::ColumnRole;
use pais_core::table::Form;
use pais_core::taxonomy::MISSING_LABEL;
use pais_io::FileFormat;
use pais_package::PackagedFile;
use serde_json::{Map, Value, json};
use time::format_description::well_known::Rfc3339;

use crate::db::StoreError;
use crate::db::releases::{StoredColumn, StoredRelease, StoredTable};

/// Maximum number of labels of a column that are listed as its possible values.
const MOST_LABELS: usize = 1_000;

/// A table of a package, with its two files.
pub(crate) struct PackagedTable {
    pub(crate) table: StoredTable,
    pub(crate) csv: PackagedFile,
    pub(crate) parquet: PackagedFile,
}

/// The content of `datapackage.json`: a resource for each file of a table, with the fields of the CSV. Roles,
/// kinds and taxonomies are in the custom property `pais`, together with the privacy model, the cut and the
/// purpose of the grant.
///
/// # Errors
/// [`StoreError::Damaged`] for a release whose codebook cannot be read.
pub(crate) fn descriptor(
    release: &StoredRelease,
    tables: &[PackagedTable],
) -> Result<Value, StoreError> {
    let codebook = release.codebook()?;
    let resources: Vec<Value> = tables
        .iter()
        .flat_map(|table| resources(release, &codebook, table))
        .collect();
    let dataset = &codebook.dataset;
    let pais = json!({
        "release_id": release.id,
        "job_id": release.job,
        "dataset_id": release.dataset,
        "rows": release.rows,
        "suppressed_rows": release.suppressed_rows,
        "privacy": release.privacy,
        "verification": release.verification,
        "cut": release.cut,
        "codebook": release.codebook,
        "purpose": release.purpose,
    });
    let document = json!({
        "profile": "data-package",
        "name": format!("release-{}", release.id),
        "id": release.id,
        "resources": resources,
        "pais": without_null(pais, &["cut", "codebook", "purpose"]),
        "title": release.name.as_ref().unwrap_or(&dataset.name),
        "description": dataset.description,
        "created": release.created_at.format(&Rfc3339).ok(),
    });
    Ok(without_null(document, &["description", "created"]))
}

/// An object without the null ones of these fields.
fn without_null(mut document: Value, optional: &[&str]) -> Value {
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|name, value| !value.is_null() || !optional.contains(&name.as_str()));
    }
    document
}

/// The resources of a table: its CSV, with a schema, and its Parquet, which has one itself.
fn resources(release: &StoredRelease, codebook: &Codebook, packaged: &PackagedTable) -> [Value; 2] {
    let PackagedTable {
        table,
        csv,
        parquet,
    } = packaged;
    let stem = csv.name.trim_end_matches(".csv");
    // Names of resources have no capital letters, and are unique.
    let stem = match stem.to_lowercase() {
        lower if lower == stem => lower,
        lower => format!("{lower}-{}", table.position),
    };
    let fields: Vec<Value> = table
        .columns
        .iter()
        .map(|shape| field(shape, release, codebook))
        .collect();
    let mut text = file(csv, &stem, FileFormat::CSV, "tabular-data-resource");
    text["encoding"] = json!("utf-8");
    text["schema"] = json!({ "fields": fields, "missingValues": [""] });
    let name = format!("{stem}-parquet");
    let mut columns = file(parquet, &name, FileFormat::Parquet, "data-resource");
    // Otherwise Frictionless reads it as a table, for which it needs another library.
    columns["type"] = json!("file");
    [text, columns]
}

fn file(file: &PackagedFile, name: &str, format: FileFormat, profile: &str) -> Value {
    json!({
        "name": name,
        "profile": profile,
        "path": file.name,
        "format": format.as_str(),
        "mediatype": format.media_type(),
        "bytes": file.bytes,
        "hash": format!("sha256:{}", file.sha256),
    })
}

/// A field of Table Schema. Labels are text, with those of the cut as their possible values.
fn field(shape: &StoredColumn, release: &StoredRelease, codebook: &Codebook) -> Value {
    let mut constraints = Map::new();
    let kind = match shape.form {
        Form::Number => "number",
        Form::Integer => {
            constraints.insert("minimum".to_owned(), json!(1));
            "integer"
        }
        Form::Day => "date",
        Form::Generalized => {
            let labels = release
                .cut
                .as_ref()
                .and_then(|cut| cut[&*shape.name].as_array());
            let labels = labels.filter(|labels| labels.len() <= MOST_LABELS);
            constraints.extend(labels.map(|labels| ("enum".to_owned(), json!(labels))));
            "string"
        }
        Form::Text | Form::Moment | Form::Set { .. } => "string",
    };
    let mut columns = codebook.columns.iter();
    let known = columns.find(|it| *it.name == *shape.name);
    let quasi_identifier = known.filter(|known| known.role == ColumnRole::QuasiIdentifier);
    let field = json!({
        "name": shape.name,
        "type": kind,
        "constraints": (!constraints.is_empty()).then_some(constraints),
        "missingValues": missing_values(shape),
        "pais:role": known.map(|known| known.role),
        "pais:kind": known.map(|known| known.kind),
        "pais:isGeneralized": quasi_identifier.map(|_| shape.form == Form::Generalized),
    });
    let optional = [
        "constraints",
        "missingValues",
        "pais:role",
        "pais:kind",
        "pais:isGeneralized",
    ];
    without_null(field, &optional)
}

/// The cells of a field that mean missing; `None` if that is only the empty cell, as the table declares, or if
/// there are none. A word of one column may be a value of another.
fn missing_values(shape: &StoredColumn) -> Option<Vec<&str>> {
    let words: Vec<&str> = match shape.form {
        Form::Generalized => vec![MISSING_LABEL],
        _ => shape.missing.iter().map(AsRef::as_ref).collect(),
    };
    Some(words).filter(|words| !matches!(words.as_slice(), [] | [""]))
}
