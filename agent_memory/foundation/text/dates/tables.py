"""Compile the TOML tables of date patterns (`text/data/dates`), one for each language, at first use.

A table contains patterns by kind, with the placeholders of `_placeholders`. It also contains words that may precede a
date ("since", "early"), words that indicate past or future, and question forms. Patterns of kind `each` match recurring
days. Patterns of kind `none` match text that only looks like a date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agent_memory.foundation.core.tables import read_table

CODES = ("en", "zh", "de", "es", "fr")
_CHINESE = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "○": 0, "两": 2, "兩": 2}
_EDGE = r"(?<!\w){}(?![\w(])"
_YEAR = r"(?P<year>(?:19|20)\d\d)(?!\d|[.,]\d|s\b)"
_NUMERIC = (
    r"(?<![\w.,/-])(?P<year>(?:19|20)\d\d)-(?P<m>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])(?![\d-])",
    r"(?<![\w.,/-])(?P<year>(?:19|20)\d\d)/(?P<m>0?[1-9]|1[0-2])/(?P<day>0?[1-9]|[12]\d|3[01])(?![\d/])",
    r"(?<![\w.,/-])(?P<day>0?[1-9]|[12]\d|3[01])\.\s?(?P<m>0?[1-9]|1[0-2])\.\s?(?P<year>(?:19|20)\d\d)(?!\d|\.\d)",
    r"(?<![\w.,/-])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<year>(?:19|20)\d\d)(?![\d/])",
)
NUMERIC = tuple(map(re.compile, _NUMERIC))
"""Numeric dates: 2024-03-05, 2024/03/05, 5.3.2024 and 3/5/2024. In the last form, day and month are ambiguous."""


@dataclass(frozen=True)
class Table:
    """The compiled date table of one language."""

    code: str
    blankless: bool
    words: frozenset[str]
    names: frozenset[str]
    months: Sequence[re.Pattern[str]]
    weekdays: Sequence[re.Pattern[str]]
    units: Mapping[str, re.Pattern[str]]
    numbers: Mapping[str, int]
    words_too: re.Pattern[str]
    patterns: Sequence[tuple[str, re.Pattern[str], int]]
    """The kind and the pattern of each form. For near days ("yesterday"), also the number of days from today."""
    before: Mapping[str, re.Pattern[str]]
    """Patterns for words before a date.

    The keys are "since", "until", "before", "after", "part", "street" and "or" (after another number or name).
    """
    joins: re.Pattern[str]
    """Words that join the two ends of an interval."""
    between: re.Pattern[str]
    and_: re.Pattern[str]
    yearly: re.Pattern[str]
    """Words for yearly events. In a sentence with such a word, a day is certain only if it includes a year."""
    followed: re.Pattern[str]
    """Words after a date that change its meaning."""
    tense: Mapping[str, re.Pattern[str]]
    asks: re.Pattern[str]
    asks_when: re.Pattern[str]
    attribute: re.Pattern[str]
    """Words before a time that describes a thing, as in "the photos of last week"."""
    goes_on: re.Pattern[str]
    """Prepositions that may follow the time, as in "last week in Rome"."""
    fillers: re.Pattern[str]
    tail: int
    """The largest number of words that may follow the time in a question. In German, verbs come last."""

    def count(self, word: str) -> int:
        """Return the number that a word or a string of digits means, or 0 for any other text."""
        value = self.numbers.get(word.lower())
        return value if value is not None else number(word)


def number(numeral: str) -> int:
    """Read a number from digits, or a number up to 99 or a year from Chinese numerals. Return 0 for any other text."""
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
    return {code: _table(code, read_table(f"text/data/dates/{code}.toml")) for code in CODES}


def _table(code: str, source: Mapping[str, Any]) -> Table:
    blankless = bool(source.get("blankless"))
    edge = "{}" if blankless else _EDGE
    placeholders = _placeholders(source)
    patterns = [("near", _compiled(edge, words, placeholders), days) for words, days in source["near"].items()]
    for kind, templates in source["patterns"].items():
        patterns += [(kind, _compiled(edge, template, placeholders), 0) for template in templates]
    articles = "" if blankless else r"(?:\s+(?:the|le|la|el|los|den|dem|der|l['’]|in|im|en|on|am))*"
    start, stop = ("", "") if blankless else (r"(?<![^\W_])", r"(?![^\W_])")
    before = {
        name: re.compile(rf"{start}(?:{source[name]}){articles}\W*$", re.IGNORECASE)
        for name in ("since", "until", "before", "after", "part", "street")
        if source.get(name)
    }
    names = _longest_first([*source["months"], *source["weekdays"]])
    joint = f"{source['or']}|{source['and']}|{source['to']}"
    more = rf"\s*(?:,|&|{source['or']}|{source['and']})\s*(?:0?[1-9]|[12]\d|3[01])(?:{source['ordinal']})?(?![\w:]|\s*[ap]\.?m)"
    blank = r"\s*" if blankless else r"\s+"
    number_or_name = rf"{start}(?:\d{{1,2}}(?:{source['ordinal']})?|{names})"
    before["or"] = re.compile(rf"{number_or_name}(?:\s*[,/]|{blank}(?:{joint})(?: the| el| den| le)?)\s*$", re.IGNORECASE)
    tense = {way: _compiled(edge, words, {}) for way, words in source["tense"].items()}
    questions = source["questions"]
    return Table(
        code,
        blankless,
        frozenset([*source["words"].split(), *source["numbers"], *_names(source)]),
        frozenset() if blankless else _names(source),
        [_exact(names) for names in source["months"]],
        [_exact(names) for names in source["weekdays"]],
        {unit: _exact(forms) for unit, forms in source["units"].items()},
        source["numbers"],
        _exact(source.get("words_too", "(?!)")),
        patterns,
        before,
        re.compile(rf"\s*(?:{source['to']})\s*(?:the |le |el |den |dem |am )?", re.IGNORECASE),
        re.compile(rf"{start}(?:{source['between']})\s*(?:the |le |el |dem )?$", re.IGNORECASE),
        re.compile(rf"\s*(?:{source['and']})\s*", re.IGNORECASE),
        _compiled(edge, source["yearly"], {}),
        re.compile(rf"\s*(?:{source['followed']}){stop}|{more}", re.IGNORECASE),
        tense,
        _compiled(edge, questions["asks"], {}),
        _compiled(edge, questions["silent"], {}),
        re.compile(rf"(?<![^\W_])(?:{questions['attribute']})\s*$", re.IGNORECASE),
        _compiled(edge, questions["goes_on"], {}),
        _compiled(edge, questions["fillers"], {}),
        questions["tail"],
    )


def _placeholders(source: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the pattern of each placeholder.

    {D} is a day of a month or a range of days, {DM} day and month in digits, {M} a month. {Y} is a year, {W} a weekday,
    {N} a number, {U} a unit, {C} a calendar unit.
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
    """Return the lower-case names of months and weekdays in all languages."""
    return frozenset(name for table in tables().values() for name in table.names)


def _names(source: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for names in (*source["months"], *source["weekdays"]) for name in names.split("|") if name.isalpha())


def _longest_first(names: Sequence[str]) -> str:
    return "|".join(sorted((form for each in names for form in each.split("|")), key=len, reverse=True))


def _compiled(edge: str, template: str, placeholders: Mapping[str, str]) -> re.Pattern[str]:
    for name, source in placeholders.items():
        template = template.replace(name, source)
    return re.compile(edge.format(f"(?:{template})") if edge == "{}" else edge.replace("{}", f"(?:{template})"), re.IGNORECASE)


def _exact(forms: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{forms})\Z", re.IGNORECASE)
