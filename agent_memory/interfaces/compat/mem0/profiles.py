"""Implement Mem0's profile API with this server's profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_memory.extensions.profile.service import ProfileService, place_rebuild, requested_owner
from agent_memory.features.jobs.operation_store import Mark, parse_operation_id
from agent_memory.features.jobs.operations import OperationService
from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.foundation.api.principals import writing
from agent_memory.foundation.core.errors import BadInput, NotFound, NotSupported
from agent_memory.foundation.core.task_kinds import DueKind
from agent_memory.interfaces.compat.service import CompatService
from agent_memory_client.models import OperationState
from agent_memory_client.models.features.profile import Profile, ProfileSchema

_JOBS_PATH = "/v2/profiles/jobs/"
# Topic that holds top-level properties.
_TOP = "profile"
_MOST_SAMPLED = 10
_MOST_ENTRIES = 64
_NEWEST = 100


class Mem0Profiles(CompatService):
    """Mem0's profile API for one caller."""

    product = "mem0"

    async def read(self, kind: str, name: str) -> dict[str, Any]:
        """Return a user's profile.

        Raises NotFound if the user has no memories, and NotSupported for other entity types.
        """
        await self._check_user(kind, name)
        profile = await self._services[ProfileService].read(self._scope, name, self._namespace, limit=_MOST_ENTRIES)
        entries = [*profile.static, *profile.dynamic]
        return {
            "profile": _content(profile) if entries else {},
            "status": "succeeded" if entries else "insufficient_data",
            "entity_type": kind,
            "entity_id": name,
            "updated_at": max((entry.last_said.isoformat() for entry in entries), default=None),
            "generation_count": profile.version,
        }

    async def settings(self) -> dict[str, Any]:
        """Return the profile schema as a JSON Schema."""
        schema = await self._services[ProfileService].get_schema(self._scope, self._namespace)
        user = {"schema": _json_schema(schema), "custom_instructions": None}
        return {"enabled": True, "capabilities": {"entity_types": ["user"]}, "entities": {"user": user}}

    async def update_settings(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Replace the profile schema. Null restores the default schema.

        Raises BadInput or NotSupported.
        """
        if changes.get("enabled") is False:
            raise NotSupported("profiles: enabled: false")
        entities = changes.get("entities") or {}
        if not isinstance(entities, dict) or set(entities) - {"user"}:
            raise NotSupported("profiles of entities other than users")
        user = entities.get("user") or {}
        if not isinstance(user, dict) or user.get("custom_instructions"):
            raise NotSupported("profiles: custom_instructions")
        if "schema" in user:
            scope, schema = writing(self._scope), user["schema"]
            if schema is None:
                await self._services[ProfileService].delete_schema(scope, self._namespace)
            else:
                await self._services[ProfileService].put_schema(scope, self._namespace, _profile_schema(schema))
        return await self.settings()

    async def start_job(self, request: dict[str, Any]) -> dict[str, Any]:
        """Request a rebuild of one user's profile (`trigger`) or of several (`sample`).

        Raises NotFound, BadInput or NotSupported.
        """
        operation, kind = request.get("operation"), request.get("entity_type", "user")
        if operation == "trigger":
            names = [str(request.get("entity_id") or "")]
            if not names[0]:
                raise BadInput("name the user", field="entity_id")
            await self._check_user(kind, names[0])
        elif operation == "sample":
            names = await self._newest_users(_sample_size(request.get("limit")))
        else:
            raise NotSupported(f"profiles: operation {str(operation)[:64]}")
        orders, scope = self._services[OrderStore], writing(self._scope)
        marks = [await place_rebuild(orders, scope, "profile", name, self._namespace) for name in names]
        job = ",".join(mark.operation_id for mark in marks)
        return {
            "job_id": job,
            "status": "pending" if marks else "succeeded",
            "status_url": f"{_JOBS_PATH}{job}/",
            "operation": operation,
            "entity_type": kind,
            "entity_ids": names,
            "entity_count_reserved": len(names),
            "sampled": len(names),
            "event_id": job,
            "replayed": False,
        }

    async def read_job(self, job: str) -> dict[str, Any]:
        """Return a job's progress. Raises NotFound."""
        marks = [parse_operation_id(name) for name in job.split(",")[:_MOST_SAMPLED]]
        orders = [mark for mark in marks if mark is not None and mark.kind is DueKind.ORDER]
        if len(orders) < len(marks):
            raise NotFound(f"profile job {job[:128]} not found", field="job_id")
        done, failed = await self._ended(orders)
        running = len(orders) - done - failed
        state = {
            "job_id": job,
            "status": "pending" if running else "failed" if failed else "succeeded",
            "total": len(orders),
            "enumeration_complete": True,
            "completed": done + failed,
            "succeeded": done,
            "failed": failed,
            "skipped": 0,
        }
        return {"job": state}

    async def _ended(self, orders: Sequence[Mark]) -> tuple[int, int]:
        """Return how many orders have finished and how many have failed for good."""
        states = await self._services[OperationService].load_states(self._scope, [[mark] for mark in orders])
        failed = sum(OperationState.DEAD in state for state in states)
        return sum(not state - {OperationState.DONE} for state in states), failed

    async def _check_user(self, kind: object, name: str) -> None:
        if kind != "user":
            raise NotSupported("profiles of entities other than users")
        # The profile's access rules raise Forbidden before the user is looked up.
        requested_owner(self._scope, "profile", name, self._namespace)
        if not await self._newest({"user_id": {"eq": name}}, 1):
            raise NotFound(f"user {name} not found", field="user_id")

    async def _newest_users(self, count: int) -> list[str]:
        memories = await self._newest({"user_id": {"exists": True}}, _NEWEST)
        return list(dict.fromkeys(memory.user_id for memory in memories if memory.user_id))[:count]

    async def _newest(self, selection: dict[str, Any], count: int) -> Sequence[Any]:
        return (await self._search(**selection, limit=count)).memories


def _sample_size(limit: object) -> int:
    if limit is None:
        return 3
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST_SAMPLED:
        raise BadInput(f"must be a whole number from 1 to {_MOST_SAMPLED}", field="limit")
    return limit


def _content(profile: Profile) -> dict[str, Any]:
    """Return a profile's slots, structured according to its schema."""
    topics = {topic: {name: entry.text for name, entry in entries.items()} for topic, entries in profile.slots.items()}
    top = topics.pop(_TOP, {})
    profile_texts = {"static": [entry.text for entry in profile.static], "dynamic": [entry.text for entry in profile.dynamic]}
    return {**topics, **top, **profile_texts}


def _json_schema(schema: ProfileSchema) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for topic, about in schema.topics.items():
        values = {name: {"type": "string", "description": text} for name, text in about.sub_topics.items()}
        if topic == _TOP:
            properties |= values
        else:
            properties[topic] = {"type": "object", "description": about.description, "properties": values}
    return {"type": "object", "properties": properties}


def _profile_schema(schema: Any) -> ProfileSchema:
    """Convert a JSON Schema to topics. Raises BadInput or ValidationError."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not properties:
        raise BadInput("must be a JSON schema of an object with properties", field="entities.user.schema")
    topics: dict[str, Any] = {}
    for name, about in properties.items():
        within = about.get("properties") if isinstance(about, dict) else None
        if isinstance(within, dict) and within:
            sub_topics = {str(key): _description(f"{name}.{key}", value) for key, value in within.items()}
            topics[str(name)] = {"description": _description(str(name), about), "sub_topics": sub_topics}
        else:
            topics.setdefault(_TOP, {"sub_topics": {}})["sub_topics"][str(name)] = _description(str(name), about)
    return ProfileSchema.model_validate({"topics": topics})


def _description(path: str, about: Any) -> str:
    text = about.get("description") if isinstance(about, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise BadInput("each property needs a description", field=f"entities.user.schema.{path[:128]}")
    return text
