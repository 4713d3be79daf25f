//! Schemas that are derived from others: the fields of a changed column, and alternatives.

use utoipa::openapi::schema::{AdditionalProperties, AnyOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{ArrayBuilder, Components, Object, OpenApi as Document, Ref, RefOr};

/// The schema of a column in `PATCH /v1/datasets/{id}`.
const COLUMN_PATCH: &str = "ColumnPatch";

/// The fields of a column that cannot be null.
const ALWAYS_THERE: [&str; 2] = ["name", "role"];

/// Adds the derived schemas.
pub(super) fn complete(document: &mut Document) {
    let Some(components) = &mut document.components else {
        return;
    };
    close_alternatives(components, "GeneratedHierarchy");
    allow_several_alternatives(components, "SeenEdition");
    add_column_patch(components);
}

/// Says that each alternative of a schema has no other fields than its own.
fn close_alternatives(components: &mut Components, name: &str) {
    let Some(RefOr::T(Schema::OneOf(alternatives))) = components.schemas.get_mut(name) else {
        return;
    };
    for alternative in &mut alternatives.items {
        if let RefOr::T(Schema::Object(object)) = alternative {
            close(object);
        }
    }
}

/// Says that a value may fit more than one alternative: a holder's edition has all fields of a recipient's.
fn allow_several_alternatives(components: &mut Components, name: &str) {
    let Some(schema) = components.schemas.get_mut(name) else {
        return;
    };
    if let RefOr::T(Schema::OneOf(alternatives)) = schema {
        let several = AnyOfBuilder::new().description(alternatives.description.take());
        let alternatives = std::mem::take(&mut alternatives.items).into_iter();
        let several = alternatives.fold(several, AnyOfBuilder::item);
        *schema = RefOr::T(Schema::AnyOf(several.build()));
    }
}

fn close(object: &mut Object) {
    let closed = AdditionalProperties::<Schema>::FreeForm(false);
    object.additional_properties = Some(Box::new(closed));
}

/// A changed column: all fields except the name may be left out, and most may be null.
fn add_column_patch(components: &mut Components) {
    let Some(RefOr::T(Schema::Object(column))) = components.schemas.get("ColumnDefinition") else {
        return;
    };
    let mut patch = column.clone();
    patch.description = Some(
        "A column that changes, by its name; a field that is left out stays, and null resets it."
            .to_owned(),
    );
    patch.required = vec!["name".to_owned()];
    for (name, field) in &mut patch.properties {
        if !ALWAYS_THERE.contains(&name.as_str()) {
            let given = std::mem::replace(field, RefOr::T(Schema::default()));
            *field = or_null(given);
        }
    }
    let patch = RefOr::T(Schema::Object(patch));
    components.schemas.insert(COLUMN_PATCH.to_owned(), patch);
    if let Some(RefOr::T(Schema::Object(dataset))) = components.schemas.get_mut("DatasetPatch")
        && let Some(columns) = dataset.properties.get_mut("columns")
    {
        let item = Ref::from_schema_name(COLUMN_PATCH);
        let list = ArrayBuilder::new().items(item).build();
        *columns = or_null(RefOr::T(Schema::Array(list)));
    }
}

fn or_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    let null = Object::with_type(SchemaType::Type(Type::Null));
    let either = AnyOfBuilder::new().item(null).item(schema).build();
    RefOr::T(Schema::AnyOf(either))
}
