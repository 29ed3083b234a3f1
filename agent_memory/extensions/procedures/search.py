"""Search procedures by situation, with vectors and keywords."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redisvl.query import FilterQuery, VectorQuery
from redisvl.query.filter import Tag

from agent_memory.extensions.procedures.records import FIELDS, PROCEDURE, StoredProcedure, decode_procedure, owner_digest
from agent_memory.extensions.procedures.search_index import procedure_index_name
from agent_memory.foundation.core.errors import BudgetSpent, ModelAnswerInvalid, ModelUnavailable
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.prompt_sections import Reader
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import Embedder
from agent_memory.foundation.storage.connection import Pipe
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory.foundation.storage.search.filters import any_of, is_value, tagged, where
from agent_memory.foundation.storage.search.indexes import VectorSpec
from agent_memory.foundation.storage.search.queries import queue_search
from agent_memory.foundation.storage.search.results import DISTANCE, parse_hits
from agent_memory.foundation.storage.search.syntax import all_of, scoring
from agent_memory.foundation.text.terms import query_terms
from agent_memory_client.models.features.procedures import ProcedureMatch, ProcedureOwner, ProcedureResult

log = get_logger(__name__)

# Maximum number of candidates from the keyword search, and from the vector search.
_CANDIDATES = 64
# The shares of vector similarity and word overlap in the fit.
_MEANING, _WORDS = 0.7, 0.3
_FIELDS = [*FIELDS, "k"]


def procedures_of(scope: Scope, *, state: str | None = "active", result: ProcedureResult | None = None) -> str:
    """Return a filter for procedures. None matches any value."""
    parts = [where(scope), is_value("kd", PROCEDURE)]
    parts += [is_value(name, value) for name, value in (("st", state), ("rs", result)) if value is not None]
    return all_of(*parts)


def owned_by(clause: str, owner: ProcedureOwner) -> str:
    """Limit a filter to an owner's procedures. None matches any value."""
    names = (("ns", owner.namespace), ("u", owner.user_id), ("ag", owner.agent_id))
    return all_of(clause, *(is_value(field, name) for field, name in names if name is not None))


def exactly_owned_by(clause: str, scope: Scope, owner: ProcedureOwner) -> str:
    """Limit a filter to exactly this owner. None matches only unset names."""
    return all_of(clause, tagged("ow", [owner_digest(scope.tenant, owner)]))


def shown_to(clause: str, reader: Reader) -> str:
    """Limit a filter to procedures that the reader may see."""
    names = (("ns", reader.namespace), ("u", reader.user_id), ("ag", reader.agent_id))
    options = [(Tag(field).is_missing(), None if name is None else is_value(field, name)) for field, name in names]
    return all_of(clause, *(str(missing) if own is None else any_of(str(missing), str(own)) for missing, own in options))


def word_overlap(one: Collection[str], other: Collection[str]) -> float:
    """Return the Dice coefficient of two sets of terms, or 0.0 if either is empty.

    Source: L. R. Dice, "Measures of the amount of ecologic association between species", Ecology 26 (1945).
    """
    first, second = set(one), set(other)
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0


def fit_of(similarity: float | None, overlap: float) -> float:
    """Return how well a procedure fits: 70% cosine similarity and 30% word overlap.

    If `similarity` is None, the fit is the overlap.
    """
    if similarity is None:
        return overlap
    return _MEANING * max(similarity, 0.0) + _WORDS * overlap


def rank_score(fit: float, rate: float) -> float:
    """Return the ranking score: half the fit at rate 0, the full fit at rate 1."""
    return fit * (1 + rate) / 2


@dataclass(frozen=True, slots=True)
class Situation:
    """A situation to search for. `vector` is None if the model failed."""

    terms: Sequence[str]
    vector: NDArray[np.float32] | None
    notices: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A matching procedure. `similarity` is a cosine, or None if it is not among the nearest."""

    stored: StoredProcedure
    similarity: float | None
    overlap: float
    fit: float

    def to_match(self) -> ProcedureMatch:
        procedure = self.stored.procedure
        values = procedure.model_dump()
        return ProcedureMatch(**values, fit=round(self.fit, 6), rank_score=round(rank_score(self.fit, procedure.rate), 6))


class ProcedureSearch:
    def __init__(self, settings: Settings, keys: Keys, spec: VectorSpec, embedder_of: Callable[[str], Embedder]) -> None:
        self._settings = settings
        self._index = procedure_index_name(keys, spec)
        self._spec = spec
        self._embedder_of = embedder_of

    async def situation_of(self, tenant: str, text: str) -> Situation:
        """Return the situation in a text, truncated to MAX_QUERY_BYTES characters.

        If the model fails or the tenant's budget is spent, the vector is None and a notice explains
        why.
        """
        text = text[: self._settings.limits.query_bytes]
        try:
            return await self.embedded_situation(tenant, text, timeout=self._settings.models.query_embedding_timeout_seconds)
        except BudgetSpent:
            return Situation(query_terms(text), None, ["searched by keywords only: the tenant has used up today's model tokens"])
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            log.warning("procedure search uses words only", tenant=tenant, error=error)
            return Situation(query_terms(text), None, ["searched by keywords only: the embedding model does not answer"])

    async def embedded_situation(self, tenant: str, text: str, *, timeout: float | None = None) -> Situation:
        """Embed a situation. Raises ModelUnavailable or ModelAnswerInvalid."""
        # Situations and `when_to_use` are texts of the same kind, so the embedder gets no query role.
        vectors = await self._embedder_of(tenant).embed([text], timeout=timeout)
        return Situation(query_terms(text), vectors[0])

    def queue_matches(self, pipe: Pipe, clause: str, situation: Situation) -> int:
        """Queue the searches. Return the number of replies."""
        count = 0
        if situation.terms:
            words = FilterQuery(scoring(clause, situation.terms), return_fields=_FIELDS)
            words.scorer("BM25STD").with_scores().paging(0, _CANDIDATES)
            queue_search(pipe, self._index, words)
            count += 1
        if situation.vector is not None:
            nearest = VectorQuery(
                situation.vector.astype(self._spec.numpy_type).tobytes(),
                self._spec.field,
                return_fields=[DISTANCE, *_FIELDS],
                filter_expression=clause,
                dtype=self._spec.numpy_type,
                num_results=_CANDIDATES,
                return_score=False,
            )
            queue_search(pipe, self._index, nearest)
            count += 1
        return count

    def rank_matches(self, replies: Sequence[Any], situation: Situation) -> list[Match]:
        """Return the procedures that share a word or are similar enough, best first."""
        pages = [parse_hits(reply).hits for reply in replies]
        similarities = {} if situation.vector is None else {hit.mid: 1.0 - hit.value for hit in pages[-1]}
        matches: list[Match] = []
        for pid, fields in {hit.mid: hit.fields for hits in pages for hit in hits}.items():
            if b"d" not in fields or b"v" not in fields:
                continue  # deleted after the search
            overlap, similarity = word_overlap(situation.terms, fields.get(b"k", b"").decode().split()), similarities.get(pid)
            if overlap or (similarity is not None and similarity >= self._settings.search.min_similarity):
                stored = StoredProcedure(pid, decode_procedure(fields))
                matches.append(Match(stored, similarity, overlap, fit_of(similarity, overlap)))
        return sorted(matches, key=lambda match: (-rank_score(match.fit, match.stored.procedure.rate), match.stored.procedure.id))
