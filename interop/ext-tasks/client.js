/**
 * The official tasks client, connected to the server under test in its 2026-07-28 mode.
 *
 * The SDK's own codecs refuse the extension's results, so the tasks client asks its host for two things: how to put a raw
 * request on the wire (`rawDispatch`), and what to write into each request's `_meta` (`v2RequestFraming`). Both are here.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, DispatchError } from "@modelcontextprotocol/ext-tasks/client";

const PROTOCOL_VERSION = "2026-07-28";
const CLIENT_INFO = { name: "longhaul-interop", version: "1.0.0" };
const CLIENT_CAPABILITIES = { elicitation: {} };

/** Saved references are bound to this name and not to a URL, because a restarted server may listen on another port. */
const ENDPOINT_ID = "longhaul-under-test";

/** A hung server fails a test after this long instead of hanging the run. No test measures time. */
export const STUCK = { timeout: 60_000 };

/** @returns {string} the MCP endpoint of the server under test */
function serverUrl() {
  const url = process.env.LONGHAUL_URL;
  if (!url) throw new Error("Set LONGHAUL_URL to the MCP endpoint of the server under test.");
  return url;
}

/**
 * Connects, hands a task session to `use`, and closes both whatever happens.
 *
 * @template T
 * @param {object} options
 * @param {AbortSignal} [options.signal] ends the session, so that a test that ran out of time does not go on polling
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
  /** @type {Error[]} what went wrong in `use`, or behind its back in the session's polling */
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
 * @param {unknown} [applicationContext] handed to `onInputRequest` with each question
 */
export function startTask(session, tool, args = {}, applicationContext = undefined) {
  return session.callTool(tool, args, { task: { preference: "require" }, applicationContext });
}

/** @param {{ content: { type: string, text?: string }[] }} result a tool's result */
export function textOf(result) {
  return result.content.map((block) => block.text ?? "").join("\n");
}

/** For tests in which nobody should be asked. */
function refuseQuestions(request, context) {
  throw new Error(`Unexpected question ${context.inputId}: ${request.params?.message}`);
}

/**
 * The way of one raw request: POST, the headers that mirror the body, one JSON answer.
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
