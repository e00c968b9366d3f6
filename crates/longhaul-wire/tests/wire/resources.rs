//! Resources and resource templates, in both eras.

use longhaul_wire::call_result::{ResultForm, complete_as};
use longhaul_wire::list::{self, ListKind, PageEnd};
use longhaul_wire::resource::{
    self, ResourceAddress, ResourceAnnotations, ResourceContent, ResourceContents, ResourceDeclaration, ResourceError,
    TEMPLATE_VARIABLES_MAX, URI_BYTES_MAX, UriTemplate,
};
use longhaul_wire::{Cache, Context, Icon, ReplyTo, Revision, route};
use proptest::prelude::*;
use serde_json::json;

use crate::common::*;
use crate::prompts::{EVERY, must_answer};

const CACHE: Cache = Cache { ttl_ms: 0, is_public: false };

#[test]
fn lists_of_resources_fit_and_say_what_each_revision_knows() {
    let annotations = ResourceAnnotations {
        for_user: true,
        for_assistant: true,
        priority: Some(7.0),
        last_modified: Some("2026-07-28T10:30:00Z".into()),
    };
    let dressed = |draft: longhaul_wire::resource::ResourceDraft| {
        draft
            .name("main.rs")
            .title("The main file")
            .description("Where it \"starts\"")
            .mime_type("text/x-rust")
            .size(7)
            .annotations(annotations.clone())
            .icon(Icon::new("https://example.com/a.png"))
            .meta(json("{}"))
            .declare()
            .unwrap()
    };
    let full = dressed(ResourceDeclaration::draft("file:///src/main.rs"));
    let bare = ResourceDeclaration::draft("file:///a/b.txt").declare().unwrap();
    let template = dressed(ResourceDeclaration::template_draft("file:///{+path}"));
    let bare_template = ResourceDeclaration::template_draft("report://{id}").declare().unwrap();
    for revision in EVERY {
        let (id, server) = (1.into(), server());
        let to = ReplyTo { id: &id, revision, server: &server };
        let end = PageEnd { next_cursor: None, cache: CACHE };
        let message = resource::list(&to, &[&full, &bare], end);
        must_answer(revision, "ListResourcesResult", &message);
        let result = value(&message)["result"].clone();
        assert_eq!(result["resources"][0]["size"], 7);
        assert_eq!(result["resources"][0]["annotations"]["priority"], 1);
        assert_eq!(result["resources"][0].get("icons").is_some(), revision.has_icons());
        assert_eq!(result["resources"][1], json!({ "uri": "file:///a/b.txt", "name": "b.txt" }));
        assert_eq!(result.get("cacheScope").is_some(), revision.is_stateless());

        let message = resource::list_templates(&to, &[&template, &bare_template], end);
        must_answer(revision, "ListResourceTemplatesResult", &message);
        let result = value(&message)["result"].clone();
        assert_eq!(result["resourceTemplates"][0]["uriTemplate"], "file:///{+path}");
        assert_eq!(result["resourceTemplates"][0].get("size"), None);

        let file = format!("mcp-{}", revision.as_str());
        let subscription = revision.is_stateless().then_some(&id);
        let changed = list::changed(ListKind::Resources, subscription);
        must_fit(&file, "ResourceListChangedNotification", &changed, "");
        must_fit(&file, "ResourceUpdatedNotification", &resource::updated("a:\"b", subscription), "");
    }
}

#[test]
fn a_read_fits_and_says_how_long_it_may_be_cached() {
    let body = ResourceContents::new()
        .with(ResourceContent::text("# \"2026\"\n"))
        .with(ResourceContent::blob([0, 255]).uri("report://2026/chart").mime_type("image/png"))
        .into_json("report://2026", Some("text/markdown"));
    for revision in EVERY {
        let (id, server) = (1.into(), server());
        let to = ReplyTo { id: &id, revision, server: &server };
        for cache in [CACHE, Cache { ttl_ms: 9, is_public: true }] {
            let message = complete_as(ResultForm::Resource(cache), &to, &body);
            must_answer(revision, "ReadResourceResult", &message);
            let result = value(&message)["result"].clone();
            assert_eq!(
                result["contents"],
                json!([
                    { "uri": "report://2026", "mimeType": "text/markdown", "text": "# \"2026\"\n" },
                    { "uri": "report://2026/chart", "mimeType": "image/png", "blob": "AP8=" }
                ])
            );
            let hints = (result.get("ttlMs").cloned(), result.get("cacheScope").cloned());
            let scope = if cache.is_public { "public" } else { "private" };
            let expected = revision.is_stateless().then(|| (json!(cache.ttl_ms), json!(scope)));
            assert_eq!(hints.0.zip(hints.1), expected);
        }
    }
}

#[test]
fn a_missing_resource_has_the_code_of_its_revision() {
    for revision in EVERY {
        let error = resource::not_found("a:\"b", revision);
        assert_eq!(error.code, if revision.is_stateless() { -32602 } else { -32002 });
        assert_eq!(error.data.unwrap().as_str(), r#"{"uri":"a:\"b"}"#);
    }
}

#[test]
fn what_is_no_uri_cannot_be_declared() {
    for uri in
        ["", "a", ":", ":b", "a:", "1a:b", "a b:c", "a:b c", "a:b\n", &format!("a:{}", "x".repeat(URI_BYTES_MAX))]
    {
        let declared = ResourceDeclaration::draft(uri).declare().unwrap_err();
        assert_eq!(declared, ResourceError::Uri(uri.to_owned()));
    }
    let longest = format!("a:{}", "x".repeat(URI_BYTES_MAX - 2));
    assert!(ResourceDeclaration::draft(longest).declare().is_ok());
    let meta = ResourceDeclaration::draft("a:b").meta(json("1")).declare().unwrap_err();
    assert_eq!(meta, ResourceError::Meta("a:b".into()));
}

#[test]
fn templates_are_matched_backwards() {
    let table: &[(&str, &str, Option<&[(&str, &str)]>)] = &[
        ("test://template/{id}/data", "test://template/123/data", Some(&[("id", "123")])),
        ("test://template/{id}/data", "test://template//data", None),
        ("test://template/{id}/data", "test://template/1/2/data", None),
        ("test://template/{id}/data", "test://template/1/data/", None),
        ("file:///{+path}", "file:///a/b.txt", Some(&[("path", "a/b.txt")])),
        ("{+a}/{b}", "x/y/z", Some(&[("a", "x/y"), ("b", "z")])),
        ("a:{x}-{y}", "a:1-2-3", Some(&[("x", "1"), ("y", "2-3")])),
        ("a:{x}", "a:caf%C3%A9%20%zz", Some(&[("x", "café %zz")])),
        ("a:{x}", "a:caf\u{e9}", Some(&[("x", "caf\u{e9}")])),
        ("a:{x}", "a:%ff", None),
        ("a:{x}", "b:1", None),
        ("a:{x}?q={y}", "a:1?q=2", Some(&[("x", "1"), ("y", "2")])),
    ];
    for (template, uri, expected) in table {
        let template = UriTemplate::parse(template).unwrap();
        let values = template.matches(uri);
        let values = values.as_ref().map(|values| values.iter().map(|(name, value)| (*name, value.as_str())).collect());
        assert_eq!(values, expected.map(<[_]>::to_vec), "{template} {uri}");
    }
}

#[test]
fn a_template_that_cannot_be_matched_is_refused() {
    let many: String = (0..=TEMPLATE_VARIABLES_MAX).map(|n| format!("/{{v{n}}}")).collect();
    for template in ["a:b", "a:{", "a:}", "a:{}", "a:{x}{y}", "a:{x}/{x}", "a:{?x}", "a:{x,y}", "a:{x*}", &many] {
        assert!(matches!(UriTemplate::parse(template), Err(ResourceError::Template { .. })), "{template}");
    }
}

#[test]
fn the_header_of_a_read_repeats_its_uri() {
    let read = modern("resources/read", r#""uri":"file:///caf\u00e9""#, "{}");
    let get = modern("prompts/get", r#""name":"greet""#, "{}");
    let checked = |message: &str, method: &str, name: Option<&str>| {
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        let headers: &[(&str, &str)] = &headers;
        route(&request(message), &Context::Stateless { headers: Some(&headers) }).map_or_else(|error| error.code, |_| 0)
    };
    assert_eq!(checked(&read, "resources/read", Some("=?base64?ZmlsZTovLy9jYWbDqQ==?=")), 0);
    assert_eq!(checked(&get, "prompts/get", Some("greet")), 0);
    for wrong in [None, Some("file:///cafe"), Some("")] {
        assert_eq!(checked(&read, "resources/read", wrong), -32020, "{wrong:?}");
        assert_eq!(checked(&get, "prompts/get", wrong), -32020, "{wrong:?}");
    }
}

#[test]
fn a_declaration_matches_its_own_uris_only() {
    let one = ResourceDeclaration::draft("a:b").declare().unwrap();
    assert!(one.matches("a:b") && !one.matches("a:b/c"));
    assert_eq!(*one.address(), ResourceAddress::Uri("a:b".into()));
    let many = ResourceDeclaration::template_draft("a:{x}").declare().unwrap();
    assert!(many.matches("a:b") && !many.matches("a:b/c"));
    assert!(!many.matches(&format!("a:{}", "x".repeat(URI_BYTES_MAX))), "longer than any URI may be");
}

proptest! {
    #[test]
    fn an_expanded_template_matches_and_gives_its_values(
        values in prop::collection::vec("[a-z0-9 é%?#/]{1,8}", 2), literal in "[-/=?]",
    ) {
        let encode = |text: &str| text.bytes().map(|byte| match byte {
            b'a'..=b'z' | b'0'..=b'9' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        }).collect::<String>();
        let template = UriTemplate::parse(&format!("a:{{x}}{literal}{{y}}")).unwrap();
        let uri = format!("a:{}{literal}{}", encode(&values[0]), encode(&values[1]));
        let found = template.matches(&uri).unwrap();
        prop_assert_eq!(found, [("x", values[0].clone()), ("y", values[1].clone())]);
    }

    #[test]
    fn no_uri_makes_the_matching_panic(uri in "(?s)[a:/{}%é?#-]{0,40}", template in "(a:)?[a/{}+x%-]{0,12}") {
        if let Ok(template) = UriTemplate::parse(&template) {
            if let Some(values) = template.matches(&uri) {
                prop_assert_eq!(values.len(), template.variables().count());
                prop_assert!(values.iter().all(|(_, value)| !value.is_empty()));
            }
        }
    }

    #[test]
    fn any_text_of_a_resource_arrives_unchanged(text in "(?s).{0,40}", uri in "[a-z]:[a-z\"\\\\]{1,8}") {
        let body = ResourceContents::from(ResourceContent::text(&*text)).into_json(&uri, None);
        for revision in [Revision::V2025_03_26, Revision::V2026_07_28] {
            let (id, server) = (1.into(), server());
            let to = ReplyTo { id: &id, revision, server: &server };
            let message = value(&complete_as(ResultForm::Resource(CACHE), &to, &body));
            prop_assert_eq!(&message["result"]["contents"][0], &json!({ "uri": uri, "text": text }));
        }
    }
}
