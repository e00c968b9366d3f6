/** Sessions over HTTP: their owner, their end, and what outlives them. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { startServer, STUCK, textOf } from "../server.js";
import { callAsTask, resultOf, startTask, withClient } from "./client.js";

/** @type {import("../server.js").HttpServer} */
let server;
before(async () => (server = await startServer()));
after(() => server.stop());

test("another session of the same owner can collect a result", STUCK, async () => {
  let taskId;
  await withClient(server, {}, async (client, transport) => {
    ({ taskId } = await startTask(client, "slow_compute", { seconds: 0.5, label: "left behind" }));
    await transport.terminateSession();
  });
  await withClient(server, {}, async (client) => {
    assert.match(textOf(await resultOf(client, taskId)), /left behind/);
  });
});

test("an ended session is unknown: 404", STUCK, () =>
  withClient(server, {}, async (_client, transport) => {
    const { sessionId } = transport;
    await transport.terminateSession();
    const answer = await post(sessionId);
    assert.equal(answer.status, 404);
  }));

test("no session is 400, an unknown one and another owner's are 404", STUCK, () =>
  withClient(server, {}, async (_client, { sessionId }) => {
    const [none, madeUp, foreign] = await Promise.all([post(), post("made-up"), post(sessionId, 1)]);
    assert.deepEqual([none.status, madeUp.status, foreign.status], [400, 404, 404]);
    assert.equal(await foreign.text(), await madeUp.text());
    assert.equal((await post(sessionId)).status, 200);
  }));

test("another owner's task is an unknown task, and not in the list", STUCK, async () => {
  await withClient(server, {}, async (client) => {
    const { taskId } = await startTask(client, "slow_compute", { seconds: 3600, label: "mine" });
    await withClient(server, { owner: 1 }, async (stranger) => {
      const { tasks } = stranger.experimental;
      const message = async (id) => (await tasks.getTask(id).catch((error) => error)).message.replaceAll(id, "ID");
      assert.equal(await message(taskId), await message("no-such-task"));
      await assert.rejects(tasks.cancelTask(taskId), { code: -32602 });
      await assert.rejects(resultOf(stranger, taskId), { code: -32602 });
      const { tasks: listed } = await tasks.listTasks();
      assert.ok(!listed.some((task) => task.taskId === taskId));
    });
    assert.equal((await client.experimental.tasks.cancelTask(taskId)).status, "cancelled");
  });
});

test("a restart of the server ends neither the session nor the task", STUCK, async (t) => {
  const mortal = await startServer();
  t.after(() => mortal.stop());
  let taskId;
  let sessionId;
  await withClient(mortal, {}, async (client, transport) => {
    const file = join(mortal.folder, "attempts");
    ({ taskId } = await startTask(client, "retry_job", { millis: 1_000, file }));
    ({ sessionId } = transport);
    await mortal.kill();
  });
  await mortal.start();
  await withClient(mortal, { sessionId }, async (client) => {
    assert.match(textOf(await resultOf(client, taskId)), /attempt \d/);
    const { last } = await callAsTask(client, "echo", { text: "goes on" });
    assert.equal(textOf(last.result), "goes on");
  });
});

/** Sends a ping in a session, without the SDK. */
function post(sessionId, owner) {
  return fetch(server.url, {
    method: "POST",
    headers: {
      ...server.headers(owner),
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": "2025-11-25",
      ...(sessionId ? { "Mcp-Session-Id": sessionId } : {}),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
  });
}
