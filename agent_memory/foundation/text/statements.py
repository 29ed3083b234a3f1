"""Select the parts of a message that are worth remembering."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent_memory.foundation.core.tables import read_table
from agent_memory.foundation.text.blocked_phrases import Blocklist
from agent_memory.foundation.text.cleaning.control_characters import plain_text
from agent_memory.foundation.text.languages.filler import is_filler
from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES, TOOL_ROLES, own_words
from agent_memory.foundation.text.redaction import redact
from agent_memory.foundation.text.terms import content_of, words
from agent_memory_client.models import MemoryMessage

# A clause with fewer words is a list item.
_CLAUSE_WORDS = 4
_CLAUSES = re.compile(r"[,;:，；：、]")
_SMALL_TALK = frozenset(read_table("text/data/words/common.toml")["assent"].split())


@dataclass(frozen=True, slots=True)
class StatementFilter:
    """Rejects messages with blocked phrases. Redacts secrets if `redacts` is True."""

    blocklist: Blocklist
    redacts: bool

    def text(self, message: MemoryMessage) -> str | None:
        """Return the text to remember verbatim from a message, or None."""
        own = memorable(message.content, message.role)
        return None if own is None or self.blocklist.holds(own) else self.clean(own)

    def text_for_model(self, message: MemoryMessage) -> str | None:
        """Return the part of a message's text that a model may see, or None."""
        # Small talk stays, because "yes" may answer a question.
        own = own_words(message.content, message.role)
        if not own.strip() or message.role in PROGRAM_ROLES or self.blocklist.holds(own) or _asks_to_forget(own, message.role):
            return None
        return self.clean(own)

    def clean(self, text: str) -> str:
        """Redact secrets in the text if `redacts` is True."""
        if not self.redacts:
            return text
        # Terminal colors can hide secrets. A text with secrets also loses its colors.
        plain = plain_text(text)
        redacted = redact(plain)
        return text if redacted == plain else redacted


def memorable(content: str, role: str) -> str | None:
    """Return the text to remember from a message's content, or None.

    Returns None for messages from programs and tools, filler, and requests to forget.
    """
    if role in PROGRAM_ROLES or role in TOOL_ROLES:
        return None
    own = own_words(content, role)
    if is_filler(own):
        return None
    request = memory_request(own) if role == "user" else None
    if request is None:
        return own
    return request.subject if request.kind == "remember" and not is_filler(request.subject) else None


def _asks_to_forget(text: str, role: str) -> bool:
    # "Forget the marathon, I want to swim instead" also states a fact.
    request = memory_request(text) if role == "user" else None
    if request is None or request.kind != "forget":
        return False
    return all(len(words(clause)) < _CLAUSE_WORDS for clause in _CLAUSES.split(request.subject)[1:])


def worth_asking(text: str) -> bool:
    """True if a message contains more than agreement, thanks, a greeting or laughter."""
    return not is_filler(text) and any(word not in _SMALL_TALK for word in content_of(text))
