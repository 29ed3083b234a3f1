"""A conversation as the messages of a session, whatever of it is sent again (pure)."""

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
    """Return the messages of a conversation with stable ids; their memories get the metadata.

    Clients send the whole conversation each time. An id follows from what a message says, and from how many before it say the same, so a
    message that is sent again is known. Of parts, texts are kept; pictures are not.

    Raises BadInput for messages without a text, NotSupported if they hold nothing but pictures.
    """
    seen: Counter[str] = Counter()
    messages: list[dict[str, Any]] = []
    for message in sent:
        text = _text_of(message.get("content"))
        beside = {name: message[name] for name in _KEPT if message.get(name) not in (None, "", [])}
        if not text.strip() and "tool_calls" not in beside:
            continue
        said = json.dumps([message.get("role"), text, beside], sort_keys=True)
        name = blake2b(f"{seen[said]} {said}".encode(), digest_size=16).hexdigest()
        seen[said] += 1
        remember_as = {REMEMBER_AS: {"metadata": dict(metadata)}} if metadata else {}
        messages.append({"role": message.get("role"), "content": text or None, "id": name, **beside, **remember_as})
    if not messages:
        if any(isinstance(message.get("content"), list) for message in sent):
            raise NotSupported("messages: pictures without a text")
        raise BadInput("must hold a text", field="messages")
    return messages


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type", "text") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
