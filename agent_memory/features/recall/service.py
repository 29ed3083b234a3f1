"""Build the memory prompt from sections that share a round trip and a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from agent_memory.features.extraction.rule_store import RuleStore, parse_zone
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.recall.formats import FORMAT_TOKENS, FormattedPrompt, Prompt, format_prompt, text_message
from agent_memory.features.recall.line_escaping import escape_frames
from agent_memory.features.recall.sections.memories import searches
from agent_memory.features.recall.sections.memory_content import MemoriesContent
from agent_memory.features.recall.sections.session import SessionContent, SessionSection
from agent_memory.features.recall.token_budget import (
    ALWAYS_SHARE,
    DEFAULT_FORMAT_TOKENS,
    RECALLED_SHARE,
    SUMMARY_SHARE,
    TokenBudget,
)
from agent_memory.features.sessions.strategies import read_zone
from agent_memory.foundation.api.principals import permit_agent, reader_of, session_of
from agent_memory.foundation.core.clock import zone_of
from agent_memory.foundation.core.errors import BadInput, UnsupportedRequest
from agent_memory.foundation.core.prompt_sections import (
    PER_MESSAGE,
    AnnouncedSection,
    FittedSection,
    PromptAsk,
    PromptSection,
    Reader,
    SectionContent,
    SectionKind,
    SectionReads,
    SectionText,
    SessionMessages,
)
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.connection import Pipe, PipelineReader
from agent_memory.foundation.storage.search.filters import only_value
from agent_memory.foundation.text.cleaning.control_characters import plain_text
from agent_memory_client.models import ExplainRequest, Explanation, HitExplanation, MemoryPromptRequest, MemoryPromptResponse, SearchRequest

Part = TypeVar("Part")


class _Kinds(NamedTuple, Generic[Part]):
    """Values per section, grouped by kind: permanent, this feature's own, and recalled."""

    always: Sequence[Part]
    own: Sequence[Part]
    recalled: Sequence[Part]


class RecallService:
    """Assembles prompts: permanent sections, summary, messages, memories, then other sections."""

    def __init__(
        self,
        reader: PipelineReader,
        session: SessionSection,
        memories: PromptSection,
        counter: TokenCounter,
        zones: RuleStore,
        searches: SearchService,
    ) -> None:
        self._read = reader
        self._searches = searches
        self._zones = zones
        self._session = session
        self._sections: _Kinds[PromptSection] = _Kinds((), (memories,), ())
        self.counter = counter

    def add_sections(self, sections: Sequence[AnnouncedSection]) -> None:
        """Add sections to all prompts. Order is preserved within each kind."""
        always, own, recalled = self._sections
        always = [*always, *(section for section in sections if section.kind is SectionKind.ALWAYS)]
        recalled = [*recalled, *(section for section in sections if section.kind is SectionKind.RECALLED)]
        self._sections = _Kinds(always, own, recalled)

    async def prompt(self, scope: Scope, body: MemoryPromptRequest, *, optimize_query: bool = False) -> MemoryPromptResponse:
        """Build a prompt with `build_prompt`, and convert it to the wire model."""
        return (await self.build_prompt(scope, body, optimize_query=optimize_query)).model()

    async def build_prompt(self, scope: Scope, body: MemoryPromptRequest, *, optimize_query: bool = False, explain: bool = False) -> Prompt:
        """Build a prompt. If `explain` is true, its memories are not counted as read.

        Raises UnsupportedRequest, BadInput and errors from the sections.
        """
        ask = _ask_of(scope, body, optimize_query=optimize_query, explain=explain)
        budget = TokenBudget(await self._token_budget(ask.body), shared=ask.body.session is not None)
        session, contents = await self._load_sections(ask, budget)
        share = budget.memory_share(session.window_tokens())

        def fit_all() -> tuple[list[FittedSection], list[FittedSection], list[FittedSection], list[FittedSection]]:
            return (
                _fit_together(budget, ALWAYS_SHARE, contents.always),
                _fit_together(budget, SUMMARY_SHARE, [session.summary]),
                [fitted for content in contents.own for fitted in _fit_together(budget, share, [content])],
                _fit_together(budget, RECALLED_SHARE, contents.recalled),
            )

        # Runs in a thread if long: a hundred memories of 64 KB have two million tokens, which take seconds to count.
        memories = [card for content in contents.own if isinstance(content, MemoriesContent) for card in content.cards]
        characters = len(session.summary.text) + sum(len(card.text) for card in memories)
        fitted_always, fitted_summary, fitted_own, fitted_recalled = await run_in_thread(fit_all, characters)
        window = session.fit_window(budget.left)
        shown_messages = window.shown_messages or ask.shown_messages
        always = [
            *[_framed(section.render_section(shown_messages)) for section in fitted_always],
            *[section.render_section(shown_messages) for section in fitted_summary],
        ]
        recalled = [
            *[section.render_section(shown_messages) for section in fitted_own],
            *[_framed(section.render_section(shown_messages)) for section in fitted_recalled],
        ]
        turns = window.render_section(shown_messages)
        texts = [*always, turns, *recalled]
        return Prompt(
            [*(message for text in texts for message in text.messages), text_message("user", ask.body.query)],
            [memory for text in texts for memory in text.memories],
            [notice for text in texts for notice in text.notices],
            next((text.explanation for text in texts if text.explanation is not None), None),
            next((text.search for text in texts if text.search is not None), None),
            _formatted(ask.body, [*always, *recalled], turns),
        )

    async def explain_memory_of(self, scope: Scope, body: ExplainRequest) -> Explanation:
        """Return a memory's rank in a prompt or search, or the reason it was omitted.

        Raises UnsupportedRequest if the prompt does not search.
        """
        memory_id = body.memory_id
        if body.prompt is None:
            return await self._searches.explain_search(scope, memory_id, body.search or SearchRequest())
        prompt = await self.build_prompt(scope, body.prompt, explain=True)
        if prompt.search is None or prompt.explanation is None:
            raise UnsupportedRequest("the prompt does not search long-term memory: send long_term_search", field="prompt.long_term_search")
        for memory in prompt.memories:
            if memory.id == memory_id:
                why: HitExplanation | None = memory.values["explanation"]
                rank = None if why is None else why.rank
                return Explanation(memory_id=memory_id, returned=True, reason="returned", rank=rank, explanation=why)
        for cut in prompt.explanation.cut:
            if cut.memory_id == memory_id:
                return Explanation(returned=False, **cut.model_dump())
        explained = await self._searches.explain_search(scope, memory_id, prompt.search, paged=False)
        # The search finds the memory, but a message that is not promoted yet took its place in the prompt.
        return explained.model_copy(update={"returned": False, "reason": "beyond_limit"}) if explained.returned else explained

    async def _load_sections(self, ask: PromptAsk, budget: TokenBudget) -> tuple[SessionContent, _Kinds[SectionContent]]:
        opened = await self._open_sections(ask)
        of_session, *replies = await self._read_sections(ask, opened, with_session=True)
        session = await self._session.load_session(ask, of_session)
        messages = session.fit_window(budget.window_tokens()).shown_messages
        if messages is None:
            messages = ask.shown_messages
        elif messages.ref != ask.session:
            # The session was found by its id alone, so the other sections' user is known only now.
            reader = Reader(messages.ref.namespace, messages.ref.user_id, ask.reader.agent_id)
            ask = replace(ask, session=messages.ref, reader=reader)
            opened = await self._open_sections(ask)
            _, *replies = await self._read_sections(ask, opened, with_session=False)
        groups = iter(replies)
        return session, _Kinds(*[[await reads.load_section(next(groups), messages) for reads in kind] for kind in opened])

    async def _read_sections(self, ask: PromptAsk, opened: _Kinds[SectionReads], *, with_session: bool) -> list[Sequence[Any]]:
        """Read the session and all sections, and set `ask.zone`."""
        counts: list[int] = []

        def build(pipe: Pipe) -> None:
            # Replace the counts, because a retry runs this function again.
            queued = [self._queue_zone(pipe, ask), self._session.queue_session(pipe, ask) if with_session else 0]
            counts[:] = [*queued, *(reads.queue_section(pipe) for kind in opened for reads in kind)]

        of_zone, *groups = _split(await self._read(build), counts)
        ask.zone = parse_zone(of_zone[0]) if of_zone else ask.zone
        return groups

    def _queue_zone(self, pipe: Pipe, ask: PromptAsk) -> int:
        if ask.body.timezone is not None:
            return 0
        search = ask.body.long_term_search if isinstance(ask.body.long_term_search, SearchRequest) else None
        namespace, user = ask.reader.namespace, ask.reader.user_id
        if search is not None:
            namespace, user = namespace or only_value(search, "namespace"), user or only_value(search, "user_id")
        return self._zones.queue_zone(pipe, ask.scope, namespace, user)

    async def _open_sections(self, ask: PromptAsk) -> _Kinds[SectionReads]:
        kinds = [[await section.open_section(ask) for section in sections] for sections in self._sections]
        return _Kinds(*([reads for reads in opened if reads is not None] for opened in kinds))

    async def _token_budget(self, body: MemoryPromptRequest) -> int | None:
        if body.max_tokens is None:
            return None
        headings = 0 if body.format is None else FORMAT_TOKENS
        return max(body.max_tokens - await self.counter.count_in_thread(body.query) - PER_MESSAGE - headings, 0)


def _ask_of(scope: Scope, body: MemoryPromptRequest, *, optimize_query: bool, explain: bool) -> PromptAsk:
    """Validate a request and convert it for the sections.

    Raises BadInput, UnsupportedRequest or Forbidden.
    """
    if (query := plain_text(body.query)) != body.query:
        body = body.model_copy(update={"query": query})
    session = body.session
    if session is None and body.long_term_search is None and body.user_id:
        body = body.model_copy(update={"long_term_search": True})
    if session is not None and (body.user_id or body.namespace or body.agent_id):
        names = ("user_id", "namespace", "agent_id")
        for name in names:
            own, other = getattr(session, name), getattr(body, name)
            if own and other and own != other:
                raise BadInput(f"differs from session.{name}: specify only one of the two", field=name)
        session = session.model_copy(update={name: getattr(session, name) or getattr(body, name) for name in names})
        body = body.model_copy(update={"session": session})
    if session is not None and body.shown_messages is not None:
        raise BadInput("is only for prompts without a session: omit it, or session", field="shown_messages")
    if session is None and not searches(body):
        raise UnsupportedRequest("Either session or long_term_search must be provided", field="session")
    body = _with_one_zone(body)
    names_tokens = body.max_tokens is not None
    if body.format is not None and not names_tokens:
        body = body.model_copy(update={"max_tokens": DEFAULT_FORMAT_TOKENS})
    ref = None if session is None else session_of(scope, session.session_id, session.namespace, session.user_id)
    agent = body.agent_id if session is None else session.agent_id
    permit_agent(scope, agent)
    reader = reader_of(scope, body.namespace, body.user_id, agent) if ref is None else Reader(ref.namespace, ref.user_id, agent)
    shown_messages = None
    if body.shown_messages is not None:
        place = session_of(scope, body.shown_messages.session_id, body.namespace, body.user_id)
        shown_messages = SessionMessages(place, body.shown_messages.message_ids)
    return PromptAsk(scope, body, ref, optimize_query, explain, reader, names_tokens, zone_of(body.timezone), shown_messages)


def _with_one_zone(body: MemoryPromptRequest) -> MemoryPromptRequest:
    """Merge the request's time zones into one. Raises BadInput if they differ or are unknown."""
    search = body.long_term_search if isinstance(body.long_term_search, SearchRequest) else None
    names = [name for name in (body.timezone, None if search is None else search.timezone) if name is not None]
    if not names:
        return body
    if len(set(names)) > 1:
        raise BadInput("differs from long_term_search.timezone: specify only one of the two", field="timezone")
    read_zone(names[0])
    update: dict[str, Any] = {"timezone": names[0]}
    if search is not None:
        update["long_term_search"] = search.model_copy(update={"timezone": names[0]})
    return body.model_copy(update=update)


def _fit_together(budget: TokenBudget, share: float, contents: Sequence[SectionContent]) -> list[FittedSection]:
    """Fit sections, in order, into a shared portion of the budget."""
    most = budget.offer(share)
    fitted: list[FittedSection] = []
    for content in contents:
        fitted.append(content.fit_section(most))
        budget.take(fitted[-1].count_tokens)
        most = budget.offer(0)
    return fitted


def _framed(text: SectionText) -> SectionText:
    """Turn each part of a feature's section into a system message.

    Text that imitates prompt lines or headings is escaped.
    """
    if not text.parts:
        return text
    # The first line is the section's heading.
    headed = [part.partition("\n") for part in text.parts]
    parts = [heading + newline + escape_frames(rest) for heading, newline, rest in headed]
    return replace(text, parts=parts, messages=[text_message("system", part) for part in parts])


def _formatted(body: MemoryPromptRequest, sections: Sequence[SectionText], window: SectionText) -> FormattedPrompt | None:
    if body.format is None:
        return None
    parts = [part for section in sections for part in section.parts or map(_text_of, section.messages) if part]
    return format_prompt(body.format, parts, window.messages, body.query)


def _text_of(message: dict[str, Any]) -> str:
    return message["content"]["text"]


def _split(replies: Sequence[Any], counts: Sequence[int]) -> list[Sequence[Any]]:
    groups: list[Sequence[Any]] = []
    start = 0
    for count in counts:
        groups.append(replies[start : start + count])
        start += count
    return groups
