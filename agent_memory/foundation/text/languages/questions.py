"""Recognize texts that contain only questions, and questions about everything in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agent_memory.foundation.text.languages.filler import is_filler
from agent_memory.foundation.text.languages.phrases import Language, Token, languages, tokens
from agent_memory.foundation.text.stemming.foreign import LANGUAGE_CODES, is_in_other_script, language_of
from agent_memory.foundation.text.terms import words as folded_words

_BEGINNING = 256
# Longer texts are statements.
_MOST_CHARS = 600
_MOST_QUERY_CHARS = 200
_LONGEST_QUERY_CHARS = 8_000
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
"""The maximum number of words before "you know about me"."""


class _Forms:
    def __init__(self, language: Language) -> None:
        self.language = language
        self.interrogatives = language.words("questions")
        self._openers = language.words("openers")
        self._endings = tuple(("" if language.blankless else " ") + ending for ending in language.words("endings"))
        self._subjects = language.words("subjects")
        self._plain = language.pattern("plain questions")
        self._before = language.openings("before questions")
        self.statement_pattern = language.pattern("plain statements")
        self._with_accent = language.words("asked with accent")
        self._no_question = language.words("no question")

    def opens(self, text_tokens: Sequence[Token]) -> bool:
        """True if a clause begins like a question."""
        return self._begins(text_tokens, self.interrogatives) or self._begins(text_tokens, self._openers)

    def states(self, text_tokens: Sequence[Token]) -> bool:
        """True if a clause begins like a statement."""
        return self._begins(text_tokens, self._subjects)

    def asks(self, text_tokens: Sequence[Token]) -> bool:
        """True if a clause contains an interrogative or ends like a question."""
        whole = self.language.join(text_tokens).text
        if self.language.blankless:
            return any(word in whole for word in self.interrogatives) or whole.endswith(self._endings)
        return any(token.word in self.interrogatives for token in text_tokens) or whole.rstrip().endswith(self._endings)

    def lacks_accent(self, text_tokens: Sequence[Token], sentence: str) -> bool:
        """True if a longer clause begins with an unaccented interrogative, such as "Cuando"."""
        first = text_tokens[0]
        return len(text_tokens) > _UNACCENTED_TOKENS and first.word in self._with_accent and sentence[first.start : first.end].isascii()

    def is_plain(self, text_tokens: Sequence[Token]) -> bool:
        """True if a sentence is a question even with no question mark."""
        whole = self.language.join(text_tokens).text
        if self.language.blankless and self.asks(text_tokens) and not any(word in whole for word in self._no_question):
            return True
        return whole.rstrip().endswith(self._endings) or any(self._plain.match(whole, start) for start in self._starts(whole))

    def _starts(self, whole: str) -> Iterator[int]:
        """Yield the positions where a question may begin, including after words such as "so"."""
        yield 0
        start = 0
        for _ in range(_LEADS):
            if (lead := self._before.match(whole, start)) is None:
                return
            yield (start := lead.end())

    def _begins(self, text_tokens: Sequence[Token], words: frozenset[str]) -> bool:
        if self.language.blankless:
            return self.language.join(text_tokens[:6]).text.startswith(tuple(words))
        return any(" ".join(token.word for token in text_tokens[:length]) in words for length in (1, 2, 3))


@lru_cache(maxsize=1)
def _forms() -> Sequence[_Forms]:
    return list(map(_Forms, languages().values()))


def is_bare_question(text: str) -> bool:
    """True if a text consists only of questions."""
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
    """True if a clause is a statement such as "What I like most is tea"."""
    return any(form.statement_pattern.match(form.language.join(text_tokens).text) for form in _forms())


def without_interrogatives(text: str) -> str:
    """Remove a question's interrogatives: "wo meine Bank ist" becomes "meine Bank ist".

    English interrogatives stay, because they are stop words.
    """
    # An interrogative in one language may be an ordinary word in another, so the frequent words determine the language.
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
    """True if a query asks for everything known about the user ("Who am I?")."""
    if len(query) > _MOST_QUERY_CHARS:
        return False
    text_tokens = tokens(query)
    words = frozenset(token.word for token in text_tokens)
    # Matching phrases takes thirty times as long as checking for their words.
    if any(form.refers_to_knowledge(text_tokens) for form in _everything() if not form.known_words.isdisjoint(words)):
        return True
    if not words or not words <= _words_about_everything():
        return False
    return any(form.is_whole(text_tokens) or form.is_made_of_its_words(text_tokens) for form in _everything())


def asks_for_questions(query: str) -> bool:
    """True if a query is about questions that the user asked earlier."""
    words, characters = _words_of_asking()
    query_words = folded_words(query[:_LONGEST_QUERY_CHARS])
    return not words.isdisjoint(query_words) or (not query.isascii() and characters.search("".join(query_words)) is not None)


@lru_cache(maxsize=1)
def _words_of_asking() -> tuple[frozenset[str], re.Pattern[str]]:
    words, characters = set[str](), set[str]()
    for language in languages().values():
        (characters if language.blankless else words).update(language.words("asked"))
    return frozenset(words), re.compile("|".join(map(re.escape, sorted(characters))))


class _Everything:
    def __init__(self, language: Language) -> None:
        self._language = language
        self._pattern = language.pattern("everything")
        self._lead = language.openings("lead")
        self._trail = language.closings("trail")
        self.words = language.vocabulary(*_EVERYTHING)
        self._about_me = language.anywhere("about me")
        self._keeps = language.anywhere("keeps")
        self._knowing = language.anywhere("known of me")
        self.known_words = language.vocabulary("known of me")

    def refers_to_knowledge(self, text_tokens: Sequence[Token]) -> bool:
        """True if the tokens end with words such as "you know about me"."""
        joined = self._language.join(text_tokens)
        m = self._knowing.search(joined.text)
        if m is None or sum(end <= m.start() for end in joined.ends) > _MOST_TOKENS_AHEAD:
            return False
        behind = text_tokens[sum(end <= m.end() for end in joined.ends) :]
        return self.words.issuperset(token.word for token in behind)

    def is_made_of_its_words(self, text_tokens: Sequence[Token]) -> bool:
        """True if the tokens consist only of words from questions about everything."""
        text = self._language.join(text_tokens).text
        return (
            self.words.issuperset(token.word for token in text_tokens)
            and self._about_me.search(text) is not None
            and self._keeps.search(text) is not None
        )

    def is_whole(self, text_tokens: Sequence[Token]) -> bool:
        """True if the tokens, apart from polite words, are a question about everything."""
        text = self._language.join(text_tokens).text
        for _ in range(_LEADS):
            shorter = text
            for _ in range(_LEADS):
                if self._pattern.match(shorter):
                    return True
                if (trail := self._trail.search(shorter)) is None:
                    break
                shorter = shorter[: trail.start()]
            if (lead := self._lead.match(text)) is None or lead.end() == len(text):
                return False
            text = text[lead.end() :]
        return False


@lru_cache(maxsize=1)
def _everything() -> Sequence[_Everything]:
    return list(map(_Everything, languages().values()))


@lru_cache(maxsize=1)
def _words_about_everything() -> frozenset[str]:
    return frozenset[str]().union(*(form.words for form in _everything()))
