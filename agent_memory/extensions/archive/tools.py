"""MCP tools for the archive and for searching conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.memories.service import MemoryService
from agent_memory.foundation.api.principals import permit_agent
from agent_memory.foundation.core.feature import Services
from agent_memory.foundation.core.mcp_tools import Caller, ToolSet, read_values
from agent_memory_client.models import (
    CreateMemoryRecordRequest,
    ExtractedMemoryRecord,
    MemoryTypeEnum,
    OptionalIdentifier,
    SearchModeEnum,
    SearchRequest,
    new_id,
)
from agent_memory_client.models.features import archive as wire

TOOLS = ToolSet()


class _OwnerArguments(BaseModel):
    user_id: Annotated[OptionalIdentifier, Field(description="The user that owns the memory.")] = None
    agent_id: Annotated[OptionalIdentifier, Field(description="The agent. Without a user, the memory is the agent's own.")] = None
    namespace: Annotated[OptionalIdentifier, Field(description="The namespace.")] = None


class InsertIntoArchive(wire.ArchiveInsertArguments, _OwnerArguments):
    """Arguments of archival_memory_insert."""

    tags: Annotated[wire.Tags, Field(description="Short tags to find the memory by.")] = None


class SearchArchive(wire.ArchiveSearchArguments, _OwnerArguments):
    """Arguments of archival_memory_search."""

    tags: Annotated[wire.Tags, Field(description="Only entries with one of these tags.")] = None


class SearchConversations(wire.ConversationSearchArguments, _OwnerArguments):
    """Arguments of conversation_search."""


class SearchConversationDays(wire.ConversationDateArguments, _OwnerArguments):
    """Arguments of conversation_search_date."""


@TOOLS.tool(InsertIntoArchive, wire.ArchivedReceipt, writes=True, offered="agent")
async def archival_memory_insert(services: Services, caller: Caller, arguments: InsertIntoArchive) -> BaseModel:
    """Stores text in the archive, which is unlimited and searched on demand.

    The archive is not part of every prompt. Write the text so that it makes sense on its own.
    """
    user_id, namespace = _place(caller, arguments)
    record = ExtractedMemoryRecord(
        id=new_id(),
        text=arguments.content,
        memory_type=MemoryTypeEnum.SEMANTIC,
        topics=arguments.tags,
        user_id=user_id,
        agent_id=None if user_id else arguments.agent_id,
        namespace=namespace,
    )
    await services[MemoryService].create(caller.scope, CreateMemoryRecordRequest(memories=[record]))
    return wire.ArchivedReceipt(id=record.id)


@TOOLS.tool(SearchArchive, wire.ArchivePage, offered="agent")
async def archival_memory_search(services: Services, caller: Caller, arguments: SearchArchive) -> BaseModel:
    """Searches the archive by meaning and by words. An empty query lists all entries that match the tags and dates."""
    filters = {"memory_type": wire.ARCHIVED_TYPES, "created_at": wire.in_days(arguments.start_date, arguments.end_date)}
    filters |= {"topics": {"any": arguments.tags} if arguments.tags else None}
    filters |= wire.archive_of(_place(caller, arguments)[0], arguments.agent_id)
    return await _search(services, caller, arguments, arguments.query, filters)


@TOOLS.tool(SearchConversations, wire.ArchivePage, offered="agent")
async def conversation_search(services: Services, caller: Caller, arguments: SearchConversations) -> BaseModel:
    """Searches the messages of all conversations, by meaning and by words."""
    filters = {"memory_type": wire.MESSAGE_TYPES, **wire.conversation_of(_place(caller, arguments)[0], arguments.agent_id)}
    return await _search(services, caller, arguments, arguments.query, filters)


@TOOLS.tool(SearchConversationDays, wire.ArchivePage, offered="agent")
async def conversation_search_date(services: Services, caller: Caller, arguments: SearchConversationDays) -> BaseModel:
    """Lists the messages from a range of days."""
    filters = {"memory_type": wire.MESSAGE_TYPES, **wire.conversation_of(_place(caller, arguments)[0], arguments.agent_id)}
    filters["created_at"] = wire.in_days(arguments.start_date, arguments.end_date)
    return await _search(services, caller, arguments, "", filters)


async def _search(
    services: Services,
    caller: Caller,
    arguments: SearchArchive | SearchConversations | SearchConversationDays,
    text: str,
    filters: Mapping[str, Any],
) -> wire.ArchivePage:
    """Return a page of search results. Raises Forbidden."""
    permit_agent(caller.scope, arguments.agent_id)
    namespace = _place(caller, arguments)[1]
    values = {name: value for name, value in filters.items() if value is not None}
    values |= {} if namespace is None else {"namespace": {"eq": namespace}}
    values |= {"text": text, "search_mode": SearchModeEnum.HYBRID, "limit": wire.PAGE, "offset": arguments.page * wire.PAGE}
    results = await services[SearchService].search(caller.scope, read_values(SearchRequest, values))
    memories = [wire.ArchivedMemory(id=hit.id, text=hit.text, tags=hit.topics or [], created_at=hit.created_at) for hit in results.memories]
    return wire.ArchivePage(memories=memories, total=results.total, page=arguments.page, has_more=results.next_offset is not None)


def _place(caller: Caller, arguments: _OwnerArguments) -> tuple[str | None, str | None]:
    return arguments.user_id or caller.user_id, arguments.namespace or caller.namespace
