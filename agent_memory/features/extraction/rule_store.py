"""Store extraction rules in Redis: one hash per tenant, one field per owner.

An owner is a namespace, a user, a user in a namespace, or everyone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import tzinfo

from redis.asyncio import Redis

from agent_memory.foundation.core.clock import zone_of
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory.foundation.storage.keyspace import Keys
from agent_memory_client.models import ExtractionRules

RuleOwner = tuple[str | None, str | None]


class RuleStore:
    """Reads and writes rules by owner. An owner is a pair: (namespace or None, user or None)."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._erasures = ErasureGuard(client, keys)

    async def load(self, scope: Scope, owners: Sequence[RuleOwner]) -> list[ExtractionRules | None]:
        """Return each owner's rules, or None if the owner has no rules, in one round trip."""
        fields = [_field(*owner) for owner in owners]
        stored = (await read(self._client, lambda pipe: pipe.hmget(self._keys.rules(scope.tenant), fields)))[0]
        return [None if raw is None else ExtractionRules.model_validate_json(raw) for raw in stored]

    def queue_zone(self, pipe: Pipe, scope: Scope, namespace: str | None, user_id: str | None) -> int:
        """Queue the read of a user's time zone, whose one reply `parse_zone` parses. Return the number of replies."""
        places = dict.fromkeys([(namespace, user_id), (None, user_id), (namespace, None), (None, None)])
        pipe.hmget(self._keys.rules(scope.tenant), [_field(*place) for place in places])
        return 1

    async def load_zone(self, scope: Scope, namespace: str | None, user_id: str | None) -> tzinfo:
        """Return a user's time zone: the zone in the narrowest rules that specify one, or UTC if no rules do."""
        return parse_zone((await read(self._client, lambda pipe: self.queue_zone(pipe, scope, namespace, user_id)))[0])

    async def save(self, scope: Scope, namespace: str | None, user_id: str | None, rules: ExtractionRules | None) -> None:
        """Store an owner's rules, or delete them if `rules` is None. Raises ErasureUnderWay."""
        key, name = self._keys.rules(scope.tenant), _field(namespace, user_id)
        if rules is not None and user_id is not None:
            await self._erasures.require_none(scope.tenant, namespace, user_id)
        with redis_errors():
            if rules is None:
                await self._client.hdel(key, name)
            else:
                await self._client.hset(key, name, rules.model_dump_json(exclude_unset=True))

    async def of_user(self, scope: Scope, user_id: str) -> list[tuple[str | None, ExtractionRules]]:
        """Return a user's rules as pairs of a namespace (or None) and its rules."""
        stored = (await read(self._client, lambda pipe: pipe.hgetall(self._keys.rules(scope.tenant))))[0]
        owners = [(json.loads(name), raw) for name, raw in stored.items()]
        return [(owner[0], ExtractionRules.model_validate_json(raw)) for owner, raw in owners if owner[1] == user_id]

    async def forget_user(self, scope: Scope, user_id: str, namespace: str | None) -> None:
        """Delete a user's rules in one namespace, or in all namespaces if `namespace` is None."""
        key = self._keys.rules(scope.tenant)
        with redis_errors():
            stored: Sequence[bytes | str] = await self._client.hkeys(key)
            deleted_names = [name for name in stored if json.loads(name)[1] == user_id and namespace in (None, json.loads(name)[0])]
            if deleted_names:
                await self._client.hdel(key, *deleted_names)


def parse_zone(reply: Sequence[bytes | None]) -> tzinfo:
    """Return the first time zone that the rules in a reply specify, or UTC if no rules specify one."""
    rules = (ExtractionRules.model_validate_json(raw) for raw in reply if raw is not None)
    return zone_of(next((rule.timezone for rule in rules if rule.timezone), None))


def _field(namespace: str | None, user_id: str | None) -> str:
    return json.dumps([namespace, user_id], ensure_ascii=False)
