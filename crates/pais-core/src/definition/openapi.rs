//! OpenAPI schemas that cannot be derived: the parameters of each privacy model.

use std::borrow::Cow;

use utoipa::openapi::schema::{
    AdditionalProperties, Array, ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema,
    SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::privacy::{ModelKind, OPTIONAL_PARAMETERS, PrivacyDefinition};
use super::sweep::MOST_COMBINATIONS;

/// The largest whole number that every JSON library can read exactly.
const GREATEST: i64 = 9_007_199_254_740_991;

impl PartialSchema for PrivacyDefinition {
    /// One alternative for each model, with the parameters that it takes.
    fn schema() -> RefOr<Schema> {
        let alternatives = ModelKind::ALL.into_iter().map(of_model);
        let models = alternatives.fold(OneOfBuilder::new(), OneOfBuilder::item);
        let description = "A privacy model with its parameters. `lkc` takes lists for `l`, `k` and \
                           `c`, and the models that are reached by top-down specialization take \
                           them where it does; such a job is a sweep.";
        RefOr::T(Schema::OneOf(models.description(Some(description)).build()))
    }
}

impl ToSchema for PrivacyDefinition {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("PrivacyDefinition")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push(("ModelWord".to_owned(), ModelKind::schema()));
    }
}

fn of_model(model: ModelKind) -> Object {
    let mut object = ObjectBuilder::new()
        .property("model", word(model))
        .required("model")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    for &parameter in model.parameters() {
        object = object.property(parameter, of_parameter(model, parameter));
        if !OPTIONAL_PARAMETERS.contains(&parameter) {
            object = object.required(parameter);
        }
    }
    object.build()
}

/// A recoding, or a list of them.
pub(super) fn recodings() -> Schema {
    let description = "One cut for the whole table, or groups; a list makes the job a sweep.";
    one_or_many("Recoding", 2, description)
}

/// An objective, or a list of them.
pub(super) fn objectives() -> Schema {
    let description = "The score that selects a specialization; a list makes the job a sweep.";
    one_or_many("Objective", 4, description)
}

/// A word of an enumeration with a schema of this name, or a list of up to `most` of them.
fn one_or_many(name: &str, most: usize, description: &str) -> Schema {
    let word = || RefOr::Ref(Ref::from_schema_name(name));
    let list = ArrayBuilder::new()
        .items(word())
        .min_items(Some(1))
        .max_items(Some(most))
        .unique_items(true);
    let null = ObjectBuilder::new().schema_type(Type::Null);
    let either = OneOfBuilder::new()
        .item(word())
        .item(list.build())
        .item(null.build());
    Schema::OneOf(either.description(Some(description)).build())
}

fn word(model: ModelKind) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some([model.as_str()]))
        .build()
}

fn of_parameter(model: ModelKind, parameter: &str) -> Schema {
    let number = || ObjectBuilder::new().schema_type(Type::Number);
    let whole = |from: i64| {
        let number = ObjectBuilder::new().schema_type(Type::Integer);
        number.minimum(Some(from)).maximum(Some(GREATEST))
    };
    let share = || number().exclusive_minimum(Some(0)).maximum(Some(1));
    let is_entropy = model == ModelKind::EntropyLDiversity;
    let is_factor = model == ModelKind::RecursiveClDiversity;
    let described = |object: ObjectBuilder, text: &str| object.description(Some(text)).build();
    let is_swept = matches!(model, ModelKind::Lkc | ModelKind::KAnonymity)
        || model == ModelKind::ConfidenceBounding
        || (model == ModelKind::AlphaK && parameter == "k");
    let one = match parameter {
        "l" if is_entropy => described(
            number().minimum(Some(1)).maximum(Some(1_000_000_000)),
            "Diversity, which need not be whole",
        ),
        "l" => described(
            whole(1).maximum(Some(u32::MAX)),
            "Most known values (`lkc`), or diversity",
        ),
        "k" => described(
            whole(1),
            "Minimum number of records that share the known values",
        ),
        "m" => described(
            whole(1).maximum(Some(u32::MAX)),
            "Most known items of a record's sets",
        ),
        "c" if is_factor => described(
            number().exclusive_minimum(Some(0)).maximum(Some(1_000_000)),
            "Factor, with at most six decimals",
        ),
        "c" => described(share(), "Greatest confidence, in (0, 1]"),
        "t" => described(
            number().minimum(Some(0)).maximum(Some(1)),
            "Greatest distance, in [0, 1]",
        ),
        "alpha" => described(share(), "Greatest confidence, in (0, 1]"),
        "sensitive_values" => return sensitive_values(),
        "min_range" => {
            return or_null(
                number().exclusive_minimum(Some(0)).build(),
                "By numeric sensitive column, the minimum range of its numbers in a group",
            );
        }
        _ => return column_limits(whole(0).maximum(Some(u32::MAX)).build()),
    };
    if is_swept && parameter != "alpha" {
        one_or_list(one)
    } else {
        one.into()
    }
}

/// A value, or a list of values to try.
fn one_or_list(one: Object) -> Schema {
    let list = ArrayBuilder::new()
        .items(one.clone())
        .min_items(Some(1))
        .max_items(Some(MOST_COMBINATIONS))
        .unique_items(true);
    OneOfBuilder::new().item(one).item(list).build().into()
}

fn sensitive_values() -> Schema {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let values: Array = ArrayBuilder::new()
        .items(text)
        .min_items(Some(1))
        .unique_items(true)
        .build();
    let detail = "Sensitive column to its sensitive values; every value of every sensitive column \
                  when omitted";
    or_null(values, detail)
}

fn column_limits(limit: Object) -> Schema {
    or_null(
        limit,
        "Column to its own L (Definition 7 of the 2008 paper)",
    )
}

fn or_null(value: impl Into<RefOr<Schema>>, description: &str) -> Schema {
    let kinds = SchemaType::from_iter([Type::Object, Type::Null]);
    ObjectBuilder::new()
        .schema_type(kinds)
        .additional_properties(Some(AdditionalProperties::RefOr(value.into())))
        .description(Some(description))
        .build()
        .into()
}
