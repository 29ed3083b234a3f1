"""Extract a fact's words, names and numbers, and look for them in messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from agent_memory.foundation.text.numbers import DATE_WORDS, Number, is_number_word, month_numbers, numbers
from agent_memory.foundation.text.terms import STOP_WORDS, fold, stems, words

_SCRIPT_WITHOUT_BLANKS = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_PARTICLES = frozenset("のはがをにでとたてるいすまだ的了是在个個我你他她们們有和不就也都很一")
# Facts use these words for the speaker. Speakers do not use them for themselves, so messages do not contain them.
_SPEAKER_WORDS = """
user users assistant assistants nutzer nutzers nutzerin benutzer benutzerin anwender usuario usuaria utilisateur utilisatrice utente
gebruiker utilizador utilizadora uzytkownik uzytkownika uzytkowniczka uzytkowniczki kullanici kullanıcı kullanıcının kullanıcıya kullanıcıyı
пользователь пользователя пользователю пользователем пользовательница المستخدم المستخدمة للمستخدم للمستخدمة उपयोगकर्ता यूज़र
assistent asistente said says
"""
_SPEAKERS = frozenset(map(fold, _SPEAKER_WORDS.split()))
_SPEAKERS_WITHOUT_BLANKS = re.compile("用户|用戶|使用者|利用者|ユーザー|사용자|助手|アシスタント")
# Facts use these words for "I'm" or "my", so they say little about whether a message supports the fact.
_LIGHT_WORDS = """
live work own like want prefer plan use go get take make name call tell know keep currently also now
wohnt heisst mag vive tiene gusta habite aime appelle
"""
_LIGHT = frozenset(stems(_LIGHT_WORDS))
_ENDING_WORDS = """
former formerly ex quit quits left leaves stopped stops ended sold lost cancelled canceled dislikes hates hate dislike avoids against used
fruher ehemals hasst antes odia detesta ancien deteste
"""
_ENDINGS = frozenset(_ENDING_WORDS.split())
_TITLES = frozenset({"i", "mr", "mrs", "ms", "miss", "dr", "prof", "am", "pm", "utc", "st"}) | _SPEAKERS
_GERMAN_WORDS = "der und ist nicht dem eine einen einer seit wird zum zur vom bei ein sich"
_GERMAN = frozenset(_GERMAN_WORDS.split())
DENIALS = r"not|no|never|none|nobody|nothing|neither|nor|without|cannot|\w+n['’]t|nicht|kein\w*|nie|pas|jamais|nunca"
_DENIES = re.compile(rf"\b(?:{DENIALS}|nein|non|nee|nej|не|нет|não|geen|nessun\w*)\b|[不没無无]|ない|ません|안", re.IGNORECASE)
_KIND = re.compile(
    r"\b(?:is|am|are|was|were|ist|bin|sind|war|est|suis|es|soy|è|é)\s+(?:an?|eine?|une?|una?|um|uma)\s+([^.,;:!?\n]{1,200})", re.IGNORECASE
)
_NAME = re.compile(r"[^\W\d_][\w]*+")
_ENDS = ".!?:;\"“”„«»'‘([{\n"
_MOST_CHARS = 16_384
# Forms of one word share a prefix of at least this many characters.
_LEAST_ALIKE = 4
# Forms of an Arabic word differ at the beginning: by "and", the article, or the person of a verb.
_ARABIC = re.compile("[\u0621-\u064a]")
_ARABIC_AHEAD = re.compile("^[وف]?(?:ال|[أاتين])?(?=[\u0621-\u064a]{3})")
_ALIKE = 0.6
_YEARS_AROUND = 2
_MAGNITUDES = {"k": 3, "thousand": 3, "tausend": 3, "mil": 3, "mille": 3, "hundred": 2, "million": 6, "millions": 6, "millionen": 6, "m": 6}
_CHINESE_MAGNITUDES = {"千": 3, "万": 4, "萬": 4, "億": 8, "亿": 8}


@dataclass(frozen=True, slots=True)
class Claim:
    words: frozenset[str]
    """Stems of the content words. Non-ASCII words are not stemmed."""
    names: frozenset[str]
    """Folded names: entities and, except in German, words capitalized within a sentence."""
    numbers: Sequence[Number]
    denies: bool
    kinds: frozenset[str] = frozenset()
    """The words after "is a", such as "musician"."""

    @classmethod
    def of(cls, text: str, entities: Iterable[str] = ()) -> Claim:
        """Extract the claim from a text. Ignore entities that do not occur in the text."""
        plain = _SPEAKERS_WITHOUT_BLANKS.sub(" ", text)
        folded = words(plain)
        names: set[str] = set()
        if _GERMAN.isdisjoint(folded):
            names.update(fold(name) for name in _capitalized(plain))
        lowered = fold(plain)
        for entity in entities:
            if (entity[:1].isupper() or _SCRIPT_WITHOUT_BLANKS.match(entity)) and fold(entity) in lowered:
                names.update(words(entity))
        names = {name for name in names if name not in DATE_WORDS and name not in _TITLES and name not in STOP_WORDS}
        content = frozenset(_content(folded))
        kind = _KIND.search(plain)
        return cls(
            frozenset(word for word in content if word not in _LIGHT) or content,
            frozenset(names),
            numbers(plain),
            _DENIES.search(text) is not None,
            frozenset() if kind is None else frozenset(_content(words(kind[1]))),
        )

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.names or self.numbers)


@dataclass(frozen=True)
class Wording:
    """The words in one or more messages."""

    text: str
    stated_at: datetime
    role: str = "user"

    @cached_property
    def words(self) -> frozenset[str]:
        """The folded words in the text and role, including stop words."""
        return frozenset(words(f"{self.text} {self.role}"))

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(stems(f"{self.text} {self.role}"))

    @cached_property
    def content(self) -> frozenset[str]:
        return frozenset(_content(words(self.text)))

    @cached_property
    def numbers(self) -> Sequence[Number]:
        return numbers(self.text)

    @cached_property
    def _values(self) -> frozenset[str]:
        values = {number.value for number in self.numbers}
        powers = {_MAGNITUDES[word] for word in re.findall(r"[^\W\d_]++", fold(self.text)) if word in _MAGNITUDES}
        powers.update(power for char, power in _CHINESE_MAGNITUDES.items() if char in self.text)
        scaled = {f"{float(value) * 10**power:.0f}" for value in values if len(value) < 12 for power in powers}
        return frozenset(values | scaled)

    @cached_property
    def _months(self) -> frozenset[str]:
        return frozenset(month_numbers(self.text))

    @cached_property
    def _arabic(self) -> frozenset[str]:
        return frozenset(_ARABIC_AHEAD.sub("", word) for word in self.words if _ARABIC.match(word))

    @cached_property
    def _beginnings(self) -> dict[str, list[str]]:
        beginnings: dict[str, list[str]] = {}
        for word in self.words:
            if len(word) >= _LEAST_ALIKE:
                beginnings.setdefault(word[:_LEAST_ALIKE], []).append(word)
        return beginnings

    def holds_word(self, word: str) -> bool:
        """True if the messages contain `word` (a stem or name) or one with a long common prefix."""
        if word in self.stems or word in self.words:
            return True
        if _ARABIC.match(word) and _ARABIC_AHEAD.sub("", word) in self._arabic:
            return True
        candidates = self._beginnings.get(word[:_LEAST_ALIKE], ())
        return any(_alike(word, other) for other in candidates)

    def holds_number(self, number: Number) -> bool:
        """True if the messages contain the number, or mention a time that implies it.

        For example, "tomorrow" implies a day, and "in 3 years" implies a year.
        """
        if number.value in self._values:
            return True
        kinds = {other.kind for other in self.numbers}
        if number.kind == "year":
            difference = str(abs(int(number.value) - self.stated_at.year))
            return int(difference) <= _YEARS_AROUND or difference in self._values
        if number.kind == "date":
            return number.value in self._months or "date" not in kinds
        if number.kind == "clock":
            return self._holds_time(int(number.value), exact="clock" in kinds)
        return False

    def _holds_time(self, part: int, *, exact: bool) -> bool:
        """True if the messages imply this hour or minute. "Half past three" implies 30."""
        values = {int(value) % 12 for value in self._values if value.isdigit() and len(value) <= 2}
        if part % 12 in values or part == 0:
            return True
        return not exact and bool(values) and (part in (15, 30, 45) or (part + 1) % 12 in values)


def joined(wordings: Sequence[Wording]) -> Wording:
    """Combine wordings into one that has the latest time."""
    return Wording(
        "\n".join(w.text for w in wordings), max(w.stated_at for w in wordings), " ".join(dict.fromkeys(w.role for w in wordings))
    )


def says_same(text: str, other: str) -> bool:
    """True if two facts for the same slot have the same value.

    Names, numbers and content words must match, and dates must not conflict. If there is a name or
    number, half of the longer fact's words after the common prefix are enough. The values differ if
    only one fact denies something or says that it has ended. Only the first 16,384 characters
    matter.
    """
    text, other = text[:_MOST_CHARS], other[:_MOST_CHARS]
    first, second = Claim.of(text), Claim.of(other)
    if first.denies != second.denies or _ends_something(text) != _ends_something(other):
        return False
    values = [{number.value for number in claim.numbers} for claim in (first, second)]
    if first.names != second.names or values[0] != values[1]:
        return False
    days = [frozenset(stems(" ".join(DATE_WORDS.intersection(words(claimed))))) for claimed in (text, other)]
    if days[0] and days[1] and days[0] != days[1]:
        return False
    if first.words == second.words:
        return True
    if not (first.names or values[0]):
        return False
    ends = _after_common_beginning(words(text), words(other))
    if not all(_content(end) for end in ends):
        return True
    if not all(first.names.intersection(end) or any(word[0].isdigit() for word in end) for end in ends):
        return False
    claimed = [{stem for stem in _content(end) if stem not in _LIGHT} for end in ends]
    return len(claimed[0] & claimed[1]) * 2 >= max(map(len, claimed))


def _after_common_beginning(first: Sequence[str], second: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    alike = next((n for n, (word, other) in enumerate(zip(first, second, strict=False)) if word != other), min(len(first), len(second)))
    return first[alike:], second[alike:]


def _ends_something(text: str) -> bool:
    return not _ENDINGS.isdisjoint(words(text))


def _content(folded: Sequence[str]) -> list[str]:
    content_stems: list[str] = []
    for word in folded:
        if word in STOP_WORDS or word in _SPEAKERS or word in DATE_WORDS or word.isdigit() or is_number_word(word):
            continue
        if _SCRIPT_WITHOUT_BLANKS.search(word):
            content_stems += [stem for char in word if char not in _PARTICLES and not char.isdigit() for stem in stems(char)]
        elif len(word) > 2:
            # Stems of non-ASCII words are spelled for the index, so their forms do not share a prefix.
            content_stems += stems(word) if word.isascii() else [word]
    return content_stems


def _capitalized(text: str) -> list[str]:
    """Return capitalized words that do not start a sentence or quotation."""
    names: list[str] = []
    for m in _NAME.finditer(text):
        before = text[max(m.start() - 3, 0) : m.start()].rstrip(" \t")
        if m[0][0].isupper() and before and before[-1] not in _ENDS and not (len(m[0]) == 1 and m[0] == "I"):
            names.append(m[0])
    return names


def _alike(word: str, other: str) -> bool:
    shorter = min(len(word), len(other))
    most = max(_LEAST_ALIKE, int(shorter * _ALIKE + 0.999))
    return shorter >= most and word[:most] == other[:most]
