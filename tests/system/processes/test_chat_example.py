"""Run examples/chat.py with no model, an unavailable model, and a misbehaving one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from ulid import ULID

from tests.support.cli import ROOT, clean_environment

pytestmark = pytest.mark.slow


async def chat(url: str, folder: Path, lines: Sequence[str], *, user: str, **environment: str) -> tuple[int, str]:
    """Run a conversation, and return the exit code and output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "examples" / "chat.py"), "--base-url", url, "--user", user),
        env=clean_environment(COLUMNS="400", **environment),
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate("".join(line + "\n" for line in lines).encode())
    return process.returncode or 0, output.decode()


@pytest.fixture
def user() -> str:
    return f"chat-{ULID()}"


@pytest.fixture
async def odd_model() -> AsyncGenerator[str]:
    """Start a model server whose completions have no choices."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}'
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def test_chat_shows_facts_of_the_current_conversation(served: str, tmp_path: Path, user: str) -> None:
    code, output = await chat(served, tmp_path, ["I have a dog called Rex.", "What is the name of my dog?"], user=user)
    assert code == 0
    first, second = output.split("> ")[1:3]
    assert first == "(nothing was said yet; from now on, the chat is remembered)\n"
    assert second == "From this conversation:\n- I have a dog called Rex.\n"


async def test_chat_shows_facts_of_earlier_conversations(served: str, tmp_path: Path, user: str) -> None:
    await chat(served, tmp_path, ["I have a dog called Rex."], user=user)
    _, output = await chat(served, tmp_path, ["What is the name of my dog?"], user=user)
    assert output.split("> ")[1] == "From earlier conversations:\n- I have a dog called Rex.\n"


@pytest.mark.parametrize("away", ["http://127.0.0.1:1/v1", "http://127.0.0.1:99999/v1", "no-address"])
async def test_chat_continues_with_a_message_if_the_model_is_unavailable(away: str, served: str, tmp_path: Path, user: str) -> None:
    code, output = await chat(served, tmp_path, ["I have a dog called Rex.", "And his name?"], user=user, OPENAI_BASE_URL=away)
    assert "Traceback" not in output
    if code:
        assert len(output.splitlines()) == 1, output
        assert "OPENAI_BASE_URL" in output
    else:
        assert output.count("The model does not answer (") == 2
        assert "From this conversation:\n- I have a dog called Rex.\n" in output


async def test_chat_reports_an_empty_model_answer(served: str, odd_model: str, tmp_path: Path, user: str) -> None:
    code, output = await chat(served, tmp_path, ["Hello, I am Ada."], user=user, OPENAI_BASE_URL=odd_model)
    assert (code, "Traceback" in output) == (0, False), output
    assert "The model answered nothing." in output


async def test_chat_reports_an_unavailable_memory_server_in_one_line(tmp_path: Path, user: str) -> None:
    code, output = await chat("http://127.0.0.1:1", tmp_path, ["x"], user=user)
    assert code == 1
    assert "Traceback" not in output
    assert output.splitlines()[-1].startswith("memory server: ")
