"""Send the statements in docs/a-week.md to a server and compare the responses with the page.

`python -m tests.docs.week` updates the page, and a test fails if it is out of date.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_eval.commands.server import evaluation_server
from tests.support.cli import ROOT
from tests.support.waiting import settled

PAGE = ROOT / "docs" / "a-week.md"
USER = "mara"
_DAY = re.compile(r"^## (\w+), (\d{1,2} \w+ \d{4})$")
_ACT = re.compile(r"^(Said|Asked|Forgotten)(?: at (\d\d:\d\d): \*\*(.+)\*\*)?:?$")
_LINE = re.compile(r"^(\d\d:\d\d) (user|assistant): (.+)$")


@dataclass(frozen=True)
class Act:
    """A conversation, question or forget request, with its block in lines `first` to `last`."""

    kind: str
    at: datetime
    session: str
    text: str
    first: int
    last: int


def acts(lines: Sequence[str]) -> list[Act]:
    """Return a chapter's events in order."""
    day, session, found = datetime.min, "", list[Act]()
    for number, line in enumerate(lines):
        if (m := _DAY.match(line)) is not None:
            session, day = m[1].lower(), datetime.strptime(m[2], "%d %B %Y").replace(tzinfo=UTC)
            assert f"{day:%A}" == m[1], line
        elif (m := _ACT.match(line)) is not None:
            assert lines[number + 2] == "```text", f"line {number + 1}: a block follows"
            first = number + 3
            last = lines.index("```", first)
            at = _at(day, m[2]) if m[2] else day
            found.append(Act(m[1], at, session, m[3] or "", first, last))
    return found


def _at(day: datetime, clock: str) -> datetime:
    hour, minute = clock.split(":")
    return day.replace(hour=int(hour), minute=int(minute))


async def played(url: str) -> str:
    """Return the page with a server's responses."""
    lines = PAGE.read_text("utf-8").splitlines()
    answers: list[tuple[Act, list[str]]] = []
    async with httpx.AsyncClient(base_url=url, timeout=60) as http, MemoryAPIClient(MemoryClientConfig(base_url=url)) as memory:
        for act in acts(lines):
            answers.append((act, await _done(http, memory, act, lines[act.first : act.last])))
    for act, answer in reversed(answers):
        lines[act.first : act.last] = answer
    return "\n".join(lines) + "\n"


async def _done(http: httpx.AsyncClient, memory: MemoryAPIClient, act: Act, block: list[str]) -> list[str]:
    """Play an event and return the new content of its block."""
    if act.kind == "Said":
        await _say(http, memory, act, block)
        return block
    if act.kind == "Forgotten":
        answer = await _post(http, "/v1/memory/forget", {"text": act.text, "user_id": USER})
        await settled(memory)  # Messages next to the forgotten text are indexed again without it.
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(answer["forgotten"].items()))
        return [*(f"{match['text']} ({match['why']})" for match in answer["matches"] if match["clear"]), f"forgotten: {counts}"]
    body = {"query": act.text, "user_id": USER, "include_ids": False, "long_term_search": {"reference_time": act.at.isoformat()}}
    answer = await _post(http, "/v1/memory/prompt", body)
    return [f"{message['role']}: {_content(message['content'])}" for message in answer["messages"]]


async def _say(http: httpx.AsyncClient, memory: MemoryAPIClient, act: Act, block: Sequence[str]) -> None:
    said = [m for line in block if (m := _LINE.match(line)) is not None]
    assert len(said) == len(block), block
    messages = [
        {"id": f"{act.session}-{m[1]}-{m[2]}", "role": m[2], "content": m[3], "created_at": _at(act.at, m[1]).isoformat()} for m in said
    ]
    await _post(http, f"/v1/working-memory/{act.session}/messages", {"messages": messages, "user_id": USER})
    await settled(memory)


async def _post(http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> Any:
    answer = await http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _content(content: Any) -> str:
    return content if isinstance(content, str) else content["text"]


def main() -> int:
    with evaluation_server(settings={"MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", "NEIGHBOURS_AFTER_SECONDS": "0"}) as url:
        PAGE.write_text(asyncio.run(played(url)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
