//! Secrets in settings.

use figment::value::Value;
use secrecy::SecretString;
use serde::de::{self, Deserialize, Deserializer};

/// Reads a secret; an empty one is not set, because shells and compose files write it that way. No error quotes
/// it, whatever type the parser took it for.
pub(crate) fn optional<'de, D>(deserializer: D) -> Result<Option<SecretString>, D::Error>
where
    D: Deserializer<'de>,
{
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Empty(..)) => Ok(None),
        Some(Value::String(_, text)) if text.is_empty() => Ok(None),
        Some(Value::String(_, text)) => Ok(Some(SecretString::from(text))),
        Some(_) => Err(de::Error::custom("a secret must be text; put it in quotes")),
    }
}
