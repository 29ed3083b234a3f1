"""Limit message batches to the configured size and the model's context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from agent_memory.features.sessions.codec import StoredMessage
from agent_memory.foundation.core.errors import ModelUnavailable
from agent_memory.foundation.llm.base import ChatMessage, ChatModel
from agent_memory.foundation.llm.model_context import LEAST_REQUEST_LIMIT

BATCH = 60
# Tokens that a prompt adds to each message: its number, time and role, and the JSON around them.
LINE_TOKENS = 40
# Fewer tokens of a conversation contain no fact worth storing. A model with less room is not called.
LEAST_TOKENS = 64


@dataclass(frozen=True, slots=True)
class PromptShares:
    """How to divide the tokens available in a model's context."""

    messages: int
    """Maximum number of tokens for new messages, including `LINE_TOKENS` for each."""
    before: int
    """Maximum number of tokens for earlier messages, or for the existing summary."""
    answer: int
    """Maximum number of tokens for the model's answer."""

    @classmethod
    def of(
        cls, chat: ChatModel, prompt: Sequence[ChatMessage], answer: type[BaseModel], *, messages: float = 0.4, before: float = 0.15
    ) -> PromptShares | None:
        """Return the shares for fact extraction, or None if the context is known to be full."""
        room = chat.room(prompt, answer)
        if room < 2 * LEAST_TOKENS and chat.context.limit.certain:
            return None
        # An assumed limit may be wrong, so the model gets a small request anyway.
        room = max(room, 3 * LEAST_TOKENS)
        most = chat.context.request_limit or room
        message_tokens = max(min(int(room * messages), most), LEAST_TOKENS)
        return cls(message_tokens, min(int(room * before), most // 2), int(room * (1 - messages - before)))

    @classmethod
    def of_summary(cls, chat: ChatModel, prompt: Sequence[ChatMessage], answer: type[BaseModel]) -> PromptShares | None:
        """Return the shares for a summary, or None if the context is known to be full."""
        return cls.of(chat, prompt, answer, messages=0.3, before=0.4)

    def beside(self, before: int) -> int:
        """Return how many tokens messages may use if earlier context uses `before` tokens."""
        return self.messages + max(self.before - before, 0)


def within(messages: Sequence[StoredMessage], tokens: int, prompt_tokens: int | None = None) -> list[StoredMessage]:
    """Return the first messages that fit into `tokens`, but at least one.

    `prompt_tokens` limits their total size in the prompt.
    """
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
    """If the model timed out, halve the size of future requests and return True.

    Return False for other errors, and for requests that are already small.
    """
    if error.data.get("reason") != "timeout" or message_tokens < 2 * LEAST_REQUEST_LIMIT:
        return False
    chat.context.learn_timeout(message_tokens)
    return True


def less(planned: int, failed: int) -> int:
    """Return the size of the next request after one with `failed` tokens failed.

    This is `planned` if it is at most 80% of `failed`, or else half of `failed`.
    """
    return planned if planned <= failed * 4 // 5 else failed // 2
