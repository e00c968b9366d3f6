/** What the official tasks client must see in its 2025-11-25 mode, over HTTP and over stdio: one test, one claim. */
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
        // One malformed tool would break every call of this client.
        await session.callTool("greet", { name: "Ada" });
      }));

    test("a tool that has no tasks answers at once, whatever is preferred", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await startTask(session, "greet", { name: "Ada" }, "prefer");
        assert.equal(call.kind, "immediate");
        const { outcome } = await call.settle();
        assert.equal(textOf(outcome.result), "Hello, Ada!");
        await assert.rejects(startTask(session, "greet", { name: "Ada" }, "require"), /unavailable/);
      }));

    test("a tool that may be a task is one if that is preferred, and an ordinary call otherwise", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        for (const [preference, kind] of [["prefer", "task"], ["require", "task"], ["allow", "immediate"], ["forbid", "immediate"]]) {
          const call = await startTask(session, "slow_compute", { seconds: 0.1, label: preference }, preference);
          assert.equal(call.kind, kind, preference);
          const { outcome } = await call.settle();
          assert.equal(outcome.status, "completed", outcome.error?.stack);
          assert.match(textOf(outcome.result), new RegExp(preference));
        }
      }));

    test("a tool that needs a task is one even if nobody asked for it", STUCK, ({ signal }) =>
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

    test("a cancelled task is cancelled for good, and cannot be cancelled again", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await startTask(session, "slow_compute", { seconds: 3600, label: "cancelled" });
        const task = session.task(call.handle.taskId);
        await call.cancel();
        const { outcome } = await call.settle();
        assert.equal(outcome.status, "cancelled");
        assert.equal((await task.snapshot()).status, "cancelled");
        await assert.rejects(task.cancel(), { code: -32602 });
      }));

    test("a tool error is a failed task whose status has the tool's words", STUCK, ({ signal }) =>
      withSession(server, { signal }, async (session) => {
        const call = await startTask(session, "failing_job");
        const { outcome } = await call.settle();
        assert.equal(outcome.status, "failed");
        assert.equal(outcome.task?.status, "failed", outcome.error?.stack);
        assert.ok(outcome.error instanceof TaskFailedError);
        // This client never asks for the result of a failed task, so these words are all that it will see.
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

    // This client asks for no result before the end, so the question has to come by itself. A question that
    // comes before the client knows the task is answered with "cancel" by the client itself: hence more than one round.
    test("a question comes without being fetched, once, and the tool acts on the answer", STUCK, async ({ signal }) => {
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

    test("a task that is abandoned with its session is cancelled by this client", STUCK, async ({ signal }) => {
      await withSession(server, { signal }, async (session, client) => {
        const call = await startTask(session, "slow_compute", { seconds: 3600, label: "abandoned" });
        const { taskId } = call.handle;
        await session.close();
        // The client does not wait for its own request to cancel, and over HTTP the next one may overtake it.
        const get = () => client.request({ method: "tasks/get", params: { taskId } }, ANYTHING);
        let task = await get();
        while (task.status === "working") task = await get();
        assert.equal(task.status, "cancelled");
      });
    });
  });
}

/** A schema that accepts whatever comes. */
const ANYTHING = { "~standard": { version: 1, vendor: "longhaul", validate: (value) => ({ value }) } };
