//! Job definitions at rest. The values that a job lists can be raw values that no release shows, so
//! the database holds them sealed.

use serde_json::{Value, json};
use sqlx::FromRow;

use crate::ids::JobId;

use super::StoreError;
use super::seal::{DataKey, SealedItem};

/// A definition as the database holds it.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct DefinitionAtRest {
    /// Without the values that it lists.
    pub shown: Value,
    /// All of it, sealed; `None` if it lists no values.
    pub sealed: Option<Vec<u8>>,
}

impl DefinitionAtRest {
    /// Seals the definition of a job.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub(crate) fn seal(key: &DataKey, job: JobId, definition: &Value) -> Result<Self, StoreError> {
        let shown = without_values(definition);
        let sealed = if shown == *definition {
            None
        } else {
            let all = serde_json::to_vec(definition)?;
            Some(key.seal(SealedItem::Definition(job), &all)?)
        };
        Ok(Self { shown, sealed })
    }

    /// The whole definition.
    ///
    /// # Errors
    /// When it cannot be decrypted.
    pub(crate) fn open(self, key: &DataKey, job: JobId) -> Result<Value, StoreError> {
        let Some(sealed) = self.sealed else {
            return Ok(self.shown);
        };
        let all = key.open(SealedItem::Definition(job), &sealed)?;
        serde_json::from_slice(&all).map_err(|_| StoreError::Damaged("a job"))
    }
}

/// A definition without the sensitive values and the pre-generalized values that it lists. An
/// empty object in place of the lists of sensitive values says that there were some.
pub(super) fn without_values(definition: &Value) -> Value {
    let mut shown = definition.clone();
    if let Some(listed @ Value::Object(_)) = shown.pointer_mut("/privacy/sensitive_values") {
        *listed = json!({});
    }
    let columns = shown.get_mut("pre_generalization");
    for column in columns.and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(column) = column.1.as_object_mut() {
            column.remove("values");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::DefinitionAtRest;
    use crate::db::key_ring::KeyRing;
    use crate::ids::JobId;
    use pais_core::definition::DatasetId;

    #[test]
    fn listed_values_are_sealed_and_open_with_the_key_of_the_dataset() {
        let (dataset, job) = (DatasetId::new(), JobId::new());
        let ring = KeyRing::new(&[7; 32]);
        let wrapped = ring.new_data_key(dataset).unwrap();
        let key = ring.open(dataset, &wrapped).unwrap();
        let definition = json!({
            "privacy": { "model": "lkc", "k": [2, 3], "sensitive_values": { "Surgery": ["x"] } },
            "pre_generalization": { "Job": { "level": 1, "values": { "0": ["y"] } }, "Sex": {} },
            "release": true,
        });
        let at_rest = DefinitionAtRest::seal(&key, job, &definition).unwrap();
        let shown = json!({
            "privacy": { "model": "lkc", "k": [2, 3], "sensitive_values": {} },
            "pre_generalization": { "Job": { "level": 1 }, "Sex": {} },
            "release": true,
        });
        assert_eq!(at_rest.shown, shown);
        assert_eq!(at_rest.open(&key, job).unwrap(), definition);

        let without = DefinitionAtRest::seal(&key, job, &shown).unwrap();
        assert_eq!((without.shown, without.sealed), (shown, None));
    }
}
