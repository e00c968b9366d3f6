/** Longhaul as requestor: it sends questions as tasks, and the official binding runs them. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { bindTaskReceiver } from "@modelcontextprotocol/ext-tasks/receiver";
import { arrival, startServer, STUCK, textOf } from "../../server.js";
import { startTask, withSession } from "./client.js";

const METHODS = { "elicitation/create": true, "sampling/createMessage": true };
const CAPABILITIES = {
  elicitation: {},
  sampling: {},
  tasks: { list: {}, cancel: {}, requests: { elicitation: { create: {} }, sampling: { createMessage: {} } } },
};
const YES = { action: "accept", content: { confirm: true } };
const unexpected = () => Promise.reject(new Error("this question should not be asked"));

for (const transport of ["http", "stdio"]) {
  describe(`over ${transport}`, { concurrency: true }, () => {
    let server = transport;
    if (transport === "http") {
      before(async () => (server = await startServer()));
      after(() => server.stop());
    }

    /** A session whose client runs questions as tasks. */
    const withReceiver = (signal, { sampling = unexpected, elicitation = unexpected, ...more }, use) => {
      const bind = (client) => bindTaskReceiver(client, { methods: METHODS, sampling, elicitation, ...more });
      return withSession(server, { signal, capabilities: CAPABILITIES, bind }, use);
    };

    // Without and with a poll interval of the client.
    for (const pollIntervalMs of [undefined, 20]) {
      test(`the user's answer is the result of a task of the client (poll interval ${pollIntervalMs})`, STUCK, async ({ signal }) => {
        const asked = [];
        const elicitation = async (request) => (asked.push(request), YES);
        await withReceiver(signal, { elicitation, pollIntervalMs }, async (session) => {
          const call = await startTask(session, "confirm_delete", { filename: "a.txt" });
          const { outcome } = await call.settle();
          assert.equal(outcome.status, "completed", outcome.error?.stack);
          assert.match(textOf(outcome.result), /deleted/);
          assert.equal(asked.length, 1);
          assert.ok(asked[0].params.task, "the question asks for a task");
        });
      });
    }

    test("the model's answer is the result of a task of the client", STUCK, async ({ signal }) => {
      const sampling = async ({ params }) => ({
        role: "assistant",
        model: "of-the-test",
        content: { type: "text", text: `heard: ${params.messages[0].content.text}` },
      });
      await withReceiver(signal, { sampling }, async (session) => {
        const call = await startTask(session, "ask_model", { prompt: "a riddle" });
        const { outcome } = await call.settle();
        assert.equal(outcome.status, "completed", outcome.error?.stack);
        assert.match(textOf(outcome.result), /heard: a riddle/);
      });
    });

    test("a task is input_required while the client's task is open", STUCK, async ({ signal }) => {
      const asked = arrival();
      const answer = arrival();
      const elicitation = () => (asked.arrived(), answer.promise);
      await withReceiver(signal, { elicitation }, async (session) => {
        const call = await startTask(session, "confirm_delete", { filename: "b.txt" });
        await asked.promise;
        assert.equal((await session.task(call.handle.taskId).snapshot()).status, "input_required");
        answer.arrived(YES);
        const { outcome } = await call.settle();
        assert.match(textOf(outcome.result), /deleted/);
      });
    });

    test("a failed task of the client fails the waiting task with its message", STUCK, async ({ signal }) => {
      const elicitation = () => Promise.reject(new Error("the user is on holiday"));
      await withReceiver(signal, { elicitation }, async (session) => {
        const call = await startTask(session, "confirm_delete", { filename: "c.txt" });
        const { outcome } = await call.settle();
        assert.equal(outcome.task?.status, "failed", outcome.error?.stack);
        assert.match(outcome.error.message, /on holiday/);
      });
    });

    test("cancelling a task cancels the client's task that it waits for", STUCK, async ({ signal }) => {
      const asked = arrival();
      const aborted = arrival();
      const elicitation = (_request, context) => {
        context.signal.addEventListener("abort", () => aborted.arrived());
        asked.arrived();
        return new Promise(() => {});
      };
      await withReceiver(signal, { elicitation }, async (session) => {
        const call = await startTask(session, "confirm_delete", { filename: "d.txt" });
        await asked.promise;
        await call.cancel();
        await aborted.promise;
        assert.equal((await call.settle()).outcome.status, "cancelled");
      });
    });
  });
}
