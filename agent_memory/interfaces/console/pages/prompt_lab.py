"""Show the exact prompt for a query, with one or two sets of settings."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.text.prompt_marks import MEMORIES_HEAD, SUMMARY_HEAD, part_heading
from agent_memory.interfaces.console.frame import Page
from agent_memory.interfaces.console.pages.memories import MODES, note_ends
from agent_memory.interfaces.console.pages.sessions import text_of

PARTS = {"profile": {}, "pinned": {}, "timeline": {}, "blocks": {"counts": True}, "procedures": {}}
SHARED = {"user": "user_id", "session": "session_id", "namespace": "namespace", "agent": "agent_id"}
OWN = ("tokens", "limit", "relevance", "mode", *PARTS)
_CURL = """curl {address} \\
  -H 'content-type: application/json' \\
{key}  -d @- <<'JSON'
{body}
JSON"""
_PYTHON = """{key}import httpx

body = r'''{body}'''
headers = {headers}
answer = httpx.post("{address}", content=body, headers=headers)
print(answer.json())"""
_TYPESCRIPT = """const answer = await fetch("{address}", {{
  method: "POST",
  headers: {headers},
  body: JSON.stringify({body}),
}});
console.log(await answer.json());"""
_SECOND = "b_"
_NEAREST = 20
_MOST_SEARCHED, _MOST_ENDED = 100, 10
_HEADS = {
    SUMMARY_HEAD: "summary",
    MEMORIES_HEAD: "memories",
    part_heading("the user's profile"): "profile",
    part_heading("what happened to the user, by days"): "timeline",
    part_heading("pinned memories"): "pinned",
    part_heading("blocks"): "blocks",
    part_heading("procedures that worked in situations like this one"): "procedures",
}
_ID = re.compile(r"\(ID: ([^()\n]{1,600})\)$")


async def show_prompt(page: Page) -> Response:
    query = page.query
    compares = "compare" in query
    template_args: dict[str, Any] = {"compares": compares, "modes": MODES, "own": OWN, "parts": PARTS, "second": _SECOND, "shared": SHARED}
    template_args["one_setting"] = page.page_url(compare=None, **{f"{_SECOND}{name}": None for name in OWN})
    if "q" not in query:
        return page.render("prompt.html", settings=[], **template_args)
    bodies = [prompt_of(page, prefix) for prefix in (("", _SECOND) if compares else ("",))]
    filters = {field: {"eq": query[name]} for name, field in SHARED.items() if name in query and name in ("user", "namespace")}
    search = {"text": query["q"], "limit": _NEAREST, "explain": True, **filters}
    nearest, ended, *answers = await asyncio.gather(
        page.rest("POST", "/v1/long-term-memory/search", search),
        _find_ended(page, search),
        *(page.rest("POST", "/v1/memory/prompt", body) for body in bodies),
    )
    settings = [
        {**await _setting(page, body, answer, nearest["memories"]), "ended": ended} for body, answer in zip(bodies, answers, strict=True)
    ]
    await page.name_keys()
    for setting, other in zip(settings, settings[::-1], strict=True):
        setting["alone"] = set(setting["memories"]) - set(other["memories"]) if compares else set()
    return page.render("prompt.html", settings=settings, most=max(setting["total"] for setting in settings), **template_args)


async def _find_ended(page: Page, search: dict[str, Any]) -> list[dict[str, Any]]:
    memories = (await page.rest("POST", "/v1/long-term-memory/search", {**search, "history": True, "limit": _MOST_SEARCHED}))["memories"]
    note_ends(memories)
    latest = {each["id"] for each in memories if each["end"] != "retired"}
    return [each for each in memories if each["end"] and (each["end"] != "retired" or each["id"] not in latest)][:_MOST_ENDED]


def prompt_of(page: Page, prefix: str = "") -> dict[str, Any]:
    """Build a prompt request from the page's query.

    Query fields that apply to only one set of settings start with `prefix`.
    """
    query = page.query
    search: dict[str, Any] = {"explain": True}
    if f"{prefix}limit" in query:
        search["limit"] = query.number(f"{prefix}limit", 0)
    if f"{prefix}mode" in query:
        search["search_mode"] = query[f"{prefix}mode"]
    if f"{prefix}relevance" in query:
        search["min_relevance"] = _share(query[f"{prefix}relevance"], f"{prefix}relevance")
    body: dict[str, Any] = {"query": query["q"], "long_term_search": search}
    shared_fields = {field: query[name] for name, field in SHARED.items() if name in query}
    if "session_id" in shared_fields:
        body["session"] = shared_fields
    body |= {field: value for field, value in shared_fields.items() if field != "session_id"}
    if f"{prefix}tokens" in query:
        body["max_tokens"] = query.number(f"{prefix}tokens", 0)
    return body | {name: options for name, options in PARTS.items() if f"{prefix}{name}" in query}


def _share(text: str, field: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput("must be a number from 0 to 1", field=field) from None


async def _setting(page: Page, body: dict[str, Any], answer: dict[str, Any], nearest: Sequence[dict[str, Any]]) -> dict[str, Any]:
    memories = {memory["id"]: memory for memory in answer["long_term_memories"] or []}
    texts = [text_of(message["content"]) for message in answer["messages"]]
    counts = await asyncio.gather(*(page.runtime.counter.count_in_thread(text) for text in texts))
    parts: list[dict[str, Any]] = [
        {"role": message["role"], "section": _section(message["role"], text), "tokens": tokens, "lines": _lines(text, memories)}
        for message, text, tokens in zip(answer["messages"], texts, counts, strict=True)
    ]
    if parts:
        parts[-1]["section"] = "query"
    sections: dict[str, int] = {}
    for part in parts:
        sections[part["section"]] = sections.get(part["section"], 0) + part["tokens"]
    explanation = answer.get("explanation") or {"cut": (), "ranked": 0, "below_threshold": 0}
    return {
        "code": code_of(f"{page.host}/v1/memory/prompt", body, has_key=page.settings.auth.required),
        "parts": parts,
        "sections": sections,
        "total": sum(counts),
        "budget": body.get("max_tokens"),
        "memories": memories,
        "notices": answer.get("notices") or (),
        "messages_left_out": explanation.get("messages_left_out") or 0,
        "cut_at": body["long_term_search"].get("min_relevance"),
        **_left_out(memories, nearest, explanation),
    }


def code_of(address: str, body: dict[str, Any], *, has_key: bool) -> dict[str, str]:
    """Return code that sends a request with curl, Python and TypeScript.

    The code reads the API key from the environment.
    """
    text = json.dumps(body, indent=2, ensure_ascii=False)
    kind = '"content-type": "application/json"'
    return {
        "curl": _CURL.format(address=address, body=text, key='  -H "authorization: Bearer $AGENT_MEMORY_KEY" \\\n' if has_key else ""),
        "Python": _PYTHON.format(
            address=address,
            body=text.replace("'''", r"\u0027\u0027\u0027"),
            key="import os\n\n" if has_key else "",
            headers="{" + kind + (', "authorization": f"Bearer {os.environ[\'AGENT_MEMORY_KEY\']}"' if has_key else "") + "}",
        ),
        "TypeScript": _TYPESCRIPT.format(
            address=address,
            body=text,
            headers="{ " + kind + (", authorization: `Bearer ${process.env.AGENT_MEMORY_KEY}`" if has_key else "") + " }",
        ),
    }


def _left_out(shown_memories: Mapping[str, Any], nearest: Sequence[dict[str, Any]], explanation: Mapping[str, Any]) -> dict[str, Any]:
    cut = {each["memory_id"]: each for each in explanation["cut"]}
    others = [memory for memory in nearest if memory["id"] not in shown_memories]
    above = [(memory, cut.pop(memory["id"])) for memory in others if memory["id"] in cut]
    above += [({"id": name, "text": name}, each) for name, each in cut.items()]
    rest = [memory for memory in others if memory["id"] not in {each["id"] for each, _ in above}]
    # These were ranked but neither shown nor cut: the prompt had no room left.
    beyond = max(explanation["ranked"] - len(shown_memories) - len(above), 0)
    above += [(memory, {"reason": "beyond_limit"}) for memory in rest[:beyond]]
    below = rest[beyond:]
    return {"above": above, "below": below, "further": max(explanation["below_threshold"] - len(below), 0)}


def _section(role: str, text: str) -> str:
    if role != "system":
        return "messages"
    return next((name for head, name in _HEADS.items() if text.startswith(head)), "other")


def _lines(text: str, memories: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Split text into pieces, with a separate piece for each line that contains a memory."""
    pieces: list[tuple[str, Any]] = []
    for line in text.split("\n"):
        match = _ID.search(line)
        memory = memories.get(match[1]) if match else None
        if memory is None and pieces and pieces[-1][1] is None:
            pieces[-1] = (f"{pieces[-1][0]}\n{line}", None)
        else:
            pieces.append((line, memory))
    return pieces
