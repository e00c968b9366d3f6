/** A task with fifty subtasks, watched live with the client of `@modelcontextprotocol/sdk`. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { startServer, STUCK, textOf } from "../server.js";
import { resultOf, startTask, withClient } from "./client.js";

const CHILDREN = 50;
const TERMINAL = ["completed", "failed", "cancelled"];

/** The task with the fields that this client does not know. */
const get = (client, taskId) => client.request({ method: "tasks/get", params: { taskId } }, ResultSchema);

describe("a family over http", { concurrency: true }, () => {
  let server;
  before(async () => (server = await startServer()));
  after(() => server.stop());

  test("every subtask is announced until it ends, and its parent ends last", STUCK, () => {
    const asked = [];
    const onElicit = async ({ params }) => {
      asked.push(params);
      return { action: "accept", content: { confirm: true } };
    };
    return withClient(server, { onElicit }, async (client) => {
      const seen = [];
      client.fallbackNotificationHandler = async ({ method, params }) => {
        if (method === "notifications/tasks/status") seen.push(params);
      };
      const { taskId } = await startTask(client, "fan_out", { children: CHILDREN, millis: 20, fail: true, ask: true });
      const result = await resultOf(client, taskId);

      const lines = textOf(result).split("\n");
      assert.equal(lines.length, CHILDREN);
      assert.match(lines[0], /This job fails/);
      for (let n = 2; n < CHILDREN; n++) assert.equal(lines[n - 1], `child ${n}: done after 0.02 s`);
      assert.equal(lines.at(-1), `child ${CHILDREN} is deleted.`);
      assert.equal(asked.length, 1, "the question of the last subtask is asked once");

      const parent = await get(client, taskId);
      assert.equal(parent.status, "completed");
      assert.equal(parent.parentTaskId, undefined);
      assert.equal(new Set(parent.childTaskIds).size, CHILDREN);
      for (const [index, child] of parent.childTaskIds.entries()) {
        const task = await get(client, child);
        assert.equal(task.parentTaskId, taskId);
        assert.equal(task.status, index === 0 ? "failed" : "completed");
        assert.ok(task.createdAt >= parent.createdAt && task.lastUpdatedAt <= parent.lastUpdatedAt);
      }

      const ends = seen.filter((task) => TERMINAL.includes(task.status));
      assert.equal(ends.at(-1).taskId, taskId, "the parent ends last");
      assert.equal(new Set(ends.map((task) => task.taskId)).size, ends.length, "no task ends twice");
      const watched = ends.filter((task) => task.parentTaskId === taskId).map((task) => task.taskId);
      assert.deepEqual(watched.toSorted(), parent.childTaskIds.toSorted(), "the end of every subtask is announced");
      const waiting = seen.filter((task) => task.status === "input_required").map((task) => task.taskId);
      assert.deepEqual([...new Set(waiting)], [parent.childTaskIds.at(-1)], "only the subtask that asks waits");
    });
  });

  test("a cancelled family is cancelled as one", STUCK, () =>
    withClient(server, {}, async (client) => {
      const { taskId } = await startTask(client, "fan_out", { children: CHILDREN, millis: 900_000 });
      let family;
      do family = (await get(client, taskId)).childTaskIds ?? [];
      while (family.length < CHILDREN);
      assert.equal((await client.experimental.tasks.cancelTask(taskId)).status, "cancelled");
      for (const id of [taskId, ...family]) assert.equal((await get(client, id)).status, "cancelled");
    }));
});
