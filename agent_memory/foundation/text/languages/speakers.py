"""Find speaker names before statements ("Ana: …"), and remove them from questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from agent_memory.foundation.text.terms import index_terms_of_name, words_with_places

_LABEL = re.compile(r"([^\s:：][^:：\n]{0,39}?)\s?[:：](?=\s|$)|([^\s:：\x00-\x7f]{1,12})：")
# A longer label is a clause.
_MOST_WORDS = 3
_LOOKED_AT = 200
_MARK = "name0"
# A frequent speaker says at least this share of the memories.
_SHARE = 0.05
_POSSESSIVE = re.compile(r"['’]s\b")


def speaker_terms(text: str) -> list[str]:
    """Return an index term for each word of the speaker name that a text begins with."""
    match = _LABEL.match(text[:_LOOKED_AT].lstrip())
    names = index_terms_of_name(match[1] or match[2]) if match else []
    return [_MARK + name for name in names] if len(names) <= _MOST_WORDS else []


def speakers_of(documents: Collection[str]) -> frozenset[str]:
    """Return the name terms of frequent speakers. `documents` contain index terms."""
    counts = Counter(term for document in documents for term in set(_leading_names(document)))
    least = max(2.0, _SHARE * len(documents))
    return frozenset(term.removeprefix(_MARK) for term, count in counts.items() if count >= least)


def without_names(text: str, names: Collection[str]) -> tuple[str, list[str]]:
    """Remove speaker names from a question. Return the question and the removed names.

    If the question consists only of names, return it unchanged.
    """
    # A name occurs in all statements by its speaker, so in a vector it would outweigh the rest of the question.
    if not names:
        return text, []
    kept_parts, omitted, at, others = list[str](), list[str](), 0, False
    for start, end, term in words_with_places(text):
        word = text[start:end]
        if term not in names or word[0].islower():
            others = True
            continue
        kept_parts.append(text[at:start])
        possessive = _POSSESSIVE.match(text, end)
        at = possessive.end() if possessive else end
        omitted.append(word)
    rest = " ".join("".join([*kept_parts, text[at:]]).split())
    return (rest, omitted) if omitted and others else (text, [])


def terms_of_speakers(names: Iterable[str]) -> frozenset[bytes]:
    """Return the index terms that mark memories by these speakers."""
    return frozenset((_MARK + term).encode() for name in names for term in index_terms_of_name(name))


def is_by_speaker(document: bytes, speakers: frozenset[bytes]) -> bool:
    """True if the index terms in `document` begin with a term in `speakers`."""
    return not speakers.isdisjoint(document.split(b" ", _MOST_WORDS)[:_MOST_WORDS])


def _leading_names(document: str) -> Iterable[str]:
    for term in document.split(" ", _MOST_WORDS)[:_MOST_WORDS]:
        if not term.startswith(_MARK):
            return
        yield term
