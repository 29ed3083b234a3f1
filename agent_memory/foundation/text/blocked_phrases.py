"""Find blocked phrases in texts by comparing word stems."""

from __future__ import annotations

from collections.abc import Iterable

from agent_memory.foundation.text.terms import fold, stems, words


class Blocklist:
    """Searches texts for blocked phrases.

    A phrase matches if its words appear next to each other, in any inflection. Stop words are
    ignored.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self._stems: list[str] = []
        self._plain: list[str] = []
        for phrase in dict.fromkeys(phrases):
            # A phrase with only stop words is matched literally.
            if row := stems(phrase):
                self._stems.append(_row(row))
            elif plain := words(phrase):
                self._plain.append(_row(plain))
            elif symbols := fold(phrase).strip():
                self._plain.append(symbols)

    def __bool__(self) -> bool:
        return bool(self._stems or self._plain)

    def holds(self, *texts: str) -> bool:
        """True if any of the texts contains a blocked phrase."""
        for text in texts if self else ():
            row = _row(stems(text))
            plain = f"{_row(words(text))}{fold(text)}"
            if any(stem in row for stem in self._stems) or any(phrase in plain for phrase in self._plain):
                return True
        return False


def _row(parts: Iterable[str]) -> str:
    return "\0" + "\0".join(parts) + "\0"
