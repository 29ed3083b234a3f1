"""What recall asks about queries: whether one says anything, is about everything, or is after what was asked (pure).

The rules stand in `text/`, for fifteen languages. Nearly all queries hold words that no rule knows, which is seen at a glance: the rules
take a hundred times as long.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agent_memory.text.languages.filler import has_content
from agent_memory.text.languages.phrases import languages
from agent_memory.text.languages.questions import is_about_everything

_WORDS = (
    "ask asks asked asking question questions frage fragte fragten gefragt fragen pregunta preguntas pregunte preguntado question demande"
    " demandé demander pergunta perguntei domanda domande chiesto vraag gevraagd vroeg"
)
_ASKING = frozenset(_WORDS.split())
_ASKING_BLANKLESS = re.compile("问|問|質問|聞い|물었|질문")
_WORD = re.compile(r"[a-z]+")
_FILLER = ("filler", "only beside", "beside", "laughter", "test", "keyboard")
_EVERYTHING = ("everything", "lead", "trail")
# Of words that are no filler, so many are not noise, either.
_ENOUGH = 4
_SHORT = 3
# Longer queries say something, and ask for more than everything.
_MOST_CHARS = 500


def asks_for_questions(query: str) -> bool:
    """Whether a query is after what was asked ("what did I ask you about the boat?")."""
    words = query[: 16 * _MOST_CHARS].lower().replace("?", " ").split()
    return not _ASKING.isdisjoint(words) or (not query.isascii() and _ASKING_BLANKLESS.search(query) is not None)


def says_something(query: str) -> bool:
    """As `has_content`."""
    if len(query) > _MOST_CHARS:
        return True
    if query.isascii():
        unknown = {word for word in _words_of(query) if len(word) >= _SHORT} - _vocabulary(_FILLER)
        if len(unknown) >= _ENOUGH:
            return True
    return has_content(query)


def asks_for_everything(query: str) -> bool:
    """As `is_about_everything`: such a query is made of its words, and of politeness, alone."""
    if len(query) > _MOST_CHARS or (query.isascii() and not _vocabulary(_EVERYTHING).issuperset(_words_of(query))):
        return False
    return is_about_everything(query)


def _words_of(query: str) -> list[str]:
    return _WORD.findall(query.lower().replace("'", ""))


@lru_cache(maxsize=4)
def _vocabulary(sections: tuple[str, ...]) -> frozenset[str]:
    """All words of some sections of the languages' files."""
    words: set[str] = set()
    for language in languages().values():
        for section in sections:
            for line in language.sections.get(section, ()):
                words.update(_WORD.findall(line.lower().replace("'", "").replace("_", " ")))
    return frozenset(words)
