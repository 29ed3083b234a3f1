"""Anthropic's SDK with memory of its own process, and LiteLLM through the proxy."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import litellm
import pytest
from anthropic import Anthropic, AsyncAnthropic, RateLimitError

from agent_memory_client import ClientMemoryRecord, MemoryClient
from agent_memory_client.integrations.llm import with_memory
from agent_memory_client.sync import SyncMemoryClient
from tests.integrations.conftest import ModelServer

ASKED = "Which nuts is Ada allergic to?"
NUTS: Any = {"role": "user", "content": [{"type": "text", "text": ASKED}]}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "nuts"}}
MESSAGE = {"id": "msg", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None}
MESSAGE |= {"usage": {"input_tokens": 1, "output_tokens": 1}}
PEANUTS = {"type": "text", "text": "Peanuts."}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**MESSAGE, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in ("Pea", "nuts.")),
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {**CALL, "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"at": "nuts"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
CALLED = [{"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": "nuts"}'}}]


class Claude:
    """Speaks Anthropic's messages, and remembers what it was asked."""

    def __init__(self) -> None:
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in answer]) if stream else answer.choices[0].message.content
    assert text == "Peanuts."
    assert "allergic to peanuts" in str(model.asked[-1]["messages"][0])
    assert await said(client, user) == [("user", ASKED), ("assistant", "Peanuts.")]
