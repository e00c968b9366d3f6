/** The official tasks client in its 2025-11-25 mode, over HTTP and over stdio. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { TaskFailedError } from "@modelcontextprotocol/ext-tasks/client";
import { arrival, startServer, STUCK, textOf } from "../../server.js";
import { startTask, withSession } from "./client.js";

const RELATED_TASK = "io.modelcontextprotocol/related-task";

for (const transport of ["http", "stdio"]) {
  describe(`over ${transport}`, { concurrency: true }, () => {
    let server = transport;
    if (transport === "http") {
      before(async () => (server = await startServer()));
      after(() => server.stop());
    }

    test("it speaks 2025-11-25 and finds tasks that can be cancelled", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session, client) => {
        assert.equal(client.getProtocolEra(), "legacy");
        assert.equal(client.getNegotiatedProtocolVersion(), "2025-11-25");
        assert.deepEqual(client.getServerCapabilities().tasks.requests, { tools: { call: {} } });
        // With one malformed tool every call of this client would fail.
        await session.callTool("greet", { name: "Ada" });
      }));

    test("a tool without tasks answers at once, even if a task is preferred", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await startTask(session, "greet", { name: "Ada" }, "prefer");
        assert.equal(call.kind, "immediate");
        const { outcome } = await call.settle();
        assert.equal(textOf(outcome.result), "Hello, Ada!");
        await assert.rejects(startTask(session, "greet", { name: "Ada" }, "require"), /unavailable/);
      }));

    test("a tool with optional tasks runs as a task only if that is preferred", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        for (const [preference, kind] of [["prefer", "task"], ["require", "task"], ["allow", "immediate"], ["forbid", "immediate"]]) {
          const call = await startTask(session, "slow_compute", { seconds: 0.1, label: preference }, preference);
          assert.equal(call.kind, kind, preference);
          const { outcome } = await call.settle();
          assert.equal(outcome.status, "completed", outcome.error?.stack);
          assert.match(textOf(outcome.result), new RegExp(preference));
        }
      }));

    test("a tool that requires a task runs as one without a preference", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await session.callTool("big_result", { bytes: 100_000 });
        assert.equal(call.kind, "task");
        const { outcome } = await call.settle();
        assert.equal(textOf(outcome.result).length, 100_000);
        assert.equal(outcome.result._meta[RELATED_TASK].taskId, call.handle.taskId);
      }));

    test("a settled task reads the same every time", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await startTask(session, "echo", { text: "again" });
        await call.settle();
        const task = session.task(call.handle.taskId);
        const first = await task.snapshot();
        assert.equal(first.status, "completed");
        assert.deepEqual((await task.snapshot()).raw, first.raw);
      }));

    test("its tasks are in the list, page by page", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await startTask(session, "echo", { text: "listed" });
        await call.settle();
        const tasks = [];
        let page = await session.listTasks();
        for (tasks.push(...page.tasks); page.nextCursor; tasks.push(...page.tasks)) page = await session.listTasks(page.nextCursor);
        const listed = tasks.filter(({ taskId }) => taskId === call.handle.taskId);
        assert.deepEqual(listed.map(({ status }) => status), ["completed"]);
      }));

    test("a cancelled task stays cancelled, and cannot be cancelled again", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await startTask(session, "slow_compute", { seconds: 3600, label: "cancelled" });
        const task = session.task(call.handle.taskId);
        await call.cancel();
        const { outcome } = await call.settle();
        assert.equal(outcome.status, "cancelled");
        assert.equal((await task.snapshot()).status, "cancelled");
        await assert.rejects(task.cancel(), { code: -32602 });
      }));

    test("a tool error is a failed task with the tool's text in its status", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await startTask(session, "failing_job");
        const { outcome } = await call.settle();
        assert.equal(outcome.status, "failed");
        assert.equal(outcome.task?.status, "failed", outcome.error?.stack);
        assert.ok(outcome.error instanceof TaskFailedError);
        // This client never requests the result of a failed task, so it shows only this text.
        assert.match(outcome.error.message, /fails, as it should/);
      }));

    test("a JSON-RPC error is a failed task whose status has its message", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await startTask(session, "protocol_error_job");
        const { outcome } = await call.settle();
        assert.equal(outcome.task?.status, "failed", outcome.error?.stack);
        assert.match(outcome.error.message, /protocol error, as it should/);
      }));

    test("an unknown task is refused with -32602", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        await assert.rejects(session.task("no-such-task").snapshot(), { code: -32602 });
      }));

    // This client requests no result before the end, so the server must send the question on its own. If the question
    // arrives before the client knows the task, the client itself answers "cancel"; several rounds would show that.
    test("a question is sent once without a request, and the tool uses the answer", STUCK, async ({ signal }) => {
      for (const [action, end] of [["accept", /deleted/], ["decline", /kept/], ["accept", /deleted/], ["accept", /deleted/]]) {
        const asked = [];
        const onInputRequest = async (request, context) => {
          asked.push({ request, context });
          return action === "accept" ? { action, content: { confirm: true } } : { action };
        };
        await withSession(server, { signal, onInputRequest }, async (session) => {
          const call = await startTask(session, "confirm_delete", { filename: "a.txt" });
          const { outcome } = await call.settle();
          assert.equal(outcome.status, "completed", outcome.error?.stack);
          assert.equal(asked.length, 1, "the question did not find its task");
          assert.match(textOf(outcome.result), end);
          assert.equal(asked[0].request.kind, "elicitation");
          assert.equal(asked[0].context.taskId, call.handle.taskId);
          assert.match(asked[0].request.params.message, /a\.txt/);
        });
      }
    });

    test("two questions are open at once, and each gets its own answer", STUCK, async ({ signal }) => {
      const both = arrival();
      let asked = 0;
      const onInputRequest = async ({ params }) => {
        if (++asked === 2) both.arrived();
        await both.promise;
        const content = "confirm" in params.requestedSchema.properties ? { confirm: true } : { name: "Ada Lovelace" };
        return { action: "accept", content };
      };
      await withSession(server, { signal, onInputRequest }, async (session) => {
        const call = await startTask(session, "multi_input");
        const { outcome } = await call.settle();
        assert.match(textOf(outcome.result), /Ada Lovelace said yes/);
        assert.equal(asked, 2);
      });
    });

    test("the client's model is asked inside a task", STUCK, async ({ signal }) => {
      const onInputRequest = async ({ kind, params }) => {
        assert.equal(kind, "sampling");
        const text = `heard: ${params.messages[0].content.text}`;
        return { role: "assistant", model: "of-the-test", content: { type: "text", text } };
      };
      await withSession(server, { signal, onInputRequest, capabilities: { sampling: {} } }, async (session) => {
        const call = await startTask(session, "ask_model", { prompt: "a riddle" });
        const { outcome } = await call.settle();
        assert.equal(outcome.status, "completed", outcome.error?.stack);
        assert.match(textOf(outcome.result), /heard: a riddle/);
      });
    });

    test("this client cancels a task that is open when its session is closed", STUCK, async ({ signal }) => {
      await withSession(server, { signal }, async (session, client) => {
        const call = await startTask(session, "slow_compute", { seconds: 3600, label: "abandoned" });
        const { taskId } = call.handle;
        await session.close();
        // The client does not wait for its `tasks/cancel`, and over HTTP the next request may overtake it.
        const get = () => client.request({ method: "tasks/get", params: { taskId } }, ANYTHING);
        let task = await get();
        while (task.status === "working") task = await get();
        assert.equal(task.status, "cancelled");
      });
    });
  });
}

/** A schema that accepts any value. */
const ANYTHING = { "~standard": { version: 1, vendor: "longhaul", validate: (value) => ({ value }) } };
