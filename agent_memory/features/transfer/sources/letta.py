"""Read Letta agent files (`.af`) with blocks and messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_memory.features.transfer.sources.model import (
    Conversation,
    CoreBlock,
    Fields,
    Item,
    LeftOut,
    NotUtf8,
    SourceMessage,
    Unusable,
    guarded,
)
from agent_memory.features.transfer.sources.reading import MAX_RECORD

KEEPS_IDS = False
_HEARTBEATS = {"heartbeat", "login", "system_alert"}


def read(path: Path, mapping: Mapping[str, str]) -> Iterator[Item]:
    """Yield the agents' blocks and messages from a current or legacy file."""
    if path.stat().st_size > MAX_RECORD:
        raise Unusable(f"{path.name} is larger than {MAX_RECORD >> 20} MiB")
    try:
        document = Fields.of(json.loads(path.read_bytes()), path.name)
    except UnicodeDecodeError:
        raise NotUtf8(path.name) from None
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, Unusable) else Unusable(f"{path.name} is not an agent file: it is not JSON") from None
    agents = document.list("agents") or ([document.values] if "core_memory" in document.values else [])
    if not agents:
        raise Unusable(f"{path.name} is not an agent file: it has no agents")
    blocks = {str(block.get("id")): block for block in document.list("blocks") if isinstance(block, dict)}
    for position, agent in enumerate(agents):
        yield from guarded(f"agent {position}", _agent(agent, blocks))
    for name in ("tools", "sources", "files", "mcp_servers"):
        for entry in document.list(name):
            yield LeftOut(str(entry.get("name") if isinstance(entry, dict) else entry), f"{name} are not memories")


def _agent(value: Any, blocks: Mapping[str, Any]) -> Iterator[Item]:
    agent = Fields.of(value, "an agent")
    name = agent.needed("name", "id")
    own = [blocks.get(block_id, block_id) for block_id in agent.texts("block_ids")]
    for block in (*own, *agent.list("core_memory"), *agent.list("memory_blocks")):
        yield from guarded(f"{name} block", _block(block, name))
    yield from guarded(f"{name} messages", _messages(agent, name))


def _block(value: Any, agent: str) -> Iterator[Item]:
    block = Fields.of(value, "a block")
    label = block.needed("label")
    text = block.text("value")
    if text is None:
        yield LeftOut(f"{agent} block {label}", "is empty")
        return
    limit = block.values.get("limit")
    yield CoreBlock(
        label,
        text,
        agent_id=agent,
        description=block.text("description") or "",
        limit=limit if isinstance(limit, int) and not isinstance(limit, bool) else 0,
        read_only=block.flag("read_only"),
        created_at=block.time("created_at"),
    )


def _messages(agent: Fields, name: str) -> Iterator[Item]:
    messages: list[SourceMessage] = []
    for position, value in enumerate(agent.list("messages")):
        place = f"{name} message {position}"
        try:
            message = Fields.of(value, "a message")
            role, text = message.needed("role"), _own_text(message)
            if role in ("user", "assistant") and text is not None:
                messages.append(SourceMessage(message.text("id") or str(position), role, text, message.time("created_at")))
            else:
                yield LeftOut(place, "is a system or tool message, or has no text")
        except Unusable as error:
            yield LeftOut(place, str(error))
    if messages:
        yield Conversation(f"letta-{name}", messages, agent_id=name, title=name)


def _own_text(message: Fields) -> str | None:
    """Return the text from the user or agent. Older agents reply through `send_message`."""
    content = message.values.get("content", message.values.get("text"))
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    text = "\n".join(each for each in texts if isinstance(each, str) and each.strip())
    for call in message.list("tool_calls"):
        called = Fields.of(Fields.of(call, "a tool call").object("function"))
        if called.text("name") == "send_message":
            return Fields.of(_parsed(called.text("arguments") or ""), "a tool call").text("message")
    packed = _parsed(text)
    if isinstance(packed, dict) and "type" in packed:
        return None if packed["type"] in _HEARTBEATS else Fields.of(packed).text("message")
    return text or None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
