"""What each ingredient of search adds, computed in this process: python scripts/recall_ablation.py FILE (LoCoMo's or LongMemEval's format).

The index is imitated: exact nearest vectors, and BM25 with RediSearch's formula and constants over all conversations together. The
server itself is measured by `agent-memory eval`; both agree within a point. Prints the tables of docs/recall.md.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agent_memory.core.settings import load_settings
from agent_memory.evaluation.datasets import ADVERSARIAL, Conversation, load
from agent_memory.evaluation.metrics import Scores, mean, measure
from agent_memory.llm.local.embedder import LocalEmbedder
from agent_memory.memories.search import ranking, recency
from agent_memory.memories.search.query import subject_of
from agent_memory.text.retrieval_units import day
from agent_memory.text.terms import query_terms, terms, without
from agent_memory.text.time_expressions import named_time

DEPTH = 100
COMMON = 0.30
HEAD = "| R@5 | R@10 | R@50 | MRR | R@10 answerable | MRR answerable |\n|" + "---|" * 7
Vectors = NDArray[np.float32]
Values = NDArray[np.float64]
Rank = Callable[[int, int], list[int]]


def around(turns: Conversation, place: int, reach: int) -> list[int]:
    """The places of a turn and of its neighbours in the same session."""
    places = range(max(place - reach, 0), min(place + reach + 1, len(turns.turns)))
    return [other for other in places if turns.turns[other].session == turns.turns[place].session]


@dataclass
class Words:
    """BM25 (k1 1.2, b 0.75) over the units of all conversations; `weights[d]` counts the terms of a neighbour at the distance d."""

    conversations: Sequence[Conversation]
    weights: Sequence[int]
    dated: bool = True

    def __post_init__(self) -> None:
        self.starts: list[int] = []
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths: list[int] = []
        for found in self.conversations:
            self.starts.append(len(lengths))
            said = [terms(turn.text) for turn in found.turns]
            for place, turn in enumerate(found.turns):
                unit = Counter(terms(day(turn.when)) if self.dated else [])
                for other in around(found, place, len(self.weights) - 1):
                    for term in said[other]:
                        unit[term] += self.weights[abs(other - place)]
                for term, count in unit.items():
                    postings[term].append((len(lengths), count))
                lengths.append(sum(unit.values()))
        self.total = len(lengths)
        self.norms = 1.2 * (0.25 + 0.75 * np.array(lengths) / (sum(lengths) / len(lengths)))
        self.postings = {term: (np.array([p for p, _ in found]), np.array([n for _, n in found])) for term, found in postings.items()}

    def _own(self, number: int, term: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        start = self.starts[number]
        places, counts = self.postings.get(term, (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        low, high = np.searchsorted(places, [start, start + len(self.conversations[number].turns)])
        return places[low:high], counts[low:high]

    def share(self, number: int, term: str) -> float:
        """The share of a conversation's units that hold a term."""
        return len(self._own(number, term)[0]) / len(self.conversations[number].turns)

    def scores(self, number: int, wanted: Sequence[str]) -> Values:
        """The scores of all units of a conversation."""
        found = np.zeros(len(self.conversations[number].turns))
        for term in wanted:
            places, counts = self._own(number, term)
            holding = len(self.postings[term][0]) if len(places) else 0
            rarity = math.log(1 + (self.total - holding + 0.5) / (holding + 0.5))
            found[places - self.starts[number]] += rarity * counts * 2.2 / (counts + self.norms[places])
        return found


def best(scores: Values | Vectors, *, positive: bool = False) -> list[int]:
    """The places of the best scores, best first."""
    order = np.argsort(-scores, kind="stable")[:DEPTH]
    return [int(place) for place in order if not positive or scores[place] > 0]


def units(found: Conversation, own: Vectors, weights: Sequence[float]) -> Vectors:
    """The vectors of a conversation's turns with some of their neighbours', of length 1."""
    total = own.copy()
    for place in range(len(own)):
        for other in around(found, place, len(weights)):
            if other != place:
                total[place] += weights[abs(other - place) - 1] * own[other]
    return total / np.linalg.norm(total, axis=1, keepdims=True)


def rank_fusion(near: list[int], word: list[int], k: int, weight: float) -> list[int]:
    """Reciprocal rank fusion; `weight` is that of the words."""
    scores: dict[int, float] = defaultdict(float)
    for listed, factor in ((near, 1.0), (word, weight)):
        for place, name in enumerate(listed, start=1):
            scores[name] += factor / (k + place)
    return sorted(scores, key=lambda name: -scores[name])


def score_fusion(near: Vectors, word: Values, alpha: float, *, fill: bool = True) -> list[int]:
    """The convex combination of memories/search/ranking.py; `fill` counts what a full list lacks as its last."""
    first, second = best(near), best(word, positive=True)
    top, most = float(near[first[0]]), float(word[second[0]]) if second else 1.0
    least = float(near[first[-1]])
    last = float(word[second[-1]]) if fill and len(second) == DEPTH else 0.0
    nearest, known = set(first), set(second)

    def score(name: int) -> float:
        words = float(word[name]) if name in known else last
        return alpha * max(float(near[name]) if name in nearest else least, 0.0) / top + (1 - alpha) * words / most

    return sorted(dict.fromkeys([*first, *second]), key=lambda name: -score(name))


class Bench:
    """The conversations, their vectors, and the table that is printed."""

    def __init__(self, conversations: list[Conversation], embed: Callable[[list[str]], Vectors]) -> None:
        self.conversations = conversations
        self.embed = embed
        self.own = [embed([turn.text for turn in found.turns]) for found in conversations]
        self.wanted = [[query_terms(question.text) for question in found.questions] for found in conversations]
        self.rows: dict[str, list[list[Scores]]] = {}

    def line(self, name: str, rank: Rank, only: Collection[tuple[int, int]] | None = None) -> None:
        """Ranks for every question, or `only` for some, and prints a line of the table."""
        answerable: list[Scores] = []
        self.rows[name] = [[] for _ in self.conversations]
        for number, found in enumerate(self.conversations):
            for place, question in enumerate(found.questions):
                if question.turns and (only is None or (number, place) in only):
                    row = measure([found.turns[hit].id for hit in rank(number, place)], question.turns)
                    self.rows[name][number].append(row)
                    answerable += [row] if question.category != ADVERSARIAL else []
        whole, part = mean([row for rows in self.rows[name] for row in rows]), mean(answerable)
        figures = [whole["R@5"], whole["R@10"], whole["R@50"], whole["MRR"], part["R@10"], part["MRR"]]
        print(f"| {name} | " + " | ".join(f"{100 * figure:.1f}" for figure in figures) + " |", flush=True)

    def queries(self, words: Words | None) -> list[Vectors]:
        """The vectors of the questions, without what most memories share when `words` are given."""
        texts: list[list[str]] = []
        for number, found in enumerate(self.conversations):
            texts.append([])
            for question, wanted in zip(found.questions, self.wanted[number], strict=True):
                common = {term for term in wanted if words and words.share(number, term) >= COMMON}
                cleaned = without(question.text, common) if words and len(common) < len(wanted) else ""
                texts[-1].append(cleaned or question.text)
        return [self.embed(some) if some else np.zeros((0, 1), np.float32) for some in texts]


def ladder(bench: Bench) -> None:
    """Prints all tables."""
    talks = bench.conversations
    full = Words(talks, (2, 1, 1))
    raw, clean = bench.queries(None), bench.queries(full)
    vectors = [units(found, own, (0.3, 0.1)) for found, own in zip(talks, bench.own, strict=True)]
    print(f"\n| by meaning {HEAD}")
    bench.line("turn alone, question as it is", lambda c, q: best(bench.own[c] @ raw[c][q]))
    bench.line("+ common words left out", lambda c, q: best(bench.own[c] @ clean[c][q]))
    bench.line("turn and neighbours, question as it is", lambda c, q: best(vectors[c] @ raw[c][q]))
    bench.line("+ common words left out", lambda c, q: best(vectors[c] @ clean[c][q]))
    print(f"\n| by words {HEAD}")
    kinds: dict[str, Words] = {
        "turn alone": Words(talks, (1,), dated=False),
        "+ day": Words(talks, (1,)),
        "one neighbour each side": Words(talks, (1, 1)),
        "own words twice": Words(talks, (2, 1)),
        "two neighbours": Words(talks, (1, 1, 1)),
        "two neighbours, own words twice": full,
        "the same without the day": Words(talks, (2, 1, 1), dated=False),
        "two neighbours, own words three times": Words(talks, (3, 1, 1)),
        "three neighbours, own words twice": Words(talks, (2, 1, 1, 1)),
    }
    for name, words in kinds.items():
        bench.line(name, lambda c, q, words=words: best(words.scores(c, bench.wanted[c][q]), positive=True))
    print(f"\n| both {HEAD}")
    near = [[vectors[c] @ query for query in clean[c]] for c in range(len(talks))]
    word = [[full.scores(c, wanted) for wanted in bench.wanted[c]] for c in range(len(talks))]
    for k in (5, 20, 60):
        for weight in (1.0, 1.5):
            name = f"rank fusion, k {k}, words {weight}"
            bench.line(name, lambda c, q, k=k, w=weight: rank_fusion(best(near[c][q]), best(word[c][q], positive=True), k, w))
    bench.line("score fusion, alpha 0.5, what words lack is 0", lambda c, q: score_fusion(near[c][q], word[c][q], 0.5, fill=False))
    chosen = {f"score fusion, alpha {alpha}": alpha for alpha in (0.35, 0.4, 0.45, 0.5, 0.55, 0.6)}
    for name, alpha in chosen.items():
        bench.line(name, lambda c, q, alpha=alpha: score_fusion(near[c][q], word[c][q], alpha))
    leave_one_out(bench, list(chosen))
    of_a_time(bench, full, near, word)
    of_an_age(bench, near, word)


def of_a_time(bench: Bench, full: Words, near: list[list[Vectors]], word: list[list[Values]]) -> None:
    """The questions that name a time in which turns lie: what a bonus for these adds, and the order that the server makes."""
    talks, now = bench.conversations, datetime.now(UTC)
    spans = [[named_time(question.text, question.asked or now) for question in found.questions] for found in talks]
    within: dict[tuple[int, int], frozenset[str]] = {}
    subjects: dict[tuple[int, int], Sequence[str]] = {}
    for c, found in enumerate(talks):
        for q, span in enumerate(spans[c]):
            there = frozenset(str(p) for p, turn in enumerate(found.turns) if span and span.start <= turn.when < span.end)
            if span is not None and there:
                within[c, q], subjects[c, q] = there, subject_of(found.questions[q].text, span)

    def lists(near: Vectors, word: Values, there: Collection[str]) -> tuple[dict[str, float], dict[str, float], float]:
        first, second = best(near), best(word, positive=True)
        inside = [int(name) for name in there]
        first += [p for p in sorted(inside, key=lambda p: -near[p])[:DEPTH] if p not in first]
        second += [p for p in sorted(inside, key=lambda p: -word[p])[:DEPTH] if word[p] > 0 and p not in second]
        last = float(word[second[DEPTH - 1]]) if len(second) >= DEPTH else 0.0
        return {str(p): float(near[p]) for p in first}, {str(p): float(word[p]) for p in second}, last

    def plain(c: int, q: int, bonus: float) -> list[int]:
        names, words, last = lists(near[c][q], word[c][q], within[c, q])
        fused = ranking.fuse(names, words, ranking.ALPHA, last_word=last)
        raised = sorted(fused, key=lambda one: -one[0] - (bonus if one[1] in within[c, q] else 0.0))
        return [int(name) for _, name in raised]

    def served(c: int, q: int, fits: float) -> list[int]:
        there, subject = within[c, q], subjects[c, q]
        names, words, last = lists(near[c][q], word[c][q], there)
        own = full.scores(c, subject or bench.wanted[c][q])
        words = {name: value for name, value in words.items() if name not in there}
        words |= {name: float(own[int(name)]) for name in there if own[int(name)] > 0}
        fused = ranking.fuse(names, words, ranking.ALPHA, last_word=last, known=there)
        return [int(name) for _, name in ranking.timed(fused, there, fits if subject else 0.0)]

    print(f"\n{len(within)} questions name a time in which turns lie\n| time {HEAD}")
    for bonus in (0.0, 0.1, 0.2, 0.3, 0.5, 1.0):
        bench.line(f"words of time in the query, bonus {bonus}", lambda c, q, b=bonus: plain(c, q, b), within)
    for fits in (0.0, ranking.FITS, 0.2, 0.3, 0.4):
        bench.line(f"the date answers the words of time, first from a score of {fits} on", lambda c, q, f=fits: served(c, q, f), within)


def of_an_age(bench: Bench, near: list[list[Vectors]], word: list[list[Values]]) -> None:
    """What a weight on the newer memories costs when each conversation is asked about on the day after its end."""
    ages: list[Values] = []
    for found in bench.conversations:
        asked = max(turn.when for turn in found.turns) + timedelta(days=1)
        seconds = [(asked - turn.when).total_seconds() for turn in found.turns]
        ages.append(np.array([recency.recency(0.0, age, replace(recency.RecencyWeights(), freshness=0.0, novelty=1.0)) for age in seconds]))

    def aged(c: int, q: int, weight: float) -> list[int]:
        first, second = best(near[c][q]), best(word[c][q], positive=True)
        last = float(word[c][q][second[-1]]) if len(second) >= DEPTH else 0.0
        names, words = {str(p): float(near[c][q][p]) for p in first}, {str(p): float(word[c][q][p]) for p in second}
        fused = ranking.fuse(names, words, ranking.ALPHA, last_word=last)
        return [int(name) for _, name in sorted(fused, key=lambda one: -one[0] - weight * ages[c][int(one[1])])]

    print(f"\n| weight of age {HEAD}")
    chosen = {f"{weight}": weight for weight in (0.0, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1)}
    for name, weight in chosen.items():
        bench.line(name, lambda c, q, w=weight: aged(c, q, w))
    leave_one_out(bench, list(chosen))


def leave_one_out(bench: Bench, names: list[str]) -> None:
    """Chooses among lines by R@10 + MRR on all conversations but one, and scores that one with the choice."""
    held: list[Scores] = []
    for out in range(len(bench.conversations)):

        def worth(name: str, out: int = out) -> float:
            figures = mean([row for number, rows in enumerate(bench.rows[name]) if number != out for row in rows])
            return figures.get("R@10", 0.0) + figures.get("MRR", 0.0)

        best_name = max(names, key=worth)
        held += bench.rows[best_name][out]
        print(f"held out {bench.conversations[out].id}: the others choose {best_name}")
    figures = mean(held)
    print("held out, together: " + ", ".join(f"{name} {100 * figures[name]:.1f}" for name in ("R@5", "R@10", "R@50", "MRR")))


def main() -> None:
    conversations = [found for found in load(Path(sys.argv[1])) if found.turns]
    with asyncio.Runner() as runner:
        model = runner.run(LocalEmbedder.open(load_settings()))
        ladder(Bench(conversations, lambda texts: runner.run(model.embed(texts))))
        runner.run(model.close())


if __name__ == "__main__":
    main()
