"""User timelines, and a tool that models can use to read a timeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agent_memory_client._tools.definitions import Definition, text_rule
from agent_memory_client._tools.scope import ToolScope
from agent_memory_client._wire.requests import Call, query
from agent_memory_client.models import AckResponse
from agent_memory_client.models.features.timeline import Timeline, TimelineQuery
from agent_memory_client.resources.base import Resource
from agent_memory_client.resources.model_tools import ModelTools

_PATH = "/v1/timeline"


class Timelines(Resource):
    """Read a user's timeline in one namespace (default: the client's)."""

    async def get(self, user_id: str, namespace: str | None = None, which: TimelineQuery | None = None) -> Timeline:
        """Return a user's events by day. `which` selects and groups the events."""
        narrowed = (which or TimelineQuery()).model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        return await self._read(Timeline, Call("GET", _PATH, query(**{**narrowed, **self._scope(namespace, user_id)})))

    async def rebuild(self, user_id: str, namespace: str | None = None) -> AckResponse:
        """Request a rebuild of the timeline from the user's memories."""
        return await self._read(AckResponse, Call("POST", f"{_PATH}/rebuild", query(**self._scope(namespace, user_id))))


class TimelineTools(ModelTools):
    """A tool that models can use to read the user's timeline."""

    definitions: ClassVar[tuple[Definition, ...]] = (
        Definition(
            "get_timeline",
            "Lists what happened to this conversation's user and when, in order. Use it for questions about a time, such as "
            "'What happened in March?'.",
            {
                "from": text_rule("The first day, such as 2024-03-01."),
                "to": text_rule("The last day (inclusive)."),
                "topic": text_rule("Only entries about this topic."),
                "entity": text_rule("Only entries that name this person, place or thing."),
            },
        ),
    )

    async def run_tool(self, name: str, values: Mapping[str, Any], scope: ToolScope) -> dict[str, Any]:
        if scope.user_id is None:
            return {"error": "this conversation has no user"}
        params = query(user_id=scope.user_id, namespace=self._namespace(scope.namespace), **values)
        timeline = await self._read(Timeline, Call("GET", _PATH, params))
        events = timeline.model_dump(mode="json", include={"events"})["events"]
        names = ("id", "text", "start", "end", "precision", "who")
        return {
            "summary": f"{len(events)} of {timeline.total} events",
            "events": [{name: event[name] for name in names} for event in events],
        }
