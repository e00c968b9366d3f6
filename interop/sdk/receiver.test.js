/** Longhaul as requestor: it sends questions as tasks if the client declares that it supports them. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks";
import { arrival, startServer, STUCK, textOf } from "../server.js";
import { callAsTask, startTask, withClient } from "./client.js";

const TASKS = { list: {}, cancel: {}, requests: { elicitation: { create: {} }, sampling: { createMessage: {} } } };

for (const transport of ["http", "stdio"]) {
  describe(`over ${transport}`, { concurrency: true }, () => {
    let server = transport;
    if (transport === "http") {
      before(async () => (server = await startServer()));
      after(() => server.stop());
    }

    test("a question to the user becomes a task of the client, and its result is the answer", STUCK, async () => {
      const { onElicit, options, asked } = receiver({ action: "accept", content: { confirm: true } });
      await withClient(server, { ...options, onElicit }, async (client) => {
        const { last } = await callAsTask(client, "confirm_delete", { filename: "c.txt" });
        assert.equal(last.type, "result", String(last.error));
        assert.match(textOf(last.result), /deleted/);
        assert.equal(asked.length, 1);
        assert.ok(asked[0].task, "the question asks for a task");
      });
    });

    test("a question to the model becomes a task of the client, and its result is the answer", STUCK, async () => {
      const content = { type: "text", text: "from the client's task" };
      const { onElicit: onSample, options, asked } = receiver({ role: "assistant", model: "of-the-test", content });
      await withClient(server, { ...options, onSample }, async (client) => {
        const { last } = await callAsTask(client, "ask_model", { prompt: "a riddle" });
        assert.equal(last.type, "result", String(last.error));
        assert.match(textOf(last.result), /from the client's task/);
        assert.ok(asked[0].task, "the question asks for a task");
      });
    });

    test("a cancelled task cancels the client's task that it waits for", STUCK, async () => {
      const { onElicit, options, store, created } = receiver(undefined);
      await withClient(server, { ...options, onElicit }, async (client) => {
        const { taskId } = await startTask(client, "confirm_delete", { filename: "d.txt" });
        const theirs = await created.promise;
        await client.experimental.tasks.cancelTask(taskId);
        await store.ended(theirs.taskId);
        assert.equal((await store.getTask(theirs.taskId)).status, "cancelled");
      });
    });
  });
}

/** A handler of the client that creates a task for every question and answers it with `answer`, or never. */
function receiver(answer) {
  const store = new WatchedStore();
  const asked = [];
  const created = arrival();
  const onElicit = async ({ params }, { taskStore }) => {
    asked.push(params);
    const task = await taskStore.createTask({ ttl: params.task.ttl, pollInterval: 50 });
    created.arrived(task);
    // After the response to the creation, as the protocol requires.
    if (answer) setImmediate(() => taskStore.storeTaskResult(task.taskId, "completed", answer));
    return { task };
  };
  // With a message queue this client would never send its answers, because the questions have a task ID: see README.md.
  return { onElicit, asked, created, store, options: { tasks: TASKS, clientOptions: { taskStore: store } } };
}

/** A store with a promise for the end of each task. */
class WatchedStore extends InMemoryTaskStore {
  #ended = new Map();

  ended(taskId) {
    if (!this.#ended.has(taskId)) this.#ended.set(taskId, arrival());
    return this.#ended.get(taskId).promise;
  }

  async updateTaskStatus(taskId, status, ...rest) {
    await super.updateTaskStatus(taskId, status, ...rest);
    if (status === "cancelled") {
      this.ended(taskId);
      this.#ended.get(taskId).arrived();
    }
  }
}
