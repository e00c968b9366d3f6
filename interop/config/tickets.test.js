/** `@modelcontextprotocol/sdk` as a host that knows no tasks: a client of 2025-06-18 with its default timeouts. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { arrival, STUCK, textOf } from "../server.js";
import { call, collect, startConfigured, StdioPlace, ticketOf, withOldClient } from "./client.js";

const SHORT = ["--patience", "2s"];

/** @param {string[]} patience flags of the server */
async function place(transport, patience) {
  return transport === "http" ? await startConfigured({ patience }) : new StdioPlace(patience);
}

for (const transport of ["http", "stdio"]) {
  describe(`a client without tasks over ${transport}`, () => {
    let server;
    before(async () => (server = await place(transport, SHORT)));
    after(() => server.stop());

    test("work that is done in time is an ordinary result", STUCK, async () => {
      await withOldClient(server, async (client) => {
        const result = await call(client, "build", { files: 2 });
        assert.deepEqual(result.structuredContent, { objects: 2 });
        assert.equal(ticketOf(result), undefined);
      });
    });

    test("longer work has a ticket that says what to do, and its result later", STUCK, async () => {
      await withOldClient(server, async (client) => {
        const progress = [];
        const onprogress = ({ progress: done }) => progress.push(done);
        const given = await call(client, "build", { files: 3, pause: 1.5 }, { onprogress });
        const { taskId, status } = ticketOf(given);
        assert.equal(status, "working");
        assert.match(textOf(given), new RegExp(`task_status.*${taskId}.*task_result`, "s"));
        assert.ok(progress.length > 0, "the client heard of progress while it waited");
        const result = await collect(client, taskId);
        assert.deepEqual(result.structuredContent, { objects: 3 });
        const listed = await call(client, "task_list");
        assert.ok(ticketOf(listed).tasks.some((task) => task.taskId === taskId));
      });
    });

    test("a question is answered with task_answer", STUCK, async () => {
      await withOldClient(server, async (client) => {
        const asked = await call(client, "release", { version: "1.2" });
        const { taskId, status, inputRequests } = ticketOf(asked);
        assert.equal(status, "input_required");
        const [[key, request]] = Object.entries(inputRequests);
        assert.equal(request.params.message, "Publish this version?");
        assert.match(textOf(asked), /Publish this version\?.*task_answer/s);
        const wrong = await call(client, "task_answer", { taskId, answers: { [key]: { action: "accept" } } });
        assert.equal(wrong.isError, true);
        await call(client, "task_answer", { taskId, answers: { [key]: { action: "accept", content: { yes: true } } } });
        assert.equal(textOf(await collect(client, taskId)), "1.2 is published");
      });
    });

    test("a task is cancelled with task_cancel", STUCK, async () => {
      await withOldClient(server, async (client) => {
        const { taskId } = ticketOf(await call(client, "build", { files: 2, pause: 600 }));
        assert.equal(ticketOf(await call(client, "task_cancel", { taskId })).status, "cancelled");
        assert.equal((await call(client, "task_result", { taskId })).isError, true);
      });
    });
  });

  test(`a kill of the server in the middle of a wait changes nothing, over ${transport}`, STUCK, async () => {
    const server = await place(transport, []);
    try {
      const work = { files: 4, pause: 1 };
      const begun = arrival();
      const lost = withOldClient(server, (client) => call(client, "build", work, { onprogress: begun.arrived }));
      const gone = lost.then(
        () => assert.fail("the server was killed"),
        () => {},
      );
      await begun.promise;
      await server.kill();
      await server.start();
      await withOldClient(server, async (client) => {
        const listed = ticketOf(await call(client, "task_list")).tasks;
        assert.equal(listed.length, 1);
        const again = await call(client, "build", work);
        assert.deepEqual(again.structuredContent, { objects: 4 });
        assert.equal(ticketOf(await call(client, "task_list")).tasks.length, 1, "the same call has joined its task");
        const kept = await call(client, "task_result", { taskId: listed[0].taskId });
        assert.deepEqual(kept.structuredContent, { objects: 4 });
      });
      // The SDK gives up on the old connection by itself, or by its timeout; the test does not wait for that.
      void gone;
    } finally {
      await server.stop();
    }
  });

  const long = { timeout: 180_000, skip: !process.env.LONGHAUL_LONG && "LONGHAUL_LONG=1 runs it" };
  test(`90 seconds of work with the default patience and timeout, over ${transport}`, long, async () => {
    const server = await place(transport, []);
    try {
      await withOldClient(server, async (client) => {
        const quick = await call(client, "build", { files: 1, pause: 5 });
        assert.equal(ticketOf(quick), undefined);
        assert.deepEqual(quick.structuredContent, { objects: 1 });
        const begin = Date.now();
        const given = await call(client, "build", { files: 9, pause: 10 });
        const ticket = Date.now() - begin;
        assert.equal(ticketOf(given).status, "working");
        const result = await collect(client, ticketOf(given).taskId);
        assert.deepEqual(result.structuredContent, { objects: 9 });
        const seconds = (ms) => (ms / 1000).toFixed(1);
        console.log(`${transport}: ticket after ${seconds(ticket)} s, result after ${seconds(Date.now() - begin)} s`);
      });
    } finally {
      await server.stop();
    }
  });
}
