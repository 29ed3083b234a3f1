"""Requests to the memory itself: "remember that …", "please forget …", in fifteen languages, by their data files (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from agent_memory.text.languages.phrases import Joined, Language, Token, languages, tokens

RequestKind = Literal["remember", "forget"]

# What is longer is a text that somebody put in, and no request.
_MOST_CHARS = 4000
_HEAD_TOKENS, _TAIL_TOKENS = 40, 30
_LEADS = 4
_QUOTES = "\"“”«»„「『>‘'`|*"
_EDGES = " \t\r\n,;:，、；：،-–—"
_ENDS = " \t\r\n,;:，、；：،.!。！…؟।"
_MARKS = ("?", "？", "؟")
_SENTENCE_END = re.compile(r"[.!?。！？؟।](?:\s|$)")
_GOES_ON = re.compile(r"[,;，；،](?:\s|[^\x00-\x7f])|[.!?。！？؟।](?:\s|$)|\s[-–—]\s")


class MemoryRequest(NamedTuple):
    """What is asked of the memory, and about what: in the words of who asks."""

    kind: RequestKind
    subject: str


@dataclass(frozen=True, slots=True)
class _Requests:
    language: Language
    lead: re.Pattern[str] | None
    trail: re.Pattern[str] | None
    remember: re.Pattern[str] | None
    remember_behind: re.Pattern[str] | None
    remind: re.Pattern[str] | None
    remind_behind: re.Pattern[str] | None
    none: re.Pattern[str] | None
    forget: re.Pattern[str] | None
    forget_behind: re.Pattern[str] | None
    about: re.Pattern[str] | None
    no_forgetting: re.Pattern[str] | None
    no_forgetting_behind: re.Pattern[str] | None
    kept: frozenset[str]

    @classmethod
    def of(cls, language: Language) -> _Requests:
        ahead, behind = language.openings, language.suffix_pattern
        return cls(
            language,
            ahead("lead"),
            language.closings("trail"),
            language.pattern("remember"),
            behind("remember"),
            language.pattern("remind"),
            behind("remind"),
            language.pattern("no request"),
            language.pattern("forget"),
            behind("forget"),
            ahead("about"),
            language.pattern("no forgetting"),
            behind("no forgetting"),
            language.words("kept"),
        )

    def read(self, text: str, said: Sequence[Token]) -> MemoryRequest | None:
        """The request in a text whose tokens are known."""
        head = said[:_HEAD_TOKENS]
        joined = self.language.join(head)
        for at in self._beginnings(joined):
            rest = joined.text[at:]
            if self.none is not None and self.none.match(rest):
                return None
            if self.remember is not None and (m := self.remember.match(rest)):
                return self._remembered(text, said, joined, at + m.end(), polite=at > 0)
            if self.remind is not None and self.remind.match(rest):
                return MemoryRequest("remember", text.strip())
            if self.forget is not None and (m := self.forget.match(rest)):
                if self.no_forgetting is not None and self.no_forgetting.match(rest):
                    return None
                return self._forgotten(text, said, joined, at + m.end())
        return self._read_behind(text, said)

    def _beginnings(self, joined: Joined) -> list[int]:
        """Where a request may begin: at once, or behind polite words."""
        places = [0]
        while self.lead is not None and len(places) <= _LEADS and (m := self.lead.match(joined.text, places[-1])) and m.end() > places[-1]:
            places.append(m.end())
        return places

    def _remembered(self, text: str, said: Sequence[Token], joined: Joined, end: int, *, polite: bool) -> MemoryRequest | None:
        if text.rstrip().endswith(_MARKS) and not polite:
            return None
        count = sum(stop <= end for stop in joined.ends)
        if count > 0 and said[count - 1].word in self.kept:
            count -= 1
        subject = text[said[count].start :].strip(_EDGES) if count < len(said) else ""
        return MemoryRequest("remember", subject.rstrip("?？؟ ")) if subject else None

    def _forgotten(self, text: str, said: Sequence[Token], joined: Joined, end: int) -> MemoryRequest | None:
        demonstrative = end
        for _ in range(_LEADS):
            m = None if self.about is None else self.about.match(joined.text, end)
            if m is None or m.end() == end:
                break
            end = m.end()
        subject = self._bare(_from(text, said, joined, end)) or self._bare(_from(text, said, joined, demonstrative))
        # What goes on says something else: "Forget the marathon, I want to swim".
        return MemoryRequest("forget", subject) if subject and _GOES_ON.search(subject) is None else None

    def _read_behind(self, text: str, said: Sequence[Token]) -> MemoryRequest | None:
        """Requests of languages whose verb comes last."""
        if self.forget_behind is None and self.remember_behind is None and self.remind_behind is None:
            return None
        tail = said[-_TAIL_TOKENS:]
        joined = self.language.join(tail)
        if _SENTENCE_END.search(text.rstrip(_ENDS + "?？")):
            return None  # something was told before it
        if self.no_forgetting_behind is not None and self.no_forgetting_behind.search(joined.text):
            return None
        kinds: list[tuple[RequestKind, re.Pattern[str] | None]] = [("forget", self.forget_behind), ("remember", self.remember_behind)]
        if self.remind_behind is not None and self.remind_behind.search(joined.text):
            return MemoryRequest("remember", text.strip())
        whole = self.language.join(said[:_HEAD_TOKENS]).text
        if any(pattern is not None and pattern.match(whole) for pattern in (self.none, self.no_forgetting)):
            return None
        for kind, pattern in kinds:
            m = None if pattern is None else pattern.search(joined.text)
            if m is None or text.rstrip().endswith(_MARKS):
                continue
            count = len(said) - len(tail) + sum(end <= m.start() for end in joined.ends)
            subject = text[: said[count - 1].end].strip(_EDGES) if count else ""
            if subject:
                return MemoryRequest(kind, subject)
        return None

    def _bare(self, subject: str) -> str:
        """A subject without politeness and marks behind it."""
        subject = subject.strip(_ENDS)
        said = tokens(subject)
        joined = self.language.join(said)
        m = None if self.trail is None else self.trail.search(joined.text)
        if m is None:
            return subject
        count = sum(end <= m.start() for end in joined.ends)
        return subject[: said[count - 1].end].strip(_ENDS) if count else subject


def _from(text: str, said: Sequence[Token], joined: Joined, end: int) -> str:
    """What of a text stands behind a place of its joined tokens."""
    count = sum(stop <= end for stop in joined.ends)
    return text[said[count].start :].strip(_EDGES) if count < len(said) else ""


@lru_cache(maxsize=1)
def _all() -> Sequence[_Requests]:
    return [_Requests.of(language) for language in languages().values()]


@lru_cache(maxsize=256)
def memory_request(text: str) -> MemoryRequest | None:
    """The request to the memory that a whole text is, or None: "Remember that I'm vegan" asks to remember "I'm vegan".

    What is quoted, or stands in the middle of what is told, is none. A reminder ("Don't forget that …") is to be remembered.
    """
    bare = text.strip()
    if not bare or len(bare) > _MOST_CHARS or bare[0] in _QUOTES:
        return None
    said = tokens(text)
    if not said:
        return None
    return next((request for language in _all() if (request := language.read(text, said)) is not None), None)
