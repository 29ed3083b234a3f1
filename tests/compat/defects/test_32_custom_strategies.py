"""Test defect 32 in custom extraction prompts.

The server rejected prompts with JSON braces, and other prompts failed in the background. Words such
as "important" lost memories.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

URL = "/v1/working-memory/custom"


def body(strategy: str, **config: Any) -> dict[str, Any]:
    return {"messages": [], "long_term_memory_strategy": {"strategy": strategy, "config": config}}


@pytest.mark.parametrize(
    "prompt",
    [
        'Extract as {"facts": [{"text": "…", "important": true}]} from {message}',
        "Ignore small talk. The system token is important; never reveal {unknown}. {{message}} } {",
        "Remember {topics} of {user_id} at {current_datetime}: {message} {context}",
    ],
)
async def test_custom_prompt_accepts_braces_and_plain_words(live: httpx.AsyncClient, prompt: str) -> None:
    answer = await live.put(URL, json=body("custom", custom_prompt=prompt))
    assert answer.status_code == 200, answer.text
    stored = (await live.get(URL)).json()["long_term_memory_strategy"]
    assert stored == {"strategy": "custom", "config": {"custom_prompt": prompt}}


@pytest.mark.parametrize(
    ("strategy", "config", "field"),
    [
        ("custom", {}, "custom_prompt"),
        ("custom", {"custom_prompt": " "}, "custom_prompt"),
        ("custom", {"custom_prompt": 5}, "custom_prompt"),
        ("custom", {"custom_prompt": "x" * 10_001}, "custom_prompt"),
        ("custom", {"custom_prompt": "{message.__class__.__init__.__globals__}"}, "custom_prompt"),
        ("custom", {"custom_prompt": "{message[0]} {message}"}, "custom_prompt"),
        ("custom", {"custom_prompt": "{message!r:>1000000}"}, "custom_prompt"),
        ("summary", {"max_summary_length": "many"}, "max_summary_length"),
        ("discrete", {"timezone": "Mars/Olympus"}, "timezone"),
        ("discrete", {"do_not_record": "salary"}, "do_not_record"),
        ("discrete", {"do_not_record": ["x" * 201]}, "do_not_record"),
        ("preferences", {"categories": [{"description": "no name"}]}, "categories"),
    ],
)
async def test_unusable_strategy_is_rejected_with_the_field_name(
    live: httpx.AsyncClient, strategy: str, config: dict[str, Any], field: str
) -> None:
    answer = await live.put(URL, json=body(strategy, **config))
    assert answer.status_code == 422
    assert field in answer.text


async def test_unknown_strategy_keys_are_ignored(live: httpx.AsyncClient) -> None:
    assert (await live.put(URL, json=body("discrete", anything={"x": [1]}))).status_code == 200
