//! Subtasks: created once, awaited without holding anything, ended with their family.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Ctx, CtxError, EngineTool, Handler, SubtaskRequest, ToolLimits};
use longhaul_task::{Json, Outcome, PhaseName, TaskKey};

use crate::common::{
    Approve, Door, HandlerLog, Lab, Machine, answer, asks, call_options, echo, handler, hangs, resumes, text_of, tool,
    waits_at,
};

/// A subtask whose result is the text of its outcome.
#[derive(Clone)]
pub(crate) struct Child {
    tool: &'static str,
    input: String,
}

impl Child {
    pub(crate) fn new(tool: &'static str, input: impl Into<String>) -> Self {
        Self { tool, input: input.into() }
    }
}

impl SubtaskRequest for Child {
    type Result = String;

    fn tool(&self) -> &str {
        self.tool
    }

    fn input(&self) -> Result<Json, CtxError> {
        Ok(Json::from_text(self.input.as_str()))
    }

    fn read(&self, outcome: Outcome) -> Result<String, CtxError> {
        Ok(match outcome {
            Outcome::Result { body, .. } => body.as_str().trim_matches('"').to_owned(),
            Outcome::Error(error) => format!("error: {}", error.message),
            Outcome::Cancelled => "cancelled".into(),
        })
    }
}

/// Children of these tools, whose results are joined.
fn fans_out(tools: &'static [&'static str]) -> Arc<dyn Handler> {
    handler(move |mut ctx: Ctx, _input| async move {
        let children = (0..).zip(tools).map(|(n, tool)| Child::new(tool, n.to_string()));
        let results = ctx.subtasks("parts", children).await?;
        answer(&results.join(","))
    })
}

async fn children(lab: &Lab, parent: &TaskKey) -> Vec<TaskKey> {
    let ids = lab.engine.store().children(parent).await.unwrap();
    ids.into_iter().map(|id| TaskKey { owner: parent.owner.clone(), id }).collect()
}

#[tokio::test(start_paused = true)]
async fn results_come_in_the_order_of_the_requests() {
    let late = handler(|_ctx, input: Json| async move {
        let n: u64 = input.as_str().parse().unwrap();
        tokio::time::sleep(Duration::from_millis(100 - 10 * n)).await;
        answer(&format!("late {n}"))
    });
    let fails = handler(|_ctx, _input| async { Err(CtxError::BadAnswer("as it should".into())) });
    let tools = || vec![tool("late", Arc::clone(&late)), tool("fails", Arc::clone(&fails)), tool("echo", echo())];
    for parent in [
        resumes("all", fans_out(&["late", "fails", "echo", "late"])),
        tool("all", fans_out(&["late", "fails", "echo", "late"])),
    ] {
        let mut tools = tools();
        tools.push(parent);
        let lab = Lab::start(tools).await;
        let key = lab.create("all").await;
        let expected = "late 0,error: the answer does not fit the question: as it should,2,late 3";
        assert_eq!(lab.end(&key).await, text_of(expected));
        let task = lab.read(&key).await;
        assert_eq!((task.family.children, children(&lab, &key).await.len()), (4, 4));
        for (ordinal, child) in (0..).zip(children(&lab, &key).await) {
            let child = lab.read(&child).await;
            assert_eq!((child.family.ordinal, child.family.parent.as_ref()), (ordinal, Some(&key.id)));
            assert!(child.updated_at <= task.updated_at, "the parent ended after it");
        }
        lab.holds_nothing("late").await;
        lab.holds_nothing("all").await;
        assert_eq!(lab.engine.open(&key.owner), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn results_can_be_taken_one_by_one() {
    let parent = handler(|mut ctx: Ctx, _input| async move {
        let requests = (0..3).map(|n| Child::new("echo", n.to_string()));
        let mut subtasks = ctx.start_subtasks("parts", requests).await?;
        let mut results = Vec::new();
        while let Some(result) = subtasks.next(&mut ctx).await? {
            results.push(result);
            ctx.step("between", || async { Ok::<_, CtxError>(()) }).await?;
        }
        answer(&results.join(","))
    });
    let lab = Lab::start(vec![resumes("work", parent), tool("echo", echo())]).await;
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("0,1,2"));
}

#[test]
fn a_subtask_is_created_once_whatever_crashes() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let work = |door: &Door| EngineTool { policy: resumes("x", echo()).policy, ..tool("work", waits_at(door, &log)) };
    let tools = |door: &Door| vec![resumes("all", fans_out(&["work", "work", "work"])), work(door)];
    let key = machine.run_engine(tools(&door), async |lab| {
        let key = lab.create("all").await;
        log.hears("start 2").await;
        key
    });
    for _crash in 0..3 {
        machine.run_engine(tools(&door), async |lab| {
            lab.until(&key, "it waits again", |task| task.phase.wake_condition().is_some()).await;
            assert_eq!(children(&lab, &key).await.len(), 3);
        });
    }
    door.open_wide();
    machine.run_engine(tools(&door), async |lab| {
        assert_eq!(lab.end(&key).await, text_of("done,done,done"));
        assert_eq!(children(&lab, &key).await.len(), 3);
    });
}

#[tokio::test(start_paused = true)]
async fn a_commit_in_doubt_creates_no_child_twice() {
    let lab = Lab::start(vec![resumes("all", fans_out(&["echo", "echo"])), tool("echo", echo())]).await;
    lab.store.doubt("spawn", 2);
    let key = lab.create("all").await;
    assert_eq!(lab.end(&key).await, text_of("0,1"));
    assert_eq!(children(&lab, &key).await.len(), 2);
    assert!(lab.store.calls("spawn") >= 2);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_parent_holds_no_worker_and_is_woken_once() {
    let door = Door::shut();
    let one = ToolLimits::default().running_max(1);
    let parent = EngineTool { limits: one, ..resumes("all", fans_out(&["work", "work"])) };
    let log = HandlerLog::new();
    let lab = Lab::start(vec![
        parent,
        EngineTool { limits: ToolLimits::default().running_max(1), ..tool("work", waits_at(&door, &log)) },
    ])
    .await;
    let key = lab.create("all").await;
    lab.until(&key, "it is parked", |task| task.phase.name() == PhaseName::Parked).await;
    lab.counts("all", (0, 0)).await;
    let attempt = lab.read(&key).await.attempt;
    door.open();
    // Both were created at the same moment, so either of them may come first.
    crate::common::must_come("the end of one child", async {
        while futures_util::future::join_all(children(&lab, &key).await.iter().map(|child| lab.read(child)))
            .await
            .iter()
            .all(|child| !child.is_settled())
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(lab.read(&key).await.phase.name(), PhaseName::Parked, "the other child is still open");
    door.open();
    assert_eq!(lab.end(&key).await, text_of("done,done"));
    assert_eq!(lab.read(&key).await.attempt, attempt + 1);
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_parent_ends_the_tree_and_no_child_runs_past_its_grace() {
    let log = HandlerLog::new();
    let middle = handler(|mut ctx: Ctx, _input| async move {
        let inner = ctx.subtask("inner", Child::new("hang", "{}")).await?;
        answer(&inner)
    });
    let tools =
        vec![resumes("all", fans_out(&["middle", "hang"])), resumes("middle", middle), tool("hang", hangs(&log))];
    let lab = Lab::start(tools).await;
    let key = lab.create("all").await;
    log.hears_times("start", 2).await;
    lab.cancel(&key).await;
    for child in children(&lab, &key).await {
        assert_eq!(lab.read(&child).await.phase.outcome(), Some(&Outcome::Cancelled), "in the same commit");
    }
    log.hears_times("dropped", 2).await;
    for tool in ["all", "middle", "hang"] {
        lab.counts(tool, (0, 0)).await;
    }
    assert_eq!(lab.engine.open(&key.owner), 0);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_asks_does_not_make_its_parent_wait_for_an_answer() {
    let lab = Lab::start(vec![resumes("all", fans_out(&["ask"])), resumes("ask", asks())]).await;
    let key = lab.create("all").await;
    let child = loop {
        if let Some(child) = children(&lab, &key).await.pop() {
            break child;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    let question = lab.question(&child).await;
    assert!(lab.read(&key).await.phase.questions().is_none());
    lab.answer(&child, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
}

#[tokio::test(start_paused = true)]
async fn a_subtask_of_an_unknown_tool_or_with_large_arguments_is_refused() {
    let parent = handler(|mut ctx: Ctx, input: Json| async move {
        let child =
            if input.as_str() == "1" { Child::new("nowhere", "{}") } else { Child::new("echo", "1".repeat(11)) };
        ctx.subtask("one", child).await.map(|text| crate::common::text_of(&text))
    });
    let small = EngineTool { limits: ToolLimits::default().input_bytes_max(10), ..tool("echo", echo()) };
    let lab = Lab::start(vec![resumes("work", parent), small]).await;
    for input in ["1", "2"] {
        let key = lab.create_on("work", input).await;
        assert_eq!(crate::common::code(&lab.end(&key).await), "BAD_SUBTASK");
        assert_eq!(lab.read(&key).await.family.children, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subtask_has_the_same_kind_of_result_as_its_parent() {
    let prompt = EngineTool { result_kind: "prompt", ..resumes("ask for", fans_out(&["echo"])) };
    let lab = Lab::start(vec![prompt, tool("echo", echo())]).await;
    let key = lab.create("ask for").await;
    assert_eq!(crate::common::code(&lab.end(&key).await), "BAD_SUBTASK");
    assert_eq!(lab.read(&key).await.family.children, 0);
    // An ordinary call has no subtasks that a client could see.
    let called = lab.engine.call(&"ask for".into(), Json::from_text("{}"), call_options(&[])).await.unwrap();
    assert!(matches!(called, longhaul_engine::CallEnd::Done(longhaul_task::Outcome::Result { .. })));
}

#[test]
fn a_subtask_with_other_arguments_after_a_crash_is_refused() {
    let mut machine = Machine::new();
    let asks_after = |input: &'static str| {
        handler(move |mut ctx: Ctx, _input| async move {
            ctx.subtask("part", Child::new("echo", input)).await?;
            ctx.ask("approve", Approve).await?;
            answer("done")
        })
    };
    let tools = |input| vec![resumes("work", asks_after(input)), tool("echo", echo())];
    let (key, question) = machine.run_engine(tools("1"), async |lab| lab.create_until_asked("work").await);
    machine.run_engine(tools("2"), async |lab| {
        lab.answer(&key, &question, "1").await;
        assert_eq!(crate::common::code(&lab.end(&key).await), "HANDLER_CHANGED");
        let message = lab.read(&key).await.message.clone().unwrap();
        assert!(message.contains(r#"subtask "part" with other arguments"#), "{message}");
    });
}

#[tokio::test(start_paused = true)]
async fn in_an_ordinary_call_a_subtask_runs_inside_of_the_call() {
    let lab =
        Lab::start(vec![resumes("all", fans_out(&["echo", "ask"])), tool("echo", echo()), tool("ask", asks())]).await;
    let call = async |answers: &[(&str, &str)]| {
        lab.engine.call(&"all".into(), Json::from_text("{}"), call_options(answers)).await.unwrap()
    };
    let longhaul_engine::CallEnd::Asks { questions, .. } = call(&[]).await else { panic!("the child asks") };
    assert_eq!(questions[0].key, "approve");
    let end = call(&[("approve", "\"yes\"")]).await;
    assert!(matches!(end, longhaul_engine::CallEnd::Done(outcome) if outcome == text_of("0,yes")));
    assert_eq!((lab.store.calls("create"), lab.store.calls("spawn")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn many_children_are_created_in_few_commits() {
    let parent = handler(|mut ctx: Ctx, _input| async move {
        let results = ctx.subtasks("parts", (0..1_500).map(|n| Child::new("echo", n.to_string()))).await?;
        answer(&format!("{} {}", results.len(), results[1_499]))
    });
    let lab = Lab::start(vec![resumes("work", parent), tool("echo", echo())]).await;
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("1500 1499"));
    assert_eq!(lab.store.calls("spawn"), 2);
}

#[tokio::test(start_paused = true)]
async fn more_subtasks_than_the_limit_are_refused_before_the_first_is_created() {
    let fans_out = handler(|mut ctx: Ctx, input: Json| async move {
        let counts: Vec<usize> = serde_json::from_str(input.as_str()).unwrap();
        for count in counts {
            ctx.start_subtasks("parts", (0..count).map(|n| Child::new("hangs", n.to_string()))).await?;
        }
        answer("done")
    });
    let limits = ToolLimits::default().queued_max(usize::MAX);
    let child = EngineTool { limits, ..tool("hangs", hangs(&HandlerLog::new())) };
    let lab = Lab::start(vec![resumes("all", fans_out), child]).await;
    let max = longhaul_task::CHILDREN_MAX as usize;
    for (counts, created) in [(vec![usize::MAX], 0), (vec![max + 1], 0), (vec![1, max], 1)] {
        let key = lab.create_on("all", &serde_json::to_string(&counts).unwrap()).await;
        let has_failed = |task: &longhaul_task::Task| task.is_settled() || task.phase.name() == PhaseName::Parked;
        lab.until(&key, "it was refused", has_failed).await;
        assert_eq!(children(&lab, &key).await.len(), created, "{counts:?}");
    }
}
