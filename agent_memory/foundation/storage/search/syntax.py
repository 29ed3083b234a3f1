"""Query text that redisvl cannot express:

- flat intersections: redisvl nests a pair of brackets for each filter
- negation of ranges and unions
- clauses without weight and optional scoring terms: redisvl's TextQuery has one weight a field and its own stop words
- quoted phrases among index terms
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from redisvl.query.filter import FilterExpression, Num


def all_of(*filters: FilterExpression | str) -> str:
    """Return the intersection of non-empty filters."""
    return " ".join(text for each in filters if (text := str(each)))


def negated(condition: FilterExpression | str) -> str:
    """Negate one tag, number, function or bracketed clause."""
    return f"-{condition}"


def has_number(field: str) -> FilterExpression:
    """Match documents with any number in a field; `ismissing` needs a special index."""
    return Num(field).between(-math.inf, math.inf)


def scoring(clause: str, terms: Iterable[str], mute: Collection[str] = ()) -> str:
    """As `having` any term, for BM25: a memory scores by each of its terms except `mute`."""
    term_list = list(terms)
    # RediSearch 2.10 scores the last document of a term by that term alone when an intersection skips through a union.
    # So the union only filters, inside an intersection of weight 0 (a weight on the union is lost if only one of its
    # terms exists), and each term scores as an optional one.
    return f"{' '.join(f'~@k:{term}' for term in term_list if term not in mute)} ({having(clause, term_list)})=>{{$weight: 0.0}}"


def having(clause: str, terms: Iterable[str], *, every: bool = False) -> str:
    """Narrow a clause to memories with any (or every) term of `agent_memory.foundation.text.terms`."""
    term_list = list(terms)
    if not term_list or not all(term.isascii() and term.replace("_", "a").isalnum() for term in term_list):
        raise AssertionError("search terms come from agent_memory.foundation.text.terms")
    # Tags count in BM25, and RediSearch 2.10 computes a huge weight for a tag with more postings than documents (after
    # any rewrite): an unsigned difference wraps around. So the clause only filters. It must come last: the parser
    # applies a leading clause's weight to the words, too.
    return f"@k:({(' ' if every else '|').join(term_list)}) ({clause})=>{{$weight: 0.0}}"


def quoting(phrases: Sequence[str], loose: Iterable[str], *, every: bool) -> str:
    """Return a clause of quoted phrases: all of them, or any of them or of the loose terms; "" without phrases."""
    if not phrases:
        return ""
    return " ".join(f"@k:{phrase}" for phrase in phrases) if every else f"@k:({'|'.join([*phrases, *loose])})"
