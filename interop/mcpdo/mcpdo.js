/** Inspector's `mcpdo`: a daemon that holds the connections, and one process per command. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { stdioServer } from "../server.js";

const PROGRAM = join(import.meta.dirname, "../node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js");

/** A separate home directory, which gives a separate daemon. */
export class Home {
  static async make() {
    const home = new Home();
    home.folder = await mkdtemp(join(tmpdir(), "longhaul-mcpdo-"));
    return home;
  }

  /**
   * Connects. A connection carries out one command at a time and none while a question is open, so that what a test
   * does beside a running call needs a second one.
   *
   * @param {string} name
   * @param {"modern" | "legacy"} era
   * @param {import("../server.js").HttpServer | { command: string, args: string[] } | "stdio"} server a command is started over stdio
   */
  async connect(name, era, server) {
    const started = server === "stdio" ? stdioServer() : server;
    const target = started.args
      ? ["--era", era, "--", started.command, ...started.args]
      : [server.url.href, "--era", era, "--header", `Authorization: ${server.headers().Authorization}`];
    const { code, answer, error } = await this.run(name, "connect", ...target);
    if (code !== 0 || answer.pendingAuth) throw new Error(`cannot connect: ${JSON.stringify(error ?? answer)}`);
    return (...words) => this.run(name, ...words);
  }

  /** Runs one command. @returns {Promise<{ code: number, answer: any, error: any }>} the exit code and what was printed */
  async run(connection, ...words) {
    const args = [PROGRAM, "--format", "json", "--connection", connection, ...words];
    const env = { ...process.env, HOME: this.folder, MCP_INSPECTOR_SECRET_STORE: "file" };
    // Without a terminal the question is printed, and the call stays open.
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    const ended = new Promise((resolve) => child.once("close", resolve));
    const [out, complaints, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    // Standard error has warnings about the keychain before the error.
    const line = complaints.split("\n").find((candidate) => candidate.startsWith('{"error"'));
    if (code !== 0 && !line) throw new Error(`mcpdo ${words.join(" ")}: ${complaints}`);
    return { code, answer: out.trim() ? JSON.parse(out) : undefined, error: line && JSON.parse(line).error };
  }

  /** Ends the daemon and all processes that it has started. */
  async leave() {
    await this.run("none", "daemon", "stop");
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
