//! Whole numbers in JSON. `5.0` is one too: JSON does not distinguish it from `5`, and programs that have only
//! floating-point numbers write it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde_with::DeserializeAs;

/// 2^53: floating-point numbers represent every whole number up to it exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A whole number of a type that may be narrower than JSON's, for [`serde_with::As`].
pub(crate) struct Whole;

impl<'de, T: TryFrom<i128>> DeserializeAs<'de, T> for Whole {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(WholeVisitor(PhantomData))
    }
}

struct WholeVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i128>> Visitor<'_> for WholeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        let number = T::try_from(value.into());
        number.map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        let number = T::try_from(value.into());
        number.map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        let found = Unexpected::Float(value);
        if value.fract() != 0.0 {
            return Err(E::invalid_type(found, &self));
        }
        let exact = (value.abs() <= EXACT).then_some(value as i128);
        let number = exact.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| E::invalid_value(found, &self))
    }
}

/// A whole number, or nothing.
///
/// # Errors
/// A value of another type, and a number that `T` cannot represent.
pub fn option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i128>,
{
    serde_with::As::<Option<Whole>>::deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_with::As;

    use super::Whole;
    use crate::definition::DocumentErrorKind::{Range, Shape};
    use crate::definition::json::parse;

    #[derive(Debug, Deserialize)]
    struct Document {
        #[serde(default, deserialize_with = "super::option")]
        small: Option<u32>,
        #[serde(default, deserialize_with = "As::<Option<Vec<Whole>>>::deserialize")]
        list: Option<Vec<i64>>,
    }

    #[test]
    fn a_number_without_a_fraction_is_whole_however_it_is_written() {
        let document: Document = parse(br#"{"small": 5.0, "list": [1, -2.0, 3e2]}"#).unwrap();
        assert_eq!(document.small, Some(5));
        assert_eq!(document.list, Some(vec![1, -2, 300]));
        // Sixteen digits: a reader that rounds twice gets a number that ends in .5.
        let document: Document = parse(br#"{"list": [4387393955628666.0]}"#).unwrap();
        assert_eq!(document.list, Some(vec![4_387_393_955_628_666]));
        let document: Document = parse(br#"{"small": null}"#).unwrap();
        assert_eq!((document.small, document.list), (None, None));
    }

    #[test]
    fn a_number_of_another_range_or_type_is_refused_at_its_place() {
        for (body, pointer, kind) in [
            (r#"{"small": 5.5}"#, "/small", Shape),
            (r#"{"small": "5"}"#, "/small", Shape),
            (r#"{"small": -1}"#, "/small", Range),
            (r#"{"small": -1.0}"#, "/small", Range),
            (r#"{"small": 4294967296}"#, "/small", Range),
            (r#"{"list": [1, 1e300]}"#, "/list/1", Range),
        ] {
            let error = parse::<Document>(body.as_bytes()).unwrap_err();
            assert_eq!(error.kind, kind, "{body}");
            assert_eq!(error.faults[0].pointer(), Some(pointer), "{body}");
        }
    }
}
