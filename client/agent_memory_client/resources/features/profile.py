"""User profiles, and a tool that models can use to read a profile."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from agent_memory_client._tools.definitions import Definition, text_rule
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client._wire.requests import Call, as_body, query
from agent_memory_client.models import AckResponse
from agent_memory_client.models.features.profile import Profile, ProfileMoves, ProfileSchema
from agent_memory_client.resources.base import Resource
from agent_memory_client.resources.model_tools import ModelTools

_PATH = "/v1/profile"
_SCHEMA = f"{_PATH}/schema"


class Profiles(Resource):
    """Read a user's profile in one namespace (default: the client's)."""

    async def get(
        self,
        user_id: str,
        namespace: str | None = None,
        q: str | None = None,
        limit: int = 20,
        as_of: datetime | None = None,
        timezone: str | None = None,
    ) -> Profile:
        """Return a user's profile, with `static`, `dynamic` and `slots`.

        If `q` is given, the matching memories are included.
        """
        params = query(**self._scope(namespace, user_id), q=q, limit=limit, as_of=as_of, timezone=timezone)
        return await self._read(Profile, Call("GET", _PATH, params))

    async def moves(self, user_id: str, namespace: str | None = None, limit: int = 100) -> ProfileMoves:
        """Return the moves of memories into, within and out of the profile, newest first."""
        return await self._read(ProfileMoves, Call("GET", f"{_PATH}/moves", query(**self._scope(namespace, user_id), limit=limit)))

    async def rebuild(self, user_id: str, namespace: str | None = None) -> AckResponse:
        """Request a rebuild of the profile from the user's memories."""
        return await self._read(AckResponse, Call("POST", f"{_PATH}/rebuild", query(**self._scope(namespace, user_id))))

    async def get_schema(self, namespace: str | None = None) -> ProfileSchema:
        """Return the profile topics and slots for a namespace."""
        return await self._read(ProfileSchema, Call("GET", _SCHEMA, query(namespace=self._namespace(namespace))))

    async def put_schema(self, schema: ProfileSchema, namespace: str | None = None) -> ProfileSchema:
        """Replace a namespace's profile schema, or the tenant's schema if `namespace` is None."""
        return await self._read(ProfileSchema, Call("PUT", _SCHEMA, query(namespace=self._namespace(namespace)), as_body(schema)))

    async def delete_schema(self, namespace: str | None = None) -> AckResponse:
        """Delete the profile schema of a namespace, or the tenant's schema if `namespace` is None.

        Idempotent.
        """
        return await self._read(AckResponse, Call("DELETE", _SCHEMA, query(namespace=self._namespace(namespace))))


class ProfileTools(ModelTools):
    """A tool that models can use to read the user's profile."""

    definitions: ClassVar[tuple[Definition, ...]] = (
        Definition(
            "get_profile",
            "Returns the profile of this conversation's user: stable facts, current facts, and single values such as their home. "
            "Read it before you plan something for the user or give advice.",
            {"query": text_rule("What you are about to do. The result then includes matching memories.")},
        ),
    )

    async def run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        if scope.user_id is None:
            return {"error": "this conversation has no user"}
        params = query(user_id=scope.user_id, namespace=self._namespace(scope.namespace), q=values.get("query"))
        profile = await self._read(Profile, Call("GET", _PATH, params))
        profile_values = profile.model_dump(mode="json", include={"static", "dynamic", "slots"})
        answer: dict[str, Any] = {
            "summary": f"{len(profile.static)} stable and {len(profile.dynamic)} current facts",
            "static": [entry["text"] for entry in profile_values["static"]],
            "dynamic": [entry["text"] for entry in profile_values["dynamic"]],
            "slots": {topic: {name: entry["text"] for name, entry in values.items()} for topic, values in profile_values["slots"].items()},
        }
        if profile.memories is not None:
            answer["memories"] = [memory.get("text") for memory in profile.memories]
        return answer
