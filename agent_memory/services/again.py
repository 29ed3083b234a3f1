"""What answers to the same question read: who asks again gets it in the round trip of the search, instead of one after it.

A search finds names, and what they name is read when it is known which of them are shown. A question that comes again (the embedding of
its query is remembered, too) will mostly show the same memories, so they are read along with it. Nothing of them is remembered but their
names: what they hold, and which of them are shown, is what Redis says this time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

_MOST = 2000
# More is a page of its own, and dearer to read in vain.
_MOST_NAMES = 40


class Asked(NamedTuple):
    """A question: the filter of what may be found, the query, and the page of its answer."""

    where: str
    text: str
    offset: int
    limit: int


class Again:
    """The names in keys that were read for the questions asked last."""

    def __init__(self, most: int = _MOST) -> None:
        self._names: OrderedDict[Asked, Sequence[str]] = OrderedDict()
        self._most = most

    def names(self, asked: Asked) -> Sequence[str]:
        """Those that were read when it was asked before; none when it is new."""
        found = self._names.get(asked)
        if found is None:
            return ()
        self._names.move_to_end(asked)
        return found

    def keep(self, asked: Asked, names: Sequence[str]) -> None:
        """These were read for it."""
        if len(names) > _MOST_NAMES:
            return
        self._names[asked] = names
        if len(self._names) > self._most:
            self._names.popitem(last=False)
