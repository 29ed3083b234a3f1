"""Keep the text of memories out of responses that are stored for an Idempotency-Key.

Otherwise, a repeated request would show memories that have been deleted since.
"""

from __future__ import annotations

import json
from typing import Any

from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.foundation.api.operation import Replay
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.scripts import compact


def _without_memories(body: bytes) -> bytes:
    response = json.loads(body)
    for change in _changes_in(response):
        change["memories"] = []
    return compact(response).encode()


async def _with_memories(services: Services, scope: Scope, body: bytes) -> bytes:
    """Read the memories again. The memories of a deleted change are left out."""
    response = json.loads(body)
    changes = _changes_in(response)
    stored = await services[HistoryService].read_existing(scope, [change["id"] for change in changes])
    for change in changes:
        current = stored.get(change["id"])
        change["memories"] = [] if current is None else current.model_dump(mode="json", by_alias=True)["memories"]
    return compact(response).encode()


def _changes_in(response: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the changes in a response, which is a change or a list of changes."""
    return response.get("changes", [response])


def _only_id(body: bytes) -> bytes:
    return compact({"id": json.loads(body)["id"]}).encode()


async def _with_record(services: Services, scope: Scope, body: bytes) -> bytes:
    """Read the memory again, even if it has ended. Raises NotFound if it was deleted."""
    record = await services[HistoryService].record_at(scope, json.loads(body)["id"], None, None)
    return record.model_dump_json(by_alias=True).encode()


CHANGE_REPLAY = Replay(_without_memories, _with_memories)
RECORD_REPLAY = Replay(_only_id, _with_record)
