"""Show a conversation, and which memory each message became."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from agent_memory.foundation.text.pictures import is_data_url, pictures_of
from agent_memory.interfaces.console.frame import Page

_WINDOW_TOKENS = 16_000
_MEMORIES = 100
_MESSAGES = 200
# A page shows at most this many bytes of pictures. It only names the other pictures.
_PICTURE_BYTES = 16 * 1024 * 1024


async def show_session(page: Page) -> Response:
    session_id, query = page.request.path_params["session_id"], page.query
    window = query.number("window", _WINDOW_TOKENS)
    owner: dict[str, Any] = {"user_id": query.get("user"), "namespace": query.get("namespace")}
    filters = {name: {"eq": value} for name, value in owner.items() if value is not None}
    search = {"session_id": {"eq": session_id}, "limit": _MEMORIES, **filters}
    session, results, facts = await asyncio.gather(
        page.rest("GET", f"/v1/working-memory/{session_id}", context_window_max=window, recent_messages_limit=_MESSAGES, **owner),
        page.rest("POST", "/v1/long-term-memory/search", search),
        page.rest("POST", "/v1/long-term-memory/search", {**search, "memory_type": {"ne": "message"}}),
    )
    made: defaultdict[str, list[Any]] = defaultdict(list)
    for memory in {each["id"]: each for each in (*results["memories"], *facts["memories"])}.values():
        for message in {
            *(memory.get("extracted_from") or ()),
            *(name for each in memory.get("evidence") or () for name in each["message_ids"]),
        }:
            made[message].append(memory)
    await page.name_keys()
    return page.render(
        "session.html",
        session=session,
        made=made,
        facts=facts,
        window=window,
        chosen=query.get("message"),
        parts=[(each, text_of(each["content"] or ""), pictures, _calls_of(each)) for each, pictures in _with_pictures(session["messages"])],
    )


def _with_pictures(messages: list[Any]) -> Iterator[tuple[Any, list[tuple[str, bool]]]]:
    """Yield each message with its images as (address, is visible) pairs.

    Images from other servers are hidden, because loading them would expose the reader.
    """
    left = _PICTURE_BYTES
    for message in messages:
        pictures: list[tuple[str, bool]] = []
        for address in pictures_of(message.get("content_parts")):
            is_shown = is_data_url(address) and len(address) <= left
            left -= len(address) if is_shown else 0
            pictures.append((address if is_shown or not is_data_url(address) else "", is_shown))
        yield message, pictures


def _calls_of(message: dict[str, Any]) -> list[tuple[str, str]]:
    calls: list[tuple[str, str]] = []
    for call in message.get("tool_calls") or ():
        body = call.get("function") if isinstance(call, dict) else None
        body = body if isinstance(body, dict) else call
        calls.append(_call(body, "arguments", "args") if isinstance(body, dict) else ("", _as_text(call)))
    for part in message.get("content_parts") or ():
        if isinstance(part, dict) and str(part.get("type")).endswith("tool_use"):
            calls.append(_call(part, "input"))
    return calls


def _call(body: dict[str, Any], *names: str) -> tuple[str, str]:
    return str(body.get("name") or ""), _as_text(next((body[name] for name in names if body.get(name)), ""))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def text_of(content: Any) -> str:
    """Return the text in a message's content, with `[kind]` in place of other parts."""
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    return content if isinstance(content, str) else str(content.get("text") or f"[{content.get('type', 'part')}]")
