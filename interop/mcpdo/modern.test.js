/**
 * Inspector's `mcpdo` in the stateless era. A call waits for its end and never prints the task's ID, so the tests of the task
 * commands create their tasks without `mcpdo`.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startServer, STUCK, textOf } from "../server.js";
import { Home } from "./mcpdo.js";

const PROTOCOL_VERSION = "2026-07-28";

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
        mcpdo = await home.connect("first", "modern", server);
      });
      after(async () => {
        await home.leave();
        if (transport === "http") await server.stop();
      });

      test("the server decides which call is a task, and both return the result", STUCK, async () => {
        const { answer: greeting } = await mcpdo("tools/call", "greet", "name:=Ada");
        assert.equal(textOf(greeting), "Hello, Ada!");
        const { answer: computed } = await mcpdo("tools/call", "slow_compute", "seconds:=0.2", "label:=whole");
        assert.match(textOf(computed), /whole/);
      });

      test("a tool error is a result, a JSON-RPC error is none", STUCK, async () => {
        const failed = await mcpdo("tools/call", "failing_job");
        assert.equal(failed.answer.isError, true);
        assert.equal(failed.error.code, "tool_is_error");
        const protocol = await mcpdo("tools/call", "protocol_error_job");
        assert.equal(protocol.answer, undefined);
        assert.match(protocol.error.message, /protocol error, as it should/);
      });

      test("the user is asked one question after another, and the call continues", STUCK, async () => {
        const { answer: first } = await mcpdo("tools/call", "multi_input");
        const { answer: second } = await mcpdo("elicitation/respond", first.elicitationPending.elicitationId, ...fill(first));
        const { answer: result } = await mcpdo("elicitation/respond", second.elicitationPending.elicitationId, ...fill(second));
        assert.match(textOf(result), /Ada said yes/);
      });

      test("an unknown task is refused", STUCK, async () => {
        const { code, error } = await mcpdo("tasks/get", "no-such-task");
        assert.equal(code, 1);
        assert.match(error.message, /not found/i);
      });

      if (transport === "http") {
        test("a task of the same owner is read, answered and collected", STUCK, async () => {
          const taskId = await createTask(server, "confirm_delete", { filename: "a.txt" });
          let open;
          while (!open) {
            const { answer } = await mcpdo("tasks/get", taskId);
            if (answer.task.status === "input_required") open = Object.keys(answer.task.raw.inputRequests);
          }
          assert.equal(open.length, 1);
          const answers = { [open[0]]: { action: "accept", content: { confirm: true } } };
          assert.equal((await mcpdo("tasks/update", taskId, "--input-responses", JSON.stringify(answers))).code, 0);
          const { answer: result } = await mcpdo("tasks/result", taskId);
          assert.match(textOf(result), /deleted/);
        });

        test("a task of the same owner is cancelled", STUCK, async () => {
          const taskId = await createTask(server, "slow_compute", { seconds: 3600, label: "cancelled" });
          assert.equal((await mcpdo("tasks/cancel", taskId)).code, 0);
          assert.equal((await mcpdo("tasks/get", taskId)).answer.task.status, "cancelled");
        });
      }
    });
  }
});

/** The answers to a form. */
function fill({ elicitationPending: { requestedSchema } }) {
  return Object.keys(requestedSchema.properties).map((name) => (name === "confirm" ? "confirm:=true" : `${name}:=Ada`));
}

/** Creates a task without `mcpdo`. */
async function createTask(server, name, args) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL_VERSION,
    "io.modelcontextprotocol/clientInfo": { name: "longhaul-interop", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
  };
  const response = await fetch(server.url, {
    method: "POST",
    headers: {
      ...server.headers(),
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": PROTOCOL_VERSION,
      "Mcp-Method": "tools/call",
      "Mcp-Name": name,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta } }),
  });
  const { result } = await response.json();
  assert.equal(result?.resultType, "task");
  return result.taskId;
}
