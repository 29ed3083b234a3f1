"""Rules for the extraction of facts: for everybody, a namespace, a user or a session."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from agent_memory_client.models._types import FreeText, Identifier, Text

MAX_PHRASES = 200


class ExtractionCategory(BaseModel):
    """A kind of fact that is wanted: its name, which facts carry in their metadata, and what belongs to it."""

    name: Annotated[Identifier, Field(max_length=64)]
    """The category's name, which facts carry in `category`."""
    description: Annotated[FreeText, Field(max_length=500)] = ""
    """What belongs to it, in words for the language model."""


class ExtractionRules(BaseModel):
    """What is worth remembering, and how it is written down."""

    instructions: Annotated[FreeText, Field(max_length=4000)] | None = None
    """What to keep and what never to keep, in plain words for the language model."""
    categories: Annotated[list[ExtractionCategory], Field(max_length=50)] = Field(default_factory=list[ExtractionCategory])
    """The kinds of fact that are wanted; the model names one of them in each fact."""
    do_not_record: Annotated[list[Annotated[Text, Field(max_length=200)]], Field(max_length=MAX_PHRASES)] = Field(default_factory=list[str])
    """Plain phrases: a message or fact that has one of them, in any inflection, is not remembered."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """The time zone, as an IANA name such as `Europe/Lisbon`, in which times are read and told; UTC when not given."""
    language: Annotated[FreeText, Field(max_length=64)] | None = None
    """The language that facts are written in, such as `English`; that of the conversation when not given."""
    review: bool = False
    """Whether a new fact that would end an old one is only proposed and waits for approval."""
