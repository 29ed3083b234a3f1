"""What of a message may be remembered: not what we said ourselves, no secrets, nothing that is not to be recorded, no small talk."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent_memory.foundation.text.blocked_phrases import Blocklist
from agent_memory.foundation.text.cleaning.control_characters import plain_text
from agent_memory.foundation.text.languages.filler import is_filler
from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES, TOOL_ROLES, own_words
from agent_memory.foundation.text.redaction import redact
from agent_memory.foundation.text.terms import carries_information, fold, words
from agent_memory_client.models import MemoryMessage

# As `fold` spells it: the Korean one is decomposed. No laugh can be cut in two ways, so what was taken is never given back.
_LAUGHTER = re.compile(r"(?:ha|he|ja|je|hi|xa|ah|lo++l|x++d++|rofl|lmfao|mdr|k{3,}+|w{3,}+|\u110f|\u1112|哈|呵|笑|草)++[hal]?")
# Assent, thanks and greetings of languages whose speakers are many; the English ones are in `analysis`.
_ASSENT = """
danke bitte ja nein gut genau klar super tschuss hallo stimmt merci oui non bonjour salut accord bien ouais gracias si vale hola bueno claro
adios grazie ciao va bene certo obrigado obrigada sim nao tudo bem ola dank je graag prima hoi dag tak nej tack hej dziekuje nie dobrze
spasibo da net хорошо спасибо да нет привет ок ладно понятно はい ありがとう うん 好 好的 谢谢 嗯 是 네 감사합니다 좋아
"""
# Shorter ones are parts of a list.
_CLAUSE_WORDS = 4
_CLAUSES = re.compile(r"[,;:，；：、]")
_SMALL_TALK = frozenset(_ASSENT.split())


@dataclass(frozen=True, slots=True)
class StatementFilter:
    """What is kept of messages, by the phrases that must not be recorded and whether secrets are taken out."""

    blocklist: Blocklist
    redacts: bool

    def text(self, message: MemoryMessage) -> str | None:
        """What is to be remembered of a message word for word; None for nothing."""
        own = memorable(message.content, message.role)
        return None if own is None or self.blocklist.holds(own) else self.clean(own)

    def said(self, message: MemoryMessage) -> str | None:
        """What a model is told of a message; None for nothing. Small talk is told, too: a "yes" is the answer to what was asked."""
        own = own_words(message.content, message.role)
        if not own.strip() or message.role in PROGRAM_ROLES or self.blocklist.holds(own) or _asks_to_forget(own, message.role):
            return None
        return self.clean(own)

    def clean(self, text: str) -> str:
        """A text without secrets."""
        if not self.redacts:
            return text
        # Between the colors of a terminal no secret is recognized: a text that has both loses both.
        plain = plain_text(text)
        redacted = redact(plain)
        return text if redacted == plain else redacted


def memorable(content: str, role: str) -> str | None:
    """What of a message's text becomes a memory: nothing of what programs, tools and memory prompts say, no noise, no request to forget;
    of a request to remember what is to be remembered."""
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
    """Whether a message asks to forget and tells nothing beside: "Forget the marathon, I want to swim instead" tells what is new."""
    request = memory_request(text) if role == "user" else None
    if request is None or request.kind != "forget":
        return False
    return all(len(words(clause)) < _CLAUSE_WORDS for clause in _CLAUSES.split(request.subject)[1:])


def worth_asking(text: str) -> bool:
    """Whether a message could hold a fact: it says more than assent, thanks, greetings and laughter, in any of the common languages."""
    if not carries_information(text) or is_filler(text):
        return False
    return any(word not in _SMALL_TALK and not _LAUGHTER.fullmatch(word) and not _is_filler(word) for word in words(text))


def _is_filler(word: str) -> bool:
    return not carries_information(fold(word))
