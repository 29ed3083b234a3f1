"""Plan what to remove when something is forgotten: memories, evidence, messages and summaries (pure)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from agent_memory.features.memories.records import StoredMemory, evidence_of
from agent_memory.features.privacy.forget.content_words import content, content_forms, coverage, forms
from agent_memory.features.privacy.forget.matching import Fit, Subject, fit, rests_on, statements, strike, subject_of
from agent_memory.features.privacy.forget.sessions import SessionCopy
from agent_memory.features.privacy.lineage import LineageMemory
from agent_memory.foundation.core.feature import Group
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.text.extractive_summary import Statement, layout, statements_of_summary
from agent_memory.foundation.text.normalization import is_turn
from agent_memory.foundation.text.passages.sentences import split_sentences
from agent_memory.foundation.text.summary_subjects import HEAD
from agent_memory.foundation.text.terms import carries_information
from agent_memory_client.models import Evidence, ForgetMatch, MemoryRecord

Cited = tuple[SessionRef, str]


@dataclass(slots=True)
class Chosen:
    """A matching memory; with `versions`, only these former versions match."""

    memory: LineageMemory
    why: str
    versions: Sequence[StoredMemory] = ()


@dataclass(slots=True)
class Read:
    """Matching facts and messages, other facts that cite the same messages, and the sessions."""

    facts: list[Chosen]
    turns: list[LineageMemory]
    others: list[LineageMemory]
    sessions: list[SessionCopy]


@dataclass(slots=True)
class Struck:
    """What is `left` of a message's text (None: it goes), and why."""

    text: str
    left: str | None
    why: str


@dataclass(slots=True)
class Plan:
    gone: dict[str, LineageMemory] = field(default_factory=dict[str, LineageMemory])
    dropped: list[Chosen] = field(default_factory=list[Chosen])
    rewritten: list[tuple[LineageMemory, str]] = field(default_factory=list[tuple[LineageMemory, str]])
    quotes: list[tuple[LineageMemory, Struck]] = field(default_factory=list[tuple[LineageMemory, Struck]])
    sessions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    matches: list[ForgetMatch] = field(default_factory=list[ForgetMatch])
    counts: Counter[str] = field(default_factory=Counter[str])
    groups: set[Group] = field(default_factory=set[Group])

    @property
    def empty(self) -> bool:
        return not (self.gone or self.dropped or self.rewritten or self.sessions)


def cited_messages(about: MemoryRecord, pieces: Sequence[Evidence]) -> list[Cited]:
    return [
        (SessionRef(piece.session_id, about.namespace, about.user_id), message)
        for piece in pieces
        if piece.session_id is not None
        for message in piece.message_ids
    ]


def evidence_messages(memory: LineageMemory) -> list[Cited]:
    """Return all messages that any version of a memory rests on."""
    own = [piece for version in memory.versions for piece in evidence_of(version.record)]
    about = memory.versions[-1].record
    cited = cited_messages(about, [*own, *(piece for _, piece in memory.pieces)])
    turns = [
        (SessionRef(version.record.session_id, about.namespace, about.user_id), message)
        for version in memory.versions
        if version.record.session_id is not None
        for message in version.record.extracted_from or ()
    ]
    return list(dict.fromkeys([*cited, *turns]))


class Planner:
    """Makes a plan. `subjects` are matched by words; `whole` messages go whatever they say."""

    def __init__(self, subjects: Sequence[Subject], read: Read, owner: str | None, *, whole: Collection[Cited] = ()) -> None:
        self._subjects = list(subjects)
        self._read = read
        self._owner = owner
        self._whole = set(whole)
        self._facts_of: defaultdict[Cited, list[Subject]] = defaultdict(list)
        self._others_of: defaultdict[Cited, list[str]] = defaultdict(list)
        self._struck: dict[Cited, Struck] | None = None
        self._chosen = {chosen.memory.mid for chosen in read.facts}
        self.plan = Plan()

    def make(self, count: Callable[[str], int]) -> Plan:
        """Return the plan; `count` counts the tokens of a text."""
        for chosen in self._read.facts:
            self._take_fact(chosen)
        for memory in self._read.others:
            if memory.mid not in self._chosen:
                for cited in evidence_messages(memory):
                    self._others_of[cited].append(memory.versions[-1].record.text)
        self._take_turns()
        self._take_orphans()
        self._clean_quotes()
        for copy in self._read.sessions:
            self._take_from_session(copy, count)
        return self.plan

    def _take_fact(self, chosen: Chosen) -> None:
        memory = chosen.memory
        for version in chosen.versions or memory.versions:
            says = subject_of(version.record.text, statement=True)
            for cited in evidence_messages(memory):
                self._facts_of[cited].append(says)
        record = (chosen.versions or memory.versions)[-1].record
        self._note(record)
        self.plan.matches.append(ForgetMatch(kind="fact", id=record.id, text=record.text, why=chosen.why, session_id=record.session_id))
        self.plan.counts["facts"] += 1
        if chosen.versions:
            self.plan.dropped.append(chosen)
        else:
            self.plan.gone[memory.mid] = memory

    def _take_turns(self) -> None:
        for memory in self._read.turns:
            if memory.mid in self.plan.gone or memory.now is None:
                if memory.mid not in self.plan.gone and self._struck_of(memory, memory.versions[-1].record.text) is not None:
                    self.plan.gone[memory.mid] = memory
                continue
            record = memory.now.record
            struck = self._struck_of(memory, record.text)
            if struck is None:
                continue
            self._note(record)
            match = ForgetMatch(
                kind="message", id=record.id, text=record.text, why=struck.why, session_id=record.session_id, left=struck.left
            )
            self.plan.matches.append(match)
            if struck.left is None:
                self.plan.gone[memory.mid] = memory
                self.plan.counts["messages"] += 1
            else:
                self.plan.rewritten.append((memory, struck.left))
                self.plan.counts["sentences"] += 1

    def _struck_of(self, memory: LineageMemory, text: str) -> Struck | None:
        messages = evidence_messages(memory)
        return self.struck(text, messages)

    def struck(self, text: str, messages: Sequence[Cited]) -> Struck | None:
        """Return what becomes of a text of these messages; None if it does not match."""
        if self._whole.intersection(messages):
            return Struck(text, None, "named by its id")
        made = [says for cited in messages for says in self._facts_of.get(cited, ())]
        others = [other for cited in messages for other in self._others_of.get(cited, ())]
        left = strike(text, self._subjects, others, owner=self._owner) if self._subjects else text
        if left != text:
            return Struck(text, left, "it says this" if left is None else "a sentence of it says this")
        if not made:
            return None
        left = strike(text, made, others, owner=self._owner)
        return Struck(text, _without_nearest(text, made, others) if left == text else left, "a fact that goes rests on it")

    def _take_orphans(self) -> None:
        if not self._subjects:
            return
        gone = dict(self._struck_messages().items())
        for memory in self._read.others:
            if memory.mid in self.plan.gone or memory.mid in self._chosen or is_turn(memory.versions[-1].record) or memory.now is None:
                continue
            cited = evidence_messages(memory)
            if not cited or not all(one in gone for one in cited):
                continue
            text = memory.now.record.text
            if all(gone[one].left is None or not rests_on(text, gone[one].left or "") for one in cited) and any(
                rests_on(text, _difference(gone[one])) for one in cited
            ):
                self._take_fact(Chosen(memory, "it was made of what goes, and of nothing else"))

    def _struck_messages(self) -> dict[Cited, Struck]:
        struck: dict[Cited, Struck] = {}
        for memory in self._read.turns:
            record = memory.versions[-1].record
            if (what := self._struck_of(memory, record.text)) is not None:
                struck |= dict.fromkeys(evidence_messages(memory), what)
        for copy in self._read.sessions:
            for entry in copy.entries:
                cited = (copy.ref, entry.stored.message.id)
                if (what := self.struck(entry.stored.message.content, [cited])) is not None:
                    struck.setdefault(cited, what)
        return struck

    def _clean_quotes(self) -> None:
        changed = self._changed_mids()
        for memory in [*self._read.others, *(chosen.memory for chosen in self._read.facts if chosen.versions)]:
            if memory.mid in changed:
                continue
            quoted = [piece.quote for version in memory.versions for piece in version.record.evidence or () if piece.quote]
            quoted += [piece.quote for _, piece in memory.pieces if piece.quote]
            if any(self.struck(quote, evidence_messages(memory)) is not None for quote in quoted):
                self.plan.quotes.append((memory, Struck("", None, "")))

    def _changed_mids(self) -> set[str]:
        return {*self.plan.gone, *(memory.mid for memory, _ in self.plan.rewritten)}

    def clean_piece(self, memory: LineageMemory, piece: Evidence) -> Evidence:
        """Return a piece of evidence whose quote has no removed text."""
        if piece.quote is None or (struck := self.struck(piece.quote, evidence_messages(memory))) is None:
            return piece
        return piece.model_copy(update={"quote": struck.left})

    def _take_from_session(self, copy: SessionCopy, count: Callable[[str], int]) -> None:
        change: dict[str, Any] = {"sid": copy.sid, "epoch": copy.epoch, "version": copy.version, "live": copy.live, "entries": {}}
        change |= {"fewer_tokens": 0, "summary": None, "memories": None, "own": [], "journals": []}
        struck_ids: set[str] = set()
        for entry in copy.entries:
            message = entry.stored.message
            struck = self.struck(message.content, [(copy.ref, message.id)])
            if struck is None:
                continue
            struck_ids.add(message.id)
            # A tool call keeps its place without its text.
            stays = struck.left is not None or bool(message.own_fields)
            tokens = count(struck.left or "") if stays else 0
            change["entries"][entry.number] = entry.with_text(struck.left, tokens) if stays else ""
            change["fewer_tokens"] -= entry.stored.tokens - tokens
            self.plan.matches.append(
                ForgetMatch(
                    kind="session_message",
                    id=message.id,
                    text=message.content,
                    why=struck.why,
                    session_id=copy.ref.session_id,
                    left=struck.left,
                )
            )
            self.plan.counts["session_messages"] += 1
        for journal in copy.journals:
            entries = {
                entry.number: entry.with_text(struck.left, count(struck.left or ""), waits=struck.left is not None)
                for entry in journal.entries
                if (struck := self.struck(entry.stored.message.content, [(copy.ref, entry.stored.message.id)])) is not None
            }
            if entries:
                change["journals"].append({"name": journal.name, "epoch": journal.epoch, "entries": entries})
        self._take_own(copy, change)
        self._take_summary(copy, change, struck_ids, count)
        if any(change[name] for name in ("entries", "own", "journals")) or any(
            change[name] is not None for name in ("memories", "summary")
        ):
            self._fence(copy, change)
            self.plan.sessions.append({name: value for name, value in change.items() if value is not None})

    def _fence(self, copy: SessionCopy, change: dict[str, Any]) -> None:
        """Fence every journal of a session that loses something: a worker may be reading it."""
        named = {journal["name"] for journal in change["journals"]}
        change["journals"] += [{"name": each.name, "epoch": each.epoch, "entries": {}} for each in copy.journals if each.name not in named]

    def _take_own(self, copy: SessionCopy, change: dict[str, Any]) -> None:
        ids = {version.record.id for memory in self.plan.gone.values() for version in memory.versions}

        def goes(record: Mapping[str, Any]) -> bool:
            return record["id"] in ids or any(
                fit(subject, str(record["text"]), slot=record.get("slot"), owner=self._owner) >= Fit.MEANT for subject in self._subjects
            )

        left = [record for record in copy.memories if not goes(record)]
        if len(left) < len(copy.memories):
            change["memories"] = json.dumps(left, ensure_ascii=False, separators=(",", ":"))
        change["own"] = [name for name, record in copy.own.items() if goes(record)]
        noted = {match.id for match in self.plan.matches}
        for record in {str(record["id"]): record for record in [*copy.memories, *copy.own.values()] if goes(record)}.values():
            if record["id"] not in noted:
                why, text = "the session holds it as a memory", str(record["text"])
                self.plan.matches.append(ForgetMatch(kind="fact", id=record["id"], text=text, why=why, session_id=copy.ref.session_id))
                self.plan.counts["facts"] += 1

    def _take_summary(self, copy: SessionCopy, change: dict[str, Any], struck: Collection[str], count: Callable[[str], int]) -> None:
        if copy.context is None:
            return
        cited = {message for ref, message in [*self._whole, *self._facts_of] if ref == copy.ref}
        changed = self._changed_mids()
        cited |= {
            message for memory in self._read.turns if memory.mid in changed for ref, message in evidence_messages(memory) if ref == copy.ref
        }
        shown = {entry.stored.message.id for entry in copy.entries}
        says = list(dict.fromkeys([*self._subjects, *(says for made in self._facts_of.values() for says in made)]))
        tells = any(subject.terms and coverage(subject.terms, part) == 1.0 for subject in says for part in statements(copy.context))
        if tells or cited - shown - set(struck):
            if self._struck is None:
                self._struck = self._struck_messages()
            gone = [_difference(what) for cited, what in self._struck.items() if cited[0] == copy.ref]
            left = without_statements(copy.context, [subject.terms for subject in says], gone)
            change["summary"] = {"text": left, "tokens": count(left)}
            self.plan.counts["summaries"] += 1
            why = "it tells of this" if tells else "it was made of what goes"
            ref = copy.ref
            self.plan.matches.append(
                ForgetMatch(kind="summary", id=ref.session_id, text=copy.context, why=why, session_id=ref.session_id, left=left or None)
            )

    def _note(self, record: MemoryRecord) -> None:
        self.plan.groups.add(Group(record.namespace, record.user_id, record.session_id, str(record.memory_type)))


def _difference(struck: Struck) -> str:
    left = struck.left or ""
    return " ".join(part for part in statements(struck.text) if part.strip() not in left)


def _without_nearest(text: str, made: Sequence[Subject], others: Collection[str]) -> str | None:
    """Return a message without the sentence nearest to a paraphrased fact; None if all of it goes."""
    parts = [part for part in statements(text) if carries_information(part)]
    if len(parts) <= 1:
        return text if others and any(rests_on(other, text) for other in others) and not _shares(made, text) else None
    shares = [max(coverage(says.terms, part) for says in made) for part in parts]
    if max(shares) > 0:
        goes = {part for part, share in zip(parts, shares, strict=True) if share == max(shares)}
    else:
        goes = {part for part in parts if not any(rests_on(other, part) for other in others)}
    left = "".join(part for part in statements(text) if part not in goes).strip()
    return left if left and carries_information(left) else None


def _shares(made: Sequence[Subject], text: str) -> bool:
    return any(coverage(says.terms, text) > 0 for says in made)


def names_different_things(texts: Iterable[str], named: Subject) -> bool:
    """True if different things are said about a bare name ("Anna"). Half of the words shared is one thing."""
    first: set[str] | None = None
    for text in texts:
        if coverage(named.terms, text) < 1.0:
            continue
        said = set(content(text)).difference(named.terms)
        if first is None:
            first = said
        elif said and first and len(said & first) * 2 < min(len(said), len(first)):
            return True
        else:
            first |= said
    return False


_FROM_IT = 0.5


def without_statements(summary: str, subjects: Sequence[Sequence[str]], gone: Collection[str]) -> str:
    """Return an extractive summary without statements about a subject or mostly from removed messages.

    "" if nothing is left, and for a summary written by a model. `subjects` are content words, `gone` removed texts.
    """
    statements = statements_of_summary(summary, split_sentences, datetime.now(UTC))
    if not all(each.speaker for each in statements):
        return ""
    said = [each for each in statements if each.speaker != HEAD]
    left = [each for each in said if not _tells(each.text, subjects, gone)]
    named = _words_left([each.text for each in statements if each.speaker == HEAD], subjects, gone)
    lines = [layout(_dated(left)), f"{HEAD}: {named}" if named else ""]
    return "\n".join(line for line in lines if line)


def _tells(text: str, subjects: Sequence[Sequence[str]], gone: Collection[str]) -> bool:
    if any(terms and coverage(terms, text) == 1.0 for terms in subjects):
        return True
    words = list(dict.fromkeys(content(text)))
    return any(coverage(words, part) >= _FROM_IT for part in gone)


def _words_left(lines: Sequence[str], subjects: Sequence[Sequence[str]], gone: Collection[str]) -> str:
    of_subjects = " ".join(term for terms in subjects for term in terms)
    taken = frozenset().union(*(content_forms(part) for part in (*gone, of_subjects)))
    return " ".join(word for line in lines for word in line.split() if all(taken.isdisjoint(forms(term)) for term in content(word)))


def _dated(statements: Sequence[Statement]) -> list[Statement]:
    return [replace(each, at=each.at.replace(hour=0, minute=0, second=0, microsecond=0)) for each in statements]
