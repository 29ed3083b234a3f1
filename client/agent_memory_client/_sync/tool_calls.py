# Made of agent_memory_client/_async/tool_calls.py by client/scripts/make_sync.py: change that file, then run the script.
"""The tools of language models: a method each, and the running of whatever call a model makes of them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from agent_memory_client import _tool_arguments as arguments
from agent_memory_client import _tool_definitions as definitions
from agent_memory_client._merging import MergeStrategy
from agent_memory_client._sync.composites import Composites
from agent_memory_client._tool_answers import (
    ToolScope,
    answered,
    current_datetime,
    failed,
    found,
    noted,
    refused,
    session_state,
    updated,
)
from agent_memory_client.errors import MemoryClientError, MemoryNotFoundError
from agent_memory_client.models import MemoryStrategyConfig, SearchModeEnum
from agent_memory_client.tools import ToolCallResolutionResult, Tools, arguments_of, name_of

log = logging.getLogger(__name__)


class ToolCalls(Composites, Tools):
    """Single calls, what is made of several, and the tools of language models."""

    def search_memory_tool(
        self,
        query: str,
        search_mode: SearchModeEnum | str = SearchModeEnum.SEMANTIC,
        hybrid_alpha: float | None = None,
        text_scorer: str | None = None,
        topics: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        memory_type: str | None = None,
        max_results: int = 10,
        offset: int = 0,
        min_relevance: float | None = None,
        user_id: str | None = None,
        optimize_query: bool = False,
        *,
        namespace: str | None = None,
    ) -> dict[str, Any]:
        """Searches long-term memory: `memories`, `total_found`, `offset`, `next_offset`, `has_more`, `query` and `summary`.

        A memory has `id`, `text`, `memory_type`, `topics`, `entities`, `created_at` and `relevance_score` (1 is the most).
        `min_relevance` (0 to 1) counts in semantic searches. Raises MemoryClientError.
        """
        page = self.search_long_term_memory(
            query,
            search_mode=search_mode,
            hybrid_alpha=hybrid_alpha,
            text_scorer=text_scorer,
            namespace={"eq": namespace} if namespace else None,
            topics={"any": list(topics)} if topics else None,
            entities={"any": list(entities)} if entities else None,
            user_id={"eq": user_id} if user_id else None,
            distance_threshold=1.0 - min_relevance if min_relevance is not None and search_mode == SearchModeEnum.SEMANTIC else None,
            memory_type={"eq": memory_type} if memory_type else None,
            limit=max_results,
            offset=offset,
            optimize_query=optimize_query,
        )
        return found(query, offset, page)

    def get_working_memory_tool(self, session_id: str, namespace: str | None = None, user_id: str | None = None) -> dict[str, Any]:
        """What a session holds: counts, newest `messages`, `memories`, `data`, `context`, `summary`; or `error` and `summary`."""
        try:
            _, session = self.get_or_create_working_memory(session_id, user_id, namespace)
        except MemoryClientError as error:
            return refused("retrieving working memory", error, session_id=session_id)
        return session_state(session_id, session, "Session has {counts}")

    def get_or_create_working_memory_tool(
        self,
        session_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
        long_term_memory_strategy: MemoryStrategyConfig | None = None,
    ) -> dict[str, Any]:
        """As `get_working_memory_tool`, and `created`: whether the session was made by this call."""
        try:
            created, session = self.get_or_create_working_memory(
                session_id, user_id, namespace, long_term_memory_strategy=long_term_memory_strategy
            )
        except MemoryClientError as error:
            return refused("retrieving or creating working memory", error, session_id=session_id, created=False)
        summary = f"Retrieved {'new' if created else 'existing'} session with {{counts}}"
        return {"created": created, **session_state(session_id, session, summary)}

    def add_memory_tool(
        self,
        session_id: str,
        text: str,
        memory_type: str,
        topics: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> dict[str, Any]:
        """Notes a memory in a session, from where it moves to long-term memory: `success`, `summary` and what was stored, or `error`."""
        given = {"text": text, "memory_type": memory_type, "topics": topics and list(topics), "entities": entities and list(entities)}
        try:
            note = arguments.understood(arguments.NoteArguments, given)
            record = arguments.record_of(note, self._calls.namespace(namespace), user_id)
            self.add_memories_to_working_memory(session_id, [record], namespace, user_id=user_id)
        except MemoryClientError as error:
            return refused("storing memory", error, success=False)
        return noted(text, note.memory_type.value, topics, entities)

    def update_memory_data_tool(
        self,
        session_id: str,
        data: dict[str, Any],
        merge_strategy: MergeStrategy = "merge",
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> dict[str, Any]:
        """Changes a session's `data`: `success`, `updated_keys`, `merge_strategy`, `data_preview` and `summary`, or `error`."""
        try:
            self.update_working_memory_data(session_id, data, namespace, merge_strategy, user_id)
        except MemoryClientError as error:
            return refused("updating working memory data", error, success=False)
        return updated(data, merge_strategy)

    def resolve_tool_call(
        self, tool_call: dict[str, Any], session_id: str, namespace: str | None = None, user_id: str | None = None
    ) -> ToolCallResolutionResult:
        """Runs a model's call of one of the nine tools, in the shape of any provider (see `parse_tool_call`). Never raises.

        `namespace` and `user_id` bind the model: it sees and changes nothing of another namespace or user. Without a `user_id`
        it may name one itself. `formatted_response` is what to answer the model with.
        """
        try:
            call = self.parse_tool_call(tool_call)
        except MemoryClientError as error:
            return failed(name_of(tool_call), str(error))
        return self.resolve_function_call(call["name"], call["arguments"], session_id, namespace, user_id)

    def resolve_tool_calls(
        self, tool_calls: Sequence[dict[str, Any]], session_id: str, namespace: str | None = None, user_id: str | None = None
    ) -> list[ToolCallResolutionResult]:
        """Runs several calls, one after the other; the results stand in the same order. Never raises."""
        return [self.resolve_tool_call(call, session_id, namespace, user_id) for call in tool_calls]

    def resolve_function_call(
        self,
        function_name: str,
        function_arguments: str | dict[str, Any],
        session_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> ToolCallResolutionResult:
        """As `resolve_tool_call`, with the tool's name and its arguments (a dict, or a JSON object as text)."""
        scope = ToolScope(session_id, self._calls.namespace(namespace or None), user_id or None)
        try:
            return answered(function_name, self._run_tool(function_name, arguments_of(function_arguments), scope))
        except MemoryClientError as error:
            return failed(function_name, str(error))
        except Exception as error:  # a model waits for the answer to its call: a fault here must not end the conversation
            log.exception("the tool %s failed", function_name)
            return failed(function_name, f"unexpected {type(error).__name__}: {error}")

    def resolve_function_calls(
        self, function_calls: Sequence[dict[str, Any]], session_id: str, namespace: str | None = None, user_id: str | None = None
    ) -> list[ToolCallResolutionResult]:
        """Runs several calls (`{"name", "arguments"}`), one after the other; the results stand in the same order. Never raises."""
        return [self.resolve_tool_call(call, session_id, namespace, user_id) for call in function_calls]

    def _run_tool(self, name: str, given: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        if name in definitions.REPLACED:
            warnings.warn(f"the tool {name} is now called {definitions.REPLACED[name]}", DeprecationWarning, stacklevel=3)
            name = definitions.REPLACED[name]
        match name:
            case definitions.SEARCH_MEMORY:
                search = arguments.understood(arguments.SearchArguments, given)
                search.user_id = scope.user(search.user_id)
                return self.search_memory_tool(**dict(search), namespace=scope.namespace)
            case definitions.GET_OR_CREATE_WORKING_MEMORY:
                return self.get_or_create_working_memory_tool(scope.session_id, scope.namespace, scope.user_id)
            case definitions.GET_WORKING_MEMORY:
                return self.get_working_memory_tool(scope.session_id, scope.namespace, scope.user_id)
            case definitions.LAZILY_CREATE_LONG_TERM_MEMORY:
                note = arguments.understood(arguments.NoteArguments, given)
                return self.add_memory_tool(scope.session_id, **dict(note), namespace=scope.namespace, user_id=scope.user_id)
            case definitions.UPDATE_WORKING_MEMORY_DATA:
                data = arguments.understood(arguments.DataArguments, given)
                return self.update_memory_data_tool(scope.session_id, **dict(data), namespace=scope.namespace, user_id=scope.user_id)
            case definitions.GET_LONG_TERM_MEMORY:
                memory = self.get_long_term_memory(arguments.understood(arguments.ReadArguments, given).memory_id)
                scope.check(memory)
                return {"memory": memory}
            case definitions.EAGERLY_CREATE_LONG_TERM_MEMORY:
                return self._store(arguments.understood(arguments.StoreArguments, given), scope)
            case definitions.EDIT_LONG_TERM_MEMORY:
                return self._edit(arguments.understood(arguments.EditArguments, given), scope)
            case definitions.DELETE_LONG_TERM_MEMORIES:
                return self._delete(arguments.understood(arguments.DeleteArguments, given), scope)
            case definitions.GET_CURRENT_DATETIME:
                return current_datetime()
            case _:
                return refused("calling a tool", LookupError(f"there is no tool {name!r}, there are {', '.join(definitions.BY_NAME)}"))

    def _store(self, given: arguments.StoreArguments, scope: ToolScope) -> dict[str, Any]:
        records = [arguments.record_of(memory, scope.space(memory.namespace), scope.user(memory.user_id)) for memory in given.memories]
        done = self.create_long_term_memory(records)
        count = f"{len(records)} {'memory' if len(records) == 1 else 'memories'}"
        return {"status": done.status, "message": f"Created {count} successfully", "ids": [record.id for record in records]}

    def _edit(self, given: arguments.EditArguments, scope: ToolScope) -> dict[str, Any]:
        updates = given.updates
        if not updates:
            return refused("editing a memory", ValueError("give at least one field to change"))
        for field, bound in (("namespace", scope.space), ("user_id", scope.user)):
            if field in updates:
                updates[field] = bound(updates[field])
        if scope.binds:
            scope.check(self.get_long_term_memory(given.memory_id))
        return {"memory": self.edit_long_term_memory(given.memory_id, updates)}

    def _delete(self, given: arguments.DeleteArguments, scope: ToolScope) -> dict[str, Any]:
        """Passes over what is not the model's, as the server passes over ids that do not exist. Raises when nothing is left."""
        memory_ids = list(given.memory_ids)
        for memory_id in given.memory_ids if scope.binds else ():
            try:
                scope.check(self.get_long_term_memory(memory_id))
            except MemoryNotFoundError:
                memory_ids.remove(memory_id)
                if not memory_ids:
                    raise
        return {"status": (self.delete_long_term_memories(memory_ids)).status}
