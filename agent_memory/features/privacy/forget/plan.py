"""Plan the deletions for a forget request. Pure functions, no I/O."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_memory.features.memories.records import StoredMemory, evidence_of
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.privacy.forget.content_words import content, coverage, shared
from agent_memory.features.privacy.forget.matching import Subject, sentences, states, subject_to_forget
from agent_memory.features.privacy.forget.sessions import JournalCopy, SessionCopy
from agent_memory.features.privacy.lineage import LineageMemory
from agent_memory.foundation.core.feature import Group
from agent_memory.foundation.core.scope import SessionRef
from agent_memory_client.models import Evidence, ForgetMatch, MemoryRecord, MemoryTypeEnum

Cited = tuple[SessionRef, str]
"""Identifies a message by its session and id."""


@dataclass(slots=True)
class Chosen:
    """A fact to delete. If `versions` is not empty, only these former versions are deleted."""

    memory: LineageMemory
    why: str
    versions: Sequence[StoredMemory] = ()


@dataclass(slots=True)
class TargetOwner:
    """The owner or session covered by a request. None matches any value."""

    namespace: str | None
    user_id: str | None
    session_id: str | None = None

    @property
    def selection(self) -> Selection:
        return Selection.of(self.namespace, self.user_id, self.session_id)


@dataclass(slots=True)
class Targets:
    """The facts and messages to delete. `possible` lists uncertain matches, which are kept."""

    owner: TargetOwner
    subject: Subject | None = None
    """The subject as text, or None if the request contains ids."""
    facts: list[Chosen] = field(default_factory=list[Chosen])
    turns: dict[str, LineageMemory] = field(default_factory=dict[str, LineageMemory])
    """The memories of the messages to delete, by mid."""
    messages: dict[Cited, str] = field(default_factory=dict[Cited, str])
    """The messages to delete, each with its reason."""
    subject_sentences: list[str] = field(default_factory=list[str])
    values: list[str] = field(default_factory=list[str])
    """Words of `subject_sentences` that the user's other statements do not contain."""
    sessions: list[SessionCopy] = field(default_factory=list[SessionCopy])
    possible: list[ForgetMatch] = field(default_factory=list[ForgetMatch])
    requests: list[Cited] = field(default_factory=list[Cited])
    """Messages that ask to forget the subject, deleted only along with other data."""
    ambiguous: bool = False

    @property
    def has_matches(self) -> bool:
        return bool(self.facts or self.turns or self.messages)

    def add_turn(self, memory: LineageMemory, why: str) -> None:
        self.turns[memory.mid] = memory
        self.messages |= dict.fromkeys(evidence_messages(memory), why)


@dataclass(slots=True)
class Plan:
    removed_memories: dict[str, LineageMemory] = field(default_factory=dict[str, LineageMemory])
    dropped: list[Chosen] = field(default_factory=list[Chosen])
    quoting: list[LineageMemory] = field(default_factory=list[LineageMemory])
    sessions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    matches: list[ForgetMatch] = field(default_factory=list[ForgetMatch])
    counts: Counter[str] = field(default_factory=Counter[str])
    groups: set[Group] = field(default_factory=set[Group])
    namespaces: set[str | None] = field(default_factory=set[str | None])
    """The namespaces of all data that the plan touches."""

    @property
    def empty(self) -> bool:
        return not (self.removed_memories or self.dropped or self.sessions)


def evidence_messages(memory: LineageMemory, versions: Sequence[StoredMemory] = ()) -> list[Cited]:
    """Return the messages cited as evidence by a memory or by the given versions of it."""
    about = memory.versions[-1].record
    pieces = [piece for version in versions or memory.versions for piece in evidence_of(version.record)]
    pieces += [piece for _, piece in memory.pieces] if not versions else []
    cited = [(piece.session_id, message) for piece in pieces for message in piece.message_ids]
    cited += [(each.record.session_id, message) for each in versions or memory.versions for message in each.record.extracted_from or ()]
    return list(
        dict.fromkeys((SessionRef(session, about.namespace, about.user_id), name) for session, name in cited if session is not None)
    )


class Planner:
    def __init__(self, targets: Targets, others: Sequence[LineageMemory], sessions: Sequence[SessionCopy]) -> None:
        """`others` are the owner's other facts. `sessions` may repeat the targets."""
        self._targets = targets
        self._others = others
        self._sessions = sessions
        self._facts = [content(chosen.memory.versions[-1].record.text) for chosen in targets.facts]
        self.plan = Plan()

    def make(self) -> Plan:
        for chosen in self._targets.facts:
            self._take_fact(chosen)
        for memory in self._targets.turns.values():
            self._take_turn(memory)
        for memory in self._others:
            self._look_at(memory)
        self.plan.quoting += [chosen.memory for chosen in self.plan.dropped]
        for memory in (*self.plan.removed_memories.values(), *self.plan.quoting):
            self.plan.namespaces.add(memory.versions[-1].record.namespace)
        for copy in self._sessions:
            self._take_from_session(copy)
        return self.plan

    def _take_fact(self, chosen: Chosen) -> None:
        record = (chosen.versions or chosen.memory.versions)[-1].record
        self._note(record)
        self.plan.matches.append(ForgetMatch(kind="fact", id=record.id, text=record.text, why=chosen.why, session_id=record.session_id))
        self.plan.counts["facts"] += 1
        if chosen.versions:
            self.plan.dropped.append(chosen)
        else:
            self.plan.removed_memories[chosen.memory.mid] = chosen.memory

    def _take_turn(self, memory: LineageMemory) -> None:
        self.plan.removed_memories[memory.mid] = memory
        record = memory.versions[-1].record
        if memory.now is None:
            return
        self._note(record)
        why = next((why for cited in evidence_messages(memory) if (why := self._targets.messages.get(cited))), "it states the same")
        self.plan.matches.append(ForgetMatch(kind="message", id=record.id, text=record.text, why=why, session_id=record.session_id))
        self.plan.counts["messages"] += 1

    def _look_at(self, memory: LineageMemory) -> None:
        """Mark a fact for deletion, or for cleanup if it quotes deleted messages."""
        cited = evidence_messages(memory)
        if memory.mid in self.plan.removed_memories or self._targets.messages.keys().isdisjoint(cited):
            return
        text = memory.versions[-1].record.text
        if self._targets.messages.keys() >= set(cited) and shared(self._targets.values, text):
            self._take_fact(Chosen(memory, "it was made only from deleted data"))
        else:
            self.plan.quoting.append(memory)

    def clean_piece(self, memory: LineageMemory, piece: Evidence) -> Evidence:
        """Return the evidence, minus any quote that must be forgotten."""
        about = memory.versions[-1].record
        ref = SessionRef(piece.session_id or "", about.namespace, about.user_id)
        cites_removed = any((ref, message) in self._targets.messages for message in piece.message_ids)
        return piece.model_copy(update={"quote": None}) if cites_removed or (piece.quote and self.states(piece.quote)) else piece

    def states(self, text: str) -> bool:
        """True if a text matches the subject or contains a deleted fact."""
        subject, owner = self._targets.subject, self._targets.owner.user_id
        return any(coverage(terms, text) == 1.0 for terms in self._facts) or (
            subject is not None and any(states(subject, part, owner=owner) for part in sentences(text))
        )

    def covers(self, record: MemoryRecord) -> bool:
        """True if a proposed memory states the subject or a deleted fact, or cites deleted data."""
        pieces = evidence_of(record)
        cited = [(piece.session_id, message) for piece in pieces for message in piece.message_ids]
        cited += [(record.session_id, message) for message in record.extracted_from or ()]
        messages = {(SessionRef(session or "", record.namespace, record.user_id), message) for session, message in cited}
        facts = {chosen.memory.versions[-1].record.id for chosen in self._targets.facts if not chosen.versions}
        is_based = not messages.isdisjoint(self._targets.messages) or any(piece.memory_id in facts for piece in pieces)
        return is_based or self.states(record.text)

    def _take_from_session(self, copy: SessionCopy) -> None:
        removed_messages = {message: why for (ref, message), why in self._targets.messages.items() if ref == copy.ref}
        entries: dict[str, str] = {}
        fewer = 0
        for entry in copy.entries:
            message = entry.stored.message
            if message.id in removed_messages:
                # A message with other fields, such as a tool call, keeps its place but loses its text.
                entries[entry.number] = entry.emptied() if message.own_fields else ""
                fewer -= entry.stored.tokens
                why, name = removed_messages[message.id], copy.ref.session_id
                self.plan.matches.append(ForgetMatch(kind="session_message", id=message.id, text=message.content, why=why, session_id=name))
                self.plan.counts["session_messages"] += 1
        change: dict[str, Any] = {
            "sid": copy.sid,
            "epoch": copy.epoch,
            "version": copy.version,
            "live": copy.live,
            "entries": entries,
            "fewer_tokens": fewer,
            "summary": self._take_summary(copy, removed_messages),
        }
        # If anything is removed from a session, all its journals are fenced, because a worker may be reading them.
        change["journals"] = [_journal(journal, removed_messages) for journal in copy.journals]
        change |= self._own(copy)
        if any(map(change.get, ("entries", "own", "memories", "summary"))) or any(journal["entries"] for journal in change["journals"]):
            self.plan.sessions.append(change)
            self.plan.namespaces.add(copy.ref.namespace)
            self.plan.groups.add(Group(copy.ref.namespace, copy.ref.user_id, copy.ref.session_id, MemoryTypeEnum.MESSAGE.value))

    def _own(self, copy: SessionCopy) -> dict[str, Any]:
        """Return script arguments that remove memories from a session and its journal."""
        ids = {version.record.id for memory in self.plan.removed_memories.values() for version in memory.versions}
        subject, owner = self._targets.subject, self._targets.owner.user_id

        def goes(record: Mapping[str, Any]) -> bool:
            text, slot = str(record["text"]), record.get("slot")
            return record["id"] in ids or (
                subject is not None and any(states(subject, part, slot=slot, owner=owner) for part in sentences(text))
            )

        left = [record for record in copy.memories if not goes(record)]
        going = {str(record["id"]): record for record in [*copy.memories, *copy.own.values()] if goes(record)}
        for name in going.keys() - {match.id for match in self.plan.matches}:
            why, text = "it is a memory in the session", str(going[name]["text"])
            self.plan.matches.append(ForgetMatch(kind="fact", id=name, text=text, why=why, session_id=copy.ref.session_id))
            self.plan.counts["facts"] += 1
        own = {"own": [name for name, record in copy.own.items() if goes(record)]}
        return own | ({"memories": json.dumps(left, ensure_ascii=False, separators=(",", ":"))} if len(left) < len(copy.memories) else {})

    def _take_summary(self, copy: SessionCopy, removed_messages: Collection[str]) -> bool:
        """Plan to delete a session's summary if it may contain deleted data. Return True if so."""
        message_ids = {entry.stored.message.id for entry in copy.entries}
        if copy.context is None or not (set(removed_messages) - message_ids or any(self.states(part) for part in sentences(copy.context))):
            return False
        name, why = copy.ref.session_id, "it was made from deleted data"
        self.plan.counts["summaries"] += 1
        self.plan.matches.append(ForgetMatch(kind="summary", id=name, text=copy.context, why=why, session_id=name))
        return True

    def _note(self, record: MemoryRecord) -> None:
        self.plan.groups.add(Group(record.namespace, record.user_id, record.session_id, str(record.memory_type)))


def _journal(journal: JournalCopy, removed_messages: Collection[str]) -> dict[str, Any]:
    entries = [each for each in journal.entries if each.stored.message.id in removed_messages]
    requests = {each.number: True for each in entries if subject_to_forget(each.stored.message) is not None}
    return {"name": journal.name, "epoch": journal.epoch, "entries": {each.number: each.emptied() for each in entries}, "asked": requests}
