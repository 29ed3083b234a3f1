"""Implement Mem0's operations in one namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, tzinfo
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import uuid4

from pydantic import ValidationError

from agent_memory.features.extraction.categories import nearest_categories
from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.features.extraction.rules import ExtractionRulesService
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.memories.annotations import REMEMBER_AS
from agent_memory.features.memories.changes.service import HistoryService
from agent_memory.features.memories.changes.store import ChangeStore
from agent_memory.features.memories.service import MemoryService
from agent_memory.features.privacy.forget.store import ForgetStore
from agent_memory.features.sessions.service import SessionService
from agent_memory.features.sessions.store import SessionStore
from agent_memory.foundation.api.principals import writing
from agent_memory.foundation.core.clock import note_unreadable_dates
from agent_memory.foundation.core.errors import BadInput, NotFound, NotSupported
from agent_memory.foundation.core.permissions import within
from agent_memory.foundation.core.scope import Scope, SessionRef
from agent_memory.foundation.storage.search.filters import only_value
from agent_memory.foundation.text.cleaning.context_blocks import context_blocks
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES
from agent_memory.interfaces.compat.mem0.answers import OWN_SESSION, fields_of, history_answer, hit_answer, memory_answer
from agent_memory.interfaces.compat.mem0.filters import condition_of, shown_selection
from agent_memory.interfaces.compat.mem0.matching import NO_MEMORY, indexed_part, matches, needs_reading
from agent_memory.interfaces.compat.mem0.requests import OWN_KEYS, AddRequest, ListRequest, Message, SearchBody, categories_of, end_of_day
from agent_memory.interfaces.compat.service import MAX_PAGE, CompatService, bad_input, check_filter_size, refuse_unknown
from agent_memory_client.models import (
    AppendMessagesRequest,
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    ExtractionCategory,
    ExtractionRules,
    MemoryRecord,
    MemoryRecordResult,
    MemoryStrategyConfig,
    SearchRequest,
)

_MOST_COUNTED = 5_000
# Filters that the index cannot evaluate are applied to at most this many hits.
_MOST_READ = 1_000
_MOST_LINKS = 20
_WAIT_SECONDS = 10.0
_NOBODY_WORKS_SECONDS = 2.0
_AGENT_SESSION = f"{OWN_SESSION}agent:"
# Fields that null clears, with the names that this server uses.
_CLEARABLE = {"expiration_date": "expires_at", "timestamp": "event_date"}


class _Selection(NamedTuple):
    """Fields for a search request, and filters to apply to its hits."""

    values: dict[str, Any]
    reads: Sequence[Any] = ()
    zone: tzinfo = UTC

    def lets_through(self, memory: Mapping[str, Any]) -> bool:
        return all(matches(part, memory, self.zone) for part in self.reads)


class Mem0Service(CompatService):
    """Mem0's API for one caller."""

    product = "mem0"

    @property
    def project_id(self) -> str:
        return self._namespace

    async def add(self, request: AddRequest) -> dict[str, Any]:
        """Store messages.

        With `infer: false`, they become memories immediately. Otherwise, the worker creates the
        memories. Raises BadInput or NotSupported.
        """
        scope = writing(self._scope)
        if not request.entities():
            raise BadInput("give at least one of user_id, agent_id, run_id and app_id", field="user_id")
        if request.custom_categories is not None and self._runtime.extracts:
            raise NotSupported("custom_categories of a single request beside a language model (project.update sets them for all)")
        note_unreadable_dates([request.metadata])
        conversation, instructions = request.statements()
        stored = [*instructions, *(message for message in conversation if message.role not in PROGRAM_ROLES)]
        if request.infer is False:
            return _noted(request, {"results": await self._store_messages(scope, request, stored)})
        made_of = await self._store_messages(scope, request, instructions, deduplicate=True) if instructions else []
        if not conversation:
            return _noted(request, {"results": made_of})
        agent = f"{_AGENT_SESSION}{request.agent_id}" if request.agent_id else f"{OWN_SESSION}chat"
        session = request.run_id or agent
        if (request.run_id or "").startswith(OWN_SESSION):
            raise BadInput(f"must not begin with {OWN_SESSION}", field="run_id")
        event = str(uuid4())
        texts = [message.content for message in conversation]
        categories = await nearest_categories(self._runtime, texts, request.custom_categories or ())
        body = AppendMessagesRequest.model_validate(
            {
                "namespace": self._namespace,
                "user_id": request.user_id,
                "messages": [
                    {
                        "role": message.role,
                        "content": message.parts if message.parts and request.keeps_parts(message) else message.content,
                        **({"name": message.name} if message.name else {}),
                        "id": f"{event}-{position}",
                        REMEMBER_AS: {**request.annotations(), **({} if category is None else {"category": category})},
                        **({} if request.stated_at is None else {"created_at": request.stated_at}),
                    }
                    for position, (message, category) in enumerate(zip(conversation, categories, strict=True))
                ],
            }
        )
        await self._services[SessionService].append(scope, session, body)
        ref = SessionRef(session, self._namespace, request.user_id)
        operations = self._services[OperationService]
        await operations.hasten_session(scope, ref)
        if request.waits:
            await operations.wait_for_marks(scope, operations.session_marks(scope, ref), _WAIT_SECONDS)
            made = await self._made_of(session, request, {message.id for message in body.messages})
            if made:
                return _noted(request, {"results": [*made_of, *({"id": hit.id, "memory": hit.text, "event": "ADD"} for hit in made)]})
        pending = "Memory processing has been queued for background execution"
        return _noted(request, {"message": pending, "status": "PENDING", "event_id": event, "results": made_of})

    async def search(self, request: SearchBody) -> list[dict[str, Any]]:
        """Return the best matches for a query."""
        selection = await self._selection(request)
        limit = min(request.top_k or request.limit or 10, MAX_PAGE)
        values: dict[str, Any] = {**selection.values, "text": request.query, "search_mode": "hybrid", "limit": limit}
        values |= {"reference_time": request.reference_date, "explain": True}
        results = await self._matching(selection, values)
        if not results and await self._was_new(selection.values):
            results = await self._matching(selection, values)
        if request.threshold is not None and len(results) < limit:
            # The caller's threshold replaces our own relevance limit.
            near = {"search_mode": "semantic", "distance_threshold": min(max(1.0 - request.threshold, 0.0), 2.0)}
            more = await self._matching(selection, {**values, **near})
            hit_ids = {hit.id for hit in results}
            results = [*results, *(hit for hit in more if hit.id not in hit_ids)][:limit]
        # Sort by score, because programs take the first hit as the nearest.
        hits = sorted(map(hit_answer, results), key=lambda hit: hit["score"], reverse=True)
        return [fields_of(hit, request.fields) for hit in hits if request.threshold is None or hit["score"] >= request.threshold]

    async def _was_new(self, selection: Mapping[str, Any]) -> bool:
        """Wait until all selected memories have been embedded.

        Returns True if some were pending before and all are embedded now.
        """
        operations, listed = self._services[OperationService], await self._search(**selection, limit=_MOST_LINKS)
        marks = operations.memory_marks(self._scope, [hit.id for hit in listed.memories])
        if not marks or not any(await operations.load_states(self._scope, [marks])):
            return False
        return await operations.wait_for_marks(self._scope, marks, _NOBODY_WORKS_SECONDS)

    async def list(self, request: ListRequest) -> tuple[list[dict[str, Any]], int]:
        """Return a page of memories, newest first, and the total count."""
        size = min(request.page_size or request.top_k or request.limit or MAX_PAGE, MAX_PAGE)
        selection, start = await self._selection(request), (request.page - 1) * size
        if selection.reads:
            every = await self._matching(selection, {**selection.values, "limit": _MOST_COUNTED}, most=_MOST_COUNTED)
            page_hits, total = every[start : start + size], len(every)
        else:
            listed = await self._search(**selection.values, limit=size, offset=start)
            page_hits, total = listed.memories, listed.total
        return [fields_of(memory_answer(hit), request.fields) for hit in page_hits], total

    async def _matching(self, selection: _Selection, values: dict[str, Any], most: int = _MOST_READ) -> Sequence[MemoryRecordResult]:
        """Return the first memories that match, checking at most `most` hits."""
        if not selection.reads:
            return (await self._search(**values)).memories
        limit, passing = values["limit"], list[MemoryRecordResult]()
        async for page in self._pages(most, **values):
            passing += [hit for hit in page if selection.lets_through(memory_answer(hit))]
            if len(passing) >= limit:
                break
        return passing[:limit]

    async def get(self, memory_id: str) -> dict[str, Any]:
        """Return a memory. Raises NotFound."""
        return memory_answer(await self._services[MemoryService].get(self._scope, memory_id))

    async def update(self, memory_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change a memory's text, metadata, expiration date or time.

        Raises NotFound, BadInput or NotSupported.
        """
        refuse_unknown(changes, ("text", "memory", "metadata", "expiration_date", "timestamp", "memory_id"), "update: ")
        fields: dict[str, Any] = {
            "text": changes.get("text", changes.get("memory")),
            "metadata": changes.get("metadata"),
            "expires_at": None if changes.get("expiration_date") is None else end_of_day(changes["expiration_date"]),
            "event_date": changes.get("timestamp"),
        }
        cleared = {field_name for mem0_name, field_name in _CLEARABLE.items() if mem0_name in changes}
        try:
            body = EditMemoryRecordRequest.model_validate(
                {name: value for name, value in fields.items() if value is not None or name in cleared}
            )
        except ValidationError as error:
            named = error.errors()[0]["loc"][0]
            raise bad_input(error, next((mem0_name for mem0_name, field_name in _CLEARABLE.items() if field_name == named), None)) from None
        if body.metadata:
            # A memory's app, agent and run never change.
            body.metadata = {key: value for key, value in body.metadata.items() if key not in OWN_KEYS}
        changed = await self._services[MemoryService].patch(writing(self._scope), memory_id, body, merges_metadata=True)
        return memory_answer(changed)

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return events for a memory and its former versions, oldest first. Raises NotFound."""
        events: list[dict[str, Any]] = []
        waiting, visited = [memory_id], set[str]()
        while waiting and len(visited) < _MOST_LINKS:
            if (name := waiting.pop()) in visited:
                continue
            visited.add(name)
            try:
                history = await self._services[HistoryService].read_history(self._scope, name)
            except NotFound:
                if name == memory_id:
                    raise
                continue
            events = [*history_answer(history), *events]
            waiting += [old for version in history.versions for old in version.record.supersedes or ()]
        for before, event in pairwise(events):
            if event["event"] == "ADD":
                event |= {"event": "UPDATE", "old_memory": before["new_memory"]}
        return events

    async def delete(self, memory_ids: Sequence[str]) -> None:
        """Delete memories permanently. If any is missing, raise NotFound and delete nothing."""
        scope = writing(self._scope)
        for memory_id in memory_ids:
            await self._services[MemoryService].get(scope, memory_id)
        await self._services[MemoryService].delete(scope, memory_ids)

    async def delete_all(self, entities: Mapping[str, str]) -> int:
        """Delete an owner's memories and sessions. Return the number deleted.

        Raises BadInput.
        """
        scope = writing(self._scope)
        if not entities:
            raise BadInput("give at least one of user_id, agent_id, run_id and app_id", field="user_id", where="query")
        # Keep the sessions: several apps may share one.
        deleted = 0 if "app_id" in entities else await self._delete_sessions(scope, entities)
        await self._end_proposals(scope, entities)
        deleted += await self._delete_matching(filter=condition_of(entities))
        await self._delete_undo_copies(scope, entities)
        return deleted

    async def entities(self) -> list[dict[str, Any]]:
        """Return users, agents, runs and apps, with their counts in the newest 5,000 memories."""
        counts: dict[tuple[str, str], dict[str, Any]] = {}
        async for page in self._pages(_MOST_COUNTED, **shown_selection(extracts=self._runtime.extracts)):
            for hit in page:
                _count(counts, memory_answer(hit))
        return list(counts.values())

    async def project(self, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the custom instructions and categories for fact extraction."""
        rules = await self._services[ExtractionRulesService].get(self._scope, self._namespace, None)
        project: dict[str, Any] = {
            "id": self._namespace,
            "name": self._namespace,
            "custom_instructions": rules.instructions,
            "custom_categories": [{category.name: category.description} for category in rules.categories] or None,
        }
        return {name: value for name, value in project.items() if not fields or name in fields}

    async def update_project(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the custom instructions or categories. Raises BadInput or NotSupported."""
        refuse_unknown(changes, ("custom_instructions", "custom_categories", "org_id", "project_id"), "project.update: ")
        service, scope = self._services[ExtractionRulesService], writing(self._scope)
        rules = (await service.get(scope, self._namespace, None)).model_dump()
        if "custom_instructions" in changes:
            rules["instructions"] = changes["custom_instructions"] or None
        if "custom_categories" in changes:
            try:
                rules["categories"] = categories_of(changes["custom_categories"] or [])
            except ValueError as error:
                raise BadInput(str(error), field="custom_categories") from None
        await service.put(scope, self._namespace, None, ExtractionRules.model_validate(rules))
        return {"message": "Updated the project"}

    async def _selection(self, request: ListRequest) -> _Selection:
        check_filter_size(request.filters)
        filter_parts = (request.filters, request.entities(), request.own_filters())
        if not any(filter_parts):
            # A request that omits the owner must not show all owners' memories.
            raise BadInput("give at least one of user_id, agent_id, run_id and app_id", field="filters")
        reads = tuple(part for part in filter_parts if needs_reading(part))
        for part in reads:
            matches(part, NO_MEMORY, UTC)
        values: dict[str, Any] = shown_selection(extracts=self._runtime.extracts)
        parts = [*(condition_of(indexed_part(part) if part in reads else part) for part in filter_parts), values.get("filter")]
        conditions = [part for part in parts if part is not None]
        if conditions:
            values["filter"] = conditions[0] if len(conditions) == 1 else {"and": conditions}
        if not reads:
            return _Selection(values)
        user = only_value(SearchRequest.model_validate(values), "user_id")
        return _Selection(values, reads, await self._services[RuleStore].load_zone(self._scope, self._namespace, user))

    async def _store_messages(
        self, scope: Scope, request: AddRequest, messages: Sequence[Message], *, deduplicate: bool = False
    ) -> list[dict[str, Any]]:
        """Store each message as a memory, wait until all are searchable, and return them."""
        texts = self._message_texts(messages)
        if not texts:
            return []
        annotations, available = request.annotations(), request.custom_categories
        if available is None:
            available = await self._project_categories(request.user_id)
        categories = await nearest_categories(self._runtime, texts, available)
        body = CreateMemoryRecordRequest.model_validate(
            {
                "memories": [
                    {
                        "id": str(uuid4()),
                        "text": text,
                        "namespace": self._namespace,
                        "user_id": request.user_id,
                        "session_id": request.run_id,
                        "category": category,
                        **annotations,
                        **({} if request.stated_at is None else {"created_at": request.stated_at}),
                    }
                    for text, category in zip(texts, categories, strict=True)
                ],
                "deduplicate": deduplicate,
            }
        )
        await self._services[MemoryService].create(scope, body)
        operations = self._services[OperationService]
        marks = operations.memory_marks(scope, [record.id for record in body.memories])
        await operations.wait_for_marks(scope, marks, _WAIT_SECONDS, untouched=_NOBODY_WORKS_SECONDS)
        return [{"id": record.id, "memory": record.text, "event": "ADD"} for record in body.memories]

    def _message_texts(self, messages: Sequence[Message]) -> list[str]:
        """Return the texts with context blocks removed. Omit texts that become empty."""
        blocks = context_blocks(self._runtime.settings.longterm.context_tags)
        pairs = [(message.content, blocks.outside(message.content)) for message in messages]
        return [outside for content, outside in pairs if outside or outside == content]

    async def _project_categories(self, user: str | None) -> Sequence[ExtractionCategory]:
        ref = SessionRef("", self._namespace, user)
        return (await self._services[ExtractionRulesService].of_session(self._scope, ref, MemoryStrategyConfig())).categories

    async def _made_of(self, session: str, request: AddRequest, messages: set[str]) -> list[MemoryRecordResult]:
        selection = {**shown_selection(extracts=self._runtime.extracts), "session_id": {"eq": session}}
        if request.user_id:
            selection["user_id"] = {"eq": request.user_id}
        listed = await self._search(**selection, limit=MAX_PAGE)
        return [hit for hit in listed.memories if messages.intersection(hit.extracted_from or ())]

    async def _end_proposals(self, scope: Scope, entities: Mapping[str, str]) -> None:
        await self._services[ChangeStore].end_proposals(scope, None, _user_of(entities), _deletes(scope, entities))

    async def _delete_undo_copies(self, scope: Scope, entities: Mapping[str, str]) -> None:
        await self._services[ForgetStore].erase_matching(scope, _user_of(entities), _deletes(scope, entities))

    async def _delete_sessions(self, scope: Scope, entities: Mapping[str, str]) -> int:
        service = self._services[SessionService]
        user, agent, run = (entities.get(name) for name in ("user_id", "agent_id", "run_id"))
        matches_filter = _session_filter(agent, run)
        # The user "*" means any user, but not memories without a user.
        owner = _user_of(entities)
        offset = deleted = 0
        while True:
            refs = await service.list_refs(scope, self._namespace, owner, MAX_PAGE, offset)
            matching = [ref for ref in refs if matches_filter(ref.session_id) and (user != "*" or ref.user_id is not None)]
            for ref in matching:
                # Use the store: SessionService could delete another owner's session with this id.
                await self._services[SessionStore].delete(scope, ref)
            deleted += len(matching)
            if len(refs) < MAX_PAGE:
                return deleted
            offset += MAX_PAGE - len(matching)


def _session_filter(agent: str | None, run: str | None) -> Callable[[str], bool]:
    """Return a function that matches session ids. "*" matches any run or agent."""
    if run == "*":
        return lambda name: not name.startswith(OWN_SESSION)
    if agent == "*" and run is None:
        return lambda name: name.startswith(_AGENT_SESSION)
    session = f"{_AGENT_SESSION}{agent}" if agent and run is None else run
    return lambda name: session in (None, name)


def _user_of(entities: Mapping[str, str]) -> str | None:
    """Return the only user that these entities name, or None for any user."""
    user = entities.get("user_id")
    return None if user == "*" else user


def _deletes(scope: Scope, entities: Mapping[str, str]) -> Callable[[MemoryRecord], bool]:
    """Return a function that matches the memories to delete."""
    return lambda record: within(scope, record) and matches(entities, memory_answer(record), UTC)


def _noted(request: AddRequest, answer: dict[str, Any]) -> dict[str, Any]:
    unread = [f"{part} is stored, but no model reads it" for part in request.unread()]
    dropped = [f"{part} was not stored: infer=False and instructions accept only text" for part in request.dropped()]
    return {**answer, "notices": [*dropped, *unread]} if dropped or unread else answer


def _count(counts: dict[tuple[str, str], dict[str, Any]], memory: Mapping[str, Any]) -> None:
    for kind in ("user", "agent", "run", "app"):
        name = memory[f"{kind}_id"]
        if name is not None:
            times = {time: memory[time] for time in ("created_at", "updated_at")}
            entity = counts.setdefault((kind, name), {"id": name, "name": name, "type": kind, "total_memories": 0, **times})
            entity["total_memories"] += 1
            entity["created_at"] = min(entity["created_at"], memory["created_at"])
            entity["updated_at"] = max(entity["updated_at"], memory["updated_at"])
