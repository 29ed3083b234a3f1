"""The memory prompt: sections under one token budget, read in one round trip and assembled into messages ready for a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent_memory.access.principals import session_of
from agent_memory.core.errors import BadInput, UnsupportedRequest
from agent_memory.core.prompt_sections import FittedSection, PromptAsk, PromptSection, SectionContent, SectionReads, SectionText
from agent_memory.core.scope import Scope
from agent_memory.llm.tokens import TokenCounter
from agent_memory.recall.budget import TokenBudget
from agent_memory.recall.formats import FORMAT_TOKENS, FormattedPrompt, format_prompt
from agent_memory.recall.prompt import PER_MESSAGE, Prompt, text_message
from agent_memory.recall.sections.memories import searches
from agent_memory.recall.sections.session import SessionContent, SessionSection
from agent_memory.storage.connection import Pipe, PipelineReader
from agent_memory_client.models import MemoryPromptRequest, MemoryPromptResponse

# Of a prompt's tokens, what each part gets at most while there is more to say: what always holds, the summary, and facts and what was said
# together. What a part leaves goes to the next one, and in the end to the session's messages.
_ALWAYS_SHARE = 0.1
_SUMMARY_SHARE = 0.2
_SECTION_SHARE = 0.4
# The tokens of a prompt in a format, where its request names none.
_FORMAT_TOKENS = 16_000


class RecallService:
    """Puts prompts together: the session's summary, its messages, and what the sections say, in their order."""

    def __init__(self, reader: PipelineReader, session: SessionSection, sections: Sequence[PromptSection], counter: TokenCounter) -> None:
        self._read = reader
        self._session = session
        self._sections = sections
        self._counter = counter

    async def prompt(self, scope: Scope, body: MemoryPromptRequest, *, optimize_query: bool = False) -> MemoryPromptResponse:
        """As `build_prompt`, as the wire model."""
        return (await self.build_prompt(scope, body, optimize_query=optimize_query)).model()

    async def build_prompt(self, scope: Scope, body: MemoryPromptRequest, *, optimize_query: bool = False, explain: bool = False) -> Prompt:
        """The messages for a chat model. With `explain` it says how it came about, and does not count as a reading of its memories.

        Raises Refused when neither a session nor a search is asked for, BadInput, and what sections raise.
        """
        ask = _ask_of(scope, body, optimize_query=optimize_query, explain=explain)
        session, contents = await self._load_sections(ask)
        budget = TokenBudget(await self._token_budget(ask.body), shared=ask.body.session is not None)
        # No feature has a section yet of what always holds.
        budget.offer(_ALWAYS_SHARE)
        fitted: list[FittedSection] = [session.summary.fit_section(budget.offer(_SUMMARY_SHARE))]
        budget.take(fitted[0].count_tokens)
        for content in contents:
            fitted.append(content.fit_section(budget.offer(_SECTION_SHARE)))
            budget.take(fitted[-1].count_tokens)
        window = session.window.fit_section(budget.left)
        summary, *sections = [section.render_section(window.shown) for section in fitted]
        texts = [summary, window.render_section(window.shown), *sections]
        return Prompt(
            [*(message for text in texts for message in text.messages), text_message("user", ask.body.query)],
            [memory for text in texts for memory in text.memories],
            [notice for text in texts for notice in text.notices],
            next((text.explanation for text in texts if text.explanation is not None), None),
            next((text.search for text in texts if text.search is not None), None),
            _formatted(ask.body, [summary, *sections], texts[1]),
        )

    async def _load_sections(self, ask: PromptAsk) -> tuple[SessionContent, list[SectionContent]]:
        """What all sections read: one round trip. A second one finds a session by its id alone."""
        opened = await self._open_sections(ask)
        counts: list[int] = []

        def build(pipe: Pipe) -> None:
            # What is not answered over one protocol is queued again for another.
            counts[:] = [self._session.queue_session(pipe, ask), *(reads.queue_section(pipe) for reads in opened)]

        of_session, *of_sections = _split(await self._read(build), counts)
        session = await self._session.load_session(ask, of_session)
        if session.messages is not None and session.messages.ref != ask.session:
            # The session was found by its id alone: it is a user's, and so is what belongs into its prompt.
            return session, await self._reload_sections(replace(ask, session=session.messages.ref), session)
        messages = session.messages
        return session, [await reads.load_section(replies, messages) for reads, replies in zip(opened, of_sections, strict=True)]

    async def _reload_sections(self, ask: PromptAsk, session: SessionContent) -> list[SectionContent]:
        """The sections of another session than the one that was asked for."""
        opened = await self._open_sections(ask)
        counts: list[int] = []

        def build(pipe: Pipe) -> None:
            counts[:] = [reads.queue_section(pipe) for reads in opened]

        of_sections = _split(await self._read(build), counts)
        return [await reads.load_section(replies, session.messages) for reads, replies in zip(opened, of_sections, strict=True)]

    async def _open_sections(self, ask: PromptAsk) -> list[SectionReads]:
        opened = [await section.open_section(ask) for section in self._sections]
        return [reads for reads in opened if reads is not None]

    async def _token_budget(self, body: MemoryPromptRequest) -> int | None:
        """The tokens that there are beside the query; None without a limit."""
        if body.max_tokens is None:
            return None
        headings = 0 if body.format is None else FORMAT_TOKENS
        return max(body.max_tokens - await self._counter.count_aside(body.query) - PER_MESSAGE - headings, 0)


def _ask_of(scope: Scope, body: MemoryPromptRequest, *, optimize_query: bool, explain: bool) -> PromptAsk:
    """What a request asks for, its own user and namespace being the session's. Raises BadInput when the session names others."""
    session = body.session
    if session is not None and (body.user_id or body.namespace):
        for name in ("user_id", "namespace"):
            own, other = getattr(session, name), getattr(body, name)
            if own and other and own != other:
                raise BadInput(f"is another than session.{name}: name one of the two", field=name)
        update = {"user_id": session.user_id or body.user_id, "namespace": session.namespace or body.namespace}
        session = session.model_copy(update=update)
        body = body.model_copy(update={"session": session})
    if session is None and not searches(body):
        raise UnsupportedRequest("Either session or long_term_search must be provided", field="session")
    if body.format is not None and body.max_tokens is None:
        body = body.model_copy(update={"max_tokens": _FORMAT_TOKENS})
    ref = None if session is None else session_of(scope, session.session_id, session.namespace, session.user_id)
    return PromptAsk(scope, body, ref, optimize_query, explain)


def _formatted(body: MemoryPromptRequest, sections: Sequence[SectionText], window: SectionText) -> FormattedPrompt | None:
    """The prompt in the format that the request names; None for none."""
    if body.format is None:
        return None
    parts = [part for section in sections for part in section.parts or map(_text_of, section.messages) if part]
    return format_prompt(body.format, parts, window.messages, body.query)


def _text_of(message: dict[str, Any]) -> str:
    return message["content"]["text"]


def _split(replies: Sequence[Any], counts: Sequence[int]) -> list[Sequence[Any]]:
    """Replies in groups of these sizes."""
    groups: list[Sequence[Any]] = []
    start = 0
    for count in counts:
        groups.append(replies[start : start + count])
        start += count
    return groups
