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
    """What an entry rests on."""

    session_id: str | None = None
    """The session that it was said in; null when a program stated it."""
    message_ids: list[str] = Field(default_factory=list[str])
    """The messages of the session that say it."""
    at: datetime | None = None
    """When it was said."""


class ProfileEntry(BaseModel):
    """Something that is known of a user."""

    id: str
    """The memory that says it."""
    text: str
    """What is known, at most 600 characters of it."""
    since: datetime
    """Since when it is true: as it was said, else since it was made."""
    last_said: datetime
    """When it was last said."""
    event_date: datetime | None = Absent
    """When what it tells happened; left out when that is not known."""
    times_said: int = 1
    """How often it was said."""
    confidence: float = 1.0
    """How sure it is, from 0 to 1."""
    slot: str | None = None
    """The slot that it is the value of, if any."""
    evidence: list[ProfileEvidence] = Field(default_factory=list[ProfileEvidence])


class Profile(BaseModel):
    """What is known of a user in one namespace."""

    user_id: str
    namespace: str | None = None
    static: list[ProfileEntry] = Field(default_factory=list[ProfileEntry])
    """What is stable: names, allergies, home, family, work, languages, and what was said on three days within fourteen."""
    dynamic: list[ProfileEntry] = Field(default_factory=list[ProfileEntry])
    """What is current, the latest first."""
    slots: dict[str, dict[str, ProfileEntry]] = Field(default_factory=dict[str, dict[str, ProfileEntry]])
    """The values of slots, by topic and sub-topic of the schema."""
    memories: list[dict[str, Any]] | None = None
    """What fits `q`, as a search answers it; null without `q`."""
    as_of: datetime
    version: int
    """Changes when the profile does; 0 for a profile that was never written, and of other times than now."""


class ProfileMove(BaseModel):
    """A step of a memory into, within or out of a profile."""

    memory_id: str
    """The id of the memory that moved."""
    at: datetime
    """When it was noticed."""
    before: str | None = None
    """`static` or `dynamic`; null when it came in."""
    after: str | None = None
    """`static` or `dynamic`; null when it went."""


class ProfileMoves(BaseModel):
    """The latest moves of a profile, newest first."""

    moves: list[ProfileMove] = Field(default_factory=list[ProfileMove])
    """At most a thousand are kept."""


class ProfileTopic(BaseModel):
    """A topic of a profile's slots."""

    description: _About = ""
    """What belongs here, in words for the model that takes facts."""
    sub_topics: dict[TopicName, _About] = Field(default_factory=dict[str, str], max_length=MAX_SUB_TOPICS)
    """The slots of the topic, each with what it is about. `home_city` is the slot of that name, or `home.home_city`."""


class ProfileSchema(BaseModel):
    """Topics and sub-topics: which slots a profile shows."""

    topics: dict[TopicName, ProfileTopic] = Field(max_length=MAX_TOPICS)
    """The topics by name."""


class ProfileQuery(BaseModel):
    """Whose profile `get_profile` is to read."""

    user_id: OptionalIdentifier = None
    """The user; the one of the conversation when not given."""
    namespace: OptionalIdentifier = None
    """The namespace; the one of the conversation when not given."""
    query: FreeText | None = None
    """Also search the memories for this."""
    limit: Annotated[int, Field(ge=1, le=64)] = 20
    """At most so many entries of each kind."""


class RebuildProfileRequest(BaseModel):
    """Whose profile is to be made anew."""

    user_id: Identifier
    """The user."""
    namespace: OptionalIdentifier = None
    """The namespace; what is in none when not given."""


class ProfileInPrompt(BaseModel):
    """How much of the user's profile a prompt shows."""

    tokens: Annotated[int, Field(ge=32, le=4000)] = 300
