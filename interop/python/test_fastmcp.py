"""FastMCP's client: tasks by its extension in the stateless era, ordinary calls in the stateful one."""

import asyncio
import contextlib
import json
import unittest
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from fastmcp_tasks import call_tool_task
from mcp import MCPError

from server import STDIO_ARGUMENTS, STUCK, TRANSPORTS, http_server, program


@contextlib.asynccontextmanager
async def connected(transport: str, mode: str, **options: Any) -> AsyncIterator[Client]:
    """A client that is connected to its own server."""
    async with contextlib.AsyncExitStack() as stack:
        if transport == "stdio":
            server: Any = StdioTransport(program(), STDIO_ARGUMENTS, keep_alive=False)
        else:
            running = await stack.enter_async_context(http_server())
            server = StreamableHttpTransport(running.url, headers=running.headers, httpx_client_factory=naming_client)
        yield await stack.enter_async_context(Client(server, mode=mode, timeout=STUCK, **options))


def naming_client(**options: Any) -> httpx2.AsyncClient:
    """An HTTP client that names the task in `Mcp-Name`, which the extension requires and FastMCP's client omits."""

    async def name_the_task(request: httpx2.Request) -> None:
        message = json.loads(request.content or b"{}")
        if message.get("method", "").startswith("tasks/"):
            request.headers["Mcp-Name"] = message["params"]["taskId"]

    return httpx2.AsyncClient(**options, event_hooks={"request": [name_the_task]})


class Modern(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        await self.enterAsyncContext(asyncio.timeout(STUCK))

    async def test_a_call_that_becomes_a_task_returns_its_result(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "auto") as client:
                    self.assertEqual(client.protocol_version, "2026-07-28")
                    self.assertEqual(text(await client.call_tool("greet", {"name": "Ada"})), "Hello, Ada!")
                    slow = await client.call_tool("slow_compute", {"seconds": 0.2, "label": "whole"})
                    self.assertIn("whole", text(slow))

    async def test_a_task_can_be_polled(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "auto") as client:
                    task = await call_tool_task(client, "slow_compute", {"seconds": 0.2, "label": "by hand"})
                    self.assertIn((await task.status()).status, ["working", "completed"])
                    self.assertEqual((await task.wait()).status, "completed")
                    self.assertIn("by hand", text(await task.result()))

    async def test_a_task_is_cancelled(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "auto") as client:
                    task = await call_tool_task(client, "slow_compute", {"seconds": 3600, "label": "cancelled"})
                    await task.cancel()
                    self.assertEqual((await task.wait()).status, "cancelled")
                    with self.assertRaisesRegex(ToolError, "cancelled"):
                        await task.result()

    async def test_failures_have_the_tools_text(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "auto") as client:
                    with self.assertRaisesRegex(ToolError, "fails, as it should"):
                        await client.call_tool("failing_job", {})
                    with self.assertRaisesRegex((ToolError, MCPError), "protocol error, as it should"):
                        await client.call_tool("protocol_error_job", {})

    async def test_a_question_is_answered_and_the_tool_uses_the_answer(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                asked: list[str] = []

                async def answer(message: str, _type: Any, _params: Any, _context: Any) -> ElicitResult[Any]:
                    asked.append(message)
                    return ElicitResult(action="accept", content={"confirm": True})

                async with connected(transport, "auto", elicitation_handler=answer) as client:
                    result = await client.call_tool("confirm_delete", {"filename": "a.txt"})
                    self.assertIn("deleted", text(result))
                    self.assertEqual(asked, ["Delete a.txt?"])


class Legacy(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        await self.enterAsyncContext(asyncio.timeout(STUCK))

    async def test_ordinary_calls_with_progress_log_lines_and_live_questions(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                lines: list[Any] = []
                steps: list[float] = []

                async def answer(_message: str, _type: Any, _params: Any, _context: Any) -> ElicitResult[Any]:
                    return ElicitResult(action="accept", content={"username": "ada", "email": "a@example.org"})

                async def log(message: Any) -> None:
                    lines.append(message.data)

                async def progress(step: float, _total: float | None, _message: str | None) -> None:
                    steps.append(step)

                options = {"elicitation_handler": answer, "sampling_handler": lambda *_: "from the model"}
                async with connected(transport, "legacy", log_handler=log, **options) as client:
                    self.assertEqual(client.protocol_version, "2025-11-25")
                    self.assertTrue(await client.ping())
                    slow = await client.call_tool("slow_compute", {"seconds": 0.1, "label": "ordinary"})
                    self.assertIn("ordinary", text(slow))
                    await client.call_tool("test_tool_with_progress", {}, progress_handler=progress)
                    self.assertEqual(steps[-1], 100)
                    await client.set_logging_level("info")
                    await client.call_tool("test_tool_with_logging", {})
                    self.assertGreaterEqual(len(lines), 3)
                    self.assertIn("a@example.org", text(await client.call_tool("test_elicitation", {"message": "Who?"})))
                    self.assertIn("from the model", text(await client.call_tool("test_sampling", {"prompt": "hello"})))

    async def test_a_tool_that_needs_a_task_is_refused_without_one(self) -> None:
        for transport in TRANSPORTS:
            with self.subTest(transport):
                async with connected(transport, "legacy") as client:
                    with self.assertRaises((MCPError, ToolError)):
                        await client.call_tool("failing_job", {})


def text(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


if __name__ == "__main__":
    unittest.main()
