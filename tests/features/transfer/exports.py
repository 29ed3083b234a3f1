"""Small exports from other systems, in their documented formats.

The exports in `tests/data/imports` come from the actual packages.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "data" / "imports"
BASE = 1_735_730_000.0  # 2025-01-01T11:13:20Z


def node(name: str, parent: str | None, role: str, text: str, at: float, children: list[str] | None = None, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    message = {"id": name, "author": {"role": role}, "create_time": at, "content": content, "recipient": "all", "metadata": {}} | more
    return {"id": name, "message": message, "parent": parent, "children": children or []}


def chatgpt_conversation(name: str = "conv-1", at: float = BASE) -> dict[str, Any]:
    """Return a conversation whose second question was edited. The `Porto` branch is current."""
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["sys"]},
        node("sys", "root", "system", "You are helpful.", at, ["q1"], **hidden),
        node("q1", "sys", "user", f"I keep bees in a garden near the river, says {name}.", at + 1, ["a1"]),
        node("a1", "q1", "assistant", f"Bees near a river find plenty of flowers, {name}.", at + 2, ["q2-old", "q2"]),
        node("q2-old", "a1", "user", "Soon I will move to Madrid.", at + 3, ["a2-old"]),
        node("a2-old", "q2-old", "assistant", "Madrid is dry.", at + 4),
        node("q2", "a1", "user", f"Soon I will move to Porto, says {name}.", at + 5, ["t2"]),
        node("t2", "q2", "assistant", "search(Porto)", at + 6, ["a2"], recipient="web"),
        node("a2", "t2", "assistant", f"Porto is a rainy town by the sea, {name}.", at + 7),
    ]
    mapping = {each["id"]: each for each in nodes}
    return {"id": name, "title": f"Bees {name}", "create_time": at, "update_time": at + 9, "current_node": "a2", "mapping": mapping}


def claude_conversation() -> dict[str, Any]:
    def message(name: str, sender: str, text: str, minute: int, parent: str | None = None) -> dict[str, Any]:
        content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
        at = f"2025-02-01T10:{minute:02}:00Z"
        return {"uuid": name, "sender": sender, "text": text, "content": content, "created_at": at, "parent_message_uuid": parent}

    messages = [
        message("c1", "human", "My daughter Mia starts school in August.", 0),
        message("c2", "assistant", "What does Mia look forward to most?", 1, "c1"),
        message("c3-old", "human", "She wants to become an astronaut.", 2, "c2"),
        message("c3", "human", "She wants to become a veterinarian.", 3, "c2"),
    ]
    times = {"created_at": "2025-02-01T10:00:00Z", "updated_at": "2025-02-01T10:03:00Z"}
    return {"uuid": "talk-1", "name": "School", **times, "chat_messages": messages, "current_leaf_message_uuid": "c3"}


def letta_agent() -> dict[str, Any]:
    def message(name: str, role: str, text: str | None, **more: Any) -> dict[str, Any]:
        content = [] if text is None else [{"type": "text", "text": text}]
        return {"id": name, "role": role, "content": content, "created_at": "2025-06-01T12:00:00+00:00", **more}

    arguments = json.dumps({"message": "Good to hear that the tomatoes grow."})
    messages = [
        message("message-0", "system", "You are a gardener."),
        message("message-1", "user", json.dumps({"type": "user_message", "message": "My tomatoes grow on the balcony."})),
        message("message-2", "assistant", None, tool_calls=[{"id": "1", "function": {"name": "send_message", "arguments": arguments}}]),
        message("message-3", "tool", '{"status": "OK"}'),
        message("message-4", "user", json.dumps({"type": "heartbeat", "reason": "timer"})),
    ]
    blocks = [
        {"id": "block-0", "label": "human", "value": "Ada, gardener in Porto.", "limit": 20000, "description": "The person."},
        {"id": "block-1", "label": "persona", "value": "I am Sam.", "limit": 20000, "read_only": True},
    ]
    agent = {"id": "agent-0", "name": "sam", "block_ids": ["block-0", "block-1"], "messages": messages}
    return {"agents": [agent], "blocks": blocks, "tools": [{"id": "tool-0", "name": "conversation_search"}], "files": [], "sources": []}


NOTE = """---
title: Coffee Brewing
type: note
tags: [coffee, brewing]
permalink: coffee-brewing
created: 2025-01-05
---
# Coffee Brewing

Ada wrote this after a course in Porto.

- [method] Pour over gives more clarity than a French press #brewing
- [preference] Ethiopian beans work well with lighter roasts
- relates_to [[Coffee Origins]]
"""


def write_all(folder: Path) -> dict[str, list[Path]]:
    """Write an export for each system, and return the files by system."""
    with zipfile.ZipFile(folder / "chatgpt.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        later, earlier = chatgpt_conversation("conv-2", BASE + 86_400), chatgpt_conversation()
        archive.writestr("export/conversations.json", json.dumps([later, earlier]))
        archive.writestr("export/user.json", "{}")
    (folder / "claude.json").write_text(json.dumps([claude_conversation()]))
    (folder / "sam.af").write_text(json.dumps(letta_agent()))
    (folder / "notes").mkdir()
    (folder / "notes" / "coffee.md").write_text(NOTE)
    (folder / "table.csv").write_text('note,customer,when,city\n"Cleo, a painter, sells in Lagos.",cleo,2025-05-05T10:00:00Z,Lagos\n')
    rows = [{"text": "Finn sails at weekends.", "user_id": "finn", "created_at": "2025-05-06T10:00:00Z", "boat": "Iris"}]
    rows += [
        {"text": f"Line {n} of a talk about sails.", "user_id": "finn", "role": "user", "session_id": "t1", "id": f"r{n}"} for n in (1, 2)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "chatgpt": [folder / "chatgpt.zip"],
        "claude": [folder / "claude.json"],
        "letta": [folder / "sam.af"],
        "basic-memory": [folder / "notes"],
        "table": [folder / "rows.jsonl"],
        "mem0": [DATA / "mem0.json"],
        "zep": [DATA / "zep.json", DATA / "graphiti.json"],
        "langgraph": [DATA / "langgraph.sqlite"],
        "memobase": [DATA / "memobase.json"],
        "supermemory": [DATA / "supermemory.json"],
    }
