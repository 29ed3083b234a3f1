"""Build the searchable form of a memory from its text and the messages around it.

The weights are based on measurements (docs/recall.md). Small changes have little effect.
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

# The number of messages before a message, and after it, that count as its context.
REACH = 2
# The weight of a message's own terms. Terms from its neighbors have the weight 1.
OWN_WEIGHT = 2
# A message with more distinct terms than this gets no terms from its neighbors.
MOST_TERMS_WITH_CONTEXT = 36
_MANY = 1000
# If a message has more distinct terms, its neighbors' vectors count less, in inverse proportion.
_SAYS_ENOUGH = 9
# Weights for the vectors of the nearest neighbors, and of the next ones.
NEIGHBOUR_WEIGHTS = (0.3, 0.1)


def day(moment: date) -> str:
    """Format a day as it would appear in a question, such as "7 May 2023"."""
    return _day_in_words(moment.year, moment.month, moment.day)


@lru_cache(maxsize=4096)
def _day_in_words(year: int, month: int, day: int) -> str:
    return f"{day} {date(year, month, day):%B} {year}"


def unit_terms(record: MemoryRecord, before: Sequence[MemoryRecord] = (), after: Sequence[MemoryRecord] = ()) -> str:
    """Return the index terms for a memory. If its text is short, include neighbors' words."""
    index_terms = [*speaker_terms(record.text), _terms_of_day((record.event_date or record.created_at).date())]
    own_terms = terms(record.text)
    if len(set(own_terms)) <= MOST_TERMS_WITH_CONTEXT:
        for near in (*before, *after):
            index_terms += terms(beginning(near.text))
    if len(own_terms) > _MANY:
        # In a long text, counts of words say little. Its passages have their own counts.
        index_terms += dict.fromkeys(own_terms)
    elif own := " ".join(own_terms):
        index_terms += [own] * OWN_WEIGHT
    for tags in (record.topics, record.entities):
        for part in tags or ():
            index_terms += terms(part)
    return " ".join(index_terms)


def passage_terms(record: MemoryRecord, passage: str) -> str:
    """Return the index terms for a passage. Words from the passage count twice."""
    own = terms(passage)
    return " ".join([_terms_of_day((record.event_date or record.created_at).date()), *own, *own])


@lru_cache(maxsize=4096)
def _terms_of_day(when: date) -> str:
    return " ".join(terms(day(when)))


def needs_context(text: str) -> float:
    """Return how much a text depends on its context, from 0 to 1."""
    return min(1.0, _SAYS_ENOUGH / max(len(set(terms(text))), 1))


def unit_vector(
    own: NDArray[np.float32],
    before: Sequence[NDArray[np.float32]] = (),
    after: Sequence[NDArray[np.float32]] = (),
    context: float = 1.0,
) -> NDArray[np.float32]:
    """Add weighted neighbor vectors to a memory's vector, and normalize the result.

    `context` (0 to 1) scales the neighbors' weights. `before` and `after` are in time order.
    """
    total = own.astype(np.float32, copy=True)
    for weight, near in zip(NEIGHBOUR_WEIGHTS, reversed(before), strict=False):
        total += context * weight * near
    for weight, near in zip(NEIGHBOUR_WEIGHTS, after, strict=False):
        total += context * weight * near
    size = float(np.linalg.norm(total))
    return (total / size).astype(np.float32) if size > 1e-6 else own
