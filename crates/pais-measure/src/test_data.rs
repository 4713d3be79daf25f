//! What the tests of several modules share.

use std::sync::Arc;

use pais_core::schema::Schema;
use serde_json::{Value, json};

/// The schema with these columns.
pub(crate) fn schema(columns: Value) -> Arc<Schema> {
    let definition = serde_json::from_value(json!({"name": "t", "columns": columns})).unwrap();
    Arc::new(Schema::inline(&definition).unwrap())
}
