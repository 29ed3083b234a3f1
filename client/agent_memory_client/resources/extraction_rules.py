"""Extraction rules: which facts are taken from messages, by namespace and user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_memory_client._wire.requests import Call, as_body, query
from agent_memory_client.models import AckResponse, ExtractionRules
from agent_memory_client.resources.base import Resource

_PATH = "/v1/extraction-rules"


class ExtractionRuleSets(Resource):
    """Reads and writes the rules of exactly one namespace and user (both None: everybody's)."""

    async def get(self, namespace: str | None = None, user_id: str | None = None) -> ExtractionRules:
        """The rules for taking facts of exactly this namespace and user (both None: everybody's); empty when there are none."""
        return await self._read(ExtractionRules, Call("GET", _PATH, query(namespace=namespace, user_id=user_id)))

    async def put(
        self, rules: ExtractionRules | Mapping[str, Any], namespace: str | None = None, user_id: str | None = None
    ) -> ExtractionRules:
        """Replaces these rules. Those of a session are in its `long_term_memory_strategy.config`."""
        return await self._read(ExtractionRules, Call("PUT", _PATH, query(namespace=namespace, user_id=user_id), as_body(rules)))

    async def delete(self, namespace: str | None = None, user_id: str | None = None) -> AckResponse:
        """Forgets these rules; none there is no error."""
        return await self._read(AckResponse, Call("DELETE", _PATH, query(namespace=namespace, user_id=user_id)))
