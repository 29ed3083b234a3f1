"""What a search is on its way through the service: the plan before its round trip, and the ranking after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from agent_memory.analysis import query_terms
from agent_memory.errors import BadInput, Refused
from agent_memory.services import ranking
from agent_memory.services.again import Asked
from agent_memory.services.shares import NOTHING_KNOWN, Known
from agent_memory.storage.cards import Row
from agent_memory.storage.filters import FILTERS
from agent_memory.timewords import Span, beside, named_time, zone_of
from agent_memory_client.models import Condition, SearchModeEnum, SearchRequest

# How deep each list goes before fusion; a later page goes deeper, in steps, so that pages of one search agree.
DEPTHS = (100, 400, 1600, 6400)
# What has no further pages is ranked alike from half as much: docs/recall.md has the measurements.
_DEPTH_WITHOUT_PAGES = 50
# A search that weighs age looks deeper at once: what is new enough may be far down by its words and its meaning.
_AGE_DEPTH = 400


@dataclass(slots=True)
class Plan:
    """A search that is ready for its round trip: what it asks of the index. `mode` None lists without a query.

    `subject` is what is left of the words beside the time that the query names, empty when nothing is; `spoken` is the query as it is
    compared by meaning, `left_out` the words that it lost for that, `notices` what was not done as asked; words that are `muted` match and
    do not score.
    """

    mode: SearchModeEnum | None
    clause: str
    request: SearchRequest
    terms: Sequence[str] = ()
    vector: NDArray[np.float32] | None = None
    depth: int = 100
    span: Span | None = None
    subject: Sequence[str] = ()
    empty: bool = False
    degraded: bool = False
    spoken: str | None = None
    left_out: Sequence[str] = ()
    notices: Sequence[str] = ()
    scorer: str = "BM25STD"
    rewritten: bool = False
    muted: Collection[str] = ()
    phrases: Sequence[str] = ()
    """Clauses of the phrases that the query quotes, of `analysis.phrases`; by words alone one of them or a loose term is enough."""
    loose: Sequence[str] = ()
    past: str | None = None
    """The clause for history, where that is asked, too."""
    known: Known = NOTHING_KNOWN
    """What the plan was made from."""
    around: str | None = None
    """The clause of all memories that this is about, where the plan's own is another."""
    paged: bool = True
    """Whether further pages may be asked for."""
    weights: ranking.RecencyWeights | None = None
    """How much age counts: as the request says, a little when it says nothing, not at all when it says so, and in no listing."""
    asked: Asked | None = None
    """What it is the answer to, by which is known what was read for it before."""
    expected: Sequence[str] = ()
    """Names of memories that are read along with it."""
    rows: Mapping[str, Row] = field(default_factory=dict[str, Row])
    """What was read of these."""

    @property
    def floored(self) -> bool:
        """Whether what is neither near enough nor shares a word is left out: in a prompt, which has no further pages. Who searches gets
        what is nearest, however far that is."""
        return not self.paged

    @property
    def fused(self) -> bool:
        """Whether lists by meaning and by words are put together."""
        return self.mode is SearchModeEnum.HYBRID and self.vector is not None

    @property
    def checked(self) -> bool:
        """Whether it is to be seen from the replies that what the plan was made from still holds: it was remembered."""
        return self.known.remembered and self.vector is not None and self.mode is not SearchModeEnum.KEYWORD


class Ranked(NamedTuple):
    """A memory's place in an answer: its score (0..1, more is better), its distance (0..2), and where they come from.

    `created` (epoch seconds) is None in listings. `recency` (0..1) and `reranked` (a reranker's own scale) say what
    else its place is due to.
    """

    mid: str
    score: float | None
    distance: float
    parts: ranking.Parts | None = None
    created: float | None = None
    accessed: float | None = None
    recency: float | None = None
    reranked: float | None = None


class Places(Sequence[Ranked]):
    """Places of an answer, best first. Each is put together when it is looked at: ten of hundreds are shown.

    `order` are scores and names; `place` makes the place of one of them; `created` and `accessed` are times (epoch seconds) by name, and
    `recency` says how recent a name is.
    """

    __slots__ = ("_place", "_recency", "accessed", "created", "order")

    def __init__(
        self,
        order: Sequence[ranking.Scored],
        place: Callable[[float, str], Ranked],
        created: Mapping[str, float] = MappingProxyType({}),
        accessed: Mapping[str, float] = MappingProxyType({}),
        recency: Callable[[str], float] | None = None,
    ) -> None:
        self.order = order
        self.created = created
        self.accessed = accessed
        self._place = place
        self._recency = recency

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, index: int) -> Ranked: ...

    @overload
    def __getitem__(self, index: slice) -> list[Ranked]: ...

    def __getitem__(self, index: int | slice) -> Ranked | list[Ranked]:
        return [self.at(*one) for one in self.order[index]] if isinstance(index, slice) else self.at(*self.order[index])

    def __iter__(self) -> Iterator[Ranked]:
        return (self.at(*one) for one in self.order)

    def at(self, score: float, name: str) -> Ranked:
        """The place of a name."""
        known = self._place(score, name)
        if not self.created and self._recency is None:
            return known
        recency = None if self._recency is None else self._recency(name)
        return Ranked(*known[:4], created=self.created.get(name), accessed=self.accessed.get(name), recency=recency)

    def reordered(self, order: Sequence[ranking.Scored], recency: Callable[[str], float]) -> Places:
        """The same places in another order, and how recent they are."""
        return Places(order, self._place, self.created, self.accessed, recency)


@dataclass(frozen=True, slots=True)
class Ranking:
    """All that was ranked, best first, and how many memories match; `dropped` were ranked, but are not near enough."""

    total: int
    ranked: Sequence[Ranked]
    dropped: Sequence[Ranked] = ()
    notices: Sequence[str] = ()


_OWNERS = frozenset({"user_id", "namespace", "session_id", "agent_id"})


def filters_content(wanted: SearchRequest | Condition) -> bool:
    """Whether a request narrows its search by more than whose memories are meant: by type, topics, dates, metadata and the like."""
    if any(getattr(wanted, name) is not None for name in FILTERS if name != "filter" and name not in _OWNERS):
        return True
    if isinstance(wanted, SearchRequest):
        return wanted.filter is not None and filters_content(wanted.filter)
    inner = [*(wanted.and_ or ()), *(wanted.or_ or ()), *([] if wanted.not_ is None else [wanted.not_])]
    return any(filters_content(one) for one in inner)


def depth_of(request: SearchRequest, *, paged: bool = True) -> int:
    """How many places of each list are looked at for a page, or for an answer that has no further ones."""
    least = 2 * (request.offset + request.limit)
    if asks_for_recency(request):
        least = max(least, _AGE_DEPTH)
    if not paged and least <= _DEPTH_WITHOUT_PAGES:
        return _DEPTH_WITHOUT_PAGES
    return next((depth for depth in DEPTHS if depth >= least), request.offset + request.limit)


def mode_of(request: SearchRequest) -> SearchModeEnum:
    """The mode that was asked for, else what measures best: both, or meaning alone when a distance is asked for."""
    threshold = request.distance_threshold
    if "search_mode" not in request.model_fields_set:
        return SearchModeEnum.HYBRID if threshold is None else SearchModeEnum.SEMANTIC
    if threshold is not None and request.search_mode is not SearchModeEnum.SEMANTIC:
        raise Refused("distance_threshold is only supported for semantic search mode: leave one of them out", field="distance_threshold")
    return request.search_mode


def span_of(request: SearchRequest, text: str) -> Span | None:
    """The time that the query names, as its user sees it. Raises BadInput for an unknown time zone."""
    try:
        zone = zone_of(request.timezone)
    except ValueError as error:
        raise BadInput(str(error), field="timezone") from error
    return named_time(text, request.reference_time or datetime.now(UTC), zone)


# Words of questions that ask for a time and for nothing that a memory would say.
_ANYTHING = frozenset(
    query_terms(
        "anything everything something thing things stuff happen happened happening event events news new go goes going went on up tell"
        " told say said talk talked talking discuss discussed mention mentioned speak spoke chat remember recall know memory memories"
        " list show all"
    )
)


def subject_of(text: str, span: Span | None) -> Sequence[str]:
    """The words that a query asks for beside the time that it names; none without a time, or when all that it asks is what was then."""
    return () if span is None else tuple(term for term in query_terms(beside(text, span)) if term not in _ANYTHING)


_WEIGHTS = {
    "recency_semantic_weight": "semantic",
    "recency_recency_weight": "recency",
    "recency_freshness_weight": "freshness",
    "recency_novelty_weight": "novelty",
    "recency_half_life_last_access_days": "half_life_accessed",
    "recency_half_life_created_days": "half_life_created",
}


def asks_for_recency(request: SearchRequest) -> bool:
    """Whether the request wants its answer ordered by age too, by any of the contract's parameters."""
    if request.recency_boost is False:
        return False
    given = vars(request)
    if request.recency_boost or request.server_side_recency:
        return True
    return not _WEIGHTS.keys().isdisjoint(request.model_fields_set) and any(given[name] is not None for name in _WEIGHTS)


def recency_of(request: SearchRequest) -> ranking.RecencyWeights | None:
    """The weights of a search: the contract's with what the request changes of them, the mild ones when it says nothing of age."""
    if request.recency_boost is False:
        return None
    if not asks_for_recency(request):
        return ranking.MILD
    given: dict[str, Any] = {name: value for field, name in _WEIGHTS.items() if (value := getattr(request, field)) is not None}
    return ranking.RecencyWeights(**given)
