"""Find and delete what a user asks to forget, and restore it on request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from ulid import ULID

from agent_memory.features.memories.changes.store import ChangeStore, proposed_record
from agent_memory.features.memories.records import StoredMemory, is_from_person, message_memory_id, source_of
from agent_memory.features.memories.upkeep.followers import MemoryFollowers
from agent_memory.features.privacy.forget.candidates import CandidateFinder, facts_of
from agent_memory.features.privacy.forget.content_words import content, coverage
from agent_memory.features.privacy.forget.matching import (
    Subject,
    guesses,
    name_different_things,
    repetitions,
    requested,
    sentences,
    states,
    subject_of,
    subject_to_forget,
    values_of,
)
from agent_memory.features.privacy.forget.plan import Chosen, Cited, Plan, Planner, TargetOwner, Targets, evidence_messages
from agent_memory.features.privacy.forget.sessions import SessionCopy, SessionReader
from agent_memory.features.privacy.forget.store import ForgetStore, ForgottenData
from agent_memory.features.privacy.lineage import LineageMemory, LineageStore
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.api.principals import list_place_of, writing
from agent_memory.foundation.core.errors import BadInput, Conflict, Forbidden, NotFound
from agent_memory.foundation.core.feature import ForgetPurger, Group, Purger
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.normalization import is_turn
from agent_memory_client.models import (
    ChangeStateEnum,
    ForgetMatch,
    ForgetMemoryRequest,
    ForgetMemoryResponse,
    ForgettingResponse,
    ForgetUndoResponse,
    ForgottenItem,
    MemoryRecord,
)

_ATTEMPTS = 8
_MOST_PROPOSALS = 1000
# The maximum number of sentences to compare by vector. Each takes a few milliseconds.
_MOST_COMPARED = 64


_CHOSEN = "it was chosen"

Mean = Callable[[], Awaitable[Targets]]


@dataclass(frozen=True, slots=True)
class ForgetService:
    store: ForgetStore
    finder: CandidateFinder
    lineage: LineageStore
    reader: SessionReader
    sessions: SessionStore
    changes: ChangeStore
    purgers: Sequence[Purger]
    followers: MemoryFollowers

    async def forget(self, scope: Scope, request: ForgetMemoryRequest) -> ForgetMemoryResponse:
        """Forget what a request describes, unless it is ambiguous or a dry run.

        Raises BadInput or Forbidden if the owner is unclear, and Conflict if the memories keep
        changing.
        """
        writing(scope)
        owner = _target_owner(scope, request.namespace, request.user_id, request.session_id, by_text=request.text is not None)

        async def mean() -> Targets:
            return await (self._by_text(scope, request, owner) if request.ids is None else self._by_ids(scope, request.ids, owner))

        return await self._carry_out(scope, mean, dry_run=request.dry_run)

    async def forget_proposed(
        self, scope: Scope, ids: Sequence[str], messages: Sequence[Cited], only_if: Callable[[Sequence[StoredMemory]], bool]
    ) -> ForgetMemoryResponse:
        """Forget the given memories and session messages if `only_if` accepts the memories.

        Raises the same errors as `forget`.
        """
        writing(scope)

        async def mean() -> Targets:
            targets = await self._by_ids(scope, ids, _target_owner(scope))
            memories = [*(chosen.memory for chosen in targets.facts), *targets.turns.values()]
            if not only_if([memory.now for memory in memories if memory.now is not None]):
                return Targets(targets.owner)
            targets.messages |= dict.fromkeys(messages, _CHOSEN)
            return targets

        return await self._carry_out(scope, mean)

    async def forget_by_message(self, scope: Scope, ref: SessionRef, message_id: str, subject: Subject) -> ForgetMemoryResponse | None:
        """Fulfill the forget request in a user's message, and delete the message.

        If no match is certain, delete nothing and return None.
        """
        answer = await self._carry_out(scope, lambda: self._targets_of_request(scope, ref, message_id, subject))
        return answer if answer.forgotten else None

    async def propose_by_message(
        self, scope: Scope, ref: SessionRef, message_id: str, subject: Subject
    ) -> tuple[list[StoredMemory], list[Cited]]:
        """Return the memories and messages that a forget request in a session would delete.

        If no match is certain, return the most likely one. If the request is ambiguous, return
        empty lists.
        """
        targets = await self._targets_of_request(scope, ref, message_id, subject, guess=True)
        if not targets.has_matches or targets.ambiguous:
            return [], []
        planner = await self._planner(scope, targets)
        plan = await asyncio.to_thread(planner.make)
        return [memory.now for memory in plan.removed_memories.values() if memory.now is not None], list(targets.messages)

    async def undo(self, scope: Scope, receipt_id: str) -> ForgetUndoResponse:
        """Restore a receipt's data unless newer data has replaced it. Raises NotFound."""
        writing(scope)
        restored = await self.store.undo(scope, receipt_id)
        if restored is None:
            raise NotFound(f"no receipt {receipt_id} found, or it can no longer be undone", field="receipt_id")
        await self.changes.end_forgetting(scope, receipt_id)
        await self._follow_undo(scope, receipt_id)
        memories, messages, newer = restored
        return ForgetUndoResponse(receipt_id=receipt_id, restored={"memories": memories, "messages": messages, "kept_newer": newer})

    async def show(self, scope: Scope, receipt_id: str) -> ForgettingResponse:
        """Return the data that was deleted or restored. Raises NotFound or Forbidden."""
        data = await self.store.show(writing(scope), receipt_id)
        if data is None:
            raise NotFound(f"no receipt {receipt_id} found, or it can no longer be undone", field="receipt_id")
        _, user, at, until, actor = data.header
        state = ChangeStateEnum.UNDONE if data.undone else ChangeStateEnum.APPLIED
        items, newer = _items(data), data.kept_newer
        return ForgettingResponse(
            receipt_id=receipt_id, user_id=user, at=at, actor=actor, undo_until=until, state=state, items=items, kept_newer=newer
        )

    async def _carry_out(self, scope: Scope, mean: Mean, *, dry_run: bool = False) -> ForgetMemoryResponse:
        for _ in range(_ATTEMPTS):
            targets = await mean()
            planner = await self._planner(scope, targets)
            plan = await asyncio.to_thread(planner.make)
            ambiguous = targets.ambiguous or (plan.empty and bool(targets.possible))
            matches = [*plan.matches, *targets.possible]
            if targets.ambiguous:
                matches = [match.model_copy(update={"clear": False}) for match in matches]
            if dry_run or ambiguous or plan.empty:
                return ForgetMemoryResponse(matches=matches, ambiguous=ambiguous, dry_run=dry_run)
            name, owner = str(ULID()), (_namespace_of(targets.owner, plan), targets.owner.user_id)
            await self._purge(scope, plan)
            until = await self.store.take(scope, owner, name, plan, planner.clean_piece, await self._proposals(scope, targets, planner))
            if until is False:
                continue  # Something in the plan changed after it was read, so plan again.
            await self._purge(scope, plan)
            await self.followers.follow(list(dict.fromkeys([*plan.removed_memories, *(chosen.memory.mid for chosen in plan.dropped)])))
            moment = None if until is None or until is True else until
            await self.changes.record_forgetting(scope, _owner_of(targets.owner, plan), name, plan.counts, moment)
            return ForgetMemoryResponse(matches=matches, forgotten=dict(plan.counts), receipt_id=name, undo_until=moment)
        raise Conflict("the memories to forget changed during the request: try again")

    async def _purge(self, scope: Scope, plan: Plan) -> None:
        for purger in self.purgers:
            if isinstance(purger, ForgetPurger):
                await purger.follow_forgetting(scope, plan.groups)
            else:
                await purger.purge_groups(scope, plan.groups, dry_run=False)

    async def _follow_undo(self, scope: Scope, receipt_id: str) -> None:
        data = await self.store.show(scope, receipt_id)
        records = [] if data is None else data.memories
        groups = {Group(record.namespace, record.user_id, record.session_id, str(record.memory_type)) for record in records}
        for purger in self.purgers:
            if isinstance(purger, ForgetPurger):
                await purger.follow_forgetting(scope, groups)

    async def _by_text(self, scope: Scope, request: ForgetMemoryRequest, owner: TargetOwner) -> Targets:
        assert request.text is not None
        assert owner.user_id is not None
        subject = requested(request.text)
        sessions = await self.reader.of_user(scope, owner.namespace, owner.user_id, owner.session_id)
        if subject.deictic:
            own_sessions = [copy for copy in sessions if owner.session_id is not None and copy.ref.session_id == owner.session_id]
            last = await asyncio.to_thread(_last_statement, own_sessions)
            if last is None:
                raise BadInput("does not say what to forget: name it, or send the session_id of the conversation", field="text")
            subject = last
        return await self._mean(scope, owner, subject, sessions)

    async def _targets_of_request(
        self, scope: Scope, ref: SessionRef, message_id: str, subject: Subject, *, guess: bool = False
    ) -> Targets:
        owner = TargetOwner(ref.namespace, ref.user_id)
        sessions = [] if ref.user_id is None else await self.reader.of_user(scope, ref.namespace, ref.user_id, None)
        stated_subject: Subject | None = subject
        if subject.deictic:
            stated_subject = await asyncio.to_thread(_last_statement, [copy for copy in sessions if copy.ref == ref], message_id)
        if stated_subject is None or ref.user_id is None:
            return Targets(owner)
        targets = await self._mean(scope, owner, stated_subject, sessions, request=(ref, message_id), guess=guess)
        targets.possible.clear()
        return targets

    async def _mean(
        self,
        scope: Scope,
        owner: TargetOwner,
        subject: Subject,
        sessions: list[SessionCopy],
        *,
        request: Cited | None = None,
        guess: bool = False,
    ) -> Targets:
        """Return everything that matches a subject, including repetitions by the assistant.

        If no match is certain and `guess` is true, include the most likely one.
        """
        memories, near = await self.finder.find(scope, owner.selection, subject.text)
        targets = Targets(owner, subject, sessions=sessions, requests=[] if request is None else [request])
        memories = [memory for memory in memories if request is None or request not in evidence_messages(memory)]
        await asyncio.to_thread(_take_stated, targets, memories)
        if not targets.has_matches:
            await self._take_likely(scope, targets, memories, near, guess=guess)
        if targets.has_matches and not targets.ambiguous:
            targets.messages |= dict.fromkeys(targets.requests, "it asks to forget this")
            more, _ = await self.finder.find(scope, owner.selection, " ".join(targets.subject_sentences))
            await asyncio.to_thread(_take_repeated, targets, more)
        return targets

    async def _take_likely(
        self, scope: Scope, targets: Targets, memories: Sequence[LineageMemory], near: Mapping[str, float], *, guess: bool
    ) -> None:
        """If `guess` is true, target the most likely match. Otherwise, list possible matches."""
        assert targets.subject is not None
        candidates = await asyncio.to_thread(_candidates, targets, memories)
        parts = await asyncio.to_thread(guesses, targets.subject, [match.text for _, match in candidates])
        of_memory = [0.0 if isinstance(candidate, tuple) else near.get(candidate.mid, 0.0) for candidate, _ in candidates]
        parts = sorted(parts, key=lambda part: -(part[0] + of_memory[part[1]]))[:_MOST_COMPARED]
        cosines = await self.finder.cosines(scope, targets.subject.text, [part for _, _, part in parts])
        likeness = [(share + cosine, share, at, part) for (share, at, part), cosine in zip(parts, cosines, strict=True)]
        likely = [one for one in likeness if one[0] > 0]
        best = max((each[0] for each in likely), default=0.0)
        listed: dict[int, str] = {}
        for _, share, at, part in sorted((one for one in likely if one[0] * 2 >= best), key=lambda one: -one[0])[: 1 if guess else None]:
            candidate, _ = candidates[at]
            why = "it shares words with the request" if share else "it is similar in meaning"
            listed.setdefault(at, why)
            if not guess:
                continue
            targets.subject_sentences.append(part)
            if isinstance(candidate, tuple):
                targets.messages[candidate] = why
            elif is_turn(candidate.versions[-1].record):
                targets.add_turn(candidate, why)
            else:
                targets.facts.append(Chosen(candidate, why))
        if not guess:
            targets.possible += [candidates[at][1].model_copy(update={"why": why}) for at, why in listed.items()]

    async def _by_ids(self, scope: Scope, named: Sequence[str], owner: TargetOwner) -> Targets:
        ids = list(dict.fromkeys(named))
        memories = await self._resolve(scope, [self.lineage.mid(scope, memory_id) for memory_id in ids])
        memories = [memory for memory in memories if _is_of(owner, memory.versions[-1].record)]
        users = {memory.versions[-1].record.user_id for memory in memories}
        if owner.user_id is None and len(users) > 1:
            raise BadInput("these memories belong to several users: send one user's id as user_id", field="user_id")
        owner.user_id = owner.user_id or next(iter(users), None)
        targets = Targets(owner)
        if owner.user_id is not None:
            targets.sessions = await self.reader.of_user(scope, owner.namespace, owner.user_id, owner.session_id)
        for memory in memories:
            if is_turn(memory.versions[-1].record):
                targets.add_turn(memory, _CHOSEN)
            else:
                targets.facts.append(Chosen(memory, _CHOSEN))
        of_memories = {version.record.id for memory in memories for version in memory.versions}
        session_messages = [(copy.ref, entry.stored.message.id) for copy in targets.sessions for entry in copy.entries]
        targets.messages |= dict.fromkeys(
            [(ref, message) for ref, message in session_messages if message in ids and message not in of_memories], _CHOSEN
        )
        return targets

    async def _resolve(self, scope: Scope, mids: Sequence[str]) -> list[LineageMemory]:
        memories = await self.lineage.read(scope, mids)
        current_mids = {memory.mid for memory in memories if memory.now is not None}
        names = await self.lineage.targets([mid for mid in mids if mid not in current_mids])
        return [*(memory for memory in memories if memory.mid not in names), *await self.lineage.read(scope, list(names.values()))]

    async def _planner(self, scope: Scope, targets: Targets) -> Planner:
        for chosen in targets.facts:
            current_citations = (
                evidence_messages(chosen.memory, [chosen.memory.now]) if chosen.versions and chosen.memory.now is not None else []
            )
            cited = [one for one in evidence_messages(chosen.memory, chosen.versions) if one not in current_citations]
            targets.messages = dict.fromkeys(cited, "a fact that is deleted is based on it") | targets.messages
        targets.messages = {one: why for one, why in targets.messages.items() if scope.reaches(one[0].namespace, one[0].user_id)}
        mids = [self.lineage.mid(scope, message_memory_id(ref, message)) for ref, message in targets.messages]
        facts = {chosen.memory.mid for chosen in targets.facts}
        turns = await self.lineage.read(scope, [mid for mid in mids if mid not in targets.turns and mid not in facts])
        targets.turns |= {memory.mid: memory for memory in turns if is_turn(memory.versions[-1].record)}
        others: list[LineageMemory] = []
        if targets.messages:
            # No index knows which facts cite a message, so all of the owner's facts are read.
            pages = [page async for page in self.lineage.pages(scope, facts_of(targets.owner.namespace, targets.owner.user_id))]
            others = list({memory.mid: memory for page in pages for memory in page if memory.mid not in facts}.values())
        loaded_refs = {copy.ref for copy in targets.sessions}
        missing = [self.sessions.sid(scope, ref) for ref in {ref for ref, _ in targets.messages} if ref not in loaded_refs]
        sessions = [*targets.sessions, *await self.reader.read(scope, missing)]
        return Planner(targets, others, sessions)

    async def _proposals(self, scope: Scope, targets: Targets, planner: Planner) -> list[str]:
        """Return the ids of proposed changes that would store a forgotten statement or cite deleted data."""
        if targets.owner.user_id is None:
            return []
        conditions = {"st": "proposed", "u": targets.owner.user_id}
        if targets.owner.namespace is not None:
            conditions["ns"] = targets.owner.namespace
        _, names = await self.changes.find_changes(scope, conditions, 0, _MOST_PROPOSALS)
        changes = [change for change in await self.changes.load_changes(scope, names) if change is not None]
        proposed = [(change.id, record) for change in changes if (record := proposed_record(change.proposal)) is not None]
        return await asyncio.to_thread(lambda: [name for name, record in proposed if planner.covers(record)])


def _owner_of(owner: TargetOwner, plan: Plan) -> tuple[str | None, str | None]:
    """Return the request's owner or, if it has no user, the deleted memories' only owner."""
    owners = {(record.namespace, record.user_id) for memory in plan.removed_memories.values() for record in [memory.versions[-1].record]}
    return owners.pop() if owner.user_id is None and len(owners) == 1 else (_namespace_of(owner, plan), owner.user_id)


def _namespace_of(owner: TargetOwner, plan: Plan) -> str | None:
    """Return the request's namespace, or the affected data's namespace if there is only one."""
    return next(iter(plan.namespaces)) if owner.namespace is None and len(plan.namespaces) == 1 else owner.namespace


def _take_stated(targets: Targets, memories: Sequence[LineageMemory]) -> None:
    """Add facts, versions and messages that match the subject to the targets."""
    subject, owner = targets.subject, targets.owner.user_id
    assert subject is not None

    def stating(text: str, slot: str | None = None) -> list[str]:
        return (
            [part for part in sentences(text) if states(subject, part, slot=slot, owner=owner)]
            if coverage(subject.terms, text) == 1 or slot
            else []
        )

    for copy in targets.sessions:
        for message in (entry.stored.message for entry in copy.entries):
            if not (stating_parts := stating(message.content)) or (copy.ref, message.id) in targets.requests:
                continue
            if message.role == "user" and subject_to_forget(message) is not None:
                targets.requests.append((copy.ref, message.id))
                continue
            targets.messages[copy.ref, message.id] = "it states this"
            targets.subject_sentences += stating_parts
    for memory in memories:
        stating_parts = [(version, stating(version.record.text, version.record.slot)) for version in memory.versions]
        if not any(parts for _, parts in stating_parts):
            continue
        targets.subject_sentences += [part for _, parts in stating_parts for part in parts]
        if is_turn(memory.versions[-1].record):
            targets.add_turn(memory, "it states this")
            continue
        former = [version for version, parts in stating_parts if parts and version is not memory.now]
        whole = bool(stating_parts[-1][1]) or (memory.now is None and len(former) == len(memory.versions))
        targets.facts.append(Chosen(memory, "it states this" if whole else "an earlier version of it states this", () if whole else former))
    targets.ambiguous = subject.is_name and name_different_things(subject, targets.subject_sentences)


def _candidates(targets: Targets, memories: Sequence[LineageMemory]) -> list[tuple[LineageMemory | Cited, ForgetMatch]]:
    """Return the facts and user messages that the request could refer to."""
    candidates: list[tuple[LineageMemory | Cited, ForgetMatch]] = []
    covered: set[Cited] = set()
    for memory in memories:
        record = memory.versions[-1].record
        if memory.now is not None and (not is_turn(record) or is_from_person(record)):
            kind = "message" if is_turn(record) else "fact"
            match = ForgetMatch(kind=kind, id=record.id, text=record.text, why="", clear=False, session_id=record.session_id)
            candidates.append((memory, match))
            covered |= set(evidence_messages(memory)) if is_turn(record) else set()
    for copy in targets.sessions:
        for message in (entry.stored.message for entry in copy.entries):
            one, name = (copy.ref, message.id), copy.ref.session_id
            if message.role == "user" and one not in covered and one not in targets.requests and subject_to_forget(message) is None:
                match = ForgetMatch(kind="session_message", id=message.id, text=message.content, why="", clear=False, session_id=name)
                candidates.append((one, match))
    return candidates


def _take_repeated(targets: Targets, memories: Sequence[LineageMemory]) -> None:
    """Add assistant messages that repeat the targets."""
    lines_by_session: dict[SessionRef, dict[Cited, tuple[str, str]]] = {ref: {} for ref, _ in targets.messages}
    turns = {memory.mid: memory for memory in memories if is_turn(memory.versions[-1].record)} | targets.turns
    for record, memory in sorted(((each.versions[-1].record, each) for each in turns.values()), key=lambda one: one[0].created_at):
        for one in evidence_messages(memory):
            lines_by_session.get(one[0], {})[one] = (source_of(record), record.text)
    for copy in targets.sessions:
        if copy.ref in lines_by_session:
            messages = [entry.stored.message for entry in copy.entries]
            lines_by_session[copy.ref] |= {(copy.ref, message.id): (message.role, message.content) for message in messages}
    for each in lines_by_session.values():
        lines = [(one, *line) for one, line in each.items() if one not in targets.requests]
        targets.messages |= {
            lines[at][0]: "it repeats this" for at in repetitions([(role, text, one in targets.messages) for one, role, text in lines])
        }
    texts = [
        text for each in lines_by_session.values() for one, (role, text) in each.items() if role == "user" and one not in targets.requests
    ]
    others = [part for text in texts for part in sentences(text) if part not in targets.subject_sentences]
    targets.values = values_of(targets.subject_sentences, others)


def _items(data: ForgottenData) -> list[ForgottenItem]:
    """List forgotten facts, then messages, each sorted oldest first, and then summaries."""
    items = [
        ForgottenItem(
            kind="message" if is_turn(record) else "fact",
            id=record.id,
            text=record.text,
            user_id=record.user_id,
            namespace=record.namespace,
            session_id=record.session_id,
            created_at=record.created_at,
            written_by=record.written_by,
        )
        for record in sorted(data.memories, key=lambda record: (is_turn(record), record.created_at))
    ]
    items += [
        ForgottenItem(
            kind="session_message",
            id=message.id,
            text=message.content,
            user_id=ref.user_id,
            namespace=ref.namespace,
            session_id=ref.session_id,
            created_at=message.created_at,
            written_by=message.written_by,
        )
        for ref, message in sorted(data.messages, key=lambda one: one[1].created_at)
    ]
    return items + [
        ForgottenItem(kind="summary", id=ref.session_id, text=text, user_id=ref.user_id, namespace=ref.namespace, session_id=ref.session_id)
        for ref, text in data.summaries
    ]


def _last_statement(sessions: Sequence[SessionCopy], before: str | None = None) -> Subject | None:
    """Resolve "that" to the user's last statement before the message `before`."""
    last: str | None = None
    for message in (entry.stored.message for copy in sessions for entry in copy.entries):
        if message.id == before:
            break
        if message.role == "user" and memory_request(message.content) is None:
            last = next((part for part in reversed(sentences(message.content)) if content(part)), last)
    return None if last is None else subject_of(last)


def _target_owner(
    scope: Scope, namespace: str | None = None, user_id: str | None = None, session_id: str | None = None, *, by_text: bool = False
) -> TargetOwner:
    if scope.agents is not None:
        raise Forbidden("these credentials are limited to agents, and messages belong to no agent: use credentials without that limit")
    namespace, user_id = list_place_of(scope, namespace, user_id)
    if user_id is None and scope.users is not None and len(scope.users) == 1:
        user_id = next(iter(scope.users))
    if user_id is None and by_text:
        raise BadInput("name the user: send the user's id as user_id", field="user_id")
    if namespace is None and scope.namespaces is not None and len(scope.namespaces) == 1:
        namespace = next(iter(scope.namespaces))
    return TargetOwner(namespace, user_id, session_id)


def _is_of(owner: TargetOwner, record: MemoryRecord) -> bool:
    return owner.user_id in (None, record.user_id) and owner.namespace in (None, record.namespace)
