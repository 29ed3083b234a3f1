"""Validate tool arguments from language models. Errors tell the model what to fix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from agent_memory_client._merging import MergeStrategy
from agent_memory_client._wire.requests import validation_error
from agent_memory_client.models import ClientMemoryRecord, MemoryTypeEnum, SearchModeEnum

Arguments = TypeVar("Arguments", bound=BaseModel)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


def _without_nulls(value: Any) -> Any:
    """Remove nulls, which models send for unused arguments in strict schemas."""
    return {key: item for key, item in cast("dict[str, Any]", value).items() if item is not None} if isinstance(value, dict) else value


class SearchArguments(BaseModel):
    """Arguments of search_memory."""

    query: Annotated[str, Field(min_length=1)]
    search_mode: SearchModeEnum = SearchModeEnum.SEMANTIC
    topics: list[str] | None = None
    entities: list[str] | None = None
    memory_type: MemoryTypeEnum | None = None
    max_results: int = 10
    offset: int = 0
    min_relevance: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    user_id: str | None = None
    optimize_query: bool = False


class NoteArguments(BaseModel):
    """Arguments of lazily_create_long_term_memory."""

    text: Annotated[str, Field(min_length=1)]
    memory_type: MemoryTypeEnum = MemoryTypeEnum.SEMANTIC
    topics: list[str] | None = None
    entities: list[str] | None = None


class DataArguments(BaseModel):
    """Arguments of update_working_memory_data."""

    data: Annotated[dict[str, Any], Field(min_length=1)]
    merge_strategy: MergeStrategy = "merge"


class ReadArguments(BaseModel):
    """Arguments of get_long_term_memory."""

    memory_id: Annotated[str, Field(min_length=1)]


class NewMemory(NoteArguments):
    """A memory to store. It has no id, so a model cannot overwrite existing memories."""

    event_date: str | None = None
    namespace: str | None = None
    user_id: str | None = None
    session_id: str | None = None


class StoreArguments(BaseModel):
    """Arguments of eagerly_create_long_term_memory."""

    memories: Annotated[list[Annotated[NewMemory, BeforeValidator(_without_nulls)]], Field(min_length=1), BeforeValidator(_as_list)]


class EditArguments(ReadArguments):
    """Arguments of edit_long_term_memory."""

    text: str | None = None
    topics: list[str] | None = None
    entities: list[str] | None = None
    memory_type: MemoryTypeEnum | None = None
    namespace: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    event_date: str | None = None

    @property
    def updates(self) -> dict[str, Any]:
        return self.model_dump(exclude={"memory_id"}, exclude_none=True)


class DeleteArguments(BaseModel):
    """Arguments of delete_long_term_memories."""

    memory_ids: Annotated[list[str], Field(min_length=1)]


class ForgetArguments(BaseModel):
    """Arguments of forget_memory."""

    text: Annotated[str, Field(min_length=1)] | None = None
    ids: Annotated[list[str], Field(min_length=1)] | None = None
    dry_run: bool = True

    @model_validator(mode="after")
    def _says_what(self) -> Self:
        if (self.text is None) == (self.ids is None):
            raise ValueError("give either text or ids")
        return self


def parse_arguments(model: type[Arguments], arguments: Mapping[str, Any]) -> Arguments:
    """Parse a tool call's arguments, ignoring nulls and unknown arguments.

    Raises MemoryValidationError.
    """
    try:
        return model.model_validate(_without_nulls(dict(arguments)))
    except ValidationError as error:
        raise validation_error(error) from error


def record_of(memory: NoteArguments, namespace: str | None, user_id: str | None) -> ClientMemoryRecord:
    """Convert a memory to a record for a namespace and user. Raises MemoryValidationError."""
    return parse_arguments(ClientMemoryRecord, {**memory.model_dump(), "namespace": namespace, "user_id": user_id})
