"""Assign profile slots to topics."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent_memory_client.models.features.profile import ProfileSchema, ProfileTopic

_WORD = re.compile(r"[^\W_]+")
# A slot can begin with one of these words, as in "user.home_city".
_OWNERS = frozenset({"user", "self", "me"})

_TOPICS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "identity": (
        "Who the person is.",
        {
            "name": "What they are called.",
            "age": "How old they are.",
            "birthday": "When they were born.",
            "gender": "Their gender or pronouns.",
            "nationality": "Of which country they are.",
            "native_language": "The language that they grew up with.",
            "language": "The language in which they want to be spoken to.",
            "timezone": "Where their clock stands.",
        },
    ),
    "work": (
        "What they do for a living.",
        {"employer": "For whom they work.", "job": "What they work as.", "industry": "In which field.", "school": "Where they study."},
    ),
    "home": (
        "Where and how they live.",
        {
            "home_city": "In which city they live.",
            "home_country": "In which country.",
            "address": "Where exactly.",
            "housing": "How they live.",
        },
    ),
    "family": (
        "Who belongs to them.",
        {
            "marital_status": "Whether they have a partner.",
            "partner": "Who that is.",
            "children": "Their children.",
            "parents": "Their parents.",
            "pet": "Their animals.",
        },
    ),
    "health": (
        "What their body needs.",
        {"allergy": "What they must not have.", "diet": "How they eat.", "condition": "What they live with.", "injury": "What hurts now."},
    ),
    "preferences": (
        "What they like.",
        {
            "favorite_food": "What they like to eat.",
            "favorite_color": "Their color.",
            "favorite_music": "What they listen to.",
            "communication_style": "How they want to be answered.",
        },
    ),
    "goals": ("What they want to reach.", {"goal": "What they work towards.", "deadline": "Until when."}),
    "schedule": (
        "When they do what.",
        {"wake_time": "When they get up.", "workout_days": "When they train.", "working_hours": "When they work."},
    ),
}

DEFAULT_SCHEMA = ProfileSchema(
    topics={name: ProfileTopic(description=about, sub_topics=dict(subs)) for name, (about, subs) in _TOPICS.items()}
)

_LASTING_WORD = re.compile(
    "name|birthday|birthplace|gender|nationality|allergy|allergies|allergic|home|city|country|address|family|partner|spouse|wife|husband"
    "|child|children|son|daughter|mother|father|parents?|sibling|brother|sister|marital|work|job|employer|employment|occupation|profession"
    "|company|languages?|diet"
)


def is_lasting_name(name: str) -> bool:
    """True if a slot, category or topic is about something lasting, such as a name."""
    return any(_LASTING_WORD.fullmatch(word) for word in _WORD.findall(name.casefold()))


def slots_instruction(schema: ProfileSchema) -> str:
    """Return a prompt instruction that lists a schema's slots."""
    lines = [
        f"- user.{sub_topic}: {about or topic}"
        for topic, described in schema.topics.items()
        for sub_topic, about in described.sub_topics.items()
    ]
    return "\n".join(["Of these slots, name the one that a fact about the user is the value of:", *lines])


class SlotTopics:
    def __init__(self, schema: ProfileSchema) -> None:
        self._places: dict[str, tuple[str, str]] = {}
        for topic, about in schema.topics.items():
            for sub_topic in about.sub_topics:
                place = (topic, sub_topic)
                for name in (f"{topic} {sub_topic}", sub_topic):
                    self._places.setdefault(_normal(name), place)

    def place_of(self, slot: str) -> tuple[str, str] | None:
        """Return a slot's topic and sub-topic, or None if they are not in the schema.

        "user.home_city" and "home_city" mean the sub-topic `home_city`. "work.employer" means `employer` in `work`.
        """
        words = _normal(slot).split()
        if words and words[0] in _OWNERS:
            words = words[1:]
        return self._places.get(" ".join(words))


def _normal(name: str) -> str:
    return " ".join(_WORD.findall(name.casefold()))
