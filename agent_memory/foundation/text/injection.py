"""Detect text that reads like an instruction to a model.

The rules are patterns for common attacks. A match is not proof, so matching texts are held for
review. Users may want lasting instructions ("from now on, always …") to be remembered, so weak
rules skip text from users.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent_memory.foundation.core.tables import read_table
from agent_memory.foundation.text.cleaning.control_characters import plain_text
from agent_memory.foundation.text.stemming.unicode_forms import normalized

_INVISIBLE = dict.fromkeys(
    [0xAD, 0x180E, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xE0000, 0xE0080)]
)

_Needs = Sequence[Sequence[str]]
_SOURCE = read_table("text/data/injection/rules.toml")
_LONG, _SHARE = 4096, 40


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule from `data/injection/rules.toml`. Weak rules skip text from users."""

    name: str
    needs: _Needs
    pattern: re.Pattern[str]
    weak: bool


def _read_rules() -> list[Rule]:
    return [
        Rule(
            rule["name"],
            rule["needs"],
            re.compile("|".join(rule["patterns"]).replace("{RULES}", _SOURCE["rules"]), re.DOTALL),
            rule.get("weak", False),
        )
        for rule in _SOURCE["rule"]
    ]


_ALL = _read_rules()


def _has_one_of_each(plain: str, needs: _Needs) -> bool:
    # Search for words first, which is much cheaper than patterns. Plain loops, because this is the hot path.
    for words in needs:
        for word in words:
            if word in plain:
                break
        else:
            return False
    return True


def _plain(text: str) -> str:
    text = plain_text(text)  # as a prompt shows it
    if text.isascii():
        return text.lower()
    return normalized("NFKC", text).translate(_INVISIBLE).casefold()


def rules_for(texts: Iterable[str], *, of_user: bool) -> list[Rule]:
    """Return the rules that could match any of the texts.

    `of_user` is True if all of the texts come from users.
    """
    plain = _plain("\n".join(texts))
    return [rule for rule in _ALL if not (of_user and rule.weak) and _has_one_of_each(plain, rule.needs)]


def suspicion(text: str, *, of_user: bool, rules: Sequence[Rule] = _ALL) -> str | None:
    """Return the name of the first rule that the text triggers, or None."""
    if not rules:
        return None
    plain = _plain(text)
    applicable = [rule for rule in rules if not (of_user and rule.weak) and _has_one_of_each(plain, rule.needs)]
    if applicable and len(plain) > _LONG and sum(map(plain.count, _SOURCE["verbs"])) * _SHARE > len(plain):
        return "override"
    for rule in applicable:
        if rule.pattern.search(plain):
            return rule.name
    return None
