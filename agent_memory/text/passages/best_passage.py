"""The passage of a long text that says most about a query: whole sentences that hold its words, the rare ones above all (pure)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from agent_memory.text.terms import terms

BYTES_PER_TOKEN = 3
"""Few texts have more tokens than that: English has four bytes a token, Chinese three."""
_MOST_READ = 64 * 1024
"""Bytes of a text that are looked through, which is all of most: reading takes up to 1.5 µs each (Chinese)."""
_LEAST_SPAN = 64
"""Characters: shorter sentences are taken together."""
_SENTENCE = re.compile(r"[^.!?。！？\n]*+(?:[.!?]++[\"'”’)\]]*+(?=\s|$)|[。！？]++|\n++|$|[.!?]++)\s*+")
_PIECES = 2
"""A sentence that takes more than this part of a passage is cut between its words."""


def best_passage(text: str, query_terms: Collection[str], max_tokens: int) -> tuple[int, int]:
    """Return where the best passage of `text` begins and ends, of some `max_tokens` tokens.

    `query_terms` are index terms, as `agent_memory.text.terms` makes them. A term counts once, by how few sentences hold it. Of passages
    that hold as much the shortest and first is taken, and sentences around it fill the room that is left. Where no sentence holds a term,
    it is the beginning.
    """
    room = max(max_tokens, 1) * BYTES_PER_TOKEN
    beginning = text[:_MOST_READ].encode("utf-8", "replace")[:_MOST_READ].decode(errors="ignore")
    spans = list(_spans(beginning, max(room // _PIECES, 1)))
    wanted = frozenset(query_terms)
    held = [wanted.intersection(terms(text[start:end])) if wanted else frozenset[str]() for start, end in spans]
    sizes = [len(text[start:end].encode()) for start, end in spans]
    first, last = _densest(held, sizes, room)
    return _filled(spans, sizes, first, last, room)


def _spans(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end, short ones together; one of more than `longest` characters comes in pieces."""
    start, least = 0, min(_LEAST_SPAN, longest)
    for sentence in _SENTENCE.finditer(text):
        end = sentence.end()
        if end - start < least and end < len(text):
            continue
        while end - start > longest:
            cut = text.rfind(" ", start + 1, start + longest) + 1 or start + longest
            yield start, cut
            start = cut
        if end > start:
            yield start, end
        start = end


def _densest(held: Sequence[frozenset[str]], sizes: Sequence[int], room: int) -> tuple[int, int]:
    """The first and last sentence of the shortest run within `room` whose terms weigh most."""
    frequency = Counter(term for found in held for term in found)
    weights = {term: math.log(1 + len(held) / count) for term, count in frequency.items()}
    best, best_weight, best_size = (0, 0), 0.0, 0
    inside: Counter[str] = Counter()
    start, size = 0, 0
    for end, found in enumerate(held):
        inside.update(found)
        size += sizes[end]
        # What holds nothing that the rest does not hold too is left out in front.
        while start < end and (size > room or all(inside[term] > 1 for term in held[start])):
            inside.subtract(held[start])
            size -= sizes[start]
            start += 1
        weight = sum(weights[term] for term, count in inside.items() if count > 0)
        if weight > best_weight + 1e-9 or (weight > best_weight - 1e-9 and weight > 0 and size < best_size):
            best, best_weight, best_size = (start, end), weight, size
    return best


def _filled(spans: Sequence[tuple[int, int]], sizes: Sequence[int], first: int, last: int, room: int) -> tuple[int, int]:
    """A run of sentences with as many around it as there is room for, by turns from behind it and before it."""
    if not spans:
        return 0, 0
    room -= sum(sizes[first : last + 1])
    grew = True
    while grew:
        grew = False
        if last + 1 < len(spans) and sizes[last + 1] <= room:
            last += 1
            room -= sizes[last]
            grew = True
        if first > 0 and sizes[first - 1] <= room:
            first -= 1
            room -= sizes[first]
            grew = True
    return spans[first][0], spans[last][1]
