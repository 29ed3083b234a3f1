"""Build tool results as dicts for programs and as text for the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from agent_memory_client._tools.calls import ToolCallResolutionResult
from agent_memory_client.models import (
    ForgetMemoryResponse,
    MemoryRecord,
    MemoryRecordResult,
    MemoryRecordResultsResponse,
    SearchScoreTypeEnum,
    WorkingMemoryResponse,
)

SHOWN_MESSAGES = 20
PREVIEW_CHARS = 100
_RECORD_FIELDS = {"id", "text", "memory_type", "topics", "entities", "event_date", "created_at", "user_id", "namespace", "session_id"}


def result_of(function_name: str, result: dict[str, Any]) -> ToolCallResolutionResult:
    """Convert a tool's return value to a result. An `error` in it means that the tool failed."""
    error = result.get("error")
    if error is not None:
        return failure(function_name, str(error))
    return ToolCallResolutionResult(
        success=True, function_name=function_name, result=result, error=None, formatted_response=_for_model(result)
    )


def failure(function_name: str, reason: str) -> ToolCallResolutionResult:
    """Return the result of a failed tool call. `reason` is shown to the model."""
    return ToolCallResolutionResult(
        success=False, function_name=function_name, result=None, error=reason, formatted_response=f"{function_name} failed: {reason}"
    )


def _for_model(result: Mapping[str, Any]) -> str:
    """Format a result for the model: the summary, followed by the details."""
    summary = result.get("summary")
    details = {key: _without_counters(value) for key, value in result.items() if key not in ("summary", "success") and value is not None}
    text = to_json(details, fallback=str, exclude_none=True).decode() if details else ""
    return "\n".join(part for part in (summary, text) if part)


def _without_counters(value: Any) -> Any:
    return value.model_dump(mode="json", include=_RECORD_FIELDS, exclude_none=True) if isinstance(value, MemoryRecord) else value


def search_answer(query: str, offset: int, page: MemoryRecordResultsResponse) -> dict[str, Any]:
    """Build the result of search_memory."""
    return {
        "memories": [{"id": memory.id, **_memory_answer(memory), "relevance_score": _relevance(memory)} for memory in page.memories],
        "total_found": page.total,
        "offset": offset,
        "next_offset": page.next_offset,
        "has_more": page.next_offset is not None,
        "query": query,
        "summary": f"Found {len(page.memories)} relevant memories for: {query}",
    }


def _relevance(memory: MemoryRecordResult) -> float | None:
    if memory.score_type in (None, SearchScoreTypeEnum.SEMANTIC):
        return max(0.0, 1.0 - memory.dist)
    return memory.score


def _memory_answer(memory: MemoryRecord) -> dict[str, Any]:
    return {
        "text": memory.text,
        "memory_type": memory.memory_type.value,
        "topics": memory.topics or [],
        "entities": memory.entities or [],
        "created_at": memory.created_at.isoformat(),
    }


def forget_answer(answer: ForgetMemoryResponse) -> dict[str, Any]:
    """Build the result of forget_memory, with the matches and the next step."""
    if answer.ambiguous:
        summary = "Several things could be meant, and nothing was forgotten: ask the user which one, and call again with its ids."
    elif answer.dry_run:
        summary = "This would be forgotten; call again with dry_run false when it is what the user means." if answer.matches else ""
    elif answer.forgotten:
        summary = f"Forgotten: {', '.join(f'{count} {name}' for name, count in answer.forgotten.items())}."
    else:
        summary = ""
    matches = [match.model_dump(mode="json", exclude_none=True) for match in answer.matches]
    return {
        "ambiguous": answer.ambiguous,
        "dry_run": answer.dry_run,
        "matches": matches,
        "forgotten": answer.forgotten or None,
        "receipt_id": answer.receipt_id,
        "undo_until": None if answer.undo_until is None else answer.undo_until.isoformat(),
        "summary": summary or "No matching memories.",
    }


def session_answer(session_id: str, session: WorkingMemoryResponse, summary: str) -> dict[str, Any]:
    """Build the result of a tool that reads a session.

    `{counts}` in `summary` is replaced with the session's counts.
    """
    data = session.data or {}
    counts = f"{len(session.messages)} messages, {len(session.memories)} stored memories, and {len(data)} data entries"
    newest = session.messages[-SHOWN_MESSAGES:]
    return {
        "session_id": session_id,
        "message_count": len(session.messages),
        "messages": [{"role": m.role, "content": m.content, "created_at": m.created_at.isoformat()} for m in newest],
        "memory_count": len(session.memories),
        "memories": [_memory_answer(memory) for memory in session.memories],
        "data_keys": list(data),
        "data": dict(data),
        "context": session.context,
        "summary": summary.format(counts=counts),
    }


def note_answer(text: str, memory_type: str, topics: Sequence[str] | None, entities: Sequence[str] | None) -> dict[str, Any]:
    return {
        "success": True,
        "memory_type": memory_type,
        "text_preview": _shorten(text, PREVIEW_CHARS),
        "topics": list(topics or []),
        "entities": list(entities or []),
        "summary": f"Successfully stored {memory_type} memory: {_shorten(text, PREVIEW_CHARS // 2)}",
    }


def data_answer(data: Mapping[str, Any], merge_strategy: str) -> dict[str, Any]:
    return {
        "success": True,
        "updated_keys": list(data),
        "merge_strategy": merge_strategy,
        "data_preview": ", ".join(f"{key}: {_shorten(str(value), PREVIEW_CHARS // 2)}" for key, value in data.items()),
        "summary": f"Successfully updated {len(data)} data entries using {merge_strategy} strategy",
    }


def error_answer(action: str, error: Exception, **fields: Any) -> dict[str, Any]:
    """Build the result of a failed tool call. `action` describes what was attempted."""
    return {**fields, "error": str(error), "summary": f"Error {action}: {error}"}


def current_datetime() -> dict[str, Any]:
    """Return the current time in ISO 8601 format and as whole seconds since the epoch."""
    now = datetime.now(UTC).replace(microsecond=0)
    return {"iso_utc": now.isoformat().replace("+00:00", "Z"), "unix_ts": int(now.timestamp())}


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
