"""Convert texts and queries to index terms for keyword search.

RediSearch indexes only these terms, with stemming disabled. A term is lowercase ASCII: accents are
removed, and other characters become hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from string import ascii_letters, digits

import Stemmer

from agent_memory.foundation.core.tables import read_table
from agent_memory.foundation.text.cleaning.control_characters import plain_text
from agent_memory.foundation.text.stemming.foreign import MARKS, VOWEL_SIGNS, foreign_stems, frequent_words, language_of
from agent_memory.foundation.text.stemming.unicode_forms import normalized

# Underscores alone are not a word. The pattern visits a run of them only once.
# RediSearch's own tokenizer would split e-mail addresses, and its stemmer and stop words cannot be set per query.
_WORD = re.compile(rf"\b_*+[^\W_][\w{MARKS}]*+", re.UNICODE)
# Chunks such as bob@example.com, v1.2.3, user_id=7 or C++ are also terms, for exact matches.
_INNER = re.compile(rf"[^\w\s'’{MARKS}]")
_WITHIN_WORDS = frozenset(f"_'{ascii_letters}{digits}")
_APART = {code: " " for code in range(128) if chr(code) == "'" or chr(code) not in _WITHIN_WORDS}
_QUOTED = re.compile(r'"([^"]*)"')
EDGES = ".,;:!?\"“”‘’'()[]{}<>…*`"
# Accents, and Arabic and Hebrew vowel signs, which most texts omit.
_COMBINING = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0670]")
# Chinese, Japanese and Korean; Thai, Lao, Burmese and Khmer.
_BLANKLESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0002fa1f\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
# Vowel signs belong to the previous letter.
_CHARACTER = re.compile(f"[^{VOWEL_SIGNS}][{VOWEL_SIGNS}]*+|[{VOWEL_SIGNS}]++")
_CJK = re.compile(f"[{_BLANKLESS}]")
_RUNS = re.compile(f"[{_BLANKLESS}]+|[^{_BLANKLESS}]+")
_MAX_TERM = 48
_MAX_TERMS = 4096
# Longer chunks, such as a line of Chinese, rarely repeat, so they are not cached.
_LONGEST_CACHED_CHUNK = 24
_MOST_CHUNKS = 32768
# Longer texts are not memories and would fill the cache.
_LONGEST_CACHED_TEXT = 65536

_WORDS = read_table("text/data/words/common.toml")
STOP_WORDS = frozenset(_WORDS["stop"].split())
_FILLERS = frozenset(_WORDS["small_talk"].split())

_stemmer = Stemmer.Stemmer("english", 20000)


def fold(text: str) -> str:
    """Case-fold the text, and remove accents ("Café" -> "cafe") and control characters."""
    text = plain_text(text)
    if text.isascii():
        return text.lower()
    decomposed = _COMBINING.sub("", normalized("NFKD", text).casefold())
    return normalized("NFC", decomposed)


def chunks(text: str) -> Sequence[str]:
    """Fold a text and split it at spaces."""
    return _cached_chunks(text) if len(text) <= _LONGEST_CACHED_TEXT else fold(text).split()


@lru_cache(maxsize=64)
def _cached_chunks(text: str) -> Sequence[str]:
    return fold(text).split()


def _term(word: str) -> str:
    """Return the index term for a folded word. Long words become digests."""
    if len(word) <= _MAX_TERM:
        return _short_term(word)
    return ("xl" if word.isascii() else "ul") + blake2b(word.encode(), digest_size=10).hexdigest()


@lru_cache(maxsize=65536)
def _short_term(word: str) -> str:
    if word.isascii():
        return _stemmer.stemWord(word)
    encoded = "u" + word.encode().hex()
    return encoded if len(encoded) <= _MAX_TERM else "ul" + blake2b(word.encode(), digest_size=10).hexdigest()


def _pieces(word: str, *, pairs: bool = True) -> Iterable[str]:
    """Return the word or, in scripts written without spaces, its characters and character pairs."""
    if word.isascii() or not _CJK.search(word):
        return (word,)
    pieces: list[str] = []
    for run in _RUNS.findall(word):
        if _CJK.match(run):
            characters = _CHARACTER.findall(run)
            pieces += characters
            if pairs:
                pieces += map("".join, pairwise(characters))
        else:
            pieces.append(run)
    return pieces


def is_blankless(word: str) -> bool:
    """True if a word contains characters from a script written without spaces."""
    return not word.isascii() and _CJK.search(word) is not None


def words(text: str) -> list[str]:
    """Return a text's folded words in order, including stop words."""
    return _WORD.findall(fold(text))


def _chunk_terms(chunk: str) -> tuple[tuple[str, ...], str | None]:
    """Return a term for each word and, if the chunk contains symbols, one for the chunk."""
    bare = chunk.strip(EDGES)
    if chunk.isascii():
        # Letters and digits alone are one word.
        if bare.isalnum():
            return () if bare in STOP_WORDS else (_stemmed(bare),), None
        # This finds the same words as `_WORD`, but faster. Chunks with numbers rarely repeat.
        words = [word for word in chunk.translate(_APART).split() if word.strip("_")]
        chunk_terms = tuple([_stemmed(word) for word in words if word not in STOP_WORDS])
        inner = not _WITHIN_WORDS.issuperset(bare)
    else:
        words = _WORD.findall(chunk)
        chunk_terms = tuple([_term(piece) for word in words if word not in STOP_WORDS for piece in _pieces(word)])
        inner = _INNER.search(bare) is not None
    return chunk_terms, "x" + blake2b(bare.encode(), digest_size=10).hexdigest() if words and inner and len(bare) > 1 else None


def _stemmed(word: str) -> str:
    # A number has no stem and rarely repeats, so it skips the cache.
    return word if word.isdigit() and len(word) <= _MAX_TERM else _term(word)


class _Chunks(dict[str, tuple[tuple[str, ...], str | None]]):
    """Caches the results of `_chunk_terms` for short chunks."""

    def __missing__(self, chunk: str) -> tuple[tuple[str, ...], str | None]:
        chunk_terms = _chunk_terms(chunk)
        if len(chunk) <= _LONGEST_CACHED_CHUNK:
            if len(self) >= _MOST_CHUNKS:
                self.clear()
            self[chunk] = chunk_terms
        return chunk_terms


_terms_of_chunk = _Chunks().__getitem__


def terms(text: str) -> list[str]:
    """Return up to 4,096 index terms from a text, in order, with stop words removed.

    The terms for entire chunks and foreign stems come last.
    """
    index_terms: list[str] = []
    wholes: list[str] = []
    for chunk_terms, whole in map(_terms_of_chunk, chunks(text)):
        index_terms += chunk_terms
        if whole is not None:
            wholes.append(whole)
    index_terms += wholes
    if stems := foreign_stems(text):
        present = frozenset(index_terms)
        index_terms += dict.fromkeys(term for stem in stems for term in map(_term, _WORD.findall(fold(stem))) if term not in present)
    return index_terms[:_MAX_TERMS]


def query_terms(text: str, limit: int = 256) -> list[str]:
    """Return the last `limit` distinct terms in a query."""
    # A long message usually ends with its question.
    return list(_query_terms(text))[-limit:]


@lru_cache(maxsize=512)
def beginnings(text: str, limit: int = 32) -> Sequence[Sequence[bytes]]:
    """Return the possible prefixes (lowercase UTF-8) of each query word.

    A text that contains the word in any inflection contains one of its prefixes.
    """
    by_stem: dict[str, Sequence[bytes]] = {}
    for word in _WORD.finditer(text.lower()):
        spelled, folded = word[0], fold(word[0])
        for piece in _pieces(folded) if folded not in STOP_WORDS else ():
            begins = piece
            if piece.isascii() and not piece.isdigit() and len(piece) <= _MAX_TERM:
                stem = _stemmer.stemWord(piece)
                # A stem may end differently from its word: "hope" for "hoping", "happi" for "happy".
                begins = stem[: max(len(stem) - 2, 3)]
            also = {begins} if piece != folded or spelled == folded else {begins, spelled[: len(begins)]}
            by_stem.setdefault(begins, tuple(one.encode() for one in also))
        if len(by_stem) >= limit:
            break
    return list(by_stem.values())[:limit]


# Queries repeat: their embeddings are cached too.
_MOST_CACHED_QUERIES = 512


@lru_cache(maxsize=_MOST_CACHED_QUERIES)
def _query_terms(text: str) -> Sequence[str]:
    """Return the distinct terms in a query, with frequent foreign words removed."""
    # The index terms of stored texts include these words, because the guessed language may be wrong.
    all_terms = tuple(dict.fromkeys(terms(text)))
    language = language_of(text)
    if language is None:
        return all_terms
    frequent = _frequent_terms(language)
    return tuple(term for term in all_terms if term not in frequent) or all_terms


@lru_cache(maxsize=16)
def _frequent_terms(language: str) -> frozenset[str]:
    return frozenset(term for word in frequent_words(language) for term in terms(word))


def phrases(text: str, limit: int = 8) -> list[str]:
    """Return a RediSearch clause for each quoted phrase in a query.

    The words must be next to each other, ignoring stop words. In scripts written without spaces,
    the order does not matter.
    """
    clauses: list[str] = []
    for quoted in _QUOTED.findall(fold(text)):
        content_words = [word for word in _WORD.findall(quoted) if word not in STOP_WORDS]
        row = " ".join(_term(piece) for word in content_words for piece in _pieces(word))
        if row:
            clauses.append(f"({row})" if _CJK.search(quoted) else f'"{row}"')
    return list(dict.fromkeys(clauses))[:limit]


def loose_terms(text: str, limit: int = 64) -> list[str]:
    """Return the distinct index terms outside a query's quotations."""
    return query_terms(_QUOTED.sub(" ", text), limit)


def words_with_places(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and index term of each word."""
    for match in _WORD.finditer(text):
        yield match.start(), match.end(), _term(fold(match[0]))


def index_terms_of_name(name: str) -> list[str]:
    """Return the index term for each word in a name, as in `words_with_places`."""
    return [_term(fold(word)) for word in _WORD.findall(name)]


def content_of(text: str) -> list[str]:
    """Return a text's words in order, with stop words and small talk removed."""
    return [word for word in words(text) if word not in STOP_WORDS and word not in _FILLERS]


def stems(text: str) -> list[str]:
    """Return a text's stems in order, with stop words removed.

    In scripts written without spaces, each character is a stem.
    """
    content_words = (word for word in words(text) if word not in STOP_WORDS)
    return [_term(piece) for word in content_words for piece in _pieces(word, pairs=False)]
