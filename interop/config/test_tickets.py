"""The official Python client as a host that knows no tasks: a client of 2025-06-18 with its default timeouts."""

import asyncio
import contextlib
import hashlib
import logging
import os
import re
import secrets
import signal
import sys
import tempfile
import time
import unittest
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

logging.getLogger("asyncio").setLevel(logging.ERROR)

CONFIG = Path(__file__).with_name("longhaul.toml")
STUCK = 60
LONG = 240
TICKET = "longhaul/task"


class Place:
    """A store, and the servers on it."""

    def __init__(self, folder: str, transport: str, flags: list[str]) -> None:
        self.folder = Path(folder)
        self.token = secrets.token_hex(16)
        self.transport = transport
        self.arguments = ["serve", "--config", str(CONFIG), "--store", f"sqlite:{folder}/tasks.db", *flags]
        self.environment = {**os.environ, "LONGHAUL_PROCESS_DIR": f"{folder}/processes"}
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        if self.transport == "stdio":
            return
        tokens = self.folder / "tokens"
        tokens.write_text(f"owner {hashlib.sha256(self.token.encode()).hexdigest()}\n")
        arguments = [*self.arguments, "--listen", "127.0.0.1:0", "--token-file", str(tokens)]
        self.process = await asyncio.create_subprocess_exec(
            program(), *arguments, env=self.environment, stderr=asyncio.subprocess.PIPE
        )
        assert self.process.stderr
        while not (match := re.search(r"listening on (\S+)", (await self.process.stderr.readline()).decode())):
            if self.process.stderr.at_eof():
                raise RuntimeError("the server ended before it listened")
        self.url = match[1]
        self.drained = asyncio.create_task(self.process.stderr.read())

    async def kill(self) -> None:
        if self.process:
            self.process.kill()
            await self.process.wait()
            await self.drained
            self.process = None
        else:
            os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with contextlib.AsyncExitStack() as stack:
            if self.transport == "stdio":
                # The shell writes its ID down, and becomes the server.
                script = 'echo $$ > "$0"; exec "$@"'
                words = ["-c", script, f"{self.folder}/pid", program(), *self.arguments, "--stdio"]
                server: Any = StdioServerParameters(command="sh", args=words, env=self.environment)
            else:
                headers = {"Authorization": f"Bearer {self.token}"}
                http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
                server = streamable_http_client(self.url, http_client=http)
            stack.enter_context(mock.patch("mcp.client.session.LATEST_HANDSHAKE_VERSION", "2025-06-18"))
            client = await stack.enter_async_context(Client(server, mode="legacy"))
            assert client.session.protocol_version == "2025-06-18"
            # The client checks results against the output schemas that it has seen.
            await client.list_tools()
            yield client


@contextlib.asynccontextmanager
async def place(transport: str, *flags: str) -> AsyncIterator[Place]:
    with tempfile.TemporaryDirectory(prefix="longhaul-interop-", ignore_cleanup_errors=True) as folder:
        made = Place(folder, transport, list(flags))
        await made.start()
        try:
            yield made
        finally:
            if made.process:
                await made.kill()


class ClientWithoutTasks(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        await self.enterAsyncContext(asyncio.timeout(LONG if os.environ.get("LONGHAUL_LONG") else STUCK))

    async def test_quick_work_is_an_ordinary_result_and_longer_work_a_ticket(self) -> None:
        for transport in ["http", "stdio"]:
            with self.subTest(transport):
                async with place(transport, "--patience", "2s") as server, server.client() as client:
                    result = await client.call_tool("build", {"files": 2})
                    self.assertEqual(result.structured_content, {"objects": 2})
                    self.assertIsNone(ticket(result))
                    heard: list[float] = []

                    async def hear(progress: float, _total: float | None, _message: str | None) -> None:
                        heard.append(progress)

                    work = {"files": 3, "pause": 1.5}
                    given = await client.call_tool("build", work, progress_callback=hear)
                    self.assertEqual(ticket(given)["status"], "working")
                    self.assertIn("task_status", text(given))
                    self.assertTrue(heard, "the client heard of progress while it waited")
                    result = await collect(client, ticket(given)["taskId"])
                    self.assertEqual(result.structured_content, {"objects": 3})

    async def test_a_question_is_answered_with_task_answer(self) -> None:
        for transport in ["http", "stdio"]:
            with self.subTest(transport):
                async with place(transport) as server, server.client() as client:
                    asked = ticket(await client.call_tool("release", {"version": "1.2"}))
                    self.assertEqual(asked["status"], "input_required")
                    (key,) = asked["inputRequests"]
                    answers = {key: {"action": "accept", "content": {"yes": True}}}
                    await client.call_tool("task_answer", {"taskId": asked["taskId"], "answers": answers})
                    self.assertEqual(text(await collect(client, asked["taskId"])), "1.2 is published")

    async def test_a_kill_of_the_server_in_the_middle_of_a_wait_changes_nothing(self) -> None:
        for transport in ["http", "stdio"]:
            with self.subTest(transport):
                async with place(transport) as server:
                    work = {"files": 4, "pause": 1}
                    begun = asyncio.Event()

                    async def hear(*_: Any) -> None:
                        begun.set()

                    async def first() -> None:
                        async with server.client() as client:
                            await client.call_tool("build", work, progress_callback=hear)

                    calling = asyncio.create_task(first())
                    await begun.wait()
                    await server.kill()
                    await server.start()
                    async with server.client() as client:
                        (listed,) = ticket(await client.call_tool("task_list", {}))["tasks"]
                        again = await client.call_tool("build", work)
                        self.assertEqual(again.structured_content, {"objects": 4})
                        kept = await client.call_tool("task_result", {"taskId": listed["taskId"]})
                        self.assertEqual(kept.structured_content, {"objects": 4})
                        self.assertEqual(len(ticket(await client.call_tool("task_list", {}))["tasks"]), 1)
                    calling.cancel()
                    await asyncio.wait([calling])

    @unittest.skipUnless(os.environ.get("LONGHAUL_LONG"), "LONGHAUL_LONG=1 runs it")
    async def test_90_seconds_of_work_with_the_default_patience_and_timeout(self) -> None:
        for transport in ["http", "stdio"]:
            with self.subTest(transport):
                async with place(transport) as server, server.client() as client:
                    quick = await client.call_tool("build", {"files": 1, "pause": 5})
                    self.assertIsNone(ticket(quick))
                    begin = time.monotonic()
                    given = await client.call_tool("build", {"files": 9, "pause": 10})
                    waited = time.monotonic() - begin
                    result = await collect(client, ticket(given)["taskId"])
                    self.assertEqual(result.structured_content, {"objects": 9})
                    took = time.monotonic() - begin
                    print(f"{transport}: ticket after {waited:.1f} s, result after {took:.1f} s", file=sys.stderr)


async def collect(client: Client, task_id: str) -> Any:
    """Waits for the end of a task as its ticket tells a model to, and returns its result."""
    while ticket(await client.call_tool("task_status", {"taskId": task_id, "waitSeconds": 30}))["status"] == "working":
        pass
    return await client.call_tool("task_result", {"taskId": task_id})


def ticket(result: Any) -> Any:
    return (result.meta or {}).get(TICKET)


def text(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def program() -> str:
    return os.environ["LONGHAUL_PROGRAM"]


if __name__ == "__main__":
    unittest.main()
