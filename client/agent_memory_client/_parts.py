"""Requests about a person's data and about access; what is exported and brought in again, in parts: requests of a size that servers
take, and a file's end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Literal

from pydantic import ValidationError

from agent_memory_client._calls import Call, Wait, checked, jsonable, seconds_of, segment
from agent_memory_client.errors import MemoryProtocolError
from agent_memory_client.models import CreateTokenRequest, ImportReport, PurgeRequest, RotateTokenRequest

PART_LINES = 500
PART_BYTES = 2 * 1024 * 1024


def _path(user_id: str, what: str) -> str:
    return f"/v1/users/{segment('user_id', user_id)}/{what}"


def export_call(user_id: str, namespace: str | None) -> Call:
    """The default namespace does not count: "all of this user" must mean all."""
    return Call("POST", _path(user_id, "export"), {} if namespace is None else {"namespace": namespace}, idempotent=False)


def list_quarantine_call(namespace: str | None, user_id: str | None, limit: int, offset: int) -> Call:
    """A page of what waits for a review."""
    given = {"namespace": namespace, "user_id": user_id, "limit": str(limit), "offset": str(offset)}
    return Call("GET", "/v1/quarantine", {name: value for name, value in given.items() if value is not None})


def review_call(memory_id: str, how: str) -> Call:
    """The end of a review. Sent once: a second one finds nothing in quarantine, which would look as if the first had failed."""
    return Call("POST", f"/v1/quarantine/{segment('memory_id', memory_id)}/{how}", idempotent=False)


def purge_call(source: PurgeRequest, namespace: str | None, user_id: str | None, dry_run: bool, wait: Wait) -> Call:
    """The same purge is one piece of work, so this is safe to repeat. The default namespace does not count: see `export_call`."""
    seconds = seconds_of(wait)
    given = {"namespace": namespace, "user_id": user_id, "dry_run": "true" if dry_run else "false", "wait": str(seconds)}
    params = {name: value for name, value in given.items() if value is not None}
    return Call("POST", "/v1/long-term-memory/purge", params, jsonable(source), wait=seconds)


def token_call(method: Literal["GET", "DELETE"], token_id: str | None = None) -> Call:
    """A look at all API keys or at one, or its end. A key that is revoked twice is not there the second time, so that is sent once."""
    path = "/v1/auth/tokens" if token_id is None else f"/v1/auth/tokens/{segment('token_id', token_id)}"
    return Call(method, path, idempotent=method == "GET")


def create_token_call(request: CreateTokenRequest) -> Call:
    """Sent once: an answer with a secret is kept nowhere, so a second request makes a second key."""
    return Call("POST", "/v1/auth/tokens", json=jsonable(request), idempotent=False)


def rotate_token_call(token_id: str, grace_seconds: float) -> Call:
    """Sent once, as `create_token_call`."""
    try:
        body = RotateTokenRequest(grace_seconds=grace_seconds)
    except ValidationError as error:
        raise checked(error) from error
    return Call("POST", f"/v1/auth/tokens/{segment('token_id', token_id)}/rotate", json=jsonable(body), idempotent=False)


def import_calls(user_id: str, namespace: str | None, lines: Iterable[bytes | str], source: str | None = None) -> Iterator[Call]:
    """The requests that bring a file in, each with the header as its first line. What is in twice changes nothing: safe to repeat."""
    path, header = _path(user_id, "import"), b""
    given = {"namespace": namespace, "import_source": source}
    params = {name: value for name, value in given.items() if value is not None}
    part: list[bytes] = []
    size = first = number = 0
    for number, line in enumerate(lines, start=1):
        raw = (line.encode() if isinstance(line, str) else line).rstrip(b"\r\n")
        if number == 1:
            header, first = raw, 2
            continue
        if part and (len(part) >= PART_LINES or size + len(raw) > PART_BYTES):
            yield _part(path, params, first, header, part)
            part, size, first = [], 0, number
        part.append(raw)
        size += len(raw) + 1
    if number:
        yield _part(path, params, first, header, part)


def _part(path: str, params: dict[str, str], first: int, header: bytes, part: list[bytes]) -> Call:
    return Call("POST", path, params | {"first_line": str(first)}, lines=b"\n".join([header, *part]))


def together(reports: Iterable[ImportReport]) -> ImportReport:
    """The reports of all parts as one."""
    whole = ImportReport()
    for one in reports:
        for name in ("imported", "present"):
            counts: dict[str, int] = getattr(whole, name)
            for kind, count in getattr(one, name).items():
                counts[kind] = counts.get(kind, 0) + count
        whole.problems = [*whole.problems, *one.problems][:1000]
        whole.problem_count += one.problem_count
        whole.vectors_reused += one.vectors_reused
        whole.vectors_to_embed += one.vectors_to_embed
        whole.complete = whole.complete or one.complete
    return whole


class Ending:
    """Looks at the lines of an export as they pass, and at its end says whether it is whole."""

    def __init__(self) -> None:
        self._count = 0
        self._last = b""

    def saw(self, line: bytes) -> None:
        """A line passes."""
        self._count += 1
        self._last = line

    def check(self) -> None:
        """Raises MemoryProtocolError unless the last line is the end and counts those before it."""
        try:
            last = json.loads(self._last) if len(self._last) < 10_000 else {}
        except ValueError:
            last = {}
        if not isinstance(last, dict) or last.get("kind") != "end" or last.get("lines") != self._count - 1:
            raise MemoryProtocolError(f"the export broke off after {self._count} lines: export again")
