"""Notices for a caller's messages: unknown roles and changed ids."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.features.sessions.message_ids import reuse_notices
from agent_memory.features.sessions.session_write import NewMessage
from agent_memory.foundation.core.notices import add_notice
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES, TOOL_ROLES
from agent_memory_client.models import MemoryMessage


def notice_roles(messages: Sequence[MemoryMessage]) -> None:
    """Notify the caller of roles no chat API has: they count as a person."""
    known = frozenset(("user", "assistant")) | PROGRAM_ROLES | TOOL_ROLES
    for position, message in enumerate(messages):
        if message.role not in known:
            add_notice(f"messages.{position}.role: {message.role!r} is no role of chat APIs; its words are remembered as a person's")


def stored_messages(named: Sequence[MemoryMessage], written: Sequence[NewMessage]) -> list[MemoryMessage]:
    """Return the messages as stored, with a notice for each changed id."""
    stored = [new.message for new in written]
    for notice in reuse_notices(named, stored):
        add_notice(notice)
    return stored
