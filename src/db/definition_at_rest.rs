//! The definitions of jobs and publications: the values that they list are sealed with the key of the dataset.

use serde_json::{Value, json};
use sqlx::{FromRow, PgExecutor};

use pais_core::definition::DatasetId;

use super::key_ring::KeyRing;
use super::seal::{DataKey, SealedItem};
use super::{Store, StoreError};

/// A definition as the database holds it.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct DefinitionAtRest {
    /// Without the values that it lists.
    pub shown: Value,
    /// All of it, sealed; `None` if it lists no values.
    pub sealed: Option<Vec<u8>>,
}

impl DefinitionAtRest {
    /// Seals the definition of a job or publication, as `item`.
    ///
    /// # Errors
    /// When the operating system returns no random bytes.
    pub(crate) fn seal(
        key: &DataKey,
        item: SealedItem,
        definition: &Value,
    ) -> Result<Self, StoreError> {
        let shown = without_values(definition);
        let sealed = if shown == *definition {
            None
        } else {
            let all = serde_json::to_vec(definition)?;
            Some(key.seal(item, &all)?)
        };
        Ok(Self { shown, sealed })
    }

    /// The whole definition.
    ///
    /// # Errors
    /// When it cannot be decrypted.
    pub(crate) fn open(self, key: &DataKey, item: SealedItem) -> Result<Value, StoreError> {
        let Some(sealed) = self.sealed else {
            return Ok(self.shown);
        };
        let all = key.open(item, &sealed)?;
        serde_json::from_slice(&all).map_err(|_| StoreError::Damaged("a job"))
    }
    /// The whole definition; without the values that it lists if its dataset was deleted. `executor` is a connection
    /// or a transaction.
    ///
    /// # Errors
    /// When the database fails, or it cannot be decrypted.
    pub(super) async fn open_if_kept(
        self,
        store: &Store,
        executor: impl PgExecutor<'_>,
        keys: &KeyRing,
        dataset: DatasetId,
        item: SealedItem,
    ) -> Result<Value, StoreError> {
        let wrapped = match self.sealed {
            Some(_) => store.data_keys().read(executor, dataset).await?,
            None => None,
        };
        match wrapped {
            Some(wrapped) => self.open(&keys.open(dataset, &wrapped)?, item),
            None => Ok(self.shown),
        }
    }
}

/// A definition without the sensitive values and the pre-generalized values that it lists. An empty object in
/// place of the lists of sensitive values shows that there were some.
fn without_values(definition: &Value) -> Value {
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

    use super::{DefinitionAtRest, SealedItem};
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
        let item = SealedItem::Definition(job);
        let at_rest = DefinitionAtRest::seal(&key, item, &definition).unwrap();
        let shown = json!({
            "privacy": { "model": "lkc", "k": [2, 3], "sensitive_values": {} },
            "pre_generalization": { "Job": { "level": 1 }, "Sex": {} },
            "release": true,
        });
        assert_eq!(at_rest.shown, shown);
        assert_eq!(at_rest.open(&key, item).unwrap(), definition);

        let without = DefinitionAtRest::seal(&key, item, &shown).unwrap();
        assert_eq!((without.shown, without.sealed), (shown, None));
    }
}
