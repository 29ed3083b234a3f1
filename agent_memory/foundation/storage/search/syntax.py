"""Build query text that redisvl cannot express.

Examples are flat intersections (redisvl nests parentheses), negated ranges and unions, zero-weight
clauses, optional scoring terms, and quoted phrases.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from redisvl.query.filter import FilterExpression, Num


def all_of(*filters: FilterExpression | str) -> str:
    """Return the intersection of the non-empty filters."""
    return " ".join(text for each in filters if (text := str(each)))


def negated(condition: FilterExpression | str) -> str:
    """Negate a single tag, number, or function, or a clause in parentheses."""
    return f"-{condition}"


def has_number(field: str) -> FilterExpression:
    """Match documents that have a number in the field."""
    # RediSearch's `ismissing` would require a special index.
    return Num(field).between(-math.inf, math.inf)


def scoring(clause: str, terms: Iterable[str], mute: Collection[str] = ()) -> str:
    """Narrow a clause like `having` does, and score memories with BM25.

    Terms in `mute` do not affect the score.
    """
    term_list = list(terms)
    # If an intersection skips through a union, RediSearch 2.10 scores the last document for a term by that term alone.
    # So the union only filters, and each term scores as an optional term. The union is inside an intersection of weight
    # 0, because a weight on the union itself is lost if only one of its terms exists.
    return f"{' '.join(f'~@k:{term}' for term in term_list if term not in mute)} ({having(clause, term_list)})=>{{$weight: 0.0}}"


def having(clause: str, terms: Iterable[str], *, every: bool = False) -> str:
    """Narrow a clause to memories with any of `terms`, or with all of them if `every` is true.

    The terms must come from `agent_memory.foundation.text.terms`.
    """
    term_list = list(terms)
    if not term_list or not all(term.isascii() and term.replace("_", "a").isalnum() for term in term_list):
        raise AssertionError("search terms come from agent_memory.foundation.text.terms")
    # The clause has weight 0, because tags count in BM25. RediSearch 2.10 gives a huge weight to a tag with more
    # postings than documents: an unsigned difference wraps around. Any rewrite causes such tags. The clause must come
    # last, because the parser also applies the weight of a leading clause to the words.
    return f"@k:({(' ' if every else '|').join(term_list)}) ({clause})=>{{$weight: 0.0}}"


def quoting(phrases: Sequence[str], loose: Iterable[str], *, every: bool) -> str:
    """Return a clause for quoted phrases, or "" if `phrases` is empty.

    If `every` is true, all phrases must match. Otherwise, any phrase or `loose` term is enough.
    """
    if not phrases:
        return ""
    return " ".join(f"@k:{phrase}" for phrase in phrases) if every else f"@k:({'|'.join([*phrases, *loose])})"
