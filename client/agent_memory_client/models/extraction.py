"""What facts are taken from conversations: rules for everybody, a namespace, a user or a session."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from agent_memory_client.models._types import FreeText, Identifier, Text

MAX_PHRASES = 200


class ExtractionCategory(BaseModel):
    """A kind of fact that is wanted: its name, which facts carry in their metadata, and what belongs to it."""

    name: Annotated[Identifier, Field(max_length=64)]
    description: Annotated[FreeText, Field(max_length=500)] = ""


class ExtractionRules(BaseModel):
    """What is worth remembering, and how it is written down.

    `instructions` say in plain words what to keep and what never to keep. `do_not_record` are plain phrases: nothing that has one of
    them, in any inflection, is remembered. Times are read and told in `timezone` (an IANA name, UTC if not given); facts are written in
    `language`, or else in that of the conversation. With `review`, a new fact that would end an old one is only proposed.
    """

    instructions: Annotated[FreeText, Field(max_length=4000)] | None = None
    categories: Annotated[list[ExtractionCategory], Field(max_length=50)] = Field(default_factory=list[ExtractionCategory])
    do_not_record: Annotated[list[Annotated[Text, Field(max_length=200)]], Field(max_length=MAX_PHRASES)] = Field(default_factory=list[str])
    timezone: Annotated[str, Field(max_length=64)] | None = None
    language: Annotated[FreeText, Field(max_length=64)] | None = None
    review: bool = False
