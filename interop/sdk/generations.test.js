/**
 * SEP-1686 and the dialect of the lesson, which no published client speaks by itself: plain requests of the client of
 * `@modelcontextprotocol/sdk` over its own transports. The client checks every answer with its own schemas.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { CallToolResultSchema, GetPromptResultSchema, ReadResourceResultSchema, ResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { arrival, startServer, STUCK, textOf } from "../server.js";
import { withClient } from "./client.js";

const TASK = "modelcontextprotocol.io/task";
const RELATED = "modelcontextprotocol.io/related-task";

/** Requests of SEP-1686 about a task. */
const about = (client, method, taskId) =>
  client.request({ method, params: { taskId, _meta: { [RELATED]: { taskId } } } }, ResultSchema);

const invalid = (error) => error.code === -32602;

/** Keeps the notifications that the client has no handler for, and waits for one of them. */
function listen(client) {
  const heard = [];
  const waiting = [];
  client.fallbackNotificationHandler = async (notification) => {
    heard.push(notification);
    for (const check of waiting) check();
  };
  return {
    heard,
    until: (fits) =>
      new Promise((resolve) => {
        const check = () => {
          const found = heard.find(fits);
          if (found) resolve(found);
        };
        waiting.push(check);
        check();
      }),
  };
}

const announces = (taskId) => ({ method, params }) =>
  method === "notifications/tasks/created" && params._meta[RELATED].taskId === taskId;

for (const transport of ["http", "stdio"]) {
  describe(`over ${transport}`, { concurrency: true }, () => {
    let server = transport;
    if (transport === "http") {
      before(async () => (server = await startServer()));
      after(() => server.stop());
    }

    test("SEP-1686: a call is announced, polled, answered, fetched again and deleted", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { heard, until } = listen(client);
        const taskId = randomUUID();
        const params = {
          name: "slow_compute",
          arguments: { seconds: 1, label: "mine" },
          _meta: { [TASK]: { taskId, keepAlive: 60_000 } },
        };
        const answer = client.request({ method: "tools/call", params }, CallToolResultSchema);
        const created = await until(announces(taskId));
        assert.deepEqual(created.params, { _meta: { [RELATED]: { taskId } } });

        const task = await about(client, "tasks/get", taskId);
        assert.deepEqual([task.status, task.keepAlive, task._meta], ["working", 60_000, { [RELATED]: { taskId } }]);
        await assert.rejects(about(client, "tasks/result", taskId), invalid);
        await assert.rejects(client.request({ method: "tools/call", params }, CallToolResultSchema), (error) => {
          assert.match(error.message, new RegExp(`Task ID already exists: ${taskId}`));
          return invalid(error);
        });

        const result = await answer;
        assert.match(textOf(result), /mine/);
        assert.deepEqual(result._meta, { [RELATED]: { taskId } });
        assert.deepEqual(await about(client, "tasks/result", taskId), result);
        assert.equal((await about(client, "tasks/get", taskId)).status, "completed");
        const { tasks } = await client.request({ method: "tasks/list" }, ResultSchema);
        assert.equal(tasks.find((task) => task.taskId === taskId).keepAlive, 60_000);

        assert.deepEqual(await about(client, "tasks/delete", taskId), { _meta: { [RELATED]: { taskId } } });
        await assert.rejects(about(client, "tasks/get", taskId), invalid);
        assert.equal(heard.filter(announces(taskId)).length, 1, "announced once");
      }));

    test("SEP-1686: aborting the call cancels its task", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { until } = listen(client);
        const taskId = randomUUID();
        const params = {
          name: "slow_compute",
          arguments: { seconds: 3600, label: "never" },
          _meta: { [TASK]: { taskId } },
        };
        const abort = new AbortController();
        // `notifications/cancelled` for the ID 0 is ignored by this client's own kind, and 0 may be its first request.
        await client.ping();
        const answer = client.request({ method: "tools/call", params }, CallToolResultSchema, { signal: abort.signal });
        await until(announces(taskId));
        abort.abort("no longer needed");
        await assert.rejects(answer, /no longer needed/);
        let task;
        do task = await about(client, "tasks/get", taskId);
        while (task.status === "working");
        assert.equal(task.status, "cancelled");
        await assert.rejects(about(client, "tasks/result", taskId), invalid);
      }));

    test("SEP-1686: a prompt that asks and a read are tasks with results of their own kind", STUCK, () => {
      const { promise: asked, arrived } = arrival();
      const onElicit = async ({ params }) => {
        arrived(params._meta);
        return { action: "accept", content: { context: "otters" } };
      };
      return withClient(server, { onElicit }, async (client) => {
        const { until } = listen(client);
        for (const [method, params, schema, member] of [
          ["prompts/get", { name: "test_input_required_result_prompt" }, GetPromptResultSchema, "messages"],
          ["resources/read", { uri: "test://template/7/data" }, ReadResourceResultSchema, "contents"],
        ]) {
          const taskId = randomUUID();
          const answer = client.request({ method, params: { ...params, _meta: { [TASK]: { taskId } } } }, schema);
          await until(announces(taskId));
          const result = await answer;
          assert.equal(result[member].length, 1);
          assert.deepEqual(await about(client, "tasks/result", taskId), result);
          if (member === "messages") {
            assert.match(result.messages[0].content.text, /otters/);
            assert.deepEqual(await asked, { [RELATED]: { taskId } }, "the question names the task");
          }
        }
        // What never runs as a task is answered as usual.
        const plain = { uri: "test://static-text", _meta: { [TASK]: { taskId: randomUUID() } } };
        const result = await client.request({ method: "resources/read", params: plain }, ReadResourceResultSchema);
        assert.equal(result._meta, undefined);
      });
    });

    test("SEP-1686: every child is announced with its parent, and a family is deleted as a whole", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { heard } = listen(client);
        const taskId = randomUUID();
        const params = { name: "fan_out", arguments: { children: 3, millis: 20 }, _meta: { [TASK]: { taskId } } };
        await client.request({ method: "tools/call", params }, CallToolResultSchema);
        const { childTaskIds } = await about(client, "tasks/get", taskId);
        const announced = heard.filter(({ params }) => params?._meta?.[RELATED]?.parentTaskId === taskId);
        assert.deepEqual(announced.map(({ params }) => params._meta[RELATED].taskId), childTaskIds);
        assert.equal((await about(client, "tasks/get", childTaskIds[0])).parentTaskId, taskId);
        await assert.rejects(about(client, "tasks/delete", childTaskIds[0]), invalid);
        await about(client, "tasks/delete", taskId);
        for (const id of [taskId, ...childTaskIds]) await assert.rejects(about(client, "tasks/get", id), invalid);
      }));

    test("the lesson: a task is created, polled, followed, cancelled twice and fetched", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { until } = listen(client);
        const create = async (seconds) => {
          const params = { name: "slow_compute", arguments: { seconds, label: "report" }, _meta: { task: { required: true } } };
          return (await client.request({ method: "tools/call", params }, CallToolResultSchema))._meta.task;
        };
        const ask = (method, taskId) => client.request({ method, params: { taskId } }, ResultSchema);

        const quick = await create(0.3);
        assert.equal(quick.state, "working");
        assert.ok(quick.ttl > 0);
        assert.equal((await ask("tasks/status", quick.id)).taskId, quick.id);
        assert.match(textOf(await ask("tasks/result", quick.id)), /report/);
        await until(
          ({ method, params }) =>
            method === "notifications/tasks/updated" && params.taskId === quick.id && params.state === "completed",
        );

        const long = await create(3600);
        for (let time = 0; time < 2; time++) assert.equal((await ask("tasks/cancel", long.id)).state, "cancelled");
        assert.equal((await ask("tasks/cancel", quick.id)).state, "completed", "it had ended before");
      }));
  });
}
