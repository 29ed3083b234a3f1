"""Supermemory's operations over our features; it keeps nothing itself. Everything lives in one namespace."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from agent_memory.access.principals import writing
from agent_memory.compat.errors import bad_input
from agent_memory.compat.supermemory.answers import TAGS, chunk_answer, document_answer, metadata_of
from agent_memory.compat.supermemory.documents import WHOLE_WINDOW, added_text, content_of, message_of
from agent_memory.compat.supermemory.documents import metadata_of as stored_metadata
from agent_memory.compat.supermemory.memories import MemoryOperations
from agent_memory.compat.supermemory.requests import (
    MAX_PAGE,
    BulkDelete,
    Document,
    DocumentBatch,
    DocumentChanges,
    DocumentListing,
)
from agent_memory.core.errors import AgentMemoryError, NotFound, Unavailable
from agent_memory.core.scope import Scope, SessionRef
from agent_memory.jobs.operations import OperationService
from agent_memory.memories.records import message_memory_id
from agent_memory.memories.search.service import SearchService
from agent_memory.memories.service import MemoryService
from agent_memory.sessions.service import SessionService
from agent_memory_client.models import (
    AppendMessagesRequest,
    MemoryRecord,
    OperationState,
    SearchRequest,
    WorkingMemoryResponse,
)

# Deleting all of a container goes page by page: so many pages at most.
_MOST_PAGES = 1_000
# What fits filters is looked for among so many memories at most.
_MOST_LOOKED_THROUGH = 5_000


class SupermemoryService(MemoryOperations):
    """What Supermemory's API does, for the caller of one request. Raises Forbidden when the caller does not reach its namespace.

    A document is a session of one message whose state is that of the session's work; its id is the session's. The first container tag is
    the user.
    """

    async def add(self, document: Document) -> dict[str, Any]:
        """Takes a document in; what it says is remembered in the background. What comes under a known `customId` is added to that
        document, or takes its place where it is another version of the whole."""
        scope, tags = writing(self._scope), document.tags()
        user = tags[0] if tags else None
        name = document.custom_id or uuid4().hex
        text, given = document.content, document.metadata or {}
        existing = await self._find(name, user) if document.custom_id else None
        if existing is not None:
            stored = stored_metadata(existing)
            given = metadata_of(stored) if document.metadata is None else given
            added = added_text(content_of(existing), text) if tags[1:] == (stored.get(TAGS) or []) else None
            if added == "" and given == metadata_of(stored):
                return {"id": name, "status": await self._status(existing)}
            if added:
                text = added
            else:
                await self._remove(scope, existing)
        metadata = {**given, **({TAGS: tags[1:]} if tags[1:] else {})}
        body = AppendMessagesRequest.model_validate(
            {
                "namespace": self._namespace,
                "user_id": user,
                "messages": [message_of(text, metadata, document.said)],
                "context_window_max": WHOLE_WINDOW,
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

    async def documents_of(self, hits: Sequence[MemoryRecord]) -> dict[str, dict[str, Any]]:
        """The documents that memories come from, by their ids."""
        places = {hit.session_id: hit.user_id for hit in hits if hit.session_id}
        found = [await self._find(name, user) for name, user in places.items()]
        return {session.session_id: await self._answer(session) for session in found if session is not None}

    async def parts(self, name: str, user: str | None = None) -> list[dict[str, Any]]:
        """A document as the parts that it came in. Raises NotFound."""
        session = await self._session(name, user)
        return [chunk_answer(message.id, number, message.content, message.created_at) for number, message in enumerate(session.messages)]

    async def change(self, name: str, changes: DocumentChanges, user: str | None = None) -> dict[str, Any]:
        """Replaces a document's text, metadata or tags: it is taken in again, and what came of the old text goes. Raises NotFound."""
        session = await self._session(name, user)
        content, metadata = content_of(session), stored_metadata(session)
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

    async def list(self, request: DocumentListing) -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
        """A page of documents, the newest first unless asked otherwise, and where in the list it stands."""
        tags, size = request.tags(), min(request.limit, MAX_PAGE)
        condition = self._selection(tags, request.filters or request.filter)
        if len(condition) > (1 if tags else 0):
            return await self._list_fitting(request, condition, tags[0] if tags else None, size)
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
        return await self._shown(request, names, user), page_of(request.page, size, total)

    async def _list_fitting(
        self, request: DocumentListing, condition: Sequence[dict[str, Any]], user: str | None, size: int
    ) -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
        """As `list`, of the documents whose memories fit a condition: of what was said word for word, the newest 5,000."""
        messages = {"and": [*condition, {"memory_type": {"eq": "message"}}]}
        names: dict[str, None] = {}
        for offset in range(0, _MOST_LOOKED_THROUGH, MAX_PAGE):
            values = {"namespace": {"eq": self._namespace}, "filter": messages, "limit": MAX_PAGE, "offset": offset}
            found = await self._services[SearchService].search(self._scope, SearchRequest.model_validate(values))
            names |= {hit.session_id: None for hit in found.memories if hit.session_id}
            if found.next_offset is None:
                break
        ordered = list(names)[:: -1 if request.order == "asc" else 1]
        first = (request.page - 1) * size
        return await self._shown(request, ordered[first : first + size], user), page_of(request.page, size, len(ordered))

    async def _shown(self, request: DocumentListing, names: Sequence[str], user: str | None) -> Sequence[dict[str, Any]]:
        found = [await self._find(name, user) for name in names]
        return [await self._answer(session, content=request.include_content) for session in found if session is not None]

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
        """`done` when what the document says is remembered, and known to the profile."""
        ref = SessionRef(session.session_id, self._namespace, session.user_id)
        operations = self._services[OperationService]
        states = await operations.load_states(self._scope, operations.session_marks(self._scope, ref))
        if OperationState.DEAD in states:
            return "failed"
        if states - {OperationState.DONE}:
            return "queued"
        made = [message_memory_id(ref, message.id) for message in session.messages]
        if self._extracts:
            facts, _ = await self.memories(DocumentListing(container_tag=session.user_id, doc_id=session.session_id, limit=MAX_PAGE))
            made += [fact.id for fact in facts]
        followed = await operations.load_states(self._scope, operations.follow_marks(self._scope, made))
        return "queued" if followed - {OperationState.DONE, OperationState.DEAD} else "done"

    async def _answer(self, session: WorkingMemoryResponse, *, content: bool = True) -> dict[str, Any]:
        status = await self._status(session)
        return document_answer(session, status, content=content)

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


def page_of(page: int, size: int, total: int) -> dict[str, Any]:
    """Where in a list a page stands."""
    return {"currentPage": page, "limit": size, "totalItems": total, "totalPages": -(-total // size)}


def milliseconds_since(begun: float) -> float:
    """How long ago `begun` (of `time.perf_counter`) was, in milliseconds."""
    return round((time.perf_counter() - begun) * 1000, 2)
