use serde_json::{Map, Value};

/// An argument that clients repeat in an HTTP header, so that what stands between can route by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    /// The header's name, in lower case.
    pub(crate) header: String,
    /// Where in the arguments the value is.
    pub(crate) path: Vec<String>,
    /// What kind of value it is.
    pub(crate) kind: MirrorKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MirrorKind {
    Text,
    Integer,
    Boolean,
}

const KEYWORD: &str = "x-mcp-header";

/// Keywords whose value is a map from names to schemas: there, a key is a name and never a keyword.
const MAPS_OF_SCHEMAS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Keywords whose value is data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Where an annotation is, and what is wrong with it.
type AnnotationError = (String, &'static str);

impl Mirror {
    /// All annotations of an input schema.
    pub(crate) fn find(schema: &Value) -> Result<Vec<Self>, AnnotationError> {
        let mut mirrors = Vec::new();
        if let Value::Object(root) = schema {
            if root.contains_key(KEYWORD) {
                return Err(("/".to_owned(), "is not on a property"));
            }
            walk(root, "", Some(&[]), &mut mirrors)?;
        }
        Ok(mirrors)
    }

    fn read(schema: &Map<String, Value>, at: &str, path: &[String], others: &[Self]) -> Result<Self, AnnotationError> {
        let fault = |why| Err((at.to_owned(), why));
        let name = match schema.get(KEYWORD).and_then(Value::as_str) {
            Some(name) if is_token(name) => name,
            _ => return fault("is not a header name"),
        };
        let header = format!("mcp-param-{}", name.to_ascii_lowercase());
        if others.iter().any(|other| other.header == header) {
            return fault("names a header that another property has already");
        }
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("string") => MirrorKind::Text,
            Some("integer") => MirrorKind::Integer,
            Some("boolean") => MirrorKind::Boolean,
            _ => return fault("is on a property that is not a string, an integer or a boolean"),
        };
        Ok(Self { header, path: path.to_vec(), kind })
    }
}

/// Looks through one schema. `path` leads to it through `properties` alone; `None` once anything else was passed,
/// because no value can be told to stand there.
fn walk(
    schema: &Map<String, Value>,
    at: &str,
    path: Option<&[String]>,
    mirrors: &mut Vec<Mirror>,
) -> Result<(), AnnotationError> {
    for (keyword, value) in schema {
        let here = format!("{at}/{keyword}");
        match value {
            _ if keyword == KEYWORD => {
                let Some(path) = path else {
                    return Err((here, "cannot be reached through properties alone"));
                };
                let mirror = Mirror::read(schema, &here, path, mirrors)?;
                mirrors.push(mirror);
            }
            _ if DATA.contains(&keyword.as_str()) => {}
            Value::Object(named) if MAPS_OF_SCHEMAS.contains(&keyword.as_str()) => {
                for (name, value) in named {
                    let Value::Object(schema) = value else { continue };
                    let path = path
                        .filter(|_| keyword == "properties")
                        .map(|path| [path, std::slice::from_ref(name)].concat());
                    walk(schema, &format!("{here}/{name}"), path.as_deref(), mirrors)?;
                }
            }
            Value::Object(schema) => walk(schema, &here, None, mirrors)?,
            Value::Array(schemas) => {
                for schema in schemas.iter().filter_map(Value::as_object) {
                    walk(schema, &here, None, mirrors)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// RFC 9110's `1*tchar`.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
