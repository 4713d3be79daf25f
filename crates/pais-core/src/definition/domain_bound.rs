//! The ends of a declared domain, as they are written in JSON.

use serde::{Deserialize, Serialize};

/// An end of a column's domain.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum DomainBound {
    /// Of a numeric column.
    Number(f64),
    /// Of a date or datetime column: `"1900-01-01"`.
    Date(String),
}

impl<'de> Deserialize<'de> for DomainBound {
    /// Not derived: a derived untagged enum would not say what is expected.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoundVisitor;
        impl serde::de::Visitor<'_> for BoundVisitor {
            type Value = DomainBound;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, or a date as text")
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
                Ok(DomainBound::Number(number))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(DomainBound::Number(number as f64))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(DomainBound::Number(number as f64))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(DomainBound::Date(text.to_owned()))
            }
        }
        deserializer.deserialize_any(BoundVisitor)
    }
}
