/**
 * The official tasks client in its 2025-11-25 mode.
 *
 * In this mode the client of the SDK sends every message, so no function has to be supplied. Questions arrive as requests of the
 * server and are matched to their task by the related-task key.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";
import { stdioServer } from "../../server.js";

const CLIENT_INFO = { name: "longhaul-interop", version: "1.0.0" };

/** Saved references are bound to this name and not to a URL, because a restarted server listens on another port. */
const ENDPOINT_ID = "longhaul-under-test";

/**
 * Connects, passes a task session to `use`, and closes both, also after an error.
 *
 * @param {import("../../server.js").HttpServer | "stdio"} server
 * @param {object} options
 * @param {object} [options.capabilities] what the client declares
 * @param {Function} [options.onInputRequest] how questions inside a task are answered; by default any question is an error
 * @param {(client: Client) => { close(): void }} [options.bind] binds a task receiver before the client connects
 * @param {AbortSignal} [options.signal]
 * @param {(session: import("@modelcontextprotocol/ext-tasks/client").TaskEnabledSession, client: Client) => Promise<T>} use
 * @returns {Promise<T>}
 * @template T
 */
export async function withSession(server, options, use) {
  const { signal, capabilities = { elicitation: {} }, onInputRequest = refuseQuestions, bind } = options;
  const client = new Client(CLIENT_INFO, { capabilities, versionNegotiation: { mode: "legacy" } });
  const binding = bind?.(client);
  await client.connect(transportTo(server));
  /** @type {Error[]} errors of `use` and of the session's polling */
  const errors = [];
  try {
    const session = createTaskSessionFromClient(client, {
      endpointId: ENDPOINT_ID,
      signal,
      onInputRequest,
      onError: (error) => errors.push(error),
    });
    const value = await use(session, client).catch((error) => void errors.push(error));
    await session.close();
    if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, errors.join("; "));
    return value;
  } finally {
    binding?.close();
    await client.close();
  }
}

/** Calls a tool that must become a task. */
export function startTask(session, tool, args = {}, preference = "require") {
  return session.callTool(tool, args, { task: { preference } });
}

function transportTo(server) {
  if (server === "stdio") return new StdioClientTransport({ ...stdioServer(), stderr: "ignore" });
  return new StreamableHTTPClientTransport(server.url, { requestInit: { headers: server.headers() } });
}

/** For tests in which no question may be asked. */
function refuseQuestions(request) {
  throw new Error(`Unexpected question: ${request.params?.message}`);
}
