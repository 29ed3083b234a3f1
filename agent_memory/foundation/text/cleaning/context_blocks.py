"""Remove blocks such as `<system-reminder>…</system-reminder>` that agent harnesses add to messages."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*+)(\s[^<>]*+|/)?>")


class ContextBlocks:
    """The tag names of the blocks to remove. Case is ignored, and `_` matches `-`."""

    def __init__(self, tags: str) -> None:
        """Set the tag names from a comma-separated list."""
        self._names = frozenset(_normal(name.strip()) for name in tags.split(",")) - {""}

    def outside(self, text: str) -> str:
        """Return the text outside the blocks. Unclosed tags are left in the text."""
        if "<" not in text or not (spans := self._spans(text)):
            return text
        outside_parts: list[str] = []
        end = 0
        for start, until in sorted(spans):
            if start >= end:
                outside_parts.append(text[end:start])
            end = max(end, until)
        return "".join([*outside_parts, text[end:]]).strip()

    def _spans(self, text: str) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        opened: list[tuple[str, int]] = []
        count: Counter[str] = Counter()
        for tag in _TAG.finditer(text):
            name = _normal(tag[2])
            if name not in self._names:
                continue
            if (tag[3] or "").endswith("/"):
                spans.append(tag.span())
            elif not tag[1]:
                opened.append((name, tag.start()))
                count[name] += 1
            elif count[name]:
                while (last := opened.pop())[0] != name:
                    count[last[0]] -= 1
                count[name] -= 1
                spans.append((last[1], tag.end()))
        return spans


@lru_cache(maxsize=8)
def context_blocks(tags: str) -> ContextBlocks:
    return ContextBlocks(tags)


def _normal(name: str) -> str:
    return name.lower().replace("_", "-")
