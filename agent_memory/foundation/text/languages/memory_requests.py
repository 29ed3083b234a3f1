"""Recognize requests to remember or forget something, in fifteen languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from agent_memory.foundation.text.languages.phrases import NOTHING, Joined, Language, Token, languages, tokens

RequestKind = Literal["remember", "forget"]

# A longer text is probably pasted, not a request.
_MOST_CHARS = 4000
_HEAD_TOKENS, _TAIL_TOKENS = 40, 30
_LEADS = 4
_QUOTES = "\"“”«»„「『>‘'`|*#"
_EDGES = " \t\r\n,;:，、；：،-–—"
_ENDS = " \t\r\n,;:，、；：،.!。！…؟।"
_MARKS = ("?", "？", "؟")
_ANNOUNCING = frozenset(":：–—-")
_SENTENCE_END = re.compile(r"[.!?。！？؟।](?:\s|$)")
_GOES_ON = re.compile(r"[,;，；،](?:\s|[^\x00-\x7f])|[.!?。！？؟।](?:\s|$)|\s[-–—]\s")


class MemoryRequest(NamedTuple):
    """A request to remember or forget something. The subject is in the user's words."""

    kind: RequestKind
    subject: str
    about: bool = False
    """True if the request covers everything about the subject."""


class _Requests:
    def __init__(self, language: Language) -> None:
        self._language = language
        self._lead = language.openings("lead")
        self._trail = language.closings("trail")
        self._remember, self._remember_behind = language.pattern("remember"), language.suffix_pattern("remember")
        self._remind = language.pattern("remind")
        self._forget, self._forget_behind = language.pattern("forget"), language.suffix_pattern("forget")
        self._no_forgetting, self._no_forgetting_behind = language.pattern("no forgetting"), language.suffix_pattern("no forgetting")
        self._announced = language.openings("announced")
        self._none = language.pattern("no request")
        self._about = language.openings("about")
        self._reported_openings = language.openings("told before")
        self._subject_words = language.words("kept")
        self._endings = language.words("endings") if language.blankless else frozenset[str]()
        self._telling_words = frozenset(language.sections.get("told with accent", ()))
        self._everything = language.anywhere("all")
        self._everything_about = language.closings("all about")
        self._puts_verbs_last = any(p is not NOTHING for p in (self._forget_behind, self._remember_behind))

    def read(self, text: str, text_tokens: Sequence[Token]) -> MemoryRequest | None:
        head = text_tokens[:_HEAD_TOKENS]
        if text[head[0].start : head[0].end].lower() in self._telling_words:
            return None
        joined = self._language.join(head)
        for at in self._beginnings(joined):
            rest = joined.text[at:]
            if (subject := self._announcement(text, text_tokens, joined, at)) is not None:
                return MemoryRequest("remember", subject)
            if self._none.match(rest):
                return None
            if m := self._remember.match(rest):
                return self._remembered(text, text_tokens, joined, at + m.end(), polite=at > 0)
            if self._remind.match(rest):
                return MemoryRequest("remember", text.strip())
            if m := self._forget.match(rest):
                if self._no_forgetting.match(rest):
                    return None
                if m.lastindex is None:
                    return self._forgotten(text, text_tokens, joined, self._subject_start(text_tokens, joined, at + m.end()), polite=at > 0)
                start, stop = m.span(m.lastindex)
                inner = text_tokens[: sum(end <= at + stop for end in joined.ends)]
                return self._forgotten(text, inner, joined, at + start, polite=True)
        return self._read_behind(text, text_tokens)

    def _beginnings(self, joined: Joined) -> list[int]:
        """Return the positions where a request may begin: the start, or after polite words."""
        places = [0]
        while len(places) <= _LEADS and (m := self._lead.match(joined.text, places[-1])) and m.end() > places[-1]:
            places.append(m.end())
        return places

    def _subject_start(self, text_tokens: Sequence[Token], joined: Joined, end: int) -> int:
        # The last word of the request phrase may also be the first word of the subject.
        count = sum(stop <= end for stop in joined.ends)
        return joined.ends[count - 2] if count > 1 and text_tokens[count - 1].word in self._subject_words else end

    def _announcement(self, text: str, text_tokens: Sequence[Token], joined: Joined, at: int) -> str | None:
        """Return the subject after an introductory word and a colon, or None."""
        m = self._announced.match(joined.text, at)
        count = 0 if m is None else sum(stop <= m.end() for stop in joined.ends)
        if not 0 < count < len(text_tokens) or text[text_tokens[count - 1].end : text_tokens[count].start].strip() not in _ANNOUNCING:
            return None
        return text[text_tokens[count].start :].strip(_EDGES)

    def _remembered(self, text: str, text_tokens: Sequence[Token], joined: Joined, end: int, *, polite: bool) -> MemoryRequest | None:
        if text.rstrip().endswith(_MARKS) and not polite:
            return None
        end = self._subject_start(text_tokens, joined, end)
        count = sum(stop <= end for stop in joined.ends)
        subject = text[text_tokens[count].start :].strip(_EDGES) if count < len(text_tokens) else ""
        bare = subject.rstrip("?？؟ ")
        for ending in self._endings if polite else ():
            bare = bare.removesuffix(ending)
        return MemoryRequest("remember", bare) if bare else None

    def _forgotten(self, text: str, text_tokens: Sequence[Token], joined: Joined, end: int, *, polite: bool) -> MemoryRequest | None:
        if text.rstrip().endswith(_MARKS) and not polite:
            return None
        demonstrative = end
        for _ in range(_LEADS):
            m = self._about.match(joined.text, end)
            if m is None or m.end() == end:
                break
            end = m.end()
        subject = self._bare(_from(text, text_tokens, joined, end)) or self._bare(_from(text, text_tokens, joined, demonstrative))
        # A clause after the subject states something else: "Forget the marathon, I want to swim".
        return self._to_forget(text, subject) if subject and _GOES_ON.search(subject) is None else None

    def _to_forget(self, text: str, subject: str) -> MemoryRequest:
        topic = self._cut(subject, self._everything_about)
        if topic != subject:
            return MemoryRequest("forget", topic, about=True)
        around = tokens(" ".join(text.rpartition(subject)[::2]))
        return MemoryRequest("forget", subject, about=self._everything.search(self._language.join(around).text) is not None)

    def _read_behind(self, text: str, text_tokens: Sequence[Token]) -> MemoryRequest | None:
        """Read a request in a language that puts the verb last."""
        if not self._puts_verbs_last or _SENTENCE_END.search(text.rstrip(_ENDS + "?？")):  # a statement comes before the request
            return None
        tail = text_tokens[-_TAIL_TOKENS:]
        joined = self._language.join(tail)
        if self._no_forgetting_behind.search(joined.text):
            return None
        whole = self._language.join(text_tokens[:_HEAD_TOKENS]).text
        if self._none.match(whole) or self._no_forgetting.match(whole) or text.rstrip().endswith(_MARKS):
            return None
        kinds: list[tuple[RequestKind, re.Pattern[str]]] = [("remember", self._remember_behind)]
        if not self._reported_openings.match(whole):  # not a reported request
            kinds.insert(0, ("forget", self._forget_behind))
        for kind, pattern in kinds:
            if (m := pattern.search(joined.text)) is None:
                continue
            count = len(text_tokens) - len(tail) + sum(end <= m.start() for end in joined.ends)
            subject = self._without_lead(text, text_tokens[:count]).strip(_EDGES)
            if subject:
                return self._to_forget(text, subject) if kind == "forget" else MemoryRequest(kind, subject)
        return None

    def _without_lead(self, text: str, text_tokens: Sequence[Token]) -> str:
        joined = self._language.join(text_tokens)
        start = self._beginnings(joined)[-1]
        return _from(text, text_tokens, joined, start) or _from(text, text_tokens, joined, 0)

    def _bare(self, subject: str) -> str:
        return self._cut(subject.strip(_ENDS), self._trail)

    def _cut(self, subject: str, closing: re.Pattern[str]) -> str:
        """Remove closing words from a subject, unless nothing else would be left."""
        text_tokens = tokens(subject)
        joined = self._language.join(text_tokens)
        m = closing.search(joined.text)
        if m is None:
            return subject
        count = sum(end <= m.start() for end in joined.ends)
        return subject[: text_tokens[count - 1].end].strip(_ENDS) if count else subject


def _from(text: str, text_tokens: Sequence[Token], joined: Joined, end: int) -> str:
    count = sum(stop <= end for stop in joined.ends)
    return text[text_tokens[count].start : text_tokens[-1].end].strip(_EDGES) if count < len(text_tokens) else ""


@lru_cache(maxsize=1)
def _all() -> Sequence[_Requests]:
    return list(map(_Requests, languages().values()))


def memory_request(text: str) -> MemoryRequest | None:
    """Return the request to remember or forget, or None.

    The text must consist only of the request. A reminder ("Don't forget that …") is a request to
    remember.
    """
    bare = text.strip()
    if not bare or len(bare) > _MOST_CHARS or bare[0] in _QUOTES:
        return None
    return _read(bare)


@lru_cache(maxsize=256)
def _read(text: str) -> MemoryRequest | None:
    text_tokens = tokens(text)
    if not text_tokens:
        return None
    requests = [request for language in _all() if (request := language.read(text, text_tokens)) is not None]
    # Languages share verbs ("note"). The language that leaves the shortest subject wins.
    return min((request for request in requests if request.kind == requests[0].kind), key=lambda each: len(each.subject), default=None)
