/** The life of a task with the client of `@modelcontextprotocol/sdk`, over HTTP and over stdio. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CallToolResultSchema, LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { TaskStatusNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { arrival, startServer, STUCK, textOf } from "../server.js";
import { callAsTask, RELATED_TASK, resultOf, startTask, withClient } from "./client.js";

const YES = { action: "accept", content: { confirm: true } };
const TERMINAL = ["completed", "failed", "cancelled"];

for (const transport of ["http", "stdio"]) {
  describe(`over ${transport}`, { concurrency: true }, () => {
    let server = transport;
    if (transport === "http") {
      before(async () => (server = await startServer()));
      after(() => server.stop());
    }

    test("the capabilities declare what this requestor may use", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { tools, tasks, logging } = client.getServerCapabilities();
        assert.ok(tools && logging);
        assert.deepEqual(tasks, { list: {}, cancel: {}, requests: { tools: { call: {} } } });
      }));

    test("the tools declare whether they run as tasks", STUCK, () =>
      withClient(server, {}, async (client) => {
        const tools = await allTools(client);
        const support = (name) => tools.find((tool) => tool.name === name)?.execution?.taskSupport ?? "forbidden";
        assert.equal(support("greet"), "forbidden");
        assert.equal(support("slow_compute"), "optional");
        assert.equal(support("echo"), "optional");
        for (const name of ["failing_job", "protocol_error_job", "confirm_delete", "multi_input", "ask_model"]) {
          assert.equal(support(name), "required", name);
        }
      }));

    test("a tool that requires a task is called as one after tools/list", STUCK, () =>
      withClient(server, {}, async (client) => {
        await allTools(client);
        const types = [];
        for await (const message of client.experimental.tasks.callToolStream({ name: "echo", arguments: { text: "by itself" } })) {
          types.push(message.type);
          if (message.type === "result") assert.equal(textOf(message.result), "by itself");
        }
        assert.equal(types.at(0), "taskCreated");
        assert.equal(types.at(-1), "result");
      }));

    test("a task runs to completion and its result has the task's ID", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { seen, last, taskId } = await callAsTask(client, "slow_compute", { seconds: 0.3, label: "whole" }, { ttl: 60_000 });
        assert.equal(seen[0].type, "taskCreated");
        assert.equal(seen[0].task.status, "working");
        assert.ok(seen[0].task.ttl > 0 && seen[0].task.ttl <= 60_000, `ttl ${seen[0].task.ttl}`);
        assert.ok(seen[0].task.pollInterval > 0);
        assert.equal(seen.at(-2).task.status, "completed");
        assert.equal(last.type, "result", String(last.error));
        assert.match(textOf(last.result), /whole/);
        assert.equal(last.result._meta[RELATED_TASK].taskId, taskId);
      }));

    test("a settled task reads the same every time, and its result too", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { taskId } = await callAsTask(client, "echo", { text: "again" });
        const { tasks } = client.experimental;
        assert.deepEqual(await tasks.getTask(taskId), await tasks.getTask(taskId));
        assert.deepEqual(await resultOf(client, taskId), await resultOf(client, taskId));
      }));

    test("a result of a megabyte arrives whole", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { last } = await callAsTask(client, "big_result", { bytes: 1_000_000 });
        assert.equal(textOf(last.result).length, 1_000_000);
      }));

    test("the list has every task, page by page, and refuses an unknown cursor", STUCK, () =>
      withClient(server, {}, async (client) => {
        const made = [];
        for (let n = 0; n < 7; n++) made.push((await startTask(client, "echo", { text: `listed ${n}` })).taskId);
        const listed = [];
        let cursor;
        do {
          const page = await client.experimental.tasks.listTasks(cursor);
          listed.push(...page.tasks.map((task) => task.taskId));
          cursor = page.nextCursor;
        } while (cursor !== undefined);
        assert.equal(new Set(listed).size, listed.length, "a task is listed twice");
        for (const taskId of made) assert.ok(listed.includes(taskId), `${taskId} is not listed`);
        await assert.rejects(client.experimental.tasks.listTasks("not-a-cursor"), { code: -32602 });
      }));

    test("a cancellation takes effect at once, is final, and cannot be repeated", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { tasks } = client.experimental;
        const { taskId } = await startTask(client, "slow_compute", { seconds: 3600, label: "cancelled" });
        const waiting = assert.rejects(resultOf(client, taskId), { code: -32603 });
        assert.equal((await tasks.cancelTask(taskId)).status, "cancelled");
        assert.equal((await tasks.getTask(taskId)).status, "cancelled");
        await waiting;
        await assert.rejects(tasks.cancelTask(taskId), { code: -32602 });
      }));

    test("a tool error is a failed task with its text in the status", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { last, taskId } = await callAsTask(client, "failing_job");
        // This client reports its own error and discards the text of the server.
        assert.equal(last.type, "error");
        const task = await client.experimental.tasks.getTask(taskId);
        assert.equal(task.status, "failed");
        const result = await resultOf(client, taskId);
        assert.equal(result.isError, true);
        assert.ok(textOf(result) !== "" && task.statusMessage.includes(textOf(result)), task.statusMessage);
        assert.equal(result._meta[RELATED_TASK].taskId, taskId);
      }));

    test("a JSON-RPC error is a failed task, and tasks/result returns it", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { taskId } = await callAsTask(client, "protocol_error_job");
        const task = await client.experimental.tasks.getTask(taskId);
        assert.equal(task.status, "failed");
        assert.ok(task.statusMessage);
        await assert.rejects(resultOf(client, taskId), { code: -32603, message: /protocol error, as it should/ });
      }));

    test("a forbidden task and a missing required task are both -32601", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { last } = await callAsTask(client, "greet", { name: "Ada" });
        assert.equal(last.type, "error");
        assert.equal(last.error.code, -32601);
        // `callTool` would refuse by itself with another code, because it has read the list.
        const request = { method: "tools/call", params: { name: "failing_job", arguments: {} } };
        await assert.rejects(client.request(request, CallToolResultSchema), { code: -32601 });
      }));

    test("an unknown task is refused with -32602 everywhere", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { tasks } = client.experimental;
        await assert.rejects(tasks.getTask("no-such-task"), { code: -32602 });
        await assert.rejects(tasks.cancelTask("no-such-task"), { code: -32602 });
        await assert.rejects(resultOf(client, "no-such-task"), { code: -32602 });
      }));

    test("a question has the task's ID, is asked once, and the tool uses the answer", STUCK, async () => {
      for (const [answer, end] of [[YES, /deleted/], [{ action: "decline" }, /kept/], [{ action: "cancel" }, /kept/]]) {
        const asked = [];
        const onElicit = async ({ params }) => (asked.push(params), answer);
        await withClient(server, { onElicit }, async (client) => {
          const { seen, last, taskId } = await callAsTask(client, "confirm_delete", { filename: "a.txt" });
          assert.equal(last.type, "result", String(last.error));
          assert.match(textOf(last.result), end);
          assert.equal(asked.length, 1);
          assert.match(asked[0].message, /a\.txt/);
          assert.equal(asked[0]._meta[RELATED_TASK].taskId, taskId);
          assert.ok(seen.every(({ task }) => !task || [...TERMINAL, "working", "input_required"].includes(task.status)));
        });
      }
    });

    test("two questions are open at once, and each gets its own answer", STUCK, async () => {
      const both = arrival();
      const asked = [];
      const onElicit = async ({ params }) => {
        asked.push(params.message);
        if (asked.length === 2) both.arrived();
        await both.promise;
        return { action: "accept", content: "confirm" in params.requestedSchema.properties ? YES.content : { name: "Ada Lovelace" } };
      };
      await withClient(server, { onElicit }, async (client) => {
        const { last } = await callAsTask(client, "multi_input");
        assert.match(textOf(last.result), /Ada Lovelace said yes/);
        assert.equal(asked.length, 2);
      });
    });

    test("a task is input_required until its question is answered", STUCK, async () => {
      const asked = arrival();
      const answer = arrival();
      const onElicit = () => (asked.arrived(), answer.promise);
      await withClient(server, { onElicit }, async (client) => {
        const { taskId } = await startTask(client, "confirm_delete", { filename: "b.txt" });
        const result = resultOf(client, taskId);
        await asked.promise;
        assert.equal((await client.experimental.tasks.getTask(taskId)).status, "input_required");
        answer.arrived(YES);
        assert.match(textOf(await result), /deleted/);
      });
    });

    test("the client's model is asked inside a task", STUCK, async () => {
      const onSample = async ({ params }) => {
        assert.ok(params._meta[RELATED_TASK].taskId);
        assert.ok(params.maxTokens > 0);
        const { text } = params.messages[0].content;
        return { role: "assistant", model: "of-the-test", content: { type: "text", text: `heard: ${text}` } };
      };
      await withClient(server, { onSample }, async (client) => {
        const { last } = await callAsTask(client, "ask_model", { prompt: "a riddle" });
        assert.equal(last.type, "result", String(last.error));
        assert.match(textOf(last.result), /heard: a riddle/);
      });
    });

    test("a request for a result that is cancelled does not affect the others", STUCK, () =>
      withClient(server, {}, async (client) => {
        const { taskId } = await startTask(client, "slow_compute", { seconds: 0.5, label: "awaited" });
        const impatient = new AbortController();
        const left = assert.rejects(resultOf(client, taskId, { signal: impatient.signal }));
        const stayed = [resultOf(client, taskId), resultOf(client, taskId)];
        impatient.abort("no longer interested");
        await left;
        for (const result of await Promise.all(stayed)) assert.match(textOf(result), /awaited/);
        assert.equal((await client.experimental.tasks.getTask(taskId)).status, "completed");
      }));

    test("the end of a task is notified without the related-task key", STUCK, () =>
      withClient(server, {}, async (client) => {
        const ended = arrival();
        client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => {
          if (TERMINAL.includes(params.status)) ended.arrived(params);
        });
        const { taskId } = await startTask(client, "slow_compute", { seconds: 0.2, label: "told" });
        const task = await ended.promise;
        assert.equal(task.taskId, taskId);
        assert.equal(task.status, "completed");
        assert.ok("ttl" in task && task.createdAt && task.lastUpdatedAt);
        assert.equal(task._meta?.[RELATED_TASK], undefined);
      }));

    test("tools without and with optional tasks can be called ordinarily", STUCK, () =>
      withClient(server, {}, async (client) => {
        assert.equal(textOf(await client.callTool({ name: "greet", arguments: { name: "Ada" } })), "Hello, Ada!");
        const slow = await client.callTool({ name: "slow_compute", arguments: { seconds: 0.1, label: "ordinary" } });
        assert.match(textOf(slow), /ordinary/);
        assert.equal(slow._meta?.[RELATED_TASK], undefined);
      }));

    test("an ordinary call sends rising progress before its result", STUCK, () =>
      withClient(server, {}, async (client, _transport, complaints) => {
        const told = [];
        const call = { name: "test_tool_with_progress", arguments: {} };
        await client.callTool(call, undefined, { onprogress: ({ progress }) => told.push(progress) });
        // This client handles a notification after the response if it reads both at once, and then complains about it.
        const late = complaints.map(({ message }) => message.match(/for an unknown token: (.*)$/)?.[1]);
        assert.ok(late.every(Boolean), String(complaints));
        told.push(...late.map((notification) => JSON.parse(notification).params.progress));
        assert.deepEqual(told, told.toSorted((a, b) => a - b));
        assert.ok(told.length > 0 && told.at(-1) === 100, String(told));
      }));

    test("an ordinary call asks the user while it runs", STUCK, async () => {
      const onElicit = async ({ params }) => {
        assert.equal(params._meta?.[RELATED_TASK], undefined);
        return { action: "accept", content: { username: "ada", email: "ada@example.org" } };
      };
      await withClient(server, { onElicit }, async (client) => {
        const result = await client.callTool({ name: "test_elicitation", arguments: { message: "Who is it?" } });
        assert.match(textOf(result), /ada@example\.org/);
      });
    });

    test("ping is answered, and log lines are sent from the set level on", STUCK, () =>
      withClient(server, {}, async (client) => {
        await client.ping();
        const lines = [];
        client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void lines.push(params));
        await client.setLoggingLevel("error");
        await client.callTool({ name: "test_tool_with_logging", arguments: {} });
        assert.deepEqual(lines, [], "lines below the level");
        await client.setLoggingLevel("info");
        await client.callTool({ name: "test_tool_with_logging", arguments: {} });
        assert.ok(lines.length >= 3 && lines.every(({ level }) => level === "info"), JSON.stringify(lines));
      }));

    test("the log lines of a task have its ID and are sent without a request", STUCK, () =>
      withClient(server, {}, async (client) => {
        const lines = [];
        const { promise: all, arrived } = arrival();
        client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void (lines.push(params) === 3 && arrived()));
        await listens(client);
        const { last, taskId } = await callAsTask(client, "test_tool_with_logging");
        assert.equal(last.type, "result", String(last.error));
        await all;
        for (const { _meta } of lines) assert.deepEqual(_meta[RELATED_TASK], { taskId });
      }));

    test("an ordinary call that is cancelled ends, and the session continues", STUCK, () =>
      withClient(server, {}, async (client) => {
        const abandon = new AbortController();
        const call = { name: "slow_compute", arguments: { seconds: 3600, label: "abandoned" } };
        const ended = assert.rejects(client.callTool(call, undefined, { signal: abandon.signal }));
        await client.ping();
        abandon.abort("enough");
        await ended;
        await client.ping();
      }));
  });
}

/** Log lines are not stored, the end of a task is: when the client has received it, its GET stream is open. */
async function listens(client) {
  const heard = arrival();
  client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => TERMINAL.includes(params.status) && heard.arrived());
  await startTask(client, "slow_compute", { seconds: 0, label: "a stream" });
  await heard.promise;
}

async function allTools(client) {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}
