"""Rules for extracting facts, for all users, a namespace, a user or a session."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from agent_memory_client.models._types import FreeText, Identifier, Text

MAX_PHRASES = 200


class ExtractionCategory(BaseModel):
    """A category of facts to extract."""

    name: Annotated[Identifier, Field(max_length=64)]
    """The category's name, at most 64 characters. Its facts have this name as their `category`."""
    description: Annotated[FreeText, Field(max_length=500)] = ""
    """A description of the category for the language model. At most 500 characters."""


class ExtractionRules(BaseModel):
    """Rules for which facts to extract and how to write them."""

    instructions: Annotated[FreeText, Field(max_length=4000)] | None = None
    """Instructions for the language model, in plain words: facts to extract and facts to omit. At most 4,000
    characters."""
    categories: Annotated[list[ExtractionCategory], Field(max_length=50)] = Field(default_factory=list[ExtractionCategory])
    """The categories of facts, at most 50. The model assigns one of them to each fact."""
    do_not_record: Annotated[list[Annotated[Text, Field(max_length=200)]], Field(max_length=MAX_PHRASES)] = Field(default_factory=list[str])
    """Phrases to avoid. The server never creates a memory from a message or fact that contains one of them, in any
    inflected form."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """The time zone of dates and times, as an IANA name such as `Europe/Lisbon`. Default: UTC."""
    language: Annotated[FreeText, Field(max_length=64)] | None = None
    """The language to write facts in, such as `English`. Default: the language of the conversation."""
    review: bool = False
    """True if a new fact that would supersede an old one becomes a proposal that waits for approval."""
