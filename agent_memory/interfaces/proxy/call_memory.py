"""Recall memories for a model call, and store its new messages and the response."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ValidationError

from agent_memory.features.recall.service import RecallService
from agent_memory.features.sessions.service import SessionService
from agent_memory.foundation.core.errors import AgentMemoryError, Unavailable
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope, SessionRef, Work, carrying_out
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory_client.models import AppendMessagesRequest, MemoryPromptRequest
from agent_memory_client.models.llm import CallOptions, Conversation, last_question, memory_headers, stored_message
from agent_memory_client.models.llm.requests import Message

log = get_logger(__name__)

# A call waits at most this long for its memories.
_RECALL_SECONDS = 5.0
# The last event waits longer if Redis was available at the start of the call: until Redis is back, or until other calls
# have stored their answers.
_STORE_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.05
WRITES_AT_ONCE = 32
"""The maximum number of concurrent writes. With 1,000, the pool of 128 Redis connections refused 174 answers."""


@dataclass(slots=True)
class CallMemory:
    """Memory for one call. Methods log errors instead of raising them."""

    services: Services
    scope: Scope
    options: CallOptions
    ref: SessionRef
    conversation: Conversation
    turns: asyncio.Semaphore
    """Limits writes across all calls to WRITES_AT_ONCE."""
    context: str = ""
    """The text to add to the model request."""
    status: Literal["added", "nothing", "failed"] = "nothing"
    tokens: int = 0
    memory_ids: list[str] = field(default_factory=list[str])
    stored: Literal["yes", "no", "failed"] = "no"
    _since: int | None = None
    _has_answer: bool = False
    _is_patient: bool = True
    """False after Redis was unavailable, because a chat waits only once."""

    @property
    def log_fields(self) -> dict[str, str]:
        return {"tenant": self.scope.tenant, "session_id": self.ref.session_id}

    async def recall(self) -> None:
        """Find memories for the user's last message, and set `context`."""
        try:
            async with asyncio.timeout(_RECALL_SECONDS):
                self._since, _ = await asyncio.gather(self.services[ErasureGuard].now(), self._recall())
        except (AgentMemoryError, TimeoutError) as error:
            self.status, self._is_patient = "failed", False
            log.warning("model call continues without memories", **self.log_fields, error=error)
        except Exception:
            self.status = "failed"
            log.exception("model call continues without memories", **self.log_fields)

    async def _recall(self) -> None:
        if not (query := last_question(self.conversation.messages)):
            return
        recall, limit = self.services[RecallService], self.options.max_tokens
        request = MemoryPromptRequest(
            query=query,
            user_id=self.ref.user_id,
            namespace=self.ref.namespace,
            agent_id=self.options.agent_id,
            long_term_search=True,
            # A prompt's limit includes the query.
            max_tokens=None if limit is None else min(limit + await recall.counter.count_in_thread(query), 1_000_000),
            format="anthropic",
            include_ids=False,
            shown_messages=self.conversation.shown_messages(self.ref.session_id),
        )
        prompt = await recall.build_prompt(self.scope, request)
        if prompt.formatted is not None and prompt.formatted.system:
            self.context, self.status = prompt.formatted.system, "added"
            self.tokens = await recall.counter.count_in_thread(self.context)
            self.memory_ids = [memory.id for memory in prompt.memories]

    async def store(self, answer: Message | None = None) -> bool:
        """Store the request's new messages and the response. Idempotent.

        Returns False if storing fails.
        """
        if self.options.mode != "on":
            return True
        messages = [*self.conversation.new]
        if answer is not None and not self._has_answer:
            messages.append((answer, self.conversation.answer_id))
        if messages and not await self._append(messages):
            self.stored = "failed" if self.stored == "no" else self.stored
            return False
        self.stored, self._has_answer = "yes", self._has_answer or answer is not None
        # A stream may take a long time: its history need not stay in memory.
        self.conversation.messages.clear()
        self.conversation.new.clear()
        return True

    async def _append(self, messages: Sequence[tuple[Message, str]]) -> bool:
        try:
            body = AppendMessagesRequest(
                messages=[stored_message(message, name) for message, name in messages],
                namespace=self.ref.namespace,
                user_id=self.ref.user_id,
                agent_id=self.options.agent_id,
            )
            await self._append_patiently(body)
        except (AgentMemoryError, TimeoutError, ValidationError) as error:
            # A validation error would show the message's text.
            why = "invalid" if isinstance(error, ValidationError) else str(error) or "Redis was unavailable for too long"
            log.warning("messages of a model call not stored", **self.log_fields, error=why)
            return False
        except Exception:
            log.exception("messages of a model call not stored", **self.log_fields)
            return False
        return True

    async def _append_patiently(self, body: AppendMessagesRequest) -> None:
        """Append messages, retrying while Redis is unavailable. Message ids prevent duplicates."""
        pause = _FIRST_PAUSE_SECONDS
        try:
            async with asyncio.timeout(_STORE_SECONDS if self._is_patient else _RECALL_SECONDS):
                while True:
                    try:
                        async with self.turns:
                            # Messages from before the user's erasure must not be stored after it.
                            with carrying_out(Work(since=self._since)):
                                await self.services[SessionService].append_messages(self.scope, self.ref.session_id, body)
                        return
                    except Unavailable:
                        if not self._is_patient:
                            raise
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, 1.0)
        except (TimeoutError, Unavailable):
            self._is_patient = False
            raise

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return response headers that tell the caller what was added and stored."""
        values = memory_headers(
            self.status, tokens=self.tokens, memory_ids=self.memory_ids, session_id=self.ref.session_id, stored=self.stored
        )
        return [(name.encode(), value.encode()) for name, value in values.items()]
