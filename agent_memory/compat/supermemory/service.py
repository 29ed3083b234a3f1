"""Supermemory's operations over our features; it keeps nothing itself. Everything lives in one namespace."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from agent_memory.access.principals import within_namespace, writing
from agent_memory.compat.errors import bad_input
from agent_memory.compat.supermemory.answers import TAGS, document_answer, metadata_of
from agent_memory.compat.supermemory.filters import condition_of
from agent_memory.compat.supermemory.requests import (
    MAX_PAGE,
    BulkDelete,
    ChangedMemory,
    Document,
    DocumentBatch,
    DocumentChanges,
    DocumentListing,
    NamedMemory,
    NewMemories,
    Search,
)
from agent_memory.core.errors import AgentMemoryError, BadInput, NotFound, NotSupported, Unavailable
from agent_memory.core.scope import Scope, SessionRef
from agent_memory.jobs.operations import OperationService
from agent_memory.memories.annotations import REMEMBER_AS
from agent_memory.memories.search.service import SearchService
from agent_memory.memories.service import MemoryService
from agent_memory.privacy.forget.service import ForgetService
from agent_memory.profile.service import ProfileService
from agent_memory.runtime import Runtime
from agent_memory.sessions.service import SessionService
from agent_memory_client.models import (
    AppendMessagesRequest,
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    ForgetMemoryRequest,
    MemoryRecord,
    MemoryRecordResult,
    OperationState,
    SearchRequest,
    WorkingMemoryResponse,
)
from agent_memory_client.models.features.profile import Profile

# Deleting all of a container goes page by page: so many pages at most.
_MOST_PAGES = 1_000


class SupermemoryService:
    """What Supermemory's API does, for the caller of one request. Raises Forbidden when the caller does not reach its namespace.

    A document is a session of one message whose state is that of the session's work; its id is the session's. The first container tag is
    the user.
    """

    def __init__(self, runtime: Runtime, scope: Scope) -> None:
        self._services = runtime.services
        self._extracts = runtime.extracts
        self._namespace = runtime.settings.compat.namespace_of("supermemory")
        self._scope = within_namespace(scope, self._namespace)

    async def add(self, document: Document) -> dict[str, Any]:
        """Takes a document in; what it says is remembered in the background. One of the same `customId` is replaced."""
        scope, tags = writing(self._scope), document.tags()
        user = tags[0] if tags else None
        name = document.custom_id or uuid4().hex
        if document.custom_id:
            existing = await self._find(name, user)
            if existing is not None:
                content, metadata = _document_of(existing)
                if (content, metadata_of(metadata)) == (document.content, document.metadata or {}):
                    return {"id": name, "status": await self._status(existing)}
                await self._remove(scope, existing)
        metadata = {**(document.metadata or {}), **({TAGS: tags[1:]} if tags[1:] else {})}
        body = AppendMessagesRequest.model_validate(
            {
                "namespace": self._namespace,
                "user_id": user,
                "messages": [
                    {
                        "role": "user",
                        "content": document.content,
                        "id": uuid4().hex,
                        **({REMEMBER_AS: {"metadata": metadata}} if metadata else {}),
                        **({} if document.said is None else {"created_at": document.said}),
                    }
                ],
            }
        )
        await self._services[SessionService].append(scope, name, body)
        await self._services[OperationService].hasten_session(scope, SessionRef(name, self._namespace, user))
        return {"id": name, "status": "queued"}

    async def add_batch(self, batch: DocumentBatch) -> dict[str, Any]:
        """Takes documents in one after the other; those that do not fit are told and do not hinder the others."""
        shared = batch.model_dump(by_alias=True, exclude_none=True, exclude={"documents"})
        results: list[dict[str, Any]] = []
        for item in batch.documents:
            try:
                values = {"content": item} if isinstance(item, str) else item
                results.append(await self.add(Document.model_validate({**shared, **values})))
            except ValidationError as error:
                results.append({"id": "", "status": "error", "error": bad_input(error).message})
            except Unavailable:
                raise
            except AgentMemoryError as error:
                results.append({"id": "", "status": "error", "error": error.message})
        failed = sum(result["status"] == "error" for result in results)
        return {"results": results, "success": len(results) - failed, "failed": failed}

    async def get(self, name: str, user: str | None = None) -> dict[str, Any]:
        """A document. Raises NotFound."""
        session = await self._session(name, user)
        return await self._answer(session)

    async def change(self, name: str, changes: DocumentChanges, user: str | None = None) -> dict[str, Any]:
        """Replaces a document's text, metadata or tags: it is taken in again, and what came of the old text goes. Raises NotFound."""
        session = await self._session(name, user)
        content, metadata = _document_of(session)
        kept = [session.user_id] if session.user_id else []
        tags = changes.tags() or [*kept, *(metadata.get(TAGS) or [])]
        document = Document(
            content=changes.content or content,
            custom_id=changes.custom_id or name,
            container_tags=tags or None,
            metadata=metadata_of(metadata) if changes.metadata is None else changes.metadata,
        )
        if (document.content, tags[:1], document.custom_id) != (content, kept, name):
            await self._remove(writing(self._scope), session)
        return await self.add(document)

    async def delete(self, name: str, user: str | None = None) -> None:
        """Deletes a document with all that came of it. Raises NotFound."""
        await self._remove(writing(self._scope), await self._session(name, user))

    async def delete_many(self, request: BulkDelete, user: str | None = None) -> dict[str, Any]:
        """Deletes documents by id, or all of container tags with all that is known there."""
        scope = writing(self._scope)
        errors: list[dict[str, str]] = []
        deleted = 0
        for name in request.ids or ():
            try:
                await self.delete(name, user)
                deleted += 1
            except NotFound:
                errors.append({"id": name, "error": "Document not found"})
        for tag in request.container_tags or ():
            deleted += await self._delete_all(scope, tag)
        answer: dict[str, Any] = {"success": not errors, "deletedCount": deleted}
        if errors:
            answer["errors"] = errors
        if request.container_tags:
            answer["containerTags"] = request.container_tags
        return answer

    async def list(self, request: DocumentListing) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """A page of documents, the newest first unless asked otherwise, and where in the list it stands."""
        if request.filters:
            raise NotSupported("documents.list: filters")
        tags, size = request.tags(), min(request.limit, MAX_PAGE)
        if len(tags) > 1:
            raise NotSupported("documents.list: several container tags")
        sessions, user = self._services[SessionService], tags[0] if tags else None
        total = (await sessions.list(self._scope, namespace=self._namespace, user_id=user, limit=1)).total
        first = (request.page - 1) * size
        last = min(first + size, total)
        if request.order == "desc":
            first, last = total - last, total - first
        names: Sequence[str] = ()
        if first < last:
            page = await sessions.list(self._scope, namespace=self._namespace, user_id=user, limit=last - first, offset=max(first, 0))
            names = page.sessions if request.order == "asc" else page.sessions[::-1]
        documents: list[dict[str, Any]] = []
        for name in names:
            session = await self._find(name, user)
            if session is not None:
                documents.append(await self._answer(session, content=request.include_content))
        pages = -(-total // size)
        return documents, {"currentPage": request.page, "limit": size, "totalItems": total, "totalPages": pages}

    async def search(self, request: Search) -> list[tuple[MemoryRecordResult, bool]]:
        """What fits a question, the best first, each with whether it is what was said word for word rather than a memory."""
        condition = self._selection(request.tags(), request.filters or request.filter)
        kinds: list[dict[str, Any]] = []
        # Without a model what was said stands for the memories.
        chunks = request.search_mode != "memories" or not self._extracts
        if self._extracts and request.search_mode != "hybrid":
            kinds.append({"memory_type": {"eq" if chunks else "ne": "message"}})
        if request.doc_id:
            kinds.append({"session_id": {"eq": request.doc_id}})
        values: dict[str, Any] = {
            "namespace": {"eq": self._namespace},
            "filter": {"and": [*condition, *kinds]} if condition or kinds else None,
            "text": request.q,
            "search_mode": "hybrid",
            "limit": min(request.limit, MAX_PAGE),
            "explain": True,
        }
        hits = (await self._services[SearchService].search(self._scope, SearchRequest.model_validate(values))).memories
        least = request.threshold if request.threshold is not None else request.chunk_threshold
        if least is not None:
            hits = [hit for hit in hits if hit.explanation is not None and (hit.explanation.similarity or 0.0) >= least]
        as_chunks = request.search_mode == "documents"
        both = self._extracts and request.search_mode == "hybrid"
        return [(hit, as_chunks or (both and hit.memory_type == "message")) for hit in hits]

    async def profile(self, tag: str | None, limit: int = MAX_PAGE) -> Profile:
        """What is stable and what is current about a container tag. Raises BadInput without one."""
        if not tag:
            raise BadInput("must be given", field="containerTag")
        return await self._services[ProfileService].read(self._scope, tag, self._namespace, limit=limit)

    async def memories(self, tag: str, page: int, size: int) -> tuple[Sequence[MemoryRecord], int]:
        """A page of a container's memories, the newest first, and how many there are."""
        kind = {"memory_type": {"ne": "message"}} if self._extracts else {}
        size = min(size, MAX_PAGE)
        body = {"namespace": {"eq": self._namespace}, "user_id": {"eq": tag}, **kind, "limit": size, "offset": (page - 1) * size}
        listed = await self._services[SearchService].search(self._scope, SearchRequest.model_validate(body))
        return listed.memories, listed.total

    async def create(self, request: NewMemories) -> list[dict[str, Any]]:
        """Stores memories as they are, at once; returns their ids and texts."""
        tags = request.tags()
        others = {TAGS: tags[1:]} if tags[1:] else {}
        body = CreateMemoryRecordRequest.model_validate(
            {
                "memories": [
                    {
                        "id": uuid4().hex,
                        "text": memory.content,
                        "namespace": self._namespace,
                        "user_id": tags[0] if tags else None,
                        "metadata": {**(memory.metadata or {}), **others},
                    }
                    for memory in request.memories
                ],
                "deduplicate": False,
            }
        )
        await self._services[MemoryService].create(writing(self._scope), body)
        return [{"id": record.id, "memory": record.text} for record in body.memories]

    async def memory(self, name: str) -> MemoryRecord:
        """A memory. Raises NotFound."""
        return await self._services[MemoryService].get(self._scope, name)

    async def change_memory(self, request: ChangedMemory) -> MemoryRecord:
        """Gives a memory a new text, and the metadata and end that are named. Raises NotFound."""
        record = await self._named(request)
        event = request.temporal_context.event_date if request.temporal_context else None
        kept = {TAGS: record.metadata[TAGS]} if TAGS in record.metadata else {}
        fields = {
            "text": request.new_content,
            "metadata": None if request.metadata is None else {**request.metadata, **kept},
            "expires_at": request.forget_after,
            "event_date": event[0] if event else None,
        }
        body = EditMemoryRecordRequest.model_validate({key: value for key, value in fields.items() if value is not None})
        return await self._services[MemoryService].patch(writing(self._scope), record.id, body)

    async def forget(self, request: NamedMemory) -> str:
        """Forgets a memory with what it rests on; its id. Undone as `/v1/memory/forget` says. Raises NotFound."""
        record = await self._named(request)
        await self.forget_ids([record.id], record.user_id)
        return record.id

    async def forget_ids(self, names: Sequence[str], user: str | None) -> list[dict[str, str]]:
        """Forgets memories with what they rest on; what went."""
        request = ForgetMemoryRequest(ids=list(names), user_id=user, namespace=self._namespace)
        forgotten = await self._services[ForgetService].forget(writing(self._scope), request)
        return [{"id": match.id, "memory": match.text} for match in forgotten.matches if match.kind in ("fact", "message")]

    async def forget_matching(self, text: str, user: str, *, dry_run: bool) -> list[dict[str, str]]:
        """Forgets what a sentence means, or (`dry_run`) shows what would go."""
        request = ForgetMemoryRequest(text=text, user_id=user, namespace=self._namespace, dry_run=dry_run)
        forgotten = await self._services[ForgetService].forget(writing(self._scope), request)
        return [{"id": match.id, "memory": match.text} for match in forgotten.matches if match.kind in ("fact", "message")]

    async def _named(self, request: NamedMemory) -> MemoryRecord:
        tags = request.tags()
        if request.id:
            record = await self.memory(request.id)
            if tags and record.user_id != tags[0]:
                raise NotFound(f"Memory {request.id} not found")
            return record
        for hit, _ in await self.search(Search(q=request.content or "", container_tags=tags or None, limit=20, search_mode="hybrid")):
            if hit.text == request.content:
                return hit
        raise NotFound("no memory has this text")

    def _selection(self, tags: Sequence[str], filters: object) -> list[dict[str, Any]]:
        conditions: list[dict[str, Any]] = [{"user_id": {"eq": tags[0]}}] if tags else []
        conditions += [{"metadata": {TAGS: {"all": list(tags[1:])}}}] if tags[1:] else []
        condition = condition_of(filters)
        return conditions if condition is None else [*conditions, condition]

    async def _find(self, name: str, user: str | None) -> WorkingMemoryResponse | None:
        try:
            answer = await self._services[SessionService].get(self._scope, name, namespace=self._namespace, user_id=user)
        except NotFound:
            return None
        session = answer.session
        return session if session.messages and (user is None or session.user_id == user) else None

    async def _session(self, name: str, user: str | None) -> WorkingMemoryResponse:
        session = await self._find(name, user)
        if session is None:
            raise NotFound("Document not found")
        return session

    async def _status(self, session: WorkingMemoryResponse) -> str:
        ref = SessionRef(session.session_id, self._namespace, session.user_id)
        operations = self._services[OperationService]
        states = await operations.load_states(self._scope, operations.session_marks(self._scope, ref))
        if OperationState.DEAD in states:
            return "failed"
        return "queued" if states - {OperationState.DONE} else "done"

    async def _answer(self, session: WorkingMemoryResponse, *, content: bool = True) -> dict[str, Any]:
        metadata = _document_of(session)[1]
        status = await self._status(session)
        return document_answer(session.session_id, session.user_id, session.messages[0], metadata, status, content=content)

    async def _remove(self, scope: Scope, session: WorkingMemoryResponse) -> None:
        await self._services[SessionService].delete(scope, session.session_id, namespace=self._namespace, user_id=session.user_id)
        condition: dict[str, Any] = {"session_id": {"eq": session.session_id}}
        if session.user_id is not None:
            condition["user_id"] = {"eq": session.user_id}
        await self._delete_memories(scope, condition)

    async def _delete_all(self, scope: Scope, tag: str) -> int:
        sessions, deleted = self._services[SessionService], 0
        for _ in range(_MOST_PAGES):
            names = (await sessions.list(scope, namespace=self._namespace, user_id=tag, limit=MAX_PAGE)).sessions
            for name in names:
                await sessions.delete(scope, name, namespace=self._namespace, user_id=tag)
            deleted += len(names)
            if len(names) < MAX_PAGE:
                break
        await self._delete_memories(scope, {"user_id": {"eq": tag}})
        return deleted

    async def _delete_memories(self, scope: Scope, selection: Mapping[str, Any]) -> None:
        values = {**selection, "namespace": {"eq": self._namespace}, "history": True, "limit": MAX_PAGE}
        for _ in range(_MOST_PAGES):
            body = SearchRequest.model_validate(values)
            ids = [hit.id for hit in (await self._services[SearchService].search(scope, body)).memories]
            if not ids:
                return
            await self._services[MemoryService].delete(scope, ids)


def _document_of(session: WorkingMemoryResponse) -> tuple[str, dict[str, Any]]:
    """The text and the metadata of the message that a document is."""
    message = session.messages[0]
    kept = message.own_fields.get(REMEMBER_AS)
    metadata = kept.get("metadata") if isinstance(kept, dict) else None
    return message.content, metadata if isinstance(metadata, dict) else {}


def milliseconds_since(begun: float) -> float:
    """How long ago `begun` (of `time.perf_counter`) was, in milliseconds."""
    return round((time.perf_counter() - begun) * 1000, 2)
