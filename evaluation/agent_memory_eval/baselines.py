"""Rank turns with simple baseline methods, for comparison with a server.

The baselines use only the text of the turns and of the question. They ignore timestamps.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import Stemmer

from agent_memory.foundation.llm.base import Embedder
from agent_memory.foundation.text.terms import STOP_WORDS
from agent_memory_eval.metrics import DEEPEST
from agent_memory_eval.question_sets import Conversation, Question

SYSTEMS = ("dense", "BM25", "RRF")
_FUSED = 100  # number of turns from each ranking to fuse
_BATCH = 64
_HAN_AND_KANA = "\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_HAN_AND_KANA}]+|[^\W{_HAN_AND_KANA}]+")


class Baselines:
    """Ranks turns by cosine similarity ("dense"), BM25, and reciprocal rank fusion ("RRF")."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def rank(self, conversation: Conversation, questions: Sequence[Question]) -> list[dict[str, list[str]]]:
        """Return the ids of the best turns for each question, grouped by system."""
        texts = [turn.text for turn in conversation.turns]
        vectors = np.concatenate([await self._embedder.embed(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)])
        query_vectors = await self._embedder.embed([question.text for question in questions], role="query")
        words = Bm25([terms(text) for text in texts])
        rankings: list[dict[str, list[str]]] = []
        for question, query in zip(questions, query_vectors, strict=True):
            near = np.argsort(-(vectors @ query), kind="stable")[:_FUSED].tolist()
            worded = words.rank(terms(question.text))[:_FUSED]
            orders = zip(SYSTEMS, (near, worded, fuse(near, worded)), strict=True)
            rankings.append({system: [conversation.turns[place].id for place in order[:DEEPEST]] for system, order in orders})
        return rankings


def terms(text: str) -> list[str]:
    """Split text into English stems, or into Chinese and Japanese characters and bigrams."""
    split_terms: list[str] = []
    for word in _WORD.findall(text.lower()):
        if re.match(f"[{_HAN_AND_KANA}]", word):
            split_terms += [*word, *map("".join, pairwise(word))]
        elif word not in STOP_WORDS:
            split_terms.append(Stemmer.Stemmer("english").stemWord(word))
    return split_terms


class Bm25:
    """Ranks documents by BM25 with k1 = 1.2 and b = 0.75.

    Source: Robertson, Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """

    def __init__(self, documents: Sequence[Sequence[str]], k1: float = 1.2, b: float = 0.75) -> None:
        mean_length = sum(map(len, documents)) / max(len(documents), 1) or 1
        postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, document in enumerate(documents):
            for term, count in Counter(document).items():
                weight = count * (k1 + 1) / (count + k1 * (1 - b + b * len(document) / mean_length))
                postings[term].append((place, weight))
        self._size = len(documents)
        self._postings = dict(postings)

    def rank(self, query: Sequence[str]) -> list[int]:
        """Return the positions of documents that contain at least one query term, best first."""
        scores: dict[int, float] = defaultdict(float)
        for term in dict.fromkeys(query):
            having = self._postings.get(term, [])
            rarity = math.log(1 + (self._size - len(having) + 0.5) / (len(having) + 0.5))
            for place, weight in having:
                scores[place] += rarity * weight
        return sorted(scores, key=lambda place: (-scores[place], place))


def fuse(*rankings: Sequence[int], k: int = 60) -> list[int]:
    """Combine rankings with reciprocal rank fusion. Source: Cormack, Clarke, Büttcher, SIGIR 2009."""
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            scores[place] += 1 / (k + rank)
    return sorted(scores, key=lambda place: -scores[place])
