"""What the index knows of a query's words among the memories that a search may find: in how many of them each stands."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from types import SimpleNamespace
from typing import Any

from agent_memory import analysis
from agent_memory.scope import Scope
from agent_memory.settings import Settings
from agent_memory.storage import filters
from agent_memory.storage.connection import Pipe, Reader
from agent_memory.storage.memories import MemoryStore, parse_hits
from agent_memory_client.models import SearchRequest

# Words that stand in or around at least this share of the memories say nothing about which of them is meant (names, above all).
COMMON_SHARE = 0.30
# Below this many memories shares of them mean nothing.
_ENOUGH = 30
# A search waits for memories without a vector when there are more than this many and this share of all that it searches.
_FEW = 20
_MISSING_SHARE = 0.05
_LOOK_SECONDS = 0.05
# What stands in fewer of the memories than this is rare.
_SHARED = 0.1
_STALLED_SECONDS = 30.0
# For so long shares of words are taken as they were, unless there are many more or fewer memories by then. Every search counts these.
_TRUST_SECONDS = 60.0
_MOST_SCOPES = 1000
_MOST_WORDS = 256


@dataclass(frozen=True, slots=True)
class Known:
    """How many memories there are and how many of them have their vector, and for each word in how many it stands and how much it adds to a
    score at most. What is `remembered` was so a moment ago."""

    total: int = 0
    embedded: int = 0
    words: Mapping[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    remembered: bool = False


NOTHING_KNOWN = Known()


@dataclass(frozen=True, slots=True)
class _Looked:
    """One look at a scope's memories, and the words that were asked about since."""

    at: float
    total: int
    embedded: int
    words: dict[str, tuple[int, float]]


class Shares:
    """Asks the index, about the same words of the same users and namespaces once a minute unless their memories are many more or fewer."""

    def __init__(self, settings: Settings, reader: Reader, store: MemoryStore) -> None:
        self._settings = settings
        self._read = reader
        self._store = store
        self._no_wait_until = 0.0
        self._looked: dict[str, _Looked] = {}

    async def known(
        self,
        clause: str,
        terms: Sequence[str],
        *,
        settle: bool = False,
        anew: bool = False,
        also: Callable[[Pipe], None] | None = None,
    ) -> tuple[Known, Any]:
        """What is known of some words among the memories of a clause of `around`, in one round trip at most.

        With `settle` it waits a moment for a bulk of memories that were just written; `anew` remembers nothing. If there is a round trip,
        one command of `also` goes with it: the second value is its reply, else None.
        """
        asked = terms if len(terms) > 1 else ()
        looked = None if anew else self._looked.get(clause)
        if looked is not None and (looked.at + _TRUST_SECONDS < monotonic() or len(looked.words) > _MOST_WORDS):
            looked = None
        if looked is not None and looked.words.keys() >= set(asked):
            return Known(looked.total, looked.embedded, {term: looked.words[term] for term in asked}, remembered=True), None
        begun = monotonic()
        current = filters.current(clause)
        new = [term for term in asked if looked is None or term not in looked.words]

        def build(pipe: Pipe) -> None:
            self._store.queue_count(pipe, current)
            self._store.queue_count(pipe, current, embedded=True)
            for term in new:
                self._store.queue_words(pipe, current, [term], 1)
            if also is not None:
                also(pipe)

        replies = await self._read(build)
        beside = replies.pop() if also is not None else None
        total, embedded, *found = map(parse_hits, replies)
        words = {term: (hits.total, max(hits.values, default=0.0)) for term, hits in zip(new, found, strict=True)}
        missing = total.total - embedded.total
        if settle and missing > _many(total.total):
            await self._until_embedded(current, missing)
        if looked is not None:
            words = looked.words | words
        if len(self._looked) >= _MOST_SCOPES:
            self._looked.clear()
        self._looked[clause] = _Looked(begun if looked is None else looked.at, total.total, embedded.total, words)
        return Known(total.total, embedded.total, {term: words[term] for term in asked}), beside

    def outrun(self, known: Known, total: int) -> bool:
        """Whether so many memories were written or deleted since, of which there are `total` now, that what is known of them must be
        asked anew."""
        many = _many(total)
        if abs(total - known.total) > many:
            return True
        return total - known.embedded > many and asyncio.get_running_loop().time() >= self._no_wait_until

    async def _until_embedded(self, clause: str, missing: int) -> None:
        """Waits, for a moment at most, while a bulk of memories that were just written gets its vectors.

        A search in half of them would be an answer, but not the right one. When no worker is at it, searches do not wait for a while.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.search.settle_seconds
        if loop.time() < self._no_wait_until:
            return
        left = missing
        while left > _FEW and loop.time() < until:
            await asyncio.sleep(_LOOK_SECONDS)

            def build(pipe: Pipe) -> None:
                self._store.queue_count(pipe, clause)
                self._store.queue_count(pipe, clause, embedded=True)

            total, embedded = (parse_hits(reply).total for reply in await self._read(build))
            left = total - embedded
        if left >= missing:
            self._no_wait_until = loop.time() + _STALLED_SECONDS


def _many(total: int) -> float:
    return max(_FEW, _MISSING_SHARE * total)


AROUND = frozenset({"user_id", "namespace"})


def around(scope: Scope, request: SearchRequest) -> str:
    """The clause of the memories whose words are counted: those of the request's users and namespaces."""
    wanted: Any = SimpleNamespace(user_id=request.user_id, namespace=request.namespace)
    return filters.where(scope, wanted)


def cleaned(text: str, terms: Sequence[str], known: Known, subject: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The query without the words that most of the memories share, and these; as it is when nothing would be left (of the `subject` of a
    query that names a time, either: what only quotes that time would be nearest)."""
    if known.total < _ENOUGH or not known.words:
        return text, ()
    most, words = COMMON_SHARE * known.total, known.words
    common = frozenset([term for term in terms if words[term][0] >= most])
    nothing = common.issuperset(subject) if subject else len(common) == len(terms)
    cleaned = "" if nothing else analysis.without(text, common)
    return (cleaned, sorted(common)) if cleaned else (text, ())


def overrated(terms: Sequence[str], known: Known) -> Sequence[str]:
    """Words that many memories share and that would yet outweigh all others; none when it is all of them.

    RediSearch 2.10 computes BM25's IDF from N - n without a sign, and n counts rewritten documents several times until its collector runs.
    A word of nearly all memories of a small store then gets an IDF of about 39 instead of about 0. No word can score more than
    (k1 + 1) * ln(1 + N / (n + 0.5)) (Robertson, Zaragoza 2009), so what does, even for ten million memories, is such a word. One that
    stands in few memories may outweigh the others: it is what was asked for.
    """
    found = [
        term
        for term in terms
        if term in known.words
        and known.words[term][0] >= _SHARED * known.total
        and known.words[term][1] > 2.2 * math.log(1 + 1e7 / (known.words[term][0] + 0.5))
    ]
    return found if len(found) < len(terms) else ()
