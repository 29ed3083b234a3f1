"""The prompt for extracting facts from messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal, Self, cast

from pydantic import BaseModel, Field, ModelWrapValidatorHandler, PrivateAttr, ValidationError, field_validator, model_validator

from agent_memory.foundation.core.input.validation import first_problem
from agent_memory.foundation.llm.base import ChatMessage
from agent_memory.foundation.text.data_fences import DATA_RULE, PromptMessage, described_pictures, fence, message_lines

VERSION = "extract/3"
"""The prompt's version. Change it whenever the prompt changes."""
DOCUMENT_ROLE = "document"
"""The role of a document's passages in a prompt."""

_TO_KEEP = {
    "discrete": """- Lasting facts: who people are, relations, homes, work, skills, possessions, health, preferences, plans, goals, \
decisions.
- Things that happened or will happen at a time.
- Ways of doing something that somebody explained or agreed on (type "procedural").""",
    "preferences": """- Preferences and nothing else: what somebody likes, dislikes, avoids, or wants done in a certain way, with its \
reason or condition if one is given.
- type is always "semantic".""",
}
_TASK = """You read new messages of a conversation and write down what is worth remembering in later conversations.

What to keep:
{to_keep}

What never to keep:
- Jokes, sarcasm, hypotheticals ("if I lived in Rome"), fiction, questions, and what somebody else is only quoted with.
- Greetings, small talk, general knowledge, the assistant's wording. Nothing that is not said.
- Passwords, keys, card numbers and other secrets, also not where "[redacted" stands for one.{never}

How to write it:
- One fact per entry, each understandable on its own years later: no "he", "there" or "the project" whose meaning is only in the \
conversation. Name the person; the user is "User" unless the conversation names them.
- Say whose fact it is. `speaker` is who said it: a name when the conversation gives one, else the message's role. Of the assistant, \
keep only what it recommended, promised or did, and say that it did; what it supposes of the user is a fact when the user confirms it. \
Messages of tools help to understand: take no fact from them alone.
- Make relative dates absolute, each against its own message's time ("at", {zone}): "yesterday" in a message of 2024-03-05 is 2024-03-04. \
What stands between quotation marks stays as it is.
- type "semantic": lasting facts (preferences, relations, skills, plans, properties). type "episodic": things that happened or will happen \
at a time; give `event_date` as an ISO 8601 date or date-time when it is known, else null.
- `valid_from`, `valid_to`: ISO 8601, when a fact began or ends to be true, if that is said; else null. `expires`: for a state that passes \
by itself (an injury, a trip, a deadline), when it is surely over; else null.
- `slot`: for a fact of which only one can be true of a person at a time, what it is about in snake case with its person, such as \
"user.home_city" or "anna.employer"; else null.
- `topics`: up to 5 short keywords; `entities`: names of people, places, products, organizations in the fact. No commas inside them.
- `category`: {categories}.
- `messages`: the numbers ("n") of just those new messages that say it. Names and numbers as they stand there.
- When new messages correct each other, keep what holds in the end. At most {max_facts} facts; none is a good answer.
- Write in {language}.
- Context messages are only there to understand the new ones: take no fact from them.
- {data_rule}

Answer with a JSON object: {{"memories": [{{"text": "...", "type": "semantic", "topics": ["..."], "entities": ["..."], "slot": null, \
"category": null, "event_date": null, "valid_from": null, "valid_to": null, "expires": null, "speaker": "user", "messages": [1]}}]}}. \
When nothing is worth remembering: {{"memories": []}}"""
INSTRUCTIONS = (_TASK, *_TO_KEEP.values())


@dataclass(frozen=True, slots=True)
class ExtractionTask:
    """A strategy ("discrete", "preferences" or "custom") and its rules.

    `custom` is a template that may contain a "{name}" placeholder for each name in `names`.
    """

    strategy: str = "discrete"
    instructions: Sequence[str] = ()
    categories: Sequence[tuple[str, str]] = ()
    phrases: Sequence[str] = ()
    zone: tzinfo = UTC
    language: str | None = None
    custom: str | None = None
    names: Mapping[str, str] = field(default_factory=dict[str, str])


_MOST_FACTS = 200
_MOST_CITED = 200
_FACTS = re.compile(r'"memories"\s*+:\s*+\[')
_BETWEEN_TAGS = re.compile(r"[,;\n，、；،]")
_NUMBER = re.compile(r"(?<![\d.-])\d{1,6}(?![\d.])")


class ExtractedFact(BaseModel):
    text: str = Field(min_length=1, max_length=4000)
    type: Literal["semantic", "episodic", "procedural"] = "semantic"
    topics: list[str] = []
    entities: list[str] = []
    slot: str | None = Field(default=None, description="What a fact of which only one can be true is about, or null.")
    category: str | None = Field(default=None, description="One of the given categories, or null.")
    event_date: str | None = Field(default=None, description="ISO 8601 date or date-time, or null.")
    valid_from: str | None = Field(default=None, description="ISO 8601 date or date-time, or null.")
    valid_to: str | None = Field(default=None, description="ISO 8601 date or date-time, or null.")
    expires: str | None = Field(default=None, description="ISO 8601 date or date-time, or null.")
    speaker: str | None = Field(default=None, description="Who said it.")
    messages: list[int] = Field(default=[], description="Numbers of the new messages that the fact comes from.")

    @field_validator("text")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value.strip()

    @field_validator("type", mode="before")
    @classmethod
    def _known_type(cls, value: object) -> object:
        return value if value in ("semantic", "episodic", "procedural") else "semantic"

    @field_validator("messages", mode="before")
    @classmethod
    def _numbers(cls, value: object) -> list[int]:
        """Parse message numbers as models write them: 1, "1", "[1, 2]", "message 3" or {"n": 1}."""
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        cited: list[int] = []
        for item in items[:_MOST_CITED]:
            named = cast("dict[str, object]", item).get("n") if isinstance(item, dict) else item
            if isinstance(named, str):
                cited += [int(number) for number in _NUMBER.findall(named[:_MOST_CITED])]
            elif isinstance(named, int | float) and not isinstance(named, bool) and float(named).is_integer():
                cited.append(int(named))
        return cited

    @field_validator("topics", "entities", mode="before")
    @classmethod
    def _short_tags(cls, value: object) -> list[str]:
        """Return up to ten distinct tags.

        Never raises, so that a bad tag does not discard the fact.
        """
        if isinstance(value, str):
            value = [part.strip(" \t[]\"'*•-") for part in _BETWEEN_TAGS.split(value)]
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        tags = [" ".join(str(tag).replace(",", " ").split())[:128] for tag in items if isinstance(tag, str | int | float)]
        return list(dict.fromkeys(tag for tag in tags if any(map(str.isalnum, tag))))[:10]

    @field_validator("slot", "category", "speaker", mode="before")
    @classmethod
    def _short_or_none(cls, value: object) -> object:
        return " ".join(value.split())[:128] or None if isinstance(value, str) else None

    @field_validator("event_date", "valid_from", "valid_to", "expires", mode="before")
    @classmethod
    def _iso_or_none(cls, value: object) -> object:
        """Return the date or time in ISO 8601 format, or None if the value is neither."""
        try:
            return datetime.fromisoformat(value.strip()).isoformat() if isinstance(value, str) else None
        except ValueError:
            return None


class ExtractionAnswer(BaseModel):
    memories: list[ExtractedFact] = Field(max_length=_MOST_FACTS)
    _refused: list[str] = PrivateAttr(default_factory=list[str])

    @property
    def refused(self) -> Sequence[str]:
        return self._refused

    @model_validator(mode="wrap")
    @classmethod
    def _each_by_itself(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Validate each fact separately. Reject the response only if no fact is valid."""
        items = value.get("memories") if isinstance(value, dict) else None
        if not isinstance(items, list):
            return handler(value)
        facts, refused = _fitting_facts(cast("list[object]", items))
        return handler({"memories": facts if facts else items}).with_refused(refused)

    def with_refused(self, refused: Sequence[str]) -> Self:
        self._refused = list(refused)
        return self


def _fitting_facts(items: Sequence[object]) -> tuple[list[ExtractedFact], list[str]]:
    """Return the valid facts, and the reasons for rejecting the others."""
    facts: list[ExtractedFact] = []
    refused: list[str] = []
    for item in items:
        fact = {"text": item} if isinstance(item, str) else item
        text = cast("dict[str, object]", fact).get("text") if isinstance(fact, dict) else None
        if not (isinstance(text, str) and text.strip()):
            refused.append("it has no text")
        elif len(facts) == _MOST_FACTS:
            refused.append(f"more than {_MOST_FACTS} facts")
        else:
            try:
                facts.append(ExtractedFact.model_validate(fact))
            except ValidationError as error:
                refused.append(": ".join(first_problem(error)))
    return facts, refused


def facts_before_the_end(text: str) -> ExtractionAnswer | None:
    """Return the complete facts in a truncated response, or None if there are none."""
    start = _FACTS.search(text)
    if start is None:
        return None
    decoder, position = json.JSONDecoder(), start.end()
    facts: list[object] = []
    while (begin := text.find("{", position)) >= 0 and not text[position:begin].strip(" \t\r\n,"):
        try:
            fact, position = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            break
        facts.append(fact)
    try:
        return ExtractionAnswer.model_validate({"memories": facts}) if facts else None
    except ValidationError:
        return None


def extract_messages(
    new: Sequence[PromptMessage], *, context: Sequence[PromptMessage] = (), task: ExtractionTask | None = None, max_facts: int = 50
) -> list[ChatMessage]:
    """Build the prompt for extracting facts from `new`. `context` contains earlier messages."""
    task = task or ExtractionTask()
    parts: list[str] = []
    if note := described_pictures([*context, *new]):
        parts.append(note.strip())
    if any(item.role == DOCUMENT_ROLE for item in new):
        parts.append(f'Messages of the role "{DOCUMENT_ROLE}" are passages of a file: keep the facts that they state.')
    if context:
        lines = fence(message_lines(context, task.zone), "context")
        parts.append(f"Context messages (understand only, one JSON object per line):\n{lines}")
    parts.append(f"New messages (one JSON object per line):\n{fence(message_lines(new, task.zone), 'messages')}")
    parts.append('Now answer with the facts of the new messages under "memories".')
    return [ChatMessage("system", _system(task, max_facts)), ChatMessage("user", "\n\n".join(parts))]


def _system(task: ExtractionTask, max_facts: int) -> str:
    to_keep = _TO_KEEP.get(task.strategy, _TO_KEEP["discrete"]) if task.custom is None else fill_template(task.custom.strip(), task.names)
    if task.instructions:
        to_keep += "\n" + "\n".join(f"- {instruction}" for instruction in task.instructions)
    never = f"\n- Anything about these: {json.dumps(list(task.phrases), ensure_ascii=False)}." if task.phrases else ""
    categories = "null"
    if task.categories:
        described = dict(task.categories)
        categories = f"the name of the one that fits, else null: {json.dumps(described, ensure_ascii=False)}"
    return _TASK.format(
        to_keep=to_keep,
        never=never,
        zone=str(task.zone),
        categories=categories,
        language=task.language or "the language of the messages",
        max_facts=max_facts,
        data_rule=DATA_RULE,
    )


def fill_template(template: str, names: Mapping[str, str]) -> str:
    """Replace each "{name}" with its value in `names`. Braces in the values remain unchanged."""
    if not names:
        return template
    pattern = re.compile(r"\{(" + "|".join(re.escape(name) for name in names) + r")\}")
    return pattern.sub(lambda match: names[match[1]], template)
