/** A task outlives its client: another process resumes it from a saved reference. */
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

/** Starts a task, saves its reference, and closes the client without an answer to its questions. */
async function startAndLeave(signal, tool, args, file) {
  // Without this handler the tasks client would decline the question itself.
  const onInputRequest = (_request, context) =>
    new Promise((_resolve, reject) => context.signal.addEventListener("abort", () => reject(context.signal.reason)));
  await withSession({ signal, onInputRequest }, async (session) => {
    const call = await startTask(session, tool, args);
    await call.handoff((reference) => writeFile(file, JSON.stringify(reference)));
    // Closing a session cancels the tasks whose result is pending. After `handoff` the result settles as detached.
    await call.result();
  });
  const { generation } = JSON.parse(await readFile(file, "utf8"));
  assert.equal(generation, "v2");
}

/** @returns {Promise<{ pid: number, status: string, text: string, asked: string[] }>} the output of the other process */
async function resumeElsewhere(signal, file) {
  const { stdout } = await promisify(execFile)(process.execPath, [OTHER_PROCESS, file], { signal });
  const resumed = JSON.parse(stdout);
  assert.notEqual(resumed.pid, process.pid);
  return resumed;
}

/** @returns {Promise<string>} a path that is removed after the test */
async function referenceFile(t) {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-interop-"));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, "reference.json");
}
