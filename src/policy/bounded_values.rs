//! Which sensitive values a policy requires to be bounded: a limit on confidence has no effect if the model bounds
//! other values than the harmful ones.

use std::borrow::Cow;

use pais_core::definition::json::escape;
use pais_core::definition::{ColumnRole, JobDefinition, ModelKind, OneOrMany, PrivacyDefinition};
use pais_core::look_alike::visible_text;
use pais_core::rejection::Fault;
use pais_core::schema::{MOST_NAME_BYTES, Schema, SchemaColumn};
use pais_core::taxonomy::interval::canonical_number;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, IntoDeserializer, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{MOST_NAMES, Policy, ReleaseProperties, is_of, is_released_of};

/// Maximum number of values that a policy names of a column.
const MOST_VALUES: usize = 10_000;

/// Maximum number of bytes of a value that a policy names.
const VALUE_BYTES: usize = 1_024;

/// Values of a column that have to be bounded.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum BoundedValues {
    /// The word `all`.
    All(AllValues),
    /// These.
    Listed(Vec<String>),
}

/// The word for every value of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllValues {
    /// Every value.
    All,
}

impl<'de> Deserialize<'de> for BoundedValues {
    /// Not derived: a derived untagged enum would lose the pointer to an invalid value, and not say what is expected.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValuesVisitor;
        impl<'de> Visitor<'de> for ValuesVisitor {
            type Value = BoundedValues;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the word \"all\" or a list of values")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                let all = AllValues::deserialize(word.into_deserializer());
                all.map(BoundedValues::All)
                    .map_err(|_: E| E::invalid_value(Unexpected::Str(word), &self))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(BoundedValues::Listed)
            }
        }
        deserializer.deserialize_any(ValuesVisitor)
    }
}

/// What a model bounds in a column.
enum Bound<'p> {
    /// The confidence in every value, or the diversity of the column.
    Every,
    /// The confidence in these values.
    Listed(&'p [String]),
    /// Nothing; the place of the cause below `/privacy`.
    Nothing(&'static str),
}

impl Policy {
    /// What is wrong with the line `sensitive_values`.
    pub(super) fn faults_of_values(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let Some(columns) = &self.sensitive_values else {
            return faults;
        };
        let is_name = |name: &String| (1..=MOST_NAME_BYTES).contains(&name.len());
        if columns.len() > MOST_NAMES || !columns.keys().all(is_name) {
            let detail =
                "`sensitive_values` has at most 1000 columns, with names of 1 to 1,024 bytes";
            faults.push(Fault::at("/sensitive_values", detail));
        }
        for (column, values) in columns {
            let BoundedValues::Listed(values) = values else {
                continue;
            };
            let fits = (1..=MOST_VALUES).contains(&values.len())
                && values.iter().all(|value| value.len() <= VALUE_BYTES);
            if !fits {
                let detail = "name 1 to 10000 values of at most 1024 bytes, or write \"all\"";
                faults.push(Fault::at(
                    format!("/sensitive_values/{}", escape(column)),
                    detail,
                ));
            }
        }
        faults
    }

    /// What a job leaves unbounded although the policy requires a bound, with pointers into the job.
    pub(super) fn unbounded_in_job(&self, job: &JobDefinition, schema: &Schema) -> Vec<Fault> {
        let privacy = &job.privacy;
        let given = |name: &str| {
            job.roles
                .as_ref()
                .and_then(|roles| roles.get(name))
                .copied()
        };
        let Some(columns) = &self.sensitive_values else {
            let released_otherwise = schema.stored().filter(|spec| {
                let given = given(spec.name());
                self.c_max.is_some()
                    && spec.role() == ColumnRole::Sensitive
                    && matches!(given, Some(ColumnRole::Insensitive | ColumnRole::Class))
            });
            let roles = released_otherwise.map(|spec| {
                let name = spec.name();
                let detail = format!(
                    "the policy's `c_max` bounds every sensitive column, and `{name}` would be \
                     released as it is; leave its role, or have the policy's `sensitive_values` name \
                     what has to be bounded"
                );
                Fault::at(format!("/roles/{}", escape(name)), detail)
            });
            return self.lists_some(privacy).into_iter().chain(roles).collect();
        };
        let mut faults = Vec::new();
        for (name, required) in columns {
            for spec in schema.stored().filter(|spec| is_of(spec, name)) {
                let given = given(spec.name());
                match given.unwrap_or(spec.role()) {
                    ColumnRole::Identifier | ColumnRole::Subject => continue,
                    ColumnRole::Sensitive => {}
                    _ => {
                        let pointer = match given {
                            Some(_) => format!("/roles/{}", escape(spec.name())),
                            None => "/dataset_id".to_owned(),
                        };
                        faults.push(Fault::at(pointer, must_be_sensitive(name)));
                        continue;
                    }
                }
                let words = spec.missing().iter().map(AsRef::as_ref);
                if names_missing(required, words, Some(spec)) {
                    faults.push(Fault::at("/dataset_id", must_be_values(name)));
                }
                faults.extend(unbounded(privacy, spec.name(), required, Some(spec)));
            }
        }
        faults
    }

    /// What a finished release leaves unbounded although the policy requires a bound.
    pub(super) fn unbounded_in_release(&self, release: &ReleaseProperties<'_>) -> Vec<String> {
        let privacy = release.privacy;
        let Some(columns) = &self.sensitive_values else {
            return self
                .lists_some(privacy)
                .into_iter()
                .map(|it| it.detail)
                .collect();
        };
        let named = columns.iter().flat_map(|(name, required)| {
            let of_name = release.columns.iter();
            let of_name = of_name.filter(|column| is_released_of(column, name));
            of_name.map(move |column| (name, required, column))
        });
        let found = named.filter_map(|(name, required, column)| match column.role {
            ColumnRole::Identifier | ColumnRole::Subject => None,
            ColumnRole::Sensitive => {
                let words = column.missing.iter().flatten().map(String::as_str);
                if names_missing(required, words, None) {
                    return Some(must_be_values(name));
                }
                unbounded(privacy, &column.name, required, None).map(|fault| fault.detail)
            }
            _ => Some(must_be_sensitive(name)),
        });
        found.collect()
    }

    /// The fault of a model that bounds listed values only, where the policy bounds the confidence
    /// in all.
    fn lists_some(&self, privacy: &PrivacyDefinition) -> Option<Fault> {
        self.c_max?;
        privacy.sensitive_values.as_ref()?;
        let detail = "the policy's `c_max` bounds the confidence in every sensitive value; leave \
                      `sensitive_values` out, or have the policy's `sensitive_values` name what has \
                      to be bounded";
        Some(Fault::at("/privacy/sensitive_values", detail))
    }
}

/// Why a model does not bound the values of a sensitive column that a policy names. `spec` is the
/// column as it is declared, where that is known.
fn unbounded(
    privacy: &PrivacyDefinition,
    column: &str,
    required: &BoundedValues,
    spec: Option<&SchemaColumn>,
) -> Option<Fault> {
    let line = "the policy's `sensitive_values`";
    let (place, detail) = match (bound(privacy, column), required) {
        (Bound::Every, _) => return None,
        (Bound::Nothing(place), _) => (
            place.to_owned(),
            format!("{line} names `{column}`, of which this model bounds nothing"),
        ),
        (Bound::Listed(listed), BoundedValues::Listed(values)) => {
            let form = |value: &String| form(spec, value).into_owned();
            let listed: Vec<String> = listed.iter().map(form).collect();
            let is_missing = |value: &&String| !listed.contains(&form(value));
            let missing = values.iter().filter(is_missing).count();
            if missing == 0 {
                return None;
            }
            let detail = format!(
                "{line} names {} of `{column}`, of which {missing} are not listed; list them, or \
                 leave `sensitive_values` out",
                values.len()
            );
            (place_of_values(privacy, column), detail)
        }
        (Bound::Listed(_), BoundedValues::All(_)) => {
            let detail = format!(
                "{line} has every value of `{column}` bounded; leave `sensitive_values` out"
            );
            (place_of_values(privacy, column), detail)
        }
    };
    Some(Fault::at(format!("/privacy/{place}"), detail))
}

/// The place of a column's list, or of all lists if it has none.
fn place_of_values(privacy: &PrivacyDefinition, column: &str) -> String {
    match &privacy.sensitive_values {
        Some(listed) if listed.contains_key(column) => {
            format!("sensitive_values/{}", escape(column))
        }
        _ => "sensitive_values".to_owned(),
    }
}

/// The place below `/privacy` by which a model without a C leaves a sensitive column unbounded; `None` if it
/// bounds all.
pub(super) fn unbounding(privacy: &PrivacyDefinition) -> Option<&'static str> {
    let limited = privacy.column_limits.iter().flatten();
    // The last one stands for the columns without a limit of their own.
    let mut columns = limited.map(|(column, _)| column.as_str()).chain([""]);
    columns.find_map(|column| match bound(privacy, column) {
        Bound::Nothing(place) => Some(place),
        Bound::Every | Bound::Listed(_) => None,
    })
}

/// What a model bounds in a sensitive column.
fn bound<'p>(privacy: &'p PrivacyDefinition, column: &str) -> Bound<'p> {
    let l_exceeds_one = || {
        let mut all = privacy.l.iter().flat_map(OneOrMany::all);
        all.all(|l| l.as_f64().is_some_and(|l| l > 1.0))
    };
    let listed = || match &privacy.sensitive_values {
        None => Bound::Every,
        Some(listed) => Bound::Listed(listed.get(column).map_or(&[], |values| values)),
    };
    let every = |binds: bool, place| {
        if binds {
            Bound::Every
        } else {
            Bound::Nothing(place)
        }
    };
    match privacy.model {
        ModelKind::Lkc | ModelKind::ConfidenceBounding => {
            let mut c = privacy.c.iter().flat_map(OneOrMany::all);
            if c.any(|c| *c >= 1.0) {
                Bound::Nothing("c")
            } else {
                listed()
            }
        }
        ModelKind::AlphaK if privacy.alpha.is_none_or(|alpha| alpha >= 1.0) => {
            Bound::Nothing("alpha")
        }
        ModelKind::AlphaK => listed(),
        ModelKind::KAnonymity | ModelKind::KMAnonymity => Bound::Nothing("model"),
        ModelKind::LDiversity => {
            let limit = privacy
                .column_limits
                .as_ref()
                .and_then(|limits| limits.get(column));
            if limit == Some(&0) {
                Bound::Nothing("column_limits")
            } else {
                every(l_exceeds_one(), "l")
            }
        }
        ModelKind::DistinctLDiversity
        | ModelKind::EntropyLDiversity
        | ModelKind::RecursiveClDiversity => every(l_exceeds_one(), "l"),
        ModelKind::TCloseness => every(privacy.t.is_some_and(|t| t < 1.0), "t"),
    }
}

/// The form in which two spellings of a value are equal.
fn form<'v>(spec: Option<&SchemaColumn>, value: &'v str) -> Cow<'v, str> {
    let value = match spec {
        Some(spec) => spec.canonical(value),
        None => canonical_number(value.trim()).map_or(Cow::Borrowed(value), Cow::Owned),
    };
    match value {
        Cow::Borrowed(value) => visible_text(value),
        Cow::Owned(value) => Cow::Owned(visible_text(&value).into_owned()),
    }
}

/// Whether a policy names a value that is one of these words for missing: a missing cell is bounded by no model.
fn names_missing<'w>(
    required: &BoundedValues,
    words: impl Iterator<Item = &'w str>,
    spec: Option<&SchemaColumn>,
) -> bool {
    let BoundedValues::Listed(values) = required else {
        return false;
    };
    let words: Vec<Cow<'_, str>> = words.map(visible_text).collect();
    let mut forms = values.iter().map(|value| form(spec, value));
    forms.any(|form| !form.is_empty() && words.contains(&form))
}

fn must_be_values(name: &str) -> String {
    format!(
        "the policy's `sensitive_values` names a value of `{name}` that is a word for missing here; take it \
         from the column's `missing`"
    )
}

fn must_be_sensitive(name: &str) -> String {
    format!(
        "the policy's `sensitive_values` names `{name}`, which is released here in another role; give \
         it the role `sensitive`"
    )
}
