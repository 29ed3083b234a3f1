"""Tools for searching conversations and an agent's archive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agent_memory_client._tools.answers import search_answer
from agent_memory_client._tools.arguments import parse_arguments
from agent_memory_client._tools.definitions import Definition, Rule, text_rule, texts_rule
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client._wire.requests import checked
from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.models import ClientMemoryRecord, MemoryTypeEnum, SearchModeEnum
from agent_memory_client.models.features.archive import (
    ARCHIVED_TYPES,
    MESSAGE_TYPES,
    PAGE,
    ArchiveInsertArguments,
    ArchiveSearchArguments,
    ConversationDateArguments,
    ConversationSearchArguments,
    archive_of,
    conversation_of,
    in_days,
)
from agent_memory_client.resources.memories import Memories
from agent_memory_client.resources.model_tools import ModelTools
from agent_memory_client.transport import Transport

ARCHIVAL_MEMORY_INSERT, ARCHIVAL_MEMORY_SEARCH = "archival_memory_insert", "archival_memory_search"
CONVERSATION_SEARCH, CONVERSATION_SEARCH_DATE = "conversation_search", "conversation_search_date"

_PAGE_RULE: Rule = {
    "type": "integer",
    "minimum": 0,
    "default": 0,
    "description": f"The number of a page of {PAGE} results; the first page is 0.",
}
_FROM = text_rule("The first day, such as 2026-03-01 (UTC).")
_TO = text_rule("The last day (inclusive), such as 2026-03-31.")


class ArchiveTools(ModelTools):
    """Tools for an agent's archive and for conversations in long-term memory."""

    definitions: ClassVar[tuple[Definition, ...]] = (
        Definition(
            ARCHIVAL_MEMORY_INSERT,
            "Store something in your archive, which is unlimited and searched on demand, not part of every prompt. Write it so "
            "that it can be understood alone.",
            {"content": text_rule("What to store."), "tags": texts_rule("Short tags to find the memory by, such as ['travel'].")},
            ("content",),
        ),
        Definition(
            ARCHIVAL_MEMORY_SEARCH,
            "Search your archive, by meaning and by words. An empty query lists all entries that match the tags and days.",
            {
                "query": text_rule("What you want to know, in plain words."),
                "page": _PAGE_RULE,
                "tags": texts_rule("Only entries with one of these tags."),
                "start_date": _FROM,
                "end_date": _TO,
            },
            ("query",),
        ),
        Definition(
            CONVERSATION_SEARCH,
            "Search the messages of all conversations, by meaning and by words.",
            {"query": text_rule("The messages to find, in plain words."), "page": _PAGE_RULE},
            ("query",),
        ),
        Definition(
            CONVERSATION_SEARCH_DATE,
            "List the messages of certain days.",
            {"start_date": _FROM, "end_date": _TO, "page": _PAGE_RULE},
            ("start_date", "end_date"),
        ),
    )

    def __init__(self, transport: Transport, config: MemoryClientConfig) -> None:
        super().__init__(transport, config)
        self._memories = Memories(transport, config)

    async def run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        """Run a tool. Return a page of memories with `has_more`, or the `id` of the new memory."""
        if name == ARCHIVAL_MEMORY_INSERT:
            return await self._insert(parse_arguments(ArchiveInsertArguments, values), scope)
        if name == ARCHIVAL_MEMORY_SEARCH:
            tool_input = parse_arguments(ArchiveSearchArguments, values)
            filters = {"memory_type": ARCHIVED_TYPES, "created_at": in_days(tool_input.start_date, tool_input.end_date)}
            filters |= {"topics": {"any": tool_input.tags} if tool_input.tags else None, **archive_of(scope.user_id, scope.agent_id)}
            return await self._search(tool_input.query, tool_input.page, scope, filters)
        message_filters = {"memory_type": MESSAGE_TYPES, **conversation_of(scope.user_id, scope.agent_id)}
        if name == CONVERSATION_SEARCH:
            question = parse_arguments(ConversationSearchArguments, values)
            return await self._search(question.query, question.page, scope, message_filters)
        dated = parse_arguments(ConversationDateArguments, values)
        return await self._search("", dated.page, scope, {**message_filters, "created_at": in_days(dated.start_date, dated.end_date)})

    async def _insert(self, tool_input: ArchiveInsertArguments, scope: ToolScope) -> dict[str, Any]:
        """Store a memory for the user, or for the agent if there is no user."""
        record = checked(
            ClientMemoryRecord,
            text=tool_input.content,
            memory_type=MemoryTypeEnum.SEMANTIC,
            topics=tool_input.tags,
            user_id=scope.user_id,
            agent_id=None if scope.user_id else scope.agent_id,
            namespace=scope.namespace,
        )
        await self._memories.create([record])
        return {"summary": "Stored in the archive", "id": record.id}

    async def _search(self, text: str, page: int, scope: ToolScope, filters: Mapping[str, Any]) -> dict[str, Any]:
        hits = await self._memories.search(
            text,
            SearchModeEnum.HYBRID,
            namespace=None if scope.namespace is None else {"eq": scope.namespace},
            limit=PAGE,
            offset=page * PAGE,
            **filters,
        )
        answer = search_answer(text, page * PAGE, hits)
        return {**answer, "summary": f"{len(hits.memories)} of {hits.total} results, page {page}"}
