/**
 * Resumes the task whose saved reference is in the given file, accepts every question, and prints the result as one JSON
 * object. Run by `resume.test.js`.
 */
import { readFile } from "node:fs/promises";
import { resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { textOf, withSession } from "./client.js";

const reference = JSON.parse(await readFile(process.argv[2], "utf8"));
const asked = [];
const onInputRequest = async ({ params }) => {
  asked.push(params.message);
  return { action: "accept", content: { confirm: true } };
};

const seen = await withSession({ onInputRequest }, async (session) => {
  const resumed = await session.resumeTask(reference);
  const { outcome } = await resumed.settle();
  return { pid: process.pid, status: outcome.status, text: textOf(resultFromTaskOutcome(outcome)), asked };
});
console.log(JSON.stringify(seen));
