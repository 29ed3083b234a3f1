"""Describe pydantic's validation errors in plain words, without including the invalid values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

_NEEDED = MappingProxyType(
    {
        "bool": "must be true or false",
        "date": "must be a date, such as 2026-11-27",
        "datetime": "must be a time in ISO 8601, such as 2026-11-27T09:00:00Z",
        "dict": "must be an object",
        "float": "must be a number",
        "frozen_set": "must be a list",
        "int": "must be a whole number",
        "list": "must be a list",
        "mapping": "must be an object",
        "model": "must be an object",
        "set": "must be a list",
        "string": "must be a string",
        "tuple": "must be a list",
    }
)
# Error types that name a type, such as int_parsing. The messages of all other error types already name the limit.
_TYPE = re.compile(r"([a-z_]+?)_(?:attributes_type|type|parsing|parsing_size|from_[a-z_]+)")
_WORDS = (
    (re.compile(r"^(?:Value error|Assertion failed), "), ""),
    (re.compile(r"^Field required$"), "is required: add it"),
    (re.compile(r"^Extra inputs are not permitted$"), "is not a known key: correct or remove it"),
    (re.compile(r"^[A-Z][a-z]+ should "), "must "),
    (re.compile(r" after validation(?=, not )"), ""),
    (re.compile(r"\bgreater than or equal to\b"), "at least"),
    (re.compile(r"\bless than or equal to\b"), "at most"),
)
# A part of `loc` that names a union's alternative: a type such as `list[str]`, or a model.
_ALTERNATIVE = re.compile(r"bool|int|float|str|date|datetime|[\w-]+\[.*\]", re.DOTALL)
_MODEL = re.compile(r"[A-Z][A-Za-z]+")


def plain_problems(problems: ValidationError | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each problem's `type`, `loc` and plain `msg`. Idempotent.

    Problems with the alternatives in a union become one problem.
    """
    if isinstance(problems, ValidationError):
        problems = problems.errors(include_url=False, include_input=False, include_context=False)
    plain: list[dict[str, Any]] = []
    for loc, group in groupby(_without_branches(problems), key=_place):
        alternatives = [{"type": problem["type"], "loc": problem["loc"], "msg": _plain(problem)} for problem in group]
        first, *others = alternatives
        if others and len({problem["loc"] for problem in alternatives}) == len(alternatives):
            texts = dict.fromkeys(problem["msg"].removeprefix("must be ") for problem in others)
            alternatives = [{**first, "loc": loc, "msg": ", or ".join((first["msg"], *texts))}]
        plain += alternatives
    return plain


def problem_line(error: ValidationError) -> str:
    """Describe all problems in one line, with each field and its requirement."""
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}".removeprefix(": ") for problem in plain_problems(error))


def _without_branches(problems: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Remove the model names in unions from `loc`.

    If a model's fields have problems, the other alternatives are omitted.
    """
    problems = list(problems)
    unions = {tuple(problem["loc"][:-1]) for problem in problems if _place(problem) != tuple(problem["loc"])}
    chosen: set[tuple[str | int, ...]] = set()
    plain: list[Mapping[str, Any]] = []
    for problem in problems:
        loc = tuple(problem["loc"])
        cuts = (at for at in range(1, len(loc)) if loc[:at] in unions and isinstance(loc[at], str) and _MODEL.fullmatch(loc[at]))
        at = next(cuts, 0)
        if at and loc[at + 1 :]:
            chosen.add(loc[:at])
        plain.append({**problem, "loc": (*loc[:at], *(loc[at + 1 :] or ("model[]",)))} if at else problem)
    return [problem for problem in plain if _place(problem) == tuple(problem["loc"]) or tuple(problem["loc"][:-1]) not in chosen]


def _place(problem: Mapping[str, Any]) -> tuple[str | int, ...]:
    *place, last = problem["loc"] or ("",)
    return tuple(place) if place and isinstance(last, str) and _ALTERNATIVE.fullmatch(last) else tuple(problem["loc"])


def _plain(problem: Mapping[str, Any]) -> str:
    kind = _TYPE.fullmatch(problem["type"])
    text = _NEEDED.get(kind[1]) if kind else None
    return plain_words(problem["msg"]) if text is None else text


def plain_words(text: str) -> str:
    """Convert a pydantic message to plain words."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text
