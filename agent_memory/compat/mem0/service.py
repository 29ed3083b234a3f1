"""Mem0's operations over our features; it keeps nothing itself. Everything lives in one namespace, to which each scope is narrowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from agent_memory.access.principals import within_namespace, writing
from agent_memory.compat.errors import bad_input
from agent_memory.compat.mem0.answers import OWN_SESSION, fields_of, history_answer, hit_answer, memory_answer
from agent_memory.compat.mem0.filters import categories_in_part, condition_of, shown_selection, whole_categories
from agent_memory.compat.mem0.requests import OWN_KEYS, AddRequest, ListRequest, SearchBody
from agent_memory.core.errors import BadInput, NotFound, NotSupported
from agent_memory.core.scope import Scope, SessionRef
from agent_memory.extraction.categories import nearest_categories
from agent_memory.extraction.rules import ExtractionRulesService
from agent_memory.jobs.operations import OperationService
from agent_memory.memories.annotations import REMEMBER_AS
from agent_memory.memories.changes.service import HistoryService
from agent_memory.memories.search.service import SearchService
from agent_memory.memories.service import MemoryService
from agent_memory.runtime import Runtime
from agent_memory.sessions.service import SessionService
from agent_memory_client.models import (
    AppendMessagesRequest,
    CreateMemoryRecordRequest,
    EditMemoryRecordRequest,
    ExtractionCategory,
    ExtractionRules,
    MemoryRecordResult,
    MemoryStrategyConfig,
    SearchRequest,
)

_PAGE = 100
# An account is counted by reading it: so many memories at most.
_MOST_COUNTED = 5_000
_MOST_LINKS = 20
_WAIT_SECONDS = 10.0
# With no worker there is nothing to wait for.
_NOBODY_WORKS_SECONDS = 2.0
_TIMES = ("created_at", "updated_at")
_AGENT_SESSION = f"{OWN_SESSION}agent:"
# Fields of an update that null clears, and their names here.
_CLEARABLE = {"expiration_date": "expires_at", "timestamp": "event_date"}
_PROJECT_FIELDS = frozenset({"custom_instructions", "custom_categories"})


class Mem0Service:
    """What Mem0's API does, for the caller of one request. Raises Forbidden when the caller does not reach Mem0's namespace."""

    def __init__(self, runtime: Runtime, scope: Scope) -> None:
        self._runtime = runtime
        self._services = runtime.services
        self._namespace = runtime.settings.compat.namespace_of("mem0")
        self._scope = within_namespace(scope, self._namespace)

    async def add(self, request: AddRequest) -> dict[str, Any]:
        """Takes messages in. With `infer: false` each becomes a memory as it is, at once; else what they say is remembered soon.

        Raises BadInput when no user, agent or run is named.
        """
        scope = writing(self._scope)
        if not request.entities():
            raise BadInput("give at least one of user_id, agent_id, run_id and app_id", field="user_id")
        if request.infer is False:
            return await self._store_messages(scope, request)
        agent = f"{_AGENT_SESSION}{request.agent_id}" if request.agent_id else f"{OWN_SESSION}chat"
        session = request.run_id or agent
        if (request.run_id or "").startswith(OWN_SESSION):
            raise BadInput(f"must not begin with {OWN_SESSION}", field="run_id")
        event = str(uuid4())
        body = AppendMessagesRequest.model_validate(
            {
                "namespace": self._namespace,
                "user_id": request.user_id,
                "messages": [
                    {
                        "role": message.role,
                        "content": message.content,
                        **({"name": message.name} if message.name else {}),
                        "id": f"{event}-{position}",
                        REMEMBER_AS: request.annotations(),
                        **({} if request.said is None else {"created_at": request.said}),
                    }
                    for position, message in enumerate(request.messages)
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
                return {"results": [{"id": hit.id, "memory": hit.text, "event": "ADD"} for hit in made]}
        return {
            "message": "Memory processing has been queued for background execution",
            "status": "PENDING",
            "event_id": event,
            "results": [],
        }

    async def search(self, request: SearchBody) -> list[dict[str, Any]]:
        """The memories that fit a question, the best first."""
        selection = await self._selection(request)
        values: dict[str, Any] = {
            **selection,
            "text": request.query,
            "search_mode": "hybrid",
            "limit": min(request.top_k or request.limit or 10, _PAGE),
            "reference_time": request.reference_date,
            "explain": True,
        }
        body = SearchRequest.model_validate(values)
        found = (await self._services[SearchService].search(self._scope, body)).memories
        if not found and await self._was_new(selection):
            found = (await self._services[SearchService].search(self._scope, body)).memories
        if request.threshold is not None and len(found) < body.limit:
            # Who names a threshold gets whatever is near enough by it, also what our own bound leaves out.
            near = {"search_mode": "semantic", "distance_threshold": min(max(1.0 - request.threshold, 0.0), 2.0)}
            more = await self._services[SearchService].search(self._scope, SearchRequest.model_validate({**values, **near}))
            known = {hit.id for hit in found}
            found = [*found, *(hit for hit in more.memories if hit.id not in known)][: body.limit]
        hits = [hit_answer(hit) for hit in found]
        return [fields_of(hit, request.fields) for hit in hits if request.threshold is None or hit["score"] >= request.threshold]

    async def _was_new(self, selection: Mapping[str, Any]) -> bool:
        """Whether memories were listed before they could be found by meaning, and now can: programs search for what they saw in a list."""
        operations, body = self._services[OperationService], SearchRequest.model_validate({**selection, "limit": _MOST_LINKS})
        listed = await self._services[SearchService].search(self._scope, body)
        marks = operations.memory_marks(self._scope, [hit.id for hit in listed.memories])
        if not marks or not any(await operations.load_states(self._scope, [marks])):
            return False
        return await operations.wait_for_marks(self._scope, marks, _NOBODY_WORKS_SECONDS)

    async def list(self, request: ListRequest) -> tuple[list[dict[str, Any]], int]:
        """A page of memories, the newest first, and how many there are on all pages."""
        size = min(request.page_size or request.top_k or request.limit or _PAGE, _PAGE)
        body = {**await self._selection(request), "limit": size, "offset": (request.page - 1) * size}
        listed = await self._services[SearchService].search(self._scope, SearchRequest.model_validate(body))
        return [fields_of(memory_answer(hit), request.fields) for hit in listed.memories], listed.total

    async def get(self, memory_id: str) -> dict[str, Any]:
        """A memory. Raises NotFound."""
        return memory_answer(await self._services[MemoryService].get(self._scope, memory_id))

    async def update(self, memory_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Changes text, metadata, expiration_date or timestamp. Raises NotFound, BadInput, NotSupported."""
        unknown = set(changes) - {"text", "memory", "metadata", "expiration_date", "timestamp", "memory_id"}
        if unknown:
            raise NotSupported(f"update: {min(map(str, unknown))}")
        fields: dict[str, Any] = {
            "text": changes.get("text", changes.get("memory")),
            "metadata": await self._with_own(memory_id, changes.get("metadata")),
            "expires_at": None if changes.get("expiration_date") is None else end_of_day(changes["expiration_date"]),
            "event_date": changes.get("timestamp"),
        }
        cleared = {ours for theirs, ours in _CLEARABLE.items() if theirs in changes}
        try:
            body = EditMemoryRecordRequest.model_validate(
                {name: value for name, value in fields.items() if value is not None or name in cleared}
            )
        except ValidationError as error:
            raise bad_input(error) from None
        return memory_answer(await self._services[MemoryService].patch(writing(self._scope), memory_id, body))

    async def _with_own(self, memory_id: str, metadata: object) -> object:
        """New metadata with what says which app, agent and run the memory belongs to."""
        if not isinstance(metadata, Mapping):
            return metadata
        known = (await self._services[MemoryService].get(self._scope, memory_id)).metadata
        return {**metadata, **{key: value for key, value in known.items() if key in OWN_KEYS}}

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What became of a memory, the oldest event first, those that it took the place of before it. Raises NotFound."""
        events: list[dict[str, Any]] = []
        waiting, seen = [memory_id], set[str]()
        while waiting and len(seen) < _MOST_LINKS:
            if (name := waiting.pop()) in seen:
                continue
            seen.add(name)
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
        """Deletes memories for good. Raises NotFound, with nothing deleted, when there is one of them not."""
        scope = writing(self._scope)
        for memory_id in memory_ids:
            await self._services[MemoryService].get(scope, memory_id)
        await self._services[MemoryService].delete(scope, memory_ids)

    async def delete_all(self, entities: Mapping[str, str]) -> int:
        """Deletes the memories of a user, agent, run or app for good, what waits in its sessions and former versions too; how many of both.

        Raises BadInput when none is named.
        """
        scope = writing(self._scope)
        if not entities:
            raise BadInput("give at least one of user_id, agent_id, run_id and app_id", field="user_id", where="query")
        # What was said in several apps may stand in one session.
        deleted = 0 if "app_id" in entities else await self._delete_sessions(scope, entities)
        selection = {"namespace": {"eq": self._namespace}, "filter": condition_of(entities)}
        for _ in range(_MOST_COUNTED):
            body = SearchRequest.model_validate({**selection, "history": True, "limit": _PAGE})
            ids = [hit.id for hit in (await self._services[SearchService].search(scope, body)).memories]
            if not ids:
                break
            await self._services[MemoryService].delete(scope, ids)
            deleted += len(ids)
        return deleted

    async def entities(self) -> list[dict[str, Any]]:
        """The users, agents, runs and apps that have memories, with how many; of the newest 5,000 memories."""
        counts: dict[tuple[str, str], dict[str, Any]] = {}
        for offset in range(0, _MOST_COUNTED, _PAGE):
            body = SearchRequest.model_validate(
                {**shown_selection(self._namespace, extracts=self._runtime.extracts), "limit": _PAGE, "offset": offset}
            )
            listed = await self._services[SearchService].search(self._scope, body)
            for hit in listed.memories:
                _count(counts, memory_answer(hit))
            if listed.next_offset is None:
                break
        return list(counts.values())

    async def project(self, fields: Sequence[str] = ()) -> dict[str, Any]:
        """The instructions and categories by which facts are taken."""
        if list(fields) == ["id"]:
            return {"id": self._namespace}
        rules = await self._services[ExtractionRulesService].get(self._scope, self._namespace, None)
        project: dict[str, Any] = {
            "id": self._namespace,
            "name": self._namespace,
            "custom_instructions": rules.instructions,
            "custom_categories": [{category.name: category.description} for category in rules.categories] or None,
        }
        return {name: value for name, value in project.items() if not fields or name in fields}

    async def update_project(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Replaces custom instructions or categories. Raises BadInput, NotSupported for any other setting."""
        unknown = set(changes) - _PROJECT_FIELDS - {"org_id", "project_id"}
        if unknown:
            raise NotSupported(f"project.update: {min(map(str, unknown))}")
        service, scope = self._services[ExtractionRulesService], writing(self._scope)
        rules = (await service.get(scope, self._namespace, None)).model_dump()
        try:
            if "custom_instructions" in changes:
                rules["instructions"] = changes["custom_instructions"] or None
            if "custom_categories" in changes:
                rules["categories"] = _categories(changes["custom_categories"])
            await service.put(scope, self._namespace, None, ExtractionRules.model_validate(rules))
        except ValidationError as error:
            raise bad_input(error) from None
        return {"message": "Updated the project"}

    async def _selection(self, request: ListRequest) -> dict[str, Any]:
        filters = request.filters
        if categories_in_part(filters):
            place = SessionRef("", self._namespace)
            rules = await self._services[ExtractionRulesService].of_session(self._scope, place, MemoryStrategyConfig())
            filters = whole_categories(filters, [category.name for category in rules.categories])
        given = (filters, request.entities(), request.own_filters())
        if not any(given):
            # A caller that forgot to say whose would be shown everybody's.
            raise BadInput("give at least one of user_id, agent_id, run_id and app_id", field="filters")
        selection = shown_selection(self._namespace, extracts=self._runtime.extracts)
        parts = [*(condition_of(part) for part in given), selection.get("filter")]
        conditions = [part for part in parts if part is not None]
        if conditions:
            selection["filter"] = conditions[0] if len(conditions) == 1 else {"and": conditions}
        return selection

    async def _store_messages(self, scope: Scope, request: AddRequest) -> dict[str, Any]:
        annotations = request.annotations()
        messages = [message for message in request.messages if message.role != "system" and message.content.strip()]
        categories = await self._categories_of([message.content for message in messages], request.user_id)
        try:
            body = CreateMemoryRecordRequest.model_validate(
                {
                    "memories": [
                        {
                            "id": str(uuid4()),
                            "text": message.content,
                            "namespace": self._namespace,
                            "user_id": request.user_id,
                            "session_id": request.run_id,
                            "category": category,
                            **annotations,
                            **({} if request.said is None else {"created_at": request.said}),
                        }
                        for message, category in zip(messages, categories, strict=True)
                    ],
                    "deduplicate": False,
                }
            )
        except ValidationError as error:
            raise bad_input(error) from None
        await self._services[MemoryService].create(scope, body)
        operations = self._services[OperationService]
        marks = operations.memory_marks(scope, [record.id for record in body.memories])
        await operations.wait_for_marks(scope, marks, _WAIT_SECONDS, untouched=_NOBODY_WORKS_SECONDS)
        return {"results": [{"id": record.id, "memory": record.text, "event": "ADD"} for record in body.memories]}

    async def _categories_of(self, texts: Sequence[str], user_id: str | None) -> list[str | None]:
        """The project's categories of what is stored as it is; without a model, as with what is said."""
        ref = SessionRef("", self._namespace, user_id)
        rules = await self._services[ExtractionRulesService].of_session(self._scope, ref, MemoryStrategyConfig())
        return await nearest_categories(self._runtime, texts, rules.categories)

    async def _made_of(self, session: str, request: AddRequest, messages: set[str]) -> list[MemoryRecordResult]:
        selection = {**shown_selection(self._namespace, extracts=self._runtime.extracts), "session_id": {"eq": session}, "limit": _PAGE}
        if request.user_id:
            selection["user_id"] = {"eq": request.user_id}
        listed = await self._services[SearchService].search(self._scope, SearchRequest.model_validate(selection))
        return [hit for hit in listed.memories if messages.intersection(hit.extracted_from or ())]

    async def _delete_sessions(self, scope: Scope, entities: Mapping[str, str]) -> int:
        """Deletes the sessions that hold nothing but what is deleted: those of the run, of the agent without a run, or all of the user."""
        service = self._services[SessionService]
        user, agent, run = (entities.get(name) for name in ("user_id", "agent_id", "run_id"))
        is_meant = _session_filter(agent, run)
        user = None if user == "*" else user
        offset = deleted = 0
        while True:
            listed = await service.list(scope, namespace=self._namespace, user_id=user, limit=_PAGE, offset=offset)
            meant = [name for name in listed.sessions if is_meant(name)]
            for name in meant:
                await service.delete(scope, name, namespace=self._namespace, user_id=user)
            deleted += len(meant)
            if len(listed.sessions) < _PAGE:
                return deleted
            offset += _PAGE - len(meant)


def _session_filter(agent: str | None, run: str | None) -> Callable[[str], bool]:
    """Which sessions an agent and a run mean, where "*" is any: those of the run, else of the agent without a run, else all."""
    if run == "*":
        return lambda name: not name.startswith(OWN_SESSION)
    if agent == "*" and run is None:
        return lambda name: name.startswith(_AGENT_SESSION)
    session = f"{_AGENT_SESSION}{agent}" if agent and run is None else run
    return lambda name: session in (None, name)


def end_of_day(day: object) -> datetime:
    """The end of a day in UTC, until when a memory with this expiration_date is shown. Raises BadInput for what is no YYYY-MM-DD."""
    try:
        return datetime.strptime(str(day)[:10], "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise BadInput("must be a date as YYYY-MM-DD", field="expiration_date") from None


def _categories(value: object) -> list[ExtractionCategory]:
    if not isinstance(value, list):
        raise BadInput("must be a list of {name: description}", field="custom_categories")
    pairs = [pair for item in value for pair in (item.items() if isinstance(item, Mapping) else [(item, "")])]
    return [ExtractionCategory.model_validate({"name": name, "description": text}) for name, text in pairs]


def _count(counts: dict[tuple[str, str], dict[str, Any]], memory: Mapping[str, Any]) -> None:
    for kind in ("user", "agent", "run", "app"):
        name = memory[f"{kind}_id"]
        if name is not None:
            entity = counts.setdefault(
                (kind, name), {"id": name, "name": name, "type": kind, "total_memories": 0, **{time: memory[time] for time in _TIMES}}
            )
            entity["total_memories"] += 1
            entity["created_at"] = min(entity["created_at"], memory["created_at"])
            entity["updated_at"] = max(entity["updated_at"], memory["updated_at"])
