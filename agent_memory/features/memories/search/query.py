"""Turn a search request into an index query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

import numpy as np
from numpy.typing import NDArray

from agent_memory.features.memories.search import document_frequency
from agent_memory.features.memories.search.document_frequency import DocumentFrequencies
from agent_memory.features.memories.search.recency import TIEBREAK, Age, RecencyWeights, age_of, asks_for_recency, weights_of
from agent_memory.features.memories.search.rewriting import QueryRewriter
from agent_memory.foundation.core.clock import zone_of
from agent_memory.foundation.core.errors import BadInput, BudgetSpent, ModelAnswerInvalid, ModelUnavailable, UnsupportedRequest
from agent_memory.foundation.core.logs import get_logger
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.settings import Settings
from agent_memory.foundation.llm.base import Embedder
from agent_memory.foundation.llm.profiles import UNKNOWN, ModelProfile, profile_of
from agent_memory.foundation.llm.threads import run_in_thread
from agent_memory.foundation.storage.search import filters, syntax
from agent_memory.foundation.text import terms as analysis
from agent_memory.foundation.text.cleaning.control_characters import plain_text
from agent_memory.foundation.text.dates.question_time import Span, beside, question_time
from agent_memory.foundation.text.languages.speakers import without_names
from agent_memory.foundation.text.passages.splitting import ending
from agent_memory.foundation.text.stemming.foreign import is_in_other_script
from agent_memory_client.models import SearchModeEnum, SearchRequest, is_blank

log = get_logger(__name__)

# The depth of each list before fusion. Later pages go deeper in steps, so that pages are consistent.
_DEPTHS = (100, 400, 1600, 6400)
# Without pages, half the depth gives an equally good ranking; docs/recall.md has the measurements.
_DEPTH_WITHOUT_PAGES = 50
# By words and meaning alone, recent memories may rank very low.
_AGE_DEPTH = 400


@dataclass(slots=True)
class QueryWords:
    """The query's words.

    - `subject`: the terms that do not refer to a time.
    - `muted`: terms that find no candidates on their own.
    - `weights`: each term's IDF.
    """

    terms: Sequence[str] = ()
    subject: Sequence[str] = ()
    muted: Collection[str] = ()
    phrase: str = ""
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    mean_length: float = 1.0
    memories: int = 0
    unknown: float = 0.0
    """The weighted share of unknown terms in the subject or, if there is none, in all terms."""


@dataclass(slots=True)
class QueryMeaning:
    """A query's vector, the embedded text, the omitted names, and the model's profile.

    `unknown_script` is True if the model was not trained on the text's script.
    """

    vector: NDArray[np.float32]
    text: str
    omitted_names: Sequence[str] = ()
    unknown_script: bool = False
    profile: ModelProfile = UNKNOWN


@dataclass(slots=True)
class SearchQuery:
    """A search that is ready to send to Redis. If `mode` is None, it is a listing.

    - `history`: the clause for the history, or None to skip the history.
    - `meaning`: None in a keyword-only search.
    - `paged`: True if more pages may follow.
    - `facts_apart`: True if facts get separate candidate lists.
    """

    request: SearchRequest
    clause: str
    history: str | None
    depth: int
    mode: SearchModeEnum | None = None
    words: QueryWords = field(default_factory=QueryWords)
    meaning: QueryMeaning | None = None
    span: Span | None = None
    rewritten: bool = False
    paged: bool = True
    age: Age = Age.IGNORED
    weights: RecencyWeights = TIEBREAK
    notices: Sequence[str] = ()
    facts_apart: bool = False

    @property
    def clauses(self) -> list[tuple[str, bool]]:
        """The clauses to search with, and whether each one is for the history."""
        return [(self.clause, False), *([] if self.history is None else [(self.history, True)])]

    @property
    def empty(self) -> bool:
        """True if the query cannot match anything."""
        return self.mode is not None and self.meaning is None and not self.words.terms

    @property
    def score_type(self) -> str | None:
        """The type of the response's scores, or None for a listing."""
        if self.mode is None:
            return None
        return "keyword" if self.meaning is None else self.mode.value


# Returns a user's time zone in a namespace, or UTC if it is unknown.
LoadZone = Callable[[Scope, str | None, str | None], Awaitable[tzinfo]]


class QueryBuilder:
    def __init__(
        self,
        settings: Settings,
        frequencies: DocumentFrequencies,
        embedder_of: Callable[[str], Embedder],
        rewriter: QueryRewriter,
        *,
        reranks: bool,
    ) -> None:
        """Create a builder. `embedder_of` returns a tenant's embedder.

        `reranks` is True if a model reranks the results.
        """
        self._settings = settings
        self._frequencies = frequencies
        self._embedder_of = embedder_of
        self._rewriter = rewriter
        self._reranks = reranks
        self._load_zone: LoadZone | None = None

    def register_zones(self, load_zone: LoadZone) -> None:
        self._load_zone = load_zone

    async def build_query(self, scope: Scope, request: SearchRequest, *, optimize_query: bool = False, paged: bool = True) -> SearchQuery:
        """Return the query for a request. Raises UnsupportedRequest, BadInput or RedisUnavailable.

        With `optimize_query`, a language model rewrites the text for the vector search. `notices`
        reports model failures.
        """
        if not self._settings.longterm.enabled:
            raise UnsupportedRequest(
                "long-term memory is switched off (LONG_TERM_MEMORY=false)", field="long_term_memory", where="settings"
            )
        request, notices = self._bounded(request)
        text = request.text or ""
        request, span = await self._with_zone(scope, request, text)
        where = filters.where(scope, request)
        clause, history = filters.clauses(scope, request, where)
        depth = depth_of(request, paged=paged)
        if not text:
            return SearchQuery(request, clause, history, depth, notices=notices)
        mode = mode_of(request)
        subject, terms = subject_of(text, span), analysis.query_terms(text)
        if span is not None and subject and not span.is_in_words:
            terms = subject  # "Three days ago" must not find "three", and "before May 2022" must not find that month.
        spoken, rewritten = text, False
        # The archived server rewrites only semantic searches. There, a search without a mode is semantic.
        named = "search_mode" in request.model_fields_set
        if optimize_query and mode is not SearchModeEnum.KEYWORD and (mode is SearchModeEnum.SEMANTIC or not named):
            spoken, notice = await self._rewriter.rewritten(scope.tenant, text)
            rewritten = notice is None
            notices += [notice] if notice else []
        spoken_terms = analysis.query_terms(spoken) if rewritten else terms
        around, by_meaning = document_frequency.around(scope, request, where), mode is not SearchModeEnum.KEYWORD
        statistics = await self._frequencies.count_terms(around, [*dict.fromkeys([*terms, *spoken_terms])], settle=by_meaning)
        meaning: QueryMeaning | None = None
        if by_meaning:
            # In a semantic search, the distance must be the distance from the unchanged text.
            hybrid = mode is SearchModeEnum.HYBRID
            spoken, omitted_names = without_names(ending(spoken), statistics.speakers) if hybrid else (spoken, ())
            meaning, notice = await self._meaning(scope.tenant, spoken, omitted_names)
            notices += [f"{notice}: searched by keywords only"] if notice else []
        # On the archived server, a search without a mode is semantic, and quotation marks have no meaning.
        phrase = _phrase(text, mode) if named and mode is not SearchModeEnum.SEMANTIC else ""
        whole = bool(self._reranks or request.explain or request.distinct or history is not None)
        return SearchQuery(
            request,
            clause,
            history,
            depth,
            mode,
            QueryWords(
                terms,
                subject,
                document_frequency.overrated(terms, statistics),
                phrase,
                {term: weight for term, weight in statistics.weights().items() if term in terms},
                statistics.mean_length,
                statistics.total,
                statistics.unknown_share(subject or terms),
            ),
            meaning,
            span,
            rewritten,
            paged,
            age_of(request, names_time=span is not None, whole=whole),
            weights_of(request),
            notices,
            facts_apart=not paged and mode is not SearchModeEnum.SEMANTIC and request.memory_type is None and history is None,
        )

    async def _with_zone(self, scope: Scope, request: SearchRequest, text: str) -> tuple[SearchRequest, Span | None]:
        """Return the request, with the user's time zone added if needed, and its time span."""
        # Finding dates in a text takes longer than finding words.
        span = await run_in_thread(lambda: span_of(request, text), 2 * len(text))
        if request.timezone is not None or self._load_zone is None or (span is None and not filters.names_days(request)):
            return request, span
        zone = await self._load_zone(scope, filters.only_value(request, "namespace"), filters.only_value(request, "user_id"))
        zoned = request.model_copy(update={"timezone": str(zone)})
        return zoned, span if zone is UTC else await run_in_thread(lambda: span_of(zoned, text), 2 * len(text))

    async def _meaning(self, tenant: str, spoken: str, omitted_names: Sequence[str]) -> tuple[QueryMeaning | None, str | None]:
        """Return the query's meaning, or None and the reason why embedding failed."""
        try:
            timeout = self._settings.models.query_embedding_timeout_seconds
            embedder = self._embedder_of(tenant)
            vectors = await embedder.embed([spoken], role="query", timeout=timeout)
            unknown = self._settings.models.embeds_latin_only and is_in_other_script(spoken)
            return QueryMeaning(vectors[0], spoken, omitted_names, unknown, profile_of(embedder.model)), None
        except BudgetSpent:
            return None, "the tenant has used up today's model tokens (LIMIT_MODEL_TOKENS_PER_DAY)"
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            log.warning("search uses words only", tenant=tenant, error=error)
            return None, "the embedding model does not answer"

    def _bounded(self, request: SearchRequest) -> tuple[SearchRequest, list[str]]:
        text = "" if is_blank(request.text or "") else plain_text(request.text or "").strip()
        if text != (request.text or ""):
            request = request.model_copy(update={"text": text})
        most = self._settings.limits.query_bytes
        # A character takes at most four bytes.
        if len(text) * 4 <= most or (len(text) <= most and len(text.encode()) <= most):
            return request, []
        # `most` bytes contain at most `most` characters. Drop a partial character at the end.
        beginning = text[:most].encode()[:most].decode(errors="ignore")
        notice = f"the query is longer than {most} bytes (MAX_QUERY_BYTES): searched for its beginning"
        return request.model_copy(update={"text": beginning}), [notice]


def _phrase(text: str, mode: SearchModeEnum) -> str:
    phrases = analysis.phrases(text)
    return syntax.quoting(phrases, analysis.loose_terms(text), every=mode is SearchModeEnum.HYBRID) if phrases else ""


def depth_of(request: SearchRequest, *, paged: bool = True) -> int:
    """Return how many hits to read from each list."""
    least = 2 * (request.offset + request.limit)
    if asks_for_recency(request):
        least = max(least, _AGE_DEPTH)
    if not paged and least <= _DEPTH_WITHOUT_PAGES:
        return _DEPTH_WITHOUT_PAGES
    return next((depth for depth in _DEPTHS if depth >= least), request.offset + request.limit)


def mode_of(request: SearchRequest) -> SearchModeEnum:
    """Return the requested or default mode. Raises UnsupportedRequest."""
    threshold = request.distance_threshold
    if "search_mode" not in request.model_fields_set:
        return SearchModeEnum.HYBRID if threshold is None else SearchModeEnum.SEMANTIC
    if threshold is not None and request.search_mode is not SearchModeEnum.SEMANTIC:
        raise UnsupportedRequest(
            "distance_threshold is only supported for semantic search mode: leave one of them out", field="distance_threshold"
        )
    return request.search_mode


def span_of(request: SearchRequest, text: str) -> Span | None:
    """Return the time span that the query mentions. Raises BadInput for an unknown zone."""
    try:
        zone = zone_of(request.timezone)
    except ValueError as error:
        raise BadInput(str(error), field="timezone") from error
    return question_time(text, request.reference_time or datetime.now(UTC), zone)


# Words that do not name a subject in a question about a time.
_ANYTHING = frozenset(
    analysis.terms(
        "anything everything something thing things stuff happen happened happening event events news new go goes going went on up tell"
        " told say said talk talked talking discuss discussed mention mentioned speak spoke chat remember recall know memory memories"
        " list show all plan plans planned doing"
        " mache machen macht tue tun unternehme steht los geplant passiert passierte vor hago hacer haré hice pasa pasó plan planes"
        " fais faire ferai fait passe prévu faço fazer fiz faccio fare fatto doe doen gedaan robię robić robiłem robiłam"
        " ich wir mir uns yo nosotros je nous eu nós io noi ik wij"
        " делаю делать делал делала 做什么 要做 有什么 安排 计划 何をする 予定"
    )
)


def subject_of(text: str, span: Span | None) -> Sequence[str]:
    """Return the query's terms except its time, or () if it has no time or subject."""
    return () if span is None else tuple(term for term in analysis.query_terms(beside(text, span)) if term not in _ANYTHING)
