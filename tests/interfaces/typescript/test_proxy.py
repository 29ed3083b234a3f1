"""Test the Vercel AI SDK with memory, changing only its base URL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from agent_memory.foundation.core.settings import Settings
from tests.interfaces.typescript.conftest import run
from tests.support.lookalike import Lookalike
from tests.support.stack import stack

pytestmark = pytest.mark.integrations

PROGRAM = """
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";

const headers = { "X-Memory-User": "ada", "X-Memory-Session": "s1" };
const model = createOpenAICompatible({ name: "m", baseURL: `${process.env.PROXY}/proxy/v1`, apiKey: "sk-upstream-0000", headers })("m");
const question = { role: "user", content: "Which nuts is Ada allergic to?" };
const first = await generateText({ model, messages: [question] });
const messages = [question, ...first.response.messages, { role: "user", content: "Can Ada eat nuts, or is she allergic?" }];
const second = streamText({ model, messages });
let text = "";
for await (const piece of second.textStream) text += piece;
const headersOfAnswer = (await second.response).headers;
console.log(JSON.stringify([first.text, text, headersOfAnswer["x-memory-status"], headersOfAnswer["x-memory-session"]]));
"""


async def test_vercel_ai_sdk_calls_through_the_proxy_get_memories(
    node: Path, make_settings: Callable[..., Settings], redis_url: str, running_lookalike: Lookalike
) -> None:
    running_lookalike.forget()
    settings = make_settings(PROXY_UPSTREAMS=f"main={running_lookalike.url}")
    async with stack(settings, redis_url) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        memory = {"id": "m1", "text": "Ada is allergic to peanuts.", "user_id": "ada"}
        await http.post("/v1/long-term-memory/", json={"memories": [memory]}, params={"wait": 20})
        printed = await run(node, "--input-type=module", "--eval", PROGRAM, PROXY=url)
        messages = (await http.get("/v1/working-memory/s1", params={"user_id": "ada"})).json()["messages"]
    asked = running_lookalike.requests
    assert [request.headers["authorization"] for request in asked] == ["Bearer sk-upstream-0000"] * 2
    assert all("allergic to peanuts" in request.body["messages"][0]["content"] for request in asked)
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    assert "You said: Can Ada eat nuts, or is she allergic?" in messages[-1]["content"]
    assert '"added","s1"]' in printed
    assert all(line in printed for line in ("Which nuts is Ada allergic to?", "You said: Can Ada eat nuts, or is she allergic?"))
