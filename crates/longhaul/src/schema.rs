//! JSON schemas of Rust types.

use longhaul_task::Json;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};

/// The schema of a type, in the default dialect of the protocol, without references where possible: many clients do not
/// follow them.
pub(crate) fn of<T: JsonSchema>() -> Json {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    Json::from_text(schema.to_value().to_string())
}

/// The schema of a form: the protocol allows flat objects of plain values, without Rust's formats of numbers.
pub(crate) fn of_form<T: JsonSchema>() -> serde_json::Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    settings.transforms.push(Box::new(RecursiveTransform(|schema: &mut Schema| {
        let is_number = matches!(schema.get("type").and_then(|kind| kind.as_str()), Some("integer" | "number"));
        if is_number {
            schema.remove("format");
        }
    })));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}
