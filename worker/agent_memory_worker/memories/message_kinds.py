"""Act on a message's kind: filler, question or request to forget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from agent_memory.features.memories.store import IndexJob, MemoryStore
from agent_memory.features.privacy.forget.matching import requested
from agent_memory.features.privacy.forget.requests import ForgetRequests
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import AgentMemoryError
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.llm.base import Vectors
from agent_memory.foundation.text.languages.message_kinds import MARKS, MODEL, Kind, message_kinds
from agent_memory.foundation.text.normalization import QUESTION, is_plain, is_turn
from agent_memory.runtime import Runtime
from agent_memory_client.models import MemoryRecord

log = get_logger(__name__)


def kinds_of(model: str, jobs: Sequence[IndexJob], vectors: Mapping[str, Vectors]) -> dict[str, Kind]:
    """Classify current short messages. Return their kinds by mid.

    The result is empty unless the embedding model is `MODEL`.
    """
    messages = [job for job in jobs if job.terms is None and job.record.text in vectors and is_turn(job.record) and is_plain(job.record)]
    if model != MODEL or not messages:
        return {}
    texts = [job.record.text for job in messages]
    kinds = zip(messages, message_kinds(texts, np.stack([vectors[text] for text in texts])), strict=True)
    return {job.mid: kind for job, kind in kinds if kind and (not _answers(job) if kind == "filler" else _by_user(job.record))}


def _by_user(record: MemoryRecord) -> bool:
    return record.metadata.get("role") == "user"


def _answers(job: IndexJob) -> bool:
    return _by_user(job.record) and any(not _by_user(near) and near.text.rstrip().endswith(MARKS) for near in job.before[-1:])


async def act_on_kinds(runtime: Runtime, jobs: Sequence[IndexJob], kinds: Mapping[str, Kind]) -> set[str]:
    """Delete filler, and propose deletions that users request. Return the deleted mids."""
    dropped: set[str] = set()
    for job in jobs:
        scope = scope_of_work(job.tenant)
        if kinds.get(job.mid) == "filler" and await runtime[MemoryStore].drop_records(scope, [(job.record, job.version)]) == [True]:
            dropped.add(job.mid)
        elif kinds.get(job.mid) == "forget" and runtime.settings.longterm.forget_in_conversation != "off":
            await _propose(runtime, scope, job.record)
    return dropped


async def _propose(runtime: Runtime, scope: Scope, record: MemoryRecord) -> None:
    assert record.session_id is not None
    assert record.extracted_from
    ref = SessionRef(record.session_id, record.namespace, record.user_id)
    try:
        await runtime[ForgetRequests].propose(scope, ref, record.extracted_from[0], requested(record.text))
    except AgentMemoryError as error:
        subject = {"tenant": scope.tenant, "session_id": record.session_id, "memory_id": record.id}
        log.warning("no proposal for a request to forget", **subject, error=error)


def with_question_mark(record: MemoryRecord) -> MemoryRecord | None:
    """Return the record marked as a question, or None if it is already marked."""
    return None if QUESTION in record.metadata else record.model_copy(update={"metadata": {**record.metadata, QUESTION: True}})
