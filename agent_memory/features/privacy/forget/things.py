"""Decide whether a statement is about the very thing named: "my address", "my brother's falcons" (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from agent_memory.features.privacy.forget.content_words import IDEOGRAPH, content, is_same_word
from agent_memory.features.privacy.forget.word_lists import (
    BEFORE_THINGS,
    DETERMINERS,
    FIRST_PERSON,
    FOREIGN_FIRST_PERSON,
    OWNERS,
    SECOND_PERSON,
)
from agent_memory.foundation.text.terms import fold, stems, words

# An owner before "'s", or after a preposition or an article in the genitive.
_AHEAD = re.compile(r"^(?P<owner>[^'’]{1,80})['’]s?\s(?P<thing>[^'’]{1,80})$")
_BEHIND = re.compile(
    r"^(?P<thing>[^,;:]{1,80}?)\s(?:(?:of|des|der|von|vom|de|del|du|di|da|do|della|dei|van)\s|d['’])(?P<owner>[^,;:]{1,80})$"
    r"|^(?P<named>[^,;:]{1,80}?)\s(?P<own>(?:meine[srn]|unsere[srn]|unsres)\s[^,;:]{1,80})$",
    re.IGNORECASE,
)
# A thing with a description: "my PIN for the safe", "der Code für das Tor".
_TOLD_BY = re.compile(
    r"^(?P<thing>[^,;:]{1,80}?)\s(?P<how>for|to|with|from|in|on|at|by|about|under|behind|near|between|against"
    r"|für|mit|aus|im|am|an|auf|unter|bei|gegen|para|con|en|sobre|contra|pour|avec|dans|sur|sous|chez|contre)\s(?P<by>[^,;:]{1,80})$",
    re.IGNORECASE,
)
# A kind and a name: "my brother Caspian".
_NAMED = re.compile(r"^(?P<kind>\S[^,;:]{0,80}?)\s(?P<name>[^\W\d_a-z][\w'’-]{1,40})$")
_NAMING_WORDS = """
is are was s name names named called user users ist war heisst namens es se llama llamado llamada est appelle nomme nommee si chiama chama
chamado chamada heet nazywa imie nazwie зовут
"""
_NAMING = frozenset(map(fold, _NAMING_WORDS.split()))
_OF = frozenset(["of", "for", "to", "on"])
# Longer names are no things; matching would try every cut at every place.
_MOST_WORDS = 32
# Each place of a thing is compared with those of its owner.
_MOST_PLACES = 32
_VERBS = frozenset(["changed", "moved", "lives", "ends", "begins", "starts", "means"])


def names_thing(named: str, statement: str) -> bool:
    """True if a thing is named itself: "my address is …", not "my email address" or "address book".

    A thing of another may be apart from it: "My brother Caspian keeps falcons" matches "my brother's falcons".
    """
    if any(IDEOGRAPH.search(word) for word in _thing_words(named)) or _names_person(named, statement):
        return True
    if len(words(named)) > _MOST_WORDS:
        return False
    said = words(statement)
    foreign = not FOREIGN_FIRST_PERSON.isdisjoint([*words(named), *said])
    told = _TOLD_BY.match(named)
    # "The dentist's daughter" is not the dentist of an appointment.
    places = [(at, size) for at, size in _places(named, said) if told is None or said[at + size : at + size + 1] != ["s"]]
    if any(_stands_alone(named, said, at, size, statement, foreign=foreign) for at, size in places):
        return True
    if (match := _NAMED.match(named)) is not None and _names_by_name(match["kind"], fold(match["name"]), said, statement, foreign=foreign):
        return True
    if told is not None and _names_told_by(told, said, statement, foreign=foreign):
        return True
    match = _AHEAD.match(named) or _BEHIND.match(named)
    if match is None:
        return _names_compound(named, statement, foreign=foreign)
    parts = match.groupdict()
    # "The number of my locker" is "my locker number".
    compound = _places(f"{parts['owner']} {parts['thing']}", said) if parts["owner"] else []
    if any(_stands_alone(named, said, at, size, statement, foreign=foreign) for at, size in compound):
        return True
    return _names_both(parts["owner"] or parts.get("own") or "", parts["thing"] or parts.get("named") or "", statement, foreign=foreign)


def _names_compound(named: str, statement: str, *, foreign: bool) -> bool:
    """True if the last words of a thing come first: "the combination of my bike lock"."""
    spoken, said = named.split(), words(statement)
    for cut in range(1, len(spoken)):
        owner, thing = " ".join(spoken[:cut]), " ".join(spoken[cut:])
        first = min((at for at, _ in _places(owner, said)), default=-1)
        ahead = any(at + size < first and said[at + size] in _OF for at, size in _places(thing, said))
        if ahead and _names_both(owner, thing, statement, foreign=foreign):
            return True
    return False


def _names_person(named: str, statement: str) -> bool:
    """True if a bare name ("Lorenzo") occurs as a name."""
    return named.istitle() and re.search(rf"\b{re.escape(named)}\b", statement) is not None


def _names_by_name(kind: str, name: str, said: Sequence[str], statement: str, *, foreign: bool) -> bool:
    """True if a kind gets this name: "My brother is called Caspian" for "my brother Caspian"."""
    for at, size in _places(kind, said):
        end = at + size
        behind = next((place for place in range(end, len(said)) if said[place] not in _NAMING), end)
        named = said[behind : behind + 1] == [name] and said[behind + 1 : behind + 2] != ["s"]
        if named and _is_same_owner(kind, said, at) and _stands_alone(kind, said[:behind], at, size, statement, foreign=foreign):
            return True
    return False


def _names_told_by(told: re.Match[str], said: Sequence[str], statement: str, *, foreign: bool) -> bool:
    """True if a thing is named and then what describes it: "My PIN for the safe is 6021"."""
    thing, by, how = told["thing"], told["by"], fold(told["how"])
    ends = [at + size for at, size in _places(thing, said) if _stands_alone(thing, said[: at + size], at, size, statement, foreign=foreign)]
    for place, length in _places(by, said) if ends else ():
        after = said[place + length] if place + length < len(said) else ""
        another = after == "s" or (not foreign and content(after) and _is_noun_like(statement, after))
        if not another and not _owned_by_another(by, said, place):
            between = [said[end:place] for end in ends if end <= place]
            if any(all(word == how or not content(word) for word in each) for each in between):
                return True
    return False


def _thing_words(named: str) -> list[str]:
    return [word for word in words(named) if content(word)]


def _places(named: str, said: Sequence[str]) -> list[tuple[int, int]]:
    """Return (position, size) where a thing's content words stand together, or as written ("mot de passe")."""
    spoken, stemmed = words(named), [_stem(word) for word in said]
    content_at = [at for at, word in enumerate(spoken) if content(word)]
    if not content_at:
        return []
    whole = spoken[content_at[0] : content_at[-1] + 1]
    things = dict.fromkeys(tuple(map(_stem, thing)) for thing in ([spoken[at] for at in content_at], whole))
    places = (
        (at, len(thing))
        for thing in things
        for at in range(len(said) - len(thing) + 1)
        if all(is_same_word(one, stemmed[at + place]) for place, one in enumerate(thing))
    )
    return list(islice(places, _MOST_PLACES))


def _stands_alone(named: str, said: Sequence[str], at: int, size: int, statement: str, *, foreign: bool) -> bool:
    before, after = said[at - 1] if at else "", said[at + size] if at + size < len(said) else ""
    alone = not content(before) or before in BEFORE_THINGS or before in SECOND_PERSON | FIRST_PERSON
    ends = foreign or not content(after) or after[:1].isdigit() or not _is_noun_like(statement, after)
    return alone and ends and not _owned_by_another(named, said, at)


def _names_both(owner: str, thing: str, statement: str, *, foreign: bool) -> bool:
    """True if an owner is named itself and the thing beside it, not in a compound ("an email address")."""
    said = words(statement)
    for at, size in _places(owner, said):
        before, after = said[at - 1] if at else "", said[at + size] if at + size < len(said) else ""
        alone = not content(before) or before in BEFORE_THINGS
        ends = foreign or not content(after) or after.endswith("s") or not _is_noun_like(statement, after)
        if alone and ends and _is_same_owner(owner, said, at):
            taken = range(at, at + size)
            return any(_is_beside(said, place, more, taken, foreign=foreign) for place, more in _places(thing, said))
    return False


def _is_same_owner(owner: str, said: Sequence[str], at: int) -> bool:
    """True unless the owner is somebody else's: "my brother" is not Anna's."""
    mine = not FIRST_PERSON.isdisjoint(words(owner))
    before = said[at - 1] if at else ""
    return not _owned_by_another(owner, said, at) and (not mine or before in OWNERS or before in ("s", *BEFORE_THINGS, *SECOND_PERSON))


def _is_beside(said: Sequence[str], at: int, size: int, owner: range, *, foreign: bool) -> bool:
    """True if a thing is its owner's: right before ("the address of my brother"), or behind with nobody between."""
    if at < owner.start:
        return not any(content(word) for word in said[at + size : owner.start])
    between = said[owner.stop : at]
    if "s" in between[1:] or not FIRST_PERSON.isdisjoint(between):
        return False
    ahead = at - 1
    while ahead not in owner and content(said[ahead]) and said[ahead] not in BEFORE_THINGS:
        ahead -= 1
    return foreign or ahead in (at - 1, owner.stop - 1) or said[ahead] not in DETERMINERS


def _owned_by_another(named: str, said: Sequence[str], at: int) -> bool:
    """True if somebody else has the thing: "Anna's address" is split into "anna", "s"."""
    owner = said[at - 1] if at else ""
    mine = not FIRST_PERSON.isdisjoint(words(named))
    if owner == "s" and at > 1:
        return said[at - 2] not in ("user", "users")
    return mine and owner in ("his", "her", "their", "sein", "ihre", "seine", "ihr")


def _is_noun_like(statement: str, word: str) -> bool:
    """True if a word behind a thing may form a compound with it: lower case and no verb."""
    return word not in _VERBS and not word.endswith("ed") and word.islower() and word in statement


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    return (stems(word) or [word])[0] if word.isascii() else word
