"""Recognize texts that contain only questions, and questions about everything in memory, in fifteen languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent_memory.foundation.text.languages.filler import is_filler
from agent_memory.foundation.text.languages.phrases import Joined, Language, Token, ascii_vocabulary, ascii_words, languages, tokens
from agent_memory.foundation.text.stemming.foreign import LANGUAGE_CODES, is_in_other_script, language_of

_BEGINNING = 256
# Longer texts are statements.
_MOST_CHARS = 600
_MOST_QUERY_CHARS = 200
_MOST_ASKED_CHARS = 8_000
_SENTENCE = re.compile(r"[^.!?…。！？｡؟।\n]*(?:[.!?…。！？｡؟।\n]+|$)")
_MARK = re.compile("[?？؟]")
# A sentence with a full stop but no question mark is a statement.
_STOPS = frozenset(".!。！｡।")
_CLAUSE = re.compile(r"[,;:，、；：،–—¿]+|\s-\s")
_QUOTES = "\"'“”«»„「『‘"
# Questions without a mark are short.
_UNMARKED_TOKENS = 14
_UNMARKED_CHARACTERS = 24
# Questions this short are understood without accents.
_UNACCENTED_TOKENS = 3
_LEADS = 4
_EVERYTHING = ("everything", "everything words", "lead", "trail", "about me", "keeps", "known of me")
_MOST_TOKENS_AHEAD = 5
"""The largest number of words before "you know about me", as in "Spill everything you know about me"."""


@dataclass(frozen=True, slots=True)
class _Forms:
    """The question forms of a language."""

    language: Language
    interrogatives: frozenset[str]
    openers: frozenset[str]
    endings: tuple[str, ...]
    subjects: frozenset[str]
    plain: re.Pattern[str] | None
    before: re.Pattern[str] | None
    stated: re.Pattern[str] | None
    with_accent: frozenset[str]
    no_question: frozenset[str]

    def opens(self, text_tokens: Sequence[Token]) -> bool:
        """True if a clause begins like a question."""
        return self._begins(text_tokens, self.interrogatives) or self._begins(text_tokens, self.openers)

    def states(self, text_tokens: Sequence[Token]) -> bool:
        """True if a clause begins like a statement."""
        return self._begins(text_tokens, self.subjects)

    def asks(self, text_tokens: Sequence[Token]) -> bool:
        """True if a clause contains an interrogative or ends like a question."""
        if self.language.blankless:
            whole = self.language.join(text_tokens).text
            return any(word in whole for word in self.interrogatives) or whole.endswith(self.endings)
        return any(token.word in self.interrogatives for token in text_tokens) or self.ends(text_tokens)

    def ends(self, text_tokens: Sequence[Token]) -> bool:
        """True if a clause ends with words that occur only at the end of questions."""
        if not self.endings or not text_tokens:
            return False
        whole = self.language.join(text_tokens).text.strip()
        return whole.endswith(self.endings) if self.language.blankless else whole.endswith(tuple(" " + ending for ending in self.endings))

    def lacks_accent(self, text_tokens: Sequence[Token], sentence: str) -> bool:
        """True if a longer clause begins with an interrogative without its accent: "Cuando llueve me quedo en casa"."""
        first = text_tokens[0]
        return len(text_tokens) > _UNACCENTED_TOKENS and first.word in self.with_accent and sentence[first.start : first.end].isascii()

    def is_plain(self, text_tokens: Sequence[Token]) -> bool:
        """True if a sentence without a question mark is a question."""
        whole = self.language.join(text_tokens).text
        if self.language.blankless and self.asks(text_tokens) and not any(word in whole for word in self.no_question):
            return True
        return self.ends(text_tokens) or (self.plain is not None and any(self.plain.match(whole, start) for start in self._starts(whole)))

    def _starts(self, whole: str) -> Iterator[int]:
        """Yield the positions where a question may begin: at the start, and after words such as "so" or "ok and"."""
        yield 0
        start = 0
        for _ in range(_LEADS):
            lead = None if self.before is None else self.before.match(whole, start)
            if lead is None:
                return
            yield (start := lead.end())

    def _begins(self, text_tokens: Sequence[Token], words: frozenset[str]) -> bool:
        if self.language.blankless:
            return self.language.join(text_tokens[:6]).text.startswith(tuple(words))
        return any(" ".join(token.word for token in text_tokens[:length]) in words for length in (1, 2, 3))


@lru_cache(maxsize=1)
def _forms() -> Sequence[_Forms]:
    return [
        _Forms(
            language,
            language.words("questions"),
            language.words("openers"),
            tuple(language.words("endings")),
            language.words("subjects"),
            language.pattern("plain questions"),
            language.openings("before questions"),
            language.pattern("plain statements"),
            language.words("asked with accent"),
            language.words("no question"),
        )
        for language in languages().values()
    ]


def is_bare_question(text: str) -> bool:
    """True if a text consists only of questions: "Where do I live?", but not "I moved to Rome, did you know?"."""
    if len(text) > _MOST_CHARS or text.lstrip()[:1] in _QUOTES:
        return False
    sentences = [sentence for m in _SENTENCE.finditer(text) if (sentence := m[0].strip()) and tokens(sentence)]
    content_sentences = [sentence for sentence in sentences if not is_filler(sentence)]
    parts = [(sentence, _clauses(sentence)) for sentence in content_sentences]
    return bool(parts) and any(all(_is_question(form, sentence, clauses) for sentence, clauses in parts) for form in _forms())


def _clauses(sentence: str) -> list[list[Token]]:
    return [clause_tokens for part in _CLAUSE.split(sentence) if (clause_tokens := tokens(part)) and not is_filler(part)]


def _is_question(form: _Forms, sentence: str, clauses: Sequence[Sequence[Token]]) -> bool:
    if not clauses:
        return True
    if len(clauses) > 1 and len(clauses[0]) == 1 and not form.language.blankless and form.opens(clauses[1]):
        clauses = clauses[1:]  # skip the word that addresses the listener
    first, rest = clauses[0], clauses[1:]
    if _MARK.search(sentence) is None:
        if sentence[-1] in _STOPS:
            return False
        most = _UNMARKED_CHARACTERS if form.language.blankless else _UNMARKED_TOKENS
        return not rest and len(first) <= most and form.is_plain(first) and not form.lacks_accent(first, sentence) and not _is_stated(first)
    if rest:
        return (form.opens(first) or (form.language.blankless and form.asks(first))) and not any(map(form.states, rest))
    return form.opens(first) or form.asks(first)


def _is_stated(text_tokens: Sequence[Token]) -> bool:
    """True if a clause is a statement that begins like a question: "What I like most is tea"."""
    return any(form.stated is not None and form.stated.match(form.language.join(text_tokens).text) is not None for form in _forms())


def without_interrogatives(text: str) -> str:
    """Return a question without its interrogatives: "wo meine Bank ist" becomes "meine Bank ist".

    An interrogative of one language may be an ordinary word of another. In Latin script, the frequent words of the text
    therefore decide its language. English interrogatives stay, because they are stop words.
    """
    spoken, foreign = language_of(text), is_in_other_script(text)
    for form in _forms():
        if form.language.blankless:
            for word in sorted(form.interrogatives, key=len, reverse=True) if foreign else ():
                text = text.replace(word, "")
        elif LANGUAGE_CODES.get(form.language.code) == spoken or foreign:
            text_tokens = tokens(text[:_BEGINNING])
            length = next(
                (n for n in (3, 2, 1) if " ".join(token.word for token in text_tokens[:n]) in form.interrogatives and len(text_tokens) > n),
                0,
            )
            text = text[text_tokens[length].start :] if length else text
    return text


def is_about_everything(query: str) -> bool:
    """True if a query asks for everything known about the user ("What do you know about me?", "Who am I?")."""
    if len(query) > _MOST_QUERY_CHARS:
        return False
    written = ascii_words(query) if query.isascii() else None
    others = () if written is None else set(written) - ascii_vocabulary(*_EVERYTHING)
    if len(others) > _MOST_TOKENS_AHEAD:
        return False
    text_tokens = tokens(query) if written is None or not others else ()
    words = frozenset(written) if written is not None else frozenset([token.word for token in text_tokens])
    # Matching phrases takes thirty times as long as checking for their words.
    naming = [form for form in _everything() if form.may_name_what_is_known(words, ascii_only=written is not None)]
    if naming:
        text_tokens = text_tokens or tokens(query)
        if any(form.names_what_is_known(text_tokens) for form in naming):
            return True
    return (
        bool(text_tokens)
        and not others
        and any(_whole(form, text_tokens) or form.is_made_of_its_words(text_tokens) for form in _everything())
    )


def asks_for_questions(query: str) -> bool:
    """True if a query is about questions that the user asked earlier ("what did I ask you about the boat?")."""
    words, characters = _words_of_asking()
    if query.isascii():
        return not words.isdisjoint(ascii_words(query[:_MOST_ASKED_CHARS]))
    query_words = [token.word for token in tokens(query[:_MOST_ASKED_CHARS])]
    return not words.isdisjoint(query_words) or characters.search("".join(query_words)) is not None


@lru_cache(maxsize=1)
def _words_of_asking() -> tuple[frozenset[str], re.Pattern[str]]:
    words, characters = set[str](), set[str]()
    for language in languages().values():
        (characters if language.blankless else words).update(language.words("asked"))
    return frozenset(words), re.compile("|".join(map(re.escape, sorted(characters))))


@dataclass(frozen=True, slots=True)
class _Everything:
    language: Language
    pattern: re.Pattern[str]
    leads: re.Pattern[str] | None
    trails: re.Pattern[str] | None
    words: frozenset[str]
    about_me: re.Pattern[str] | None
    keeps: re.Pattern[str] | None
    knowing: re.Pattern[str] | None
    known_words: frozenset[str]
    """The words in the phrases that `knowing` matches."""
    least: int
    """The number of words in the shortest of these phrases, at most two."""

    def may_name_what_is_known(self, words: frozenset[str], *, ascii_only: bool) -> bool:
        """True if a text with these words may contain a phrase that `knowing` matches."""
        if self.language.blankless:
            return not ascii_only
        return len(self.known_words & words) >= self.least

    def names_what_is_known(self, text_tokens: Sequence[Token]) -> bool:
        """True if tokens mention the knowledge about the user ("… you know about me") and no other content follows."""
        joined = self.language.join(text_tokens)
        m = None if self.knowing is None else self.knowing.search(joined.text)
        if m is None or sum(end <= m.start() for end in joined.ends) > _MOST_TOKENS_AHEAD:
            return False
        behind = text_tokens[sum(end <= m.end() for end in joined.ends) :]
        return self.words.issuperset(token.word for token in behind)

    def is_made_of_its_words(self, text_tokens: Sequence[Token]) -> bool:
        """True if all tokens occur in such questions and include words for the user and for knowing."""
        if self.about_me is None or self.keeps is None or not self.words.issuperset(token.word for token in text_tokens):
            return False
        text = self.language.join(text_tokens).text
        return self.about_me.search(text) is not None and self.keeps.search(text) is not None


@lru_cache(maxsize=1)
def _everything() -> Sequence[_Everything]:
    return [
        _Everything(
            language,
            pattern,
            language.openings("lead"),
            language.closings("trail"),
            language.vocabulary(*_EVERYTHING),
            language.anywhere("about me"),
            language.anywhere("keeps"),
            language.anywhere("known of me"),
            language.vocabulary("known of me"),
            language.least_words("known of me"),
        )
        for language in languages().values()
        if (pattern := language.pattern("everything")) is not None
    ]


def _whole(form: _Everything, text_tokens: Sequence[Token]) -> bool:
    """True if the tokens are a question about everything, ignoring polite words around it."""
    joined: Joined = form.language.join(text_tokens)
    text = joined.text
    for _ in range(_LEADS):
        if form.pattern.match(text):
            return True
        shorter = _without(form.trails, text, at_end=True)
        if shorter != text and form.pattern.match(shorter):
            return True
        text = _without(form.leads, text)
        if not text:
            return False
    return False


def _without(pattern: re.Pattern[str] | None, text: str, *, at_end: bool = False) -> str:
    """Remove a pattern from the beginning, or from the end if `at_end`. Return "" if the beginning does not match."""
    if at_end:
        changed = text
        for _ in range(_LEADS):
            m = None if pattern is None else pattern.search(changed)
            if m is None:
                break
            changed = changed[: m.start()]
        return changed
    m = None if pattern is None else pattern.match(text)
    return "" if m is None else text[m.end() :]
