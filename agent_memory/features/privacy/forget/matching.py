"""Match statements of a text against a subject to forget, and remove them (pure).

A *subject* is a statement ("I am allergic to peanuts"), a thing ("my address") or a topic ("about Anna").
A statement matches if it has every content word of the subject in any form and is about the same person or thing:
"my address" is neither an e-mail address nor Anna's. Fewer words are only a possible match.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from agent_memory.features.privacy.forget.content_words import IDEOGRAPH, MOST_TEXT, content, coverage, forms, is_same_word
from agent_memory.features.privacy.forget.things import names_thing
from agent_memory.features.privacy.forget.word_lists import FIRST_PERSON, FUNCTION_WORDS, OWNERS, SECOND_PERSON
from agent_memory.foundation.text.languages.questions import without_interrogatives
from agent_memory.foundation.text.terms import STOP_WORDS, carries_information, fold, words

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"”’')\]]?\s+|(?<=[。！？؟।])|\n+")
_SHORT = re.compile(r"(?:\b(?:dr|mr|mrs|ms|prof|st|sr|sra|hr|fr|no|nr|vs|e\.g|i\.e|z\.b)\.)$", re.IGNORECASE)
# The beginning of a clause with its own subject.
_CLAUSE = re.compile(
    r"(?:[,;]\s*+|(?<!\s)\s++)(?:and|but|und|aber|y|pero|et|mais|e|ma)\s++(?=(?:i|i'm|i’m|i've|my|we|our|ich|mein\w*|wir|yo|mi|mis|je|j'\w+|mon|ma|mes|io)\b)"
    r"|(?<!\s)\s*+[;；]\s*+|，",
    re.IGNORECASE,
)
_ANY_CLAUSE = re.compile(
    r"(?:[,;]\s*+|(?<!\s)\s++)(?:and|but|und|aber|y|pero|et|mais|e|ma)\s++|(?<!\s)\s*+[;；，]\s*+|,\s++", re.IGNORECASE
)
_ABOUT = re.compile(
    r"^(?:(?:please\s+)?forget\s+)?(?:everything|anything|all|what(?:ever)?)?\s*(?:that\s+)?(?:(?:i|we)(?:['’]ve)?\s+(?:have\s+)?(?:ever\s+)?"
    r"(?:said|told\s+you|mentioned|wrote|talked|know|shared)\s+|you\s+(?:have\s+|know\s+|remember\s+|stored?\s+))?(?:to\s+you\s+)?about\s+",
    re.IGNORECASE,
)
_ABOUT_ELSEWHERE = re.compile(
    r"^(?:alles|was)\s+(?:was\s+)?(?:ich\s+)?(?:dir\s+)?über\s+(?P<de>.{1,200}?)(?:\s+(?:gesagt|erzählt|erwähnt)(?:\s+habe)?)?$"
    r"|^(?:todo\s+)?lo\s+que\s+(?:te\s+)?(?:dije|he\s+dicho|conté)\s+(?:sobre|de)\s+(?P<es>.{1,200})$"
    r"|^(?:tout\s+)?ce\s+que\s+j['’]ai\s+dit\s+(?:sur|de|à\s+propos\s+de)\s+(?P<fr>.{1,200})$"
    r"|^(?:所有)?(?:我说过的?)?关于(?P<zh>.{1,200}?)的?(?:一切|所有|事情|事|话)?$",
    re.IGNORECASE,
)
_FORGET = re.compile(r"^(?:please\s+)?forget\s+(?:that\s+|about\s+)?", re.IGNORECASE)
_LEADING = re.compile(r"^(?:that|dass|daß|que|the\s+fact\s+that)\s+", re.IGNORECASE)

_VERBS = re.compile(
    r"\b(?:am|is|are|was|were|be|have|has|had|bin|bist|ist|sind|war|habe|hat|soy|es|tengo|suis|est|ai)\b|['’]m\b|是|有|对|在", re.IGNORECASE
)
_PRONOUN = re.compile(r"^(?:i|we|he|she|they|you|ich|wir|er|sie|yo|je|j['’]|io|我)\b", re.IGNORECASE)
# Characters between the speaker and the content, without spaces: "我对花生", "私はピーナッツ".
_NEAR_SIGNS = 3


class Fit(IntEnum):
    """How a statement matches a subject."""

    NO = 0
    POSSIBLE = 1
    """It has some of the words, or all of them about something else."""
    MEANT = 2
    SAME = 3


@dataclass(frozen=True, slots=True)
class Subject:
    """What to forget. `about`: all that mentions it; `statement`: it makes a statement, else it names a thing."""

    text: str
    terms: tuple[str, ...]
    about: bool
    statement: bool

    @property
    def deictic(self) -> bool:
        """True if it names nothing: "that"."""
        return not self.terms


def subject_of(text: str, *, statement: bool | None = None, about: bool = False) -> Subject:
    """Return the subject of a request: "that I am allergic to peanuts", "my address", "what I said about Anna"."""
    bare = " ".join(text[:MOST_TEXT].split()).rstrip(".!。！ ")
    if match := _ABOUT.match(bare):
        # "Forget about my address" names a thing; "everything about my address", all that mentions it.
        about = about or not bare.lower().startswith(("forget about", "please forget about"))
        bare = bare[match.end() :]
    elif match := _ABOUT_ELSEWHERE.match(bare):
        about, bare = True, next(group for group in match.groups() if group)
    else:
        bare = _FORGET.sub("", bare)
    bare = without_interrogatives(_LEADING.sub("", bare)) if statement is None else _LEADING.sub("", bare)
    says = bool(_PRONOUN.match(bare) or _VERBS.search(bare)) if statement is None else statement
    return Subject(bare, tuple(dict.fromkeys(content(bare))), about, says and not about)


def statements(text: str) -> list[str]:
    """Return the sentences of a text in order."""
    parts: list[str] = []
    start, joined = 0, text[:MOST_TEXT]
    for match in _SENTENCE_END.finditer(joined):
        if _SHORT.search(joined[max(start, match.start() - 8) : match.start()]):
            continue
        parts.append(joined[start : match.end()])
        start = match.end()
    parts.append(text[start:])
    return [part for part in parts if part.strip()]


def fit(subject: Subject, statement: str, *, slot: str | None = None, owner: str | None = None) -> Fit:
    """Return how a sentence, or a fact with its `slot`, matches a subject; facts may name the user by id (`owner`)."""
    if subject.deictic:
        return Fit.NO
    share = coverage(subject.terms, statement)
    if slot is not None and not subject.statement and coverage(subject.terms, slot.replace("_", " ").replace(".", " ")) == 1.0:
        named = frozenset().union(*map(forms, subject.terms))
        extra = any(named.isdisjoint(forms(word)) for word in content(slot.replace("_", " ")))
        return Fit.POSSIBLE if extra else Fit.MEANT
    if share < 1.0:
        return Fit.POSSIBLE if share >= 0.5 and len(subject.terms) > 1 else Fit.NO
    said = content(statement)
    if len(set(said)) == len(set(subject.terms)):
        return Fit.SAME
    if subject.about:
        return Fit.MEANT
    if subject.statement:
        return Fit.MEANT if _same_person(subject, statement, owner) else Fit.POSSIBLE
    same = not IDEOGRAPH.search(statement) or _same_person(subject, statement, owner)
    return Fit.MEANT if same and names_thing(subject.text, statement) else Fit.POSSIBLE


def _same_person(subject: Subject, statement: str, owner: str | None) -> bool:
    """True if both are about one person; for a subject that says "I", nobody else is named before the content."""
    spoken = words(subject.text)
    if not FIRST_PERSON.intersection(spoken) and not any(sign in FIRST_PERSON for sign in subject.text):
        return True
    said = words(statement)
    if IDEOGRAPH.search(statement):
        # Somebody named between "我" and the content is another person: "我妹妹对…", "私の妹は…".
        own = next((at for at, sign in enumerate(statement) if sign in FIRST_PERSON), -1)
        terms = frozenset(subject.terms)
        first = next((at for at, sign in enumerate(statement) if at > own and sign in terms), own + 1)
        return first - own <= _NEAR_SIGNS
    persons = FIRST_PERSON | SECOND_PERSON | ({fold(owner)} if owner else set())
    if not OWNERS.isdisjoint(said[:2]):
        # "My daughter is …" is about the daughter, "my peanut allergy" about the allergy.
        ahead = next((word for word in said[1:] if word not in STOP_WORDS and word not in FUNCTION_WORDS), "")
        named = any(is_same_word(term, other) for term in subject.terms for other in content(ahead))
        return named or not {"i", "im", "ive", "ich", "yo", "je", "j", "io"}.isdisjoint(said)
    if persons.intersection(said):
        return True
    first = content(statement)[:1]
    return bool(first) and any(is_same_word(first[0], term) for term in subject.terms)


def strike(text: str, subjects: Sequence[Subject], others: Collection[str] = (), *, owner: str | None = None) -> str | None:
    """Return a text without sentences that match; None if no content is left, the text itself if none matches.

    Of a sentence, only matching clauses go if each stands alone or another fact (`others`) rests on the rest.
    """
    parts = statements(text)
    struck = {position for position, part in enumerate(parts) if _says(subjects, part, owner)}
    if not struck:
        window = _window(parts, subjects)
        if window is None:
            return text
        struck = set(window)
    kept: list[str] = []
    for position, part in enumerate(parts):
        rest = _without_clauses(part, subjects, others, owner) if position in struck else part
        if rest:
            kept.append(rest)
    left = "".join(kept).strip()
    return left if left and carries_information(left) else None


def _says(subjects: Sequence[Subject], statement: str, owner: str | None) -> bool:
    return any(fit(subject, statement, owner=owner) >= Fit.MEANT for subject in subjects)


def _window(parts: Sequence[str], subjects: Sequence[Subject]) -> range | None:
    """Return two sentences that have all words of a subject only together."""
    return next(
        (range(at, at + 2) for at, pair in enumerate(pairwise(parts)) if any(says_together(subject, *pair) for subject in subjects)), None
    )


def says_together(subject: Subject, one: str, other: str) -> bool:
    """True if two sentences have all words of a subject, but neither alone."""
    terms = subject.terms
    return bool(terms) and coverage(terms, f"{one} {other}") == 1.0 and max(coverage(terms, one), coverage(terms, other)) < 1.0


def _without_clauses(part: str, subjects: Sequence[Subject], others: Collection[str], owner: str | None) -> str:
    """Return the clauses of a matching sentence that stay: independent ones, or the source of another fact."""
    ending, part = part[len(part.rstrip()) :], " ".join(part.split())
    for pattern, needs_fact in ((_CLAUSE, False), (_ANY_CLAUSE, True)):
        clauses = [clause.strip() for clause in pattern.split(part) if clause.strip()]
        rest = [clause for clause in clauses if not _says(subjects, clause, owner)]
        said = ", ".join(rest)
        if not rest or len(rest) == len(clauses) or not carries_information(said):
            continue
        if needs_fact and not any(rests_on(other, said) for other in others):
            continue
        stop = "" if said[-1] in ".!?。！？" else "。" if IDEOGRAPH.search(said) else "."
        return said[0].upper() + said[1:] + stop + ending
    return ""


def rests_on(fact: str, said: str, least: float = 0.5) -> bool:
    """True if enough of a fact's content words (a share) are in `said`."""
    return coverage(list(dict.fromkeys(content(fact))), said) >= least
