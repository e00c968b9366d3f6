/** Pages in a real browser: those of an allowed origin can call the server, and others cannot. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startServer, STUCK } from "../server.js";
import { startBrowser, startPages } from "./chromium.js";

let pages, browser, server, tokenless;
before(async () => {
  [pages, browser] = await Promise.all([startPages(), startBrowser()]);
  const options = { command: ["serve"], more: ["--demo", "--allow-origin", pages.origin("app.test")] };
  [server, tokenless] = await Promise.all([startServer(options), startServer({ ...options, owners: [] })]);
});
after(async () => {
  await browser?.close();
  await Promise.all([server?.stop(), tokenless?.stop()]);
  pages?.stop();
});

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "page", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
};

/** Shows a page of this origin. */
async function open(t, origin) {
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(origin);
  return page;
}

/** Sends a request from the page, as a script of the page would, with exactly these headers. */
function send(page, url, message, headers, mode) {
  const request = { method: "POST", mode, headers, body: JSON.stringify(message) };
  return page.evaluate(
    async ([url, request]) => {
      const response = await fetch(url, request);
      const text = await response.text();
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      const events = [...text.matchAll(/^data: ?(.+)$/gm)].map(([, data]) => data);
      return {
        status: response.status,
        session: response.headers.get("mcp-session-id"),
        message: JSON.parse((isStream ? events.at(-1) : text) || "null"),
      };
    },
    [url.href, request],
  );
}

/** Sends a request of a client with a token. */
function post(page, message, headers = {}) {
  const common = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return send(page, server.url, message, { ...common, ...server.headers(), ...headers });
}

function statelessRequest(method, params, name) {
  const message = { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } };
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...(name && { "mcp-name": name }) };
  return [message, headers];
}

async function stateless(page, ...request) {
  const { status, message } = await post(page, ...statelessRequest(...request));
  assert.equal(status, 200, JSON.stringify(message));
  return message.result;
}

const REPORT = { name: "generate_report", arguments: { topic: "Bees", seconds: 1 } };

test("a page of the allowed origin runs a task to its end", STUCK, async (t) => {
  const page = await open(t, pages.origin("app.test"));
  const server = await stateless(page, "server/discover", {});
  assert.ok(server.supportedVersions.includes("2026-07-28"), JSON.stringify(server));
  const { resultType, taskId } = await stateless(page, "tools/call", REPORT, REPORT.name);
  assert.equal(resultType, "task");
  let task;
  do {
    task = await stateless(page, "tasks/get", { taskId }, taskId);
  } while (task.status === "working");
  assert.equal(task.status, "completed");
  assert.match(task.result.content[0].text, /Bees/);
});

test("the same in a session, whose ID the page can read", STUCK, async (t) => {
  const page = await open(t, pages.origin("app.test"));
  const client = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "page", version: "1" } };
  const opened = await post(page, { jsonrpc: "2.0", id: 1, method: "initialize", params: client });
  assert.ok(opened.session, JSON.stringify(opened));
  const headers = { "mcp-session-id": opened.session, "mcp-protocol-version": "2025-11-25" };
  const ask = async (id, method, params) => {
    const { message } = await post(page, { jsonrpc: "2.0", id, method, params }, headers);
    return message.result;
  };
  await post(page, { jsonrpc: "2.0", method: "notifications/initialized" }, headers);
  const { task } = await ask(2, "tools/call", { ...REPORT, task: { ttl: 60_000 } });
  assert.equal(task.status, "working");
  const result = await ask(3, "tasks/result", { taskId: task.taskId });
  assert.match(result.content[0].text, /Bees/);
});

// A page of this machine is not allowed either, though a program of this machine may call.
for (const name of ["other.test", "localhost"]) {
  test(`a page of ${name} cannot call, with a token and without`, STUCK, async (t) => {
    const page = await open(t, pages.origin(name));
    const before = await server.taskIds();
    const [call, headers] = statelessRequest("tools/call", REPORT, REPORT.name);
    await assert.rejects(post(page, call, headers), /Failed to fetch/);
    const common = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    await assert.rejects(send(page, tokenless.url, call, { ...common, ...headers }), /Failed to fetch/);
    // A browser sends these without asking the server first, but the page learns nothing.
    await assert.rejects(send(page, tokenless.url, call, { "content-type": "text/plain" }), /Failed to fetch/);
    const blind = await send(page, tokenless.url, call, {}, "no-cors");
    assert.deepEqual(blind, { status: 0, session: null, message: null });
    assert.deepEqual(await server.taskIds(), before, "a task was made");
    assert.deepEqual(await tokenless.taskIds(), [], "a task was made");
  });
}
