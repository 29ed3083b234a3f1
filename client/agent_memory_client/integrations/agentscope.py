"""Memory for AgentScope 1.x.

Install the extra with `pip install 'agent-memory-api-client[agentscope]'`. For AgentScope 2.x, use
`agent_memory_client.integrations.agentscope_middleware`.
"""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from agent_memory_client.errors import MemoryClientError
from agent_memory_client.integrations._shared import AnyClient, Recall, SessionMessages, our_message, raw_of, tool_call
from agent_memory_client.models import MemoryMessage, new_id

try:
    from agentscope.memory import LongTermMemoryBase, MemoryBase
    from agentscope.message import Msg, TextBlock
    from agentscope.tool import ToolResponse
except ImportError as error:
    raise ImportError(
        f"the memories need agentscope 1.x ({error}): pip install 'agent-memory-api-client[agentscope]' 'agentscope<2'"
    ) from error

MESSAGE = "agentscope_message"
"""The message field that contains AgentScope's own message."""
MARKS = "agentscope_marks"
"""The message field that contains the message's marks."""
SUMMARY = "agentscope-summary"
"""The path of the items that contain compressed summaries, one per session."""


class AgentMemoryMemory(MemoryBase):
    """A `MemoryBase` stored in a session on the server.

    Use `ReActAgent(…, memory=AgentMemoryMemory("monday", client))`. Messages and marks are returned
    exactly as they were added, including tool calls. The messages become long-term memories.
    """

    def __init__(self, session_id: str, client: AnyClient, *, user_id: str | None = None, namespace: str | None = None) -> None:
        super().__init__()
        self._session = SessionMessages(client, session_id, user_id, namespace)

    async def add(
        self, memories: Msg | list[Msg] | None, marks: str | list[str] | None = None, allow_duplicates: bool = False, **kwargs: Any
    ) -> None:
        """Add messages with marks. Skip stored messages unless `allow_duplicates` is True."""
        named = _names(marks)
        messages: list[Any] = memories if isinstance(memories, list) else [] if memories is None else [memories]
        if messages:
            # The server treats a known message with different marks as a new one, so known messages are skipped here.
            stored_ids = {_their_id(message) for message in await self._session.aread()}
            added = [message for message in messages if allow_duplicates or message.id not in stored_ids]
            await self._session.aappend([_our(message, named, again=message.id in stored_ids) for message in added])

    async def get_memory(
        self, mark: str | None = None, exclude_mark: str | None = None, prepend_summary: bool = True, **kwargs: Any
    ) -> list[Msg]:
        """Return the messages that have `mark` but not `exclude_mark`.

        If `mark` is None, return all messages that do not have `exclude_mark`. `prepend_summary`
        puts the compressed summary first, if there is one.
        """
        for name in (mark, exclude_mark):
            if name is not None and not isinstance(name, str):
                raise TypeError(f"The mark should be a string or None, but got {type(name)}.")
        stored = await self._session.aread()
        chosen = [each for each in stored if mark is None or mark in _marks(each)]
        messages = [_their(each) for each in chosen if exclude_mark is None or exclude_mark not in _marks(each)]
        if prepend_summary and (summary := await self._summary()):
            return [Msg("user", summary, "user"), *messages]
        return messages

    async def delete(self, msg_ids: list[str], **kwargs: Any) -> int:
        """Delete messages by id, and return how many were deleted."""
        return await self._remove(lambda message: _their_id(message) in msg_ids)

    async def delete_by_mark(self, mark: str | list[str], *args: Any, **kwargs: Any) -> int:
        """Delete messages that have any of the marks, and return how many were deleted."""
        named = set(_names(mark))
        return await self._remove(lambda message: bool(named & set(_marks(message))))

    async def size(self) -> int:
        return len(await self._session.aread())

    async def clear(self) -> None:
        """Delete all messages, but not the summary or long-term memories."""
        await self._session.adelete()

    async def update_compressed_summary(self, summary: str) -> None:
        await super().update_compressed_summary(summary)
        session = self._session
        if summary:
            await session.awaited(
                lambda client: client.items.put([SUMMARY], session.session_id, {"text": summary}, index=False, **session.owner)
            )
        else:
            await session.awaited(lambda client: client.items.delete([SUMMARY], session.session_id, **session.owner))

    async def update_messages_mark(self, new_mark: str | None, old_mark: str | None = None, msg_ids: list[str] | None = None) -> int:
        """Add a mark to messages, or replace `old_mark`. Return the number of changed messages.

        If `new_mark` is None, the old mark is removed.
        """

        def change(messages: list[MemoryMessage]) -> list[MemoryMessage]:
            return [
                _marked(message, new_mark, old_mark) if msg_ids is None or _their_id(message) in msg_ids else message
                for message in messages
            ]

        before = await self._session.achange(change)
        return sum(old is not new for old, new in zip(before, change(before), strict=True))

    def state_dict(self) -> dict[str, Any]:
        """Return an empty dict, because the server stores the state."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Do nothing, because the server stores the state."""

    async def _summary(self) -> str:
        session = self._session
        item = await session.awaited(lambda client: client.items.get([SUMMARY], session.session_id, **session.owner))
        return "" if item is None else str(item.value["text"])

    async def _remove(self, leaves: Callable[[MemoryMessage], bool]) -> int:
        before = await self._session.achange(lambda messages: [message for message in messages if not leaves(message)])
        return sum(map(leaves, before))


class AgentMemoryLongTermMemory(LongTermMemoryBase):
    """A `LongTermMemoryBase`: `ReActAgent(…, long_term_memory=…, long_term_memory_mode="both")`.

    Programs call `record` and `retrieve`, which raise the errors in `agent_memory_client.errors`.
    Agents call the tools `record_to_memory` and `retrieve_from_memory`, which report errors to the
    model. Messages are stored in the session `session_id`, and are searchable as soon as `record`
    returns.
    """

    def __init__(
        self, client: AnyClient, *, user_id: str | None = None, namespace: str | None = None, session_id: str = "agentscope"
    ) -> None:
        super().__init__()
        self._session = SessionMessages(client, session_id, user_id, namespace)
        self._recall = Recall(client, user_id, namespace)

    async def record(self, msgs: Msg | list[Msg | None] | None, **kwargs: Any) -> None:
        """Store messages that are not stored yet."""
        message_list: list[Any] = msgs if isinstance(msgs, list) else [msgs]
        messages = [_our(message, []) for message in message_list if message is not None]
        await self._session.aappend(messages, wait="searchable")

    async def retrieve(self, msg: Msg | list[Msg] | None, limit: int = 5, **kwargs: Any) -> str:
        """Return the text of matching memories, one per line."""
        messages: list[Any] = msg if isinstance(msg, list) else [] if msg is None else [msg]
        query = "\n".join(text for message in messages if (text := message.get_text_content()))
        return "\n".join(memory.text for memory in await self._recall.asearch(query, limit)) if query.strip() else ""

    async def record_to_memory(self, thinking: str, content: list[str], **kwargs: Any) -> ToolResponse:
        """Use this function to record important information that you may need later.

        The target content should be specific and concise, e.g. who, when, where, do what, why, how, etc.

        Args:
            thinking (`str`):
                Your thinking and reasoning about what to record
            content (`list[str]`):
                The content to remember, which is a list of strings.
        """
        owner = {name: value for name, value in self._session.owner.items() if value is not None}
        try:
            records = [{"text": text, **owner} for text in content]
            await self._session.awaited(lambda client: client.memories.create(records, wait=True))
        except (MemoryClientError, ValueError) as error:
            return _response(f"Error recording memory: {error}")
        return _response(f"Recorded {len(records)} memories.")

    async def retrieve_from_memory(self, keywords: list[str], limit: int = 5, **kwargs: Any) -> ToolResponse:
        """Retrieve the memory based on the given keywords.

        Args:
            keywords (`list[str]`):
                The keywords to search for in the memory, which should be specific and concise, e.g. the person's name, the date, the
                location, etc.
            limit (`int`, optional):
                The maximum number of memories to retrieve for each keyword. Defaults to 5.
        """
        texts: dict[str, None] = {}
        try:
            for keyword in keywords:
                texts |= dict.fromkeys(memory.text for memory in await self._recall.asearch(keyword, limit))
        except (MemoryClientError, ValueError) as error:
            return _response(f"Error retrieving memory: {error}")
        return _response("\n".join(texts) or "No matching memories.")


def _response(text: str) -> ToolResponse:
    return ToolResponse(content=[TextBlock(type="text", text=text)])


def _names(marks: str | list[str] | None) -> list[str]:
    names = [marks] if isinstance(marks, str) else marks or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"The mark should be a string, a list of strings, or None, but got {type(marks)}.")
    return names


def _marks(message: MemoryMessage) -> list[str]:
    marks = message.own_fields.get(MARKS)
    return cast("list[str]", marks) if isinstance(marks, list) else []


def _marked(message: MemoryMessage, new: str | None, old: str | None) -> MemoryMessage:
    marks = _marks(message)
    if old is not None and old not in marks:
        return message
    changed = [mark for mark in marks if mark != old]
    if new is not None and new not in changed:
        changed.append(new)
    return message if changed == marks else message.model_copy(update={MARKS: changed})


def _our(message: Msg, marks: Sequence[str], *, again: bool = False) -> MemoryMessage:
    """Convert a message to our format. `again` gives it a new id."""
    raw = json.loads(json.dumps(message.to_dict()))
    calls = [
        tool_call(block["id"], block["name"], json.dumps(block["input"], default=str)) for block in message.get_content_blocks("tool_use")
    ]
    results = message.get_content_blocks("tool_result")
    message_id = new_id() if again else message.id
    more: dict[str, Any] = {"id": message_id, "tool_calls": calls or None, "tool_call_id": results[0]["id"] if results else None}
    if marks:
        more[MARKS] = list(marks)
    return our_message("tool" if results else message.role, message.get_text_content() or "", (MESSAGE, raw), **more)


def _their_id(message: MemoryMessage) -> str:
    return str((raw_of(message, MESSAGE) or {}).get("id", message.id))


def _their(message: MemoryMessage) -> Msg:
    raw = raw_of(message, MESSAGE)
    if raw is None:
        role = message.role if message.role in ("user", "assistant", "system") else "user"
        raw = {
            "id": message.id,
            "name": message.role,
            "role": role,
            "content": message.content,
            "timestamp": message.created_at.isoformat(),
        }
    return Msg.from_dict(raw)
