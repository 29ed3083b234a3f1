"""What Mem0's clients send, of the 0.1, 1.x and 2.x lines alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from agent_memory.core.clock import stated_date
from agent_memory.core.errors import NotSupported
from agent_memory_client.models import Identifier, Instant, OptionalIdentifier

APP = "mem0_app_id"
"""The key of the metadata under which the app is kept."""
NAMED = "mem0_named"
"""The key of the metadata that lists which of `agent_id` and `run_id` a memory has."""
OWN_KEYS = frozenset({APP, NAMED})
"""Keys of the metadata that are not the caller's."""
_SWITCHES = ("show_expired", "enable_graph", "immutable")
_UNSUPPORTED = (
    "custom_categories",
    "custom_instructions",
    "agent_custom_instructions",
    "structured_data_schema",
    "includes",
    "excludes",
)


def _text_of(content: object) -> object:
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        if len(parts) < len(content):
            raise NotSupported("messages: content that is not text")
        return "\n".join(map(str, parts))
    return "" if content is None else content


class Message(BaseModel):
    """A message; of a list of parts those of text."""

    role: Annotated[str, Field(min_length=1, max_length=64)] = "user"
    content: Annotated[str, BeforeValidator(_text_of)] = ""
    name: Annotated[str, Field(max_length=256)] | None = None


class Entities(BaseModel):
    """Whose memories are meant. Raises NotSupported for what is asked for and not done here."""

    user_id: OptionalIdentifier = None
    agent_id: OptionalIdentifier = None
    run_id: OptionalIdentifier = None
    app_id: OptionalIdentifier = None

    @model_validator(mode="before")
    @classmethod
    def _check_supported(cls, value: Any) -> Any:
        for name in _UNSUPPORTED if isinstance(value, dict) else ():
            if value.get(name) is not None:
                raise NotSupported(name)
        for name in _SWITCHES if isinstance(value, dict) else ():
            if value.get(name):
                raise NotSupported(name)
        return value

    def entities(self) -> dict[str, str]:
        """The user, agent, run and app that are named."""
        named = {"user_id": self.user_id, "agent_id": self.agent_id, "run_id": self.run_id, "app_id": self.app_id}
        return {name: value for name, value in named.items() if value}


class AddRequest(Entities):
    """Messages to remember."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=500)]
    metadata: dict[str, Any] | None = None
    infer: bool | None = None
    expiration_date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    timestamp: Instant | None = None
    async_mode: bool | None = None
    waits: bool = False

    @property
    def said(self) -> datetime | None:
        """When the messages were said, where the caller says so: `timestamp`, else `date` in the metadata when it is a date."""
        if self.timestamp is not None:
            return self.timestamp
        said = stated_date(self.metadata or {})
        return said if said is not None and said <= datetime.now(UTC) else None

    def annotations(self) -> dict[str, Any]:
        """What the memories get beside the words. Raises ValueError for a day that no calendar has."""
        annotations: dict[str, Any] = {}
        if self.agent_id:
            annotations["agent_id"] = self.agent_id
        own: dict[str, Any] = {APP: self.app_id} if self.app_id else {}
        if named := [name for name in ("agent_id", "run_id") if getattr(self, name)]:
            own[NAMED] = named
        if self.metadata or own:
            annotations["metadata"] = {**(self.metadata or {}), **own}
        if self.expiration_date:
            end = datetime.strptime(self.expiration_date, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
            annotations["expires_at"] = end.isoformat()
        return annotations


class ListRequest(Entities):
    """Which memories to list."""

    filters: dict[str, Any] | None = None
    page: Annotated[int, Field(ge=1, le=10_000)] = 1
    page_size: Annotated[int, Field(ge=1)] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    top_k: Annotated[int, Field(ge=1)] | None = None
    categories: list[Identifier] | None = None
    metadata: dict[str, Any] | None = None
    start_date: Instant | None = None
    end_date: Instant | None = None
    fields: list[str] | None = None

    def own_filters(self) -> dict[str, Any]:
        """The filters that stand beside `filters`."""
        named: dict[str, Any] = {}
        if self.categories:
            named["categories"] = {"in": self.categories}
        if self.metadata:
            named["metadata"] = self.metadata
        bounds = {name: bound.isoformat() for name, bound in (("gte", self.start_date), ("lte", self.end_date)) if bound is not None}
        return {**named, "created_at": bounds} if bounds else named


class SearchBody(ListRequest):
    """What to search for."""

    query: Annotated[str, Field(min_length=1)]
    threshold: float | None = None
    reference_date: Instant | None = None
