//! The schema of one job, in which columns can have other roles than declared.

use std::borrow::Cow;

use super::Schema;
use crate::definition::json::escape;
use crate::definition::{ColumnKind, ColumnRole, JobDefinition, JobError, JobErrorKind};

impl Schema {
    /// The schema under the roles that a job gives its columns.
    ///
    /// ```
    /// use pais_core::definition::{ColumnRole, DatasetDefinition, JobDefinition, json};
    /// use pais_core::schema::Schema;
    ///
    /// let dataset: DatasetDefinition =
    ///     json::parse(br#"{"name": "a", "columns": [{"name": "age", "role": "insensitive"}]}"#)?;
    /// let schema = Schema::inline(&dataset)?;
    /// let job: JobDefinition = json::parse(
    ///     br#"{"privacy": {"model": "k_anonymity", "k": 2}, "roles": {"age": "quasi_identifier"}}"#,
    /// )?;
    /// assert_eq!(schema.with_roles(&job)?.columns[0].role, ColumnRole::QuasiIdentifier);
    ///
    /// let job: JobDefinition = json::parse(
    ///     br#"{"privacy": {"model": "k_anonymity", "k": 2}, "roles": {"age": "identifier"}}"#,
    /// )?;
    /// let error = schema.with_roles(&job).unwrap_err();
    /// assert_eq!(error.faults[0].pointer(), Some("/roles/age"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`JobErrorKind::Unfit`] with a pointer for a column that is not declared, for a role that
    /// decides how rows are stored, and for roles that make no schema.
    pub fn with_roles(&self, job: &JobDefinition) -> Result<Cow<'_, Self>, JobError> {
        let Some(roles) = job.roles.as_ref().filter(|roles| !roles.is_empty()) else {
            return Ok(Cow::Borrowed(self));
        };
        let mut schema = self.clone();
        for (name, &role) in roles {
            let refuse = |detail: &str| {
                let pointer = format!("/roles/{}", escape(name));
                Err(JobError::at(JobErrorKind::Unfit, pointer, detail))
            };
            let mut columns = schema.columns.iter_mut();
            let Some(column) = columns.find(|column| *column.name == **name) else {
                return refuse("the dataset has no column with this name");
            };
            if is_of_storage(role) || is_of_storage(column.role) {
                return refuse(
                    "rows are stored by the roles `identifier` and `subject`, so no job changes \
                     them; declare another dataset",
                );
            }
            let is_compared = matches!(role, ColumnRole::Sensitive | ColumnRole::Class);
            if column.kind == ColumnKind::Set && is_compared {
                return refuse(
                    "a set can be a quasi-identifier or insensitive, not sensitive or the class",
                );
            }
            column.role = role;
        }
        let classes = schema
            .columns
            .iter()
            .filter(|column| column.role == ColumnRole::Class);
        if classes.count() > 1 {
            let detail = "more than one column has the role class; give the declared one another \
                          role in this job";
            return Err(JobError::at(JobErrorKind::Unfit, "/roles", detail));
        }
        Ok(Cow::Owned(schema))
    }
}

/// Whether a role decides how the cells of a column are stored.
fn is_of_storage(role: ColumnRole) -> bool {
    matches!(role, ColumnRole::Identifier | ColumnRole::Subject)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::definition::{ColumnRole, JobDefinition};
    use crate::schema::Schema;

    fn with_roles(roles: Value) -> Result<Vec<ColumnRole>, String> {
        let definition = json!({"name": "t", "columns": [
            {"name": "id", "role": "identifier"},
            {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
            {"name": "a/b", "role": "sensitive"},
            {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
            {"name": "class", "role": "class"},
        ]});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let job = json!({"privacy": {"model": "k_anonymity", "k": 2}, "roles": roles});
        let job: JobDefinition = serde_json::from_value(job).unwrap();
        let schema = schema.with_roles(&job);
        let schema = schema.map_err(|error| error.faults[0].pointer().unwrap().to_owned())?;
        Ok(schema.columns.iter().map(|column| column.role).collect())
    }

    #[test]
    fn a_job_gives_columns_other_roles() {
        use ColumnRole::{Class, Identifier, Insensitive, QuasiIdentifier, Sensitive};
        let declared = vec![
            Identifier,
            QuasiIdentifier,
            Sensitive,
            QuasiIdentifier,
            Class,
        ];
        assert_eq!(with_roles(json!(null)), Ok(declared.clone()));
        assert_eq!(with_roles(json!({})), Ok(declared));
        let roles = json!({"a/b": "insensitive", "age": "class", "class": "quasi_identifier"});
        let expected = vec![
            Identifier,
            Class,
            Insensitive,
            QuasiIdentifier,
            QuasiIdentifier,
        ];
        assert_eq!(with_roles(roles), Ok(expected));
    }

    #[test]
    fn roles_that_do_not_fit_are_refused_with_their_place() {
        for (roles, pointer) in [
            (json!({"id": "insensitive"}), "/roles/id"),
            (json!({"age": "identifier"}), "/roles/age"),
            (json!({"age": "subject"}), "/roles/age"),
            (json!({"none": "insensitive"}), "/roles/none"),
            (json!({"a/b": "subject"}), "/roles/a~1b"),
            (json!({"drugs": "sensitive"}), "/roles/drugs"),
            (json!({"age": "class"}), "/roles"),
        ] {
            assert_eq!(
                with_roles(roles.clone()),
                Err(pointer.to_owned()),
                "{roles}"
            );
        }
    }
}
