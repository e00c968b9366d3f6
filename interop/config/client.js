/** Clients of a server with the config file of this folder. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { startServer } from "../server.js";

export const CONFIG = join(import.meta.dirname, "longhaul.toml");

/** The records of processes, apart from those of other servers. */
const processes = mkdtempSync(join(tmpdir(), "longhaul-processes-"));
process.env.LONGHAUL_PROCESS_DIR = processes;
process.once("exit", () => rmSync(processes, { recursive: true, force: true }));

/** A server over HTTP with the config file. */
export function startConfigured({ patience = [], owners } = {}) {
  return startServer({ command: ["serve"], owners, more: ["--config", CONFIG, ...patience] });
}

/** A folder for the store of servers over stdio. `pid` is the process of the last client. */
export class StdioPlace {
  constructor(patience = []) {
    this.folder = mkdtempSync(join(tmpdir(), "longhaul-stdio-"));
    this.command = process.env.LONGHAUL_PROGRAM;
    this.args = ["serve", "--stdio", "--config", CONFIG, "--store", `sqlite:${join(this.folder, "tasks.db")}`, ...patience];
  }

  kill() {
    process.kill(this.pid, "SIGKILL");
  }

  start() {}

  stop() {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Connects a client of 2025-06-18, a revision without tasks, passes it to `use`, and closes it. */
export async function withOldClient(server, use) {
  const client = new Client({ name: "a-host-without-tasks", version: "1.0.0" }, { capabilities: {} });
  const transport =
    server instanceof StdioPlace
      ? new StdioClientTransport({ command: server.command, args: server.args, env: process.env, stderr: "ignore" })
      : new StreamableHTTPClientTransport(server.url, { requestInit: { headers: server.headers() } });
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method === "initialize") message.params.protocolVersion = "2025-06-18";
    return send(message, options);
  };
  await client.connect(transport);
  if (server instanceof StdioPlace) server.pid = transport.pid;
  try {
    // The client checks results against the output schemas that it has seen.
    await client.listTools();
    return await use(client);
  } finally {
    await client.close();
  }
}

/** What a result says about its task, for programs. */
export function ticketOf(result) {
  return result._meta?.["longhaul/task"];
}

/** Calls a tool with the client's default timeout. */
export function call(client, name, args = {}, options = undefined) {
  return client.callTool({ name, arguments: args }, undefined, options);
}

/** Waits for the end of a task as its ticket tells a model to, and returns its result. */
export async function collect(client, taskId) {
  for (;;) {
    const { status } = ticketOf(await call(client, "task_status", { taskId, waitSeconds: 30 }));
    if (status !== "working") return call(client, "task_result", { taskId });
  }
}

/** The processes with this mark in their environment. */
export function marked(mark) {
  const hasMark = (pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`MARK=${mark}`);
    } catch {
      return false;
    }
  };
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter(hasMark);
}

/** Waits until a condition holds; the test's own time limit ends a wait in vain. */
export async function until(holds) {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 50));
}
