//! OpenAPI schemas of parameters that take a value or a list.

use utoipa::openapi::schema::{ArrayBuilder, Object, OneOfBuilder, Schema, SchemaType, Type};

/// A whole number, or a list of those to try.
pub(super) fn whole_or_list() -> Schema {
    or_list(Type::Integer)
}

/// A number, or a list of those to try.
pub(super) fn number_or_list() -> Schema {
    or_list(Type::Number)
}

fn or_list(kind: Type) -> Schema {
    let one = Object::with_type(SchemaType::Type(kind));
    let list = ArrayBuilder::new().items(one.clone());
    OneOfBuilder::new()
        .item(one)
        .item(list)
        .item(Object::with_type(SchemaType::Type(Type::Null)))
        .build()
        .into()
}
