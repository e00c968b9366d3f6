/** The client of `@modelcontextprotocol/sdk` at 2025-11-25, over HTTP and stdio. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { stdioServer } from "../server.js";

const CLIENT_INFO = { name: "longhaul-interop", version: "1.0.0" };
export const RELATED_TASK = "io.modelcontextprotocol/related-task";

/**
 * Connects a client, passes it to `use`, and closes it, also after an error.
 *
 * @param {import("../server.js").HttpServer | "stdio"} server
 * @param {object} options
 * @param {number} [options.owner] index of the owner that calls
 * @param {string} [options.sessionId] continues this session instead of opening a new one
 * @param {Function} [options.onElicit] answers elicitations; without it the client does not declare elicitation
 * @param {Function} [options.onSample] answers sampling requests; without it the client does not declare sampling
 * @param {object} [options.clientOptions] more options of the SDK's client
 * @param {(client: Client, transport: object) => Promise<void>} use
 */
export async function withClient(server, options, use) {
  const { owner, sessionId, onElicit, onSample, tasks, clientOptions } = options;
  const capabilities = {
    ...(onElicit ? { elicitation: { form: {} } } : {}),
    ...(onSample ? { sampling: {} } : {}),
    ...(tasks ? { tasks } : {}),
  };
  const client = new Client(CLIENT_INFO, { capabilities, ...clientOptions });
  if (onElicit) client.setRequestHandler(ElicitRequestSchema, onElicit);
  if (onSample) client.setRequestHandler(CreateMessageRequestSchema, onSample);
  /** @type {Error[]} errors that the client reports without failing a call: progress of unknown requests, unknown responses, … */
  const complaints = [];
  client.onerror = (error) => complaints.push(error);
  const transport =
    server === "stdio"
      ? new StdioClientTransport({ ...stdioServer(), stderr: process.env.LONGHAUL_LOG ? "inherit" : "ignore" })
      : new StreamableHTTPClientTransport(server.url, { sessionId, requestInit: { headers: server.headers(owner) } });
  await client.connect(transport);
  try {
    await use(client, transport, complaints);
  } finally {
    await client.close();
  }
}

/** Calls a tool as a task and waits for its end. @returns all messages of the stream, in order */
export async function callAsTask(client, name, args = {}, { ttl, ...options } = {}) {
  const task = ttl === undefined ? {} : { ttl };
  const seen = [];
  const calls = client.experimental.tasks.callToolStream({ name, arguments: args }, undefined, { task, ...options });
  for await (const message of calls) seen.push(message);
  const last = seen.at(-1);
  return { seen, last, taskId: seen[0].task?.taskId };
}

/** Starts a task without waiting for it. */
export async function startTask(client, name, args = {}) {
  const calls = client.experimental.tasks.callToolStream({ name, arguments: args }, undefined, { task: {} });
  const { value } = await calls.next();
  await calls.return();
  if (value.type === "error") throw value.error;
  return value.task;
}

/** The result of a task. */
export function resultOf(client, taskId, options) {
  return client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, options);
}
