"""Build the requests to measure. For each operation, request `n` is always the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.setup import corpus
from benchmarks.setup.http import connect, request
from benchmarks.setup.preload import PER_USER

LENGTHS = (10, 100, 1000)
_SESSIONS = 40
CREATE_BATCH = 20
# The number of different questions if the embeddings should come from the cache.
_KNOWN_QUESTIONS = 200


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, with a function for its nth request and the number of warm-up requests."""

    name: str
    nth: Callable[[int], bytes]
    warm: int = 50


def _body(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _messages(session: str, first: int, count: int) -> list[dict[str, Any]]:
    return [corpus.message(session, number) for number in range(first, first + count)]


def _speaker(number: int) -> str:
    """Return a session's owner, whose messages are never promoted or searched."""
    return corpus.user(10**6 + number % 100)


class Scenarios:
    """The operations on a store with `memories` memories. Each `run` has its own sessions."""

    def __init__(self, run: str, memories: int) -> None:
        self._run = run
        self._users = max(memories // PER_USER, 1)

    def operations(self) -> list[Operation]:
        """Return all operations. Operations that depend on the store size come last."""
        appends = [Operation(f"append to {length}", self._appender(length)) for length in LENGTHS]
        gets = [Operation(f"get last 20 of {length}", self._getter(length)) for length in LENGTHS]
        return [
            Operation("put 4", self._put),
            *appends,
            *gets,
            Operation("create 20", self._create, warm=10),
            *self.recalls(),
        ]

    def recalls(self) -> list[Operation]:
        """Return the operations that search."""
        return [
            Operation("search", self._search, warm=_KNOWN_QUESTIONS),
            Operation("search, new query", lambda n: self._search(n, fresh="s")),
            Operation("prompt", self._prompt, warm=_KNOWN_QUESTIONS),
            Operation("prompt, new query", lambda n: self._prompt(n, fresh="p")),
        ]

    async def prepare(self, base: str) -> None:
        """Create the sessions that the operations use."""
        connection = await connect(base)
        for length in {*LENGTHS, 20}:
            for number in range(_SESSIONS):
                session = self._session(length, number)
                for first in range(0, length, 250):
                    body = {"messages": _messages(session, first, min(250, length - first)), "user_id": _speaker(number)}
                    await connection.expect(request("POST", f"/v1/working-memory/{session}/messages", _body(body)))
        connection.close()

    def _session(self, length: int, number: int) -> str:
        return f"{self._run}-{length}-{number}"

    def _put(self, n: int) -> bytes:
        session = f"{self._run}-put-{n}"
        body = {"messages": _messages(session, 0, 4), "user_id": _speaker(n)}
        return request("PUT", f"/v1/working-memory/{session}", _body(body))

    def _appender(self, length: int) -> Callable[[int], bytes]:
        def nth(n: int) -> bytes:
            number, place = n % _SESSIONS, n // _SESSIONS
            session = self._session(length, number)
            body = {"messages": _messages(session, length + place, 1), "user_id": _speaker(number)}
            return request("POST", f"/v1/working-memory/{session}/messages", _body(body))

        return nth

    def _getter(self, length: int) -> Callable[[int], bytes]:
        def nth(n: int) -> bytes:
            number = n % _SESSIONS
            path = f"/v1/working-memory/{self._session(length, number)}?user_id={_speaker(number)}&recent_messages_limit=20"
            return request("GET", path)

        return nth

    def _create(self, n: int) -> bytes:
        numbers = range(n * CREATE_BATCH, (n + 1) * CREATE_BATCH)
        owner = corpus.user(10**5 + n % 50)
        memories = [{"id": f"{self._run}-new-{number}", "text": corpus.fact(10**5, number), "user_id": owner} for number in numbers]
        return request("POST", "/v1/long-term-memory/", _body({"memories": memories}))

    def _question_of(self, n: int, fresh: str) -> tuple[int, str]:
        place = n if fresh else n % _KNOWN_QUESTIONS
        owner = place * 7919 % self._users
        return owner, corpus.question(owner, place * 104729 % PER_USER, f"{self._run} {fresh} {n}" if fresh else "")

    def _search(self, n: int, fresh: str = "") -> bytes:
        owner, question = self._question_of(n, fresh)
        return request("POST", "/v1/long-term-memory/search", _body({"text": question, "user_id": {"eq": corpus.user(owner)}, "limit": 10}))

    def _prompt(self, n: int, fresh: str = "") -> bytes:
        owner, question = self._question_of(n, fresh)
        number = n % _SESSIONS
        body = {
            "query": question,
            "session": {"session_id": self._session(20, number), "user_id": _speaker(number)},
            "long_term_search": {"user_id": {"eq": corpus.user(owner)}, "limit": 10},
        }
        return request("POST", "/v1/memory/prompt", _body(body))

    def chat(self, sessions: Iterable[int], turns: int) -> list[list[tuple[bytes, bytes]]]:
        """Return conversations as lists of turns, each with a prompt and an append request."""
        conversations: list[list[tuple[bytes, bytes]]] = []
        for number in sessions:
            session, user, owner = f"{self._run}-chat-{number}", _speaker(number), number * 7919 % self._users
            turn_requests: list[tuple[bytes, bytes]] = []
            for turn in range(turns):
                prompt = {
                    "query": corpus.question(owner, (number + turn * 31) % PER_USER),
                    "session": {"session_id": session, "user_id": user},
                    "long_term_search": {"user_id": {"eq": corpus.user(owner)}, "limit": 10},
                }
                append = {"messages": _messages(session, 2 * turn, 2), "user_id": user}
                turn_requests.append(
                    (
                        request("POST", "/v1/memory/prompt", _body(prompt)),
                        request("POST", f"/v1/working-memory/{session}/messages", _body(append)),
                    )
                )
            conversations.append(turn_requests)
        return conversations
