"""A small demo conversation, and the memories that a model would extract from it."""

from __future__ import annotations

from typing import Any

from agent_memory_client.models import new_id

DEMO_USER, DEMO_SESSION = "console-demo", "console-demo"

_MESSAGES = (
    ("user", "Hi! I am Mara. I just moved from Hamburg to Porto for a job at a small robotics company."),
    ("assistant", "Welcome to Porto, Mara! How are you settling in?"),
    ("user", "Slowly. My daughter Lia starts school in September, and she is allergic to peanuts."),
    ("assistant", "I will keep peanuts out of every meal that I suggest for Lia."),
    ("user", "Thanks. I cook on weekdays and hate long recipes: twenty minutes at most."),
    ("assistant", "Noted: quick recipes for weekdays, without peanuts."),
    ("user", "On Saturdays we go surfing in Matosinhos, so nothing heavy before noon."),
)
# Each fact has the number of the message that states it.
_FACTS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("Mara lives in Porto.", 0, {"topics": ["home"], "slot": "home_city"}),
    ("Mara works at a small robotics company.", 0, {"topics": ["work"], "slot": "employer"}),
    ("Mara's daughter Lia is allergic to peanuts.", 2, {"topics": ["family", "health"], "entities": ["Lia"], "pinned": True}),
    ("Mara wants weekday recipes that take twenty minutes at most.", 4, {"topics": ["food"]}),
    ("Mara and Lia go surfing in Matosinhos on Saturdays.", 6, {"topics": ["leisure"], "entities": ["Lia", "Matosinhos"]}),
)


def demo_messages() -> list[dict[str, str]]:
    """Return the conversation with new message ids.

    Messages with reused ids would not become memories again.
    """
    return [{"role": role, "content": text, "id": new_id()} for role, text in _MESSAGES]


def demo_memories(messages: list[dict[str, str]]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"console-demo-fact-{index}",
            "text": text,
            "memory_type": "semantic",
            "user_id": DEMO_USER,
            "session_id": DEMO_SESSION,
            "extracted_from": [messages[number]["id"]],
            **fields,
        }
        for index, (text, number, fields) in enumerate(_FACTS)
    ]
