//! A process is killed, and the next one finds what it left: nothing acknowledged is lost, nothing runs twice.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    Approve, Door, HandlerLog, Lab, Machine, answer, code, echo, handler, handler_with, on_crash, one_worker, phase,
    text_of, tool, waits_at,
};
use longhaul_engine::{Ctx, EngineError, EngineLimits, EngineTool, Handler};
use longhaul_store::StoreError;
use longhaul_task::{AttemptEnd, Json, OnCrash, Outcome, PhaseName, Policy, TaskKey, ToolRef, TransitionError};

/// Says which attempt it is, and stays until its door opens.
fn says_attempt(door: &Door, log: &HandlerLog) -> Arc<dyn Handler> {
    handler_with((door.clone(), log.clone()), |(door, log), ctx: Ctx, _input| async move {
        log.say(format!("attempt {}", ctx.attempt()));
        door.pass().await;
        answer(&format!("attempt {}", ctx.attempt()))
    })
}

#[test]
fn a_task_that_was_running_fails_and_says_so_before_the_next_engine_has_started() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let tools = || vec![tool("work", says_attempt(&door, &log))];
    let key = machine.run_engine(tools(), async |lab| {
        let key = lab.create("work").await;
        log.hears("attempt 1").await;
        key
    });
    machine.run_engine(tools(), async |lab| {
        let task = lab.read(&key).await;
        assert_eq!(code(task.phase.outcome().unwrap()), "CRASH_RECOVERY");
        assert!(task.message.is_some());
        door.open_wide();
        // Time jumps over everything that could happen by itself.
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(lab.read(&key).await, task);
        assert_eq!(lab.load("work"), (0, 0));
    });
    assert_eq!(log.said(), ["attempt 1"]);
}

#[test]
fn a_task_that_retries_runs_again_after_its_backoff() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let tools = || vec![on_crash(OnCrash::Retry, tool("work", says_attempt(&door, &log)))];
    let key = machine.run_engine(tools(), async |lab| {
        let key = lab.create("work").await;
        log.hears("attempt 1").await;
        key
    });
    machine.run_engine(tools(), async |lab| {
        let task = lab.read(&key).await;
        assert_eq!(phase(&task), PhaseName::Queued, "no node holds it when the engine has started");
        let wait_ms = task.phase.not_before().unwrap().ms_since(task.updated_at);
        let backoff_ms = Policy::default().backoff_ms;
        assert!((backoff_ms / 2..=backoff_ms).contains(&wait_ms), "{wait_ms} ms");
        door.open();
        assert_eq!(lab.end(&key).await, text_of("attempt 2"));
        lab.counts("work", (0, 0)).await;
    });
    assert_eq!(log.said(), ["attempt 1", "attempt 2"]);
}

#[test]
fn a_backoff_that_passed_while_no_process_ran_is_over() {
    let mut machine = Machine::new();
    let log = HandlerLog::new();
    let tools = |door: &Door| vec![on_crash(OnCrash::Retry, tool("work", says_attempt(door, &log)))];
    let (shut, open) = (Door::shut(), Door::shut());
    open.open_wide();
    let key = machine.run_engine(tools(&shut), async |lab| lab.create("work").await);
    machine.run_engine(tools(&shut), async |_lab| ());
    machine.wait_ms(3_600_000);
    machine.run_engine(tools(&open), async |lab| {
        let began = lab.engine.now().await.unwrap();
        assert_eq!(lab.end(&key).await, text_of("attempt 2"));
        let waited_ms = lab.read(&key).await.updated_at.ms_since(began);
        assert!(waited_ms < Policy::default().backoff_ms, "it waited for {waited_ms} ms more");
    });
}

#[test]
fn a_task_fails_when_it_has_had_all_its_attempts() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let policy = Policy { on_crash: OnCrash::Retry, attempts_max: 3, ..Policy::default() };
    let tools = || vec![EngineTool { policy: policy.clone(), ..tool("work", says_attempt(&door, &log)) }];
    let key = machine.run_engine(tools(), async |lab| lab.create("work").await);
    for attempt in 2..=3 {
        machine.run_engine(tools(), async |lab| {
            log.hears(&format!("attempt {attempt}")).await;
            assert_eq!(phase(&*lab.read(&key).await), PhaseName::Running);
        });
    }
    machine.run_engine(tools(), async |lab| {
        assert_eq!(code(lab.read(&key).await.phase.outcome().unwrap()), "CRASH_RECOVERY");
        assert_eq!(lab.read(&key).await.attempt, 3);
        tokio::time::sleep(Duration::from_secs(600)).await;
    });
    let later: Vec<String> = log.said().into_iter().filter(|word| word != "attempt 1").collect();
    assert_eq!(later, ["attempt 2", "attempt 3"]);
}

#[test]
fn what_was_queued_is_still_queued_and_runs_once_and_counts() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let limits = EngineLimits::default().open_per_owner_max(4);
    let keys: Vec<TaskKey> =
        machine.run_engine_with(vec![one_worker("work", waits_at(&door, &log))], limits.clone(), async |lab| {
            let mut keys = Vec::new();
            for n in 0..4 {
                keys.push(lab.create_on("work", &n.to_string()).await);
            }
            log.hears("start 0").await;
            keys
        });
    let later = HandlerLog::new();
    machine.run_engine_with(vec![one_worker("work", waits_at(&door, &later))], limits, async |lab| {
        // One failed in the recovery, three are open: there is room for one more.
        lab.create_on("work", "4").await;
        assert_eq!(lab.try_create("work", "5").await.unwrap_err(), EngineError::TooManyOpen { open_max: 4 });
        door.open_wide();
        assert_eq!(code(&lab.end(&keys[0]).await), "CRASH_RECOVERY");
        for key in &keys[1..] {
            assert_eq!(lab.end(key).await, text_of("done"));
            assert_eq!(lab.read(key).await.attempt, 1);
        }
        later.hears("done 4").await;
        lab.counts("work", (0, 0)).await;
    });
    for n in 1..=4 {
        assert_eq!(later.said().iter().filter(|word| **word == format!("start {n}")).count(), 1);
    }
}

#[test]
fn an_end_that_was_seen_stays_the_end() {
    let mut machine = Machine::new();
    let tools = || vec![on_crash(OnCrash::Retry, tool("echo", echo()))];
    let ended = machine.run_engine(tools(), async |lab| {
        let key = lab.create_on("echo", "1").await;
        lab.end(&key).await;
        lab.read(&key).await
    });
    machine.run_engine(tools(), async |lab| {
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(lab.read(&ended.key).await, ended);
    });
}

fn asks() -> Arc<dyn Handler> {
    handler(|mut ctx: Ctx, _input| async move {
        let said = ctx.ask("approve", Approve).await?;
        answer(&format!("{said} to attempt {}", ctx.attempt()))
    })
}

#[test]
fn a_question_goes_with_its_attempt_and_the_next_attempt_asks_its_own() {
    let mut machine = Machine::new();
    let tools = || vec![on_crash(OnCrash::Retry, tool("ask", asks()))];
    let (key, first) = machine.run_engine(tools(), async |lab| lab.create_until_asked("ask").await);
    machine.run_engine(tools(), async |lab| {
        let stale =
            lab.engine.answer(&key, first.clone(), longhaul_task::Answer::Given(Json::from_text("\"late\""))).await;
        assert_eq!(stale.unwrap_err(), EngineError::Store(StoreError::Refused(TransitionError::NoSuchQuestion)));
        let second = lab.question(&key).await;
        assert_ne!(first, second);
        lab.answer(&key, &second, "\"yes\"").await;
        assert_eq!(lab.end(&key).await, text_of("yes to attempt 2"));
        lab.counts("ask", (0, 0)).await;
    });
}

#[test]
fn an_answer_that_was_taken_does_not_survive_a_crash_without_resume() {
    let mut machine = Machine::new();
    let asks_and_stays = || {
        handler(|mut ctx: Ctx, _input| async move {
            let said = ctx.ask("approve", Approve).await?;
            ctx.report(&said).await?;
            ctx.ask("again", Approve).await?;
            answer(&said)
        })
    };
    let tools = || vec![on_crash(OnCrash::Retry, tool("ask", asks_and_stays()))];
    let key = machine.run_engine(tools(), async |lab| {
        let (key, question) = lab.create_until_asked("ask").await;
        lab.answer(&key, &question, "\"before\"").await;
        lab.until(&key, "the report", |task| task.message.as_deref() == Some("before")).await;
        key
    });
    machine.run_engine(tools(), async |lab| {
        for said in ["\"after\"", "\"done\""] {
            let question = lab.question(&key).await;
            lab.answer(&key, &question, said).await;
            lab.until(&key, "the next step", |task| {
                task.phase.questions().is_none_or(|open| open.find(&question).is_none())
            })
            .await;
        }
        assert_eq!(lab.end(&key).await, text_of("after"));
    });
}

#[test]
fn a_resumed_handler_finds_its_question_under_the_same_key() {
    let mut machine = Machine::new();
    let tools = || vec![on_crash(OnCrash::Resume, tool("ask", asks()))];
    let (key, question) = machine.run_engine(tools(), async |lab| lab.create_until_asked("ask").await);
    machine.run_engine(tools(), async |lab| {
        lab.until(&key, "the second attempt has found it", |task| task.phase.wake_condition().is_some()).await;
        assert_eq!(lab.asks(&key, 1).await, std::slice::from_ref(&question));
        lab.answer(&key, &question, "\"yes\"").await;
        assert_eq!(lab.end(&key).await, text_of("yes to attempt 3"));
        assert_eq!(lab.read(&key).await.questions_asked, 1, "it was asked once");
        lab.counts("ask", (0, 0)).await;
    });
}

#[test]
fn an_answer_that_comes_before_the_resumed_attempt_begins_is_not_lost() {
    let mut machine = Machine::new();
    let tools = || vec![on_crash(OnCrash::Resume, tool("ask", asks()))];
    let (key, question) = machine.run_engine(tools(), async |lab| lab.create_until_asked("ask").await);
    machine.run_engine(tools(), async |lab| {
        assert!(lab.read(&key).await.phase.not_before().is_some(), "it waits for its backoff");
        lab.answer(&key, &question, "\"yes\"").await;
        assert_eq!(lab.end(&key).await, text_of("yes to attempt 2"));
        assert_eq!(lab.read(&key).await.questions_asked, 1);
    });
}

#[test]
fn what_was_answered_before_a_crash_is_not_asked_again_by_an_attempt_that_resumes() {
    let mut machine = Machine::new();
    let asks_twice = || {
        handler(|mut ctx: Ctx, _input| async move {
            let first = ctx.ask("first", Approve).await?;
            let second = ctx.ask("second", Approve).await?;
            answer(&format!("{first} and {second}"))
        })
    };
    let tools = || vec![on_crash(OnCrash::Resume, tool("ask", asks_twice()))];
    let (key, second) = machine.run_engine(tools(), async |lab| {
        let (key, first) = lab.create_until_asked("ask").await;
        lab.answer(&key, &first, "\"one\"").await;
        let open = |task: &longhaul_task::Task| task.questions_asked == 2;
        let task = lab.until(&key, "the second question", open).await;
        (key, task.phase.questions().unwrap().iter().next().unwrap().key.clone())
    });
    machine.run_engine(tools(), async |lab| {
        assert_eq!(lab.asks(&key, 1).await, std::slice::from_ref(&second));
        lab.answer(&key, &second, "\"two\"").await;
        assert_eq!(lab.end(&key).await, text_of("one and two"));
        assert_eq!(lab.read(&key).await.questions_asked, 2);
    });
}

#[test]
fn a_task_that_waited_for_an_answer_fails_like_a_running_one() {
    let mut machine = Machine::new();
    let tools = || vec![tool("ask", asks())];
    let (key, question) = machine.run_engine(tools(), async |lab| lab.create_until_asked("ask").await);
    machine.run_engine(tools(), async |lab| {
        let task = lab.read(&key).await;
        assert_eq!(code(task.phase.outcome().unwrap()), "CRASH_RECOVERY");
        let message = task.message.as_deref().unwrap();
        assert!(message.contains("waiting for an answer"), "it was not running: {message}");
        let late = lab.engine.answer(&key, question, longhaul_task::Answer::Given(Json::from_text("1"))).await;
        assert_eq!(late.unwrap_err(), EngineError::Store(StoreError::Refused(TransitionError::Settled)));
    });
}

fn version(version: &str, tool: EngineTool) -> EngineTool {
    EngineTool { tool: ToolRef::new(Arc::clone(&tool.tool.name), version), ..tool }
}

#[test]
fn a_queued_task_whose_tool_is_gone_fails_after_the_documented_wait_and_not_earlier() {
    let mut machine = Machine::new();
    let limits = EngineLimits::default().tool_gone_ms(60_000);
    let [key] = machine.queue_tasks(limits.clone());
    machine.run_engine_with(vec![tool("other", echo())], limits.clone(), async |lab| {
        let began = lab.engine.now().await.unwrap();
        assert_eq!(phase(&*lab.read(&key).await), PhaseName::Queued);
        assert_eq!(code(&lab.end(&key).await), "TOOL_GONE");
        assert!(lab.read(&key).await.updated_at >= began.plus_ms(limits.tool_gone_ms));
    });
}

#[test]
fn a_task_for_one_version_is_not_run_by_another_and_waits_for_its_own() {
    let mut machine = Machine::new();
    let (shut, open) = (Door::shut(), Door::shut());
    open.open_wide();
    let (one, two) = (HandlerLog::new(), HandlerLog::new());
    let first = |door: &Door| version("1", one_worker("work", waits_at(door, &one)));
    let key = machine.run_engine(vec![first(&shut)], async |lab| {
        lab.create_on("work", "1").await;
        lab.create_on("work", "2").await
    });
    machine.run_engine(vec![version("2", one_worker("work", waits_at(&open, &two)))], async |lab| {
        let own = lab.create_on("work", "3").await;
        assert_eq!(lab.end(&own).await, text_of("done"));
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(phase(&*lab.read(&key).await), PhaseName::Queued);
    });
    assert_eq!(two.said(), ["start 3", "done 3"]);
    machine.run_engine(vec![first(&open)], async |lab| {
        assert_eq!(lab.end(&key).await, text_of("done"));
    });
}

#[test]
fn many_tasks_of_a_dead_process_are_all_dealt_with_before_the_engine_has_started() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let limits = longhaul_engine::ToolLimits::default().running_max(3_000);
    let tools = || vec![EngineTool { limits: limits.clone(), ..tool("work", waits_at(&door, &log)) }];
    let keys = machine.run_engine(tools(), async |lab| {
        let made = (0..2_500).map(|_| lab.create("work"));
        futures_util::future::join_all(made).await
    });
    machine.run_engine(tools(), async |lab| {
        for key in &keys {
            assert!(matches!(lab.read(key).await.phase.outcome(), Some(Outcome::Error(_))));
        }
        assert_eq!(lab.load("work"), (0, 0));
    });
}

/// A handler whose first attempts fail, and a tool that retries failures.
fn fails_until(attempt: u32, is_final: bool) -> EngineTool {
    let fails = handler(move |ctx: Ctx, _input| async move {
        let failed = Outcome::Result { body: Json::from_text(format!("\"{}\"", ctx.attempt())), is_error: true };
        match ctx.attempt() {
            n if n >= attempt => answer("done"),
            2 if is_final => Err(longhaul_engine::CtxError::Final(Box::new(failed))),
            _ => Ok(failed),
        }
    });
    let policy = Policy { attempts_max: 4, backoff_ms: 1_000, ..Policy::default() };
    EngineTool { retries_failures: true, policy, ..tool("work", fails) }
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_backoff_until_the_attempts_are_used_up() {
    for (succeeds_at, is_final, attempts, end) in
        [(3, false, 3, "done"), (9, false, 4, "4"), (9, true, 2, "2"), (1, false, 1, "done")]
    {
        let lab = Lab::start(vec![fails_until(succeeds_at, is_final)]).await;
        let began = lab.engine.now().await.unwrap();
        let key = lab.create("work").await;
        let Outcome::Result { body, is_error } = lab.end(&key).await else { panic!("a result") };
        assert_eq!((body.as_str(), is_error), (&*format!("\"{end}\""), end != "done"));
        assert_eq!(lab.read(&key).await.attempt, attempts);
        let took_ms = lab.engine.now().await.unwrap().ms_since(began);
        // 1, 2 and 4 seconds, of which up to a fifth is random.
        let most_ms: u64 = (1..attempts).map(|n| 1_000 << (n - 1)).sum();
        assert!((most_ms * 8 / 10..=most_ms + 100).contains(&took_ms), "{took_ms} of {most_ms}");
        let records = lab.engine.history(&key).await.unwrap().attempts;
        assert_eq!(records.len() + 1, attempts as usize, "each failed attempt is in the history");
        for record in records {
            let reason = format!("it said \"{}\"", record.attempt);
            assert_eq!(record.end, AttemptEnd::Released(reason.into()), "with the text of its error");
        }
        lab.holds_nothing("work").await;
    }
}

#[test]
fn a_task_keeps_the_attempts_that_its_tool_allowed_when_it_was_created() {
    let mut machine = Machine::new();
    let key = machine.run_engine(vec![fails_until(9, false)], async |lab| {
        let key = lab.create("work").await;
        lab.until(&key, "it has failed once", |task| task.failed_attempts == 1).await;
        key
    });
    let stricter = fails_until(9, false);
    let policy = Policy { attempts_max: 1, ..stricter.policy.clone() };
    machine.run_engine(vec![EngineTool { policy, ..stricter }], async |lab| {
        lab.end(&key).await;
        assert_eq!(lab.read(&key).await.attempt, 4);
    });
}

#[test]
fn a_task_that_waits_for_an_answer_is_not_given_up_after_many_crashes() {
    let mut machine = Machine::new();
    let tools = || vec![on_crash(OnCrash::Resume, tool("ask", asks()))];
    let (key, question) = machine.run_engine(tools(), async |lab| lab.create_until_asked("ask").await);
    for _crash in 0..10 {
        machine.run_engine(tools(), async |lab| {
            let began = lab.engine.now().await.unwrap();
            let task = lab.until(&key, "it waits", |task| task.phase.wake_condition().is_some()).await;
            assert_eq!(task.failed_attempts, 1, "only the first attempt was lost");
            // A handler that stayed in memory for a while could be lost by the next crash.
            let backoff_ms = task.policy.backoff_ms;
            assert!(lab.engine.now().await.unwrap().ms_since(began) <= backoff_ms, "it was not dropped at once");
        });
    }
    machine.run_engine(tools(), async |lab| {
        lab.answer(&key, &question, "\"yes\"").await;
        assert_eq!(lab.end(&key).await, text_of("yes to attempt 3"));
    });
}
