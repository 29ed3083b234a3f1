"""Query text that redisvl cannot say. Everything else is said with its filter expressions and queries.

- An intersection of many filters: redisvl nests one pair of brackets for each, and RediSearch takes a list as well.
- The negation of anything but one tag or one number: redisvl has none for ranges and unions.
- A clause that weighs nothing, and terms that score without being required: redisvl's TextQuery has one weight for each field, drops
  stop words of its own and escapes what follows a word into it.
- Quoted phrases among index terms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from redisvl.query.filter import FilterExpression, Num


def all_of(*filters: FilterExpression | str) -> str:
    """The intersection of filters, without those that are empty."""
    return " ".join(text for each in filters if (text := str(each)))


def negated(condition: FilterExpression | str) -> str:
    """Documents of which a filter, which is one tag, number, function or a clause in brackets, does not hold."""
    return f"-{condition}"


def has_number(field: str) -> FilterExpression:
    """Documents with any number in a field: `ismissing` wants an index that was made for it."""
    return Num(field).between(-math.inf, math.inf)


def scoring(clause: str, terms: Iterable[str], mute: Collection[str] = ()) -> str:
    """As `having` any of the terms, for BM25: a memory scores by every one of the terms that it has, but for those of `mute`."""
    wanted = list(terms)
    # Where an intersection skips through a union, RediSearch 2.10 scores a document that is the last one of a term (so the only one of a
    # rare term, too) by that term alone. So the union only filters, inside an intersection that weighs nothing (a weight on the union is
    # lost when but one of its terms exists), and the terms score one by one, each optional.
    return f"{' '.join(f'~@k:{term}' for term in wanted if term not in mute)} ({having(clause, wanted)})=>{{$weight: 0.0}}"


def having(clause: str, terms: Iterable[str], *, every: bool = False) -> str:
    """A clause narrowed to memories with any (or every) of some index terms of `agent_memory.foundation.text.terms`."""
    wanted = list(terms)
    if not wanted or not all(term.isascii() and term.replace("_", "a").isalnum() for term in wanted):
        raise AssertionError("search terms come from agent_memory.foundation.text.terms")
    # Tags count in BM25 too, and RediSearch 2.10 gets the weight of one that has more postings than there are documents (which any
    # rewritten document brings about) hugely wrong: an unsigned difference wraps around. So the clause filters and does not score.
    # The order matters: with the weighted clause first, the parser applies its weight to the words as well.
    return f"@k:({(' ' if every else '|').join(wanted)}) ({clause})=>{{$weight: 0.0}}"


def quoting(phrases: Sequence[str], loose: Iterable[str], *, every: bool) -> str:
    """A clause of quoted phrases (of `text.terms`): every one of them, or any of them or of the loose terms; "" without any."""
    if not phrases:
        return ""
    return " ".join(f"@k:{phrase}" for phrase in phrases) if every else f"@k:({'|'.join([*phrases, *loose])})"
