"""Fit `weights.json`, the weights for the relevance of memories, and cross-validate them by set.

    .venv/bin/python scripts/fit_relevance.py SETS --vectors /tmp/vectors --model multilingual-e5-small
        --model all-MiniLM-L6-v2 [--write]

The script asks questions about entire conversations and about excerpts of 4 to 120 turns, which
resemble the stores of new users. An excerpt contains consecutive turns, with or without a
question's evidence, or one evidence turn among random others. Questions from other conversations
have no answer. All calculations use the server's own functions, but NumPy replaces the search
index.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import numpy as np

from agent_memory.features.memories.search.candidates import CandidateList, Candidates, lists_of
from agent_memory.features.memories.search.document_frequency import TermStatistic, TermStatistics
from agent_memory.features.memories.search.list_scores import bm25, mean_length
from agent_memory.features.memories.search.query import QueryBuilder, SearchQuery
from agent_memory.features.memories.search.ranking import rank_candidates
from agent_memory.features.memories.search.relevance.estimate import Features, known_share, least_of, probability
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings, load_settings
from agent_memory.foundation.llm.base import TextRole, Vectors
from agent_memory.foundation.llm.local.embedder import LocalEmbedder
from agent_memory.foundation.llm.profiles import profile_of
from agent_memory.foundation.llm.wrappers.caching import CachingEmbedder
from agent_memory.foundation.llm.wrappers.profiled import ProfiledEmbedder
from agent_memory.foundation.storage.search.results import Hits
from agent_memory.foundation.text.languages.speakers import speakers_of
from agent_memory.foundation.text.passages.splitting import beginning, split_passages
from agent_memory.foundation.text.retrieval_units import REACH, needs_context, passage_terms, unit_terms, unit_vector
from agent_memory_client.models import MemoryRecord, MemoryTypeEnum, SearchRequest
from agent_memory_eval.question_sets import Conversation, Question, QuestionSet, Turn, load_all

WEIGHTS = Path(__file__).parents[1] / "agent_memory/features/memories/search/relevance/weights.json"
_SCOPE = Scope("default")
_SHOWN, _FIRST = 20, 10
_LEAST, _MOST = 4, 120
_WEIGHT, _RIDGE = 250, 2.0
_BINS = 10


class Embedding:
    """The server's embedder, with a file that caches vectors between runs."""

    def __init__(self, model: str, directory: Path | None) -> None:
        self.model = model
        self.settings: Settings = load_settings(LOCAL_MODEL=model, EMBEDDING_PROVIDER="local", MODEL_PROVIDER="local")
        self._file = None if directory is None else directory / f"{model}.npz"
        self._rows: dict[str, Vectors] = {}
        self._inner: ProfiledEmbedder | None = None
        if self._file is not None and self._file.exists():
            with np.load(self._file) as saved:
                self._rows = dict(zip(saved["keys"].tolist(), saved["rows"].astype(np.float32), strict=True))

    async def embed(self, texts: Sequence[str], *, role: TextRole = "document", timeout: float | None = None) -> Vectors:
        """See Embedder.embed."""
        keys = [blake2b(f"{role} {text}".encode(), digest_size=16).hexdigest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
        if missing:
            if self._inner is None:
                local = await LocalEmbedder.open(self.settings)
                self._inner = ProfiledEmbedder(CachingEmbedder(local, entries=0), profile_of(self.model))
            self._rows |= zip(missing, await self._inner.embed([*missing.values()], role=role, timeout=timeout), strict=True)
        return np.stack([self._rows[key] for key in keys])

    async def close(self) -> None:
        """Save the vectors and close the embedder."""
        if self._file is not None and self._inner is not None:
            np.savez(self._file, keys=np.array([*self._rows]), rows=np.stack([*self._rows.values()]).astype(np.float16))
        if self._inner is not None:
            await self._inner.close()


class Turns:
    """An in-memory index of turns that replaces RediSearch."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self._names = [str(place) for place in range(len(turns))]

    @classmethod
    async def of(cls, turns: Sequence[Turn], embedding: Embedding) -> Turns:
        self = cls(turns)
        records = [
            MemoryRecord(
                id=turn.id,
                text=turn.text,
                memory_type=MemoryTypeEnum.MESSAGE,
                session_id=turn.session,
                created_at=turn.time,
                event_date=turn.time,
            )
            for turn in turns
        ]
        sessions = defaultdict[str, list[int]](list)
        for place, turn in enumerate(turns):
            sessions[turn.session].append(place)
        vectors = await embedding.embed([beginning(turn.text) for turn in turns])
        documents, rows = dict[int, str](), dict[int, Vectors]()
        for places in sessions.values():
            for at, place in enumerate(places):
                before, after = places[max(0, at - REACH) : at], places[at + 1 : at + 1 + REACH]
                documents[place] = unit_terms(records[place], [records[one] for one in before], [records[one] for one in after])
                context = needs_context(beginning(turns[place].text))
                rows[place] = unit_vector(vectors[place], [vectors[one] for one in before], [vectors[one] for one in after], context)
        self._documents, self._rows = (
            [documents[place] for place in range(len(turns))],
            np.stack([rows[place] for place in range(len(turns))]),
        )
        spans = [
            (place, number, *span) for place, turn in enumerate(turns) for number, span in enumerate(split_passages(turn.text), start=1)
        ]
        texts = [turns[place].text[start:end] for place, _, start, end in spans]
        self._passage_names = [f"{place}.{number}" for place, number, _, _ in spans]
        self._passages = [passage_terms(records[place], text) for (place, *_), text in zip(spans, texts, strict=True)]
        self._passage_rows = await embedding.embed(texts) if texts else np.zeros((0, vectors.shape[1]), np.float32)
        self._counts = [len(split_passages(turns[place].text)) for place, *_ in spans]
        self._sets = [frozenset(document.split(" ")) for document in self._documents]
        self._passage_sets = [frozenset(document.split(" ")) for document in self._passages]
        return self

    async def count_terms(self, clause: str, terms: Sequence[str], *, settle: bool = False) -> TermStatistics:
        """Count the turns that contain each term, like `DocumentFrequencies.count_terms`."""
        counted = {term: TermStatistic(sum(term in each for each in self._sets), 0.0) for term in terms}
        newest = self._documents[-100:]
        return TermStatistics(len(self.turns), counted, mean_length(newest), speakers_of(newest))

    def candidates(self, query: SearchQuery) -> Candidates:
        """Return all candidate lists for a query."""
        return {wanted: self._hits(query, wanted) for wanted in lists_of(query)}

    def _hits(self, query: SearchQuery, wanted: CandidateList) -> Hits:
        places, words = range(len(self.turns)), query.words
        if wanted in (CandidateList.NEAREST_IN_TIME, CandidateList.BEST_BY_WORDS_IN_TIME):
            span = query.span
            places = [place for place in places if span is not None and span.start <= self.turns[place].time < span.end]
        match wanted:
            case CandidateList.NEAREST | CandidateList.NEAREST_IN_TIME:
                return self._nearest(query, self._names, self._rows, places)
            case CandidateList.NEAREST_PASSAGES:
                return self._nearest(query, self._passage_names, self._passage_rows, range(len(self._passages)), self._counts)
            case CandidateList.BEST_BY_WORDS:
                return self._best(query, words.terms, self._names, self._documents, self._sets, places)
            case CandidateList.BEST_BY_WORDS_IN_TIME:
                return self._best(query, words.subject or words.terms, self._names, self._documents, self._sets, places)
            case CandidateList.BEST_PASSAGES_BY_WORDS:
                sets, passages = self._passage_sets, range(len(self._passages))
                return self._best(query, words.terms, self._passage_names, self._passages, sets, passages)
            case _:
                return Hits(0, distances=True)

    def _nearest(self, query: SearchQuery, names: Sequence[str], rows: Vectors, places: Sequence[int], counts: Sequence[int] = ()) -> Hits:
        assert query.meaning is not None
        distances = 1.0 - rows @ query.meaning.vector
        order = sorted(places, key=lambda place: distances[place])[: query.depth]
        fields = [{b"pn": str(counts[place]).encode()} for place in order] if counts else ()
        return Hits(len(places), [names[place] for place in order], [float(distances[place]) for place in order], fields, distances=True)

    def _best(
        self,
        query: SearchQuery,
        terms: Sequence[str],
        names: Sequence[str],
        documents: Sequence[str],
        sets: Sequence[frozenset[str]],
        places: Iterable[int],
    ) -> Hits:
        wanted = frozenset(terms)
        matching = [place for place in places if not wanted.isdisjoint(sets[place])]
        newest = self._documents[-100:]
        scores = bm25([documents[place] for place in matching], query.words.weights, mean_length(newest))
        order = sorted(range(len(matching)), key=lambda at: -scores[at])[: query.depth]
        fields = [{b"k": documents[matching[at]].encode()} for at in order]
        return Hits(len(matching), [names[matching[at]] for at in order], [scores[at] for at in order], fields)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ranked turn with its features."""

    is_evidence: bool
    features: Features


@dataclass(frozen=True, slots=True)
class Sample:
    """A question and its candidates. `known` is None if any turn can be the answer."""

    set: str
    whole: bool
    memories: int
    evidence: int
    known: Features | None
    candidates: Sequence[Candidate]


async def ask(name: str, store: Turns, question: Question, embedding: Embedding, *, whole: bool = False) -> Sample | None:
    """Ask a question the way a prompt does. Return None if its script is not supported."""
    builder = QueryBuilder(embedding.settings, cast("Any", store), lambda _: cast("Any", embedding), cast("Any", None), reranks=False)
    request = SearchRequest.model_validate(
        {"text": question.text, "limit": _SHOWN, "user_id": {"eq": "u"}, "quarantined": False, "min_relevance": 0.0}
        | ({"reference_time": question.time} if question.time else {})
    )
    query = await builder.build_query(_SCOPE, request, paged=False)
    if query.meaning is None or query.meaning.unknown_script:
        return None
    ranking = rank_candidates(query, store.candidates(query), profile_of(embedding.model).least)
    relevance, evidence = ranking.relevance, {str(place) for place, turn in enumerate(store.turns) if turn.id in question.evidence}
    if relevance is None:
        return None
    candidates = [Candidate(each in evidence, relevance.memory_features(each)) for _, each in ranking.scored]
    return Sample(name, whole, len(store.turns), len(evidence), None if relevance.narrowed else relevance.known_features(), candidates)


async def samples_of(questions: QuestionSet, embedding: Embedding, most: int) -> list[Sample]:
    """Ask about `most` questions with evidence, and all questions without.

    Use entire conversations and excerpts.
    """
    rng, samples = random.Random(5), list[Sample | None]()
    share = max(1, most // len(questions.conversations))
    for conversation in questions.conversations[: most if most < len(questions.conversations) else None]:
        whole = await Turns.of(conversation.turns, embedding)
        with_evidence = [question for question in conversation.questions if question.evidence]
        without_evidence = [question for question in conversation.questions if not question.evidence]
        with_evidence = rng.sample(with_evidence, min(share, len(with_evidence)))
        samples += [await ask(questions.name, whole, question, embedding, whole=True) for question in (*with_evidence, *without_evidence)]
        for question in with_evidence:
            for part in parts_of(conversation, question, rng):
                samples.append(await ask(questions.name, await Turns.of(part, embedding), question, embedding))
        for question in without_evidence:
            part = _row(conversation.turns, _size(conversation, rng), rng)
            samples.append(await ask(questions.name, await Turns.of(part, embedding), question, embedding))
    return [sample for sample in samples if sample is not None]


def parts_of(conversation: Conversation, question: Question, rng: random.Random) -> list[Sequence[Turn]]:
    """Return evidence among random turns, and consecutive turns with and without evidence.

    The last excerpt is missing if all turns are near evidence.
    """
    turns, size = conversation.turns, _size(conversation, rng)
    evidence = [place for place, turn in enumerate(turns) if turn.id in question.evidence]
    others = [place for place in range(len(turns)) if place not in evidence]
    scattered = sorted([rng.choice(evidence), *rng.sample(others, min(size, len(others)))])
    first = max(0, min(rng.choice(evidence) - rng.randrange(size), len(turns) - size))
    parts = [[turns[place] for place in scattered], turns[first : first + size]]
    # Turns near the evidence have the same topic, so the part without evidence must keep its distance.
    free = [start for start in range(len(turns) - size + 1) if not any(start - REACH <= place < start + size + REACH for place in evidence)]
    if free:
        start = rng.choice(free)
        parts.append(turns[start : start + size])
    return parts


def _size(conversation: Conversation, rng: random.Random) -> int:
    return min(round(math.exp(rng.uniform(math.log(_LEAST), math.log(_MOST)))), max(len(conversation.turns) - 1, 1))


def _row(turns: Sequence[Turn], size: int, rng: random.Random) -> Sequence[Turn]:
    start = rng.randrange(len(turns) - size + 1)
    return turns[start : start + size]


Weights = Mapping[str, Features]


def fit(samples: Sequence[Sample]) -> Weights:
    """Fit the weights for both regressions.

    Each set has equal weight. Within a set, entire conversations and excerpts have equal weight, as
    do questions with and without evidence.
    """
    known, memory = list[tuple[Features, bool, float]](), list[tuple[Features, bool, float]]()
    alike = Counter((sample.set, sample.whole, sample.evidence > 0) for sample in samples if sample.known is not None)
    answered = Counter(sample.set for sample in samples if sample.evidence)
    for sample in samples:
        has = sample.evidence > 0
        if sample.known is not None:
            known.append((sample.known, has, _WEIGHT / alike[sample.set, sample.whole, has]))
        if has:
            memory += [(each.features, each.is_evidence, _WEIGHT / answered[sample.set]) for each in sample.candidates]
    return {"known": regression(known), "memory": regression(memory)}


def regression(rows: Sequence[tuple[Features, bool, float]]) -> Features:
    """Fit a logistic regression with a small ridge penalty using Newton's method."""
    names = [*rows[0][0]]
    values = np.array([[features[name] for name in names] for features, _, _ in rows])
    target, weight = np.array([float(has) for _, has, _ in rows]), np.array([weight for _, _, weight in rows])
    mean, scale = values.mean(axis=0), values.std(axis=0) + 1e-9
    inputs = np.c_[(values - mean) / scale, np.ones(len(values))]
    ridge, found = np.diag([*[_RIDGE] * len(names), 1e-6]), np.zeros(len(names) + 1)
    for _ in range(30):
        estimated = 1 / (1 + np.exp(-inputs @ found))
        slope = inputs.T @ (weight * (target - estimated)) - ridge @ found
        found += np.linalg.solve((inputs.T * (weight * estimated * (1 - estimated))) @ inputs + ridge, slope)
    by_name = found[:-1] / scale
    return {"bias": float(found[-1] - by_name @ mean), **dict(zip(names, map(float, by_name), strict=True))}


def relevances(sample: Sample, weights: Weights) -> list[float]:
    known = 1.0 if sample.known is None else known_share(probability(weights["known"], sample.known), sample.memories)
    return [known * probability(weights["memory"], each.features) if known else 0.0 for each in sample.candidates]


def report(samples: Sequence[Sample], weights: Weights) -> str:
    """Format statistics about the resulting prompts."""
    parts = list[str]()
    for whole in (True, False):
        shown = [(sample, _shown(sample, weights)) for sample in samples if sample.whole is whole]
        with_evidence = [(sample, each) for sample, each in shown if sample.evidence]
        without_evidence = [each for sample, each in shown if not sample.evidence]
        evidence = sum(each.is_evidence for _, listed in with_evidence for each in listed)
        first = _FIRST if not whole else _SHOWN
        uncut = sum(each.is_evidence for sample, _ in with_evidence for each in sample.candidates[:first])
        lines, nothing = sum(len(listed) for _, listed in with_evidence), sum(not listed for listed in without_evidence)
        parts.append(
            f"{'whole' if whole else 'parts'}: evidence {100 * evidence / max(sum(s.evidence for s, _ in with_evidence), 1):5.1f}"
            f" ({100 * evidence / max(uncut, 1):5.1f} of the first {first}), precision {100 * evidence / max(lines, 1):4.1f},"
            f" {lines / max(len(with_evidence), 1):4.1f} lines; without evidence:"
            f" nothing shown {100 * nothing / max(len(without_evidence), 1):3.0f} %,"
            f" {sum(map(len, without_evidence)) / max(len(without_evidence), 1):4.1f} lines"
        )
    return "\n  ".join(parts)


def _shown(sample: Sample, weights: Weights) -> list[Candidate]:
    estimated, least = zip(sample.candidates, relevances(sample, weights), strict=True), least_of(sample.memories, _SHOWN)
    return [each for each, relevance in estimated if relevance >= least][:_SHOWN]


def reliability(samples: Sequence[Sample], weights: Weights) -> str:
    """Format predicted and observed evidence rates for both regressions, in ten bins."""
    memories = [
        (value, each.is_evidence) for sample in samples for each, value in zip(sample.candidates, relevances(sample, weights), strict=True)
    ]
    known = [(probability(weights["known"], sample.known), sample.evidence > 0) for sample in samples if sample.known is not None]
    lines = list[str]()
    for name, pairs in (("relevance", memories), ("known", known)):
        pairs.sort()
        bins = [pairs[len(pairs) * at // _BINS : len(pairs) * (at + 1) // _BINS] for at in range(_BINS)]
        means = (np.mean(np.array(each, dtype=float), axis=0) for each in bins if each)
        lines.append(f"{name}, predicted/observed: " + " ".join(f"{predicted:.3f}/{observed:.3f}" for predicted, observed in means))
    return "\n  ".join(lines)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", type=Path, nargs="+", help="files or folders of question sets")
    parser.add_argument("--model", action="append", help="a local embedding model, may be given several times (default: LOCAL_MODEL)")
    parser.add_argument("--questions", type=int, default=150, help="about how many questions with evidence to ask from each set")
    parser.add_argument("--vectors", type=Path, help="a folder that stores vectors for the next run")
    parser.add_argument("--write", action="store_true", help="write weights.json")
    options = parser.parse_args()
    samples = list[Sample]()
    for model in options.model or [load_settings().models.local_model]:
        embedding = Embedding(model, options.vectors)
        for questions in load_all(options.sets):
            samples += await samples_of(questions, embedding, options.questions)
            print(f"{model}: {questions.name}: {len(samples)} samples", flush=True)
        await embedding.close()
    for name in dict.fromkeys(sample.set for sample in samples):
        weights = fit([sample for sample in samples if sample.set != name])
        left_out = [sample for sample in samples if sample.set == name]
        print(f"{name}, left out\n  {report(left_out, weights)}\n  {reliability(left_out, weights)}", flush=True)
    weights = fit(samples)
    text = json.dumps({name: {key: round(value, 3) for key, value in each.items()} for name, each in weights.items()}, indent=2)
    print(text)
    if options.write:
        WEIGHTS.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
