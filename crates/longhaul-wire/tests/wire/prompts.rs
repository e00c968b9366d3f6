//! Prompts and completions, in both eras.

use longhaul_wire::call_result::{ResultForm, complete_as};
use longhaul_wire::completion::{self, COMPLETION_VALUES_MAX, CompletionTarget};
use longhaul_wire::content::Content;
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::list::{self, ListKind, PageEnd};
use longhaul_wire::prompt::{
    self, PROMPT_ARGUMENTS_MAX, PROMPT_NAME_BYTES_MAX, PromptArgument, PromptDeclaration, PromptError, PromptMessage,
    PromptResult,
};
use longhaul_wire::{Cache, Context, Icon, IconTheme, Operation, Peer, ReplyTo, Revision, route};
use proptest::prelude::*;
use serde_json::json;

use crate::common::*;

const CACHE: Cache = Cache { ttl_ms: 60_000, is_public: true };

pub(crate) const EVERY: [Revision; 4] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

/// Checks a response against its definition in the schema of its revision.
pub(crate) fn must_answer(revision: Revision, definition: &str, message: &str) {
    must_fit(&format!("mcp-{}", revision.as_str()), definition, message, "/result");
}

fn full() -> PromptDeclaration {
    PromptDeclaration::draft("code review")
        .title("Code review")
        .description("Asks for a\nreview.")
        .argument(PromptArgument::required("code").title("Code").description("What to \"review\""))
        .argument(PromptArgument::optional("language"))
        .icon(Icon::new("https://example.com/a.svg").mime_type("image/svg+xml").size("any").theme(IconTheme::Dark))
        .meta(json(r#"{"example.com/a":1}"#))
        .declare()
        .unwrap()
}

#[test]
fn the_list_of_prompts_fits_and_says_what_each_revision_knows() {
    let (full, bare) = (full(), PromptDeclaration::draft("bare").declare().unwrap());
    for revision in EVERY {
        let (id, server) = (1.into(), server());
        let to = ReplyTo { id: &id, revision, server: &server };
        let end = PageEnd { next_cursor: Some("2"), cache: CACHE };
        let message = prompt::list(&to, &[&full, &bare], end);
        must_answer(revision, "ListPromptsResult", &message);
        let result = value(&message)["result"].clone();
        let shown = &result["prompts"][0];
        assert_eq!(shown["arguments"][0]["required"], true);
        assert_eq!(shown["arguments"][1]["required"], false);
        assert_eq!(result["prompts"][1], json!({ "name": "bare" }));
        assert_eq!(result["nextCursor"], "2");
        assert_eq!(shown.get("title").is_some(), revision.has_titles());
        assert_eq!(shown.get("icons").is_some(), revision.has_icons());
        assert_eq!(result.get("ttlMs").is_some(), revision.is_stateless());
        let changed = list::changed(ListKind::Prompts, revision.is_stateless().then_some(&id));
        must_fit(&format!("mcp-{}", revision.as_str()), "PromptListChangedNotification", &changed, "");
    }
}

#[test]
fn a_prompt_with_every_kind_of_content_fits_every_revision() {
    let body = PromptResult::new()
        .description("A \"prompt\"")
        .with(PromptMessage::user("line\ntwo"))
        .with(PromptMessage::assistant(Content::image(b"png", "image/png")))
        .with(PromptMessage::user(Content::audio(b"wav", "audio/wav")))
        .with(PromptMessage::user(Content::resource_link("file:///a.rs", "a.rs", None)))
        .with(PromptMessage::user(Content::embedded_text("test://a", "text", Some("text/plain"))))
        .into_json();
    for revision in EVERY {
        let (id, server) = (1.into(), server());
        let to = ReplyTo { id: &id, revision, server: &server };
        let message = complete_as(ResultForm::Prompt, &to, &body);
        must_answer(revision, "GetPromptResult", &message);
        let result = value(&message)["result"].clone();
        assert_eq!(result["description"], "A \"prompt\"");
        let link = &result["messages"][3]["content"];
        assert_eq!(link["type"], if revision == Revision::V2025_03_26 { "text" } else { "resource_link" });
        assert_eq!(result["resultType"] == "complete", revision.is_stateless());
    }
}

#[test]
fn a_request_without_a_required_argument_is_refused() {
    let prompt = full();
    let checked = |arguments: &str| prompt.check_arguments(&raw(arguments)).map_err(|error: RpcError| error.code);
    assert_eq!(checked(r#"{"code":"x"}"#), Ok(()));
    assert_eq!(checked(r#"{"code":"x","language":"rust","other":"y"}"#), Ok(()));
    for wrong in ["{}", r#"{"language":"rust"}"#, r#"{"code":5}"#, r#"{"code":"x","language":null}"#] {
        assert_eq!(checked(wrong), Err(-32602), "{wrong}");
    }
    let error = prompt.check_arguments(&raw("{}")).unwrap_err();
    assert_eq!(error.message, format!("The required argument `code` of the prompt `{}` is missing.", prompt.name()));
}

#[test]
fn a_declaration_that_clients_would_refuse_is_refused_first() {
    let names = ["", "a\nb", &"a".repeat(PROMPT_NAME_BYTES_MAX + 1)].map(str::to_owned);
    for name in names {
        assert_eq!(PromptDeclaration::draft(name.clone()).declare().unwrap_err(), PromptError::Name(name));
    }
    assert!(PromptDeclaration::draft("a".repeat(PROMPT_NAME_BYTES_MAX)).declare().is_ok());
    let twice = PromptArgument::required("a");
    let twice = PromptDeclaration::draft("p").argument(twice.clone()).argument(twice).declare().unwrap_err();
    assert!(matches!(twice, PromptError::Argument { .. }), "{twice}");
    let with = |count: usize| {
        let draft = PromptDeclaration::draft("p");
        (0..count).fold(draft, |draft, n| draft.argument(PromptArgument::optional(format!("a{n}")))).declare()
    };
    assert!(with(PROMPT_ARGUMENTS_MAX).is_ok());
    assert_eq!(with(PROMPT_ARGUMENTS_MAX + 1).unwrap_err(), PromptError::TooManyArguments("p".into()));
    let meta = PromptDeclaration::draft("p").meta(json("[]")).declare().unwrap_err();
    assert_eq!(meta, PromptError::Meta("p".into()));
}

fn completing(params: &str) -> Result<(CompletionTarget<'static>, String), RpcError> {
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{params}}}"#);
    let peer = Peer { revision: Revision::V2025_11_25, capabilities: longhaul_wire::Capabilities::default() };
    let routed = route(&request(&message), &Context::Session { peer, last_marker: None, is_restored: false })?;
    let Operation::Complete(complete) = routed.operation else { panic!("no completion") };
    let target = match &complete.target {
        CompletionTarget::Prompt(name) => CompletionTarget::Prompt(name.to_string().into()),
        CompletionTarget::Template(uri) => CompletionTarget::Template(uri.to_string().into()),
    };
    Ok((target, complete.to_input().as_str().to_owned()))
}

#[test]
fn a_completion_names_what_it_completes() {
    let example = r#"{"ref":{"type":"ref/prompt","name":"code_review"},"argument":{"name":"framework","value":"fla"},
        "context":{"arguments":{"language":"python"}}}"#;
    let (target, input) = completing(example).unwrap();
    assert_eq!(target, CompletionTarget::Prompt("code_review".into()));
    assert_eq!(input, r#"{"argument":"framework","value":"fla","arguments":{"language":"python"}}"#);
    let resource = r#"{"ref":{"type":"ref/resource","uri":"file:///{path}"},"argument":{"name":"path","value":"\""}}"#;
    let (target, input) = completing(resource).unwrap();
    assert_eq!(target, CompletionTarget::Template("file:///{path}".into()));
    assert_eq!(input, r#"{"argument":"path","value":"\"","arguments":{}}"#);
    let reference = r#""ref":{"type":"ref/prompt","name":"p"}"#;
    let wrong = [
        "{}".to_owned(),
        format!("{{{reference}}}"),
        r#"{"ref":{"type":"ref/tool","name":"p"},"argument":{"name":"a","value":""}}"#.to_owned(),
        r#"{"ref":"p","argument":{"name":"a","value":""}}"#.to_owned(),
        format!(r#"{{{reference},"argument":{{"name":"a"}}}}"#),
        format!(r#"{{{reference},"argument":{{"name":"a","value":""}},"context":{{"arguments":{{"b":1}}}}}}"#),
        format!(r#"{{{reference},"argument":{{"name":"a","value":""}},"context":{{"arguments":[]}}}}"#),
    ];
    for params in wrong {
        assert_eq!(completing(&params).unwrap_err().code, -32602, "{params}");
    }
}

#[test]
fn at_most_a_hundred_completions_are_sent() {
    for count in [0, 1, COMPLETION_VALUES_MAX, COMPLETION_VALUES_MAX + 1, 1_000] {
        let values: Vec<String> = (0..count).map(|n| n.to_string()).collect();
        for revision in EVERY {
            let (id, server) = (1.into(), server());
            let to = ReplyTo { id: &id, revision, server: &server };
            let message = complete_as(ResultForm::Completion, &to, &completion::result(&values));
            must_answer(revision, "CompleteResult", &message);
            let completion = value(&message)["result"]["completion"].clone();
            assert_eq!(completion["values"].as_array().unwrap().len(), count.min(COMPLETION_VALUES_MAX));
            assert_eq!(completion["total"], count);
            assert_eq!(completion["hasMore"], count > COMPLETION_VALUES_MAX);
        }
    }
}

proptest! {
    #[test]
    fn any_text_in_a_prompt_arrives_unchanged(texts in prop::collection::vec("(?s).{0,20}", 0..4)) {
        let result = texts.iter().fold(PromptResult::new(), |result, text| result.with(PromptMessage::user(text.as_str())));
        let body = result.into_json();
        for revision in EVERY {
            let (id, server) = (1.into(), server());
            let message = complete_as(ResultForm::Prompt, &ReplyTo { id: &id, revision, server: &server }, &body);
            let messages = value(&message)["result"]["messages"].clone();
            let arrived: Vec<_> = messages.as_array().unwrap().iter().map(|message| message["content"]["text"].clone()).collect();
            prop_assert_eq!(&arrived, &texts);
        }
    }

    #[test]
    fn arguments_of_any_form_are_checked_without_a_panic(arguments in any_json(&["code", "language"], &["x"])) {
        let _ = full().check_arguments(&raw(&arguments.to_string()));
    }
}
