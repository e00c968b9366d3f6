//! JSON Schema for tools and questions. A schema without `$schema` is of draft 2020-12. References to other documents are
//! never fetched.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use longhaul_task::Json;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::jsonrpc::quote;
use crate::tree;

/// The most faults that are reported for one value. More would not help to correct it.
const FAULTS_MAX: usize = 5;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The schema itself. A tool's declaration reads its root type and its header annotations from it.
    pub(crate) tree: Value,
    validator: Validator,
}

impl Schema {
    /// Reads and compiles a schema; the error is a sentence about what is wrong with it.
    pub(crate) fn compile(json: &Json) -> Result<Self, String> {
        let tree: Value = serde_json::from_str(json.as_str()).map_err(|error| error.to_string())?;
        Self::of(tree)
    }

    /// Compiles a schema. `format` is checked: a form that asks for an e-mail address must get one.
    pub(crate) fn of(tree: Value) -> Result<Self, String> {
        if !tree.is_object() {
            return Err("a schema must be an object".to_owned());
        }
        let validator = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .build(&tree)
            .map_err(|error| describe(&error))?;
        Ok(Self { tree, validator })
    }

    /// The faults of a value, one line each. Empty if the value is valid.
    pub(crate) fn faults(&self, value: &RawValue) -> Vec<String> {
        let value = match tree::parse(value.get()) {
            Ok(value) => value,
            Err(fault) => return vec![fault],
        };
        self.validator.iter_errors(&value).take(FAULTS_MAX).map(|error| describe(&error)).collect()
    }
}

/// Describes a fault: the path to it, then what is wrong. The value itself is left out, because it may be large or
/// confidential. Long keys are shortened.
fn describe(error: &ValidationError<'_>) -> String {
    let fault = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            format!("unexpected properties: {}", quote(&unexpected.join(", ")))
        }
        ValidationErrorKind::UnevaluatedItems { unexpected } => format!("{} unexpected items", unexpected.len()),
        ValidationErrorKind::PropertyNames { error } => format!("the name of a property: {}", error.masked()),
        _ => error.masked().to_string(),
    };
    match error.instance_path().as_str() {
        "" => fault,
        path => format!("{}: {fault}", quote(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    #[test]
    fn a_fault_repeats_only_the_beginning_of_a_long_key() {
        let key = "k".repeat(900_000);
        let value = serde_json::to_string(&serde_json::json!({ &key: { "a": 1 } })).unwrap();
        for schema in [
            r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
            r#"{"type":"object","additionalProperties":false}"#,
            r#"{"type":"object","unevaluatedProperties":false}"#,
            r#"{"type":"object","propertyNames":{"maxLength":3}}"#,
            r#"{"type":"object","minProperties":2}"#,
        ] {
            let faults = Schema::compile(&Json::from_text(schema)).unwrap().faults(text::raw(&value).unwrap());
            let [fault] = faults.as_slice() else { panic!("{} faults of {schema}", faults.len()) };
            assert!(fault.chars().count() < 300, "{} characters: {}…", fault.len(), &fault[..300]);
        }
    }
}
