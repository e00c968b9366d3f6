/** A task outlives its session and a restart of the server, and is resumed from a saved reference. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startServer, STUCK, textOf } from "../../server.js";
import { startTask, withSession } from "./client.js";

/** @type {import("../../server.js").HttpServer} */
let server;
before(async () => (server = await startServer()));
after(() => server.stop());

test("a new session collects the result", STUCK, async ({ signal }) => {
  const reference = await startAndLeave(server, signal, "slow_compute", { seconds: 0.5, label: "left behind" });
  const { outcome } = await resume(server, signal, reference);
  assert.equal(outcome.status, "completed", outcome.error?.stack);
  assert.match(textOf(outcome.result), /left behind/);
});

// If a question arrives before the response to the client's first `tasks/get`, the client itself answers "cancel"; several
// rounds would show that.
test("a new session answers the question that the first one left open", STUCK, async ({ signal }) => {
  for (let round = 0; round < 5; round++) {
    const reference = await startAndLeave(server, signal, "confirm_delete", { filename: `left-open-${round}.txt` });
    const { outcome, asked } = await resume(server, signal, reference);
    assert.equal(outcome.status, "completed", outcome.error?.stack);
    assert.equal(asked.length, 1, "the question did not find its task");
    assert.match(asked[0], new RegExp(`left-open-${round}`));
    assert.match(textOf(outcome.result), /deleted/);
  }
});

test("a task continues after the server was killed", STUCK, async (t) => {
  const mortal = await mortalServer(t);
  const args = { millis: 500, file: join(mortal.folder, "attempts") };
  const reference = await startAndLeave(mortal, t.signal, "retry_job", args);
  await mortal.kill();
  await mortal.start();
  const { outcome } = await resume(mortal, t.signal, reference);
  assert.equal(outcome.status, "completed", outcome.error?.stack);
  assert.match(textOf(outcome.result), /attempt \d/);
});

test("a question is asked again after the server was killed, and its answer counts", STUCK, async (t) => {
  const mortal = await mortalServer(t);
  const reference = await startAndLeave(mortal, t.signal, "retry_confirm", {});
  await mortal.kill();
  await mortal.start();
  const { outcome, asked } = await resume(mortal, t.signal, reference);
  assert.equal(outcome.status, "completed", outcome.error?.stack);
  assert.deepEqual(asked, ["Go on?"]);
  assert.match(textOf(outcome.result), /attempt \d/);
});

test("a result can be read after the server was killed", STUCK, async (t) => {
  const mortal = await mortalServer(t);
  const reference = await withSession(mortal, { signal: t.signal }, async (session) => {
    const call = await startTask(session, "echo", { text: "kept" });
    await call.settle();
    return call.serializeReference();
  });
  await mortal.kill();
  await mortal.start();
  const { outcome } = await resume(mortal, t.signal, reference);
  assert.equal(textOf(outcome.result), "kept");
});

/** Starts a task, detaches from it without an answer to its questions, and closes the session. */
async function startAndLeave(at, signal, tool, args) {
  // Without this handler the tasks client would answer the question itself.
  const onInputRequest = (_request, context) =>
    new Promise((_resolve, reject) => context.signal?.addEventListener("abort", () => reject(context.signal.reason)));
  let reference;
  await withSession(at, { signal, onInputRequest }, async (session) => {
    const call = await startTask(session, tool, args);
    await call.handoff(async (saved) => void (reference = saved));
    // Closing a session cancels the tasks whose result is pending. After `handoff` the result settles as detached.
    await call.result();
  });
  assert.equal(reference.generation, "v1");
  return reference;
}

/** Resumes a task in a new session, accepts every question, and waits for its end. */
async function resume(at, signal, reference) {
  const asked = [];
  const onInputRequest = async ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { confirm: true } };
  };
  return withSession(at, { signal, onInputRequest }, async (session) => {
    const resumed = await session.resumeTask(reference);
    const { outcome } = await resumed.settle();
    return { outcome, asked };
  });
}

async function mortalServer(t) {
  const mortal = await startServer();
  t.after(() => mortal.stop());
  return mortal;
}
