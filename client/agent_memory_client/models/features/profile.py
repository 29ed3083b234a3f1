"""A user's profile: stable facts, current facts and slots."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agent_memory_client.models._types import Absent, FreeText, Identifier, OptionalIdentifier

MAX_TOPICS = 32
MAX_SUB_TOPICS = 32

TopicName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f]+$")]
_About = Annotated[FreeText, Field(max_length=500)]


class ProfileEvidence(BaseModel):
    """The source of a profile entry."""

    session_id: str | None = None
    """The session in which the fact was stated. Null if a program stated it."""
    message_ids: list[str] = Field(default_factory=list[str])
    """The messages in the session that state the fact."""
    at: datetime | None = None
    """The time when the fact was stated."""


class ProfileEntry(BaseModel):
    """A fact about a user."""

    id: str
    """The id of the memory that contains the fact."""
    text: str
    """The memory's text, at most 600 characters."""
    since: datetime
    """The time when the fact became true. Default: the time when the memory was created."""
    last_said: datetime
    """The time when the fact was last mentioned."""
    event_date: datetime | None = Absent
    """The time of the event in the memory. Omitted if it is unknown."""
    times_said: int = 1
    """The number of times the fact was mentioned."""
    confidence: float = 1.0
    """The confidence in the fact, from 0 to 1."""
    slot: str | None = None
    """The slot that contains this fact. Null if it is not in a slot."""
    evidence: list[ProfileEvidence] = Field(default_factory=list[ProfileEvidence])


class Profile(BaseModel):
    """The facts about a user in one namespace."""

    user_id: str
    namespace: str | None = None
    static: list[ProfileEntry] = Field(default_factory=list[ProfileEntry])
    """Stable facts: names, allergies, home, family, work, languages, and anything stated on three different days within
    14 days."""
    dynamic: list[ProfileEntry] = Field(default_factory=list[ProfileEntry])
    """Current facts, newest first."""
    slots: dict[str, dict[str, ProfileEntry]] = Field(default_factory=dict[str, dict[str, ProfileEntry]])
    """The values of the slots, by topic and subtopic of the schema."""
    memories: list[dict[str, Any]] | None = None
    """The memories that match `q`, as search results. Null without `q`."""
    as_of: datetime
    version: int
    """A number that changes with the profile. It is 0 for a profile that was never stored, or that was computed for a
    different time or time zone."""


class ProfileMove(BaseModel):
    """A memory's move into, within or out of a profile."""

    memory_id: str
    """The id of the memory that moved."""
    at: datetime
    """The time when the server noticed the move."""
    before: str | None = None
    """The previous list, `static` or `dynamic`. Null if the memory was in neither."""
    after: str | None = None
    """The new list, `static` or `dynamic`. Null if the memory left the profile."""


class ProfileMoves(BaseModel):
    """The latest moves of memories in a profile, newest first."""

    moves: list[ProfileMove] = Field(default_factory=list[ProfileMove])
    """The moves. The server stores at most 1,000."""


class ProfileTopic(BaseModel):
    """A topic that groups a profile's slots."""

    description: _About = ""
    """A description of the topic for the model that extracts facts."""
    sub_topics: dict[TopicName, _About] = Field(default_factory=dict[str, str], max_length=MAX_SUB_TOPICS)
    """The topic's slots, each with a description. The slot `city` of the topic `home` shows facts with the slot `city`,
    `home_city` or `home.city`."""


class ProfileSchema(BaseModel):
    """The topics and subtopics that define the slots of a profile."""

    topics: dict[TopicName, ProfileTopic] = Field(max_length=MAX_TOPICS)
    """The topics by name."""


class ProfileQuery(BaseModel):
    """The user and namespace of the profile to read."""

    user_id: OptionalIdentifier = None
    """The user. Default: the conversation's user."""
    namespace: OptionalIdentifier = None
    """The namespace. Default: the conversation's namespace."""
    query: FreeText | None = None
    """A query to search the user's memories."""
    limit: Annotated[int, Field(ge=1, le=64)] = 20
    """The maximum number of static entries and of dynamic entries, each at most 64."""


class RebuildProfileRequest(BaseModel):
    """The user and namespace of the profile to rebuild."""

    user_id: Identifier
    """The profile's user."""
    namespace: OptionalIdentifier = None
    """The namespace of the profile. Without it, the server rebuilds the profile outside all namespaces."""


class ProfileInPrompt(BaseModel):
    """The maximum size in tokens of the user's profile in a prompt."""

    tokens: Annotated[int, Field(ge=32, le=4000)] = 300
