"""Read uploaded files, and replace the passages of previous versions."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.extensions.files.passages import MOST_PASSAGES, is_session_of_file, memories_of, message_id, messages_of, passages_of
from agent_memory.extensions.files.service import order_of, remove_derived
from agent_memory.extensions.files.store import FileStore, ref_of
from agent_memory.extensions.files.text import UnreadableFile, read_pages
from agent_memory.features.access.limits import MemoryLimit
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.features.memories.changes.store import ChangeStore
from agent_memory.features.memories.commit import Add, ChangeOrigin, Decision, Forget, MemoryCommits
from agent_memory.features.privacy.derived_memories import delete_lineages, delete_memories_of, load_lineages_of
from agent_memory.features.privacy.surviving_evidence import hand_on
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.api.principals import scope_of_work
from agent_memory.foundation.core.errors import BadInput, Conflict
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.runtime import Runtime
from agent_memory_client.models import AppendMessagesRequest, MemoryMessage, MemoryRecord
from agent_memory_client.models.features.files import StoredFile

_ORIGIN = ChangeOrigin("files", "a new version of the file")
# Memories per script call; each memory blocks Redis for about 0.2 ms. Only replacing a version uses a single call.
_BATCH = 50
_TRIES = 16
# A context window (tokens) so large that the text is never summarized.
_WHOLE_WINDOW = 1_000_000_000


async def read_file(runtime: Runtime, order: JobOrder) -> None:
    """Process an uploaded file unless it is outdated. Idempotent.

    Raises BadInput if the file is unreadable, after making the order a dead letter. Raises TooMany
    at the tenant's memory limit.
    """
    scope = scope_of_work(order.tenant, order.namespaces, order.users)
    store, orders = runtime[FileStore], runtime[OrderStore]
    ref = SessionRef(order.arguments["file_id"] or "", order.arguments["namespace"], order.arguments["user_id"])
    row = await store.load(scope, ref)
    if row.file is None and await is_session_of_file(runtime[SessionStore], scope, ref, or_none=False):
        await remove_derived(runtime.services, scope, ref)  # The file was deleted when a worker died.
    if row.file is None or row.file.state != "queued" or order_of(scope, row.file).arguments["version"] != order.arguments["version"]:
        return
    try:
        ready = await _read(runtime, scope, row.file)
    except UnreadableFile as error:
        failed = row.file.model_copy(update={"state": "failed", "reason": str(error)})
        if await store.swap(scope, ref, row, failed):
            await orders.give_up(order, str(error))
            raise BadInput(str(error), field="body") from None
        return
    if ready is not None and await store.swap(scope, ref, row, ready):
        await orders.keep_receipt(order, {"pages": ready.pages, "passages": ready.passages})
    else:
        await _undo(runtime, scope, ref)


async def _undo(runtime: Runtime, scope: Scope, ref: SessionRef) -> None:
    now = (await runtime[FileStore].load(scope, ref)).file
    if now is None or now.reason == "deleted":
        await remove_derived(runtime.services, scope, ref)
        return
    current = [message_id(now, number) for number in range(MOST_PASSAGES)]
    stored = await runtime[SessionStore].get(scope, ref, 1)
    if stored is not None and stored.messages and stored.messages[-1].message.id in current:
        await delete_memories_of(runtime.services, scope, ref, current=current)


async def _read(runtime: Runtime, scope: Scope, file: StoredFile) -> StoredFile | None:
    """Store a file's passages. Return its record, or None if the file has changed.

    Raises UnreadableFile.
    """
    store, ref = runtime[FileStore], ref_of(file)
    data = await store.load_bytes(scope, ref)
    if data is None:
        raise UnreadableFile("no worker read the file within 7 days: upload it again")
    async with store.reading:
        pages = await read_pages(data, file.media_type)

    def build() -> tuple[list[MemoryMessage], list[MemoryRecord]]:
        messages = messages_of(runtime.settings, file, passages_of(pages))
        return messages, memories_of(runtime.settings, file, messages)

    messages, records = await run_in_thread(build, sum(map(len, pages)))
    await runtime[MemoryLimit].room_for(scope.tenant, len(records))
    if (await store.load(scope, ref)).file != file:
        return None  # A newer version may be stored already.
    await _keep_text(runtime, scope, file, messages)
    await _replace(runtime, scope, ref, records, [message.id for message in messages])
    return file.model_copy(update={"state": "ready", "reason": None, "pages": len(pages), "passages": len(records)})


async def _keep_text(runtime: Runtime, scope: Scope, file: StoredFile, messages: Sequence[MemoryMessage]) -> None:
    ref = ref_of(file)
    stored = await runtime[SessionStore].get(scope, ref, 1)
    if stored is not None and stored.messages and stored.messages[-1].message.id == messages[-1].id:
        return
    body = AppendMessagesRequest.model_construct(
        messages=list(messages), namespace=ref.namespace, user_id=ref.user_id, agent_id=file.agent_id, context_window_max=_WHOLE_WINDOW
    )
    await runtime[SessionService].append(scope, ref.session_id, body, replaces=True)


async def _replace(runtime: Runtime, scope: Scope, ref: SessionRef, records: Sequence[MemoryRecord], message_ids: Sequence[str]) -> None:
    services, commits = runtime.services, runtime[MemoryCommits]
    adds: list[Decision] = [Add(record, dedupe=False) for record in records]
    await runtime[ChangeStore].end_session_proposals(scope, ref, current=message_ids)
    for _ in range(_TRIES):
        former = await load_lineages_of(services, scope, ref, current=message_ids)
        await hand_on(services, scope, ref.session_id, [memory.now for memory in former if memory.now is not None])
        former = await load_lineages_of(services, scope, ref, current=message_ids)
        current = [memory.now for memory in former if memory.now is not None and memory.now.record.retired_at is None]
        batches = [[*map(Forget, current), *adds]] if current else [adds[start : start + _BATCH] for start in range(0, len(adds), _BATCH)]
        outcomes = [await commits.commit(scope, batch, _ORIGIN) for batch in batches]
        if all(outcome.done for outcome in outcomes):
            break
    else:
        raise Conflict("the file's memories are constantly being changed by other requests")
    await delete_lineages(services, scope, ref, former)
