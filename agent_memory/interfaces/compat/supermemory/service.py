"""Implement Supermemory's operations in one namespace."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

from pydantic import ValidationError

from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.records import message_memory_id
from agent_memory.features.memories.store import MemoryStore
from agent_memory.features.privacy.derived_memories import delete_memories_of
from agent_memory.features.privacy.forget.store import ForgetStore
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.api.principals import session_of, writing
from agent_memory.foundation.core.errors import AgentMemoryError, Conflict, NotFound, Unavailable, VersionMismatch
from agent_memory.foundation.core.feature import Owner
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.interfaces.compat.service import MAX_PAGE, bad_input
from agent_memory.interfaces.compat.supermemory.answers import TAGS, chunk_answer, document_answer, metadata_of
from agent_memory.interfaces.compat.supermemory.documents import WHOLE_WINDOW, added_text, content_of, message_of, messages_of
from agent_memory.interfaces.compat.supermemory.documents import metadata_of as stored_metadata
from agent_memory.interfaces.compat.supermemory.memories import MOST_LOOKED_THROUGH, MemoryOperations
from agent_memory.interfaces.compat.supermemory.requests import (
    BulkDelete,
    Conversation,
    Document,
    DocumentBatch,
    DocumentChanges,
    DocumentListing,
)
from agent_memory_client.models import MAX_SEARCH_OFFSET, AppendMessagesRequest, MemoryRecord, OperationState, WorkingMemoryResponse

# Maximum number of attempts for a write while other writes change the document.
_TRIES = 16
# Maximum number of pages that one call deletes from a container.
_MOST_PAGES = 1_000


KeepContext: TypeAlias = Callable[[], Awaitable[None]]
"""A function that stores a container's context."""


class SupermemoryService(MemoryOperations):
    """Supermemory's API for one caller.

    A document is a session with the same id. The first container tag is the session's user. Raises
    Forbidden if the caller cannot access the namespace.
    """

    async def add(self, document: Document, keep_context: KeepContext | None = None) -> dict[str, Any]:
        """Store a document. Idempotent if the document has a `customId`.

        If a document with the same `customId` exists, extend or replace it.
        """
        ref = self._ref(document.custom_id or uuid4().hex, document.user)
        return await self._accepted(ref, await self._write(ref, document, may_exist=document.custom_id is not None), keep_context)

    async def _accepted(self, ref: SessionRef, answer: dict[str, Any], keep_context: KeepContext | None) -> dict[str, Any]:
        if keep_context is not None:
            await keep_context()
        if answer["status"] == "queued":
            await self._services[OperationService].hasten_session(writing(self._scope), ref)
        return answer

    async def _write(
        self, ref: SessionRef, document: Document, *, may_exist: bool = True, replaces: bool = False, message_id: str | None = None
    ) -> dict[str, Any]:
        for _ in range(_TRIES):
            try:
                return await self._write_once(ref, document, may_exist, replaces, message_id)
            except VersionMismatch:
                continue
        raise Conflict("the document is constantly being changed by other requests: try again")

    async def _write_once(
        self, ref: SessionRef, document: Document, may_exist: bool, replaces: bool, message_id: str | None
    ) -> dict[str, Any]:
        """Try once to store a document as `add` does.

        If `replaces` is true, the text is the entire document. Raises VersionMismatch if the
        document has changed since it was read.
        """
        scope, others = writing(self._scope), document.tags()[1:]
        text, metadata = document.content, document.metadata or {}
        existing, version = await self._read(ref) if may_exist else (None, None)
        replaces_session = existing is not None
        if existing is not None:
            stored, names = stored_metadata(existing), [message.id for message in existing.messages]
            metadata = metadata_of(stored) if document.metadata is None else metadata
            same_marks = (metadata, others) == (metadata_of(stored), stored.get(TAGS) or [])
            parts = [message.content for message in existing.messages]
            added = ("" if parts == [text] else None) if replaces else "" if message_id in names else added_text(parts, text)
            if added == "" and same_marks:
                # Finish a replacement that was interrupted.
                await delete_memories_of(self._services, scope, ref, current=names)
                return {"id": ref.session_id, "status": (await self._statuses([existing]))[0]}
            if added == "":
                text = content_of(existing)
            elif added is not None and others == (stored.get(TAGS) or []):
                text, replaces_session = added, False
        message = message_of(text, {**metadata, **({TAGS: others} if others else {})}, document.stated_at, message_id)
        await self._append(ref, [message], if_match=version, replaces=replaces_session)
        if replaces_session:
            await delete_memories_of(self._services, scope, ref, current=[message["id"]])
        return {"id": ref.session_id, "status": "queued"}

    async def converse(self, conversation: Conversation) -> dict[str, Any]:
        """Store a conversation's new messages as parts of a document."""
        writing(self._scope)
        tags, ref = conversation.tags(), self._ref(conversation.conversation_id, conversation.user)
        existing, _ = await self._read(ref)
        metadata = conversation.metadata
        if metadata is None:
            metadata = metadata_of(stored_metadata(existing)) if existing else {}
        existing_ids = {message.id for message in existing.messages} if existing else set[str]()
        sent = messages_of(conversation.messages, {**metadata, **({TAGS: tags[1:]} if tags[1:] else {})})
        new = [message for message in sent if message["id"] not in existing_ids]
        answer = {"id": ref.session_id, "conversationId": ref.session_id}
        if existing and not new:
            return {**answer, "status": (await self._statuses([existing]))[0]}
        await self._append(ref, new)
        return {**answer, "status": "queued"}

    async def _append(
        self, ref: SessionRef, messages: Sequence[dict[str, Any]], *, if_match: str | None = None, replaces: bool = False
    ) -> None:
        body = {"namespace": ref.namespace, "user_id": ref.user_id, "messages": messages, "context_window_max": WHOLE_WINDOW}
        request = AppendMessagesRequest.model_validate(body)
        await self._services[SessionService].append(writing(self._scope), ref.session_id, request, if_match=if_match, replaces=replaces)

    async def add_batch(self, batch: DocumentBatch, contexts: Mapping[str, KeepContext]) -> dict[str, Any]:
        """Store documents in order, and report invalid ones.

        `contexts` maps tags to functions that store contexts.
        """
        shared = batch.model_dump(by_alias=True, exclude_none=True, exclude={"documents"})
        results: list[dict[str, Any]] = []
        for item in batch.documents:
            try:
                values = {"content": item} if isinstance(item, str) else item
                document = Document.model_validate({**shared, **values})
                results.append(await self.add(document, contexts.get(document.user or "")))
            except ValidationError as error:
                refusal = bad_input(error)
                results.append({"id": "", "status": "error", "error": f"{refusal.field}: {refusal.message}"})
            except Unavailable:
                raise
            except AgentMemoryError as error:
                results.append({"id": "", "status": "error", "error": error.advice})
        failed = sum(result["status"] == "error" for result in results)
        return {"results": results, "success": len(results) - failed, "failed": failed}

    async def get(self, name: str, user: str | None = None) -> dict[str, Any]:
        """Return a document. Raises NotFound."""
        return (await self._answers([await self._session(name, user)]))[0]

    async def documents_of(self, hits: Sequence[MemoryRecord]) -> dict[tuple[str | None, str | None], dict[str, Any]]:
        """Return the documents that memories came from, keyed by user and id."""
        refs = [SessionRef(hit.session_id, self._namespace, hit.user_id) for hit in hits if hit.session_id]
        sessions = await self._load_sessions(refs)
        answers = await self._answers(sessions)
        return {(session.user_id, session.session_id): answer for session, answer in zip(sessions, answers, strict=True)}

    async def parts(self, name: str, user: str | None = None) -> list[dict[str, Any]]:
        """Return a document's parts. Raises NotFound."""
        session = await self._session(name, user)
        return [chunk_answer(message.id, number, message.content, message.created_at) for number, message in enumerate(session.messages)]

    async def change(
        self, name: str, changes: DocumentChanges, user: str | None = None, keep_context: KeepContext | None = None
    ) -> dict[str, Any]:
        """Replace a document's text, metadata, id or tags. Raises NotFound."""
        session = await self._find(name, user) or await self._moving(name, user, changes.tags())
        if session is None:
            raise NotFound(f"Document {name} not found", field="id")
        content, metadata = content_of(session), stored_metadata(session)
        tags = changes.tags() or [*([session.user_id] if session.user_id else []), *(metadata.get(TAGS) or [])]
        document = Document(
            content=changes.content or content,
            custom_id=changes.custom_id or name,
            container_tags=tags or None,
            metadata=metadata_of(metadata) if changes.metadata is None else changes.metadata,
        )
        source, target = _ref_of(session), self._ref(document.custom_id or name, document.user)
        if source == target:
            return await self._accepted(target, await self._write(target, document, replaces=True), keep_context)
        answer = await self._accepted(target, await self._write(target, document, message_id=session.messages[-1].id), keep_context)
        await self._remove(source)
        return answer

    async def delete(self, name: str, user: str | None = None) -> None:
        """Delete a document and its memories, or forget the memory with this id.

        Raises NotFound.
        """
        writing(self._scope)
        session = await self._find(name, user)
        if session is not None:
            await self._remove(_ref_of(session))
            return
        (record,) = await self._services[MemoryStore].get(self._scope, [name])
        if record is None or user not in (None, record.user_id):
            raise NotFound(f"Document {name} not found", field="id")
        await self.forget_ids([record.id], record.user_id)

    async def delete_many(self, request: BulkDelete, user: str | None = None) -> dict[str, Any]:
        """Delete documents by id, or all documents and memories with the given container tags."""
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
        optional_fields = {"errors": errors, "containerTags": request.container_tags}
        return {"success": not errors, "deletedCount": deleted, **{name: value for name, value in optional_fields.items() if value}}

    async def list(self, request: DocumentListing) -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
        """Return a page of documents (newest first by default) and pagination details."""
        size = min(request.limit, MAX_PAGE)
        condition = await self._selection(request.tags(), request.given_filters)
        if len(condition) > (0 if request.user is None else 1):
            return await self._list_fitting(request, condition, size)
        sessions, user = self._services[SessionService], request.user
        total = (await sessions.list(self._scope, namespace=self._namespace, user_id=user, limit=1)).total
        first = (request.page - 1) * size
        last = min(first + size, total)
        if request.order == "desc":
            first, last = total - last, total - first
        refs: Sequence[SessionRef] = ()
        if first < last:
            listed = await sessions.list_refs(self._scope, self._namespace, user, last - first, max(first, 0))
            refs = listed if request.order == "asc" else listed[::-1]
        return await self._documents(refs, content=request.include_content), page_of(request.page, size, total)

    async def _list_fitting(
        self, request: DocumentListing, condition: Sequence[dict[str, Any]], size: int
    ) -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
        """Return a page of documents from the newest 5,000 matching messages."""
        messages = {"and": [*condition, {"memory_type": {"eq": "message"}}]}
        refs: dict[SessionRef, None] = {}
        async for page in self._pages(MOST_LOOKED_THROUGH, filter=messages):
            refs |= {SessionRef(hit.session_id, self._namespace, hit.user_id): None for hit in page if hit.session_id}
        ordered = list(refs)[:: -1 if request.order == "asc" else 1]
        first = (request.page - 1) * size
        documents = await self._documents(ordered[first : first + size], content=request.include_content)
        return documents, page_of(request.page, size, len(ordered))

    async def _documents(self, refs: Sequence[SessionRef], *, content: bool = True) -> list[dict[str, Any]]:
        return await self._answers(await self._load_sessions(refs), content=content)

    async def _load_sessions(self, refs: Sequence[SessionRef]) -> list[WorkingMemoryResponse]:
        sessions = await self._services[SessionService].get_many(self._scope, list(dict.fromkeys(refs)))
        return [session for session in sessions if session.messages]

    def _ref(self, name: str, user: str | None) -> SessionRef:
        """Return the session for a document. Raises Forbidden.

        If there is no container, use the only user the caller can access, or no user.
        """
        return session_of(self._scope, name, self._namespace, user)

    async def _read(self, ref: SessionRef) -> tuple[WorkingMemoryResponse | None, str]:
        """Return the document, or None, and the version that a write must expect."""
        try:
            sessions = self._services[SessionService]
            answer = await sessions.get(self._scope, ref.session_id, namespace=ref.namespace, user_id=ref.user_id)
        except NotFound:
            return None, "absent"
        if _ref_of(answer.session) != ref:
            return None, "absent"
        return answer.session if answer.session.messages else None, str(answer.version)

    async def _find(self, name: str, user: str | None) -> WorkingMemoryResponse | None:
        """Return the document with the given id, or None.

        If `user` is None, prefer a document with no container, or else return the only match.
        """
        try:
            answer = await self._services[SessionService].get(self._scope, name, namespace=self._namespace, user_id=user)
        except NotFound:
            return None
        session = answer.session
        return session if session.messages and (user is None or session.user_id == user) else None

    async def _moving(self, name: str, user: str | None, tags: Sequence[str]) -> WorkingMemoryResponse | None:
        """Return the old copy left by an interrupted move, or None."""
        if user is not None or not tags:
            return None
        refs = await self._services[SessionStore].find(self._scope, name, self._namespace, None)
        sessions = await self._load_sessions(refs)
        moved = [session for session in sessions if session.user_id == tags[0]]
        if len(sessions) != 2 or len(moved) != 1:
            return None
        (left,) = (session for session in sessions if session is not moved[0])
        return left if left.messages[-1].id in {message.id for message in moved[0].messages} else None

    async def _session(self, name: str, user: str | None) -> WorkingMemoryResponse:
        session = await self._find(name, user)
        if session is None:
            raise NotFound(f"Document {name} not found", field="id")
        return session

    async def _statuses(self, sessions: Sequence[WorkingMemoryResponse]) -> list[str]:
        """Return each document's status: `done`, `queued` or `failed`.

        A document is `done` once its memories are stored and are part of the profile.
        """
        operations = self._services[OperationService]
        refs = [SessionRef(session.session_id, self._namespace, session.user_id) for session in sessions]
        states = await operations.load_states(self._scope, [operations.session_marks(self._scope, ref) for ref in refs])
        made = {
            ref: [message_memory_id(ref, message.id) for message in session.messages]
            for ref, session, state in zip(refs, sessions, states, strict=True)
            if state <= {OperationState.DONE}
        }
        for fact in await self._facts_of(list(made)) if self._runtime.extracts else ():
            made.get(SessionRef(fact.session_id or "", self._namespace, fact.user_id), []).append(fact.id)
        marks = [operations.follow_marks(self._scope, ids) for ids in made.values()]
        followed = dict(zip(made, await operations.load_states(self._scope, marks), strict=True))
        over = {OperationState.DONE, OperationState.DEAD}
        return [
            "failed" if OperationState.DEAD in state else "done" if ref in followed and followed[ref] <= over else "queued"
            for ref, state in zip(refs, states, strict=True)
        ]

    async def _facts_of(self, refs: Sequence[SessionRef]) -> list[MemoryRecord]:
        facts: list[MemoryRecord] = []
        names = sorted({ref.session_id for ref in refs})
        condition = [{"memory_type": {"ne": "message"}}, {"session_id": {"any": names}}]
        if names:
            async for page in self._pages(MAX_SEARCH_OFFSET, filter={"and": condition}):
                facts += page
        return facts

    async def _answers(self, sessions: Sequence[WorkingMemoryResponse], *, content: bool = True) -> list[dict[str, Any]]:
        statuses = await self._statuses(sessions)
        return [document_answer(session, status, content=content) for session, status in zip(sessions, statuses, strict=True)]

    async def _remove(self, ref: SessionRef) -> None:
        """Delete a document. The session goes last, so that a retry can finish the deletion."""
        scope, sessions = writing(self._scope), self._services[SessionStore]
        await sessions.delete(scope, ref, only_work=True)
        await delete_memories_of(self._services, scope, ref)
        await sessions.delete(scope, ref)

    async def _delete_all(self, scope: Scope, tag: str) -> int:
        sessions, deleted = self._services[SessionService], 0
        for _ in range(_MOST_PAGES):
            names = (await sessions.list(scope, namespace=self._namespace, user_id=tag, limit=MAX_PAGE)).sessions
            for name in names:
                await sessions.delete(scope, name, namespace=self._namespace, user_id=tag)
            deleted += len(names)
            if len(names) < MAX_PAGE:
                break
        await self._delete_matching(user_id={"eq": tag})
        await self._services[ForgetStore].erase_owner(scope, Owner(self._namespace, tag))
        return deleted


def _ref_of(session: WorkingMemoryResponse) -> SessionRef:
    return SessionRef(session.session_id, session.namespace, session.user_id)


def page_of(page: int, size: int, total: int) -> dict[str, Any]:
    return {"currentPage": page, "limit": size, "totalItems": total, "totalPages": -(-total // size)}


def milliseconds_since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 2)
