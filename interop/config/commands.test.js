/** The four commands of the config file, used by the official tasks client, by Inspector and by a client without tasks. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { startTask as startStateless, withSession as withStateless } from "../ext-tasks/client.js";
import { startTask as startLegacy, withSession as withLegacy } from "../ext-tasks/legacy/client.js";
import { Home } from "../mcpdo/mcpdo.js";
import { STUCK, textOf } from "../server.js";
import { call, CONFIG, marked, startConfigured, StdioPlace, ticketOf, until, withOldClient } from "./client.js";

/** The whole life of the commands with the tasks client: a build, a copy, an approval, and a cancelled hang. */
async function useAll(session, startTask, folder) {
  const settled = async (call) => (await call.settle()).outcome;
  const built = await settled(await startTask(session, "build", { files: 3 }));
  assert.deepEqual(built.result.structuredContent, { objects: 3 });
  const copy = join(folder, `copy-${randomUUID()}`);
  await settled(await startTask(session, "copy", { to: copy, blocks: 3 }));
  assert.equal((await stat(copy)).size, 3 * 65536);
  const released = await settled(await startTask(session, "release", { version: "2.0" }));
  assert.equal(textOf(released.result), "2.0 is published");
  const mark = randomUUID();
  const hanging = await startTask(session, "hang", { mark });
  await until(() => marked(mark).length >= 2);
  await hanging.cancel();
  assert.equal((await settled(hanging)).status, "cancelled");
  await until(() => marked(mark).length === 0);
}

const approve = () => ({ action: "accept", content: { yes: true } });

test("the official tasks client at 2026-07-28 uses all four", STUCK, async ({ signal }) => {
  const server = await startConfigured({ owners: [] });
  try {
    process.env.LONGHAUL_URL = server.url.href;
    await withStateless({ signal, onInputRequest: approve }, (session) => useAll(session, startStateless, server.folder));
  } finally {
    await server.stop();
  }
});

test("the official tasks client at 2025-11-25 uses all four", STUCK, async ({ signal }) => {
  const server = await startConfigured();
  try {
    const options = { signal, onInputRequest: approve };
    await withLegacy(server, options, (session) => useAll(session, startLegacy, server.folder));
  } finally {
    await server.stop();
  }
});

for (const transport of ["http", "stdio"]) {
  test(`Inspector's mcpdo uses a build and an approval, over ${transport}`, STUCK, async () => {
    const server = transport === "http" ? await startConfigured() : new StdioPlace();
    const home = await Home.make();
    try {
      const mcpdo = await home.connect("config", "legacy", server);
      const { answer: built } = await mcpdo("tools/call", "build", "files:=2", "--task");
      assert.deepEqual(built.structuredContent, { objects: 2 });
      // Without a task: a client that can be asked is asked while its call waits.
      const { answer: ordinary } = await mcpdo("tools/call", "build", "files:=2");
      assert.deepEqual(ordinary.structuredContent, { objects: 2 });
      const { answer: asked } = await mcpdo("tools/call", "release", "version:=third");
      const { answer: released } = await mcpdo("elicitation/respond", asked.elicitationPending.elicitationId, "yes:=true");
      assert.equal(textOf(released), "third is published");
    } finally {
      await home.leave();
      await server.stop();
    }
  });

  test(`a killed server leaves no process behind, and its tasks end as their tools say, over ${transport}`, STUCK, async () => {
    const server = transport === "http" ? await startConfigured({ patience: ["--patience", "1ms"] }) : new StdioPlace(["--patience", "1ms"]);
    try {
      const marks = { hang: randomUUID(), build: randomUUID(), copy: randomUUID() };
      const ids = {};
      await withOldClient(server, async (client) => {
        ids.hang = ticketOf(await call(client, "hang", { mark: marks.hang })).taskId;
        ids.build = ticketOf(await call(client, "build", { files: 3, pause: 1, mark: marks.build })).taskId;
        const copy = { to: join(server.folder, "copy"), pause: 600, mark: marks.copy };
        ids.copy = ticketOf(await call(client, "copy", copy)).taskId;
        await until(() => Object.values(marks).every((mark) => marked(mark).length > 0));
        await server.kill();
        // Without another server: the guard of the dead one ends them.
        await until(() => Object.values(marks).every((mark) => marked(mark).length === 0));
      });
      await server.start();
      await withOldClient(server, async (client) => {
        const result = async (taskId) => {
          await until(async () => ticketOf(await call(client, "task_status", { taskId, waitSeconds: 30 })).status !== "working");
          return call(client, "task_result", { taskId });
        };
        for (const id of [ids.hang, ids.copy]) assert.match(textOf(await result(id)), /server.*stopped|lost|crash/i);
        assert.deepEqual((await result(ids.build)).structuredContent, { objects: 3 });
      });
      for (const mark of Object.values(marks)) await until(() => marked(mark).length === 0);
    } finally {
      await server.stop();
    }
  });
}

test("the config file is valid", STUCK, async () => {
  const { execFileSync } = await import("node:child_process");
  const said = execFileSync(process.env.LONGHAUL_PROGRAM, ["config", "check", CONFIG], { encoding: "utf8" });
  assert.match(said, /build, release, copy, hang/);
});
