//! The schema of one job, in which columns can have other roles than declared.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Schema;
use crate::definition::json::escape;
use crate::definition::{ColumnKind, ColumnRole, JobError, JobErrorKind};

impl Schema {
    /// The schema under the roles that a job gives its columns.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use pais_core::definition::{ColumnRole, DatasetDefinition, json};
    /// use pais_core::schema::Schema;
    ///
    /// let dataset: DatasetDefinition =
    ///     json::parse(br#"{"name": "a", "columns": [{"name": "age", "role": "insensitive"}]}"#)?;
    /// let schema = Schema::inline(&dataset)?;
    /// let roles = BTreeMap::from([("age".to_owned(), ColumnRole::QuasiIdentifier)]);
    /// assert_eq!(schema.with_roles(&roles)?.columns[0].role(), ColumnRole::QuasiIdentifier);
    ///
    /// let roles = BTreeMap::from([("age".to_owned(), ColumnRole::Identifier)]);
    /// let error = schema.with_roles(&roles).unwrap_err();
    /// assert_eq!(error.faults[0].pointer(), Some("/roles/age"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`JobErrorKind::Unfit`] with a pointer for a column that is not declared, for a role that
    /// decides how rows are stored, and for roles that do not form a schema.
    pub fn with_roles(
        &self,
        roles: &BTreeMap<String, ColumnRole>,
    ) -> Result<Cow<'_, Self>, JobError> {
        if roles.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
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

    use crate::definition::ColumnRole;
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
        let roles: Option<_> = serde_json::from_value(roles).unwrap();
        let roles = roles.unwrap_or_default();
        let schema = schema.with_roles(&roles);
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
