"""Read a session once, and build the prompt sections based on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent_memory.features.recall.formats import text_message
from agent_memory.features.recall.line_escaping import escape_frames
from agent_memory.features.sessions.codec import PromptTurn, SessionTurns
from agent_memory.features.sessions.service import fitting
from agent_memory.features.sessions.store import SessionStore, TokenWindow
from agent_memory.foundation.core.prompt_sections import PER_MESSAGE, PromptAsk, SectionText, SessionMessages
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.catalog import context_window
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.text.cleaning.control_characters import plain_text
from agent_memory.foundation.text.prompt_marks import SUMMARY_HEAD
from agent_memory_client.models import MemoryPromptRequest


class SessionSection:
    """Reads a prompt's session. The session loads first, because other sections depend on it."""

    def __init__(self, settings: Settings, store: SessionStore, counter: TokenCounter) -> None:
        self._settings = settings
        self._store = store
        self._counter = counter

    def queue_session(self, pipe: Pipe, ask: PromptAsk) -> int:
        """Queue the session's reads. Return the number of replies."""
        if ask.session is None:
            return 0
        self._store.queue_turns(pipe, ask.scope, ask.session, self._read_window(ask.body))
        return 2

    async def load_session(self, ask: PromptAsk, replies: Sequence[Any]) -> SessionContent:
        """Return the requested session or, if it is missing, the only session with the same id."""
        turns: SessionTurns | None = None
        if (ref := ask.session) is not None:
            window = self._read_window(ask.body)
            turns = self._store.parse_turns(ask.scope, replies)
            if turns is not None and turns.parted:
                turns = await self._store.turns(ask.scope, ref, window)
            if turns is None:
                only = await self._store.find_only(ask.scope, ref)
                turns = None if only is None else await self._store.turns(ask.scope, only, window)
        summary = SummaryContent(turns.context or "" if turns is not None else "", self._counter)
        return SessionContent(turns, summary, self._named_window(ask.body))

    def _named_window(self, body: MemoryPromptRequest) -> int | None:
        session = body.session
        if session is None or not (session.model_name or session.context_window_max):
            return None
        return session.context_window_max or context_window(session.model_name, self._settings.models)

    def _read_window(self, body: MemoryPromptRequest) -> TokenWindow:
        limits = [tokens for tokens in (self._named_window(body), body.max_tokens) if tokens is not None]
        overhead = 0 if body.max_tokens is None else PER_MESSAGE
        return TokenWindow(min(limits, default=None), self._settings.models.default_context_window, overhead)


@dataclass(slots=True)
class SessionContent:
    """A session's summary, and as many of its last messages as fit."""

    turns: SessionTurns | None
    summary: SummaryContent
    named_window: int | None

    def window_tokens(self) -> int:
        tokens = self.fit_window(None).count_tokens()
        return tokens if self.named_window is None else min(tokens, self.named_window)

    def fit_window(self, tokens: int | None) -> FittedWindow:
        """Return the last messages that fit, always including the newest one."""
        if self.turns is None or tokens is None:
            return FittedWindow(self.turns, () if self.turns is None else self.turns.messages)
        window = tokens if self.named_window is None else min(self.named_window, tokens)
        return FittedWindow(self.turns, fitting(self.turns.messages, window, overhead=PER_MESSAGE))


@dataclass(slots=True)
class SummaryContent:
    text: str
    counter: TokenCounter

    def fit_section(self, tokens: int | None) -> SummaryContent:
        if not self.text or tokens is None or self.counter.count(self.text) <= tokens:
            return self
        return SummaryContent(self.counter.truncate(self.text, tokens), self.counter)

    def count_tokens(self) -> int:
        return self.counter.count(self.text) + PER_MESSAGE if self.text else 0

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        if not self.text:
            return SectionText()
        text = SUMMARY_HEAD + escape_frames(self.text)
        return SectionText([text_message("system", text)], [text])


@dataclass(slots=True)
class FittedWindow:
    turns: SessionTurns | None
    messages: Sequence[PromptTurn]

    @property
    def shown_messages(self) -> SessionMessages | None:
        turns = self.turns
        if turns is None:
            return None
        return SessionMessages(turns.ref, [turn.id for turn in self.messages], turns.total - len(self.messages))

    def count_tokens(self) -> int:
        return sum(turn.tokens + PER_MESSAGE for turn in self.messages)

    def render_section(self, messages: SessionMessages | None) -> SectionText:
        return SectionText([turn_message(turn) for turn in self.messages])


def turn_message(turn: PromptTurn) -> dict[str, Any]:
    """Convert a session message for the prompt.

    Unsupported roles become `assistant`, and the original is saved in `original_role`.
    """
    message = text_message("user" if turn.role == "user" else "assistant", plain_text(turn.content))
    if turn.role not in ("user", "assistant"):
        message["original_role"] = turn.role
    if (beside := turn.beside) is not None:
        if "p" in beside:
            message["content_parts"] = [_plain_part(part) for part in beside["p"]]
        if "n" in beside:
            message["no_content"] = beside["n"]
        message = {**beside.get("f", {}), **message}
    return message


def _plain_part(part: Any) -> Any:
    if isinstance(part, dict) and isinstance(text := cast("dict[str, Any]", part).get("text"), str):
        return {**part, "text": plain_text(text)}
    return part
