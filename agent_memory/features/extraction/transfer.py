"""Export, import and erase a user's extraction rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from pydantic import BaseModel

from agent_memory.features.extraction.rule_store import RuleStore
from agent_memory.foundation.api.principals import shared_place_of
from agent_memory.foundation.core.feature import ExportLine, Owner, RestoreTarget
from agent_memory.foundation.core.input.validation import validated
from agent_memory.foundation.core.scope import Scope
from agent_memory_client.models import ExtractionRules, OptionalIdentifier


class _RulesLine(BaseModel):
    namespace: OptionalIdentifier = None
    rules: ExtractionRules


class RuleTransfer:
    kinds = ("rules",)

    def __init__(self, store: RuleStore) -> None:
        self._store = store

    async def export_lines(self, scope: Scope, owner: Owner) -> AsyncIterator[ExportLine]:
        """Yield one line for each namespace in which the user has rules.

        Yield nothing if the caller is restricted to certain agents, because all agents share the rules.
        """
        if scope.agents is not None:
            return
        for namespace, rules in await self._store.of_user(scope, owner.user_id):
            if owner.namespace in (None, namespace) and scope.reaches(namespace, owner.user_id):
                yield {"kind": "rules", "namespace": namespace, "rules": rules.model_dump(mode="json", exclude_unset=True)}

    async def restore_line(self, scope: Scope, target: RestoreTarget, line: ExportLine) -> str:
        """Store the rules and return "new". If the owner already has rules, store nothing and return "same" or "other".

        Raises BadInput and Forbidden.
        """
        read = validated(_RulesLine, line)
        namespace, user = shared_place_of(scope, "extraction rules", target.namespace(read.namespace), target.user_id)
        here = (await self._store.load(scope, [(namespace, user)]))[0]
        if here is None:
            await self._store.save(scope, namespace, user, read.rules)
            return "new"
        return "same" if here == read.rules else "other"

    async def erase_owner(self, scope: Scope, owner: Owner) -> Counter[str]:
        """Delete the user's rules. Return no counts, because erasure receipts do not count rules."""
        await self._store.forget_user(scope, owner.user_id, owner.namespace)
        return Counter()
