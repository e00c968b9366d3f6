/** A task outlives the client that made it: another process picks it up from a saved reference. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { startTask, STUCK, withSession } from "./client.js";

const OTHER_PROCESS = join(import.meta.dirname, "resume-in-another-process.js");

test("another process collects the result", STUCK, async (t) => {
  const file = await referenceFile(t);
  await startAndLeave(t.signal, "slow_compute", { seconds: 2, label: "left-behind" }, file);

  const resumed = await resumeElsewhere(t.signal, file);
  assert.equal(resumed.status, "completed");
  assert.match(resumed.text, /left-behind/);
  assert.deepEqual(resumed.asked, []);
});

test("another process answers the question that the first one left open", STUCK, async (t) => {
  const file = await referenceFile(t);
  await startAndLeave(t.signal, "confirm_delete", { filename: "left-open.txt" }, file);

  const resumed = await resumeElsewhere(t.signal, file);
  assert.equal(resumed.status, "completed");
  assert.equal(resumed.asked.length, 1);
  assert.match(resumed.text, /left-open\.txt/);
});

/** Starts a task, saves the reference to it, and closes the client without having answered anything. */
async function startAndLeave(signal, tool, args, file) {
  // Without an answer of ours the tasks client would decline the question on its own.
  const onInputRequest = (_request, context) =>
    new Promise((_resolve, reject) => context.signal.addEventListener("abort", () => reject(context.signal.reason)));
  await withSession({ signal, onInputRequest }, async (session) => {
    const call = await startTask(session, tool, args);
    await call.handoff((reference) => writeFile(file, JSON.stringify(reference)));
    // Closing a session cancels what it still drives, and it drives a task until its result has settled, here as "let go".
    await call.result();
  });
  const { generation } = JSON.parse(await readFile(file, "utf8"));
  assert.equal(generation, "v2");
}

/** @returns {Promise<{ pid: number, status: string, text: string, asked: string[] }>} what the other process saw */
async function resumeElsewhere(signal, file) {
  const { stdout } = await promisify(execFile)(process.execPath, [OTHER_PROCESS, file], { signal });
  const resumed = JSON.parse(stdout);
  assert.notEqual(resumed.pid, process.pid);
  return resumed;
}

/** @returns {Promise<string>} a path that is gone after the test */
async function referenceFile(t) {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-interop-"));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, "reference.json");
}
