"""Store extraction rules in Redis: one hash per tenant, one field per owner."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import tzinfo

from pydantic import BaseModel
from redis.asyncio import Redis

from agent_memory.foundation.api.principals import shared_place_of
from agent_memory.foundation.core.clock import zone_of
from agent_memory.foundation.core.feature import AgentOwner, ExportLine, Owner, RestoreTarget
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.scope import Scope
from agent_memory.foundation.storage.connection import Pipe, read, redis_errors
from agent_memory.foundation.storage.erasures import ErasureGuard
from agent_memory.foundation.storage.keyspace import Keys, tag
from agent_memory.foundation.storage.scripts import Script, compact
from agent_memory_client.models import ExtractionRules, OptionalIdentifier

RuleOwner = tuple[str | None, str | None]
_IMPORT_FIELD = "im"


class _RulesLine(BaseModel):
    namespace: OptionalIdentifier = None
    rules: ExtractionRules


class RuleStore:
    """Reads and writes rules. An owner is (namespace or None, user or None)."""

    kinds = ("rules",)

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._erasures = ErasureGuard(client, keys)
        self._delete = Script(client, "extraction/rules_delete")

    async def load(self, scope: Scope, owners: Sequence[RuleOwner]) -> list[ExtractionRules | None]:
        """Return each owner's rules, or None if the owner has none."""
        fields = [_field(*owner) for owner in owners]
        stored = (await read(self._client, lambda pipe: pipe.hmget(self._keys.rules(scope.tenant), fields)))[0]
        return [None if raw is None else ExtractionRules.model_validate_json(raw) for raw in stored]

    def queue_zone(self, pipe: Pipe, scope: Scope, namespace: str | None, user_id: str | None) -> int:
        """Queue a read for `parse_zone`. Return the number of replies."""
        places = dict.fromkeys([(namespace, user_id), (None, user_id), (namespace, None), (None, None)])
        pipe.hmget(self._keys.rules(scope.tenant), [_field(*place) for place in places])
        return 1

    async def load_zone(self, scope: Scope, namespace: str | None, user_id: str | None) -> tzinfo:
        """Return the time zone from the most specific rules that set one, or UTC."""
        return parse_zone((await read(self._client, lambda pipe: self.queue_zone(pipe, scope, namespace, user_id)))[0])

    async def save(
        self, scope: Scope, namespace: str | None, user_id: str | None, rules: ExtractionRules | None, imported: str | None = None
    ) -> None:
        """Store an owner's rules, or delete them if `rules` is None. Raises ErasureUnderWay."""
        key, name = self._keys.rules(scope.tenant), _field(namespace, user_id)
        if rules is not None and user_id is not None:
            await self._erasures.require_none(scope.tenant, namespace, user_id)
        with redis_errors():
            if rules is None:
                await self._client.hdel(key, name)
            else:
                raw = rules.model_dump_json(exclude_unset=True)
                await self._client.hset(key, name, raw if imported is None else compact(json.loads(raw) | {_IMPORT_FIELD: imported}))

    async def export_lines(self, scope: Scope, owner: Owner) -> AsyncIterator[ExportLine]:
        """Yield one line for each namespace where the user has rules.

        Callers restricted to agents get nothing, because all agents share the rules.
        """
        if scope.agents is not None:
            return
        stored = (await read(self._client, lambda pipe: pipe.hgetall(self._keys.rules(scope.tenant))))[0]
        for name, raw in stored.items():
            namespace, user_id = json.loads(name)
            if user_id == owner.user_id and owner.namespace in (None, namespace) and scope.reaches(namespace, user_id):
                rules = ExtractionRules.model_validate_json(raw).model_dump(mode="json", exclude_unset=True)
                yield {"kind": "rules", "namespace": namespace, "rules": rules}

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Store the rules and return "new". If there are already rules, return "same" or "other".

        Raises BadInput or Forbidden.
        """
        restored = validated(_RulesLine, line)
        namespace, user = shared_place_of(scope, "extraction rules", target.namespace(restored.namespace), target.user_id)
        existing_rules = (await self.load(scope, [(namespace, user)]))[0]
        if existing_rules is None:
            await self.save(scope, namespace, user, restored.rules, tag(target.source))
            return "new"
        return "same" if existing_rules == restored.rules else "other"

    async def undo_import(self, scope: Scope, owner: Owner | AgentOwner, source: str, *, dry_run: bool) -> Counter[str]:
        """Delete imported rules that have not changed since the import."""
        counts: Counter[str] = Counter()
        key = self._keys.rules(scope.tenant)
        stored = (await read(self._client, lambda pipe: pipe.hgetall(key)))[0] if isinstance(owner, Owner) else {}
        for name, raw in stored.items():
            namespace, user_id = json.loads(name)
            is_owners = user_id == getattr(owner, "user_id", None) and owner.namespace in (None, namespace)
            if is_owners and scope.reaches(namespace, user_id) and json.loads(raw).get(_IMPORT_FIELD) == tag(source):
                counts["rules"] += int(dry_run or await self._delete(rules=key, field=name, expected=raw))
        return counts

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Delete the user's rules. Returns no counts, because receipts do not include rules."""
        key = self._keys.rules(scope.tenant)
        with redis_errors():
            stored: Sequence[bytes | str] = await self._client.hkeys(key)
            owners = [(name, *json.loads(name)) for name in stored]
            names = [name for name, namespace, user in owners if user == owner.user_id and owner.namespace in (None, namespace)]
            if names:
                await self._client.hdel(key, *names)
        return Counter()


def parse_zone(reply: Sequence[bytes | None]) -> tzinfo:
    """Return the first time zone in a reply, or UTC."""
    rules = (ExtractionRules.model_validate_json(raw) for raw in reply if raw is not None)
    return zone_of(next((rule.timezone for rule in rules if rule.timezone), None))


def _field(namespace: str | None, user_id: str | None) -> str:
    return json.dumps([namespace, user_id], ensure_ascii=False)
