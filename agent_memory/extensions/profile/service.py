"""Read, rebuild and configure profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent_memory.extensions.profile.follower import ProfileFollower
from agent_memory.extensions.profile.history import SECONDS_OF_DAY, SILENT_DAYS, ProfileHistory, classify
from agent_memory.extensions.profile.schema import DEFAULT_SCHEMA, SlotTopics, slots_instruction
from agent_memory.extensions.profile.store import ProfileOwner, ProfilePages, ProfileStore
from agent_memory.features.jobs.operation_store import Mark
from agent_memory.features.jobs.order_store import JobOrder, OrderStore
from agent_memory.features.memories.search.service import SearchService
from agent_memory.features.sessions.strategies import read_zone
from agent_memory.foundation.api.principals import shared_place_of, writing
from agent_memory.foundation.core.errors import BadInput
from agent_memory.foundation.core.permissions import access_denied
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.foundation.text.normalization import normal_text
from agent_memory_client.models import AckResponse, Namespace, SearchRequest, UserId
from agent_memory_client.models.features.profile import Profile, ProfileEntry, ProfileMoves, ProfileSchema

_MOST_MOVES = 1000
_HIDDEN = ("ends", "begins", "type")


def shown_lists(pages: ProfilePages, now: datetime, limit: int) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return up to `limit` static and `limit` dynamic entries to show at `now`, deduplicated.

    Lapsed static entries become dynamic.
    """
    moment = now.timestamp()
    static = [entry for until, entry in pages.static if until > moment and _is_true(entry, moment)]
    lapsed = [(until - SILENT_DAYS * SECONDS_OF_DAY, entry) for until, entry in pages.static if until <= moment]
    recent = sorted((*pages.dynamic, *lapsed), key=lambda item: item[0], reverse=True) if lapsed else pages.dynamic
    shown_lines: set[tuple[str, str | None]] = set()
    static = [entry for entry in static if _is_first(entry, shown_lines)]
    return static[:limit], [entry for _, entry in recent if _is_true(entry, moment) and _is_first(entry, shown_lines)][:limit]


def _is_first(entry: Mapping[str, Any], shown_lines: set[tuple[str, str | None]]) -> bool:
    line = normal_text(entry["text"]), entry.get("event_date")
    if line in shown_lines:
        return False
    shown_lines.add(line)
    return True


def _is_true(entry: Mapping[str, Any], moment: float) -> bool:
    return entry.get("begins", moment) <= moment < entry.get("ends", float("inf"))


class ProfileService:
    """Reads profiles, requests rebuilds, and stores schemas.

    Callers restricted to certain agents cannot read profiles, because these cover all agents.
    """

    def __init__(
        self, store: ProfileStore, follower: ProfileFollower, history: ProfileHistory, search: SearchService, *, statements: bool
    ) -> None:
        self._store = store
        self._follower = follower
        self._history = history
        self._search = search
        self._statements = statements

    async def extraction_instructions(self, scope: Scope, namespace: str | None) -> Sequence[str]:
        """Return the instruction that lists the schema's slots, or () if there is no schema."""
        schema = await self._store.load_schema(scope.tenant, namespace)
        return () if schema is None else (slots_instruction(schema),)

    async def read(
        self,
        scope: Scope,
        user_id: str | None,
        namespace: str | None,
        *,
        query: str | None = None,
        limit: int = 20,
        as_of: datetime | None = None,
        timezone: str | None = None,
    ) -> Profile:
        """Return a user's profile and any memories that match `query`.

        If `as_of` or another time zone is given, compute the profile from the memories. Raises
        Forbidden or BadInput.
        """
        owner = requested_owner(scope, "profile", user_id, namespace)
        zone = None if timezone is None else read_zone(timezone, where="query")
        now = as_of or datetime.now(UTC)
        if as_of is None and (zone is None or zone == await self._follower.zone_of(owner)):
            pages, own = await self._store.read_profile(owner, limit)
        else:
            zone = zone or await self._follower.zone_of(owner)
            entries = await self._history.entries_at(scope, owner, now, zone, statements=self._statements)
            pages, own = classify(entries, now, zone), await self._store.load_schema(owner.tenant, owner.namespace)
        static, dynamic = shown_lists(pages, now, limit)
        profile = Profile(
            user_id=owner.user_id,
            namespace=owner.namespace,
            static=_entries(static),
            dynamic=_entries(dynamic),
            slots=_by_topic(pages, own or DEFAULT_SCHEMA, now),
            as_of=now,
            version=pages.version,
        )
        if query:
            profile.memories = await self._find(scope, owner, query, limit, as_of)
        return profile

    async def read_moves(self, scope: Scope, user_id: str | None, namespace: str | None, limit: int) -> ProfileMoves:
        """Return the latest moves, newest first. Raises Forbidden or BadInput."""
        owner = requested_owner(scope, "profile", user_id, namespace)
        return ProfileMoves(moves=await self._store.read_moves(owner, min(limit, _MOST_MOVES)))

    async def get_schema(self, scope: Scope, namespace: str | None) -> ProfileSchema:
        """Return the namespace's schema, the tenant's, or the default. Raises Forbidden."""
        return await self._store.load_schema(scope.tenant, self._place(scope, namespace)) or DEFAULT_SCHEMA

    async def put_schema(self, scope: Scope, namespace: str | None, schema: ProfileSchema) -> ProfileSchema:
        """Replace the schema of a namespace, or the tenant's if `namespace` is None. Raises Forbidden."""
        await self._store.save_schema(scope.tenant, self._place(writing(scope), namespace), schema)
        return schema

    async def delete_schema(self, scope: Scope, namespace: str | None) -> AckResponse:
        """Delete a schema. A missing schema is not an error. Raises Forbidden."""
        await self._store.save_schema(scope.tenant, self._place(writing(scope), namespace), None)
        return AckResponse(status="ok")

    def _place(self, scope: Scope, namespace: str | None) -> str | None:
        """Return the schema's namespace. Raises Forbidden."""
        if scope.users is not None or scope.agents is not None or (scope.namespaces is not None and namespace not in scope.namespaces):
            raise access_denied("the schema of this namespace", "namespace")
        return namespace or None

    async def _find(self, scope: Scope, owner: ProfileOwner, text: str, limit: int, as_of: datetime | None) -> list[dict[str, Any]]:
        namespace = None if owner.namespace is None else Namespace(eq=owner.namespace)
        request = SearchRequest(text=text, user_id=UserId(eq=owner.user_id), namespace=namespace, limit=limit, as_of=as_of)
        results = await self._search.search(scope, request)
        return [memory.model_dump(mode="json", exclude_none=True) for memory in results.memories]


def requested_owner(scope: Scope, noun: str, user_id: str | None, namespace: str | None) -> ProfileOwner:
    """Return the owner of a "profile" or "timeline". Raises Forbidden or BadInput."""
    namespace, user_id = shared_place_of(scope, f"{noun}s", namespace, user_id)
    if not scope.reaches(namespace, user_id):
        raise access_denied(f"this {noun}", "namespace")
    if user_id is None:
        raise BadInput(f"name the user of the {noun}: send user_id", field="user_id", where="query")
    return ProfileOwner(scope.tenant, namespace, user_id)


async def place_rebuild(orders: OrderStore, scope: Scope, noun: str, user_id: str | None, namespace: str | None) -> Mark:
    """Request a rebuild. Raises Forbidden or BadInput."""
    owner = requested_owner(scope, noun, user_id, namespace)
    order = JobOrder.of(scope, f"rebuild-{noun}", user_id=owner.user_id, namespace=owner.namespace)
    await orders.place_orders(order)
    return Mark(DueKind.ORDER, order.name)


def _entries(payloads: Sequence[Mapping[str, Any]]) -> list[ProfileEntry]:
    return [ProfileEntry.model_validate({name: value for name, value in entry.items() if name not in _HIDDEN}) for entry in payloads]


def _by_topic(pages: ProfilePages, schema: ProfileSchema, now: datetime) -> dict[str, dict[str, ProfileEntry]]:
    """Return slot values by topic and sub-topic. The latest statement wins."""
    topics, values_by_topic = SlotTopics(schema), dict[str, dict[str, ProfileEntry]]()
    for slot, entry in sorted(pages.slots, key=lambda item: str(item[1]["last_said"]), reverse=True):
        place = topics.place_of(slot)
        if place is not None and _is_true(entry, now.timestamp()) and place[1] not in values_by_topic.get(place[0], {}):
            values_by_topic.setdefault(place[0], {})[place[1]] = _entries([entry])[0]
    return values_by_topic
