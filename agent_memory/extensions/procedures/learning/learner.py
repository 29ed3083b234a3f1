"""Learn a procedure from a session that has a result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis.asyncio import Redis

from agent_memory.extensions.procedures.learning.merging import Lesson, merged, new_procedure
from agent_memory.extensions.procedures.learning.prompts import VERSION, LearnedProcedure, learn_procedure
from agent_memory.extensions.procedures.learning.results import MarkedSession, ResultStore
from agent_memory.extensions.procedures.records import StoredProcedure, change_record, owner_digest, same_owner
from agent_memory.extensions.procedures.search import Match, ProcedureSearch, Situation, exactly_owned_by, procedures_of
from agent_memory.extensions.procedures.search_index import ProcedureKeys
from agent_memory.extensions.procedures.service import screened
from agent_memory.extensions.procedures.store import MOST_CHANGES, ProcedureStore
from agent_memory.extensions.procedures.tool_calls.store import ToolStore
from agent_memory.extensions.procedures.tool_calls.traces import ToolCall, clean, failures_of, steps_of, tool_calls
from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.sessions.codec import SessionState
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import Conflict, ContextExceeded, ModelAnswerInvalid
from agent_memory.foundation.core.ids import made_id
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import ChatModel
from agent_memory.foundation.llm.tokens import TokenCounter, first_fitting
from agent_memory.foundation.storage.connection import read
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.scripts import Script, compact
from agent_memory.foundation.text.data_fences import PromptMessage, message_lines
from agent_memory_client.models.features.procedures import ProcedureContent, ProcedureOwner, ProcedureSource

log = get_logger(__name__)

# Maximum attempts. If the compared procedures change, the learner tries again.
_ATTEMPTS = 5
_MOST_MESSAGES = 1000
_MOST_SITUATION_CHARS = 1000
# Similarity thresholds for situations: cosine to show a procedure to the model; cosine and word overlap to merge.
_LIKE, _SAME, _SAME_WORDS = 0.3, 0.9, 0.8
_MOST_CANDIDATES = 3
# Token limits: the session in the model's prompt, each message, the smallest prompt, and the answer.
_SESSION_TOKENS, _MESSAGE_TOKENS, _LEAST_TOKENS, _ANSWER_TOKENS = 4000, 400, 200, 1500


@dataclass(frozen=True, slots=True)
class _Session:
    sid: str
    marked: MarkedSession
    scope: Scope
    owner: ProcedureOwner
    state: SessionState
    calls: Sequence[ToolCall]
    situation: str


class _Decision(NamedTuple):
    """What to do with a lesson. `existing` is the procedure to merge it into."""

    outcome: str = "nothing"
    existing: StoredProcedure | None = None
    content: ProcedureContent | None = None
    vector: Any = None


class SessionLearner:
    def __init__(
        self,
        settings: Settings,
        stores: tuple[Redis, Keys],
        results: ResultStore,
        procedures: tuple[ProcedureStore, ProcedureSearch, ToolStore],
        sessions: SessionStore,
        models: tuple[TenantModels, ContextLimits | None, TokenCounter],
    ) -> None:
        """Create a learner. If `models` contains no `ContextLimits`, it uses no language model."""
        self._settings = settings
        self._client, self._keys = stores
        self._procedure_keys = ProcedureKeys(self._keys.root)
        self._results = results
        self._store, self._search, self._tools = procedures
        self._sessions = sessions
        self._models, self._limits, self._counter = models
        self._redacts = settings.longterm.redact_secrets
        self._learn = Script(self._client, "procedures/procedure_learn")

    async def learn(self, sid: str) -> str:
        """Learn from a session. Return "created", "merged", "nothing" or "gone".

        The result is "gone" if the session was deleted or this result has already been processed.
        Raises ModelUnavailable. Raises Conflict if the compared procedures keep changing, so that
        the caller can retry later.
        """
        answers: dict[tuple[Any, ...], LearnedProcedure | None] = {}
        for _ in range(_ATTEMPTS):
            session = await self._load(sid)
            if session is None:
                return "gone"
            counter = self._procedure_keys.learned(owner_digest(session.scope.tenant, session.owner))
            learned = (await read(self._client, lambda pipe, key=counter: pipe.get(key)))[0]
            decision = await self._decide(session, answers)
            if await self._commit(session, decision, counter, (learned or b"0").decode()):
                return decision.outcome
        raise Conflict("the procedures that a session is compared with keep changing")

    async def _load(self, sid: str) -> _Session | None:
        marked = await self._results.load_marked(sid)
        if marked is None or marked.learned.get("mark") == marked.mark:
            return None
        loaded = await self._sessions.by_sid(sid, _MOST_MESSAGES)
        if loaded is None or loaded[1].epoch != marked.epoch:
            return None
        state = loaded[1]
        owner = ProcedureOwner(namespace=state.ref.namespace, user_id=state.ref.user_id, agent_id=marked.result.agent_id)
        user_texts = (stored.message.content for stored in state.messages if stored.message.role == "user")
        first = " ".join(next((text for text in user_texts if text.strip()), "")[: 2 * _MOST_SITUATION_CHARS].split())
        calls = tool_calls([(stored.seq, stored.message) for stored in state.messages])
        situation = clean(first[:_MOST_SITUATION_CHARS], redacts=self._redacts)
        return _Session(sid, marked, scope_of_work(marked.tenant), owner, state, calls, situation)

    async def _decide(self, session: _Session, answers: dict[tuple[Any, ...], LearnedProcedure | None]) -> _Decision:
        if not session.situation:
            return _Decision()
        situation = await self._search.embedded_situation(session.scope.tenant, session.situation)
        own = await self._learned_before(session)
        likes = [] if own is not None else await self._like(session, situation)
        candidates = [own] if own is not None else [match.stored for match in likes][:_MOST_CANDIDATES]
        draft = await self._ask(session, candidates, answers)
        by_model = draft is not None
        draft = draft if draft is not None else self._draft(session)
        if not draft.when_to_use or not (draft.steps or draft.pitfalls):
            return _Decision()
        result = session.marked.result
        now = datetime.now(UTC)
        source = ProcedureSource(session_id=session.state.ref.session_id, result=result.result, score=result.score, learned_at=now)
        lesson = Lesson(draft, source, by_model)
        existing = own if own is not None else _chosen(draft, candidates) if by_model else _nearest(likes)
        if existing is None or _only_source(existing.content, source.session_id):
            content = new_procedure(lesson, session.owner, made_id() if existing is None else existing.procedure.id, now)
            if existing is not None:
                content = content.model_copy(update={"created_at": existing.procedure.created_at, "state": existing.procedure.state})
        else:
            content = merged(existing.content, lesson, now)
        content = screened(self._settings, content)
        vector = None
        if existing is None or existing.content.when_to_use != content.when_to_use:
            same = content.when_to_use == session.situation
            embedded = situation if same else await self._search.embedded_situation(session.scope.tenant, content.when_to_use)
            vector = embedded.vector
        return _Decision("created" if existing is None else "merged", existing, content, vector)

    async def _learned_before(self, session: _Session) -> StoredProcedure | None:
        """Return the procedure learned from the session's earlier result, if any."""
        former = session.marked.learned.get("id")
        stored = None if former is None else await self._store.load(session.scope, former)
        name = session.state.ref.session_id
        if stored is None or not same_owner(stored.content, session.owner):
            return None
        return stored if any(source.session_id == name for source in stored.content.learned_from) else None

    async def _like(self, session: _Session, situation: Situation) -> list[Match]:
        """Return active procedures for similar situations, best first."""
        clause = exactly_owned_by(procedures_of(session.scope), session.scope, session.owner)
        replies = await read(self._client, lambda pipe: self._search.queue_matches(pipe, clause, situation))
        matches = self._search.rank_matches(replies, situation)
        alike = [match for match in matches if (match.similarity or 0.0) >= _LIKE or match.overlap >= _SAME_WORDS]
        return sorted(alike, key=lambda match: -match.fit)

    def _draft(self, session: _Session) -> LearnedProcedure:
        steps, pitfalls = steps_of(session.calls, redacts=self._redacts), failures_of(session.calls, redacts=self._redacts)
        tools = list(dict.fromkeys(call.tool for call in session.calls if call.success))
        return LearnedProcedure(when_to_use=session.situation, steps=steps, tools=tools, pitfalls=pitfalls)

    async def _ask(
        self, session: _Session, similar_procedures: Sequence[StoredProcedure], answers: dict[tuple[Any, ...], LearnedProcedure | None]
    ) -> LearnedProcedure | None:
        """Return the model's draft, or None if its response is unusable.

        `answers` caches drafts from earlier attempts.
        """
        chat = None if self._limits is None else self._models.chat(session.scope.tenant)
        if chat is None:
            return None
        answer_key = (session.marked.epoch, session.marked.mark, *((stored.pid, stored.procedure.version) for stored in similar_procedures))
        if answer_key not in answers:
            answers[answer_key] = await self._answer(chat, session, [stored.content for stored in similar_procedures])
        return answers[answer_key]

    async def _answer(self, chat: ChatModel, session: _Session, similar_procedures: Sequence[ProcedureContent]) -> LearnedProcedure | None:
        assert self._limits is not None
        await self._limits.load_learned(chat)
        room = chat.room(learn_procedure([], session.marked.result, similar_procedures), LearnedProcedure) - _ANSWER_TOKENS
        subject = {"tenant": session.scope.tenant, "session_id": session.state.ref.session_id, "model": chat.model}
        if room < _LEAST_TOKENS:
            log.warning("session exceeds the model's context; learning without the model", **subject)
            return None
        lines = self._lines(session, min(room, _SESSION_TOKENS))
        try:
            answer = await chat.structured(learn_procedure(lines, session.marked.result, similar_procedures), LearnedProcedure)
        except ContextExceeded:
            await self._limits.save_learned(chat)
            return None
        except ModelAnswerInvalid as error:
            log.warning("learning from a session without the model", **subject, error=error)
            return None
        cleaned = {name: [clean(line, redacts=self._redacts) for line in getattr(answer, name)] for name in ("steps", "pitfalls", "tools")}
        return answer.model_copy(update={"when_to_use": clean(answer.when_to_use, redacts=self._redacts), **cleaned})

    def _lines(self, session: _Session, tokens: int) -> list[str]:
        """Format the summary (or first message) and the latest messages that fit."""
        messages: list[PromptMessage] = []
        for number, stored in enumerate(session.state.messages, start=1):
            message = stored.message
            calls = json.dumps(message.own_fields["tool_calls"], ensure_ascii=False) if message.own_fields.get("tool_calls") else ""
            text = self._counter.shorten(f"{message.content} {calls}".strip()[:8000], min(_MESSAGE_TOKENS, tokens // 3))
            messages.append(PromptMessage(number, message.role, text, message.created_at))
        lines = [message_lines([message]) for message in messages]
        if session.state.context:
            lines.insert(0, json.dumps({"before": self._counter.shorten(session.state.context[:8000], tokens // 3)}, ensure_ascii=False))
        fitting_lines = first_fitting([*lines[:1], *reversed(lines[1:])], tokens, self._counter.count)
        return [*fitting_lines[:1], *reversed(fitting_lines[1:])]

    async def _commit(self, session: _Session, decision: _Decision, counter: str, expected_learned: str) -> bool:
        """Store the decision. Return False if any of its inputs have changed."""
        marked, now = session.marked, datetime.now(UTC)
        outcome, existing, content, vector = decision
        keys: list[str] = []
        calls: list[dict[str, Any]] = []
        counted = int(marked.learned.get("seq", 0))
        for call in session.calls:
            if call.answered > counted:
                key, arguments = self._tools.call_arguments(session.scope, session.owner, call, now)
                keys += [] if key in keys else [key]
                calls.append(arguments | {"place": keys.index(key)})
        last = max((stored.seq for stored in session.state.messages), default=counted)
        learned = {"mark": marked.mark, "what": outcome, "seq": max(last, counted)} | ({} if content is None else {"id": content.id})
        meta = self._keys.session(session.sid).meta
        if content is None:
            change, write = "{}", dict.fromkeys(("record", "changes", "order", "order_due", "order_dead", "wake"), meta)
            write |= {"fields": [], "unset": [], "most_changes": MOST_CHANGES, "vector_field": "", "vector": None, "order_json": None}
        else:
            kind, reason = "learn" if outcome == "created" else "merge", f"session {session.state.ref.session_id}; {VERSION}"
            change = change_record(kind, content, "worker", reason)
            write = self._store.write_arguments(session.scope, content, existing and existing.content, vector)
        reply = await self._learn(
            **write,
            meta=meta,
            owner=counter,
            tools=keys,
            epoch=marked.epoch,
            mark=marked.mark,
            learned=compact(learned),
            expected_learned=expected_learned,
            expected=0 if existing is None else existing.procedure.version,
            change=change,
            calls=calls,
        )
        return reply == b"done"


def _chosen(draft: LearnedProcedure, candidates: Sequence[StoredProcedure]) -> StoredProcedure | None:
    return candidates[draft.same - 1] if draft.same is not None and 1 <= draft.same <= len(candidates) else None


def _nearest(likes: Sequence[Match]) -> StoredProcedure | None:
    """Return the best match for the same situation."""
    same = (match for match in likes if (match.similarity or 0.0) >= _SAME or match.overlap >= _SAME_WORDS)
    return next((match.stored for match in same), None)


def _only_source(content: ProcedureContent, session_id: str) -> bool:
    return content.origin == "learned" and {source.session_id for source in content.learned_from} == {session_id}
