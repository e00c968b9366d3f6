"""The server under test: the program that LONGHAUL_PROGRAM names, which is the `conformance` example."""

import asyncio
import contextlib
import hashlib
import logging
import os
import re
import secrets
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

# IsolatedAsyncioTestCase turns on asyncio's debug mode, which logs every slow import.
logging.getLogger("asyncio").setLevel(logging.ERROR)

TRANSPORTS = ["http", "stdio"]

STUCK = 60
"""A test fails after this many seconds, so that a hanging server does not hang the run."""


def program() -> str:
    path = os.environ.get("LONGHAUL_PROGRAM")
    if not path:
        raise RuntimeError("Set LONGHAUL_PROGRAM to the conformance example's program.")
    return path


STDIO_ARGUMENTS = ["--stdio", "--store", "memory:"]


class HttpServer:
    """A server over HTTP, with one token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"}


@contextlib.asynccontextmanager
async def http_server() -> AsyncIterator[HttpServer]:
    """Starts a server and ends it with the block."""
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="longhaul-interop-") as folder:
        tokens = Path(folder, "tokens")
        tokens.write_text(f"owner {hashlib.sha256(token.encode()).hexdigest()}\n")
        arguments = ["--listen", "127.0.0.1:0", "--store", "memory:", "--token-file", str(tokens)]
        process = await asyncio.create_subprocess_exec(program(), *arguments, stderr=asyncio.subprocess.PIPE)
        assert process.stderr
        drained = None
        try:
            while not (match := re.search(r"listening on (\S+)", (await process.stderr.readline()).decode())):
                if process.stderr.at_eof():
                    raise RuntimeError("the server ended before it listened")
            # The rest is read and discarded, so that the pipe never fills.
            drained = asyncio.create_task(process.stderr.read())
            yield HttpServer(match[1], token)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            if drained:
                await drained
