"""The memory prompt: the session and the relevant long-term memories, assembled into messages ready for a chat model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from agent_memory.errors import BadInput, Refused
from agent_memory.llm.catalog import context_window
from agent_memory.llm.counting import TokenCounter
from agent_memory.promptmarks import DATA_NOTE, MEMORIES_HEAD, NO_MEMORIES, SUMMARY_HEAD
from agent_memory.prompts.frames import escape_frames, one_line, shown_id
from agent_memory.scope import Scope, SessionRef
from agent_memory.services import recent
from agent_memory.services.access import session_of
from agent_memory.services.longterm import LongTermService
from agent_memory.services.near_duplicates import Shown
from agent_memory.services.pages import Prompt, said, shown_turn
from agent_memory.services.plans import Plan, Ranking
from agent_memory.services.search import SearchService, answer_explanation
from agent_memory.services.working import fitting
from agent_memory.settings import Settings
from agent_memory.storage.cards import Card
from agent_memory.storage.codec import SessionTurns, StoredMessage, Turn, changed
from agent_memory.storage.connection import Pipe, Reader
from agent_memory.storage.recent import RecentMessages
from agent_memory.storage.working import SessionStore, Window
from agent_memory.timewords import ago, zone_of
from agent_memory.units import day
from agent_memory_client.models import (
    AnswerExplanation,
    Condition,
    Cut,
    MemoryPromptRequest,
    MemoryPromptResponse,
    Namespace,
    SearchRequest,
    UserId,
    WorkingMemoryRequest,
)

# Of a prompt's tokens, what summary and memories get at most while there is more to say; what they leave goes to the messages.
_SUMMARY_SHARE = 0.2
_MEMORY_SHARE = 0.4
# Tokens around each message's text.
_PER_MESSAGE = 4
# Tokens around each memory's text: its date, type and id.
_PER_MEMORY = 30


@dataclass(frozen=True, slots=True)
class _Budget:
    """Tokens for the parts of a prompt; None is "as much as there is"."""

    summary: int | None
    memories: int
    rest: int | None


class RecallService:
    """Puts prompts together."""

    def __init__(
        self,
        settings: Settings,
        reader: Reader,
        sessions: SessionStore,
        search: SearchService,
        longterm: LongTermService,
        counter: TokenCounter,
        recent_messages: RecentMessages,
    ) -> None:
        self._settings = settings
        self._read = reader
        self._sessions = sessions
        self._search = search
        self._longterm = longterm
        self._counter = counter
        self._recent = recent_messages

    async def prompt(self, scope: Scope, body: MemoryPromptRequest, *, optimize_query: bool = False) -> MemoryPromptResponse:
        """As `answer`, as the wire model."""
        return (await self.answer(scope, body, optimize_query=optimize_query)).model()

    async def answer(self, scope: Scope, body: MemoryPromptRequest, *, optimize_query: bool = False) -> Prompt:
        """The messages for a chat model. Raises Refused when neither a session nor a search is asked for."""
        prompt, plan = await self.assembled(scope, body, optimize_query=optimize_query)
        if plan is not None:
            self._search.count_reading(plan, prompt.memories)
        return prompt

    async def assembled(
        self, scope: Scope, body: MemoryPromptRequest, *, optimize_query: bool = False, explain: bool = False
    ) -> tuple[Prompt, Plan | None]:
        """A prompt and the plan of its search, without counting this as a reading. With `explain` it says how it came about."""
        body = _placed(body)
        asked = self._search_request(body)
        if asked is not None and explain:
            asked = asked.model_copy(update={"explain": True})
        if body.session is None and asked is None:
            raise Refused("Either session or long_term_search must be provided", field="session")
        session = body.session
        ref = None if session is None else session_of(scope, session.session_id, session.namespace, session.user_id)
        request = None if asked is None else self._within(scope, asked, ref, body)
        notices: list[str] = []
        plan = None if request is None else await self._search.prepare(scope, request, optimize_query=optimize_query, paged=False)
        user = None if plan is None else recent.user_of(self._settings, scope, plan.request)
        state, replies, said_lately = await self._fetch(scope, ref, self._read_window(body), plan, user)
        narrower = request if asked is None or state is None or state.ref == ref else self._within(scope, asked, state.ref, body)
        if narrower is not None and state is not None and narrower != request:
            # The session was found by its id alone: it is a user's, and so are the memories that belong into its prompt.
            plan = await self._search.prepare(scope, narrower, optimize_query=optimize_query, paged=False)
            plan, replies = await self._search.run(scope, plan, optimize_query=optimize_query)
            if user := recent.user_of(self._settings, scope, plan.request):
                said_lately = await self._said_lately(scope, user, plan.request, state.ref)
        elif plan is not None:
            plan, replies = await self._search.current(scope, plan, replies, optimize_query=optimize_query)
        budget = await self._budget(body)
        summary = self._summary(state, budget)
        memories: list[Card] = []
        why: AnswerExplanation | None = None
        if plan is not None:
            elsewhere = recent.matching(self._settings, plan.request, None if state is None else state.ref, said_lately)
            found = await self._search.ranking(scope, plan, replies)
            notices = [*plan.notices, *found.notices]
            memories, cut = await self._memories(scope, plan, found, state, budget.memories, elsewhere)
            if plan.request.explain:
                why = answer_explanation(plan, found, cut)
                why.memory_tokens = budget.memories
        # Only a budget asks how long the list is before it is known which of it the messages say already.
        listed = None if plan is None or (budget.rest is None and state is not None) else lines(memories, plan.request)
        shown = self._window(state, body.session, self._left(budget, summary, listed))
        if plan is not None and state is not None:
            news = _without_shown(memories, state, shown)
            if why is not None:
                told = {memory.id for memory in news}
                why.cut += [Cut(memory_id=memory.id, reason="already_shown") for memory in memories if memory.id not in told]
                why.messages_left_out = state.total - len(shown)
            memories = news
            listed = lines(memories, plan.request)
        messages = [said("system", SUMMARY_HEAD + escape_frames(summary))] if summary else []
        # Whatever is not the user's is the assistant's.
        messages += map(shown_turn, shown)
        if listed is not None:
            messages.append(said("system", MEMORIES_HEAD + listed))
        messages.append(said("user", body.query))
        return Prompt(messages, memories, notices, why), plan

    def _search_request(self, body: MemoryPromptRequest) -> SearchRequest | None:
        """The search of a prompt: for the query, within the session's user and namespace unless the search names its own."""
        wanted = body.long_term_search
        if wanted is None or wanted is False:
            return None
        request = SearchRequest(limit=self._settings.search.prompt_memories) if wanted is True else wanted
        # What is in quarantine is shown to no model, whoever asks.
        return changed(request, text=body.query, quarantined=False)

    def _within(self, scope: Scope, request: SearchRequest, ref: SessionRef | None, body: MemoryPromptRequest) -> SearchRequest:
        """The search within a session's user and namespace, where it does not name its own.

        In the prompt of a session without a user stands nobody's memory: only what has no user, either.
        """
        user, namespace = (body.user_id, body.namespace) if ref is None else (ref.user_id, ref.namespace)
        update: dict[str, Any] = {}
        if request.user_id is None and not (request.filter is not None and _names_user(request.filter)):
            if user:
                update["user_id"] = UserId(eq=user)
            elif ref is not None and scope.users is None and not self._settings.search.prompt_all_users:
                update["user_id"] = UserId(exists=False)
        if request.namespace is None and namespace:
            update["namespace"] = Namespace(eq=namespace)
        return changed(request, **update) if update else request

    async def _fetch(
        self, scope: Scope, ref: SessionRef | None, window: Window, plan: Plan | None, user: str | None
    ) -> tuple[SessionTurns | None, list[Any], list[tuple[SessionRef, StoredMessage]]]:
        """The session, the search's replies and what the user said lately: one round trip (a second finds a session by its id alone)."""
        count = 0

        def build(pipe: Pipe) -> None:
            nonlocal count
            if user is not None and plan is not None:
                self._queue_lately(pipe, scope, user, plan.request, ref)
            if ref is not None:
                self._sessions.queue_turns(pipe, scope, ref, window)
            if plan is not None and not plan.empty:
                count = self._search.queue(pipe, plan)

        asked = user is not None or ref is not None or (plan is not None and not plan.empty)
        replies = await self._read(build) if asked else []
        lately: list[tuple[SessionRef, StoredMessage]] = []
        if user is not None and plan is not None:
            lately = self._recent.parse(scope, user, replies.pop(0), recent.beginnings(plan.request), recent.SHARE)
        state: SessionTurns | None = None
        if ref is not None:
            state = self._sessions.parse_turns(replies[: len(replies) - count])
            if state is not None and state.parted:
                state = await self._sessions.turns(scope, ref, window)
            if state is None:
                found = await self._sessions.find(scope, ref.session_id, ref.namespace, ref.user_id)
                state = await self._sessions.turns(scope, found[0], window) if len(found) == 1 else None
        return state, replies[len(replies) - count :], lately

    def _queue_lately(self, pipe: Pipe, scope: Scope, user: str, request: SearchRequest, but: SessionRef | None) -> None:
        """Asks what the user said lately in other sessions than the prompt's, which shows its own messages anyway."""
        self._recent.queue(pipe, scope, user, but=but, namespaces=recent.namespaces_of(request))

    async def _said_lately(
        self, scope: Scope, user: str, request: SearchRequest, but: SessionRef
    ) -> list[tuple[SessionRef, StoredMessage]]:
        """What the user said lately, in a round trip of its own."""
        (reply,) = await self._read(lambda pipe: self._queue_lately(pipe, scope, user, request, but))
        return self._recent.parse(scope, user, reply, recent.beginnings(request), recent.SHARE)

    async def _budget(self, body: MemoryPromptRequest) -> _Budget:
        """How the tokens are shared out: without `max_tokens` only the memories are bounded."""
        most = self._settings.search.prompt_memory_tokens
        if body.max_tokens is None:
            return _Budget(None, most, None)
        total = max(body.max_tokens - await self._counter.counted(body.query) - _PER_MESSAGE, 0)
        return _Budget(int(total * _SUMMARY_SHARE), min(int(total * _MEMORY_SHARE) if body.session else total, most), total)

    def _summary(self, state: SessionTurns | None, budget: _Budget) -> str:
        context = state.context if state is not None and state.context else ""
        if not context or budget.summary is None or self._counter.count(context) <= budget.summary:
            return context
        return self._counter.truncate(context, budget.summary)

    def _left(self, budget: _Budget, summary: str, listed: str | None) -> int | None:
        """The tokens that summary and memories leave for the messages."""
        if budget.rest is None:
            return None
        spent = sum(self._counter.count(part) + _PER_MESSAGE for part in (summary, listed) if part)
        return max(budget.rest - spent, 0)

    def _named_window(self, session: WorkingMemoryRequest | None) -> int | None:
        """The window that a prompt names for its model, if it names one."""
        if session is None or not (session.model_name or session.context_window_max):
            return None
        return session.context_window_max or context_window(session.model_name, self._settings.models)

    def _read_window(self, body: MemoryPromptRequest) -> Window:
        """How much of a session is read: no more than the prompt can show."""
        given = [tokens for tokens in (self._named_window(body.session), body.max_tokens) if tokens is not None]
        overhead = 0 if body.max_tokens is None else _PER_MESSAGE
        return Window(min(given, default=None), self._settings.models.default_context_window, overhead)

    def _window(self, state: SessionTurns | None, session: WorkingMemoryRequest | None, left: int | None) -> Sequence[Turn]:
        """The session's last messages that fit into the window, as they were read, and into what is left of the budget."""
        if state is None:
            return []
        if left is None:
            return state.messages
        window = self._named_window(session)
        return fitting(state.messages, left if window is None else min(window, left), overhead=_PER_MESSAGE)

    async def _memories(
        self,
        scope: Scope,
        plan: Plan,
        found: Ranking,
        state: SessionTurns | None,
        tokens: int,
        elsewhere: Sequence[Card],
    ) -> tuple[list[Card], list[Cut]]:
        """The best memories that fit, without those that say the same as one before, or repeat the session's messages; and these.

        What was said `elsewhere` and is no memory yet comes first: the index cannot rank it.
        """
        # Which messages will be shown depends on what is left; the session's newest are shown in any case, so they are no news here.
        newest = state.messages[-plan.request.limit :] if state is not None else []
        seen = {self._longterm.message_mid(scope, state.ref, turn.id) for turn in newest} if state else set[str]()
        taken: list[Card] = []
        cut = await self._seen(scope, plan, found, seen)
        told, there, wanted = Shown(), tokens, 0
        memories = [*elsewhere, *(await self._search.shown(scope, plan, found, without=seen))[0]]
        # A token is at least a byte: when all of them fit by their bytes, nothing needs to be counted.
        bytes_fit = sum([len(memory.text.encode()) + _PER_MEMORY for memory in memories]) <= tokens
        for memory in memories:
            cost = 0 if bytes_fit else self._counter.count(memory.text) + _PER_MEMORY
            if cost > tokens:
                # With more room those before it would come in first.
                wanted += cost
                cut.append(Cut(memory_id=memory.id, reason="over_budget", tokens_needed=wanted, tokens_available=there))
            elif plan.request.distinct is not False and (by := told.add(memory, memory.notes)) is not None:
                cut.append(Cut(memory_id=memory.id, reason="collapsed", by=by))
            else:
                wanted += cost
                tokens -= cost
                taken.append(memory)
        return taken[: plan.request.limit], cut

    async def _seen(self, scope: Scope, plan: Plan, found: Ranking, seen: Collection[str]) -> list[Cut]:
        """Those of the first of the ranking that are passed over for the session's messages, which show them; only when it is asked for."""
        if not (plan.request.explain and seen):
            return []
        hits = [hit for hit in found.ranked[: plan.request.limit + len(seen)] if hit.mid in seen]
        return [Cut(memory_id=memory.id, reason="already_shown") for memory in await self._search.results(scope, plan, hits)]


def _without_shown(memories: list[Card], state: SessionTurns, shown: Sequence[Turn]) -> list[Card]:
    """The memories without the verbatim ones of messages that the prompt shows anyway."""
    ids = {turn.id for turn in shown}
    here = (state.ref.session_id, state.ref.namespace, state.ref.user_id)
    return [
        memory
        for memory in memories
        if (memory.values["session_id"], memory.namespace, memory.user_id) != here
        or memory.values["extraction_strategy"] != "message"
        or not ids.issuperset(memory.values["extracted_from"] or ("",))
    ]


def _placed(body: MemoryPromptRequest) -> MemoryPromptRequest:
    """The request with its own user and namespace as the session's. Raises BadInput when the session names others."""
    session = body.session
    if session is None or not (body.user_id or body.namespace):
        return body
    for name in ("user_id", "namespace"):
        own, other = getattr(session, name), getattr(body, name)
        if own and other and own != other:
            raise BadInput(f"is another than session.{name}: name one of the two", field=name)
    update = {"user_id": session.user_id or body.user_id, "namespace": session.namespace or body.namespace}
    return changed(body, session=changed(session, **update))


def _names_user(condition: Condition) -> bool:
    """Whether joined conditions say whose memories are meant."""
    joined = [*(condition.and_ or ()), *(condition.or_ or ()), *((condition.not_,) if condition.not_ else ())]
    return condition.user_id is not None or any(map(_names_user, joined))


def lines(memories: Sequence[Card], request: SearchRequest) -> str:
    """The memories as lines, oldest first: the order of a growing store, so that the prompts of following turns begin alike."""
    if not memories:
        return NO_MEMORIES
    zone = zone_of(request.timezone)
    now = (request.reference_time or datetime.now(UTC)).astimezone(zone)
    ordered = sorted(memories, key=lambda memory: (memory.when, memory.id))
    # The same on the same day: notes are for whoever is shown the memory next.
    of_day = (zone, now.date())
    found: list[str] = []
    for memory in ordered:
        known = memory.notes.get("line")
        if known is None or known[0] != of_day:
            known = memory.notes["line"] = (of_day, line(memory, now, zone))
        found.append(known[1])
    return "\n".join(found) + DATA_NOTE


def line(memory: Card, now: datetime, zone: tzinfo) -> str:
    """One memory: when it was, what kind it is, its text on one line, and its id. `now` is in `zone`, too."""
    when = memory.when.astimezone(zone)
    return f"- [{day(when)}, {ago(when, now)}; {memory.memory_type}] {one_line(memory.text)} (ID: {shown_id(memory.id)})"
