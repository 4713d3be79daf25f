//! The data that releases are decided on: their tables, and the persons and sensitive values of the raw table.

use pais_core::cancellation::Cancellation;
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{Form, ReleasedColumn, ReleasedTable, Subjects, Table};
use pais_verify::{ComposedRelease, Composition, RawRows, Recoded, VerifyError, compose};

/// A release that a recipient has, or is about to get.
#[derive(Clone, Debug)]
pub struct KnownRelease {
    /// The table `data`, or `qit` of an anatomized release.
    pub table: ReleasedTable,
    /// The raw row of each released row.
    pub source_rows: Vec<u32>,
    /// The quasi-identifiers of its job.
    pub quasi_identifiers: Vec<Box<str>>,
    /// The sensitive columns of its job.
    pub sensitive: Vec<Box<str>>,
    /// The model that it was made under, with its listed values as the job has them.
    pub model: PrivacyModel,
    /// How its labels relate.
    pub recoded: Recoded,
}

impl KnownRelease {
    fn composed<'a>(&'a self, model: &'a PrivacyModel) -> ComposedRelease<'a> {
        ComposedRelease {
            table: &self.table,
            source_rows: &self.source_rows,
            quasi_identifiers: &self.quasi_identifiers,
            sensitive: &self.sensitive,
            model,
            recoded: self.recoded,
        }
    }
}

/// The raw rows that releases come from: their persons, and their values as one of the releases shows them.
#[derive(Clone, Debug)]
pub struct RawTable {
    schema: Schema,
    rows: usize,
    subjects: Option<Subjects>,
    /// All stored columns but the subject, by name.
    columns: Vec<ReleasedColumn>,
}

impl RawTable {
    /// The raw rows of a table of this schema, which is brought to canonical form.
    pub fn new(schema: &Schema, table: Table) -> Self {
        let rows = table.rows;
        let table = table.canonical(schema);
        let subject = schema.subject();
        let subjects = subject.and_then(|column| table.columns.get(column));
        let subjects = subjects.cloned().and_then(Subjects::new);
        let stored = schema.stored().zip(table.columns).enumerate();
        let columns = stored.filter(|(position, _)| Some(*position) != subject);
        let columns = columns.map(|(_, (spec, mut column))| {
            // This is what a release shows, and so what an adversary infers.
            column.round(spec);
            ReleasedColumn {
                name: spec.name().into(),
                form: Form::untouched(spec),
                column,
                missing: spec.missing().to_vec(),
            }
        });
        Self {
            rows,
            subjects,
            columns: columns.collect(),
            schema: schema.clone(),
        }
    }

    /// A model with its listed values in the form of the cells.
    pub(crate) fn canonical(&self, model: &PrivacyModel) -> PrivacyModel {
        let mut model = model.clone();
        if let PrivacyModel::Lkc(lkc) = &mut model {
            for (name, values) in lkc.sensitive_values.iter_mut().flatten() {
                let Some(spec) = self.schema.stored_named(name) else {
                    continue;
                };
                for value in values {
                    *value = spec.rounded(&spec.canonical(value)).into_owned();
                }
            }
        }
        model
    }

    /// The person of a row; a number of its own if each row is a person, and for
    /// [`pais_verify::NOWHERE`].
    pub fn person(&self, row: u32) -> u32 {
        let subjects = self.subjects.as_ref();
        let person = subjects.and_then(|subjects| subjects.of_row().get(row as usize));
        person.copied().unwrap_or(row)
    }

    /// A column, by name.
    pub(crate) fn column(&self, name: &str) -> Option<&ReleasedColumn> {
        self.columns.iter().find(|column| *column.name == *name)
    }

    /// Decides what releases say together, as [`compose`].
    ///
    /// # Errors
    /// As [`compose`].
    pub fn compose(
        &self,
        releases: &[&KnownRelease],
        cancellation: &Cancellation,
    ) -> Result<Composition, VerifyError> {
        let models = releases.iter().map(|it| self.canonical(&it.model));
        let models: Vec<PrivacyModel> = models.collect();
        let composed = releases.iter().zip(&models);
        let composed: Vec<ComposedRelease> = composed
            .map(|(release, model)| release.composed(model))
            .collect();
        let is_sensitive = |name: &str| {
            let mut named = releases.iter().flat_map(|release| &release.sensitive);
            named.any(|sensitive| **sensitive == *name)
        };
        let sensitive = self.columns.iter().filter(|it| is_sensitive(&it.name));
        let sensitive: Vec<ReleasedColumn> = sensitive.cloned().collect();
        let raw = RawRows {
            rows: self.rows,
            sensitive: &sensitive,
            subjects: self.subjects.as_ref().map(Subjects::of_row),
        };
        compose(&composed, raw, cancellation)
    }
}
