"""Find the numbers in a text, in digits or words."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from agent_memory.foundation.core.tables import read_table
from agent_memory.foundation.text.terms import fold

NumberKind = Literal["plain", "date", "year", "clock"]

_TOKEN = re.compile(r"\d++(?:[.,:]\d++)*+|[〇零一二两三四五六七八九十百千]++|(?:[^\W\d_\u3400-\u9fff]|[\u0900-\u0963])++|[\u3400-\u9fff]")
_GROUPS = re.compile(r"\d{1,3}(?:[.,]\d{3})++")
_DECIMAL = re.compile(r"(?<!\d)\d++[.,]\d{1,2}")
_ISO = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?")
_CHINESE = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000}
_MOST_DIGITS = 18
_YEARS = range(1900, 2101)

_SOURCE = read_table("text/data/numbers/words.toml")
_WORD_NUMBERS = {word: row.split()[0] for row in _SOURCE["numbers"].strip().splitlines() for word in row.split()[1:]}
# Number words with another meaning: "sei" also means "you are" in Italian, and "once" is also an English word.
_DOUBTFUL = frozenset({"sei", "once", "elf", "due", "sept", "tre", "dix"})
_MONTH_NUMBERS = {fold(word): row.split()[0] for row in _SOURCE["months"].strip().splitlines() for word in row.split()[1:]}
MONTHS = frozenset(_MONTH_NUMBERS)
DATE_WORDS = MONTHS | frozenset(map(fold, _SOURCE["days"].split()))
_DAY_SIGNS = ("月", "日", "号", "월", "일")
_BETWEEN = frozenset(_SOURCE["between"].split())


class Number(NamedTuple):
    """A number in its simplest form ("2310" for "2,310"), and its kind."""

    value: str
    kind: NumberKind


def is_number_word(word: str) -> bool:
    return word in _WORD_NUMBERS


def month_numbers(text: str) -> list[str]:
    """Return the numbers of the months mentioned in a text ("10" for October)."""
    return [number for m in _TOKEN.finditer(text) if (number := _MONTH_NUMBERS.get(fold(m[0]))) is not None]


def numbers(text: str) -> list[Number]:
    """Return the numbers in a text, in order.

    A time of day yields two numbers. "One" is treated as an article.
    """
    tokens = [(m[0], fold(m[0])) for m in _TOKEN.finditer(text)]
    iso = {part for date in _ISO.findall(text) for part in date.split("-")}
    result: list[Number] = []
    for at, (token, word) in enumerate(tokens):
        if token[0].isdigit():
            result += _digits(token, tokens, at, iso)
        elif token[0] in _CHINESE or token[0] in _CHINESE_UNITS:
            value = _chinese(token)
            if value > 1:
                result.append(Number(str(value), "date" if _next(tokens, at) in _DAY_SIGNS else "plain"))
        elif (number := _WORD_NUMBERS.get(word)) and word not in _DOUBTFUL:
            result.append(Number(number, "plain"))
    return result


def _digits(token: str, tokens: list[tuple[str, str]], at: int, iso: set[str]) -> list[Number]:
    if _CLOCK.fullmatch(token):
        return [Number(_plain(part), "clock") for part in token.split(":")[:2]]
    if _GROUPS.fullmatch(token):
        return [Number(_plain(token.replace(",", "").replace(".", "")), "plain")]
    if _DECIMAL.fullmatch(token):
        return [Number(token.replace(",", "."), "plain")]
    parts = [part for part in re.split(r"[.,:]", token) if part]
    return [Number(_plain(part), _kind(part, tokens, at, iso) if len(parts) == 1 else "plain") for part in parts]


def _kind(part: str, tokens: list[tuple[str, str]], at: int, iso: set[str]) -> NumberKind:
    if len(part) == 4 and int(part) in _YEARS:
        return "year"
    if len(part) > 2:
        return "plain"
    near = {_next(tokens, at), _next(tokens, at, skip=True), _previous(tokens, at)}
    if part in iso or not near.isdisjoint(MONTHS) or _next(tokens, at) in _DAY_SIGNS:
        return "date" if 1 <= int(part) <= 31 else "plain"
    return "plain"


def _next(tokens: list[tuple[str, str]], at: int, *, skip: bool = False) -> str:
    """Return the next word. If `skip` is true, ignore prepositions and ordinal endings."""
    at += 1
    while skip and at < len(tokens) and tokens[at][1] in _BETWEEN:
        at += 1
    word = tokens[at][1] if at < len(tokens) else ""
    return word[:1] if word[:1] in ("年", "년", *_DAY_SIGNS) else word


def _previous(tokens: list[tuple[str, str]], at: int) -> str:
    at -= 1
    while at > 0 and tokens[at][1] in _BETWEEN:
        at -= 1
    return tokens[at][1] if at >= 0 else ""


def _plain(digits: str) -> str:
    return str(int(digits)) if len(digits) <= _MOST_DIGITS else digits.lstrip("0")


def _chinese(token: str) -> int:
    if not any(char in _CHINESE_UNITS for char in token):
        return int("".join(str(_CHINESE[char]) for char in token)) if len(token) <= _MOST_DIGITS else 0
    total, digit = 0, 0
    for char in token:
        if char in _CHINESE:
            digit = _CHINESE[char]
        else:
            total += (digit or 1) * _CHINESE_UNITS[char]
            digit = 0
    return total + digit
