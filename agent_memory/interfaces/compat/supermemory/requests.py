"""Request models for versions 3.x (/v3 and /v4) and 5.x (/ns) of Supermemory's clients."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator
from pydantic.alias_generators import to_camel

from agent_memory.foundation.core.clock import stated_date
from agent_memory.foundation.core.errors import NotSupported
from agent_memory.interfaces.compat.service import MAX_PAGE
from agent_memory_client.models import Identifier, Instant, OptionalIdentifier
from agent_memory_client.models._types import FreeText, Text

_UNSUPPORTED_FIELDS = ("filepath", "group")
Metadata = dict[FreeText, FreeText | int | FiniteFloat | bool | list[FreeText]]
Context = Annotated[FreeText, Field(max_length=1_500)]
Threshold = Annotated[float, Field(ge=0, le=1)]
Filters = dict[str, Any] | Annotated[str, Field(max_length=64 * 1024)]


class Body(BaseModel):
    """A request body with camelCase field names.

    Raises NotSupported, with the field's name, if a field is not supported.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _check_supported(cls, value: Any) -> Any:
        for name in _UNSUPPORTED_FIELDS if isinstance(value, dict) else ():
            for key in (name, to_camel(name)):
                if value.get(key) not in (None, {}, ""):
                    raise NotSupported(key)
        return value


def field_names(model: type[Body]) -> list[str]:
    """Return the field names that a model accepts in requests."""
    return [name for field in model.model_fields for name in (field, to_camel(field))]


class Tagged(Body):
    """Container tags. The first tag is the user, and the others are filters."""

    container_tag: OptionalIdentifier = None
    container_tags: Annotated[list[Identifier], Field(max_length=16)] | None = None

    def tags(self) -> list[str]:
        """Return the container tags. The first tag is the user."""
        named = [self.container_tag] if self.container_tag else []
        return list(dict.fromkeys([*named, *(self.container_tags or ())]))

    @property
    def user(self) -> str | None:
        """The first container tag."""
        return next(iter(self.tags()), None)


class Filtered(Tagged):
    filters: Filters | None = None
    filter: Filters | None = None

    @property
    def given_filters(self) -> Filters | None:
        """The filters. The two client versions use different field names."""
        return self.filters or self.filter


class Document(Tagged):
    """A document to store, which consists of a single text."""

    content: Text
    custom_id: OptionalIdentifier = None
    metadata: Metadata | None = None
    date: Instant | None = None
    entity_context: Context | None = None
    supporting_context: Context | None = None

    @property
    def context(self) -> str | None:
        """The container's context. The two client versions use different field names."""
        return self.entity_context or self.supporting_context

    @property
    def stated_at(self) -> datetime | None:
        """The document's time from `date` or the metadata.

        None if it is missing or in the future.
        """
        date = self.date or stated_date(self.metadata or {})
        return date if date is not None and date <= datetime.now(UTC) else None


class Conversation(Tagged):
    """A conversation to store, either in full or only its new messages."""

    conversation_id: Identifier
    messages: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=10_000)]
    metadata: Metadata | None = None


class DocumentChanges(Tagged):
    content: Text | None = None
    custom_id: OptionalIdentifier = None
    metadata: Metadata | None = None
    supporting_context: Context | None = None


class ContainerChanges(Body):
    """The new context of a container. Null deletes the context."""

    supporting_context: Context | None


class DocumentBatch(Tagged):
    """Documents to store, with default values for their fields."""

    documents: Annotated[list[dict[str, Any] | str], Field(min_length=1, max_length=600)]
    metadata: Metadata | None = None

    def contexts(self) -> dict[str, str]:
        """Return contexts by container tag. If a tag has several, use the last one."""
        contexts: dict[str, str] = {}
        for item in self.documents:
            own = item if isinstance(item, dict) else {}
            context = own.get("entityContext") or own.get("supportingContext")
            tag = own.get("containerTag") or next(iter(own.get("containerTags") or ()), self.user)
            if isinstance(context, str) and isinstance(tag, str):
                contexts[tag] = context
        return contexts


class DocumentListing(Filtered):
    """A request for one page of documents."""

    page: Annotated[int, Field(ge=1, le=100_000)] = 1
    limit: Annotated[int, Field(ge=1)] = 10
    order: Annotated[str, Field(pattern="^(asc|desc)$")] = "desc"
    include_content: bool = False
    doc_id: OptionalIdentifier = None


class BulkDelete(Body):
    """Documents to delete by id or container tag."""

    ids: Annotated[list[Identifier], Field(min_length=1, max_length=MAX_PAGE)] | None = None
    container_tags: Annotated[list[Identifier], Field(min_length=1, max_length=16)] | None = None

    @model_validator(mode="after")
    def _says_what(self) -> Self:
        if not self.ids and not self.container_tags:
            raise ValueError("give ids or containerTags")
        return self


class Search(Filtered):
    """A search of memories, of the original text of documents (`documents`), or both (`hybrid`)."""

    q: Annotated[FreeText, Field(min_length=1)]
    limit: Annotated[int, Field(ge=1)] = 10
    threshold: Threshold | None = None
    chunk_threshold: Threshold | None = None
    search_mode: Annotated[str, Field(pattern="^(memories|hybrid|documents)$")] = "memories"
    doc_id: OptionalIdentifier = None
    include: dict[str, Any] | None = None
    include_full_docs: bool = False


class ProfileQuestion(Filtered):
    """A request for a profile, with an optional search."""

    q: FreeText | None = None
    threshold: Threshold | None = None
    buckets: list[str] | None = None


class NewMemory(Body):
    """A memory to store verbatim."""

    content: Text
    metadata: Metadata | None = None


class NewMemories(Tagged):
    """Memories to store verbatim."""

    memories: Annotated[list[NewMemory], Field(min_length=1, max_length=MAX_PAGE)]


class TemporalContext(Body):
    """The time of the event that a memory describes."""

    event_date: list[Instant] | None = None


class NamedMemory(Tagged):
    """A memory, identified by its id or its exact text."""

    id: OptionalIdentifier = None
    content: FreeText | None = None
    reason: FreeText | None = None

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if not self.id and not self.content:
            raise ValueError("give id or content")
        return self


class ChangedMemory(NamedMemory):
    """A new version of a memory."""

    new_content: Text
    metadata: Metadata | None = None
    forget_after: Instant | None = None
    temporal_context: TemporalContext | None = None
