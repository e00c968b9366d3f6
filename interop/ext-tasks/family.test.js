/** A task with fifty subtasks, followed with the official tasks client. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDPOINT_ID, startTask, STUCK, textOf, wholeTask, withSession } from "./client.js";

const CHILDREN = 50;

/** Polls a task until `wanted` is true of it. */
async function until(taskId, wanted) {
  for (;;) {
    const task = await wholeTask(taskId);
    if (wanted(task)) return task;
  }
}

test("a subtask is a task of its own, and its parent ends after it", STUCK, async ({ signal }) => {
  const asked = [];
  const onInputRequest = async (request, { taskId }) => {
    asked.push(taskId);
    return { action: "accept", content: { confirm: true } };
  };
  await withSession({ signal, onInputRequest }, async (session) => {
    const call = await startTask(session, "fan_out", { children: CHILDREN, millis: 20, fail: true, ask: true });
    const { taskId } = call.handle;
    const { childTaskIds } = await until(taskId, ({ childTaskIds }) => childTaskIds?.length === CHILDREN);
    const last = childTaskIds.at(-1);

    // The parent does not wait itself, and says which subtask does.
    await until(taskId, ({ statusMessage }) => statusMessage?.includes(last));
    const seen = await session.task(taskId).snapshot();
    assert.equal(seen.status, "working");
    assert.ok(seen.statusMessage.includes(last), seen.statusMessage);
    const child = await session.resumeTask({
      endpointId: ENDPOINT_ID,
      generation: "v2",
      taskId: last,
      originalOperation: "tools/call",
    });
    const { outcome: childOutcome } = await child.settle();
    assert.equal(textOf(childOutcome.result), `child ${CHILDREN} is deleted.`);
    assert.deepEqual(asked, [last], "asked once, as a question of the subtask");

    const { outcome } = await call.settle();
    const lines = textOf(outcome.result).split("\n");
    assert.equal(lines.length, CHILDREN);
    for (let n = 2; n < CHILDREN; n++) assert.equal(lines[n - 1], `child ${n}: done after 0.02 s`);
    const ended = await wholeTask(taskId);
    assert.deepEqual(ended.childTaskIds, childTaskIds, "the list of subtasks does not change");
    for (const [index, id] of childTaskIds.entries()) {
      const child = await wholeTask(id);
      assert.equal(child.parentTaskId, taskId);
      assert.equal(child.status, "completed");
      assert.equal(child.result.isError ?? false, index === 0);
      assert.ok(child.lastUpdatedAt <= ended.lastUpdatedAt, "the parent ends last");
    }
  });
});

test("a cancelled family is cancelled as one", STUCK, async ({ signal }) => {
  await withSession({ signal }, async (session) => {
    const call = await startTask(session, "fan_out", { children: CHILDREN, millis: 900_000 });
    const { childTaskIds } = await until(call.handle.taskId, ({ childTaskIds }) => childTaskIds?.length === CHILDREN);
    await call.cancel();
    for (const id of [call.handle.taskId, ...childTaskIds]) {
      assert.equal((await session.task(id).snapshot()).status, "cancelled");
    }
  });
});
