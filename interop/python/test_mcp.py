"""The official Python client, in each era and over each transport.

It has types for the tasks of 2025-11-25 but no calls for them, so they are sent as plain requests.
"""

import asyncio
import contextlib
import unittest
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from server import STDIO_ARGUMENTS, STUCK, TRANSPORTS, http_server, program

RELATED_TASK = "io.modelcontextprotocol/related-task"
TERMINAL = {"completed", "failed", "cancelled"}


@contextlib.asynccontextmanager
async def connected(transport: str, mode: str, **options: Any) -> AsyncIterator[Client]:
    """A client that is connected to its own server."""
    async with contextlib.AsyncExitStack() as stack:
        if transport == "stdio":
            server: Any = StdioServerParameters(command=program(), args=STDIO_ARGUMENTS)
        else:
            running = await stack.enter_async_context(http_server())
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=running.headers, timeout=STUCK))
            server = streamable_http_client(running.url, http_client=http)
        yield await stack.enter_async_context(Client(server, mode=mode, read_timeout_seconds=STUCK, **options))


class Legacy(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        await self.enterAsyncContext(asyncio.timeout(STUCK))

    async def test_a_session_is_negotiated_and_declares_tasks(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "legacy") as client:
                    self.assertEqual(client.session.protocol_version, "2025-11-25")
                    tasks = client.server_capabilities.tasks
                    assert tasks and tasks.requests and tasks.requests.tools
                    self.assertIsNotNone(tasks.list)
                    self.assertIsNotNone(tasks.cancel)
                    self.assertIsNotNone(tasks.requests.tools.call)
                    support = {tool.name: tool.execution for tool in (await client.list_tools()).tools}
                    self.assertEqual(task_support(support["slow_compute"]), "optional")
                    self.assertEqual(task_support(support["failing_job"]), "required")
                    self.assertEqual(task_support(support["greet"]), "forbidden")

    async def test_a_task_runs_to_completion_and_its_result_has_the_tasks_id(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "legacy") as client:
                    task = await create(client, "slow_compute", {"seconds": 0.2, "label": "whole"}, ttl=60_000)
                    self.assertEqual(task.status, "working")
                    result = await payload(client, task.task_id)
                    self.assertIn("whole", text(result))
                    self.assertEqual((result.meta or {})[RELATED_TASK], {"taskId": task.task_id})
                    self.assertEqual((await get(client, task.task_id)).status, "completed")
                    listed = await client.session.send_request(types.ListTasksRequest(), types.ListTasksResult)
                    self.assertIn(task.task_id, [task.task_id for task in listed.tasks])

    async def test_failures_are_failed_tasks_with_the_tools_text(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "legacy") as client:
                    task = await create(client, "failing_job")
                    result = await payload(client, task.task_id)
                    self.assertTrue(result.is_error)
                    failed = await get(client, task.task_id)
                    self.assertEqual(failed.status, "failed")
                    self.assertIn(text(result), failed.status_message or "")
                    task = await create(client, "protocol_error_job")
                    with self.assertRaisesRegex(MCPError, "protocol error, as it should") as raised:
                        await payload(client, task.task_id)
                    self.assertEqual(raised.exception.error.code, -32603)

    async def test_a_task_is_cancelled_once_and_stays_cancelled(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "legacy") as client:
                    task = await create(client, "slow_compute", {"seconds": 3600, "label": "cancelled"})
                    self.assertEqual((await cancel(client, task.task_id)).status, "cancelled")
                    self.assertEqual((await get(client, task.task_id)).status, "cancelled")
                    with self.assertRaises(MCPError) as raised:
                        await cancel(client, task.task_id)
                    self.assertEqual(raised.exception.error.code, -32602)

    async def test_both_mismatches_are_32601_and_an_unknown_task_32602(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "legacy") as client:
                    with self.assertRaises(MCPError) as raised:
                        await create(client, "greet", {"name": "Ada"})
                    self.assertEqual(raised.exception.error.code, -32601)
                    with self.assertRaises(MCPError) as raised:
                        await client.call_tool("failing_job", {})
                    self.assertEqual(raised.exception.error.code, -32601)
                    with self.assertRaises(MCPError) as raised:
                        await get(client, "no-such-task")
                    self.assertEqual(raised.exception.error.code, -32602)

    async def test_a_question_of_a_task_has_its_id_and_is_answered(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                asked: list[Any] = []

                async def answer(context: Any, params: Any) -> types.ElicitResult:
                    asked.append((params.message, (context.meta or {}).get(RELATED_TASK)))
                    return types.ElicitResult(action="accept", content={"confirm": True})

                async with connected(transport, "legacy", elicitation_callback=answer) as client:
                    task = await create(client, "confirm_delete", {"filename": "a.txt"})
                    self.assertIn("deleted", text(await payload(client, task.task_id)))
                    self.assertEqual(asked, [("Delete a.txt?", {"taskId": task.task_id})])

    async def test_the_model_is_asked_inside_a_task(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "legacy", sampling_callback=sample) as client:
                    task = await create(client, "ask_model", {"prompt": "a riddle"})
                    self.assertIn("heard: a riddle", text(await payload(client, task.task_id)))

    async def test_an_ordinary_call_has_progress_log_lines_and_live_questions(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                lines: list[Any] = []
                steps: list[float] = []

                async def answer(_context: Any, _params: Any) -> types.ElicitResult:
                    return types.ElicitResult(action="accept", content={"username": "ada", "email": "a@example.org"})

                async def log(params: types.LoggingMessageNotificationParams) -> None:
                    lines.append(params.data)

                async def progress(step: float, _total: float | None, _message: str | None) -> None:
                    steps.append(step)

                options = {"elicitation_callback": answer, "logging_callback": log, "sampling_callback": sample}
                async with connected(transport, "legacy", **options) as client:
                    await client.session.send_ping()
                    self.assertEqual(text(await client.call_tool("greet", {"name": "Ada"})), "Hello, Ada!")
                    await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
                    self.assertEqual(steps, sorted(steps))
                    self.assertEqual(steps[-1], 100)
                    await client.session.set_logging_level("info")
                    await client.call_tool("test_tool_with_logging", {})
                    self.assertGreaterEqual(len(lines), 3)
                    asked = await client.call_tool("test_elicitation", {"message": "Who is it?"})
                    self.assertIn("a@example.org", text(asked))
                    self.assertIn("heard: hello", text(await client.call_tool("test_sampling", {"prompt": "hello"})))


class Modern(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        await self.enterAsyncContext(asyncio.timeout(STUCK))

    async def test_the_stateless_era_is_detected(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "auto") as client:
                    self.assertEqual(client.session.protocol_version, "2026-07-28")

    async def test_a_client_without_the_extension_gets_ordinary_results(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "2026-07-28") as client:
                    self.assertEqual(text(await client.call_tool("greet", {"name": "Ada"})), "Hello, Ada!")
                    slow = await client.call_tool("slow_compute", {"seconds": 0.1, "label": "ordinary"})
                    self.assertIn("ordinary", text(slow))
                    with self.assertRaises(MCPError) as raised:
                        await client.call_tool("failing_job", {})
                    self.assertEqual(raised.exception.error.code, -32021)


async def sample(_context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    heard = params.messages[0].content
    assert isinstance(heard, types.TextContent)
    content = types.TextContent(type="text", text=f"heard: {heard.text}")
    return types.CreateMessageResult(role="assistant", model="of-the-test", content=content)


async def create(client: Client, name: str, arguments: dict[str, Any] | None = None, ttl: int | None = None) -> types.Task:
    """Calls a tool as a task.

    The client checks every answer to `tools/call` against a tool's result and knows no other, so this goes below it.
    """
    params: dict[str, Any] = {"name": name, "arguments": arguments or {}, "task": {} if ttl is None else {"ttl": ttl}}
    session: Any = client.session
    options: dict[str, Any] = {"timeout": STUCK}
    data = {"method": "tools/call", "params": params}
    session._stamp(data, options)
    raw = await session._dispatcher.send_raw_request("tools/call", params, options)
    return types.CreateTaskResult.model_validate(raw, by_name=False).task


async def get(client: Client, task_id: str) -> types.GetTaskResult:
    request = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=task_id))
    return await client.session.send_request(request, types.GetTaskResult)


async def cancel(client: Client, task_id: str) -> types.CancelTaskResult:
    request = types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=task_id))
    return await client.session.send_request(request, types.CancelTaskResult)


async def payload(client: Client, task_id: str) -> types.CallToolResult:
    request = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=task_id))
    return await client.session.send_request(request, types.CallToolResult)


def task_support(execution: types.ToolExecution | None) -> str:
    return (execution and execution.task_support) or "forbidden"


def text(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


if __name__ == "__main__":
    unittest.main()
