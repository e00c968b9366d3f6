/** Inspector's web page, and the report service that it looks at. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const LAUNCHER = join(import.meta.dirname, "../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");

/** Starts the program in LONGHAUL_REPORT_SERVICE, the example `report_service`. */
export async function startReportService() {
  const program = process.env.LONGHAUL_REPORT_SERVICE;
  if (!program) throw new Error("set LONGHAUL_REPORT_SERVICE to the example report_service");
  const child = spawn(program, ["127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await firstMatch(child, /^(http\S+)/);
  return { url, stop: () => stop(child) };
}

/** Starts Inspector for one server. @param {"modern" | "legacy"} era */
export async function startInspector(serverUrl, era) {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-inspector-"));
  const [client, sandbox] = [await freePort(), await freePort()];
  const env = {
    ...process.env,
    HOME: folder,
    MCP_STORAGE_DIR: join(folder, "storage"),
    MCP_INSPECTOR_SECRET_STORE: "file",
    MCP_AUTO_OPEN_ENABLED: "false",
    DANGEROUSLY_OMIT_AUTH: "true",
    CLIENT_PORT: String(client),
    MCP_SANDBOX_PORT: String(sandbox),
  };
  const args = [LAUNCHER, "--web", "--transport", "http", "--server-url", serverUrl, "--protocol-era", era];
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  const url = await firstMatch(child, /^\s*(http:\S+)\s*$/);
  return {
    url,
    async stop() {
      await stop(child);
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The first group of the first line of standard output that matches. The rest is read and discarded. */
function firstMatch(child, pattern) {
  process.once("exit", () => child.kill("SIGKILL"));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the program ended with ${code} before it listened`)));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [, found] = line.match(pattern) ?? [];
      if (found) resolve(found);
    });
  });
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
