//! Arguments that clients send as strings: those of prompts and the variables of resource templates.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::schema;

/// What the type of the arguments says about each of them.
#[derive(Debug, Clone)]
pub(crate) struct TextArguments(Vec<TextArgument>);

#[derive(Debug, Clone)]
pub(crate) struct TextArgument {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) is_required: bool,
    /// Whether its type is a number or a boolean, which clients send as text.
    is_parsed: bool,
}

impl TextArguments {
    /// The fields of a type: those that are required in their order, then the others by name. The schema does not tell their
    /// order.
    pub(crate) fn of<A: JsonSchema>() -> Self {
        let schema: Value = serde_json::from_str(schema::of::<A>().as_str()).unwrap_or_default();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let place = |name: &str| required.iter().position(|one| *one == name);
        let text = |field: &Value, member: &str| field[member].as_str().map(str::to_owned);
        let is_parsed = |field: &Value| {
            let kinds = match &field["type"] {
                Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                kind => kind.as_str().map(|kind| vec![kind]).unwrap_or_default(),
            };
            let is_plain = |kind: &&str| matches!(*kind, "integer" | "number" | "boolean");
            kinds.iter().any(is_plain) && !kinds.contains(&"string")
        };
        let fields = schema["properties"].as_object().into_iter().flatten();
        let arguments = fields.map(|(name, field)| TextArgument {
            name: name.clone(),
            title: text(field, "title"),
            description: text(field, "description"),
            is_required: place(name).is_some(),
            is_parsed: is_parsed(field),
        });
        let mut arguments: Vec<_> = arguments.collect();
        arguments.sort_by_key(|argument| place(&argument.name).unwrap_or(usize::MAX));
        Self(arguments)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &TextArgument> {
        self.0.iter()
    }

    /// Reads the values of a request. A text that should be a number and is none is left for serde to refuse.
    pub(crate) fn read<A: DeserializeOwned>(&self, values: BTreeMap<String, String>) -> Result<A, serde_json::Error> {
        let is_parsed = |name: &str| self.0.iter().any(|argument| argument.name == name && argument.is_parsed);
        let value = |name: &str, text: String| match serde_json::from_str::<Value>(&text) {
            Ok(parsed @ (Value::Number(_) | Value::Bool(_))) if is_parsed(name) => parsed,
            _ => Value::String(text),
        };
        let members: Map<_, _> = values.into_iter().map(|(name, text)| (name.clone(), value(&name, text))).collect();
        serde_json::from_value(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
    struct Order {
        /// What to order.
        product: String,
        count: u32,
        express: Option<bool>,
        #[serde(default)]
        price: f64,
    }

    fn read(values: &[(&str, &str)]) -> Result<Order, String> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        TextArguments::of::<Order>().read(values).map_err(|error| error.to_string())
    }

    #[test]
    fn texts_become_the_types_of_the_fields() {
        let order = read(&[("product", "7"), ("count", "12"), ("express", "true"), ("price", "1.5")]).unwrap();
        assert_eq!(order, Order { product: "7".into(), count: 12, express: Some(true), price: 1.5 });
        assert_eq!(read(&[("product", "true"), ("count", "1")]).unwrap().product, "true");
        for wrong in [&[("product", "a"), ("count", "many")][..], &[("product", "a")], &[("count", "1")]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_fields_are_the_arguments() {
        let arguments = TextArguments::of::<Order>();
        let shown: Vec<_> = arguments.iter().map(|argument| (argument.name.as_str(), argument.is_required)).collect();
        assert_eq!(shown, [("product", true), ("count", true), ("express", false), ("price", false)]);
        assert_eq!(arguments.iter().next().unwrap().description.as_deref(), Some("What to order."));
    }
}
