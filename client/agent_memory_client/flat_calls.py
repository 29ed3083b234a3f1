"""Provides the archived client's method names, such as `client.append_messages`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from agent_memory_client.errors import MemoryNotFoundError
from agent_memory_client.legacy_tools import Tools
from agent_memory_client.models import ClientMemoryRecord, MemoryRecord, SearchModeEnum, SummaryView, Task
from agent_memory_client.resources.base import Resource
from agent_memory_client.resources.changes import Changes
from agent_memory_client.resources.extraction_rules import ExtractionRuleSets
from agent_memory_client.resources.jobs import Jobs
from agent_memory_client.resources.memories import Memories
from agent_memory_client.resources.prompts import Prompts
from agent_memory_client.resources.quarantine import Quarantine
from agent_memory_client.resources.server import Server
from agent_memory_client.resources.sessions import Sessions
from agent_memory_client.resources.tokens import Tokens
from agent_memory_client.resources.tool_calls import ToolCalls
from agent_memory_client.resources.users import Users
from agent_memory_client.resources.views import Views

Noun = TypeVar("Noun", bound=Resource)
Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


def _flat(
    noun: str, method: Callable[Concatenate[Noun, Parameters], Coroutine[Any, Any, Answer]]
) -> Callable[Concatenate[FlatCalls, Parameters], Coroutine[Any, Any, Answer]]:
    """Return a method that calls `method` on the attribute `noun`."""

    @wraps(method)
    async def call(client: FlatCalls, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        return await method(getattr(client, noun), *args, **kwargs)

    return call


def _by_meaning(method: Callable[Parameters, Coroutine[Any, Any, Answer]]) -> Callable[Parameters, Coroutine[Any, Any, Answer]]:
    """Return a search method that is semantic by default, like in the archived client."""
    method_signature = signature(method)
    parameters = {
        **method_signature.parameters,
        "search_mode": method_signature.parameters["search_mode"].replace(default=SearchModeEnum.SEMANTIC),
    }

    @wraps(method)
    async def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        if "search_mode" not in method_signature.bind(*args, **kwargs).arguments:
            kwargs["search_mode"] = SearchModeEnum.SEMANTIC
        return await method(*args, **kwargs)

    call.__signature__ = method_signature.replace(parameters=list(parameters.values()))  # pyright: ignore[reportAttributeAccessIssue]
    return call


def _flat_iterator(
    noun: str, method: Callable[Concatenate[Noun, Parameters], AsyncIterator[Item]]
) -> Callable[Concatenate[FlatCalls, Parameters], AsyncIterator[Item]]:
    """Like `_flat`, but for a method that yields its results."""

    @wraps(method)
    async def call(client: FlatCalls, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> AsyncIterator[Item]:
        async for item in method(getattr(client, noun), *args, **kwargs):
            yield item

    return call


class FlatCalls(Tools):
    """The client's methods under their names in the archived client."""

    jobs: Jobs
    memories: Memories
    views: Views

    health_check = _flat("server", Server.health)
    ready = _flat("server", Server.ready)

    list_sessions = _flat("sessions", Sessions.list)
    get_working_memory = _flat("sessions", Sessions.get)
    put_working_memory = _flat("sessions", Sessions.put)
    get_or_create_working_memory = _flat("sessions", Sessions.get_or_create)
    append_messages = _flat("sessions", Sessions.append)
    append_messages_to_working_memory = _flat("sessions", Sessions.append_and_get)
    set_working_memory_data = _flat("sessions", Sessions.set_data)
    update_working_memory_data = _flat("sessions", Sessions.update_data)
    add_memories_to_working_memory = _flat("sessions", Sessions.add_memories)
    promote_working_memories_to_long_term = _flat("sessions", Sessions.promote_memories)
    flush_working_memory = _flat("sessions", Sessions.flush)
    delete_working_memory = _flat("sessions", Sessions.delete)

    create_long_term_memory = _flat("memories", Memories.create)
    bulk_create_long_term_memories = _flat("memories", Memories.create_batches)
    get_long_term_memory = _flat("memories", Memories.get)
    edit_long_term_memory = _flat("memories", Memories.edit)
    delete_long_term_memories = _flat("memories", Memories.delete)
    search_long_term_memory = _by_meaning(_flat("memories", Memories.search))
    search_all_long_term_memories = _flat_iterator("memories", Memories.search_all)
    explain_long_term_memory = _flat("memories", Memories.explain)
    get_memory_evidence = _flat("memories", Memories.evidence)
    get_memory_history = _flat("memories", Memories.history)
    compact_long_term_memories = _flat("memories", Memories.compact)
    forget_long_term_memories = _flat("memories", Memories.forget)
    forget_memory = _flat("memories", Memories.forget_by_request)
    get_forgotten = _flat("memories", Memories.get_forgotten)
    undo_forget_memory = _flat("memories", Memories.undo_forget)
    purge_source = _flat("memories", Memories.purge)

    memory_prompt = _flat("prompts", Prompts.render)
    hydrate_memory_prompt = _by_meaning(_flat("prompts", Prompts.render_memories))

    search_memory_tool = _by_meaning(_flat("tools", ToolCalls.search_memory))
    get_working_memory_tool = _flat("tools", ToolCalls.get_working_memory)
    get_or_create_working_memory_tool = _flat("tools", ToolCalls.get_or_create_working_memory)
    add_memory_tool = _flat("tools", ToolCalls.add_memory)
    update_memory_data_tool = _flat("tools", ToolCalls.update_memory_data)
    resolve_tool_call = _flat("tools", ToolCalls.resolve_tool_call)
    resolve_tool_calls = _flat("tools", ToolCalls.resolve_tool_calls)
    resolve_function_call = _flat("tools", ToolCalls.resolve_function_call)
    resolve_function_calls = _flat("tools", ToolCalls.resolve_function_calls)

    list_summary_views = _flat("views", Views.list)
    create_summary_view = _flat("views", Views.create)
    delete_summary_view = _flat("views", Views.delete)
    run_summary_view = _flat("views", Views.run)
    run_summary_view_partition = _flat("views", Views.run_partition)
    list_summary_view_partitions = _flat("views", Views.list_partitions)

    list_changes = _flat("changes", Changes.list)
    get_change = _flat("changes", Changes.get)
    undo_change = _flat("changes", Changes.undo)
    approve_change = _flat("changes", Changes.approve)
    reject_change = _flat("changes", Changes.reject)
    undo_change_batch = _flat("changes", Changes.undo_batch)

    get_extraction_rules = _flat("extraction_rules", ExtractionRuleSets.get)
    put_extraction_rules = _flat("extraction_rules", ExtractionRuleSets.put)
    delete_extraction_rules = _flat("extraction_rules", ExtractionRuleSets.delete)

    list_quarantine = _flat("quarantine", Quarantine.list)
    approve_quarantined = _flat("quarantine", Quarantine.approve)
    reject_quarantined = _flat("quarantine", Quarantine.reject)

    export_user = _flat_iterator("users", Users.export)
    import_user = _flat("users", Users.import_lines)
    delete_user = _flat("users", Users.delete)

    list_operations = _flat("jobs", Jobs.list)
    get_operation = _flat("jobs", Jobs.get)
    replay_operation = _flat("jobs", Jobs.replay)
    drop_operation = _flat("jobs", Jobs.drop)

    list_tokens = _flat("tokens", Tokens.list)
    create_token = _flat("tokens", Tokens.create)
    get_token = _flat("tokens", Tokens.get)
    delete_token = _flat("tokens", Tokens.delete)
    rotate_token = _flat("tokens", Tokens.rotate)

    async def get_summary_view(self, view_id: str) -> SummaryView | None:
        """Return a summary view, or None if it does not exist."""
        try:
            return await self.views.get(view_id)
        except MemoryNotFoundError:
            return None

    async def get_task(self, task_id: str) -> Task | None:
        """Return a background task, or None if it does not exist."""
        try:
            return await self.jobs.get_task(task_id)
        except MemoryNotFoundError:
            return None

    def validate_memory_record(self, memory: ClientMemoryRecord | MemoryRecord) -> None:
        """Raise MemoryValidationError if the record is invalid or its id is not a ULID."""
        self.memories.validate(memory)

    def validate_search_filters(self, **filters: Any) -> None:
        """Raise MemoryValidationError if the search parameters are invalid."""
        self.memories.validate_search(**filters)
