/**
 * The official tasks client, connected to the server under test in its 2026-07-28 mode.
 *
 * The codecs of the SDK reject the results of the extension, so the tasks client needs two functions from its host: one that
 * sends a raw request (`rawDispatch`), and one that makes the `_meta` of each request (`v2RequestFraming`).
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, DispatchError } from "@modelcontextprotocol/ext-tasks/client";

const PROTOCOL_VERSION = "2026-07-28";
const CLIENT_INFO = { name: "longhaul-interop", version: "1.0.0" };
const CLIENT_CAPABILITIES = { elicitation: {} };

/** Saved references are bound to this name and not to a URL, because a restarted server may listen on another port. */
export const ENDPOINT_ID = "longhaul-under-test";

/** A test fails after this time, so that a hanging server does not hang the run. */
export const STUCK = { timeout: 60_000 };

/** @returns {string} the MCP endpoint of the server under test */
function serverUrl() {
  const url = process.env.LONGHAUL_URL;
  if (!url) throw new Error("Set LONGHAUL_URL to the MCP endpoint of the server under test.");
  return url;
}

/**
 * Connects, passes a task session to `use`, and closes both, also after an error.
 *
 * @template T
 * @param {object} options
 * @param {AbortSignal} [options.signal] ends the session, so that a test that has timed out stops polling
 * @param {Function} [options.onInputRequest] how the server's questions are answered; by default any question is an error
 * @param {(session: import("@modelcontextprotocol/ext-tasks/client").TaskEnabledSession) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function withSession({ signal, onInputRequest = refuseQuestions }, use) {
  const url = serverUrl();
  const client = new Client(CLIENT_INFO, {
    capabilities: CLIENT_CAPABILITIES,
    versionNegotiation: { mode: { pin: PROTOCOL_VERSION } },
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  /** @type {Error[]} errors of `use` and of the session's polling */
  const errors = [];
  try {
    const session = createTaskSessionFromClient(client, {
      endpointId: ENDPOINT_ID,
      rawDispatch: dispatcher(url),
      v2RequestFraming: {
        protocolVersion: PROTOCOL_VERSION,
        clientInfo: CLIENT_INFO,
        clientCapabilities: CLIENT_CAPABILITIES,
      },
      signal,
      onInputRequest,
      onError: (error) => errors.push(error),
    });
    const value = await use(session).catch((error) => void errors.push(error));
    await session.close();
    if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, errors.join("; "));
    return value;
  } finally {
    await client.close();
  }
}

/**
 * Calls a tool that must become a task.
 *
 * @param {import("@modelcontextprotocol/ext-tasks/client").TaskEnabledSession} session
 * @param {string} tool
 * @param {Record<string, unknown>} [args]
 * @param {unknown} [applicationContext] passed to `onInputRequest` with each question
 */
export function startTask(session, tool, args = {}, applicationContext = undefined) {
  return session.callTool(tool, args, { task: { preference: "require" }, applicationContext });
}

/** @param {{ content: { type: string, text?: string }[] }} result a tool's result */
export function textOf(result) {
  return result.content.map((block) => block.text ?? "").join("\n");
}

/** A task with the members that the tasks client does not know, and leaves out. */
export async function wholeTask(taskId) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL_VERSION,
    "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
  };
  const headers = { "Mcp-Name": taskId };
  const answer = await dispatcher(serverUrl())({ method: "tasks/get", params: { taskId, _meta } }, { context: { headers } });
  if (answer.kind === "error") throw new Error(answer.error.message);
  return answer.result;
}

/** For tests in which no question may be asked. */
function refuseQuestions(request, context) {
  throw new Error(`Unexpected question ${context.inputId}: ${request.params?.message}`);
}

/**
 * Sends one raw request: POST, with the headers that repeat parts of the body, and one JSON response.
 *
 * @param {string} url
 * @returns {import("@modelcontextprotocol/ext-tasks/client").RawClientDispatch}
 */
function dispatcher(url) {
  let lastId = 0;
  return async (request, { signal, context } = {}) => {
    const id = ++lastId;
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": PROTOCOL_VERSION,
        "Mcp-Method": request.method,
        ...(request.method === "tools/call" ? { "Mcp-Name": request.params.name } : {}),
        // The tasks client names the task in `Mcp-Name` itself.
        ...context?.headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id, ...request }),
      signal,
    });
    const type = response.headers.get("content-type") ?? "no content type";
    if (!type.startsWith("application/json")) {
      throw new DispatchError(`${request.method}: expected JSON, got HTTP ${response.status} with ${type}`);
    }
    const answer = await response.json();
    if (answer.jsonrpc !== "2.0" || answer.id !== id) {
      throw new DispatchError(`${request.method}: request ${id} was answered with ${JSON.stringify(answer)}`);
    }
    return "error" in answer ? { kind: "error", error: answer.error } : { kind: "result", result: answer.result };
  };
}
