"""Forget what a user names: find it, show it, remove it in one step, and undo it for a while.

Texts are compared in threads: thousands of sentences take seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ulid import ULID

from agent_memory.features.memories.changes.store import ChangeStore
from agent_memory.features.memories.records import StoredMemory, message_memory_id
from agent_memory.features.memories.upkeep.followers import MemoryFollowers
from agent_memory.features.memories.upkeep.scan import Selection
from agent_memory.features.privacy.forget.candidates import CandidateFinder, facts_of
from agent_memory.features.privacy.forget.content_words import content
from agent_memory.features.privacy.forget.matching import Fit, Subject, fit, says_together, statements, subject_of
from agent_memory.features.privacy.forget.plan import Chosen, Cited, Plan, Planner, Read, evidence_messages, names_different_things
from agent_memory.features.privacy.forget.sessions import SessionCopy, SessionReader
from agent_memory.features.privacy.forget.store import ForgetStore
from agent_memory.features.privacy.forget.word_lists import OWN_THINGS
from agent_memory.features.privacy.lineage import LineageMemory, LineageStore
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.api.principals import list_place_of, writing
from agent_memory.foundation.core.errors import BadInput, Conflict, Forbidden, NotFound
from agent_memory.foundation.core.feature import Purger
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.normalization import is_turn
from agent_memory_client.models import ForgetMatch, ForgetMemoryRequest, ForgetMemoryResponse, ForgetUndoResponse, MemoryRecord

_ATTEMPTS = 8
_MOST_PROPOSALS = 1000


@dataclass(slots=True)
class Whose:
    namespace: str | None
    user_id: str | None
    session_id: str | None

    @property
    def selection(self) -> Selection:
        return Selection.of(self.namespace, self.user_id, self.session_id)


@dataclass(slots=True)
class Meant:
    """The matching memories, and `possible` matches to show."""

    whose: Whose
    subjects: list[Subject] = field(default_factory=list[Subject])
    facts: list[Chosen] = field(default_factory=list[Chosen])
    turns: list[LineageMemory] = field(default_factory=list[LineageMemory])
    sessions: list[SessionCopy] = field(default_factory=list[SessionCopy])
    whole: list[Cited] = field(default_factory=list[Cited])
    possible: list[ForgetMatch] = field(default_factory=list[ForgetMatch])
    ambiguous: bool = False

    @property
    def current(self) -> list[StoredMemory]:
        """The current versions of matching memories."""
        memories = [*(chosen.memory for chosen in self.facts), *self.turns]
        return [memory.now for memory in memories if memory.now is not None]


class ForgetService:
    def __init__(
        self,
        store: ForgetStore,
        finder: CandidateFinder,
        lineage: LineageStore,
        reader: SessionReader,
        sessions: SessionStore,
        changes: ChangeStore,
        counter: TokenCounter,
        purgers: Sequence[Purger],
        followers: MemoryFollowers,
    ) -> None:
        self._store = store
        self._finder = finder
        self._lineage = lineage
        self._reader = reader
        self._sessions = sessions
        self._changes = changes
        self._counter = counter
        self._purgers = purgers
        self._followers = followers

    async def forget(
        self, scope: Scope, request: ForgetMemoryRequest, *, only_if: Callable[[Sequence[StoredMemory]], bool] | None = None
    ) -> ForgetMemoryResponse:
        """Forget what a request means, or show it (`dry_run`); remove nothing if it is ambiguous.

        With `only_if`, remove nothing unless it is true of the matching memories.
        Raises BadInput and Forbidden without a clear owner, and Conflict if the memories keep changing.
        """
        writing(scope)
        whose = _whose(scope, request)
        for _ in range(_ATTEMPTS):
            meant = await (self._by_ids if request.ids is not None else self._by_text)(scope, request, whose)
            if only_if is not None and not only_if(meant.current):
                return ForgetMemoryResponse(matches=[])
            planner = await self._planner(scope, meant)
            plan = await asyncio.to_thread(planner.make, self._counter.count)
            ambiguous = meant.ambiguous or (plan.empty and bool(meant.possible))
            matches = [*plan.matches, *meant.possible]
            if meant.ambiguous:
                matches = [match.model_copy(update={"clear": False}) for match in matches]
            if request.dry_run or ambiguous or plan.empty:
                return ForgetMemoryResponse(matches=matches, ambiguous=ambiguous, dry_run=request.dry_run)
            name = str(ULID())
            await self._purge(scope, plan)
            proposals = await self._proposals(scope, meant)
            owner = (whose.namespace, whose.user_id)
            until = await self._store.take(scope, owner, name, plan, planner.clean_piece, proposals)
            if until is False:
                continue  # Somebody changed something of it meanwhile: it is looked at anew.
            await self._settle(scope, plan)
            moment = None if until is None or until is True else until
            return ForgetMemoryResponse(matches=matches, forgotten=dict(plan.counts), receipt_id=name, undo_until=moment)
        raise Conflict("what is to be forgotten is being changed all the time: try again")

    async def forget_said(self, scope: Scope, ref: SessionRef, message_id: str, subject: Subject) -> ForgetMemoryResponse | None:
        """Forget what a user asked for in a session, with the request itself, in one step.

        None if nothing matches or it is ambiguous.
        """
        for _ in range(_ATTEMPTS):
            meant = await self._said(scope, ref, message_id, subject)
            if meant is None:
                return None
            meant.whole.append((ref, message_id))
            planner = await self._planner(scope, meant)
            plan = await asyncio.to_thread(planner.make, self._counter.count)
            if not (plan.gone or plan.dropped or plan.rewritten) and plan.counts["session_messages"] <= 1:
                return None
            name, owner = str(ULID()), (ref.namespace, ref.user_id)
            await self._purge(scope, plan)
            until = await self._store.take(scope, owner, name, plan, planner.clean_piece, await self._proposals(scope, meant))
            if until is not False:
                await self._settle(scope, plan)
                return ForgetMemoryResponse(matches=plan.matches, forgotten=dict(plan.counts), receipt_id=name)
        raise Conflict("what is to be forgotten is being changed all the time")

    async def named(self, scope: Scope, ref: SessionRef, message_id: str, subject: Subject) -> list[StoredMemory]:
        """Return the memories a request in a session means; none if ambiguous."""
        meant = await self._said(scope, ref, message_id, subject)
        return [] if meant is None else meant.current

    async def _said(self, scope: Scope, ref: SessionRef, message_id: str, subject: Subject) -> Meant | None:
        if ref.user_id is None:
            return None
        whose = Whose(ref.namespace, ref.user_id, None)
        sessions = await self._reader.of_user(scope, ref.namespace, ref.user_id, None)
        if subject.deictic:
            last = await asyncio.to_thread(_said_before, sessions, ref, message_id)
            if last is None:
                return None
            subject = last
        meant = await self._mean(scope, whose, subject, sessions)
        return None if meant.ambiguous else meant

    async def undo(self, scope: Scope, receipt_id: str) -> ForgetUndoResponse:
        """Restore what was forgotten, unless something newer replaced it. Raises NotFound after the undo time."""
        writing(scope)
        receipt = await self._store.load(scope, receipt_id)
        restored = None if receipt is None else await self._store.undo(scope, receipt)
        if restored is None:
            raise NotFound(f"no receipt {receipt_id} found: it cannot be undone any more, or never could")
        memories, messages, newer = restored
        return ForgetUndoResponse(receipt_id=receipt_id, restored={"memories": memories, "messages": messages, "kept_newer": newer})

    async def _purge(self, scope: Scope, plan: Plan) -> None:
        for purger in self._purgers:
            await purger.purge_groups(scope, plan.groups, dry_run=False)

    async def _settle(self, scope: Scope, plan: Plan) -> None:
        await self._purge(scope, plan)
        changed = (*(chosen.memory for chosen in plan.dropped), *(memory for memory, _ in plan.rewritten))
        await self._followers.follow(list(dict.fromkeys([*plan.gone, *(memory.mid for memory in changed)])))

    async def _by_text(self, scope: Scope, request: ForgetMemoryRequest, whose: Whose) -> Meant:
        assert request.text is not None
        assert whose.user_id is not None
        asked = memory_request(request.text)
        forgets = asked is not None and asked.kind == "forget"
        subject = subject_of(asked.subject, about=asked.about) if asked is not None and forgets else subject_of(request.text)
        sessions = await self._reader.of_user(scope, whose.namespace, whose.user_id, whose.session_id)
        if subject.deictic:
            subject = await asyncio.to_thread(_said_last, sessions, whose.session_id)
        return await self._mean(scope, whose, subject, sessions)

    async def _mean(self, scope: Scope, whose: Whose, subject: Subject, sessions: list[SessionCopy]) -> Meant:
        meant = Meant(whose, [subject], sessions=sessions)
        memories, near = await self._finder.find(scope, whose.selection, subject.text)
        for memory in memories:
            await asyncio.to_thread(self._judge, meant, subject, memory, memory.mid in near)
        if _is_bare_name(subject):
            said = [version.record.text for memory in memories for version in memory.versions[-1:]]
            said += [entry.stored.message.content for copy in sessions for entry in copy.entries]
            sentences = (text for each in said for text in statements(each))
            meant.ambiguous = await asyncio.to_thread(names_different_things, sentences, subject)
        return meant

    def _judge(self, meant: Meant, subject: Subject, memory: LineageMemory, near: bool) -> None:
        fits = [_fit(subject, version.record, meant.whose.user_id) for version in memory.versions]
        newest = memory.versions[-1].record
        best = max(fits)
        if best >= Fit.MEANT:
            if is_turn(newest):
                meant.turns.append(memory)
                return
            former = [version for version, each in zip(memory.versions, fits, strict=True) if each >= Fit.MEANT]
            whole = fits[-1] >= Fit.MEANT or (memory.now is None and len(former) == len(memory.versions))
            why = "it says the same" if best is Fit.SAME else "it says this"
            meant.facts.append(Chosen(memory, why if whole else "a former version of it says this", () if whole else _past(memory, former)))
        elif memory.now is not None and (best is Fit.POSSIBLE or near):
            kind = "message" if is_turn(newest) else "fact"
            why = "it has words of it" if best is Fit.POSSIBLE else "it is near in meaning"
            meant.possible.append(
                ForgetMatch(kind=kind, id=newest.id, text=newest.text, why=why, clear=False, session_id=newest.session_id)
            )

    async def _by_ids(self, scope: Scope, request: ForgetMemoryRequest, whose: Whose) -> Meant:
        ids = list(dict.fromkeys(request.ids or ()))
        memories = await self._resolve(scope, [self._lineage.mid(scope, memory_id) for memory_id in ids])
        memories = [memory for memory in memories if _is_of(whose, memory.versions[-1].record)]
        users = {memory.versions[-1].record.user_id for memory in memories}
        if whose.user_id is None and len(users) > 1:
            raise BadInput("these memories belong to several users: say which one is meant", field="user_id")
        whose.user_id = whose.user_id or next(iter(users), None)
        meant = Meant(whose)
        named = {version.record.id for memory in memories for version in memory.versions}
        if whose.user_id is not None:
            meant.sessions = await self._reader.of_user(scope, whose.namespace, whose.user_id, whose.session_id)
        for memory in memories:
            if is_turn(memory.versions[-1].record):
                meant.turns.append(memory)
                meant.whole += evidence_messages(memory)
            else:
                meant.facts.append(Chosen(memory, "named by its id"))
        meant.whole += [
            (copy.ref, entry.stored.message.id)
            for copy in meant.sessions
            for entry in copy.entries
            if entry.stored.message.id in ids and entry.stored.message.id not in named
        ]
        return meant

    async def _resolve(self, scope: Scope, mids: Sequence[str]) -> list[LineageMemory]:
        memories = await self._lineage.read(scope, mids)
        known = {memory.mid for memory in memories if memory.now is not None}
        names = await self._lineage.targets([mid for mid in mids if mid not in known])
        return [*(memory for memory in memories if memory.mid not in names), *await self._lineage.read(scope, list(names.values()))]

    async def _planner(self, scope: Scope, meant: Meant) -> Planner:
        cited = [*meant.whole, *(one for chosen in meant.facts for one in evidence_messages(chosen.memory))]
        cited += [one for memory in meant.turns for one in evidence_messages(memory)]
        for copy in meant.sessions:
            cited += await asyncio.to_thread(_messages_that_say, copy, meant.subjects, meant.whose.user_id)
        cited = [one for one in dict.fromkeys(cited) if scope.reaches(one[0].namespace, one[0].user_id)]
        mids = [self._lineage.mid(scope, message_memory_id(ref, message)) for ref, message in cited]
        have = {memory.mid for memory in meant.turns} | {chosen.memory.mid for chosen in meant.facts}
        turns = [
            memory for memory in await self._lineage.read(scope, mids) if memory.mid not in have and is_turn(memory.versions[-1].record)
        ]
        others = await self._others(scope, meant.whose, have) if cited else []
        sessions = await self._with_cited(scope, meant.sessions, {ref for ref, _ in cited})
        read = Read(meant.facts, [*meant.turns, *turns], others, sessions)
        return Planner(meant.subjects, read, meant.whose.user_id, whole=meant.whole)

    async def _others(self, scope: Scope, whose: Whose, but: set[str]) -> list[LineageMemory]:
        """Return all other facts of the user: citing facts can only be found by reading them."""
        others: dict[str, LineageMemory] = {}
        async for page in self._lineage.pages(scope, facts_of(whose.namespace, whose.user_id)):
            others |= {memory.mid: memory for memory in page if memory.mid not in but}
        return list(others.values())

    async def _with_cited(self, scope: Scope, sessions: list[SessionCopy], refs: set[SessionRef]) -> list[SessionCopy]:
        known = {copy.ref for copy in sessions}
        missing = [self._sessions.sid(scope, ref) for ref in refs if ref not in known]
        return [*sessions, *await self._reader.read(scope, missing)]

    async def _proposals(self, scope: Scope, meant: Meant) -> list[str]:
        if meant.whose.user_id is None:
            return []
        wanted = {"st": "proposed", "u": meant.whose.user_id}
        if meant.whose.namespace is not None:
            wanted["ns"] = meant.whose.namespace
        _, names = await self._changes.find_changes(scope, wanted, 0, _MOST_PROPOSALS)
        says = [*meant.subjects, *(subject_of(chosen.memory.versions[-1].record.text, statement=True) for chosen in meant.facts)]
        changes = [change for change in await self._changes.load_changes(scope, names) if change is not None]
        proposals = [(change.id, change.proposal) for change in changes if change.proposal is not None]
        texts = [(name, str(proposal["record"]["text"])) for name, proposal in proposals if "record" in proposal]
        return await asyncio.to_thread(lambda: [each for each, text in texts if _says(says, text, meant.whose.user_id)])


def _whose(scope: Scope, request: ForgetMemoryRequest) -> Whose:
    if scope.agents is not None:
        raise Forbidden("these credentials are limited to some agents: messages belong to no agent, so they forget none")
    namespace, user_id = list_place_of(scope, request.namespace, request.user_id)
    if user_id is None and scope.users is not None and len(scope.users) == 1:
        user_id = next(iter(scope.users))
    if user_id is None and request.text is not None:
        raise BadInput("say whose memories are meant: send the user's id as user_id", field="user_id")
    if namespace is None and scope.namespaces is not None and len(scope.namespaces) == 1:
        namespace = next(iter(scope.namespaces))
    return Whose(namespace, user_id, request.session_id)


def _is_of(whose: Whose, record: MemoryRecord) -> bool:
    return whose.user_id in (None, record.user_id) and whose.namespace in (None, record.namespace)


def _says(subjects: Collection[Subject], text: str, owner: str | None) -> bool:
    return any(fit(subject, text, owner=owner) >= Fit.MEANT for subject in subjects)


def _messages_that_say(copy: SessionCopy, subjects: Collection[Subject], owner: str | None) -> list[Cited]:
    messages = [entry.stored.message for entry in copy.entries]
    return [(copy.ref, message.id) for message in messages if any(_says(subjects, text, owner) for text in statements(message.content))]


def _fit(subject: Subject, record: MemoryRecord, owner: str | None) -> Fit:
    """Return the best match of a memory's sentences, alone or in pairs."""
    parts = statements(record.text)
    single = max((fit(subject, part, slot=record.slot, owner=owner) for part in parts), default=Fit.NO)
    if single >= Fit.MEANT or len(parts) < 2:
        return single
    pairs = [f"{one} {other}" for one, other in pairwise(parts) if says_together(subject, one, other)]
    return max(single, min(max((fit(subject, pair, owner=owner) for pair in pairs), default=Fit.NO), Fit.MEANT))


def _said_before(sessions: Sequence[SessionCopy], ref: SessionRef, message_id: str) -> Subject | None:
    """Resolve "that" in a request: the user's last statement before it."""
    last: Subject | None = None
    for entry in next((copy.entries for copy in sessions if copy.ref == ref), ()):
        message = entry.stored.message
        if message.id == message_id:
            return last
        parts = [part for part in statements(message.content) if content(part)]
        if message.role == "user" and parts and memory_request(message.content) is None:
            last = subject_of(parts[-1], statement=True)
    return None


def _is_bare_name(subject: Subject) -> bool:
    """True if a subject is only a name ("Anna"), not a thing of the user's ("my address")."""
    return not subject.statement and not subject.about and OWN_THINGS.isdisjoint(subject.text.casefold().split())


def _past(memory: LineageMemory, versions: Sequence[StoredMemory]) -> list[StoredMemory]:
    return [version for version in versions if version is not memory.now]


def _said_last(sessions: Sequence[SessionCopy], session_id: str | None) -> Subject:
    """Resolve "that": the user's last statement in a session. Raises BadInput without one."""
    said = [
        entry.stored.message.content
        for copy in sessions
        if session_id is not None and copy.ref.session_id == session_id
        for entry in copy.entries
        if entry.stored.message.role == "user" and memory_request(entry.stored.message.content) is None
    ]
    parts = [part for text in said for part in statements(text) if content(part)]
    if not parts:
        raise BadInput("it does not say what is meant: name it, or send the session_id in which it was said last", field="text")
    return subject_of(parts[-1], statement=True)
