"""Extract the text of an item for embedding and keyword search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from agent_memory.foundation.storage.scripts import compact
from agent_memory.foundation.text.terms import terms

MAX_TEXT_CHARS = 8_000
_MAX_TERMS = 1_500


def item_text(value: Mapping[str, Any], index: Sequence[str] | bool | None) -> str:
    """Return the text of the fields in `index`, one value per line.

    None means all fields, and False means no fields. Field paths use the syntax of
    `langgraph.store.base`, where `$` is the entire value.
    """
    if index is False:
        return ""
    paths = index if isinstance(index, Sequence) else ("$",)
    lines: list[str] = []
    room = MAX_TEXT_CHARS
    for path in paths:
        for line in _leaves(value) if path in ("", "$") else _at(value, _tokens(path), 0):
            lines.append(line[:room])
            room -= len(lines[-1]) + 1
            if room <= 0:
                return "\n".join(lines)
    return "\n".join(lines)


def item_terms(text: str) -> str:
    """Return the first 1,500 distinct index terms of a text."""
    return " ".join(list(dict.fromkeys(terms(text)))[:_MAX_TERMS])


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in cast("dict[str, Any]", value).values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _leaves(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        yield str(value)


def _at(value: Any, tokens: Sequence[str], position: int) -> Iterator[str]:
    if position == len(tokens):
        yield from _value_texts(value)
        return
    for inner in _steps(value, tokens[position]):
        yield from _at(inner, tokens, position + 1)


def _steps(value: Any, token: str) -> Iterator[Any]:
    items = cast("list[Any]", value) if isinstance(value, list) else None
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else None
    if token.startswith("["):
        inner = token.strip("[]")
        if items is not None and inner == "*":
            yield from items
        elif items is not None and inner.removeprefix("-").isdecimal() and len(inner) < 10 and -len(items) <= int(inner) < len(items):
            yield items[int(inner)]
    elif token.startswith("{"):
        for name in token.strip("{}").split(",") if fields is not None else ():
            if name.strip() in cast("dict[str, Any]", fields):
                yield cast("dict[str, Any]", fields)[name.strip()]
    elif token == "*":
        yield from fields.values() if fields is not None else items or ()
    elif fields is not None and token in fields:
        yield fields[token]


def _value_texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        yield compact(value)
    elif value is not None and str(value).strip():
        yield str(value)


def _tokens(path: str) -> list[str]:
    """Split a field path: `a.b[0].{c,d}` becomes `a`, `b`, `[0]`, `{c,d}`."""
    tokens: list[str] = []
    start = position = 0
    while position < len(path):
        if path[position] not in ".[{":
            position += 1
            continue
        tokens.append(path[start:position])
        end = position + 1
        if path[position] != ".":
            closing = path.find("]" if path[position] == "[" else "}", position)
            end = len(path) if closing < 0 else closing + 1
            tokens.append(path[position:end])
        start = position = end
    tokens.append(path[start:])
    return [token for token in tokens if token]
