//! Parameters that take one value, or a list of values to try.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

/// One value, or the values of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// One value.
    One(T),
    /// A list of values to try, in this order.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// All values.
    pub fn all(&self) -> std::slice::Iter<'_, T> {
        match self {
            Self::One(value) => std::slice::from_ref(value).iter(),
            Self::Many(values) => values.iter(),
        }
    }

    /// The list; `None` for one value.
    pub(crate) fn many(&self) -> Option<&[T]> {
        match self {
            Self::One(_) => None,
            Self::Many(values) => Some(values),
        }
    }
}

impl<T> From<T> for OneOrMany<T> {
    fn from(value: T) -> Self {
        Self::One(value)
    }
}

/// A derived untagged enum would lose the pointer to an invalid element and the message of its type.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor(PhantomData))
    }
}

struct OneOrManyVisitor<T>(PhantomData<T>);

/// An element of a list of values.
struct Element<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Element<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ElementVisitor(PhantomData))
    }
}

struct ElementVisitor<T>(PhantomData<T>);

/// 2^53: floating-point numbers represent every whole number up to it exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number as `T`; `2.0` is the whole number 2. If `T` takes only whole numbers, a whole number beyond 2^53 is
/// out of its range.
fn number<'de, T: Deserialize<'de>, E: serde::de::Error>(value: f64) -> Result<T, E> {
    let whole = |number: i64| T::deserialize(IntoDeserializer::<E>::into_deserializer(number));
    let is_whole = value.fract() == 0.0;
    if is_whole && value.abs() <= EXACT {
        return whole(value as i64);
    }
    T::deserialize(value.into_deserializer()).map_err(|error: E| {
        if is_whole && whole(0).is_ok() {
            E::invalid_value(Unexpected::Float(value), &"a whole number")
        } else {
            error
        }
    })
}

/// The visits of one value, which `$wrap` turns into the visitor's value.
macro_rules! one_value {
    ($wrap:path) => {
        one_value!($wrap, visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_str: &str);

        fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
            number(value).map($wrap)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map($wrap)
        }
    };
    ($wrap:path, $($visit:ident: $type:ty),+) => {$(
        fn $visit<E: serde::de::Error>(self, value: $type) -> Result<Self::Value, E> {
            T::deserialize(value.into_deserializer()).map($wrap)
        }
    )+};
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrManyVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value or a list of values")
    }

    one_value!(OneOrMany::One);

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        let list = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        let values = list.into_iter().map(|Element(value)| value);
        Ok(OneOrMany::Many(values.collect()))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ElementVisitor<T> {
    type Value = Element<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value")
    }

    one_value!(Element);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::OneOrMany;
    use crate::definition::json::parse;
    use crate::definition::{DocumentErrorKind, JobDefinition, JobErrorKind};

    fn k_of_text(k: &str) -> OneOrMany<i64> {
        let job = format!(r#"{{"privacy": {{"model": "k_anonymity", "k": {k}}}}}"#);
        parse::<JobDefinition>(job.as_bytes())
            .unwrap()
            .privacy
            .k
            .unwrap()
    }

    fn k_of(k: &Value) -> OneOrMany<i64> {
        let job = json!({"privacy": {"model": "k_anonymity", "k": k}});
        let job: JobDefinition = parse(job.to_string().as_bytes()).unwrap();
        assert_eq!(serde_json::to_value(&job.privacy.k).unwrap(), *k);
        job.privacy.k.unwrap()
    }

    proptest! {
        #[test]
        fn a_value_or_a_list_is_read_and_written_as_it_is(
            one in any::<i64>(),
            many in prop::collection::vec(any::<i64>(), 0..5),
        ) {
            let value = k_of(&one.into());
            prop_assert_eq!(&value, &OneOrMany::One(one));
            prop_assert_eq!(value.many(), None);
            let list = k_of(&many.clone().into());
            prop_assert_eq!(list.many(), Some(&*many));
        }
    }

    #[test]
    fn a_whole_number_may_have_a_point() {
        assert_eq!(k_of_text("5.0"), OneOrMany::One(5));
        assert_eq!(k_of_text("[2, 3.0, 4e0]"), OneOrMany::Many(vec![2, 3, 4]));
    }

    #[test]
    fn a_whole_number_beyond_all_is_out_of_range_and_of_no_wrong_type() {
        for (k, pointer, detail) in [
            ("18446744073709551615", "", "the number is too large"),
            ("18446744073709551616", "", "the number is too large"),
            ("-100000000000000000000000", "", "the number is too small"),
            ("[2, 1e23]", "/1", "the number is too large"),
        ] {
            let job = format!(r#"{{"privacy": {{"model": "k_anonymity", "k": {k}}}}}"#);
            let error = parse::<JobDefinition>(job.as_bytes()).unwrap_err();
            assert_eq!(error.kind, DocumentErrorKind::Range, "{k}");
            assert_eq!(error.detail, detail, "{k}");
            let pointer = format!("/privacy/k{pointer}");
            assert_eq!(error.faults[0].pointer(), Some(&*pointer), "{k}");
        }
        for (l, kind) in [
            ("18446744073709551616", JobErrorKind::OutOfRange),
            ("-1e23", JobErrorKind::OutOfRange),
            ("4294967296", JobErrorKind::OutOfRange),
            ("2.5", JobErrorKind::Shape),
        ] {
            let job = format!(r#"{{"privacy": {{"model": "lkc", "l": {l}, "k": 2, "c": 1}}}}"#);
            let job: JobDefinition = parse(job.as_bytes()).unwrap();
            let error = job.parse().unwrap_err();
            assert_eq!(
                (error.kind, error.faults[0].pointer()),
                (kind, Some("/privacy/l")),
                "{l}"
            );
        }
    }

    #[test]
    fn a_wrong_type_is_reported_where_it_is() {
        for (k, pointer) in [
            (json!([2, "x", 3]), "/privacy/k/1"),
            (json!([2, [3]]), "/privacy/k/1"),
            (json!([1.5]), "/privacy/k/0"),
            (json!("x"), "/privacy/k"),
            (json!(true), "/privacy/k"),
            (json!({"from": 2}), "/privacy/k"),
        ] {
            let job = json!({"privacy": {"model": "k_anonymity", "k": k}});
            let error = parse::<JobDefinition>(job.to_string().as_bytes()).unwrap_err();
            assert_eq!(error.kind, DocumentErrorKind::Shape, "{k}");
            assert_eq!(error.faults[0].pointer(), Some(pointer), "{k}");
        }
    }
}
