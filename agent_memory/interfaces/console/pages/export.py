"""Export all of a person's data as JSON Lines or plain text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from pydantic_core import from_json, to_json
from starlette.responses import Response

from agent_memory.interfaces.console.frame import Page, moment

# These lines are for imports. They repeat what the other lines say.
_LEFT_OUT = ("change", "rules")


async def export_person(page: Page) -> Response:
    """Export all of a person's data as JSON Lines or, with `format=text`, as plain text."""
    user, as_text = page.request.path_params["user_id"], page.query.get("format") == "text"
    headers = {"content-disposition": attachment(f"{user} {datetime.now(UTC):%Y-%m-%d}.{'txt' if as_text else 'jsonl'}")}
    if as_text:
        headers["content-type"] = "text/plain; charset=utf-8"
    rewrite = partial(_readable, page.words) if as_text else None
    return page.rest.forward("POST", f"/v1/users/{user}/export", headers, rewrite, namespace=page.query.get("namespace"))


def attachment(name: str) -> str:
    """Return the `Content-Disposition` header for a download with this filename."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in " -_.@") else "_" for char in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name.replace('/', '_'), safe='')}"


def _readable(words: dict[str, str], raw: bytes) -> bytes:
    return "".join(f"{text}\n" for text in _texts(words, from_json(raw))).encode()


def _texts(words: dict[str, str], line: dict[str, Any]) -> Iterator[str]:
    """Convert one line of an export to lines of text."""
    kind = line["kind"]
    if kind == "header":
        yield f"{words['copy_title']} {line['user_id']} ({line.get('namespace') or words['all_of_them']}), {moment(line['at'])} UTC\n"
    elif kind == "end":
        yield f"\n{words['copy_end']}"
    elif kind == "memory":
        records = [version["record"] for version in (line.get("now"), *(line.get("versions") or ())) if version]
        for at, record in enumerate(records):
            ended = "" if line["state"] == "current" and not at else f" [{words['not_now']}]"
            speaker = (record.get("metadata") or {}).get("role") if record["memory_type"] == "message" else None
            name = words.get(f"role_{speaker}") or words.get(f"kind_{record['memory_type']}", record["memory_type"])
            yield f"{moment(record['created_at'])}  {name}: {_indented(record['text'])}{ended}"
    elif kind in ("session", "waiting"):
        yield f"\n{words['filter_session']} {line['session_id']}"
        if line.get("context"):
            yield f"  {words['summary']}: {_indented(line['context'])}"
        for each in line["messages"]:
            role = words.get(f"role_{each['role']}", each["role"])
            yield f"  {moment(each['created_at'])}  {role}: {_indented(each.get('content') or '')}"
    elif kind == "block":
        yield f"{words['blocks']}, {line['label']}: {_indented(str(line['block'].get('value', '')))}"
    elif kind not in _LEFT_OUT:
        yield f"{kind}: {to_json({name: value for name, value in line.items() if name != 'kind'}).decode()}"


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")
