"""Define tool responses that have no model in the REST API."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from agent_memory_client.models import AnswerExplanation, MemoryRecord, MemoryRecordResult, PromptFormat, WorkingMemoryResponse
from agent_memory_client.models._types import Absent


class CurrentDatetime(BaseModel):
    """The time in UTC: ISO 8601, and whole seconds since 1970."""

    iso_utc: str
    unix_ts: int


class MemoryPrompt(BaseModel):
    """Messages ready to send to a chat model, and the memories they contain."""

    messages: list[dict[str, Any]]
    long_term_memories: list[MemoryRecordResult] | None = None
    notices: list[str] | None = None
    explanation: AnswerExplanation | None = None
    format: PromptFormat | None = Absent
    system: str | None = Absent
    text: str | None = Absent
    relevant: bool | None = Absent


class StoredSession(WorkingMemoryResponse):
    """A session in a response. Its memories are always full records, however they were stored."""

    memories: list[MemoryRecord] = Field(default_factory=list[MemoryRecord])  # pyright: ignore[reportIncompatibleVariableOverride]
