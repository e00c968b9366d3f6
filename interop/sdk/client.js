/** The older SDK's client at 2025-11-25, over each transport that the server has. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { stdioServer } from "../server.js";

const CLIENT_INFO = { name: "longhaul-interop", version: "1.0.0" };
export const RELATED_TASK = "io.modelcontextprotocol/related-task";

/**
 * Connects a client, hands it to `use`, and closes it whatever happens.
 *
 * @param {import("../server.js").HttpServer | "stdio"} server
 * @param {object} options
 * @param {number} [options.owner] which of the server's owners is calling
 * @param {string} [options.sessionId] goes on with that session instead of opening one
 * @param {Function} [options.onElicit] answers questions to the user; without it none can be asked
 * @param {Function} [options.onSample] answers questions to the model; without it none can be asked
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
  /** @type {Error[]} what the client complains about without failing a call: progress for nobody, unknown answers, … */
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

/** Calls a tool as a task and goes with it to its end. @returns everything that the client saw, in order */
export async function callAsTask(client, name, args = {}, { ttl, ...options } = {}) {
  const task = ttl === undefined ? {} : { ttl };
  const seen = [];
  const calls = client.experimental.tasks.callToolStream({ name, arguments: args }, undefined, { task, ...options });
  for await (const message of calls) seen.push(message);
  const last = seen.at(-1);
  return { seen, last, taskId: seen[0].task?.taskId };
}

/** Starts a task and leaves it to itself. */
export async function startTask(client, name, args = {}) {
  const calls = client.experimental.tasks.callToolStream({ name, arguments: args }, undefined, { task: {} });
  const { value } = await calls.next();
  await calls.return();
  if (value.type === "error") throw value.error;
  return value.task;
}

/** The payload of a task, as the tool gave it. */
export function resultOf(client, taskId, options) {
  return client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, options);
}
