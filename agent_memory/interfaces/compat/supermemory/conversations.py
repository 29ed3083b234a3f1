"""Convert conversations to a session's messages. Clients may send the same conversation repeatedly."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from agent_memory.features.memories.annotations import REMEMBER_AS
from agent_memory.foundation.core.errors import BadInput, NotSupported

_KEPT = ("tool_calls", "tool_call_id", "name")


def messages_of(sent: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages with stable ids and with the metadata for their memories.

    Clients resend the whole conversation, so a message's id depends on its content and on the number of equal messages
    before it. Only text parts are stored. Raises BadInput if no message has text, and NotSupported if messages have
    only pictures.
    """
    counts: Counter[str] = Counter()
    messages: list[dict[str, Any]] = []
    for message in sent:
        text = _text_of(message.get("content"))
        beside = {name: message[name] for name in _KEPT if message.get(name) not in (None, "", [])}
        if not text.strip() and "tool_calls" not in beside:
            continue
        content_key = json.dumps([message.get("role"), text, beside], sort_keys=True)
        name = blake2b(f"{counts[content_key]} {content_key}".encode(), digest_size=16).hexdigest()
        counts[content_key] += 1
        remember_as = {REMEMBER_AS: {"metadata": dict(metadata)}} if metadata else {}
        messages.append({"role": message.get("role"), "content": text or None, "id": name, **beside, **remember_as})
    if not messages:
        if any(isinstance(message.get("content"), list) for message in sent):
            raise NotSupported("messages: pictures without a text")
        raise BadInput("must contain a text", field="messages")
    return messages


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type", "text") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
