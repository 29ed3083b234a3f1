"""Read and write the extraction rules for a namespace and user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_memory_client._wire.requests import Call, as_body, query
from agent_memory_client.models import AckResponse, ExtractionRules
from agent_memory_client.resources.base import Resource

_PATH = "/v1/extraction-rules"


class ExtractionRuleSets(Resource):
    """Read and write the rules for exactly one namespace and user.

    If both are None, the rules apply to everyone.
    """

    async def get(self, namespace: str | None = None, user_id: str | None = None) -> ExtractionRules:
        """Return the rules for exactly this namespace and user, or empty rules."""
        return await self._read(ExtractionRules, Call("GET", _PATH, query(namespace=namespace, user_id=user_id)))

    async def put(
        self, rules: ExtractionRules | Mapping[str, Any], namespace: str | None = None, user_id: str | None = None
    ) -> ExtractionRules:
        """Replace the rules for this namespace and user.

        To set rules for a single session, use its `long_term_memory_strategy.config`.
        """
        return await self._read(ExtractionRules, Call("PUT", _PATH, query(namespace=namespace, user_id=user_id), as_body(rules)))

    async def delete(self, namespace: str | None = None, user_id: str | None = None) -> AckResponse:
        """Delete the rules for this namespace and user, if any."""
        return await self._read(AckResponse, Call("DELETE", _PATH, query(namespace=namespace, user_id=user_id)))
