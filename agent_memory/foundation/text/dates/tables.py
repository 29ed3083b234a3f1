"""Compile each language's TOML table of date patterns on first use.

Patterns of kind `each` match recurring days. Patterns of kind `none` match text that only looks
like a date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from agent_memory.foundation.core.tables import read_table

CODES = ("en", "zh", "de", "es", "fr")
_CHINESE = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "○": 0, "两": 2, "兩": 2}
_EDGE = r"(?<!\w){}(?![\w(])"
_YEAR = r"(?P<year>(?:19|20)\d\d)(?!\d|[.,]\d|s\b)"
_GROUP = re.compile(r"\([^()]*\)\??")
# The prefix that all matches of a month's or weekday's pattern share.
_BEGINNING = re.compile(r"(?:\w(?![?*]))*")
_NUMERIC = (
    r"(?<![\w.,/-])(?P<year>(?:19|20)\d\d)-(?P<m>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])(?![\d-])",
    r"(?<![\w.,/-])(?P<year>(?:19|20)\d\d)/(?P<m>0?[1-9]|1[0-2])/(?P<day>0?[1-9]|[12]\d|3[01])(?![\d/])",
    r"(?<![\w.,/-])(?P<day>0?[1-9]|[12]\d|3[01])\.\s?(?P<m>0?[1-9]|1[0-2])\.\s?(?P<year>(?:19|20)\d\d)(?!\d|\.\d)",
    r"(?<![\w.,/-])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<year>(?:19|20)\d\d)(?![\d/])",
)
NUMERIC = tuple(map(re.compile, _NUMERIC))
"""Numeric dates: 2024-03-05, 2024/03/05, 5.3.2024 and 3/5/2024 (ambiguous)."""


DatePattern = tuple[str, re.Pattern[str], int]


class Table:
    """The compiled date table for one language."""

    def __init__(self, code: str, source: Mapping[str, Any]) -> None:
        self.code = code
        self.blankless = bool(source.get("blankless"))
        edge = "{}" if self.blankless else _EDGE
        start, stop, blank = ("", "", r"\s*") if self.blankless else (r"(?<![^\W_])", r"(?![^\W_])", r"\s+")
        names = frozenset(name for names in (*source["months"], *source["weekdays"]) for name in names.split("|") if name.isalpha())
        self.names = frozenset[str]() if self.blankless else names
        """The lower-case names of months and weekdays."""
        self.words = frozenset([*source["words"].split(), *source["numbers"], *names])
        self.months = list(map(_exact, source["months"]))
        self.weekdays = list(map(_exact, source["weekdays"]))
        self.units = {unit: _exact(forms) for unit, forms in source["units"].items()}
        self._numbers: Mapping[str, int] = source["numbers"]
        placeholders = _placeholders(source)
        self._near = [("near", _compiled(edge, words, placeholders), days) for words, days in source["near"].items()]
        forms = [form for name in (*source["months"], *source["weekdays"]) for form in name.split("|")]
        self._beginnings = {_BEGINNING.match(form)[0] for form in forms}  # type: ignore[index]
        self._named: list[DatePattern] = []
        self._others: list[DatePattern] = []
        for kind, templates in source["patterns"].items():
            for template in templates:
                group = self._named if _needs_name(template) else self._others
                group.append((kind, _compiled(edge, template, placeholders), 0))
        articles = "" if self.blankless else r"(?:\s+(?:the|le|la|el|los|den|dem|der|l['’]|in|im|en|on|am))*"
        # Words before a date.
        self.before = {
            name: re.compile(rf"{start}(?:{source.get(name) or '(?!)'}){articles}\W*$", re.IGNORECASE)
            for name in ("since", "until", "before", "after", "part", "street")
        }
        joint = f"{source['or']}|{source['and']}|{source['to']}"
        number_or_name = rf"{start}(?:\d{{1,2}}(?:{source['ordinal']})?|{_longest_first([*source['months'], *source['weekdays']])})"
        self.before["or"] = re.compile(rf"{number_or_name}(?:\s*[,/]|{blank}(?:{joint})(?: the| el| den| le)?)\s*$", re.IGNORECASE)
        # Words that join the two ends of an interval.
        self.joins = re.compile(rf"\s*(?:{source['to']})\s*(?:the |le |el |den |dem |am )?", re.IGNORECASE)
        self.between = re.compile(rf"{start}(?:{source['between']})\s*(?:the |le |el |dem )?$", re.IGNORECASE)
        self.and_ = re.compile(rf"\s*(?:{source['and']})\s*", re.IGNORECASE)
        # In a sentence with a word for yearly events, a day is certain only if it includes a year.
        self.yearly = _compiled(edge, source["yearly"], {})
        # Words after a date that change its meaning.
        more = rf"\s*(?:,|&|{source['or']}|{source['and']})\s*(?:0?[1-9]|[12]\d|3[01])(?:{source['ordinal']})?(?![\w:]|\s*[ap]\.?m)"
        self.followed = re.compile(rf"\s*(?:{source['followed']}){stop}|{more}", re.IGNORECASE)
        self.tense = {way: _compiled(edge, words, {}) for way, words in source["tense"].items()}
        questions = source["questions"]
        self.asks = _compiled(edge, questions["asks"], {})
        self.asks_when = _compiled(edge, questions["silent"], {})

    def patterns(self, text: str | None = None) -> list[DatePattern]:
        """Return all date patterns, or only the ones that may match `text`.

        The third value is the offset from today for words such as "yesterday".
        """
        lowered = None if text is None else text.lower()
        named = self._named if lowered is None or any(map(lowered.__contains__, self._beginnings)) else []
        return [*self._near, *named, *self._others]

    def count(self, word: str) -> int:
        """Return the number that a word or digits represent, or 0."""
        value = self._numbers.get(word.lower())
        return value if value is not None else number(word)


def number(numeral: str) -> int:
    """Return the value of digits or a Chinese numeral (up to 99, or a year), or 0."""
    if numeral.isdecimal():
        return int(numeral)
    if len(numeral) == 4 and all(digit in _CHINESE for digit in numeral):
        return int("".join(str(_CHINESE[digit]) for digit in numeral))
    tens, ten, units = numeral.replace("廿", "二十").rpartition("十")
    if any(part not in _CHINESE for part in (tens, units) if part):
        return 0
    return (_CHINESE.get(tens, 1) * 10 if ten else 0) + _CHINESE.get(units, 0)


@lru_cache(maxsize=1)
def tables() -> Mapping[str, Table]:
    return {code: Table(code, read_table(f"text/data/dates/{code}.toml")) for code in CODES}


def _placeholders(source: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the pattern for each placeholder.

    {D} is a day or range of days, {DM} a day and month in digits, and {M} a month. {Y} is a year,
    {W} a weekday, {N} a number, {U} a unit, and {C} a calendar unit.
    """
    ordinal, day = source["ordinal"], source.get("day", "0?[1-9]|[12][0-9]|3[01]")
    ends, optional = (")", "") if source.get("blankless") else (r")(?!\d)", "?")
    first = rf"(?:(?P<first>{day})(?:{ordinal})?\s?(?:{source['to']})\s?(?:the |le |el |den |dem )?)?"
    words = source["year_words"]
    years = "|".join(f"(?P<y{step}>{words[step]})" for step in ("last", "this", "next"))
    bare = r"(?<![0-9一二三四五六七八九十])" if source.get("blankless") else ""
    return {
        "{DM}": r"(?<![\d.,/-])(?P<day>0?[1-9]|[12]\d|3[01])\.\s?(?P<m>0?[1-9]|1[0-2])\.\s?",
        "{D}": rf"(?<![\d.,:/$€£-]){first}(?P<day>{day}{ends}(?:{ordinal}){optional}",
        "{M}": bare + rf"(?P<month>{_longest_first(source['months'])})",
        "{Y}": rf"(?:{source.get('year', _YEAR)}|{years})",
        "{W}": rf"(?P<weekday>{_longest_first(source['weekdays'])})",
        "{N}": bare + rf"(?<![\d.,])(?P<count>{source.get('count', '[0-9]{1,3}|' + '|'.join(source['numbers']))})",
        "{U}": rf"(?P<unit>{'|'.join(source['units'].values())})",
        "{C}": rf"(?P<unit>{'|'.join(source.get('calendar_units', {'': '(?!)'}).values())})",
    }


@lru_cache(maxsize=1)
def calendar_names() -> frozenset[str]:
    """Return the lowercase names of months and weekdays in all languages."""
    return frozenset(name for table in tables().values() for name in table.names)


def _longest_first(names: Sequence[str]) -> str:
    return "|".join(sorted((form for each in names for form in each.split("|")), key=len, reverse=True))


def _compiled(edge: str, template: str, placeholders: Mapping[str, str]) -> re.Pattern[str]:
    for name, source in placeholders.items():
        template = template.replace(name, source)
    return re.compile(edge.replace("{}", f"(?:{template})"), re.IGNORECASE)


def _needs_name(template: str) -> bool:
    """True if every match contains the name of a month or weekday."""
    while template != (shorter := _GROUP.sub("", template)):
        template = shorter
    return "|" not in template and ("{M}" in template or "{W}" in template)


def _exact(forms: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{forms})\Z", re.IGNORECASE)
