"""Retrieval units, pure: what of a memory is searched. It is shown as it was said, and found by what was said around it.

The weights are plateaus, not peaks, of what docs/recall.md measures on real conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from agent_memory.text.terms import terms
from agent_memory_client.models import MemoryRecord

# How many messages before and after a message count as what stands around it.
REACH = 2
# How often a message's own terms are counted, against once for each neighbour's.
OWN_WEIGHT = 2
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
    found = [_terms_of_day((record.event_date or record.created_at).date())]
    for near in (*before, *after):
        found += terms(near.text)
    if own := " ".join(terms(record.text)):
        found += [own] * OWN_WEIGHT
    for tags in (record.topics, record.entities):
        for part in tags or ():
            found += terms(part)
    return " ".join(found)


@lru_cache(maxsize=4096)
def _terms_of_day(when: date) -> str:
    return " ".join(terms(day(when)))


def unit_vector(
    own: NDArray[np.float32], before: Sequence[NDArray[np.float32]] = (), after: Sequence[NDArray[np.float32]] = ()
) -> NDArray[np.float32]:
    """The vector of a memory: its own plus some of its neighbours' (`before` in time order), of length 1."""
    total = own.astype(np.float32, copy=True)
    for weight, near in zip(NEIGHBOUR_WEIGHTS, reversed(before), strict=False):
        total += weight * near
    for weight, near in zip(NEIGHBOUR_WEIGHTS, after, strict=False):
        total += weight * near
    size = float(np.linalg.norm(total))
    return (total / size).astype(np.float32) if size > 1e-6 else own
