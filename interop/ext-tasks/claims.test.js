/** The official tasks client with the server at LONGHAUL_URL. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { TaskFailedError } from "@modelcontextprotocol/ext-tasks/client";
import { startTask, STUCK, textOf, withSession } from "./client.js";

test("a tool that needs no task answers at once", STUCK, async ({ signal }) => {
  await withSession({ signal }, async (session) => {
    const call = await session.callTool("greet", { name: "Ada" });
    assert.equal(call.kind, "immediate");

    const { outcome } = await call.settle();
    assert.equal(outcome.status, "completed");
    assert.equal(textOf(outcome.result), "Hello, Ada!");
  });
});

test("a task runs to completion and its result is collected", STUCK, async ({ signal }) => {
  await withSession({ signal }, async (session) => {
    const call = await startTask(session, "slow_compute", { seconds: 1, label: "to-completion" });
    const { outcome } = await call.settle();

    assert.equal(outcome.status, "completed");
    assert.equal(outcome.task.status, "completed");
    assert.match(textOf(outcome.result), /to-completion/);
  });
});

test("a settled task reads the same every time", STUCK, async ({ signal }) => {
  await withSession({ signal }, async (session) => {
    const call = await startTask(session, "slow_compute", { seconds: 0, label: "read-again" });
    await call.settle();

    const first = await session.task(call.handle.taskId).snapshot();
    const second = await session.task(call.handle.taskId).snapshot();
    assert.equal(first.status, "completed");
    assert.deepEqual(second.raw, first.raw);
  });
});

test("a cancellation takes effect at once, is final, and can be repeated", STUCK, async ({ signal }) => {
  await withSession({ signal }, async (session) => {
    const call = await startTask(session, "slow_compute", { seconds: 3600, label: "cancelled" });
    const task = session.task(call.handle.taskId);

    await call.cancel();
    const { outcome } = await call.settle();
    assert.equal(outcome.status, "cancelled");
    // The client shows `cancelled` as soon as the request is acknowledged, so the test reads the task from the server.
    const cancelled = await task.snapshot();
    assert.equal(cancelled.status, "cancelled");

    await task.cancel();
    assert.deepEqual((await task.snapshot()).raw, cancelled.raw);
  });
});

test("a question is asked once, and the tool acts on the answer", STUCK, async ({ signal }) => {
  const yes = await confirmDelete(signal, "yes.txt", { action: "accept", content: { confirm: true } });
  const no = await confirmDelete(signal, "no.txt", { action: "decline" });

  for (const { asked, filename } of [yes, no]) {
    assert.equal(asked.length, 1);
    assert.equal(asked[0].kind, "elicitation");
    assert.ok(asked[0].params.message.includes(filename), "the question names the file");
    assert.ok("confirm" in asked[0].params.requestedSchema.properties, "the question asks for `confirm`");
  }
  assert.ok(yes.text.includes("yes.txt") && no.text.includes("no.txt"), "the result names the file");
  assert.notEqual(yes.text.replace("yes.txt", ""), no.text.replace("no.txt", ""), "both answers led to the same result");
});

test("two questions are open at once, and each gets its own answer", STUCK, async ({ signal }) => {
  /** @type {string[]} the keys of the questions, in the order in which they arrived */
  const asked = [];
  const onInputRequest = async ({ params }, { inputId, taskId, applicationContext: session }) => {
    if (asked.length === 0) await untilOpen(2, session.task(taskId), signal);
    asked.push(inputId);
    const answers = Object.entries(params.requestedSchema.properties).map(([name, { type }]) => [
      name,
      type === "boolean" ? true : "Ada Lovelace",
    ]);
    return { action: "accept", content: Object.fromEntries(answers) };
  };
  await withSession({ signal, onInputRequest }, async (session) => {
    const call = await startTask(session, "multi_input", {}, session);
    const { outcome } = await call.settle();

    assert.equal(outcome.status, "completed");
    assert.equal(asked.length, 2);
    assert.notEqual(asked[0], asked[1]);
    assert.match(textOf(outcome.result), /Ada Lovelace/);
  });
});

test("a tool error is a completed task with an error result", STUCK, async ({ signal }) => {
  await withSession({ signal }, async (session) => {
    const call = await startTask(session, "failing_job");
    const { outcome } = await call.settle();

    assert.equal(outcome.status, "completed");
    assert.equal(outcome.result.isError, true);
    assert.notEqual(textOf(outcome.result), "");
  });
});

test("a JSON-RPC error is a failed task that carries the error", STUCK, async ({ signal }) => {
  await withSession({ signal }, async (session) => {
    const call = await startTask(session, "protocol_error_job");
    const { outcome } = await call.settle();

    assert.equal(outcome.status, "failed");
    // The client also reports its own errors as `failed`, so the test reads the status from the server.
    assert.equal(outcome.task?.status, "failed", outcome.error?.stack);
    assert.ok(outcome.error instanceof TaskFailedError);
    assert.equal(outcome.error.code, outcome.task.raw.error.code);
    assert.notEqual(outcome.error.message, "");
  });
});

test("an unknown task is refused with -32602", STUCK, async ({ signal }) => {
  await withSession({ signal }, async (session) => {
    await assert.rejects(session.task("no-such-task").snapshot(), { code: -32602 });
  });
});

/** One `confirm_delete`, answered with `answer`. */
async function confirmDelete(signal, filename, answer) {
  const asked = [];
  const onInputRequest = async (request) => {
    asked.push(request);
    return answer;
  };
  return withSession({ signal, onInputRequest }, async (session) => {
    const call = await startTask(session, "confirm_delete", { filename });
    const { outcome } = await call.settle();
    assert.equal(outcome.status, "completed");
    return { filename, asked, text: textOf(outcome.result) };
  });
}

/** Polls until the task shows `count` open questions, or the test times out. */
async function untilOpen(count, task, signal) {
  for (;;) {
    const { raw, suggestedPollIntervalMs } = await task.snapshot();
    if (Object.keys(raw.inputRequests ?? {}).length === count) return;
    assert.ok(["working", "input_required"].includes(raw.status), `the task is ${raw.status}`);
    await setTimeout(suggestedPollIntervalMs, undefined, { signal });
  }
}
