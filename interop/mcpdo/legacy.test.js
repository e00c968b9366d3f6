/** Inspector's `mcpdo` in the stateful era: tasks from the shell. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startServer, STUCK, textOf } from "../server.js";
import { Home } from "./mcpdo.js";

const RELATED_TASK = "io.modelcontextprotocol/related-task";

// Each transport has its own daemon, so that they run in parallel.
describe("mcpdo", { concurrency: true }, () => {
  for (const transport of ["http", "stdio"]) {
    describe(`over ${transport}`, { concurrency: 1 }, () => {
      let server = transport;
      /** @type {Home} */
      let home;
      let mcpdo;
      before(async () => {
        if (transport === "http") server = await startServer();
        home = await Home.make();
        mcpdo = await home.connect("first", "legacy", server);
      });
      after(async () => {
        await home.leave();
        if (transport === "http") await server.stop();
      });

      test("the connection is a session of 2025-11-25 with tasks", STUCK, async () => {
        const { answer } = await mcpdo("connections/show");
        assert.equal(answer.protocolEra, "legacy");
        assert.equal(answer.protocolVersion, "2025-11-25");
        assert.deepEqual(answer.capabilities.tasks, { list: {}, cancel: {}, requests: { tools: { call: {} } } });
      });

      test("a call as a task returns the result, and the list has the task", STUCK, async () => {
        const { answer: result } = await mcpdo("tools/call", "slow_compute", "seconds:=0.2", "label:=whole", "--task");
        assert.match(textOf(result), /whole/);
        const { taskId } = result._meta[RELATED_TASK];
        const { answer: list } = await mcpdo("tasks/list");
        assert.ok(list.tasks.some((task) => task.taskId === taskId));
        const { answer: got } = await mcpdo("tasks/get", taskId);
        assert.equal(got.task.status, "completed");
        const { answer: again } = await mcpdo("tasks/result", taskId);
        assert.deepEqual(again, result);
      });

      test("an ordinary call creates no task", STUCK, async () => {
        const { answer } = await mcpdo("tools/call", "slow_compute", "seconds:=0", "label:=ordinary");
        assert.match(textOf(answer), /ordinary/);
        assert.equal(answer._meta?.[RELATED_TASK], undefined);
      });

      test("a failed task is an error with the tool's text", STUCK, async () => {
        const { code, error } = await mcpdo("tools/call", "failing_job", "--task");
        assert.equal(code, 1);
        assert.match(error.message, /fails, as it should/);
        const { error: protocol } = await mcpdo("tools/call", "protocol_error_job", "--task");
        assert.match(protocol.message, /protocol error, as it should/);
      });

      test("the user is asked, and the call continues with the answer", STUCK, async () => {
        const { answer: asked } = await mcpdo("tools/call", "confirm_delete", "filename:=a.txt", "--task");
        assert.match(asked.elicitationPending.message, /a\.txt/);
        const { answer: result } = await mcpdo("elicitation/respond", asked.elicitationPending.elicitationId, "confirm:=true");
        assert.match(textOf(result), /deleted/);
      });

      test("an unknown task and `tasks/update` are refused", STUCK, async () => {
        for (const words of [["tasks/get"], ["tasks/result"], ["tasks/cancel"], ["tasks/update", "--input-responses", "{}"]]) {
          const { code, error } = await mcpdo(words[0], "no-such-task", ...words.slice(1));
          assert.equal(code, 1, words[0]);
          assert.ok(error.message);
        }
      });

      test("the log level can be set", STUCK, async () => {
        assert.equal((await mcpdo("logging/setLevel", "warning")).code, 0);
      });

      // Over stdio a second connection starts a second server.
      if (transport === "http") {
        test("a running task is cancelled from another connection, once", STUCK, async () => {
          const beside = await home.connect("second", "legacy", server);
          const running = mcpdo("tools/call", "slow_compute", "seconds:=3600", "label:=cancelled", "--task");
          let working;
          while (!working) {
            const { answer } = await beside("tasks/list");
            working = answer.tasks.find((task) => task.status === "working");
          }
          const { answer } = await beside("tasks/cancel", working.taskId);
          assert.ok(answer);
          assert.equal((await running).code, 1);
          assert.equal((await beside("tasks/get", working.taskId)).answer.task.status, "cancelled");
          assert.equal((await beside("tasks/cancel", working.taskId)).code, 1);
        });
      }
    });
  }
});
