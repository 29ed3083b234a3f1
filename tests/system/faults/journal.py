"""Record each write and its outcome, and derive the expected state of Redis."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.registrations import Registration, registrations


class Journal:
    """A JSON Lines file of intents and outcomes that is flushed after each line.

    `{"op": n, "kind", "key", …}` is an intent, and `{"op": n, "ok", …}` is its outcome.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("a", encoding="utf-8")
        self._next = 0
        self.acknowledged = 0

    def intend(self, kind: str, key: str, **more: Any) -> int:
        """Write an intent and return its number."""
        self._next += 1
        self._write({"op": self._next, "kind": kind, "key": key, **more})
        return self._next

    def outcome(self, op: int, *, ok: bool, tries: int, **more: Any) -> None:
        """Record whether the server acknowledged a write, and after how many requests."""
        self.acknowledged += ok
        self._write({"op": op, "ok": ok, "tries": tries, **more})

    def close(self) -> None:
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        self._file.flush()


def read(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Yield each intent with its outcome, or with None if it has no outcome."""
    intents: dict[int, dict[str, Any]] = {}
    outcomes: dict[int, dict[str, Any]] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            (intents if "kind" in entry else outcomes)[entry["op"]] = entry
    for op, intent in intents.items():
        yield intent, outcomes.get(op)


@dataclass
class Said:
    """A message, and whether its memory and fact "must" exist, "may" exist, or are "gone"."""

    id: str
    role: str
    text: str
    informative: bool
    verbatim: str = "must"
    fact: str = "must"

    def weaken(self) -> None:
        """Stop requiring a memory and a fact from this message."""
        self.verbatim = "may" if self.verbatim == "must" else self.verbatim
        self.fact = "may" if self.fact == "must" else self.fact


@dataclass
class SessionModel:
    """The expected state of a session.

    `lists` are the possible message id lists, more than one after an unacknowledged append.
    """

    key: str
    shared: bool = False
    alive: bool = False
    lists: list[list[str]] = field(default_factory=lambda: [[]])
    by_writer: dict[str, list[list[str]]] = field(default_factory=dict[str, list[list[str]]])
    said: dict[str, Said] = field(default_factory=dict[str, Said])
    counters: set[int | None] = field(default_factory=lambda: {None})
    own_memories: list[str] = field(default_factory=list[str])


@dataclass
class Expected:
    """The expected sessions and memories. None means that a memory may be missing."""

    sessions: dict[str, SessionModel] = field(default_factory=dict[str, SessionModel])
    memories: dict[str, set[str | None]] = field(default_factory=dict[str, set[str | None]])
    keyed: dict[str, list[tuple[str, str]]] = field(default_factory=dict[str, list[tuple[str, str]]])
    """Sessions with server-assigned message ids, under Idempotency-Keys: role and text of each message in order, all acknowledged."""
    of_features: dict[Registration, dict[str, set[Any]]] = field(default_factory=dict[Registration, dict[str, set[Any]]])
    """Objects of registered features, by name: their possible states."""
    blocks: dict[str, set[str | None]] = field(default_factory=dict[str, set[str | None]])
    """The possible texts of a user's block; None: the block does not exist."""
    acknowledged: int = 0
    unacknowledged: int = 0
    retried: int = 0

    def session(self, key: str) -> SessionModel:
        return self.sessions.setdefault(key, SessionModel(key))


def expected(entries: Iterable[tuple[dict[str, Any], dict[str, Any] | None]]) -> Expected:
    """Replay a journal to compute the expected state.

    Sessions and memories must have one writer at a time, except shared sessions, which only grow.
    """
    result = Expected()
    for intent, outcome in entries:
        ok = outcome is not None and outcome["ok"]
        if outcome is not None and outcome.get("refused"):
            continue  # the server refused it: no effect
        result.acknowledged += ok
        result.unacknowledged += not ok
        result.retried += outcome is not None and outcome["tries"] > 1
        if intent["kind"] in _APPLY:
            _APPLY[intent["kind"]](result, intent, ok, outcome or {})
        else:
            _apply_of_feature(result, intent, ok)
    return result


def _said(intent: dict[str, Any], fate: str) -> list[Said]:
    return [Said(*message, fate, fate) for message in intent["messages"]]


def _append(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    session = result.session(intent["key"])
    said = _said(intent, "must" if ok else "may")
    ids = [message.id for message in said]
    session.said |= {message.id: message for message in said}
    if "writer" in intent:
        session.shared = True
        session.alive = session.alive or ok
        before = session.by_writer.setdefault(intent["writer"], [[]])
        session.by_writer[intent["writer"]] = [one + ids for one in before] + ([] if ok else before)
        return
    if ok:
        session.alive = True
        session.lists = [one + ids for one in session.lists]
    else:
        session.lists += [one + ids for one in session.lists]


def _put(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    session = result.session(intent["key"])
    new = _said(intent, "must" if ok else "may")
    session.said |= {message.id: message for message in new}
    session.lists = [intent["ids"]] if ok else [*session.lists, intent["ids"]]
    session.counters = {intent["counter"]} | (set() if ok else session.counters)
    session.alive = session.alive or ok
    for memory_id, text in intent["memories"]:
        result.memories[memory_id] = {text} | (set() if ok else {None})
        session.own_memories.append(memory_id)


def _data(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    session = result.session(intent["key"])
    session.counters = {intent["counter"]} | (set() if ok else session.counters)


def _delete_session(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    session = result.session(intent["key"])
    if not ok:
        raise AssertionError("a deletion is tried until it is acknowledged")
    session.alive, session.lists, session.counters = False, [[]], {None}
    for message in session.said.values():
        message.weaken()
    for memory_id in session.own_memories:
        result.memories[memory_id].add(None)
    session.own_memories = []


def _forget_memories(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    """Expect all memories from the session to be gone if the deletion was acknowledged."""
    session = result.session(intent["key"])
    for message in session.said.values() if ok else ():
        message.verbatim = message.fact = "gone"


def _delete_message_memory(result: Expected, intent: dict[str, Any], ok: bool, outcome: dict[str, Any]) -> None:
    message = result.session(intent["key"]).said[intent["message"]]
    if ok and outcome["deleted"] == 1:
        message.verbatim = "gone"
    elif not ok or outcome["tries"] > 1:  # an earlier attempt may have deleted it, or ran before the promotion
        message.verbatim = "may" if message.verbatim == "must" else message.verbatim


def _create(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    for memory_id, text in intent["memories"]:
        before = set[str | None]() if ok else result.memories.get(memory_id, {None})
        result.memories[memory_id] = before | {text}


def _delete_memories(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    for memory_id in intent["ids"]:
        result.memories[memory_id] = {None} | (set() if ok else result.memories.get(memory_id, {None}))


def _keyed_append(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    if not ok:
        raise AssertionError("a request under a key is tried until it is acknowledged")
    result.keyed.setdefault(intent["key"], []).extend((role, text) for role, text in intent["said"])


def _apply_of_feature(result: Expected, intent: dict[str, Any], ok: bool) -> None:
    owner = next(one for one in registrations() if intent["kind"] in one.fault_kinds)
    owner.fault_kinds[intent["kind"]](result.of_features.setdefault(owner, {}), intent, ok)


def _block(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    before = set[str | None]() if ok else result.blocks.get(intent["key"], {None})
    result.blocks[intent["key"]] = before | {intent["value"]}


def _erase(result: Expected, intent: dict[str, Any], ok: bool, outcome: dict[str, Any]) -> None:
    """Expect an acknowledged erasure to delete its sessions and memories for good."""
    if not ok:
        raise AssertionError("an erasure is tried until it is acknowledged")
    for key in intent["sessions"]:
        own = list(result.session(key).own_memories)
        _delete_session(result, {"key": key}, ok, outcome)
        _forget_memories(result, {"key": key}, ok, outcome)
        for memory_id in own:
            result.memories[memory_id] = {None}
    for memory_id in intent["memories"]:
        result.memories[memory_id] = {None}


def _forget_by_request(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    before = set[str | None]() if ok else result.memories[intent["key"]]
    result.memories[intent["key"]] = before | {None}


def _undo_forgetting(result: Expected, intent: dict[str, Any], ok: bool, _: dict[str, Any]) -> None:
    before = set[str | None]() if ok else result.memories[intent["key"]]
    result.memories[intent["key"]] = before | {intent["text"]}


_APPLY = {
    "forget_by_request": _forget_by_request,
    "undo_forgetting": _undo_forgetting,
    "keyed_append": _keyed_append,
    "erase": _erase,
    "block": _block,
    "append": _append,
    "put": _put,
    "data": _data,
    "delete_session": _delete_session,
    "forget_memories": _forget_memories,
    "delete_message_memory": _delete_message_memory,
    "create": _create,
    "patch": _create,
    "delete_memories": _delete_memories,
}
