"""Turn the facts in a model's response into memories."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from agent_memory.features.extraction import prompts, reconcile_prompts, thread_prompts
from agent_memory.features.extraction.fact_dates import event_day, instant
from agent_memory.features.extraction.fact_support import ExtractionMessage, Grounds
from agent_memory.features.extraction.prompts import DOCUMENT_ROLE, VERSION, ExtractedFact
from agent_memory.features.extraction.rules import Rules
from agent_memory.features.memories.annotations import annotate, annotations_of
from agent_memory.features.memories.records import TRUST, join_writers
from agent_memory.features.memories.service import content_hash, fact_memory_id
from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.text.data_fences import DATA_RULE
from agent_memory.foundation.text.dates.relative import with_absolute_times
from agent_memory.foundation.text.normalization import normal_text
from agent_memory.foundation.text.prompt_marks import DATA_NOTE, PROGRAM_ROLES, TOOL_ROLES, own_words
from agent_memory.foundation.text.terms import words
from agent_memory_client.models import ANSWER, Evidence, MemoryRecord

_QUOTE_CHARS = 1000
_ROLES = frozenset({"", "user", "assistant", DOCUMENT_ROLE, *PROGRAM_ROLES, *TOOL_ROLES})
_NO_SLOT = re.compile(r"[^\w.]+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fact that can become a memory. `witnessed` is False if only the assistant said it."""

    record: MemoryRecord
    evidence: Evidence
    witnessed: bool


def candidates(
    ref: SessionRef,
    rules: Rules,
    facts: Sequence[ExtractedFact],
    messages: Sequence[ExtractionMessage],
    *,
    before: Sequence[ExtractionMessage] = (),
    model: str,
    clean: Callable[[str], str],
) -> list[Candidate]:
    """Return the distinct facts that can be stored, oldest first. `clean` removes secrets.

    The messages in `before` only provide context.
    """
    by_words: dict[object, Candidate] = {}
    grounds = Grounds(messages, before, translated=rules.language is not None)
    has_pictures = any(message.pictures for message in (*before, *messages))
    for fact in facts:
        places = [n - 1 for n in dict.fromkeys(fact.messages) if 1 <= n <= len(messages)]
        text = grounds.supported(clean(clean_text(fact.text)))
        fact = fact.model_copy(update={"text": text})
        cited = [] if repeats_instructions(text) else [messages[place] for place in grounds.find(text, fact.entities, places)]
        candidate = _candidate(ref, rules, fact, cited, model, clean) if cited else None
        if candidate is not None and has_pictures and grounds.needs_pictures(text, fact.entities):
            candidate = _picture_candidate(candidate)
        if candidate is None:
            continue
        words = normal_text(candidate.record.text), candidate.record.event_date
        same = by_words.setdefault(words, candidate)
        if same is not candidate:
            by_words[words] = _merged_candidate(same, candidate)
    return sorted(by_words.values(), key=lambda candidate: candidate.record.created_at)


def _picture_candidate(candidate: Candidate) -> Candidate:
    """Limit the trust in a fact from an image to that of an inference."""
    record, least = candidate.record, TRUST["inference"]
    record.trust = least if record.trust is None else min(record.trust, least)
    return candidate


def _merged_candidate(first: Candidate, second: Candidate) -> Candidate:
    ids = list(dict.fromkeys([*first.evidence.message_ids, *second.evidence.message_ids]))
    evidence = first.evidence.model_copy(update={"message_ids": ids})
    old = first.record
    ref = SessionRef(old.session_id or "", old.namespace, old.user_id)
    record = old.model_copy(update={"id": fact_memory_id(ref, old.text, ids), "extracted_from": ids, "evidence": [evidence]})
    record.written_by = join_writers((first.record.written_by, second.record.written_by))
    record.trust = min((candidate.record.trust for candidate in (first, second) if candidate.record.trust is not None), default=None)
    return Candidate(record, evidence, first.witnessed or second.witnessed)


def _candidate(
    ref: SessionRef, rules: Rules, fact: ExtractedFact, cited: Sequence[ExtractionMessage], model: str, clean: Callable[[str], str]
) -> Candidate | None:
    stated_at = max(message.stated_at for message in cited)
    text = clean(clean_text(fact.text))
    tags = [tag for tag in map(clean_text, (*fact.topics, *fact.entities)) if tag]
    if not text or own_words(text) != text or rules.blocklist.holds(text, *tags):
        return None
    zone = rules.zone
    kind = "semantic" if rules.strategy == "preferences" else fact.type
    event = instant(fact.event_date, zone)
    try:
        text = with_absolute_times(text, stated_at.astimezone(zone).date())
        if kind == "episodic":
            event = event_day(event, [message.text for message in cited], stated_at, zone, now=datetime.now(UTC))
    except OverflowError:
        pass  # The message's date is the first or last in the calendar, so there is no previous or next day.
    begins, ends, over = (instant(value, zone) for value in (fact.valid_from, fact.valid_to, fact.expires))
    if ends is not None and ends <= (begins or stated_at):
        begins, ends = (begins, None) if begins is None or ends <= begins else (begins, ends)
    users = [message for message in cited if message.source == "user"]
    sources = {message.source for message in cited}
    source = "user" if "user" in sources else "assistant" if "assistant" in sources else "tool"
    role = _speaker(fact.speaker, (users or cited)[0].role)
    ids = [message.id for message in cited]
    quote = "\n".join(message.text for message in cited)[:_QUOTE_CHARS]
    evidence = Evidence(session_id=ref.session_id, message_ids=ids, role=role, quote=quote, source=source, at=stated_at)
    record = MemoryRecord.model_validate(
        {
            "id": fact_memory_id(ref, text, ids),
            "text": text,
            "namespace": ref.namespace,
            "user_id": ref.user_id,
            "session_id": ref.session_id,
            "memory_type": kind,
            "topics": [tag for tag in map(clean_text, fact.topics) if tag],
            "entities": [tag for tag in map(clean_text, fact.entities) if tag],
            "slot": _slot(fact.slot) if kind == "semantic" else None,
            "category": fact.category if fact.category in {category.name for category in rules.categories} else None,
            "event_date": event,
            "valid_from": begins,
            "valid_to": ends,
            "expires_at": over if over is not None and over > stated_at else None,
            "created_at": stated_at,
            "last_accessed": stated_at,
            "persisted_at": datetime.now(UTC),
            "extracted_from": ids,
            "extraction_strategy": rules.strategy,
            "discrete_memory_extracted": "t",
            "evidence": [evidence],
            "source_class": evidence.source,
            # A fact is as trusted as the least trusted message that it cites.
            "trust": None if len(users) == len(cited) else min(TRUST[message.source] for message in cited),
            "model": model,
            "prompt_version": VERSION,
            "written_by": join_writers(message.stored.message.written_by for message in cited),
        },
        # The limits for callers' records do not apply here, because a message id may contain a comma.
        context=ANSWER,
    )
    annotate(record, [annotations_of(message.stored.message) for message in cited])
    record.memory_hash = content_hash(record)
    return Candidate(record, evidence, bool(users))


def _speaker(named: str | None, role: str) -> str:
    """Return the speaker's cleaned name, or `role` if it is not a proper name."""
    name = clean_text(named or "")
    return role if name.casefold() in _ROLES else name


def _slot(slot: str | None) -> str | None:
    return _NO_SLOT.sub("_", clean_text(slot or "").casefold()).strip("_.")[:128] or None


def clean_text(text: str) -> str:
    """Normalize a model's text to NFC and remove control characters.

    Collapse white space, and replace lone surrogates with "?".
    """
    valid = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode())
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in valid).split())


# Fewer words may match the prompts' instructions by chance.
_LEAST_WORDS = 5


def repeats_instructions(text: str) -> bool:
    """True if a text is an excerpt from this server's prompts."""
    text_words = words(text)
    return len(text_words) >= _LEAST_WORDS and f" {' '.join(text_words)} " in _instructions()


@lru_cache(maxsize=1)
def _instructions() -> str:
    parts = [*prompts.INSTRUCTIONS, *reconcile_prompts.INSTRUCTIONS, *thread_prompts.INSTRUCTIONS, DATA_RULE, DATA_NOTE]
    return " ".join(["", *(word for part in parts for word in words(part)), ""])
