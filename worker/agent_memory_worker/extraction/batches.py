"""Size batches for a model: at most the configured size, and what its context has room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from agent_memory.features.sessions.codec import StoredMessage
from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.llm.base import ChatMessage, ChatModel
from agent_memory.foundation.llm.model_context import LEAST_ASKED

BATCH = 60
# What a prompt adds to each message: its number, its time, its role and the JSON around them.
LINE_TOKENS = 40
# Less of a conversation than this tells nothing that could be kept: a model with so little room is asked for nothing.
LEAST_TOKENS = 64


@dataclass(frozen=True, slots=True)
class PromptShares:
    """Token shares of the room that a prompt leaves in a model's context."""

    messages: int
    """New messages, as the prompt shows them."""
    before: int
    """Context: earlier messages, or the summary so far."""
    answer: int

    @classmethod
    def of(cls, chat: ChatModel, prompt: Sequence[ChatMessage], answer: type[BaseModel]) -> PromptShares | None:
        """Return shares for facts: an answer is about as long as its messages. None if there is certainly no room."""
        return cls._split(chat, chat.room(prompt, answer), messages=0.4, before=0.15)

    @classmethod
    def of_summary(cls, chat: ChatModel, prompt: Sequence[ChatMessage], answer: type[BaseModel]) -> PromptShares | None:
        """Return shares for summaries: the summary so far precedes the messages. None as for `of`."""
        return cls._split(chat, chat.room(prompt, answer), messages=0.3, before=0.4)

    @classmethod
    def _split(cls, chat: ChatModel, room: int, *, messages: float, before: float) -> PromptShares | None:
        if room < 2 * LEAST_TOKENS and chat.context.limit.certain:
            return None
        # What is only assumed is no reason to ask for nothing at all.
        room = max(room, 3 * LEAST_TOKENS)
        most = chat.context.most_asked or room
        message_tokens = max(min(int(room * messages), most), LEAST_TOKENS)
        return cls(message_tokens, min(int(room * before), most // 2), int(room * (1 - messages - before)))

    def beside(self, before: int) -> int:
        """Return the tokens for messages if the context takes `before` tokens: they get its unused share."""
        return self.messages + max(self.before - before, 0)


def within(messages: Sequence[StoredMessage], tokens: int, prompt_tokens: int | None = None) -> list[StoredMessage]:
    """Return the first messages within `tokens`, and within `prompt_tokens` as a prompt shows them; at least one."""
    fitting: list[StoredMessage] = []
    for stored in messages:
        tokens -= stored.tokens
        prompt_tokens = None if prompt_tokens is None else prompt_tokens - stored.tokens - LINE_TOKENS
        if fitting and (tokens < 0 or (prompt_tokens is not None and prompt_tokens < 0)):
            break
        fitting.append(stored)
    return fitting


def size(messages: Sequence[StoredMessage]) -> int:
    return sum(stored.tokens + LINE_TOKENS for stored in messages)


def asks_less_after(error: ModelUnavailable, chat: ChatModel, message_tokens: int) -> bool:
    """True if about `message_tokens` tokens were too much for a slow model; it gets half as many from now on."""
    if error.data.get("reason") != "timeout" or message_tokens < 2 * LEAST_ASKED:
        return False
    chat.context.learn_timeout(message_tokens)
    return True


def less(planned: int, failed: int) -> int:
    """Return the next size after `failed` was too much: `planned` if clearly less, else half."""
    return planned if planned <= failed * 4 // 5 else failed // 2
