"""Split long texts into passages, which are embedded and searched separately.

Lengths are in UTF-8 bytes. A token is about four bytes long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

# About 200 tokens. Embedding models read at least 256.
PASSAGE_BYTES = 800
# Texts up to this length are a single passage.
LONG_BYTES = 1200
# Sentences at the end of a passage, up to this length, also begin the next one.
_OVERLAP_BYTES = 160
_LOOKED_AT = 4096
# A search for passages does not find text after the last passage.
MOST_PASSAGES = 96

# The end of a sentence, line or list item. The pattern visits a run of marks only once.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s)|(?<![。！？｡])[。！？｡]++[”’」』）]*+|(?<!\s)\n\s*+")
_BLANK = re.compile(r"\s")

Span = tuple[int, int]
"""The start and end of a range of characters."""


def split_passages(text: str) -> Sequence[Span]:
    """Return up to 96 passages from a long text, or none if the text is short."""
    if len(text) * 4 <= LONG_BYTES or len(text.encode()) <= LONG_BYTES:
        return ()
    passages: list[Span] = []
    current: list[tuple[int, int, int]] = []
    size = 0
    for start, end in _sentences(text):
        length = len(text[start:end].encode())
        if current and size + length > PASSAGE_BYTES:
            passages.append((current[0][0], current[-1][1]))
            if len(passages) == MOST_PASSAGES:
                return passages
            current = _tail(current, PASSAGE_BYTES - length)
            size = sum(each[2] for each in current)
        current.append((start, end, length))
        size += length
    passages.append((current[0][0], current[-1][1]))
    return passages


def beginning(text: str) -> str:
    """Return the first passage of a long text, or the entire text if it is short."""
    # Later text does not change where the first passage ends.
    passages = split_passages(text[:_LOOKED_AT])
    return text[: passages[0][1]] if passages else text


def ending(text: str) -> str:
    """Return the end of a long text, or the entire text if it is short.

    The result starts at a passage boundary and has at most 1,200 bytes if possible.
    """
    # The end of a long message usually contains its question.
    passages = split_passages(text)
    starts = [start for start, _ in passages if len(text[start:].encode()) <= LONG_BYTES]
    return text[starts[0] :] if starts else text[passages[-1][0] :] if passages else text


def _tail(sentences: Sequence[tuple[int, int, int]], room: int) -> list[tuple[int, int, int]]:
    """Return the last sentences that fit into both the overlap and the next passage."""
    overlap_bytes = 0
    for place in range(len(sentences) - 1, 0, -1):
        overlap_bytes += sentences[place][2]
        if overlap_bytes > min(_OVERLAP_BYTES, room):
            return list(sentences[place + 1 :])
    return list(sentences[1:])


def _sentences(text: str) -> Iterator[Span]:
    """Yield the spans of sentences, including trailing spaces. Split long sentences at spaces."""
    ends = [0, *(match.end() for match in _END.finditer(text) if match.end() < len(text)), len(text)]
    for start, end in pairwise(ends):
        while len(text[start:end].encode()) > PASSAGE_BYTES:
            # `most` is the end of the characters that fit. Cut after the last space before it.
            most = start + len(text[start:end].encode()[:PASSAGE_BYTES].decode(errors="ignore"))
            blank = next((place + 1 for place in range(most - 1, start, -1) if _BLANK.match(text, place)), most)
            yield start, blank
            start = blank
        if start < end:
            yield start, end
