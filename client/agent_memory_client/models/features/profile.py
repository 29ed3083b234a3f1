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
    """The session of the statement; null if a program stated it."""
    message_ids: list[str] = Field(default_factory=list[str])
    """The messages of the session that contain the statement."""
    at: datetime | None = None
    """The time of the statement."""


class ProfileEntry(BaseModel):
    """A fact about a user."""

    id: str
    """The id of the memory with the fact."""
    text: str
    """The text of the memory, at most 600 characters."""
    since: datetime
    """The time since when the fact is true: as stated, else the time when the memory was created."""
    last_said: datetime
    """The time of the last mention."""
    event_date: datetime | None = Absent
    """The time of the event in the memory; left out if it is not known."""
    times_said: int = 1
    """The number of mentions."""
    confidence: float = 1.0
    """The confidence in the fact, from 0 to 1."""
    slot: str | None = None
    """The slot that holds this fact; null without one."""
    evidence: list[ProfileEvidence] = Field(default_factory=list[ProfileEvidence])


class Profile(BaseModel):
    """The facts about a user in one namespace."""

    user_id: str
    namespace: str | None = None
    static: list[ProfileEntry] = Field(default_factory=list[ProfileEntry])
    """Stable facts: names, allergies, home, family, work, languages, and statements made on three different days within
    14 days."""
    dynamic: list[ProfileEntry] = Field(default_factory=list[ProfileEntry])
    """Current facts, latest first."""
    slots: dict[str, dict[str, ProfileEntry]] = Field(default_factory=dict[str, dict[str, ProfileEntry]])
    """The values of slots, by topic and sub-topic of the schema."""
    memories: list[dict[str, Any]] | None = None
    """The memories that match `q`, as search results; null without `q`."""
    as_of: datetime
    version: int
    """A number that changes with the profile. It is 0 for a profile that was never written, or that was computed for
    another time or time zone."""


class ProfileMove(BaseModel):
    """A move of a memory into, within or out of a profile."""

    memory_id: str
    """The id of the memory that moved."""
    at: datetime
    """The time when the server noticed the move."""
    before: str | None = None
    """The former list, `static` or `dynamic`; null if the memory was in neither."""
    after: str | None = None
    """The new list, `static` or `dynamic`; null if the memory left the profile."""


class ProfileMoves(BaseModel):
    """The latest moves of a profile, newest first."""

    moves: list[ProfileMove] = Field(default_factory=list[ProfileMove])
    """The moves. The server keeps at most 1,000."""


class ProfileTopic(BaseModel):
    """A topic that groups slots of a profile."""

    description: _About = ""
    """The content of the topic, in words for the model that extracts facts."""
    sub_topics: dict[TopicName, _About] = Field(default_factory=dict[str, str], max_length=MAX_SUB_TOPICS)
    """The slots of the topic, each with a description. The slot `city` of the topic `home` shows facts with the slot
    `city`, `home_city` or `home.city`."""


class ProfileSchema(BaseModel):
    """The topics and sub-topics of a profile, which define its slots."""

    topics: dict[TopicName, ProfileTopic] = Field(max_length=MAX_TOPICS)
    """The topics by name."""


class ProfileQuery(BaseModel):
    """The user and namespace of the profile to read."""

    user_id: OptionalIdentifier = None
    """The user. Default: the user of the conversation."""
    namespace: OptionalIdentifier = None
    """The namespace. Default: the namespace of the conversation."""
    query: FreeText | None = None
    """A query to search the user's memories with."""
    limit: Annotated[int, Field(ge=1, le=64)] = 20
    """The number of static and of dynamic entries, at most 64 each."""


class RebuildProfileRequest(BaseModel):
    """The user and namespace of a profile to rebuild."""

    user_id: Identifier
    """The user of the profile."""
    namespace: OptionalIdentifier = None
    """The namespace of the profile. Without it, the profile outside all namespaces."""


class ProfileInPrompt(BaseModel):
    """The size of the user's profile in a prompt."""

    tokens: Annotated[int, Field(ge=32, le=4000)] = 300
