//! Everything that this crate writes fits the official schemas.

use longhaul_task::{Progress, QuestionKind, TaskId};
use longhaul_wire::call_result::{self, InputRequest};
use longhaul_wire::content::ToolResult;
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};
use longhaul_wire::list::{self, ListKind, PageEnd};
use longhaul_wire::subscription::{self, SubscriptionFilter};
use longhaul_wire::tool::{Annotations, ToolDeclaration};
use longhaul_wire::{
    Cache, Capability, LogLevel, LogMessage, Revision, ServerFeatures, TaskView, acknowledge, discover, logging,
    progress, tools_list,
};

use super::{TASKS, to};
use crate::common::*;

const CORE: &str = "mcp-2026-07-28";
const EXTENSION: &str = "ext-tasks-2026-07-28";

fn id() -> RequestId {
    RequestId::from_text("a-1")
}

const CACHE: Cache = Cache { ttl_ms: 300_000, is_public: true };

#[test]
fn discovery_fits() {
    let discovered = discover::Discovery {
        versions: &[Revision::V2026_07_28.as_str()],
        features: ServerFeatures { prompts: true, resources: true, completions: true, tells_changes: true },
        instructions: Some("Say \"please\"."),
        cache: CACHE,
    };
    let message = discover::answer(&to(&id(), &server()), &discovered);
    must_fit(CORE, "DiscoverResultResponse", &message, "");
    let capabilities = &value(&message)["result"]["capabilities"];
    assert_eq!(
        *capabilities,
        value(
            r#"{"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},
                "tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#
        )
    );
}

#[test]
fn the_list_of_tools_fits() {
    let full = ToolDeclaration::draft("render.video_2")
        .title("Render")
        .description("Renders\na video.")
        .input_schema(json("{\n \"type\": \"object\", \"properties\": {\"z\": {\"type\": \"string\"}, \"a\": {}}}"))
        .output_schema(json(r#"{"type":"array"}"#))
        .annotations(Annotations { read_only: Some(false), idempotent: Some(true), ..Annotations::default() })
        .declare()
        .unwrap();
    let bare = ToolDeclaration::draft("bare").declare().unwrap();
    let tools = [&full, &bare];
    let mut page = tools_list::ToolPage {
        tools: &tools,
        end: PageEnd { next_cursor: Some("2"), cache: CACHE },
        may_get_tickets: false,
    };
    let message = tools_list::answer(&to(&id(), &server()), &page);
    must_fit(CORE, "ListToolsResultResponse", &message, "");
    assert!(!message.contains('\n'));
    assert!(message.find("\"z\"").unwrap() < message.find("\"a\"").unwrap(), "an author's order is kept");
    assert!(message.contains("outputSchema"));

    page.may_get_tickets = true;
    page.end.next_cursor = None;
    let message = tools_list::answer(&to(&id(), &server()), &page);
    must_fit(CORE, "ListToolsResultResponse", &message, "");
    assert!(!message.contains("outputSchema"), "a ticket would break it");
}

#[test]
fn the_answers_to_a_call_fit() {
    let body = rich_result();
    must_fit(CORE, "CallToolResultResponse", &call_result::complete(&to(&id(), &server()), &body), "");
    must_fit(CORE, "CallToolResult", &call_result::complete(&to(&id(), &server()), &body), "/result");

    let sampling = r#"{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9}"#;
    let url = r#"{"mode":"url","message":"Go","url":"https://example.com/x"}"#;
    let requests = [
        InputRequest { key: "a".into(), kind: QuestionKind::Elicitation, params: json(FORM) },
        InputRequest { key: "b".into(), kind: QuestionKind::Elicitation, params: json(url) },
        InputRequest { key: "c".into(), kind: QuestionKind::Sampling, params: json(sampling) },
        InputRequest { key: "d".into(), kind: QuestionKind::Roots, params: json("{}") },
    ];
    for (requests, state) in [(&requests[..], Some("sealed")), (&requests[..], None), (&[], Some("sealed"))] {
        let message = call_result::input_required(&to(&id(), &server()), requests, state);
        must_fit(CORE, "InputRequiredResult", &message, "/result");
    }

    for task in [queued(), running(), waiting(QuestionKind::Elicitation, FORM), completed("{}", false), failed()] {
        let message = TASKS.created(&to(&id(), &server()), &TaskView::of(&task), None);
        assert_eq!(TASKS.created_earlier(&to(&id(), &server()), &TaskView::of(&task)), message);
        must_fit(EXTENSION, "CreateTaskResult", &message, "/result");
        let result = &value(&message)["result"];
        for payload in ["result", "error", "inputRequests"] {
            assert!(result.get(payload).is_none(), "{payload} does not belong in a creation");
        }
    }
}

#[test]
fn a_task_fits_in_every_phase_polled_and_pushed() {
    let body = ToolResult::text("Hello, Luca!").into_json();
    let said = Progress { done: 1.0, total: None, message: Some("half\nway".into()), at: CREATED.plus_ms(9_000_000) };
    let children = [TaskId::parse("child \"1\"").unwrap(), TaskId::parse("child-2").unwrap()];
    let phases = [
        ("WorkingTask", queued()),
        ("WorkingTask", running()),
        ("InputRequiredTask", waiting(QuestionKind::Elicitation, FORM)),
        ("InputRequiredTask", waiting(QuestionKind::Roots, "{}")),
        ("CompletedTask", completed(body.as_str(), false)),
        ("FailedTask", failed()),
        ("CancelledTask", cancelled()),
    ];
    for (definition, task) in &phases {
        let view = TaskView {
            task,
            progress: Some(&said),
            children: &children,
            asking_child: children.first(),
            poll_interval_ms: 5_000,
        };
        let polled = TASKS.task(&to(&id(), &server()), &view);
        must_fit(EXTENSION, "GetTaskResult", &polled, "/result");
        must_fit(EXTENSION, definition, &polled, "/result");
        must_fit(CORE, "JSONRPCResultResponse", &polled, "");
        let pushed = TASKS.changed(Some(&id()), &view).unwrap();
        must_fit(EXTENSION, "TaskStatusNotification", &pushed, "");
        must_fit(EXTENSION, definition, &pushed, "/params");

        let (mut polled, mut pushed) = (value(&polled)["result"].clone(), value(&pushed)["params"].clone());
        assert_eq!(pushed["_meta"], value(r#"{"io.modelcontextprotocol/subscriptionId":"a-1"}"#));
        for message in [&mut polled, &mut pushed] {
            message.as_object_mut().unwrap().retain(|name, _| name != "_meta" && name != "resultType");
        }
        assert_eq!(polled, pushed, "a push shows what a poll shows");
    }
}

#[test]
fn acknowledgements_and_streams_fit() {
    let ack = acknowledge(&to(&id(), &server()));
    must_fit(EXTENSION, "UpdateTaskResult", &ack, "/result");
    must_fit(EXTENSION, "CancelTaskResult", &ack, "/result");

    let nothing = SubscriptionFilter::default();
    let everything = SubscriptionFilter {
        task_ids: Some(vec![TaskId::parse("t").unwrap()]),
        tools_list_changed: true,
        prompts_list_changed: true,
        resources_list_changed: true,
        resources: Some(vec!["a:b".into()]),
    };
    for filter in [&nothing, &everything] {
        let message = subscription::acknowledged(&3.into(), filter);
        must_fit(CORE, "SubscriptionsAcknowledgedNotification", &message, "");
        must_fit(EXTENSION, "TaskSubscriptionAcknowledgedNotifications", &message, "/params/notifications");
    }
    must_fit(CORE, "ToolListChangedNotification", &list::changed(ListKind::Tools, Some(&3.into())), "");
    let closed = subscription::closed(&to(&3.into(), &server()));
    must_fit(CORE, "SubscriptionsListenResultResponse", &closed, "");

    for (done, total) in [(0.5, Some(1.0)), (3.0, None), (f64::NAN, Some(f64::INFINITY)), (1e300, None)] {
        let said = Progress { done, total, message: Some("…".into()), at: CREATED };
        must_fit(CORE, "ProgressNotification", &progress::notification(&id(), &said, None), "");
    }
    for (logger, data) in [(None, "\"line\""), (Some("database \"a\""), r#"{"error":[1]}"#), (None, "null")] {
        let data = json(data);
        let line = LogMessage { level: LogLevel::Warning, logger, data: &data };
        let message = logging::notification(line, None);
        must_fit(CORE, "LoggingMessageNotification", &message, "");
        must_fit(CORE, "ServerNotification", &message, "");
    }
}

#[test]
fn errors_fit() {
    let id = id();
    let whole = |error: &RpcError| jsonrpc::error(Some(&id), error);
    let all = [
        ("ParseError", "/error", RpcError::parse("x")),
        ("InvalidRequestError", "/error", RpcError::invalid_request("x")),
        ("MethodNotFoundError", "/error", longhaul_wire::refusal::unknown_method("x")),
        ("InvalidParamsError", "/error", RpcError::invalid_params("x")),
        ("InternalError", "/error", RpcError::internal("x")),
        ("HeaderMismatchError", "", RpcError::header_mismatch("x")),
        ("UnsupportedProtocolVersionError", "", RpcError::unsupported_version(&["2026-07-28"], "1900-01-01")),
        ("MissingRequiredClientCapabilityError", "", Capability::Tasks.missing()),
        ("MissingRequiredClientCapabilityError", "", Capability::ElicitationForm.missing()),
        ("MissingRequiredClientCapabilityError", "", Capability::ElicitationUrl.missing()),
        ("MissingRequiredClientCapabilityError", "", Capability::Sampling.missing()),
        ("MissingRequiredClientCapabilityError", "", Capability::SamplingTools.missing()),
        ("MissingRequiredClientCapabilityError", "", Capability::Roots.missing()),
    ];
    for (definition, part, error) in &all {
        must_fit(CORE, definition, &whole(error), part);
        must_fit(CORE, "JSONRPCErrorResponse", &whole(error), "");
        must_fit(CORE, "JSONRPCErrorResponse", &jsonrpc::error(None, error), "");
    }
}
