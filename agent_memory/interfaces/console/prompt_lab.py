"""The exact prompt for a query: what is in it, how many tokens each part takes, and what was left out."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.responses import Response

from agent_memory.interfaces.console.frame import Page

SECTIONS = {"profile": {}, "pinned": {}, "timeline": {}, "blocks": {"counts": True}, "procedures": {}}
_NEAREST = 20


async def show_prompt(page: Page) -> Response:
    query = page.query
    if "q" not in query:
        return page.render("prompt.html", answer=None, sections=SECTIONS, body=None)
    body = prompt_of(page)
    filters = {field: {"eq": query[name]} for name, field in (("user", "user_id"), ("namespace", "namespace")) if name in query}
    answer, nearest = await asyncio.gather(
        page.rest("POST", "/v1/memory/prompt", body),
        page.rest("POST", "/v1/long-term-memory/search", {"text": query["q"], "limit": _NEAREST, **filters}),
    )
    memories = answer["long_term_memories"] or []
    shown_ids = {memory["id"] for memory in memories}
    cut = {each["memory_id"]: each["reason"] for each in (answer["explanation"] or {"cut": ()})["cut"]}
    cut_memories = [(memory, cut.pop(memory["id"], "too_far")) for memory in nearest["memories"] if memory["id"] not in shown_ids]
    parts = [{"role": message["role"], "text": _text_of(message["content"])} for message in answer["messages"]]
    counts = await asyncio.gather(*(page.runtime.counter.count_aside(part["text"]) for part in parts))
    for part, tokens in zip(parts, counts, strict=True):
        part["tokens"] = tokens
    return page.render(
        "prompt.html",
        answer=answer,
        body=json.dumps(body, indent=2, ensure_ascii=False),
        left_out=cut_memories,
        cut=cut,
        memories=memories,
        parts=parts,
        sections=SECTIONS,
        total=sum(counts),
    )


def prompt_of(page: Page) -> dict[str, Any]:
    """Return the body of a prompt's request from the page's address."""
    query = page.query
    body: dict[str, Any] = {"query": query["q"], "long_term_search": {"explain": True}}
    body |= {
        field: query[name] for name, field in (("user", "user_id"), ("namespace", "namespace"), ("agent", "agent_id")) if name in query
    }
    if "session" in query:
        names = ("user_id", "namespace", "agent_id")
        body["session"] = {"session_id": query["session"], **{name: body[name] for name in names if name in body}}
    if "tokens" in query:
        body["max_tokens"] = query.number("tokens", 0)
    return body | {name: options for name, options in SECTIONS.items() if name in query}


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_text_of(part) for part in content)
    return content if isinstance(content, str) else str(content.get("text") or f"[{content.get('type')}]")
