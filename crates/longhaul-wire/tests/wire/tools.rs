//! Tools are checked when they are declared, and calls when they come.

use longhaul_wire::tool::{TOOL_NAME_BYTES_MAX, TaskSupport, ToolDeclaration, ToolError};

use crate::common::*;

fn with_input(schema: &str) -> Result<ToolDeclaration, ToolError> {
    ToolDeclaration::draft("tool").input_schema(json(schema)).declare()
}

#[test]
fn a_name_is_what_every_client_takes() {
    for name in ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "a", &"x".repeat(TOOL_NAME_BYTES_MAX)] {
        let tool = ToolDeclaration::draft(name).declare().unwrap();
        assert_eq!((tool.name(), tool.task_support()), (name, TaskSupport::Optional));
    }
    for name in ["", "a b", "a,b", "ä", "a/b", &"x".repeat(TOOL_NAME_BYTES_MAX + 1)] {
        assert_eq!(ToolDeclaration::draft(name).declare().unwrap_err(), ToolError::Name(name.to_owned()));
    }
}

#[test]
fn a_schema_that_would_spoil_the_list_is_refused() {
    assert_eq!(with_input("{}").unwrap_err(), ToolError::InputNotObject("tool".into()));
    assert_eq!(with_input(r#"{"type":"array"}"#).unwrap_err(), ToolError::InputNotObject("tool".into()));
    for schema in [
        "null",
        "true",
        "nonsense",
        r#"{"type":"objekt"}"#,
        r#"{"type":"object","properties":{"a":{"type":5}}}"#,
        r#"{"type":"object","properties":{"a":{"pattern":"("}}}"#,
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/nowhere"}}}"##,
    ] {
        assert!(matches!(with_input(schema), Err(ToolError::InputSchema { .. })), "{schema}");
    }
    let told = with_input(r#"{"type":"object","properties":{"a":{"type":5}}}"#).unwrap_err().to_string();
    assert!(told.contains("/properties/a/type"), "{told}");
    let output = ToolDeclaration::draft("tool").output_schema(json(r#"{"type":"objekt"}"#)).declare();
    assert!(matches!(output, Err(ToolError::OutputSchema { .. })));
}

#[test]
fn a_reference_to_elsewhere_is_refused_and_never_fetched() {
    for uri in ["http://127.0.0.1:9/schema.json", "https://example.com/schema.json", "file:///etc/passwd"] {
        let schema = format!(r#"{{"type":"object","properties":{{"a":{{"$ref":"{uri}"}}}}}}"#);
        assert!(matches!(with_input(&schema), Err(ToolError::InputSchema { .. })), "{uri}");
    }
}

#[test]
fn the_dialect_is_2020_12_unless_the_schema_says_otherwise() {
    let tuple = |dialect: &str| {
        format!(r#"{{{dialect}"type":"object","properties":{{"a":{{"items":[{{"type":"string"}}]}}}}}}"#)
    };
    assert!(with_input(&tuple(r#""$schema":"http://json-schema.org/draft-07/schema#","#)).is_ok());
    assert!(with_input(&tuple("")).is_err(), "an array of items is an older dialect");
    let unknown = r#"{"$schema":"https://example.com/dialect","type":"object"}"#;
    assert!(matches!(with_input(unknown), Err(ToolError::InputSchema { .. })));
}

#[test]
fn arguments_are_checked_and_what_is_wrong_is_told() {
    let tool = with_input(
        r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
            "$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"city":{"type":"string"}}}},
            "properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"age":{"minimum":18}},
            "required":["name"],"additionalProperties":false}"##,
    )
    .unwrap();
    assert!(tool.check_arguments(&raw(r#"{"name":"a","address":{"city":"b"},"age":18}"#)).is_ok());
    let wrong = tool.check_arguments(&raw(r#"{"address":{"city":5},"age":3,"odd":"secret"}"#)).unwrap_err();
    assert_eq!(wrong.faults().len(), 4, "{wrong}");
    let told = wrong.to_string();
    assert!(told.contains("/address/city") && told.contains("/age") && told.contains("\"name\""), "{told}");
    let result = value(wrong.to_result().as_str());
    assert_eq!((&result["isError"], &result["content"][0]["text"]), (&true.into(), &told.into()));
}

#[test]
fn a_flood_of_faults_is_told_in_part() {
    let tool = with_input(r#"{"type":"object","properties":{"a":{"items":{"type":"string"}}}}"#).unwrap();
    let arguments = format!(r#"{{"a":[{}]}}"#, vec!["1"; 10_000].join(","));
    let wrong = tool.check_arguments(&raw(&arguments)).unwrap_err();
    assert!(wrong.faults().len() <= 5 && wrong.to_string().len() < 1_000);
}

#[test]
fn a_header_annotation_must_be_one_that_clients_take() {
    let on = |property: &str| with_input(&format!(r#"{{"type":"object","properties":{{"a":{property}}}}}"#));
    for fine in [
        r#"{"type":"string","x-mcp-header":"Region"}"#,
        r#"{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"Deep"}}}"#,
        r#"{"type":"object","properties":{"x-mcp-header":{"type":"number"}}}"#,
        r#"{"default":{"x-mcp-header":5},"enum":[{"x-mcp-header":"no"}]}"#,
    ] {
        assert!(on(fine).is_ok(), "{fine}");
    }
    for wrong in [
        r#"{"type":"string","x-mcp-header":""}"#,
        r#"{"type":"string","x-mcp-header":"a b"}"#,
        r#"{"type":"string","x-mcp-header":"a\r\nb"}"#,
        r#"{"type":"string","x-mcp-header":5}"#,
        r#"{"type":"number","x-mcp-header":"N"}"#,
        r#"{"type":"object","x-mcp-header":"O"}"#,
        r#"{"x-mcp-header":"Untyped"}"#,
        r#"{"type":"array","items":{"type":"string","x-mcp-header":"Item"}}"#,
        r#"{"anyOf":[{"type":"string","x-mcp-header":"Any"}]}"#,
        r#"{"type":"object","patternProperties":{"b":{"type":"string","x-mcp-header":"P"}}}"#,
    ] {
        assert!(matches!(on(wrong), Err(ToolError::Header { .. })), "{wrong}");
    }
    let twice = r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"type":"string","x-mcp-header":"same"}}}"#;
    assert!(matches!(with_input(twice), Err(ToolError::Header { .. })));
    for root in [
        r#"{"type":"object","x-mcp-header":"Root"}"#,
        r#"{"type":"object","$defs":{"d":{"type":"string","x-mcp-header":"Def"}}}"#,
        r#"{"type":"object","allOf":[{"properties":{"a":{"type":"string","x-mcp-header":"All"}}}]}"#,
    ] {
        assert!(matches!(with_input(root), Err(ToolError::Header { .. })), "{root}");
    }
}
