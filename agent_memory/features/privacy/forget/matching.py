"""Decide which statements a forget request refers to. Pure functions, no I/O.

A sentence certainly matches a subject if it contains all of the subject's content words in any
form, is about the same person, and agrees with the subject on negation.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

from agent_memory.features.privacy.forget.content_words import MOST_TEXT, content, content_forms, coverage, forms, shared
from agent_memory.features.privacy.forget.word_lists import (
    FIRST_PERSON,
    FUNCTION_WORDS,
    NEGATION_SIGNS,
    NEGATIONS,
    OWNERS,
    SECOND_PERSON,
    SPEAKERS,
    THIRD_PERSON,
)
from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.languages.questions import without_interrogatives
from agent_memory.foundation.text.passages.sentences import split_sentences
from agent_memory.foundation.text.terms import fold, is_blankless, words
from agent_memory_client.models import MemoryMessage

_CLAUSE = re.compile(r"[,;:，；：、]|\s[-–—]\s")
_NEGATED_ENDING = re.compile(r"\w(?:n['’]t\b|ない|ません)")
# In scripts without spaces, the maximum number of characters from the speaker to the content, as in "我对花生", "私はピーナッツ".
_NEAR_SIGNS = 3
# A word in more statements than this does not distinguish them. In long sessions, counting it would take minutes.
_MOST_SAYING = 32


@dataclass(frozen=True, slots=True)
class Subject:
    """What to forget.

    If `about` is true, the subject covers every text that mentions it. `is_thing` is true for
    things and people, and false for statements.
    """

    text: str
    terms: tuple[str, ...]
    about: bool = False
    is_thing: bool = False

    @property
    def is_name(self) -> bool:
        """True if the subject is just a name."""
        return self.is_thing and (self.text.istitle() or len(words(self.text)) == 1)

    @property
    def deictic(self) -> bool:
        """True if the subject has no content words, as in "forget that"."""
        return not self.terms


def subject_of(text: str, *, about: bool = False) -> Subject:
    """Parse the subject from text such as "my address" or "Anna"."""
    bare = without_interrogatives(" ".join(text[:MOST_TEXT].split()).rstrip(".!。！ "))
    text_words = words(bare)
    named = (
        (len(text_words) == 1 and not is_blankless(bare))
        or bare.istitle()
        or "'s " in bare
        or "’s " in bare
        or bare[:2] in ("我的", "私の")
    )
    is_thing = named or text_words[:1] in (["the"], *([owner] for owner in OWNERS))
    return Subject(bare, tuple(dict.fromkeys(content(bare))), about, is_thing and not about)


def requested(text: str) -> Subject:
    """Return the subject of a text, which may be phrased as a forget request."""
    request = next((each for each in (memory_request(text), memory_request(f"forget {text}")) if each and each.kind == "forget"), None)
    return subject_of(text) if request is None else subject_of(request.subject, about=request.about)


def subject_to_forget(message: MemoryMessage) -> Subject | None:
    """Return what the user asks to forget, or None if the message is not a forget request."""
    request = memory_request(message.content) if message.role == "user" else None
    return subject_of(request.subject, about=request.about) if request is not None and request.kind == "forget" else None


def sentences(text: str) -> list[str]:
    return split_sentences(text[:MOST_TEXT])


def states(subject: Subject, sentence: str, *, slot: str | None = None, owner: str | None = None) -> bool:
    """True if a sentence, or a fact with this `slot`, certainly matches the subject.

    Facts may refer to the user by id (`owner`).
    """
    if slot is not None and subject.is_thing and not subject.deictic:
        named = slot.replace("_", " ").replace(".", " ")
        if coverage(subject.terms, named) == coverage(content(named), subject.text) == 1.0:
            return True
    if coverage(subject.terms, sentence) < 1.0:
        return False
    if subject.about:
        return True
    if _is_negated(sentence, subject) != _is_negated(subject.text, subject):
        return False
    people = FIRST_PERSON | SECOND_PERSON | ({fold(owner)} if owner else set())
    if _names(FIRST_PERSON, subject.text) and _names(THIRD_PERSON, sentence) and not _names(people, sentence):
        return False
    if content(sentence) == subject.terms:
        return True
    if not _is_same_person(subject, sentence, people):
        return False
    return subject.is_name or not (subject.is_thing and _names_more(subject, sentence))


def _names(people: frozenset[str], text: str) -> bool:
    """True if a text mentions any of these people."""
    return not people.isdisjoint([*words(text), *filter(is_blankless, text)])


def _is_negated(sentence: str, subject: Subject) -> bool:
    clauses = [clause for clause in _CLAUSE.split(sentence) if shared(subject.terms, clause)]
    return any(
        not NEGATIONS.isdisjoint(words(clause)) or not NEGATION_SIGNS.isdisjoint(clause) or _NEGATED_ENDING.search(clause)
        for clause in clauses
    )


def _names_more(subject: Subject, sentence: str) -> bool:
    """True if the preceding word makes it a different thing, as in "email address"."""
    own = frozenset().union(*map(forms, subject.terms))
    sentence_words = words(sentence)
    named = [not own.isdisjoint(content_forms(word)) for word in sentence_words]
    first = named.index(True) if True in named else 0
    return first > 0 and not is_blankless(sentence_words[first]) and bool(content(sentence_words[first - 1]))


def _is_same_person(subject: Subject, sentence: str, people: frozenset[str]) -> bool:
    if FIRST_PERSON.isdisjoint(words(subject.text)) and FIRST_PERSON.isdisjoint(subject.text):
        return True
    sentence_words = words(sentence)
    if any(map(is_blankless, sentence_words)):
        # A longer text between "我" and the content names another person: "我妹妹对…", "私の妹は…".
        own = next((at for at, sign in enumerate(sentence) if sign in FIRST_PERSON), -1)
        signs = frozenset("".join(subject.terms))
        first = next((at for at, sign in enumerate(sentence) if at > own and sign in signs), own + 1)
        return first - own <= _NEAR_SIGNS
    ahead = next(iter(content(next((word for word in sentence_words if word not in FUNCTION_WORDS), ""))), "")
    begins = any(not forms(ahead).isdisjoint(forms(term)) for term in subject.terms)
    if not OWNERS.isdisjoint(sentence_words[:2]):
        # "My daughter is …" is about another person, "my peanut allergy" about the user's allergy.
        return begins or not SPEAKERS.isdisjoint(sentence_words)
    return begins or not people.isdisjoint(sentence_words)


def name_different_things(subject: Subject, texts: Iterable[str]) -> bool:
    """True if the texts use the same name for different things, judging by their other words."""
    first: set[str] | None = None
    for text in texts:
        other_terms = set(content(text)).difference(subject.terms)
        if first is None:
            first = other_terms
        elif other_terms and first and len(other_terms & first) * 2 < min(len(other_terms), len(first)):
            return True
        else:
            first |= other_terms
    return False


def guesses(subject: Subject, texts: Sequence[str]) -> list[tuple[float, int, str]]:
    """Return (score, text index, sentence) for each sentence in the texts.

    The score (0 to 1) is the fraction of the subject's words in the sentence, weighted by rarity.
    """
    parts = [(at, part, shared(subject.terms, part)) for at, text in enumerate(texts) for part in sentences(text)]
    counts = Counter(term for _, _, shared_terms in parts for term in shared_terms)
    weights = {term: log(1 + len(parts) / count) for term, count in counts.items()}
    total = sum(weights.values()) or 1.0
    return [(sum(weights[term] for term in shared_terms) / total, at, part) for at, part, shared_terms in parts]


def values_of(statements: Iterable[str], elsewhere: Iterable[str]) -> list[str]:
    """Return the content words in `statements` that do not occur in `elsewhere`."""
    have = frozenset().union(*map(content_forms, elsewhere))
    return [word for word in dict.fromkeys(word for text in statements for word in content(text)) if have.isdisjoint(forms(word))]


def repetitions(messages: Sequence[tuple[str, str, bool]]) -> list[int]:
    """Return the indexes of messages in which the assistant repeats a deleted statement.

    `messages` contains (role, text, deleted) tuples in order. A message repeats a statement if it
    contains a word unique to that statement, or if it resembles the statement more than any other
    user message.
    """
    users = [(at, text, goes) for at, (role, text, goes) in enumerate(messages) if role == "user"]
    first = min((at for at, _, goes in users if goes), default=len(messages))
    # Ignore words that the assistant used before. Otherwise, a deletion clears 8.2 answers on average in BEAM, not 2.3.
    earlier = frozenset[str]().union(*(content_forms(text) for role, text, _ in messages[:first] if role == "assistant"))
    statements = [text for _, text, goes in users if goes]
    own = [word for word in values_of(statements, [text for _, text, goes in users if not goes]) if earlier.isdisjoint(forms(word))]
    places_by_word: defaultdict[str, set[int]] = defaultdict(set)
    for place, text, _ in users:
        for word in content(text):
            if earlier.isdisjoint(forms(word)):
                places_by_word[word].add(place)
    in_form: defaultdict[str, set[str]] = defaultdict(set)
    for word in places_by_word:
        for form in forms(word):
            in_form[form].add(word)
    repeated: list[int] = []
    for at, (role, text, goes) in enumerate(messages):
        if role != "assistant" or goes or at < first:
            continue
        likeness: defaultdict[int, float] = defaultdict(float)
        for word in {word for form in content_forms(text) for word in in_form.get(form, ())}:
            for place in places_by_word[word] if len(places_by_word[word]) <= _MOST_SAYING else ():
                likeness[place] += log(1 + len(users) / len(places_by_word[word]))
        nearest = max(likeness, key=lambda place: (likeness[place], place if place < at else -place), default=None)
        if nearest is not None and (messages[nearest][2] or shared(own, text)):
            repeated.append(at)
    return repeated
