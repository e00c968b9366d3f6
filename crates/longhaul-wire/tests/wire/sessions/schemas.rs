//! Everything that is sent in the stateful era fits the official schema of its revision.

use longhaul_task::{Progress, QuestionKind, TaskId};
use longhaul_wire::ask::{ClientQuestion, ping, request};
use longhaul_wire::content::ToolResult;
use longhaul_wire::jsonrpc::{self, RpcError};
use longhaul_wire::list::{self, ListKind, PageEnd};
use longhaul_wire::tool::{Annotations, TaskSupport, ToolDeclaration};
use longhaul_wire::tools_list::{self, ToolPage};
use longhaul_wire::{
    Cache, CancelledRequest, Capabilities, Capability, LogLevel, LogMessage, Peer, RelatedTask, Revision,
    ServerFeatures, TaskView, acknowledge, call_result, initialize, logging, progress, refusal, remote_task,
};

use super::{EVERY, LATEST, TASKS, id, to};
use crate::common::*;

fn file(revision: Revision) -> String {
    format!("mcp-{}", revision.as_str())
}

/// A response: as a message, and its result by its definition.
fn must_answer(revision: Revision, definition: &str, message: &str) {
    let envelope = if revision == LATEST { "JSONRPCResultResponse" } else { "JSONRPCResponse" };
    must_fit(&file(revision), envelope, message, "");
    must_fit(&file(revision), definition, message, "/result");
}

#[test]
fn the_handshake_fits() {
    for (instructions, lists_tasks) in [(None, true), (Some("Say \"please\"."), false)] {
        let title = instructions;
        let offer = initialize::Offer {
            name: "longhaul",
            title,
            version: "0.1.0",
            instructions,
            features: ServerFeatures { tells_changes: lists_tasks, ..ServerFeatures::default() },
            lists_tasks,
        };
        for revision in EVERY {
            must_answer(revision, "InitializeResult", &initialize::answer(&to(&id(), revision), &offer));
        }
    }
}

#[test]
fn lists_of_tools_fit_and_say_what_each_revision_knows() {
    let full = ToolDeclaration::draft("render.video_2")
        .title("Render")
        .description("Renders\na video.")
        .input_schema(json("{\n \"type\": \"object\", \"properties\": {\"z\": true, \"a\": false, \"m\": {}}}"))
        .output_schema(json(r#"{"type":"object","properties":{"any":true}}"#))
        .annotations(Annotations { title: Some("R".into()), read_only: Some(false), ..Annotations::default() })
        .declare()
        .unwrap();
    let array = json(r#"{"type":"array"}"#);
    let bare =
        ToolDeclaration::draft("bare").output_schema(array).task_support(TaskSupport::Required).declare().unwrap();
    let fixed = ToolDeclaration::draft("fixed")
        .output_schema(json(r#"{"type":"object"}"#))
        .task_support(TaskSupport::Forbidden)
        .declare()
        .unwrap();
    let tools = [&full, &fixed, &bare];
    let cache = Cache { ttl_ms: 1, is_public: true };
    for revision in EVERY {
        let mut page =
            ToolPage { tools: &tools, end: PageEnd { next_cursor: Some("2"), cache }, may_get_tickets: false };
        let message = tools_list::answer(&to(&id(), revision), &page);
        must_answer(revision, "ListToolsResult", &message);
        let result = &value(&message)["result"];
        assert_eq!(result["nextCursor"], "2");
        let listed = |message: &str, name: &str| -> Vec<bool> {
            let tools = value(message)["result"]["tools"].clone();
            tools.as_array().unwrap().iter().map(|tool| tool.get(name).is_some()).collect()
        };
        let since_june = revision > Revision::V2025_03_26;
        // A tool that requires a task is listed only where there are tasks.
        let count = if revision == LATEST { 3 } else { 2 };
        assert_eq!(listed(&message, "title"), [since_june, false, false][..count]);
        assert_eq!(
            listed(&message, "outputSchema"),
            [since_june, since_june, false][..count],
            "an output must be an object"
        );
        assert_eq!(listed(&message, "execution"), [revision == LATEST; 3][..count]);
        assert_eq!(
            listed(&message, "annotations"),
            [true; 3][..count],
            "one generation looks there for the task support"
        );
        if revision == LATEST {
            let support: Vec<_> =
                (0..3).map(|index| result["tools"][index]["execution"]["taskSupport"].clone()).collect();
            assert_eq!(support, ["optional", "forbidden", "required"]);
        }
        page.may_get_tickets = true;
        page.end.next_cursor = None;
        let message = tools_list::answer(&to(&id(), revision), &page);
        must_answer(revision, "ListToolsResult", &message);
        assert_eq!(listed(&message, "outputSchema"), [false, since_june, false], "a ticket would break it");
        must_fit(&file(revision), "ToolListChangedNotification", &list::changed(ListKind::Tools, None), "");
    }
}

#[test]
fn results_fit() {
    let rich = rich_result();
    let bodies = [
        rich.as_str(),
        ToolResult::structured(json("[1]")).into_json().as_str(),
        r#"{"structuredContent":5,"resultType":"complete"}"#,
        "{}",
        "null",
    ]
    .map(str::to_owned);
    for revision in EVERY {
        for body in &bodies {
            must_answer(revision, "CallToolResult", &call_result::complete(&to(&id(), revision), &json(body)));
            let task = completed(body, false);
            let message = TASKS.result(&to(&id(), revision), &TaskView::of(&task)).unwrap();
            must_answer(revision, "CallToolResult", &message);
        }
    }
}

#[test]
fn tasks_fit_in_every_phase_and_everywhere_they_are_shown() {
    let said = Progress { done: 1.0, total: None, message: Some("half\nway".into()), at: CREATED.plus_ms(9_000_000) };
    let children = [TaskId::parse("child \"1\"").unwrap(), TaskId::parse("child-2").unwrap()];
    let tasks = [
        queued(),
        running(),
        waiting(QuestionKind::Elicitation, FORM),
        completed(r#"{"content":[]}"#, false),
        completed(r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#, true),
        failed(),
        cancelled(),
    ];
    let views: Vec<_> = tasks
        .iter()
        .map(|task| TaskView {
            task,
            progress: Some(&said),
            children: &children,
            asking_child: children.first(),
            poll_interval_ms: 5_000,
        })
        .collect();
    for view in &views {
        must_answer(LATEST, "GetTaskResult", &TASKS.task(&to(&id(), LATEST), view));
        must_answer(LATEST, "CancelTaskResult", &TASKS.cancelled(&to(&id(), LATEST), view));
        for sentence in [None, Some("I have \"begun\".")] {
            must_answer(LATEST, "CreateTaskResult", &TASKS.created(&to(&id(), LATEST), view, sentence));
        }
        must_answer(LATEST, "CreateTaskResult", &TASKS.created_earlier(&to(&id(), LATEST), view));
        let pushed = TASKS.changed(None, view).unwrap();
        must_fit(&file(LATEST), "TaskStatusNotification", &pushed, "");
        must_fit(&file(LATEST), "ServerNotification", &pushed, "");
        if let Some(message) = TASKS.result(&to(&id(), LATEST), view) {
            must_fit(&file(LATEST), "JSONRPCResponse", &message, "");
        }
    }
    for cursor in [None, Some("next")] {
        must_answer(LATEST, "ListTasksResult", &TASKS.page(&to(&id(), LATEST), &views, cursor));
    }
}

#[test]
fn notifications_fit() {
    let task = running();
    for related in [None, Some(RelatedTask::to(TASKS, &task))] {
        for revision in EVERY {
            for (done, total) in [(0.5, Some(1.0)), (3.0, None), (f64::NAN, Some(f64::INFINITY)), (1e300, None)] {
                let said = Progress { done, total, message: Some("…".into()), at: CREATED };
                let message = progress::notification(&id(), &said, related);
                must_fit(&file(revision), "ProgressNotification", &message, "");
            }
            for level in LogLevel::ALL {
                let data = json(r#"{"error":"Connection failed","details":{"port":5432}}"#);
                let entry = LogMessage { level, logger: Some("database"), data: &data };
                let message = logging::notification(entry, related);
                must_fit(&file(revision), "LoggingMessageNotification", &message, "");
                must_fit(&file(revision), "ServerNotification", &message, "");
            }
            for reason in [None, Some("late".to_owned())] {
                let message = CancelledRequest { request_id: id(), reason }.notification();
                must_fit(&file(revision), "CancelledNotification", &message, "");
            }
        }
    }
}

#[test]
fn requests_of_the_server_fit() {
    let url = r#"{"mode":"url","message":"Go","url":"https://example.com/x"}"#;
    let sampling = r#"{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9,"includeContext":"allServers"}"#;
    let task = running();
    let declared = Capability::ALL.into_iter().fold(Capabilities::default(), Capabilities::and);
    for revision in EVERY {
        let peer = Peer::new(revision, declared);
        for (kind, params, definition) in [
            (QuestionKind::Elicitation, FORM, "ElicitRequest"),
            (QuestionKind::Elicitation, url, "ElicitRequest"),
            (QuestionKind::Sampling, sampling, "CreateMessageRequest"),
            (QuestionKind::Roots, "{}", "ListRootsRequest"),
        ] {
            let params = json(params);
            if !peer.can_answer(kind, &params) {
                assert!(revision < LATEST && kind == QuestionKind::Elicitation);
                continue;
            }
            for (related, as_task_ms) in [(None, None), (Some(RelatedTask::to(TASKS, &task)), Some(60_000))] {
                let asking = ClientQuestion { key: "k-1", kind, params: &params, related, as_task_ms };
                let message = request(&id(), &asking, peer);
                must_fit(&file(revision), definition, &message, "");
                must_fit(&file(revision), "ServerRequest", &message, "");
                must_fit(&file(revision), "JSONRPCRequest", &message, "");
            }
        }
        must_fit(&file(revision), "PingRequest", &ping(&id()), "");
        must_answer(revision, "EmptyResult", &acknowledge(&to(&id(), revision)));
    }
    for (definition, message) in [
        ("GetTaskRequest", remote_task::get(&id(), "t")),
        ("GetTaskPayloadRequest", remote_task::result(&id(), "t")),
        ("CancelTaskRequest", remote_task::cancel(&id(), "t")),
    ] {
        must_fit(&file(LATEST), definition, &message, "");
        must_fit(&file(LATEST), "ServerRequest", &message, "");
    }
}

#[test]
fn errors_fit() {
    let all = [
        refusal::no_such_task(),
        refusal::no_such_tool("x"),
        refusal::no_such_cursor(),
        refusal::unknown_method_in_session("x"),
        refusal::task_forbidden("x"),
        refusal::task_required("x"),
        refusal::already_ended("completed"),
        refusal::task_was_cancelled(),
        refusal::already_initialized(),
        refusal::unsupported_header("x", &EVERY.map(Revision::as_str)),
        RpcError::parse("x"),
    ];
    for error in &all {
        for revision in EVERY {
            let definition = if revision == LATEST { "JSONRPCErrorResponse" } else { "JSONRPCError" };
            must_fit(&file(revision), definition, &jsonrpc::error(Some(&id()), error), "");
        }
        must_fit(&file(LATEST), "JSONRPCErrorResponse", &jsonrpc::error(None, error), "");
        assert!(!(-32_099..=-32_000).contains(&error.code), "that range is the protocol's");
    }
}
