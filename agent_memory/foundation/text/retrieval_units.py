"""Retrieval units, pure: what of a memory is searched. It is shown as it was said, and found by what was said around it.

The weights are plateaus, not peaks, of what docs/recall.md measures on real conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from agent_memory.foundation.text.languages.speakers import speaker_terms
from agent_memory.foundation.text.passages.splitting import beginning
from agent_memory.foundation.text.terms import terms
from agent_memory_client.models import MemoryRecord

# How many messages before and after a message count as what stands around it.
REACH = 2
# How often a message's own terms are counted, against once for each neighbour's.
OWN_WEIGHT = 2
# A message with more different terms of its own stands alone: its neighbours' terms are not added.
STANDS_ALONE = 36
_MANY = 1000
# One with more than these has its neighbours' vectors added with less weight, in proportion.
_SAYS_ENOUGH = 9
# What the vectors of the nearest neighbours, and of those beyond, add to a message's own.
NEIGHBOUR_WEIGHTS = (0.3, 0.1)


def day(moment: date) -> str:
    """A day in words, as a question would have it."""
    return _day_in_words(moment.year, moment.month, moment.day)


@lru_cache(maxsize=4096)
def _day_in_words(year: int, month: int, day: int) -> str:
    return f"{day} {date(year, month, day):%B} {year}"


def unit_terms(record: MemoryRecord, before: Sequence[MemoryRecord] = (), after: Sequence[MemoryRecord] = ()) -> str:
    """The index terms of a memory: its day, its own words twice, its neighbours' once, its topics and entities."""
    found = [*speaker_terms(record.text), _terms_of_day((record.event_date or record.created_at).date())]
    own_terms = terms(record.text)
    if len(set(own_terms)) <= STANDS_ALONE:
        for near in (*before, *after):
            found += terms(beginning(near.text))
    if len(own_terms) > _MANY:
        # How often a very long text has a word says little of it; its passages have theirs as often as they do.
        found += dict.fromkeys(own_terms)
    elif own := " ".join(own_terms):
        found += [own] * OWN_WEIGHT
    for tags in (record.topics, record.entities):
        for part in tags or ():
            found += terms(part)
    return " ".join(found)


def passage_terms(record: MemoryRecord, passage: str) -> str:
    """The index terms of a passage of a memory: its own words, and the memory's day."""
    own = terms(passage)
    return " ".join([_terms_of_day((record.event_date or record.created_at).date()), *own, *own])


@lru_cache(maxsize=4096)
def _terms_of_day(when: date) -> str:
    return " ".join(terms(day(when)))


def needs_context(text: str) -> float:
    """Return how much (0..1) a text needs what was said around it: all of it below ten different terms, then in inverse proportion."""
    return min(1.0, _SAYS_ENOUGH / max(len(set(terms(text))), 1))


def unit_vector(
    own: NDArray[np.float32],
    before: Sequence[NDArray[np.float32]] = (),
    after: Sequence[NDArray[np.float32]] = (),
    context: float = 1.0,
) -> NDArray[np.float32]:
    """The vector of a memory: its own plus some of its neighbours' (`before` in time order), of length 1.

    `context` (0..1) is what `needs_context` says of its text.
    """
    total = own.astype(np.float32, copy=True)
    for weight, near in zip(NEIGHBOUR_WEIGHTS, reversed(before), strict=False):
        total += context * weight * near
    for weight, near in zip(NEIGHBOUR_WEIGHTS, after, strict=False):
        total += context * weight * near
    size = float(np.linalg.norm(total))
    return (total / size).astype(np.float32) if size > 1e-6 else own
