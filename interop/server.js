/**
 * The server under test: the program in LONGHAUL_PROGRAM, usually the `conformance` example.
 *
 * Over HTTP each test file has its own server, with a store on disk, so that it can be killed and started again, and two
 * tokens for two owners. Over stdio each client has its own server process.
 */
import { execFile, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

/** A test fails after this time, so that a hanging server does not hang the run. */
export const STUCK = { timeout: 60_000 };

/** The command for a server over stdio. */
export function stdioServer() {
  return { command: program(), args: ["--stdio", "--store", "memory:"] };
}

/** Starts a server over HTTP. @returns {Promise<HttpServer>} */
export async function startServer({ command = [], owners = ["owner", "somebody-else"], more = [] } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-interop-"));
  const server = new HttpServer(folder, owners, command, more);
  await server.start();
  return server;
}

class HttpServer {
  #process;

  constructor(folder, owners, command, more) {
    /** A directory that is removed with the server. */
    this.folder = folder;
    /** One token per owner. Without owners, callers need no token. */
    this.tokens = owners.map((owner) => ({ owner, token: randomBytes(16).toString("hex") }));
    this.store = `sqlite:${join(folder, "tasks.db")}`;
    this.command = command;
    this.more = more;
  }

  /** The MCP endpoint. Its port changes with each start. */
  url;

  /** The headers of a client of the given owner. */
  headers(owner = 0) {
    return this.tokens.length ? { Authorization: `Bearer ${this.tokens[owner].token}` } : {};
  }

  async start() {
    const hash = (token) => createHash("sha256").update(token).digest("hex");
    const tokenFile = join(this.folder, "tokens");
    await writeFile(tokenFile, this.tokens.map(({ owner, token }) => `${owner} ${hash(token)}\n`).join(""));
    const identity = this.tokens.length ? ["--token-file", tokenFile] : [];
    const args = [...this.command, "--listen", "127.0.0.1:0", "--store", this.store, ...identity, ...this.more];
    this.#process = spawn(program(), args, { stdio: ["ignore", "inherit", "pipe"] });
    // The server is killed if the run is aborted.
    const child = this.#process;
    process.once("exit", () => child.kill("SIGKILL"));
    this.url = await new Promise((resolve, reject) => {
      this.#process.once("error", reject);
      this.#process.once("exit", (code) => reject(new Error(`the server ended with ${code} before it listened`)));
      // The rest is read and discarded, so that the pipe never fills.
      createInterface({ input: this.#process.stderr }).on("line", (line) => {
        const [, url] = line.match(/listening on (\S+)/) ?? [];
        if (url) resolve(new URL(url));
        else if (process.env.LONGHAUL_LOG) console.error(`server: ${line}`);
      });
    });
  }

  /** The IDs of all tasks, for the operator of the `longhaul` program. */
  async taskIds() {
    const { stdout } = await promisify(execFile)(program(), ["task", "list", "--json", "--store", this.store]);
    return stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line).taskId);
  }

  /** Kills the server with SIGKILL and waits for its end. */
  async kill() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await gone;
  }

  async stop() {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}

function program() {
  const path = process.env.LONGHAUL_PROGRAM;
  if (!path) throw new Error("Set LONGHAUL_PROGRAM to the conformance example's program.");
  return path;
}

/** @param {{ content: { type: string, text?: string }[] }} result a tool's result */
export function textOf(result) {
  return result.content.map((block) => block.text ?? "").join("\n");
}

/** A promise and the function that fulfils it. */
export function arrival() {
  let arrived;
  const promise = new Promise((resolve) => (arrived = resolve));
  return { promise, arrived };
}
