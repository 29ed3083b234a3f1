"""Tools for language models, and `resolve_tool_call`, which runs any tool call."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from agent_memory_client._merging import MergeStrategy
from agent_memory_client._tools import arguments, definitions
from agent_memory_client._tools.answers import (
    current_datetime,
    data_answer,
    error_answer,
    failure,
    forget_answer,
    note_answer,
    result_of,
    search_answer,
    session_answer,
)
from agent_memory_client._tools.arguments import parse_arguments
from agent_memory_client._tools.calls import ToolCallResolutionResult, arguments_of, name_of, parse_call
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import MemoryClientError, MemoryNotFoundError
from agent_memory_client.models import MemoryStrategyConfig, SearchModeEnum
from agent_memory_client.resources.base import Resource
from agent_memory_client.resources.memories import Memories
from agent_memory_client.resources.model_tools import ModelTools
from agent_memory_client.resources.registry import MODEL_TOOLS
from agent_memory_client.resources.sessions import Sessions
from agent_memory_client.tool_schema import SchemaFormat, ToolSchemaCollection
from agent_memory_client.transport import Transport

log = logging.getLogger(__name__)


class ToolCalls(Resource):
    """Tools that models can use to search, store, change and delete memories."""

    def __init__(self, transport: Transport, config: MemoryClientConfig) -> None:
        super().__init__(transport, config)
        self._sessions = Sessions(transport, config)
        self._memories = Memories(transport, config)
        groups = [group(transport, config) for group in MODEL_TOOLS]
        self._groups: dict[str, ModelTools] = {definition.name: group for group in groups for definition in group.definitions}

    @staticmethod
    def schemas(schema_format: SchemaFormat = "openai") -> ToolSchemaCollection:
        """Return all tool schemas in a provider's format.

        Use `tools=client.tools.schemas().to_list()`.
        """
        of_features = [definition for group in MODEL_TOOLS for definition in group.definitions]
        return definitions.schemas(schema_format, [*definitions.DEFINITIONS, *of_features])

    async def search_memory(
        self,
        query: str,
        search_mode: SearchModeEnum | str | None = None,
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
        """Search memories. Return `memories`, `summary`, `query` and paging fields.

        The paging fields are `total_found`, `offset`, `next_offset` and `has_more`. A memory has
        `id`, `text`, `memory_type`, `topics`, `entities`, `created_at` and `relevance_score` (at
        most 1). If `min_relevance` (0 to 1) is set but the mode is not, the search is semantic.
        Raises MemoryClientError.
        """
        by_meaning = search_mode in (None, SearchModeEnum.SEMANTIC)
        page = await self._memories.search(
            query,
            search_mode=search_mode,
            hybrid_alpha=hybrid_alpha,
            text_scorer=text_scorer,
            namespace={"eq": namespace} if namespace else None,
            topics={"any": list(topics)} if topics else None,
            entities={"any": list(entities)} if entities else None,
            user_id={"eq": user_id} if user_id else None,
            distance_threshold=1.0 - min_relevance if min_relevance is not None and by_meaning else None,
            memory_type={"eq": memory_type} if memory_type else None,
            limit=max_results,
            offset=offset,
            optimize_query=optimize_query,
        )
        return search_answer(query, offset, page)

    async def get_working_memory(self, session_id: str, namespace: str | None = None, user_id: str | None = None) -> dict[str, Any]:
        """Return a session's counts, `messages`, `memories`, `data`, `context` and `summary`.

        Only the newest messages are included. On failure, return an `error`.
        """
        try:
            _, session = await self._sessions.get_or_create(session_id, user_id, namespace)
        except MemoryClientError as error:
            return error_answer("retrieving working memory", error, session_id=session_id)
        return session_answer(session_id, session, "Session has {counts}")

    async def get_or_create_working_memory(
        self,
        session_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
        long_term_memory_strategy: MemoryStrategyConfig | None = None,
    ) -> dict[str, Any]:
        """Return the result of `get_working_memory`, and `created`.

        `created` is True if this call created the session.
        """
        try:
            created, session = await self._sessions.get_or_create(
                session_id, user_id, namespace, long_term_memory_strategy=long_term_memory_strategy
            )
        except MemoryClientError as error:
            return error_answer("retrieving or creating working memory", error, session_id=session_id, created=False)
        summary = f"Retrieved {'new' if created else 'existing'} session with {{counts}}"
        return {"created": created, **session_answer(session_id, session, summary)}

    async def add_memory(
        self,
        session_id: str,
        text: str,
        memory_type: str,
        topics: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> dict[str, Any]:
        """Add a memory to a session. The server later stores it as a long-term memory.

        Return `success`, `summary` and the memory, or an `error`.
        """
        values = {"text": text, "memory_type": memory_type, "topics": topics and list(topics), "entities": entities and list(entities)}
        try:
            note = parse_arguments(arguments.NoteArguments, values)
            record = arguments.record_of(note, self._namespace(namespace), user_id)
            await self._sessions.add_memories(session_id, [record], namespace, user_id=user_id)
        except MemoryClientError as error:
            return error_answer("storing memory", error, success=False)
        return note_answer(text, note.memory_type.value, topics, entities)

    async def update_memory_data(
        self,
        session_id: str,
        data: dict[str, Any],
        merge_strategy: MergeStrategy = "merge",
        namespace: str | None = None,
        user_id: str | None = None,
    ) -> dict[str, Any]:
        """Update a session's `data`.

        Return `success`, the updated keys and a preview, or an `error`.
        """
        try:
            await self._sessions.update_data(session_id, data, namespace, merge_strategy, user_id)
        except MemoryClientError as error:
            return error_answer("updating working memory data", error, success=False)
        return data_answer(data, merge_strategy)

    async def resolve_tool_call(
        self,
        tool_call: dict[str, Any],
        session_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
        *,
        agent_id: str | None = None,
    ) -> ToolCallResolutionResult:
        """Run a model's tool call in OpenAI's, Anthropic's or LangChain's format. Never raises.

        The model cannot override `namespace` and `user_id`. If `user_id` is None, the model can
        choose a user. `agent_id` determines which blocks the tools change. Send
        `formatted_response` to the model.
        """
        try:
            call = parse_call(tool_call)
        except MemoryClientError as error:
            return failure(name_of(tool_call), str(error))
        return await self.resolve_function_call(call["name"], call["arguments"], session_id, namespace, user_id, agent_id=agent_id)

    async def resolve_tool_calls(
        self,
        tool_calls: Sequence[dict[str, Any]],
        session_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
        *,
        agent_id: str | None = None,
    ) -> list[ToolCallResolutionResult]:
        """Run tool calls in order and return their results. Never raises."""
        return [await self.resolve_tool_call(call, session_id, namespace, user_id, agent_id=agent_id) for call in tool_calls]

    async def resolve_function_call(
        self,
        function_name: str,
        function_arguments: str | dict[str, Any],
        session_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
        *,
        agent_id: str | None = None,
    ) -> ToolCallResolutionResult:
        """Run a tool by name, with arguments given as a dict or JSON text.

        This works like `resolve_tool_call` in all other respects.
        """
        scope = ToolScope(session_id, self._namespace(namespace or None), user_id or None, agent_id or None)
        try:
            values, group = arguments_of(function_arguments), self._groups.get(function_name)
            run = self._run_tool if group is None else group.run_tool
            return result_of(function_name, await run(function_name, values, scope))
        except MemoryClientError as error:
            return failure(function_name, str(error))
        except Exception as error:  # The model waits for a result, so an error here must not end the conversation.
            log.exception("tool failed", extra={"tool": function_name})
            return failure(function_name, f"unexpected {type(error).__name__}: {error}")

    async def resolve_function_calls(
        self,
        function_calls: Sequence[dict[str, Any]],
        session_id: str,
        namespace: str | None = None,
        user_id: str | None = None,
        *,
        agent_id: str | None = None,
    ) -> list[ToolCallResolutionResult]:
        """Run function calls (`{"name", "arguments"}`) in order and return their results. Never raises."""
        return [await self.resolve_tool_call(call, session_id, namespace, user_id, agent_id=agent_id) for call in function_calls]

    async def _run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        if name in definitions.REPLACED:
            warnings.warn(f"the tool {name} is now called {definitions.REPLACED[name]}", DeprecationWarning, stacklevel=3)
            name = definitions.REPLACED[name]
        match name:
            case definitions.SEARCH_MEMORY:
                search = parse_arguments(arguments.SearchArguments, values)
                search.user_id = scope.user(search.user_id)
                return await self.search_memory(**dict(search), namespace=scope.namespace)
            case definitions.GET_OR_CREATE_WORKING_MEMORY:
                return await self.get_or_create_working_memory(scope.session_id, scope.namespace, scope.user_id)
            case definitions.GET_WORKING_MEMORY:
                return await self.get_working_memory(scope.session_id, scope.namespace, scope.user_id)
            case definitions.LAZILY_CREATE_LONG_TERM_MEMORY:
                note = parse_arguments(arguments.NoteArguments, values)
                return await self.add_memory(scope.session_id, **dict(note), namespace=scope.namespace, user_id=scope.user_id)
            case definitions.UPDATE_WORKING_MEMORY_DATA:
                data = parse_arguments(arguments.DataArguments, values)
                return await self.update_memory_data(scope.session_id, **dict(data), namespace=scope.namespace, user_id=scope.user_id)
            case definitions.GET_LONG_TERM_MEMORY:
                memory = await self._memories.get(parse_arguments(arguments.ReadArguments, values).memory_id)
                scope.check(memory)
                return {"memory": memory}
            case definitions.EAGERLY_CREATE_LONG_TERM_MEMORY:
                return await self._store(parse_arguments(arguments.StoreArguments, values), scope)
            case definitions.EDIT_LONG_TERM_MEMORY:
                return await self._edit(parse_arguments(arguments.EditArguments, values), scope)
            case definitions.DELETE_LONG_TERM_MEMORIES | definitions.FORGET_MEMORY:
                return await self._take_away(name, values, scope)
            case definitions.GET_CURRENT_DATETIME:
                return current_datetime()
            case _:
                names = ", ".join([*definitions.BY_NAME, *self._groups])
                return error_answer("calling a tool", LookupError(f"there is no tool {name!r}; use one of: {names}"))

    async def _store(self, tool_input: arguments.StoreArguments, scope: ToolScope) -> dict[str, Any]:
        records = [arguments.record_of(memory, scope.space(memory.namespace), scope.user(memory.user_id)) for memory in tool_input.memories]
        answer = await self._memories.create(records)
        count = f"{len(records)} {'memory' if len(records) == 1 else 'memories'}"
        return {"status": answer.status, "message": f"Created {count} successfully", "ids": [record.id for record in records]}

    async def _edit(self, tool_input: arguments.EditArguments, scope: ToolScope) -> dict[str, Any]:
        updates = tool_input.updates
        if not updates:
            return error_answer("editing a memory", ValueError("give at least one field to change"))
        for field, bound in (("namespace", scope.space), ("user_id", scope.user)):
            if field in updates:
                updates[field] = bound(updates[field])
        if scope.binds:
            scope.check(await self._memories.get(tool_input.memory_id))
        return {"memory": await self._memories.edit(tool_input.memory_id, updates)}

    async def _take_away(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        if name == definitions.FORGET_MEMORY:
            return await self._forget(parse_arguments(arguments.ForgetArguments, values), scope)
        return await self._delete(parse_arguments(arguments.DeleteArguments, values), scope)

    async def _forget(self, tool_input: arguments.ForgetArguments, scope: ToolScope) -> dict[str, Any]:
        answer = await self._memories.forget_by_request(
            tool_input.text, ids=tool_input.ids, user_id=scope.user_id, namespace=scope.namespace, dry_run=tool_input.dry_run
        )
        return forget_answer(answer)

    async def _delete(self, tool_input: arguments.DeleteArguments, scope: ToolScope) -> dict[str, Any]:
        """Delete memories, skipping other owners' memories.

        Raises MemoryNotFoundError if none are left.
        """
        memory_ids = list(tool_input.memory_ids)
        for memory_id in tool_input.memory_ids if scope.binds else ():
            try:
                scope.check(await self._memories.get(memory_id))
            except MemoryNotFoundError:
                memory_ids.remove(memory_id)
                if not memory_ids:
                    raise
        return {"status": (await self._memories.delete(memory_ids)).status}
